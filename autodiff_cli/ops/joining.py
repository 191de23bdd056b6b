"""Joining tensors and taking them apart: cat, stack, split, unbind, meshgrid."""

from __future__ import annotations

from itertools import combinations as choose
from itertools import combinations_with_replacement, product

import numpy as np

from ..errors import fail
from ..graph.declare import Any, Dim, Ints, Size, Tensor, TensorList, Tensors, function, movement
from ..graph.dtypes import INT64, result_dtype
from ..graph.node import Node
from ..graph.op import constant, number, shape_text
from ..graph.params import dim_in_range
from ..graph.registry import F
from ..graph.samples import Bad, S, ints, t
from ..graph.shapes import broadcast_shapes

# -- joining -----------------------------------------------------------------------------------------


def _common(tensors):
    return result_dtype([(x.dtype, not x.shape, x.weak) for x in tensors])


def _some(tensors, name):
    if not tensors:
        raise fail("E303", f"{name} needs at least one tensor, got an empty list", help="give a list of tensors")


def _skipped(x):
    """PyTorch lets `cat` join empty vectors with anything."""
    return x.shape == (0,)


def _cat_shape(tensors, dim):
    _some(tensors, "cat")
    ndim = next((x.ndim for x in tensors if not _skipped(x)), 1)
    dim = dim_in_range(dim, ndim)
    joined = 0
    first = None
    for i, x in enumerate(tensors):
        if _skipped(x):
            continue
        if not x.shape:
            raise fail("E302", f"cat cannot join 0-d tensors (tensor {i} is one)", help="use `stack`")
        if first is None:
            first = x
        fits = x.ndim == ndim and all(
            a == b for d, (a, b) in enumerate(zip(x.shape, first.shape, strict=True)) if d != dim
        )
        if not fits:
            raise fail("E302", f"cat along dim {dim}: shape {shape_text(x.shape)} of tensor {i} does not fit "
                       f"{shape_text(first.shape)}", help=f"all sizes except that of dim {dim} must agree")
        joined += x.shape[dim]
    if first is None:
        return (0,), _common(tensors)
    return (*first.shape[:dim], joined, *first.shape[dim + 1 :]), _common(tensors)


def _joined(tensors, dim):
    kept = [x for x in tensors if not _skipped(x)] or list(tensors)
    return np.concatenate(kept, dim, dtype=_common_of_arrays(tensors))


def _common_of_arrays(tensors):
    return result_dtype([(x.dtype, not x.shape, False) for x in tensors])


@movement(_joined, aliases=["concat", "concatenate"], method=False, shape=_cat_shape,
          samples=[S([t(2, 3), t(1, 3)]), S([t(2, 1), t(2, 2)], dim=1), S([t(2), t(0)], -1), S([t(2), ints(1)])],
          errors=[Bad("E302", [t(2, 3), t(2, 2)]), Bad("E304", [t(2), t(2)], 1), Bad("E302", [t(), t()])])
def cat(tensors: Tensors, dim: int = 0):
    """Tensors one after the other along a dim."""


@cat.vjp
def _(g, out, tensors, dim):
    dim = dim_in_range(dim, out.ndim)
    parts = []
    start = 0
    for x in tensors:
        if _skipped(x):
            parts.append(F.expand(number(0.0, x.dtype), x.shape))
            continue
        end = start + x.shape[dim]
        parts.append(F.slice.apply([g, dim, start, end, 1]) if len(tensors) > 1 else g)
        start = end
    return (tuple(parts),)


def _stack_shape(tensors, dim):
    _some(tensors, "stack")
    shape = tensors[0].shape
    for i, x in enumerate(tensors):
        if x.shape != shape:
            raise fail("E302", f"stack needs equal shapes, got {shape_text(shape)} and "
                       f"{shape_text(x.shape)} (tensor {i})", help="use `cat` to join along an existing dim")
    dim = dim_in_range(dim, len(shape) + 1)
    return (*shape[:dim], len(tensors), *shape[dim:]), _common(tensors)


@movement(lambda tensors, dim: np.stack(tensors, dim, dtype=_common_of_arrays(tensors)), method=False,
          shape=_stack_shape, vjp=lambda g, out, tensors, dim: (F.unbind(g, dim),),
          samples=[S([t(2), t(2)]), S([t(2, 1), t(2, 1)], dim=-1), S([t(), t(), t()])],
          errors=[Bad("E302", [t(2), t(3)]), Bad("E304", [t(2), t(2)], 2)])
def stack(tensors: Tensors, dim: int = 0):
    """Tensors of one shape along a new dim."""


def _rowed(key: str, doc: str, prepare: str, dim: Any, aliases: tuple[str, ...] = ()) -> None:
    """`cat` of tensors that `prepare` gave dims; `dim(parts)` is the dim to join."""

    def body(tensors: Tensors):
        _some(tensors, key)
        parts = getattr(F, prepare).body(tensors)
        return F.cat(parts, dim(parts))

    body.__doc__ = doc
    function(key=key, name=key, aliases=aliases, method=False,
             samples=[S([t(2), t(2)]), S([t(2, 1), t(2, 1)]), S([t(), t()])], errors=[Bad("E303", [])])(body)


