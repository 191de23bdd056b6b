"""Writing by index: scatter, index_add, index_put and what else changes chosen elements."""

from __future__ import annotations

from typing import Any as Array

import numpy as np

from ..errors import fail
from ..graph.declare import Dim, Mask, Scalar, Tensor, movement
from ..graph.indices import along, check_gather, check_indices, key_of
from ..graph.node import Node
from ..graph.op import shape_text
from ..graph.registry import F
from ..graph.samples import Bad, S, ints, t

# -- scatter: an index for every element of the source -------------------------------------------------


def _check_dtypes(name: str, input: Node, source: Node) -> None:
    if input.dtype != source.dtype:
        raise fail("E306", f"{name}: the tensor is {input.dtype.name}, the source {source.dtype.name}",
                   help="convert one: `source.to(input.dtype)`")


def _opposite(src: Array, index: Array) -> Array:
    """The elements of a source that stand opposite an index."""
    return src[tuple(slice(n) for n in index.shape)]


def _written(write):
    """A kernel that lets `write(out, places, values)` change a copy of the first operand."""

    def kernel(x, dim, index, src, *rest):
        out = np.array(x, copy=True)
        if index.size:
            rows = np.reshape(index, index.shape or (1,))
            values = src if not isinstance(src, np.ndarray) else _opposite(np.reshape(src, src.shape or (1,)), rows)
            write(np.reshape(out, out.shape or (1,)), along(rows, dim), values)
        return out

    return kernel


def _assign(out, places, values):
    out[places] = values


def _to_source(g: Node, src: Node) -> Node:
    """A cotangent of the part of a source that was used, zeros for the rest."""
    for dim, (have, want) in enumerate(zip(g.shape, src.shape, strict=True)):
        if have != want:
            shape = (*g.shape[:dim], want, *g.shape[dim + 1 :])
            g = F.embedded(g, shape, (F.slice, (dim, 0, have, 1)))
    return g


def _scatter_shape(name):
    def shape(input, dim, index, src, *rest):
        _check_dtypes(name, input, src)
        check_gather(name, input, dim, index, src)
        return input.shape, input.dtype

    return shape


@movement(_written(np.add.at), inplace=True, shape=_scatter_shape("scatter_add"),
          vjp=lambda g, out, input, dim, index, src: (g, None, _to_source(F.gather(g, dim, index), src)),
          samples=[S(t(3, 2), 0, ints(2, 2), t(2, 2)), S(t(3), 0, ints(values=[0, 0, 2]), t(3)), S(t(2, 3), 1, ints(2, 2), t(2, 3))],
          errors=[Bad("E305", t(2), 0, ints(values=[2]), t(1)), Bad("E302", t(2, 2), 0, ints(1), t(1))])
def scatter_add(input: Tensor, dim: Dim, index: Mask, src: Tensor):
    """`input` with `src[i, j]` added at `[index[i, j], j]`; sources of one place add up."""


# -- index_*: an index for every slice of the source ---------------------------------------------------


def _check_rows(name: str, input: Node, dim: int, index: Node, source: Node | None = None) -> None:
    if index.ndim > 1:
        raise fail("E302", f"{name} needs a vector of indices, got shape {shape_text(index.shape)}",
                   help="use `index_put` or brackets for indices of any shape")
    check_indices(name, index, dim, input.shape[dim] if input.shape else 1)
    if source is None:
        return
    _check_dtypes(name, input, source)
    want = (*input.shape[:dim], index.numel, *input.shape[dim + 1 :])
    if (source.shape or (1,)) != want and not (index.numel == 1 and source.shape in (input.shape, ()) and not input.shape):
        raise fail("E302", f"{name}: source of shape {shape_text(source.shape)} must have shape "
                   f"{shape_text(want)}", help=f"one slice along dim {dim} for every index")


def _index_add_shape(input, dim, index, source, alpha):
    _check_rows("index_add", input, dim, index, source)
    return input.shape, input.dtype


def _rows_added(x, dim, index, source, alpha):
    out = np.array(x, copy=True)
    values = source if alpha == 1 else source * np.asarray(alpha, source.dtype)
    np.add.at(np.reshape(out, out.shape or (1,)), key_of(dim, np.reshape(index, -1)), np.reshape(values, values.shape or (1,)))
    return out


@movement(_rows_added, inplace=True, shape=_index_add_shape,
          samples=[S(t(3, 2), 0, ints(values=[2, 0, 2]), t(3, 2)), S(t(2, 3), 1, ints(2), t(2, 2), alpha=2)],
          errors=[Bad("E302", t(3, 2), 0, ints(2), t(3, 2)), Bad("E305", t(2), 0, ints(values=[2]), t(1))])
def index_add(input: Tensor, dim: Dim, index: Mask, source: Tensor, *, alpha: Scalar = 1):
    """`input` with the slices of `source` times `alpha` added where the index says."""


@index_add.vjp
def _(g, out, input, dim, index, source, alpha):
    picked = F.reshape(F.index_select(g, dim, index), source.shape)
    return g, None, picked if alpha == 1 else picked * alpha
