"""Long loops: what keeps their graph and its memory within bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..autograd.tensor import Tensor
from ..errors import fail
from ..graph.node import Node as GraphNode
from ..graph.op import LEAF
from ..graph.sizes import bytes_text
from ..graph.state import STATE
from .values import Scope


class Housekeeping:
    """Keeps long loops from piling up a graph that nobody evaluated: every `every` new nodes, the
    tensors that names hold are evaluated and their finished history is let go.

    `recording`: a step is being recorded, nothing is settled; `allows`: whether it may call a
    function written in Python; `replays`: whether steps may be replayed at all.
    """

    __slots__ = ("allows", "around", "every", "mark", "recording", "replays", "start")

    def __init__(self) -> None:
        self.allows: Callable[[str, Any], bool] | None = None
        self.every = 50_000
        self.recording = False
        self.replays = True
        self.restart()

    def restart(self) -> None:
        """Called when a program begins."""
        self.start = self.mark = GraphNode.counter()
        self.recording = False
        self.allows = None
        self.around = -1  # what the process held before: measured once a loop gets long

    def excuse(self, operations: int) -> None:
        """These operations were bounded and are settled: they do not count against the limit."""
        self.start += operations

    def after_step(self, scope: Scope) -> None:
        """Called now and then after a step of a loop."""
        if self.around < 0:
            self.around = memory_used()
        newest = GraphNode.counter()
        if newest - self.mark < self.every or STATE.batching:
            return
        before, self.mark = self.mark, newest
        most = 10 * STATE.max_steps
        if newest - self.start > most:
            raise fail(
                "E506",
                f"the program applied more than {most} operations",
                help="is the loop endless? raise the limit with --max-steps 10000000",
            )
        self.collect(scope, before)
        if memory_used() - self.around > STATE.max_bytes:
            raise fail(
                "E505",
                f"the graph that this loop builds needs more than {bytes_text(STATE.max_bytes)}",
                help="call backward() in the loop, detach(), or use torch.no_grad()",
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


def memory_used() -> int:
    """Bytes of memory this process has in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0


HOUSEKEEPING = Housekeeping()
