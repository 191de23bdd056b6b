"""What a step of a loop is given and does while it is recorded.

It runs on arguments in place of tensors and numbers that differ from step to step. Whatever could
not be done again from these ends the recording (`RecordingAborted`), before it has an effect.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any

import numpy as np

from ...autograd.tensor import Tensor
from ...engine.evaluate import evaluate, plan
from ...engine.plan.schedule import planned
from ...graph.node import Node
from ...graph.op import ARGUMENT, argument, constant, looked_at, value_of
from ...graph.state import STATE
from ...graph.strides import strides_of
from ...graph.symbolic_numbers import (
    Growing,
    Later,
    RecordingAborted,
    Tape,
    Unread,
    Varying,
)
from ..values.values import Scope
from .harmless import TOLD, harmless
from .loop_state import (
    SIMPLE,
    Changes,
    Place,
    Slot,
    Snapshot,
    drawn,
    is_plain,
    same,
)

NUMBERS = (int, float)
SLOT, NUMBER, ITEM = range(3)

Source = tuple[int, int]  # where a number or array from outside is


class Names(dict):
    """The names of a scope while a step is recorded. What was there before the step of the names
    that it assigns is `asked` for when it is read first."""

    __slots__ = ("ask", "asked")

    def __init__(self, names: dict[str, Any], asked: set[str], ask: Callable[[str, Any], Any]):
        super().__init__(names)
        self.asked = asked & names.keys()
        self.ask = ask

    def __getitem__(self, name: str) -> Any:
        if name in self.asked:
            self[name] = self.ask(name, super().__getitem__(name))
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name."""
        if name in self.asked:
            return self[name]
        return super().get(name, default)

    def __setitem__(self, name: str, value: Any) -> None:
        self.asked.discard(name)
        super().__setitem__(name, value)

    def pop(self, name: str, *default: Any) -> Any:
        """Delete a name that the step assigned."""
        if name in self.asked:
            raise RecordingAborted
        return super().pop(name, *default)


