"""What every part of the tree builder shares: places, words, actions that make nodes or lists.

An action is called with the values of its symbols (tokens are their index) and the extent of their
text, and returns the value of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...source import Span
from . import tree as s
from .tokens import Tokens

Values = list[Any]
Action = Callable[["Parts", Values, int, int], Any]


class Word:
    """The text of the token that a value of an action is."""

    __slots__ = ("at",)

    def __init__(self, at: int):
        self.at = at


def makes(kind: Callable[..., s.Node], *parts: Any) -> Action:
    """An action that makes a node. Of its parts an int counts a value (None where the rule has
    fewer), a `Word` the text of one, `list` is a new list, others are themselves."""

    def action(self: Parts, v: Values, start: int, end: int) -> s.Node:
        size = len(v)
        given = [
            (v[part] if part < size else None) if type(part) is int
            else self.text(v[part.at]) if type(part) is Word else [] if part is list else part
            for part in parts
        ]  # fmt: skip
        return kind(*given, Span(self.source, start, end))

    return action


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
        self.bare_generators: list[s.Node] = []

    # ---- places and words -----------------------------------------------------------------

    def place(self, index: int) -> Span:
        tokens = self.tokens
        return Span(self.source, tokens.starts[index], tokens.ends[index])

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
