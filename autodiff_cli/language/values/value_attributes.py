"""Attributes and methods of Python's own values: texts, lists, dicts, sets, and a few of ours."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter
from types import MethodType
from typing import Any

import numpy as np

from ...autograd import calls
from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fault
from ...graph.dtypes import is_float
from ...graph.params import type_name
from ...graph.symbolic_numbers import Growing
from ..syntax import tree as syntax
from .dialect import kind_of, misfit, private
from .formatting import qualified, represent, str_format
from .functions import call_value
from .iterators import Lazy, sorted_values
from .numpy_numbers import INTEGERS, to_numpy
from .operations import (
    COMPARISONS,
    binary,
    compare,
    contains,
    equal,
    items_of,
    keys_of,
    pairs_of,
    truth,
    unary,
)
from .providers import from_above, late
from .python_operators import MAX_CHARACTERS, OPERATORS, bound_length
from .subscripts import dict_key, index, slice_part
from .values import Builtin, Device, Size, has

Getter = Callable[[Any], Any]


_EMPTY = (str, list, dict, set, frozenset, tuple, int, float)


def _bound(name: str, function: Callable[..., Any]) -> Getter:
    def bound(value: Any) -> Builtin:
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(value, *args, **kwargs)
            except TypeError:
                if type(value) in _EMPTY:  # the words of Python's own method
                    getattr(type(value)(), name)(*args, **kwargs)
                raise

        return Builtin(name, run, value)

    return bound


def _texts(method: str) -> Getter:
    return _bound(
        method, lambda value, *args, **named: _bounded_text(getattr(value, method)(*args, **named))
    )


def _bounded_text(result: Any) -> Any:
    if isinstance(result, str):
        bound_length(len(result), str)
    return result


def _justify(method: str) -> Getter:
    def run(value: str, width: int, *fill: str) -> str:
        bound_length(width, str, width)
        return getattr(value, method)(width, *fill)

    return _bound(method, run)


def _replace(value: str, old: str, new: str, count: int = -1) -> str:
    if isinstance(old, str) and isinstance(new, str) and isinstance(count, int):
        found = value.count(old)
        bound_length(len(new) * (found if count < 0 else min(found, count)), str)
    return value.replace(old, new, count)


def _expanded(value: str, tabsize: int = 8) -> str:
    bound_length(len(value) + value.count("\t") * max(tabsize, 0), str, tabsize)
    return value.expandtabs(tabsize)


def _translated(value: str, table: dict[int, Any]) -> str:
    new = table.values() if isinstance(table, dict) else ()
    longest = max([len(text) for text in new if isinstance(text, str)], default=1)
    bound_length(len(value) * longest, str)
    return value.translate(table)


def _join(separator: str, parts: Any) -> str:
    found = items_of(parts)
    for place, part in enumerate(found):
        if not isinstance(part, str):
            at = f"sequence item {place}: expected str instance, {type_name(part)} found"
            help, notes = "convert with str(x) or f'{x}'", (f"PyTorch: {at}",)
            raise misfit("join() needs strings, not", part, help, notes=notes)
    bound_length(sum(map(len, found)) + len(separator) * len(found), str)
    return separator.join(found)


def _number_as(value: Any, dtype: Any) -> Any:
    """`np.floor(2.5).astype(int)`: a number of NumPy's in another dtype."""
    kind = from_above("values.arrays.dtype_of")(dtype)
    return from_above("values.arrays.given_back")(np.asarray(to_numpy(value)).astype(kind)[()])


_OF_NUMBERS = """
    all any argmax argmin clip copy cumsum flatten max mean min prod ravel reshape round
    squeeze std sum tolist transpose var
"""


_FACTS = ("shape", "ndim", "size", "itemsize", "nbytes", "T")


def _fact_of_number(name: str, value: Any) -> Any:
    return getattr(to_numpy(value), name)


def _of_number(method: str, value: Any, *args: Any, **kwargs: Any) -> Any:
    """Methods that a number of NumPy's has, as its arrays have them."""
    found = getattr(to_numpy(value), method)(*args, **kwargs)
    return from_above("values.arrays.given_back")(found)


