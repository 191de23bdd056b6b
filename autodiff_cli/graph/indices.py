"""Index arithmetic shared by ops that read and ops that write by index: checks and places."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import AutodiffError, fail
from .node import Node, Shape
from .op import shape_text, value_of


def _elements(size: int) -> str:
    return f"{size} element{'' if size == 1 else 's'}"


def index_error(index: int, dim: int, size: int, negative: bool = True) -> AutodiffError:
    """E305 with index, dim and size."""
    low = -size if negative else 0
    return fail("E305", f"index {index} is out of range for dim {dim} with {_elements(size)}",
                help=f"valid are {low} to {size - 1}" if size else "the dim is empty")


def wrapped_index(index: int, dim: int, size: int) -> int:
    """An index counted from the front; E305 when it is out of range."""
    if not -size <= index < size:
        raise index_error(index, dim, size)
    return index + size if index < 0 else index


def check_indices(name: str, index: Node, dim: int, size: int, negative: bool = False) -> None:
    """E306 unless `index` has integers, E305 unless all are below `size`."""
    if index.dtype.kind not in "iu" and index.numel:
        raise fail("E306", f"{name} needs an integer index, got {index.dtype.name}",
                   help="write the indices as ints, or convert them with `.long()`")
    values = value_of(index)
    if values.size:
        low, high = int(values.min()), int(values.max())
        if high >= size:
            raise index_error(high, dim, size, negative)
        if low < (-size if negative else 0):
            raise index_error(low, dim, size, negative)


def check_gather(name: str, input: Node, dim: int, index: Node, source: Node | None = None) -> None:
    """What gather and scatter ask of shapes and indices."""
    if index.numel:
        ndim = max(input.ndim, 1)
        if max(index.ndim, 1) != ndim:
            raise fail("E302", f"{name}: index of shape {shape_text(index.shape)} must have as many dims as the "
                       f"tensor of shape {shape_text(input.shape)}", help="`unsqueeze` and `expand` the index")
        for d, (have, want) in enumerate(zip(input.shape, index.shape, strict=False)):
            if d != dim and want > have:
                raise fail("E302", f"{name}: index of shape {shape_text(index.shape)} exceeds the tensor of "
                           f"shape {shape_text(input.shape)} in dim {d}", help="only the indexed dim may be longer")
        if source is not None:
            _check_source(name, index, source, ndim)
    check_indices(name, index, dim, input.shape[dim] if input.shape else 1)


def _check_source(name: str, index: Node, source: Node, ndim: int) -> None:
    fits = max(source.ndim, 1) == ndim and all(
        want <= have for have, want in zip(source.shape or (1,), index.shape or (1,), strict=True)
    )
    if not fits:
        raise fail("E302", f"{name}: index of shape {shape_text(index.shape)} does not fit the source of shape "
                   f"{shape_text(source.shape)}", help="there must be a source element for every index")


def along(index: Any, dim: int) -> tuple[Any, ...]:
    """NumPy's indices of the elements `[i, index[i, j], ...]`."""
    places = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    places[dim] = index
    return tuple(places)


def key_of(dim: int, step: Any) -> tuple[Any, ...]:
    """A NumPy index that applies `step` to one dim."""
    return (slice(None),) * dim + (step,)
