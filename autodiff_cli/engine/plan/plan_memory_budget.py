"""How much memory plans keep from one run to the next, all together."""

from __future__ import annotations

from typing import Protocol
from weakref import ref

from ...graph.state import LOCK

MOST_HELD = 64 << 20


class Holder(Protocol):
    """A plan that holds memory."""

    def let_go(self) -> None:
        """Give it back."""


HOLDING: dict[ref[Holder], int] = {}  # bytes


def held(holder: Holder, size: int) -> None:
    """Note that a plan holds memory; the oldest ones give theirs back when it is too much."""
    own = ref(holder)
    with LOCK:
        HOLDING.pop(own, None)
        for other in [other for other in HOLDING if other() is None]:
            del HOLDING[other]
        HOLDING[own] = size
        while sum(HOLDING.values()) > MOST_HELD:
            oldest = next(iter(HOLDING))
            del HOLDING[oldest]
            found = oldest()
            if found is not None:
                found.let_go()
