"""Arrays of all shapes and kinds as HTML, word for word: `fixtures/said_report.txt`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autodiff_cli.render.report.numbers import histogram, picture, value
from tests.said import compare

SHAPES = [
    (), (0,), (2, 0), (1,), (4,), (5,), (8,), (9,), (64,), (65,), (1, 1), (1, 8), (1, 9), (2, 1),
    (8, 4), (9, 4), (8, 5), (9, 1), (8, 8), (5, 13), (3, 2, 2), (2, 2, 1, 3), (2, 0, 3), (24, 48),
    (25, 48), (24, 49), (3, 200), (200, 3), (4, 5, 6), (4, 21),
]  # fmt: skip
KINDS = {
    "floats": lambda n: np.linspace(-1, 2, n), "like": lambda n: np.full(n, 2.5),
    "zeros": np.zeros, "whole": lambda n: np.arange(n) - 3, "bools": lambda n: np.arange(n) % 3 > 0,
    "complex": lambda n: np.arange(n) * (1 - 1j), "large": lambda n: np.geomspace(1e-3, 1e12, n),
    "bad": lambda n: np.resize([1.0, math.nan, -math.inf, 1e-17, -0.02, 0.019, -1.0, 0.5], n),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_as_html(kind: str, request: pytest.FixtureRequest) -> None:
    found = []
    for shape in SHAPES:
        array = KINDS[kind](math.prod(shape)).reshape(shape)
        found.append(f"{value(array, 4)} {histogram(array)}")
        if kind != "complex" and array.size:
            found.append(picture(array, 3, 4, 6))
    compare(request, [f"{'x'.join(map(str, shape))}: {text}" for shape, text in zip(
        [s for s in SHAPES for _ in range(1 + (kind != "complex" and math.prod(s) > 0))],
        found, strict=True)])  # fmt: skip
