"""Gradients that somebody claims of functions with and without kinks: any slope between both sides
is one there, of each element alone and of those that belong together."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from autodiff_cli.checks.claims import mismatch, named
from autodiff_cli.errors import AutodiffError
from tests.said import compare

X, Y = np.array([0.0, 0.0]), np.array([0.0, 2.0])
FUNCTIONS: dict[str, tuple[Callable[[Any], float], np.ndarray, np.ndarray]] = {
    "two kinks": (lambda x: abs(x[0]) + abs(x[1]), X, X),
    "a kink of the sum": (lambda x: abs(x[0] + x[1]), X, X),
    "a kink of the difference": (lambda x: abs(x[0] - x[1]), X, X),
    "the larger one": (lambda x: max(x[0], x[1]), X, np.array([0.5, 0.5])),
    "the larger one and both": (lambda x: max(x[0], x[1]) + x[0], X, np.array([1.5, 0.5])),
    "one kink": (lambda x: max(x[0], 0.0) + x[1] ** 2, Y, np.array([0.0, 4.0])),
    "no kink": (lambda x: x[0] * 3 + x[1] ** 2, Y, np.array([3.0, 4.0])),
    "a step": (lambda x: float(x[0] > 0) + x[1], Y, np.array([0.0, 1.0])),
}
SLOPES = [-1.5, -1.0, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 4.00001]


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_claims(name: str, request: pytest.FixtureRequest) -> None:
    f, x, true = FUNCTIONS[name]
    found = []
    for claimed in product(SLOPES, SLOPES):
        said = mismatch("x", claimed, true, 1e-6, 1e-8, lambda x: f(x), {"x": x})
        found.append(f"{claimed}: {said or 'right'}")
    for other in ([1.0], [[1.0, 2.0]], "a", None, [1, None]):
        found.append(f"{other}: {mismatch('x', other, true, 0.0, 0.0, lambda x: f(x), {'x': x})}")
    right = [line for line in found if line.endswith("right")]
    compare(request, [*right, "\n".join(found)], 12)


def test_names_of_claims() -> None:
    assert named([1, 2], ["x", "y"]) == named({"y": 2, "x": 1}, ["x", "y"]) == {"x": 1, "y": 2}
    assert named(3, ["x"]) == {"x": 3}
    for grads in ([1], {"z": 1}, (1, 2, 3)):
        with pytest.raises((AutodiffError, ValueError)):
            named(grads, ["x", "y"])
