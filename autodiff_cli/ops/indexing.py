"""Reading by index: brackets, gather, index_select, masks.

Indices are checked when the op is applied; results whose shape depends on values ask for the values then.
"""

from __future__ import annotations

import numpy as np

from ..errors import fail
from ..graph.declare import Dim, Mask, Tensor, movement
from ..graph.indices import along, check_gather, check_indices
from ..graph.node import Node
from ..graph.op import number, shape_text
from ..graph.registry import F
from ..graph.samples import Bad, S, ints, t


def _gather_shape(input, dim, index, sparse_grad=False):
    check_gather("gather", input, dim, index)
    return index.shape, input.dtype


def _gathered(x, dim, index, sparse_grad=False):
    if not index.size:
        return np.zeros_like(x, shape=index.shape)
    if not x.ndim or not index.ndim:
        return np.reshape(np.reshape(x, -1)[np.reshape(index, -1)], index.shape)
    return x[along(index, dim)]


@movement(_gathered, shape=_gather_shape,
          samples=[S(t(3, 2), 0, ints(2, 2)), S(t(2, 3), 1, ints(2, 4)), S(t(3), 0, ints(values=1)), S(t(3), -1, ints(5))],
          errors=[Bad("E305", t(2), 0, ints(values=[2])), Bad("E306", t(2), 0, t(1)), Bad("E302", t(2, 2), 0, ints(1))])
def gather(input: Tensor, dim: Dim, index: Mask, *, sparse_grad: bool = False):
    """`out[i, j] = input[index[i, j], j]` along dim 0, and alike along others."""


@gather.vjp
def _(g, out, input, dim, index, sparse_grad):
    return F.scatter_add(_zeros(g, input), dim, index, g), None


def _zeros(g: Node, input: Node) -> Node:
    return F.expand(number(0.0, g.dtype), input.shape)


def _selected_shape(input, dim, index):
    if index.ndim > 1:
        raise fail("E302", f"index_select needs a vector of indices, got shape {shape_text(index.shape)}",
                   help="use `input[index]` for indices of any shape")
    check_indices("index_select", index, dim, input.shape[dim] if input.shape else 1)
    if not input.shape:
        return (), input.dtype
    return (*input.shape[:dim], index.numel, *input.shape[dim + 1 :]), input.dtype


@movement(lambda x, dim, index: np.take(x, np.reshape(index, -1), dim) if x.ndim else x, shape=_selected_shape,
          samples=[S(t(3, 2), 0, ints(values=[2, 0, 2])), S(t(2, 3), 1, ints(2)), S(t(3), 0, ints(values=1))],
          errors=[Bad("E305", t(2), 0, ints(values=[-1])), Bad("E302", t(2), 0, ints(2, 2)), Bad("E306", t(2), 0, t(1))])
def index_select(input: Tensor, dim: Dim, index: Mask):
    """The elements `index` of a dim, repeated as the index says."""


@index_select.vjp
def _(g, out, input, dim, index):
    return F.index_add(_zeros(g, input), dim, index, g), None
