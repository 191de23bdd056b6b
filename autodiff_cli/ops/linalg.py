"""Linear algebra: inverses, systems, determinants, powers, pseudo-inverses, least squares."""

from __future__ import annotations

import numpy as np

from ..errors import fail
from ..graph.declare import Any, Mask, Tensor, composite, function, opaque
from ..graph.dtypes import INT32, INT64
from ..graph.matrices import (
    check_info,
    each,
    missing,
    require_matrices,
    require_same_dtype,
    transposed,
)
from ..graph.op import number, shape_text, value_of
from ..graph.params import to_tensor
from ..graph.registry import F
from ..graph.samples import Bad, S, t
from ..graph.shapes import broadcast_shapes

SINGULAR = t(values=[[1.0, 2.0], [2.0, 4.0]])
REGULAR = t(values=[[2.0, 0.5], [-0.3, 1.5]])
NO_THIRD = "third derivatives of singular determinants divide by zero"
SQUARE_ONLY = (Bad("E308", t(2, 3), words="square"), Bad("E308", t(2)))


# -- inverses and systems --------------------------------------------------------------------------


def _solve(a, b):
    """X of `a @ X = b` and infos; a zero pivot gives infinities there, as in PyTorch."""
    try:
        return np.linalg.solve(a, b), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        from scipy.linalg.blas import get_blas_funcs
        from scipy.linalg.lapack import get_lapack_funcs

        getrf, laswp = get_lapack_funcs(("getrf", "laswp"), (a,))
        (trsm,) = get_blas_funcs(("trsm",), (a,))

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
    key="inv_raw",
    public=False,
    grad_fn="LinalgInvExBackward0",
    shape=lambda A: _with_info("linalg.inv", A),
    fields=("inverse", "info"),
    samples=[S(REGULAR)],
)
def inv_raw(A: Tensor):
    """The inverse, and 0 or the place of a zero pivot."""


@inv_raw.vjp
def _(g, out, A):
    flipped = transposed(out[0])
    return (-(flipped @ g[0] @ flipped),)


def _with_info(name, A):
    require_matrices(name, A, square=True)
    return (A.shape, A.dtype), (A.shape[:-2], INT32)


ZERO_PIVOT = (
    "the matrix is singular: the diagonal element {} of its LU factor is zero, it has no inverse"
)


@function(
    name="linalg.inv_ex",
    key="inv_ex",
    method=False,
    fields=("inverse", "info"),
    samples=[S(REGULAR)],
    errors=[Bad("E308", t(2, 3)), Bad("E503", SINGULAR, check_errors=True)],
)
def inv_ex(A: Tensor, *, check_errors: bool = False):
    """`linalg.inv` with an info instead of an error: 0, or the place of a zero pivot."""
    inverse, info = F.inv_raw(A)
    if check_errors:
        check_info("linalg.inv_ex", info, ZERO_PIVOT)
    return inverse, info


