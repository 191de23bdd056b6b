"""Explanations for people: forward values, the chain rule step by step, totals, the check.

Invariant: rows hold plain text in styled pieces; a name is never cut, and what does not fit beside
its formula stands below it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...explain.model import Contribution, Explanation, Forward, Step, Total
from ..text import WORD, Shown, ascii_text, clip, format_number, format_shape, pad, printable
from ..text import text_width as width_of
from ..values import Look, cell_lines, fit_lines, joined, norm

HEAD, NAME, SIGN, DIM, BAD = "bold", "bold", "cyan", "dim", "bold red"
FORWARD_COLUMN = 23  # cells of a forward formula before its value, at least
BACKWARD_COLUMN = 28
LONGEST_LABEL = 48  # longer ones do not move the column of values
NARROW = 40
ROOMY = 60
LONGEST_NAME = 16  # longer ones are not aligned

MOST, EDGE = 40, 12  # parts of a grouped explanation that are all shown; else so many at each end

P = TypeVar("P")
Piece = tuple[str, str]
Row = list[Piece]
Block = list[Row]


class Style(NamedTuple):
    """How an explanation is shown; `symbolic`: without numbers; `lines`: of the program, where
    each step shows its place."""

    look: Look
    symbolic: bool = False
    lines: tuple[str, ...] = ()


class Entry(NamedTuple):
    """`name sign formula   value   note`; without a value when it is None."""

    name: str
    sign: str
    formula: str
    value: np.ndarray | None
    note: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} {self.sign} {self.formula}".rstrip()


def blocks(found: Explanation, style: Style) -> Iterator[Block]:
    """The parts of an explanation one after the other, as `--step` shows them."""
    sheet = _Sheet(found, style)
    if found.forward:
        yield [[("forward", HEAD)], *sheet.forward(found.forward)]
    opening: Block = []
    if found.steps or found.seeds:
        opening += sheet.title()
    if found.seeds:
        opening += sheet.seeds()
    if opening:
        yield opening
    for step in sheet.ends(found.steps):
        yield (
            [*sheet.place(step, style.lines), *sheet.step(step)]
            if step
            else sheet.left(found.steps)
        )
    if found.totals and not style.symbolic:
        yield [[("total", HEAD)], *sheet.totals(found.totals)]
    if found.check is not None and not style.symbolic:
        good = found.check.kind == "right"
        yield sheet.wrapped("check   ", found.check.text, "" if good else BAD)


class _Sheet:
    def __init__(self, found: Explanation, style: Style):
        self.found = found
        self.look = style.look
        self.symbolic = style.symbolic
        self.width = style.look.width
        numbers = [f.number for f in found.forward] + [s.number for s in found.steps]
        self.digits = len(str(max(numbers, default=0)))
        self.narrow = self.width < NARROW
        self.indent = 2 + self.digits + 2  # of what belongs to a number
        # Contributions stand under the words of the rule, where there is room.
        self.inner = self.indent + (2 if self.width < ROOMY else 6)
        widths = [width_of(printable(c.to)) + 3 for s in found.steps for c in s.contributions]
        self.names = max((w for w in widths if w <= LONGEST_NAME), default=0)
        self.steps_column, self.steps_notes = self._columns()

    def ends(self, parts: Sequence[P]) -> list[P | None]:
        """The first and the last of many, with None between them; all of `--all`."""
        if len(parts) <= MOST or not self.found.grouped:
            return list(parts)
        return [*parts[:EDGE], None, *parts[-EDGE:]]

    def left(self, parts: Sequence[Any], indent: int = 2) -> Block:
        """What stands for those between the ends."""
        mark = "…" if self.look.unicode else "..."
        return [[(" " * indent + f"{mark} {len(parts) - 2 * EDGE} more (--all)", DIM)]]

    # -- parts --------------------------------------------------------------------------------

    def forward(self, values: tuple[Forward, ...]) -> Block:
        """Each value with what it is made of."""
        entries = [
            Entry(
                printable(f.name), "=", printable(f.expression.text),
                None if self.symbolic else f.value, f"x {f.times}" if f.times > 1 else "",
            )
            for f in values
        ]  # fmt: skip
        column, notes = max([FORWARD_COLUMN, *self._labels(entries, 2)]), self._notes(entries)
        rows: Block = []
        for pair in self.ends(list(zip(values, entries, strict=True))):
            if pair is None:
                rows += self.left(values)
                continue
            f, entry = pair
            lines = self._entry(entry, self.indent, column, notes)
            lines[0][0] = ("  " + str(f.number).rjust(self.digits) + "  ", DIM)
            rows += lines
        return rows

    def title(self) -> Block:
        """What `g` means, and which backward this is."""
        found = self.found
        seed = found.seeds[0] if len(found.seeds) == 1 else None
        objective = printable(found.objective or "the objective", WORD)
        if seed is not None and seed.given and seed.value.shape:
            objective = f"sum({objective} * g({printable(seed.name)}))"
        elif len(found.seeds) > 1:
            objective = f"({objective})"
        head = "backward"
        if found.backwards > 1:
            head += f" {found.backwards} of {found.backwards}"
        meaning = f"g(v) means d {objective} / d v"
        gap = " " * max(2, 16 - len(head))
        if len(head + gap + meaning) > self.width:
            return [[(head, HEAD)], *self._remark(meaning, 2)]
        return [[(head, HEAD), (gap, ""), (meaning, DIM)]]

    def seeds(self) -> Block:
        """Where backward starts."""
        rows: Block = []
        for seed in self.found.seeds:
            shown = None if self.symbolic and seed.value.shape else seed.value
            name = f"g({printable(seed.name)})"
            rows += self._assigned("  seed  ", name, shown, "given" if seed.given else "")
        return rows

    def place(self, step: Step, lines: tuple[str, ...]) -> Block:
        """The line of the program, what the step computes there in reverse."""
        if step.line is None or step.line > len(lines):
            return []
        text, head = lines[step.line - 1].strip(), f"{step.line:>{self.digits + 2}} | "
        text = text if step.source in text and width_of(head + text) <= self.width else step.source
        before, found, after = text.partition(step.source)
        room = max(8, self.width - len(head))
        return [[(head, DIM), (printable(before), ""), (clip(printable(found), room), "reverse"),
                 (printable(after), "")]]  # fmt: skip

    def step(self, step: Step) -> Block:
        """One application of the chain rule."""
        head = "  " + str(step.number).rjust(self.digits) + "  "
        sign = printable(step.op, WORD)
        times = f"  x {step.times}" if step.times > 1 else ""
        words = self.width - len(head) - max(6, len(sign) + 2) - len(times)
        rows: Block
        if self.narrow or len(step.rule) > words:
            rows = self.wrapped(head, sign + times, SIGN)
            rows += self.wrapped(" " * self.inner, step.rule, DIM)
        else:
            shown = sign if times or len(sign) > 4 else pad(sign, 4)
            rows = [[(head, DIM), (shown + times, SIGN), ("  " + step.rule, "")]]
        for incoming in step.incoming:
            told = incoming.paths == 1 and not incoming.hooked and self.found.totals
            if not told and step.times == 1 and not self.symbolic:
                note = f"{incoming.paths} paths added" if incoming.paths > 1 else "upstream"
                if incoming.hooked:
                    note = "replaced by a hook"
                rows += self._assigned(
                    " " * self.inner, f"g({printable(incoming.name)})", incoming.value, note
                )
        entries = [self._contribution(c) for c in step.contributions]
        for entry in self.ends(self._aligned(entries)):
            rows += self.left(entries, self.inner) if entry is None else self._entry(
                entry, self.inner, self.steps_column, self.steps_notes
            )  # fmt: skip
        return rows

    def totals(self, totals: tuple[Total, ...]) -> Block:
        """The gradients."""
        rows: Block = []
        names = [f"g({printable(t.name)})" for t in totals]
        width = max(map(width_of, names))
        width = width if width <= 20 else 0
        texts = [self._inline(t.value) for t in totals]
        wide = max((len(t) for t in texts if t is not None and len(t) < 40), default=0)
        for pair in self.ends(list(zip(totals, names, strict=True))):
            if pair is None:
                rows += self.left(totals)
                continue
            total, name = pair
            note = added(total).strip(" ()")
            rows += self._assigned("  ", pad(name, width), total.value, note, wide, total=True)
        return rows

    def wrapped(self, head: str, text: str, style: str = "") -> Block:
        """A text that goes on below itself."""
        room = max(12, self.width - len(head))
        lines = textwrap.wrap(text, room) or [""]
        rows: Block = [[(head, HEAD if head.strip().isalpha() else DIM), (lines[0], style)]]
        rows += [[(" " * len(head), ""), (line, style)] for line in lines[1:]]
        return rows

    # -- entries ------------------------------------------------------------------------------

    def _contribution(self, c: Contribution) -> Entry:
        last = ""
        if c.norms is not None:
            late, early = (format_number(n, 3) for n in c.norms)
            last = f"last of {c.times}; norms {early} (first) to {late} (last)"
        return Entry(
            f"g({printable(c.to)})",
            "+=" if c.paths > 1 or (c.times > 1 and c.norms is None) else "=",
            printable(c.formula.text),
            None if self.symbolic else c.value,
            ", ".join(notes(c, last)),
        )

    def _columns(self) -> tuple[int, int]:
        """Where values and notes of all contributions stand."""
        steps = ([self._contribution(c) for c in s.contributions] for s in self.found.steps)
        entries = [entry for step in steps for entry in self._aligned(step)]
        return max([BACKWARD_COLUMN, *self._labels(entries, 2)]), self._notes(entries)

    def _aligned(self, entries: list[Entry]) -> list[Entry]:
        """Names as wide as those of all steps, signs as those of this one."""
        adding = any(e.sign == "+=" for e in entries)
        names = self.names if (adding or len(entries) > 1) and not self.narrow else 0
        signs = len("+=" if adding else "=")
        return [e._replace(name=pad(e.name, names), sign=e.sign.rjust(signs)) for e in entries]

    def _labels(self, entries: list[Entry], gap: int) -> list[int]:
        widths = [width_of(e.label) for e in entries]
        room = min(LONGEST_LABEL, self.width // 2)
        return [w + gap for w in widths if w <= room]

    def _notes(self, entries: list[Entry]) -> int:
        """Cells of the values that have a note after them."""
        texts = [self._inline(e.value) for e in entries if e.value is not None]
        return max((len(t) for t in texts if t is not None and len(t) <= 32), default=0)

    def _entry(self, entry: Entry, indent: int, column: int, notes: int) -> Block:
        """A label with its value beside it, or below it where it does not fit."""
        text = None if entry.value is None else self._inline(entry.value)
        if entry.value is None or text == entry.formula:  # the number that it is
            return self._label(entry, indent)
        used = indent + width_of(entry.label)
        size = self.width + 1 if text is None else len(text)
        for gap in (max(2, indent + column - used), 2):
            if used + gap + size <= self.width:
                row = [*self._written(entry, indent), (" " * gap, ""), (str(text), "")]
                return self._noted(row, entry.note, max(0, notes - size) + 6, indent + 2)
        return [*self._label(entry, indent), *self._below(entry.value, indent + 2)]

    def _label(self, entry: Entry, indent: int) -> Block:
        """The label alone, in several rows where it must be."""
        if indent + width_of(entry.label) <= self.width:
            return self._noted(self._written(entry, indent), entry.note, 2, indent + 2)
        label = ascii_text(entry.label) if Shown.escapes else entry.label
        lines = textwrap.wrap(label, max(12, self.width - indent), subsequent_indent="    ")
        rows: Block = [[(" " * indent, ""), (line, "")] for line in lines]
        return rows + self._remark(entry.note, indent + 2)

    def _written(self, entry: Entry, indent: int) -> Row:
        name, sign = (entry.name, NAME), (f" {entry.sign} ", DIM)
        return [(" " * indent, ""), name, sign, (entry.formula, "")]

    def _noted(self, row: Row, note: str, gap: int, indent: int) -> Block:
        """A row with a note behind it, or below it where it does not fit."""
        end = sum(width_of(text) for text, _ in row)
        for space in (gap, 2) if note else ():
            if end + space + len(note) <= self.width:
                return [[*row, (" " * space, ""), (note, DIM)]]
        return [row, *self._remark(note, indent)]

    def _remark(self, note: str, indent: int) -> Block:
        lines = textwrap.wrap(note, max(12, self.width - indent))
        return [[(" " * indent, ""), (line, DIM)] for line in lines]

    def _assigned(
        self, head: str, name: str, value: np.ndarray | None, note: str, notes: int = 0,
        *, total: bool = False,
    ) -> Block:  # fmt: skip
        """`head name = value   note`, or the value below."""
        row: Row = [(head, DIM), (name, NAME)]
        inner = (2 if total or head.strip() else len(head)) + (2 if self.narrow else 4)
        if value is None:
            return [row]
        text = self._inline(value) if not (total and self.look.sums_up(value)) else None
        used = len(head) + width_of(name) + 3
        if text is not None and used + len(text) <= self.width:
            row += [(" = ", DIM), (text, "")]
            return self._noted(row, note, max(0, notes - len(text)) + 5, inner)
        notes_of = [format_shape(value.shape)]
        if total and self.look.sums_up(value):
            notes_of.append(f"norm {format_number(norm(value), self.look.precision)}")
        notes_of += [note] if note else []
        rows: Block = [row]
        for shown in notes_of:
            if sum(width_of(t) for t, _ in rows[-1]) + 2 + len(shown) <= self.width:
                rows[-1].append((f"  {shown}", DIM))
            else:
                rows += self._remark(shown, inner)
        return [*rows, *self._below(value, inner, signs=total)]

    # -- values -------------------------------------------------------------------------------

    def _inline(self, value: np.ndarray | None) -> str | None:
        """A value on one line: all elements, or shape, norm and corners of a large one."""
        if value is None:
            return None
        look = self.look
        if look.sums_up(value):
            if self.width < 72:
                return None
            return f"{format_shape(value.shape)}  {_summary(value, look)}"
        if not value.size:
            return f"empty {format_shape(value.shape)}"
        return joined(cell_lines(value, look))

    def _below(self, value: np.ndarray, indent: int, *, signs: bool = False) -> Block:
        if self.look.sums_up(value) and not signs:
            shown = f"{format_shape(value.shape)}  {_summary(value, self.look)}"
            return [[(" " * indent, ""), (line, "")]
                    for line in textwrap.wrap(shown, max(12, self.width - indent))]  # fmt: skip
        lines = cell_lines(value, self.look, signs=signs)
        room = max(12, self.width - indent)
        return [[(" " * indent, ""), (line, "")] for line in fit_lines(lines, room)]


def notes(c: Contribution, last: str = "") -> list[str]:
    """What is to be said of a contribution besides its value; `last`: of the last of several."""
    found = []
    if c.broadcast is not None:
        found.append(f"{format_shape(c.shape)} was broadcast to {format_shape(c.broadcast)}")
    if c.norms is not None:
        found.append(last or f"the last of {c.times}")
    elif c.times > 1:
        found.append(f"{c.times} added")
    if c.paths > 1:
        found.append(f"path {c.path} of {c.paths}")
    return found


def added(total: Total) -> str:
    """How a total came about, behind a space; nothing when it is one contribution."""
    if total.hooked:
        return " (replaced by a hook)"
    return f" ({total.paths} paths added)" if total.paths > 1 else ""


def _summary(value: np.ndarray, look: Look) -> str:
    """Norm and corner elements of a large value."""
    shown = min(look.precision, 3)
    matrix = value.reshape(-1, value.shape[-1])
    first, last = matrix[0], matrix[-1]
    ends = [format_number(x.item(), shown) for x in (first[0], first[-1], last[0], last[-1])]
    corners = f"{ends[0]} .. {ends[1]}"
    if value.ndim > 1:
        corners += f" / {ends[2]} .. {ends[3]}"
    return f"norm {format_number(norm(value), look.precision)}  corners {corners}"


# -- output ---------------------------------------------------------------------------------------


def plain(found: Explanation, style: Style) -> str:
    """The explanation without colours."""
    lines = ["".join(t for t, _ in row).rstrip() for block in blocks(found, style) for row in block]
    return "".join(f"{line}\n" for line in lines)
