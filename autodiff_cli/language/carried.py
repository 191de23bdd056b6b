"""What a step of a loop leaves to the next one: tensors that outlive it, their gradients, and the
values that hold them.

Objects are compared themselves, not by their ids: what was let go could come back under its id.
"""

from __future__ import annotations

from typing import Any

from ..autograd.tensor import AccumulateGrad, Tensor
from ..graph.node import Node
from ..graph.op import LEAF, leaf
from ..graph.state import STATE
from .classes import Instance
from .repeated import Repeated
from .values import Scope

MOST_VALUES = 10_000  # of a list or tuple that are looked at


class Snapshot:
    """The tensors that outlive a step, with their nodes and gradients; and all that values which
    the body reads hold."""

    __slots__ = ("held", "random", "tensors")

    def __init__(self, scope: Scope, loop: Repeated):
        self.tensors: dict[Tensor, tuple[Node, Tensor | None]] = {}
        self.held: list[tuple[Any, Any, Any]] = []
        self.random = _drawn()
        read: list[Any] = []
        others: list[Any] = []
        at: Scope | None = scope
        while at is not None:
            for name, value in at.names.items():
                if name in loop.loaded:
                    self.held.append((at, name, value))
                    read.append(value)
                elif name not in loop.names:
                    others.append(value)
            at = at.outer
        seen: set[int] = set()
        self._walk(read, seen, self.held)
        self._walk(others, seen, [])

    def _walk(self, pending: list[Any], seen: set[int], held: list[tuple[Any, Any, Any]]) -> None:
        while pending:
            value = pending.pop()
            if isinstance(value, Tensor):
                self.tensors[value] = value.node, value.grad
            elif id(value) not in seen:
                seen.add(id(value))
                for key, part in _parts(value):
                    held.append((value, key, part))
                    pending.append(part)

    def allows(self, after: Snapshot) -> bool:
        """Whether nothing but tensors changed until `after`."""
        if len(self.held) != len(after.held):
            return False
        for (a, key, part), (b, other_key, other_part) in zip(self.held, after.held, strict=True):
            if a is not b or part is not other_part:
                return False
            if key is not other_key and not (type(key) in (str, int) and key == other_key):
                return False
        for tensor, (node, grad) in after.tensors.items():
            if tensor not in self.tensors:
                continue
            old, old_grad = self.tensors[tensor]
            if (grad is None) is not (old_grad is None):
                return False
            if node is not old and not _replaceable(tensor, node):
                return False
            if grad is not None and (grad.storage is not None or grad.node.requires_grad):
                return False
        return True

    def changed(self, before: Snapshot) -> list[Slot]:
        """Where a step left something for the next one."""
        slots: list[Slot] = []
        for tensor, (node, grad) in self.tensors.items():
            if tensor not in before.tensors:
                continue
            old = before.tensors[tensor][0]
            if node is not old:
                slots.append(Slot(tensor, False))
            if grad is not None:
                slots.append(Slot(tensor, True))
        return slots


def _parts(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return enumerate(value if len(value) < MOST_VALUES else ())
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, Instance):
        return [*value.fields.items(), *enumerate(value.held())]
    return ()


def _drawn() -> Any:
    """Where the generator of random numbers stands."""
    generator = STATE.default_generator
    if generator is None:
        return None
    seed, words, kept = generator.get_state()
    state = words["state"]
    return seed, kept, state["pos"], state["key"].tobytes()


def _replaceable(tensor: Tensor, node: Node) -> bool:
    """Whether a tensor may be shown another value: nobody shares its memory, and it has no history
    of its own."""
    if tensor.storage is not None or type(tensor.accumulator) not in (AccumulateGrad, type(None)):
        return False
    if tensor.accumulator is not None and tensor.accumulator.hooks:
        return False
    marks = node.marks
    if marks is not None and (marks.hooks or marks.slots):
        return False
    return node.op is LEAF or not node.requires_grad


class Slot:
    """A tensor that a step changes, or its gradient."""

    __slots__ = ("gradient", "tensor")

    def __init__(self, tensor: Tensor, gradient: bool):
        self.tensor = tensor
        self.gradient = gradient

    @property
    def node(self) -> Node | None:
        if not self.gradient:
            return self.tensor.node
        grad = self.tensor.grad
        return None if grad is None else grad.node

    def put(self, node: Node) -> None:
        """Show `node`, as the leaf or constant that was there."""
        tensor = self.tensor.grad if self.gradient else self.tensor
        assert tensor is not None
        if tensor.node.requires_grad:
            node = leaf(node if node.value is None else node.value, tensor.accumulator)
        tensor._show(node)


__all__ = ["Slot", "Snapshot"]
