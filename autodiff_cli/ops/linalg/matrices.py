"""Products of several matrices, traces, norms and condition numbers of matrices."""

from __future__ import annotations

from itertools import pairwise

from ...errors import fail, fault
from ...graph.declare import (
    Any,
    DimList,
    Dims,
    Dtype,
    Tensor,
    TensorList,
    Tensors,
    composite,
    function,
)
from ...graph.dtypes import FLOAT32
from ...graph.op import cast, known, number, value_of
from ...graph.params import dim_in_range
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.shapes import broadcast_shapes, count
from ...graph.sizes import shape_text
from ..kernels.matrices import require_matrices, require_numbers, require_same_dtype
from ..kernels.rules import require_float


@composite(
    samples=[S(t(3, 3)), S(t(2, 3))],
    errors=[Bad("E308", t(3)), Bad("E308", t(2, 2, 2))],
    phrase="upstream on the diagonal, zero elsewhere",
)
def trace(input: Tensor):
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise fault("E308 trace-needs-matrix", input)
    require_numbers("trace", input)
    return F.sum(F.diagonal(input))


# -- cross product ---------------------------------------------------------------------------------


@composite(
    name="linalg.cross",
    samples=[S(t(3), t(3)), S(t(2, 3), t(1, 3)), S(t(3, 2), t(3, 2), dim=0)],
    errors=[
        Bad("E308", t(2), t(2), words="size 3"),
        Bad("E308", t(3), t(2, 3)),
        Bad("E302", t(2, 3), t(4, 3)),
    ],
    phrase="cross products: the first gets other x g, the second g x input",
)
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1):
    """The cross product of vectors with 3 elements along `dim`."""
    require_same_dtype("linalg.cross", input, other)
    if input.ndim != other.ndim:
        raise fault("E308 cross-needs-tensors-equally", input, other)
    axis = dim_in_range(dim, input.ndim)
    if not input.ndim or input.shape[axis] != 3 or other.shape[axis] != 3:
        raise fault("E308 cross-needs-dim-size", dim, input, other)
    dims = (axis,)
    less = F.roll(input, 1, dims) * F.roll(other, -1, dims)
    if less.dtype == FLOAT32:  # PyTorch's kernel rounds one of the two products
        return F.add_product(-less, F.roll(input, -1, dims), F.roll(other, 1, dims))
    return F.roll(input, -1, dims) * F.roll(other, 1, dims) - less


@linalg_cross.vjp
def _(g, out, input, other, dim):
    to_input = F.linalg_cross(other, g, dim=dim)
    to_other = F.linalg_cross(g, input, dim=dim)
    return F.sum_to_size(to_input, input.shape), F.sum_to_size(to_other, other.shape)


@function(
    samples=[S(t(3, 2), t(3, 2)), S(t(2, 3), t(2, 3), dim=1)],
    errors=[Bad("E308", t(2, 2), t(2, 2))],
)
def cross(input: Tensor, other: Tensor, dim: int | None = None):
    """The cross product along `dim`, by default along the first dim of size 3."""
    if dim is None:
        shape = broadcast_shapes(input.shape, other.shape)
        if 3 not in shape:
            raise fault("E308 cross-needs-dim-size-2", input, other)
        dim = shape.index(3)
    return F.linalg_cross(input, other, dim=dim)


# -- products of several matrices ------------------------------------------------------------------


def _cheapest(shapes):
    """The pairs to multiply, by dynamic programming over the cost of each product."""
    n = len(shapes)
    sizes = [shapes[0][0], *(s[1] for s in shapes)]
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i][j], split[i][j] = min(options)
    return split


def _product(tensors, split, i, j):
    if i == j:
        return tensors[i]
    k = split[i][j]
    return _product(tensors, split, i, k) @ _product(tensors, split, k + 1, j)


@function(
    name="linalg.multi_dot",
    samples=[
        S([t(2, 3), t(3, 2), t(2, 2)]),
        S([t(3), t(3, 2)]),
        S([t(2, 3), t(3)]),
        S([t(2), t(2)]),
    ],
    errors=[
        Bad("E205", [t(2, 2)]),
        Bad("E301", [t(2, 2), t(3, 2)]),
        Bad("E308", [t(2, 2), t(2), t(2, 2)]),
    ],
)
def multi_dot(tensors: Tensors):
    """The product of matrices in the cheapest order; the first and the last may be vectors."""
    if len(tensors) < 2:
        raise fault("E205 linalg-multi_dot-needs-least", len(tensors))
    matrices = list(tensors)
    head, tail = matrices[0].ndim == 1, matrices[-1].ndim == 1
    if head:
        matrices[0] = F.unsqueeze(matrices[0], 0)
    if tail:
        matrices[-1] = F.unsqueeze(matrices[-1], 1)
    for i, x in enumerate(matrices):
        if x.ndim != 2:
            raise fault("E308 linalg-multi_dot-takes-matrices", i, tensors[i].shape)
    for i, (a, b) in enumerate(pairwise(matrices)):
        if a.shape[1] != b.shape[0]:
            raise fail(
                "E301",
                f"`linalg.multi_dot` cannot multiply {shape_text(tensors[i].shape)} with "
                f"{shape_text(tensors[i + 1].shape)}: sizes {a.shape[1]} and {b.shape[0]} differ",
                help=f"see tensors {i} and {i + 1} of the list",
            )
    split = _cheapest([x.shape for x in matrices])
    found = _product(matrices, split, 0, len(matrices) - 1)
    return F.reshape(found, found.shape[int(head) : 2 - int(tail)])


