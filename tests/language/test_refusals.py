"""What PyTorch refuses is refused here: on the same line, as the same exception, with advice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.graph.state import STATE
from autodiff_cli.language.numpy.names import MEMBERS
from autodiff_cli.language.runtime.names import names_of
from autodiff_cli.language.values.exceptions import class_of
from autodiff_cli.language.values.values import Namespace
from autodiff_cli.ops import public_names
from autodiff_cli.session import run
from autodiff_cli.source import Source
from tests.oracles.refusals import program
from tests.oracles.words import LONG, edges, long_texts, slips, told, words, wrong
from tests.together import together

FIXTURE = Path(__file__).parents[1] / "fixtures" / "refusals.json"
WORDS = words()
# Nothing that a program could catch: names that this language lacks.
NOT_CAUGHT = {"E202", "E203"}
# Whose class is another one in PyTorch: the same words are said elsewhere, where it is ours.
OTHER_CLASS = """
torch.rot90(x)
torch.meshgrid()
torch.baddbmm(M, M, M)
x.requires_grad = 3
torch.linalg.matrix_norm(x)
F.batch_norm(x, None, None, training=True)
F.normalize(i)
torch.zeros(2, 3).scatter_add_(1, torch.tensor([[0]]), torch.ones(1))
torch.linalg.norm(x, ord="fro", dim=5)
torch.add(x, x, out=3)
nn.Linear(2, 2).to(3)
o = torch.optim.LBFGS([w]) ;; o.step(lambda: 'a')
o = torch.optim.LBFGS([w]) ;; o.step(lambda: w * 2)
torch.set_rng_state(torch.ones(3, dtype=torch.uint8))
""".splitlines()


@together(json.loads(FIXTURE.read_text("utf-8")), lambda case: case["source"])
def test_refused(case: dict[str, Any]) -> None:
    report = run(Source(program(case["source"]), "refused.py"))
    error = report.error
    assert error is not None
    assert error.span is not None
    assert error.span.line == case["line"]
    if case["type"] == "SyntaxError":
        assert error.code[:2] == "E1"
    else:
        cls = class_of(error)
        same = cls is not None and cls.name == case["type"]
        assert error.code in NOT_CAUGHT or same is (case["source"] not in OTHER_CLASS)
    assert error.diagnostic.helps
    assert all(error.diagnostic.helps)
    assert told(report) == WORDS[case["source"]]


@together(wrong())
def test_word_for_word(text: str) -> None:
    assert told(run(Source(text, "wrong.expr"))) == WORDS[text]


def test_what_is_said_at_the_edges_of_domains() -> None:
    found = {text: told(run(Source(text, "wrong.expr"))) for text in edges()}
    assert found == {text: WORDS[text] for text in found}
    assert sum(map(bool, found.values())) > 60


SLIPPED = list(slips())


@pytest.mark.parametrize("start", range(0, len(SLIPPED), 100))
def test_slips(start: int) -> None:
    """A word, number or text is another one, or a token is missing, there twice or another one."""
    found = {t: told(run(Source(t, "wrong.expr"))) for t in SLIPPED[start : start + 100]}
    assert found == {text: WORDS[text] for text in found}


@pytest.mark.parametrize("form", LONG)
def test_texts_of_every_length(form: str) -> None:
    found = {text: told(run(Source(text, "wrong.expr"))) for text in long_texts(form)}
    assert found == {text: WORDS[text] for text in found}


def test_no_place_is_in_the_library() -> None:
    assert not any("<library>" in said for said in WORDS.values())


CLASSES = {
    "x": "<class 'torch.Tensor'>",
    "x.grad_fn": "<class 'MulBackward0'>",
    "[]": "<class 'list'>",
    "'s'": "<class 'str'>",
    "1.5": "<class 'float'>",
    "torch.sin": "<class 'builtin_function_or_method'>",
    "(lambda: 0)": "<class 'function'>",
}


@pytest.mark.parametrize("value", CLASSES)
def test_classes_of_values_are_those_of_the_language(value: str) -> None:
    """They show as PyTorch's and tell their names; nothing of Python's is behind them."""
    beginning = "import torch\nx = torch.ones(2, requires_grad=True) * 2\n"
    shown = run(Source(f"{beginning}print({value}.__class__)", "shown.py"))
    assert shown.error is None
    assert shown.stdout == CLASSES[value] + "\n"
    for name in ("__subclasses__", "__mro__", "__init__", "__dict__", "mro", "__base__"):
        found = run(Source(f"{beginning}print({value}.__class__.{name})", "refused.py")).error
        assert found is not None
        assert (found.code, found.span and found.span.line) == ("E207", 3)
    error = run(Source("import torch\nprint(torch.__class__)", "refused.py")).error
    assert error is not None
    assert error.code == "E207"


def test_the_name_of_a_class() -> None:
    text = (
        "import torch\nx = torch.ones(2, requires_grad=True) * 2\n"
        "print(x.__class__.__name__, x.grad_fn.__class__.__name__, [].__class__.__name__)"
    )
    assert run(Source(text, "named.py")).stdout == "Tensor MulBackward0 list\n"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("dir(torch.nn)", "E203"),
        ("dir(torch.ones(1))", "E203"),
        ("dir(torch.nn.Linear(1, 1))", "E203"),
        ("re.sub('a', lambda match: 'b', 'a')", "E203"),
        ("json.dumps([1], indent=200)", "E203"),
        ("pprint.pformat([1], indent=200)", "E203"),
        ("pprint.pprint([['x' * 10**6] * 100] * 100)", "E505"),
        ("re.findall('(?=(.*))', 'a' * 100_000)", "E505"),
        ("re.sub('', 'x' * 10_000, 'b' * 100_000)", "E505"),
        ("re.sub('', 'x' * 900, 'b' * 100_000)", "E505"),  # too long before anything else is
        ("re.sub('(' * 100_000, 'x', 'b')", "E505"),
        ("json.loads('[' * 100_000)", "E505"),
        ("torch.func.jacfwd(lambda a: a * 2, randomness='different')(torch.ones(2))", "E203"),
        ("torch.autocast('cpu')", "E203"),
        ("x = torch.ones(2, 3); x[0].resize_(9)", "E203"),
        ("1.5 ^ 2", "E105"),
        ("np.trapezoid([1, 2])", "E203"),
        (
            "w = torch.ones(2, 3, requires_grad=True); y = w @ torch.ones(4, 3, 2)\n"
            "    print(y.grad_fn.name()); y.grad_fn.register_hook(print)",
            "E203",
        ),
        ("importlib.metadata.version('numba')", "E203"),
        ("'{:9999999}'.format(3)", "E505"),
        ("('a' * 10_000).translate({97: 'b' * 100_000})", "E505"),
        ("('\\t' * 10_000).expandtabs(100_000)", "E505"),
        ("'%*d' % (9999999999, 3)", "E505"),
        ("'%9999999d' % 3", "E505"),
    ],
)
def test_what_is_not_here_and_what_has_no_end_is_never_caught(call: str, code: str) -> None:
    names = "import importlib.metadata, json, pprint, re, torch, numpy as np\n"
    text = f"{names}try:\n    {call}\nexcept Exception: pass\n"
    error = run(Source(text, "refused.py")).error
    assert error is not None
    assert error.code == code


def test_names_of_ops_are_not_numpys_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """What programs in PyTorch's words find below `np.`, or are offered there, NumPy has."""
    monkeypatch.setattr(STATE, "python", True)
    for below, has in (("", np), ("linalg.", np.linalg)):
        names = [n[len(below) :] for n in public_names() if n.startswith(below) and n != "torch"]
        found = [n for n in names if n.isidentifier() and MEMBERS.get(below + n) is not None]
        assert [n for n in found if not hasattr(has, n)] == []
        assert len(found) > (60 if not below else 10)
    assert [n for n in names_of(Namespace("np")) if not hasattr(np, n)] == []
