"""Triangular factors: Cholesky and LU, and the systems they solve; LAPACK computes them.

Rules are those of Giles (2008) and Murray (2016), in graph ops.
"""

from __future__ import annotations

import numpy as np

from ...errors import fail, fault
from ...graph.declare import Any, Flag, Mask, Tensor, composite, function, opaque
from ...graph.dtypes import INT32
from ...graph.op import known, value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, T, ints, t
from ...graph.shapes import broadcast_shapes
from ...graph.sizes import shape_text
from ..kernels.matrices import (
    COLUMNS,
    checked,
    columns,
    each,
    lapack,
    require_matrices,
    require_same_dtype,
    rest_columns,
    rest_rows,
    rows,
    singular,
    transposed,
    with_info,
)


def positive(n: int) -> T:
    """A symmetric positive definite matrix for samples."""
    rows = [[(4.0 + i if i == j else 0.5 / (1 + i + j)) for j in range(n)] for i in range(n)]
    return t(values=rows, within="symmetric")


def lower(n: int) -> T:
    """A lower triangular matrix for samples."""
    rows = [[(1.5 + i if i == j else 0.3 * max(i - j, 0)) for j in range(n)] for i in range(n)]
    return t(values=rows, within="lower")


def upper(n: int) -> T:
    """An upper triangular matrix for samples."""
    rows = [list(row) for row in zip(*lower(n).values, strict=True)]
    return t(values=rows, within="upper")


# -- triangular systems ----------------------------------------------------------------------------


def _solve_triangular(a, b, upper, left, unitriangular):
    """BLAS trsm, which divides by a zero on the diagonal without complaint, as PyTorch does."""
    if 0 in b.shape or 0 in a.shape:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return np.zeros(batch + b.shape[-2:], b.dtype)
    (trsm,) = lapack(b, "trsm")

    def solve(a, b):
        return (trsm(1.0, a, b, side=not left, lower=not upper, diag=unitriangular),)

    return each(solve, [(b.shape[-2:], b.dtype)], a, b)[0]


def system_shape(name, a, b, left):
    """The shape of X in `A X = B`, or in `X A = B`."""
    require_matrices(name, a, square=True)
    if b.ndim < 2:
        raise fault("E308 needs-matrix-right-side", name, b)
    require_same_dtype(name, a, b)
    *_, n = a.shape
    if b.shape[-2 if left else -1] != n:
        raise fail(
            "E301",
            f"`{name}` cannot solve {'A X = B' if left else 'X A = B'} with A of shape "
            f"{shape_text(a.shape)} and B of shape {shape_text(b.shape)}",
            help=f"B needs {n} {'rows' if left else 'columns'}",
        )
    return broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]


def _solved_in_jax(input, B, upper, left, unitriangular):
    batch = broadcast_shapes(input.shape[:-2], B.shape[:-2])
    parts = [
        name if x.shape[:-2] == batch else f"np.broadcast_to({name}, {batch + x.shape[-2:]})"
        for name, x in (("input", input), ("B", B))
    ]
    turned, ends = (".T", "") if not batch else (".swapaxes", "(-1, -2)")
    call = "scipy.linalg.solve_triangular(%s, lower=%s, unit_diagonal=unitriangular)"
    if left:
        return call % (", ".join(parts), not upper)
    return call % (", ".join(f"{part}{turned}{ends}" for part in parts), upper) + turned + ends


@opaque(
    _solve_triangular,
    jax=_solved_in_jax,
    name="linalg.solve_triangular",
    grad_fn="LinalgSolveTriangularBackward0",
    shape=lambda input, B, upper, left, unitriangular: (
        system_shape("linalg.solve_triangular", input, B, left),
        B.dtype,
    ),
    properties=COLUMNS,
    samples=[
        S(lower(2), t(2, 3), upper=False),
        S(lower(2), t(2, 2), upper=False, left=False),
        S(t(2, 3, 3, low=0.5), t(3, 1), upper=True, unitriangular=True),
    ],
    errors=[
        Bad("E301", t(2, 2), t(3, 1), upper=True),
        Bad("E308", t(2, 3), t(2, 1), upper=True),
        Bad("E307", t(2, 2), t(2, 2, dtype="float32"), upper=True),
    ],
    phrase="the solution of the transposed system for g; the matrix minus its product",
    lacks="triangular_solve_cpu ints bool float16",
)
def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
):
    """The X of `A X = B` (`X A = B` with `left=False`), reading one triangle of A."""


