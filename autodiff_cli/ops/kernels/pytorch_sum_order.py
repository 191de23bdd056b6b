"""The sum of few floats in the order in which PyTorch's CPU kernel adds them.

Vectors of 32 bytes go round over four accumulators; these, and then what is left over and the lanes
of the last one, are added one after the other. PyTorch adds in blocks of 16 rounds beyond that, and
in threads beyond 32768 elements: there the sum is NumPy's, which is as good and faster.
"""

from __future__ import annotations

import numpy as np

WIDTH = 32  # bytes of a vector
WAYS = 4  # accumulators
ROUNDS = 16  # of all accumulators, up to which the order is that of one block
LANES = {4: WIDTH // 4, 8: WIDTH // 8}
# Element size -> sizes above this are left to NumPy.
LIMIT = {size: (ROUNDS + 1) * WAYS * lanes - 1 for size, lanes in LANES.items()}

_add = np.add.reduce


def small_sum(x: np.ndarray) -> np.ndarray | None:
    """The sum of all elements in that order; None where NumPy's does."""
    few = 0 < x.size <= LIMIT.get(x.itemsize, 0) and x.dtype.kind == "f"
    return cascade_sum(x.ravel()) if few and x.flags.c_contiguous else None


def cascade_sum(x: np.ndarray) -> np.ndarray:
    """The sum of a flat, contiguous float32 or float64 array of 1 to `LIMIT` elements."""
    n = x.shape[0]
    lanes = LANES[x.itemsize]
    vectors = n // lanes
    if not vectors:
        return _ways(x.reshape(n, 1))[0]
    total = _ways(x[: vectors * lanes].reshape(vectors, lanes))
    rest = x[vectors * lanes :]
    parts = total if not rest.shape[0] else np.concatenate((rest, total))
    return np.add.accumulate(parts)[-1]


def _ways(rows: np.ndarray) -> np.ndarray:
    """The sum of rows by way of four accumulators."""
    n, lanes = rows.shape
    rounds = n // WAYS
    if not rounds:
        return rows[0] if n == 1 else _add(rows, 0)
    parts = rows[: rounds * WAYS].reshape(rounds, WAYS, lanes)
    sums = parts[0] if rounds == 1 else _add(parts, 0)
    first = sums[0]
    for row in rows[rounds * WAYS :]:
        first = first + row
    return first + sums[1] + sums[2] + sums[3]
