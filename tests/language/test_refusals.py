"""What PyTorch refuses is refused here: on the same line, as the same exception, with advice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autodiff_cli.language.exceptions import kinds
from autodiff_cli.session import run
from autodiff_cli.source import Source
from tests.oracles.refusals import program

FIXTURE = Path(__file__).parents[1] / "fixtures" / "refusals.json"
# Nothing that a program could catch: names that this language lacks.
NOT_CAUGHT = {"E202", "E203"}


@pytest.mark.parametrize(
    "case", json.loads(FIXTURE.read_text("utf-8")), ids=lambda case: case["source"]
)
def test_refused(case: dict[str, Any]) -> None:
    error = run(Source(program(case["source"]), "refused.py")).error
    assert error is not None
    assert error.span is not None
    assert error.span.line == case["line"]
    assert error.code in NOT_CAUGHT or case["type"] in [cls.name for cls in kinds(error)]
    assert error.diagnostic.helps
    assert all(error.diagnostic.helps)


@pytest.mark.parametrize(
    "value", ["x", "x.grad_fn", "[]", "'s'", "torch", "torch.sin", "(lambda: 0)"]
)
def test_classes_of_values_cannot_be_reached_but_their_names(value: str) -> None:
    beginning = "import torch\nx = torch.ones(2, requires_grad=True) * 2\n"
    error = run(Source(f"{beginning}print({value}.__class__)", "refused.py")).error
    assert error is not None
    assert (error.code, error.span and error.span.line) == ("E207", 3)
    named = run(Source(f"{beginning}print({value}.__class__.__name__)", "named.py"))
    assert named.error is None or named.error.code in ("E203", "E207")
    assert "<" not in named.stdout


def test_the_name_of_a_class() -> None:
    text = (
        "import torch\nx = torch.ones(2, requires_grad=True) * 2\n"
        "print(x.__class__.__name__, x.grad_fn.__class__.__name__, [].__class__.__name__)"
    )
    assert run(Source(text, "named.py")).stdout == "Tensor MulBackward0 list\n"
