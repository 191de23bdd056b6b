"""The sum of few floats in the order in which PyTorch's CPU kernel adds them.

Rows are added one after the other, in blocks of 16, and these in blocks of 16 again. Where rows are
few numbers wide they go round over four accumulators. A row that is summed is cut into vectors of
32 bytes; what is left over and the lanes of the last one are added in the end. From 32768 elements
on PyTorch adds in threads: there the sum is NumPy's, which is as good and faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

WIDTH = 32  # bytes of a vector
WAYS = 4  # accumulators
STEP = 16  # rows of a block
MOST = 32768  # elements, from which on the sum is NumPy's
FEW = 256  # of float64, from which on the sums over some of the dims are NumPy's
SLICES = 16  # leading elements, each of which is a sum by itself here

_add, _accumulate = np.add.reduce, np.add.accumulate

# Is told of a function, its arguments, its result and where that was put; gives where it is kept.
Note = Callable[[Callable[..., Any], tuple[Any, ...], np.ndarray, np.ndarray | None], np.ndarray]


def noted(
    note: Note | None, function: Callable[..., Any], *args: Any, out: np.ndarray | None = None
) -> Any:
    """What a function gives whose last argument may be where to, by `note` in memory that stays."""
    made = function(*args) if out is None else function(*args, out)
    return made if note is None else note(function, args, np.asarray(made), out)


def small_sum(
    x: np.ndarray, dims: Sequence[int] | None = None, note: Note | None = None
) -> np.ndarray | None:
    """The sum over neighbouring dims in that order, flat; None where NumPy's does."""
    if x.dtype.kind != "f" or not 0 < x.size < MOST or x.itemsize < 4 or not x.flags.c_contiguous:
        return None
    if dims is None and x.size <= WAYS:
        return noted(note, np.add, noted(note, _add, x.reshape(1, -1), 1, None), 0)
    shape = x.shape
    summed = [i for i in (range(x.ndim) if dims is None else dims) if shape[i] != 1]
    if not summed:
        return None
    first, last = min(summed), max(summed)
    lead, m = prod(shape[:first]), prod(shape[last + 1 :])
    n = x.size // (lead * m)
    if prod([shape[i] for i in summed]) != n or (m > 1 and lead > SLICES):
        return None
    if x.itemsize > 4 and lead * m > 1 and x.size > FEW:
        return None
    total = _inner(x.reshape(lead, n), note) if m == 1 else _outer(x.reshape(lead, n, m), note)
    return noted(note, np.add, total, 0).reshape(-1)  # -0.0 is added to 0.0


def _outer(x: np.ndarray, note: Note | None) -> np.ndarray:
    """The sums of columns."""
    _, n, m = x.shape
    lanes = WIDTH // x.itemsize
    cut = m - m % (WAYS * (lanes if m >= lanes else 1))
    if cut == m or n < WAYS:
        return _block(x, note)
    ways = _ways(x[:, :, cut:], note)
    return noted(note, np.concatenate, (_block(x[:, :, :cut], note), ways), 1) if cut else ways


def _inner(x: np.ndarray, note: Note | None) -> np.ndarray:
    """The sums of rows."""
    r, n = x.shape
    lanes = WIDTH // x.itemsize
    if n < lanes:
        return _ways(x[:, :, None], note)
    cut = n - n % lanes
    total = _ways(x[:, :cut].reshape(r, -1, lanes), note)
    parts = total if cut == n else noted(note, np.concatenate, (x[:, cut:], total), 1)
    last: np.ndarray = noted(note, _accumulate, parts, 1, None)[:, -1:]
    return last


def _block(rows: np.ndarray, note: Note | None) -> np.ndarray:
    """The sum over the second dim, one after the other, in blocks."""
    total: np.ndarray | None = None
    while (n := rows.shape[1]) > STEP:
        cut = n - n % STEP
        if cut < n:
            total = _onto(total, noted(note, _add, rows[:, cut:], 1, None), note)
        blocks = rows[:, :cut].reshape(len(rows), -1, STEP, *rows.shape[2:])
        rows = noted(note, _add, blocks, 2, None)
    return _onto(total, noted(note, _add, rows, 1, None), note)


def _onto(total: np.ndarray | None, more: np.ndarray, note: Note | None) -> np.ndarray:
    return more if total is None else noted(note, np.add, total, more)


def _ways(rows: np.ndarray, note: Note | None) -> np.ndarray:
    """The sum over the second dim by way of four accumulators."""
    r, n, m = rows.shape
    cut = n - n % WAYS
    if not cut:
        return noted(note, _add, rows, 1, None)
    sums = _block(rows[:, :cut].reshape(r, -1, WAYS, m), note)
    if cut < n:
        parts = sums[:, :1], rows[:, cut:], sums[:, 1:]
        sums = noted(note, np.concatenate, parts, 1)
    last: np.ndarray = noted(note, _accumulate, sums, 1, None)[:, -1]
    return last
