"""Says in words what is wrong where tokens do not fit the grammar: E101 to E106.

Each function looks for one kind of mistake around the offending token and returns its error or
None; the first that knows an answer gives it. The parser's own terms never show.
"""

from __future__ import annotations

from itertools import takewhile

from ....errors import AutodiffError, fault
from ..tokens import FIELD_START, KIND, NEWLINE, OPERAND_ENDS, TERMINALS, Tokens
from .error_context import Context
from .sign_errors import (
    equal_sign,
    missing_value,
    no_else,
    notation,
    pair_of_signs,
    prompt,
    reserved_word,
    rows_of,
    side_by_side,
)
from .structure_errors import (
    indentation,
    line_ends,
    missing_colon,
    needs_in,
    unclosed,
    without_except,
    without_if,
)


def explain(tokens: Tokens, index: int, expected: set[str]) -> AutodiffError:
    """The error of a token that does not fit; `expected` are the terminals that would have."""
    context = Context(tokens, index, expected)
    for look in (
        _empty_field, unclosed, indentation, without_except, unsupported, without_if, prompt,
        pair_of_signs, reserved_word, missing_colon, needs_in, no_else, notation, line_ends,
        equal_sign, side_by_side, missing_value, _in_field,
    ):  # fmt: skip
        error = look(context)
        if error is not None:
            return error
    return _unexpected(context)


# ---- f-strings ----------------------------------------------------------------------------------


def _empty_field(context: Context) -> AutodiffError | None:
    """E103: `f'{}'`."""
    if context.previous != FIELD_START or TERMINALS[context.kind] not in (
        "FIELD_END",
        "FIELD_COLON",
        "CONVERSION",
    ):
        return None
    span = context.tokens.span(context.index - 1).to(context.tokens.span(context.index))
    return fault("E103 field-f-string-no", span=span)


def _in_field(context: Context) -> AutodiffError | None:
    if not context.brackets or context.tokens.kinds[context.brackets[-1]] != FIELD_START:
        return None
    text = context.text(context.index)
    return context.fault("E103 unexpected-field-f-string", text=text)


# ---- what Python has and this language leaves out: E106 ------------------------------------------

_WORDS = {
    "ASYNC": ("`async` functions", "write a plain `def`, `for` or `with`"),
    "AWAIT": ("`await` expressions", "call the function without `await`"),
}


def unsupported(context: Context) -> AutodiffError | None:
    """The error of a token that begins something outside the subset, or None."""
    return _reserved(context) or _soft_keyword(context) or _form(context)


def _refuse(context: Context, what: str, help: str, index: int | None = None) -> AutodiffError:
    return context.fault("E106 not-part-language", help, index=index, what=what)


def _reserved(context: Context) -> AutodiffError | None:
    name = TERMINALS[context.kind]
    if name in _WORDS:
        what, help = _WORDS[name]
        return _refuse(context, what, help)
    if name == "WALRUS":
        target = context.text(context.index - 1) if context.index > context.first else "name"
        return context.fault("E102 needs-parentheses-around-here", target=target)
    return None


def _soft_keyword(context: Context) -> AutodiffError | None:
    """`match x:` and `case 1:`, which are names anywhere else."""
    word = context.text(context.first)
    if context.index == context.first or word not in ("match", "case", "type"):
        return None
    kinds = context.tokens.kinds
    if kinds[context.first + 1] not in OPERAND_ENDS | _OPENERS:
        return None
    if word == "type":
        if context.index == context.first + 1 and context.text(context.index).isidentifier():
            return _refuse(context, "`type` aliases", "remove this line", context.first)
        return None
    line = takewhile(lambda kind: kind != NEWLINE, kinds[context.first :])
    if KIND["COLON"] not in line:
        return None
    help = "compare with `if` and `elif`: `if x == 1:`"
    return _refuse(context, f"`{word}` statements", help, context.first)


_OPENERS = frozenset(
    KIND[name]
    for name in ("LPAR", "LSQB", "LBRACE", "FSTRING_START", "MINUS", "STAR", "LAMBDA", "NOT")
)


def _form(context: Context) -> AutodiffError | None:
    """Forms that begin like supported ones."""
    name = TERMINALS[context.kind]
    head = TERMINALS[context.head]
    if name in ("DOT", "ELLIPSIS") and head == "FROM" and context.index == context.first + 1:
        return _refuse(context, "relative imports", "write `from torch import ...`")
    if name == "AS" and head == "WITH" and context.brackets:
        return _refuse(
            context,
            "parentheses around the items of a `with`",
            "write `with a as b, c as d:` without the parentheses",
        )
    return None


# ---- everything else ----------------------------------------------------------------------------


def _unexpected(context: Context) -> AutodiffError:
    if context.at_end():
        before = (context.text(at) for at in reversed(range(context.index)))
        last = next(filter(str.strip, before), "")
        return context.fault("E102 text-ends-after", context.wanted(), last=last)
    text = context.text(context.index)
    wanted = context.wanted()
    if text == ";" and context.brackets and context.inside(context.brackets[-1]) == "the list":
        return context.fault("E102 ends-statement-cannot-separate", rows_of(context))
    help = f"remove `{text}`"
    if wanted not in ("something else", "the end of the line"):
        help = f"write {wanted} here, or remove `{text}`"
    return context.error(f"unexpected `{text}`", "does not fit here", help)
