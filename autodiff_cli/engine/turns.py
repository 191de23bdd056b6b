"""Plans whose first targets are the first inputs of their next run, in memory that stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .fixed import Fixed, Unfit, layout

MOST_COPIED = 256 << 10  # bytes of all other inputs together


class Turns:
    """The calls of such a plan. What goes round has two arrays each: runs read one side and write
    the other in turn, so that nothing is copied, and what a run started from is there when it
    fails."""

    def __init__(self, fixed: Callable[..., Fixed], arrays: list[Any], rest: list[Any]):
        if sum(array.nbytes for array in rest) > MOST_COPIED:
            raise Unfit
        one = [np.array(array, order="K") for array in arrays]
        if [layout(array) for array in one] != [layout(array) for array in arrays]:
            raise Unfit
        other = [np.empty_like(array) for array in one]
        there = fixed([*one, *rest], other)
        back = fixed([*other, *rest], one, there.scratch)
        self.sides = one, other
        self.ways = there, back
        self.bytes = there.bytes + back.bytes + 2 * sum(array.nbytes for array in one)

    def run(self, arrays: list[Any], rest: list[Any]) -> tuple[list[Any], list[Any]]:
        """What comes after `arrays`, valid until the run after the next one, and other targets."""
        one, other = self.sides
        if arrays is other:
            return one, self.ways[1].run(rest)
        if arrays is not one:
            for own, array in zip(one, arrays, strict=True):
                own[...] = array
        return other, self.ways[0].run(rest)

    def step(self, arrays: list[Any]) -> list[Any]:
        """The same where nothing else goes in or is wanted, `arrays` being those of a run."""
        one, other = self.sides
        if arrays is other:
            calls, now = self.ways[1].calls, one
        else:
            assert arrays is one
            calls, now = self.ways[0].calls, other
        for function, args in calls:
            function(*args)
        return now


__all__ = ["Turns"]
