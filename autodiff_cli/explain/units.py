"""What is one step: an op with its own rule, a composite with all of its body, or a statement.

Invariant: every node that gradients pass belongs to exactly one unit, except leaves, which belong
to none; what a unit gives to nodes outside of it is all that it contributes.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..engine.evaluate import dependencies
from ..graph.node import Node
from ..graph.op import LEAF, OUTPUT
from ..graph.walk import bodies, walk
from ..language.syntax import tree as syntax
from ..language.syntax.parser import parse
from ..source import Source, Span
from .record import Given, Recording


class Unit:
    """The nodes of one step; `head` is the last of them, the value that the step made."""

    __slots__ = ("given", "head", "heads", "nodes", "span")

    def __init__(self, head: Node):
        self.head = head
        self.nodes: list[Node] = [head]
        self.heads: list[Node] = [head]
        self.given: list[Given] = []
        self.span: Span | None = head.span

    @property
    def times(self) -> int:
        return len(self.heads)


class Units:
    """The units of a recorded pass, the newest first. `through` says which node stands for a
    composite that was opened."""

    def __init__(self, recording: Recording):
        self.recording = recording
        self.of: dict[Node, Unit] = {}
        self.through: dict[Node, Node] = {}
        self.list: list[Unit] = []
        for node in reversed(recording.nodes):
            self._place(node)
        self._give()

    def _place(self, node: Node) -> None:
        if node in self.of or node.op is LEAF:
            return
        if node.op is OUTPUT:
            parent = node.args[0]
            if parent not in self.of:
                self._place(parent)
            unit = self.of.get(parent)
            if unit is not None:
                unit.nodes.append(node)
                self.of[node] = unit
            return
        recording = self.recording
        wanted = node.op.name in recording.opened or node.op.key in recording.opened
        if recording.opens(node) and wanted and type(node.body) is not tuple:
            self.through[node] = node.body
            return
        unit = Unit(node)
        self.list.append(unit)
        self.of[node] = unit
        if recording.opens(node) and not wanted:
            for part in self._interior(node):
                if part not in self.of:
                    self.of[part] = unit
                    unit.nodes.append(part)

    def _interior(self, node: Node) -> list[Node]:
        """Nodes of a composite's body that gradients pass."""
        ends, recording = set(node.inputs), self.recording

        def passed(parts: Iterable[Node]) -> list[Node]:
            return [
                part
                for part in parts
                if part in recording.arrived and part not in ends and part.op is not LEAF
            ]

        def further(part: Node) -> list[Node]:
            opened = bodies(part) if recording.opens(part) else ()
            return passed([*opened, *part.inputs])

        return list(walk(passed(dependencies(node)), further))

    def shown(self, node: Node) -> Node:
        """The node that is shown for one: not a composite that was opened."""
        while node in self.through:
            node = self.through[node]
        return node

    def _give(self) -> None:
        for source, target, g in self.recording.given:
            if source in self.through:
                continue
            target = self.shown(target)
            unit = self.of[source]
            if self.of.get(target) is not unit:
                unit.given.append(Given(source, target, g))

    def visible(self) -> set[Node]:
        """Leaves, what units made, and results of ops that have several."""
        found = {node for node in self.recording.nodes if node.op is LEAF or node.op is OUTPUT}
        for unit in self.list:
            found.update(unit.heads)
            found.update(target for _, target, _ in unit.given)
        return found


# -- statements -----------------------------------------------------------------------------------


class Statements:
    """Finds the statement that a place belongs to."""

    def __init__(self) -> None:
        self.spans: dict[Source, list[Span]] = {}

    def of(self, span: Span | None) -> Span | None:
        """The innermost statement around a place; the line of a place in a header."""
        if span is None:
            return None
        known = self.spans.get(span.source)
        if known is None:
            self.spans[span.source] = known = _statements(span.source)
        around = [s for s in known if s.start <= span.start and span.end <= s.end]
        if around:
            return min(around, key=lambda s: s.end - s.start)
        start = span.source.starts[span.line - 1]
        return Span(span.source, start, start + len(span.source.line(span.line)))


def _statements(source: Source) -> list[Span]:
    every = syntax.within(parse(source).body, (), syntax.below)
    return [statement.span for statement in every if not syntax.bodies(statement)]


def by_statement(units: Units, bound: set[Node]) -> list[Unit]:
    """One unit for each statement, with all of its executions; `bound` are values that were given
    a name."""
    statements = Statements()
    merged: dict[Span | None, Unit] = {}
    of: dict[Node, Unit] = {}
    cache: dict[Span | None, Span | None] = {}
    for unit in units.list:
        if unit.span not in cache:
            cache[unit.span] = statements.of(unit.span)
        span = cache[unit.span]
        whole = merged.get(span)
        if whole is None:
            merged[span] = whole = Unit(unit.head)
            whole.span = span
            whole.nodes = []
            whole.heads = []
        whole.heads.append(unit.head)
        whole.nodes.extend(unit.nodes)
        whole.given.extend(unit.given)
        for node in unit.nodes:
            of[node] = whole
    for whole in merged.values():
        whole.given = [given for given in whole.given if of.get(given.target) is not whole]
        whole.heads = _executions(whole.heads, bound)
    return list(merged.values())


def _executions(heads: list[Node], bound: set[Node]) -> list[Node]:
    """Of all values that a statement made those that it ended with, the newest first."""
    last = heads[0]
    alike = [node for node in heads if node.op is last.op and node.span == last.span]
    named = [node for node in alike if node in bound]
    return named if last in named else alike


def leading_to(units: Iterable[Unit], wanted: set[Node]) -> set[Node]:
    """The wanted nodes and all that gives to them, directly or not."""
    found = set(wanted)
    for unit in reversed(list(units)):
        if any(given.target in found for given in unit.given):
            found.update(unit.nodes)
            found.add(unit.head)
    return found
