"""Calling things: user functions with Python's parameter rules, ops, builtins and types."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache, partial
from types import MethodType
from typing import Any

from ...autograd import calls
from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.params import (
    NUMBERS,
    BindError,
    given_twice,
    missing,
    too_many,
    unknown_keyword,
)
from ...graph.state import STATE
from ..errors.exhaustion import out_of_memory
from ..syntax import tree as syntax
from .dialect import kind_of
from .formatting import represent
from .housekeeping import count_step
from .operations import count_nested
from .out_arguments import written
from .plain_operands import ALL_NUMBERS, refuse_plain
from .providers import from_above
from .values import (
    Builtin,
    GradMode,
    Method,
    Namespace,
    OpFunction,
    Scope,
    TypeName,
    UserFunction,
    switch,
)


class Parameters:
    """A signature of a `def`, and how arguments are bound to it."""

    __slots__ = ("called", "keyword", "keywords", "names", "outside", "positional", "rest", "tree")

    def __init__(
        self, params: list[syntax.Param], tree: syntax.Node | None = None, called: str = ""
    ):
        self.tree = tree  # of the whole function
        self.outside: tuple[str, ...] | None = None  # the names it reads, once somebody asked
        self.called = called  # the function's name with those of what it stands in
        self.positional = [p.name for p in params if p.kind in ("positional", "normal")]
        self.keyword = [p.name for p in params if p.kind == "keyword"]
        self.rest = next((p.name for p in params if p.kind == "rest"), None)
        self.keywords = next((p.name for p in params if p.kind == "keywords"), None)
        self.names = {p.name for p in params if p.kind in ("normal", "keyword")}

    def bind(
        self, function: UserFunction, args: list[Any], kwargs: dict[str, Any], names: dict[str, Any]
    ) -> None:
        """Put arguments into `names`; E205 when they do not fit."""
        positional = self.positional
        given = len(args)
        for name, value in zip(positional, args, strict=False):
            names[name] = value
        extra: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name in self.names:
                if name in names:
                    raise self._wrong(function, given_twice(name))
                names[name] = value
            elif self.keywords is not None:
                extra[name] = value
            elif name in positional:
                words = f"got some positional-only arguments passed as keyword arguments: '{name}'"
                only = f"takes `{name}` by its place only"
                raise self._wrong(function, BindError(only, said=words))
            else:
                takes = [*positional, *self.keyword]
                raise self._wrong(function, unknown_keyword(name, takes))
        if self.keywords is not None:
            names[self.keywords] = extra
        if given > len(positional):
            if self.rest is None:
                most = len(positional)
                raise self._wrong(function, too_many(most - len(function.defaults), most, given))
            names[self.rest] = tuple(args[len(positional) :])
        elif self.rest is not None:
            names[self.rest] = ()
        self._fill_defaults(function, given, names)

    def _fill_defaults(self, function: UserFunction, given: int, names: dict[str, Any]) -> None:
        positional = self.positional
        first_default = len(positional) - len(function.defaults)
        missed: list[str] = []
        for i in range(given, len(positional)):
            name = positional[i]
            if name not in names:
                if i >= first_default:
                    names[name] = function.defaults[i - first_default]
                else:
                    missed.append(name)
        by_place = bool(missed)
        for name in () if by_place else self.keyword:
            if name not in names:
                if name in function.keyword_defaults:
                    names[name] = function.keyword_defaults[name]
                else:
                    missed.append(name)
        if missed:
            raise self._wrong(function, missing(missed, not by_place))

    def _wrong(self, function: UserFunction, error: BindError) -> AutodiffError:
        own = self.describe(function.name, function.defaults)
        full = self.describe(function.name, function.defaults, "self")
        text = "" if self.tree is None else self.tree.span.text
        help, signature = f"it is defined as `{own}`", own
        if error.extra and "self." in text and "self" not in self.names:
            help, signature = f"it is a method: write `{full}` for `{own}`", ""
            error.extra = 0  # those in the call are right
        failure = fail(
            "E205",
            f"`{function.name}` {error.message}",
            help=help,
            said=f"{function.name}() {error.said}",
            raises="TypeError",
        )
        failure.callee, failure.facts = self.called, {"error": error, "signature": signature}
        return failure

    def describe(self, name: str, defaults: Sequence[Any] = (), *first: str) -> str:
        """The signature, with defaults that are short."""
        required = len(self.positional) - len(defaults)
        parts = [*first, *self.positional[:required]]
        for own, value in zip(self.positional[required:], defaults, strict=True):
            plain = value is None or type(value) in (bool, int, float, str)
            parts.append(f"{own}={value!r}" if plain else f"{own}=...")
        if self.rest is not None:
            parts.append("*" + self.rest)
        elif self.keyword:
            parts.append("*")
        parts.extend(self.keyword)
        if self.keywords is not None:
            parts.append("**" + self.keywords)
        return f"{name}({', '.join(parts)})"


CACHED = type(cache(len))


def call_user(function: UserFunction, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Run a user function in a scope of its own."""
    count_step()
    scope = Scope(function.scope, True)
    function.params.bind(function, args, kwargs, scope.names)
    depth = STATE.depth
    if depth >= STATE.max_depth:
        raise fault("E507 calls-itself-more-levels", STATE.max_depth, function=function)
    STATE.depth = depth + 1
    try:
        return function.body(scope)
    except RecursionError:
        raise fail("E507", f"`{function.name}` recurses too deeply", help="use a loop") from None
    finally:
        STATE.depth = depth


