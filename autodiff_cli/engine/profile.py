"""Where the time of a run goes: each kernel is timed and noted for the expression it computes.

An `Observer` sees every evaluation while it is `STATE.observer`; nobody else pays for it. The time
of a group is shared among its lines by what they are predicted to cost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from ..graph.kinds import Kind
from ..graph.node import Node, tick
from ..graph.state import STATE
from . import evaluate as evaluation
from .fused import groups
from .plan.describe import Described, DescribedTiled, PlanData, describe
from .plan.resident_plan import Fixed
from .plan.schedule import Step


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """What one expression took, forward or backward; `bytes` are those of the arrays it made,
    `share` is of the time of all kernels."""

    span: Any
    backward: bool
    calls: int
    bytes: int
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the `seconds` of a run went; `lines` come the slowest first and add up to `kernels`.

    The rest is parsing, building graphs (with whatever else the program does), and planning (with
    what lies between kernels)."""

    lines: tuple[ProfileLine, ...]
    seconds: float
    kernels: float
    parsing: float
    building: float
    planning: float
    evaluations: int


@dataclass(slots=True, eq=False)
class Line:
    """What is known of an expression so far."""

    span: Any
    backward: bool
    calls: int = 0
    bytes: int = 0
    seconds: Any = 0.0

    def add(self, seconds: float, bytes: int, calls: int = 1) -> None:
        self.seconds += seconds
        self.bytes += bytes
        self.calls += calls


class Observer:
    """Times what is evaluated; when `plans` are wanted, keeps the one of the last big evaluation,
    else the one that ran the most nodes. `inside`: an evaluation runs; `parsing` is noted by who
    parses."""

    def __init__(self, plans: bool) -> None:
        self.plans = plans
        self.inside = False
        self.parsing = 0.0
        self.evaluations = 0
        self._counted = False
        self._engine = 0.0
        self._own = 0.0  # seconds that went into plans nobody runs
        self._lines: dict[Any, Line] = {}
        self._passes: list[int] = []  # where backward passes begin and end, in numbers of nodes
        self._depth = 0
        self._plan: Described | None = None
        self._how = "plan"
        self._longest = 0
        self._big = False

    # -- what the engine and reverse mode tell ----------------------------------------------------

    def is_blocked(self, node: Node) -> bool:
        """Whether the value of a node is in blocks somewhere else: none is."""
        return False

    def draws(self, size: int) -> None:
        """Random numbers of so many bytes are about to be drawn."""

    def evaluate(self, targets: list[Node], last: bool) -> None:
        """Evaluate, and time it."""
        with self.running():
            evaluation.evaluate(targets, last)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time of the engine; of what is within another one already."""
        if self.inside:
            yield
            return
        self.inside = True
        self._counted = False
        start = perf_counter()
        try:
            yield
        finally:
            self._engine += perf_counter() - start
            self.inside = False

    def backward_begins(self) -> None:
        if not self._depth:
            self._passes.append(tick())
        self._depth += 1

    def backward_ends(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._passes.append(tick())

    def is_backward(self, seq: int) -> bool:
        """Whether a node was made by a backward pass."""
        return bisect_right(self._passes, seq) % 2 == 1

    def key(self, key: Any, order: list[Node]) -> Any:
        """Plans are used again only for the same expressions."""
        return self, key, tuple([id(self.line(node.span, node.seq)) for node in order])

    def unplanned(self, order: list[Node], targets: list[Node]) -> None:
        """An evaluation has no plan so far; the one that it would have is of use if there is none
        to show."""
        self._count()
        if not self._big and len(order) > self._longest:
            self._longest = len(order)
            self._would_be(order, targets)

    def compute(self, node: Node) -> Any:
        """The value of a node, timed."""
        op = node.op
        if node.body is not None or op.kind is Kind.SOURCE:
            return evaluation.compute(node)
        start = perf_counter()
        value = evaluation.compute(node)
        seconds = perf_counter() - start
        made = 0 if op.view else fresh(value, [x.value for x in node.inputs])
        self.line(node.span, node.seq).add(seconds, made)
        return value

    def plan(self, order: list[Node], inputs: list[Node], targets: list[Node]) -> Described:
        """A plan that notes what its kernels take."""
        with self.running():
            return TimedPlan(self, order, inputs, targets)

    # -- what plans tell --------------------------------------------------------------------------

    def line(self, span: Any, seq: int) -> Line:
        """The line of an expression, forward or backward."""
        backward = self.is_backward(seq)
        key = backward, None if span is None else (span.source, span.start, span.end)
        found = self._lines.get(key)
        if found is None:
            found = self._lines[key] = Line(span, backward)
        return found

    def ran(self, plan: TimedPlan) -> None:
        """A plan runs."""
        self._count()
        plan.work += plan.nodes
        if plan.big or (not self._big and plan.work >= self._longest):
            self._big = self._big or plan.big
            self._longest = plan.work
            self._plan, self._how = plan, "plan"

    def _count(self) -> None:
        self.evaluations += not self._counted
        self._counted = True

    def _would_be(self, order: list[Node], targets: list[Node]) -> None:
        """Keep the plan of what runs node by node."""
        if not self.plans:
            return
        start = perf_counter()
        wanted = [node for node in dict.fromkeys(targets) if node.value is None]
        self._plan, self._how = Described(order, [], wanted), "nodes"
        self._own += perf_counter() - start

    # -- results ----------------------------------------------------------------------------------

    def described(self) -> PlanData | None:
        """The plan that is shown; None when nothing was evaluated."""
        return None if self._plan is None else describe(self._plan, self.is_backward, self._how)

    def profile(self, seconds: float) -> Profile:
        """Where the time went, of `seconds` in all."""
        seconds, engine = seconds - self._own, self._engine - self._own
        lines = [line for line in self._lines.values() if line.calls]
        lines.sort(key=lambda line: -line.seconds)
        kernels = sum(line.seconds for line in lines)
        return Profile(
            tuple(
                ProfileLine(
                    line.span, line.backward, line.calls, line.bytes, line.seconds,
                    line.seconds / kernels if kernels else 0.0,
                )
                for line in lines
            ),
            seconds,
            kernels,
            self.parsing,
            max(0.0, seconds - self.parsing - engine),
            max(0.0, engine - kernels),
            self.evaluations,
        )  # fmt: skip

    def forget(self) -> None:
        """Take this observer's plans out of the engine."""
        for key in [key for key in evaluation.PLANS if key[0] is self]:
            del evaluation.PLANS[key]


