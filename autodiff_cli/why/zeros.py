"""Why elements of a gradient are zero: where, on the way from the loss back, they became it.

An element is followed from the tensor towards the loss while what comes to it is zero because what
came before it was. Where a cotangent that is not zero goes in and zero comes out stands the cause;
what kind of cause it is says the op's declaration, not its name.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ..autograd.rules import parents
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import value_of
from ..graph.walk import newest_first, walk
from .flow import Edge, Flow, Probe, nodes_of_body
from .model import Cause
from .words import aligned, element, number, shown

TINY = 1e-12
STEEP = 1e-6  # a saturated op is flatter than this
SAMPLES = 5
MOST_STEPS = 20_000

Index = tuple[int, ...]


class Kill(NamedTuple):
    """Where an element became zero: the node, how, the element of the operand, the operand."""

    node: Node | None
    how: str
    at: Index
    operand: Node


class Zeros:
    """The search in one backward pass; `limit` is the largest magnitude that counts as zero."""

    def __init__(self, flow: Flow, name: str, limit: float = 0.0):
        self.flow = flow
        self.name = name
        self.limit = limit
        self.probes: dict[tuple[Node, Node], Probe] = {}
        self.steps = 0
        self.inside: dict[Node, Node] = {}
        for composite in flow.opened:
            if composite.op.properties:
                for node in nodes_of_body(composite):
                    self.inside.setdefault(node, composite)

    def cause(self, target: Node, mask: Any) -> Cause | None:
        """Why the elements of `mask` are zero: the most common answer of a few of them."""
        places = np.argwhere(mask)
        chosen = places[np.linspace(0, len(places) - 1, min(SAMPLES, len(places))).astype(int)]
        kills = [found for at in chosen if (found := self.find(target, tuple(int(i) for i in at)))]
        if not kills:
            return None
        votes = Counter((kill.node, kill.how) for kill in kills)
        best = max(kills, key=lambda kill: votes[kill.node, kill.how])
        return self.explain(best, mask)

    # -- following one element -----------------------------------------------------------------

    def find(self, target: Node, index: Index) -> Kill | None:
        """Where the element of the cotangent of `target` became zero. Of several ways the one on
        which the gradient came nearest to the tensor."""
        found: list[Kill] = []
        pending = [(target, index)]
        seen: set[tuple[Node, Index]] = set()
        while pending and self.steps < MOST_STEPS:
            node, at = pending.pop()
            if (node, at) in seen:
                continue
            seen.add((node, at))
            self.steps += 1
            kills, further = self._look(node, at)
            found.extend(kills)
            pending.extend(further)
        return min(found, key=lambda kill: _age(kill.node), default=None)

    def _look(self, node: Node, at: Index) -> tuple[list[Kill], list[tuple[Node, Index]]]:
        hooked = self.flow.hooked.get(node)
        if hooked is not None and not self._zero(value_of(hooked[0])[at]):
            return [Kill(hooked[1], "times-zero", at, node)], []
        edges = self.flow.edges.get(node, [])
        alive = [e for e in edges if not self._zero(np.asarray(value_of(e.g))[at])]
        if alive:
            return [Kill(self._meeting(alive), "cancelled", at, node)], []
        kills: list[Kill] = []
        further: list[tuple[Node, Index]] = []
        for source in dict.fromkeys(edge.source for edge in edges):
            one, more = self._through(source, node, at)
            kills += one
            further += more
        return kills, further

    def _through(
        self, source: Node | None, operand: Node, at: Index
    ) -> tuple[list[Kill], list[tuple[Node, Index]]]:
        """Where a zero that `source` handed to the operand comes from."""
        if source is None:
            return [Kill(None, "times-zero", at, operand)], []
        if source.op.vjp_rule is None and source.outputs is None:
            return [], [(source, at)]
        probe = self.probes.get((source, operand))
        if probe is None:
            probe = self.probes[source, operand] = Probe(self.flow, source, operand)
        if self._zero(probe.at(probe.noise, at)):
            return [Kill(source, "slope", at, operand)], []
        alive = {i: ~self._zero(g) for i, g in probe.given.items()}
        if any(mask.any() for mask in alive.values()):
            kept = {i: np.where(mask, probe.noise[i], 0) for i, mask in alive.items()}
            kept = {i: part.astype(probe.noise[i].dtype) for i, part in kept.items()}
            if not self._zero(probe.at(kept, at)):
                return [Kill(source, "cancelled", at, operand)], []
        place = probe.influencing({i: ~mask for i, mask in alive.items()}, at)
        elsewhere = declared(source) == "saturated" and not self._zero(probe.elsewhere(at))
        if place is None or elsewhere:
            return [Kill(source, "slope", at, operand)], []
        part, index = place
        if source.outputs is None:
            return [], [(source, index)]
        return [], [(output, index) for output in self.flow.parts[source].get(part, [])]

    def _zero(self, values: Any) -> Any:
        return np.abs(values) <= self.limit

    def _meeting(self, edges: list[Edge]) -> Node | None:
        """Where the ways of two contributions part on the way back: the oldest node behind both."""
        sources = ([e.source] if e.source is not None else [] for e in (edges[0], edges[-1]))
        first, second = (set(walk(source, self.flow.behind)) for source in sources)
        common = [node for node in first if node in second]
        return min(common, key=lambda n: n.seq, default=edges[0].source)

    # -- saying it ------------------------------------------------------------------------------

    def code(self, kill: Kill) -> str:
        """The cause of a zero."""
        node = kill.node
        if node is None or kill.how != "slope":
            return kill.how
        for candidate in (self.inside.get(node), node):
            if candidate is not None:
                code = declared(candidate)
                if code:
                    return code
        if node.op.key == "custom_function":
            return "times-zero"
        return "masked" if node.op.kind is Kind.MOVEMENT else "times-zero"

    def explain(self, kill: Kill, mask: Any) -> Cause:
        """The cause in words, with the numbers."""
        code = self.code(kill)
        node = kill.node
        many = "all of it" if mask.all() else f"{int(mask.sum())} of {mask.size} elements"
        if node is None:
            given = next((e.g.span for e in self.flow.edges[kill.operand] if not e.source), None)
            return Cause(code, given, f"the gradient given to backward(), {shown(given)}, is zero")
        span = node.span
        if node.op.key == "custom_function":
            span = self._own_backward(node, kill.operand) or span
        kill = kill._replace(operand=self.flow.read(kill.operand, node))
        text = shown(span)
        at = element(kill.at)
        value = self._value(kill.operand, kill.at)
        place = f" at {at}" if at else ""
        here = f"where {self.flow.called(kill.operand, node)} is {value}{place}"
        match code:
            case "dead-relu":
                operand = np.asarray(value_of(kill.operand))
                dead = int((operand <= 0).sum())
                message = f"{text} saw only values <= 0 in {dead} of {operand.size} elements"
            case "saturated":
                message = f"{text} is so flat that no gradient is left, {here}"
            case "clamped":
                message = f"{text} holds values at its bounds: no gradient {here}"
            case "masked":
                message = f"{text} leaves elements out: {many} of the gradient of `{self.name}`"
                message += f" {'is' if mask.all() else 'are'} zero"
            case "flat-op":
                message = f"{text} is flat: its slope is 0 everywhere"
            case "cancelled":
                message = f"the contributions that meet in {text} add up to zero{place}"
            case _:
                message = self._times_zero(node, kill, text)
        return Cause(code, span, message)

    def _times_zero(self, node: Node, kill: Kill, text: str) -> str:
        for other in node.inputs:
            if other is kill.operand or other.span == node.span or other.outputs:
                continue
            at = aligned(kill.at, other.shape, kill.operand.shape)
            values = np.asarray(value_of(other))
            if at is not None and values[at] == 0:
                where = f" at {element(at)}" if at else ""
                called = self.flow.called(other, node) if other.span is not None else "a number"
                return f"{text} multiplies with {called}, which is 0{where}"
            if not values.any() and values.size:
                return f"{text} multiplies with {self.flow.called(other, node)}, which is 0"
        value = self._value(kill.operand, kill.at)
        place = f" at {element(kill.at)}" if kill.at else ""
        operand = self.flow.called(kill.operand, node)
        if node.op.kind is Kind.CONTRACTION:
            return f"{text} multiplies {operand}{place} only with zeros"
        return f"the slope of {text} is exactly 0 where {operand} is {value}{place}"

    @staticmethod
    def _value(operand: Node, index: Index) -> str:
        return number(np.asarray(value_of(operand))[index])

    def _own_backward(self, node: Node, operand: Node) -> Any:
        """The line of a program's own backward that made a contribution."""
        for edge in self.flow.edges.get(operand, []):
            if edge.source is node and edge.g.span is not None:
                return edge.g.span
        return None


