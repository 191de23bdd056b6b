"""What differs from run to run of a recorded step: arrays from outside, and Python numbers.

While a step is recorded, a number that may be another one in the next step is a `Varying`: its
arithmetic is written to a `Tape`, which does it again for every run, by the same operators. Where
such a number would have to become an ordinary one, `Aside` ends the recording.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .node import Node

NUMBERS = (int, float)
MOST_BITS = 1000  # of powers of ints


class Aside(BaseException):
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


class Tape:
    """Arithmetic on numbers: `values` are registers, the first of them given from outside; `calls`
    are `(function, register, register, result)`, `expected` what comparisons gave."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.calls: list[tuple[Callable[[Any, Any], Any], int, int, int]] = []
        self.expected: list[tuple[int, bool]] = []
        self.given: list[int] = []
        self.fed: dict[tuple[int, np.dtype, bool], Node] = {}
        self._known: dict[Any, Varying] = {}
        self._fixed: dict[tuple[type, str], int] = {}

    def take(self, value: int | float) -> Varying:
        """A number from outside."""
        self.given.append(len(self.values))
        return self._put(value)

    def _put(self, value: int | float) -> Varying:
        self.values.append(value)
        return Varying(self, len(self.values) - 1, value)

    def _register(self, x: Any) -> int:
        if type(x) is Varying:
            return x.at
        key = type(x), repr(x)
        at = self._fixed.get(key)
        if at is None:
            at = self._fixed[key] = len(self.values)
            self.values.append(x)
        return at

    def apply(self, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """`function(x, y)`, noted; a truth is expected to stay what it is."""
        a, b = _now(x), _now(y)
        if type(a) not in NUMBERS or type(b) not in NUMBERS:
            raise Aside
        key = function, self._register(x), self._register(y)
        found = self._known.get(key)
        if found is not None:
            return found
        try:
            value = function(a, b)
        except ArithmeticError:
            raise Aside from None
        if type(value) is bool:
            at = len(self.values)
            self.values.append(value)
            self.calls.append((*key, at))
            self.expected.append((at, value))
            return value
        if type(value) not in NUMBERS:
            raise Aside
        made = self._known[key] = self._put(value)
        self.calls.append((*key, made.at))
        return made

    def node(self, x: Varying, dtype: np.dtype, weak: bool) -> Node:
        """The node of a number."""
        key = x.at, dtype, weak
        node = self.fed.get(key)
        if node is None:
            from .op import argument

            node = self.fed[key] = argument(np.asarray(x.value, dtype), x)
            node.weak = weak
        return node

    def run(self, given: list[Any]) -> list[Any] | None:
        """All registers for other numbers from outside; None where a comparison comes out another
        way or arithmetic fails."""
        values = self.values.copy()
        for at, value in zip(self.given, given, strict=True):
            if type(value) is not type(values[at]):
                return None
            values[at] = value
        try:
            for function, a, b, at in self.calls:
                values[at] = function(values[a], values[b])
        except ArithmeticError:
            return None
        for at, truth in self.expected:
            if values[at] is not truth:
                return None
        return values

    def prune(self, used: set[int]) -> list[bool]:
        """Forget the numbers from outside that nobody reads, besides those `used`; which stay."""
        used = used | {at for _, a, b, _ in self.calls for at in (a, b)}
        used |= {at for at, _, _ in self.fed}
        kept = [at in used for at in self.given]
        self.given = [at for at in self.given if at in used]
        return kept

    def feed(self, values: list[Any]) -> list[np.ndarray]:
        """The arrays of the nodes made of these registers."""
        return [np.asarray(values[at], dtype) for at, dtype, _ in self.fed]


def _now(x: Any) -> Any:
    return x.value if type(x) is Varying else x


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
    def two(x: Any, _: Any) -> Any:
        return function(x)

    return lambda self: self.tape.apply(two, self, 0)


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
        raise Aside

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
    __bool__ = _alone(bool)
    whole = _alone(int)
    __float__ = __int__ = __index__ = __hash__ = __str__ = __repr__ = __format__ = _refuse

    def __eq__(self, other: object) -> Any:
        return self.tape.apply(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return self.tape.apply(operator.ne, self, other)


def _number(node: Node) -> Varying | None:
    given = node.args[0] if node.args else None
    return given.number if type(given) is Given else None


def whole(node: Node, value: Callable[[], Any]) -> Any:
    """The int in a node, maybe another one in the next run; `value` reads an ordinary one."""
    number = _number(node)
    return int(value()) if number is None else number.whole()


def scalar(node: Node, value: Callable[[], Any]) -> Any:
    """The number in a node, likewise."""
    number = _number(node)
    return value() if number is None else number


__all__ = ["Aside", "Given", "Tape", "Varying", "scalar", "whole"]
