"""Subscripts: what `value[key]` reads, and keys as containers and the op table take them."""

from __future__ import annotations

import operator
from collections import deque
from typing import Any

from ...autograd import calls
from ...autograd.tensor import Array, Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.params import BindError, to_index, type_name, written_as_int
from ...graph.registry import F
from ...graph.state import STATE
from ...suggest import suggest
from .dialect import kind_of
from .formatting import represent
from .numpy_numbers import NumpyInteger
from .operations import count_nested, number_of
from .values import Instance, Size, has


def index(value: Any, key: Any) -> Any:
    """`value[key]`."""
    if STATE.recorder is not None:
        found = STATE.recorder.pick(value, key, index)
        if found is not None:
            return found
    if isinstance(value, Tensor):
        return read_index(value, key)
    if isinstance(value, Instance):
        return type(value).get_item(value, key)  # type: ignore[attr-defined]  # of every class
    if isinstance(value, list | tuple | str | range | deque):
        return _index_sequence(value, key)
    if isinstance(value, dict):
        try:
            return value[dict_key(key)]
        except KeyError:
            known = ", ".join(represent(k) for k in list(value)[:8])
            names = [k for k in value if type(k) is str]
            close = suggest(key, names) if type(key) is str else []
            raise fault(
                "E210 dict-no-key",
                represent(key)[:60],
                f"did you mean {represent(close[0])}?"
                if close
                else f"it has: {known or 'nothing'}",
            ) from None
    item = getattr(type(value), "get_item", None)
    if item is not None:
        return item(value, key)
    raise fault("E208 cannot-indexed", kind_of(value))


def read_index(tensor: Tensor, key: Any) -> Any:
    """`tensor[key]`: a view for ints and slices, a copy for masks and index tensors."""
    if type(tensor) is not Array:
        return _read(tensor, key, False)
    from .arrays import as_numpy, result

    with as_numpy(operator.getitem, tensor, key):
        return result(_read(*forwards(tensor, key), True))


def _read(tensor: Tensor, key: Any, array: bool) -> Any:
    parts = index_parts(key, array)
    single = len(parts) == 1 and not isinstance(key, tuple)  # one slice of everything is a view
    items = parts[0] if single else parts
    return calls.call_ops([F.getitem], "getitem", (tensor, items), {})


def forwards(array: Tensor, key: Any) -> tuple[Tensor, Any]:
    """An array and what to index it with, without slices that go backwards: the dims along which
    they do are cut and turned before."""
    parts = list(key) if type(key) is tuple else [key]
    back = [type(p) is slice and p.step is not None and _position(p.step) < 0 for p in parts]
    if not any(back):
        return array, key
    at = 0
    for i, part in enumerate(parts):
        if part is Ellipsis:
            at = len(array.shape) - sum(map(_dims_taken, parts[i + 1 :]))
        elif back[i] and at < len(array.shape):
            chosen = range(array.shape[at])[plain_key(part)]
            ahead = slice(chosen[-1], chosen[0] + 1, -chosen.step) if chosen else slice(0, 0)
            items = (*(slice(None),) * at, ahead)
            for ops, name, second in ([F.getitem], "getitem", items), ([F.turned], "flip", at):
                array = calls.call_ops(ops, name, (array, second), {})
            parts[i] = slice(None)
        at += _dims_taken(part)
    return array, tuple(parts)


