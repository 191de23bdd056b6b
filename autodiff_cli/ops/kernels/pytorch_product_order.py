"""Products of float32 matrices in the order in which PyTorch's library (MKL) adds their terms.

The order is the one of AMD's processors, on every processor: a program's numbers do not depend on
where it runs.

Matrices of at least 4 rows and 12 columns: with fused multiply-add, one term after the other in
blocks of 192, and these one after the other. NumPy's library (OpenBLAS) adds a block in that order
if the first matrix lies column by column; on some processors not at the edges of its tiles, so that
there products are cut into such as have none. Smaller ones: terms are rounded, then added one after
the other, or, where a row meets a row (the second matrix is turned), in four lanes; what comes
before the first address that 16 divides and what is left over stands apart. Larger products are
NumPy's.

Batches of products of few terms PyTorch adds by itself, one after the other; the others are as
above, but for flat ones, whose order depends on where in the batch they lie.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import gcd, prod

import numpy as np

BLOCK = 192  # terms
DOZEN = 12  # rows
LANES = 4  # floats of a vector
MOST_FUSED = 1 << 24  # terms of a product, up to which its order is PyTorch's
MOST_ROUNDED = 1 << 20  # likewise, of one that is flat
FEW = 400  # terms of a product in a batch, from which on it is the library's

_add = np.add.reduce


@cache
def chain() -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The way of asking this machine's library for a product in order, or NumPy's own."""
    return _tiled if in_order(_tiled) and not in_order(np.matmul) else np.matmul


def in_order(product: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> bool:
    """Whether terms are added one after the other, fused, in a product whose tiles have edges."""
    a, b = (np.sin(np.arange(size, dtype="f4")).reshape(40, -1) for size in (520, 840))
    total = np.zeros((13, 21), "f4")
    for column, row in zip(a.astype(float), b.astype(float), strict=True):
        total = np.asarray(column[:, None] * row + total, "f4")
    return np.array_equal(product(a.T, b), total)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a @ b` of two matrices of float32."""
    (m, k), n = a.shape, b.shape[1]
    wide = m >= LANES and n >= DOZEN
    if not 0 < m * k * n <= (MOST_FUSED if wide else MOST_ROUNDED):
        return np.matmul(a, b)
    if wide:
        return _fused(a, b)
    p = np.multiply(a.T[:, :, None], b[:, None, :], order="C")
    if n == 1:
        return _columns(p) if (_turned(b) if m == 1 else not _turned(a)) else _in_order(p)
    if not _turned(b):
        return _in_order(p) if m == 1 else _rows(p)
    if m == 1:
        return _columns(np.ascontiguousarray(p.mT)).T
    return _in_order(p) if _turned(a) else _dots(p)


def batched_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a @ b` of batches of matrices of float32."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    if k and m * k * n < FEW:
        total: np.ndarray = a[..., :1] * b[..., :1, :]
        for at in range(1, k):
            total += a[..., at : at + 1] * b[..., at : at + 1, :]
        return total
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if m >= LANES and n >= DOZEN and 0 < prod(lead) * m * k * n <= MOST_FUSED:
        return _fused(a, b)
    return np.matmul(a, b)


def vector_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two vectors of float32: four vectors of lanes, the rest onto the first."""
    p = a * b
    left = p.size % 16
    whole = p.size - left
    sums = _add(p[:whole].reshape(-1, 16), 0).reshape(4, LANES)
    if left >= 8:
        sums[:2] += p[whole : whole + 8].reshape(2, LANES)
        whole += 8
    if left % 8 >= LANES:
        sums[0] += p[whole : whole + LANES]
        whole += LANES
    for x in p[whole:]:
        sums[0, 0] += x
    lanes = _add(sums, 0)
    result: np.ndarray = np.asarray((lanes[0] + lanes[2]) + (lanes[1] + lanes[3]))
    return result


def _turned(x: np.ndarray) -> bool:
    """Whether a matrix lies column by column."""
    return x.strides[1] != x.itemsize and x.strides[0] == x.itemsize


def _fused(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    k, add = a.shape[-1], chain()
    step = BLOCK if k <= BLOCK or k > 2 * BLOCK else k // 2
    a = np.ascontiguousarray(a.mT).mT
    b = b if b.itemsize in b.strides[-2:] else np.ascontiguousarray(b)
    total = add(a[..., :step], b[..., :step, :])
    for at in range(step, k, step):
        total += add(a[..., at : at + step], b[..., at : at + step, :])
    return total


def _tiled(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product by tiles; what they leave over goes with its neighbours."""
    m, n = a.shape[-2], b.shape[-1]
    out = np.empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), m, n), a.dtype)
    cut = m - m % DOZEN
    width = 8 if cut else 4
    parts = [slice(0, cut)] if cut else []
    if cut < m:
        parts.append(slice(max(0, m - DOZEN), m))
    whole = n - n % width
    for rows in parts:
        left, to = a[..., rows, :], out[..., rows, :]
        columns = _cut(b[..., :whole], width)
        np.matmul(left[..., None, :, :], columns, out=_cut(to[..., :whole], width))
        if whole < n:
            np.matmul(left, b[..., n - width :], out=to[..., n - width :])
    return out


