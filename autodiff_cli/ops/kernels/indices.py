"""Index arithmetic shared by ops that read and ops that write by index: checks and places."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from ...errors import AutodiffError, fault
from ...graph.dtypes import BOOL, INT64, UINT8
from ...graph.node import Node, Shape
from ...graph.op import constant, known, value_of
from ...graph.shapes import broadcast_shapes
from ...graph.state import taken_out
from ...numerals import short


def index_error(
    index: int, dim: int, size: int, negative: bool = True, name: str = ""
) -> AutodiffError:
    """E305 with index, dim and size, and the op that was given the index."""
    low = -size if negative else 0
    first = ": they begin at 0" * (index == size)
    help = f"valid are {low} to {size - 1}{first}" if size else "the dim is empty"
    plural, lead = "" if size == 1 else "s", f"`{name}`: " if name else ""
    return fault(
        "E305 index-out-range-dim",
        dim,
        size,
        plural,
        not -(1 << 63) <= index < 1 << 63,
        name,
        lead,
        short(index),
        help,
    )


def computed_index_error(error: IndexError) -> AutodiffError:
    """The same where NumPy met the index: it was not known when the op was applied."""
    index, dim, size = map(int, re.findall(r"-?\d+", str(error)))
    found = index_error(index, dim, size)
    note = f"PyTorch: index {index} is out of bounds for dimension {dim} with size {size}"
    found.amend(notes=(note,))
    return found


def wrapped_index(index: int, dim: int, size: int) -> int:
    """An index counted from the front; E305 when it is out of range."""
    if not -size <= index < size:
        raise index_error(index, dim, size)
    return index + size if index < 0 else index


def check_indices(
    name: str, index: Node, dim: int, size: int, negative: bool = False, long: bool = False
) -> None:
    """E306 unless `index` has integers, of int64 if `long`, E305 unless all are below `size`."""
    if index.dtype.kind not in "iu":
        raise fault("E306 needs-integer-index", name, index)
    if long and index.dtype != INT64 and index.numel:
        raise fault("E306 needs-int64-index", name, index)
    if not known(index):
        return
    values = value_of(index)
    if values.size:
        low, high = int(values.min()), int(values.max())
        if high >= size:
            raise index_error(high, dim, size, negative, name)
        if low < (-size if negative else 0):
            raise index_error(low, dim, size, negative, name)


def check_gather(name: str, input: Node, dim: int, index: Node, source: Node | None = None) -> None:
    """What gather and scatter ask of shapes and indices; of an index without elements nothing."""
    if not index.numel:
        return
    ndim = max(input.ndim, 1)
    if max(index.ndim, 1) != ndim:
        raise fault("E302 index-shape-many-dims", name, index, input)
    for d, (have, want) in enumerate(zip(input.shape, index.shape, strict=False)):
        if d != dim and want > have:
            raise fault("E302 index-shape-exceeds-tensor", name, index, input, d)
    if source is not None:
        _check_source(name, index, source, ndim)
    check_indices(name, index, dim, input.shape[dim] if input.shape else 1)


def _check_source(name: str, index: Node, source: Node, ndim: int) -> None:
    fits = max(source.ndim, 1) == ndim and all(
        want <= have for have, want in zip(source.shape or (1,), index.shape or (1,), strict=True)
    )
    if not fits:
        raise fault("E302 index-shape-does-not", name, index, source)


def flat_places(index: Any, dim: int, shape: Shape) -> Any:
    """Where the elements `[i, index[i, j], ...]` are in the memory of an array of that shape; E305
    for indices that were not known when the op was applied."""
    unsigned = index.view(f"u{index.itemsize}")  # what is negative is huge
    if unsigned.max() >= shape[dim]:
        raise index_error(int(index.flat[unsigned.argmax()]), dim, shape[dim], False)
    step = [prod(shape[d + 1 :]) for d in range(len(shape))]
    places = np.multiply(index, step[dim], dtype=np.intp) if step[dim] > 1 else index
    others: Any = np.zeros((), np.intp)
    for d, size in enumerate(index.shape):
        if d != dim and size > 1:
            line = np.arange(0, size * step[d], step[d])
            others = others + line.reshape(size, *(1,) * (len(shape) - 1 - d))
    return places + others


def add_slices(out: Any, dim: int, index: Any, slices: Any) -> None:
    """Add `slices[:, i, :]` to `out[:, index[i], :]`, one after the other; `out` is in order."""
    shape = out.shape or (1,)
    lead, size, rest = prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])
    slices = slices.reshape(lead, index.size, rest)
    if slices.size:
        rows = np.broadcast_to(index.reshape(1, -1, 1), slices.shape)
        places = flat_places(rows, 1, (lead, size, rest))
        np.add.at(out.reshape(-1), places.reshape(-1), slices.reshape(-1))


def key_of(dim: int, step: Any) -> tuple[Any, ...]:
    """A NumPy index that applies `step` to one dim."""
    return (slice(None),) * dim + (step,)


def check_mask(name: str, mask: Node) -> None:
    """E306 unless `mask` is of bools."""
    if mask.dtype != BOOL:
        raise fault("E306 needs-bool-mask", name, mask)


def check_no_bytes(indices: Iterable[Any]) -> None:
    """E307 for a mask of bytes: PyTorch does not fill by one."""
    for index in indices:
        if isinstance(index, Node) and index.dtype == UINT8 and index.shape:
            raise fault("E307 masked_fill-takes-bool-mask", index)


def places_of(mask: Node, indexed: Node, dim: int) -> tuple[Node, ...]:
    """The places where a mask over dims from `dim` on is true, a vector of integers for each."""
    shape = indexed.shape[dim : dim + mask.ndim]
    if mask.shape != shape:
        at = next((i for i, n in enumerate(shape) if n != mask.shape[i]), len(shape))
        raise fault("E305 mask-shape-does-not", mask, shape, at, indexed, dim + at)
    found = np.nonzero(value_of(mask))
    return tuple(constant_from(mask, taken_out(mask, places)) for places in found)


def constant_from(source: Node, values: Any) -> Node:
    """A constant computed from the values of a tensor, which is what PyTorch saves of it."""
    made = constant(values)
    made.mark().made_of = source
    return made


def indexed_shape(input: Any, indices: tuple[Any, ...]) -> Shape:
    """The shape of `input[indices]`, of an array or node; a tensor of integers or None a dim."""
    picked = broadcast_shapes(*(x.shape for x in indices if x is not None))
    rest = tuple(n for i, n in enumerate(input.shape) if i >= len(indices) or indices[i] is None)
    first = first_indexed(indices)
    return (*rest[:first], *picked, *rest[first:])


def chosen_shape(input: Node, indices: tuple[Node | None, ...]) -> Shape:
    """The same of nodes; E302 for indices whose shapes do not go together."""
    try:
        return indexed_shape(input, indices)
    except AutodiffError:
        listed = ", ".join(str(list(x.shape)) for x in indices if x is not None)
        raise fault("E302 indices-do-not-meet", listed) from None


def first_indexed(indices: tuple[Any, ...]) -> int:
    """Where the dims of the indices stand in the result: where the indices do, in front when these
    do not stand together."""
    used = [i for i, x in enumerate(indices) if x is not None]
    return used[0] if used and used[-1] - used[0] < len(used) else 0


def advanced_key(indices: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same for NumPy; 0-d indices get a dim, so that all stay advanced."""
    return tuple(slice(None) if i is None else np.reshape(i, i.shape or (1,)) for i in indices)


