"""Operators and comparisons of values of classes: which special method answers."""

from __future__ import annotations

from typing import Any

from ..errors import fail
from .classes import Instance
from .functions import call_value
from .kinds import kind_of


def operator_method(symbol: str) -> tuple[str, str]:
    """The special methods of a binary operator: for the left operand, for the right one."""
    names = {
        "+": "add",
        "-": "sub",
        "*": "mul",
        "/": "truediv",
        "//": "floordiv",
        "%": "mod",
        "**": "pow",
        "@": "matmul",
    }
    name = names.get(symbol, "")
    return f"__{name}__", f"__r{name}__"


def instance_binary(symbol: str, left: Any, right: Any) -> Any:
    """An operator with an instance on one side."""
    forward, backward = operator_method(symbol)
    for owner, name, other in ((left, forward, right), (right, backward, left)):
        if isinstance(owner, Instance):
            method = owner.special(name)
            if method is not None:
                return call_value(method, [other], {})
    raise fail(
        "E208",
        f"`{symbol}` cannot combine {kind_of(left)} and {kind_of(right)}",
        help=f"define `{forward}`",
    )


_COMPARE = {
    "==": "__eq__",
    "!=": "__ne__",
    "<": "__lt__",
    "<=": "__le__",
    ">": "__gt__",
    ">=": "__ge__",
}
_SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def instance_compare(symbol: str, left: Any, right: Any) -> Any:
    """A comparison with an instance on one side."""
    for owner, sign, other in ((left, symbol, right), (right, _SWAPPED[symbol], left)):
        if isinstance(owner, Instance):
            method = owner.special(_COMPARE[sign])
            if method is not None:
                return call_value(method, [other], {})
    if symbol in ("==", "!="):
        return (left is right) == (symbol == "==")
    raise fail(
        "E208",
        f"`{symbol}` cannot compare {kind_of(left)} and {kind_of(right)}",
        help=f"define `{_COMPARE[symbol]}`",
    )
