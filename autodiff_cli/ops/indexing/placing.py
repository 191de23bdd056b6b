"""Writing chosen elements: by brackets, flat places and masks, and where a view looks."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import (
    Any,
    Dim,
    Mask,
    OptionalTensors,
    Tensor,
    Tensors,
    camel,
    function,
    movement,
)
from ...graph.dtypes import BOOL, UINT8
from ...graph.node import Node
from ...graph.op import cast, number, value_of
from ...graph.registry import F
from ...graph.registry import op as op_of
from ...graph.samples import Bad, S, bools, ints, t
from ...graph.shapes import broadcast_shapes, fits
from ...graph.strides import like_input
from ..kernels.indices import (
    add_slices,
    advanced_key,
    check_dtypes,
    check_indices,
    check_mask,
    check_no_bytes,
    chosen_shape,
    indexed_shape,
    key_text,
    places_of,
    written_through,
)
from ..kernels.rules import zeros

# -- brackets, flat places, masks ------------------------------------------------------------------


def _put_at(x, indices, values, accumulate):
    out = np.array(x, order="C")
    used = [dim for dim, index in enumerate(indices) if index is not None]
    if accumulate and len(used) == 1:
        index, size = indices[used[0]], x.shape[used[0]]
        slices = np.broadcast_to(values, indexed_shape(x, indices))
        add_slices(out, used[0], index % size, slices)
        return out
    key = advanced_key(indices)
    if any(not i.shape for i in indices if i is not None):
        values = np.reshape(np.broadcast_to(values, indexed_shape(x, indices)), x[key].shape)
    if accumulate:
        np.add.at(out, key, values)
    else:
        out[key] = values
    return out


def _put_shape(input, indices, values, accumulate):
    place = chosen_shape(input, indices)
    if not fits(values.shape, place):
        raise fault("E302 values-shape-do-not", values, place)
    check_dtypes("index_put", input, values)
    return input.shape, input.dtype


@movement(
    _put_at,
    jax=lambda input, indices, values, accumulate: (
        f"input.at[{key_text(indices)}].{'add' if accumulate else 'set'}(values)"
    ),
    public=False,
    grad_fn="IndexPutBackward0",
    shape=_put_shape,
    properties=frozenset({"broadcasts"}),
    samples=[
        S(t(3, 2), (ints(values=[2, 0]),), t(2, 2), False),
        S(t(3), (ints(values=[1, 1]),), t(), True),
    ],
    counterpart="ops.aten.index_put",
    forward=lambda moves, out, input, indices, values, accumulate: F.index_written.apply(
        [moves[0] or zeros(input), indices, moves[2] or zeros(values), accumulate]
    ),
)
def index_written(input: Tensor, indices: OptionalTensors, values: Tensor, accumulate: bool):
    """`input` with values at integer indices."""


@index_written.vjp
def _(g, out, input, indices, values, accumulate):
    kept = g if accumulate else F.index_written.apply([g, indices, number(0.0, g.dtype), False])
    return kept, None, F.index.apply([g, indices])


@function(
    inplace=True,
    samples=[
        S(t(3, 2), (ints(values=[2, 0]),), t(2, 2)),
        S(t(3), [ints(values=[1, 1])], t(2), accumulate=True),
        S(t(2, 2), (bools(2, 2),), t()),
    ],
    errors=[Bad("E302", t(3), (ints(2),), t(3)), Bad("E305", t(3), (ints(values=[3]),), t())],
)
def index_put(input: Tensor, indices: Tensors, values: Tensor, accumulate: bool = False):
    """`input` with values at indices: integer tensors, or bool masks; `accumulate` adds them up."""
    filled = values.numel == 1 and len(indices) == 1 and indices[0].dtype in (BOOL, UINT8)
    filled = filled and not accumulate
    if filled:
        check_no_bytes(indices)
    if values.weak or filled:
        values = cast(values, input.dtype)
    parts: list[Node] = []
    for index in indices:
        dim = len(parts)
        if index.dtype == UINT8:
            index = F.ne(index, 0)
        if dim >= input.ndim and not (index.dtype == BOOL and index.ndim):
            raise fault("E305 too-many-indices-tensor", input)
        if index.dtype == BOOL:
            if filled and indices[0].dtype == BOOL and not index.ndim:
                index = F.expand(index, input.shape)
            if index.ndim:  # without dims it chooses nothing beside others
                parts.extend(places_of(index, input, dim))
        else:
            check_indices("index_put", index, dim, input.shape[dim], negative=True)
            parts.append(index)
    if indices and not parts:
        raise fault("E302 index_put-mask-without-dims", values)
    return F.index_written.apply([input, tuple(parts), values, accumulate])


def _flat_put_shape(input, index, source, accumulate):
    check_dtypes("put", input, source)
    check_indices("put", index, 0, input.numel, negative=True, long=True)
    if index.numel != source.numel:
        raise fault("E302 put-values-places", source, index)
    return input.shape, input.dtype


def _flat_put(x, index, source, accumulate):
    out = np.array(x, order="C")
    flat, places, values = np.reshape(out, -1), np.reshape(index, -1), np.reshape(source, -1)
    if accumulate:
        np.add.at(flat, places, values)
    elif places.size:
        flat[places] = values
    return out


@movement(
    _flat_put,
    jax=lambda input, index, source, accumulate: (
        f"np.reshape(input, -1).at[np.reshape(index, -1)].{'add' if accumulate else 'set'}"
        "(np.reshape(source, -1)).reshape(shape)"
    ),
    inplace=True,
    shape=_flat_put_shape,
    samples=[
        S(t(2, 3), ints(values=[4, 1]), t(2)),
        S(t(3), ints(values=[1, 1]), t(2), accumulate=True),
    ],
    errors=[Bad("E302", t(2), ints(values=[0]), t(2)), Bad("E305", t(2), ints(values=[2]), t(1))],
    saves="source for source",
    forward=lambda moves, out, input, index, source, accumulate: F.put(
        moves[0] or zeros(input), index, moves[2] or zeros(source), accumulate
    ),
)
def put(input: Tensor, index: Mask, source: Tensor, accumulate: bool = False):
    """`input` with values at places of the tensor seen as one row."""


@put.vjp
def _(g, out, input, index, source, accumulate):
    kept = g if accumulate else F.put(g, index, zeros(source), False)
    return kept, None, F.reshape(F.take(g, index), source.shape)


def _masked_shape(input, mask, source):
    check_mask("masked_scatter", mask)
    check_dtypes("masked_scatter", input, source)
    shape = broadcast_shapes(input.shape, mask.shape)
    wanted = int(np.count_nonzero(np.broadcast_to(value_of(mask), shape)))
    if wanted > source.numel:
        raise fault("E302 masked_scatter-true-places-mask", wanted, source)
    return shape, input.dtype


def _masked_scattered(x, mask, source):
    shape = np.broadcast_shapes(x.shape, mask.shape)
    out = np.array(np.broadcast_to(x, shape), order="C")
    mask = np.broadcast_to(mask, shape)
    out[mask] = np.reshape(source, -1)[: np.count_nonzero(mask)]
    return out


@movement(
    _masked_scattered,
    jax="np.where(mask, np.take(source, np.maximum(np.cumsum(np.broadcast_to(mask, shape)) - 1, 0))"
    ".reshape(shape), input)",
    inplace=True,
    shape=_masked_shape,
    samples=[
        S(t(2, 3), bools(2, 3), t(6)),
        S(t(3), bools(2, 3), t(2, 3)),
        S(t(), bools(values=True), t(1)),
    ],
    errors=[Bad("E302", t(2), bools(values=[True, True]), t(1)), Bad("E306", t(2), ints(2), t(2))],
)
def masked_scatter(input: Tensor, mask: Mask, source: Tensor):
    """`input` with the elements of `source`, in order, where the mask is true."""


@masked_scatter.vjp
def _(g, out, input, mask, source):
    used = F.masked_select(g, mask)
    spread = F.embedded(used, (source.numel,), (F.slice, (0, 0, used.numel, 1)))
    kept = F.sum_to_size(F.where(mask, 0.0, g), input.shape)
    return kept, None, F.reshape(spread, source.shape)


# -- writing where a view looks --------------------------------------------------------------------


def _through(name: str, input: Node, src: Node, key: str, *rest: Any) -> Node:
    """`input` with `src` where the view op `key` looks."""
    step = op_of(key)
    assert step.shape_rule is not None
    place = step.shape_rule(input, *rest)[0]
    if src.shape != place:
        raise fault("E302 source-shape-place", name, src, place)
    return F.view_scatter.apply([input, cast(src, input.dtype), (step, rest), f"{camel(name)}"])


def _scattered_view(x, src, step, name):
    out = np.array(x)
    op, rest = step
    place = op.kernel(out, *rest)
    place.flags.writeable = True  # NumPy protects diagonals; `out` is ours
    place[...] = src
    return out


@movement(
    _scattered_view,
    jax=lambda input, src, step, name: written_through("input", "src", input.shape, (*step, -1)),
    public=False,
    strides_rule=like_input,
    grad_fn=lambda input, src, step, name: name,
    counterpart=lambda input, src, step, name: F.copy_slices(input, src, (*step, -1)),
)
def view_scatter(input: Tensor, src: Tensor, step: Any, name: str):
    """`input` with `src` where the view `step`, an op and its arguments, looks."""


@view_scatter.vjp
def _(g, out, input, src, step, name):
    return F.view_scatter.apply([g, zeros(src), step, name]), step[0].apply([g, *step[1]])


@function(
    samples=[S(t(3, 2), t(2), 0, 1), S(t(3, 2), t(3), -1, -1)],
    errors=[Bad("E302", t(3, 2), t(3), 0, 1), Bad("E305", t(3), t(), 0, 3)],
)
def select_scatter(input: Tensor, src: Tensor, dim: Dim, index: int):
    """`input` with `src` as element `index` of a dim."""
    return _through("select_scatter", input, src, "select", dim, index)


@function(
    samples=[S(t(4, 2), t(2, 2), 0, 1, 3), S(t(2, 5), t(2, 3), dim=1, step=2), S(t(3), t(3))],
    errors=[Bad("E302", t(4), t(3), 0, 1, 3)],
)
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: Dim = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
):
    """`input` with `src` as elements `start:end:step` of a dim."""
    return _through("slice_scatter", input, src, "slice", dim, start, end, step)


@function(
    samples=[S(t(3, 3), t(3)), S(t(2, 3), t(2), 1), S(t(2, 2, 2), t(2, 2), 0, 0, 2)],
    errors=[Bad("E302", t(3, 3), t(2))],
)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1):
    """`input` with `src` on a diagonal."""
    return _through("diagonal_scatter", input, src, "diagonal", offset, dim1, dim2)
