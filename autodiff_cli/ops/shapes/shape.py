"""Shapes of one tensor: expansion, and views in other shapes."""

from __future__ import annotations

from math import prod

import numpy as np

from ...errors import fail, fault
from ...graph.declare import (
    Any,
    Dim,
    Dims,
    Dtype,
    Ints,
    NewDim,
    Shape,
    Size,
    Tensor,
    TensorList,
    Tensors,
    function,
    movement,
)
from ...graph.dtypes import FLOAT64, INT64
from ...graph.node import Node
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import infer_size
from ...graph.sizes import check_address
from ...graph.strides import is_contiguous, strides_of, view_strides
from ..kernels.pytorch_sum_order import noted, small_sum

# -- expansion and its opposite --------------------------------------------------------------------

FEW = 1024  # elements up to which a copy is made sooner than a view


def _expand_shape(input, size, implicit=False):
    shape = input.shape
    if len(size) < len(shape):
        raise fault("E303 expand-needs-least-sizes", len(shape), shape, size)
    offset = len(size) - len(shape)
    out = []
    for i, want in enumerate(size):
        have = shape[i - offset] if i >= offset else 1
        if want == -1:
            if i < offset:
                raise fault("E303 stands-no-size-new", i, size)
            want = have
        elif have not in (want, 1) or want < 0:
            raise fault("E302 cannot-expand-shape-size", shape, size, i, have)
        out.append(want)
    check_address(tuple(out))
    return tuple(out), input.dtype


def _kept_for_minus_one(shape, size):
    offset = len(size) - len(shape)
    return tuple([shape[i - offset] if n == -1 else n for i, n in enumerate(size)])


def _expanded(x, size, implicit=False):
    shape = _kept_for_minus_one(x.shape, size)
    if not x.ndim:  # no layout of its own: a plan may leave out factors of one
        view = np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
        view.flags.writeable = False
        return view
    if prod(shape) > FEW:
        return np.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


def _expand_strides(strides, input, size, implicit=False):
    shape = input.shape
    size = _kept_for_minus_one(shape, size)
    offset = len(size) - len(shape)
    kept = [strides[i] if size[offset + i] == have else 0 for i, have in enumerate(shape)]
    for at in reversed(range(offset)):
        kept.insert(0, size[at + 1] * kept[0] if shape and size[at] == 1 else 0)
    return tuple(kept)


@movement(
    _expanded,
    steady=True,
    shape=_expand_shape,
    view=True,
    properties=frozenset({"expands"}),
    strides_rule=_expand_strides,
    samples=[S(t(3, 1), (3, 4)), S(t(3), 2, 3), S(t(2, 1), (-1, 3)), S(t(), (2, 2))],
    errors=[Bad("E302", t(2, 3), (2, 4)), Bad("E303", t(2, 3), (3,))],
    vjp=lambda g, out, input, size, implicit: (F.sum_to_size(g, input.shape),),
)
def expand(input: Tensor, size: Size, *, implicit: bool = False):
    """The tensor with dims of size 1 repeated up to `size`, without copying; -1 keeps a size."""


@function(samples=[S(t(3, 1), t(3, 4)), S(t(), t(2))])
def expand_as(input: Tensor, other: Tensor):
    """`input` expanded to the shape of `other`."""
    return F.expand(input, other.shape)


@function(samples=[S(t(3, 1), (3, 4)), S(t(3), (2, 3))])
def broadcast_to(input: Tensor, size: Size):
    """`input` expanded to `size`."""
    return F.expand(input, size)


def _sum_to(x, size, note=None):
    lead = x.ndim - len(size)
    dims = (
        *range(lead),
        *(i + lead for i, s in enumerate(size) if s == 1 and x.shape[i + lead] != 1),
    )
    if dims:
        total = small_sum(x, dims, note)
        x = noted(note, np.add.reduce, x, dims, None) if total is None else total
    return (x if x.dtype.kind == "f" else x.astype(np.int64)).reshape(size)


def _sum_to_shape(input, size):
    shape = input.shape
    lead = len(shape) - len(size)
    if lead < 0 or any(s not in (1, shape[i + lead]) for i, s in enumerate(size)):
        raise fault("E302 shape-cannot-summed-size", shape, size)
    return size, input.dtype if input.dtype.kind == "f" else INT64


