"""Text as terminals count it: cell widths, safe characters, ASCII stand-ins, numbers.

Nothing here writes; what `printable` returns never changes a terminal's state. Widths are those of
the stand-ins where standard output cannot show all characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

# How a number and an array look is the same below this layer.
from ..numerals import format_number as format_number
from ..numerals import matrix_lines as matrix_lines

TAB = "    "
# The most characters that are shown of a name or a path, of a line, of a whole result.
WORD, LINE, WHOLE = 300, 2000, 100_000
_CHUNKS = re.compile(r"\s*(?:`[^`]+`|\S)+")  # a word with what stands before it; code is one word
_GAPS = re.compile(r"(?<=\S) {2,}(?=\S)")
_WORDS = re.compile(r"\s*\S+")
_CALLS = re.compile(r"\s*\S+?(?:[(\[]+|(?=\.[^\W\d])|(?=\s|$))")  # up to a bracket or a dot
_CODES = re.compile(r"\x1b(?!\[[0-9;]*m)|[\0-\7\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")

# Stand-ins for what an output encoding lacks; each keeps the width of what it replaces,
# except the ellipsis. Blocks of sparklines and heat maps have none and become `#`.
_ASCII = str.maketrans(
    "─━│┃└├┌┐┘┤┬┴┼·×≥≤≠→←↑↓∂░▒▓█▀▁▂▃▄▅▆▇", "--||`|+++|+++.x><!><^vd.+%#########"
) | {ord("…"): "..."}


class Shown:
    """What standard output shows."""

    escapes = False  # ASCII stands for everything else


def char_width(char: str) -> int:
    """Terminal cells of one printable character: 0 (combining), 1 or 2 (East Asian wide), those of
    its escape."""
    if Shown.escapes and not char.isascii():
        return len(ascii_text(char))
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


def printable(text: str, limit: int = LINE) -> str:
    """`text` without control characters, direction marks or lone surrogates, its middle cut out
    beyond `limit` characters."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}…{text[-half:]}"
    return text if text.isprintable() else "".join(map(printable_char, text))


