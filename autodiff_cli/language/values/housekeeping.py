"""Long loops: what keeps their graph and its memory within bounds."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

from ...autograd.tensor import Tensor
from ...engine.evaluate import evaluate, release
from ...engine.memory import drop_free
from ...errors import AutodiffError, fault
from ...graph.node import Node as GraphNode
from ...graph.op import LEAF
from ...graph.state import STATE
from ..errors.exhaustion import out_of_memory
from .values import Scope

MOST_MADE = 64 << 20  # bytes of arrays after which a loop evaluates what it has


class Housekeeping:
    """Keeps long loops from piling up a graph that nobody evaluated: every `every` new nodes, and
    whenever many bytes were made, the tensors that names hold are evaluated and their finished
    history is let go. `replays`: whether steps may be replayed at all."""

    every = 50_000
    replays = True

    def restart(self) -> None:
        """Called when a program begins."""
        STATE.began = STATE.mark = GraphNode.counter()
        STATE.garbage = STATE.made = STATE.look = 0

    def excuse(self, operations: int) -> None:
        """Take operations that had a bound of their own off the count for the limit."""
        STATE.began += operations

    def after_step(self, scope: Scope) -> None:
        """Called now and then after a step of a loop, and after one that made big arrays."""
        STATE.look = STATE.steps + 32
        newest = GraphNode.counter()
        piled = newest - STATE.mark >= self.every
        if STATE.batching or STATE.dual or not (piled or STATE.made > MOST_MADE):
            return
        before, STATE.mark = STATE.mark, newest
        most = 10 * STATE.max_steps
        if newest - STATE.began > most:
            raise STATE.over or limit(fault("E506 program-applied-more-operations", most=most))
        self.collect(scope, before)
        STATE.garbage += STATE.made
        STATE.made = 0
        if STATE.garbage > STATE.max_bytes // 2:
            STATE.garbage = 0
            drop_free()
            gc.collect()

    def collect(self, scope: Scope, since: int) -> None:
        """Evaluate what names hold, then release histories that no gradient needs. What needs a
        gradient keeps its history anyway, and waits."""
        nodes: list[GraphNode] = []
        seen: set[int] = set()
        at: Scope | None = scope
        while at is not None:
            pending = list(at.names.values())
            while pending:
                value = pending.pop()
                if isinstance(value, Tensor):
                    node = value.looked_at
                    if node.seq > since and (not node.requires_grad or node.op is LEAF):
                        nodes.append(node)
                    if value.grad is not None:
                        nodes.append(value.grad.node)
                elif id(value) not in seen:
                    seen.add(id(value))
                    pending.extend(contents(value))
            at = at.outer
        evaluate(nodes)
        release(nodes, since)


def contents(value: Any) -> Iterable[Any]:
    """The values inside a list, a dict, or a value of a class."""
    if isinstance(value, list | tuple):
        return value if len(value) < 100_000 else ()
    if isinstance(value, dict):
        return value.values()
    held = getattr(type(value), "held", None)
    return () if held is None else held(value)


HOUSEKEEPING = Housekeeping()

LIMITS = frozenset({"E505", "E506", "E508"})


def limit(error: AutodiffError) -> AutodiffError:
    """An error that says which limit was reached ends the program. While a step is recorded it
    only ends the recording: the step as it is written will say it."""
    if STATE.recorder is None:
        STATE.end(error)
    return error


def count_step(n: int = 1) -> None:
    """Count a loop step, call or comprehension item against the limit."""
    steps = STATE.steps = STATE.steps + n
    if steps > STATE.max_steps:
        raise STATE.over or limit(fault("E506 program-took-more-loop", STATE.max_steps))


def ended(error: BaseException | None = None) -> bool:
    """Whether a limit ended the program, this one at the latest: then nothing of it runs, neither
    `except` nor `finally`, `__exit__` or the rest of a generator."""
    if isinstance(error, MemoryError):
        error = out_of_memory("the program")
    if isinstance(error, AutodiffError) and error.code in LIMITS:
        limit(error)
    return STATE.over is not None
