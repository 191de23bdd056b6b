"""Memory that changed after a value was computed from it.

What was changed through `.data`, which no check of saved values sees, rules read as it is when the
gradient is taken; a leaf with other values is the same leaf.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

from ..graph.node import Node
from ..graph.op import LEAF, OUTPUT
from ..graph.registry import F
from ..graph.state import STATE, grad_mode


def note(node: Node, holder: Any) -> None:
    """Remember that the values of a node are those of `holder.node` from now on."""
    node.mark().replaced = ref(holder), STATE.span
    STATE.replaced = STATE.overwriting = True


def shown(node: Node, since: int = 0) -> Node:
    """A node with the values that its memory holds now, and the history that it had; those older
    than `since` with any change, others with those that no check sees."""
    now = _now(node, since)
    if now is node:
        return node
    with grad_mode(True):  # rules look at whether it requires grad
        return F.with_value(node, F.detach(now))


def _now(node: Any, since: int) -> Any:
    marks = node.marks
    if node.seq < since and marks is not None and marks.overwritten is not None:
        holder = node.handle and node.handle()
        return node if holder is None or holder.node.shape != node.shape else holder.node
    if marks is not None and marks.replaced is not None:
        holder, span = marks.replaced
        held = holder()
        if held is None:  # nobody knows any more: an error if a rule reads it
            marks.overwritten = (span, None, 0)
            return node
        return held.node if held.node.shape == node.shape else node
    level = node.op.key == "level"
    if not (node.op is OUTPUT or node.op.view or level):
        return node
    base = node.args[0]
    now = _now(base, since)
    if now is base:
        return node
    if level:
        return now
    if node.op is OUTPUT:
        return now[node.args[1]] if type(now) is tuple else node
    return node.op.apply([now, *node.args[1:]])


def arguments(args: tuple[Any, ...], since: int) -> tuple[Any, ...]:
    """The arguments of a rule, with what their memory holds now."""
    return tuple(
        shown(arg, since)
        if type(arg) is Node
        else tuple(shown(part, since) if type(part) is Node else part for part in arg)
        if type(arg) is tuple
        else arg
        for arg in args
    )


def as_used(seeds: list[tuple[Node, Node]], targets: list[Node]) -> list[Node]:
    """For leaves that were given other values after the seeds were computed the nodes that they
    were before."""
    newest = max((node.seq for node, _ in seeds), default=0)
    moved = {node.args[0]: node for node in targets if node.op is LEAF and node.seq > newest}
    if not moved:
        return targets
    before: dict[Node, Node] = {}
    seen = {node for node, _ in seeds}
    pending = list(seen)
    while pending:
        node = pending.pop()
        if node.op is LEAF:
            target = moved.get(node.args[0])
            if target is not None:
                before[target] = node
            continue
        body = node.body if type(node.body) is tuple else (node.body,) if node.body else ()
        for needed in (*node.inputs, *body):
            if needed.requires_grad and needed not in seen:
                seen.add(needed)
                pending.append(needed)
    return [before.get(node, node) for node in targets]