@function(
    name="linalg.inv",
    key="inv",
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
    inverse, info = F.inv_raw(A)
    check_info("linalg.inv", info, ZERO_PIVOT)
    return inverse


def is_vector(a, b):
    """Whether the right side `b` is a vector (or one for each matrix of a batch), as in PyTorch."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


def _solve_shape(A, B, left):
    require_matrices("linalg.solve", A, square=True)
    require_same_dtype("linalg.solve", A, B)
    if not B.ndim:
        raise fail(
            "E308",
            "`linalg.solve` needs a right side with at least 1 dim, got ()",
            help="reshape it to (1,)",
        )
    n = A.shape[-1]
    vector = is_vector(A, B)
    if vector and not left:
        raise fail(
            "E308",
            "`linalg.solve` with left=False needs a matrix as right side, got shape "
            f"{shape_text(B.shape)}",
            help="`unsqueeze(-2)` makes a vector a row",
        )
    if (B.shape[-1] if vector or not left else B.shape[-2]) != n:
        raise fail(
            "E301",
            f"`linalg.solve` cannot solve {'A X = B' if left else 'X A = B'} with A of shape "
            f"{shape_text(A.shape)} and B of shape {shape_text(B.shape)}",
            help=f"B needs {n} {'rows' if left else 'columns'}",
        )
    batch = broadcast_shapes(A.shape[:-2], B.shape[:-1] if vector else B.shape[:-2])
    return (batch + (B.shape[-1:] if vector else B.shape[-2:]), B.dtype), (A.shape[:-2], INT32)


def _solve_kernel(a, b, left):
    if is_vector(a, b):
        found, info = _solve(a, b[..., None])
        return found[..., 0], info
    if left:
        return _solve(a, b)
    found, info = _solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2))
    return np.swapaxes(found, -1, -2), info


@opaque(
    _solve_kernel,
    key="solve_raw",
    public=False,
    grad_fn="LinalgSolveExBackward0",
    shape=_solve_shape,
    fields=("result", "info"),
    samples=[S(REGULAR, t(2, 3)), S(REGULAR, t(3, 2), False)],
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
    key="solve_ex",
    method=False,
    fields=("result", "info"),
    samples=[S(REGULAR, t(2))],
    errors=[Bad("E503", SINGULAR, t(2), check_errors=True)],
)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False):
    """`linalg.solve` with an info instead of an error: 0, or the place of a zero pivot."""
    found, info = F.solve_raw(A, B, left)
    if check_errors:
        check_info("linalg.solve_ex", info, NO_SOLUTION)
    return found, info


@function(
    name="linalg.solve",
    key="solve",
    method=False,
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
    found, info = F.solve_raw(A, B, left)
    check_info("linalg.solve", info, NO_SOLUTION)
    return found


# -- determinants ----------------------------------------------------------------------------------


@opaque(
    lambda a: _with_nan(np.linalg.det(a), a),
    name="linalg.det",
    aliases=["det"],
    key="det",
    grad_fn="LinalgDetBackward0",
    shape=lambda A: _batch_shape("linalg.det", A),
    samples=[S(t(2, 2)), S(t(2, 3, 3)), S(t(1, 1))],
    errors=SQUARE_ONLY,
)
def det(A: Tensor):
    """The determinant; its slope is the matrix of cofactors, also where the matrix is singular."""


@det.vjp
def _(g, out, A):
    return (F.reshape(g, (*g.shape, 1, 1)) * F.cofactors(A),)


def _batch_shape(name, A):
    require_matrices(name, A, square=True)
    return A.shape[:-2], A.dtype


def _with_nan(value, a):
    """LAPACK may overlook a nan when it looks for the largest pivot."""
    return np.where(np.isnan(a).any((-2, -1)), np.nan, value).astype(a.dtype, copy=False)


def _slogdet(a):
    sign, logarithm = np.linalg.slogdet(a)
    return sign, _with_nan(logarithm, a)


def _cofactors(a):
    """`det(a) * inv(a).T`; by singular values where the matrix is singular."""
    n = a.shape[-1]
    scale = np.linalg.det(a)[..., None, None]
    regular = np.isfinite(scale) & (scale != 0)
    inverse = np.linalg.inv(np.where(regular, a, np.eye(n, dtype=a.dtype)))
    found = scale * np.swapaxes(inverse, -1, -2)
    if not regular.all() and np.isfinite(a).all():
        U, values, Vh = np.linalg.svd(a)
        others = np.where(np.eye(n, dtype=bool), 1, values[..., None, :]).prod(-1)
        sign = (np.linalg.det(U) * np.linalg.det(Vh))[..., None, None]
        found = np.where(regular, found, sign * (U * others[..., None, :]) @ Vh)
    return found.astype(a.dtype, copy=False)


@opaque(
    _cofactors,
    key="cofactors",
    public=False,
    shape=lambda A: (A.shape, A.dtype),
    samples=[S(t(3, 3)), S(SINGULAR, order=1, because=NO_THIRD)],
)
def cofactors(A: Tensor):
    """The matrix of cofactors, which is the slope of the determinant."""


@cofactors.vjp
def _(g, out, A):
    return (F.cofactors_slope(g, A),)


def _cofactors_slope(g, a):
    """Of `A = U S V'` the cofactors are those of the diagonal S, turned back by U and V; there the
    slopes are the products of all singular values but two, finite for every matrix."""
    n = a.shape[-1]
    if n < 2 or not a.size or not np.isfinite(a).all():
        return np.full(np.broadcast_shapes(a.shape, g.shape), 0 if n < 2 else np.nan, a.dtype)
    u, values, vh = np.linalg.svd(a)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    zero = values == 0
    logs = np.log(np.where(zero, 1, values))
    pairs = logs.sum(-1)[..., None, None] - logs[..., :, None] - logs[..., None, :]
    left = zero.sum(-1)[..., None, None] - zero[..., :, None] - zero[..., None, :]
    products = np.where((left == 0) & ~np.eye(n, dtype=bool), np.exp(pairs), 0)
    turned = np.swapaxes(u, -1, -2) @ g @ np.swapaxes(vh, -1, -2)
    slope = -products * np.swapaxes(turned, -1, -2)
    diagonal = np.einsum("...ii->...i", slope)
    diagonal[...] = np.einsum("...ij,...ii->...j", products, turned)
    return (sign[..., None, None] * (u @ slope @ vh)).astype(a.dtype, copy=False)


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
    name="linalg.slogdet",
    aliases=["slogdet"],
    key="slogdet",
    grad_fn="LinalgSlogdetBackward0",
    fields=("sign", "logabsdet"),
    shape=lambda A: (_batch_shape("linalg.slogdet", A),) * 2,
    samples=[S(t(2, 2)), S(t(2, 3, 3))],
    errors=SQUARE_ONLY,
)
def slogdet(A: Tensor):
    """Sign and logarithm of the absolute value of the determinant."""


@slogdet.vjp
def _(g, out, A):
    return (F.reshape(g[1], (*g[1].shape, 1, 1)) * transposed(F.inv_raw(A)[0]),)


@function(samples=[S(REGULAR)], errors=SQUARE_ONLY)
def logdet(input: Tensor):
    """Logarithm of the determinant; -inf where it is 0, nan where it is negative."""
    sign, logarithm = F.slogdet(input)
    return F.where(F.eq(sign, -1), number(float("nan")), logarithm)


# -- functions of matrices -------------------------------------------------------------------------


def _matrix_exp(a):
    from scipy.linalg import expm

    return expm(a) if a.size else a.copy()


@opaque(
    _matrix_exp,
    aliases=["linalg.matrix_exp"],
    grad_fn="LinalgMatrixExpBackward0",
    shape=lambda input: _with_info("matrix_exp", input)[0],
    samples=[S(t(2, 2)), S(t(2, 2, 2))],
    errors=SQUARE_ONLY,
)
def matrix_exp(input: Tensor):
    """The exponential of a square matrix."""


@matrix_exp.vjp
def _(g, out, input):
    """Upper right block of the exponential of `[[A.T, g], [0, A.T]]` (Al-Mohy and Higham 2009)."""
    n = input.shape[-1]
    matrix = transposed(input)
    last = input.ndim - 1
    top = F.cat((matrix, g), last)
    bottom = F.cat((F.zeros_like(matrix), matrix), last)
    whole = F.matrix_exp(F.cat((top, bottom), last - 1))
    return (F.narrow(F.narrow(whole, last - 1, 0, n), last, n, n),)


@opaque(
    lambda a: np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape),
    key="power_zero",
    public=False,
    grad_fn="CopyBackwards",
    shape=lambda input: (input.shape, input.dtype),
    vjp=lambda g, out, input: F.zeros_like(input),
    samples=[S(t(2, 2))],
)
def power_zero(input: Tensor):
    """A matrix to the power 0: the identity, with slope 0."""


@function(
    name="linalg.matrix_power",
    aliases=["matrix_power"],
    key="matrix_power",
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


# -- pseudo-inverse and least squares --------------------------------------------------------------


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
    if a.size == 0:
        return np.zeros(np.swapaxes(a, -1, -2).shape, a.dtype)
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
            raise fail(
                "E308",
                f"`{name}` of {shape_text(input.shape)} needs one `{kind}` a matrix, got shape "
                f"{shape_text(bound.shape)}",
                help="a number goes for all matrices",
            )


def _pinv_shape(input, atol, rtol, hermitian):
    require_matrices("linalg.pinv", input, square=hermitian)
    *batch, m, n = input.shape
    _check_bounds("linalg.pinv", input, atol, rtol)
    return (*batch, n, m), input.dtype


@opaque(
    _pinv,
    name="linalg.pinv",
    key="pinv",
    method=False,
    grad_fn="LinalgPinvBackward0",
    eager=True,
    shape=_pinv_shape,
    vjp=lambda g, out, input, *rest: (_pinv_slope(g, out, input), None, None),
    samples=[S(t(3, 2)), S(t(2, 3)), S(t(2, 2, 2))],
    errors=[Bad("E308", t(3)), Bad("E308", t(2, 3), hermitian=True)],
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


@function(name="linalg.pinv", key="pinv_rcond", method=False, samples=[S(t(2, 2), 1e-3)])
def pinv_rcond(input: Tensor, rcond: Mask, hermitian: bool = False):
    """The pseudo-inverse with `rcond` in place of `rtol`."""
    return F.pinv(input, rtol=rcond, hermitian=hermitian)


@function(samples=[S(t(3, 2)), S(t(2, 2), rcond=1e-3)], errors=[Bad("E308", t(3))])
def pinverse(input: Tensor, rcond: float = 1e-15):
    """The pseudo-inverse; `linalg.pinv` is the newer name."""
    return F.pinv(input, rtol=rcond)


@function(
    name="linalg.matrix_rank",
    key="matrix_rank",
    method=False,
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
    key="rank",
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
    return ((*batch, A.shape[-1], B.shape[-1]), B.dtype), ranks, values


def _lstsq(a, b, rcond, driver):
    m, n = a.shape[-2:]
    batch = a.shape[:-2]
    U, values, Vh = F.linalg_svd.kernel(a, False)
    bound = np.finfo(a.dtype).eps * max(m, n) if rcond is None or driver == "gels" else rcond
    keep = values > bound * values.max(-1, initial=0)[..., None]
    inverse = np.divide(1, values, where=keep, out=np.zeros_like(values))
    found = np.swapaxes(Vh, -1, -2) @ (inverse[..., None] * (np.swapaxes(U, -1, -2) @ b))
    ranks = np.zeros(0, np.int64) if driver == "gels" else keep.sum(-1).reshape(batch)
    return found, ranks, values if driver in ("gelsd", "gelss") else np.zeros(0, a.dtype)


@opaque(
    _lstsq,
    key="lstsq_raw",
    public=False,
    eager=True,
    shape=_lstsq_shape,
    grad_fn="LinalgLstsqBackward0",
    samples=[S(t(3, 2), t(3, 1), None, None)],
)
def lstsq_raw(A: Tensor, B: Tensor, rcond: Any, driver: Any):
    """The least-squares solution, the rank and the singular values."""


@lstsq_raw.vjp
def _(g, out, A, B, rcond, driver):
    if missing(g[0]):
        return F.zeros_like(A), F.zeros_like(B)
    inverse = F.pinv(A)
    return _pinv_slope(g[0] @ transposed(B), inverse, A), transposed(inverse) @ g[0]


@composite(
    name="linalg.lstsq",
    key="lstsq",
    method=False,
    grad_fn="LinalgLstsqBackward0",
    fields=("solution", "residuals", "rank", "singular_values"),
    samples=[S(t(3, 2), t(3, 1)), S(t(2, 2), t(2, 2), driver="gelsd")],
    errors=[
        Bad("E301", t(3, 2), t(2, 1)),
        Bad("E205", t(2, 2), t(2, 1), driver="fast"),
        Bad("E308", t(3), t(3)),
    ],
)
def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None):
    """The X with the smallest `A X - B`, the squared residuals, A's rank and singular values."""
    require_matrices("linalg.lstsq", input)
    require_same_dtype("linalg.lstsq", input, b)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise fail(
            "E205",
            f"`linalg.lstsq` has no driver {driver!r}",
            help="the drivers are gels, gelsy, gelsd and gelss; leave it out for the default",
        )
    vector = input.ndim - 1 == b.ndim and b.shape == input.shape[:-1]
    right = F.unsqueeze(b, b.ndim) if vector else b
    m, n = input.shape[-2:]
    if right.ndim < 2 or right.shape[-2] != m:
        raise fail(
            "E301",
            f"`linalg.lstsq` cannot solve A X = B with A of shape {shape_text(input.shape)} "
            f"and B of shape {shape_text(b.shape)}",
            help=f"B needs {m} rows",
        )
    batch = broadcast_shapes(input.shape[:-2], right.shape[:-2])
    matrix = F.expand(input, (*batch, m, n)) if batch != input.shape[:-2] else input
    right = F.expand(right, (*batch, *right.shape[-2:])) if batch != right.shape[:-2] else right
    solution, ranks, values = F.lstsq_raw(matrix, right, rcond, driver or "gelsy")
    residuals = F.reshape(F.narrow(solution, -1, 0, 0), (0,))
    if m > n and driver != "gelsy" and driver is not None and _full_rank(ranks, n, driver):
        error = right - matrix @ solution
        residuals = F.sum(error * error, -2)
    if vector:
        solution = F.reshape(solution, solution.shape[:-1])
    return solution, residuals, ranks, F.detach(values)


def _full_rank(ranks, n, driver):
    return driver == "gels" or bool((value_of(ranks) == n).all())
