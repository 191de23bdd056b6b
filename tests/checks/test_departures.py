"""What is said of two results that differ: shapes, tolerances of each dtype to the bound, the worst
elements, names on one side only, the innermost node (`fixtures/said_checks.txt`)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autodiff_cli.checks.beside_torch.departures import (
    compare,
    differs,
    outcome_of_arrays,
    outcome_of_program,
)
from autodiff_cli.language.runtime.assertions import TOLERANCE
from autodiff_cli.session import Options
from autodiff_cli.source import Source
from tests.said import compare as recorded

ARRAYS = [
    np.array(1.0), np.array([1.0]), np.array([1.0, -2.0, 3.0]), np.array([1.0, -2.5, 4.0]),
    np.array([math.nan, 1.0, math.inf]), np.array([math.nan, 2.0, -math.inf]), np.zeros(0),
    np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([True, False]),
    np.array([1, 2, 3]), np.array([1e300, 1e-300, 0.0]), np.array([1e300, -1e-300, 1e-12]),
    np.array([1.0, -2.0, 3.0001], np.float32), np.array([1.0, -2.001, 3.0], np.float16),
    np.arange(9.0), np.arange(9.0) ** 1.5,
]  # fmt: skip
PROGRAMS = {
    "base": "x = [1, 2]\nA = [[1, 2], [3, 4]]\nh = A @ x\nh = h * 2\nn = 3\nloss = sum(exp(h / 9))",
    "other op": "x = [1, 2]\nA = [[1, 2], [3, 4]]\nh = A.T @ x\nh = h * 2\nn = 3\n"
    "loss = sum(h * h)",
    "other leaf": "x = [1, 3]\nA = [[1, 2], [3, 4]]\nh = A @ x\nh = h * 2\nloss = sum(exp(h / 9))",
    "inside": "x = [1, 2]\nA = [[1, 2], [3, 4]]\nh = A @ x\nh = h * 2\nn = 4\nk = 1\n"
    "loss = sum(exp(h / 9 + 1))",
    "fewer": "x = [1, 2]\nA = [[1, 2], [3, 4]]\nh = A @ x * 2\nloss = sum(exp(h / 9))",
    "results": "x = [1, 2]\nA = [[1, 2], [3, 4]]\nh, i = max(A, 1)\nloss = sum(h * x)",
    "constant": "x = const([1, 2])\nA = [[1, 2], [3, 4]]\nh = A @ x\nh = h * 2\nn = 3\n"
    "loss = sum(exp(h / 9))",
}  # fmt: skip


def test_arrays_that_differ(request: pytest.FixtureRequest) -> None:
    found = []
    for i, a in enumerate(ARRAYS):
        for j, b in enumerate(ARRAYS):
            for options in ((), (1e-2, 0.0), (0.0, 0.6)):
                text, largest, rows = differs(a, b, *options)
                found.append(f"{i} {j} {options}: {text} {largest:.3g} {rows}")
    recorded(request, ["\n".join(found[at::51]) for at in range(51)])


def test_of_equal_differences_the_first_are_shown() -> None:
    for n in (6, 40, 1000):
        _, largest, rows = differs(np.zeros(n), np.arange(n) % 2 + 1.0)
        assert largest == 1.0
        assert [row[0] for row in rows] == ["[1]", "[3]", "[5]"]


@pytest.mark.parametrize("name", TOLERANCE)
def test_the_tolerance_of_each_dtype(name: str) -> None:
    """Half of what is allowed beside a large and a small number is equal, twice as much is not."""
    rtol, atol = TOLERANCE[name]
    for value in (0.0, 2.0**10):
        allowed = atol + rtol * value
        for factor in (0.5, 2.0):
            a, b = np.array([value], name), np.array([value + factor * allowed])
            equal = differs(a, b)[0] is None
            assert equal is (factor < 1) and equal is (differs(b, a)[0] is None)


@pytest.mark.parametrize("left", PROGRAMS)
def test_results_that_differ(left: str, request: pytest.FixtureRequest) -> None:
    ours = outcome_of_program(Source(PROGRAMS[left], "a.expr"), Options(), "a")
    found = []
    for right, text in PROGRAMS.items():
        theirs = outcome_of_program(Source(text, "b.expr"), Options(), "b")
        saved = {v.name: v.array for v in theirs.values}
        saved |= {f"{name}.grad": array for name, array in theirs.gradients.items()}
        for other in (theirs, outcome_of_arrays(saved, "saved")):
            result = compare(ours, other)
            lines = [
                f"{d.name} {d.turn} {d.text} {d.largest:.3g} {d.span and d.span.line} "
                f"{d.other and d.other.line} {d.inner and d.inner.op.name}"
                for d in (*result.departures, *result.gradients)
            ]
            head = (
                f"{right}: {result.equal} {result.values} {result.compared_gradients} "
                f"{result.only_left} {result.only_right}"
            )
            found.append("\n  ".join([head, *lines]))
    recorded(request, found)