def _append(values: list[Any], item: Any) -> None:
    bound_length(len(values) + 1, list)
    values.append(item)


def _extend(values: list[Any], items: Any) -> None:
    found = items_of(items)
    bound_length(len(values) + len(found), list)
    values.extend(found)


def _remove(values: list[Any], item: Any) -> None:
    del values[_find(values, item, said="that value")]


def _find(
    values: Any, item: Any, start: int = 0, stop: int = MAX_CHARACTERS, /, said: str = ""
) -> int:
    for i in range(len(values))[start:stop]:
        if values[i] is item or equal(values[i], item):
            return i
    kind = type_name(values)
    words = f"{represent(item)} is not in {kind}"
    if said or kind == "tuple":
        words = f"{kind}.{'remove' if said else 'index'}(x): x not in {kind}"
    raise fault("E210 does-not-hold", kind, said or represent(item), words)


def _sort(values: list[Any], /, *, key: Any = None, reverse: Any = False) -> None:
    values[:] = sorted_values(values, key=key, reverse=reverse)


def _update(values: Any, other: Any = (), **kwargs: Any) -> None:
    values.update(pairs_of(other), **kwargs)


def _plain(names: str) -> dict[str, Getter]:
    """Methods that take what Python's take."""

    def plain(method: str) -> Getter:
        return _bound(method, lambda value, *args: getattr(value, method)(*args))

    return {name: plain(name) for name in names.split()}


def _methods(**functions: Callable[..., Any]) -> dict[str, Getter]:
    """Methods by the functions that they are."""
    return {name: _bound(name, function) for name, function in functions.items()}


_TEXTS = """
    upper lower strip lstrip rstrip split rsplit splitlines startswith endswith find rfind count
    title capitalize isdigit isalpha isalnum isspace isupper islower removeprefix removesuffix
    partition rpartition index rindex swapcase casefold isdecimal isnumeric isidentifier isprintable
    istitle isascii
"""
_STRINGS: dict[str, Getter] = {
    **{name: _texts(name) for name in _TEXTS.split()},
    **{name: _justify(name) for name in ("ljust", "rjust", "center", "zfill")},
    **_methods(
        expandtabs=_expanded,
        translate=_translated,
        maketrans=lambda value, *args: str.maketrans(*args),
        replace=_replace,
        join=_join,
        format=lambda value, *args, **kwargs: str_format(value, args, kwargs),
        format_map=lambda value, mapping: str_format(value, (), mapping),
    ),
}
_TUPLES: dict[str, Getter] = _methods(
    index=_find, count=lambda v, item: sum(1 for x in v if x is item or equal(x, item))
)
_LISTS: dict[str, Getter] = {
    **_TUPLES,
    **_plain("insert pop clear copy reverse"),
    **_methods(append=_append, extend=_extend, remove=_remove, sort=_sort),
}
_DICTS: dict[str, Getter] = {
    **_plain("items keys values popitem copy clear"),
    **_methods(
        get=lambda values, key, default=None: values.get(dict_key(key), default),
        pop=lambda values, key, *default: values.pop(dict_key(key), *default),
        setdefault=lambda v, key, default=None: v.setdefault(dict_key(key), default),
        update=_update,
    ),
}
_ORDERED: dict[str, Getter] = {
    **_DICTS,
    **_methods(
        popitem=lambda v, last=True: v.popitem(truth(last)),
        move_to_end=lambda v, key, last=True: v.move_to_end(key, truth(last)),
    ),
}


def _counted(method: str) -> Getter:
    """A method of a Counter that takes in items or counts."""

    def run(value: Any, values: Any = (), **kwargs: Any) -> None:
        given = values if isinstance(values, dict) else items_of(values)
        getattr(value, method)(given, **kwargs)

    return _bound(method, run)


def _elements(value: Any) -> Any:
    return Lazy("chain", value.elements())