def tamed(text: str) -> str:
    """What a program prints, for a terminal: of its codes only those of colours, the others could
    write to the clipboard, rename windows or hide lines."""
    return _CODES.sub(lambda code: code[0].encode("unicode_escape").decode("ascii"), text)


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
    fill = " " * (width - text_width(text))
    return fill + text if align == ">" else text + fill


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """`text`, or as much of its start as fits into `width` cells with an ellipsis."""
    if text_width(text) <= width:
        return text
    room, kept = width - text_width(ellipsis), []
    for char in text:
        room -= char_width(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + ellipsis[: max(0, width)]


def clip_inside(text: str, width: int, ellipsis: str = "…") -> str:
    """`text`, or its start and its end: parts of one expression often begin alike."""
    if text_width(text) <= width:
        return text
    end = clip(text[::-1], width // 2, "")[::-1]
    return clip(text, width - text_width(end), ellipsis) + end


def broken(text: str, width: int, code: bool = False) -> list[str]:
    """A line as lines of `width` cells, broken between words, and within `code` or a word only
    where one is longer than that (a word is then left as it is; one of a text that is `code` goes
    on behind a bracket, or before a dot)."""
    if text_width(text) <= width:
        return [text]
    lines, line = [], ""
    for piece in _pieces(text, width, (_CHUNKS, _WORDS, _CALLS)[: 2 + code]):
        if line and text_width(line) + text_width(piece) > width:
            lines.append(line)
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, line]


def _pieces(text: str, width: int, kinds: tuple[re.Pattern[str], ...]) -> Iterator[str]:
    """The pieces of the first kind; of those that are too wide the ones of the next."""
    for piece in kinds[0].findall(text):
        if len(kinds) > 1 and text_width(piece.lstrip()) > width:
            yield from _pieces(piece, width, kinds[1:])
        else:
            yield piece


def prose(lead: str, text: str, width: int | None = None) -> list[str]:
    """`lead` and a text of one or more lines behind it; where the text does not fit into `width`
    cells it goes on below itself."""
    margin, room = text_width(lead), 0 if width is None else max(width - text_width(lead), 20)
    lines = [printable(line) for line in text.split("\n")]
    if width is not None and max(map(text_width, lines)) > room:
        lines = [piece for line in _unhung(lines) for piece in broken(line, room)]
    return [lead + lines[0], *(" " * margin + line for line in lines[1:])]


def in_columns(lines: list[str], width: int) -> list[str]:
    """A table, or blocks beside one another; columns that do not fit into `width` cells go on
    below, in a table behind the first one again."""
    longest = max(map(len, lines))
    if longest <= width:
        return lines
    padded = [line.ljust(longest) for line in lines]
    blank = "".join(" "[: set(at) == {" "}] or "x" for at in zip(*padded, strict=True))
    gaps = [m.span() for m in re.finditer("  +", blank) if m.start()]
    wide = [gap for gap in gaps if gap[1] - gap[0] > 8]
    cuts = [0, *(end for _, end in wide or gaps), longest]
    columns = [[line[a:b] for line in padded] for a, b in pairwise(cuts)]
    head = [""] * len(lines) if wide else columns.pop(0)
    groups = [head]
    for column in columns:
        joined = [a + b for a, b in zip(groups[-1], column, strict=True)]
        if groups[-1] is not head and max(len(line.rstrip()) for line in joined) > width:
            groups.append([a + b for a, b in zip(head, column, strict=True)])
        else:
            groups[-1] = joined
    return [line.rstrip() for group in groups for line in group if line.strip()]


def complaint(message: str, helps: Iterable[str], width: int | None, severity: str) -> str:
    """What is wrong with a command, and what to type instead."""
    lines = prose(f"{severity}: ", message, width)
    for text in helps:
        lines += prose("help: ", text, width)
    return "\n".join(lines)


def _unhung(lines: list[str]) -> list[str]:
    """Lines that stand under the end of the first one (`shapes align:   X  2  3`), moved to the
    left with that end."""
    column = min((len(line) - len(line.lstrip()) for line in lines[1:]), default=0)
    first = lines[0]
    if column < 8 or not first[:column].endswith(" "):
        return lines
    return [first[:column].rstrip(), *(f"  {line[column:]}" for line in lines)]


def fitted_page(text: str, width: int) -> str:
    """A page of help that was written for 80 columns, as it is if it fits into `width` cells;
    else its paragraphs are filled anew and what stands in columns goes on below itself."""
    lines = text.split("\n")
    if max(map(text_width, lines)) <= width:
        return text
    paragraphs: list[list[str]] = []
    column = -1  # where a line begins that goes on with the last paragraph
    for line in lines:
        start = len(line) - len(line.lstrip())
        if line and start == column:
            paragraphs[-1].append(line)
            continue
        paragraphs.append([line])
        gap = _last_gap(line, start)
        column = -1 if not line or (start and gap == start) else gap
    return "\n".join(part for paragraph in paragraphs for part in _filled(paragraph, width))


def _last_gap(line: str, start: int) -> int:
    """Where the last column of a line begins: what stands behind two spaces or more."""
    return max((gap.end() for gap in _GAPS.finditer(line)), default=start)


def _filled(lines: list[str], width: int) -> list[str]:
    """A paragraph in `width` cells: its last column goes on below itself, or, where that is far to
    the right, begins below the line."""
    if max(map(text_width, lines)) <= width:
        return lines
    line = " ".join([lines[0], *(further.lstrip() for further in lines[1:])])
    start = len(line) - len(line.lstrip())
    column = _last_gap(line, start)
    if column <= width // 2:
        return prose(line[:column], line[column:], width)
    return [*prose(" " * start, line[start:column].rstrip(), width),
            *prose(" " * (start + 4), line[column:], width)]  # fmt: skip


def dumped(data: Any) -> str:
    """A document as one line of strict JSON, with its line end. Lone surrogates, which strict
    readers refuse, are question marks."""
    import json

    text = json.dumps(data, allow_nan=False, check_circular=False, ensure_ascii=False)
    if not (text.isascii() and text.isprintable()):
        text = json.dumps(json.loads(text.encode("utf-8", "replace")))
    return text + "\n"


def identifier(name: str) -> str:
    """A name of the program as a part of a name."""
    return re.sub(r"\W+", "_", name).strip("_") or "value"


def format_shape(shape: tuple[int, ...]) -> str:
    """`(2, 3)`, `(3,)` or `()`, whatever integer type the sizes have."""
    return str(tuple(map(int, shape)))


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """`1 element`, `2 elements`, `3 matrices`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
