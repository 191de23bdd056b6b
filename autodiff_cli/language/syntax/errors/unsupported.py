"""E106: what Python has and this language leaves out, named by the words that introduce it."""

from __future__ import annotations

from ....errors import AutodiffError
from ..tokens import KIND, NEWLINE, OPERAND_ENDS, TERMINALS
from .error_context import Context

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
    end = context.index
    while end < len(kinds) - 1 and kinds[end] != NEWLINE:
        end += 1
    if word == "type":
        if context.index == context.first + 1 and context.text(context.index).isidentifier():
            return _refuse(context, "`type` aliases", "remove this line", context.first)
        return None
    if kinds[end - 1] != KIND["COLON"]:
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
