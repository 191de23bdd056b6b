"""Python lists as tensors: dtype rules of `torch.tensor`, and where a list is ragged."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import fault
from ..graph.dtypes import INT64
from ..graph.node import Node
from ..graph.op import constant
from ..graph.params import node_of, shown
from ..graph.state import STATE

MAX_NUMBERS = 50_000_000


_NUMBERS = frozenset({int, float, bool})
_FEW = 1000


def is_plain(values: Any) -> bool:
    """Whether a short list, or list of short lists, holds nothing but Python's numbers."""
    if len(values) > _FEW:
        return False
    kinds = set(map(type, values))
    if kinds <= _NUMBERS:
        return True
    return kinds == {list} and all(
        len(row) <= _FEW and _NUMBERS.issuperset(map(type, row)) for row in values
    )


def check_extent(values: Any) -> None:
    """E505 for a nested list that stands for enormously many numbers or levels. Lists that appear
    in several places are looked at once."""
    if is_plain(values):
        return
    counts: dict[int, int] = {}
    pending: list[tuple[Any, bool]] = [(values, False)]
    depth = 0
    while pending:
        value, done = pending.pop()
        rows = [v for v in value if type(v) is list or type(v) is tuple]
        if done:
            depth -= 1
            counts[id(value)] = len(value) - len(rows) + sum(counts[id(v)] for v in rows)
            if counts[id(value)] > MAX_NUMBERS:
                raise fault("E505 list-many-numbers-does")
        elif id(value) not in counts:
            depth += 1
            if depth > 64:
                raise fault("E108 list-nested-more-levels")
            pending.append((value, True))
            pending.extend((v, False) for v in rows)


def has_tensor(values: Any) -> bool:
    """Whether a (nested) list holds a tensor."""
    if is_plain(values):
        return False
    pending = list(values)
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, list | tuple):
            if id(value) not in seen:
                seen.add(id(value))
                pending.extend(value)
        elif node_of(value) is not None:
            return True
    return False


def array_of(values: Any, dtype: np.dtype | None = None, written_out: bool = False) -> np.ndarray:
    """The array of a number or a (nested) list of numbers, in `dtype` or the one PyTorch infers:
    bool, int64, or the default float dtype. Raises E107 (ragged) and E208 (not numeric).

    `written_out` says that every number stands in the text, so the list is as large as it looks.
    """
    if isinstance(values, list | tuple) and not written_out:
        check_extent(values)
    try:
        array = np.array(values)
    except (ValueError, OverflowError):
        array = None
    if array is None or array.dtype.kind not in "biuf":
        array = _checked(values)
    if dtype is not None:
        return array.astype(dtype, copy=False)
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "iu" and array.size:
        return array.astype(INT64, copy=False)
    return array.astype(STATE.default_dtype, copy=False)


def _checked(values: Any) -> np.ndarray:
    """Slow path of lists NumPy does not make numeric: name the defect, or convert big integers."""
    if isinstance(values, list | tuple):
        check_extent(values)
    shape = ragged_shape(values)
    flat: list[Any] = []
    _flatten(values, flat)
    for value in flat:
        if not isinstance(value, bool | int | float):
            raise fault("E208 tensor-made-numbers", shown(value))
    try:
        return np.array([float(v) for v in flat]).reshape(shape)
    except OverflowError:
        raise fault("E504 integer-too-large-tensor") from None


def _flatten(values: Any, flat: list[Any]) -> None:
    pending = [values]
    while pending:
        value = pending.pop()
        if isinstance(value, list | tuple):
            pending.extend(reversed(value))
        else:
            flat.append(value)


def ragged_shape(values: Any) -> tuple[int, ...]:
    """The shape of a regular nested list; E107 names the first row that differs."""
    shape: list[int] = []
    level = values
    while isinstance(level, list | tuple):
        shape.append(len(level))
        if not level:
            break
        level = level[0]
    rows: list[tuple[Any, str]] = [(values, "")]
    for depth, size in enumerate(shape):
        below: list[tuple[Any, str]] = []
        for row, place in rows:
            if not isinstance(row, list | tuple) or len(row) != size:
                found = f"{len(row)} entries" if isinstance(row, list | tuple) else "a number"
                raise fault("E107 ragged-list-row-first", place or "[]", found, size)
            if depth + 1 < len(shape):
                below.extend((r, f"{place}[{i}]") for i, r in enumerate(row))
            elif any(isinstance(r, list | tuple) for r in row):
                raise fault("E107 ragged-list-row-mixes", place or "[]")
        rows = below
    return tuple(shape)


def array_of_list(values: Any) -> Node:
    """A constant node of a numeric list."""
    return constant(array_of(values))
