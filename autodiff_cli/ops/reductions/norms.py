"""Norms of vectors and distances between them."""

from __future__ import annotations

from math import inf

import numpy as np

from ...errors import fail, fault
from ...graph.declare import Any, Dim, Dims, Dtype, Ints, Scalar, Tensor, composite, function
from ...graph.dtypes import is_float, promote
from ...graph.op import cast, constant
from ...graph.params import dim_in_range
from ...graph.registry import F, overloads
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import broadcast_shapes, reduced_count
from ..kernels.matrices import require_same_dtype
from ..kernels.rules import ONCE, require_float, restored

# -- one vector ------------------------------------------------------------------------------------


def _norm_body(x, p, dim, keepdim):
    if p == 2:
        return F.sqrt(F.sum(F.mul(x, x), dim, keepdim))
    size = F.abs(x)
    if p == inf:
        return F.amax(size, dim or (), keepdim)
    if p == -inf:
        return F.amin(size, dim or (), keepdim)
    if p == 0:
        return F.sum(F.ne(x, 0), dim, keepdim, dtype=x.dtype)
    if p == 1:
        return F.sum(size, dim, keepdim)
    return F.pow(F.sum(F.pow(size, p), dim, keepdim), 1 / p)


def norm_slope(g, norm, x, p, dim, shared=True):
    """Cotangent of `x`, given its norm with the reduced dims kept; 0 where the norm is 0. In norms
    of order inf several largest elements share the slope, or have all of it each."""
    if p == 0:
        return F.zeros_like(x)
    sign = F.sgn(x)
    if p == 1:
        return F.mul(sign, g)
    if p == 2:
        return F.mul(g, F.where(F.eq(norm, 0), 0.0, F.div(x, norm)))
    size = F.abs(x)
    if p in (inf, -inf):
        hit = F.logical_or(F.eq(size, norm), F.isnan(size))
        if shared:
            g = F.div(g, F.sum(hit, dim, True))
        return sign * (g * hit)
    if p < 1:
        slope = F.mul(sign, F.where(F.eq(x, 0), 0.0, F.pow(size, p - 1)))
        return F.mul(F.mul(slope, g), F.pow(norm, 1 - p))
    slope = F.mul(sign, F.pow(size, p - 1)) if p < 2 else F.mul(x, F.pow(size, p - 2))
    return F.mul(slope, F.where(F.eq(norm, 0), 0.0, F.div(g, F.pow(norm, p - 1))))


VECTORS = [
    S(t(3)),
    S(t(2, 3), 1, 1),
    S(t(2, 3), 3, (0, 1), True),
    S(t(2, 3), inf, 1),
    S(t(), 2),
    S(t(4), 0.5),
    S(t(4), 1.5),
]


@composite(
    name="linalg.vector_norm",
    grad_fn="LinalgVectorNormBackward0",
    samples=VECTORS,
    errors=[Bad("E308", t(0), inf), Bad("E307", ints(3))],
    kink=lambda x, ord, dim, *rest: F.vector_norm(x, 2, dim),
    phrase="upstream times x / norm for the Euclidean norm, sign(x) * (|x| / norm)**(p - 1) else",
    saves="operands, results",
    lacks="ints bool: linalg.vector_norm: dtype should be floating point or complex, but got {0}",
    forward=lambda moves, out, x, ord, dim, keepdim, dtype: _norm_forward(
        moves[0], out, x, ord, dim, keepdim, dtype
    ),
)
def vector_norm(
    x: Tensor,
    ord: Scalar = 2,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
):
    """Norm of order `ord` over `dim`, or over everything; the slope at 0 is 0."""
    require_float("vector_norm", x, "RuntimeError")
    if dtype is not None and dtype.itemsize < x.dtype.itemsize:
        raise fault("E307 vector_norm-narrower", x, dtype)
    if (ord < 0 or ord == inf) and not reduced_count(x.shape, dim):
        raise fault("E308 norm-order-no-elements", ord, x)
    return _norm_body(x if dtype is None else cast(x, dtype), float(ord), dim, keepdim)


@vector_norm.vjp
def _(g, out, x, ord, dim, keepdim, dtype):
    if ord == 0:
        return (None,)
    full = x if dtype is None else cast(x, dtype)
    return (norm_slope(restored(g, x, dim), restored(out, x, dim), full, float(ord), dim),)


