"""What differs from run to run of a recorded step: arrays from outside, Python numbers, and lists
that grow.

While a step is recorded, a number that may be another one in the next step is a `Varying`: its
arithmetic is written to a `Tape`, which does it again for every run, by the same operators. Where
such a number would have to become an ordinary one, `RecordingAborted` ends the recording.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .node import Node

NUMBERS = (int, float)
MOST_BITS = 1000  # of powers of ints


class RecordingAborted(BaseException):
    """A step cannot be recorded; no `except` of a program may catch it."""


class Given:
    """An array from outside, and whether its values were asked for."""

    __slots__ = ("array", "looked_at", "number")

    def __init__(self, array: np.ndarray, number: Varying | None = None):
        self.array = array
        self.looked_at = False
        self.number = number

    def look(self) -> np.ndarray:
        """The array; whoever asks while a graph is built depends on its values."""
        self.looked_at = True
        return self.array


Call = tuple[Callable[..., Any], tuple[int, ...], int]  # function, registers, result's register


class Tape:
    """What a step does besides the plan of its tensors: arithmetic on numbers, and arrays that are
    chosen or drawn.

    `values` are registers, those `given` first of all. `before` are the calls that need nothing but
    those, `after` the ones that read a result of the plan; `truths` is what comparisons gave,
    `layouts` those of arrays. `fed` are the arguments of the plan that are made of registers.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.given: list[int] = []
        self.before: list[Call] = []
        self.after: list[Call] = []
        self.truths: list[tuple[int, bool]] = []
        self.truths_after: list[tuple[int, bool]] = []
        self.layouts: list[tuple[int, Any]] = []
        self.fed: dict[tuple[int, Any, bool], Node] = {}
        self.places: dict[Node, int] = {}  # of nodes of arrays
        self.results: dict[Node, int] = {}
        self._late: set[int] = set()
        self._known: dict[Any, Varying] = {}
        self._fixed: dict[tuple[type, str], int] = {}

    def take(self, value: int | float) -> Varying:
        """A number from outside."""
        self.given.append(len(self.values))
        return self._put(value)

    def take_array(self, array: np.ndarray) -> Node:
        """The node of an array from outside."""
        self.given.append(len(self.values))
        return self._array(array)

    def _put(self, value: int | float) -> Varying:
        self.values.append(value)
        return Varying(self, len(self.values) - 1, value)

    def _array(self, array: np.ndarray) -> Node:
        at = len(self.values)
        self.values.append(array)
        self.layouts.append((at, layout(array)))
        node = self.fed[at, None, False] = _argument(array)
        self.places[node] = at
        return node

    def register(self, x: Any) -> int:
        """Where a number is, which may be the same in every run."""
        if type(x) is Varying:
            return x.at
        key = type(x), repr(x)
        at = self._fixed.get(key)
        if at is None:
            at = self._fixed[key] = len(self.values)
            self.values.append(x)
        return at

    def apply(self, function: Callable[..., Any], *operands: Any) -> Any:
        """`function(*operands)`, noted; a truth is expected to stay what it is."""
        numbers = [x.value if type(x) is Varying else x for x in operands]
        if any(type(x) not in NUMBERS for x in numbers):
            raise RecordingAborted
        key = function, tuple([self.register(x) for x in operands])
        found = self._known.get(key)
        if found is not None:
            return found
        try:
            value = function(*numbers)
        except (ArithmeticError, ValueError):
            raise RecordingAborted from None
        late = not self._late.isdisjoint(key[1])
        at = len(self.values)
        (self.after if late else self.before).append((*key, at))
        if late:
            self._late.add(at)
        if type(value) is bool:
            self.values.append(value)
            (self.truths_after if late else self.truths).append((at, value))
            return value
        made = self._known[key] = self._put(value)
        return made

    def array(self, function: Callable[..., np.ndarray], registers: tuple[int, ...]) -> Node:
        """The node of an array that `function` makes of registers in every run anew."""
        if not self._late.isdisjoint(registers):
            raise RecordingAborted
        node = self._array(function(*[self.values[at] for at in registers]))
        self.before.append((function, registers, len(self.values) - 1))
        return node

    def result(self, node: Node, value: Any) -> Any:
        """The number in a result of the plan; a truth is expected to stay what it is."""
        at = self.results.get(node)
        if at is None:
            at = self.results[node] = len(self.values)
            self.values.append(value)
            self._late.add(at)
            if type(value) is bool:
                self.truths_after.append((at, value))
        return value if type(value) is bool else Varying(self, at, value)

    def node(self, x: Varying, dtype: np.dtype, weak: bool) -> Node:
        """The node of a number."""
        if x.at in self._late:
            raise RecordingAborted
        key = x.at, dtype, weak
        node = self.fed.get(key)
        if node is None:
            node = self.fed[key] = _argument(np.asarray(x.value, dtype), x)
            node.weak = weak
        return node

    def run(self, given: list[Any]) -> list[Any] | None:
        """All registers before the plan runs, for other values from outside; None where something
        comes out another way than it was recorded."""
        values = self.values.copy()
        for at, value in zip(self.given, given, strict=True):
            if type(value) is not type(values[at]):
                return None
            values[at] = value
        if not _called(self.before, self.truths, values):
            return None
        for at, wanted in self.layouts:
            if layout(values[at]) != wanted:
                return None
        return values

    def finish(self, values: list[Any], results: list[Any]) -> bool:
        """Fill the registers that depend on results of the plan; False likewise."""
        for at, value in zip(self.results.values(), results, strict=True):
            values[at] = value.item()
        return _called(self.after, self.truths_after, values)

    def feed(self, values: list[Any]) -> list[np.ndarray]:
        """The arrays of the nodes made of these registers."""
        return [
            values[at] if dtype is None else np.asarray(values[at], dtype)
            for at, dtype, _ in self.fed
        ]


