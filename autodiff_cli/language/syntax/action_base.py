"""What every part of the tree builder shares: places, words, actions that make nodes or lists.

An action is called with the values of its symbols (tokens are their index) and the extent of their
text, and returns the value of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ...source import Span
from . import tree as s
from .tokens import Tokens

Values = list[Any]
Action = Callable[["Parts", Values, int, int], Any]
Part = Callable[["Parts", Values], Any]


def makes(kind: Callable[..., s.Node], *parts: Any) -> Action:
    """An action that makes a node. Of its parts an int counts a value (None where the rule has
    fewer), a function makes one of the values, others are themselves."""

    def action(self: Parts, v: Values, start: int, end: int) -> s.Node:
        size = len(v)
        given = [
            (v[part] if part < size else None) if type(part) is int
            else part(self, v) if type(part) is FunctionType else part
            for part in parts
        ]  # fmt: skip
        return kind(*given, Span(self.source, start, end))

    return action


def word(at: int) -> Part:
    """The text of the token that a value is."""
    return lambda self, v: self.text(v[at])


def checked(at: int, check: Callable[..., None], *more: Any) -> Part:
    """A value that `check` may refuse; None where the rule has fewer."""

    def part(self: Parts, v: Values) -> Any:
        if at >= len(v):
            return None
        check(v[at], *more)
        return v[at]

    return part


def fresh(self: Parts, v: Values) -> Values:
    """A new list."""
    return []


def takes(at: int) -> Action:
    """An action that gives one of the values."""
    return lambda self, v, start, end: v[at]


def lists(at: int) -> Action:
    """An action that begins a list with one of the values."""
    return lambda self, v, start, end: [v[at]]


def appends(at: int) -> Action:
    """An action that appends one of the values to the list that is the first."""

    def action(self: Parts, v: Values, start: int, end: int) -> Values:
        v[0].append(v[at])
        return v[0]

    return action


class Parts:
    """Places, words and lists: what every action needs."""

    def __init__(self, tokens: Tokens):
        self.tokens = tokens
        self.source = tokens.source
        self.place = tokens.span
        self.bare_generators: list[s.Node] = []

    def text(self, index: int) -> str:
        """A token's text; a name's in normal form."""
        tokens = self.tokens
        value = tokens.values[index]
        if isinstance(value, str):
            return value
        return self.source.text[tokens.starts[index] : tokens.ends[index]]

    # ---- lists and empty parts --------------------------------------------------------------

    def empty(self, v: Values, start: int, end: int) -> Values:
        return []

    def nothing(self, v: Values, start: int, end: int) -> None:
        return None

    first, second, third = takes(0), takes(1), takes(2)
    one, one_second = lists(0), lists(1)
    append_second, append_third = appends(1), appends(2)

    def append(self, v: Values, start: int, end: int) -> Values:
        v[0].append(v[2] if len(v) > 2 else v[1])
        return v[0]

    def extend(self, v: Values, start: int, end: int) -> Values:
        v[0].extend(v[1])
        return v[0]

    def pair(self, v: Values, start: int, end: int) -> Values:
        return [v[0], v[2]]