def call_value(
    callee: Any, args: list[Any], kwargs: dict[str, Any], scope: Scope | None = None
) -> Any:
    """Call any value of the language."""
    kind = type(callee)
    if kind is OpFunction:
        return call_op(callee, args, kwargs)
    if kind is UserFunction:
        if callee.wrappers:
            return _wrapped(callee, args, kwargs)
        return call_user(callee, args, kwargs)
    if kind is MethodType:
        return call_value(callee.__func__, [callee.__self__, *args], kwargs, scope)
    if kind is Builtin or kind is Method:
        return guarded(callee.name, callee.function, args, kwargs)
    if kind is TypeName and callee.make is not None:
        return guarded(callee.name, callee.make, args, kwargs)
    if kind is GradMode:
        return decorated(callee, args)
    if kind is partial:
        given = {**callee.keywords, **kwargs}
        return call_value(callee.func, [*callee.args, *args], given, scope)
    if kind is CACHED:
        count_nested((*args, *kwargs.values()))
        return guarded("lru_cache", callee, args, kwargs)
    call = getattr(kind, "call", None)
    if call is not None:
        return call(callee, args, kwargs)
    help = "write `*` between two factors: `2 * (x + 1)`"
    if isinstance(callee, Namespace):
        help = f"it has: {', '.join(from_above('runtime.names.names_of')(callee))}"
    raise fault("E208 not-function-cannot-called", kind_of(callee), help)


def _wrapped(function: UserFunction, args: list[Any], kwargs: dict[str, Any]) -> Any:
    before = [mode.enter() for mode in reversed(function.wrappers)]
    try:
        result = call_user(function, args, kwargs)
    finally:
        switch(*before[0])
    modes = getattr(result, "modes", None)
    if modes is not None:
        modes.append(function.wrappers[0].enabled)
    return result


def decorated(mode: GradMode, args: list[Any]) -> Any:
    """A function as it is, but that runs in a grad mode: `torch.no_grad()(f)`."""
    function = args[0] if len(args) == 1 else None
    if mode.before:  # `set_grad_enabled(...)` was a call
        STATE.grad = mode.before.pop()
    if isinstance(function, UserFunction):
        found = copy(function)
        found.wrappers = [*function.wrappers, mode]
        return found
    if not callable(function):
        raise fault("E208 mode-decorates-functions", mode=mode)

    def run(*values: Any, **named: Any) -> Any:
        before = mode.enter()
        try:
            return call_value(function, list(values), named)
        finally:
            switch(*before)

    return Builtin(getattr(function, "name", mode.name), run)


# What Python's functions complain with, the code of it, and what to do.
_COMPLAINTS: dict[type[Exception], tuple[str, str]] = {
    TypeError: ("E205", "`print(type(x))` before the call shows what it is given"),
    AttributeError: ("E205", "`print(type(x))` before the call shows what it is given"),
    ValueError: ("E208", "check the values given"),
    KeyError: ("E210", "check the key"),
    IndexError: ("E210", "check the index"),
    OverflowError: ("E504", "use smaller numbers"),
    ZeroDivisionError: ("E504", "check the divisor"),
    RuntimeError: ("E208", "change it outside of the loop over it"),
}
_BELOW = tuple(
    f"autodiff_cli.{layer}."
    for layer in ("autograd", "engine", "graph", "language.errors", "language.program", "ops")
)


