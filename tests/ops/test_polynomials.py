"""A polynomial of degree 0 is 1 at every place, those that are no numbers too."""

from __future__ import annotations

import numpy as np

from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.graph.op import constant
from autodiff_cli.graph.registry import F
from autodiff_cli.ops import public_names

from ..together import together

POLYNOMIALS = [name.rpartition(".")[2] for name in public_names() if "_polynomial_" in name]


@together(POLYNOMIALS)
def test_degree_zero(name: str) -> None:
    """PyTorch 2.13 has 1 for all twelve at these places, and 0 for a degree below 0."""
    places = constant(np.array([np.nan, np.inf, -np.inf, -1.0, 0.0, 2.5]))
    for degree in (0, -1):
        found = getattr(F, f"special_{name}")(places, constant(np.array(degree)))
        evaluate([found])
        np.testing.assert_array_equal(found.value, np.full(6, degree + 1.0))
