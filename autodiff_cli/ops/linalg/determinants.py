"""Determinants, their logarithms, and the cofactors that are their slopes."""

from __future__ import annotations

import numpy as np

from ...graph.declare import Tensor, function, opaque
from ...graph.op import number
from ...graph.registry import F
from ...graph.samples import S, t
from ...graph.shapes import broadcast_shapes
from ...graph.state import STATE
from ..kernels.matrices import (
    REGULAR,
    SINGULAR,
    SQUARE_ONLY,
    each,
    lapack,
    require_matrices,
    transposed,
)
from ..kernels.rules import zeros

NO_THIRD = "third derivatives of singular determinants divide by zero"


def _with_nan(value, a):
    """LAPACK may overlook a nan when it looks for the largest pivot."""
    return np.where(np.isnan(a).any((-2, -1)), np.nan, value).astype(a.dtype)


def _det(a):
    """The product of the diagonal of LU, of the transposed matrix as PyTorch's; of many matrices
    where that is 0, else NumPy's, which is 60 times as fast and rounds once more."""
    many = a.ndim > 2
    found = np.linalg.det(a) if many else np.zeros((), a.dtype)
    zero = found == 0
    if zero.any():
        (found[zero],) = each(_product, [((), a.dtype)], np.swapaxes(a, -1, -2)[zero])
    return _with_nan(found, a)


def _product(a):
    if not a.size or not np.isfinite(a).all():
        return (np.linalg.det(a.T),)
    (getrf,) = lapack(a, "getrf")
    factors, pivots, _ = getrf(a)
    exchanges = np.count_nonzero(pivots != np.arange(len(pivots)))
    return ((-1) ** exchanges * factors.diagonal().prod(),)


@opaque(
    _det,
    numpy="np.linalg.det(A)",
    name="linalg.det",
    method=True,
    aliases=["det"],
    grad_fn="LinalgDetBackward0",
    shape=lambda A: _batch_shape("linalg.det", A),
    samples=[S(t(2, 2)), S(t(2, 3, 3)), S(t(1, 1))],
    errors=SQUARE_ONLY,
    properties=frozenset({"saves its factors"}),
    vjp=lambda g, out, A: (_det_slope(F.reshape(g, (*g.shape, 1, 1)), out, A),),
    forward=lambda moves, out, A: F.sum(_det_slope(1.0, out, A, False) * moves[0], (-2, -1)),
    phrase="upstream times the cofactors: det(A) * inv(A).T",
    saves="results",
    lacks="lu_cpu float16",
)
def det(A: Tensor):
    """The determinant; its slope is the matrix of cofactors. Where the matrix is singular, PyTorch
    has that for gradients that are differentiated again, and zeros for others."""


def _det_slope(g, out, A, exact=None):
    slope = g * F.cofactors(A)
    if (STATE.grad or A.shape[-1] == 1) if exact is None else exact:
        return slope
    return F.where(F.eq(F.reshape(out, (*out.shape, 1, 1)), 0), 0.0, slope)


def _batch_shape(name, A):
    require_matrices(name, A, square=True)
    return A.shape[:-2], A.dtype


def _slogdet(a):
    sign, logarithm = np.linalg.slogdet(a)
    logarithm = _with_nan(logarithm, a)
    if not sign.all():  # zeros have signs
        sign = np.where(sign == 0, np.copysign(0, _det(a)), sign)
    return np.where(np.isnan(logarithm), 0, sign), logarithm


def _cofactors(a):
    """`det(a) * inv(a).T`; by singular values where the matrix is singular."""
    *_, n = a.shape
    scale = np.linalg.det(a)[..., None, None]
    regular = np.isfinite(scale) & (scale != 0)
    inverse = np.linalg.inv(np.where(regular, a, np.eye(n, dtype=a.dtype)))
    found = scale * np.swapaxes(inverse, -1, -2)
    if not regular.all() and np.isfinite(a).all():
        U, values, Vh = np.linalg.svd(a)
        others = np.where(np.eye(n), 1, values[..., None, :]).prod(-1)
        sign = (np.linalg.det(U) * np.linalg.det(Vh))[..., None, None]
        found = np.where(regular, found, sign * (U * others[..., None, :]) @ Vh)
    return found.astype(a.dtype)