def guarded(
    name: str, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> Any:
    """Call Python code with a program's arguments: its complaints become diagnostics. What the
    layers below raise, which get arguments that were looked at, is a mistake here and stays, as
    does what writes the output (`Options.write`)."""
    if STATE.allow is not None:
        STATE.allow(name, function)
    try:
        return function(*args, **kwargs)
    except AutodiffError:
        raise
    except BindError as error:
        raise fault("E205 value-error", name=name, error=error) from None
    except MemoryError:
        raise out_of_memory(f"`{name}`") from None
    except tuple(_COMPLAINTS) as error:
        if isinstance(error, RecursionError | NotImplementedError) or _from_below(error):
            raise
        raise _complaint(name, error, [*args, *kwargs.values()], function) from None


def _from_below(error: Exception) -> bool:
    trace, module = error.__traceback__, ""
    while trace is not None:
        found = trace.tb_frame.f_globals.get("__name__", "")
        module = found if found.startswith("autodiff_cli.") else module
        trace = trace.tb_next
    return module.startswith(_BELOW) and not module.endswith(".symbolic_numbers")


def known_kind(error: Exception) -> str:
    """The class of an exception, or the first above it that programs know."""
    known = from_above("values.exceptions.EXCEPTIONS")
    return next(k.__name__ for k in type(error).__mro__ if k.__name__ in known)


def _complaint(
    name: str, error: Exception, given: list[Any], function: Callable[..., Any]
) -> AutodiffError:
    if isinstance(error, TypeError):  # not with the name of a function of ours
        ours = re.match(r"(?:\w+\.)?([\w<>]+)\(\)", str(error))
        if ours and ours[1] != name:
            error.args = (f"{name}{str(error)[ours.end() - 2 :]}",)
    code, help = next(found for kind, found in _COMPLAINTS.items() if isinstance(error, kind))
    help = help.format(name)
    facts: dict[str, Any] = {}
    made_of: Any = getattr(function, "__code__", None)
    if made_of is not None and not made_of.co_flags & 12 and " argument" in str(error):
        names = made_of.co_varnames[: made_of.co_argcount + made_of.co_kwonlyargcount]
        values = reversed(function.__defaults__ or ())
        known = dict(zip(reversed(names[: made_of.co_argcount]), values, strict=False))
        known |= function.__kwdefaults__ or {}
        told = {n: f"={value!r}" for n, value in known.items()}
        left_out = {"self"}.union(known.keys() & names[: made_of.co_posonlyargcount])
        parts = [n.strip("_") + told.get(n, "") for n in names if n not in left_out]
        facts["signatures"] = [f"{name}({re.sub('<.*?>', '...', ', '.join(parts))})"]
        help = f"write `{facts['signatures'][0]}`"
    if misses := re.findall("'(\\w+)'", str(error).partition("() missing")[2]):
        help = help if facts else f"write `{name}({', '.join(misses)})`"
        facts["error"] = missing(misses)
    elif unknown := re.search("unexpected keyword argument '(\\w+)'", str(error)):
        help = help if facts else f"leave `{unknown[1]}=` out"
        facts["error"] = unknown_keyword(unknown[1])
    elif counts := re.search(r"takes .*?(\d+) positional arguments? but (\d+) w", str(error)):
        facts["error"] = too_many(0, int(counts[1]), int(counts[2]))
    if dims := getattr(error, "ndim", None):  # NumPy's, of an axis
        help = f"its axes are {', '.join(map(str, range(dims)))}"
    if isinstance(error, AttributeError):
        words = f" cannot take {', '.join(map(kind_of, given[:4]))}"
    elif isinstance(error, KeyError):
        words = f": no key {represent(error.args[0])[:80]}"
    else:
        words = str(error)
        words = re.sub(r"^[\w.<>]+\(\) ", "", words)
        words = words.replace("positional argument", "argument") or type(error).__name__
        own = isinstance(error, TypeError)
        words = f" {words.removeprefix(f'{name} ')}" if own else f": {words}"
    kind = known_kind(error)
    if kind == "AttributeError":  # of another value
        kind = ""
    failure = fail(code, f"`{name}`{words}", help=help, raises=kind)
    failure.facts = facts
    return failure


def call_op(callee: OpFunction, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Apply an op of the table."""
    if kwargs.get("out") is not None:
        rest = {key: value for key, value in kwargs.items() if key != "out"}
        return written(callee.ops[0].name, call_op(callee, args, rest), kwargs["out"])
    if STATE.python:
        _refuse_python_operands(callee, args, kwargs)
    return calls.call_ops(callee.ops, callee.name, tuple(args), kwargs)


def _refuse_python_operands(callee: OpFunction, args: list[Any], kwargs: dict[str, Any]) -> None:
    """PyTorch's functions do not take plain lists or numbers where the first tensor stands."""
    if any(type(value) is not Tensor for value in args) or kwargs:
        refuse_plain(callee.ops, callee.name, args, kwargs, 0)
        params = callee.ops[0].params
        if (
            args
            and type(args[0]) in NUMBERS
            and params
            and params[0].annotation == "Tensor"
            and callee.name not in ALL_NUMBERS
            and not any(isinstance(value, Tensor) for value in (*args, *kwargs.values()))
        ):
            raise fault("E208 needs-tensor", kind_of(args[0]), callee=callee)