def _norm_forward(move, out, x, ord, dim, keepdim, dtype):
    """The slopes times the change, summed: what is left out of a slope is nan in no product."""
    if ord == 0:
        return None
    full, move = (v if dtype is None else cast(v, dtype) for v in (x, move))
    norm = restored(out, x, dim)
    slope = norm_slope(F.ones_like(norm), norm, full, float(ord), dim)
    return F.sum(F.mul(slope, move), dim, keepdim)


@composite(
    method=False,
    grad_fn="NormBackward1",
    samples=[S(t(2, 3), dim=(0, 1))],
    vjp=lambda g, out, input, dim, keepdim: (
        norm_slope(restored(g, input, dim), restored(out, input, dim), input, 2.0, dim),
    ),
)
def frobenius_norm(input: Tensor, dim: Dims, keepdim: bool = False):
    """The square root of the sum of the squares over `dim`."""
    return F.vector_norm(input, 2, dim, keepdim)


@composite(
    public=False,
    grad_fn=lambda x, p, dim, keepdim: "NormBackward0" if dim is None else "NormBackward1",
    samples=[S(t(2, 3), 3.0, 1, False)],
    phrase="upstream times x / norm for the Euclidean norm, sign(x) * (|x| / norm)**(p - 1) else",
    saves="operands, results",
)
def norm_along(x: Tensor, p: Scalar, dim: Dims | None, keepdim: bool):
    """`vector_norm` as PyTorch's own functions record it."""
    return F.vector_norm(x, p, dim, keepdim)


@function(
    samples=[
        S(t(2, 3)),
        S(t(2, 3), 1),
        S(t(2, 3), inf, 1, True),
        S(t(2, 3), "fro", (0, 1)),
        S(t(), 2),
    ]
)
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
):
    """Norm of order `p` of all elements, or over `dim`; "fro" is 2, "nuc" that of matrices."""
    count = 1 if isinstance(dim, int) or dim is None else len(dim)
    if isinstance(p, str) and not (p == "fro" and count <= 2):
        dims = tuple(range(input.ndim)) if dim is None else (dim,) if isinstance(dim, int) else dim
        return overloads("linalg.matrix_norm")[0](input, p, dims, keepdim, dtype=dtype)
    order = 2 if p is None or isinstance(p, str) else p
    return F.vector_norm(input, order, dim, keepdim, dtype=dtype)


@function(
    method=False,
    samples=[
        S(t(2, 3)),
        S(t(2, 3), 3, 1),
        S(t(2, 3), 2, -1),
        S(t(2, 3, 2), 1, 1),
        S(t(3)),
    ],
    errors=[Bad("E304", t(2, 3), 2, 2)],
)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0):
    """Norm of order `pow` over every dim but `dim`, with those kept; -1 stands for all of them."""
    require_float("norm_except_dim", v, "RuntimeError")
    if dim == -1:
        return F.norm_along(v, pow, None, False)
    kept = dim_in_range(dim, v.ndim)
    if dim not in (0, v.ndim - 1):
        return F.transpose(norm_except_dim(F.transpose(v, 0, kept), pow), 0, kept)
    if not v.ndim:
        raise fault("E304 norm_except_dim-no-dims", dim)
    n = v.shape[kept]
    rows, others, shape = (
        ((-1, n), 0, (*(1,) * kept, n)) if kept else ((n, -1), 1, (n, *(1,) * (v.ndim - 1)))
    )
    norms = F.norm_along(F.view(F.contiguous(v), rows), pow, (others,), False)
    return F.view(norms, shape)


# -- pairs of vectors ------------------------------------------------------------------------------


@composite(
    samples=[S(t(2, 3), t(2, 3)), S(t(2, 3), t(3), 1), S(t(3), t(3), inf)],
    phrase="upstream times (x - y) / distance for p=2, to the second its negative",
    saves="operands, results",
)
def dist(input: Tensor, other: Tensor, p: Scalar = 2):
    """Norm of order `p` of the difference."""
    return F.vector_norm(F.sub(input, other), p)


@function(
    name="nn.functional.pairwise_distance",
    aliases=["pairwise_distance"],
    samples=[S(t(2, 3), t(2, 3)), S(t(3), t(3), 1.0, keepdim=True)],
)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: Scalar = 2.0, eps: float = 1e-6, keepdim: bool = False
):
    """Distances between rows; `eps` is added to each difference."""
    difference = F.add(F.sub(x1, x2), eps)
    return F.norm_along(difference, p, -1, keepdim)


