"""`--against torch`: what PyTorch once computed stands in for PyTorch; the first departure is
named. The translation of programs is tested as text, PyTorch itself is not needed."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autodiff_cli.checks import against_torch
from autodiff_cli.checks.model import Item, Settings
from autodiff_cli.checks.runner import check_source
from autodiff_cli.graph.registry import op
from autodiff_cli.source import Source

PROGRAM = "x = [0.5, -1.0, 0.25]\nh = x * 2\ny = h.tanh()\nz = y.exp()\nloss = (z * x).sum()\n"
# Values and gradients that PyTorch 2 gives.
RECORDED: dict[str, tuple[Any, Any]] = {
    "x": ([0.5, -1.0, 0.25], [3.041141560094826, 0.32746792666544783, 2.2116471337574417]),
    "h": ([1.0, -2.0, 0.5], [0.4497269376727381, -0.026942964457724972, 0.31210793116380336]),
    "y": (
        [0.7615941559557649, -0.9640275800758169, 0.46211715726000974],
        [1.070843842374675, -0.3813538555808978, 0.3968578178574588],
    ),
    "z": ([2.14168768474935, 0.3813538555808978, 1.587431271429835], [0.5, -1.0, 0.25]),
    "loss": (1.0863478046512358, 1.0),
}


class Recorded(against_torch.Torch):
    """A run that is over: its history comes from the record."""

    def __init__(self, *ignored: Any):
        self.history = []
        self.names = {}

    def run(self) -> None:
        for name, (value, gradient) in RECORDED.items():
            kept = SimpleNamespace(numpy=lambda gradient=gradient: np.array(gradient))
            tensor = SimpleNamespace(_version=0, grad=kept, is_leaf=name == "x")
            self.history.append(against_torch.Assigned(name, np.array(value), tensor))
            self.names[name] = tensor


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(against_torch, "Torch", Recorded)

    def compared(text: str = PROGRAM) -> Item:
        settings = Settings(against="torch", keyword="torch")
        (item,) = check_source(Source(text, "t.expr"), settings).items
        return item

    return compared


def test_the_same_program_agrees(compared: Any) -> None:
    assert compared().status == "passed"


def test_the_first_value_that_departs_is_named(
    compared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(op("exp"), "kernel", lambda x, *rest: np.exp(x) * 1.001)
    item = compared()
    assert item.status == "failed" and item.line == 4
    assert item.diagnostic.message.startswith("the value of `z` departs from PyTorch's: 3 of 3")
    assert item.diagnostic.notes[-1] == "departs afterwards: `loss`"


def test_the_first_gradient_that_departs_is_named(
    compared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(op("exp"), "vjp_rule", lambda g, out, x: g * out * 1.01)
    item = compared()
    assert item.status == "failed" and item.line == 3  # what exp was given
    assert "the gradient of `y` departs" in item.diagnostic.message
    assert "`h`" in item.diagnostic.notes[-1] and "`x`" in item.diagnostic.notes[-1]


def test_a_program_that_pytorch_refuses_is_no_failure(
    compared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any) -> None:
        raise against_torch.NotComparable("TypeError: no")

    monkeypatch.setattr(Recorded, "run", refuse)
    item = compared()
    assert item.status == "noisy" and "cannot be compared" in item.diagnostic.message


def test_every_assignment_is_recorded_in_the_order_of_ours() -> None:
    text = "a, (b, *c) = f()\nx[0] = 1\ny.grad = None\nz += 1\nw: int = 3\nassert x\nq.t[1].u = 2"
    tree = against_torch._Recorder().visit(ast.parse(text))
    calls = [n.args[0].value for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args]
    assert calls == ["a", "b", "c", "x", "y", "z", "w", "q"]
    assert "assert" not in ast.unparse(tree)
