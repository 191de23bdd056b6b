"""Python lists as tensors: dtype rules of `torch.tensor`, and where a list is ragged."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import AutodiffError, fault
from ..graph.dtypes import FLOAT64, INT64
from ..graph.node import Node
from ..graph.op import constant
from ..graph.params import node_of, plain_number, shown, type_name
from ..graph.sizes import check_size
from ..graph.state import STATE
from ..numerals import short

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
    bool, int64, or the default float dtype. Raises E107 (ragged), E208 (not numeric) and E504 (does
    not fit).

    `written_out` says that every number stands in the text, so the list is as large as it looks.
    """
    if isinstance(values, list | tuple) and not written_out:
        check_extent(values)
    try:
        array = np.array(values)
    except (ValueError, OverflowError, TypeError):  # the last of numbers of a program's classes
        array = None
    if array is None or not _holds(array, dtype):
        if array is not None and not isinstance(values, bool | int | float | str | list | tuple):
            values = array.tolist()
        array = _one_by_one(values, dtype)
    if dtype is None and (array.dtype.kind == "f" or not array.size):
        dtype = STATE.default_dtype if array.dtype.kind != "b" else None
    if dtype is None:
        return array
    if array.dtype.kind == "i" and dtype.kind == "f":
        array = array.astype(FLOAT64)  # PyTorch rounds twice
    return array.astype(dtype, copy=False)


def _holds(array: np.ndarray, dtype: np.dtype | None) -> bool:
    """Whether NumPy has read a list as PyTorch does: without numbers beyond 64 bits, or beyond the
    dtype that is asked for."""
    kind, wanted = array.dtype.kind, "" if dtype is None else dtype.kind
    if kind == "b" or not array.size:
        return kind in "bif"
    if kind == "f":
        return wanted in "fb" if wanted else bool((np.abs(array) < 2.0**63).all())
    if kind == "i" and dtype is not None and wanted in "iu":
        least, most = _range(dtype)
        return bool(least <= array.min() and array.max() <= most)
    return kind == "i" or (kind == "u" and wanted != "" and wanted in "fb")


def _range(dtype: np.dtype) -> tuple[int, int]:
    """What PyTorch takes for a dtype: negative numbers wrap around in a dtype without sign."""
    info = np.iinfo(dtype)
    return (-info.max, info.max) if dtype.kind == "u" else (info.min, info.max)


def _one_by_one(values: Any, dtype: np.dtype | None) -> np.ndarray:
    """Slow path of lists that NumPy does not read as PyTorch does: name the defect, or convert."""
    flat: list[Any] = []
    _flatten(values, flat)
    first = values
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if dtype is None:
        for value in flat:
            if not isinstance(value, bool | int | float):
                raise no_number(value, at_once=value is first is not values)
        dtype = STATE.default_dtype if any(isinstance(v, float) for v in flat) else INT64
    elif isinstance(first, str) and first:
        raise no_number(first, at_once=first is not values)
    shape = ragged_shape(values)
    check_size(shape, dtype)
    return np.array([_stored(v, dtype) for v in flat], dtype).reshape(shape)


_FLOAT = "must be real number, not {}"
_INTEGER = "'{}' object cannot be interpreted as an integer"


def no_number(value: Any, words: str = "", at_once: bool = False) -> AutodiffError:
    """E208 for what no tensor is made of. `at_once`: what a list begins with, which PyTorch takes
    for a further dim when it is a text."""
    kind = "TypeError"
    if isinstance(value, str):
        words = words or "new(): invalid data type 'str'"
        if at_once and value:
            words, kind = "too many dimensions 'str'", "ValueError"
    elif not words:
        words, kind = f"Could not infer dtype of {type_name(value)}", "RuntimeError"
    return fault("E208 tensor-made-numbers", shown(value), words, kind)


def _stored(value: Any, dtype: np.dtype) -> Any:
    """A number as an element of a dtype."""
    if not isinstance(value, bool | int | float):
        words = _FLOAT if dtype.kind == "f" else _INTEGER
        raise no_number(value, words.format(type_name(value)))
    value = plain_number(value)
    try:
        if dtype.kind == "f":
            return float(value)
    except OverflowError:
        raise _beyond(value, "int too large to convert to float", "OverflowError") from None
    if dtype.kind == "b":
        return bool(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _beyond(value, "Overflow when unpacking long long", "ValueError")
    least, most = _range(dtype)
    if isinstance(value, float):
        least, most = float(np.iinfo(dtype).min), float(most)  # type: ignore[assignment]  # floats
    if not least <= value <= most:
        words = f"value cannot be converted to type {dtype.name} without overflow"
        raise _beyond(value, words, "RuntimeError")
    return np.array(int(value)).astype(dtype)


def _beyond(value: Any, words: str, kind: str) -> AutodiffError:
    return fault("E504 integer-too-large-tensor", short(value, 40), words, kind)


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
    for size in shape:
        below: list[tuple[Any, str]] = []
        for row, place in rows:
            if not isinstance(row, list | tuple) or len(row) != size:
                found = "a number"
                if isinstance(row, list | tuple):
                    found = "1 entry" if len(row) == 1 else f"{len(row)} entries"
                raise fault("E107 ragged-list-row-first", place or "[]", found, size)
            below.extend((r, f"{place}[{i}]") for i, r in enumerate(row))
        rows = below
    for row, place in rows:
        if isinstance(row, list | tuple) and shape:
            raise fault("E107 ragged-list-row-mixes", place.rpartition("[")[0] or "[]")
    return tuple(shape)


def array_of_list(values: Any) -> Node:
    """A constant node of a numeric list."""
    return constant(array_of(values))
