"""Orthogonal decompositions: QR, Householder reflections, singular values, eigenvalues; by LAPACK.

Rules are those of Giles (2008) and Walter and Lehmann (2012), in graph ops.
"""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Tensor, composite, function, opaque
from ...graph.dtypes import BOOL
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.state import STATE
from ..kernels.eigenvector_signs import directed
from ..kernels.matrices import (
    COLUMNS,
    columns,
    diagonal_times,
    each,
    identity,
    lapack,
    missing,
    require_matrices,
    require_same_dtype,
    rest_columns,
    rows,
    singular,
    times_diagonal,
    transposed,
)
from ..kernels.rules import no_derivative
from .factorization import positive

# -- QR --------------------------------------------------------------------------------------------


def _qr(a, mode):
    if mode == "r":
        return np.zeros(0, a.dtype), np.linalg.qr(a, "r")
    return tuple(np.linalg.qr(a, mode))


def _qr_shape(A, mode):
    require_matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise fault("E205 linalg-qr-no-mode", mode)
    *batch, m, n = A.shape
    size = m if mode == "complete" else min(m, n)
    return ((0,) if mode == "r" else (*batch, m, size), A.dtype), ((*batch, size, n), A.dtype)


@opaque(
    _qr,
    name="linalg.qr",
    shape=_qr_shape,
    fields=("Q", "R"),
    properties=COLUMNS,
    samples=[S(t(3, 3)), S(t(3, 2)), S(t(2, 3)), S(t(2, 3), mode="complete")],
    errors=[Bad("E308", t(3)), Bad("E205", t(2, 2), mode="full")],
    phrase="(gQ + Q * the lower part of what Q and R get) R**-T",
    lacks="geqrf_cpu float16",
)
def linalg_qr(A: Tensor, mode: str = "reduced"):
    """Q with orthonormal columns and an upper triangular R with `A = Q @ R`."""


@linalg_qr.vjp
def _(g, out, A, mode):
    (to_q, to_r), (Q, R) = g, out
    m, n = A.shape[-2:]
    if mode == "r":
        raise fault("E404 linalg-qr-mode-r")
    if mode == "complete" and m > n:
        raise fault("E404 linalg-qr-mode-complete", m, n)
    k = min(m, n)
    to_r1, R1 = columns(to_r, k), columns(R, k)
    inner = to_r1 @ transposed(R1)
    if m < n:
        to_r2, R2 = rest_columns(to_r, k), rest_columns(R, k)
        cross = R2 @ transposed(to_r2)
        to_q = to_q + Q @ cross
    inner = F.triu(inner - transposed(Q) @ to_q)
    even = F.triu(inner, 1) + transposed(inner)
    grad = F.solve_triangular(transposed(R1), Q @ even + to_q, upper=False, left=False)
    return (F.cat((grad, Q @ to_r2), A.ndim - 1) if m < n else grad,)


@function(fields=("Q", "R"), samples=[S(t(3, 2)), S(t(2, 3), some=False)])
def qr(input: Tensor, some: bool = True):
    """Q and R with `input = Q @ R`; `linalg.qr` is the newer name."""
    return F.linalg_qr(input, "reduced" if some else "complete")


def _geqrf(a):
    m, n = a.shape[-2:]
    outputs = [((m, n), a.dtype), ((min(m, n),), a.dtype)]
    (geqrf,) = lapack(a, "geqrf")
    return each(lambda a: geqrf(a)[:2], outputs, a)


def _geqrf_shape(input):
    require_matrices("geqrf", input)
    *batch, m, n = input.shape
    return (input.shape, input.dtype), ((*batch, min(m, n)), input.dtype)


@opaque(
    _geqrf,
    shape=_geqrf_shape,
    fields=("a", "tau"),
    properties=COLUMNS,
    vjp=no_derivative("geqrf", "geqrf"),
    samples=[S(t(3, 2, grad=False))],
    lacks="geqrf_cpu ints bool float16",
)
def geqrf(input: Tensor):
    """LAPACK's QR: R and Householder vectors in one matrix, and their factors; no derivative."""


