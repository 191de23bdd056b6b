"""The parts of Python's own modules that programs use: `functools`, `itertools`, `operator` ...

All is written anew for the values of the language; no module of Python is ever handed out.
"""

from __future__ import annotations

import collections.abc
import functools
import random
import time
import types
import typing
from collections.abc import Callable
from keyword import iskeyword
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import fault
from ..random.generators import Stream, stream
from ..runtime.attributes import get_attribute
from ..runtime.context_managers import ExitStack, Manager, context_manager
from ..values.builtin_bases import GENERIC
from ..values.dialect import misfit
from ..values.exceptions import caught
from ..values.functions import call_value
from ..values.iterators import CHAIN, ITERTOOLS, iterator, pick
from ..values.operations import COMPARISONS, binary, compare, items_of, truth, unary
from ..values.providers import Names, from_above
from ..values.python_operators import OPERATORS
from ..values.user_classes import library_class
from ..values.value_attributes import function_fact
from ..values.values import Builtin, Instance, TypeName, UserFunction, builtins_of
from .collections_module import COLLECTIONS, row_type
from .copying import COPIES

# -- functools ------------------------------------------------------------------------------------


def _wraps(wrapped: Any, **options: Any) -> Builtin:
    def rename(function: Any) -> Any:
        origin = getattr(wrapped, "__wrapped__", wrapped)
        name = getattr(origin, "name", None)
        if name is not None and hasattr(function, "name"):
            function.name = name
        if isinstance(function, UserFunction):
            facts = {fact: function_fact(origin, fact) for fact in ("__qualname__", "__doc__")}
            kept = getattr(origin, "fields", None) or {}
            function.fields = {**(function.fields or {}), **kept, **facts, "__wrapped__": wrapped}
        return function

    return Builtin("wraps", rename)


def _cached(maxsize: Any = 128, typed: Any = False) -> Any:
    if maxsize is None or isinstance(maxsize, int):
        return Builtin("lru_cache", functools.lru_cache(maxsize, truth(typed)))
    return functools.lru_cache(128, truth(typed))(maxsize)


class CachedProperty:
    """`@functools.cached_property`: computed once, then an attribute of the value."""

    __slots__ = ("function",)

    def __init__(self, function: Any):
        self.function = function

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        value = call_value(self.function, [instance], {})
        name = next(name for name, found in type(instance).flat.items() if found is self)
        instance.fields[name] = value
        return value


# -- operator -------------------------------------------------------------------------------------


