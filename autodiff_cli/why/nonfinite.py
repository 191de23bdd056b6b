"""Where the NaN or the infinity of a gradient was born: in the order of execution, first in the
values, then in the backward pass.

A bad value counts only when it goes on: one that `where`, a mask or an index leaves out does no
harm by itself, and then the rule that turns it into a bad gradient is the cause.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..engine.evaluate import ancestors, dependencies, evaluate
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import CONSTANT, LEAF, OUTPUT, value_of
from ..graph.walk import walk
from .flow import Flow, Probe
from .model import Cause
from .words import aligned, element, first_index, number, shown
from .zeros import declared

Index = tuple[int, ...]


class Birth:
    """The search in one backward pass, from `roots` on."""

    def __init__(self, flow: Flow, roots: list[Node], name: str):
        self.flow = flow
        self.roots = roots
        self.name = name

    # -- backward -------------------------------------------------------------------------------

    def cause(self, target: Node, index: Index) -> Cause | None:
        """Why the element of the gradient of `target` is not finite."""
        found = self._born(target, index)
        if found is None:
            return None
        node, operand, at = found
        origin = self._origin(node)
        if origin is not None and not self._left_out(origin):
            return self.forward(origin)
        return self._backward(node, operand, at)

    def _born(self, target: Node, index: Index) -> tuple[Node, Node, Index] | None:
        """The rule that made a bad number out of finite ones; the first that ran, if several."""
        best: tuple[Node, Node, Index] | None = None
        pending = [(target, index)]
        seen: set[tuple[Node, Index]] = set()
        while pending and len(seen) < 5000:
            node, at = pending.pop()
            if (node, at) in seen:
                continue
            seen.add((node, at))
            for edge in self.flow.edges.get(node, []):
                source = edge.source
                if source is None or np.isfinite(np.asarray(value_of(edge.g))[at]):
                    continue
                further = self._before(source, node, at)
                if further:
                    pending.extend(further)
                elif best is None or source.seq > best[0].seq:
                    best = source, node, at
        return best

    def _before(self, source: Node, operand: Node, at: Index) -> list[tuple[Node, Index]]:
        """The bad elements of the source's own cotangent that made this one bad; none when it was
        born here."""
        if source.op.vjp_rule is None and source.outputs is None:
            return [(source, at)]
        probe = Probe(self.flow, source, operand)
        bad = {i: ~np.isfinite(g) for i, g in probe.given.items()}
        clean = {i: np.where(bad[i], 0, g).astype(g.dtype) for i, g in probe.given.items()}
        if not np.isfinite(probe.at(clean, at)):
            return []
        place = probe.influencing(bad, at)
        if place is None:
            part = next(i for i, mask in bad.items() if mask.any())
            place = part, first_index(bad[part])
        part, index = place
        if source.outputs is None:
            return [(source, index)]
        return [(output, index) for output in self.flow.parts[source].get(part, [])]

    def _backward(self, node: Node, operand: Node, at: Index) -> Cause:
        edges = [e for e in self.flow.edges[operand] if e.source is node]
        nan = any(np.isnan(np.asarray(value_of(e.g))[at]) for e in edges)
        span = node.span
        if node.op.key == "custom_function":
            span = next((e.g.span for e in edges if e.g.span is not None), span)
        operand = self.flow.read(operand, node)
        value = number(np.asarray(value_of(operand))[at])
        place = f" at {element(at)}" if at else ""
        g = self.flow.cotangents.get(node)
        incoming = ""
        if g is not None and g.shape == operand.shape:
            incoming = f"; the gradient that comes in is {number(np.asarray(value_of(g))[at])}"
        what = "makes NaN" if nan else "is infinite"
        where = f"where {self.flow.called(operand, node)} is {value}{place}"
        message = f"the slope of {shown(span)} {what} {where}{incoming}"
        return Cause("nan-backward" if nan else "inf-backward", span, message)

    # -- forward --------------------------------------------------------------------------------

    def _origin(self, node: Node) -> Node | None:
        """The first bad value that the bad values at a node come from."""
        return first_bad([n for n in (node, *node.inputs) if not _finite(n)])

    def _left_out(self, origin: Node) -> bool:
        """Whether every way on from a bad value ends where something finite was chosen instead."""

        def further(node: Node) -> list[Node]:
            return [c for c in self.consumers.get(node, []) if not _finite(c)]

        return not any(
            node in self.roots
            or any(_finite(c) and not _chooses(c) for c in self.consumers.get(node, []))
            for node in walk([origin], further)
        )

    @cached_property
    def consumers(self) -> dict[Node, list[Node]]:
        """Who reads the value of a node, within what the loss is made of."""
        found: dict[Node, list[Node]] = {}
        for node in ancestors(self.roots):
            for needed in dict.fromkeys((*dependencies(node), *node.inputs)):
                found.setdefault(needed, []).append(node)
        return found

    def forward(self, node: Node) -> Cause:
        """The op whose value is the first bad one."""
        values = np.asarray(value_of(node))
        bad = ~np.isfinite(values)
        nan = bool(np.isnan(values).any())
        at = first_index(np.isnan(values) if nan else bad)
        text = shown(node.span)
        where = f" at {element(at)}" if at else ""
        operands = self._operands(node, at)
        message = f"{text} is {number(values[at])}{where}"
        if node.op is LEAF or node.op is CONSTANT:
            message += ", as the program wrote it"
        elif operands:
            message += f", computed from {operands}"
        return Cause("nan-forward" if nan else "inf-forward", node.span, message)

    def _operands(self, node: Node, at: Index) -> str:
        found = []
        for operand in dict.fromkeys(node.inputs):
            if operand.outputs or operand.dtype.kind == "b":
                continue
            index = aligned(at, operand.shape, node.shape)
            if index is not None:
                value = number(np.asarray(value_of(operand))[index])
                named = operand.span is not None and operand.span != node.span
                named = named or operand in self.flow.names
                found.append(f"{self.flow.called(operand, node)} = {value}" if named else value)
        return " and ".join(found[:2])


def first_bad(roots: list[Node]) -> Node | None:
    """The first node, in the order of execution, that makes a NaN of operands without one, or an
    infinity of finite ones; an infinity that the program wrote down itself counts last."""
    nodes = ancestors(roots)
    evaluate([node for node in nodes if not node.outputs])
    written: Node | None = None
    for node in nodes:
        if node.body is not None or _finite(node):
            continue
        needed = () if node.op is LEAF else dependencies(node)
        if _has_nan(node):
            if not any(map(_has_nan, needed)):
                written = node
                break
        elif all(map(_finite, needed)):
            if needed:
                return node
            written = written or node
    if written is not None and written.span is None:  # within the expression of another node
        return next((node for node in nodes if written in node.inputs), written)
    return written


def _floats(node: Node) -> list[Any]:
    """The values of a node that may be no numbers."""
    values = value_of(node) if node.outputs is not None else (value_of(node),)
    return [array for array in map(np.asarray, values) if array.dtype.kind == "f"]


def _finite(node: Node) -> bool:
    return all(np.isfinite(array).all() for array in _floats(node))


def _has_nan(node: Node) -> bool:
    return any(np.isnan(array).any() for array in _floats(node))


def _chooses(node: Node) -> bool:
    """Whether a finite result of bad operands means that they were not chosen."""
    if node.op is OUTPUT or node.body is not None:
        return True
    return declared(node) == "masked" or node.op.kind is Kind.MOVEMENT
