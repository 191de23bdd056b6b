"""The graph of the objective as a tree of source expressions, from the objective down to leaves.

Invariant: a node is expanded once; later uses point back. Nothing recurses, and the rows shown
are bounded whatever the graph.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...autograd.tensor import grad_fn_name
from ...graph.node import Node
from ..text import ascii_text, broken, clip_inside, format_count, format_number, pad
from ..text import text_width as width_of
from .outline import Outline, shape_text


class Row(NamedTuple):
    """One line: branches, the expression, PyTorch's name of its op, shape or remark. `value` is
    what the expression gives; it is never cut."""

    branches: str
    label: str
    op: str = ""
    note: str = ""
    bad: bool = False
    value: str = ""


class Bounds(NamedTuple):
    """What is drawn: graphs of at most `nodes` nodes, at most so many rows, so deep; `constants`
    one by one; `hint` says how to see more, `instead` what to do with a graph too large."""

    nodes: int = 200
    rows: int = 40
    depth: int = 8
    constants: bool = False
    hint: str = " (--all)"
    instead: str = "a picture: autodiff graph -f svg"


def everything(width: int) -> Bounds:
    """All that can be drawn in this width."""
    return Bounds(sys.maxsize, 5000, max(8, min(200, (width - 24) // 2)), True, "", "")


Remarks = Callable[["Node"], list[str]]


@dataclass(eq=False)
class Tree:
    """Makes the rows of one outline; `remarks` gives further lines of a node, `column` what
    stands for its shape, `number` writes the value of the root, `drawn` has the nodes that are not
    left out (None: all)."""

    outline: Outline
    bounds: Bounds
    remarks: Remarks | None = None
    column: Callable[[Node, str], str] | None = None
    number: Callable[[Any], str] = lambda value: format_number(value.item())
    drawn: Container[Node] | None = None
    expanded: set[Node] = field(default_factory=set)
    rows: list[Row] = field(default_factory=list)

    def draw(self) -> list[Row]:
        """The rows, or a count of ops when the graph is too large for a tree."""
        outline, bounds = self.outline, self.bounds
        if len(outline.nodes) > bounds.nodes:
            return summary(outline, bounds)
        # (node, name, branches of its own row, branches of rows below, depth)
        pending: list[tuple[Node | None, str | None, str, str, int]] = [
            (outline.root, outline.names.get(outline.out), "", "", 0)
        ]
        while pending:
            node, name, own, below, depth = pending.pop()
            if len(self.rows) >= bounds.rows:
                left = max(1, len(outline.nodes) - len(self.expanded))
                self.rows.append(Row(own, f"… {format_count(left, 'more node')}{bounds.hint}"))
                break
            if node is None:
                self.rows.append(Row(own, name or ""))
                continue
            children = self._enter(node, name, own, below)
            if depth >= bounds.depth:
                children = self._shallow(children)
            for at in reversed(range(len(children))):
                child, child_name = children[at]
                last = at == len(children) - 1
                pending.append((
                    child, child_name, below + ("└── " if last else "├── "),
                    below + ("    " if last else "│   "), depth + 1,
                ))  # fmt: skip
        return self.rows

    def _enter(
        self, node: Node, name: str | None, own: str, below: str
    ) -> list[tuple[Node | None, str | None]]:
        """Add the row of a node; what is to be drawn below it."""
        again = node in self.expanded
        self.expanded.add(node)
        self.rows.append(self._row(node, name, own, again))
        end = again or node.op.key == "leaf" or not node.requires_grad
        children = [] if end else self._children(node)
        if self.remarks is not None and not again:
            bar = below + ("│   " if children else "    ")
            self.rows += [Row(bar, "", value=text) for text in self.remarks(node)]
        return children

    def _children(self, node: Node) -> list[tuple[Node | None, str | None]]:
        """Operands that carry gradients; the others as one count, or one by one."""
        children: list[tuple[Node | None, str | None]] = []
        constants = further = 0
        for child, name, carries in self.outline.inputs(node):
            if carries and self.drawn is not None and child not in self.drawn:
                further += 1
            elif carries or self.bounds.constants:
                children.append((child, name))
            else:
                constants += 1
        if constants:
            children.append((None, f"· {format_count(constants, 'constant')}"))
        if further:
            children.append((None, f"… {format_count(further, 'more operand')}"))
        return children

    def _shallow(
        self, children: list[tuple[Node | None, str | None]]
    ) -> list[tuple[Node | None, str | None]]:
        """At the depth limit: what has nothing below it, and a mark for the rest."""
        ends = [
            (child, name) for child, name in children
            if child is None or child.op.key == "leaf" or child in self.expanded
            or not child.requires_grad
        ]  # fmt: skip
        return ends if len(ends) == len(children) else [*ends, (None, f"…{self.bounds.hint}")]

    def _row(self, node: Node, name: str | None, own: str, again: bool) -> Row:
        outline = self.outline
        word = outline.guilty.get(node)
        bad = word is not None
        note = f"<- {word} starts here" if bad and not again else shape_text(node)
        if not node.requires_grad:
            return Row(own, outline.label(node, name), "const", note, bad)
        if node.op.key == "leaf":
            note = f"shared, used {outline.uses[node]}x" if again else (note if bad else "")
            return Row(own, outline.label(node, name), "<AccumulateGrad>", note, bad)
        root = not self.rows
        label = outline.label(node, None if root else name)
        op = f"<{grad_fn_name(node)}>"
        if again:
            return Row(own, f"↑ {name or label}", op, "see above", bad)
        if self.column is not None:
            note = self.column(node, note)
        value = outline.out.value if root else None
        shown = f" = {self.number(value)}" if value is not None and value.size == 1 else ""
        return Row(own, label, op, note, bad, shown)


def summary(outline: Outline, bounds: Bounds) -> list[Row]:
    """How often each op occurs."""
    counts = Counter(
        "AccumulateGrad" if n.op.key == "leaf" else grad_fn_name(n) for n in outline.nodes
    )
    rows = [Row("", f"{len(outline.nodes)} nodes, too many for a tree{bounds.hint}")]
    frequent = counts.most_common(12)
    rows += [Row("  ", f"{count:>7}", f"<{name}>") for name, count in frequent]
    others = len(outline.nodes) - sum(count for _, count in frequent)
    if others:
        rows.append(Row("  ", f"{others:>7}", "others"))
    return [*rows, Row("", bounds.instead)] if bounds.instead else rows


_NARROW = (("├── ", "├ "), ("└── ", "└ "), ("│   ", "│ "), ("    ", "  "))


def fitted(rows: list[Row], width: int) -> list[Row]:
    """The rows; with narrow branches, and remarks of several lines, when they do not fit into
    `width` otherwise."""
    if all(width_of(row.branches + row.label + row.value) <= width for row in rows):
        return rows
    narrow = []
    for row in rows:
        branches = row.branches
        for wide, short in _NARROW:
            branches = branches.replace(wide, short)
        lines = [row.value]
        if row.value and not row.label:  # a remark: `grad [[1, 2], [3, 4]]`
            word, _, text = row.value.partition(" ")
            margin = len(word) + 1
            lines = broken(text, max(width - width_of(branches) - margin, 8))
            lines = [f"{word} {lines[0]}", *(" " * margin + line for line in lines[1:])]
        narrow += [row._replace(branches=branches, value=line) for line in lines]
    return narrow


class Columns(NamedTuple):
    """Cells of the label and of the op; 0 for an op column left out. `shapes` are the first to
    go, then the ops: the expressions stay."""

    label: int
    op: int
    shapes: bool


def columns_of(rows: list[Row], width: int) -> Columns:
    """The most that fits into `width`."""
    table = [row for row in rows if row.op]  # other rows have no columns
    label = max(width_of(row.branches + row.label + row.value) for row in table)
    op = max(len(row.op) for row in table)
    note = max(len(row.note) for row in table)
    remark = max(0 if row.note.startswith("(") else len(row.note) for row in table)
    for gap in (8, 2):
        if label + gap + op + 2 + note <= width:
            return Columns(label + gap, op + 2, True)
    if width >= 40 and label + 2 + op + 2 + remark <= width:
        return Columns(label + 2, op + 2, False)
    return Columns(min(label + 2, width), 0, False)


def laid_out(
    rows: list[Row], width: int, unicode: bool
) -> list[tuple[Row, tuple[str, str, str, str]]]:
    """The rows with what is written of each: branches, label, op and note."""
    rows = fitted(rows, width)
    columns = columns_of(rows, width)
    if not columns.op and any(row.op for row in rows):
        rows.append(Row("", "… grad_fn: no room"))
    return [(row, _cells(row, columns, width, unicode)) for row in rows]


def _cells(row: Row, columns: Columns, width: int, unicode: bool) -> tuple[str, str, str, str]:
    """Branches, label, op and note of a row, padded and cut to the columns."""
    branches, label, op, note = row[:4]
    ellipsis = "…"
    if not unicode:
        branches, label, op, note = map(ascii_text, row[:4])
        ellipsis = "..."
    if not columns.shapes and note.startswith("("):
        note = ""
    if not columns.op or not op:
        note = f"  {note}" if note and op else ""
        room = max(4, width - width_of(branches + row.value + note))
        return branches, clip_inside(label, room, ellipsis) + row.value, "", note
    label = pad(label + row.value, columns.label - width_of(branches))
    return branches, label, pad(op, columns.op), note


def tree_lines(rows: list[Row], *, width: int, unicode: bool) -> list[str]:
    """The tree as plain lines."""
    return ["".join(parts).rstrip() for _, parts in laid_out(rows, width, unicode)]
