"""What a step of a loop leaves to the next one: what it can reach before and after, and where that
differs.

Objects are compared themselves, not by their ids: what was let go could come back under its id.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from operator import attrgetter
from sys import getrefcount
from typing import Any, NamedTuple
from weakref import ref as weakref

import numpy as np

from ...autograd.reverse import Pass
from ...autograd.storage import mark_overwritten, renewed
from ...autograd.tensor import AccumulateGrad, Tensor
from ...autograd.views import NO_STEPS
from ...graph.node import Node
from ...graph.op import LEAF, constant
from ...graph.state import STATE
from ...graph.strides import Strides, strides_of
from ...graph.symbolic_numbers import Unread, Varying
from ..values.user_classes import Object, UserClass
from ..values.values import Scope
from .reachability import PLAIN, Entry, Reach, named

NUMBERS = (int, float, Varying)
SIMPLE = (bool, str, type(None))
FIXED = (*SIMPLE, int, np.dtype)  # what never changes


class Shown(NamedTuple):
    """What a tensor shows, and its gradient."""

    node: Node
    accumulator: AccumulateGrad | None
    grad: Tensor | None
    grad_node: Node | None


class Snapshot:
    """All that can be reached from some values; `known` is False when something hides what it
    holds. `grown` are lists that are not looked into."""

    def __init__(self, roots: list[Entry], grown: Container[int] = ()):
        reach = Reach()
        self.roots = roots
        self.grown = grown
        self.values: dict[int, tuple[Any, list[Entry]]] = {}
        self.tensors: dict[Tensor, Shown] = {}
        self.settings = settings()
        pending = [value for _, _, value in roots]
        while pending:
            value = pending.pop()
            if isinstance(value, Tensor):
                grad = value.grad
                grad_node = None if grad is None else grad.node
                self.tensors[value] = Shown(value.looked_at, value.accumulator, grad, grad_node)
            elif not isinstance(value, PLAIN) and id(value) not in self.values:
                parts = [] if id(value) in grown else list(reach.parts(value))
                self.values[id(value)] = value, parts
                pending.extend([part for _, _, part in parts])
        self.known = reach.known

    def changes(self, new: Snapshot, names: dict[str, Any], free: set[str]) -> Changes | None:
        """What differs in the `new` one; None when it is more than numbers, values of tensors, and
        lists that grew. The `free` ones of `names` may mean anything."""
        if self.settings != new.settings or len(self.roots) != len(new.roots):
            return None
        found = Changes()
        pending = [(self.roots, new.roots)]
        seen: set[int] = set()
        while pending:
            for (_, key, before), (holder, now_key, now) in zip(*pending.pop(), strict=True):
                if not same(key, now_key):
                    return None
                if before is now:
                    if isinstance(now, Tensor):
                        if not found.compare(now, self.tensors[now], new.tensors[now]):
                            return None
                    elif id(now) in new.values and id(now) not in seen:
                        seen.add(id(now))
                        parts = self.values[id(now)][1], new.values[id(now)][1]
                        if id(now) in new.grown:
                            found.grown[id(now)] = now
                        elif len(parts[0]) == len(parts[1]):
                            pending.append(parts)
                        elif not _grew(now, *parts):
                            return None
                        else:
                            found.grown[id(now)] = now
                elif same(before, now):
                    continue
                elif holder is names and key in free:
                    found.rebound.add(key)
                elif holder is None:
                    return None
                elif type(before) in NUMBERS and type(now) in NUMBERS:
                    found.numbers[id(holder), key] = holder, key
                elif is_plain(before) and is_plain(now):
                    found.tensors[id(holder), key] = holder, key
                elif type(now) is not Unread and type(before) in (type(now), Unread):
                    found.unread[id(holder), key] = holder, key
                else:
                    return None
        return found


def named_values(scope: Scope, names: Iterable[str]) -> list[Entry]:
    """What names mean to a step."""
    found = [(name, *named(name, scope)) for name in sorted(names)]
    return [(at.names, name, value) for name, at, value in found if at is not None]


class Changes:
    """Where numbers and tensors were replaced, by holder and key; the tensors that show something
    else, with whether it is their value or only their gradient; lists that grew; names and places
    (`unread`) that hold something else."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self.tensors: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self.unread: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self.places = self.numbers, self.tensors, self.unread
        self.shown: dict[Tensor, bool] = {}
        self.grown: dict[int, list[Any]] = {}
        self.rebound: set[str] = set()

    def compare(self, tensor: Tensor, before: Shown, now: Shown) -> bool:
        """Note whether a tensor changed; False when a step could not be told from it."""
        node = now.node
        if not _plain_history(tensor) or (before.grad is None) is not (now.grad is None):
            return False
        if node is before.node and now.grad_node is before.grad_node and now.grad is before.grad:
            return True
        old = before.node
        facts = attrgetter("shape", "dtype", "requires_grad")
        alike = facts(old) == facts(node)
        if not alike or now.accumulator is not before.accumulator or _shared(tensor):
            return False
        if now.grad is not None and (now.grad.requires_grad or _shared(now.grad)):
            return False
        self.show(tensor, node is not old)
        return True

    def show(self, tensor: Tensor, value: bool) -> None:
        """Note that a tensor shows another value, or has another gradient."""
        if value or tensor not in self.shown:
            self.shown[tensor] = value

    def add(self, other: Changes) -> None:
        """Note what changed at another time."""
        for mine, its in zip(self.places, other.places, strict=True):
            mine.update(its)
        self.grown.update(other.grown)
        for tensor, value in other.shown.items():
            self.show(tensor, value)

    def reached(self, snapshot: Snapshot) -> Changes:
        """What of it can be reached from there: what a step could before may be out of reach."""
        found = Changes()
        inside = [entry for _, parts in snapshot.values.values() for entry in parts]
        holders = {id(holder) for holder, _, _ in (*snapshot.roots, *inside)}
        for mine, its in zip(self.places, found.places, strict=True):
            its.update({key: place for key, place in mine.items() if key[0] in holders})
        found.shown = {t: value for t, value in self.shown.items() if t in snapshot.tensors}
        found.grown = {at: v for at, v in self.grown.items() if at in snapshot.values}
        found.rebound = self.rebound
        return found

    def apart(self, other: Snapshot) -> bool:
        """Whether nothing that changed can be reached from there."""
        holders = {id(holder) for _, parts in other.values.values() for holder, _, _ in parts}
        changing = {id(holder) for places in self.places for holder, _ in places.values()}
        return (
            changing.isdisjoint(holders)
            and self.grown.keys().isdisjoint(other.values)
            and self.shown.keys().isdisjoint(other.tensors)
        )

    def within(self, other: Changes) -> bool:
        """Whether nothing changed but what did there."""
        return (
            all(a.keys() <= b.keys() for a, b in zip(self.places, other.places, strict=True))
            and self.grown.keys() <= other.grown.keys()
            and all(
                tensor in other.shown and value <= other.shown[tensor]
                for tensor, value in self.shown.items()
            )
        )


