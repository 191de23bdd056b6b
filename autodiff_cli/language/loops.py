"""Training loops whose steps repeat: a step is recorded as a plan, and the plan runs instead of the
program.

A step may be replayed when what it computes depends on nothing but tensors, chosen inputs and
numbers that are known before it, and when it changes nothing else. The first two steps and the
last one run as they are written: what the program finds after the loop, graphs and names included,
is what the last step made. docs/decisions/0008-replayed-loops.md says why this is right.
"""

from __future__ import annotations

from typing import Any

from ..autograd import tensor as handles
from ..autograd.reverse import Pass
from ..errors import AutodiffError
from ..graph.state import READERS, STATE
from .attributes import GRAD_READ
from .carried import (
    Slot,
    Snapshot,
    arrays_of,
    drawing_state,
    drawn,
    drawn_elsewhere,
    put,
    put_back,
)
from .housekeeping import HOUSEKEEPING
from .inputs import Inputs, innocent_values, is_data, schedule_of
from .loop_items import items_of_loop
from .operations import count_step
from .recorded import New, Recorded, record
from .repeated import CONTINUE, Assign, Body, Items, Repeated
from .step_parts import Late, Parts, Refused
from .values import Scope
from .warnings import COLLECTED

AFTER = 1  # steps at the end that run as they are
SEVERAL = 32  # steps that are replayed without a look around
MOST_RECORDINGS = 4  # of one run of a loop
MOST_MISSES = 2  # steps in a row for which a recording did not hold


class Kept:
    """A recorded step, and how it found the values that it reads."""

    __slots__ = ("after", "recorded", "slots")

    def __init__(self, recorded: Recorded, after: Snapshot, slots: list[Slot]):
        self.recorded = recorded
        self.after = after
        self.slots = slots


def attempt(
    loop: Repeated, scope: Scope, source: Any, assign: Assign, body: Body
) -> tuple[Any, Any]:
    """Run the steps that can be replayed; the items that are left, and the signal of a step that
    left the loop."""
    if not undisturbed():
        return source, None
    if loop.parts is None:
        try:
            loop.parts = Parts(
                loop.tree,
                loop.context,
                lambda name: schedule_of(name, scope) is not None,
                lambda name: is_data(name, scope),
            )
        except Refused:
            loop.refused = True
            return source, None
    items = items_of_loop(loop.tree.iter, source, scope)
    if items is None:
        return source, None
    run = Run(loop, scope, Items(items), assign, body)
    try:
        run.steps()
    finally:
        for name in loop.parts.hidden:
            scope.names.pop(name, None)
    loop.refused = run.failed
    return run.items.remaining(), run.signal


