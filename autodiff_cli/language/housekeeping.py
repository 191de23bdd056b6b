"""Long loops: what keeps their graph and its memory within bounds."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from typing import Any

from ..autograd.tensor import Tensor
from ..errors import AutodiffError, fail
from ..graph.node import Node as GraphNode
from ..graph.op import LEAF
from ..graph.sizes import bytes_text
from ..graph.state import STATE
from .values import Scope

MOST_MADE = 64 << 20  # bytes of arrays after which a loop evaluates what it has
MOST_PILED = 4 * MOST_MADE  # after which the memory is looked at where there is no loop
OWN = 128 << 20  # what code that is imported and plans that are kept may take besides


class Housekeeping:
    """Keeps long loops from piling up a graph that nobody evaluated: every `every` new nodes, and
    whenever many bytes were made, the tensors that names hold are evaluated and their finished
    history is let go.

    `around`: what the process held before the program; `replays`: whether steps may be replayed at
    all.
    """

    __slots__ = ("around", "every", "mark", "replays", "start")

    def __init__(self) -> None:
        self.every = 50_000
        self.replays = True
        self.restart()

    def restart(self) -> None:
        """Called when a program begins."""
        self.start = self.mark = GraphNode.counter()
        self.around = memory_used()
        STATE.made = 0

    def excuse(self, operations: int) -> None:
        """These operations were bounded and are settled: they do not count against the limit."""
        self.start += operations

    def after_step(self, scope: Scope) -> None:
        """Called now and then after a step of a loop, and after one that made big arrays."""
        newest = GraphNode.counter()
        piled = newest - self.mark >= self.every
        if STATE.batching or not (piled or STATE.made > MOST_MADE):
            return
        before, self.mark = self.mark, newest
        most = 10 * STATE.max_steps
        if newest - self.start > most:
            raise STATE.over or limit(
                fail(
                    "E506",
                    f"the program applied more than {most} operations",
                    help="is the loop endless? raise the limit with --max-steps 10000000",
                )
            )
        self.collect(scope, before)
        STATE.made = 0
        if piled:
            self._check(
                "the graph that this loop builds",
                "call backward() in the loop, detach(), or use torch.no_grad()",
            )
        else:
            self.look()

    def look(self) -> None:
        """Called now and then, and where big arrays piled up: E505 when the program holds more
        than it may."""
        STATE.made = min(STATE.made, MOST_MADE + 1)  # the next step of a loop still collects
        self._check("what this program holds", "keep less at a time")

    def _check(self, what: str, advice: str) -> None:
        limit = self.around + STATE.max_bytes + OWN
        if memory_used() < limit:
            return
        from ..engine.memory import drop_free

        drop_free()
        gc.collect()
        if memory_used() > limit:
            raise fail(
                "E505",
                f"{what} needs more than {bytes_text(STATE.max_bytes)}",
                help=f"{advice}, or raise the limit: --max-memory 8G",
            )

    def collect(self, scope: Scope, since: int) -> None:
        """Evaluate what names hold, then release histories that no gradient needs. What needs a
        gradient keeps its history anyway, and waits."""
        from ..engine.evaluate import evaluate, release

        nodes: list[GraphNode] = []
        seen: set[int] = set()
        at: Scope | None = scope
        while at is not None:
            pending = list(at.names.values())
            while pending:
                value = pending.pop()
                if isinstance(value, Tensor):
                    node = value.node
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
    held = getattr(value, "held", None)
    return () if held is None else held()


class _Statm:
    """The system's figures of this process, in a file that stays open."""

    __slots__ = ("file", "page", "process")

    def __init__(self) -> None:
        self.process = self.file = -1
        self.page = 0

    def used(self) -> int:
        if self.process != os.getpid():  # a fork's file tells of its parent
            self.process = os.getpid()
            self.file = os.open("/proc/self/statm", os.O_RDONLY)
            self.page = os.sysconf("SC_PAGE_SIZE")
        return int(os.pread(self.file, 100, 0).split()[1]) * self.page


_STATM = _Statm()


def memory_used() -> int:
    """Bytes of memory this process has in use; 0 where the system does not tell."""
    try:
        return _STATM.used()
    except (OSError, AttributeError):
        return 0


HOUSEKEEPING = Housekeeping()

LIMITS = frozenset({"E505", "E506", "E508"})


def limit(error: AutodiffError) -> AutodiffError:
    """An error that says which limit was reached ends the program. While a step is recorded it
    only ends the recording: the step as it is written will say it."""
    if STATE.recorder is None:
        STATE.end(error)
    return error


def ended(error: BaseException | None = None) -> bool:
    """Whether a limit ended the program, this one at the latest: then nothing of it runs, neither
    `except` nor `finally`, `__exit__` or the rest of a generator."""
    if isinstance(error, MemoryError):
        error = fail("E505", "the program needs more memory than there is", help="use less at once")
    if isinstance(error, AutodiffError) and error.code in LIMITS:
        limit(error)
    return STATE.over is not None