class Recorder:
    """What a step reads and does, while it is recorded."""

    def __init__(self, scope: Scope, before: Snapshot, changes: Changes):
        self.scope = scope
        self.names = scope.names
        self.before = before
        self.tape = Tape()
        self.sources: list[Source] = []
        self.slots: list[Slot | Place] = []
        self.arguments: list[Node] = []
        self.numbers: list[Place] = []
        self.fixed: dict[str, Any] = {}
        self.given: list[Tensor] = []
        self.copied: list[tuple[Any, list[Any]]] = []  # lists of the item, what is in them
        self.placed: dict[Tensor, int] = {}  # which slot's tensor each stands for
        self.viewed: list[tuple[Tensor, Node]] = []
        self.growing: list[Growing] = []
        self.changes = changes
        self.texts: list[Later] = []
        self.leaves = 0
        self.looked = 0  # nodes that were computed for numbers, as often as they were
        self.since = Node.counter()
        self.draws = False
        self.stood = drawn()
        self.generator = STATE.default_generator

    # -- what the step is given -------------------------------------------------------------------

    def enter(self) -> None:
        """Put arguments in place of what differs from step to step."""
        slots: list[Slot | Place] = []
        for tensor, value in self.changes.shown.items():
            if value:
                slots.append(Slot(tensor, False))
            if tensor.grad is not None:
                slots.append(Slot(tensor, True))
        slots.extend(Place(*where) for where in self.changes.tensors.values())
        nodes = [slot.node(self.names) for slot in slots]
        if any(node is None for node in nodes):
            raise RecordingAborted
        # Before one of them is an argument, which is all that others would be computed from.
        evaluate([node for node in nodes if node is not None])
        for slot, node in zip(slots, nodes, strict=True):
            if isinstance(slot, Place):
                slot.set(self.names, self._placed(slot, node))
            else:
                slot.put(self.names, self._slot(slot, node))
        for where in self.changes.numbers.values():
            place = Place(*where)
            place.set(self.names, self._number(place, place.get(self.names)))
        for values in self.changes.grown.values():
            self._replace(values)
        for holder, key in self.changes.unread.values():
            holder[key] = Unread()  # also where a list that grows was: another one may be there

    def _slot(self, slot: Slot | Place, node: Any) -> Node:
        made = argument(value_of(node))
        made.strides = strides_of(node)
        self.slots.append(slot)
        self.arguments.append(made)
        return made

    def _placed(self, place: Place, node: Any) -> Tensor:
        tensor = self._tensor(self._slot(place, node))
        self.placed[tensor] = len(self.slots) - 1
        return tensor

    def _number(self, place: Place, value: Any) -> Varying:
        self.sources.append((NUMBER, len(self.numbers)))
        self.numbers.append(place)
        return self.tape.take(value)

    def _replace(self, values: list[Any]) -> None:
        """Let a list be one that can only grow, wherever it is."""
        growing = Growing(values)
        self.growing.append(growing)
        entries = [e for _, parts in self.before.values.values() for e in parts]
        for holder, key, part in [*self.before.roots, *entries]:
            if part is values:
                if not isinstance(holder, dict | list):
                    raise RecordingAborted
                holder[key] = growing

    def ask(self, name: str, value: Any) -> Any:
        """The value of a name from before the step, which assigns it."""
        if type(value) in NUMBERS:
            return self._number(Place(None, name), value)
        if name in self.changes.rebound and self._free(value):
            evaluate([value.node])
            return self._placed(Place(None, name), value.node)
        self.fixed[name] = value
        return value

    def _free(self, value: Any) -> bool:
        """Whether a tensor may be another one with the same numbers."""
        return is_plain(value) and value not in self.changes.shown

    def _tensor(self, node: Node) -> Tensor:
        """A tensor that stands for one that the step may only read."""
        tensor = Tensor(node)
        self.given.append(tensor)
        return tensor

    def item(self, value: Any) -> Any:
        """An item of the loop, with what differs from step to step as arguments."""
        if type(value) in NUMBERS:
            self._leaf()
            return self.tape.take(value)
        if type(value) is Tensor:
            if value.requires_grad or value.tag is not None or value in self.changes.shown:
                raise RecordingAborted
            self._leaf()
            return self._tensor(self.tape.take_array(value_of(value.node)))
        if type(value) in (tuple, list):
            parts = [self.item(part) for part in value]
            made = type(value)(parts)
            self.copied.append((made, parts))
            return made
        if type(value) in SIMPLE:
            return value
        raise RecordingAborted

    def _leaf(self) -> None:
        self.sources.append((ITEM, self.leaves))
        self.leaves += 1

    def is_new(self, value: Any) -> bool:
        """Whether the step made a tensor that nobody else has: no gradient that it added to."""
        known = self.before.tensors
        return (
            self._free(value)
            and value not in known
            and value not in self.given
            and all(shown.grad is not value for shown in known.values())
        )

    # -- what it does -----------------------------------------------------------------------------

    def allow(self, name: str, function: Callable[..., Any]) -> None:
        """Called before a function written in Python is."""
        if name not in TOLD and not harmless(name, function):
            raise RecordingAborted

    def identity(self, *values: Any) -> None:
        """Called before values are told apart by what they are, not by what they hold: whether
        these are one object, or are the key of a dict. What stands for another value is none, and
        which numbers are one object nobody knows."""
        stand_ins = [*self.given, *[made for made, _ in self.copied]]
        if any(isinstance(value, Unread) for value in values) or (
            any(type(value) is Varying for value in values)
            and all(isinstance(value, Varying | int | float) for value in values)
        ):
            raise RecordingAborted
        if any(value is one for value in values for one in stand_ins) and not any(
            type(value) in SIMPLE for value in values
        ):
            raise RecordingAborted

    def depends(self, node: Node) -> bool:
        """Whether a value may be another one in the next step."""
        return any(n.op is ARGUMENT for n in plan([node])[0])

    def number(self, node: Node) -> Any:
        """The number in a node."""
        if node in self.arguments and not node.shape and node.dtype.kind in "fiu":
            given = node.args[0]
            if given.number is None:
                self.sources.append((SLOT, self.arguments.index(node)))
                given.number = self.tape.take(given.array.item())
            return given.number
        order, _ = plan([node])
        arguments = [n for n in order if n.op is ARGUMENT]
        if not arguments:
            return value_of(node).item()
        self.looked += len(order)
        if self.looked > 1000 + 5 * (Node.counter() - self.since):
            raise RecordingAborted  # each number is computed from the start, which takes long
        (found,) = planned(order, arguments, [node]).run([n.args[0].array for n in arguments])
        return self.tape.result(node, found.item())

    def only_computed(self, before: Snapshot, after: Snapshot, free: set[str]) -> bool:
        """Whether the step changed nothing but what it leaves to the next one."""
        changes = before.changes(after, self.names, free)
        return (
            changes is not None
            and after.known
            and changes.within(self.changes)
            and not changes.grown
            and self.stood == drawn()
            and not looked_at([*self.arguments, *self.tape.fed.values()])
            and all(same(self.names.get(name), value) for name, value in self.fixed.items())
            and all(self._only_read(tensor) for tensor in self.given)
            and all(
                len(made) == len(parts) and all(map(is_, made, parts))
                for made, parts in self.copied
            )
            and all(tensor.looked_at is node for tensor, node in self.viewed)
        )

    def placed_anew(self, left: Snapshot) -> bool:
        """Whether the tensors that places have may be copies before the last step is run again:
        those that it moves are of an earlier step, and are nowhere else. What a step leaves in its
        place stays. `left` is all that can be reached after it."""
        added = Snapshot([(None, 0, growing.added) for growing in self.growing]).tensors
        ends = {}
        for tensor, at in self.placed.items():
            place = self.slots[at]
            assert isinstance(place, Place)
            ends[tensor] = place.get(self.names)
            self.slots[at] = place._replace(stays=ends[tensor] is tensor)
        origins = set()
        moved = [t for t, end in ends.items() if end is not t and t in left.tensors]
        for tensor in moved:
            steps = 0
            while tensor in ends and steps <= len(ends):
                tensor, steps = ends[tensor], steps + 1
            if not self.is_new(tensor) or tensor in added:
                return False
            origins.add((tensor, steps))
        return len(origins) == len(moved) and all(map(self._free, ends.values()))

    def _only_read(self, tensor: Tensor) -> bool:
        node = tensor.node
        return tensor.accumulator is None and (node in self.arguments or node in self.tape.places)

    def draw(self, draw: Callable[[], np.ndarray], requires_grad: bool) -> Tensor:
        """Random numbers of the default generator, drawn anew in every step."""
        self.draws = True
        known = STATE.default_generator is self.generator and self.stood == drawn()
        if requires_grad or not known:
            raise RecordingAborted
        found = self._chosen(draw, ())
        self.stood = drawn()
        return found

    def _chosen(self, function: Callable[..., np.ndarray], registers: tuple[int, ...]) -> Tensor:
        return self._tensor(self.tape.array(function, registers))

    def pick(self, value: Any, key: Any, read: Callable[[Any, Any], Any]) -> Any:
        """`value[key]` for a key that differs from step to step; None where the key does not."""
        registers: list[int] = []
        make = self._key(key, registers)
        if not registers:
            return None
        if isinstance(value, list | tuple):
            return self._picked(value, key)
        if type(value) is not Tensor or value.requires_grad:
            raise RecordingAborted
        if self.depends(value.node):
            raise RecordingAborted
        evaluate([value.node])
        base = Tensor(constant(value_of(value.node)))
        if isinstance(key, Tensor | list):
            return self._chosen(
                lambda *given: _read(read, base, make(list(given))), tuple(registers)
            )
        self.viewed.append((value, value.looked_at))
        array = value_of(value.node)
        return self._chosen(lambda *given: array[make(list(given))], tuple(registers))

    def _key(self, key: Any, registers: list[int]) -> Callable[[list[Any]], Any]:
        """What makes the key of numbers and arrays; `registers` get where these are."""
        if type(key) is Varying:
            registers.append(key.at)
            return lambda given: given.pop(0)
        if type(key) is slice:
            if type(key.step) is Varying:
                raise RecordingAborted
            ends = [self._key(end, registers) for end in (key.start, key.stop)]
            return lambda given: slice(ends[0](given), ends[1](given), key.step)
        if type(key) in (tuple, list):
            kind = type(key)
            parts = [self._key(part, registers) for part in key]
            return lambda given: kind([part(given) for part in parts])
        if type(key) is Tensor and key.node in self.tape.places:
            registers.append(self.tape.places[key.node])
            return lambda given: Tensor(constant(given.pop(0)))
        return lambda given: key

    def _picked(self, values: Any, key: Any) -> Any:
        """An item of a list of numbers, or of plain tensors."""
        if type(key) is not Varying or id(values) not in self.before.values:
            raise RecordingAborted
        if all(type(x) in NUMBERS for x in values):
            return self.tape.apply(lambda at: values[at], key)
        if not all(type(x) is Tensor and x in self.before.tensors for x in values):
            raise RecordingAborted
        if any(x.requires_grad or x in self.changes.shown for x in values):
            raise RecordingAborted
        evaluate([x.node for x in values])
        arrays = [value_of(x.node) for x in values]
        return self._chosen(lambda at: arrays[at], (key.at,))


def _read(read: Callable[[Any, Any], Any], tensor: Tensor, key: Any) -> np.ndarray:
    node = read(tensor, key).node
    evaluate([node])
    return value_of(node)
