"""Says in words what is wrong where tokens do not fit the grammar: E101 to E106.

Each function looks for one kind of mistake around the offending token and returns its error or
None; the first that knows an answer gives it. The parser's own terms never show.
"""

from __future__ import annotations

from ....errors import AutodiffError, fault
from ..tokens import FIELD_START, TERMINALS, Tokens
from .error_context import Context
from .sign_errors import (
    equal_sign,
    missing_value,
    no_else,
    pair_of_signs,
    prompt,
    reserved_word,
    side_by_side,
)
from .structure_errors import indentation, line_ends, missing_colon, needs_in, unclosed, without_if
from .unsupported import unsupported


def explain(tokens: Tokens, index: int, expected: set[str]) -> AutodiffError:
    """The error of a token that does not fit; `expected` are the terminals that would have."""
    context = Context(tokens, index, expected)
    for look in (
        _empty_field, unclosed, indentation, unsupported, without_if, prompt, pair_of_signs,
        reserved_word, missing_colon, needs_in, no_else, line_ends, equal_sign, side_by_side,
        missing_value, _in_field,
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


# ---- everything else ----------------------------------------------------------------------------


def _unexpected(context: Context) -> AutodiffError:
    if context.at_end():
        last = context.text(context.index - 1) if context.index else ""
        return context.fault("E102 text-ends-after", context.wanted(), last=last)
    text = context.text(context.index)
    wanted = context.wanted()
    if text == ";" and context.brackets and context.inside(context.brackets[-1]) == "the list":
        return context.fault("E102 ends-statement-cannot-separate")
    help = f"remove `{text}`"
    if wanted not in ("something else", "the end of the line"):
        help = f"write {wanted} here, or remove `{text}`"
    return context.error(f"unexpected `{text}`", "does not fit here", help)
