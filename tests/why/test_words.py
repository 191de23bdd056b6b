"""Elements of operands that belong to those of a result, against NumPy's broadcasting."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.why.words import aligned


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 4), (1, 4), (3, 1), (2, 3, 4), (2, 1, 4)])
def test_aligned(shape: tuple[int, ...]) -> None:
    whole = (2, 3, 4)
    operand = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    result = np.broadcast_to(operand, whole)
    for index in np.ndindex(whole):
        found = aligned(index, shape, whole)
        assert len(found) == len(shape) and operand[found] == result[index]


@pytest.mark.parametrize(
    ("index", "shape", "whole"),
    [((1,), (2, 3), (3,)), ((1, 2), (2,), (2, 3)), ((1, 2), (3,), (3,)), ((0,), (2,), (3,))],
)
def test_what_does_not_fit(
    index: tuple[int, ...], shape: tuple[int, ...], whole: tuple[int, ...]
) -> None:
    assert aligned(index, shape, whole) is None
