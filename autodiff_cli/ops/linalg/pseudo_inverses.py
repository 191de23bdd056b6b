"""Pseudo-inverses, ranks and least squares."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Mask, Tensor, composite, function, opaque
from ...graph.dtypes import INT64
from ...graph.op import value_of
from ...graph.params import to_tensor
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.shapes import broadcast_shapes
from ..kernels.matrices import (
    COLUMNS,
    SINGULAR,
    missing,
    require_matrices,
    require_same_dtype,
    transposed,
)


def _tolerances(shape, dtype, values, absolute, relative):
    """The value below which a singular value counts as 0, for each matrix."""
    default = np.finfo(dtype).eps * max(shape[-2:])
    if absolute is None:
        absolute = 0.0
        relative = default if relative is None else relative
    elif relative is None:
        relative = np.where(np.asarray(absolute) > 0, 0.0, default)
    largest = values.max(-1, initial=0)
    return np.maximum(absolute, relative * largest)[..., None]


def _pinv(a, atol, rtol, hermitian):
    if hermitian:
        signed, U = F.eigh.kernel(a, "L")
        values, Vh = np.abs(signed), np.swapaxes(U, -1, -2)
    else:
        U, values, Vh = F.linalg_svd.kernel(a, False)
        signed = values
    keep = values > _tolerances(a.shape, a.dtype, values, atol, rtol)
    inverse = np.divide(1, signed, where=keep, out=np.zeros_like(values))
    return (np.swapaxes(Vh, -1, -2) * inverse[..., None, :]) @ np.swapaxes(U, -1, -2)


def _check_bounds(name, input, atol, rtol):
    for kind, bound in (("atol", atol), ("rtol", rtol)):
        batch = input.shape[:-2]
        if bound is not None and broadcast_shapes(batch, bound.shape) != batch:
            raise fault("E308 needs-matrix", name, input, kind, bound)


def _pinv_shape(input, atol, rtol, hermitian):
    require_matrices("linalg.pinv", input, square=hermitian)
    *batch, m, n = input.shape
    _check_bounds("linalg.pinv", input, atol, rtol)
    return (*batch, n, m), input.dtype


def _pinv_in_jax(input, atol, rtol, hermitian):
    """JAX reads both triangles of a matrix that is called hermitian, and has no `atol`."""
    matrix, bound = "input", "rtol"
    if hermitian:
        matrix = "(np.tril(input) + np.swapaxes(np.tril(input, -1), -1, -2))"
    if atol is not None:
        share = f"atol / np.linalg.norm({matrix}, 2, (-2, -1))"
        default = np.finfo(input.dtype).eps * max(input.shape[-2:])
        bound = f"np.maximum(rtol, {share})"
        if rtol is None:
            bound = f"np.where(atol > 0, {share}, {default})"
    return f"np.linalg.pinv({matrix}, rtol={bound})"


@opaque(
    _pinv,
    jax=_pinv_in_jax,
    name="linalg.pinv",
    grad_fn="LinalgPinvBackward0",
    eager=True,
    shape=_pinv_shape,
    vjp=lambda g, out, input, *rest: (_pinv_slope(g, out, input), None, None),
    samples=[S(t(3, 2)), S(t(2, 3)), S(t(2, 2, 2))],
    errors=[Bad("E308", t(3)), Bad("E308", t(2, 3), hermitian=True)],
    phrase="the differential of the pseudo-inverse: -P.T g P.T and the parts outside of its range",
)
def pinv(
    input: Tensor, *, atol: Mask | None = None, rtol: Mask | None = None, hermitian: bool = False
):
    """The pseudo-inverse; singular values below `max(atol, rtol * the largest)` count as 0."""


def _pinv_slope(g, out, A):
    """Golub and Pereyra (1973), multiplied in the order that keeps the products small."""
    m, n = A.shape[-2:]
    flipped, cotangent = transposed(out), transposed(g)
    if m <= n:
        inner = cotangent @ out
        wide = inner @ flipped
        return (
            -transposed(out @ inner)
            + wide
            - (A @ out) @ wide
            + (flipped @ out) @ (cotangent - inner @ A)
        )
    inner = out @ cotangent
    tall = flipped @ inner
    return (
        -transposed(inner @ out) + (cotangent - A @ inner) @ out @ flipped + tall - (tall @ out) @ A
    )


@function(name="linalg.pinv", samples=[S(t(2, 2), 1e-3)])
def pinv_rcond(input: Tensor, rcond: Mask, hermitian: bool = False):
    """The pseudo-inverse with `rcond` in place of `rtol`."""
    return F.pinv(input, rtol=rcond, hermitian=hermitian)


@function(samples=[S(t(3, 2)), S(t(2, 2), rcond=1e-3)], errors=[Bad("E308", t(3))])
def pinverse(input: Tensor, rcond: float = 1e-15):
    """The pseudo-inverse; `linalg.pinv` is the newer name."""
    return F.pinv(input, rtol=rcond)


@function(
    name="linalg.matrix_rank",
    samples=[S(SINGULAR), S(t(2, 3), atol=0.1)],
    errors=[Bad("E308", t(3))],
)
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
):
    """The number of singular values above `max(atol, rtol * the largest)`."""
    require_matrices("linalg.matrix_rank", input, square=hermitian)
    atol = tol if atol is None else atol
    bounds = [None if v is None else to_tensor(v) for v in (atol, rtol)]
    _check_bounds("linalg.matrix_rank", input, *bounds)
    return F.rank(F.abs(F.eigvalsh(input)) if hermitian else F.svdvals(input), *bounds, input.shape)


def _rank(values, atol, rtol, shape):
    return (values > _tolerances(shape, values.dtype, values, atol, rtol)).sum(-1)


@opaque(
    _rank,
    public=False,
    shape=lambda values, atol, rtol, shape: (shape[:-2], INT64),
    samples=[S(t(2, values=[2.0, 0.0], grad=False), None, None, (2, 2))],
)
def rank(values: Tensor, atol: Mask | None, rtol: Mask | None, shape: Any):
    """How many singular values of a matrix of a shape are not negligible."""


def _lstsq_shape(A, B, rcond, driver):
    batch = A.shape[:-2]
    k = min(A.shape[-2:])
    ranks = ((0,) if driver == "gels" else batch, INT64)
    values = ((*batch, k) if driver in ("gelsd", "gelss") else (0,), A.dtype)
    both = broadcast_shapes(batch, B.shape[:-2])
    none = ((0,), A.dtype)  # residuals that are not computed
    return ((*both, A.shape[-1], B.shape[-1]), B.dtype), ranks, values, none


def _lstsq(a, b, rcond, driver):
    m, n = a.shape[-2:]
    batch = a.shape[:-2]
    U, values, Vh = F.linalg_svd.kernel(a, False)
    bound = np.finfo(a.dtype).eps * max(m, n) if rcond is None or driver == "gels" else rcond
    keep = values > bound * values.max(-1, initial=0)[..., None]
    inverse = keep / np.where(keep, values, values.dtype.type(1))
    found = np.swapaxes(Vh, -1, -2) @ (inverse[..., None] * (np.swapaxes(U, -1, -2) @ b))
    ranks = np.zeros(0, np.int64) if driver == "gels" else keep.sum(-1).reshape(batch)
    none = np.zeros(0, a.dtype)
    return found, ranks, values if driver in ("gelsd", "gelss") else none, none


def _lstsq_in_jax(A, B, rcond, driver):
    """By the pseudo-inverse in batches, which JAX's `lstsq` has not."""
    bound = None if driver == "gels" else rcond
    found = f"np.linalg.pinv(A, rtol={bound}) @ B"
    if A.ndim == B.ndim == 2:
        found = f"np.linalg.lstsq(A, B, rcond={bound})[0]"
    rank = "np.zeros(0, int)" if driver == "gels" else f"np.linalg.matrix_rank(A, rtol={bound})"
    svd = driver in ("gelsd", "gelss")
    values = "np.linalg.svd(A, compute_uv=False)" if svd else "np.zeros(0)"
    return f"({found}, {rank}, {values}, np.zeros(0))"