@opaque(
    _cofactors,
    public=False,
    samples=[S(t(3, 3)), S(SINGULAR, order=1, because=NO_THIRD)],
    vjp=lambda g, out, A: (F.cofactors_slope(g, A),),
)
def cofactors(A: Tensor):
    """The matrix of cofactors, which is the slope of the determinant."""


def _cofactors_slope(g, a):
    """Of `A = U S V'` the cofactors are those of the diagonal S, turned back by U and V; there the
    slopes are the products of all singular values but two, finite for every matrix."""
    *_, n = a.shape
    if n < 2 or not np.isfinite(a).all():
        return np.full(np.broadcast_shapes(a.shape, g.shape), 0 if n < 2 else np.nan, a.dtype)
    u, values, vh = np.linalg.svd(a)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    zero = values == 0
    logs = np.log(np.where(zero, 1, values))
    pairs = logs.sum(-1)[..., None, None] - logs[..., :, None] - logs[..., None, :]
    left = zero.sum(-1)[..., None, None] - zero[..., :, None] - zero[..., None, :]
    products = np.where((left == 0) & ~np.eye(n, dtype=bool), np.exp(pairs), 0)
    turned = np.swapaxes(u, -1, -2) @ g @ np.swapaxes(vh, -1, -2)
    diagonal = np.einsum("...ij,...ii->...j", products, turned)[..., None]
    slope = np.where(np.eye(n), diagonal, -products * np.swapaxes(turned, -1, -2))
    return (sign[..., None, None] * (u @ slope @ vh)).astype(a.dtype)


@opaque(
    _cofactors_slope,
    public=False,
    shape=lambda grad, A: (broadcast_shapes(grad.shape, A.shape), A.dtype),
    samples=[S(t(3, 3), t(3, 3)), S(t(2, 2), SINGULAR, order=0, because=NO_THIRD)],
)
def cofactors_slope(grad: Tensor, A: Tensor):
    """The slope of `sum(grad * cofactors(A))`, for singular matrices too."""


@cofactors_slope.vjp
def _(g, out, grad, A):
    minors = F.cofactors(A)
    det = F.reshape(F.det(A), (*A.shape[:-2], 1, 1))
    along = F.sum(grad * minors, (-2, -1), True)
    back = F.sum(g * minors, (-2, -1), True)
    turned = transposed(minors)
    both = along * g + back * grad - g @ turned @ grad - grad @ turned @ g
    to_A = F.cofactors_slope(both / det, A) - minors * (F.sum(g * out, (-2, -1), True) / det)
    slopes = F.cofactors_slope(g, A)
    return F.sum_to_size(slopes, grad.shape), F.sum_to_size(to_A, A.shape)


@opaque(
    _slogdet,
    numpy="np.linalg.slogdet(A)",
    name="linalg.slogdet",
    grad_fn="LinalgSlogdetBackward0",
    fields=("sign", "logabsdet"),
    shape=lambda A: (_batch_shape("linalg.slogdet", A),) * 2,
    properties=frozenset({"no zero cotangents", "saves its factors"}),
    samples=[S(t(2, 2)), S(t(2, 3, 3))],
    errors=SQUARE_ONLY,
    phrase="upstream times inv(A).T",
    saves="result 0",
    forward=lambda moves, out, A: (
        zeros(A, A.shape[:-2]),
        F.sum(transposed(F.inv_raw(A)[0]) * moves[0], (-2, -1)),
    ),
)
def slogdet(A: Tensor):
    """Sign and logarithm of the absolute value of the determinant."""


@slogdet.vjp
def _(g, out, A):
    if g[1] is None:
        return (None,)  # PyTorch's gradient of the sign
    # PyTorch solves for a gradient that is differentiated again, which a singular matrix ends
    inverse = F.inv(A) if STATE.grad else F.inv_raw(A)[0]
    return (F.reshape(g[1], (*g[1].shape, 1, 1)) * transposed(inverse),)


@function(name="slogdet", fields=("sign", "logabsdet"), samples=[S(t(2, 2))], errors=SQUARE_ONLY)
def slogdet_named(A: Tensor):
    """`linalg.slogdet` under its older name."""
    return F.slogdet(A)


@function(samples=[S(REGULAR)], errors=SQUARE_ONLY)
def logdet(input: Tensor):
    """Logarithm of the determinant; -inf where it is 0, nan where it is negative."""
    sign, logarithm = F.slogdet(input)
    return F.where(F.eq(sign, -1), number(float("nan")), logarithm)
