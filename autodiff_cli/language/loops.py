"""Training loops whose steps repeat: a step is recorded as a plan, and the plan runs instead of the
program.

A step may be replayed when nothing but tensors changes in it, when no value is looked at, and when
every tensor that a step leaves to the next one has the same shape and dtype after it. The first
two steps and the last one run as they are written: what the program finds after the loop, graphs
and names included, is what the last step made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import tensor as handles
from ..autograd.reverse import Pass
from ..engine.evaluate import evaluate, plan
from ..engine.replay import Recording, argument, looked_at
from ..graph.node import Node
from ..graph.op import constant, value_of
from ..graph.state import STATE
from .attributes import GRAD_READ
from .carried import Slot, Snapshot
from .housekeeping import HOUSEKEEPING
from .operations import count_step
from .repeated import Assign, Body, Repeated
from .values import Scope

MOST_NODES = 20_000  # a longer step takes long anyway
AFTER = 1  # steps at the end that run as they are


class Run:
    """One run of such a loop, up to the item `at`."""

    __slots__ = ("assign", "at", "body", "items", "loop", "scope")

    def __init__(self, loop: Repeated, scope: Scope, items: range, assign: Assign, body: Body):
        self.loop = loop
        self.scope = scope
        self.items = items
        self.assign = assign
        self.body = body
        self.at = 0

    def upto(self) -> int:
        """Run as far as steps can be replayed; how many items are done then."""
        if not _undisturbed() or not (self._ordinary() and self._step() and self._ordinary()):
            return self.at
        if not self.loop.known(self.scope):
            return self.at
        before = self._snapshot()
        steps, hooked = STATE.steps, Pass.hooked
        self._step()
        each = STATE.steps - steps
        after = self._snapshot()
        if not before.allows(after) or before.random != after.random or Pass.hooked != hooked:
            return self.at
        slots = after.changed(before)
        if not self._ordinary() or not after.allows(self._snapshot()):
            return self.at
        recorded = _record(slots, self._step)
        if recorded is not None:
            self.at -= 1  # what was recorded has not run
            STATE.steps -= each
            self._replay(slots, recorded, after, each)
        return self.at

    def _replay(self, slots: list[Slot], recorded: Recorded, after: Snapshot, each: int) -> None:
        arrays, recording = recorded
        while self.at < len(self.items) - AFTER and STATE.steps + each <= STATE.max_steps:
            if not self._special():
                if slots:  # else a step leaves nothing
                    arrays = recording.run(arrays)
                self.at += 1
                STATE.steps += each
                continue
            _put(slots, arrays)
            self._step()
            found = _arrays(slots)
            if found is None or not _alike(found, arrays) or not after.allows(self._snapshot()):
                return
            arrays = found
        _put(slots, arrays)

    def _snapshot(self) -> Snapshot:
        return Snapshot(self.scope, self.loop)

    def _special(self) -> bool:
        """Whether the next step runs as it is written."""
        if not self.loop.tests:
            return False
        self.assign(self.scope, self.items[self.at])
        return any(test(self.scope) for test in self.loop.tests)

    def _ordinary(self) -> bool:
        """Run special steps; whether an ordinary one comes next, and another after it."""
        while self.at < len(self.items) - AFTER:
            if not self._special():
                return True
            self._step()
        return False

    def _step(self) -> bool:
        count_step()
        self.assign(self.scope, self.items[self.at])
        self.at += 1
        self.body(self.scope)
        if not STATE.steps & 31 and not HOUSEKEEPING.recording:
            HOUSEKEEPING.after_step(self.scope)
        return True


def _undisturbed() -> bool:
    """Whether nobody watches what single steps do."""
    busy = STATE.batching or HOUSEKEEPING.recording or not HOUSEKEEPING.replays
    return not (busy or handles.OBSERVERS or GRAD_READ)


def _put(slots: list[Slot], arrays: list[np.ndarray]) -> None:
    for slot, array in zip(slots, arrays, strict=True):
        slot.put(constant(array))


def _arrays(slots: list[Slot]) -> list[np.ndarray] | None:
    """The values of slots; None when one is empty."""
    nodes = [node for node in (slot.node for slot in slots) if node is not None]
    evaluate(nodes)
    return [value_of(node) for node in nodes] if len(nodes) == len(slots) else None


def _alike(a: Any, b: Any) -> bool:
    """Whether arrays or nodes have the same shapes and dtypes."""
    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype for x, y in zip(a, b, strict=True)
    )


Recorded = tuple[list[np.ndarray], Recording]


def _record(slots: list[Slot], step: Callable[[], Any]) -> Recorded | None:
    """Run a step on arguments in place of what it is given, and record it; the slots' values
    before it. None when it cannot be replayed: it has run, then, as any other."""
    arrays = _arrays(slots)
    if arrays is None:
        return None
    arguments = [argument(array) for array in arrays]
    for slot, node in zip(slots, arguments, strict=True):
        slot.put(node)
    since = Node.counter()
    HOUSEKEEPING.recording = True
    try:
        step()
    finally:
        HOUSEKEEPING.recording = False
    found = [node for node in (slot.node for slot in slots) if node is not None]
    if _alike(found, arrays) and not looked_at(arguments) and Node.counter() - since <= MOST_NODES:
        order, _ = plan(found)
        if not any("draw" in node.op.properties for node in order):
            return arrays, Recording(order, arguments, found)
    evaluate(found)
    return None


__all__ = ["Run"]