def _dims_taken(part: Any) -> int:
    """How many dims of an array a part of an index stands for."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.node.ndim if isinstance(part, Tensor) and part.dtype.kind == "b" else 1


def index_parts(key: Any, array: bool) -> tuple[Any, ...]:
    """An index as the op table takes it: a tuple of ints, slices, None, Ellipsis, bools, nodes,
    lists. A short list that holds more than numbers is a tuple, as PyTorch reads it."""
    several = isinstance(key, tuple) and not isinstance(key, Size)
    if type(key) is list and not array and len(key) < 32:
        several = any(v is None or isinstance(v, _WHOLE_PARTS) for v in key)
    return tuple(_index_part(part) for part in (key if several else (key,)))


_WHOLE_PARTS = (Tensor, list, tuple, slice, str, type(Ellipsis))


def _index_part(part: Any) -> Any:
    if isinstance(part, Tensor):
        return int(part.item()) if _is_int_leaf(part) else part.node
    if isinstance(part, slice):
        return slice(slice_part(part.start), slice_part(part.stop), slice_part(part.step))
    if isinstance(part, range | Size):
        return list(part)
    if isinstance(part, list) and any(isinstance(p, Tensor) for p in part):
        return [_one_index(p) if isinstance(p, Tensor) else p for p in part]
    return int(part) if isinstance(part, NumpyInteger) else number_of(part)


def _one_index(tensor: Tensor) -> Any:
    """An element of a list; TypeError for several, and for floats."""
    as_written = tensor.dtype.kind == "b" or _is_int_leaf(tensor)
    return tensor.item() if as_written else tensor.__index__()


def _is_int_leaf(tensor: Tensor) -> bool:
    node = tensor.node
    return node.dtype.kind == "f" and written_as_int(node)


def plain_key(key: Any) -> Any:
    """An index of a list or a text in Python's own form."""
    if isinstance(key, slice):
        step = slice_part(key.step)
        if step == 0:
            raise fault("E208 slice-step-cannot-be")
        return slice(slice_part(key.start), slice_part(key.stop), step)
    return _position(key)


def dict_key(key: Any, span: Any = None) -> Any:
    """A value that can be a dict key."""
    if STATE.recorder is not None:
        STATE.recorder.identity(key)
    if type(key) is tuple:
        for part in key:
            dict_key(part, span)
    elif isinstance(key, Tensor) and key.tag == "number":
        return key.item()
    elif type(key).__hash__ is None or type(key) is slice:  # from Python 3.12 on slices have one
        raise fail(
            "E208",
            f"{kind_of(key)} cannot be a key",
            span,
            help="define `__hash__` beside `__eq__`"
            if isinstance(key, Instance)
            else "use a string, a number or a tuple",
            notes=(f"PyTorch: unhashable type: '{type(key).__name__}'",),
            raises="TypeError",
        )
    if isinstance(key, tuple):
        count_nested(key)
    return key


def slice_part(value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    return _position(value)


def _position(key: Any, of: str = "slice") -> int:
    if isinstance(key, Instance) and has(key, "__index__"):
        return operator.index(key)  # type: ignore[arg-type]  # it has `__index__`
    try:
        return to_index(key)
    except BindError as error:
        words = "slice indices must be integers or None or have an __index__ method"
        if isinstance(key, Tensor):
            words = "only integer tensors of a single element can be converted to an index"
        elif of != "slice":
            name = type_name(key)
            words = f"{of} indices must be integers or slices, not {name}"
            if of == "str":
                words = f"string indices must be integers, not '{name}'"
        raise fault("E305 index", error, words) from None


def out_of_range(at: int, kind: str, count: int) -> AutodiffError:
    """E210 of an index into a sequence."""
    help = f"use 0 to {count - 1}" if count else "it is empty"
    return fault("E210 index-out-range-kind", at, kind, count, help)


def _index_sequence(value: Any, key: Any) -> Any:
    if isinstance(key, slice) and isinstance(value, deque):
        raise fault("E305 sequence-index-integer")  # fmt: skip
    if isinstance(key, slice):
        part = value[plain_key(key)]
        return Size(part) if isinstance(value, Size) else part
    if isinstance(key, tuple):
        raise fault("E305 takes-index", kind_of(value), len(key))
    at = key if type(key) is int else _position(key, type(value).__name__)
    try:
        return value[at]
    except IndexError:
        raise out_of_range(at, kind_of(value), len(value)) from None
