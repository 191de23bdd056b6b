"""What a step of a loop leaves to the next one: tensors that outlive it, their gradients, and the
values that hold them.

Objects are compared themselves, not by their ids: what was let go could come back under its id.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from ..autograd.tensor import AccumulateGrad, Tensor, renewed
from ..engine.evaluate import evaluate
from ..graph.node import Node
from ..graph.op import LEAF, constant, value_of
from ..graph.state import STATE
from .classes import Instance, UserClass
from .generators import STREAMS
from .reach import Reach, named
from .values import Scope

NUMBERS = (int, float)


class Snapshot:
    """The tensors that outlive a step, with their nodes and gradients; and all that values which
    the body reads hold (`held`: holder, key, part). `loaded` are the names that it reads, `written`
    those that the loop assigns; a name's holder is the word "name"."""

    __slots__ = ("held", "reach", "read", "tensors")

    def __init__(self, scope: Scope, loaded: set[str], written: set[str]):
        self.tensors: dict[Tensor, tuple[Node, Tensor | None]] = {}
        self.held: list[tuple[Any, Any, Any]] = []
        self.reach = Reach(scope, written)
        read: list[Any] = []
        for name in sorted(loaded):
            at, value = named(name, scope)
            if at is not None:
                self.held.append(("name", name, value))
                read.append(value)
        seen: set[int] = set()
        self._walk(read, seen, self.reach, self.held)
        self.read = set(self.tensors)  # those that the step can reach
        others: list[Any] = []
        outside: Scope | None = scope
        while outside is not None:
            others.extend(v for k, v in outside.names.items() if k not in loaded | written)
            outside = outside.outer
        self._walk(others, seen, Reach(scope, written), [])

    def _walk(
        self, pending: list[Any], seen: set[int], reach: Reach, held: list[tuple[Any, Any, Any]]
    ) -> None:
        while pending:
            value = pending.pop()
            if isinstance(value, Tensor):
                self.tensors[value] = value.node, value.grad
            elif id(value) not in seen:
                seen.add(id(value))
                for key, part in reach.parts(value):
                    held.append((value, key, part))
                    pending.append(part)

    def allows(self, after: Snapshot, numbers: dict[Any, Any] | None = None) -> bool:
        """Whether nothing but tensors changed until `after`, and numbers: those that did are noted
        in `numbers` by their holder and key."""
        if len(self.held) != len(after.held):
            return False
        for (a, key, part), (b, other_key, other) in zip(self.held, after.held, strict=True):
            if a is not b or not _same_key(key, other_key):
                return False
            if part is other or (type(part) is type(other) and _equal(part, other)):
                continue
            if numbers is None or type(part) not in NUMBERS or type(other) is not type(part):
                return False
            numbers[id(a), key] = a
        return self.tensors_alike(after)

    def tensors_alike(self, after: Snapshot) -> bool:
        """Whether tensors are as replaceable after a step as before."""
        for tensor, (node, grad) in after.tensors.items():
            if tensor not in self.tensors:
                continue
            old, old_grad = self.tensors[tensor]
            if (grad is None) is not (old_grad is None):
                return False
            if node is not old and not _replaceable(tensor, node):
                return False
            if grad is not None and (_shared(grad) or grad.node.requires_grad):
                return False
        return True

    def stands(self, after: Snapshot, slots: list[Slot], numbers: dict[Any, Any]) -> bool:
        """Whether nothing changed until `after` but what is in slots, and numbers."""
        changing = {slot.tensor for slot in slots if not slot.gradient}
        return self.allows(after, numbers) and all(
            tensor in changing or tensor not in after.tensors or node is after.tensors[tensor][0]
            for tensor, (node, _) in self.tensors.items()
            if tensor in self.read
        )

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
                slots.append(Slot(tensor, True, grad is not before.tensors[tensor][1]))
        return slots


def _same_key(a: Any, b: Any) -> bool:
    return a is b or (type(a) in (str, int) and type(a) is type(b) and a == b)


def _equal(a: Any, b: Any) -> bool:
    """Whether values that never change are equal."""
    return type(a) in (str, int, bool, float) and repr(a) == repr(b)


def drawing_state() -> tuple[Any, Any, list[Any]]:
    """The generator of random numbers, and where it and the other generators stand."""
    generator = STATE.default_generator
    where = None if generator is None else generator.get_state()
    return generator, where, [stream.state() for stream in STREAMS]


def put_back(state: tuple[Any, Any, list[Any]]) -> None:
    """Let the generators stand where they stood."""
    STATE.default_generator, where, others = state
    if where is not None:
        STATE.default_generator.set_state(where)
    for stream, stood in zip(STREAMS, others, strict=False):
        if stream.draws != stood[0]:
            stream.put_back(stood)


def drawn() -> Any:
    """Where the generator of random numbers stands, to be compared."""
    generator = STATE.default_generator
    if generator is None:
        return None
    seed, words, kept = generator.get_state()
    state = words["state"]
    return seed, kept, state["pos"], state["key"].tobytes()


