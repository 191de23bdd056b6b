"""The table of the error function: how far it is off, its edges, and what it does not import."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal, localcontext

import numpy as np
import pytest

from autodiff_cli.ops.pointwise.error_function import BLOCK, TABLES, erf

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def exact(x: float) -> Decimal:
    """The series, with more digits than its terms take away (1e15 at 6)."""
    term = total = Decimal(x)
    n = 0
    while abs(term) > abs(total) * Decimal("1e-25"):
        n += 1
        term *= -(Decimal(x) ** 2) / n
        total += term / (2 * n + 1)
    return total * 2 / Decimal("3.14159265358979323846264338327950288419716939937511").sqrt()


def off(x: np.ndarray) -> float:
    """The greatest error in units of the last place."""
    function = exact if x.dtype == DOUBLE else math.erf  # good to float64's last digit but one
    with localcontext(prec=50):
        expected = [function(value) for value in x.tolist()]
        unit = np.spacing(np.abs(np.array(expected, x.dtype))).tolist()
        kind = type(expected[0])
        errors = zip(erf(x).tolist(), expected, unit, strict=True)
        return max(float(abs(kind(a) - b) / kind(one)) for a, b, one in errors)


def test_float32_is_within_two_units_for_numbers_of_all_sizes():
    bits = np.arange(0, np.float32(np.inf).view(np.int32), 9973, dtype=np.int32)
    assert off(bits.view(np.float32)) < 2


@pytest.mark.parametrize("widest", [6.0, 1.0, 0.01, 0.0005, 1e-300])
def test_float64_is_within_two_units(widest):
    assert off(np.random.default_rng(0).uniform(-widest, widest, 400)) < 2


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_where_two_steps_of_the_table_meet(dtype):
    middle = (np.arange(0, 1500, 11) + 0.5) / TABLES[dtype].fine
    x = np.concatenate([np.nextafter(middle, 0), middle, np.nextafter(middle, 9)]).astype(dtype)
    assert off(x) < 2
    assert np.array_equal(erf(-x), -erf(x))


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE, np.dtype(np.float16)])
def test_edges(dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e4, -1e4], dtype)
    found = erf(x)
    assert found.dtype == dtype
    assert np.array_equal(found, np.array([0, 0, 1, -1, np.nan, np.nan, 1, -1]), equal_nan=True)
    assert np.signbit(found[:2]).tolist() == [False, True]


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_any_shape_and_layout_gives_the_same_bits(dtype):
    x = np.random.default_rng(1).standard_normal((3, BLOCK // 16 + 5, 2)).astype(dtype)
    whole = erf(x)
    assert np.array_equal(erf(x[1, 7]), whole[1, 7])
    assert np.array_equal(erf(x.transpose(2, 0, 1)), whole.transpose(2, 0, 1))
    into = np.empty((2, 3, x.shape[1]), dtype).transpose(1, 2, 0)
    assert erf(x, into) is into
    assert np.array_equal(into, whole)
    assert erf(x[0, 0, 0]) == whole[0, 0, 0]
    assert erf(x[:0]).shape == (0, *x.shape[1:])


def test_scipy_is_not_imported():
    program = (
        "import sys, autodiff_cli\n"
        "autodiff_cli.run('x = tensor([0.5, 1.0])\\ngelu(x).sum()')\n"
        "print('scipy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
