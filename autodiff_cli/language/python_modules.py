"""The parts of Python's own modules that programs use: `functools`, `itertools`, `operator` ...

All is written anew for the values of the language; no module of Python is ever handed out.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from ..errors import fail
from .attributes import get_attribute
from .collected import COLLECTIONS, DATACLASSES
from .functions import call_value
from .generators import Stream
from .iterators import ITERTOOLS, iterator, pick
from .kinds import kind_of
from .managers import Manager, context_manager
from .operations import COMPARISONS, binary, compare, items_of, truth, unary
from .python_operators import BINARY
from .values import Builtin, TypeName

_NOTHING = object()


# -- functools ------------------------------------------------------------------------------------


class Partial:
    """`functools.partial(f, ...)`."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.function = function
        self.args = args
        self.kwargs = kwargs

    @property
    def name(self) -> str:
        return getattr(self.function, "name", "partial")

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return call_value(self.function, [*self.args, *args], {**self.kwargs, **kwargs})

    def get_attribute(self, name: str) -> Any:
        found = {"func": self.function, "args": self.args, "keywords": self.kwargs}
        if name in found:
            return found[name]
        raise fail("E207", f"a partial has no attribute `{name}`", help="it has: func, args")

    def describe(self) -> str:
        return f"functools.partial({self.name})"


def _reduce(function: Any, values: Any, initial: Any = _NOTHING) -> Any:
    total = initial
    for value in iterator(values):
        total = value if total is _NOTHING else call_value(function, [total, value], {})
    if total is _NOTHING:
        raise fail("E208", "reduce() of nothing without a start", help="give a third argument")
    return total


def _wraps(wrapped: Any, **options: Any) -> Builtin:
    def rename(function: Any) -> Any:
        name = getattr(wrapped, "name", None)
        if name is not None and hasattr(function, "name"):
            function.name = name
        return function

    return Builtin("wraps", rename)


def _cached(function: Any = None, maxsize: Any = 128, typed: Any = False) -> Any:
    if function is None or isinstance(function, int):
        return Builtin("lru_cache", _cached)
    known: dict[Any, Any] = {}

    def run(*args: Any, **kwargs: Any) -> Any:
        key = (args, tuple(sorted(kwargs.items())))
        try:
            hash(key)
        except TypeError:
            raise fail(
                "E208", "arguments of a cached function must be hashable", help="give tuples"
            ) from None
        if key not in known:
            known[key] = call_value(function, list(args), kwargs)
        return known[key]

    return Builtin(getattr(function, "name", "cached"), run)


# -- operator -------------------------------------------------------------------------------------


def _operator(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: binary(symbol, a, b)


def _comparison(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: compare(symbol, a, b)


_NAMES = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "and_": "&",
    "or_": "|",
    "xor": "^",
}
OPERATOR: dict[str, Callable[..., Any]] = {
    **{name: _operator(symbol) for name, symbol in _NAMES.items() if symbol in BINARY},
    **{name: _comparison(symbol) for symbol, (name, _) in COMPARISONS.items()},
    "neg": lambda a: unary("-", a),
    "not_": lambda a: not truth(a),
    "getitem": pick,
    "itemgetter": lambda *keys: Builtin("itemgetter", lambda value: pick(value, *keys)),
    "attrgetter": lambda name: Builtin("attrgetter", lambda value: get_attribute(value, name)),
}


# -- contextlib -----------------------------------------------------------------------------------


def _suppress(*classes: Any) -> Manager:
    from .exceptions import caught

    return Manager(
        "suppress",
        leave=lambda error: error is not None and caught(error, list(classes)) is not None,
    )


# -- random ---------------------------------------------------------------------------------------


_OWN = random.Random()
STREAM = Stream(_OWN, _OWN.getstate, _OWN.setstate)  # Python's


def _seed(a: Any = None) -> None:
    if not isinstance(a, int | float | str | None):
        raise fail("E208", f"a seed is a number, not {kind_of(a)}", help="random.seed(0)")
    STREAM.own.seed(a)


def _drawn(name: str) -> Callable[..., Any]:
    return lambda *numbers: getattr(STREAM.own, name)(*numbers)


def _shuffle(values: Any) -> None:
    if not isinstance(values, list):
        raise fail("E208", f"shuffle() takes a list, not {kind_of(values)}", help="list(x)")
    STREAM.own.shuffle(values)


def _choices(population: Any, weights: Any = None, *, cum_weights: Any = None, k: Any = 1) -> Any:
    return STREAM.own.choices(items_of(population), weights, cum_weights=cum_weights, k=k)


RANDOM: dict[str, Callable[..., Any]] = {
    "seed": _seed,
    **{
        name: _drawn(name)
        for name in (
            "random",
            "randint",
            "uniform",
            "gauss",
            "normalvariate",
            "randrange",
            "expovariate",
            "betavariate",
            "triangular",
            "lognormvariate",
            "getrandbits",
        )
    },
    "choice": lambda values: STREAM.own.choice(items_of(values)),
    "choices": _choices,
    "sample": lambda values, k: STREAM.own.sample(items_of(values), k),
    "shuffle": _shuffle,
}


# -- the table ------------------------------------------------------------------------------------


def _any_type() -> TypeName:
    return TypeName("object", lambda value: True, lambda *args, **kwargs: None)


def _functions(table: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    return {name: Builtin(name, function) for name, function in table.items()}


_TABLE: dict[str, dict[str, Any]] = {
    "functools": _functions(
        {
            "partial": lambda function, *args, **kwargs: Partial(function, args, kwargs),
            "reduce": _reduce,
            "wraps": _wraps,
            "lru_cache": _cached,
            "cache": _cached,
        }
    ),
    "itertools": _functions(ITERTOOLS),
    "operator": _functions(OPERATOR),
    "dataclasses": DATACLASSES,
    "collections": COLLECTIONS,
    "contextlib": {
        "contextmanager": Builtin("contextmanager", context_manager),
        "nullcontext": Builtin(
            "nullcontext", lambda result=None: Manager("nullcontext", lambda: result)
        ),
        "suppress": Builtin("suppress", _suppress),
    },
    "time": _functions(
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
    "random": _functions(RANDOM),
    "warnings": _functions(
        {
            "warn": lambda *args, **kwargs: None,
            "filterwarnings": lambda *args, **kwargs: None,
            "simplefilter": lambda *args, **kwargs: None,
            "catch_warnings": lambda *args, **kwargs: Manager("catch_warnings"),
        }
    ),
    "abc": {
        "ABC": TypeName("object", lambda value: True, None),
        "abstractmethod": Builtin("abstractmethod", lambda function: function),
    },
}


def member(module: str, name: str) -> Any:
    """`module.name`; None when there is no such thing here."""
    if module == "enum":
        from .enumerations import ENUM

        return ENUM.get(name)
    if module == "typing" and name == "NamedTuple":
        from .enumerations import NAMED_TUPLE

        return NAMED_TUPLE
    if module in ("typing", "collections.abc"):
        return name != "TYPE_CHECKING" and _any_type()
    if module in _TABLE:
        return _TABLE[module].get(name)
    from .system_modules import member as system

    return system(f"{module}.{name}")


def names_of(module: str) -> list[str]:
    """What a module has here."""
    return list(_TABLE.get(module, {}))
