"""One recorded step: from slots, chosen inputs and numbers to the slots after it and the results
that are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.tensor import Tensor
from ..engine.evaluate import plan
from ..engine.fixed import layout
from ..engine.replay import Recording, looked_at
from ..errors import AutodiffError
from ..graph.node import Node
from ..graph.op import argument, constant, value_of
from ..graph.state import STATE
from ..graph.varying import Aside, Tape, Varying
from .carried import (
    NUMBERS,
    Contents,
    Held,
    Slot,
    Snapshot,
    arrays_of,
    drawing_state,
    drawn,
    drawn_elsewhere,
    put_back,
)
from .housekeeping import HOUSEKEEPING
from .inputs import Inputs
from .reach import harmless
from .step_parts import Late, Parts
from .values import Scope

MOST_NODES = 20_000  # a longer step takes long anyway
TIME_OVER = "E508"
TENSOR, NUMBER, SAME = range(3)

Source = tuple[int, Any]
Given = tuple[list[Any], dict[str, Any]]  # numbers, and the values of names
SLOT, NAME, PLACE = range(3)


def of_step(error: BaseException) -> None:
    """Nothing for an error of a step, which as it is written will say it; the time limit, which
    may be reached anywhere, is none."""
    if isinstance(error, AutodiffError) and error.code == TIME_OVER:
        raise error


class New:
    """What a run gave: the slots' `arrays`, valid until three runs later, results, and the
    registers of numbers; and what it was `given`."""

    __slots__ = ("arrays", "found", "given", "numbers")

    def __init__(
        self, arrays: list[np.ndarray], found: list[Any], given: Given, numbers: list[Any]
    ):
        self.arrays = arrays
        self.given = given
        self.found = found
        self.numbers = numbers


class Recorded:
    """A recorded step; `each` is how many steps it counts as, `looking` the places of statements
    that look at carried tensors."""

    def __init__(self, inputs: Inputs, tape: Tape, recording: Recording, each: int):
        self.inputs = inputs
        self.tape = tape
        self.recording = recording
        self.each = each
        self.now: list[np.ndarray] = []  # the slots' values, after the last complete run
        self.before: list[np.ndarray] | None = None  # and before it
        self.given: Given = [], {}  # and what it read
        self.done = 0
        self.looking: set[int] = set()
        self.layouts: list[tuple[Any, ...]] = []
        self.sources: list[Source] = []
        self.chosen: list[tuple[str, Any]] = []  # names, and the layouts of their values
        self.delivered: dict[int, list[tuple[str, int, Any]]] = {}
        self.changed = {slot.tensor for slot in inputs.slots}

    def fits(self, arrays: list[np.ndarray]) -> bool:
        """Whether slots have the shapes, dtypes and layouts of the recorded step."""
        return [layout(array) for array in arrays] == self.layouts

    @property
    def alone(self) -> bool:
        """Whether the step reads nothing but its slots."""
        return not (self.sources or self.chosen or self.tape.fed or self.inputs.watched)

    def run_on(self, count: int) -> None:
        """Run that many such steps; `now`, `before` and the number `done` keep up with them."""
        self.done = 0
        turns = self.recording.plan.turns
        if turns is None:
            return
        try:
            with np.errstate(all="ignore"):
                while self.done < count:
                    self.now, self.before = turns.step(self.now), self.now
                    self.done += 1
        except (AutodiffError, MemoryError, OverflowError) as error:
            of_step(error)

    def run(self) -> New | None:
        """The step that comes next of `now`; None when the recording does not hold for it."""
        inputs = self.inputs
        if inputs.watched and not inputs.unchanged():
            return None
        arrays = self.now
        known = [self._number(source, arrays) for source in self.sources]
        numbers = self.tape.run(known) if self.tape.values else known
        if numbers is None:
            return None
        rest: list[Any] = []
        if self.chosen:
            names = inputs.scope.names
            for name, wanted in self.chosen:
                value = names.get(name)
                if type(value) is not Tensor or value in self.changed or value.requires_grad:
                    return None
                array = value_of(value.node)
                if layout(array) != wanted:
                    return None
                rest.append(array)
        try:
            if self.tape.fed:
                rest += self.tape.feed(numbers)
            now, found = self.recording.turn(arrays, rest)
        except (AutodiffError, MemoryError, OverflowError) as error:
            of_step(error)
            return None
        names = inputs.scope.names
        return New(now, found, (known, {n: names[n] for n in inputs.names}), numbers)

    def _number(self, source: Source, arrays: list[np.ndarray]) -> Any:
        kind, what = source
        if kind == SLOT:
            return arrays[what].item()
        if kind == NAME:
            return self.inputs.scope.names.get(what)
        holder, key = what
        return holder[key]

    def take(self, new: New) -> None:
        """A run was a step."""
        self.before, self.now, self.given = self.now, new.arrays, new.given

    def start(self, arrays: list[np.ndarray]) -> None:
        """Begin after a step that ran as it is written."""
        self.before, self.now, self.given = None, arrays, ([], {})

    def exchange(self, given: Given) -> Given:
        """Let what the step reads be this; what it was."""
        names = self.inputs.scope.names
        numbers, chosen = given
        were = {name: names[name] for name in chosen}
        names.update(chosen)
        present: list[Any] = []
        for (kind, what), number in zip(self.sources, numbers, strict=True):
            if kind == SLOT:
                present.append(None)
            elif kind == NAME:
                present.append(names[what])
                names[what] = number
            else:
                holder, key = what
                present.append(holder[key])
                holder[key] = number
        return present, were

    def deliver(self, late: Late, new: New) -> None:
        """Let names mean the results that a statement reads."""
        names = self.inputs.scope.names
        for name, kind, what in self.delivered.get(late.place, ()):
            if kind == TENSOR:
                names[name] = Tensor(constant(new.found[what]))
            else:
                names[name] = new.numbers[what] if kind == NUMBER else what


class _Step:
    """A step being recorded."""

    def __init__(self, parts: Parts, scope: Scope, inputs: Inputs, arrays: list[np.ndarray]):
        self.parts = parts
        self.scope = scope
        self.inputs = inputs
        self.tape = Tape()
        self.sources: list[Source] = []
        self.arguments: list[Node] = []
        self.chosen: list[tuple[str, Tensor]] = []
        self.captured: list[tuple[int, str, Any]] = []
        self.numbers: list[tuple[Any, Any, Varying]] = []
        for number, array in enumerate(arrays):
            single = not array.shape and array.dtype.kind in "fiu"
            known = self._take(array.item(), (SLOT, number)) if single else None
            self.arguments.append(argument(array, known))

    def _take(self, value: Any, source: Source) -> Varying:
        self.sources.append(source)
        return self.tape.take(value)

    def enter(self, slots: list[Slot]) -> bool:
        """Put arguments in place of what the step is given; False for what cannot be."""
        names = self.scope.names
        for name in sorted(self.inputs.names):
            value = names.get(name)
            if type(value) in NUMBERS:
                names[name] = self._take(value, (NAME, name))
            elif type(value) is Tensor and not value.requires_grad and value.tag is None:
                node = argument(value_of(value.node))
                self.arguments.append(node)
                names[name] = given = Tensor(node)
                self.chosen.append((name, given))
            else:
                return False
        for holder, key in self.inputs.places:
            number = self._take(holder[key], (PLACE, (holder, key)))
            holder[key] = number
            self.numbers.append((holder, key, number))
        for slot, node in zip(slots, self.arguments, strict=False):
            slot.put(node)
        return True

    def run(self) -> bool:
        """Run the step; whether it only computed."""
        state = drawn(), drawn_elsewhere()
        HOUSEKEEPING.recording = True
        HOUSEKEEPING.allows = harmless
        late = list(self.parts.late)
        try:
            for place, run in self.parts.core:
                while late and late[0].place < place:
                    self._capture(late.pop(0))
                if run(self.scope) is not None:
                    return False
            for one in late:
                self._capture(one)
        except (Exception, Aside) as error:
            of_step(error)
            return False
        finally:
            HOUSEKEEPING.recording = False
            HOUSEKEEPING.allows = None
        if state != (drawn(), drawn_elsewhere()):
            return False
        if any(holder[key] is not number for holder, key, number in self.numbers):
            return False
        return all(
            given.node in self.arguments and given.accumulator is None for _, given in self.chosen
        )

    def _capture(self, late: Late) -> None:
        for name in late.reads:
            if name in self.scope.names:
                value = self.scope.names[name]
                if isinstance(value, Tensor):
                    value = value.node if type(value) is Tensor and value.tag is None else late
                self.captured.append((late.place, name, value))

    def finish(self, slots: list[Slot], each: int) -> Recorded | None:
        """The recording; None when it would not hold for other values."""
        targets = [node for node in (slot.node for slot in slots) if node is not None]
        if len(targets) != len(slots) or not _alike(targets, self.arguments):
            return None
        used: set[int] = set()
        delivered: dict[int, list[tuple[str, int, Any]]] = {}
        wanted: dict[Node, int] = {}
        for place, name, value in self.captured:
            found = delivered.setdefault(place, [])
            if type(value) is Node:
                found.append((name, TENSOR, wanted.setdefault(value, len(wanted))))
            elif type(value) is Varying:
                used.add(value.at)
                found.append((name, NUMBER, value.at))
            elif value is None or isinstance(value, bool | int | float | str):
                found.append((name, SAME, value))
            else:
                return None
        targets += wanted
        arguments = self.arguments + list(self.tape.fed.values())
        if looked_at(arguments):
            return None
        order, _ = plan(targets)
        if len(order) > MOST_NODES or any("draw" in node.op.properties for node in order):
            return None
        recording = Recording(order, arguments, targets)
        try:
            recording.plan.check(STATE.max_bytes)
        except AutodiffError:
            return None
        made = Recorded(self.inputs, self.tape, recording, each)
        made.layouts = [layout(n.args[0].array) for n in self.arguments[: len(slots)]]
        made.chosen = [(name, layout(t.node.args[0].array)) for name, t in self.chosen]
        made.delivered = delivered
        kept = self.tape.prune(used)
        made.sources = [source for source, keep in zip(self.sources, kept, strict=True) if keep]
        return made


def record(
    parts: Parts, scope: Scope, inputs: Inputs, looking: set[int], before: Snapshot
) -> Recorded | None:
    """Run a step on arguments in place of what it is given, and record it; everything is as it was
    `before` then. None when it cannot be replayed."""
    slots = inputs.slots
    arrays = arrays_of(slots)
    if arrays is None:
        return None
    held = Held(slots)
    contents = Contents(before)
    touched = parts.names | parts.outer | parts.late_names | inputs.names
    names = {name: scope.names[name] for name in touched if name in scope.names}
    numbers = [(holder, key, holder[key]) for holder, key in inputs.places]
    steps = STATE.steps
    since = Node.counter()
    step = _Step(parts, scope, inputs, arrays)
    random = drawing_state()
    try:
        if not step.enter(slots) or not step.run() or Node.counter() - since > MOST_NODES:
            return None
        recorded = step.finish(slots, STATE.steps - steps + 1)
    finally:
        STATE.steps = steps
        put_back(random)
        held.restore()
        contents.restore()
        for holder, key, value in numbers:
            holder[key] = value
        for name in touched:
            if name in names:
                scope.names[name] = names[name]
            else:
                scope.names.pop(name, None)
    if recorded is not None:
        recorded.looking = looking
    return recorded


def _alike(targets: list[Node], arguments: list[Node]) -> bool:
    """Whether slots have the same shapes and dtypes as before the step."""
    return all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(targets, arguments, strict=False)
    )


__all__ = ["New", "Recorded", "of_step", "record"]
