"""Hooks of backward functions: what a program has attached to a node runs when a pass visits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..graph.node import Node

if TYPE_CHECKING:
    from .reverse import Pass


class Attached:
    """What a program attached to the backward function of a node: `metadata`, hooks `before` it
    (given the cotangents of its results) and `after` it (given those of its inputs too); a hook
    may return others."""

    __slots__ = ("after", "before", "metadata")

    def __init__(self) -> None:
        self.metadata: dict[Any, Any] = {}
        self.before: dict[int, Any] = {}
        self.after: dict[int, Any] = {}


def visit(running: Pass, node: Node, g: Any) -> None:
    """Differentiate a node of a pass between its hooks."""
    attached: Attached = node.mark().context
    several = node.outputs is not None
    outputs = [g.get(i) for i in range(len(node.outputs or ()))] if several else [g]
    for hook in list(attached.before.values()):
        outputs = hook(outputs) or outputs
    g = {i: part for i, part in enumerate(outputs) if part is not None} if several else outputs[0]
    if not attached.after:
        running.differentiate(node, g)
        return
    inputs = [x for x in node.inputs if x.dtype.kind == "f"]
    found = running.apart(node, g)
    grads = [found.get(x) for x in inputs]
    for hook in list(attached.after.values()):
        grads = hook(grads, outputs) or grads
    for x, gx in dict(zip(inputs, grads, strict=True)).items():
        if gx is not None and x.requires_grad:
            running.give(x, gx)
