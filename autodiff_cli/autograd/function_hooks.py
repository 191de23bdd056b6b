"""Hooks of backward functions: what a program has attached to a node runs when a pass visits it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..graph.dtypes import is_float
from ..graph.node import Node
from ..graph.state import STATE
from .storage import Content

if TYPE_CHECKING:
    from .reverse import Pass


class Packed:
    """What a node saved, as the program packed it: nodes with what stands for them, as the operand
    at one place or, for -1, wherever the rule reads them. `places`: the operands while it runs."""

    __slots__ = ("places", "saved", "unpack")

    def __init__(self, saved: list[tuple[Node, Any, int]], unpack: Callable[[Any], Any]):
        self.saved = saved
        self.unpack = unpack
        self.places: dict[int, Node] = {}

    @contextmanager
    def unpacked(self) -> Iterator[None]:
        """While this runs the saved nodes have the values that the program unpacks."""
        before = STATE.replaced, STATE.overwriting
        held = [
            (node, node.mark().replaced, Content(self.unpack(p).node))
            for node, p, at in self.saved
            if at < 0
        ]
        self.places = {at: self.unpack(p).node for _, p, at in self.saved if at >= 0}
        for node, _, holder in held:
            node.mark().replaced = holder, None, None
        STATE.replaced = STATE.overwriting = True
        try:
            yield
        finally:
            self.places = {}
            for node, replaced, _ in held:
                node.mark().replaced = replaced
            STATE.replaced, STATE.overwriting = before


class Attached:
    """What a program attached to the backward function of a node: `metadata`, hooks `before` it
    (given the cotangents of its results) and `after` it (given those of its inputs too); a hook
    may return others. `packed`: what it saved, when that went through hooks."""

    __slots__ = ("after", "before", "metadata", "packed")

    def __init__(self) -> None:
        self.metadata: dict[Any, Any] = {}
        self.before: dict[int, Any] = {}
        self.after: dict[int, Any] = {}
        self.packed: Packed | None = None


def attached(node: Node) -> Attached:
    """What is attached to a node, made on first use."""
    marks = node.mark()
    if marks.context is None:
        marks.context = Attached()
    return marks.context


def results_with_gradients(node: Node) -> tuple[Any, ...]:
    """The results of a node that have gradients, which are its first."""
    if node.outputs is None:
        return (node,)
    return tuple(result for result in node.outputs if is_float(result[1]))


def visit(running: Pass, node: Node, g: Any) -> None:
    """Differentiate a node of a pass between its hooks."""
    marks = node.mark()
    packed = marks.context.packed
    if packed is None or marks.freed:  # what was freed is told of, not unpacked
        _visit(running, node, g)
        return
    with packed.unpacked():
        _visit(running, node, g)


def _visit(running: Pass, node: Node, g: Any) -> None:
    attached: Attached = node.mark().context
    several = node.outputs is not None
    own = "own saving" in node.op.properties
    results = node.args[2].results if own else results_with_gradients(node)
    at = [i for i, result in enumerate(results) if result is not None]  # None for no tensor
    outputs: list[Node | None] = [None] * len(results)
    for i, place in enumerate(at):
        outputs[place] = g.get(i) if several else g
    for hook in list(attached.before.values()):
        outputs = hook(outputs) or outputs
    if several:
        g = {i: outputs[place] for i, place in enumerate(at) if outputs[place] is not None}
    else:
        g = outputs[at[0]]
    if not attached.after:
        running.differentiate(node, g)
        return
    inputs = list(node.args[0]) if own else [x for x in node.inputs if x.dtype.kind == "f"]
    needed, running.needed = running.needed, None if own else running.needed
    found = running.apart(node, g)
    running.needed = needed
    grads = [found.get(x) for x in inputs]
    for hook in list(attached.after.values()):
        grads = hook(grads, outputs) or grads
    for x, gx in dict(zip(inputs, grads, strict=True)).items():
        if gx is not None and x.requires_grad:
            running.give(x, gx)
