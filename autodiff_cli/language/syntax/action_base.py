"""What every part of the tree builder shares: places, words, and the actions that make lists.

An action is called with the values of its symbols (tokens are their index) and the extent of their
text, and returns the value of the whole.
"""

from __future__ import annotations

from typing import Any

from ...source import Span
from . import tree as s
from .tokens import Tokens

Values = list[Any]


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

    def first(self, v: Values, start: int, end: int) -> Any:
        return v[0]

    def second(self, v: Values, start: int, end: int) -> Any:
        return v[1]

    def third(self, v: Values, start: int, end: int) -> Any:
        return v[2]

    def one(self, v: Values, start: int, end: int) -> Values:
        return [v[0]]

    def one_second(self, v: Values, start: int, end: int) -> Values:
        return [v[1]]

    def append(self, v: Values, start: int, end: int) -> Values:
        v[0].append(v[2] if len(v) > 2 else v[1])
        return v[0]

    def append_second(self, v: Values, start: int, end: int) -> Values:
        v[0].append(v[1])
        return v[0]

    def append_third(self, v: Values, start: int, end: int) -> Values:
        v[0].append(v[2])
        return v[0]

    def extend(self, v: Values, start: int, end: int) -> Values:
        v[0].extend(v[1])
        return v[0]

    def pair(self, v: Values, start: int, end: int) -> Values:
        return [v[0], v[2]]
