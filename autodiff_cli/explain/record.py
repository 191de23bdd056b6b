"""A backward pass that is run once more and written down: which rule gave what to whom.

Invariant: the pass is the one that computes gradients, `autograd.reverse.Pass`; what the program
left on its graph (kept gradients, freed parts, changes in place) is as before afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..autograd.reverse import Pass
from ..engine.evaluate import dependencies
from ..graph.node import Marks, Node
from ..graph.op import LEAF, OUTPUT, constant, value_of
from ..graph.state import STATE
from ..graph.walk import walk
from ..transform.torch_text import Turn, has_own_rule

Seeds = list[tuple[Node, Node]]


class Given(NamedTuple):
    """A cotangent `g` that the rule of `source` gave to `target`."""

    source: Node
    target: Node
    g: Node


class Recording(Pass):
    """A pass that keeps what every rule was given and what it gave.

    `arrived`: the whole cotangent of a node, before its hooks; `used`: after them. `opened` are
    names of composites whose body answers in place of their own rule. After the run `nodes` are
    what gradients passed, in the order of the forward pass; `results` those of ops with several.
    """

    def __init__(self, seeds: Seeds, opened: frozenset[str] = frozenset()):
        self.given: list[Given] = []
        self.arrived: dict[Node, Any] = {}
        self.used: dict[Node, Any] = {}
        self.opened = opened
        self.at: Node | None = None
        self.nodes: list[Node] = []
        self.results: dict[Node, list[Node]] = {}
        # A constant of its own, so that it is not taken for a number of a rule.
        self.seeds = [(node, constant(value_of(g))) for node, g in seeds]
        super().__init__(self.seeds, None, create_graph=False, retain_graph=True)

    def give(self, node: Node, g: Node) -> None:
        if self.at is not None:
            self.given.append(Given(self.at, self.first(node), g))
        super().give(node, g)

    def _visit(self, node: Node, g: Any) -> None:
        if node.op is LEAF and self.first(node) is not node:
            self.at = None  # a later node of a leaf only hands on
            super()._visit(node, g)
            return
        self.at = node
        self.arrived[node] = self.used[node] = g
        super()._visit(node, g)
        for part in node.marks.hooked if type(g) is dict and node.marks is not None else ():
            if part in self.arrived:
                self.used[part] = g[part.args[1]]
        if node in self.reached:
            self.used[node] = self.reached[node]

    def _give_output(self, parent: Node, index: int, g: Node) -> None:
        assert self.at is not None
        self.used[self.at] = g
        super()._give_output(parent, index, g)

    def differentiate(self, node: Node, g: Any) -> None:
        self.used[node] = g
        if self.opens(node):
            self._open(node, g)
        else:
            super().differentiate(node, g)

    def apart(self, node: Node, g: Any) -> dict[Node, Node]:
        self.at = None  # hooks see it first
        found = super().apart(node, g)
        self.at = node
        return found

    def opens(self, node: Node) -> bool:
        """Whether the body of a composite answers."""
        op = node.op
        opened = op.vjp_rule is None or op.name in self.opened or op.key in self.opened
        return opened and node.body is not None

    def run(self) -> dict[Node, Node]:
        reached = super().run()
        self.nodes = sorted(self.arrived, key=lambda node: node.seq)
        for node in self.nodes:
            if node.op is OUTPUT:
                self.results.setdefault(node.args[0], []).append(node)
        return reached

    def turns(self) -> list[Turn]:
        """Where the pass leaves PyTorch's rules, in its order."""
        given: dict[Node, list[tuple[Node, Node]]] = {}
        for source, target, g in self.given:
            given.setdefault(source, []).append((target, g))
        found = []
        for node, g in self.arrived.items():
            several = node.outputs is not None
            parent = node.args[0] if node.op is OUTPUT else None
            if has_own_rule(node):
                found.append(Turn(node, None if several else g, given.get(node, [])))
            elif parent is not None and has_own_rule(parent):
                found.append(Turn(node, g, []))
            elif self.used[node] is not g and not several:
                found.append(Turn(node, g, [(node, self.used[node])] * (node.op is not LEAF)))
        return found


def recorded(seeds: Seeds, opened: frozenset[str] = frozenset()) -> Recording:
    """The pass of these seeds, run."""
    recording = Recording(seeds, opened)
    recording.run()
    return recording


@contextmanager
def untouched(roots: list[Node]) -> Iterator[None]:
    """Let a graph be differentiated once more without a trace: nothing of it counts as freed or
    overwritten, and no kept gradient receives anything. Leaves are what they were; what else was
    changed through `.data` is read as backward reads it."""
    before: list[tuple[Node, Marks]] = []
    replaced = STATE.replaced
    for node in walk(roots, lambda node: (*node.inputs, *dependencies(node))):
        marks = node.marks
        if marks is not None:
            before.append((node, marks))
            node.marks = fresh = Marks()
            fresh.hooks, fresh.hooked = marks.hooks, marks.hooked
            fresh.context, fresh.name = marks.context, marks.name
            if node.op is not LEAF:
                fresh.replaced, fresh.results = marks.replaced, marks.results
                STATE.replaced |= marks.replaced is not None
    try:
        yield
    finally:
        STATE.replaced = replaced
        for node, marks in before:
            node.marks = marks
