"""Reverse mode, graph to graph: cotangents are nodes, each op's vjp rule is applied once per node.

The pass never recurses: nodes are visited from the newest to the oldest, which is reverse
topological order. Values are not computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import AutodiffError, fault, labelled
from ..graph.dtypes import is_float
from ..graph.node import FREED, Node, tick
from ..graph.op import LEAF, OUTPUT, POINTWISE, results_of, value_of
from ..graph.registry import F
from ..graph.state import STATE, grad_mode
from ..graph.symbolic_numbers import RecordingAborted
from ..graph.walk import SEQUENCE, bodies, walk
from . import data_mutation, function_hooks
from .overwritten import (
    changed_since,
    check_saved,
    declared,
    freed,
    overwritten_at,
    recorded,
    requires_grad,
    shown,
)
from .rules import check_dtypes, check_freed, fitted, of_results, parents, reads, slopes


class Pass:
    """One backward pass: the cotangents of all leaves that the seeds' nodes depend on, or those of
    `targets`; with targets, only what leads to them is visited. `hooked` counts how often hooks
    ran in any pass. With `since`, the pass is that of a transform which began then: older values
    are what their memory holds, and only those of its own that lead to targets are checked."""

    begun = 0
    created = False  # a graph of gradients, by some pass
    hooked = 0
    running: Pass | None = None

    def __init__(
        self,
        seeds: Iterable[tuple[Node, Node]],
        targets: Iterable[Node] | None = None,
        create_graph: bool = False,
        retain_graph: bool = False,
        since: int = 0,
        deliver: Callable[[Node, Node], None] | None = None,
    ):
        Pass.begun = self.number = Pass.begun + 1
        self.since = since
        self.deliver = deliver
        self.visits_targets = deliver is not None and targets is not None
        self.cotangents: dict[Node, Any] = {}
        self.needed: set[Node] | None = None
        self.retain = retain_graph
        self.inner: set[Node] = set()  # steps of our own in composites, which save nothing
        self.stops = False  # at targets: their hooks and what is behind are another pass's
        self.create_graph = create_graph
        Pass.created |= create_graph
        self.targets = None if targets is None else set(targets)
        self.reached: dict[Node, Node] = {}
        self.firsts: dict[Any, Node] = {}
        for node, g in seeds:
            self.give(node, g)
        self.order = self._order(list(self.cotangents))
        if STATE.recorder is not None and not retain_graph:
            since = STATE.recorder.since
            if any(node.seq < since and node.op is not LEAF for node in self.order):
                raise RecordingAborted  # what it frees of steps before is not put back

    def _order(self, nodes: list[Node]) -> list[Node]:
        """Nodes that a cotangent may reach, the newest first."""
        seen = set(nodes)
        ends: list[Node] = []
        firsts = self.firsts
        for node in nodes:  # it grows
            end = True
            op = node.op
            if op is LEAF or op is OUTPUT:
                same = node.args if op is OUTPUT else _leaf(node)
                if op is OUTPUT or same[0] is not None:
                    first = firsts.setdefault(same, node)
                    if node.seq < first.seq:
                        firsts[same] = node
            if op is not LEAF:
                for needed in node.inputs if node.body is None else self._parents(node):
                    if needed.requires_grad:
                        end = False
                        if needed not in seen:
                            seen.add(needed)
                            nodes.append(needed)
            if end:
                ends.append(node)
        self.ends = ends
        nodes.sort(key=SEQUENCE, reverse=True)
        targets = self.targets
        if targets is not None:
            targets = self.targets = {self.first(node) for node in targets}
            ends = [self.first(node) for node in ends]
        if targets is not None and not (targets.issuperset(ends) and targets <= seen):
            self.needed = needed_set = set(targets)
            if self.visits_targets:
                needed_set.update(node.args[0] for node in targets if node.op is OUTPUT)
            for node in reversed(nodes):
                if node not in needed_set and (
                    self.first(node) in targets or any(p in needed_set for p in self._parents(node))
                ):
                    needed_set.add(node)
        return nodes

    def first(self, node: Node) -> Node:
        """The oldest node that the pass meets of a leaf, or of one of several results; other nodes
        as they are.

        A leaf that was changed in place has several nodes and one gradient, one for each time that
        it began anew; a rule reads results through nodes of its own.
        """
        op = node.op
        if op is LEAF:
            return self.firsts.get(_leaf(node), node)
        return self.firsts.get(node.args, node) if op is OUTPUT else node

    def give(self, node: Node, g: Node) -> None:
        """Add a contribution to a node's cotangent."""
        before = self.cotangents.get(node)
        self.cotangents[node] = g if before is None else F.add.pair(before, g)

    def run(self) -> dict[Node, Node]:
        """Run to the end; the cotangents of leaves and targets."""
        observer = STATE.observer
        if observer is not None:
            observer.backward_begins()
        outer, Pass.running = Pass.running, self
        try:
            with grad_mode(self.create_graph):
                before = STATE.span
                take = self.cotangents.pop
                visit = self._visit
                awaited = self._awaited()
                for node in self.order:
                    g = take(node, None)
                    if g is not None:
                        STATE.span = node.span
                        visit(node, g)
                    for leaf in self._parents(node) if awaited else ():
                        if leaf in awaited:
                            awaited[leaf] -= 1
                            g = None if awaited[leaf] else take(leaf, None)
                            if g is not None:
                                visit(leaf, g)
                STATE.span = before
        except AutodiffError:
            self._deliver_finished(node)
            raise
        finally:
            Pass.running = outer
        if observer is not None:
            observer.backward_ends()
        return self.reached

    def _deliver_finished(self, failed: Node) -> None:
        """Give their gradients to leaves that only nodes before the one that failed lead to."""
        if self.deliver is None or self.targets is not None:
            return
        rest = self.order[self.order.index(failed) :]
        open_ = {needed for node in rest for needed in self._parents(node)}
        for leaf in self.ends:
            g = self.cotangents.get(leaf)
            if g is not None and leaf.op is LEAF and leaf not in open_:
                self.deliver(leaf, g)

    def _awaited(self) -> dict[Node, int]:
        """Leaves whose hooks run as soon as their cotangent is complete, with how many more nodes
        may add to it."""
        hooked = dict.fromkeys([leaf for leaf in self.ends if _hooked(leaf)], 0)
        for node in self.order if hooked else ():
            for leaf in self._parents(node):
                if leaf in hooked:
                    hooked[leaf] += 1
        return hooked

    def visits(self, node: Node) -> bool:
        """Whether this pass may come to a node."""
        node = node.args[0] if node.op is OUTPUT else node
        return node in self.order and (self.needed is None or node in self.needed)

    def _visit(self, node: Node, g: Any) -> None:
        marks = node.marks
        if node.op is LEAF or (node.op is OUTPUT and marks is None):
            first = self.first(node)
            if first is not node:
                if marks is not None and (marks.hooks or marks.context):
                    own = first.mark()
                    own.hooks, own.context = marks.hooks, marks.context
                self.give(first, g)
                return
        op, needed = node.op, self.needed
        wanted = self.targets is not None and node in self.targets
        ends = wanted and (op is LEAF or op.key == "level")
        if wanted:
            self.reached[node] = g  # PyTorch takes it before hooks where it goes on
            if self.stops:
                return
            if needed is not None and not self.visits_targets:
                ends = ends or needed.isdisjoint(self._parents(node))
        if marks is not None and marks is not FREED:
            if type(g) is dict:
                for part in marks.hooked:
                    given = self._marked(part.mark(), g.get(part.args[1]))
                    if given is not None:
                        g[part.args[1]] = given
            elif ends or op is not OUTPUT or not marks.hooks:
                g = self._marked(marks, g)
        if ends or (wanted and self.visits_targets):
            self.reached[node] = g
        if ends:
            return
        if needed is not None and node not in needed:
            return  # no target is behind it
        elif op is LEAF:
            if self.targets is None:
                self.reached[node] = g
                if self.deliver is not None and _hooked(node):
                    self.deliver(node, g)
        elif op is OUTPUT:
            parent, index = node.args
            self._give_output(parent, index, g)
        elif marks is not None and marks.context is not None:
            function_hooks.visit(self, node, g)
        elif self.create_graph and "slope has a name" in op.properties:
            for x, gx in self.apart(node, g).items():
                self.give(x, _named_slope(node, x, gx, g))
        else:
            self.differentiate(node, g)

    def _marked(self, marks: Any, g: Any) -> Any:
        """Show a cotangent to hooks, which may replace it, and to who keeps it. Hooks of one of
        several results see it when all are known, None where there is none."""
        if marks.hooks:
            Pass.hooked += 1
        for hook in list(marks.hooks.values()):
            data_mutation = hook(g)
            if data_mutation is not None:
                g = data_mutation
        for slot in marks.slots if g is not None else ():
            slot.receive(g, self.create_graph)
        return g

    def _give_output(self, parent: Node, index: int, g: Node) -> None:
        waiting = self.cotangents.setdefault(parent, {})
        waiting[index] = F.add(waiting[index], g) if index in waiting else g

    def opens(self, node: Node) -> bool:
        """Whether the body of a composite answers, not a rule of its own."""
        return node.body is not None and node.op.vjp_rule is None

    def _parents(self, node: Node) -> tuple[Node, ...]:
        """Who may be given a cotangent when this node is visited."""
        if self.opens(node):
            return bodies(node)
        return () if node.op is LEAF else node.inputs

    def differentiate(self, node: Node, g: Any) -> None:
        op = node.op
        rule = op.vjp_rule
        if rule is None:
            self._open(node, g)
            return
        marks = node.marks
        keeps = "own saving" in op.properties
        if not keeps and marks is not None and marks.freed is not None:
            check_freed(node, g)
        out: Any = node
        if node.outputs is not None:
            out = results_of(node)
            g = of_results(op, out, g)
        args = node.args
        if STATE.overwriting and not keeps:
            since = tick()
            outs = (node,) if out is node else out
            seen, given = out, args
            if STATE.replaced or self.since:
                shown = tuple(data_mutation.shown(part, node) for part in outs)
                seen = shown[0] if out is node else shown
                if self.since or "saves its factors" not in op.properties:
                    given = data_mutation.arguments(node, self.since)
            found = rule(g, seen, *given)
            wants = self._wants if self.since else requires_grad
            if given is not args and op.kind is not POINTWISE:
                check_dtypes(node, given, found if type(found) is tuple else (found,), since)
            kept = [] if node in self.inner else declared(node, wants)
            if any(map(overwritten_at, (*outs, *node.inputs, *kept))):
                read = reads(node, found if type(found) is tuple else (found,), since, wants)
                if "saves no operands" in op.properties:
                    read = [n for n in read if n not in node.inputs]
                check_saved(node, [n for n in read + kept if n.seq > self.since])
        else:
            found = rule(g, out, *args)
        if type(found) is not tuple:
            found = (found,)
        if STATE.anomaly:
            _check_nan(node, found)
        if not self.retain:
            if marks is None:
                node.marks = FREED
            else:
                node.mark().freed = True
        if args is not node.inputs:
            self._distribute(node, args, found)
            return
        needed = self.needed
        for x, gx in zip(args, found, strict=True):
            if gx is not None and x.requires_grad and (needed is None or x in needed):
                if gx.shape != x.shape or gx.dtype is not x.dtype:
                    gx = fitted(gx, x, node)
                self.give(x, gx)

    def apart(self, node: Node, g: Any) -> dict[Node, Node]:
        """The cotangents of a node's inputs alone, given to nobody."""
        seeds = [(node, g)]
        if self.opens(node):
            seeds = (
                [(node.body[i], part) for i, part in g.items()]
                if type(g) is dict
                else [(node.body, g)]
            )
            wanted = [x for x in node.inputs if self._wants(x)]
            return self._until(seeds, wanted, self.retain)
        before, self.cotangents = self.cotangents, {}
        self.differentiate(node, g)
        found, self.cotangents = self.cotangents, before
        return found

    def _distribute(self, node: Node, args: tuple[Any, ...], found: tuple[Any, ...]) -> None:
        for x, g in slopes(node.op, args, found):
            if g is not None and self._wants(x):
                self.give(x, fitted(g, x, node))

    def _wants(self, node: Node) -> bool:
        return node.requires_grad and (self.needed is None or node in self.needed)

    def _open(self, node: Node, g: Any) -> None:
        """Hand a composite's cotangent to its body."""
        if node.body is None:
            where = labelled(node.span, "made here")
            raise fault("E404 no-derivative-here", node.op.name, labels=where)
        inner = node in self.inner
        if not inner and (saved := declared(node)):
            if node.marks is not None and node.marks.freed:
                raise freed(node)
            check_saved(node, saved)
        if STATE.overwriting and not inner:
            steps = [part for part in bodies(node) if part not in node.inputs]
            self.inner.update(walk(steps, parents, node.inputs))
        if Pass.created and not (node.marks is not None and node.marks.freed):
            for part in walk(bodies(node), lambda n: n.inputs, node.inputs):
                if part.marks is not None and part.marks.freed:  # by gradients, which read it
                    part.mark().freed = None
        if not self.retain:
            if node.marks is None:
                node.marks = FREED
            else:
                node.mark().freed = True
        if type(node.body) is Node and "saves its body" not in node.op.properties:
            if STATE.overwriting:
                self._check_operands(node, g)
            if STATE.replaced and self._open_again(node, g):
                return
        if type(node.body) is tuple:
            for i, part_g in g.items():
                if node.body[i].requires_grad:
                    self.give(node.body[i], part_g)
        elif node.body.requires_grad:
            self.give(node.body, g)

    def _check_operands(self, node: Node, g: Node) -> None:
        """E407 when an operand of a composite, which PyTorch saved for its derivative, was changed
        in place since; where only places were found with it, those are saved. Not where hooks
        of the program kept what was saved."""
        for part in walk(bodies(node), lambda n: (*n.inputs, *bodies(n)), node.inputs):
            if part.marks is not None and part.marks.context and part.marks.context.packed:
                return
        for x in node.inputs:
            at = overwritten_at(x) if self._wants(x) else None
            if at is None or at[3] < node.seq or (self.since and x.seq < self.since):
                continue
            gx = self._until([(node.body, g)], [x]).get(x)
            read = walk(
                [gx] if gx else [], lambda n: () if n is g or n.dtype.kind == "i" else n.inputs
            )
            if x in read and not data_mutation.kept(at[1], node, x):
                raise changed_since(node, x, at)

    def _open_again(self, node: Node, g: Node) -> bool:
        """Differentiate the body of a composite whose operands have other values now: PyTorch saved
        those alone that a slope is computed from, not what is computed from them."""
        args = data_mutation.arguments(node)
        if all(now is arg for now, arg in zip(args, node.args, strict=True) if type(arg) is Node):
            return False
        wanted = [x for x in node.inputs if self._wants(x)]
        found = [gx for gx in self._until([(node.body, g)], wanted).values() if gx is not None]
        read = set(walk(found, lambda n: () if n is g else n.inputs))
        args = tuple(
            arg if type(arg) is Node and arg not in read else now
            for now, arg in zip(args, node.args, strict=True)
        )
        with grad_mode(True):
            body = node.op.body(*args)  # type: ignore[misc]  # composites have one
        self.inner.update(walk([body], parents, args))
        for x, gx in self._until([(body, g)], wanted).items():
            self.give(x, gx)
        return True

    def _until(
        self, seeds: list[tuple[Node, Any]], wanted: list[Node], retain: bool = True
    ) -> dict[Node, Node]:
        """The cotangents of a pass within this one, which ends at its targets."""
        run = Pass(seeds, wanted, self.create_graph, retain)
        run.stops, run.inner = True, self.inner
        return run.run()


