"""`python -m benchmarks growth`: how the time grows with elements and with ops, ours only.

`elements` and `operations` measure and give rows of text; which way the engine took is read from
the plan that was recorded, and from the doors of `engine.evaluate` where there is none.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np

from autodiff_cli import value_and_grad
from autodiff_cli.engine import evaluate as engine
from autodiff_cli.engine.fused.tiles import Tiled
from autodiff_cli.engine.plan.schedule import FIXED_AFTER

from .tables import time_text
from .with_autodiff import SCALARS
from .worker import timed

NEURON = "loss = sum((1 - sigmoid(w*x + b))**2)"
ARRAYS = 9  # of the size of an input: three inputs, three gradients, and room
WIDTH = 16  # elements of a small tensor
WARM_UP = FIXED_AFTER + 2  # calls after the first, of which one records a plan

UNLIMITED = {"max_memory": 1 << 62, "max_steps": 1 << 62}

DOORS = {
    "run": "node after node",
    "run_few": "node after node",
    "run_scalars": "Python floats",
    "run_planned": "plan",
}

Row = list[str]
WIDTHS = [8, 13, 17, 18, 32]


def available() -> int:
    """Bytes of memory that may be had; very many where the system does not tell."""
    try:
        with open("/proc/meminfo") as lines:
            return next(int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 1 << 62


def _recorded(function: Any) -> str:
    """How the plan runs that a compiled program recorded."""
    plan = next(iter(function.plans.values())).plan
    groups = [step for step in plan.steps if isinstance(step, Tiled)]
    if not groups:
        return "flat list" if plan.fixed is not None else "steps of the plan"
    tiles = max(group.tiles for group in groups)
    threads = max(group.threads() for group in groups)
    return f"fused: {len(groups)} x {tiles} tiles, {threads} thread{'s' * (threads > 1)}"


@contextmanager
def _watched() -> Iterator[list[str]]:
    """The ways in which the engine evaluates, as they are taken: which of its doors open."""
    taken: list[str] = []

    def watched(door: str) -> Any:
        function = getattr(engine, door)

        def call(*args: Any) -> Any:
            found = function(*args)
            if found is not False:
                taken.append(DOORS[door])
            return found

        return call

    with ExitStack() as stack:
        for door in DOORS:
            stack.enter_context(patch.object(engine, door, watched(door)))
        yield taken


# -- elements -------------------------------------------------------------------------------------


def elements(sizes: list[int], seconds: float) -> Iterator[Row]:
    """Rows for the neuron: elements, first call, the quickest, nanoseconds an element, how."""
    for n in sizes:
        needed = ARRAYS * 8 * n
        if needed > available():
            yield [f"{n:.0e}", f"skipped: needs {needed / 1e9:.1f} GB of memory", "", "", ""]
            continue
        random = np.random.default_rng(7)
        arrays = {name: random.standard_normal(n) for name in ("w", "x", "b")}
        function = value_and_grad(NEURON, wrt=list(arrays), **UNLIMITED)

        def job(function: Any = function, arrays: Any = arrays) -> None:
            function(**arrays)

        first = _once(job)
        for _ in range(WARM_UP):
            job()
        best = timed(job, seconds)
        how = _recorded(function)
        yield [f"{n:.0e}", time_text(first), time_text(best), f"{best / n * 1e9:.2f}", how]


def _once(job: Callable[[], Any]) -> float:
    start = perf_counter()
    job()
    return perf_counter() - start


# -- operations -----------------------------------------------------------------------------------


def _chain(count: int, width: int) -> tuple[str, np.ndarray]:
    """A program of `count` small ops (and a sum, where tensors are wider), and its argument."""
    loss = "sum(y)" if width else "y"
    steps = SCALARS.replace("STEPS", str(count // 5)).replace("loss = y", f"loss = {loss}")
    text = steps if count >= 5 else f"y = sin(x)\nloss = {loss}\n"
    return text, np.full((width,) if width else (), 0.3)


def operations(counts: list[int], width: int, seconds: float) -> Iterator[Row]:
    """Rows for a chain of small ops: their number; microseconds an op when the program is run for
    the first time, and how; the same when its plan is replayed, and how."""
    for count in counts:
        text, x = _chain(count, width)
        new = float("inf")
        end = perf_counter() + seconds
        with _watched() as taken:
            while True:
                function = value_and_grad(text, wrt=["x"], **UNLIMITED)
                engine.PLANS.clear()  # the engine has not seen this program before
                engine.SEEN.clear()
                new = min(new, _once(partial(function, x=x)))
                if perf_counter() + new > end:
                    break
        how = taken[-1]
        for _ in range(WARM_UP):
            function(x=x)
        again = timed(partial(function, x=x), seconds)
        times = [f"{spent / count * 1e6:.2f}" for spent in (new, again)]
        yield [f"{count:.0e}", times[0], how, times[1], _recorded(function)]
        del function
        gc.collect()


# -- the command ----------------------------------------------------------------------------------


def tables(small: bool, seconds: float) -> Iterator[tuple[str, Row, Iterator[Row]]]:
    """Title, headings and rows of each table."""
    last = 4 if small else 8
    yield (
        "Forward and backward of the neuron, by elements (float64)",
        ["elements", "first call", "quickest", "ns an element", "how"],
        elements([10**k for k in range(3, last + 1)], seconds),
    )
    counts = [10**k for k in range(3 if small else 7)]
    for width, what in ((0, "single numbers"), (WIDTH, f"tensors of {WIDTH} numbers")):
        yield (
            f"A chain of ops on {what}, by ops",
            ["ops", "new: us an op", "how", "replayed: us an op", "how"],
            operations(counts, width, seconds),
        )