@solve_triangular.vjp
def _(g, out, input, B, upper, left, unitriangular):
    to_b = F.solve_triangular(
        transposed(input), g, upper=not upper, left=left, unitriangular=unitriangular
    )
    to_a = -(to_b @ transposed(out) if left else transposed(out) @ to_b)
    edge = 1 if unitriangular else 0
    to_a = F.triu(to_a, edge) if upper else F.tril(to_a, -edge)
    return F.sum_to_size(to_a, input.shape), F.sum_to_size(to_b, B.shape)


@composite(
    fields=("solution", "cloned_coefficient"),
    samples=[
        S(t(2, 3), t(2, 2, low=0.5)),
        S(t(3, 1), t(3, 3, low=0.5), upper=False, transpose=True),
    ],
    errors=[Bad("E301", t(3, 1), t(2, 2)), Bad("E308", t(2), t(2, 2))],
    phrase="the solution of the transposed system for g; the matrix minus its product",
    saves="operands",
    lacks="triangular_solve_cpu ints bool float16",
)
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
):
    """The X of `A X = b` for a triangular A, and a copy of A."""
    shape = system_shape("triangular_solve", A, b, True)
    matrix, above = (transposed(A), not upper) if transpose else (A, upper)
    solution = F.solve_triangular(matrix, b, upper=above, unitriangular=unitriangular)
    return solution, F.depends(F.clone(F.expand(A, shape[:-2] + A.shape[-2:])), b)


# -- Cholesky --------------------------------------------------------------------------------------

NOT_POSITIVE = (
    "the factorization failed: the matrix is not positive-definite (the leading minor of order {} "
    "is not positive-definite)"
)


def _cholesky(a, upper):
    if upper:
        a = np.swapaxes(a, -1, -2)
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        factor = np.linalg.cholesky(a)
        if np.isnan(factor).any():
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        (potrf,) = lapack(a, "potrf")

        def single(a):
            factor, info = potrf(a, lower=True)
            bad = np.flatnonzero(np.isnan(np.diagonal(factor)))
            return factor, bad[0] + 1 if not info and len(bad) else info

        factor, info = each(single, [(a.shape[-2:], a.dtype), ((), INT32)], a)
    return np.swapaxes(factor, -1, -2) if upper else factor, info


def _cholesky_slope(g, factor, upper):
    """Murray (2016), equation (9)."""
    if upper:
        g, factor = transposed(g), transposed(factor)
    half = F.tril(transposed(factor) @ g)
    below = F.tril(half, -1)
    middle = below + transposed(half)
    left = F.solve_triangular(transposed(factor), middle, upper=True)
    return F.solve_triangular(factor, left * 0.5, upper=False, left=False)


@opaque(
    lambda input, upper: _cholesky(input, upper),
    jax="(np.linalg.cholesky(input, upper=upper), 0)",
    public=False,
    grad_fn="LinalgCholeskyExBackward0",
    fields=("L", "info"),
    shape=lambda input, upper: with_info("linalg.cholesky_ex", input),
    vjp=lambda g, out, input, upper: (_cholesky_slope(g[0], out[0], upper),),
    properties=COLUMNS,
    samples=[S(positive(2)), S(positive(3), True)],
    counterpart="linalg.cholesky_ex",
    phrase="L.T g, its lower half, between two inverses of L",
)
def cholesky_factor(input: Tensor, upper: bool = False):
    """The Cholesky factor, and 0 or the order of the leading minor that is not positive."""


@function(
    name="linalg.cholesky_ex",
    fields=("L", "info"),
    samples=[S(positive(2)), S(positive(2), upper=True)],
    errors=[
        Bad("E308", t(2, 3)),
        Bad("E503", t(values=[[1.0, 2.0], [2.0, 1.0]]), check_errors=True),
    ],
    lacks="cholesky_cpu float16",
)
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False):
    """`linalg.cholesky` with an info instead of an error: 0, or the order of the failing minor."""
    found = F.cholesky_factor(input, upper)
    return checked("linalg.cholesky_ex", NOT_POSITIVE, found, check_errors)


@function(
    name="linalg.cholesky",
    samples=[S(positive(3)), S(positive(2), upper=True)],
    errors=[
        Bad("E503", t(values=[[1.0, 2.0], [2.0, 1.0]]), words="leading minor of order 2"),
        Bad("E308", t(2, 3)),
        Bad("E308", t(2)),
    ],
    lacks="cholesky_cpu float16",
)
def linalg_cholesky(input: Tensor, *, upper: bool = False):
    """The triangular L with `A = L @ L.mT` for a positive-definite A; reads the lower triangle."""
    return checked("linalg.cholesky", NOT_POSITIVE, F.cholesky_factor(input, upper))[0]


