"""Binary operators on Python values, within bounds of size."""

from __future__ import annotations

import operator
from collections import Counter, deque
from collections.abc import Callable, ItemsView, KeysView
from contextlib import suppress
from sys import maxsize
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.state import STATE
from ...graph.symbolic_numbers import Varying
from ...numerals import short
from .dialect import kind_of
from .formatting import percent
from .numpy_numbers import INTEGERS, NUMPY_NUMBERS, computed
from .values import Size

MAX_BITS = 1_000_000
MAX_ITEMS = 10_000_000
MAX_CHARACTERS = 50_000_000

# operator -> (op of the table, Python's function, words for messages)
BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "+": ("add", operator.add),
    "-": ("sub", operator.sub),
    "*": ("mul", operator.mul),
    "/": ("div", operator.truediv),
    "//": ("floor_divide", operator.floordiv),
    "%": ("remainder", operator.mod),
    "**": ("pow", operator.pow),
    "@": ("matmul", operator.matmul),
    "&": ("bitwise_and", operator.and_),
    "|": ("bitwise_or", operator.or_),
    "^": ("bitwise_xor", operator.xor),
    "<<": ("bitwise_left_shift", operator.lshift),
    ">>": ("bitwise_right_shift", operator.rshift),
}


# The names of special methods and of Python's module `operator`, by themselves and with a `_`.
OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip


def python_binary(symbol: str, left: Any, right: Any) -> Any:
    """An operator on Python values, bounded."""
    a, b = type(left), type(right)
    try:
        if (
            (a in NUMPY_NUMBERS or b in NUMPY_NUMBERS)
            and isinstance(left, int | float)
            and isinstance(right, int | float)
        ):
            return computed(BINARY[symbol][1], left, right)
        if a in NUMBERS and b in NUMBERS and symbol != "@":
            if a is not float and b is not float:
                bound_integers(symbol, left, right)
            if symbol == "^" and (a is float or b is float):
                refuse_caret(left, right)
            if symbol in _BITWISE and float in (a, b):
                raise cannot_combine(symbol, left, right)
            result = BINARY[symbol][1](left, right)
            if type(result) is complex:
                raise fault("E504 not-real-number", short(left), short(right))
            return result
        if symbol == "%" and a is str:
            return percent(left, right)
        if (symbol == "+" and a is b and a in (str, list, tuple)) or (
            symbol == "+" and isinstance(left, tuple) and isinstance(right, tuple)
        ):
            bound_length(len(left) + len(right), a)
            return Size(left + right) if Size in (a, b) else left + right
        if symbol == "*" and (
            (a in _SEQUENCES and b in _WHOLE) or (b in _SEQUENCES and a in _WHOLE)
        ):
            sequence, times = (left, right) if a in _SEQUENCES else (right, left)
            bound_length(len(sequence) * max(times, 0), type(sequence), times)
            return Size(sequence * times) if Size in (a, b) else sequence * times
        if isinstance(left, _JOINED) and isinstance(right, _JOINED):
            return BINARY[symbol][1](left, right)
    except TypeError:
        pass  # told below
    except ZeroDivisionError:
        raise fault("E504 division-zero", short(left), short(right), symbol=symbol) from None
    except ValueError as error:
        help = "shift by a non-negative number"
        raise fail("E504", str(error), help=help, raises="ValueError") from None
    except OverflowError:
        raise fault("E504 symbol-too-large", short(left), short(right), symbol=symbol) from None
    if Varying in (a, b) and symbol in BINARY:
        return BINARY[symbol][1](left, right)
    raise cannot_combine(symbol, left, right)


IN_PLACE = {symbol: getattr(operator, f"i{name}") for name, symbol in OPERATORS.items()}


def python_in_place(symbol: str, current: Any, operand: Any) -> Any:
    """`current op= operand` of what changes itself: lists and deques that are repeated, sets and
    Counters that are joined with others."""
    if type(current) is Counter and symbol in IN_PLACE:  # it asks of the operand what a Counter has
        try:
            return IN_PLACE[symbol](current, operand)
        except (AttributeError, KeyError, TypeError) as error:
            kind = type(error).__name__
            raise fail("E208", str(error), help="give a Counter", raises=kind) from None
    repeated = symbol == "*" and type(operand) in _WHOLE and isinstance(current, list | deque)
    if repeated:
        bound_length(len(current) * operand, list, operand)
    if repeated or (symbol in IN_PLACE and isinstance(operand, _JOINED)):
        with suppress(OverflowError, TypeError):  # told below
            return IN_PLACE[symbol](current, operand)
    return python_binary(symbol, current, operand)


def cannot_combine(symbol: str, left: Any, right: Any) -> AutodiffError:
    if left is None or right is None:
        return fault(
            "E208 symbol-cannot-combine-none", kind_of(left), kind_of(right), symbol=symbol
        )
    return fault("E208 symbol-cannot-combine", kind_of(left), kind_of(right), symbol=symbol)


NUMBERS = frozenset({int, float, bool})
_BITWISE = frozenset({"<<", ">>", "&", "|"})
_JOINED = (set, frozenset, dict, deque, KeysView, ItemsView)  # what Python joins by operators
_SEQUENCES = frozenset({str, list, tuple, Size, deque})
_WHOLE = frozenset({int, bool, *INTEGERS.values()})


def bound_length(length: int, kind: type, times: int = 0) -> None:
    """E505 where a text or a list would be too long; Python itself says that of what is repeated
    more often than it can count."""
    if length > (MAX_CHARACTERS if kind is str else MAX_ITEMS) and times <= maxsize:
        raise fault("E505 result-would", short(length), "characters" if kind is str else "items")


def bound_integers(symbol: str, left: int, right: int) -> None:
    """Integers stay below a million bits; shifts that Python refuses are left to it."""
    if symbol == "**":
        bits = int(left).bit_length() * right if abs(left) > 1 else 0
    elif symbol == "<<":
        bits = int(left).bit_length() + right if left and 0 <= right <= maxsize else 0
    else:
        bits = int(left).bit_length() + int(right).bit_length() if symbol == "*" else 0
    if bits > MAX_BITS:
        raise fault(
            "E505 integer-would-more-than", short(left, 20), symbol, MAX_BITS, short(right, 20)
        )


def refuse_caret(left: Any, right: Any) -> None:
    for value in (left, right):
        if isinstance(value, float) or (isinstance(value, Tensor) and value.dtype.kind == "f"):
            updates = STATE.span is not None and "^=" in STATE.span.text
            raise fault("E105 not-power-here", "x **= 2" if updates else "x**2")
