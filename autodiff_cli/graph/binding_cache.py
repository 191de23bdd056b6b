"""How calls of an op were bound, by what equal calls share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .node import Node, Shape


class Known:
    """How a call was bound: `count` nodes, then static arguments; shape and dtype of the result
    once they are known (only of steady ops)."""

    __slots__ = ("count", "dtype", "rest", "shape")

    def __init__(self, count: int, rest: tuple[Any, ...]):
        self.count = count
        self.rest = rest
        self.shape: Shape = ()
        self.dtype: np.dtype | None = None


MOST_KNOWN = 64  # calls that one op remembers


def key_of_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the key of equal calls: shapes and dtypes of the nodes, which come first, and static
    arguments; None for calls that are not alike (the values of floats differ)."""
    key: list[Any] = []
    for value in args:
        kind = type(value)
        if kind is Node:
            key.append(value.shape)
            key.append(value.dtype)
        elif kind in STATIC:
            key.append(kind)  # True is 1
            key.append(value)
        elif kind is tuple and not any(type(size) is not int for size in value):
            key.append(value)
        else:
            return None
    for name, value in kwargs.items():
        if type(value) not in STATIC:
            return None
        key.append(name)
        key.append(value)
        key.append(type(value))
    return tuple(key)


STATIC = frozenset({int, bool, str, type(None)})