@function(method=False, samples=[S(t(2, 3), t(3, 2), t(2, 1))])
def chain_matmul(matrices: TensorList):
    """The product of matrices in the cheapest order; `linalg.multi_dot` is the newer name."""
    return F.clone(matrices[0]) if len(matrices) == 1 else F.multi_dot(matrices)


def _powers(x, n):
    ones = F.expand(number(1, x.dtype), (*x.shape, 1))
    if n <= 1:
        return F.narrow(ones, x.ndim, 0, n)
    bases = F.expand(F.unsqueeze(x, x.ndim), (*x.shape, n - 1))
    return F.cat((ones, F.cumprod(bases, x.ndim)), x.ndim)


@function(
    name="linalg.vander",
    samples=[S(t(3)), S(t(2, 2), N=3)],
    errors=[Bad("E309", t(2), N=1)],
    lacks="float16: linalg.vander supports floating point, complex, and integer tensors, but got "
    "Half",
)
def linalg_vander(x: Tensor, *, N: int | None = None):
    """Powers 0 to `N - 1` of each element, as rows."""
    require_numbers("linalg.vander", x)
    x = x if x.ndim else F.reshape(x, (1,))
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise fault("E309 linalg-vander-needs-n", n)
    return _powers(x, n)


@function(
    method=False,
    samples=[
        S(t(3), order=0, because="PyTorch cannot differentiate it"),
        S(t(2), 3, increasing=True, order=0, because="PyTorch cannot differentiate it"),
    ],
    errors=[Bad("E308", t(2, 2)), Bad("E309", t(2), -1)],
)
def vander(x: Tensor, N: int | None = None, increasing: bool = False):
    """Powers of each element of a vector, as rows; the highest power first unless `increasing`."""
    if x.ndim != 1:
        raise fault("E308 vander-needs-vector", x)
    n = x.shape[0] if N is None else N
    if n < 0:
        raise fault("E309 vander-needs-n-least", n)
    found = _powers(x, n)
    if increasing:
        found.mark().name = "CopySlices"  # written in place
    return found if increasing else F.flip(found, (1,))


# -- norms -----------------------------------------------------------------------------------------


def _extreme(x, dim, largest, keepdim):
    """The largest or smallest entry along `dim`; the largest along an empty dim is 0."""
    if largest and x.shape[dim] == 0:
        x = F.sum(x, dim, True)
    return (F.amax if largest else F.amin)(x, dim, keepdim)


@function(
    name="linalg.matrix_norm",
    samples=[
        S(t(2, 3)),
        S(t(2, 3), "nuc"),
        S(t(2, 2, 3), 2, (0, 2), True),
        S(t(2, 3), 1),
        S(t(2, 3), float("-inf")),
    ],
    errors=[Bad("E304", t(3)), Bad("E205", t(2, 2), 3), Bad("E304", t(2, 2), "fro", (0, 0))],
)
def matrix_norm(
    input: Tensor,
    ord: Any = "fro",
    dim: Dims = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
):
    """The norm of matrices: `"fro"`, `"nuc"`, 2, -2 (singular values), 1, -1, inf, -inf (sums)."""
    require_matrices("linalg.matrix_norm", input)
    input = _in_dtype("linalg.matrix_norm", input, dtype)
    if len(dim) != 2:
        raise fault("E304 linalg-matrix_norm-needs-two", len(dim))
    if ord == "fro":
        return F.vector_norm(input, 2, dim, keepdim)
    first, last = dim
    if ord in ("nuc", 2, -2):
        others = tuple(d for d in range(input.ndim) if d not in dim)
        order = (*others, first, last)
        values = F.svdvals(F.permute(input, order))
        axis = values.ndim - 1
        found = (
            F.sum(values, axis, keepdim)
            if ord == "nuc"
            else _extreme(values, axis, ord == 2, keepdim)
        )
        if keepdim:
            found = F.permute(
                F.unsqueeze(found, found.ndim), tuple(order.index(d) for d in range(input.ndim))
            )
        return found
    if ord not in (1, -1, float("inf"), float("-inf")):
        raise fault("E205 linalg-matrix_norm-no-order", ord)
    if abs(ord) == 1:
        first, last = last, first
    sums = F.vector_norm(input, 1, (last,), keepdim)
    axis = first - 1 if first > last and not keepdim else first
    return _extreme(sums, axis, ord > 0, keepdim)