def drawn_elsewhere() -> list[int]:
    """How often each generator that is not PyTorch's was asked."""
    return [stream.draws for stream in STREAMS]


def _shared(tensor: Tensor) -> bool:
    """Whether another tensor looks at the same memory."""
    tensor.settle()
    return tensor.storage is not None and (bool(tensor.steps) or getrefcount(tensor.storage) > 2)


def _replaceable(tensor: Tensor, node: Node) -> bool:
    """Whether a tensor may be shown another value: nobody shares its memory, and it has no history
    of its own."""
    if _shared(tensor) or type(tensor.accumulator) not in (AccumulateGrad, type(None)):
        return False
    if tensor.accumulator is not None and tensor.accumulator.hooks:
        return False
    marks = node.marks
    if marks is not None and (marks.hooks or marks.slots):
        return False
    return node.op is LEAF or not node.requires_grad


class Slot:
    """A tensor that a step changes, or its gradient, which may be a `fresh` tensor in each step."""

    __slots__ = ("fresh", "gradient", "tensor")

    def __init__(self, tensor: Tensor, gradient: bool, fresh: bool = False):
        self.tensor = tensor
        self.gradient = gradient
        self.fresh = fresh

    @property
    def node(self) -> Node | None:
        if not self.gradient:
            return self.tensor.node
        grad = self.tensor.grad
        return None if grad is None else grad.node

    def put(self, node: Node) -> None:
        """Show `node`, as the leaf or constant that was there."""
        if self.fresh and self.tensor.accumulator is not None:
            self.tensor.accumulator.grad = Tensor(node)
            return
        tensor = self.tensor.grad if self.gradient else self.tensor
        assert tensor is not None
        if tensor.node.requires_grad:
            node = renewed(tensor.node, node if node.value is None else node.value)
        tensor._show(node)


def put(slots: list[Slot], arrays: list[np.ndarray]) -> None:
    """Give slots these values, which may be another step's soon."""
    for slot, array in zip(slots, arrays, strict=True):
        slot.put(constant(array.copy("K")))


def arrays_of(slots: list[Slot]) -> list[np.ndarray] | None:
    """The values of slots; None when one is empty."""
    nodes = [node for node in (slot.node for slot in slots) if node is not None]
    evaluate(nodes)
    return [value_of(node) for node in nodes] if len(nodes) == len(slots) else None


class Held:
    """The tensors of slots as they are now, gradients as the tensors that they are."""

    __slots__ = ("gradients", "nodes")

    def __init__(self, slots: list[Slot]):
        self.nodes = [(s.tensor, s.tensor._node) for s in slots]
        self.gradients = [
            (s.tensor.accumulator, s.tensor.grad, s.tensor.grad._node)
            for s in slots
            if s.gradient and s.tensor.accumulator is not None and s.tensor.grad is not None
        ]

    def restore(self) -> None:
        """Make them what they were."""
        for tensor, node in self.nodes:
            tensor._show(node)
        for accumulator, grad, node in self.gradients:
            accumulator.grad = grad
            grad._show(node)


class Contents:
    """What the containers of a snapshot hold, and what its tensors show that share no memory."""

    __slots__ = ("containers", "snapshot")

    def __init__(self, snapshot: Snapshot):
        self.snapshot = snapshot
        self.containers: dict[int, tuple[Any, list[Any]]] = {}
        for holder, _, part in snapshot.held:
            for value in (holder, part):
                inside = _inside(value)
                if inside is not None and id(inside) not in self.containers:
                    self.containers[id(inside)] = inside, _items(inside)

    def restore(self) -> None:
        """Make them what they were."""
        for inside, items in self.containers.values():
            now = _items(inside)
            if len(now) == len(items) and all(map(_is, now, items)):
                continue
            if isinstance(inside, list):
                inside[:] = items
            else:
                inside.clear()
                inside.update(items)
        for tensor, (node, grad) in self.snapshot.tensors.items():
            if tensor.node is not node and not _shared(tensor):
                tensor._show(node)
            if tensor.grad is not grad and tensor.accumulator is not None:
                tensor.accumulator.grad = grad


def _inside(value: Any) -> Any:
    """The container in which a value holds others."""
    if isinstance(value, Instance):
        return value.fields
    if isinstance(value, UserClass):
        return value.names
    return value if isinstance(value, list | dict | set) else None


def _items(inside: Any) -> list[Any]:
    return list(inside.items() if isinstance(inside, dict) else inside)


def _is(a: Any, b: Any) -> bool:
    if type(a) is tuple and type(b) is tuple:  # a key and its value
        return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
    return a is b


__all__ = [
    "Contents",
    "Held",
    "Slot",
    "Snapshot",
    "arrays_of",
    "drawing_state",
    "drawn",
    "put",
    "put_back",
]
