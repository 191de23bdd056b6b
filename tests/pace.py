"""How much work something is, told without the clock's help: the machine may be slow or busy."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds; what has a time limit of a second or less is not waited for longer
TRIES = 8


def spent(work: Callable[[], object]) -> float:
    """Seconds of the processor that a piece of work takes. What other tests left would be looked
    through by the collector again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.process_time()
        work()
        return time.process_time() - start
    finally:
        if collecting:
            gc.enable()


def _plain() -> int:
    total = 0
    for i in range(100_000):
        total += i & 7
    return total


def takes_at_most(limit: float, work: Callable[[], object]) -> bool:
    """Whether work takes no longer than so many additions in Python, in millions.

    A busy machine only adds to what is measured: one quiet try of several says it."""
    for _ in range(TRIES):
        million = 10 * min(spent(_plain) for _ in range(3))
        if spent(work) <= limit * million:
            return True
    return False


def in_proportion(work: Callable[[int], object], few: int, many: int) -> bool:
    """Whether more work takes longer in proportion, or nearly: not with the square of its size."""
    allowed = 2.5 * many / few
    for _ in range(TRIES):
        least = min(spent(lambda: work(few)) for _ in range(3))
        if spent(lambda: work(many)) <= allowed * least:
            return True
    return False
