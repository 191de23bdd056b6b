"""The form for terminals: values, graph and gradients, laid out for the width there is.

Invariant: a name, a value or a gradient is never hidden without a mark. Program text reaches rich
only inside `Text`, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from .graphs.outline import Outline
from .graphs.tree import Bounds, Row, Tree, everything, laid_out
from .heat import LEGEND, heated, is_summary, meanings, scale_of
from .selection import MANY, MOST_ROWS, Family, families, important, matching, missing, no_gradients
from .text import WHOLE, ascii_text, broken, format_count, format_number, format_shape, printable
from .text import text_width as width_of
from .values import Look, cell_lines, extent, fit_lines, norm

if TYPE_CHECKING:
    from ..session import Report, TensorRecord
    from .profile import StyledLine

WIDE = 72
STACKED = 40
MIN_BODY = 40  # a value is wrapped inside a table only when it has this room

NAME, OP, DIM, TITLE = "bold", "cyan", "dim", "bold"


class Cell(list[Text]):
    """The lines of one cell; `scale` is what colours of its numbers are relative to, 0 for none;
    `columns` how many numbers a row of it has, shown or not."""

    scale = 0.0
    columns: int | None = None


def cell(text: str, style: str = "") -> Cell:
    """A cell of one line."""
    return Cell([Text(text, style)])


def terminal(stream: IO[str], color: bool, variables: Mapping[str, str]) -> Console:
    """A console that interprets nothing and never wraps or crops."""
    system: Any = None
    if color:
        forced = variables.get("FORCE_COLOR", "")  # by convention 2 is 256 colours, 3 all of them
        truecolor = variables.get("COLORTERM", "") in ("truecolor", "24bit") or forced == "3"
        many = "256" in variables.get("TERM", "") or forced == "2"
        system = "truecolor" if truecolor else "256" if many else "standard"
    return Console(
        file=stream, color_system=system, no_color=False, soft_wrap=True, legacy_windows=False
    )  # fmt: skip


class Page:
    """Reports and lines on one console."""

    def __init__(self, console: Console, look: Look):
        self.console = console
        self.look = look
        # Whether there are enough colours to show sizes.
        self.heat = console.color_system in ("truecolor", "256")
        self.explained: set[str] = set()  # what the colours mean

    def line(self, text: Text | str = "") -> None:
        if isinstance(text, str):
            text = Text(text)
        if not self.look.unicode:
            text = _in_ascii(text)
        text.rstrip()
        self.console.print(text)

    def lines(self, lines: Iterable[StyledLine]) -> None:
        """Lines with styles."""
        for line in lines:
            self.line(Text.assemble(*line))

    # -- the three sections ---------------------------------------------------------------------

    def report(
        self,
        report: Report,
        *,
        only: tuple[str, ...] = (),
        show: tuple[str, ...] = (),
        all: bool = False,
    ) -> None:
        """Values, graph, gradients: the answer is last, next to the prompt."""
        records = matching(report, show)
        if report.shown is not None:
            for line in report.shown.split("\n"):
                self.line(Text(printable(line, WHOLE)))
            if not any(record.requires_grad for record in records):
                return
        shown = records if all or show else important(report, records)
        parts = only or ("values", "graph", "gradients")
        printed = report.shown is not None
        for part in ("values", "graph", "gradients"):
            if part not in parts:
                continue
            if part == "values" and (records or (report.scalars and not show)):
                printed = self._gap(printed)
                scalars = {} if show else report.scalars
                self.values(shown, scalars, len(records) - len(shown))
            elif part == "graph" and report.graph is not None and report.graph.requires_grad:
                printed = self._gap(printed)
                self.graph(report, all)
            elif part == "gradients" and _with_gradients(report, shown):
                printed = self._gap(printed)
                self.gradients(report, _with_gradients(report, shown))
            elif part == "gradients" and no_gradients(report) and not show:
                printed = self._gap(printed)
                head = "Gradients   "
                first, *rest = broken(no_gradients(report), self.look.width - len(head))
                self.line(_title("Gradients", first))
                for words in rest:
                    self.line(Text(" " * len(head) + words, DIM))
        if report.blocked:
            printed = self._gap(printed)
            self.blocked(report)

    def blocked(self, report: Report) -> None:
        """What is in blocks of rows somewhere else: shapes, and what was measured there."""
        rows = []
        for name, array in report.blocked.items():
            measured = array.measured
            numbers = measured.norm, measured.minimum, measured.maximum
            rows.append([
                cell(name, NAME), cell(format_shape(array.shape), DIM), cell(array.dtype.name),
                cell(f"{measured.blocks:,}"), *(cell(self._number(number)) for number in numbers),
            ])  # fmt: skip
        self._table(
            "In blocks", ["name", "shape", "dtype", "blocks", "norm", "min", "max"], rows, 1
        )

    def _gap(self, printed: bool) -> bool:
        if printed:
            self.line()
        return True

    def values(self, records: list[TensorRecord], scalars: dict[str, Any], hidden: int) -> None:
        rows: list[list[Cell]] = []
        groups = families(records)
        for group in groups[:MOST_ROWS]:
            record = group.members[0]
            origin = f"<{record.grad_fn}>" if record.grad_fn else (
                "leaf" if record.requires_grad else "const"
            )  # fmt: skip
            rows.append([
                cell(group.name, NAME), cell(format_shape(record.shape), DIM),
                cell(record.dtype), self._shown(group, record.value, len(groups)),
                cell(origin, OP if record.grad_fn else ""),
            ])  # fmt: skip
        for name, number in scalars.items():
            text = format_number(number, self.look.precision, self.look.sci)
            rows.append([
                cell(name, NAME), cell(""), cell(type(number).__name__), cell(text),
                cell("python"),
            ])  # fmt: skip
        self._table("Values", ["name", "shape", "dtype", "value", "grad_fn"], rows, 3)
        self._left(len(groups) - MOST_ROWS, "more row")
        self._left(hidden, "intermediate value", " not shown")

    def _left(self, count: int, noun: str, end: str = "") -> None:
        """What is not shown, and how to see it."""
        if count > 0:
            text = f" … {format_count(count, noun)}{end} (--all"
            wide = f"{text}, --show 'h*')"
            self.line(Text(wide if width_of(wide) <= self.look.width else f"{text})", DIM))

    def graph(self, report: Report, all: bool) -> None:
        name = report.objective or ("backward()" if report.snippet else "last expression")
        self.line(_title("Graph", f"{name} <- grad_fn"))
        bounds = everything(self.look.width - 1) if all else Bounds()
        column = None
        if report.profile is not None:
            from .profile import shares

            column = shares(report.profile, self.look.width)
        outline = Outline.of_report(report)
        self.tree(Tree(outline, bounds, None, column, self._number).draw())

    def tree(self, rows: list[Row]) -> None:
        """A tree, with colours."""
        laid = laid_out(rows, self.look.width - 1, self.look.unicode)
        for row, (branches, label, op, note) in laid:
            self.line(Text.assemble(
                " ", (branches, DIM), (label, "bold red" if row.bad else ""), (op, OP),
                (note, "red" if row.bad else DIM),
            ))  # fmt: skip

    def gradients(self, report: Report, records: list[TensorRecord]) -> None:
        rows: list[list[Cell]] = []
        groups = families(records)
        for group in groups[:MOST_ROWS]:
            record = group.members[0]
            head = [cell(group.name, NAME), cell(format_shape(record.shape), DIM)]
            grads = [r.grad for r in group.members if r.grad is not None]
            if not grads:
                word = missing(report, record)
                rows.append([*head, cell(word, "yellow"), Cell(), Cell(), Cell()])
                continue
            if len(grads) == 1 and grads[0].size == 1:  # it is its own norm and extremes
                rows.append([*head, self._array(grads[0], gradient=True), Cell(), Cell(), Cell()])
                continue
            norms = [norm(g) for g in grads]
            size = " to ".join(map(self._number, dict.fromkeys([min(norms), max(norms)])))
            rows.append([
                *head, self._shown(group, grads[0], len(groups), gradient=True), cell(size),
                *(cell("" if n is None else self._number(n)) for n in extent(grads)),
            ])  # fmt: skip
        name = f"d {report.objective or 'loss'} / d name" if report.graph is not None else ""
        headers = ["name", "shape", "gradient", "norm", "min", "max"]
        self._table("Gradients", headers, rows, 2, name)
        self._left(len(groups) - MOST_ROWS, "more row")

    def _shown(self, group: Family, array: Any, rows: int, *, gradient: bool = False) -> Cell:
        """The numbers of a tensor; of one of many parameters that is large, what they are like."""
        if len(group.members) > 1:
            return cell(f"{len(group.members)} tensors alike", DIM)
        numbers = self._array(array, gradient=gradient)
        if rows > MANY and group.members[0].inside and self.look.sums_up(array):
            del numbers[1:]
        return numbers

    def _number(self, value: Any) -> str:
        number = value if isinstance(value, float) else value.item()
        return format_number(number, self.look.precision, self.look.sci)

    def _array(self, array: Any, *, gradient: bool = False) -> Cell:
        """Sign and size show as colour: of gradients, and of values that there are several of."""
        scale = scale_of(array) if self.heat and (gradient or array.size > 1) else 0.0
        lines = cell_lines(array, self.look, signs=gradient)
        numbers = Cell(heated(line, scale) for line in lines)
        numbers.scale = scale
        numbers.columns = array.shape[-1] if array.ndim else None
        return numbers

    # -- layouts --------------------------------------------------------------------------------

    def _table(
        self, title: str, headers: list[str], rows: list[list[Cell]], body: int, note: str = ""
    ) -> None:
        """A table when it fits, without the columns that can be spared; else stacked."""
        width = self.look.width
        columns = [c for c in range(len(headers)) if any(row[c] and row[c][0] for row in rows)]
        if width >= WIDE:
            dtypes = {row[2][0].plain for row in rows} if title == "Values" else set()
            layouts: list[tuple[int, ...]] = [()]
            if title == "Values":
                layouts += [(4,), (2, 4)] if len(dtypes) == 1 else [(4,)]
            # Every layout as it is; then with values wrapped, where what can be spared is.
            tries = [(spared, False) for spared in layouts]
            tries += [(spared, True) for spared in reversed(layouts)]
            for spared, wrapped in tries:
                kept = [c for c in columns if c not in spared]
                table = self._wrapped(headers, rows, kept, body) if wrapped else rows
                sizes = _sizes(headers, table, kept)
                if sum(sizes) + _frame(kept) <= width:
                    left = ["grad_fn: no room"] if 4 in spared else []
                    said = ", ".join([*dtypes, *left] if 2 in spared else left) or note
                    self.line(self._headed(title, said, rows, body))
                    self.line(_beside([Text(headers[column], DIM) for column in kept], sizes))
                    self.line(" " + "─" * (sum(sizes) + _frame(kept) - 2))
                    for row in table:
                        cells = (row[column] for column in kept)
                        for parts in zip_longest(*cells, fillvalue=Text()):
                            self.line(_beside(parts, sizes))
                    return
        self.line(self._headed(title, note, rows, body))
        for row in rows:
            self._stacked(headers, row, body)

    def _headed(self, title: str, note: str, rows: list[list[Cell]], body: int) -> Text:
        """A title, and what the colours of the numbers mean that are the first of their kind."""
        text = _title(title, note)
        if self.heat:
            found = {word for row in rows for line in row[body] for word in meanings(line)}
            new = [word for word in LEGEND if word in found - self.explained]
            words = Text(" ").join(Text(word, LEGEND[word]) for word in new)
            if new:
                beside = Text.assemble(text, "   ", words)
                fits = len(beside) <= self.look.width
                text = beside if fits else Text.assemble(text, "\n ", words)
            self.explained |= found | ({"nan", "inf"} if found & {"nan", "inf"} else set())
        return text

    def _wrapped(
        self, headers: list[str], rows: list[list[Cell]], kept: list[int], body: int
    ) -> list[list[Cell]]:
        """The rows with values in more lines, if there is room for them to be read."""
        sizes = _sizes(headers, rows, kept)
        room = self.look.width - _frame(kept) - (sum(sizes) - sizes[kept.index(body)])
        return [self._fitted(row, body, room) for row in rows] if room >= MIN_BODY else rows

    def _stacked(self, headers: list[str], row: list[Cell], body: int) -> None:
        parts: list[tuple[str, str]] = [(row[0][0].plain, NAME)]
        for header, other in zip(headers[1:], row[1:], strict=True):
            if not other or other is row[body] or not other[0].plain:
                continue
            if header in ("norm", "min", "max"):
                parts.append((f"  {header} {other[0].plain}", ""))
            else:
                gap = "  " if len(parts) == 1 else " "
                parts.append((gap + other[0].plain, DIM if header == "shape" else ""))
        head = Text()
        for part, style in parts:
            if head and width_of(head.plain + part) > self.look.width:
                self.line(head)
                head, part = Text(), f"  {part.strip()}"
            head.append(part, style)
        self.line(head)
        for line in self._fitted(row, body, self.look.width - 2)[body]:
            self.line(Text("  ").append_text(line))

    def _fitted(self, row: list[Cell], body: int, width: int) -> list[Cell]:
        """A row whose value or gradient is no wider than `width`, in more lines."""
        fitted = Cell()
        fitted.scale = scale = row[body].scale
        fitted.columns = columns = row[body].columns
        cut = self.look.width < STACKED
        for line in row[body]:
            if width_of(line.plain) <= width:
                fitted.append(line)
                continue
            pieces = _pieces(line.plain, width, cut, columns)
            if is_summary(line.plain):
                fitted += [Text(piece, DIM) for piece in pieces]
            else:
                fitted += [heated(piece, scale) for piece in pieces]
        return [*row[:body], fitted, *row[body + 1 :]]


def _pieces(line: str, width: int, cut: bool, columns: int | None) -> list[str]:
    """A line that is too wide as several: statistics at their gaps, rows between entries."""
    if line.startswith("log10|g|"):
        head, low, *bars, high = line.split()  # or `everywhere`
        return [f"{head}  {low} to {high}", *bars] if bars else [f"{head}  {low}", high]
    if "[" not in line and "   " in line:
        rows: list[str] = []
        for part in line.split("   "):
            if rows and len(rows[-1]) + len(part) + 3 <= width:
                rows[-1] += f"   {part}"
            else:
                rows.append(part)
        return rows
    return fit_lines([line], width, cut=cut, columns=columns)


def _with_gradients(report: Report, records: list[TensorRecord]) -> list[TensorRecord]:
    """Tensors that have a gradient, and leaves that could but have none."""
    done = report.graph is not None or any(r.grad is not None for r in report.tensors.values())
    return [
        r for r in records
        if r.grad is not None
        or (
            r.is_leaf and done and r.name != report.loss and (r.requires_grad or r.inside)
            and (not report.chosen or r.name in report.chosen)
        )
    ]  # fmt: skip


def _title(title: str, note: str) -> Text:
    return Text.assemble((title, TITLE), (f"   {note}" if note else "", DIM))


def _sizes(headers: list[str], rows: list[list[Cell]], kept: list[int]) -> list[int]:
    return [
        max([len(headers[c]), *(width_of(line.plain) for row in rows for line in row[c])])
        for c in kept
    ]


def _beside(parts: Sequence[Text], sizes: list[int]) -> Text:
    """A line of a table."""
    line = Text()
    for part, size in zip(parts, sizes, strict=True):
        line = Text.assemble(line, "   " if line else " ", part)
        line.append(" " * (size - width_of(part.plain)))
    return line


def _frame(kept: list[int]) -> int:
    """Cells between and around the columns of a table."""
    return 3 * len(kept) - 1


def _in_ascii(text: Text) -> Text:
    """`text` in ASCII; colours are kept unless a stand-in has another width."""
    if text.plain.isascii():
        return text
    plain = ascii_text(text.plain)
    return Text(plain, text.style, spans=text.spans if len(plain) == len(text.plain) else None)
