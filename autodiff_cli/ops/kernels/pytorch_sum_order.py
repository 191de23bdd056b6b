"""The sum of few floats in the order in which PyTorch's CPU kernel adds them.

Rows are added one after the other, in blocks of 16, and these in blocks of 16 again. Where rows are
few numbers wide they go round over four accumulators. A row that is summed is cut into vectors of
32 bytes; what is left over and the lanes of the last one are added in the end. From 32768 elements
on PyTorch adds in threads: there the sum is NumPy's, which is as good and faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

WIDTH = 32  # bytes of a vector
WAYS = 4  # accumulators
STEP = 16  # rows of a block
MOST = 32768  # elements, from which on the sum is NumPy's
SLICES = 16  # leading elements, each of which is a sum by itself here

_add = np.add.reduce


def small_sum(x: np.ndarray, dims: Sequence[int] | None = None) -> np.ndarray | None:
    """The sum over neighbouring dims in that order, flat; None where NumPy's does."""
    if x.dtype.kind != "f" or not 0 < x.size < MOST or x.itemsize < 4 or not x.flags.c_contiguous:
        return None
    if dims is None and x.size <= WAYS:
        return _add(x.ravel(), keepdims=True) + 0
    shape = x.shape
    summed = [i for i in (range(x.ndim) if dims is None else dims) if shape[i] != 1]
    if not summed:
        return None
    first, last = min(summed), max(summed)
    lead, m = prod(shape[:first]), prod(shape[last + 1 :])
    n = x.size // (lead * m)
    if prod(shape[i] for i in summed) != n or (x.itemsize > 4 and lead * m > 1):
        return None
    if m == 1:
        return _inner(x.reshape(lead, n)) + 0  # -0.0 is added to 0.0
    if lead > SLICES:
        return None
    return np.concatenate([_outer(part) for part in x.reshape(lead, n, m)]) + 0


def _outer(x: np.ndarray) -> np.ndarray:
    """The sums of columns."""
    m = x.shape[1]
    lanes = WIDTH // x.itemsize
    wide = WAYS * (lanes if m >= lanes else 1)
    cut = m - m % wide
    if cut == m or x.shape[0] < WAYS:
        return _block(x)
    return np.concatenate((_block(x[:, :cut]), _ways(x[:, cut:]))) if cut else _ways(x)


def _inner(x: np.ndarray) -> np.ndarray:
    """The sums of rows."""
    r, n = x.shape
    lanes = WIDTH // x.itemsize
    vectors = n // lanes
    if not vectors:
        return _ways(x.T)
    cut = vectors * lanes
    rows = x[:, :cut].reshape(r, vectors, lanes).transpose(1, 0, 2).reshape(vectors, -1)
    total = _ways(rows).reshape(r, lanes).T
    parts = total if cut == n else np.concatenate((x[:, cut:].T, total))
    last: np.ndarray = np.add.accumulate(parts, 0)[-1]
    return last


def _block(rows: np.ndarray) -> np.ndarray:
    """The sum of rows, one after the other, in blocks."""
    total: np.ndarray | None = None
    while rows.shape[0] > STEP:
        cut = rows.shape[0] - rows.shape[0] % STEP
        if cut < rows.shape[0]:
            total = _onto(total, _add(rows[cut:], 0))
        rows = _add(rows[:cut].reshape(-1, STEP, rows.shape[1]), 1)
    if total is not None and rows.shape[0] == STEP:
        rows = _add(rows[None], 1)
    return _onto(total, _add(rows, 0))


def _onto(total: np.ndarray | None, more: np.ndarray) -> np.ndarray:
    return more if total is None else total + more


def _ways(rows: np.ndarray) -> np.ndarray:
    """The sum of rows by way of four accumulators."""
    rounds = rows.shape[0] // WAYS
    if not rounds:
        return _add(rows, 0)
    sums = _block(rows[: rounds * WAYS].reshape(rounds, -1)).reshape(WAYS, -1)
    first = sums[0]
    for row in rows[rounds * WAYS :]:
        first = first + row
    return first + sums[1] + sums[2] + sums[3]
