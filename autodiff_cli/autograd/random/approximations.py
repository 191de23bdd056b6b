"""Logarithm, sine and cosine of float32 numbers as PyTorch's vectors compute them for normals.

They are those of the Cephes library, whose sums of products are fused; bit for bit on arguments
from 0 to 1 and to a full turn.
"""

from __future__ import annotations

import numpy as np

LOG = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
LOG_2 = (-2.12194440e-4, 0.693359375)  # their sum is log(2)
ROOT_HALF = np.float32(0.5**0.5)
QUARTERS = np.float32(1.27323954473516)  # 4 / pi
QUARTER = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # their sum is -pi / 4
COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
HALF = np.float32(0.5)


def log(x: np.ndarray) -> np.ndarray:
    """The natural logarithm of normal positive numbers."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(np.float32)
    part = (bits & 0x7FFFFF | 0x3F000000).view(np.float32)
    low = part < ROOT_HALF
    exponent -= low
    part = part - 1 + np.where(low, part, np.float32(0))
    square = part * part
    y = _polynomial(LOG, part) * part
    y = _fused(y, square, exponent * np.float32(LOG_2[0]))
    y = _fused(square, -HALF, y)
    return _fused(exponent, np.float32(LOG_2[1]), part + y)


def sine_and_cosine(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both, of numbers from 0 on."""
    quarter = (x * QUARTERS).astype(np.int32) + 1 >> 1
    turns = (2 * quarter).astype(np.float32)
    for part in QUARTER:
        x = _fused(turns, np.float32(part), x)
    square = x * x
    cosine = _fused(_polynomial(COS, square) * square, square, square * -HALF) + 1
    sine = _fused(_polynomial(SIN, square) * square, x, x)
    odd, back = quarter & 1 != 0, quarter & 2 != 0
    sine, cosine = np.where(odd, cosine, sine), np.where(odd, -sine, cosine)
    return np.where(back, -sine, sine), np.where(back, -cosine, cosine)


def _polynomial(factors: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    y = np.full_like(x, factors[0])
    for factor in factors[1:]:
        y = _fused(y, x, np.float32(factor))
    return y


def _fused(a: np.ndarray, b: np.ndarray | np.float32, c: np.ndarray | np.float32) -> np.ndarray:
    """`a * b + c`, rounded once."""
    total = a.astype(np.float64) * b
    total += c
    return total.astype(np.float32)