# What running changes by itself.
RUNNING = frozenset(
    """
    allow bare began default_generator depth differentiated files garbage handled last look made
    mark max_bytes max_depth max_steps observer only over overrides overwriting printing recorder
    replaced shown shown_span span steps streams unequal warnings write wrt
    """.split()  # noqa: SIM905 - shorter than a list
)


def settings() -> list[Any]:
    """What a program has set for all that follows."""
    found: list[Any] = [Pass.hooked]
    for name, value in vars(STATE).items():
        if name in RUNNING:
            continue
        if isinstance(value, list):
            found.append([*map(id, value)])
        else:
            found.append(value if isinstance(value, FIXED) else repr(value))
    return found


def _grew(value: Any, before: list[Entry], now: list[Entry]) -> bool:
    """Whether a list has got more at its end."""
    first = now[: len(before)]
    return type(value) is list and [id(v) for _, _, v in first] == [id(v) for _, _, v in before]


def same(a: Any, b: Any) -> bool:
    """Whether values are the same object, or equal and never change."""
    kinds = (int, float, *SIMPLE)
    return a is b or (type(a) is type(b) and type(a) in kinds and repr(a) == repr(b))


def is_plain(value: Any) -> bool:
    """Whether a value is a tensor that is nothing but its numbers, and has them alone."""
    if type(value) is not Tensor or value.requires_grad or value.accumulator is not None:
        return False
    return value.tag is None and not _looked_at(value)


