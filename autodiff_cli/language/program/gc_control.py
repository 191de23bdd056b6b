"""Python's collector of cyclic garbage while the command runs programs.

Invariant: what start-up made is never looked at again; what programs made is collected before it
holds much memory. A library leaves the collector as it is: nothing here happens by itself.
"""

from __future__ import annotations

import gc
from types import SimpleNamespace

NEW_OBJECTS = 200_000  # until a collection; graphs are many objects and few cycles
MOST_BYTES = 64 << 20  # of arrays that ended programs may hold until they are collected


HELD = SimpleNamespace(bytes=0)  # of arrays of programs that ended since the last collection


def is_set() -> bool:
    return gc.isenabled() and gc.get_threshold()[0] == NEW_OBJECTS


def collect_seldom() -> None:
    """Set the collector for programs; nothing happens where it is so already."""
    if is_set():
        return
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 50)
    gc.enable()


def program_made(size: int) -> None:
    """A program ends that has arrays of `size` bytes. A leaf holds its gradient and the gradient
    its history, so that large arrays of earlier programs have to be asked for."""
    if HELD.bytes + size > MOST_BYTES and HELD.bytes and is_set():
        gc.collect()
        HELD.bytes = 0
    HELD.bytes += size