def check_dtypes(name: str, input: Node, source: Node) -> None:
    """E306 unless source and tensor have one dtype."""
    if input.dtype != source.dtype:
        raise fault("E306 tensor-input-source-source", name, input, source)


def check_number(value: bool | int | float, dtype: np.dtype) -> None:
    """E307 when a number that is written into a tensor does not fit into its dtype."""
    if dtype.kind not in "iuf" or type(value) not in (int, float):
        return
    most = float(np.finfo(dtype).max) if dtype.kind == "f" else np.iinfo(dtype).max
    signed = dtype.kind == "i" or (dtype.kind == "u" and type(value) is float)
    least = np.iinfo(dtype).min if signed else -most  # PyTorch lets -1 wrap around, and not -1.0
    if least <= value <= most or (dtype.kind == "f" and not math.isfinite(value)):
        return
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise fault("E504 number-does-not-fit", short(value, 40), dtype)
    raise fault("E307 number-does-not-fit", short(value, 40), dtype, _C_TYPES[dtype.name])


_C_TYPES = {
    "bool": "bool",
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int",
    "int64": "int64_t",
    "uint8": "uint8_t",
}


def check_weak(value: Node | None, dtype: np.dtype) -> None:
    """`check_number` of a Python number among the operands."""
    if value is not None and value.weak and value.args and type(value.args[0]) in (int, float):
        check_number(value.args[0], dtype)


def key_text(indices: Any) -> str:
    """What stands in the brackets of an array where indices are places of dims."""
    return ", ".join(":" if i is None else f"indices[{at}]" for at, i in enumerate(indices))


MOST_WRITTEN = 256  # elements whose places are written one by one


def written_through(base: str, value: str, shape: Any, step: Any) -> str | None:
    """How JAX writes to what a view, an op and its arguments and the number of its result, shows of
    a base; None where that would be long."""
    op, rest, index = step
    if op.key == "select":
        dim, place = rest
        return f"{base}.at[{':, ' * dim}{place}].set({value})"
    if op.key == "slice":
        dim, *ends = rest
        said = ":".join("" if end is None else str(end) for end in ends)
        return f"{base}.at[{':, ' * dim}{said}].set({value})"
    if math.prod(shape) > MOST_WRITTEN:
        return None
    places = op.kernel(np.arange(math.prod(shape)).reshape(shape), *rest)
    numbers = (places if index < 0 else places[index]).tolist()
    return f"np.reshape({base}, -1).at[np.array({numbers}, int)].set({value}).reshape(shape)"
