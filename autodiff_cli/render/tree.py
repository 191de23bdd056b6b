"""The graph of the objective as a tree of source expressions, from the objective down to leaves.

Invariant: a node is expanded once; later uses point back. Nothing recurses, and the rows shown
are bounded whatever the graph.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from .text import ascii_text, clip, format_count, format_number, format_shape, pad, printable
from .text import text_width as width_of

if TYPE_CHECKING:
    from ..graph.node import Node
    from ..session import Report

MAX_DEPTH = 8
MAX_ROWS = 40
MAX_NODES = 200
_HIDDEN = ("cast", "output")
_LABEL = 60


class Row(NamedTuple):
    """One line: branches, the expression, PyTorch's name of its op, shape or remark."""

    branches: str
    label: str
    op: str = ""
    note: str = ""
    bad: bool = False


class Graph:
    """The nodes that gradients pass, with names, uses and the places where NaN starts."""

    def __init__(self, report: Report):
        self.names: dict[Node, str] = {}
        for record in report.tensors.values():
            self.names.setdefault(record.node, record.name)
        self.bad = {w.span for w in report.warnings if w.code == "W501" and w.span is not None}
        self.root, _ = self.visible(report.graph)  # type: ignore[arg-type]  # callers checked
        self.uses: Counter[Node] = Counter()
        self.nodes = self._count()

    def visible(self, node: Node) -> tuple[Node, str | None]:
        """What a person sees of a node: not conversions nor results of one op; and its name."""
        name = self.names.get(node)
        while node.op.key in _HIDDEN:
            node = node.inputs[0]
            name = name or self.names.get(node)
        return node, name

    def _count(self) -> list[Node]:
        seen = {self.root}
        order = [self.root]
        for node in order:
            for child in node.inputs:
                if child.requires_grad:
                    child, _ = self.visible(child)
                    self.uses[child] += 1
                    if child not in seen:
                        seen.add(child)
                        order.append(child)
        return order

    def label(self, node: Node, name: str | None) -> str:
        """Source text of a node, with its name."""
        text = " ".join(printable(node.span.text).split()) if node.span is not None else ""
        if node.op.key == "leaf":
            return name or getattr(node.args[0], "name", "") or clip(text, _LABEL) or "leaf"
        text = clip(text or node.op.name, _LABEL)
        return f"{name} = {text}" if name and name != text else text


