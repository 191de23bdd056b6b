"""Reverse mode, graph to graph: cotangents are nodes, each op's vjp rule is applied once per node.

The pass never recurses: nodes wait in a heap ordered by creation, which is reverse topological
order. Values are not computed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

from ..errors import AutodiffError, Label, fail
from ..graph.dtypes import is_float
from ..graph.node import Node, tick
from ..graph.op import LEAF, OUTPUT, POINTWISE, Kind, cast, constant, number, output, shape_text
from ..graph.registry import F
from ..graph.state import STATE, grad_mode


def zeros_like(node: Node) -> Node:
    """A zero cotangent for a node."""
    zero = number(0.0, node.dtype)
    return F.expand(zero, node.shape) if node.shape else zero


def ones_like(node: Node) -> Node:
    """The seed of a scalar objective."""
    one = number(1.0, node.dtype)
    return F.expand(one, node.shape) if node.shape else one


class Pass:
    """One backward pass: `deliver(node, cotangent)` is called for every leaf that was reached,
    and for nodes in `targets`; with targets, only what leads to them is visited."""

    def __init__(
        self,
        seeds: Iterable[tuple[Node, Node]],
        targets: Iterable[Node] | None = None,
        create_graph: bool = False,
        retain_graph: bool = False,
    ):
        self.cotangents: dict[Node, Any] = {}
        self.needed: set[Node] | None = None
        self.retain = retain_graph
        self.create_graph = create_graph
        self.targets = None if targets is None else set(targets)
        self.reached: dict[Node, Node] = {}
        self.heap: list[tuple[int, Node]] = []
        for node, g in seeds:
            self.give(node, g)
        if self.targets is not None:
            self.needed = self._needed([n for n, _ in seeds])

    def _needed(self, roots: list[Node]) -> set[Node]:
        """Nodes from which a target can be reached."""
        seen = set(roots)
        pending = list(roots)
        while pending:
            node = pending.pop()
            for needed in parents(node):
                if needed.requires_grad and needed not in seen:
                    seen.add(needed)
                    pending.append(needed)
        needed_set = set(self.targets or ())
        for node in sorted(seen, key=lambda n: n.seq):
            if node not in needed_set and any(p in needed_set for p in parents(node)):
                needed_set.add(node)
        return needed_set

    def give(self, node: Node, g: Node) -> None:
        """Add a contribution to a node's cotangent."""
        before = self.cotangents.get(node)
        if before is None:
            self.cotangents[node] = g
            heappush(self.heap, (-node.seq, node))
        else:
            self.cotangents[node] = F.add(before, g)

    def run(self) -> dict[Node, Node]:
        """Run to the end; the cotangents of leaves and targets."""
        with grad_mode(self.create_graph):
            before = STATE.span
            heap, cotangents = self.heap, self.cotangents
            while heap:
                node = heappop(heap)[1]
                g = cotangents.pop(node)
                STATE.span = node.span
                self._visit(node, g)
            STATE.span = before
        return self.reached

    def _visit(self, node: Node, g: Any) -> None:
        marks = node.marks
        if marks is not None and type(g) is not dict:
            for hook in list(marks.hooks.values()):
                replaced = hook(g)
                if replaced is not None:
                    g = replaced
            for slot in marks.slots:
                slot.receive(g, self.create_graph)
        if self.targets is not None and node in self.targets:
            self.reached[node] = g
            if self.needed is not None and not any(p in self.needed for p in parents(node)):
                return
        op = node.op
        if op is LEAF:
            if self.targets is None:
                self.reached[node] = g
            return
        if op is OUTPUT:
            parent, index = node.args
            self._give_output(parent, index, g)
            return
        self._differentiate(node, g)

    def _give_output(self, parent: Node, index: int, g: Node) -> None:
        waiting = self.cotangents.get(parent)
        if waiting is None:
            self.cotangents[parent] = waiting = {}
            heappush(self.heap, (-parent.seq, parent))
        waiting[index] = F.add(waiting[index], g) if index in waiting else g

    def _differentiate(self, node: Node, g: Any) -> None:
        op = node.op
        rule = op.vjp_rule
        if rule is None:
            self._open(node, g)
            return
        marks = node.marks
        if marks is not None and marks.freed is not None:
            check_freed(node, g)
        if node.outputs is None:
            out: Any = node
        else:
            out = tuple(output(node, i) for i in range(len(node.outputs)))
            g = tuple(
                g[i] if i in g else zeros_like(o) if is_float(o.dtype) else None
                for i, o in enumerate(out)
            )
        since = tick()
        found = rule(g, out, *node.args)
        if type(found) is not tuple:
            found = (found,)
        check_saved(node, found, since)
        if not self.retain:
            node.mark().freed = STATE.span or True
        self._distribute(node, found)

    def _distribute(self, node: Node, found: tuple[Any, ...]) -> None:
        op = node.op
        args = node.args
        needed = self.needed
        for position, g in zip(op.tensor_params, found, strict=True):
            if g is None:
                continue
            x = args[position]
            if type(x) is Node:
                if x.requires_grad and (needed is None or x in needed):
                    if g.shape != x.shape or g.dtype is not x.dtype:
                        g = fitted(op.kind, g, x, op)
                    self.give(x, g)
            elif x is not None:
                for part, part_g in zip(x, g, strict=True):
                    if part is not None and part_g is not None and self._wants(part):
                        self.give(part, fitted(op.kind, part_g, part, op))

    def _wants(self, node: Node) -> bool:
        return node.requires_grad and (self.needed is None or node in self.needed)

    def _open(self, node: Node, g: Any) -> None:
        """Hand a composite's cotangent to its body."""
        if node.body is None:
            raise fail(
                "E404",
                f"`{node.op.name}` has no derivative here",
                node.span,
                help="detach the value if its gradient is not wanted",
            )
        if not self.retain:
            node.mark().freed = STATE.span or True
        if type(node.body) is tuple:
            for i, part_g in g.items():
                if node.body[i].requires_grad:
                    self.give(node.body[i], part_g)
        elif node.body.requires_grad:
            self.give(node.body, g)


