"""Records what PyTorch says about the gradients of `tests/why/questions.txt`: none, nan, inf, zero,
partly-zero or ok; tries there the repairs that `autodiff why` proposes; and keeps them with the
words of the answer.

Run it with `python -m tests.oracles.why`; PyTorch is needed only here.
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from pathlib import Path
from typing import Any

import torch

from autodiff_cli.source import Source
from autodiff_cli.why import why
from autodiff_cli.why.model import Answer
from tests.why.questions import Question, questions, said

FIXTURE = Path(__file__).parents[1] / "fixtures" / "why.json"
TINY = 1e-12
EXPECTED = (
    "does not require grad", "not implemented", "not have been used in the graph",
    "modified by an inplace operation",
)  # fmt: skip


def verdict(g: torch.Tensor | None, saturated: bool) -> str:
    """The verdict about a gradient."""
    if g is None:
        return "none"
    if torch.isnan(g).any():
        return "nan"
    if torch.isinf(g).any():
        return "inf"
    zero = g.abs() < TINY if saturated else g == 0
    return "zero" if zero.all() else "partly-zero" if zero.any() else "ok"


def run(text: str, name: str, saturated: bool) -> tuple[str, float | None]:
    """The verdict of a program and its loss."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    scope: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "<question>", "exec"), scope)
        except RuntimeError as error:
            if not any(words in str(error) for words in EXPECTED):
                raise
        except (TypeError, AttributeError) as error:
            if "NoneType" not in str(error):
                raise
        if "loss" in scope and ".backward(" not in text:
            scope["loss"].backward()
        g = eval(name, scope)
        found = verdict(g.grad, saturated) if isinstance(g, torch.Tensor) else "none"
    loss = scope.get("loss")
    scalar = isinstance(loss, torch.Tensor) and loss.numel() == 1
    return found, loss.item() if scalar else None


def repaired(question: Question, answer: Answer, before: float | None) -> str:
    """What PyTorch says about the repair: empty, or what is wrong with it."""
    if answer.fix is None:
        return ""
    try:
        after, loss = run(answer.fix, question.name, True)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if after in ("none", "nan", "inf") or (after == "zero" == answer.verdict):
        return f"still {after}"
    known = before is not None and abs(before) < float("inf") and loss is not None
    if known and answer.cause != "saturated" and abs(before - loss) > 1e-2 * max(1, abs(before)):
        return f"the loss changes from {before} to {loss}"
    return ""


def main() -> None:
    recorded: dict[str, dict[str, Any]] = {}
    for question in questions():
        suffix = "expr" if question.native else "py"
        answer = why(Source(question.text, f"program.{suffix}"), question.name)
        recorded[question.id] = said(question, answer)
        if question.native:
            continue
        try:
            found, loss = run(question.text, question.name, "saturated" in question.causes)
        except Exception as error:
            print(f"{question.id}: {type(error).__name__}: {error}")
            continue
        recorded[question.id]["verdict"] = found
        if found not in question.verdicts:
            print(f"{question.id}: PyTorch says {found}, the question {question.verdicts}")
        problem = repaired(question, answer, loss)
        if problem:
            print(f"{question.id}: the repair does not hold: {problem}")
    lines = (f"{json.dumps(name)}: {json.dumps(recorded[name])}" for name in sorted(recorded))
    FIXTURE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(len(recorded), "questions")


if __name__ == "__main__":
    main()
