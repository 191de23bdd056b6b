"""Linear algebra: inverses, systems, exponentials and powers of matrices."""

from __future__ import annotations

import numpy as np

from ...errors import fail, fault
from ...graph.declare import Tensor, function, opaque
from ...graph.dtypes import INT32
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.shapes import broadcast_shapes
from ...graph.sizes import shape_text
from ..kernels.matrices import (
    COLUMNS,
    REGULAR,
    SINGULAR,
    SQUARE_ONLY,
    checked,
    each,
    is_vector,
    lapack,
    require_matrices,
    require_same_dtype,
    transposed,
    with_info,
)

# -- inverses and systems --------------------------------------------------------------------------


def _solve(a, b):
    """X of `a @ X = b` and infos; a zero pivot gives infinities there, as in PyTorch."""
    try:
        return np.linalg.solve(a, b), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        getrf, laswp, trsm = lapack(a, "getrf", "laswp", "trsm")

        def solution(a, b):
            factors, pivots, _ = getrf(a)
            half = trsm(1.0, factors, laswp(b, pivots), lower=True, diag=True)
            return (trsm(1.0, factors, half) if not np.isnan(a).any() else np.nan,)

        def zero_pivot(a):
            return (0 if np.isnan(a).any() else getrf(a)[2],)

        (found,) = each(solution, [(b.shape[-2:], b.dtype)], a, b)
        return found, each(zero_pivot, [((), INT32)], a)[0]


@opaque(
    lambda a: _solve(a, np.eye(a.shape[-1], dtype=a.dtype)),
    numpy="(np.linalg.inv(A), 0)",
    public=False,
    grad_fn="LinalgInvExBackward0",
    shape=lambda A: with_info("linalg.inv", A),
    fields=("inverse", "info"),
    properties=COLUMNS,
    samples=[S(REGULAR)],
    counterpart="linalg.inv_ex",
    phrase="-(A**-1).T g (A**-1).T",
)
def inv_raw(A: Tensor):
    """The inverse, and 0 or the place of a zero pivot."""


@inv_raw.vjp
def _(g, out, A):
    flipped = transposed(out[0])
    return (-(flipped @ g[0] @ flipped),)


ZERO_PIVOT = (
    "the matrix is singular: the diagonal element {} of its LU factor is zero, it has no inverse"
)


@function(
    name="linalg.inv_ex",
    fields=("inverse", "info"),
    samples=[S(REGULAR)],
    errors=[Bad("E308", t(2, 3)), Bad("E503", SINGULAR, check_errors=True)],
)
def inv_ex(A: Tensor, *, check_errors: bool = False):
    """`linalg.inv` with an info instead of an error: 0, or the place of a zero pivot."""
    return checked("linalg.inv_ex", ZERO_PIVOT, F.inv_raw(A), check_errors)


@function(
    name="linalg.inv",
    method=True,
    aliases=["inverse"],
    samples=[S(REGULAR), S(t(2, 2, 2))],
    errors=[
        *SQUARE_ONLY,
        Bad("E503", SINGULAR, words="singular"),
        Bad("E307", t(2, 2, dtype="int64")),
    ],
)
def inv(A: Tensor):
    """The inverse of a square matrix, or of each matrix of a batch."""
    return checked("linalg.inv", ZERO_PIVOT, F.inv_raw(A))[0]


def _solve_shape(A, B, left):
    require_matrices("linalg.solve", A, square=True)
    require_same_dtype("linalg.solve", A, B)
    if not B.ndim:
        raise fault("E308 linalg-solve-needs-right")
    *_, n = A.shape
    vector = is_vector(A, B)
    if vector and not left:
        raise fault("E308 linalg-solve-left-false", B.shape)
    if (B.shape[-1] if vector or not left else B.shape[-2]) != n:
        raise fail(
            "E301",
            f"`linalg.solve` cannot solve {'A X = B' if left else 'X A = B'} with A of shape "
            f"{shape_text(A.shape)} and B of shape {shape_text(B.shape)}",
            help=f"B needs {n} {'rows' if left else 'columns'}",
        )
    batch = A.shape[:-2] if vector else broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return (batch + (B.shape[-1:] if vector else B.shape[-2:]), B.dtype), (A.shape[:-2], INT32)


def _solve_kernel(a, b, left):
    if is_vector(a, b):
        found, info = _solve(a, b[..., None])
        return found[..., 0], info
    if left:
        return _solve(a, b)
    found, info = _solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2))
    return np.swapaxes(found, -1, -2), info


def _solved_text(A, B, left):
    if not left:
        return (
            "(np.linalg.solve(np.swapaxes(A, -1, -2), np.swapaxes(B, -1, -2)).swapaxes(-1, -2), 0)"
        )
    if A.ndim > 2 and is_vector(A, B):
        return "(np.linalg.solve(A, B[..., None])[..., 0], 0)"
    return "(np.linalg.solve(A, B), 0)"


