"""The inside of string literals: where they end and what their escapes stand for."""

from __future__ import annotations

import re
from codecs import unicode_escape_decode
from contextlib import suppress

from ....errors import AutodiffError, fail, fault
from ....source import Source, Span

# Possessive repeats: no backtracking, and no memory per escape, however long the text is.
# Kept as text: `re` compiles, and remembers, the few that a program needs.
_BODIES = {
    "'": r"[^'\\\n]*+(?:\\[\s\S][^'\\\n]*+)*+",
    '"': r'[^"\\\n]*+(?:\\[\s\S][^"\\\n]*+)*+',
    "'''": r"[^'\\]*+(?:(?:\\[\s\S]|'(?!''))[^'\\]*+)*+",
    '"""': r'[^"\\]*+(?:(?:\\[\s\S]|"(?!""))[^"\\]*+)*+',
}
_TEXTS = {
    "'": r"[^'\\\n{}]*+(?:(?:\\[^{}]|\\(?=[{}])|\{\{|\}\})[^'\\\n{}]*+)*+",
    '"': r'[^"\\\n{}]*+(?:(?:\\[^{}]|\\(?=[{}])|\{\{|\}\})[^"\\\n{}]*+)*+',
    "'''": r"[^'\\{}]*+(?:(?:\\[^{}]|\\(?=[{}])|'(?!'')|\{\{|\}\})[^'\\{}]*+)*+",
    '"""': r'[^"\\{}]*+(?:(?:\\[^{}]|\\(?=[{}])|"(?!"")|\{\{|\}\})[^"\\{}]*+)*+',
}
_SPECS = {"'": r"[^'{}\n]*+", '"': r'[^"{}\n]*+'}
_NAMED = r"\\N\{[^{}'\"\n]*\}"
_ESCAPE = (
    r"\\(?:\n|[\\'\"abfnrtv]|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"
    r"|N\{[^{}\n]+\}|(?P<bad>[xuUN]))"
)
_LONG = 10_000
_SIMPLE = {
    "\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f",
    "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


def body_end(text: str, at: int, quote: str) -> int | None:
    """Where the body that starts at `at` ends, before its closing quote; None if it never does."""
    match = re.compile(_BODIES[quote]).match(text, at)
    end = match.end() if match else at
    return end if text.startswith(quote, end) else None


def fstring_text_end(text: str, at: int, quote: str, raw: bool) -> int:
    """Where the literal text of an f-string ends: at `{`, `}`, the quote or the line's end."""
    end = at
    pattern = re.compile(_TEXTS[quote])
    while True:
        match = pattern.match(text, end)
        end = match.end() if match else end
        # `\N{NAME}` is an escape, not a field.
        if not raw and text.startswith("{", end) and text.startswith("\\N", end - 2):
            named = re.compile(_NAMED).match(text, end - 2)
            before = text[at : end - 1]
            if named and (len(before) - len(before.rstrip("\\"))) % 2:
                end = named.end()
                continue
        return end


def spec_end(text: str, at: int, quote: str) -> int:
    """Where the text of a format spec ends: at `{`, `}`, the quote or the line's end."""
    match = re.compile(_SPECS[quote[0]]).match(text, at)
    return match.end() if match else at


def unescape(source: Source, start: int, body: str) -> str:
    """What `body`, at `start`, stands for; E103 at an escape that means nothing."""
    if "\\" not in body:
        return body
    if len(body) > _LONG and body.isascii():
        with suppress(UnicodeDecodeError, Warning):
            return unicode_escape_decode(body)[0]

    def replaced(match: re.Match[str]) -> str:
        if match.group("bad"):
            raise _bad_escape(source, start + match.start(), match.group())
        code = match.group()[1:]
        simple = _SIMPLE.get(code)
        if simple is not None:
            return simple
        if code[0] in "01234567":
            return chr(int(code, 8))
        try:
            if code[0] == "N":
                from unicodedata import lookup

                return lookup(code[2:-1])
            return chr(int(code[1:], 16))
        except (KeyError, ValueError, OverflowError):
            raise _bad_escape(source, start + match.start(), match.group()) from None

    return re.sub(_ESCAPE, replaced, body)


def _bad_escape(source: Source, at: int, text: str) -> AutodiffError:
    return fault("E103 escape-string-names-no", text=text, span=Span(source, at, at + len(text)))


def unterminated(source: Source, start: int, opening: str) -> AutodiffError:
    """The error of a string whose closing quote is missing."""
    quote = opening.lstrip("rRbBuUfF")
    line, _ = source.position(start)
    where = "at the end of the text" if len(quote) == 3 else f"at the end of line {line}"
    before = source.text[start - 1 : start]
    transposed = opening == "'" and (before.isalnum() or before in ("_", ")", "]"))
    return fail(
        "E103",
        f"the string that begins with {quote} is never closed",
        Span(source, start, start + len(opening)),
        label="opened here",
        help="the transpose is `.T`" if transposed and before else f"add {quote} {where}",
    )