def fitted(kind: Kind, g: Node, x: Node, op: Any) -> Node:
    """A cotangent in the shape and dtype of the operand: broadcasting is undone for pointwise ops
    only, any other mismatch is a defect of a rule."""
    if g.shape != x.shape:
        if kind is not POINTWISE and "broadcasts" not in op.properties:
            raise AssertionError(f"vjp of {op.key}: cotangent {g.shape} for operand {x.shape}")
        g = F.sum_to_size(g, x.shape)
    return g if g.dtype == x.dtype else cast(g, x.dtype)


def parents(node: Node) -> tuple[Node, ...]:
    if node.body is not None and node.op.vjp_rule is None:
        return node.body if type(node.body) is tuple else (node.body,)
    if node.op is LEAF:
        return ()
    return node.inputs


def _reads(node: Node, found: tuple[Any, ...], since: int) -> list[Node]:
    """Inputs and results of `node` that its fresh cotangents, made after `since`, read: what
    PyTorch calls saved."""
    own = {*node.inputs, node}
    start = [n for g in found for n in (g if type(g) is tuple else (g,)) if n is not None]
    seen: set[Node] = set()
    read: list[Node] = []
    while start:
        n = start.pop()
        if n in seen:
            continue
        seen.add(n)
        if n in own:
            read.append(n)
        elif n.seq > since:
            start.extend(n.inputs)
    return read


def check_freed(node: Node, g: Any) -> None:
    """E406 when the rule of a freed node reads what was saved."""
    if "saves" in node.op.properties:
        raise _freed(node)
    with grad_mode(False):
        out: Any = node
        if node.outputs is not None:
            out = tuple(output(node, i) for i in range(len(node.outputs)))
            g = tuple(
                g.get(i, zeros_like(o)) if is_float(o.dtype) else None for i, o in enumerate(out)
            )
        since = tick()
        found = node.op.vjp_rule(g, out, *node.args)  # type: ignore[misc]  # only called with a rule
    found = found if type(found) is tuple else (found,)
    own = {g} if type(g) is Node else {x for x in g if x is not None}
    if any(r not in own for r in _reads(node, found, since)):
        raise _freed(node)


def _freed(node: Node) -> AutodiffError:
    return fail(
        "E406",
        f"backward a second time through {_shown(node)}, whose saved values were freed",
        help="write `backward(retain_graph=True)` the first time, or compute the loss again",
        labels=(Label(node.span, "this part of the graph was used up"),) if node.span else (),
    )


def _shown(node: Node) -> str:
    """A node by the name it was assigned to, else by its text."""
    span = node.span
    if span is None or len(span.text) >= 40 or "\n" in span.text:
        return f"`{node.op.name}`"
    name = span.assigned
    return f"`{name} = {span.text}`" if name else f"`{span.text}`"


_overwritten_seen = False


def note_overwriting() -> None:
    """Called at the first in-place change of a run: from now on saved values are checked."""
    global _overwritten_seen
    _overwritten_seen = True


def check_saved(node: Node, found: tuple[Any, ...], since: int) -> None:
    """E407 when a value that the rule reads was changed in place after the node was made."""
    if not _overwritten_seen or not any(map(overwritten_at, (node, *node.inputs))):
        return
    for read in _reads(node, found, since):
        overwritten = overwritten_at(read)
        if overwritten is not None and node is not overwritten[1]:
            at = overwritten[0]
            where = (Label(at, "changed in place here"),) if at is not None else ()
            raise fail(
                "E407",
                f"{_shown(read)}, shape {shape_text(read.shape)}, is needed for the gradient of "
                f"`{node.op.name}` but was changed in place afterwards",
                labels=where + ((Label(node.span, "saved here"),) if node.span else ()),
                help="use the form that makes a new tensor, for example `x = x + 1` for `x += 1`",
            )


def overwritten_at(node: Node) -> Any:
    """Where and by which node the memory of a node was changed in place; None if it was not."""
    while True:
        if node.marks is not None and node.marks.overwritten is not None:
            return node.marks.overwritten
        if node.op is OUTPUT or node.op.view:
            node = node.args[0]
        else:
            return None


def backward(
    seeds: list[tuple[Node, Node]], *, create_graph: bool, retain_graph: bool
) -> dict[Node, Node]:
    """Cotangents of all leaves that the seeds' nodes depend on."""
    return Pass(seeds, None, create_graph, retain_graph).run()


def gradients(
    seeds: list[tuple[Node, Node]], targets: list[Node], *, create_graph: bool, retain_graph: bool
) -> list[Node | None]:
    """Cotangents of `targets`, None for those that were not reached."""
    reached = Pass(seeds, targets, create_graph, retain_graph).run()
    return [reached.get(target) for target in targets]


__all__ = [
    "backward",
    "constant",
    "gradients",
    "note_overwriting",
    "ones_like",
    "overwritten_at",
    "zeros_like",
]
