"""Memory that changed after a value was computed from it.

What was changed through `.data`, which no check of saved values sees, rules read as it is when the
gradient is taken; a leaf with other values is the same leaf.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..graph.node import Node
from ..graph.op import LEAF, OUTPUT, output
from ..graph.registry import F
from ..graph.state import STATE, grad_mode
from ..graph.walk import bodies, bottom_up, walk


def note(node: Node, holder: Any, memory: bool = True, by: Node | None = None) -> None:
    """Remember that the values of a node are those of `holder.node` from now on. `memory`: whoever
    looks there sees it, not only who saved the tensor itself; `by` changed it first, and has kept
    it."""
    if by is not None and not by.requires_grad:
        by = None  # no backward comes to it
    for same in same_memory(node):
        before = same.mark().replaced
        first = by if before is None or before[1] is None else before[2]
        same.mark().replaced = holder, memory, first
    STATE.replaced = STATE.overwriting = True


def same_memory(node: Node) -> Iterator[Node]:
    """A node that was overwritten and what it stands for in composites. An op remembers which of
    its results were."""
    if node.op is OUTPUT:
        yield node
        parent, index = node.args
        parent.mark().results = {**parent.mark().results, index: node}
        if type(parent.body) is not tuple or parent.op.vjp_rule is not None:
            return
        node = parent.body[index]
    yield node
    while type(node.body) is Node and node.op.vjp_rule is None:
        node = node.body
        yield node


def shown(node: Node, reader: Node, since: int = 0) -> Node:
    """An operand or the result of `reader`, which has saved it, with the values that its memory
    holds now and the history that it had; those older than `since` with any change, others with
    those that no check sees."""
    views = reader.op.saves_views
    saved = node is not reader and (views is None or node not in views(*reader.args))
    now = _now(node, saved, node, reader, since)
    if now is node:
        return node
    return _with_history(node, now)


def _with_history(node: Node, value: Node) -> Node:
    with grad_mode(True):  # rules look at whether it requires grad
        return F.with_value(node, F.detach(value))


def _now(node: Any, saved: bool, read: Node, reader: Node, since: int) -> Any:
    marks = node.marks
    if node.seq < since and marks is not None and marks.overwritten is not None:
        handle = node.handle and node.handle()
        return node if handle is None or handle.node.shape != node.shape else handle.node
    if marks is not None and marks.replaced is not None:
        holder, memory, by = marks.replaced
        now = holder.node
        if memory is None:
            return now  # unpacked, as it is
        if now is not node and (memory or saved) and not kept(by, reader, read):
            return _now(now, saved, read, reader, since) if now.shape == node.shape else node
    level, leaf = node.op.key == "level", node.op is LEAF and bool(node.inputs)
    if not (node.op is OUTPUT or node.op.view or level or leaf):
        return node
    base = node.inputs[0] if leaf else node.args[0]
    now = _now(base, saved and level, read, reader, since)
    if now is base:
        return node
    if level or leaf:
        return now
    if node.op is OUTPUT:
        return now[node.args[1]] if type(now) is tuple else node
    return node.op.apply([now, *node.args[1:]])


def arguments(reader: Node, since: int = 0) -> tuple[Any, ...]:
    """The arguments of a node for its rule, with what their memory holds now, or hooks gave."""
    packed = reader.marks and reader.marks.context and reader.marks.context.packed
    unpacked = packed.places if packed else {}
    return tuple(
        _with_history(arg, unpacked[at])
        if at in unpacked
        else shown(arg, reader, since)
        if type(arg) is Node
        else tuple(shown(part, reader, since) if type(part) is Node else part for part in arg)
        if type(arg) is tuple
        else arg
        for at, arg in enumerate(reader.args)
    )


def kept(by: Node | None, node: Node, read: Node) -> bool:
    """Whether an in-place op has kept the value that it changed for this node: itself, or a part
    of its body. As another operand than the first it has not."""
    if by is None or read in by.inputs[1:]:
        return False

    def below(part: Node) -> tuple[Node, ...]:
        return bodies(part) if part is by else (*part.inputs, *bodies(part))

    return node is by or any(node in below(part) for part in walk([by], below, by.inputs))


def remade(node: Node, since: int, known: dict[Node, Node]) -> Node:
    """A node computed again from what the memory of those older than `since` holds now; `known`
    are those that were."""
    for n in bottom_up(node, lambda n: () if n.seq < since else n.inputs, known):
        if n.seq < since:
            handle = n.handle and n.handle()
            changed = handle is not None and handle.node.shape == n.shape
            known[n] = handle.node if changed else n
        elif all(known[x] is x for x in n.inputs):
            known[n] = n
        elif n.op is OUTPUT or n.op.key == "level":
            known[n] = output(known[n.args[0]], n.args[1]) if n.op is OUTPUT else known[n.args[0]]
        else:
            known[n] = n.op.apply([_remade(arg, known) for arg in n.args])
    return known[node]


def _remade(arg: Any, known: dict[Node, Node]) -> Any:
    if type(arg) is tuple:
        return tuple(_remade(part, known) for part in arg)
    return known[arg] if type(arg) is Node else arg