@function(
    name="nn.functional.cosine_similarity",
    aliases=["cosine_similarity"],
    samples=[S(t(2, 3), t(2, 3)), S(t(3), t(2, 3), dim=1)],
)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8):
    """Cosines of the angles between vectors along `dim`; norms below `eps` count as `eps`."""
    if not eps >= 0:
        raise fault("E504 needs-parameter", "cosine_similarity", "eps", ">= 0", eps)
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = F.expand(x1, shape), F.expand(x2, shape)
    dtype = promote(x1.dtype, x2.dtype)
    x1, x2 = (x if is_float(x.dtype) else F.to(x, dtype) for x in (x1, x2))
    require_float("cosine_similarity", x1, "RuntimeError")

    def unit(x):
        size = F.vector_norm(x, 2, dim, True)
        return F.div(x, F.with_value(size, F.detach(F.clamp(size, eps))))

    return F.sum(F.mul(unit(x1), unit(x2)), dim)


@function(name="nn.functional.normalize", samples=[S(t(2, 3)), S(t(2, 3), 1.0, 0), S(t(3), dim=0)])
def normalize(input: Tensor, p: Scalar = 2.0, dim: Any = 1, eps: float = 1e-12):
    """Vectors along `dim` scaled to norm 1; norms below `eps` count as `eps`."""
    size = F.clamp_min(F.norm(input, p, dim, True), eps)
    return F.div(input, F.expand(size, input.shape))


@function(
    name="linalg.vecdot",
    aliases=["vecdot"],
    samples=[S(t(3), t(3)), S(t(2, 3), t(3)), S(t(2, 3), t(2, 3), dim=0)],
    errors=[Bad("E302", t(2, 3), t(2))],
)
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1):
    """Dot products of vectors along `dim`."""
    require_float("linalg.vecdot", x, "RuntimeError")
    require_same_dtype("linalg.vecdot", x, y)
    if x.ndim == 1 and y.ndim == 1:
        return F.vdot(x, y)
    return F.sum(F.mul(x, y), dim)


@composite(
    inplace=True,
    properties=frozenset({"row-major"}),
    samples=[S(t(2, 3), 2, 0, 0.5), S(t(2, 3), 1, 1, 1.5)],
    errors=[Bad("E308", t(3), 2, 0, 1.0)],
    phrase="scaled like the rows that were too long, less what their norm takes",
)
def renorm(input: Tensor, p: Scalar, dim: Dim, maxnorm: Scalar):
    """Slices along `dim` with a norm above `maxnorm` are scaled down to it."""
    if input.ndim < 2:
        raise fault("E308 renorm-needs-least-dims", input)
    if p <= 0 or not maxnorm >= 0:
        raise fault("E504 renorm-order-maxnorm", p, maxnorm)
    others = tuple(d for d in range(input.ndim) if d != dim)
    size = F.vector_norm(input, p, others, True)
    return F.mul(input, F.where(F.gt(size, maxnorm), F.div(maxnorm, F.add(size, 1e-7)), 1.0))


@renorm.vjp
def _(g, out, input, p, dim, maxnorm):
    others = tuple(d for d in range(input.ndim) if d != dim)
    size = F.vector_norm(input, p, others, True)
    inverse = F.reciprocal(F.add(size, 1e-7))
    to_size = F.sum(F.mul(input, g), others, True)
    through_size = F.mul(inverse, norm_slope(to_size, size, input, float(p), others))
    scaled = F.mul(F.mul(inverse, maxnorm), F.sub(g, through_size))
    return (F.where(F.gt(size, maxnorm), scaled, g),)


# -- distances between all pairs -------------------------------------------------------------------


@composite(
    public=False,
    samples=[S(t(2, 3), 1.5), S(t(2, 3), inf)],
    kink=lambda input, p: F.sqrt(F.sum(input * input, (input.ndim - 1,))),
)
def row_norms(input: Tensor, p: float):
    """`vector_norm` over the last dim as `cdist` and `pdist` differentiate it."""
    last = (input.ndim - 1,)
    return _norm_body(input, p, last, False) if input.shape[-1] else F.sum(input, last)


@row_norms.vjp
def _(g, out, input, p):
    last = (input.ndim - 1,)
    return (
        norm_slope(
            restored(g, input, last), restored(out, input, last), input, p, last, shared=False
        ),
    )


