"""Plans whose first targets are the first inputs of their next run, in memory that stays."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from .resident_plan import Fixed, Unfit, laid_out

MOST_COPIED = 256 << 10  # bytes of all other inputs together


SIDES = 3


class Turns:
    """The calls of such a plan. What goes round has an array on each side: runs read one side and
    write the next one in turn, so that nothing is copied, and when a run fails, what it started
    from is there, and what the run before it did."""

    def __init__(self, fixed: Callable[..., Fixed], arrays: list[Any], rest: list[Any]):
        if sum(array.nbytes for array in rest) > MOST_COPIED:
            raise Unfit
        self.sides = [[laid_out(array) for array in arrays] for _ in range(SIDES)]
        for own, array in zip(self.sides[0], arrays, strict=True):
            own[...] = array
        here, there = self.sides[:2]
        first = fixed([*here, *rest], there)
        self.ways = [first]
        for at in range(1, SIDES):
            other = {id(a): b for a, b in zip(here, self.sides[at], strict=True)}
            other |= {id(a): b for a, b in zip(there, self.sides[(at + 1) % SIDES], strict=True)}
            way = copy(first)
            way.calls = [(function, _moved(args, other)) for function, args in first.calls]
            way.targets = _moved(first.targets, other)
            self.ways.append(way)
        self.bytes = first.bytes + SIDES * sum(array.nbytes for array in arrays)

    def _at(self, arrays: list[Any]) -> int:
        """The side that holds these arrays now."""
        for at, side in enumerate(self.sides):
            if side is arrays:
                return at
        for own, array in zip(self.sides[0], arrays, strict=True):
            own[...] = array
        return 0

    def run(self, arrays: list[Any], rest: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the next `arrays`, valid until three runs later, and the other targets."""
        at = self._at(arrays)
        return self.sides[(at + 1) % SIDES], self.ways[at].run(rest)


def _moved(value: Any, other: dict[int, np.ndarray]) -> Any:
    """The same with other arrays, and views of them, in place of some."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([_moved(part, other) for part in value])
    if kind is not np.ndarray:
        return value
    root = value
    while id(root) not in other:
        if type(root.base) is not np.ndarray:
            return value
        root = root.base
    found = other[id(root)]
    if value is root:
        return found
    return _view(found, _start(value) - _start(root), value)


def _start(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _view(array: np.ndarray, after: int, like: np.ndarray) -> np.ndarray:
    """Return a view that begins `after` bytes behind the first element of an array."""
    base: Any = array if array.base is None else array.base
    flat = base.ravel("K") if base.ndim else base.reshape(1)
    after += _start(array) - _start(flat)
    return np.ndarray(like.shape, like.dtype, flat.view(np.uint8), after, like.strides)