class TimedTiled(DescribedTiled):
    """A group that notes what it takes; `shares` are parts of one, by line."""

    shares: list[tuple[Line, float, int, int]]

    def share(self, line: Callable[[Any, int], Line]) -> None:
        """Find out whose time the group's is."""
        whole = sum(member.cost for member in self.members)
        parts: dict[Line, list[Any]] = {}
        for member in self.members:
            part = parts.setdefault(line(member.span, member.seq), [0.0, 0, 0])
            part[0] += member.cost / whole
            part[2] += 1
        for span, seq, size in self.made:
            parts[line(span, seq)][1] += size
        self.shares = [(found, *part) for found, part in parts.items()]

    def run(self, registers: list[Any], allocate: Callable[..., np.ndarray]) -> None:
        start = perf_counter()
        super().run(registers, allocate)
        seconds = perf_counter() - start
        for line, share, size, calls in self.shares:
            line.add(seconds * share, size, calls)


@dataclass(slots=True, eq=False)
class Clock:
    """A kernel with a watch."""

    kernel: Callable[..., Any]
    line: Line
    view: bool

    def __call__(self, *args: Any) -> Any:
        start = perf_counter()
        value = self.kernel(*args)
        seconds = perf_counter() - start
        self.line.add(seconds, 0 if self.view else fresh(value, args))
        return value


class TimedPlan(Described):
    """A plan with clocks. `big`: it has a group, or was made for the sake of big arrays."""

    tiled = TimedTiled

    def __init__(
        self, observer: Observer, order: list[Node], inputs: list[Node], targets: list[Node]
    ):
        super().__init__(order, inputs, targets)
        self.observer = observer
        self.nodes = len(order)
        self.work = 0  # nodes, in all runs
        self.big = any(node.shape and node.numel >= groups.FUSE_FROM for node in order)
        self.clocks: list[tuple[Step, Clock]] = []
        for step in self.steps:
            if isinstance(step, TimedTiled):
                step.share(observer.line)
            elif isinstance(step, Step) and step.name != "output":
                line = observer.line(step.span, self.details[step.result].seq)
                self.clocks.append((step, Clock(step.kernel, line, not step.bytes)))
        self._wind(True)

    def _wind(self, timed: bool) -> None:
        for step, clock in self.clocks:
            step.kernel = clock if timed else clock.kernel

    def run(self, arrays: list[Any], own: bool = False) -> list[Any]:
        with self.observer.running():
            self.observer.ran(self)
            return super().run(arrays, own)

    def _fix(self, arrays: list[Any]) -> Fixed | None:
        """Calls are written for kernels as they are, and then timed one by one."""
        self._wind(False)
        try:
            fixed = super()._fix(arrays)
        finally:
            self._wind(True)
        if fixed is not None:
            lines = {id(step): clock.line for step, clock in self.clocks}
            seen: set[int] = set()
            calls = fixed.calls
            fixed.calls = []
            for (function, args), step in zip(calls, fixed.steps, strict=True):
                first = id(step) not in seen
                seen.add(id(step))
                line = lines[id(step)]
                fixed.calls.append((_timed_call, (line, first, function, args)))
        return fixed


def _timed_call(line: Line, first: bool, function: Callable[..., Any], args: Any) -> None:
    """One call of a plan in memory that stays; a kernel may be several."""
    start = perf_counter()
    function(*args)
    seconds = perf_counter() - start
    out = args[-1] if isinstance(args[-1], np.ndarray) else args[0]
    line.add(seconds, out.nbytes, first)


def fresh(value: Any, args: Any) -> int:
    """Bytes of an array, or of several, that are not the memory of an argument."""
    if type(value) is tuple or type(value) is list:
        return sum(fresh(part, args) for part in value)
    if not isinstance(value, np.ndarray | np.generic):
        return 0
    if isinstance(value, np.ndarray) and any(
        type(arg) is np.ndarray and np.may_share_memory(arg, value) for arg in args
    ):
        return 0
    return value.nbytes


@contextmanager
def observing(plans: bool = False) -> Iterator[Observer]:
    """An observer of everything that is evaluated meanwhile."""
    before = STATE.observer
    observer = STATE.observer = Observer(plans)
    try:
        yield observer
    finally:
        STATE.observer = before
        observer.forget()
