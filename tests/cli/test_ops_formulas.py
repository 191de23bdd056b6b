"""`autodiff ops NAME` shows the rule that computes."""

from __future__ import annotations

import pytest

from autodiff_cli.explain.op_formulas import derivative_of, value_of_composite
from autodiff_cli.graph.registry import OPS
from autodiff_cli.ops import load_all

load_all()


@pytest.mark.parametrize(
    ("key", "lines"),
    [
        ("tanh", ["g(input) = g * (1 - out * out)"]),
        ("mul", ["g(input) = g * other", "g(other) = g * input"]),
        ("sub", ["g(input) = g", "g(other) = -g"]),
        ("neg", ["g(input) = -g"]),
    ],
)
def test_rules_read_as_on_paper(key: str, lines: list[str]) -> None:
    assert derivative_of(OPS[key]) == lines


def test_every_op_can_be_described() -> None:
    for op in OPS.values():
        for line in (*derivative_of(op), value_of_composite(op)):
            assert "<op" not in line and " object at " not in line
            assert len(line) <= 400
