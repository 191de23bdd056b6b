"""How much memory plans keep from one run to the next, all together."""

from __future__ import annotations

from typing import Any
from weakref import ref

from ...graph.state import LOCK

MOST_HELD = 64 << 20


HOLDING: dict[ref[Any], int] = {}  # bytes, by what gives them back when it is to `let_go()`


def held(holder: Any, size: int) -> None:
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