def _operator(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: binary(symbol, a, b)


def _comparison(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: compare(symbol, a, b)


OPERATOR: dict[str, Callable[..., Any]] = {
    **{
        f"{name}_" if iskeyword(name) else name: _operator(symbol)
        for name, symbol in OPERATORS.items()
    },
    **{name: _comparison(symbol) for symbol, (name, _) in COMPARISONS.items()},
    "neg": lambda a: unary("-", a),
    "not_": lambda a: not truth(a),
    "getitem": pick,
    "itemgetter": lambda *keys: Builtin("itemgetter", lambda value: pick(value, *keys)),
    "attrgetter": lambda name: Builtin("attrgetter", lambda value: get_attribute(value, name)),
}


# -- contextlib -----------------------------------------------------------------------------------


def _suppress(*classes: Any) -> Manager:
    return Manager(
        "suppress",
        leave=lambda error: error is not None and caught(error, list(classes)) is not None,
    )


# -- random ---------------------------------------------------------------------------------------


def _pythons() -> Stream:
    own = random.Random()
    return Stream(own, own.getstate, own.setstate)


def _own() -> Any:
    return stream("python", _pythons).own


def _seed(a: Any = None) -> None:
    if not isinstance(a, int | float | str | None):
        raise misfit("a seed is a number, not", a, "random.seed(0)")
    _own().seed(a)


def _drawn(name: str) -> Callable[..., Any]:
    return lambda *numbers, **named: getattr(_own(), name)(*numbers, **named)


def _shuffle(values: Any) -> None:
    if not isinstance(values, list):
        raise misfit("shuffle() takes a list, not", values, "list(x)")
    _own().shuffle(values)


_DRAWN = """
    random randint uniform gauss normalvariate randrange expovariate betavariate triangular
    lognormvariate getrandbits
"""
RANDOM: dict[str, Callable[..., Any]] = {
    "seed": _seed,
    **{name: _drawn(name) for name in _DRAWN.split()},
    "choice": lambda values: _own().choice(items_of(values)),
    "choices": lambda population, weights=None, *, cum_weights=None, k=1: _own().choices(
        items_of(population), weights, cum_weights=cum_weights, k=k
    ),
    "sample": lambda values, k: _own().sample(items_of(values), k),
    "shuffle": _shuffle,
}


# -- the table ------------------------------------------------------------------------------------


def _abstract(function: Any) -> Any:
    """`@abstractmethod`."""
    if isinstance(function, UserFunction):
        function.__isabstractmethod__ = True
    return function


ABC = library_class("ABC", [], {})
ABC.names["__abstract__"] = True
NAMED_TUPLE = library_class("NamedTuple", [], {})
NAMED_TUPLE.finish = staticmethod(row_type)
_TYPING: dict[str, Any] = {
    "NamedTuple": NAMED_TUPLE,
    "Generic": GENERIC,
    "Protocol": GENERIC,
    "TYPE_CHECKING": False,
    "cast": Builtin("cast", lambda kind, value: value),
    "NewType": Builtin("NewType", lambda name, kind: Builtin(name, lambda value: value)),
    **{
        name: Builtin(name, lambda function: function)
        for name in ("overload", "final", "no_type_check", "override")
    },
    **{
        name: Builtin(name, lambda name, *bounds, **options: _annotated("Any", typing))
        for name in ("TypeVar", "ParamSpec", "TypeVarTuple")
    },
}


class _Recorded(Instance):
    """What `catch_warnings(record=True)` would list: nothing is known of it, as PyTorch's own
    warnings are not made here."""

    __slots__ = ()

    def _unknown(self, *of: Any) -> Any:
        raise fault("E203 warnings-not-recorded")

    __len__ = __iter__ = __bool__ = __eq__ = get_item = get_attribute = _unknown
    __hash__ = object.__hash__


_TABLE: dict[str, dict[str, Any]] = {
    "functools": builtins_of(
        {
            "partial": lambda function, *args, **kwargs: functools.partial(
                function, *args, **kwargs
            ),
            "reduce": lambda function, values, *initial: functools.reduce(
                function, iterator(values), *initial
            ),
            "wraps": _wraps,
            "lru_cache": _cached,
            "cache": lambda function: functools.lru_cache(None)(function),
            "cached_property": CachedProperty,
            "total_ordering": functools.total_ordering,
            "cmp_to_key": lambda mycmp: Builtin("cmp_to_key", functools.cmp_to_key(mycmp)),
        }
    ),
    "copy": COPIES,
    "itertools": {**builtins_of(ITERTOOLS), "chain": CHAIN},
    "operator": builtins_of(OPERATOR),
    "collections": COLLECTIONS,
    "contextlib": {
        "contextmanager": Builtin("contextmanager", context_manager),
        "nullcontext": Builtin(
            "nullcontext", lambda result=None: Manager("nullcontext", lambda: result)
        ),
        "suppress": Builtin("suppress", _suppress),
        "ExitStack": Builtin("ExitStack", ExitStack),
    },
    "time": builtins_of(
        {
            "time": time.time,
            "perf_counter": time.perf_counter,
            "monotonic": time.monotonic,
            "process_time": time.process_time,
            "time_ns": time.time_ns,
            "perf_counter_ns": time.perf_counter_ns,
            "sleep": lambda seconds: None,
        }
    ),
    "random": builtins_of(RANDOM),
    "warnings": builtins_of(
        {
            "warn": lambda *args, **kwargs: None,
            "filterwarnings": lambda *args, **kwargs: None,
            "simplefilter": lambda *args, **kwargs: None,
            "catch_warnings": lambda *args, record=False, **kwargs: Manager(
                "catch_warnings", lambda: _Recorded() if truth(record) else None
            ),
        }
    ),
    "abc": {"ABC": ABC, "ABCMeta": ABC, "abstractmethod": Builtin("abstractmethod", _abstract)},
}


_LATER = {
    "enum": "python.enumerations.NAMES", "dataclasses": "python.data_classes.DATACLASSES",
}  # fmt: skip


_OF_TENSORS = ["Collection", "Container", "Hashable", "Iterable", "Reversible", "Sized", "object"]


class _Kind(TypeName):
    """A name for annotations; what stands in its brackets is ignored."""

    __slots__ = ()

    def get_item(self, key: Any) -> Any:
        return self


def _annotated(name: str, source: Any) -> Any:
    """A kind of values by what they can do, or what only annotations name."""
    found = getattr(source, name, None)
    if isinstance(found, types.FunctionType):  # it would look at annotations
        return None
    kind: Any = getattr(found, "__origin__", object if source is typing else found)

    def matches(value: Any) -> bool:
        of_tensors = kind.__name__ in _OF_TENSORS
        if type(value) is slice and kind is collections.abc.Hashable:  # it is from Python 3.12 on
            return False
        return of_tensors if isinstance(value, Tensor) else isinstance(value, kind)

    return found and _Kind("object", matches, lambda *args, **kwargs: None)


def _member(path: str) -> Any:
    """What a path below the modules stands for: `functools.partial`."""
    module, _, name = path.rpartition(".")
    if module in _LATER:
        return from_above(_LATER[module]).get(name)
    if module == "typing" and name in _TYPING:
        return _TYPING[name]
    if module in ("typing", "collections.abc"):
        return _annotated(name, typing if module == "typing" else collections.abc)
    if module in _TABLE:
        return _TABLE[module].get(name)
    if module in ("json", "pprint", "re"):
        return from_above("python.text_modules.MEMBERS").get(path)
    from .system_modules import member as system

    return system(path)


MEMBERS = Names(
    lambda: [f"{module}.{name}" for module, names in _TABLE.items() for name in names], _member
)
