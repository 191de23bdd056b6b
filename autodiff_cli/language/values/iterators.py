"""Iterators: values that give their items one at a time, as they are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cmp_to_key
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.state import STATE
from .dialect import kind_of, misfit
from .functions import call_value
from .housekeeping import count_step
from .operations import binary, compare, equal, items_of, iterate, truth
from .providers import from_above
from .subscripts import index, slice_part
from .user_classes import UserClass, special
from .values import Builtin, TypeName, has


class Lazy:
    """An iterator of the program: a generator, `zip(...)`, `iter(x)` ... `of`: the values that it
    goes through and does nothing else. `modes`: of the body of a function, the grad mode that each
    of its steps runs in. `function`: whose generator it is. `handled`: the exceptions that it
    handles while it waits."""

    __slots__ = ("function", "handled", "modes", "name", "of", "source")

    def __init__(
        self,
        name: str,
        source: Iterator[Any],
        of: tuple[Any, ...] = (),
        modes: list[bool] | None = None,
        function: str = "",
    ):
        self.handled: list[AutodiffError] = []
        self.modes = modes
        self.name = name
        self.function = function
        self.of = of
        self.source = source

    def __iter__(self) -> Lazy:
        return self

    def __next__(self) -> Any:
        return self.resume(self.source.__next__)

    def send(self, value: Any) -> Any:
        """`generator.send(value)`."""
        return self.resume(self._own("send"), value)

    def throw(self, *raised: Any) -> Any:
        """`generator.throw(error)`, and what Python's `yield from` passes on."""
        from .exceptions import ErrorValue, Raised

        if not raised:
            raise TypeError("throw expected at least 1 argument, got 0")
        error = raised[0]
        if isinstance(error, UserClass):
            given = raised[1] if len(raised) > 1 else None
            known = isinstance(given, ErrorValue)
            error = given if known else error(*([] if given is None else [given]))
        given = Raised(error, STATE.span) if isinstance(error, ErrorValue) else raised[-1]
        over = getattr(self.source, "gi_frame", None) is None
        try:
            return self.resume(self._own("throw"), given)
        except AutodiffError as left:  # of a body that has not begun
            if over:
                raise
            raise from_above("runtime.generator_functions.outside_generator")(left) from None

    def close(self) -> None:
        """`generator.close()`."""
        try:
            self.resume(self._own("close"))
        except RuntimeError as error:
            raise _raised("RuntimeError", str(error)) from None

    def _own(self, name: str) -> Any:
        found = getattr(self.source, name, None)
        if found is None:
            raise fail("E207", f"a {self.name} has no attribute `{name}`", help="loop over it")
        return found

    def resume(self, step: Callable[..., Any], *args: Any) -> Any:
        """Let the source go on."""
        if STATE.over is not None:
            raise STATE.over
        if STATE.depth >= STATE.max_depth:
            raise fault("E507 iterators-nested-more-levels", STATE.max_depth)
        STATE.depth += 1
        before, handled, span = STATE.grad, STATE.handled, STATE.span
        if self.modes:
            STATE.grad = self.modes[0]
        if self.handled:
            STATE.handled = handled + self.handled
        count = len(handled)
        try:
            return step(*args)
        except ValueError as error:
            if "already executing" not in str(error):
                raise
            raise fault("E208 generator-already-executing") from None
        except RecursionError:  # Python 3.12 allows fewer levels in C than in Python
            raise fail("E507", f"a {self.name} recurses too deeply", help="use a loop") from None
        finally:
            STATE.depth, STATE.span = STATE.depth - 1, span
            self.handled = STATE.handled[count:]
            STATE.handled = handled
            del handled[count:]
            if self.modes:
                STATE.grad = before

    def get_attribute(self, name: str) -> Any:
        if name in ("send", "throw", "close"):
            self._own(name)
            return Builtin(name, lambda *args: _asked(getattr(self, name), *args), self)
        return from_above("values.value_attributes.special_name")(self, name)

    def describe(self) -> str:
        return f"<{self.name} object {self.function and self.function + ' '}at {id(self):#x}>"


