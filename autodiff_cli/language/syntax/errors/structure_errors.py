"""What is wrong with brackets, lines and blocks, in words: E101, E102, E104."""

from __future__ import annotations

import re

from ....errors import AutodiffError, Label, fail, fault
from ....source import Span
from ..tokens import (
    CLOSER,
    CLOSERS,
    END,
    FIELD_START,
    INDENT,
    KIND,
    NEWLINE,
    OPERAND_ENDS,
    TERMINALS,
)
from .error_context import COMPARISONS, VALUE_STARTS, Context

_HEADERS = frozenset(
    KIND[name]
    for name in (
        "IF", "ELIF", "ELSE", "WHILE", "FOR", "WITH", "DEF", "CLASS", "TRY", "EXCEPT", "FINALLY",
    )
)  # fmt: skip

# ---- brackets ---------------------------------------------------------------------------------


def _never_closed(context: Context, opener: int) -> bool:
    kinds = context.tokens.kinds
    depth = 0
    for at in range(context.index, len(kinds)):
        if kinds[at] in CLOSER:
            depth += 1
        elif kinds[at] in CLOSERS:
            depth -= 1
            if depth < 0:
                return False
    return True


def unclosed(context: Context) -> AutodiffError | None:
    """E101: the innermost bracket left open, found when the next line does not fit into it."""
    if not context.brackets:
        return None
    tokens, index = context.tokens, context.index
    opener = context.brackets[-1]
    begins_line = context.line_of(index) > context.line_end(index - 1)
    ends_inside = context.kind == END or begins_line or _is_statement_sign(context)
    if not ends_inside or not _never_closed(context, opener):
        return None
    if tokens.kinds[opener] == FIELD_START:
        return context.fault("E103 never-closed-f-string-2", index=opener)
    found = index
    if begins_line:
        found = _sign_on_line(context) or index
    labels = []
    inside = context.inside(opener)
    if context.kind != END:
        text = f"found `{context.text(found)}` while still inside {inside}"
        labels.append(Label(tokens.span(found), text))
    closers = "".join(
        {"(": ")", "[": "]", "{": "}"}.get(tokens.text(at), "") for at in reversed(context.brackets)
    )
    line = _last_line(context, opener)
    where = f"at the end of line {line}"
    if not begins_line and context.kind != END:
        where = f"before the `{context.text(index)}`"
    return fail(
        "E101",
        f"`{tokens.text(opener)}` is never closed",
        tokens.span(opener),
        label="opened here",
        labels=tuple(labels),
        help=f"add `{closers}` {where}",
    )


_STATEMENT = re.compile(r"\s*[\w.]+(\(.*\)| *[-+*/]?= .*[^,])\s*")  # a call or an assignment


def _last_line(context: Context, opener: int) -> int:
    """The line before the first one that begins where the statement does, unless a value is still
    to come there: further lines of an expression are indented."""
    tokens = context.tokens
    edge = tokens.span(context.first).column
    for at in range(opener + 1, context.index):
        line = context.line_end(at - 1)
        span = tokens.span(at)
        begins = span.line > line and span.column <= edge
        if (
            begins
            and _STATEMENT.fullmatch(span.source.line(span.line))
            and (at - 1 == opener or tokens.kinds[at - 1] in OPERAND_ENDS)
        ):
            return line
    return context.line_end(context.index - 1)


def _is_statement_sign(context: Context) -> bool:
    return TERMINALS[context.kind].endswith("EQUAL") or TERMINALS[context.kind] in (
        "COLON",
        "SEMICOLON",
    )


_ASSIGNING = frozenset(
    kind for name, kind in KIND.items() if name.endswith("EQUAL") and name not in COMPARISONS
)


def _sign_on_line(context: Context) -> int | None:
    """The `=` or `:` that shows that the offending token begins a statement."""
    tokens = context.tokens
    line = context.line_of(context.index)
    for at in range(context.index, min(context.index + 40, len(tokens.kinds) - 1)):
        if context.line_of(at) != line or tokens.kinds[at] in CLOSER:
            return None
        if tokens.kinds[at] in _ASSIGNING:
            return at
    return None


# ---- lines and blocks ---------------------------------------------------------------------------


