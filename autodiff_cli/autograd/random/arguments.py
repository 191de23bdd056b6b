"""What random functions take: shapes, dtypes, seeds, bounds, and the errors of wrong ones."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import fault
from ...graph.sizes import FITTING, check_size
from ...graph.state import STATE

Shape = int | Sequence[int]
DType = np.dtype | type
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


def seed_number(seed: object) -> int:
    try:
        number = int(seed) if isinstance(seed, float) else operator.index(seed)  # type: ignore[arg-type]  # what index refuses is caught
    except (TypeError, ValueError, OverflowError):
        raise fault("E205 seed-whole-number", seed, kind=type(seed).__name__) from None
    if not INT64_MIN <= number < 1 << 64:
        raise fault("E205 seed-lies-between")
    return number % (1 << 64)


def whole_number(value: object, name: str) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # what index refuses is caught
    except TypeError:
        raise fault("E205 must-whole-number", name, value) from None
    if not INT64_MIN <= number <= INT64_MAX:
        raise fault("E205 does-not-fit-bits", name, str(number))
    return number


def checked_size(shape: Shape, kind: DType = np.float32) -> tuple[int, ...]:
    """The shape as a tuple; E309 for negative sizes, E505 beyond the limit on memory, E606 where
    that is for blocks of rows."""
    entries = shape if isinstance(shape, Sequence) else (shape,)
    size = tuple(whole_number(length, "a size") for length in entries)
    if any(length < 0 for length in size):
        raise fault("E309 tensor-cannot-shape", size)
    check_size(size, np.dtype(kind))
    if STATE.observer is not None:
        STATE.observer.draws(FITTING[size])
    return size


def floating_dtype(dtype: Any, name: str) -> np.dtype:
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise fault("E307 works-floating-point-numbers", name, kind)
    return kind


def largest_integer(kind: np.dtype) -> int:
    return 1 if kind == np.bool_ else int(np.iinfo(kind).max)


def check_probability(p: float, name: str) -> None:
    if not 0 <= p <= 1:
        raise fault("E205 needs-probability-2", name, p)


def representable_bounds(start: int, stop: int, kind: np.dtype) -> tuple[int, int]:
    """Bounds moved inwards so that no result rounds out of [start, stop) in a float dtype."""
    digits = np.finfo(kind).nmant + 1
    largest = float(np.finfo(kind).max)
    for name, bound in (("from", start), ("to - 1", stop - 1)):
        if not -largest <= bound <= largest:
            raise fault("E205 range-does-not-fit", start, stop, kind, bound=name)
    above, below = int(kind.type(start + 1)), int(kind.type(stop - 1))
    if above < start:
        start = above + (1 << (abs(start).bit_length() - digits))
    if below >= stop:
        stop = below - (1 << (abs(stop - 1).bit_length() - digits))
    if start >= stop:
        raise fault("E205 none-lies-between", kind, start, stop)
    return start, stop
