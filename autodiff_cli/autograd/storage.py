"""Memory that tensors look at, and what becomes of nodes when it changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..graph.node import Node
from ..graph.op import CONSTANT, LEAF, leaf
from ..graph.registry import F
from ..graph.state import STATE, grad_mode
from ..graph.strides import same_layout, strides_of
from . import data_mutation
from .views import Step, applied


class Counter:
    """How often memory was changed in place, as far as the tensors know that have this counter: a
    tensor and its views share one, `x.data` has its own. `inferred`: it is memory of an inference
    tensor."""

    __slots__ = ("count", "inferred")

    def __init__(self, inferred: bool) -> None:
        self.count = 0
        self.inferred = inferred


class Content:
    """The values in memory now, held without counting as somebody who looks at the memory."""

    __slots__ = ("node",)

    def __init__(self, node: Node):
        self.node = node


class Part:
    """The part of memory that view steps show, with its values now."""

    __slots__ = ("steps", "storage")

    def __init__(self, storage: Storage, steps: tuple[Step, ...]):
        self.storage, self.steps = storage, steps

    @property
    def node(self) -> Node:
        return self.storage.seen_through(self.steps)


class Storage:
    """Memory that several tensors look at: the node of the whole, and how often it was replaced.
    `apart` has the nodes of detached views that have got a history of their own, by the identity of
    the step that detached them, each with the version it shows. `aliased`: tensors with other
    counters look at it too; `content` is for who wants to know what it holds later. `part`: what
    was written last through a view, and the steps to that."""

    __slots__ = ("__weakref__", "aliased", "apart", "content", "node", "part", "version")

    def __init__(self, node: Node):
        self.node = node
        self.version = 0
        self.aliased = False
        self.content: Content | None = None
        self.apart: dict[int, tuple[Step, Node, int]] = {}
        self.part: tuple[Node, tuple[Step, ...]] | None = None

    def seen_through(self, steps: Iterable[Step]) -> Node:
        """Apply view steps to the values in memory now."""
        node = self.node
        for step in steps:
            node = applied(step, node)
            own = self.apart.get(id(step))
            if own is not None:
                _, history, version = own
                if version != self.version:
                    history = revalued(history, node)
                    self.set_apart(step, history)
                node = history
        return node

    def put(self, node: Node) -> None:
        """Put other values into the memory."""
        node.handle = node.handle or self.node.handle
        self.node = node
        self.version += 1
        if self.content is not None:
            self.content.node = node

    def note_write(self, steps: tuple[Step, ...], by: Node | None, version: int) -> None:
        """Note that the memory is about to be overwritten through these steps. Saved values of
        tensors with the same version counter become invalid; others will be read as overwritten."""
        own_counters = [i for i, step in enumerate(steps) if step[0].key == "data_alias"]
        for step in steps[own_counters[-1] :] if own_counters else ():
            if (apart := self.apart.get(id(step))) is not None:
                mark_overwritten(apart[1], by, version)
        if not own_counters:
            mark_overwritten(self.node, by, version)
            if self.part is not None:
                mark_overwritten(self.part[0], by, version)
            for step, own, _ in self.apart.values():
                if step[0].key != "data_alias":
                    mark_overwritten(own, by, version)
                elif own.handle is not None and (handle := own.handle()) is not None:
                    data_mutation.note(own, handle, by=by)
        if self.aliased:
            self._note_change(by)

    def _note_change(self, by: Node | None) -> None:
        """Let rules that read what the memory held see what it will hold."""
        if self.content is None:
            self.content = Content(self.node)
        for node in _undetached(self.node):
            data_mutation.note(node, self.content, by=by)
        if self.part is not None:
            node, steps = self.part
            data_mutation.note(node, Part(self, steps), by=by)

    def set_apart(self, step: Step, node: Node) -> None:
        """Give what a detaching step shows a history of its own."""
        self.apart[id(step)] = (step, node, self.version)


def _undetached(node: Node) -> Iterator[Node]:
    """A node, and what it was before it was detached or had other values, in the same memory."""
    yield node
    while node.op.key in ("detach", "with_value"):
        node = node.args[0]
        yield node


def mark_overwritten(node: Node, by: Node | None, version: int) -> None:
    """Remember where a value was overwritten, by what, the index of the change, and when: an
    in-place op has kept the old value for itself, as PyTorch's do. A number is not memory: its node
    stands for all numbers that are equal to it."""
    if node.weak and node.op is CONSTANT:
        return
    if by is not None and not by.requires_grad:
        by = None  # no backward comes to it: nodes of steps long ago would hold all later ones
    change = (STATE.place, by, version, Node.counter())
    changed = [node]
    for part in changed:
        for whole in _undetached(part):
            for same in data_mutation.same_memory(whole):
                same.mark().overwritten = change
                if same.op.view and same.args[0].handle is None and same.args[0].inputs:
                    changed.append(same.args[0])  # what a function shows by a view alone
    STATE.overwriting = True  # from now on saved values are checked


def renewed(old: Node, value: Any) -> Node:
    """The same leaf with another value, an array or a node: its hooks stay, and who has saved an
    older one finds the last change here."""
    node = leaf(value, old.args[0])
    if old.marks is not None:
        marks, before = node.mark(), old.marks
        marks.hooks, marks.context = before.hooks, before.context
        marks.overwritten, marks.anew = before.overwritten, before.anew
    if node.dtype != old.dtype:
        begin_anew(node)
    return node


def begin_anew(leaf: Node) -> None:
    """Let a leaf be another one to `grad()` than it was: what was computed before leads to the same
    `.grad`, but not to this tensor."""
    leaf.mark().anew = leaf.seq


def revalued(old: Node, value: Node) -> Node:
    """The history of `old` with another value: a change that autograd does not see."""
    if old.op is LEAF:
        return renewed(old, value)
    with grad_mode(True):
        return F.with_value(old, value)


def in_place_of(old: Node, node: Node) -> Node:
    """`node` in the memory of `old`, whose strides stay."""
    strides = strides_of(old)
    if not same_layout(old.shape, strides, strides_of(node)):
        node = F.alias(node)
        node.strides = strides
    return node


def without_history(node: Node) -> Node:
    """The same values, not requiring grad."""
    return F.detach(node) if node.requires_grad else node