def _argument(array: np.ndarray, of: Varying | None = None) -> Node:
    from .op import argument

    return argument(array, of)


def _called(calls: list[Call], truths: list[tuple[int, bool]], values: list[Any]) -> bool:
    try:
        for function, places, at in calls:
            values[at] = function(*[values[place] for place in places])
    except (ArithmeticError, ValueError, LookupError):
        return False
    return not truths or all(values[at] is truth for at, truth in truths)


def layout(array: np.ndarray) -> tuple[Any, ...]:
    """Return the facts of an array that decide in which order kernels go through it."""
    shape = array.shape
    strides = tuple([s for s, n in zip(array.strides, shape, strict=True) if n != 1])
    return shape, array.dtype, strides if array.size else None


def _power(x: Any, y: Any) -> Any:
    if type(x) is int and type(y) is int and not 0 <= y * x.bit_length() < MOST_BITS:
        raise OverflowError  # a float for negative exponents
    value = x**y
    if type(value) is complex:
        raise OverflowError
    return value


def _forward(function: Callable[[Any, Any], Any]) -> Any:
    return lambda self, other: self.tape.apply(function, self, other)


def _backward(function: Callable[[Any, Any], Any]) -> Any:
    return lambda self, other: self.tape.apply(function, other, self)


def _alone(function: Callable[[Any], Any]) -> Any:
    return lambda self: self.tape.apply(function, self)


class Varying:
    """A Python number that may be another one in the next run; `value` is that of this one."""

    __slots__ = ("at", "tape", "value")

    def __init__(self, tape: Tape, at: int, value: int | float):
        self.tape = tape
        self.at = at
        self.value = value

    def node(self, dtype: np.dtype, weak: bool = True) -> Node:
        """The number as a node without dims."""
        return self.tape.node(self, dtype, weak)

    def _refuse(self, *_: Any) -> Any:
        raise RecordingAborted

    __add__, __radd__ = _forward(operator.add), _backward(operator.add)
    __sub__, __rsub__ = _forward(operator.sub), _backward(operator.sub)
    __mul__, __rmul__ = _forward(operator.mul), _backward(operator.mul)
    __truediv__, __rtruediv__ = _forward(operator.truediv), _backward(operator.truediv)
    __floordiv__, __rfloordiv__ = _forward(operator.floordiv), _backward(operator.floordiv)
    __mod__, __rmod__ = _forward(operator.mod), _backward(operator.mod)
    __pow__, __rpow__ = _forward(_power), _backward(_power)
    __lt__, __le__ = _forward(operator.lt), _forward(operator.le)
    __gt__, __ge__ = _forward(operator.gt), _forward(operator.ge)
    __neg__, __pos__, __abs__ = _alone(operator.neg), _alone(operator.pos), _alone(abs)
    __invert__, __bool__ = _alone(operator.invert), _alone(bool)
    whole, real = _alone(int), _alone(float)
    __float__ = __int__ = __index__ = __hash__ = __str__ = __repr__ = __format__ = _refuse

    def __round__(self, *digits: int) -> Any:
        return self.tape.apply(round, self, *digits)

    def __eq__(self, other: object) -> Any:
        return self.tape.apply(operator.eq, self, other)


class Unread:
    """Stands for a value that every step replaces before it looks at it."""

    __slots__ = ()

    def _refuse(self, *_: Any) -> Any:
        raise RecordingAborted

    __len__ = __iter__ = __getitem__ = __contains__ = __bool__ = __hash__ = __call__ = _refuse
    __eq__ = __ne__ = __add__ = __radd__ = __mul__ = __str__ = __repr__ = __format__ = _refuse


class Growing(Unread):
    """Stands for a list to which a step only appends: what it `added`."""

    __slots__ = ("added", "of")

    def __init__(self, of: list[Any]):
        self.of = of
        self.added: list[Any] = []

    def append(self, value: Any) -> None:
        """Add a value."""
        self.added.append(value)


class Later(Unread):
    """A text with numbers in it that may be others in the next run; `make` takes the registers."""

    __slots__ = ("make",)

    def __init__(self, function: Callable[..., str], *parts: Any):
        makes = [maker(part) for part in parts]
        self.make = lambda values: function(*[make(values) for make in makes])

    def __radd__(self, other: Any) -> Any:
        return Later(operator.add, other, self)


def maker(value: Any) -> Callable[[list[Any]], Any]:
    """Return a function that makes the value from registers."""
    if type(value) is Varying:
        at = value.at
        return lambda values: values[at]
    if type(value) is Later:
        make: Callable[[list[Any]], Any] = value.make
        return make
    if type(value) not in (int, float, bool, str, type(None)):
        raise RecordingAborted
    return lambda values: value


def later(function: Callable[..., str], values: Sequence[Any]) -> Any:
    """The text that a function makes, where numbers in it may be others in the next run; else
    None."""
    varies = any(type(value) in (Varying, Later) for value in values)
    return Later(function, *values) if varies else None


def like(value: Any) -> Any:
    """A value of the kind that one has in every step."""
    if isinstance(value, Unread):
        raise RecordingAborted
    return value.value if type(value) is Varying else value


def whole(x: Any) -> Any:
    """The int in a number, maybe another one in the next run."""
    return x.whole() if type(x) is Varying else int(x)
