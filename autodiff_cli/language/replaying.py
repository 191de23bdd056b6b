"""Steps of a loop that are replayed: the recorded plan runs in place of what computes, and what
stands around it in the body runs as it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import AutodiffError
from ..graph.state import STATE
from .carried import Slot, Snapshot, arrays_of, put
from .housekeeping import HOUSEKEEPING, MOST_MADE
from .recorded import New, Recorded, of_step
from .step_parts import Late

if TYPE_CHECKING:
    from .loops import Run

AFTER = 1  # steps at the end that run as they are
SEVERAL = 32  # steps that are replayed without a look around
MOST_MISSES = 2  # steps in a row for which a recording did not hold


class Kept:
    """A recorded step, and how it found the values that it reads."""

    __slots__ = ("after", "recorded", "slots")

    def __init__(self, recorded: Recorded, after: Snapshot, slots: list[Slot]):
        self.recorded = recorded
        self.after = after
        self.slots = slots


class Replay:
    """One run of replayed steps."""

    def __init__(self, run: Run, kept: Kept):
        self.run = run
        self.kept = kept
        self.recorded = kept.recorded
        self.slots = kept.slots
        self.parts = run.parts
        self.shown = False  # whether slots show the last complete step

    def steps(self) -> bool:
        """Replay steps; False when another recording may be worth it."""
        recorded, run = self.recorded, self.run
        recorded.inputs.scope = run.scope
        arrays = arrays_of(self.slots)
        if arrays is None or not recorded.fits(arrays):
            return False
        recorded.start(arrays)
        alone = recorded.alone and self.parts.alone
        misses = 0
        try:
            while run.items.left(AFTER + 1):
                self.shown = False
                if alone and self._several():
                    continue
                begun = STATE.steps + recorded.each <= STATE.max_steps and run.begin()
                new = recorded.run() if begun else None
                misses = 0 if new is not None or not begun else misses + 1
                if new is not None and not self._stays(new):
                    self._as_written(False)
                elif new is None:
                    self._as_written(begun or self.parts.looks_back)
                else:
                    recorded.take(new)
                    run.keep()
                    STATE.steps += recorded.each
                    run.items.take()
                    late = self._look(new) if self.parts.late else None
                    if late is None:
                        if not STATE.steps & 31 or STATE.made > MOST_MADE:
                            HOUSEKEEPING.look()
                            HOUSEKEEPING.after_step(run.scope)
                        continue
                    self._made_again()
                    assert late.body is not None
                    run.note(late.body(run.scope))
                found = arrays_of(self.slots)
                if run.signal is not None or found is None or not recorded.fits(found):
                    return True
                if misses > MOST_MISSES:
                    run.loop.kept = None
                    return False
                if not run.as_after(self.kept.after, recorded.inputs):
                    return False
                recorded.start(found)
        except (KeyboardInterrupt, AutodiffError):
            if not self.shown:  # in the middle of a step that is replayed
                run.rewind()
                self._leave()
            raise
        finally:
            if not self.shown:
                put(self.slots, recorded.now)
            recorded.start([])
        return True

    def _several(self) -> int:
        """Replay steps that nothing comes between; how many."""
        recorded, run = self.recorded, self.run
        items = run.items
        items.left(SEVERAL + AFTER)
        count = min(len(items.there) - AFTER, (STATE.max_steps - STATE.steps) // recorded.each)
        try:
            recorded.run_on(min(count, SEVERAL))
        finally:
            done = recorded.done
            if done:
                STATE.steps += done * recorded.each
                run.assign(run.scope, items.there[done - 1])
                items.take(done)
        HOUSEKEEPING.look()
        HOUSEKEEPING.after_step(run.scope)
        return done

    def _as_written(self, again: bool) -> None:
        """Run the step as it is written; `again`: it may look at what the one before it left."""
        self.run.rewind()
        if again:
            self._leave()
        else:
            put(self.slots, self.recorded.now)
            self.shown = True
        self.run.as_written()

    def _leave(self) -> None:
        """Let everything be as the last complete step left it."""
        if self.recorded.before is not None:
            self._made_again()
        else:
            put(self.slots, self.recorded.now)
            self.shown = True

    def _made_again(self) -> None:
        """Run once more what computes in the last complete step, so that all it leaves is what it
        would leave; what looked at the results has run."""
        recorded = self.recorded
        assert recorded.before is not None
        put(self.slots, recorded.before)
        self.shown = True
        steps = STATE.steps
        present = recorded.exchange(recorded.given)
        for _, run in self.parts.core:
            run(self.run.scope)
        recorded.exchange(present)
        STATE.steps = steps

    def _stays(self, new: New) -> bool:
        """Whether no test of the results asks for the step as it is written."""
        for late in self.parts.late:
            if late.body is not None and not late.last:
                self.recorded.deliver(late, new)
                try:
                    if late.run(self.run.scope):
                        return False
                except AutodiffError as error:
                    of_step(error)
                    return False
        return True

    def _look(self, new: New) -> Late | None:
        """Run what looks at the results; the last test, if it holds."""
        for late in self.parts.late:
            if late.body is not None and not late.last:
                continue
            self.recorded.deliver(late, new)
            if late.place in self.recorded.looking and not self.shown:
                put(self.slots, new.arrays)
                self.shown = True
            try:
                if late.run(self.run.scope) and late.last:
                    return late
            except AutodiffError:
                self._made_again()
                raise
        return None


__all__ = ["AFTER", "Kept", "Replay"]