@opaque(
    _solve_kernel,
    numpy=_solved_text,
    public=False,
    grad_fn="LinalgSolveExBackward0",
    shape=_solve_shape,
    fields=("result", "info"),
    properties=COLUMNS | {"saves its factors"},
    samples=[S(REGULAR, t(2, 3)), S(REGULAR, t(3, 2), False)],
    counterpart="linalg.solve_ex",
    phrase="the solution of the transposed system for g; minus its product with the result",
)
def solve_raw(A: Tensor, B: Tensor, left: bool = True):
    """X of `A X = B` (`X A = B`), and 0 or the place of a zero pivot."""


@solve_raw.vjp
def _(g, out, A, B, left):
    vector = is_vector(A, B)
    cotangent = F.unsqueeze(g[0], g[0].ndim) if vector else g[0]
    solution = F.unsqueeze(out[0], out[0].ndim) if vector else out[0]
    to_b, _ = F.solve_raw(transposed(A), cotangent, left)
    to_a = -(to_b @ transposed(solution) if left else transposed(solution) @ to_b)
    if vector:
        to_b = F.reshape(to_b, to_b.shape[:-1])
    return F.sum_to_size(to_a, A.shape), F.sum_to_size(to_b, B.shape)


NO_SOLUTION = "the matrix is singular: the diagonal element {} of its LU factor is zero"


@function(
    name="linalg.solve_ex",
    fields=("result", "info"),
    samples=[S(REGULAR, t(2))],
    errors=[Bad("E503", SINGULAR, t(2), check_errors=True)],
    lacks="lu_cpu float16",
)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False):
    """`linalg.solve` with an info instead of an error: 0, or the place of a zero pivot."""
    return checked("linalg.solve_ex", NO_SOLUTION, F.solve_raw(A, B, left), check_errors)


@function(
    name="linalg.solve",
    samples=[
        S(REGULAR, t(2)),
        S(REGULAR, t(2, 3)),
        S(t(2, 2, 2), t(2, 1)),
        S(REGULAR, t(3, 2), left=False),
    ],
    errors=[
        Bad("E503", SINGULAR, t(2), words="singular"),
        Bad("E301", t(2, 2), t(3), words="(3,)"),
        Bad("E308", t(2, 3), t(2)),
        Bad("E307", t(2, 2), t(2, dtype="float32")),
    ],
)
def solve(A: Tensor, B: Tensor, *, left: bool = True):
    """The X of `A X = B` (`X A = B` with `left=False`); B holds one right side or several."""
    return checked("linalg.solve", NO_SOLUTION, F.solve_raw(A, B, left))[0]


# -- functions of matrices -------------------------------------------------------------------------


def _matrix_exp(a):
    from scipy.linalg import expm

    return expm(a)


@opaque(
    _matrix_exp,
    aliases=["linalg.matrix_exp"],
    grad_fn="LinalgMatrixExpBackward0",
    shape=lambda input: with_info("matrix_exp", input)[0],
    samples=[S(t(2, 2)), S(t(2, 2, 2))],
    errors=SQUARE_ONLY,
    phrase="a block of the exponential of [[A.T, g], [0, A.T]]",
)
def matrix_exp(input: Tensor):
    """The exponential of a square matrix."""


@matrix_exp.vjp
def _(g, out, input):
    """Upper right block of the exponential of `[[A.T, g], [0, A.T]]` (Al-Mohy and Higham 2009)."""
    *_, n = input.shape
    matrix = transposed(input)
    last = input.ndim - 1
    top = F.cat((matrix, g), last)
    bottom = F.cat((F.zeros_like(matrix), matrix), last)
    whole = F.matrix_exp(F.cat((top, bottom), last - 1))
    return (F.narrow(F.narrow(whole, last - 1, 0, n), last, n, n),)


@opaque(
    lambda a: np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape),
    public=False,
    grad_fn="CopyBackwards",
    vjp=lambda g, out, input: F.zeros_like(input),
    samples=[S(t(2, 2))],
    phrase="power rule",
)
def power_zero(input: Tensor):
    """A matrix to the power 0: the identity, with slope 0."""


@function(
    name="linalg.matrix_power",
    method=True,
    aliases=["matrix_power"],
    samples=[S(REGULAR, 3), S(REGULAR, -2), S(t(2, 2, 2), 2), S(t(2, 2), 1)],
    errors=[Bad("E308", t(2, 3), 2), Bad("E503", SINGULAR, -1)],
)
def matrix_power(input: Tensor, n: int):
    """A square matrix times itself `n` times; a negative `n` takes the inverse."""
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        require_matrices("linalg.matrix_power", F.to_dtype(input, np.dtype(float)), square=True)
    if n == 0:
        return F.power_zero(input)
    if n < 0:
        return F.matrix_power(F.inv(input), -n) if n < -1 else F.inv(input)
    if n == 1:
        return F.clone(input)
    if n == 3:
        return (input @ input) @ input
    power, result = input, None
    while n:
        n, odd = divmod(n, 2)
        if odd:
            result = power if result is None else result @ power
        if n:
            power = power @ power
    return result