def _reflectors(name, A, tau):
    """V and T with `H_1 H_2 ... = I - V T V.mT`, the compact form of Householder reflections.

    T solves `(I + diag(tau) S) T = diag(tau)` with S the strict upper triangle of `V.mT @ V`.
    """
    require_matrices(name, A)
    *batch, m, n = A.shape
    *alike, k = tau.shape or (m + n + 1,)  # a number is refused
    whole = name == "ormqr"
    if alike != batch or k > min(m, n) or (whole and k < min(m, n)):
        count = "exactly" if whole else "at most"
        raise fault("E308 needs-most-factor-each", name, count, A.shape, tau)
    require_same_dtype(name, A, tau)
    V = F.tril(columns(A, k), -1) + F.eye(A.shape[-2], k, dtype=A.dtype)
    mixed = diagonal_times(tau, F.triu(transposed(V) @ V, 1))
    return V, F.solve_triangular(mixed, F.diag_embed(tau), upper=True, unitriangular=True)


@composite(
    name="linalg.householder_product",
    method=True,
    aliases=["orgqr"],
    grad_fn="LinalgHouseholderProductBackward0",
    properties=COLUMNS,
    samples=[S(t(3, 2), t(2)), S(t(3, 3), t(2))],
    errors=[Bad("E308", t(2, 3), t(2)), Bad("E308", t(3, 2), t(3))],
    phrase="product rule through the reflections",
    saves="operands, results",
    lacks="orgqr_cpu ints bool float16",
)
def householder_product(input: Tensor, tau: Tensor):
    """The first columns of the product of Householder reflections `I - tau_i v_i v_i.mT`."""
    V, factor = _reflectors("linalg.householder_product", input, tau)
    m, n = input.shape[-2:]
    if m < n:
        raise fault("E308 linalg-householder_product-needs-least", input)
    if 0 in tau.shape:
        return F.expand(F.eye(m, n, dtype=input.dtype), input.shape)
    return F.eye(m, n, dtype=input.dtype) - V @ (factor @ transposed(rows(V, n)))


@composite(
    properties=COLUMNS,
    samples=[S(t(3, 2), t(2), t(3, 2)), S(t(3, 2), t(2), t(2, 3), left=False, transpose=True)],
    errors=[Bad("E301", t(3, 2), t(2), t(2, 2))],
    no_forward="ormqr",
    phrase="product rule through the reflections",
    saves="operands, results",
    lacks="ormqr_cpu ints bool float16",
)
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False):
    """`Q @ other` for the whole product Q of reflections.

    With `left=False` it is `other @ Q`, with `transpose` Q is transposed.
    """
    V, factor = _reflectors("ormqr", input, tau)
    require_same_dtype("ormqr", input, other)
    if other.ndim != input.ndim or other.shape[-2 if left else -1] != input.shape[-2]:
        raise fault("E301 ormqr-cannot-multiply-q", input.shape[-2], other)
    if 0 in tau.shape:
        return other
    if transpose:
        factor = transposed(factor)
    if left:
        return other - V @ (factor @ (transposed(V) @ other))
    return other - ((other @ V) @ factor) @ transposed(V)


# -- singular values -------------------------------------------------------------------------------

NOT_CONVERGED = (
    "the algorithm failed to converge because the matrix contains values that are not finite"
)


def _svd(a, full_matrices):
    return tuple(_by_lapack(a, full_matrices, True))


def _singular_values(a):
    return _by_lapack(a, False, False)[0]


def _by_lapack(a, full_matrices, vectors):
    """LAPACK's arrays; nan where a matrix has an inf, with which it might not end."""
    infinite = np.isinf(a).any((-2, -1), keepdims=True)
    try:
        found = np.linalg.svd(np.where(infinite & ~np.isnan(a), 0, a), full_matrices, vectors)
    except np.linalg.LinAlgError:
        raise singular("linalg.svd", NOT_CONVERGED) from None
    parts = found if vectors else (found,)
    return [np.where(infinite if x.ndim == a.ndim else infinite[..., 0], np.nan, x) for x in parts]


