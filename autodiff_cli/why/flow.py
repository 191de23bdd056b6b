"""One backward pass that forgets nothing: every contribution to every cotangent, with its value.

The pass is that of an explanation; what happened to the graph since (freed, overwritten) is of no
interest here, because nodes never change. Invariant: `edges[x]` are all contributions
to the cotangent of `x`, in the order in which backward adds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..autograd.reverse import Pass
from ..autograd.rules import parents
from ..engine.evaluate import evaluate
from ..explain.record import recorded, untouched
from ..graph.node import Node
from ..graph.op import LEAF, OUTPUT, constant, value_of
from ..graph.state import grad_mode
from ..graph.walk import bodies, newest_first, walk
from .words import shown

Parts = dict[int, Node]


class Edge(NamedTuple):
    """A contribution: from the cotangent of `source` (None: the seed of backward) by its rule."""

    source: Node | None
    g: Node


class Flow:
    """The cotangents of everything that the seeds' nodes depend on."""

    def __init__(self, seeds: list[tuple[Node, Node]], names: dict[Node, str] | None = None):
        self.names = names or {}
        with untouched([node for pair in seeds for node in pair]), grad_mode(False):
            recording = recorded(seeds)
        self.first = recording.first
        self.given: dict[Node, Parts] = {}  # the cotangents of a node's results, by index
        self.cotangents: dict[Node, Node] = {}
        self.hooked: dict[Node, tuple[Node, Node]] = {}
        self.parts: dict[Node, dict[int, list[Node]]] = {}
        for node in newest_first(recording.used):
            g = recording.used[node]
            self.given[node] = g if type(g) is dict else {0: g}
            if type(g) is dict:
                continue
            self.cotangents[node] = g
            if recording.arrived[node] is not g:
                self.hooked[node] = recording.arrived[node], g
            if node.op is OUTPUT:
                parent, index = node.args
                self.parts.setdefault(parent, {}).setdefault(index, []).append(node)
        self.opened = [n for n in self.given if n.op not in (LEAF, OUTPUT) and recording.opens(n)]
        self.edges: dict[Node, list[Edge]] = {}
        for target, g in seeds:
            self.edges.setdefault(recording.first(target), []).append(Edge(None, g))
        for source, target, g in recording.given:
            self.edges.setdefault(target, []).append(Edge(source, g))
        evaluate(
            [
                *self.cotangents.values(),
                *(edge.g for found in self.edges.values() for edge in found),
                *(n for node in self.cotangents for n in (node, *node.inputs) if not n.outputs),
            ]
        )

    def behind(self, node: Node) -> Iterator[Node]:
        """The nodes from which contributions to the cotangent of a node came."""
        for outputs in self.parts.get(node, {}).values():
            yield from outputs
        yield from (e.source for e in self.edges.get(node, []) if e.source is not None)

    def read(self, operand: Node, by: Node) -> Node:
        """What `by` read of an operand: a leaf as it was then."""
        return next((x for x in by.inputs if self.first(x) is operand), operand)

    def called(self, node: Node, by: Node) -> str:
        """An operand of `by` by its name in the program, else by its text if it has its own."""
        name = self.names.get(node, self.names.get(self.first(node)))
        if name is not None:
            return f"`{name}`"
        return "its operand" if node.span is None or node.span == by.span else shown(node.span)


def reached(roots: list[Node]) -> list[Node]:
    """The nodes that a backward from the roots can come to, newest first."""
    start = [node for node in roots if node.requires_grad]
    return newest_first(walk(start, lambda node: [x for x in parents(node) if x.requires_grad]))


def pullback(node: Node, parts: Parts) -> dict[Node, Node]:
    """What the rule of a node hands to each operand, given cotangents of its results by index."""
    marks = [(n, n.marks) for n in (node, *node.inputs)]  # what a backward and changes left there
    for n, _ in marks:
        n.marks = None
    try:
        one = Pass((), retain_graph=True)
        one.differentiate(node, parts[0] if node.outputs is None else parts)
        return one.cotangents
    finally:
        for n, kept in marks:
            n.marks = kept


class Probe:
    """The rule of one node, applied to cotangents of our own."""

    def __init__(self, flow: Flow, node: Node, operand: Node):
        self.flow = flow
        self.node = node
        self.operand = flow.first(operand)
        with grad_mode(False):
            self.given = {i: np.asarray(value_of(g)) for i, g in flow.given[node].items()}
        random = np.random.RandomState(7)
        self.noise = {
            i: (random.uniform(0.5, 1.5, g.shape) * random.choice([-1, 1], g.shape)).astype(g.dtype)
            for i, g in self.given.items()
        }

    def __call__(self, parts: dict[int, Any]) -> Any:
        """The sum of what the rule hands to the operand."""
        with grad_mode(False):
            nodes = {i: constant(np.asarray(array)) for i, array in parts.items()}
            handed = pullback(self.node, nodes).items()
            own = [np.asarray(value_of(g), np.float64) for x, g in handed if self._is_operand(x)]
            return sum(own, np.zeros(self.operand.shape))

    def _is_operand(self, part: Any) -> bool:
        """Whether it is the operand, or what a leaf was later."""
        return isinstance(part, Node) and self.flow.first(part) is self.operand

    def at(self, parts: dict[int, Any], index: tuple[int, ...]) -> float:
        """One element of it."""
        with np.errstate(all="ignore"):
            return float(self(parts)[index])

    def elsewhere(self, index: tuple[int, ...]) -> float:
        """The same element for the given cotangents, were the operand small numbers."""
        node, operand = self.node, self.operand
        random = np.random.RandomState(5).uniform(0.1, 0.9, operand.shape)
        other = constant(np.asarray(random, operand.dtype))
        other.requires_grad = True
        with grad_mode(False), np.errstate(all="ignore"):
            moved = node.op.apply([other if self._is_operand(arg) else arg for arg in node.args])
            g = pullback(moved, {0: constant(self.given[0])}).get(other)
            return 0.0 if g is None else float(value_of(g)[index])

    def influencing(
        self, allowed: dict[int, Any], index: tuple[int, ...]
    ) -> tuple[int, tuple[int, ...]] | None:
        """An element among the allowed ones whose cotangent has a say in the operand's element, by
        halving; None when there is none."""
        places = [(i, at) for i, mask in allowed.items() for at in np.flatnonzero(mask).tolist()]
        if not places or self.at(self._only(places), index) == 0:
            return None
        while len(places) > 1:
            half = places[: len(places) // 2]
            places = half if self.at(self._only(half), index) != 0 else places[len(places) // 2 :]
        part, at = places[0]
        return part, tuple(int(i) for i in np.unravel_index(at, self.noise[part].shape))

    def _only(self, places: list[tuple[int, int]]) -> dict[int, Any]:
        parts = {i: np.zeros_like(noise) for i, noise in self.noise.items()}
        for i, at in places:
            parts[i].flat[at] = self.noise[i].flat[at]
        return parts


def nodes_of_body(composite: Node) -> list[Node]:
    """The nodes that a composite stands for."""
    inside = walk(
        [composite],
        lambda node: bodies(node) if node is composite else (*node.inputs, *parents(node)),
        composite.inputs,
    )
    return [node for node in inside if node is not composite]