def _sum_to_text(input, size):
    lead = len(input.shape) - len(size)
    dims = (*range(lead), *(i for i in range(lead, input.ndim) if size[i - lead] == 1))
    total = f"np.sum(input, axis={dims if size else None}, keepdims={len(dims) > lead})"
    return f"np.reshape({total}, size)" if 0 < lead < len(dims) else total


def _sum_to_name(input, size):
    if not size:
        return "SumBackward0"
    return "ViewBackward0" if len(size) < input.ndim else "SumBackward1"


@movement(
    _sum_to,
    numpy=_sum_to_text,
    steady=True,
    shape=_sum_to_shape,
    grad_fn=_sum_to_name,
    public=False,
    properties=frozenset({"sums", "noted"}),
    samples=[S(t(2, 3), (1, 3)), S(t(2, 3), (3,)), S(t(2, 3), ())],
    counterpart="Tensor.sum_to_size",
    vjp=lambda g, out, input, size: (F.expand(g, input.shape),),
)
def summed_to(input: Tensor, size: Size):
    """The sum over the dims in which `size` has 1 or nothing."""


@function(
    samples=[S(t(2, 3), (1, 3)), S(t(2, 3), 3), S(t(2, 3), ()), S(t(2, 3), (2, 3))],
    errors=[Bad("E302", t(2, 3), (2, 2))],
)
def sum_to_size(input: Tensor, size: Size):
    """The sum over the dims in which `size` has 1 or nothing: what undoes broadcasting."""
    return input if size and size == input.shape else F.summed_to(input, size)


# -- the same elements in another shape ------------------------------------------------------------


def _view_shape(input, size):
    size = infer_size(input.shape, size)
    if view_strides(input.shape, strides_of(input), size) is None:
        raise fault("E303 view-size-not-compatible", input, strides_of(input), size)
    return size, input.dtype


def _rows(x, size):
    return np.reshape(x, size)


def _reshape_back(g, out, input, size):
    return (F.reshape(g, input.shape),)


RESHAPES = frozenset({"reshapes"})
OWN_COUNTER = frozenset({"own counter"})
_VIEWED = {
    "view": True,
    "vjp": _reshape_back,
    "strides_rule": lambda strides, input, size: view_strides(
        input.shape, strides, infer_size(input.shape, size)
    ),
    "properties": RESHAPES,
}


@movement(
    _rows,
    shape=_view_shape,
    **_VIEWED,
    samples=[S(t(2, 3), (3, 2)), S(t(2, 3), -1), S(t(), (1, 1)), S(t(2, 3), 3, -1)],
    errors=[Bad("E303", t(2, 3), (4, 2))],
)
def view(input: Tensor, size: Size):
    """The same memory in another shape; one size may be -1. Fails where a copy would be needed."""


_RESHAPED: dict[str, Any] = {
    "shape": lambda input, size: (infer_size(input.shape, size), input.dtype),
    "public": False,
    "samples": [S(t(2, 3), (3, 2))],
    "counterpart": "reshape",
}


@movement(_rows, **_VIEWED, **_RESHAPED)
def reshape_alias(input: Tensor, size: Size):
    """A view in another shape of a tensor that is not contiguous; what `reshape` makes of it."""


@movement(_rows, vjp=_reshape_back, properties=RESHAPES, **_RESHAPED)
def unsafe_view(input: Tensor, size: Size):
    """A copy in another shape; what `reshape` makes where no view is possible."""


@movement(
    _rows,
    **_VIEWED | {"properties": RESHAPES | OWN_COUNTER},
    grad_fn="UnsafeViewBackward0",
    **_RESHAPED,
)
def unshared_view(input: Tensor, size: Size):
    """The same memory in another shape, whose changes are counted apart: no check of saved values
    sees them, and rules read what it holds then."""


@function(
    samples=[S(t(2, 3), (3, 2)), S(t(2, 3), -1), S(t(), (1, 1)), S(t(0, 3), (3, 0))],
    errors=[Bad("E303", t(2, 3), (4, 2)), Bad("E303", t(2, 3), (-1, -1))],
)
def reshape(input: Tensor, shape: Size):
    """The same elements in another shape, a view where possible; one size may be -1."""
    size = infer_size(input.shape, shape)
    if is_contiguous(input):
        return F.view.apply([input, size])
    if view_strides(input.shape, strides_of(input), size) is None:
        return F.unsafe_view.apply([input, size])
    return F.reshape_alias.apply([input, size])