_COUNTERS: dict[str, Getter] = {
    **_DICTS,
    **_plain("total"),
    "update": _counted("update"),
    "subtract": _counted("subtract"),
    **_methods(most_common=lambda v, n=None: v.most_common(n), elements=_elements),
}
_DEQUES: dict[str, Getter] = {
    **_plain("append appendleft clear copy pop popleft reverse insert"),
    **_TUPLES,
    **_methods(
        extend=lambda v, items: v.extend(items_of(items)),
        extendleft=lambda v, items: v.extendleft(items_of(items)),
        rotate=lambda v, n=1: v.rotate(n),
        remove=_remove,
    ),
    "maxlen": lambda v: v.maxlen,
}


def _of_sets(names: str) -> dict[str, Getter]:
    """Methods that take the items of other sets or lists."""

    def make(method: str) -> Getter:
        return _bound(method, lambda value, *others: getattr(value, method)(*map(keys_of, others)))

    return {name: make(name) for name in names.split()}


_FROZEN_SETS: dict[str, Getter] = {
    **_plain("copy"),
    **_of_sets("union intersection difference symmetric_difference issubset issuperset isdisjoint"),
}
_SETS: dict[str, Getter] = {
    **_FROZEN_SETS,
    **_plain("discard remove pop clear"),
    **_methods(add=lambda v, item: v.add(dict_key(item))),
    **_of_sets("update intersection_update difference_update symmetric_difference_update"),
}


def _facts(names: str) -> dict[str, Getter]:
    """Attributes that are Python's own."""
    return {name: attrgetter(name) for name in names.split()}


_PROPERTY = {**_plain("setter getter deleter"), **_facts("fget fset fdel")}


def _cache_facts(value: Any) -> Any:
    found = value.cache_info()
    named_tuple = from_above("python.collections_module.named_tuple")
    return named_tuple("CacheInfo", list(found._fields), [], {})(*found)


_CACHED: dict[str, Getter] = {
    **_methods(cache_info=_cache_facts, cache_parameters=lambda v: v.cache_parameters()),
    **_plain("cache_clear"),
    **_facts("__wrapped__"),
    "__name__": lambda v: getattr(v.__wrapped__, "name", "cached"),
}

_BOUND_METHOD: dict[str, Getter] = {
    **_facts("__self__ __func__"),
    "__qualname__": lambda v: qualified(v.__func__),
    "__doc__": lambda v: function_fact(v.__func__, "__doc__"),
}


def function_fact(function: Any, name: str) -> Any:
    """What programs may read of a function besides what they keep in it; None where it has none."""
    kept = getattr(function, "fields", None) or {}
    if name in kept:
        return kept[name]
    if name == "__qualname__":
        return qualified(function)
    if name == "__name__":
        return function.name.rpartition(".")[2]
    if name == "__module__":
        return "__main__"
    tree = getattr(getattr(function, "params", None), "tree", None)
    body = getattr(tree, "body", None)
    first = body[0] if isinstance(body, list) else None
    words = getattr(first.value, "value", None) if isinstance(first, syntax.ExprStmt) else None
    return words if type(words) is str else None


def table_of(value: Any) -> dict[str, Getter] | None:
    """What a value of Python's own kinds answers."""
    return VALUE_ATTRIBUTES.get(type(value)) or next(
        (t for k, t in VALUE_ATTRIBUTES.items() if isinstance(value, k)), None
    )


def _results_attribute(value: Any, name: str) -> Any:
    if name in value.fields:
        return value[value.fields.index(name)]
    raise fault("E207 result-no-field-2", ", ".join(value.fields), name=name)


calls.Results.get_attribute = _results_attribute  # type: ignore[attr-defined]  # programs read fields by name

_FLOATS: dict[str, Getter] = {
    **_plain("is_integer as_integer_ratio hex conjugate"),
    **_methods(item=float),
    "real": lambda v: v,
}

