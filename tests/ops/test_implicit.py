"""Draws that move with their parameters: PyTorch's numbers in each regime of the approximations."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.ops.random.implicit import _dirichlet_slopes, _gamma_slopes

# concentration, value, what `torch._standard_gamma_grad` gives
GAMMA = [
    (0.01, 0.001, 0.6354138007185822),
    (0.1, 0.05, 1.367283067838242),
    (0.5, 0.3, 1.0098019827369256),
    (1.0, 0.5, 0.8069784920049818),
    (3.0, 0.7, 0.4658029556940791),
    (0.5, 1.5, 2.2395981363339845),
    (1.0, 2.0, 1.631722595569284),
    (3.0, 5.0, 1.349865529479233),
    (7.9, 10.0, 1.146310468457253),
    (9.0, 9.5, 1.0464304218725455),
    (30.0, 28.0, 0.9712990725016247),
    (200.0, 205.0, 1.0132399881686902),
    (9.0, 4.0, 0.6606786663183999),
    (30.0, 60.0, 1.3940456988299592),
    (200.0, 150.0, 0.8637629369512559),
]
# value, concentration, sum of concentrations, what `torch._dirichlet_grad` gives
DIRICHLET = [
    (0.01, 0.5, 2.0, 0.08556140754715777),
    (0.2, 1.0, 2.5, 0.35956769865757277),
    (0.5, 0.3, 3.0, 1.2530190551905107),
    (0.99, 2.0, 4.0, 0.41471524144292543),
    (0.9, 5.0, 6.0, 0.18964892818434081),
    (0.4, 3.0, 12.0, 0.11390691028380383),
    (0.7, 4.0, 20.0, 0.0928939908830396),
    (0.5, 20.0, 40.0, 0.025418403680122426),
    (0.45, 20.0, 40.0, 0.02409814542493388),
    (0.7, 20.0, 50.0, 0.02654476236061075),
    (0.3, 50.0, 80.0, 0.008529295611366849),
]


@pytest.mark.parametrize(("concentration", "value", "slope"), GAMMA)
def test_gamma(concentration: float, value: float, slope: float) -> None:
    found = _gamma_slopes(np.array([concentration]), np.array([value]))
    assert found == pytest.approx([slope], rel=1e-10)


@pytest.mark.parametrize(("value", "concentration", "total", "slope"), DIRICHLET)
def test_dirichlet(value: float, concentration: float, total: float, slope: float) -> None:
    found = _dirichlet_slopes(np.array([value]), np.array([concentration]), np.array([total]))
    assert found == pytest.approx([slope], rel=1e-10)


def test_a_regime_for_each_element() -> None:
    columns = [np.array(column) for column in zip(*GAMMA, strict=True)]
    assert _gamma_slopes(*columns[:2]) == pytest.approx(columns[2], rel=1e-10)