def tree_rows(report: Report, *, show_all: bool = False, width: int = 80) -> list[Row]:
    """Rows of the tree, or a count of ops when the graph is too large for one. With `show_all`
    only the width for branches limits its depth."""
    graph = Graph(report)
    if len(graph.nodes) > MAX_NODES and not show_all:
        return _summary(graph)
    rows: list[Row] = []
    expanded: set[Node] = set()
    limit = 5000 if show_all else MAX_ROWS
    deepest = max(1, min(200, (width - 24) // 4)) if show_all else MAX_DEPTH
    # (node, name, branches of its own row, branches of rows below, depth)
    pending: list[tuple[Node | None, str | None, str, str, int]] = [
        (graph.root, graph.names.get(report.graph), "", "", 0)  # type: ignore[arg-type]
    ]
    while pending:
        node, name, own, below, depth = pending.pop()
        if len(rows) >= limit:
            left = len(graph.nodes) - len(expanded)
            more = format_count(max(1, left), "more node")
            rows.append(Row(own, f"… {more}" if show_all else f"… {more} (--all)"))
            break
        if node is None:
            rows.append(Row(own, name or ""))
            continue
        again = node in expanded
        expanded.add(node)
        rows.append(_row(graph, node, name, own, again, root=not rows, report=report))
        if again or node.op.key == "leaf" or not node.requires_grad:
            continue
        children = _children(graph, node, show_all)
        if depth >= deepest and children:
            rows.append(Row(below + "└── ", "…" if show_all else "… (--all)"))
            continue
        for at in range(len(children) - 1, -1, -1):
            child, child_name = children[at]
            last = at == len(children) - 1
            pending.append((
                child, child_name, below + ("└── " if last else "├── "),
                below + ("    " if last else "│   "), depth + 1,
            ))  # fmt: skip
    return rows


def _children(graph: Graph, node: Node, show_all: bool) -> list[tuple[Node | None, str | None]]:
    """Inputs that carry gradients, with names; the others as one count, or too with `show_all`.
    Numbers written in the expression are not counted."""
    children: list[tuple[Node | None, str | None]] = []
    constants = 0
    for given in node.inputs:
        child, name = graph.visible(given)
        if given.requires_grad or (show_all and not child.weak):
            children.append((child, name))
        elif not child.weak:
            constants += 1
    if constants:
        children.append((None, f"· {format_count(constants, 'constant')}"))
    return children


def _row(
    graph: Graph, node: Node, name: str | None, own: str, again: bool, *, root: bool, report: Report
) -> Row:
    from ..autograd.tensor import grad_fn_name

    bad = node.span in graph.bad
    mark = "<- nan starts here" if bad and not again else ""
    shape = format_shape(node.shape if node.outputs is None else node.outputs[0][0])
    if not node.requires_grad:
        return Row(own, graph.label(node, name), "const", mark or shape, bad)
    if node.op.key == "leaf":
        note = f"shared, used {graph.uses[node]}x" if again else mark
        return Row(own, graph.label(node, name), "<AccumulateGrad>", note, bad)
    label = graph.label(node, None if root else name)
    if again:
        return Row(own, f"↑ {name or label}", f"<{grad_fn_name(node)}>", "see above", bad)
    if root:
        value = report.graph.value if report.graph is not None else None
        if value is not None and value.size == 1:
            label += f" = {format_number(value.item())}"
    return Row(own, label, f"<{grad_fn_name(node)}>", mark or shape, bad)


def _summary(graph: Graph) -> list[Row]:
    """How often each op occurs."""
    from ..autograd.tensor import grad_fn_name

    counts = Counter(
        "AccumulateGrad" if n.op.key == "leaf" else grad_fn_name(n) for n in graph.nodes
    )
    rows = [Row("", f"{len(graph.nodes)} nodes, too many for a tree (--all)")]
    frequent = counts.most_common(12)
    rows += [Row("  ", f"{count:>7}", f"<{name}>") for name, count in frequent]
    others = len(graph.nodes) - sum(count for _, count in frequent)
    return [*rows, Row("  ", f"{others:>7}", "others")] if others else rows


class Columns(NamedTuple):
    """Cells of the label and of the op; 0 for an op column left out. `shapes` are the first to
    go, then the ops: the expressions stay."""

    label: int
    op: int
    shapes: bool


def columns_of(rows: list[Row], width: int) -> Columns:
    """The most that fits into `width`."""
    label = max((width_of(row.branches + row.label) for row in rows), default=0)
    op = max((len(row.op) for row in rows), default=0)
    note = max((len(row.note) for row in rows), default=0)
    remark = max((len(row.note) for row in rows if not row.note.startswith("(")), default=0)
    for gap in (8, 2):
        if label + gap + op + 2 + note <= width:
            return Columns(label + gap, op + 2, True)
    if width >= 40 and label + 2 + op + 2 + remark <= width:
        return Columns(label + 2, op + 2, False)
    return Columns(min(label + 2, width), 0, False)


def cells(row: Row, columns: Columns, width: int, unicode: bool) -> tuple[str, str, str, str]:
    """Branches, label, op and note of a row, padded and cut to the columns."""
    branches, label, op, note = row[:4]
    ellipsis = "…"
    if not unicode:
        branches, label, op, note = map(ascii_text, row[:4])
        ellipsis = "..."
    if not columns.shapes and note.startswith("("):
        note = ""
    if not columns.op:
        op = ""
        note = f"  {note}" if note else ""
        return branches, clip(label, max(4, width - width_of(branches + note)), ellipsis), op, note
    if not op:
        return branches, clip(label, max(4, width - width_of(branches)), ellipsis), "", ""
    return branches, pad(label, columns.label - width_of(branches)), pad(op, columns.op), note


def tree_lines(
    report: Report, *, show_all: bool = False, width: int = 80, unicode: bool = True
) -> list[str]:
    """The tree as plain lines."""
    rows = tree_rows(report, show_all=show_all, width=width)
    columns = columns_of(rows, width)
    return ["".join(cells(row, columns, width, unicode)).rstrip() for row in rows]