def _to_crossing(values, positive):
    """How far values are from each other and, where they are bound to be positive, from 0."""
    gaps = F.gaps(values, values.ndim - 1)
    return F.cat((gaps, values), values.ndim - 1) if positive else gaps


def _svd_shape(A, full_matrices=True):
    require_matrices("linalg.svd", A)
    *batch, m, n = A.shape
    k = min(m, n)
    left, right = (m, n) if full_matrices else (k, k)
    return ((*batch, m, left), A.dtype), ((*batch, k), A.dtype), ((*batch, right, n), A.dtype)


@opaque(
    _svd,
    name="linalg.svd",
    eager=True,
    shape=_svd_shape,
    fields=("U", "S", "Vh"),
    properties=COLUMNS,
    samples=[S(t(2, 2)), S(t(3, 2), full_matrices=False), S(t(2, 2, 3), full_matrices=False)],
    errors=[Bad("E308", t(2)), Bad("E503", t(values=[[1.0, float("nan")], [2.0, 1.0]]))],
    kink=lambda A, *rest: _to_crossing(F.svdvals(A), True),
    phrase="U (diag(gS) + what turns U and V, over differences of squares of S) V.T",
    saves="results",
    lacks="linalg_svd_cpu float16",
)
def linalg_svd(A: Tensor, full_matrices: bool = True):
    """U, S and Vh with `A = U @ diag(S) @ Vh`, S descending; signs of the vectors are not unique.

    Slopes of U and Vh are finite only where all singular values differ.
    """


@linalg_svd.vjp
def _(g, out, A, full_matrices):
    U, S, Vh = out
    to_u, to_s, to_vh = (None if missing(part) else part for part in g)
    m, n = A.shape[-2:]
    k = min(m, n)
    U, Vh = columns(U, k), rows(Vh, k)
    if to_u is None and to_vh is None:
        return (times_diagonal(U, g[1]) @ Vh,)
    squares = S * S
    gaps = F.unsqueeze(squares, S.ndim - 1) - F.unsqueeze(squares, S.ndim) + identity(k, S.dtype)
    inner = 0.0 if to_s is None else F.diag_embed(to_s)
    if to_u is not None:
        to_u = columns(to_u, k)
        inner = times_diagonal(_skew(transposed(U) @ to_u) / gaps, S) + inner
    if to_vh is not None:
        to_vh = rows(to_vh, k)
        inner = diagonal_times(S, _skew(Vh @ transposed(to_vh)) / gaps) + inner
    grad = U @ inner
    if m > k and to_u is not None:
        scaled = to_u / F.unsqueeze(S, S.ndim - 1)
        grad = grad + scaled - U @ (transposed(U) @ scaled)
    grad = grad @ Vh
    if n > k and to_vh is not None:
        scaled = to_vh / F.unsqueeze(S, S.ndim)
        grad = grad + U @ (scaled - (scaled @ transposed(Vh)) @ Vh)
    return (grad,)


def _skew(x):
    return x - transposed(x)


@opaque(
    _singular_values,
    public=False,
    eager=True,
    shape=lambda A: _svd_shape(A)[1],
    samples=[S(t(3, 2, grad=False))],
)
def singular_values(A: Tensor):
    """Singular values, without their vectors."""


@function(
    name="linalg.svdvals",
    samples=[S(t(2, 2)), S(t(3, 2))],
    errors=[Bad("E308", t(2))],
    kink=lambda A: _to_crossing(F.svdvals(A), True),
    lacks="linalg_svd_cpu float16",
)
def svdvals(A: Tensor):
    """Singular values, descending."""
    moves = A.requires_grad or STATE.dual
    return F.linalg_svd(A, False)[1] if moves else F.singular_values(A)


