"""One step of a loop as data: what it reads, the plan of its tensors, the arithmetic of its
numbers, and what it leaves; after it was recorded everything is as it was."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, NamedTuple

import numpy as np

from ...autograd.tensor import Tensor
from ...engine.evaluate import plan
from ...engine.plan.schedule import planned
from ...errors import AutodiffError
from ...graph.node import Node
from ...graph.op import value_of
from ...graph.state import STATE
from ...graph.strides import strides_of
from ...graph.symbolic_numbers import (
    Growing,
    RecordingAborted,
    layout,
    maker,
)
from ..values.values import Scope
from .loop_state import (
    Changes,
    Held,
    Slot,
    Snapshot,
    drawing_state,
    laid,
    named_values,
    put_back,
    same,
)
from .recorder import NUMBER, NUMBERS, SLOT, Names, Recorder

MOST_NODES = 20_000  # a longer step takes long anyway
TIME_OVER = "E508"


def of_step(error: BaseException) -> None:
    """Nothing for an error of a step, which as it is written will say it; the time limit, which
    may be reached anywhere, is none."""
    if isinstance(error, AutodiffError) and error.code == TIME_OVER:
        raise error


class Recorded:
    """A recorded step: `before` is what it found. `each` is how many steps it counts as. `alone`
    is the plan where there is nothing else to do."""

    def __init__(self, recorder: Recorder, item: Any, each: int):
        self.tape = recorder.tape
        self.sources = recorder.sources
        self.slots = recorder.slots
        self.numbers = recorder.numbers
        self.fixed = {
            name: value.of if type(value) is Growing else value
            for name, value in recorder.fixed.items()
        }
        self.before = recorder.before
        self.changes = recorder.changes
        self.draws = recorder.draws
        self.texts = recorder.texts
        self.form = _form(item)
        self.each = each
        names = recorder.names
        self.carried = [self.tape.register(place.get(names)) for place in self.numbers]
        wanted: dict[Node, int] = {}
        self.appended = [
            (growing.of, [Template(value, recorder, wanted) for value in growing.added])
            for growing in recorder.growing
        ]
        nodes = [slot.node(names) for slot in self.slots]
        self.layouts = [layout(n.args[0].array) for n in recorder.arguments]
        targets = [node for node in nodes if node is not None]
        made, given = (
            [(node.shape, node.dtype, strides_of(node)) for node in found]
            for found in (targets, recorder.arguments[: len(nodes)])
        )
        self.strides = [strides for _, _, strides in given]
        if made != given:
            raise RecordingAborted  # the next step would not fit
        targets += [*self.tape.results, *wanted]
        arguments = [*recorder.arguments, *self.tape.fed.values()]
        order, _ = plan(targets)
        self.plan = planned(order, arguments, targets) if targets else None
        if self.plan is not None:
            self.plan.check(STATE.max_bytes)
        tape = self.tape
        numbers = (tape.before, tape.after, tape.fed, tape.results, self.carried)
        self.alone = None if any((*numbers, self.appended, self.texts)) else self.plan

    def stands(self, now: Snapshot, names: dict[str, Any], free: set[str]) -> bool:
        """Whether a step finds what this one did, but for what it is given anew."""
        changes = self.before.changes(now, names, free)
        return (
            changes is not None
            and now.known
            and changes.within(self.changes)
            and all(same(names.get(name), value) for name, value in self.fixed.items())
        )

    def run(self, state: State, item: Any) -> State | None:
        """What the step makes of a state; None when it does not fit, and nothing has happened."""
        leaves: list[Any] = []
        if not _take(item, self.form, leaves, self.changes.shown):
            return None
        arrays = state.arrays
        tape = self.tape
        try:
            if self.alone is not None:
                return State(self.alone.turn(arrays, [])[0], [], [], [])
            given = [
                arrays[what].item()
                if kind == SLOT
                else state.numbers[what]
                if kind == NUMBER
                else leaves[what]
                for kind, what in self.sources
            ]
            values = tape.run(given)
            if values is None:
                return None
            found: list[Any] = []
            if self.plan is not None:
                arrays, found = self.plan.turn(arrays, tape.feed(values))
            count = len(tape.results)
            if not tape.finish(values, found[:count]):
                return None
        except (AutodiffError, MemoryError, OverflowError) as error:
            of_step(error)
            return None
        rest = found[count:]
        added = [[t.make(values, rest) for t in templates] for _, templates in self.appended]
        texts = [text.make(values) for text in self.texts]
        return State(arrays, [values[at] for at in self.carried], added, texts)


class State(NamedTuple):
    """What a step leaves: values of slots, numbers, what it appends to lists, and prints."""

    arrays: list[np.ndarray]
    numbers: list[Any]
    added: list[list[Any]]
    texts: list[str]


def _form(item: Any) -> Any:
    """What an item has to be like."""
    if type(item) in (tuple, list):
        return type(item), [_form(part) for part in item]
    return (type(item), None) if type(item) in (*NUMBERS, Tensor) else (None, item)


def _take(item: Any, form: Any, leaves: list[Any], changed: Container[Tensor]) -> bool:
    """Collect the numbers and arrays of an item; False when it is not like the recorded one."""
    kind, parts = form
    if kind is None:
        return same(item, parts)
    if type(item) is not kind:
        return False
    if kind is Tensor:
        if item.requires_grad or item.tag is not None or item in changed:
            return False
        leaves.append(value_of(item.node))
    elif parts is None:
        leaves.append(item)
    else:
        return len(item) == len(parts) and all(
            _take(part, inner, leaves, changed) for part, inner in zip(item, parts, strict=True)
        )
    return True


class Template:
    """A value that a step appends to a list, made of what it computes."""

    __slots__ = ("make",)

    def __init__(self, value: Any, recorder: Recorder, wanted: dict[Node, int]):
        if type(value) is tuple:
            parts = [Template(part, recorder, wanted).make for part in value]
            self.make: Callable[[list[Any], list[Any]], Any] = lambda numbers, arrays: tuple(
                [part(numbers, arrays) for part in parts]
            )
        elif recorder.is_new(value) and value.node not in wanted:
            number, strides = len(wanted), strides_of(value.node)
            wanted[value.node] = number
            self.make = lambda numbers, arrays: Tensor(laid(arrays[number], strides))
        else:
            make = maker(value)
            self.make = lambda numbers, arrays: make(numbers)


def record(
    scope: Scope, before: Snapshot, changes: Changes, free: set[str], loaded: set[str],
    item: Any, run: Callable[[Any], Any],
) -> Recorded | None:  # fmt: skip
    """Run a step on arguments in place of what differs from step to step; everything is as it was
    then. None when it cannot be done again from these."""
    held = Held(before, scope)
    random = drawing_state()
    steps, warned, depth = STATE.steps, len(STATE.warnings), STATE.depth
    watched = STATE.last, STATE.shown, STATE.shown_span
    STATE.bare.append(STATE.shown)
    allow = STATE.allow
    since = Node.counter()
    names = scope.names
    recorder = Recorder(scope, before, changes)
    try:
        recorder.enter()
        entered = Snapshot(named_values(scope, loaded))
        shown = [(s, s.node(names), s.tensor.grad) for s in recorder.slots if isinstance(s, Slot)]
        given = recorder.item(item)
        scope.names = own = Names(names, free, recorder.ask)
        STATE.recorder, STATE.allow = recorder, recorder.allow
        signal = run(given)
        STATE.recorder, STATE.allow = None, allow
        scope.names = names
        present = free & names.keys()
        names.clear()
        names.update(dict.copy(own))
        if signal is not None or present != free & names.keys():
            return None
        if Node.counter() - since > MOST_NODES or len(STATE.warnings) != warned:
            return None
        if not recorder.only_computed(entered, Snapshot(named_values(scope, loaded)), free):
            return None
        if not recorder.placed_anew(Snapshot(named_values(scope, loaded | free))):
            return None
        for slot, node, grad in shown:
            slot.fresh = slot.gradient and slot.tensor.grad is not grad
            if node is not None and node.marks is not None:
                slot.overwritten = node.marks.overwritten and node.marks.overwritten[0]
        return Recorded(recorder, item, STATE.steps - steps)
    except (Exception, RecordingAborted) as error:
        of_step(error)
        return None
    finally:
        STATE.recorder, STATE.allow = None, allow
        scope.names = names
        STATE.bare.clear()
        held.restore()
        put_back(random)
        del STATE.warnings[warned:]
        STATE.steps, STATE.depth = steps, depth
        STATE.last, STATE.shown, STATE.shown_span = watched