def _plain_history(tensor: Tensor) -> bool:
    """Whether a tensor is no result of anything, and has no hooks."""
    node = tensor.looked_at  # what cannot be used is in a loop that does not use it
    if node.requires_grad and node.op is not LEAF:
        return False
    accumulator = tensor.accumulator
    if type(accumulator) not in (AccumulateGrad, type(None)):
        return False
    return accumulator is None or not accumulator.hooks


def _shared(tensor: Tensor) -> bool:
    """Whether another tensor may look at the same memory."""
    tensor.settle()
    return bool(tensor.steps) or _looked_at(tensor)


def _looked_at(tensor: Tensor) -> bool:
    """Whether another tensor has the same memory, besides those that bare expressions gave."""
    if tensor.storage is None:
        return False
    bare = {id(v): v for v in (STATE.shown, *STATE.bare) if v is not tensor}
    others = sum(isinstance(v, Tensor) and v.storage is tensor.storage for v in bare.values())
    return getrefcount(tensor.storage) > 2 + others


class Slot:
    """The value of a tensor that steps change, or its gradient, which may be a `fresh` tensor after
    each step."""

    __slots__ = ("fresh", "gradient", "overwritten", "tensor")

    def __init__(self, tensor: Tensor, gradient: bool):
        self.tensor = tensor
        self.gradient = gradient
        self.fresh = False
        self.overwritten: Any = None  # where a step changes the tensor in place

    def node(self, names: dict[str, Any]) -> Node | None:
        """What is shown there."""
        if not self.gradient:
            return self.tensor.node
        grad = self.tensor.grad
        return None if grad is None else grad.node

    def put(self, names: dict[str, Any], node: Node) -> None:
        """Show `node`, as the leaf or constant that was there."""
        if self.fresh and self.tensor.accumulator is not None:
            self.tensor.accumulator.grad = Tensor(node)
            return
        tensor = self.tensor.grad if self.gradient else self.tensor
        assert tensor is not None
        old = tensor.node
        if self.overwritten is not None:  # as the steps say that were not run
            STATE.span, span = self.overwritten, STATE.span
            mark_overwritten(old, None, tensor.version)
            STATE.span = span
        if old.requires_grad:
            given, node = node, renewed(old, node if node.value is None else node.value)
            node.strides = strides_of(given)
        tensor._show(node)


class Place(NamedTuple):
    """Where a container holds another number or tensor after each step; None is for names. One that
    `stays` is what it was before."""

    holder: Any
    key: Any
    stays: bool = False

    def get(self, names: dict[str, Any]) -> Any:
        """What is there; None for nothing."""
        holder = names if self.holder is None else self.holder
        return holder[self.key] if type(holder) is list else holder.get(self.key)

    def set(self, names: dict[str, Any], value: Any) -> None:
        """Let another value be there."""
        (names if self.holder is None else self.holder)[self.key] = value

    def node(self, names: dict[str, Any]) -> Node | None:
        """What the tensor there shows; None for none that is nothing but its numbers."""
        value = self.get(names)
        return value.node if is_plain(value) else None

    def put(self, names: dict[str, Any], node: Node) -> None:
        """Let a tensor that shows `node` be there."""
        if not self.stays:
            self.set(names, Tensor(node))


def put(
    slots: list[Slot | Place], names: dict[str, Any], arrays: list[np.ndarray],
    strides: list[Strides],
) -> None:  # fmt: skip
    """Give slots these values, which may be another step's soon."""
    for slot, array, own in zip(slots, arrays, strides, strict=True):
        slot.put(names, laid(array.copy("K"), own))


