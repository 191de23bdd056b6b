"""Code frames: source lines with underlines and labels, notes and help below them.

Invariant: what is shown of a source line is safe for a terminal and as wide as the frame at most,
and the work does not grow with the length of the line.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from ..errors import Diagnostic
from ..source import Source, Span
from .text import broken, char_width, in_columns, printable, printable_char, prose, text_width

DEFAULT_WIDTH = 120
MAX_LABELS = 20

RED, YELLOW, _BLUE, _GREEN, BOLD = "1;31", "1;33", "1;34", "1;32", "1"


class Paint:
    """Gives texts a style or a link; without colours they stay as they are."""

    __slots__ = ("color",)

    def __init__(self, color: bool):
        self.color = color

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color and style and text else text

    def link(self, text: str, file: str) -> str:
        """A text that opens a file, if there is one of that name (OSC 8)."""
        import os
        from urllib.parse import quote

        path = os.path.abspath(file)
        if not self.color or not os.path.isfile(path):
            return text
        return f"\x1b]8;;file://{quote(os.fsencode(path))}\x1b\\{text}\x1b]8;;\x1b\\"


class Mark(NamedTuple):
    """Characters `[start, end)` of the source text, all on one line, to be underlined."""

    line: int
    start: int
    end: int
    text: str
    primary: bool


class Placed(NamedTuple):
    """A mark in terminal cells of its frame line."""

    start: int
    end: int
    text: str
    primary: bool


def location(span: Span) -> str:
    """`demo.expr:3:7`."""
    return f"{printable(span.source.name)}:{span.line}:{span.column}"


def frames(
    diagnostic: Diagnostic, accent: str, paint: Paint, width: int | None, ellipsis: str
) -> list[str]:
    """Everything below the heading: code frames, notes and help."""
    result: list[str] = []
    groups = _groups(diagnostic)
    numbers = (mark.line for _, _, marks in groups for mark in marks)
    gutter = max((len(str(number)) for number in numbers), default=1)
    for position, (source, first, marks) in enumerate(groups):
        arrow = "::: " if position else "--> "
        place = location(first) if width is None else paint.link(location(first), source.name)
        result.append(" " * gutter + paint(arrow, _BLUE) + place)
        result.append(" " * (gutter + 1) + paint("|", _BLUE))
        result += _frame(source, marks, gutter, accent, paint, width or DEFAULT_WIDTH, ellipsis)
    if groups and (diagnostic.notes or diagnostic.helps):
        result.append(" " * (gutter + 1) + paint("|", _BLUE))
    for note in diagnostic.notes:
        result += _note(note, gutter, paint, width)
    for text in diagnostic.helps:
        head, *more = prose("help: ", text, width)
        result += [paint("help", _GREEN) + head.removeprefix("help"), *more]
    return result


def _note(note: str, gutter: int, paint: Paint, width: int | None) -> list[str]:
    """A note; one that begins with a line end is a block (a table), which stands by itself."""
    if note.startswith("\n"):
        margin = " " * (gutter + 3)
        lines = [printable(line) for line in note.strip("\n").split("\n")]
        return [margin + line for line in in_columns(lines, (width or sys.maxsize) - len(margin))]
    plain = " " * (gutter + 1) + "= note"
    first, *rest = prose(f"{plain}: ", note, width)
    lead = " " * (gutter + 1) + paint("= ", _BLUE) + paint("note", BOLD)
    return [lead + first.removeprefix(plain), *rest]


def _groups(diagnostic: Diagnostic) -> list[tuple[Source, Span, list[Mark]]]:
    """Marks by source, the primary span's first, each with the span its arrow line names."""
    places = [(label.span, label.text, False) for label in diagnostic.labels[:MAX_LABELS]]
    if diagnostic.span is not None:
        places.insert(0, (diagnostic.span, diagnostic.label, True))
    groups: dict[int, tuple[Source, Span, list[Mark]]] = {}
    for span, text, primary in places:
        group = groups.setdefault(id(span.source), (span.source, span, []))
        group[2].extend(_marks(span, printable(text), primary))
    return list(groups.values())


def _marks(span: Span, text: str, primary: bool) -> list[Mark]:
    """One mark, or for a span of several lines one on its first and one on its last line."""
    source, content = span.source, span.source.text
    start = min(max(span.start, 0), len(content))
    end = min(max(span.end, start), len(content))
    if end > start and content[end - 1] == "\n":
        end -= 1
    first, last = source.position(start)[0], source.position(end)[0]
    if first == last:
        return [Mark(first, start, end, text, primary)]
    begin = end - len(content[source.starts[last - 1] : end].lstrip(" \t"))
    return [
        Mark(first, start, source.starts[first] - 1, "", primary),
        Mark(last, begin, end, text, primary),
    ]


def _frame(
    source: Source,
    marks: list[Mark],
    gutter: int,
    accent: str,
    paint: Paint,
    width: int,
    ellipsis: str,
) -> list[str]:
    room = max(20, width - gutter - 3)
    rows: list[str] = []
    previous = 0
    for line in sorted({mark.line for mark in marks}):
        if previous and line > previous + 2:
            rows.append(paint("...", _BLUE))
        elif previous and line == previous + 2:
            shown, _ = _source_line(source, previous + 1, [], room, ellipsis)
            rows.append(paint(f"{previous + 1:>{gutter}} | ", _BLUE) + shown)
        here = list(dict.fromkeys(mark for mark in marks if mark.line == line))
        shown, placed = _source_line(source, line, here, room, ellipsis)
        rows.append(paint(f"{line:>{gutter}} | ", _BLUE) + shown)
        margin = " " * (gutter + 1) + paint("| ", _BLUE)
        rows += [margin + row for row in _annotations(placed, accent, paint, room)]
        previous = line
    return rows