Lazy.__name__ = "generator"  # to programs


def iterator(value: Any) -> Iterator[Any]:
    """`iter(value)` in Python's own form; every item is counted as a step."""
    return value if isinstance(value, Lazy) else iterate(value)


def make_iterator(value: Any, *sentinel: Any) -> Any:
    """`iter(value)`, or `iter(function, sentinel)`."""
    if sentinel:
        if not callable(value):
            raise TypeError("iter(v, w): v must be callable")
        return Lazy("callable_iterator", _until(value, sentinel[0]))
    if isinstance(value, Lazy):
        return value
    method = special(value, "__iter__")
    if method is not None:
        found = call_value(method, [], {})
        if not has(found, "__next__"):
            raise fault("E208 iter-returned-non-iterator-type", type(found).__name__)
        return found
    return Lazy(f"{type(value).__name__}_iterator", iterate(value))


def _until(function: Any, sentinel: Any) -> Iterator[Any]:
    while True:
        count_step()
        item = call_value(function, [], {})
        if item is sentinel or truth(compare("==", item, sentinel)):
            return
        yield item


NO_DEFAULT: Any = object()


def advance(value: Any, default: Any = NO_DEFAULT, /) -> Any:
    """`next(value)`."""
    method = special(value, "__next__")
    if method is None and not isinstance(value, Iterator):
        raise fault("E208 next-needs-iterator-something", kind_of(value))
    try:
        return _asked(value.__next__) if method is None else call_value(method, [], {})
    except AutodiffError as error:
        stopped = from_above("values.exceptions.is_a")(error, "StopIteration")
        if stopped and default is not NO_DEFAULT:
            return default
        raise


def _asked(step: Callable[..., Any], *args: Any) -> Any:
    """A step of an iterator; at its end StopIteration, with the result of a generator."""
    try:
        return step(*args)
    except StopIteration as stop:
        result = stop.value
    raise _exhausted(*([] if result is None else [result]))


def _raised(kind: str, *args: Any) -> AutodiffError:
    """The failure of an exception that Python raises here."""
    from .exceptions import EXCEPTIONS, Raised

    return Raised(EXCEPTIONS[kind](*args), STATE.span)


def _exhausted(*result: Any) -> AutodiffError:
    return _raised("StopIteration", *result).amend(
        code="E210",
        span=None,
        message="the iterator has nothing left",
        helps=("give a default: `next(iterator, None)`",),
    )


# -- builtins -------------------------------------------------------------------------------------


def zipped(*sources: Any, strict: Any = False) -> Lazy:
    """`zip(...)`."""
    return Lazy("zip", _zip([iterator(s) for s in sources], truth(strict)), sources)


def _zip(sources: list[Iterator[Any]], strict: bool) -> Iterator[Any]:
    try:
        yield from zip(*sources, strict=strict)
    except ValueError:
        raise fault("E208 zip-arguments-different-lengths") from None


def enumerated(values: Any, start: Any = 0) -> Lazy:
    """`enumerate(...)`."""
    first: Any = slice_part(start) if isinstance(start, Tensor) else start
    return Lazy("enumerate", enumerate(iterator(values), first), (values,))


def mapped(function: Any, *sources: Any) -> Lazy:
    """`map(...)`."""
    if not sources:
        raise TypeError("map() must have at least two arguments.")
    items = zip(*[iterator(s) for s in sources], strict=False)
    return Lazy("map", (call_value(function, list(item), {}) for item in items))


def filtered(function: Any, values: Any) -> Lazy:
    """`filter(...)`."""
    return Lazy(
        "filter",
        (
            v
            for v in iterator(values)
            if truth(v if function is None else call_value(function, [v], {}))
        ),
    )


# -- itertools ------------------------------------------------------------------------------------


def _count(start: Any = 0, step: Any = 1) -> Lazy:
    def items() -> Iterator[Any]:
        value = start
        while True:
            yield value
            count_step()
            value = binary("+", value, step)

    return Lazy("count", items())


