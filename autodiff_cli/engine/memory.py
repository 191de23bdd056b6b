"""Big arrays that are used again once nobody holds them.

Fresh memory costs several times what writing to warm memory does, so results of the same form are
made in the array of an earlier one, as soon as no reference to that array, nor to a view of it, is
left. What is kept ready is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import getrefcount
from typing import Any

import numpy as np

from ..errors import AutodiffError, fault
from ..graph.node import Shape
from ..graph.sizes import bytes_text
from ..graph.state import LOCK, STATE

POOLED_FROM = 1 << 20  # bytes
MOST_BYTES = 512 << 20
SMALL = 1024  # elements below which arrays are copied without asking whose memory they are


def _references() -> int:
    """Return `getrefcount` of an array held only by a list and the loop over it, which differs
    between versions of Python."""
    count = 0
    for array in [np.empty(0)]:
        count = getrefcount(array)
    return count


FREE = _references()
_POOL: dict[tuple[Shape, np.dtype], list[np.ndarray]] = {}
_held = 0


def allocate(shape: Shape, dtype: np.dtype) -> np.ndarray:
    """An array of undefined values, in memory of its own."""
    global _held
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size < POOLED_FROM:
        return np.empty(shape, dtype)
    ready = _POOL.setdefault((shape, dtype), [])
    for array in ready:
        if getrefcount(array) == FREE:
            return array
    try:
        made = np.empty(shape, dtype)
    except MemoryError:
        drop_free()
        made = np.empty(shape, dtype)
    with LOCK:
        if _held + size > MOST_BYTES:
            drop_free()
            ready = _POOL.setdefault((shape, dtype), [])
        if _held + size <= MOST_BYTES:
            ready.append(made)
            _held += size
    return made


def drop_free() -> None:
    """Forget the arrays that nobody uses."""
    global _held
    with LOCK:
        for key, arrays in list(_POOL.items()):
            kept = []
            for array in arrays:
                if getrefcount(array) > FREE:
                    kept.append(array)
            if kept:
                _POOL[key] = kept
            else:
                del _POOL[key]
        _held = sum(array.nbytes for arrays in _POOL.values() for array in arrays)


def too_large(span: Any) -> AutodiffError:
    """E505 for the place where memory ran out."""
    return fault("E505 tensors-program-need-more", bytes_text(STATE.max_bytes), span=span)


def owned(values: list[np.ndarray], kept: Iterable[Any]) -> list[np.ndarray]:
    """The values, each with all of some memory for itself, none that of an array that is kept."""
    taken: set[int] | None = None
    found: list[np.ndarray] = []
    for value in values:
        if value.size < SMALL:
            found.append(np.array(value))
            continue
        if taken is None:
            arrays = [array for array in kept if isinstance(array, np.ndarray)]
            taken = {id(array if array.base is None else array.base) for array in arrays}
        base = value if value.base is None else value.base
        whole = isinstance(base, np.ndarray) and base.nbytes == value.nbytes and base.base is None
        found.append(np.array(value) if id(base) in taken or not whole else value)
        taken.add(id(base))
    return found