def indentation(context: Context) -> AutodiffError | None:
    if "INDENT" in context.expected and context.kind != INDENT:
        header = context.line_start(context.index - 1)
        word = context.text(header)
        line = context.line_of(header)
        at = context.index if not context.at_end() else context.index - 1
        return context.fault(
            "E104 line-no-indented-block",
            "a block was expected here" if at == context.index else "nothing follows",
            word=word,
            line=line,
            index=at,
        )
    if context.kind == INDENT:
        tokens = context.tokens
        column = tokens.values[context.index]
        end = tokens.ends[context.index + 1]  # of what is indented
        span = Span(tokens.source, tokens.starts[context.index], end)
        return fault("E104 line-indented-2", column=column, span=span)
    return None


def missing_colon(context: Context) -> AutodiffError | None:
    if context.head not in _HEADERS or "COLON" not in context.expected or context.brackets:
        return None
    word = context.text(context.first)
    if context.at_end():
        return context.fault("E102 missing-end-line", _header(context), word=word)
    if TERMINALS[context.kind].endswith("EQUAL"):
        return None
    if word == "else" and context.text(context.index) == "if":
        return context.error(
            "`else if` is written `elif`", "unexpected `if`", "write `elif` for `else if`"
        )
    if context.previous in OPERAND_ENDS and context.kind in VALUE_STARTS:
        return context.fault(
            "E102 missing-word-line",
            context.text(context.index - 1),
            context.text(context.index),
            word=word,
        )
    return None


def _header(context: Context) -> str:
    """The line up to the offending token, or its last word, or the end of it, when it is long."""
    tokens = context.tokens
    start, end = tokens.starts[context.first], tokens.ends[context.index - 1]
    text = tokens.source.text[start:end]
    text = text if len(text) <= 60 else context.text(context.index - 1)
    return text.rpartition("\n")[2].lstrip()


def needs_in(context: Context) -> AutodiffError | None:
    expected = context.expected
    if context.head != KIND["FOR"] or "IN" not in expected or "COLON" in expected:
        return None
    last = context.text(context.index - 1)
    label = "`in` expected after this" if context.at_end() else "`in` expected before this"
    return context.error("a `for` needs `in`", label, f"write `for {last} in ...:`")


def without_except(context: Context) -> AutodiffError | None:
    """`try:` and its block, and nothing that goes on."""
    if "EXCEPT" not in context.expected or "NAME" in context.expected:
        return None
    return context.fault("E102 try-without-except")


def without_if(context: Context) -> AutodiffError | None:
    if context.index != context.first or TERMINALS[context.kind] not in (
        "ELSE", "ELIF", "EXCEPT", "FINALLY",
    ):  # fmt: skip
        return None
    word = context.text(context.index)
    if TERMINALS[context.kind] in ("EXCEPT", "FINALLY"):
        return context.fault("E102 without-try-before", word=word)
    return context.fault("E102 without-if-before", word=word)


def line_ends(context: Context) -> AutodiffError | None:
    """The line stops where something is missing."""
    if not context.at_end() or context.index == context.first:
        if (
            context.previous == NEWLINE
            and "AT" in context.expected
            and "PASS" not in (context.expected)
        ):
            return context.fault("E102 decorator-stands-before-def")
        return None
    last = context.text(context.index - 1)
    before = context.text(context.index - 2) if context.index - 2 >= context.first else ""
    if last in ("+", "-") and before == last:
        operand = context.text(max(context.index - 3, context.first))
        name = operand if operand.isidentifier() else context.text(context.first)
        alone = context.index == context.first + 3
        help = f"`{name} {last}= 1`" if alone else f"`{name} {last} 1` for `{name}{last}{last}`"
        return context.fault("E102 before-last-not-operator", help, before=before, last=last)
    if "NAME" in context.expected or "NUMBER" in context.expected:
        what = "a name" if "NUMBER" not in context.expected else "a value"
        return context.fault("E102 line-ends-after-2", last=last, what=what)
    if context.head == KIND["DEF"] and context.index == context.first + 2:
        return context.error("a function needs parentheses", "`()` expected", f"write `{last}():`")
    wanted = context.wanted()
    return context.fault("E102 line-ends-after", last=last, wanted=wanted)