@composite(
    samples=[S(positive(3)), S(positive(2), upper=True)],
    errors=[Bad("E503", t(values=[[0.0, 2.0], [2.0, 1.0]]), words="leading minor of order 1")],
    phrase="solves with the factor: L.T g, its lower half, between two inverses of L",
    saves="results",
    lacks="cholesky_cpu ints bool float16",
)
def cholesky(input: Tensor, upper: bool = False):
    """The Cholesky factor of a positive-definite matrix; `linalg.cholesky` is the newer name."""
    return checked("cholesky", NOT_POSITIVE, F.cholesky_factor(input, upper))[0]


def _from_factor(factor, right, upper):
    """The X of `A X = right` for the A whose Cholesky factor is given."""
    half = _solve_triangular(
        np.swapaxes(factor, -1, -2) if upper else factor, right, False, True, False
    )
    return _solve_triangular(
        factor if upper else np.swapaxes(factor, -1, -2), half, True, True, False
    )


def _cholesky_inverse(factor, upper):
    zeros = np.diagonal(factor, 0, -2, -1) == 0
    if zeros.any():
        *at, i = (int(v) for v in np.argwhere(zeros)[0])
        raise singular(
            "cholesky_inverse",
            "the matrix is singular: diagonal element {} is zero",
            tuple(at),
            i + 1,
        )
    return _from_factor(factor, np.eye(factor.shape[-1], dtype=factor.dtype), upper)


def _to_factor(common, factor, upper):
    """The slope of a factor from that of its matrix; as in PyTorch not cut to the triangle."""
    common = common + transposed(common)
    return -(factor @ common if upper else common @ factor)


def _square_in_jax(upper):
    """The matrix of which `L` is the factor."""
    one, other = "np.triu(L)" if upper else "np.tril(L)", "np.swapaxes({}, -1, -2)"
    one, other = (other.format(one), one) if upper else (one, other.format(one))
    return f"{one} @ {other}"


@opaque(
    _cholesky_inverse,
    jax=lambda L, upper: f"np.linalg.inv({_square_in_jax(upper)})",
    eager=True,
    shape=lambda L, upper: with_info("cholesky_inverse", L)[0],
    vjp=lambda g, out, L, upper: (_to_factor(out @ g @ out, L, upper),),
    properties=COLUMNS,
    samples=[S(lower(3)), S(upper(2), upper=True)],
    errors=[Bad("E503", t(values=[[0.0, 0.0], [2.0, 1.0]]), words="singular")],
    phrase="-(A**-1) (g + g.T) (A**-1) L, where A = L L.T",
    lacks="cholesky_inverse_out_cpu ints bool float16",
)
def cholesky_inverse(L: Tensor, upper: bool = False):
    """The inverse of the matrix whose Cholesky factor is `L`."""


@opaque(
    lambda right, factor, upper: _from_factor(factor, right, upper),
    jax=lambda B, L, upper: f"np.linalg.solve({_square_in_jax(upper)}, B)",
    shape=lambda B, L, upper: (system_shape("cholesky_solve", L, B, True), B.dtype),
    properties=COLUMNS,
    samples=[S(t(3, 2), lower(3)), S(t(2, 2, 1), upper(2), upper=True)],
    errors=[Bad("E301", t(2, 1), t(3, 3))],
    phrase="the right side gets the solution for g, the factor what that makes of it",
    saves="operands, results",
    lacks="cholesky_solve_cpu ints bool float16",
)
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False):
    """The X of `A X = B` by the Cholesky factor `L` of A."""


@cholesky_solve.vjp
def _(g, out, B, L, upper):
    to_b = F.cholesky_solve(g, L, upper)
    to_factor = _to_factor(to_b @ transposed(out), L, upper)
    return F.sum_to_size(to_b, B.shape), F.sum_to_size(to_factor, L.shape)


# -- LU --------------------------------------------------------------------------------------------


def _lu_factor(a, pivot):
    m, n = a.shape[-2:]
    k = min(m, n)
    outputs = [((m, n), a.dtype), ((k,), INT32), ((), INT32)]
    if a.size == 0:
        return each(lambda a: (a, np.arange(k), 0), outputs, a)
    (getrf,) = lapack(a, "getrf")

    def single(a):
        if np.isnan(a).any():
            return np.full_like(a, np.nan), np.arange(1, k + 1), 0
        factors, pivots, info = getrf(a)
        return factors, pivots + 1, info

    return each(single, outputs, a)