_rowed("hstack", "Tensors side by side: along dim 1, vectors along dim 0.", "atleast_1d_tensors",
       lambda parts: 0 if parts[0].ndim == 1 else 1)
_rowed("vstack", "Tensors below one another: along dim 0, vectors as rows.", "atleast_2d_tensors",
       lambda parts: 0, ("row_stack",))
_rowed("dstack", "Tensors behind one another: along dim 2.", "atleast_3d_tensors", lambda parts: 2)


@function(method=False, samples=[S([t(2), t(2)]), S([t(2), t(2, 2)]), S([t(), t()])], errors=[Bad("E303", [])])
def column_stack(tensors: Tensors):
    """Tensors side by side, vectors as columns."""
    _some(tensors, "column_stack")
    return F.cat(tuple(x if x.ndim >= 2 else F.reshape(x, (x.numel, 1)) for x in tensors), 1)


# -- taking apart ------------------------------------------------------------------------------------


def _unbind_shape(input, dim):
    shape = input.shape
    if not shape:
        raise fail("E304", "unbind needs a tensor with dims, this one is 0-d", help="a 0-d tensor is one number")
    rest = (*shape[:dim], *shape[dim + 1 :])
    return ((rest, input.dtype),) * shape[dim]


@movement(lambda x, dim: tuple(np.moveaxis(x, dim, 0)[i, ...] for i in range(x.shape[dim])), view=True,
          shape=_unbind_shape, vjp=lambda g, out, input, dim: F.stack(g, dim) if g else zeros_of(input),
          strides_rule=lambda strides, input, dim, index: (*strides[:dim], *strides[dim + 1 :]),
          samples=[S(t(2, 3)), S(t(2, 3), -1)], errors=[Bad("E304", t())])
def unbind(input: Tensor, dim: Dim = 0):
    """All elements of a dim, each without that dim."""


def zeros_of(input: Node) -> Node:
    """Zeros in the shape of a node."""
    return F.expand(number(0.0, input.dtype), input.shape)


def _sizes_by(input, split_size, dim):
    if not input.shape:
        raise fail("E304", "split needs a tensor with dims, this one is 0-d", help="a 0-d tensor is one number")
    size = input.shape[dim]
    if split_size < 0 or (split_size == 0 and size):
        raise fail("E305", f"split into pieces of {split_size}", help="the size of a piece must be positive")
    if not split_size or not size:
        return (size,)
    whole, rest = divmod(size, split_size)
    return (split_size,) * whole + ((rest,) if rest else ())


def _pieces(sizes, input, dim):
    shape = input.shape
    return tuple(((*shape[:dim], s, *shape[dim + 1 :]), input.dtype) for s in sizes)


def _cut(x, sizes, dim):
    return tuple(np.split(x, np.cumsum(sizes)[:-1], dim)) if len(sizes) > 1 else (x,) * len(sizes)


_SPLIT = dict(view=True, strides_rule=lambda strides, *rest: strides,
              vjp=lambda g, out, input, sizes, dim: F.cat(g, dim))


@movement(lambda x, split_size, dim: _cut(x, _sizes_by(x, split_size, dim), dim), **_SPLIT,
          aliases=["unsafe_split"],
          shape=lambda input, split_size, dim: _pieces(_sizes_by(input, split_size, dim), input, dim),
          samples=[S(t(5), 2), S(t(2, 4), 2, dim=1), S(t(3), 5)], errors=[Bad("E305", t(3), -1), Bad("E304", t(), 1)])
def split(input: Tensor, split_size: int, dim: Dim = 0):
    """Pieces of `split_size` elements of a dim (the last may be shorter); a tuple gives all sizes."""


def _sections(input, sizes, dim):
    if not input.shape:
        raise fail("E304", "split needs a tensor with dims, this one is 0-d", help="a 0-d tensor is one number")
    if any(s < 0 for s in sizes) or sum(sizes) != input.shape[dim]:
        raise fail("E303", f"split sizes {tuple(sizes)} sum to {sum(sizes)}, but dim {dim} has "
                   f"{input.shape[dim]} elements", help="the sizes must add up to the size of the dim")
    return _pieces(sizes, input, dim)


@movement(_cut, **_SPLIT, aliases=["split", "unsafe_split_with_sizes"], shape=_sections,
          samples=[S(t(5), (2, 3)), S(t(2, 4), [1, 0, 3], dim=-1)], errors=[Bad("E303", t(5), (2, 2))])
def split_with_sizes(input: Tensor, split_sizes: Size, dim: Dim = 0):
    """Pieces of the given sizes of a dim."""
