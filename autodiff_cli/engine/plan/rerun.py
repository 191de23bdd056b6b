"""A plan that runs again: the steps of one evaluation, with other arrays in its arguments.

A recording holds no nodes, only kernels, constants and places. It may stand for the program that
built the graph as long as building it looked at no value of an argument: `looked_at` tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...graph.node import Node
from ...graph.op import argument
from .schedule import planned


def looked_at(arguments: Iterable[Node]) -> bool:
    """Whether the value of an argument was asked for."""
    return any(node.args[0].looked_at for node in arguments)


class Recording:
    """The plan that leads from `arguments` to `targets`; `order` is what there is to compute."""

    def __init__(self, order: list[Node], arguments: list[Node], targets: list[Node]):
        self.plan = planned(order, arguments, targets)

    def run(self, arrays: list[np.ndarray]) -> list[Any]:
        """The targets' values for these arrays, of the shapes and dtypes of the first ones; none
        shares memory with another or with the recording."""
        return self._own(self.plan.run(arrays))

    def turn(self, arrays: list[Any], rest: list[Any]) -> tuple[list[Any], list[Any]]:
        """The same where the first targets are the first arguments of the next run: these, shared
        with the recording and valid until three runs later, and the other ones."""
        now, found = self.plan.turn(arrays, rest)
        if self.plan.turns is None:
            found = self._own([*now, *found])
            return found[: len(now)], found[len(now) :]
        return now, found

    def _own(self, values: list[Any]) -> list[Any]:
        constants = self.plan.constants
        found: list[Any] = []
        seen: set[int] = set()
        for at, value in zip(self.plan.targets, values, strict=True):
            found.append(value.copy("K") if at in seen or constants[at] is not None else value)
            seen.add(at)
        return found


__all__ = ["Recording", "argument", "looked_at"]
