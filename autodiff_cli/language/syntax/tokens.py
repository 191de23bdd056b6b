"""The kinds of tokens, numbered as in the tables, and the tokens of a text."""

from __future__ import annotations

import re

from ...errors import AutodiffError
from ...source import Source, Span
from .grammar import TABLES as tables

TERMINALS: list[str] = tables.TERMINALS.split()
KIND: dict[str, int] = {name: number for number, name in enumerate(TERMINALS)}
LITERALS: dict[str, int] = {
    text: KIND[name]
    for name, text in zip(tables.LITERAL_NAMES.split(), tables.LITERAL_TEXTS.split(), strict=True)
}
KEYWORDS: dict[str, int] = {text: kind for text, kind in LITERALS.items() if text.isalpha()}
ERROR = len(TERMINALS)
END = KIND["$END"]
NAME, NUMBER, STRING, NUMLIST = KIND["NAME"], KIND["NUMBER"], KIND["STRING"], KIND["NUMLIST"]
NEWLINE, INDENT, DEDENT = KIND["NEWLINE"], KIND["INDENT"], KIND["DEDENT"]
LPAR, LSQB, LBRACE = KIND["LPAR"], KIND["LSQB"], KIND["LBRACE"]
RPAR, RSQB, RBRACE = KIND["RPAR"], KIND["RSQB"], KIND["RBRACE"]
COLON, WALRUS, EQUAL = KIND["COLON"], KIND["WALRUS"], KIND["EQUAL"]
FSTRING_START, FSTRING_TEXT, FSTRING_END = (
    KIND["FSTRING_START"], KIND["FSTRING_TEXT"], KIND["FSTRING_END"],
)  # fmt: skip
FIELD_START, FIELD_END = KIND["FIELD_START"], KIND["FIELD_END"]
FIELD_EQUAL, FIELD_COLON, CONVERSION = (
    KIND["FIELD_EQUAL"], KIND["FIELD_COLON"], KIND["CONVERSION"],
)  # fmt: skip

CELL = re.compile(r"(?:In|Out) ?\[\d+\]: ?")  # the prompts of a notebook
CLOSER = {LPAR: RPAR, LSQB: RSQB, LBRACE: RBRACE, FIELD_START: FIELD_END}
CLOSERS = frozenset(CLOSER.values())
OPENER = {RPAR: LPAR, RSQB: LSQB, RBRACE: LBRACE}
OPERAND_ENDS = frozenset(
    [
        NAME, NUMBER, STRING, NUMLIST, RPAR, RSQB, RBRACE, FSTRING_END,
        KIND["TRUE"], KIND["FALSE"], KIND["NONE"], KIND["ELLIPSIS"],
    ]
)  # fmt: skip
"""Kinds after which an operand is complete, so that `[` is a subscript."""


class Tokens:
    """The tokens of a text, in four parallel lists."""

    __slots__ = ("ends", "indents", "kinds", "open_at_end", "refused", "source", "starts", "values")

    def __init__(self, source: Source):
        self.source = source
        self.kinds: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.values: list[object] = []
        self.open_at_end = False
        self.indents: list[int] = []
        self.refused: AutodiffError | None = None

    def span(self, index: int) -> Span:
        return Span(self.source, self.starts[index], self.ends[index])

    def text(self, index: int) -> str:
        return self.source.text[self.starts[index] : self.ends[index]]

    def remove(self, index: int) -> None:
        for values in (self.kinds, self.starts, self.ends, self.values):
            del values[index]