@composite(
    public=False,
    no_forward="_euclidean_dist",
    samples=[S(t(2, 3), t(4, 3))],
    kink=lambda x1, x2: F.euclidean_dist(x1, x2),
)
def euclidean_dist(x1: Tensor, x2: Tensor):
    """Distances between rows of `x1` and rows of `x2` by one matrix product."""
    one = F.sum(F.mul(x1, x1), (-1,), True)
    two = F.sum(F.mul(x2, x2), (-1,), True)
    both = F.add(
        F.add(F.mul(F.matmul(x1, F.transpose(x2, -2, -1)), -2.0), one), F.transpose(two, -2, -1)
    )
    return F.sqrt(F.clamp_min(both, 0))


@euclidean_dist.vjp
def _(g, out, x1, x2):
    ratio = F.where(F.eq(out, 0), 0.0, F.div(g, out))
    to_one = F.sub(F.mul(x1, F.sum(ratio, (-1,), True)), F.matmul(ratio, x2))
    flipped = F.transpose(ratio, -2, -1)
    to_two = F.sub(F.mul(x2, F.sum(flipped, (-1,), True)), F.matmul(flipped, x1))
    return to_one, to_two


@composite(
    public=False,
    grad_fn="CdistBackward0",
    samples=[S(t(2, 3), t(4, 3), 3.0, **ONCE)],
    no_forward="_cdist_forward",
    phrase="upstream times (x - y) / distance of each pair, for p=2",
    saves="operands, results",
)
def cdist_all(x1: Tensor, x2: Tensor, p: float):
    """Distances of order `p` between all rows, by differences."""
    x1, x2 = (F.once(x, "_cdist_backward") for x in (x1, x2))
    return F.row_norms(F.sub(F.unsqueeze(x1, -2), F.unsqueeze(x2, -3)), p)


def _by_product(p, mode, x1, x2):
    if mode not in (
        "use_mm_for_euclid_dist_if_necessary",
        "use_mm_for_euclid_dist",
        "donot_use_mm_for_euclid_dist",
    ):
        raise fault("E205 cdist-no-compute_mode", mode)
    if p != 2 or 0 in x1.shape or 0 in x2.shape:
        return False
    many = x1.shape[-2] > 25 or x2.shape[-2] > 25
    return mode == "use_mm_for_euclid_dist" or (many and mode.endswith("necessary"))


@function(
    samples=[
        S(t(3, 2), t(2, 2), **ONCE),
        S(t(2, 3, 2), t(2, 2), 1.0, **ONCE),
        S(t(2, 2), t(3, 2), inf, **ONCE),
    ],
    method=False,
    errors=[Bad("E308", t(2, 3), t(2, 2)), Bad("E308", t(3), t(3))],
    lacks="cdist float16",
)
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
):
    """Distances of order `p` between all rows of `x1` and all rows of `x2`."""
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise fault("E308 cdist-x-x", x1, x2)
    require_same_dtype("cdist", x1, x2)
    require_float("cdist", x1, "RuntimeError")
    if not p >= 0:
        raise fail("E504", f"`cdist` of order {p}", help="the order must not be negative")
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1, x2 = (
        x if x.shape[:-2] == batch else F.expand(x, (*batch, *x.shape[-2:])) for x in (x1, x2)
    )
    if _by_product(p, compute_mode, x1, x2):
        distances = F.euclidean_dist(x1, x2)
        return F.view(distances, distances.shape)
    return F.cdist_all(x1, x2, p)


@composite(
    name="nn.functional.pdist",
    aliases=["pdist"],
    samples=[S(t(3, 2), **ONCE), S(t(3, 2), 1.0, **ONCE)],
    errors=[Bad("E308", t(3)), Bad("E307", ints(2, 2))],
    no_forward="_pdist_forward",
    phrase="upstream times (x - y) / distance of each pair, for p=2",
    saves="operands, results",
    lacks="pdist float16",
)
def pdist(input: Tensor, p: float = 2.0):
    """Distances of order `p` between all pairs of rows: the upper triangle of `cdist`, in rows."""
    if input.ndim != 2:
        raise fault("E308 pdist-takes-dims", input)
    if not p >= 0:
        raise fail("E504", f"`pdist` of order {p}", help="the order must not be negative")
    require_float("pdist", input, "RuntimeError")
    input = F.once(input, "_pdist_backward")
    first, second = np.triu_indices(input.shape[0], 1)
    return F.row_norms(
        F.sub(
            F.index_select(input, 0, constant(first)), F.index_select(input, 0, constant(second))
        ),
        p,
    )
