"""`why` against the answers of `questions.txt` and what PyTorch was recorded to say; every repair
is run again."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from autodiff_cli.why import why
from autodiff_cli.why.model import Answer
from tests.together import together
from tests.why.questions import Question, questions, said

RECORDED = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "why.json").read_text("utf-8")
)  # fmt: skip
ASKED = questions()
# What has a plain repair must get one.
REPAIRED = {
    "detached", "no-grad", "not-a-leaf", "requires-grad-false", "rebound", "dead-relu", "saturated",
    "nan-forward", "nan-backward", "inf-forward", "inf-backward",
}  # fmt: skip


def asked(question: Question, text: str, repair: bool = True):
    suffix = "expr" if question.native else "py"
    return why(Source(text, f"program.{suffix}"), question.name, repair=repair)


@cache
def answered(question: Question) -> Answer:
    """The answer, with its repair."""
    return asked(question, question.text)


# A leaf that requires grad cannot be changed in place; the others are not finite by what they say.
BEYOND_REPAIR = {
    "switched_off_and_changed", "switched_off_after_use", "detached_and_changed",
    "slopes_of_several_results", "filled_with_nan",
}  # fmt: skip


@together(ASKED, lambda q: q.id)
def test_verdict_cause_and_line(question: Question) -> None:
    answer = answered(question)
    assert answer.verdict in question.verdicts
    assert answer.cause in question.causes, answer.message
    assert answer.verdict == "ok" or answer.line in question.lines, answer.message
    assert answer.message and "\n" not in answer.message
    assert answer.verdict == RECORDED[question.id].get("verdict", answer.verdict)


@together(ASKED, lambda q: q.id)
def test_a_repair_keeps_the_gradient_and_the_loss(question: Question) -> None:
    answer = answered(question)
    assert said(question, answer) == {key: RECORDED[question.id][key] for key in ("said", "fix")}
    if answer.fix is None:
        assert question.id in BEYOND_REPAIR or not set(question.causes) <= REPAIRED
        return
    again = asked(question, answer.fix, repair=False)
    assert again.verdict not in ("none", "nan", "inf")
    assert again.verdict != "zero" or answer.verdict != "zero"
    before, after = (_loss(question, text) for text in (question.text, answer.fix))
    if before is not None and after is not None and answer.cause != "saturated":
        assert after == pytest.approx(before, rel=1e-2, abs=1e-3)


def _loss(question: Question, text: str) -> float | None:
    """The loss of a program when it is finite."""
    suffix = "expr" if question.native else "py"
    report = run(Source(text, f"program.{suffix}"), Options(nan="ignore"))
    record = report.tensors.get("loss")
    if record is None or record.value.size != 1 or not np.isfinite(record.value).all():
        return None
    return float(record.value)


def test_every_snippet_was_recorded() -> None:
    snippets = {q.id for q in ASKED if not q.native}
    assert snippets == {name for name, found in RECORDED.items() if "verdict" in found}


def test_every_cause_and_verdict_is_asked_for(project: Path) -> None:
    schema = (project / "autodiff_cli" / "render" / "schema" / "why-1.json").read_text("utf-8")
    listed = dict(re.findall(r'"(cause|verdict)": {\s+"enum": (\[[^]]*\])', schema))
    assert {cause for q in ASKED for cause in q.causes} == set(json.loads(listed["cause"]))
    assert {verdict for q in ASKED for verdict in q.verdicts} == set(json.loads(listed["verdict"]))


@pytest.mark.parametrize(
    ("text", "verdict", "line", "message"),
    [
        ("loss = (x * float('inf')).sum()\nloss.backward()\n", "inf", 3,
         "`x * float('inf')` is inf at [0], computed from `x` = 1 and inf"),
        ("w = torch.tensor(float('inf'))\nloss = (x * w).sum()\nloss.backward()\n", "inf", 3,
         "`torch.tensor(float('inf'))` is inf, as the program wrote it"),
        ("loss = x.detach().sum()\nif loss > 100:\n    loss.backward()\n", "none", 3,
         "`x.detach()` leaves the graph: backward sees a constant"),
    ],
)  # fmt: skip
def test_what_no_change_of_the_text_repairs(
    text: str, verdict: str, line: int, message: str
) -> None:
    text = f"import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n{text}"
    answer = why(Source(text, "program.py"), "x")
    assert (answer.verdict, answer.line, answer.message) == (verdict, line, message)
    assert answer.fix is None


@pytest.mark.parametrize(
    ("name", "cause", "line"),
    [("n", "requires-grad-false", 3), ("k", "detached", 4), ("b", "requires-grad-false", 5),
     ("t", "requires-grad-false", 6), ("x", "cancelled", 7)],
)  # fmt: skip
def test_numbers_are_no_tensors_and_three_ways_may_cancel(name: str, cause: str, line: int) -> None:
    """Of numbers that left the graph the one that the name means; of bools there are only two."""
    text = (
        "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\nn = 3\n"
        "k = x[0].item()\nb = (x[0] > 0).item()\nt = True\n"
        "loss = ((2 * x - x - x) * k * n * b * t).sum()\nloss.backward()\n"
    )
    answer = why(Source(text, "program.py"), name, repair=False)
    assert (answer.cause, answer.line) == (cause, line), answer.message


def test_of_several_flat_ops_the_flattest_is_named() -> None:
    """The slopes are 1.5e-10 and 2.1e-9."""
    text = "x = 3\ny = tanh(x * 4)\nloss = sigmoid(y * 10 + 10)\n"
    for program in (text, text.replace("y * 10 + 10", "y * 20").replace("x * 4", "x * 5")):
        answer = why(Source(program, "program.expr"), "x", repair=False)
        assert answer.message.startswith("`tanh(x * ") and answer.line == 2, answer.message


def test_a_gradient_that_the_program_itself_makes_nan() -> None:
    text = (
        "import torch\nx = torch.tensor(2.0, requires_grad=True)\n"
        "loss = x * x\nloss.backward()\nx.grad = x.grad * float('nan')\n"
    )
    answer = why(Source(text, "program.py"), "x")
    assert (answer.verdict, answer.cause, answer.line) == ("nan", "nan-backward", 5)
    assert answer.message == "`x.grad * float('nan')` is not finite"