def _stepped(items: Iterator[Any]) -> Iterator[Any]:
    """Items that may have no end, each a step."""
    for item in items:
        count_step()
        yield item


def _repeat(value: Any, *times: Any) -> Lazy:
    counts = [slice_part(n) for n in times]
    return Lazy("repeat", _stepped(itertools.repeat(value, *[n for n in counts if n is not None])))


def _slice(values: Any, *parts: Any) -> Lazy:
    try:
        bounds = [slice_part(part) for part in parts]
    except AutodiffError as error:
        raise error.amend(raises="ValueError") from None
    return Lazy("islice", itertools.islice(iterator(values), *bounds))


def _accumulate(values: Any, func: Any = None, *, initial: Any = None) -> Lazy:
    def join(total: Any, value: Any) -> Any:
        return binary("+", total, value) if func is None else call_value(func, [total, value], {})

    return Lazy("accumulate", itertools.accumulate(iterator(values), join, initial=initial))


def _counted(name: str) -> Callable[..., Lazy]:
    """A function of `itertools` that takes finite sources and plain numbers."""

    def make(*sources: Any, **options: Any) -> Lazy:
        given = [s if isinstance(s, int) else list(iterator(s)) for s in sources]
        numbers = {
            key: value if key == "fillvalue" else slice_part(value)
            for key, value in options.items()
        }
        return Lazy(name, iterate(getattr(itertools, name)(*given, **numbers)))

    return make


def _while(name: str) -> Callable[..., Lazy]:
    def make(predicate: Any, values: Any) -> Lazy:
        def holds(value: Any) -> bool:
            return truth(call_value(predicate, [value], {}))

        return Lazy(name, getattr(itertools, name)(holds, iterator(values)))

    return make


def _grouped(values: Any, key: Any = None) -> Lazy:
    def items() -> Iterator[Any]:
        group: list[Any] = []
        last: Any = None
        for value in iterator(values):
            rank = value if key is None else call_value(key, [value], {})
            if group and not equal(rank, last):
                yield last, group
                group = []
            last = rank
            group.append(value)
        if group:
            yield last, group

    return Lazy("groupby", items())


_FINITE = """
    product permutations combinations combinations_with_replacement pairwise zip_longest batched
"""
ITERTOOLS: dict[str, Callable[..., Any]] = {
    "count": _count,
    "cycle": lambda values: Lazy("cycle", _stepped(itertools.cycle(iterator(values)))),
    "repeat": _repeat,
    "islice": _slice,
    "accumulate": _accumulate,
    "takewhile": _while("takewhile"),
    "dropwhile": _while("dropwhile"),
    "groupby": _grouped,
    "starmap": lambda function, values: Lazy(
        "starmap", (call_value(function, list(iterate(v)), {}) for v in iterator(values))
    ),
    **{name: _counted(name) for name in _FINITE.split()},
}


CHAIN = TypeName(
    "itertools.chain",
    lambda value: isinstance(value, Lazy) and value.name == "chain",
    lambda *sources: Lazy("chain", (item for source in sources for item in iterator(source))),
    from_iterable=Builtin(
        "from_iterable",
        lambda sources: Lazy(
            "chain", (item for source in iterator(sources) for item in iterator(source))
        ),
    ),
)


def pick(value: Any, *keys: Any) -> Any:
    """`operator.itemgetter(*keys)(value)`."""
    found = tuple([index(value, key) for key in keys])
    return found[0] if len(keys) == 1 else found


def sorted_values(values: Any, /, *, key: Any = None, reverse: Any = False) -> list[Any]:
    """Sorted by value or by `key(value)`, stable."""
    if not isinstance(reverse, int):
        raise misfit("`reverse` must be a bool, not", reverse, "write `reverse=True`")
    found = list(items_of(values))
    ranks = found if key is None else [call_value(key, [v], {}) for v in found]

    def before(a: int, b: int) -> int:
        count_step()
        return -truth(compare("<", ranks[a], ranks[b]))  # all that sorting asks for

    order = sorted(range(len(found)), key=cmp_to_key(before), reverse=bool(reverse))
    return [found[i] for i in order]
