"""Which way the eigenvectors of a symmetric matrix point, as PyTorch's LAPACK has them.

Up to 25 rows LAPACK reduces the matrix to three diagonals by reflections and removes the outer ones
by QL steps, whose rotations decide the signs. How a rotation is signed was changed in LAPACK 3.10:
NumPy has the new way, PyTorch the old.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LARGEST = 25  # beyond, LAPACK divides and conquers
MOST = 4096  # numbers in matrices: it takes a tenth of a millisecond and more for each


def directed(a: np.ndarray, vectors: np.ndarray, lower: bool) -> np.ndarray:
    """Eigenvectors of matrices of which a triangle is read, with PyTorch's signs."""
    *_, n = a.shape
    if not 3 <= n <= LARGEST or a.size > MOST or not np.isfinite(a).all():
        return vectors
    pairs = zip(a.reshape(-1, n, n), vectors.reshape(-1, n, n), strict=True)
    return np.reshape([own * _signs(matrix, own, lower) for matrix, own in pairs], a.shape)


def _signs(a: np.ndarray, vectors: np.ndarray, lower: bool) -> np.ndarray:
    turn = slice(None) if lower else slice(None, None, -1)  # the upper triangle from its end
    part = np.tril(a[turn, turn])
    basis, three = _tridiagonal(part + np.tril(part, -1).T)
    basis, three = basis[turn, turn], three[turn, turn]
    values, found = _unrotated(np.diag(three).copy(), np.diag(three, -1).copy())
    found = basis @ found[:, np.argsort(values)]
    return np.where((found * vectors).sum(0) < 0, -1, 1).astype(a.dtype)


def _tridiagonal(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An orthogonal basis in which a symmetric matrix has three diagonals, and that matrix."""
    basis = np.eye(len(a))
    for k in range(1, len(a)):
        v = a[k:, k - 1].copy()
        if v[1:].any():
            v[0] += _signed(np.linalg.norm(v), v[0])
            v /= np.linalg.norm(v)
            a[k:] -= np.outer(2 * v, v @ a[k:])
            a[:, k:] -= np.outer(a[:, k:] @ v, 2 * v)
            basis[:, k:] -= np.outer(basis[:, k:] @ v, 2 * v)
    return basis, a


def _signed(length: Any, as_this: Any) -> Any:
    """A length with the sign of a number; the zeros of Fortran's compilers have none."""
    return length if as_this >= 0 else -length


def _rotation(f: Any, g: Any) -> tuple[Any, Any, Any]:
    """Cosine, sine and length that turn `(f, g)` to `(length, 0)`, signed as before LAPACK 3.10."""
    if f == 0:
        return f, type(f)(1), g
    length = np.sqrt(f * f + g * g)
    if -f > abs(g):
        length = -length
    return f / length, g / length, length


def _turn(z: np.ndarray, i: int, j: int, c: Any, s: Any) -> None:
    """Turn two columns against each other."""
    z[:, i], z[:, j] = c * z[:, i] - s * z[:, j], s * z[:, i] + c * z[:, j]


def _unrotated(d: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a matrix with diagonal `d` and `e` beside it."""
    eps = np.finfo(d.dtype).eps / 2
    n = len(d)
    z = np.eye(n)
    roots = np.sqrt(np.abs(d))
    first = 0
    while first < n:
        last = first
        while last < n - 1 and abs(e[last]) > roots[last] * roots[last + 1] * eps:
            last += 1
        here = slice(first, last + 1)
        backwards = abs(d[last]) < abs(d[first])
        turn = slice(None, None, -1) if backwards else slice(None)
        _block(d[here][turn], e[first:last][turn], z[:, here][:, turn], backwards, eps)
        first = last + 1
    return d, z


def _block(d: np.ndarray, e: np.ndarray, z: np.ndarray, backwards: bool, eps: float) -> None:
    """QL steps with implicit shifts until nothing is beside the diagonal; `backwards`: the three
    arrays are seen from their end."""
    n, at = len(d), 0
    for _ in range(30 * n):
        if at >= n - 1:
            return
        m = at
        while m < n - 1 and e[m] * e[m] > eps * abs(d[m]) * (eps * abs(d[m + 1])):
            m += 1
        if m < n - 1:
            e[m] = 0
        if m == at:
            at += 1
            continue
        if m == at + 1:
            i, j = (m, at) if backwards else (at, m)
            d[i], d[j], c, s = _two(d[i], e[at], d[j])
            _turn(z, i, j, c, -s)
            at += 2
            continue
        p = d[at]
        g = (d[at + 1] - p) / (2 * e[at])
        g = d[m] - p + e[at] / (g + _signed(np.hypot(g, 1), g))
        s = c = type(p)(1)
        p = p - p
        for i in range(m - 1, at - 1, -1):
            f, b = s * e[i], c * e[i]
            c, s, length = _rotation(g, f)
            if i < m - 1:
                e[i + 1] = length
            g = d[i + 1] - p
            length = (d[i] - g) * s + 2 * c * b
            p = s * length
            d[i + 1] = g + p
            g = c * length - b
            _turn(z, i, i + 1, c, s)
        d[at] -= p
        e[at] = g


def _two(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any, Any]:
    """Eigenvalues of `[[a, b], [b, c]]`, the larger in size first, and along the vector of it, of
    any length: these columns are not turned again."""
    total, apart, twice = a + c, a - c, 2 * b
    root = np.hypot(apart, twice)
    down = total < 0
    ends = (total - root, total + root) if down else (total + root, total - root)
    side = apart + _signed(root, apart)
    if abs(side) > abs(twice):
        x, y = -_signed(twice, side), abs(side)
    else:
        x, y = abs(twice), -twice
    return (ends[0] / 2, ends[1] / 2, *((-y, x) if down is (apart < 0) else (x, y)))