_INTS: dict[str, Getter] = {
    **_plain("bit_length bit_count as_integer_ratio conjugate"),
    "real": lambda v: v,
    "imag": lambda v: 0,
    "numerator": lambda v: v,
    "denominator": lambda v: 1,
}
# What numbers of NumPy's have, as its arrays do.
_OF_ARRAYS: dict[str, Getter] = {
    "dtype": lambda v: from_above("values.arrays.ArrayType")(v.dtype),
    **{name: partial(_fact_of_number, name) for name in _FACTS},
    **{name: _bound(name, partial(_of_number, name)) for name in _OF_NUMBERS.split()},
    **_methods(astype=_number_as),
}

VALUE_ATTRIBUTES: dict[type, dict[str, Getter]] = {
    str: _STRINGS,
    list: _LISTS,
    Growing: _plain("append"),
    Size: {**_TUPLES, **_plain("numel")},
    tuple: _TUPLES,
    OrderedDict: _ORDERED,
    Counter: _COUNTERS,
    defaultdict: {**_DICTS, "default_factory": lambda v: v.default_factory},
    deque: _DEQUES,
    property: _PROPERTY,
    staticmethod: _facts("__func__"),
    classmethod: _facts("__func__"),
    partial: {**_facts("func args"), "keywords": lambda v: dict(v.keywords)},
    type(cache(len)): _CACHED,
    MethodType: _BOUND_METHOD,
    dict: _DICTS,
    set: _SETS,
    frozenset: _FROZEN_SETS,
    float: _FLOATS,
    np.float64: {**_FLOATS, **_OF_ARRAYS},
    **{kind: {**_INTS, **_methods(item=int), **_OF_ARRAYS} for kind in INTEGERS.values()},
    int: _INTS,
    slice: {**_facts("start stop step"), **_methods(indices=lambda v, size: v.indices(size))},
    range: {**_facts("start stop step"), **_plain("index count")},
    np.dtype: {
        "is_floating_point": lambda v: is_float(v),
        "is_complex": lambda v: False,
        "is_signed": lambda v: v.kind in "if",
        "itemsize": lambda v: v.itemsize,
    },
    Device: {"type": lambda v: v.type, "index": lambda v: v.index},
}


# -- special methods -------------------------------------------------------------------------------


def no_attribute(value: Any, name: str) -> AutodiffError:
    if value is None:
        return fault("E207 none-no-attribute", name=name)
    return fault("E207 no-attribute", kind_of(value), name=name)


def _operator(symbol: str, swapped: bool) -> Callable[[Any, Any], Any]:
    return lambda a, b: binary(symbol, b, a) if swapped else binary(symbol, a, b)


def _by_builtin(name: str) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        return call_value(from_above("python.builtins.BUILTINS")[name], list(args), {})

    return run


_BY_BUILTIN = "len float int abs hash repr str iter next format round bool"
# Special methods of values that are no values of classes: what the language itself would do.
SPECIAL_NAMES: dict[str, Callable[..., Any]] = {
    **{f"__{name}__": _operator(symbol, False) for name, symbol in OPERATORS.items()},
    **{f"__r{name}__": _operator(symbol, True) for name, symbol in OPERATORS.items()},
    **{f"__{name}__": partial(compare, symbol) for symbol, (name, _) in COMPARISONS.items()},
    **{f"__{name}__": _by_builtin(name) for name in _BY_BUILTIN.split()},
    "__index__": lambda value: slice_part(value),
    "__neg__": lambda value: unary("-", value),
    "__invert__": lambda value: unary("~", value),
    "__getitem__": index,
    "__setitem__": late("runtime.assignment.set_item"),
    "__delitem__": late("runtime.assignment.delete_item"),
    "__contains__": contains,
    "__call__": lambda value, *args, **kwargs: call_value(value, list(args), kwargs),
}


def special_name(value: Any, name: str) -> Any:
    """`value.__len__` and its like, where the value has one; what else begins with `_` is not
    there."""
    if name == "__class__":
        return from_above("python.builtins.type_of")(value)
    method = SPECIAL_NAMES.get(name)
    tensor = isinstance(value, Tensor) and name not in ("__next__", "__call__")
    if method is not None and (tensor or has(value, name)):
        return Builtin(name, lambda *args, **kwargs: method(value, *args, **kwargs), value)
    if name.startswith("_"):
        raise private(name)
    raise no_attribute(value, name)
