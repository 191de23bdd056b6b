"""Attributes and methods of Python's own values: texts, lists, dicts, sets, and a few of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import calls
from ..errors import fail
from ..graph.dtypes import is_float
from ..graph.varying import Growing
from .kinds import kind_of
from .operations import equal, items_of
from .subscripts import dict_key
from .text import represent, str_format
from .values import Builtin, Device, Size

Getter = Callable[[Any], Any]


class View(list):
    """The keys, values or items of a dict, as they were when asked for."""

    __slots__ = ("what",)

    def __init__(self, found: Any, what: str):
        super().__init__(found)
        self.what = what

    def describe(self) -> str:
        return f"{self.what}({represent(list(self))})"


def _bound(name: str, function: Callable[..., Any]) -> Getter:
    return lambda value: Builtin(name, lambda *args, **kwargs: function(value, *args, **kwargs))


def _view(name: str) -> Getter:
    def run(value: dict[Any, Any]) -> View:
        ordered = type(value).__name__ == "OrderedDict"
        return View(getattr(value, name)(), f"{'o' * ordered}dict_{name}")

    return _bound(name, run)


def _texts(method: str) -> Getter:
    return _bound(method, lambda value, *args: _bounded_text(getattr(value, method)(*args)))


def _bounded_text(result: Any) -> Any:
    if isinstance(result, str) and len(result) > 50_000_000:
        raise fail("E505", "the text would be too long", help="build it in smaller parts")
    return result


def _justify(method: str) -> Getter:
    def run(value: str, width: int, fill: str = " ") -> str:
        if width > 100_000:
            raise fail("E505", f"a text of width {width}", help="use a smaller width")
        return getattr(value, method)(width, fill)

    return _bound(method, run)


def _zfill(value: str, width: int) -> str:
    if width > 100_000:
        raise fail("E505", f"a text of width {width}", help="use a smaller width")
    return value.zfill(width)


def _replace(value: str, old: str, new: str, count: int = -1) -> str:
    if len(value) * max(len(new), 1) > 50_000_000 and (value.count(old) * len(new)) > 50_000_000:
        raise fail("E505", "the text would be too long", help="build it in smaller parts")
    return value.replace(old, new, count)


def _join(separator: str, parts: Any) -> str:
    found = items_of(parts)
    for part in found:
        if not isinstance(part, str):
            raise fail(
                "E208",
                f"join() needs strings, not {kind_of(part)}",
                help="convert with str(x) or f'{x}'",
            )
    if sum(map(len, found)) + len(separator) * len(found) > 50_000_000:
        raise fail("E505", "the text would be too long", help="build it in smaller parts")
    return separator.join(found)


def _append(values: list[Any], item: Any) -> None:
    if len(values) >= 10_000_000:
        raise fail("E505", "a list of more than 10 million items", help="use a tensor")
    values.append(item)


def _extend(values: list[Any], items: Any) -> None:
    found = items_of(items)
    if len(values) + len(found) > 10_000_000:
        raise fail("E505", "a list of more than 10 million items", help="use a tensor")
    values.extend(found)


def _remove(values: list[Any], item: Any) -> None:
    for i, value in enumerate(values):
        if value is item or equal(value, item):
            del values[i]
            return
    raise fail("E210", "the list does not hold that value", help="check with `in` first")


def _find(values: Any, item: Any) -> int:
    for i, value in enumerate(values):
        if value is item or equal(value, item):
            return i
    raise fail("E210", "the list does not hold that value", help="check with `in` first")


def _sort(values: list[Any], key: Any = None, reverse: Any = False) -> None:
    from .builtins import sorted_values

    values[:] = sorted_values(values, key, reverse)


def _get(values: dict[Any, Any], key: Any, default: Any = None) -> Any:
    return values.get(dict_key(key), default)


def _pop_key(values: dict[Any, Any], key: Any, *default: Any) -> Any:
    return values.pop(dict_key(key), *default)


_STRINGS: dict[str, Getter] = (
    {
        name: _texts(name)
        for name in (
            "upper",
            "lower",
            "strip",
            "lstrip",
            "rstrip",
            "split",
            "rsplit",
            "splitlines",
            "startswith",
            "endswith",
            "find",
            "rfind",
            "count",
            "title",
            "capitalize",
            "isdigit",
            "isalpha",
            "isalnum",
            "isspace",
            "isupper",
            "islower",
            "removeprefix",
            "removesuffix",
            "partition",
            "rpartition",
            "index",
            "swapcase",
        )
    }
    | {name: _justify(name) for name in ("ljust", "rjust", "center")}
    | {
        "zfill": _bound("zfill", _zfill),
        "replace": _bound("replace", _replace),
        "join": _bound("join", _join),
        "format": _bound("format", lambda value, *args, **kwargs: str_format(value, args, kwargs)),
    }
)

_LISTS: dict[str, Getter] = {
    "append": _bound("append", _append),
    "extend": _bound("extend", _extend),
    "insert": _bound("insert", lambda v, at, item: v.insert(at, item)),
    "pop": _bound("pop", lambda v, at=-1: v.pop(at)),
    "remove": _bound("remove", _remove),
    "clear": _bound("clear", lambda v: v.clear()),
    "copy": _bound("copy", lambda v: v.copy()),
    "reverse": _bound("reverse", lambda v: v.reverse()),
    "sort": _bound("sort", _sort),
    "index": _bound("index", _find),
    "count": _bound("count", lambda v, item: sum(1 for x in v if equal(x, item))),
}

_TUPLES: dict[str, Getter] = {"index": _LISTS["index"], "count": _LISTS["count"]}

_DICTS: dict[str, Getter] = {
    "items": _view("items"),
    "keys": _view("keys"),
    "values": _view("values"),
    "get": _bound("get", _get),
    "pop": _bound("pop", _pop_key),
    "setdefault": _bound(
        "setdefault", lambda v, key, default=None: v.setdefault(dict_key(key), default)
    ),
    "update": _bound("update", lambda v, other=(), **kwargs: v.update(dict(other), **kwargs)),
    "copy": _bound("copy", lambda v: v.copy()),
    "clear": _bound("clear", lambda v: v.clear()),
}

_SETS: dict[str, Getter] = {
    "add": _bound("add", lambda v, item: v.add(dict_key(item))),
    "discard": _bound("discard", lambda v, item: v.discard(item)),
    "remove": _bound("remove", lambda v, item: v.remove(item)),
    "union": _bound("union", lambda v, *o: v.union(*[items_of(x) for x in o])),
    "intersection": _bound("intersection", lambda v, *o: v.intersection(*[items_of(x) for x in o])),
    "difference": _bound("difference", lambda v, *o: v.difference(*[items_of(x) for x in o])),
}


def _results_attribute(value: Any, name: str) -> Any:
    if name in value.fields:
        return value[value.fields.index(name)]
    raise fail(
        "E207", f"the result has no field `{name}`", help=f"it has: {', '.join(value.fields)}"
    )


calls.Results.get_attribute = _results_attribute  # type: ignore[attr-defined]  # programs read fields by name

_FLOATS: dict[str, Getter] = {
    "is_integer": _bound("is_integer", lambda v: v.is_integer()),
    "item": _bound("item", float),
    "real": lambda v: v,
}

VALUE_ATTRIBUTES: dict[type, dict[str, Getter]] = {
    str: _STRINGS,
    list: _LISTS,
    Growing: {"append": _bound("append", Growing.append)},
    Size: {**_TUPLES, "numel": _bound("numel", lambda v: v.numel())},
    tuple: _TUPLES,
    dict: _DICTS,
    set: _SETS,
    float: _FLOATS,
    np.float64: {
        **_FLOATS,
        "dtype": lambda v: "float64",
        "shape": lambda v: (),
        "round": _bound("round", lambda v, decimals=0: v.round(decimals)),
    },
    int: {
        "bit_length": _bound("bit_length", lambda v: v.bit_length()),
        "item": _bound("item", lambda v: v),
    },
    slice: {"start": lambda v: v.start, "stop": lambda v: v.stop, "step": lambda v: v.step},
    range: {"start": lambda v: v.start, "stop": lambda v: v.stop, "step": lambda v: v.step},
    np.dtype: {
        "is_floating_point": lambda v: is_float(v),
        "is_complex": lambda v: False,
        "itemsize": lambda v: v.itemsize,
    },
    Device: {"type": lambda v: "cpu", "index": lambda v: None},
}
