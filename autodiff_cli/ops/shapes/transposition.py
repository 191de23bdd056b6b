"""Dims of one tensor in another order: permutations and transposes."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Dim, Ints, Order, Tensor, function, movement
from ...graph.node import Node
from ...graph.params import dim_in_range
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.shapes import moved


def _permuted(input, dims):
    return moved(input.shape, dims), input.dtype


@movement(
    lambda x, dims: x.transpose(dims),
    view=True,
    steady=True,
    shape=_permuted,
    strides_rule=lambda strides, input, dims: moved(strides, dims),
    vjp=lambda g, out, input, dims: F.permute(
        g, tuple(sorted(range(len(dims)), key=dims.__getitem__))
    ),
    samples=[S(t(2, 3, 2), (2, 0, 1)), S(t(2, 3, 2), 0, -1, 1), S(t(), ())],
    errors=[Bad("E304", t(2, 3), (0,)), Bad("E304", t(2, 3), (0, 0))],
)
def permute(input: Tensor, dims: Order):
    """The dims in another order."""


def _exchanged(values, a, b):
    values = list(values)
    if values:
        values[a], values[b] = values[b], values[a]
    return tuple(values)


@movement(
    lambda x, dim0, dim1: np.swapaxes(x, dim0, dim1) if x.ndim else x,
    numpy=lambda input, dim0, dim1: "np.swapaxes(input, dim0, dim1)" if input.shape else "input",
    view=True,
    inplace=True,
    aliases=["swapdims"],
    steady=True,
    shape=lambda input, dim0, dim1: (_exchanged(input.shape, dim0, dim1), input.dtype),
    strides_rule=lambda strides, input, dim0, dim1: _exchanged(strides, dim0, dim1),
    vjp=lambda g, out, input, dim0, dim1: F.transpose(g, dim0, dim1),
    samples=[S(t(2, 3), 0, 1), S(t(2, 3, 2), 0, -1), S(t(), 0, 0)],
    errors=[Bad("E304", t(2, 3), 0, 2)],
)
def transpose(input: Tensor, dim0: Dim, dim1: Dim):
    """Two dims exchanged."""


@function(inplace=True, samples=[S(t(2, 3), 0, 1)])
def swapaxes(input: Tensor, axis0: Dim, axis1: Dim):
    """Two dims exchanged."""
    return F.transpose(input, axis0, axis1)


@movement(
    np.transpose,
    view=True,
    inplace=True,
    steady=True,
    shape=lambda input: (_matrix(input).shape[::-1], input.dtype),
    strides_rule=lambda strides, input: strides[::-1],
    vjp=lambda g, out, input: F.t(g),
    samples=[S(t(2, 3)), S(t(2)), S(t())],
    errors=[Bad("E304", t(2, 3, 2))],
)
def t_(input: Tensor):
    """The transpose of a matrix; tensors with less than two dims stay as they are."""


def _matrix(input):
    if input.ndim > 2:
        raise fault("E304 t-expects-most-dims", input)
    return input


@function(key="T", counterpart="", samples=[S(t(2, 3)), S(t(2))])
def _(input: Tensor):
    """All dims in reverse order."""
    return F.permute(input, tuple(reversed(range(input.ndim))))


def _swap_last(input: Node, name: str) -> Node:
    if not input.ndim:
        return input
    if input.ndim < 2:
        raise fault("E304 needs-least-dims-2", name, input)
    return F.transpose(input, -2, -1)


@function(key="mT", counterpart="", samples=[S(t(2, 3)), S(t(2, 2, 3))], errors=[Bad("E304", t(2))])
def _(input: Tensor):
    """Batches of matrices, each transposed."""
    return _swap_last(input, "mT")


@function(
    key="mH",
    counterpart="adjoint",
    aliases=["adjoint"],
    samples=[S(t(2, 3)), S(t(2, 2, 3))],
    errors=[Bad("E304", t(2))],
)
def _(input: Tensor):
    """Batches of matrices, each transposed (and conjugated: no change for real numbers)."""
    return _swap_last(input, "mH")


@function(key="H", counterpart="", samples=[S(t(2, 3)), S(t())], errors=[Bad("E304", t(2))])
def _(input: Tensor):
    """A matrix, transposed."""
    if input.ndim not in (0, 2):
        raise fault("E304 h-needs-matrix", input)
    return F.transpose(input, 0, 1) if input.shape else input


@function(
    aliases=["moveaxis"],
    samples=[S(t(2, 3, 2), 0, 2), S(t(2, 3, 2), (0, 1), (1, 2)), S(t(2, 3, 2), -1, 0)],
    errors=[Bad("E304", t(2, 3), (0, 1), (0,)), Bad("E304", t(2, 3), (0, 0), (0, 1))],
)
def movedim(input: Tensor, source: Ints, destination: Ints):
    """The dims `source` moved to the places `destination`; the others keep their order."""
    ndim = input.ndim
    given = (source,) if isinstance(source, int) else source
    wanted = (destination,) if isinstance(destination, int) else destination
    if len(given) != len(wanted):
        raise fault("E304 movedim-dims-places", len(given), len(wanted))
    sources = [dim_in_range(d, ndim) for d in given]
    places = [dim_in_range(d, ndim) for d in wanted]
    if len(set(sources)) < len(sources) or len(set(places)) < len(places):
        raise fault("E304 movedim-dim-named-twice", given, wanted)
    if not ndim:
        return F.whole_view(input)
    rest = iter(d for d in range(ndim) if d not in sources)
    fixed = dict(zip(places, sources, strict=True))
    return F.permute(input, tuple(fixed[i] if i in fixed else next(rest) for i in range(ndim)))
