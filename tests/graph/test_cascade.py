"""The order in which few floats are added: bit by bit what PyTorch's CPU kernel gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autodiff_cli.ops.kernels.pytorch_sum_order import MOST, small_sum

from ..together import together

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
    ("float32", 300, "0x1.af40000000000p+11"),
    ("float32", 5000, "0x1.bba36c0000000p+15"),
    ("float32", 32767, "0x1.6b4fd00000000p+18"),
    ("float64", 3, "0x1.1bfffffffffffp+6"),
    ("float64", 7, "0x1.8449249249249p+7"),
    ("float64", 8, "0x1.8800000000000p+7"),
    ("float64", 31, "0x1.d992492492492p+8"),
    ("float64", 40, "0x1.af6db6db6db6dp+8"),
    ("float64", 100, "0x1.f792492492492p+9"),
    ("float64", 255, "0x1.71e9249249249p+11"),
    ("float64", 271, "0x1.7356db6db6db8p+11"),
    ("float64", 300, "0x1.af40000000000p+11"),
    ("float64", 5000, "0x1.bba36db6db6dcp+15"),
    ("float64", 32767, "0x1.6b4fd24924925p+18"),
]
# Shape and dim of a float32 tensor, and PyTorch's sums times 1, 2, 3 ... added up exactly.
ALONG = [
    ((5, 3), 0, "0x1.ff6db78000000p+8"),
    ((7, 9), 0, "0x1.094fffac00000p+12"),
    ((64, 100), 0, "0x1.c09f526748000p+21"),
    ((300, 33), 0, "0x1.d1aa44ec00000p+20"),
    ((3, 7), 1, "0x1.3a6db70000000p+9"),
    ((6, 40), 1, "0x1.35e9247000000p+13"),
    ((64, 100), 1, "0x1.20c8921d60000p+21"),
    ((2, 300), 1, "0x1.436fff0000000p+13"),
    ((3, 20, 8), 1, "0x1.09c7ffeb00000p+16"),
    ((2, 3, 37), 2, "0x1.0e60007000000p+13"),
]


def numbers(dtype: str, n: int) -> np.ndarray:
    return ((np.arange(n) * 7919 % 1000) / 7 - 60).astype(dtype)


def summed_again(x: np.ndarray, dims: tuple[int, ...] | None = None) -> np.ndarray:
    """The sum by the calls that were noted when other numbers were in the same memory."""
    memory, calls = np.ones_like(x), []

    def note(function: Any, args: Any, made: np.ndarray, out: Any) -> np.ndarray:
        calls.append((function, (*args, made)))
        return made

    assert small_sum(memory, dims, note) is not None
    memory[...] = x
    for function, args in calls:
        function(*args)
    found: np.ndarray = calls[-1][1][-1].ravel()
    np.testing.assert_array_equal(found, small_sum(x, dims))
    return found


@together(RECORDED)
def test_as_pytorch(dtype: str, n: int, total: str) -> None:
    found = summed_again(numbers(dtype, n))
    assert found.tolist() == [float.fromhex(total)]


@together(ALONG)
def test_along_a_dim(shape: tuple[int, ...], dim: int, total: str) -> None:
    x = numbers("float32", int(np.prod(shape))).reshape(shape)
    found = summed_again(x, (dim,))
    assert found.dtype == np.float32
    weights = np.arange(1, found.size + 1)
    assert float(np.dot(found.astype("float64"), weights)) == float.fromhex(total)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_size_is_a_sum(dtype: str) -> None:
    for n in (*range(1, 300), 511, 4097, MOST - 1):
        x = numbers(dtype, n)
        found = small_sum(x)
        assert found is not None
        assert found.dtype == dtype
        np.testing.assert_allclose(found, x.astype("float64").sum(), rtol=1e-4, atol=1e-3)
    assert small_sum(numbers(dtype, MOST)) is None
