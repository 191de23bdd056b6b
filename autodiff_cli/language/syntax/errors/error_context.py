"""What stands around a token that does not fit: its line, its open brackets, its neighbours."""

from __future__ import annotations

from typing import Any

from ....errors import AutodiffError, fail, fault
from ....source import Span, shortened
from ..tokens import (
    CLOSER,
    CLOSERS,
    DEDENT,
    END,
    INDENT,
    KIND,
    LPAR,
    LSQB,
    NEWLINE,
    OPERAND_ENDS,
    Tokens,
)

VALUE_STARTS = frozenset(
    KIND[name]
    for name in (
        "NAME", "NUMBER", "STRING", "NUMLIST", "FSTRING_START", "LBRACE", "TRUE", "FALSE",
        "NONE", "LAMBDA", "ELLIPSIS",
    )
)  # fmt: skip
COMPARISONS = frozenset(["EQUAL_EQUAL", "NOT_EQUAL", "LESS_EQUAL", "GREATER_EQUAL"])
_SPELLED = {
    "COLON": "`:`", "IN": "`in`", "RPAR": "`)`", "RSQB": "`]`", "RBRACE": "`}`", "LPAR": "`(`",
    "IMPORT": "`import`", "COMMA": "`,`", "NEWLINE": "the end of the line",
}  # fmt: skip


class Context:
    """The offending token and what stands around it."""

    def __init__(self, tokens: Tokens, index: int, expected: set[str]):
        self.tokens = tokens
        self.index = index
        self.expected = expected
        self.kind = tokens.kinds[index]
        self.previous = tokens.kinds[index - 1] if index else NEWLINE
        self.first = self.line_start(index)
        self.head = tokens.kinds[self.first]
        self.brackets = self._open_brackets()

    def line_start(self, index: int) -> int:
        kinds = self.tokens.kinds
        while index and kinds[index - 1] not in (NEWLINE, INDENT, DEDENT):
            index -= 1
        return index

    def _open_brackets(self) -> list[int]:
        """The brackets of this logical line that are open before the offending token."""
        kinds = self.tokens.kinds
        opened: list[int] = []
        for at in range(self.first, self.index):
            if kinds[at] in CLOSER:
                opened.append(at)
            elif kinds[at] in CLOSERS and opened:
                opened.pop()
        return opened

    def text(self, index: int) -> str:
        return shortened(self.tokens.text(index), 40)

    def line_of(self, index: int) -> int:
        return self.tokens.source.position(self.tokens.starts[index])[0]

    def line_end(self, index: int) -> int:
        """The line on which a token ends."""
        return self.tokens.source.position(self.tokens.ends[index])[0]

    def inside(self, opener: int) -> str:
        """What an open bracket belongs to, in words."""
        kinds = self.tokens.kinds
        behind = kinds[opener - 1] in OPERAND_ENDS
        if kinds[opener] == LSQB:
            return "the subscript" if behind else "the list"
        if kinds[opener] == LPAR:
            return "the call" if behind else "the parentheses"
        return "the braces"

    def wanted(self) -> str:
        """What would fit, in words."""
        expected = self.expected
        if "NUMBER" in expected:
            return "a value"
        if "NAME" in expected:
            return "a name"
        return next((text for name, text in _SPELLED.items() if name in expected), "something else")

    def at_end(self) -> bool:
        return self.kind in (NEWLINE, END, DEDENT)

    def place(self, index: int | None) -> Span:
        """The token there, else the offending one."""
        at = self.index if index is None else index
        span = self.tokens.span(at)
        if span.start == span.end and span.start and self.kind != INDENT:
            # The end of a line: point at its last word.
            span = self.tokens.span(max(0, at - 1))
        return span

    def error(self, message: str, label: str, help: str) -> AutodiffError:
        return fail("E102", message, self.place(None), label=label, help=help)

    def fault(
        self, which: str, *facts: Any, index: int | None = None, **named: Any
    ) -> AutodiffError:
        return fault(which, *facts, span=self.place(index), **named)
