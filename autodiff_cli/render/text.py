"""Text as terminals count it: cell widths, safe characters, ASCII stand-ins, numbers.

Nothing here writes or knows a stream; what `printable` returns never changes a terminal's state.
"""

from __future__ import annotations

import unicodedata

# How a number and an array look is the same below this layer.
from ..numerals import format_number as format_number
from ..numerals import matrix_lines as matrix_lines

TAB = "    "

# Stand-ins for what an output encoding lacks; each keeps the width of what it replaces,
# except the ellipsis. Blocks of sparklines and heat maps have none and become `#`.
_ASCII = str.maketrans(
    {
        "…": "...",
        "─": "-",
        "━": "-",
        "│": "|",
        "┃": "|",
        "└": "`",
        "├": "|",
        "┌": "+",
        "┐": "+",
        "┘": "+",
        "┤": "|",
        "┬": "+",
        "┴": "+",
        "┼": "+",
        "·": ".",
        "×": "x",
        "≥": ">",
        "≤": "<",
        "≠": "!",
        "→": ">",
        "←": "<",
        "↑": "^",
        "↓": "v",
        "∂": "d",
        "░": ".",
        "▒": "+",
        "▓": "%",
        "█": "#",
        "▀": "#",
        **{chr(code): "#" for code in range(0x2581, 0x2588)},
    }
)


def char_width(char: str) -> int:
    """Terminal cells of one printable character: 0 (combining), 1 or 2 (East Asian wide)."""
    if char < "\u0300":
        return 1
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    return 0 if unicodedata.category(char) in ("Mn", "Me") else 1


def text_width(text: str) -> int:
    """Terminal cells of a printable text."""
    return len(text) if text.isascii() else sum(map(char_width, text))


def printable_char(char: str) -> str:
    """A character as it may be sent to a terminal: tabs as spaces, what is invisible escaped."""
    if char.isprintable():
        return char
    return TAB if char == "\t" else char.encode("unicode_escape").decode("ascii")


def printable(text: str, limit: int = 2000) -> str:
    """`text` without control characters, direction marks or lone surrogates, its middle cut out
    beyond `limit` characters."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}…{text[-half:]}"
    return text if text.isprintable() else "".join(map(printable_char, text))


def ascii_text(text: str) -> str:
    """`text` in ASCII: stand-ins for box and block characters, escapes for the rest."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def for_encoding(text: str, encoding: str | None) -> str:
    """`text` itself if a stream of that encoding can write it, else its ASCII form."""
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ascii_text(text)
    return text


def pad(text: str, width: int, align: str = "<") -> str:
    """`text` filled with spaces to `width` cells, at the right (`<`) or the left (`>`)."""
    fill = " " * max(0, width - text_width(text))
    return fill + text if align == ">" else text + fill


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """`text`, or as much of its start as fits into `width` cells with an ellipsis."""
    if text_width(text) <= width:
        return text
    room, kept = width - len(ellipsis), []
    for char in text:
        room -= char_width(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + ellipsis[: max(0, width)]


def format_exact(value: float | int | bool) -> str:
    """A number for machines: the shortest text that reads back as the same value."""
    return repr(value)


def format_shape(shape: tuple[int, ...]) -> str:
    """`(2, 3)`, `(3,)` or `()`, whatever integer type the sizes have."""
    inner = ", ".join(str(int(size)) for size in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """`1 element`, `2 elements`, `3 matrices`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