@opaque(
    _lstsq,
    jax=_lstsq_in_jax,
    public=False,
    eager=True,
    shape=_lstsq_shape,
    grad_fn="LinalgLstsqBackward0",
    properties=COLUMNS,
    samples=[S(t(3, 2), t(3, 1), None, None)],
)
def lstsq_raw(A: Tensor, B: Tensor, rcond: Any, driver: Any):
    """The least-squares solution, the rank, the singular values, and no residuals."""


@lstsq_raw.vjp
def _(g, out, A, B, rcond, driver):
    if missing(g[0]):
        return None, None
    inverse = F.pinv(A)
    slopes = _pinv_slope(g[0] @ transposed(B), inverse, A), transposed(inverse) @ g[0]
    return tuple(F.sum_to_size(s, x.shape) for s, x in zip(slopes, (A, B), strict=True))


@composite(
    name="linalg.lstsq",
    grad_fn="LinalgLstsqBackward0",
    fields=("solution", "residuals", "rank", "singular_values"),
    samples=[S(t(3, 2), t(3, 1)), S(t(2, 2), t(2, 2), driver="gelsd")],
    errors=[
        Bad("E301", t(3, 2), t(2, 1)),
        Bad("E205", t(2, 2), t(2, 1), driver="fast"),
        Bad("E308", t(3), t(3)),
    ],
    phrase="product rule of the pseudo-inverse and the right side",
    saves="operands, result 0",
    lacks="float16: This function doesn't handle types other than float and double",
)
def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None):
    """The X with the smallest `A X - B`, the squared residuals, A's rank and singular values."""
    require_matrices("linalg.lstsq", input)
    require_same_dtype("linalg.lstsq", input, b)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise fault("E205 linalg-lstsq-no-driver", driver)
    vector = b.shape == input.shape[:-1]
    right = F.unsqueeze(b, b.ndim) if vector else b
    m, n = input.shape[-2:]
    if right.ndim < 2 or right.shape[-2] != m:
        raise fault("E301 linalg-lstsq-cannot-solve", input, b, m)
    solution, ranks, values, residuals = F.lstsq_raw(input, right, rcond, driver or "gelsy")
    by_values = driver in ("gelsd", "gelss")
    if m > n and (driver == "gels" or (by_values and (value_of(ranks) == n).all())):
        error = right - input @ solution
        residuals = F.sum(error * error, -2)
    if vector:
        solution = F.reshape(solution, solution.shape[:-1])
    return solution, residuals, ranks, F.detach(values)