def _lu_shape(A, pivot):
    require_matrices("linalg.lu_factor", A)
    if not pivot:
        raise fault("E205 linalg-lu_factor-always-exchanges")
    *batch, m, n = A.shape
    return (A.shape, A.dtype), ((*batch, min(m, n)), INT32), (tuple(batch), INT32)


@opaque(
    _lu_factor,
    jax="(lambda f: (f[0], f[1] + 1, 0))(scipy.linalg.lu_factor(A))",
    public=False,
    shape=_lu_shape,
    grad_fn="LinalgLuFactorExBackward0",
    fields=("LU", "pivots", "info"),
    properties=COLUMNS,
    samples=[S(t(3, 3))],
    counterpart="linalg.lu_factor_ex",
    phrase="triangular parts of what the factors get, between their inverses",
)
def lu_factor_raw(A: Tensor, pivot: bool = True):
    """The factors L and U in one matrix, the exchanges of rows, and an info."""


@lu_factor_raw.vjp
def _(g, out, A, pivot):
    m, n = A.shape[-2:]
    k = min(m, n)
    P, L, U = F.lu_unpack(out[0], out[1])
    to_l, to_u = columns(F.tril(g[0], -1), k), rows(F.triu(g[0]), k)
    square_l, square_u = rows(L, k), columns(U, k)
    below = transposed(square_l) @ rows(to_l, k)
    above = columns(to_u, k) @ transposed(square_u)
    if m < n:
        right = rest_columns(to_u, k)
        below = below - right @ transposed(rest_columns(U, k))
    elif m > n:
        bottom = rest_rows(to_l, k)
        above = above - transposed(rest_rows(L, k)) @ bottom
    middle = F.tril(below, -1) + F.triu(above)
    if m <= n:
        grad = F.solve_triangular(transposed(square_u), middle, upper=False, left=False)
        if m < n:
            grad = F.cat((grad, right), A.ndim - 1)
        grad = F.solve_triangular(transposed(square_l), grad, upper=True, unitriangular=True)
    else:
        grad = F.solve_triangular(transposed(square_l), middle, upper=True, unitriangular=True)
        grad = F.solve_triangular(
            transposed(square_u), F.cat((grad, bottom), A.ndim - 2), upper=False, left=False
        )
    return (P @ grad,)


@function(
    name="linalg.lu_factor_ex",
    fields=("LU", "pivots", "info"),
    samples=[S(t(2, 2)), S(t(3, 2)), S(t(2, 3))],
    errors=[Bad("E308", t(3)), Bad("E205", t(2, 2), pivot=False)],
    lacks="lu_cpu ints bool float16",
)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False):
    """`linalg.lu_factor` with an info instead of an error: 0, or the place of a zero pivot."""
    return checked("linalg.lu_factor_ex", ZERO_PIVOT, F.lu_factor_raw(A, pivot), check_errors)


ZERO_PIVOT = "the matrix is singular: U[{0}, {0}] is zero and `lu_solve` would divide by it"


@function(
    name="linalg.lu_factor",
    fields=("LU", "pivots"),
    samples=[S(t(2, 2)), S(t(2, 3))],
    errors=[Bad("E503", t(values=[[1.0, 2.0], [2.0, 4.0]]), words="singular")],
    lacks="lu_cpu ints bool float16",
)
def lu_factor(A: Tensor, *, pivot: bool = True):
    """L and U in one matrix and the exchanges of rows, as `lu_solve` and `lu_unpack` take them."""
    return checked("linalg.lu_factor", ZERO_PIVOT, F.lu_factor_raw(A, pivot))[:2]


@function(
    samples=[S(t(2, 2))],
    lacks="lu_cpu ints bool float16",
)
def lu(input: Tensor, pivot: bool = True, get_infos: Flag = False):
    """L and U in one matrix and the exchanges of rows; with `get_infos` an info too."""
    found = F.lu_factor_raw(input, pivot)
    return found if get_infos else found[:2]


def _permutation(pivots, m, dtype):
    order = np.broadcast_to(np.arange(m), (*pivots.shape[:-1], m)).copy()
    for i in range(pivots.shape[-1]):
        other = pivots[..., i : i + 1].astype(np.int64) - 1
        moved = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, order[..., i : i + 1], -1)
        order[..., i : i + 1] = moved
    return np.swapaxes(np.eye(m, dtype=dtype)[order], -1, -2)


@opaque(
    _permutation,
    jax="np.swapaxes(np.eye(m, dtype=dtype)"
    "[jax.lax.linalg.lu_pivots_to_permutation(pivots - 1, m)], -1, -2)",
    public=False,
    shape=lambda pivots, m, dtype: ((*pivots.shape[:-1], m, m), dtype),
    samples=[S(ints(values=[2, 2]), 2, np.dtype("float64"))],
)
def lu_permutation(pivots: Mask, m: int, dtype: Any):
    """The permutation matrix of LAPACK's exchanges of rows."""


