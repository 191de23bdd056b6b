"""Attributes and methods of Python's own values: texts, lists, dicts, sets, and a few of ours."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from functools import cache, partial
from types import MethodType
from typing import Any

import numpy as np

from ..autograd import calls
from ..errors import fail
from ..graph.dtypes import is_float
from ..graph.varying import Growing
from .kinds import misfit
from .operations import equal, items_of, truth
from .subscripts import dict_key
from .text import str_format
from .values import Builtin, Device, Size

Getter = Callable[[Any], Any]


def _bound(name: str, function: Callable[..., Any]) -> Getter:
    return lambda value: Builtin(name, lambda *args, **kwargs: function(value, *args, **kwargs))


def _texts(method: str) -> Getter:
    return _bound(
        method, lambda value, *args, **named: _bounded_text(getattr(value, method)(*args, **named))
    )


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


def _expanded(value: str, tabsize: int = 8) -> str:
    if len(value) + value.count("\t") * max(tabsize, 0) > 50_000_000:
        raise fail("E505", "the text would be too long", help="build it in smaller parts")
    return value.expandtabs(tabsize)


def _translated(value: str, table: dict[int, Any]) -> str:
    longest = max([len(new) for new in table.values() if isinstance(new, str)], default=1)
    if len(value) * longest > 50_000_000:
        raise fail("E505", "the text would be too long", help="build it in smaller parts")
    return value.translate(table)


def _join(separator: str, parts: Any) -> str:
    found = items_of(parts)
    for part in found:
        if not isinstance(part, str):
            raise misfit("join() needs strings, not", part, "convert with str(x) or f'{x}'")
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


def _sort(values: list[Any], /, *, key: Any = None, reverse: Any = False) -> None:
    from .builtins import sorted_values

    values[:] = sorted_values(values, key=key, reverse=reverse)


def _update(values: Any, other: Any = (), **kwargs: Any) -> None:
    from .collected import pairs_of

    values.update(pairs_of(other), **kwargs)


def _plain(method: str) -> Getter:
    return _bound(method, lambda value, *args: getattr(value, method)(*args))


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
            "rindex",
            "swapcase",
            "casefold",
            "isdecimal",
            "isnumeric",
            "isidentifier",
            "isprintable",
            "istitle",
            "isascii",
        )
    }
    | {name: _justify(name) for name in ("ljust", "rjust", "center")}
    | {
        "zfill": _bound("zfill", _zfill),
        "expandtabs": _bound("expandtabs", _expanded),
        "translate": _bound("translate", _translated),
        "maketrans": _bound("maketrans", lambda value, *args: str.maketrans(*args)),
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
    "items": _bound("items", lambda v: v.items()),
    "keys": _bound("keys", lambda v: v.keys()),
    "values": _bound("values", lambda v: v.values()),
    "get": _bound("get", _get),
    "pop": _bound("pop", _pop_key),
    "setdefault": _bound(
        "setdefault", lambda v, key, default=None: v.setdefault(dict_key(key), default)
    ),
    "update": _bound("update", _update),
    "popitem": _bound("popitem", lambda v: v.popitem()),
    "copy": _bound("copy", lambda v: v.copy()),
    "clear": _bound("clear", lambda v: v.clear()),
}

_ORDERED: dict[str, Getter] = {
    **_DICTS,
    "popitem": _bound("popitem", lambda v, last=True: v.popitem(truth(last))),
    "move_to_end": _bound("move_to_end", lambda v, key, last=True: v.move_to_end(key, truth(last))),
}


def _counted(method: str) -> Getter:
    """A method of a Counter that takes in items or counts."""

    def run(value: Any, values: Any = (), **kwargs: Any) -> None:
        given = values if isinstance(values, dict) else items_of(values)
        getattr(value, method)(given, **kwargs)

    return _bound(method, run)


def _elements(value: Any) -> Any:
    from .iterators import Lazy

    return Lazy("chain", value.elements())


_COUNTERS: dict[str, Getter] = {
    **_DICTS,
    "update": _counted("update"),
    "subtract": _counted("subtract"),
    "most_common": _bound("most_common", lambda v, n=None: v.most_common(n)),
    "total": _bound("total", lambda v: v.total()),
    "elements": _bound("elements", _elements),
}

_DEQUES: dict[str, Getter] = {
    **{
        name: _plain(name)
        for name in (
            "append",
            "appendleft",
            "clear",
            "copy",
            "pop",
            "popleft",
            "reverse",
            "insert",
        )
    },
    "extend": _bound("extend", lambda v, items: v.extend(items_of(items))),
    "extendleft": _bound("extendleft", lambda v, items: v.extendleft(items_of(items))),
    "rotate": _bound("rotate", lambda v, n=1: v.rotate(n)),
    "remove": _bound("remove", _remove),
    "index": _bound("index", _find),
    "count": _LISTS["count"],
    "maxlen": lambda v: v.maxlen,
}


def _of_sets(method: str) -> Getter:
    """A method that takes the items of other sets or lists."""
    return _bound(
        method, lambda value, *others: getattr(value, method)(*[items_of(x) for x in others])
    )


_FROZEN_SETS: dict[str, Getter] = {
    "copy": _bound("copy", lambda v: v.copy()),
    **{
        name: _of_sets(name)
        for name in (
            "union",
            "intersection",
            "difference",
            "symmetric_difference",
            "issubset",
            "issuperset",
            "isdisjoint",
        )
    },
}
_SETS: dict[str, Getter] = {
    **_FROZEN_SETS,
    "add": _bound("add", lambda v, item: v.add(dict_key(item))),
    "discard": _bound("discard", lambda v, item: v.discard(item)),
    "remove": _bound("remove", lambda v, item: v.remove(item)),
    "pop": _bound("pop", lambda v: v.pop()),
    "clear": _bound("clear", lambda v: v.clear()),
    **{
        name: _of_sets(name)
        for name in (
            "update",
            "intersection_update",
            "difference_update",
            "symmetric_difference_update",
        )
    },
}

_PROPERTY: dict[str, Getter] = {
    "setter": _bound("setter", lambda v, function: v.setter(function)),
    "getter": _bound("getter", lambda v, function: v.getter(function)),
    "deleter": _bound("deleter", lambda v, function: v.deleter(function)),
    "fget": lambda v: v.fget,
    "fset": lambda v: v.fset,
    "fdel": lambda v: v.fdel,
}


def _cache_facts(value: Any) -> Any:
    from .collected import named_tuple

    found = value.cache_info()
    return named_tuple("CacheInfo", list(found._fields), [], {})(*found)


_CACHED: dict[str, Getter] = {
    "cache_info": _bound("cache_info", _cache_facts),
    "cache_clear": _bound("cache_clear", lambda v: v.cache_clear()),
    "__wrapped__": lambda v: v.__wrapped__,
    "__name__": lambda v: getattr(v.__wrapped__, "name", "cached"),
}

_BOUND_METHOD: dict[str, Getter] = {
    "__self__": lambda v: v.__self__,
    "__func__": lambda v: v.__func__,
    "__name__": lambda v: getattr(v.__func__, "name", "method"),
    "__qualname__": lambda v: getattr(v.__func__, "name", "method"),
    "__doc__": lambda v: function_fact(v.__func__, "__doc__"),
}


def function_fact(function: Any, name: str) -> Any:
    """What programs may read of a function besides what they keep in it; None where it has none."""
    if name in ("__name__", "__qualname__"):
        return function.name.rpartition(".")[2]
    if name == "__module__":
        return "__main__"
    tree = getattr(getattr(function, "params", None), "tree", None)
    body = getattr(tree, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    words = getattr(getattr(first, "value", None), "value", None)
    return words if type(words) is str else None


def table_of(value: Any) -> dict[str, Getter] | None:
    """What a value of Python's own kinds answers."""
    return VALUE_ATTRIBUTES.get(type(value)) or next(
        (t for k, t in VALUE_ATTRIBUTES.items() if isinstance(value, k)), None
    )


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
    OrderedDict: _ORDERED,
    Counter: _COUNTERS,
    defaultdict: {**_DICTS, "default_factory": lambda v: v.default_factory},
    deque: _DEQUES,
    property: _PROPERTY,
    staticmethod: {"__func__": lambda v: v.__func__},
    classmethod: {"__func__": lambda v: v.__func__},
    partial: {
        "func": lambda v: v.func,
        "args": lambda v: v.args,
        "keywords": lambda v: dict(v.keywords),
    },
    type(cache(len)): _CACHED,
    MethodType: _BOUND_METHOD,
    dict: _DICTS,
    set: _SETS,
    frozenset: _FROZEN_SETS,
    float: _FLOATS,
    np.float64: {
        **_FLOATS,
        "dtype": lambda v: "float64",
        "shape": lambda v: (),
        "round": _bound("round", lambda v, decimals=0: v.round(decimals)),
    },
    int: {
        "bit_length": _bound("bit_length", lambda v: v.bit_length()),
        "bit_count": _bound("bit_count", lambda v: v.bit_count()),
        "real": lambda v: v,
        "imag": lambda v: 0,
        "numerator": lambda v: v,
        "denominator": lambda v: 1,
        "item": _bound("item", lambda v: v),
    },
    slice: {"start": lambda v: v.start, "stop": lambda v: v.stop, "step": lambda v: v.step},
    range: {
        "start": lambda v: v.start,
        "stop": lambda v: v.stop,
        "step": lambda v: v.step,
        "index": _plain("index"),
        "count": _plain("count"),
    },
    np.dtype: {
        "is_floating_point": lambda v: is_float(v),
        "is_complex": lambda v: False,
        "itemsize": lambda v: v.itemsize,
    },
    Device: {"type": lambda v: "cpu", "index": lambda v: None},
}
