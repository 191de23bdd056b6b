"""Python's collector of cyclic garbage while programs run.

Invariant: what start-up made is never looked at again, what programs made can be collected.
"""

from __future__ import annotations

import gc

NEW_OBJECTS = 200_000  # until a collection; graphs are many objects and few cycles


def collect_seldom() -> None:
    """Set the collector for programs; nothing happens where it is so already."""
    if gc.isenabled() and gc.get_threshold()[0] == NEW_OBJECTS:
        return
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 50)
    gc.enable()
