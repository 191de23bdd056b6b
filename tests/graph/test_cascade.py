"""The order in which few floats are added: bit by bit what PyTorch's CPU kernel gives."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.ops.kernels.pytorch_sum_order import LIMIT, cascade_sum

# dtype, size, the sum that PyTorch gave.
RECORDED = [
    ("float32", 3, "0x1.1c00000000000p+6"),
    ("float32", 7, "0x1.8449240000000p+7"),
    ("float32", 8, "0x1.8800000000000p+7"),
    ("float32", 31, "0x1.d9924a0000000p+8"),
    ("float32", 40, "0x1.af6db40000000p+8"),
    ("float32", 100, "0x1.f7924a0000000p+9"),
    ("float32", 255, "0x1.71e9260000000p+11"),
    ("float32", 271, "0x1.7356dc0000000p+11"),
    ("float64", 3, "0x1.1bfffffffffffp+6"),
    ("float64", 7, "0x1.8449249249249p+7"),
    ("float64", 8, "0x1.8800000000000p+7"),
    ("float64", 31, "0x1.d992492492492p+8"),
    ("float64", 40, "0x1.af6db6db6db6dp+8"),
    ("float64", 100, "0x1.f792492492492p+9"),
    ("float64", 255, "0x1.71e9249249249p+11"),
    ("float64", 271, "0x1.7356db6db6db8p+11"),
]


def numbers(dtype: str, n: int) -> np.ndarray:
    return ((np.arange(n) * 7919 % 1000) / 7 - 60).astype(dtype)


@pytest.mark.parametrize(("dtype", "n", "total"), RECORDED)
def test_as_pytorch(dtype: str, n: int, total: str) -> None:
    assert float(cascade_sum(numbers(dtype, n))) == float.fromhex(total)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_size_is_a_sum(dtype: str) -> None:
    for n in range(1, LIMIT[np.dtype(dtype).itemsize] + 1):
        x = numbers(dtype, n)
        found = cascade_sum(x)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, x.astype("float64").sum(), rtol=1e-4, atol=1e-3)
