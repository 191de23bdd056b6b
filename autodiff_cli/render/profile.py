"""Where the time of a run went: lines for people, data for the document of `run`.

A line is a list of pieces of text with their styles; terminals colour them, plain text writes them
as comments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..graph.sizes import bytes_text
from .diagnostics import place
from .document import picked
from .text import clip, format_count, pad, printable, text_width

if TYPE_CHECKING:
    from ..engine.profile import Profile, ProfileLine
    from ..graph.node import Node

StyledLine = list[tuple[str, str]]

TITLE, DIM, NAME = "bold", "dim", "bold"
MOST = 20  # expressions that are shown unless all are asked for
WIDE, MIDDLE = 76, 56  # cells from which there are all columns, or all but two
PHASES = ("forward", "backward")
SHORT = ("fwd", "bwd")
PARTS = ("kernels", "parsing", "building", "planning")  # of the time of a run


def profile_lines(profile: Profile, file: str, width: int, all: bool) -> list[StyledLine]:
    """The expressions by time, their sum, and what is not in kernels."""
    forward = sum(line.seconds for line in profile.lines if not line.backward)
    backward = sum(line.seconds for line in profile.lines if line.backward)
    both = [f"forward {seconds_text(forward)}", f"backward {seconds_text(backward)}"]
    lines = titled("Profile", both, width)
    table = Columns(width)
    lines.append(table.head())
    shown = profile.lines if all else profile.lines[:MOST]
    lines += [table.line(line, file) for line in shown]
    rest = profile.lines[len(shown) :]
    if rest:
        lines.append(table.sum(rest, f"{format_count(len(rest), 'more line')} (--all)", DIM))
    lines.append(table.sum(profile.lines, "all kernels", TITLE))
    parts = [f"{part} {seconds_text(getattr(profile, part))}" for part in PARTS]
    lines += wrapped(f"the run {seconds_text(profile.seconds)}:", parts, width, DIM)
    return lines


class Columns:
    """The columns that fit into `width`; what is left is for expressions."""

    def __init__(self, width: int):
        self.phases = PHASES if width >= MIDDLE else SHORT
        self.more = width >= WIDE
        self.size = width >= MIDDLE
        self.time = 10 if self.size else 8
        taken = len(self._row("", "", "", "", "", ""))
        self.text = max(8, width - taken)

    def head(self) -> StyledLine:
        row = self._row("share", "time", "bytes", "calls", "", "place")
        return [(row + clip("expression", self.text), DIM)]

    def line(self, line: ProfileLine, file: str) -> StyledLine:
        place = place_of(line.span, file)
        row = self._row(
            f"{line.share:.1%}", seconds_text(line.seconds), size_text(line.bytes),
            str(line.calls), self.phases[line.backward], place,
        )  # fmt: skip
        return [(row, ""), (clip(text_of(line.span), self.text), NAME)]

    def sum(self, lines: Iterable[ProfileLine], text: str, style: str) -> StyledLine:
        lines = list(lines)
        row = self._row(
            f"{sum(line.share for line in lines):.1%}",
            seconds_text(sum(line.seconds for line in lines)),
            size_text(sum(line.bytes for line in lines)),
            str(sum(line.calls for line in lines)), "", "",
        )  # fmt: skip
        return [(row, ""), (clip(text, self.text), style)]

    def _row(self, share: str, time: str, size: str, calls: str, phase: str, place: str) -> str:
        row = f"{share:>7} {time:>{self.time}}"
        if self.size:
            row += f" {size:>10}"
        if self.more:
            row += f" {calls:>7}"
        row += f"  {pad(phase, len(self.phases[True]))}"
        if self.more:
            row += f" {pad(clip(place, 7), 7)}"
        return f"{row} "


def titled(title: str, parts: list[str], width: int) -> list[StyledLine]:
    """The title of a section with what there is to say at once."""
    lines = wrapped(f"{title}  ", parts, width, DIM, 0)
    lines[0] = [(title, TITLE), (lines[0][0][0][len(title) :], DIM)]
    return lines


def wrapped(
    head: str, parts: list[str], width: int, style: str, indent: int = 1, separator: str = ","
) -> list[StyledLine]:
    """`head part, part, part`, on as many lines as it takes."""
    lines: list[str] = []
    line = " " * indent + head
    empty = not head
    for at, part in enumerate(parts):
        part += separator if at < len(parts) - 1 else ""
        if not empty and text_width(line) + 1 + text_width(part) > width:
            lines.append(line)
            line, empty = " " * (indent + 2), True
        room = max(8, width - text_width(line) - 1)
        line += ("" if line.endswith(" ") else " ") + clip(part, room)
        empty = False
    return [[(text, style)] for text in (*lines, line)]


def seconds_text(seconds: float) -> str:
    """`12.3 us`, `4.56 ms`, `1.2 s`: three digits."""
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{_digits(seconds * factor)} {unit}"
    return f"{_digits(seconds)} s"


def _digits(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def size_text(size: int) -> str:
    return bytes_text(size).replace(" bytes", " B")


def text_of(span: Any) -> str:
    """The expression, on one line."""
    return "(no expression)" if span is None else " ".join(printable(span.text).split())


def place_of(span: Any, file: str) -> str:
    """`4:12`, or with the name of another text."""
    if span is None:
        return ""
    place = f"{span.line}:{span.column}"
    return place if span.source.name == file else f"{printable(span.source.name)}:{place}"


def shares(profile: Profile, width: int) -> Callable[[Node, str], str]:
    """What a node's expression took of the kernels' time, as a column of trees before a note."""
    found: dict[Any, float] = {}
    for line in profile.lines:
        found[line.span] = found.get(line.span, 0.0) + line.share

    def column(node: Node, note: str) -> str:
        share = f"{found.get(node.span, 0.0):6.1%}"
        return f"{share}  {note}" if width >= MIDDLE else share

    return column


# -- the document ---------------------------------------------------------------------------------


def profile_data(profile: Profile) -> dict[str, Any]:
    """The profile for the document of `run`, in seconds and bytes."""
    return {
        **picked(profile, "seconds", *PARTS, "evaluations"),
        "lines": [
            {
                **expression_data(line.span, line.backward),
                **picked(line, "calls", "bytes", "seconds", "share"),
            }
            for line in profile.lines
        ],
    }


def expression_data(span: Any, backward: bool) -> dict[str, Any]:
    """An expression and its place; null where there is none."""
    return {
        "phase": PHASES[backward],
        "text": span and span.text,
        "file": span and span.source.name,
        **place(span),
    }
