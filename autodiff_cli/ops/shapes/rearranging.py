"""Elements of one tensor in other places: flips, rolls, repetitions, triangles."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import (
    Any,
    Dim,
    DimList,
    Dims,
    Ints,
    Mask,
    Size,
    Tensor,
    function,
    movement,
    opaque,
)
from ...graph.dtypes import INT64
from ...graph.op import value_of
from ...graph.params import node_of, to_int
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.sizes import within
from ...graph.strides import CHANNELS, like_input
from ..kernels.rules import require_dims


def _some_dims(name, least):
    def check(input, *rest):
        if input.ndim < least:
            raise fault("E304 needs-least-dims", name, least, input)
        return input.shape, input.dtype

    return check


@movement(
    lambda x, dims: np.flip(x, dims),
    strides_rule=like_input,
    vjp=lambda g, out, input, dims: F.flip(g, dims),
    samples=[S(t(3), 0), S(t(2, 3), (0, 1)), S(t(2, 3), -1), S(t(2), ())],
    errors=[Bad("E304", t(2), 1)],
)
def flip(input: Tensor, dims: DimList):
    """The order of elements reversed along dims."""


@movement(
    lambda x, dim: np.flip(x, dim),
    view=True,
    public=False,
    strides_rule=lambda strides, input, dim: tuple(
        -step if i == dim else step for i, step in enumerate(strides)
    ),
    vjp=lambda g, out, input, dim: F.flip(g, dim),
    samples=[S(t(3), 0), S(t(2, 3), 1)],
    counterpart=lambda input, dim: F.flip(input, (dim,)),
)
def turned(input: Tensor, dim: Dim):
    """The order of elements reversed along a dim of an array, in the same memory."""


@function(samples=[S(t(2, 3))], errors=[Bad("E304", t(3))])
def fliplr(input: Tensor):
    """The order of columns reversed."""
    _some_dims("fliplr", 2)(input)
    return F.flip(input, (1,))


@function(samples=[S(t(2, 3))], errors=[Bad("E304", t())])
def flipud(input: Tensor):
    """The order of rows reversed."""
    _some_dims("flipud", 1)(input)
    return F.flip(input, (0,))


def _roll_shape(input, shifts, dims):
    amounts = (shifts,) if isinstance(shifts, int) else shifts
    if not amounts or len(amounts) != (1 if not dims else len(dims)):
        raise fault("E304 roll-needs-many-dims", amounts, dims or "none")
    return input.shape, input.dtype


@movement(
    lambda x, shifts, dims: np.roll(x, shifts, dims or None),
    shape=_roll_shape,
    vjp=lambda g, out, input, shifts, dims: F.roll(
        g, -shifts if isinstance(shifts, int) else tuple(-s for s in shifts), dims
    ),
    samples=[S(t(3), 1), S(t(2, 3), (1, -1), (0, 1)), S(t(2, 3), 2, 1), S(t(2, 3), 1)],
    errors=[Bad("E304", t(2, 3), (1, 2), 0)],
    properties=frozenset({CHANNELS}),
)
def roll(input: Tensor, shifts: Ints, dims: Dims | None = ()):
    """Elements moved along dims, around the ends; without dims as one long row."""


def _turned(input, k, dims):
    if len(dims) != 2 or dims[0] == dims[1]:
        raise fault("E304 rot90-turns-dim-another", tuple(dims))
    shape = list(_some_dims("rot90", 2)(input)[0])
    if k % 2:
        a, b = dims
        shape[a], shape[b] = shape[b], shape[a]
    return tuple(shape), input.dtype


def _turned_strides(strides, input, k, dims):
    found = list(strides)
    if k % 2:
        a, b = dims
        found[a], found[b] = found[b], found[a]
    return tuple(found)


@movement(
    lambda x, k, dims: np.rot90(x, k, dims),
    shape=_turned,
    strides_rule=_turned_strides,
    vjp=lambda g, out, input, k, dims: F.rot90(g, -k, dims),
    samples=[S(t(2, 3)), S(t(2, 3), 2), S(t(2, 3), -1, (1, 0))],
    errors=[Bad("E304", t(2)), Bad("E304", t(2, 2), 1, (0, 0))],
)
def rot90(input: Tensor, k: int = 1, dims: DimList = (0, 1)):
    """The plane of two dims turned by 90 degrees, `k` times."""


# -- repetition ------------------------------------------------------------------------------------


def _repeat_shape(input, repeats):
    if len(repeats) < input.ndim or any(r < 0 for r in repeats):
        raise fault("E303 repeat-shape-needs-count", repeats, input)
    shape = (1,) * (len(repeats) - input.ndim) + input.shape
    return tuple(s * r for s, r in zip(shape, repeats, strict=True)), input.dtype


@movement(
    lambda x, repeats: np.tile(x, repeats),
    shape=_repeat_shape,
    samples=[S(t(3), 2), S(t(2, 1), (2, 1, 3)), S(t(2), 3, 2), S(t(), 2), S(t(2), 0)],
    errors=[Bad("E303", t(2, 3), 2), Bad("E303", t(2), -1)],
)
def repeat(input: Tensor, repeats: Size):
    """The tensor written out `repeats` times along each dim."""


@repeat.vjp
def _(g, out, input, repeats):
    lead = len(repeats) - input.ndim
    shape = (1,) * lead + input.shape
    rows = tuple(n for r, s in zip(repeats, shape, strict=True) for n in (r, s))
    summed = F.sum(F.reshape(g, rows), tuple(range(0, len(rows), 2))) if rows else g
    return (F.reshape(summed, input.shape),)


@function(samples=[S(t(3), 2), S(t(2, 1), (2, 1, 3)), S(t(2, 3), 2), S(t(2), ())])
def tile(input: Tensor, dims: Size):
    """The tensor written out `dims` times along each dim; missing counts in front are 1."""
    return F.repeat(input, (1,) * (input.ndim - len(dims)) + dims)


@function(
    samples=[
        S(t(3), 2),
        S(t(2, 2), 2, dim=1),
        S(t(2, 3), ints(values=[1, 2]), 0),
        S(t(2, 2), ints(values=[2])),
    ],
    errors=[Bad("E302", t(3), ints(2)), Bad("E305", t(3), -1), Bad("E304", t(3), 2, 1)],
)
def repeat_interleave(
    input: Tensor, repeats: Any, dim: Dim | None = None, *, output_size: int | None = None
):
    """Each element (or each slice of a dim) repeated; a tensor of counts gives each its own."""
    counts = node_of(repeats)
    if dim is None:
        input, dim = F.flatten(input), 0
    require_dims("repeat_interleave", input)
    size = input.shape[dim]
    if counts is None or (counts.numel == 1 and counts.ndim == 0):
        count = to_int(repeats)
        if output_size not in (None, size * count):
            raise fault("E303 repeat_interleave-output-size", output_size, size * count)
        return _each_repeated(input, count, dim)
    if counts.numel == 1:
        counts = F.expand(F.reshape(counts, (1,)), (size,))
    if counts.shape != (size,):
        raise fault("E302 repeat_interleave-counts-shape-dim", counts, dim, size)
    return F.index_select(input, dim, F.repeated_places(counts))


def _each_repeated(input, count, dim):
    if count < 0:
        raise fault("E305 repeat_interleave", count)
    shape = input.shape
    spread = F.expand(F.unsqueeze(input, dim + 1), (*shape[: dim + 1], count, *shape[dim + 1 :]))
    return F.flatten(F.dense_copy(spread), dim, dim + 1)


def _places_shape(repeats):
    if repeats.dtype.kind not in "iu":
        raise fault("E306 repeat_interleave-needs-integer-counts", repeats)
    counts = value_of(repeats)
    if counts.ndim != 1 or (counts < 0).any():
        raise fault("E305 repeat_interleave-needs-vector-counts")
    return (int(counts.sum()),), INT64


@opaque(
    lambda repeats: np.repeat(np.arange(repeats.size), repeats),
    method=False,
    name="repeat_interleave",
    shape=_places_shape,
    samples=[S(ints(values=[1, 0, 2]))],
)
def repeated_places(repeats: Mask):
    """Each index repeated as often as its count says."""


# -- triangles -------------------------------------------------------------------------------------


def _declare_triangle(name, side):
    kernel = getattr(np, name)

    @movement(
        lambda x, diagonal: kernel(x, within(diagonal, x)),
        key=name,
        inplace=True,
        shape=_some_dims(name, 2),
        vjp=lambda g, out, input, diagonal: getattr(F, name)(g, diagonal),
        samples=[S(t(3, 3)), S(t(2, 3), 1), S(t(2, 2, 2), diagonal=-1)],
        errors=[Bad("E304", t(3))],
    )
    def triangle(input: Tensor, diagonal: int = 0):
        pass

    triangle.doc = f"Matrices with zeros {side} a diagonal."


_declare_triangle("tril", "above")
_declare_triangle("triu", "below")