@composite(
    fields=("P", "L", "U"),
    samples=[
        S(t(2, 2), t(values=[1, 2], dtype="int32")),
        S(t(3, 2), t(values=[2, 3], dtype="int32")),
    ],
    errors=[Bad("E307", t(2, 2), t(2)), Bad("E308", t(2, 2), t(values=[1], dtype="int32"))],
    method=False,
    phrase="each gradient goes back to where its element came from",
)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Mask, unpack_data: bool = True, unpack_pivots: bool = True
):
    """P, L and U with `A = P @ L @ U`, from the results of `lu_factor`."""
    require_matrices("lu_unpack", LU_data)
    require_pivots("lu_unpack", LU_data, LU_pivots)
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    empty = F.zeros((0,), dtype=LU_data.dtype)
    permutation = F.lu_permutation(LU_pivots, m, LU_data.dtype) if unpack_pivots else empty
    if not unpack_data:
        return permutation, empty, empty
    unit = F.eye(m, k, dtype=LU_data.dtype)
    return permutation, F.tril(columns(LU_data, k), -1) + unit, F.triu(rows(LU_data, k))


def require_pivots(name, LU, pivots):
    """E307 unless pivots are int32, E308 unless they fit to the factors."""
    if pivots.dtype != INT32:
        raise fault("E307 needs-pivots-dtype-int32", name, pivots)
    k = min(LU.shape[-2:])
    if not pivots.ndim or pivots.shape[-1] != k or pivots.shape[:-1] != LU.shape[:-2]:
        raise fault("E308 needs-pivots-matrix", name, k, LU.shape, pivots)
    if not known(pivots):
        return
    values = value_of(pivots)
    if values.size and not (values.min() >= 1 and values.max() <= LU.shape[-2]):
        raise fault("E504 needs-pivots", name, LU.shape[-2], values.min(), values.max())


@composite(
    name="linalg.lu",
    fields=("P", "L", "U"),
    samples=[S(t(2, 2)), S(t(3, 2)), S(t(2, 3))],
    errors=[Bad("E308", t(3))],
    phrase="triangular parts of what the factors get, between their inverses",
    saves="results",
    lacks="lu_cpu ints bool float16",
)
def linalg_lu(A: Tensor, *, pivot: bool = True):
    """P, L and U with `A = P @ L @ U`: a permutation, a unit lower and an upper triangle."""
    factors, pivots, _ = F.lu_factor_raw(A, pivot)
    return F.lu_unpack(factors, pivots)


@composite(
    name="linalg.lu_solve",
    samples=[
        S(t(2, 2, low=0.5), t(values=[2, 2], dtype="int32"), t(2, 3)),
        S(t(2, 2, low=0.5), t(values=[1, 2], dtype="int32"), t(3, 2), left=False, adjoint=True),
    ],
    errors=[
        Bad("E301", t(2, 2), t(values=[1, 2], dtype="int32"), t(3, 1)),
        Bad("E308", t(2, 3), t(values=[1, 2], dtype="int32"), t(3, 1)),
    ],
    phrase="the solution of the transposed system for g; the factors what it makes",
    saves="pivots, results",
    lacks="linalg.lu_solve_cpu float16",
)
def linalg_lu_solve(
    LU: Tensor, pivots: Mask, B: Tensor, *, left: bool = True, adjoint: bool = False
):
    """The X of `A X = B` by the LU factors of A.

    With `left=False` it is that of `X A = B`, with `adjoint` A is transposed.
    """
    system_shape("linalg.lu_solve", LU, B, left)
    require_pivots("linalg.lu_solve", LU, pivots)
    right = B if left else transposed(B)
    P = F.lu_permutation(pivots, pivots.shape[-1], LU.dtype)
    if adjoint == left:
        inner = F.solve_triangular(transposed(LU), right, upper=False)
        found = P @ F.solve_triangular(transposed(LU), inner, upper=True, unitriangular=True)
    else:
        inner = F.solve_triangular(LU, transposed(P) @ right, upper=False, unitriangular=True)
        found = F.solve_triangular(LU, inner, upper=True)
    return found if left else transposed(found)


@function(samples=[S(t(2, 3), t(2, 2, low=0.5), t(values=[2, 2], dtype="int32"))])
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Mask):
    """The X of `A X = b` by the LU factors of A; `linalg.lu_solve` is the newer name."""
    return F.linalg_lu_solve(LU_data, LU_pivots, b)