def _age(node: Node | None) -> float:
    return math.inf if node is None else node.seq


CODES = {
    "rectifies": "dead-relu",
    "saturates": "saturated",
    "clamps": "clamped",
    "selects": "masked",
    "flat": "flat-op",
}


def declared(node: Node) -> str:
    """The cause that an op's declaration speaks of, or nothing."""
    for word, code in CODES.items():
        if word in node.op.properties:
            return code
    return ""


# -- gradients that are not zero, but nearly ------------------------------------------------------


def faded(flow: Flow, name: str, target: Node, mask: Any) -> Cause | None:
    """Why elements are below 1e-12: an op so flat that nothing is left; None when the numbers
    are only small."""
    search = Zeros(flow, name, TINY)
    found = search.cause(target, mask)
    if found is not None and found.code == "saturated":
        return found
    slopes = [
        (slope, node)
        for node in between(flow, target)
        if declared(node) == "saturated" and (slope := _steepness(flow, node)) is not None
    ]
    if np.prod([slope for slope, _ in slopes]) > STEEP:
        return None
    node = min(slopes, key=lambda pair: pair[0])[1]
    return Cause(
        "saturated",
        node.span,
        f"{shown(node.span)} is so flat that the gradient of `{name}` is below 1e-12",
    )


def between(flow: Flow, target: Node) -> list[Node]:
    """The nodes through which a gradient came to the target, newest first."""
    sources = (e.source for n in walk([target], flow.behind) for e in flow.edges.get(n, []))
    return newest_first({source for source in sources if source is not None})


def _steepness(flow: Flow, node: Node) -> float | None:
    """The largest slope of a node by which any of its elements reaches its operand."""
    if node.op.vjp_rule is None:
        return None
    probe = Probe(flow, node, next(x for x in parents(node) if x.requires_grad))
    found = np.abs(probe(probe.noise))
    return float(found.max()) if found.size else None