def _in_dtype(name, input, dtype):
    require_float(name, input, "RuntimeError")
    if dtype is None or dtype == input.dtype:
        return input
    if dtype.kind != "f" or dtype.itemsize < input.dtype.itemsize:
        raise fault("E307 cannot-narrow-input-dtype", name, input, dtype)
    return cast(input, dtype)


@function(
    name="linalg.norm",
    samples=[
        S(t(2, 3)),
        S(t(3), 3),
        S(t(2, 3), "nuc"),
        S(t(2, 2, 3), 1, (0, 1)),
        S(t(2, 3), float("inf"), 1, True),
    ],
    errors=[
        Bad("E308", t(2, 2, 2), "nuc"),
        Bad("E304", t(2, 2, 2), 2, (0, 1, 2)),
        Bad("E307", t(2, dtype="int64")),
    ],
)
def linalg_norm(
    input: Tensor,
    ord: Any = None,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
):
    """Norm of vectors (one dim) or matrices (two dims); without `ord` that of all elements."""
    if dim is not None and input.shape and len(dim) not in (1, 2):
        raise fault("E304 linalg-norm-takes-two", tuple(dim))
    if ord is None:
        return F.vector_norm(input, 2, dim, keepdim, dtype=dtype)
    if dim is None and input.ndim not in (1, 2):
        raise fault("E308 linalg-norm-ord-needs", input)
    if isinstance(ord, str) or (input.ndim if dim is None else len(dim)) == 2:
        return F.matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return F.vector_norm(input, ord, dim, keepdim, dtype=dtype)


@function(method=False, samples=[S(t(2, 3)), S(t(2, 2, 3), dim=(0, 2))])
def nuclear_norm(input: Tensor, dim: Dims = (-2, -1), keepdim: bool = False):
    """The sum of the singular values."""
    return F.matrix_norm(input, "nuc", dim, keepdim)


@function(
    name="linalg.cond",
    samples=[
        S(t(2, 2)),
        S(t(3, 2), -2),
        S(t(2, 2), "fro", order=0, because="PyTorch cannot differentiate it"),
        S(t(2, 2), 1, order=0, because="PyTorch cannot differentiate it"),
    ],
    errors=[Bad("E308", t(2, 3), 1), Bad("E308", t(2))],
)
def cond(input: Tensor, p: Any = None):
    """The norm of a matrix times that of its inverse; inf for a singular one."""
    require_matrices("linalg.cond", input, square=p not in (None, 2, -2))
    if p == "nuc":
        values = F.svdvals(input)
        return F.sum(values, -1) * F.sum(F.reciprocal(values), -1)
    if p not in (None, 2, -2):
        inverse, info = F.inv_raw(input)
        if not known(info) or value_of(info).any():
            inverse = F.masked_fill(
                inverse, F.reshape(F.ne(info, 0), (*info.shape, 1, 1)), float("inf")
            )
        product = F.matrix_norm(input, p) * F.matrix_norm(inverse, p)
        return F.nan_to_num(product, float("inf"), float("inf"), float("-inf"))
    values = F.svdvals(input)
    last = values.ndim - 1
    if not values.shape[last]:
        return F.sum(values, last)
    ends = F.narrow(values, last, 0, 1), F.narrow(values, last, values.shape[last] - 1, 1)
    ratio = ends[1] / ends[0] if p == -2 else ends[0] / ends[1]
    return F.squeeze(ratio, last)


# -- tensors as matrices ---------------------------------------------------------------------------


@function(
    name="linalg.tensorinv",
    samples=[S(t(4, 2, 2), ind=1)],
    errors=[Bad("E308", t(2, 3), ind=1), Bad("E309", t(2, 2), ind=0)],
)
def tensorinv(input: Tensor, ind: int = 2):
    """The inverse of a tensor as a map from its last dims to its first `ind` dims."""
    if ind <= 0:
        raise fault("E309 linalg-tensorinv-needs-positive", ind)
    first, last = input.shape[:ind], input.shape[ind:]
    if count(first) != count(last):
        raise fault("E308 linalg-tensorinv-needs-many", input, ind, count(first), count(last))
    found = F.inv(F.reshape(input, (count(first), count(last))))
    return F.reshape(found, (*last, *first))


@function(
    name="linalg.tensorsolve",
    samples=[S(t(2, 3, 6), t(2, 3)), S(t(2, 4, 2), t(4), dims=(0,))],
    errors=[Bad("E308", t(2, 3), t(2))],
)
def tensorsolve(input: Tensor, B: Tensor, dims: DimList | None = None):
    """The X with `tensordot(A, X, X.ndim) = B`; `dims` of A are moved to its end first."""
    if dims is not None:
        input = F.permute(input, (*(d for d in range(input.ndim) if d not in dims), *dims))
    rest = input.shape[B.ndim :]
    if count(rest) != B.numel or count(input.shape[: B.ndim]) != B.numel:
        raise fault("E308 linalg-tensorsolve-needs-many", input, B.shape)
    found = F.solve(F.reshape(input, (B.numel, count(rest))), F.reshape(B, (B.numel,)))
    return F.reshape(found, rest)