def laid(array: np.ndarray, strides: Strides) -> Node:
    """A constant of which PyTorch has these strides."""
    node = constant(array)
    node.strides = strides
    return node


class Held:
    """Everything that is in reach, as it is now."""

    def __init__(self, snapshot: Snapshot, scope: Scope):
        self.containers: dict[int, tuple[Any, Any]] = {}
        self.objects: dict[int, tuple[Any, dict[str, Any]]] = {}
        # A tensor's memory counts who looks at it, therefore nothing here holds it.
        self.memory: list[tuple[Tensor, Any, dict[str, Any]]] = []
        self.marks: list[tuple[Node, Any]] = []
        for value, parts in snapshot.values.values():
            for holder in [_inside(value), *[holder for holder, _, _ in parts]]:
                self._contents(holder)
        at: Scope | None = scope
        while at is not None:
            self._contents(at.names)
            at = at.outer
        for tensor, shown in snapshot.tensors.items():
            for part in (tensor, shown.grad):
                if part is not None:
                    self._fields(part)
                    self._fields(part.accumulator)
                    self._marked(part.node)
                    if part.storage is not None:
                        self._marked(part.storage.node)
                        fields = _fields(part.storage)
                        self._contents(fields["apart"])
                        self.memory.append((part, weakref(part.storage), fields))

    def _contents(self, value: Any) -> None:
        if isinstance(value, list | dict | set) and id(value) not in self.containers:
            self.containers[id(value)] = value, value.copy()

    def _marked(self, node: Any) -> None:
        while type(node) is Node:
            self.marks.append((node, node.marks))
            self._fields(node.marks)
            node = node.body

    def _fields(self, value: Any) -> None:
        fields = _fields(value)  # none of None and of what is freed
        if isinstance(value, Tensor) and value.storage is not None:
            del fields["storage"]
        for field in fields.values():
            self._contents(field)
        self.objects[id(value)] = value, fields

    def restore(self) -> None:
        """Make everything what it was."""
        for value, contents in self.containers.values():
            if isinstance(value, list):
                value[:] = contents
            else:
                value.clear()
                value.update(contents)
        for value, fields in self.objects.values():
            for name, field in fields.items():
                setattr(value, name, field)
        for node, marks in self.marks:
            node.marks = marks
        for tensor, storage, fields in self.memory:
            tensor.storage = storage()
            if tensor.storage is None:  # nobody else looked at it
                tensor.steps, tensor.seen = NO_STEPS, 0
            else:
                for name, field in fields.items():
                    setattr(tensor.storage, name, field)


def _fields(value: Any) -> dict[str, Any]:
    names = [n for kind in type(value).__mro__ for n in getattr(kind, "__slots__", ())]
    return {n: getattr(value, n) for n in names if n != "__weakref__" and hasattr(value, n)}


def _inside(value: Any) -> Any:
    """The container in which a value holds others."""
    if isinstance(value, Object):
        return value.fields
    if isinstance(value, UserClass):
        return value.names
    return value


def drawing_state() -> tuple[Any, Any, list[Any]]:
    """The generator of random numbers, and where it and the other generators stand."""
    generator = STATE.default_generator
    where = None if generator is None else generator.get_state()
    return generator, where, [stream.state() for stream in STATE.streams.values()]


def put_back(state: tuple[Any, Any, list[Any]]) -> None:
    """Let the generators stand where they stood."""
    STATE.default_generator, where, others = state
    if where is not None:
        STATE.default_generator.set_state(where)
    for stream, stood in zip(STATE.streams.values(), others, strict=False):
        if stream.draws != stood[0]:
            stream.put_back(stood)


def drawn() -> Any:
    """Where the generators of random numbers stand, to be compared."""
    others = [stream.draws for stream in STATE.streams.values()]
    generator = STATE.default_generator
    if generator is None:
        return others
    seed, words, kept = generator.get_state()
    state = words["state"]
    return seed, kept, state["pos"], state["key"].tobytes(), others
