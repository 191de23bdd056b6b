"""Where maxima are: found by codes of small integers as by a search through each window."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.ops.kernels import windows
from autodiff_cli.ops.kernels.windows import taps
from autodiff_cli.ops.nn import pooling

RULES = {
    "strided": ((2, 3, 9, 10), (("max", 4, 3, 2, 0, 1), ("max", 4, 3, 2, 0, 1))),
    "padded": ((2, 9, 10), (("max", 5, 3, 2, 1, 1), ("max", 4, 3, 3, 1, 2))),
    "cubes": (
        (3, 5, 6, 7),
        (("max", 5, 2, 1, 1, 1), ("max", 3, 2, 2, 0, 1), ("max", 7, 1, 1, 0, 1)),
    ),
    "adaptive": ((3, 7, 8), (("adaptive", 3), ("adaptive", 5))),
    "single": ((2, 4, 4), (("max", 2, 1, 2, 0, 1), ("max", 4, 1, 1, 0, 1))),
}


def searched(x, rules):
    sizes = x.shape[-len(rules) :]
    return pooling._searched(x, [taps(r, n, x.dtype) for r, n in zip(rules, sizes, strict=True)])


@pytest.mark.parametrize("shape, rules", RULES.values(), ids=list(RULES))
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_first_of_equal_ones(shape, rules, dtype):
    x = np.random.default_rng(0).integers(0, 4, shape).astype(dtype)  # full of ties
    found = pooling._maximum_index(x, rules)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, searched(x, rules))


@pytest.mark.parametrize("shape, rules", RULES.values(), ids=list(RULES))
def test_infinities_and_nan(shape, rules):
    x = np.random.default_rng(1).integers(0, 4, shape).astype(float)
    x[0] = -np.inf
    np.testing.assert_array_equal(pooling._maximum_index(x, rules), searched(x, rules))
    x.reshape(-1)[[3, 4, -1]] = np.nan
    np.testing.assert_array_equal(pooling._maximum_index(x, rules), searched(x, rules))


@pytest.mark.parametrize("size", [11, 12, 17])
def test_windows_with_many_places(size):
    x = np.random.default_rng(2).integers(0, 9, (2, size + 1, size + 1)).astype(float)
    x[1, -1, -1] = 9
    rules = (("max", 2, size, 1, 0, 1), ("max", 2, size, 1, 0, 1))
    np.testing.assert_array_equal(pooling._maximum_index(x, rules), searched(x, rules))


def test_windows_of_many_places_are_summed_in_blocks(monkeypatch):
    """Whatever the size of a block, each window has the mean of its elements."""
    x = np.random.default_rng(3).integers(0, 9, (2, 50, 3)).astype(float)
    starts, ends = [0, 16, 33], [17, 34, 50]  # floor and ceiling of thirds
    means = np.stack([x[:, a:b].mean(1) for a, b in zip(starts, ends, strict=True)], 1)
    for size in (1, 200, 1 << 23):
        monkeypatch.setattr(windows, "GATHERED", size)
        found = windows.resampled(x, (("adaptive", 3), ("adaptive", 3)))
        np.testing.assert_allclose(found, means, rtol=1e-15)


@pytest.mark.parametrize(
    "at, regular",
    [
        (np.array([[0, 1], [2, 3], [4, 5]]), True),
        (np.array([[3, 5, 7], [4, 6, 8]]), True),
        (np.array([[0, 1], [1, 2], [3, 4]]), False),
        (np.array([[2], [2]]), True),
    ],
)
def test_places_are_written_as_ranges_where_they_are(at: np.ndarray, regular: bool) -> None:
    text = pooling._places_as_text(at)
    assert ("arange" in text) is regular
    assert np.array_equal(eval(text, {"np": np}), at)
