"""The sum of few floats in the order in which PyTorch's CPU kernel adds them.

Rows are added one after the other, in blocks of 16, and these in blocks of 16 again. Where rows are
few numbers wide they go round over four accumulators. A row that is summed is cut into vectors of
32 bytes; what is left over and the lanes of the last one are added in the end. From 32768 elements
on PyTorch adds in threads: there the sum is NumPy's, which is as good and faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

WIDTH = 32  # bytes of a vector
WAYS = 4  # accumulators
STEP = 16  # rows of a block
MOST = 32768  # elements, from which on the sum is NumPy's
FEW = 256  # of float64, from which on the sums over some of the dims are NumPy's
SLICES = 16  # leading elements, each of which is a sum by itself here

WIDE = 64  # numbers side by side, from which on they are added row by row

# Is told of a function, its arguments, its result and where that was put; gives where it is kept.
Note = Callable[[Callable[..., Any], tuple[Any, ...], np.ndarray, np.ndarray | None], np.ndarray]


def noted(
    note: Note | None, function: Callable[..., Any], *args: Any, out: np.ndarray | None = None
) -> Any:
    """What a function gives whose last argument may be where to, by `note` in memory that stays."""
    made = function(*args) if out is None else function(*args, out)
    return made if note is None else note(function, args, np.asarray(made), out)


def small_sum(x: np.ndarray, dims: Sequence[int] | None = None, note: Note | None = None) -> Any:
    """The sum over neighbouring dims in that order, flat; None where NumPy's does."""
    if x.dtype.kind != "f" or not 0 < x.size < MOST or x.itemsize < 4 or not x.flags.c_contiguous:
        return None
    if dims is None:
        return _inner(x.reshape(1, -1), note)
    shape = x.shape
    summed = [i for i in dims if shape[i] != 1]
    if not summed:
        return None
    first, last = min(summed), max(summed)
    lead, m = prod(shape[:first]), prod(shape[last + 1 :])
    n = x.size // (lead * m)
    if prod([shape[i] for i in summed]) != n or (m > 1 and lead > SLICES):
        return None
    if x.dtype == np.float64 and lead * m > 1 and x.size > FEW:
        return None
    if m == 1:
        return _inner(x.reshape(lead, n), note).reshape(-1)
    return _outer(x.reshape(lead, n, m).mT, note).reshape(-1)


def _outer(x: np.ndarray, note: Note | None) -> Any:
    """The sums of columns."""
    _, m, n = x.shape
    lanes = WIDTH // x.itemsize
    cut = m - m % (WAYS * (lanes if m >= lanes else 1))
    if cut == m or n < WAYS:
        return _block(x, note)
    ways = _ways(x[:, cut:], note)
    return noted(note, np.concatenate, (_block(x[:, :cut], note), ways), 1) if cut else ways


def _inner(x: np.ndarray, note: Note | None) -> Any:
    """The sums of rows."""
    r, n = x.shape
    if n <= WAYS:
        return _total(x, note)
    lanes = WIDTH // x.itemsize
    if n < lanes:
        return _ways(x[:, None], note)[:, 0]
    rest = n % lanes
    parts = np.empty((r, rest + lanes), x.dtype)
    if rest:
        noted(note, np.positive, x[:, n - rest :], out=parts[:, :rest])
    _ways(x[:, : n - rest].reshape(r, -1, lanes).mT, note, parts[:, rest:])
    return _total(parts, note)


# Of what follows the last dim is summed.


def _ways(x: np.ndarray, note: Note | None, out: np.ndarray | None = None) -> Any:
    """The sums by way of four accumulators."""
    r, m, n = x.shape
    rest = n % WAYS
    if n == rest:
        return _total(x, note, out)
    # The first accumulator takes what is left over: behind each there is room for it.
    parts = np.zeros((r, WAYS, rest + 1, m), x.dtype).transpose(0, 3, 1, 2)
    if rest:
        noted(note, np.positive, x[:, :, n - rest :], out=parts[:, :, 0, 1:])
    _block(x[:, :, : n - rest].reshape(r, m, -1, WAYS).mT, note, parts[:, :, :, 0])
    return _total(parts.reshape(r, m, -1), note, out)


def _block(x: np.ndarray, note: Note | None, out: np.ndarray | None = None) -> Any:
    """The sums, one after the other, in blocks."""
    total: np.ndarray | None = None
    while blocks := (n := x.shape[-1]) // STEP:
        rest = n % STEP
        beside = bool(rest) and total is None and blocks < STEP  # as one more block
        sums = np.empty((*x.shape[:-1], blocks + beside), x.dtype, "F")
        full = x[..., : n - rest].reshape(*x.shape[:-1], blocks, STEP)
        _total(full, note, sums[..., :blocks])
        if beside:
            _total(x[..., n - rest :], note, sums[..., blocks])
        elif rest:
            more = _total(x[..., n - rest :], note)
            total = more if total is None else noted(note, np.add, total, more)
        x = sums
    if total is None:
        return _total(x, note, out)
    return noted(note, np.add, total, _total(x, note), out=out)


def _total(x: np.ndarray, note: Note | None, out: np.ndarray | None = None) -> Any:
    """The sums, one after the other, from 0 on."""
    if x.ndim > 2 and x.shape[1] >= WIDE:
        return noted(note, _row_by_row, x, out=out)
    return noted(note, np.vecdot, x, _ones(x.shape[-1], x.dtype), out=out)


def _row_by_row(x: np.ndarray, out: Any = None) -> Any:
    return np.add.reduce(x, -1, None, out, initial=0)


@lru_cache(256)
def _ones(n: int, dtype: np.dtype) -> np.ndarray:
    """A one that stands n times in one place: a product with it is none for BLAS, which adds in an
    order of its own."""
    return np.broadcast_to(np.ones((), dtype), n)