class Run:
    """One run of such a loop; `signal` is that of a step that left it."""

    def __init__(self, loop: Repeated, scope: Scope, items: Items, assign: Assign, body: Body):
        self.loop = loop
        self.parts: Parts = loop.parts
        self.scope = scope
        self.items = items
        self.assign = assign
        self.body = body
        self.failed = False
        self.signal: Any = None
        self.drawn: Any = None
        parts = self.parts
        self.written = parts.names | parts.outer | parts.late_names | parts.special

    def steps(self) -> None:
        """Run as far as steps can be replayed."""
        recordings = 0
        while recordings < MOST_RECORDINGS:
            kept = self.loop.kept
            if kept is None or not self._fits(kept):
                recordings += 1
                kept = self._prepare()
            if kept is None or self._replay(kept) or not self._ordinary():
                return
        self.failed = True

    def _fits(self, kept: Kept) -> bool:
        """Whether a recording of an earlier run holds for this one."""
        now = self._snapshot()
        numbers: dict[Any, Any] = {}
        fits = kept.after.allows(now, numbers) and now.reach.known
        fits = fits and all(key in kept.recorded.inputs.keys for key in numbers)
        fits = fits and innocent_values(self.parts, self.scope, now, kept.slots) is not None
        if not fits:
            self.loop.kept = None
        return fits

    def _as_after(self, after: Snapshot, keys: dict[Any, Any]) -> bool:
        """Whether nothing but tensors changed since then, and numbers that are given anew."""
        numbers: dict[Any, Any] = {}
        return after.allows(self._snapshot(), numbers) and numbers.keys() <= keys.keys()

    def _snapshot(self) -> Snapshot:
        return Snapshot(self.scope, self.parts.loaded, self.written)

    # -- steps as they are written ----------------------------------------------------------------

    def _prepare(self) -> Kept | None:
        """Two steps as they are written, and a recording of the next one."""
        if not self._ordinary():
            return None
        before = self._snapshot()
        hooked, warned = Pass.hooked, len(COLLECTED)
        random = None if self.parts.draws else drawn()
        elsewhere = drawn_elsewhere()
        if not before.reach.known or not self._ordinary():
            self.failed = not before.reach.known
            return None
        after = self._snapshot()
        numbers: dict[Any, Any] = {}
        self.failed = True
        if not before.allows(after, numbers) or Pass.hooked != hooked or len(COLLECTED) != warned:
            return None
        if elsewhere != drawn_elsewhere() or (not self.parts.draws and random != drawn()):
            return None
        slots = after.changed(before)
        looking = innocent_values(self.parts, self.scope, after, slots)
        inputs = Inputs(self.parts, self.scope, slots)
        if looking is None or after.reach.touched & self.parts.names or not inputs.take(numbers):
            return None
        inputs.names |= after.reach.touched
        self.failed = False
        while self.items.left(AFTER + 2):
            if not self._begin():
                self._written()
                if self.signal is not None or not self._as_after(after, inputs.keys):
                    return None
                continue
            recorded = record(self.parts, self.scope, inputs, looking, self._snapshot())
            self._rewind()
            if recorded is None or not self._as_after(after, inputs.keys):
                self.failed = True
                return None
            self.loop.kept = kept = Kept(recorded, after, slots)
            return kept
        return None

    def _ordinary(self) -> bool:
        """Run steps as they are written, up to one for which no test holds."""
        while self.signal is None and self.items.left(AFTER + 2):
            ordinary = not self.parts.early
            if self.parts.early and self.parts.outer - set(self.parts.hidden) <= (
                self.scope.names.keys()
            ):  # names come to be in the order in which the program assigns them
                ordinary = self._begin()
                self._rewind()
            self._written()
            if ordinary:
                return self.signal is None
        return False

    def _written(self) -> None:
        count_step()
        self.assign(self.scope, self.items.there[0])
        self.items.take()
        self._note(self.body(self.scope))
        if not STATE.steps & 31:
            HOUSEKEEPING.after_step(self.scope)

    def _note(self, signal: Any) -> None:
        if signal is not None and signal is not CONTINUE:
            self.signal = signal

    # -- replayed steps ---------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Choose the inputs of the next step; False when it runs as it is written."""
        scope = self.scope
        parts = self.parts
        self.drawn = drawing_state() if parts.draws else None
        self.assign(scope, self.items.there[0])
        try:
            for run in parts.before:
                run(scope)
            for test in parts.early:
                if test(scope):
                    self._rewind()
                    return False
        except AutodiffError:
            self._rewind()
            return False
        return True

    def _rewind(self) -> None:
        """The generator of random numbers as it was before inputs were chosen."""
        if self.drawn is not None:
            put_back(self.drawn)
            self.drawn = None

    def _replay(self, kept: Kept) -> bool:
        """Replay steps; False when another recording may be worth it."""
        recorded, slots = kept.recorded, kept.slots
        recorded.inputs.scope = self.scope
        arrays = arrays_of(slots)
        if arrays is None or not recorded.fits(arrays):
            return False
        recorded.now = arrays
        alone = recorded.alone and self.parts.alone
        misses = 0
        done = True
        try:
            while self.items.left(AFTER + 1):
                done = True
                if alone and self._several(recorded):
                    continue
                new = None
                if STATE.steps + recorded.each <= STATE.max_steps and self._begin():
                    new = recorded.run()
                    misses = 0 if new is not None else misses + 1
                    if new is not None and not self._stays(recorded, new):
                        new = None
                    if new is None:
                        self._rewind()
                if new is None:
                    put(slots, recorded.now)
                    done = False
                    self._written()
                else:
                    before, recorded.now = recorded.now, new.arrays
                    STATE.steps += recorded.each
                    self.items.take()
                    late = self._look(recorded, new, slots) if self.parts.late else None
                    if late is None or late.body is None:
                        if not STATE.steps & 31:
                            HOUSEKEEPING.after_step(self.scope)
                        continue
                    done = False
                    self._made_as_written(recorded, before, new)
                    self._note(late.body(self.scope))
                found = arrays_of(slots)
                if self.signal is not None or found is None or not recorded.fits(found):
                    return True
                if misses > MOST_MISSES:
                    self.loop.kept = None
                    return False
                if not self._as_after(kept.after, recorded.inputs.keys):
                    return False
                recorded.now = found
        finally:
            if done:
                put(slots, recorded.now)
            recorded.now = []
        return True

    def _several(self, recorded: Recorded) -> int:
        """Replay steps that nothing comes between; how many."""
        items = self.items
        items.left(SEVERAL + AFTER)
        count = min(len(items.there) - AFTER, (STATE.max_steps - STATE.steps) // recorded.each)
        done = recorded.run_on(min(count, SEVERAL))
        if done:
            STATE.steps += done * recorded.each
            self.assign(self.scope, items.there[done - 1])
            items.take(done)
            HOUSEKEEPING.after_step(self.scope)
        return done

    def _stays(self, recorded: Recorded, new: New) -> bool:
        """Whether no test of the results asks for the step as it is written."""
        for late in self.parts.late:
            if late.body is not None and not late.last:
                recorded.deliver(late, new)
                try:
                    if late.run(self.scope):
                        return False
                except AutodiffError:
                    return False
        return True

    def _look(self, recorded: Recorded, new: New, slots: list[Slot]) -> Late | None:
        """Run what looks at the results; the last test, if it holds."""
        shown = False
        for late in self.parts.late:
            if late.body is not None and not late.last:
                continue
            recorded.deliver(late, new)
            if late.place in recorded.looking and not shown:
                put(slots, new.arrays)
                shown = True
            if late.run(self.scope) and late.last:
                return late
        return None

    def _made_as_written(self, recorded: Recorded, before: list[Any], new: New) -> None:
        """Run once more what computes in a step, so that all it leaves is what it would leave; what
        looked at the results has run."""
        put(recorded.inputs.slots, before)
        steps = STATE.steps
        present = recorded.exchange(new.given)
        for _, run in self.parts.core:
            run(self.scope)
        recorded.exchange(present)
        STATE.steps = steps


def undisturbed() -> bool:
    """Whether nobody watches what single steps do."""
    busy = STATE.batching or HOUSEKEEPING.recording or not HOUSEKEEPING.replays
    return not (busy or handles.OBSERVERS or GRAD_READ or READERS)


__all__ = ["Kept", "Run", "attempt"]
