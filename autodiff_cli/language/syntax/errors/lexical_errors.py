"""The errors of text that makes no token: where, why, and what to type."""

from __future__ import annotations

from ....errors import AutodiffError, Label, fail
from ....source import Source, Span
from ..literals.numbers import MAX_NUMBERS, MAX_ROWS

_LOOKALIKES = {
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'", "\u00d7": "*",
    "\u00b7": "*", "\u22c5": "*", "\u00f7": "/", "\u2212": "-", "\u2013": "-", "\u2014": "-",
    "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u00b2": "**2", "\u00b3": "**3",
    "\u2192": "->", "\uff0c": ",", "\uff08": "(", "\uff09": ")", "\uff1a": ":", "\uff1d": "=",
    "\u00a0": " ", "\u3000": " ", "\u200b": "", "\u2009": " ", "\u202f": " ", "\ufeff": "",
}  # fmt: skip


def too_many_numbers(source: Source, start: int) -> AutodiffError:
    return fail(
        "E108",
        f"this list is too long: at most {MAX_NUMBERS} numbers in {MAX_ROWS} lists",
        Span(source, start, start + 1),
        label="begins here",
        help="put the numbers into a file and read it with `load('data.npy')`",
    )


def indented_too_far(source: Source, start: int, end: int, most: int) -> AutodiffError:
    return fail(
        "E104",
        f"this line is indented by {end - start} characters: at most {most}",
        Span(source, start, start + 1),
        label="begins here",
        help="indent by 4 spaces for each block",
    )


def notebook_command(source: Source, at: int) -> AutodiffError:
    return fail(
        "E102",
        "notebook commands such as `!pip` are not part of a program",
        Span(source, at, at + 1),
        label="notebook command",
        help="remove this line",
    )


def unknown_character(source: Source, at: int, character: str) -> AutodiffError:
    """The error of a character that begins no token."""
    span = Span(source, at, at + 1)
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    if character == "\\":
        return fail(
            "E102",
            "`\\` joins lines only as the last character of a line",
            span,
            label="something follows it",
            help="remove what follows the `\\`, or put the expression into parentheses",
        )
    if character == "!":
        return fail(
            "E102",
            "`!` is not an operator here",
            span,
            label="unexpected `!`",
            help="write `not x`, or `x != y` to compare",
        )
    if character in _LOOKALIKES:
        plain = _LOOKALIKES[character]
        printed = f" (`{character}`)" if character.isprintable() else ""
        what = "remove it" if not plain else "write a plain space" if plain == " " else None
        return fail(
            "E102",
            f"the character U+{ord(character):04X}{printed} has no meaning here",
            span,
            label="not plain ASCII",
            help=what or f"write `{plain}`",
        )
    return fail(
        "E102",
        f"the character `{shown}` has no meaning here",
        span,
        label="unknown character",
        help="write `a if condition else b` for `condition ? a : b`"
        if character == "?"
        else f"remove `{shown}`, or put it into a string",
    )


def mismatch(source: Source, start: int, end: int, opened: tuple[int, int] | None) -> AutodiffError:
    """The error of a closing bracket that closes nothing, or a bracket of another kind."""
    closer = source.text[start:end]
    span = Span(source, start, end)
    if opened is None:
        return fail(
            "E102",
            f"`{closer}` closes nothing: no bracket is open here",
            span,
            label="nothing to close",
            help=f"remove this `{closer}`",
        )
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


def mixed_tabs(source: Source, start: int, end: int) -> AutodiffError:
    return fail(
        "E104",
        "this line mixes tabs and spaces differently from the lines around it",
        Span(source, start, end),
        label="tabs and spaces",
        help="indent every line of the block with spaces only, 4 for each level",
    )


def bad_prefix(source: Source, start: int, opening: str) -> AutodiffError:
    """The error of `b'...'` and of prefixes that mean nothing."""
    span = Span(source, start, start + len(opening))
    quote = opening[-1]
    if "b" in opening.lower():
        return fail(
            "E106",
            "bytes literals such as `b'...'` are not part of this language",
            span,
            label="bytes",
            help=f"write a text: `{quote}...{quote}`",
        )
    return fail(
        "E102",
        f"`{opening[:-1]}` is no prefix of a string",
        span,
        label="before a string",
        help="use `r'...'`, `f'...'` or no prefix",
    )


def matches_no_block(source: Source, start: int, end: int, below: int, above: int) -> AutodiffError:
    """The error of a line that ends a block but returns to none."""
    return fail(
        "E104",
        f"this line is indented by {end - start}, which matches no line above it",
        Span(source, start, end),
        label=f"indented by {end - start}",
        help=f"indent it by {below} or {above} spaces",
    )


def name_too_long(source: Source, start: int, size: int, most: int) -> AutodiffError:
    return fail(
        "E102",
        f"a name of {size} characters is too long: at most {most}",
        Span(source, start, start + 20),
        label="this name",
        help="use a shorter name",
    )


def too_many_tokens(span: Span, most: int) -> AutodiffError:
    return fail(
        "E108",
        f"the program has more than {most} words and signs",
        span,
        label="this is one too many",
        help="put the numbers into a file and read it with `load('data.npy')`",
    )


def bad_conversion(source: Source, start: int, end: int, name: str) -> AutodiffError:
    return fail(
        "E103",
        f"`!{name}` is no conversion of an f-string",
        Span(source, start, end),
        label="conversion",
        help="write `!r`, `!s` or nothing",
    )
