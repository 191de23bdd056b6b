"""The errors of text that makes no token: where, why, and what to type."""

from __future__ import annotations

import re

from ....errors import AutodiffError, Label, fail, fault
from ....source import Source, Span

_LOOKALIKES = {
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'", "\u00d7": "*",
    "\u00b7": "*", "\u22c5": "*", "\u00f7": "/", "\u2212": "-", "\u2013": "-", "\u2014": "-",
    "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u00b2": "**2", "\u00b3": "**3",
    "\u2211": "sum", "\u220f": "prod", "\u2192": "->",
    "\uff0c": ",", "\uff08": "(", "\uff09": ")", "\uff1a": ":", "\uff1d": "=",
    "\u00a0": " ", "\u3000": " ", "\u200b": "", "\u2009": " ", "\u202f": " ", "\ufeff": "",
}  # fmt: skip

TRANSPOSED = re.compile(r"'[ \t]*(?:[-+*/@)\],;]|$)[^'\n]*$", re.M)  # a quote that ends a name
_ROOT = re.compile(r"√ *(\w+|\([^()]*\))")


def unknown_character(source: Source, at: int, character: str) -> AutodiffError:
    """The error of a character that begins no token."""
    span = Span(source, at, at + 1)
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    if character == "\\":
        return fault("E102 joins-lines-only-last", span=span)
    if character == "!":
        return fault("E102 not-operator-here", span=span)
    if character in _LOOKALIKES:
        plain = _LOOKALIKES[character]
        printed = f" (`{character}`)" if character.isprintable() else ""
        what = "remove it" if not plain else "write a plain space" if plain == " " else None
        if character in "\u00b7\u22c5":
            what = f"write `*` for `{character}`; between vectors `@` for `{character}`"
        return fail(
            "E102",
            f"the character U+{ord(character):04X}{printed} has no meaning here",
            span,
            label="not plain ASCII",
            help=what or f"write `{plain}` for `{character}`",
        )
    root = _ROOT.match(source.text, at)
    if root is not None:
        inside = root[1].strip("()")
        help = f"write `sqrt({inside})` for `{root[0]}`"
        return fault("E102 character-no-meaning-here", help, shown=shown, span=span)
    return fault(
        "E102 character-no-meaning-here",
        "write `a if condition else b` for `condition ? a : b`"
        if character == "?"
        else f"remove `{shown}`, or put it into a string",
        shown=shown,
        span=span,
    )


def mismatch(source: Source, start: int, end: int, opened: tuple[int, int] | None) -> AutodiffError:
    """The error of a closing bracket that closes nothing, or a bracket of another kind."""
    closer = source.text[start:end]
    span = Span(source, start, end)
    if opened is None:
        return fault("E102 closes-nothing-no-bracket", closer=closer, span=span)
    at = opened[1]
    opener = source.text[at : at + 1]
    wanted = {"(": ")", "[": "]", "{": "}"}[opener]
    return fail(
        "E101",
        f"`{opener}` is closed by `{closer}`",
        span,
        label=f"`{wanted}` was expected",
        labels=(Label(Span(source, at, at + 1), "opened here"),),
        help=f"write `{wanted}` instead of `{closer}`",
    )


def bad_prefix(source: Source, start: int, opening: str) -> AutodiffError:
    """The error of `b'...'` and of prefixes that mean nothing."""
    span = Span(source, start, start + len(opening))
    quote = opening[-1]
    if TRANSPOSED.match(source.text, start + len(opening) - 1):
        return fail("E103", f"the string that begins with {opening} is never closed", span,
                    label="opened here", help="the transpose is `.T`")  # fmt: skip
    if "b" in opening.lower():
        return fault("E106 bytes-literals-such-b", quote=quote, span=span)
    return fault("E102 no-prefix-string", opening[:-1], span=span)
