"""Training loops whose steps repeat: a step is recorded as a plan, and the plan runs instead of the
program.

A step may be replayed when what it computes depends on nothing but tensors, chosen inputs and
numbers that are known before it, and when it changes nothing else. The first two steps and the
last one run as they are written: what the program finds after the loop, graphs and names included,
is what the last step made. docs/decisions/0008-replayed-loops.md says why this is right.
"""

from __future__ import annotations

from typing import Any

from ..autograd import gradients
from ..autograd.reverse import Pass
from ..errors import AutodiffError
from ..graph.state import READERS, STATE
from .attributes import GRAD_READ
from .carried import (
    Snapshot,
    drawing_state,
    drawn,
    drawn_elsewhere,
    put_back,
)
from .housekeeping import HOUSEKEEPING, MOST_MADE
from .inputs import Inputs, innocent_values, is_data, schedule_of
from .loop_items import items_of_loop
from .operations import count_step
from .recorded import of_step, record
from .repeated import CONTINUE, Assign, Body, Items, Repeated
from .replaying import AFTER, Kept, Replay
from .step_parts import Parts, Refused
from .values import Scope
from .warnings import COLLECTED

MOST_RECORDINGS = 4  # of one run of a loop
MISSING = object()


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
        self.chosen: dict[str, Any] = {}
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
            if kept is None or Replay(self, kept).steps() or not self._ordinary():
                return
        self.failed = True

    def _fits(self, kept: Kept) -> bool:
        """Whether a recording of an earlier run holds for this one."""
        now = self._snapshot()
        numbers: dict[Any, Any] = {}
        fits = kept.after.stands(now, kept.slots, numbers) and now.reach.known
        fits = fits and all(key in kept.recorded.inputs.keys for key in numbers)
        fits = fits and innocent_values(self.parts, self.scope, now, kept.slots) is not None
        if not fits:
            self.loop.kept = None
        return fits

    def as_after(self, after: Snapshot, inputs: Inputs) -> bool:
        """Whether nothing but slots changed since then, and numbers that are given anew."""
        numbers: dict[Any, Any] = {}
        stands = after.stands(self._snapshot(), inputs.slots, numbers)
        return stands and numbers.keys() <= inputs.keys.keys()

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
            if not self.begin():
                self.as_written()
                if self.signal is not None or not self.as_after(after, inputs):
                    return None
                continue
            recorded = record(self.parts, self.scope, inputs, looking, self._snapshot())
            self.rewind()
            if recorded is None or not self.as_after(after, inputs):
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
                ordinary = self.begin()
                self.rewind()
            self.as_written()
            if ordinary:
                return self.signal is None
        return False

    def as_written(self) -> None:
        count_step()
        self.assign(self.scope, self.items.there[0])
        self.items.take()
        self.note(self.body(self.scope))
        if not STATE.steps & 31 or STATE.made > MOST_MADE:
            HOUSEKEEPING.after_step(self.scope)

    def note(self, signal: Any) -> None:
        if signal is not None and signal is not CONTINUE:
            self.signal = signal

    # -- inputs -----------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Choose the inputs of the next step; False when it runs as it is written."""
        scope = self.scope
        parts = self.parts
        self.drawn = drawing_state() if parts.draws else None
        self.chosen = {name: scope.names.get(name, MISSING) for name in parts.outer}
        self.assign(scope, self.items.there[0])
        try:
            for run in parts.before:
                run(scope)
            if not any(test(scope) for test in parts.early):
                return True
        except AutodiffError as error:
            of_step(error)
        self.rewind()
        return False

    def keep(self) -> None:
        """What was chosen was used."""
        self.chosen = {}
        self.drawn = None

    def rewind(self) -> None:
        """Names and the generator of random numbers as they were before inputs were chosen."""
        for name, value in self.chosen.items():
            if value is MISSING:
                self.scope.names.pop(name, None)
            else:
                self.scope.names[name] = value
        if self.drawn is not None:
            put_back(self.drawn)
        self.keep()


def undisturbed() -> bool:
    """Whether nobody watches what single steps do."""
    busy = STATE.batching or STATE.anomaly or HOUSEKEEPING.recording or not HOUSEKEEPING.replays
    return not (busy or gradients.OBSERVERS or GRAD_READ or READERS)


__all__ = ["Run", "attempt"]
