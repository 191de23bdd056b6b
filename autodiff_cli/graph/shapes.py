"""Shape arithmetic shared by shape rules and vjp rules. Pure functions of tuples."""

from __future__ import annotations

from ..errors import fault
from .node import Shape
from .sizes import cannot_broadcast


def reduced_shape(shape: Shape, dims: tuple[int, ...] | None, keepdim: bool) -> Shape:
    """The shape after a reduction over `dims` (None or (): all)."""
    if not dims:
        return (1,) * len(shape) if keepdim else ()
    chosen = set(dims)
    if keepdim:
        return tuple(1 if i in chosen else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in chosen)


def dims_of(shape: Shape, dims: tuple[int, ...] | None) -> tuple[int, ...]:
    """`dims`, or all dims for None and ()."""
    return dims or tuple(range(len(shape)))


def count(shape: Shape) -> int:
    """Number of elements."""
    n = 1
    for size in shape:
        n *= size
    return n


def reduced_count(shape: Shape, dims: tuple[int, ...] | None) -> int:
    """How many elements go into each element of a reduction."""
    return count(tuple(shape[d] for d in dims if shape)) if dims else count(shape)


def infer_size(shape: Shape, size: Shape) -> Shape:
    """`size` with a -1 replaced so that the element count is that of `shape`; E303 otherwise."""
    total, known, unknown = count(shape), 1, None
    for i, s in enumerate(size):
        if s >= 0:
            known *= s
        elif s < -1:
            raise fault("E303 size-cannot-negative", size, s, i)
        elif unknown is not None:
            raise fault("E303 several-unknown-sizes", size)
        else:
            unknown = i
    fitting = known == total if unknown is None else known and not total % known
    if fitting:
        return tuple(total // known if s < 0 else s for s in size)
    plural = "" if total == 1 else "s"
    raise fault("E303 cannot-reshape-element-into", shape, total, plural, size)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """NumPy's broadcasting of shapes; E302 when they do not fit."""
    ndim = max(map(len, shapes), default=0)
    out = [1] * ndim
    for shape in shapes:
        offset = ndim - len(shape)
        for i, size in enumerate(shape):
            if size != 1:
                if out[offset + i] == 1:
                    out[offset + i] = size
                elif out[offset + i] != size:
                    raise cannot_broadcast(list(shapes))
    return tuple(out)


def fits(shape: Shape, place: Shape) -> bool:
    """Whether a value of this shape can be spread over a place."""
    lead = len(place) - len(shape)
    return lead >= 0 and all(n in (1, place[lead + i]) for i, n in enumerate(shape))


def moved(shape: Shape, dims: tuple[int, ...]) -> Shape:
    """`shape` permuted by `dims`."""
    return tuple(shape[d] for d in dims)
