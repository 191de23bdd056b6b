"""Training loops whose steps repeat: a step is recorded as a plan, and the plan runs instead of the
program.

A step is replayed on a state of its own: arrays, numbers, and what it appends to lists. Names,
containers, tensors, gradients and generators of the program are not touched by it. When a step does
not fit, or the loop ends, these are given the state before the last replayed step, and this step
and the next one run as they are written. docs/decisions/0010-steps-on-a-state-of-their-own.md says
why this is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ...autograd.tensor import Tensor
from ...engine.evaluate import evaluate
from ...graph.op import value_of
from ...graph.state import STATE, packs
from ...graph.strides import strides_of
from ...graph.symbolic_numbers import layout
from ..runtime.replay_gate import CONTINUE, Assign, Body, Repeated
from ..values.housekeeping import HOUSEKEEPING
from ..values.iterators import Lazy
from ..values.user_classes import Object
from ..values.values import Builtin, Scope
from .loop_state import Changes, Snapshot, drawing_state, named_values, put, put_back
from .recorded_step import Recorded, State, record

MOST_TRIES = 6  # recordings of one run of a loop
MOST_LOOKS = 12  # at what steps leave without a recording that holds
MOST_IDLE = 12  # runs in a row that replayed nothing
MOST_LEFT = 4  # departures, where fewer than twice as many steps were replayed


class Last(NamedTuple):
    """The last replayed step: its item, and what it found; `steps` is how many were counted."""

    item: Any
    state: State
    steps: int
    random: Any


class Replay:
    """Steps that are replayed one after another."""

    def __init__(self, recorded: Recorded, scope: Scope):
        self.recorded = recorded
        self.scope = scope
        names = scope.names
        nodes = [slot.node(names) for slot in recorded.slots]
        self.fits = all(node is not None for node in nodes)
        evaluate([node for node in nodes if node is not None])
        arrays = [value_of(node) for node in nodes if node is not None]
        strides = [strides_of(node) for node in nodes if node is not None]
        numbers = [place.get(names) for place in recorded.numbers]
        self.fits = self.fits and [layout(array) for array in arrays] == recorded.layouts
        self.fits = self.fits and strides == recorded.strides
        self.first = self.now = State(arrays, numbers, [], [])
        self.last: Last | None = None
        self.added: list[list[Any]] = [[] for _ in recorded.appended]
        self.grown: list[tuple[list[Any], int, list[Any]]] = []  # from which length, by what
        self.unsaid: list[str] = []
        self.count = 0

    def step(self, item: Any) -> bool:
        """Replay a step; False when it does not fit."""
        recorded = self.recorded
        steps = STATE.steps
        if steps + recorded.each > STATE.max_steps:
            return False
        random = drawing_state() if recorded.draws else None
        found = recorded.run(self.now, item)
        if found is None:
            if random is not None:
                put_back(random)
            return False
        last = Last(item, self.now, steps, random)
        grown = [(x, len(x), more) for x, more in zip(self.added, self.now.added, strict=False)]
        said = list(self.now.texts)
        # An interruption arrives after a call or at the end of a turn: this is done as one.
        self.last, self.now, self.grown, self.unsaid = last, found, grown, said
        STATE.steps = steps + recorded.each
        self.count += 1
        self._follow()
        return True

    def _follow(self) -> None:
        """What the last step but one appends and prints; what was appended may be so again."""
        for values, length, more in self.grown:
            values[length:] = more
        while self.unsaid:
            STATE.write(self.unsaid.pop(0))

    def restore(self) -> Last | None:
        """Give the program the state before the last replayed step."""
        last = self.last
        if last is None:
            return None
        self._follow()
        names = self.scope.names
        if last.state is not self.first:
            recorded = self.recorded
            put(recorded.slots, names, last.state.arrays, recorded.strides)
            for place, number in zip(recorded.numbers, last.state.numbers, strict=True):
                place.set(names, number)
            for (values, _), more in zip(recorded.appended, self.added, strict=True):
                values.extend(more)
        self.last = None
        return last


class Run:
    """One run of such a loop; `signal` is that of a step that left it."""

    def __init__(
        self, loop: Repeated, scope: Scope, items: Iterator[Any], assign: Assign, body: Body
    ):
        self.loop = loop
        self.scope = scope
        self.items = items
        self.assign = assign
        self.body = body
        self.signal: Any = None
        self.most = STATE.max_steps
        self.kept: Recorded | None = None
        self.replay: Replay | None = None
        self.source: Snapshot | None = None
        self.before: Snapshot | None = None
        self.changes: Changes | None = None  # between the last two steps; None: they differed
        self.known: Changes | None = None  # of all steps so far
        self.tries = self.looks = self.left = self.replayed = 0

    def steps(self, source: Any) -> Any:
        """Run steps until the loop ends, is left, or is not worth it; the signal."""
        values = _gone_through(source)
        self.source = None if values is None else Snapshot([(None, 0, v) for v in values])
        if self.source is None or not self.source.known:
            return None
        loop = self.loop
        try:
            with suppress(IndexError):
                self.kept = loop.kept.pop()  # nobody else runs it meanwhile
            if self.kept is not None:
                self._look()
            for item in self.items:
                if self.replay is None and self.changes is not None:
                    self._record(item)
                if self.replay is not None:
                    if self.replay.step(item):
                        HOUSEKEEPING.after_step(self.scope)
                        continue
                    self._settle()
                    self.left += 1
                self._as_written(item)
                if self.signal is not None:
                    return self.signal
                self._look()
                if loop.refused:
                    return None
            return None
        finally:
            self._settle()
            loop.idle = 0 if self.replayed else loop.idle + 1
            loop.refused = loop.refused or loop.idle > MOST_IDLE
            if self.kept is not None:
                loop.kept[:] = [self.kept]

    def _as_written(self, item: Any) -> None:
        self.assign(self.scope, item)
        signal = self.body(self.scope)
        if signal is not None and signal is not CONTINUE:
            self.signal = signal
        HOUSEKEEPING.after_step(self.scope)

    def _settle(self) -> None:
        """Let everything be as the last replayed step leaves it."""
        replay, self.replay = self.replay, None
        last = None if replay is None else replay.restore()
        if replay is None or last is None:
            return
        self.replayed += replay.count
        steps = STATE.steps
        random = None
        if last.random is not None:
            random = drawing_state()  # the next item may have been drawn since
            put_back(last.random)
        over, most = STATE.over, STATE.max_steps  # a limit may have been reached since
        STATE.steps, STATE.over, STATE.max_steps = last.steps, None, self.most
        self.assign(self.scope, last.item)
        self.body(self.scope)
        STATE.steps, STATE.over, STATE.max_steps = steps, over, most
        if random is not None:
            put_back(random)

    def _look(self) -> None:
        """Compare what a step left with what the one before it left, and with a recording."""
        loop, names = self.loop, self.scope.names
        self.looks += 1
        grown = () if self.known is None else self.known.grown
        kept = self.kept
        if kept is not None:
            grown = kept.changes.grown
        now = Snapshot(named_values(self.scope, loop.read), grown)
        if kept is not None and kept.stands(now, names, loop.assigned):
            replay = Replay(kept, self.scope)
            if replay.fits:
                self.replay = replay
                self.looks = 0
                loop.refused = self.left > MOST_LEFT and self.replayed < 2 * self.left
                return
        self.kept = None
        before, self.before = self.before, now
        if before is not None:
            self.changes = before.changes(now, names, loop.assigned)
            if self.changes is None:
                self.known = None
            elif self.known is not None:
                self.changes.add(self.known)
            self.known = self.changes
        loop.refused = not now.known or self.tries >= MOST_TRIES or self.looks > MOST_LOOKS

    def _record(self, item: Any) -> None:
        changes, self.changes = self.changes, None
        assert self.before is not None
        assert changes is not None
        assert self.source is not None
        self.tries += 1
        if not changes.apart(self.source):
            self.loop.refused = True
            return
        loop, scope = self.loop, self.scope

        def run(given: Any) -> Any:
            self.assign(scope, given)
            signal = self.body(scope)
            return None if signal is CONTINUE else signal

        before = self.before
        changes = changes.reached(before)
        if changes.grown:
            before = Snapshot(named_values(scope, loop.read), changes.grown)
        self.kept = record(scope, before, changes, loop.assigned, loop.read, item, run)
        if self.kept is not None:
            replay = Replay(self.kept, scope)
            if replay.fits:
                self.replay = replay


def _gone_through(source: Any) -> list[Any] | None:
    """The values that a loop goes through; None where asking for the next one may do more."""
    if type(source) in (range, list, tuple, Tensor):
        return [source]
    if type(source) is Lazy and source.of:
        parts = [_gone_through(part) for part in source.of]
        return None if None in parts else [value for part in parts for value in part or ()]
    if _loader(source):
        return [value for value in source.fields.values() if not isinstance(value, Builtin)]
    return None


def _loader(value: Any) -> bool:
    """Whether a value is a loader of the language over data that is only looked up."""
    if not isinstance(value, Object) or not value.cls.fixed or value.cls.name != "DataLoader":
        return False
    return all(_seen(part) for part in value.fields.values())


def _seen(part: Any) -> bool:
    if isinstance(part, Object):
        return part.cls.fixed and all(_seen(inner) for inner in part.fields.values())
    if isinstance(part, list | tuple):
        return all(isinstance(x, Tensor | int | float | tuple | list) for x in part)
    return (
        part is None
        or isinstance(part, Tensor | bool | int | float | str | range)
        or (getattr(part, "name", "") == "default_collate")
    )


def replayed(
    loop: Repeated, scope: Scope, source: Any, items: Iterator[Any], assign: Assign, body: Body
) -> Any:
    """Run steps of a loop that nobody watches, as long as that may be worth it; the signal of one
    that left it."""
    inside = STATE.batching or STATE.opened or STATE.levels or STATE.dual or packs()
    busy = inside or STATE.anomaly or STATE.recorder is not None
    watched = STATE.observers or STATE.grad_read or STATE.readers or STATE.overrides or STATE.wrt
    if busy or watched or not HOUSEKEEPING.replays:
        return None
    return Run(loop, scope, items, assign, body).steps(source)