def _cut(x: np.ndarray, width: int) -> np.ndarray:
    """The columns, so many at a time."""
    return x.reshape(*x.shape[:-1], -1, width).swapaxes(-3, -2)


def _in_order(p: np.ndarray) -> np.ndarray:
    """The sum over the first dim, one after the other."""
    total: np.ndarray = _add(p, 0) if p[0].size > 1 else np.add.accumulate(p, 0)[-1]
    return total


def _onto(total: np.ndarray, p: np.ndarray) -> np.ndarray:
    for row in p:
        total = total + row
    return total


def _in_lanes(p: np.ndarray, head: int, ways: int) -> np.ndarray:
    """The sum in lanes of `ways` vectors: `head` terms go into the first lane, what is left over
    is added in the end."""
    steps = (len(p) - head) // (LANES * ways)
    if steps < 1:
        return _in_order(p)
    end = head + steps * LANES * ways
    vectors = p[head:end].reshape(steps, LANES * ways, *p.shape[1:])
    if head:
        first = np.zeros_like(vectors[:1])
        first[0, 0] = _onto(p[0], p[1:head])
        vectors = np.concatenate((first, vectors))
    sums = _add(vectors, 0)
    lanes = sums[:LANES] if ways == 1 else sums[:LANES] + sums[LANES:]
    return _onto((lanes[0] + lanes[2]) + (lanes[1] + lanes[3]), p[end:])


def _classes(m: int, width: int) -> list[tuple[slice, int]]:
    """Rows whose starts lie alike, and how many elements are before the next vector."""
    period = LANES // gcd(width, LANES)
    return [(slice(r, None, period), -r * width % LANES) for r in range(min(period, m))]


def _dots(p: np.ndarray) -> np.ndarray:
    """A row by a row: columns by fours in one vector of lanes, the others in two."""
    out = np.empty(p.shape[1:], p.dtype)
    whole = p.shape[2] - p.shape[2] % LANES
    for rows, head in _classes(p.shape[1], len(p)):
        if whole:
            out[rows, :whole] = _in_lanes(p[:, rows, :whole], head, 1)
        if whole < p.shape[2]:
            out[rows, whole:] = _in_lanes(p[:, rows, whole:], head, 2)
    return out


def _columns(p: np.ndarray) -> np.ndarray:
    """A matrix by a column: rows by fours, and up to three that go their own way."""
    k, m, _ = p.shape
    whole = m - m % LANES
    out = np.empty((m, 1), p.dtype)
    if whole:
        out[:whole] = _in_lanes(p[:, :whole], (k - 1) % LANES + 1, 1)
    end = k - (k - LANES) % 8
    for rows, ways in ((slice(whole, None, 2), 2), (slice(whole + 1, None, 2), 1)):
        left = p[:, rows]
        if left.shape[1]:
            out[rows] = (
                _onto(_in_lanes(left[:end], LANES, ways), left[end:])
                if end >= DOZEN
                else _in_order(left)
            )
    return out


def _rows(p: np.ndarray) -> np.ndarray:
    """A row by columns. Terms of elements before a vector are added in fours, every other four
    by themselves."""
    out = _in_order(p)
    n = p.shape[2]
    for rows, head in _classes(p.shape[1], n):
        if head and n - head >= LANES:
            part = p[:, rows, :head]
            total = _in_order(part[:LANES])
            for at in range(LANES, len(p), LANES):
                four = part[at : at + LANES]
                apart = at % 8 and len(four) == LANES
                total = total + _in_order(four) if apart else _onto(total, four)
            out[rows, :head] = total
    return out
