"""Integers of NumPy's: ints that know their dtype, compute and wrap around as NumPy's do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


class NumpyInteger(int):
    """An integer that NumPy gave, for Python as good as an int."""

    __slots__ = ()
    dtype: np.dtype

    def __repr__(self) -> str:
        return f"np.{self.dtype.name}({int(self)})"

    __str__ = int.__repr__

    def __neg__(self) -> Any:
        return computed(operator.neg, self)

    def __invert__(self) -> Any:
        return computed(operator.invert, self)


INTEGERS: dict[np.dtype, type[NumpyInteger]] = {
    np.dtype(name): type(name, (NumpyInteger,), {"__slots__": (), "dtype": np.dtype(name)})
    for name in ("int64", "int32", "int16", "int8", "uint8")
}
NUMPY_NUMBERS = frozenset({np.float64, *INTEGERS.values()})


def to_numpy(value: Any) -> Any:
    """A number as NumPy computes with it."""
    return value.dtype.type(int(value)) if isinstance(value, NumpyInteger) else value


def of_numpy(value: Any) -> Any:
    """A scalar of NumPy as programs hold it: those that are no numbers of Python's, as arrays
    without dims, are made into such elsewhere."""
    if isinstance(value, np.integer):
        kind = INTEGERS.get(value.dtype)
        return int(value) if kind is None else kind(value)
    return value


def to_python(value: Any) -> Any:
    """A number as Python's own."""
    value = to_numpy(value)
    return value.item() if isinstance(value, np.generic) else value


def computed(function: Callable[..., Any], *numbers: Any) -> Any:
    """What a function gives for numbers of which one is NumPy's."""
    with np.errstate(all="ignore"):
        return of_numpy(function(*map(to_numpy, numbers)))