@function(fields=("U", "S", "V"), samples=[S(t(2, 2)), S(t(3, 2))], errors=[Bad("E308", t(2))])
def svd(input: Tensor, some: bool = True, compute_uv: bool = True):
    """U, S and V with `input = U @ diag(S) @ V.mT`; `linalg.svd` is the newer name."""
    if not compute_uv:
        *batch, m, n = input.shape
        zeros = (F.zeros((*batch, size, size), dtype=input.dtype) for size in (m, n))
        return next(zeros), F.svdvals(input), next(zeros)
    U, values, Vh = F.linalg_svd(input, not some)
    return U, values, F.transpose(Vh, -2, -1)


# -- eigenvalues of symmetric matrices -------------------------------------------------------------


def _eigh(a, uplo):
    finite = np.isfinite(a).all((-2, -1), keepdims=True)
    values, vectors = np.linalg.eigh(np.where(finite, a, 0), uplo.upper())
    return np.where(finite[..., 0], values, np.nan), np.where(finite, vectors, np.nan)


def _eigh_shape(name, input, UPLO):
    require_matrices(name, input, square=True)
    if UPLO.upper() not in ("L", "U"):
        raise fault("E205 reads-triangle-l-u", name, UPLO)
    return (input.shape[:-1], input.dtype), (input.shape, input.dtype)


def _directed_eigh(a, uplo):
    values, vectors = _eigh(a, uplo)
    return values, directed(a, vectors, uplo.upper() == "L")


def _eigh_in_jax(input, UPLO):
    return f"np.linalg.eigh(input, {UPLO.upper()!r}, False)"  # as it is, not made symmetric


@opaque(
    _directed_eigh,
    jax=_eigh_in_jax,
    name="linalg.eigh",
    grad_fn="LinalgEighBackward0",
    shape=lambda input, UPLO: _eigh_shape("linalg.eigh", input, UPLO),
    fields=("eigenvalues", "eigenvectors"),
    properties=COLUMNS,
    samples=[S(positive(2)), S(positive(3), UPLO="U")],
    errors=[Bad("E308", t(2, 3)), Bad("E205", t(2, 2), UPLO="x")],
    kink=lambda input, UPLO: _to_crossing(F.eigvalsh(input, UPLO), False),
    phrase="V (diag(g) + (V.T gV) / (differences of eigenvalues)) V.T",
    lacks="linalg_eigh_cpu ints bool float16",
)
def eigh(input: Tensor, UPLO: str = "L"):
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix; one triangle is read.

    Slopes of the vectors are finite only where all eigenvalues differ.
    """


@eigh.vjp
def _(g, out, input, UPLO):
    values, vectors = out
    if missing(g[1]):
        return (times_diagonal(vectors, g[0]) @ transposed(vectors),)
    n = values.shape[-1]
    gaps = (
        F.unsqueeze(values, values.ndim - 1)
        - F.unsqueeze(values, values.ndim)
        + identity(n, values.dtype)
    )
    inner = F.where(
        F.eye(n, dtype=BOOL), F.diag_embed(g[0]), _skew(transposed(vectors) @ g[1]) * 0.5 / gaps
    )
    return (vectors @ inner @ transposed(vectors),)


@opaque(
    lambda a, UPLO: _eigh(a, UPLO)[0],
    jax=lambda input, UPLO: f"{_eigh_in_jax(input, UPLO)}[0]",
    name="linalg.eigvalsh",
    grad_fn="LinalgEighBackward0",
    shape=lambda input, UPLO: _eigh_shape("linalg.eigvalsh", input, UPLO)[0],
    samples=[S(positive(2)), S(positive(3), UPLO="U")],
    kink=lambda input, UPLO: _to_crossing(F.eigvalsh(input, UPLO), False),
    properties=frozenset({"saves its factors", "saves no operands"}),
    phrase="V diag(g) V.T, where V has the eigenvectors",
    saves="results",
    lacks="linalg_eigh_cpu ints bool float16",
)
def eigvalsh(input: Tensor, UPLO: str = "L"):
    """Eigenvalues of a symmetric matrix, ascending."""


@eigvalsh.vjp
def _(g, out, input, UPLO):
    _, vectors = F.eigh(input, UPLO)
    return (times_diagonal(vectors, g) @ transposed(vectors),)
