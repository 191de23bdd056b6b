"""Draws that move with their parameters: PyTorch's numbers in each regime of the approximations
(`tests/oracles/random.py` made them)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.ops.random.implicit import _dirichlet_slopes, _gamma_slopes

FIXTURE = Path(__file__).parents[1] / "fixtures" / "random.json"


@pytest.mark.parametrize(
    ("name", "slopes"), [("gamma", _gamma_slopes), ("dirichlet", _dirichlet_slopes)]
)
def test_slopes(name: str, slopes: Callable[..., np.ndarray]) -> None:
    *given, wanted = map(np.array, json.loads(FIXTURE.read_text("utf-8"))["slopes"][name])
    np.testing.assert_allclose(slopes(*given), wanted, rtol=1e-9)
    one = slopes(*(column[7:8] for column in given))
    np.testing.assert_allclose(one, wanted[7:8], rtol=1e-9)