def _check_nan(node: Node, found: tuple[Any, ...]) -> None:
    """E501 for a NaN that a rule gives, in anomaly mode."""
    for at, (_, g) in enumerate(slopes(node.op, node.args, found)):
        if g is not None and is_float(g.dtype) and np.isnan(value_of(g)).any():
            where = labelled(node.span, "computed here")
            raise fault("E501 backward-gives-nan", shown(node), node.grad_name, at, labels=where)


def _named_slope(node: Node, x: Node, gx: Node, g: Any) -> Node:
    """A cotangent under PyTorch's name: computed of `x`, whether its value depends on it or not."""
    made = node.grad_name.partition("Backward")
    if made[1]:
        below = walk([gx], lambda n: n.inputs if n.requires_grad and n is not g else ())
        gx = gx if x in below else F.depends(gx, x)
        gx.mark().name = f"{made[0]}BackwardBackward0"
    return gx


def _leaf(node: Node) -> tuple[Any, Any]:
    """What the nodes of one leaf have in common."""
    return node.args[0], None if node.marks is None else node.marks.anew


def _hooked(node: Node) -> bool:
    """Whether functions of the program see the gradient of a leaf."""
    return node.op is LEAF and (
        (node.marks is not None and bool(node.marks.hooks or node.marks.context))
        or bool(node.args[0] is not None and node.args[0].hooks)
    )


def gradients(
    seeds: list[tuple[Node, Node]],
    targets: list[Node],
    *,
    create_graph: bool,
    retain_graph: bool,
    since: int = 0,
) -> list[Node | None]:
    """Cotangents of `targets`, None for those that were not reached."""
    targets = [recorded(target) for target in targets]
    run = Pass(seeds, targets, create_graph, retain_graph, since)
    reached = run.run()
    return [reached.get(run.first(target)) for target in targets]