# ------------------------------------------------------------------ one source line


def _cost(char: str) -> int:
    """Cells a character takes at most; at least 1, so that cutting a line always ends."""
    return 1 if " " <= char <= "~" else max(1, text_width(printable_char(char)))


def _advance(text: str, at: int, stop: int, room: int) -> tuple[int, int]:
    """Walk from `at` towards `stop` while characters fit; where it ended and the room left."""
    step, next_to = (1, 0) if stop > at else (-1, -1)
    while at != stop:
        cost = _cost(text[at + next_to])
        if cost > room:
            break
        room -= cost
        at += step
    return at, room


def _window(
    text: str, begin: int, end: int, marks: list[Mark], room: int, ellipsis: str
) -> tuple[int, int]:
    """The part `[low, high)` of the line `[begin, end)` to show: all of it, else around marks."""
    if end - begin <= room and _advance(text, begin, end, room)[0] == end:
        return begin, end
    room -= 2 * len(ellipsis)
    low = min((mark.start for mark in marks), default=begin)
    high = max((mark.end for mark in marks), default=begin)
    if _advance(text, low, high, room)[0] != high:  # not all marks fit: the primary one must
        focus = next((mark for mark in marks if mark.primary), marks[0])
        low, high = focus.start, focus.end
    high, left = _advance(text, low, high, room)
    low, rest = _advance(text, low, begin, left // 2)
    high, rest = _advance(text, high, end, left - left // 2 + rest)
    low, _ = _advance(text, low, begin, rest)
    return low, high


def _source_line(
    source: Source, number: int, marks: list[Mark], room: int, ellipsis: str
) -> tuple[str, list[Placed]]:
    """A line as shown, cut around its marks if it is long, and the marks in cells of it."""
    text, starts = source.text, source.starts
    begin = starts[number - 1]
    end = starts[number] - 1 if number < len(starts) else len(text)
    low, high = _window(text, begin, end, marks, room, ellipsis)
    shown = [ellipsis] if low > begin else []
    cell = len(ellipsis) if low > begin else 0
    columns = []
    for char in text[low:high]:
        columns.append(cell)
        piece = printable_char(char)
        cell += char_width(piece) if len(piece) == 1 else len(piece)
        shown.append(piece)
    columns.append(cell)
    if high < end:
        shown.append(ellipsis)
        cell += len(ellipsis)

    def column(offset: int) -> int:
        return 0 if offset < low else columns[min(offset, high) - low]

    placed = []
    for mark in marks:
        first = column(mark.start)
        last = cell if mark.end > high else column(mark.end)
        placed.append(Placed(first, max(last, first + 1), mark.text, mark.primary))
    return "".join(shown), placed


# ------------------------------------------------------------------ underlines and labels


def _annotations(marks: list[Placed], accent: str, paint: Paint, room: int) -> list[str]:
    """The rows below a source line.

    The rightmost label stands beside its underline; the others hang below on vertical bars,
    from right to left, so that no bar crosses a text.
    """

    def style(mark: Placed) -> str:
        return accent if mark.primary else _BLUE

    cells: dict[int, tuple[str, str]] = {}
    # Shorter marks are drawn later, over longer ones, and the primary over an equal one.
    for mark in sorted(marks, key=lambda mark: (mark.start - mark.end, mark.primary)):
        drawn = ("^" if mark.primary else "-", style(mark))
        cells.update(dict.fromkeys(range(mark.start, mark.end), drawn))
    rightmost = max(marks, key=lambda mark: (mark.end, mark.start, mark.primary))
    underline = _row(cells, paint)
    hanging = [mark for mark in marks if mark.text]
    size = text_width(rightmost.text)
    if rightmost.text and rightmost.end + 1 + size <= room:
        hanging.remove(rightmost)
        underline += " " + paint(rightmost.text, style(rightmost))
    rows = [underline]
    hanging.sort(key=lambda mark: (-mark.start, mark.primary))
    if hanging:
        rows.append(_row({mark.start: ("|", style(mark)) for mark in reversed(hanging)}, paint))
    for position, mark in enumerate(hanging):
        bars = {
            other.start: ("|", style(other))
            for other in hanging[position + 1 :]
            if other.start < mark.start
        }
        lead, end = _row(bars, paint), max(bars) + 1 if bars else 0
        start, lines = _fitted(mark, end + 1 if bars else 0, room)
        if bars and start + max(map(text_width, lines)) > room:  # no room beside them
            lead, end = "", 0
            start, lines = _fitted(mark, 0, room)
        rows += [lead + " " * (start - end) + paint(line, style(mark)) for line in lines]
    return rows


LABEL_WIDTH = 28  # cells that a label gets at least, moved to the left if need be


def _fitted(mark: Placed, leftmost: int, room: int) -> tuple[int, list[str]]:
    """Where a hanging label begins, and its lines: in a narrow terminal it moves to the left, not
    beyond `leftmost`, and is broken between words."""
    size = text_width(mark.text)
    if mark.start + size <= room:
        return mark.start, [mark.text]
    start = max(leftmost, min(mark.start, room - min(size, LABEL_WIDTH)))
    return start, broken(mark.text, max(room - start, 8))


def _row(cells: dict[int, tuple[str, str]], paint: Paint) -> str:
    """Characters at their cells, neighbours of one style painted together."""
    pieces: list[str] = []
    run, run_style, at = "", "", 0
    for cell in sorted(cells):
        char, style = cells[cell]
        if cell > at or style != run_style:
            pieces += [paint(run, run_style), " " * (cell - at)]
            run, run_style = "", style
        run += char
        at = cell + 1
    return "".join(pieces) + paint(run, run_style)
