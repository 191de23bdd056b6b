"""What a person sees of a graph: nodes that gradients pass, their names and source expressions.

Conversions and results picked from one op are looked through, numbers written in an expression are
part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import Diagnostic
from ...graph.node import Node, Shape
from ...graph.op import LEAF
from ...session import Report
from ..text import clip_inside, format_shape, printable

_HIDDEN = ("cast", "output")
LONGEST = 60  # cells of an expression


class Outline:
    """The visible nodes behind an objective, nearest first, how often each is used, and where NaN
    or infinity starts."""

    def __init__(
        self, out: Node, names: dict[Node, str], name: str | None, problems: Iterable[Diagnostic],
        leaves: dict[Any, str],
    ):  # fmt: skip
        self.out = out
        self.name = name
        self.names = names
        self.root, _ = self.visible(out)
        self.uses: Counter[Node] = Counter()
        self.nodes = self._count()
        # A parameter that was stepped afterwards shows another node now, with the same accumulator.
        for node in self.nodes:
            if node.op is LEAF and node.args[0] in leaves:
                names.setdefault(node, leaves[node.args[0]])
        # What a call is made of is told apart by its ops; the last one has the text alone.
        self.made: dict[Any, dict[Any, Node]] = {}
        ordered = sorted(self.nodes, key=lambda n: n.seq)
        self.guilty = self._guilty(problems, ordered)
        for node in ordered:
            self.made.setdefault(node.span, {})[node.op] = node
            self.made[node.span][None] = node

    @classmethod
    def of_report(cls, report: Report) -> Outline:
        """Of a report that has a graph."""
        assert report.graph is not None
        names: dict[Node, str] = {}
        for record in report.tensors.values():
            names.setdefault(record.node, record.name)
        return cls(report.graph, names, report.objective, report.warnings, report.leaves)

    def visible(self, node: Node) -> tuple[Node, str | None]:
        """The node that stands for this one, and its name."""
        name = self.names.get(node)
        while node.op.key in _HIDDEN:
            node = node.inputs[0]
            name = name or self.names.get(node)
        return node, name

    def inputs(self, node: Node) -> list[tuple[Node, str | None, bool]]:
        """Operands with names and whether they carry a gradient."""
        found = []
        for given in node.inputs:
            child, name = self.visible(given)
            if given.requires_grad or not child.weak:
                found.append((child, name, given.requires_grad))
        return found

    def _count(self) -> list[Node]:
        seen = {self.root}
        order = [self.root]
        for node in order:
            for child, _, carries in self.inputs(node):
                if carries:
                    self.uses[child] += 1
                    if child not in seen:
                        seen.add(child)
                        order.append(child)
        return order

    def _guilty(self, problems: Iterable[Diagnostic], ordered: list[Node]) -> dict[Node, str]:
        """The first node of each warning's expression with a value that is not finite: a loop
        evaluates one expression often."""
        words: dict[Any, str] = {
            problem.span: "nan" if problem.code == "W501" else "inf"
            for problem in problems
            if problem.code in ("W501", "W502") and problem.span is not None
        }
        found: dict[Node, str] = {}
        for node in ordered:
            word = words.get(node.span)
            if word is not None and _has(word, node.value):
                found[node] = word
                del words[node.span]
        return found

    def label(self, node: Node, name: str | None) -> str:
        """Source text of a node, with its name."""
        text = source_text(node)
        if node.op.key == "leaf":
            return name or clip_inside(text, LONGEST) or "leaf"
        parts = self.made.get(node.span, {})
        if text and name is None and len(parts) > 2 and parts[None] is not node:
            text = f"{node.op.name.rpartition('.')[2]} in {text}"
        text = clip_inside(text or node.op.name, LONGEST)
        return f"{name} = {text}" if name and name != text else text


def source_text(node: Node) -> str:
    """The expression that made a node, on one line; empty when it has no place in the program."""
    return "" if node.span is None else " ".join(printable(node.span.text).split())


def shape_of(node: Node) -> Shape:
    """The shape of a node, of its first result when it has several."""
    return node.shape if node.outputs is None else node.outputs[0][0]


def shape_text(node: Node) -> str:
    return format_shape(shape_of(node))


def _has(word: str, value: object) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    test = np.isnan if word == "nan" else np.isinf
    return any(isinstance(v, np.ndarray) and v.dtype.kind == "f" and test(v).any() for v in values)