@function(samples=[S(t(2, 3), t(3, 2))])
def reshape_as(input: Tensor, other: Tensor):
    """`input` in the shape of `other`."""
    return F.reshape(input, other.shape)


@function(samples=[S(t(2, 3), t(3, 2))])
def view_as(input: Tensor, other: Tensor):
    """A view of `input` in the shape of `other`."""
    return F.view(input, other.shape)


def _bits_shape(input, dtype):
    size = input.dtype.itemsize
    if dtype.itemsize == size:
        return input.shape, dtype
    bytes_of_last = prod(input.shape[-1:]) * size
    if not input.shape or bytes_of_last % dtype.itemsize or strides_of(input)[-1] != 1:
        raise fault("E306 view-shape-last-dim", dtype, input)
    return (*input.shape[:-1], bytes_of_last // dtype.itemsize), dtype


def _bits_strides(strides, input, dtype):
    a, b = input.dtype.itemsize, dtype.itemsize
    return strides if a == b else (*(step * a // b for step in strides[:-1]), 1)


@movement(
    lambda x, dtype: (x if x.flags.c_contiguous else np.ascontiguousarray(x)).view(dtype),
    name="view",
    view=True,
    samples=[S(t(2), INT64), S(t(2, 4, dtype="float32"), FLOAT64)],
    shape=_bits_shape,
    strides_rule=_bits_strides,
)
def view_dtype(input: Tensor, dtype: Dtype):
    """The same bits read as another dtype."""


@function(samples=[S(t(2, 3)), S(t()), S(t(0))])
def ravel(input: Tensor):
    """All elements in one dim."""
    return F.view.apply([F.contiguous(input), (input.numel,)])


@movement(
    np.copy,
    public=False,
    grad_fn="CloneBackward0",
    steady=True,
    vjp=lambda g, out, input: g,
    samples=[S(t(2, 3))],
    counterpart="clone",
)
def dense_copy(input: Tensor):
    """A copy in row-major order."""


@function(samples=[S(t(2, 3))])
def contiguous(input: Tensor, *, memory_format: Any = None):
    """The tensor itself when its elements lie in row-major order without gaps, else such a copy."""
    return input if is_contiguous(input) else F.dense_copy(input)


@function(
    samples=[S(t(2, 3, 2)), S(t(2, 3, 2), 1), S(t(2, 3, 2), 0, 1), S(t())],
    errors=[Bad("E304", t(2, 3), 1, 0), Bad("E304", t(2, 3), 0, 2)],
)
def flatten(input: Tensor, start_dim: Dim = 0, end_dim: Dim = -1):
    """The dims from `start_dim` to `end_dim` as one."""
    shape = input.shape
    if not shape:
        return F.reshape(input, (1,))
    if start_dim > end_dim:
        raise fault("E304 flatten-dim-dim", start_dim, end_dim)
    if start_dim == end_dim:
        return input
    count = prod(shape[start_dim : end_dim + 1])
    return F.reshape(input, (*shape[:start_dim], count, *shape[end_dim + 1 :]))


@function(
    samples=[S(t(2, 6), 1, (2, 3)), S(t(6), 0, (-1, 2))], errors=[Bad("E303", t(2, 6), 1, (4, 2))]
)
def unflatten(input: Tensor, dim: Dim, sizes: Shape):
    """Dim `dim` split into dims of `sizes`."""
    if not sizes:
        raise fail("E303", "unflatten needs at least one size", help="give the sizes to split into")
    if not input.shape:
        raise fault("E304 unflatten-no-dim")
    whole, known = input.shape[dim], prod([size for size in sizes if size != -1])
    wrong = whole % known if known and -1 in sizes else whole != known
    if wrong and min(sizes) >= -1 and sizes.count(-1) < 2:
        raise fault("E303 unflatten-sizes", list(sizes), dim, whole)
    sizes = infer_size((whole,), sizes)
    return F.view(input, (*input.shape[:dim], *sizes, *input.shape[dim + 1 :]))


def _squeezed_dims(input, dims):
    return tuple(
        d for d in range(input.ndim) if input.shape[d] == 1 and (dims is None or d in dims)
    )


def _without(values, dims):
    return tuple(v for i, v in enumerate(values) if i not in dims)


@movement(
    lambda x, dims, overload: np.squeeze(x, _squeezed_dims(x, dims)),
    view=True,
    properties=RESHAPES,
    public=False,
    shape=lambda input, dims, overload: (
        _without(input.shape, _squeezed_dims(input, dims)),
        input.dtype,
    ),
    strides_rule=lambda strides, input, dims, overload: _without(
        strides, _squeezed_dims(input, dims)
    ),
    vjp=lambda g, out, input, dims, overload: F.reshape(g, input.shape),
    grad_fn=lambda input, dims, overload: f"SqueezeBackward{overload}",
    samples=[S(t(2, 1), (1,), 2)],
    counterpart=(
        "squeeze",
        lambda input, dims, overload: ((input,) if dims is None else (input, dims), {}),
    ),
)
def squeezed(input: Tensor, dims: Dims | None, overload: int):
    """Without the dims of size 1; `overload` is 0 for all, 1 for one dim, 2 for a tuple of dims."""


@function(
    inplace=True,
    samples=[S(t(1, 3, 1)), S(t(1, 3, 1), 0), S(t(1, 3, 1), (0, 2)), S(t(2, 3), 0), S(t())],
    errors=[Bad("E304", t(2, 1), 2)],
)
def squeeze(input: Tensor, dim: Ints | None = None):
    """Without the dims of size 1: all of them, or those of `dim` that have size 1."""
    return F.squeezed(input, dim, 0 if dim is None else 1 if isinstance(dim, int) else 2)


def _inserted(values, dim, value):
    return (*values[:dim], value, *values[dim:])


@movement(
    lambda x, dim: x.reshape(_inserted(x.shape, dim, 1)),
    view=True,
    properties=RESHAPES,
    inplace=True,
    steady=True,
    shape=lambda input, dim: (_inserted(input.shape, dim, 1), input.dtype),
    strides_rule=lambda strides, input, dim: _inserted(
        strides, dim, 1 if dim == input.ndim else input.shape[dim] * strides[dim]
    ),
    vjp=lambda g, out, input, dim: F.squeeze(g, dim),
    samples=[S(t(2, 3), 0), S(t(2, 3), -1), S(t(), 0)],
    errors=[Bad("E304", t(2, 3), 4)],
)
def unsqueeze(input: Tensor, dim: NewDim):
    """A new dim of size 1 at `dim`."""


def _atleast(key: str, doc: str, shapes: dict[int, tuple[int, ...]]) -> None:
    """`shapes`: for each ndim too small, where new dims go (for 0-d the whole new shape)."""

    def one(input: Node) -> Node:
        places = shapes.get(input.ndim)
        if places is None:
            return input
        if not input.shape:
            return F.reshape(input, places)
        for dim in places:
            input = F.unsqueeze(input, dim)
        return input

    def several(tensors: Tensors):
        return tuple(one(x) for x in tensors)

    def single(input: Tensor):
        return one(input)

    def listed(tensors: TensorList):
        return several(tensors)

    single.__doc__ = several.__doc__ = listed.__doc__ = doc
    function(key=f"{key}_tensors", name=key, method=False, samples=[S([t(), t(2)])])(several)
    function(key=key, method=False, samples=[S(t()), S(t(2)), S(t(2, 2))])(single)
    function(key=f"{key}_listed", name=key, method=False, samples=[S(t(), t(2))])(listed)


_atleast("atleast_1d", "The tensor with at least one dim.", {0: (1,)})
_atleast("atleast_2d", "The tensor with at least two dims.", {0: (1, 1), 1: (0,)})
_atleast("atleast_3d", "The tensor with at least three dims.", {0: (1, 1, 1), 1: (0, 2), 2: (2,)})


@movement(
    lambda x: x,
    view=True,
    properties=RESHAPES,
    steady=True,
    strides_rule=lambda strides, input: strides,
    samples=[S(t(2, grad=False))],
)
def detach(input: Tensor):
    """The same values, cut from the graph."""


@function(samples=[S(t(2, 3), 0), S(t(2, 3))])
def stride(input: Tensor, dim: Dim | None = None):
    """How many elements lie between neighbours of each dim, as PyTorch lays them out."""
    strides = strides_of(input)
    if dim is not None and not strides:
        raise fault("E304 needs-no-dim", "stride", dim)
    return strides if dim is None else strides[dim]


@function(samples=[S(ints(2, 3))])
def is_contiguous_(input: Tensor, memory_format: Any = None):
    """Whether the elements lie in row-major order without gaps."""
    return is_contiguous(input)
