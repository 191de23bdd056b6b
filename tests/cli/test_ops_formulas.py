"""`autodiff ops NAME` shows the rule that computes."""

from __future__ import annotations

from ast import literal_eval

import numpy as np
import pytest

from autodiff_cli.cli.commands.ops import _tensor, listing
from autodiff_cli.explain.op_formulas import derivative_of, value_of_composite
from autodiff_cli.graph.registry import OPS
from autodiff_cli.graph.samples import T
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


def test_examples_lie_where_samples_do() -> None:
    """Numbers of a tensor to read are of its dtype, and within the range that the op is for."""
    samples = [value for op in OPS.values() for sample in op.samples[:1] for value in sample.args]
    for sample in (value for value in samples if isinstance(value, T) and value.values is None):
        numbers = np.array(literal_eval(_tensor(sample)[len("tensor(") : -1]))
        assert numbers.shape == sample.shape or not np.prod(sample.shape)
        assert ((sample.low <= numbers) & (numbers <= sample.high)).all()
        whole = np.dtype(sample.dtype).kind != "f"
        assert not whole or ((numbers < sample.high).all() and numbers.dtype.kind in "bi")
        if whole and numbers.size >= sample.high - sample.low:
            assert {*numbers.ravel()} == {*range(sample.low, sample.high)}


def test_a_list_of_no_ops_is_empty() -> None:
    assert listing([]) == []


def test_every_op_can_be_described() -> None:
    for op in OPS.values():
        for line in (*derivative_of(op), value_of_composite(op)):
            assert "<op" not in line and " object at " not in line
            assert len(line) <= 400
