"""What random functions take: shapes, dtypes, seeds, bounds, and the errors of wrong ones."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import AutodiffError, fail, fault
from ...graph.sizes import FITTING, check_size
from ...graph.state import STATE

Shape = int | Sequence[int]
DType = np.dtype | type
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


def wrong_argument(message: str, help: str, raises: str = "") -> AutodiffError:
    return fail("E205", message, help=help, raises=raises)


def seed_number(seed: object) -> int:
    try:
        number = int(seed) if isinstance(seed, float) else operator.index(seed)  # type: ignore[arg-type]  # what index refuses is caught
    except (TypeError, ValueError, OverflowError):
        raise wrong_argument(
            f"a seed is a whole number, not {seed!r:.60}", "torch.manual_seed(0)"
        ) from None
    if not INT64_MIN <= number < 1 << 64:
        raise wrong_argument("a seed lies between -2**63 and 2**64 - 1", "torch.manual_seed(0)")
    return number % (1 << 64)


def whole_number(value: object, name: str) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # what index refuses is caught
    except TypeError:
        raise wrong_argument(
            f"{name} must be a whole number, not {value!r:.60}", "a number such as 10"
        ) from None
    if not INT64_MIN <= number <= INT64_MAX:
        raise wrong_argument(
            f"{name}: {str(number)[:40]} does not fit 64 bits", "a number such as 10"
        )
    return number


def checked_size(shape: Shape, kind: DType = np.float32) -> tuple[int, ...]:
    """The shape as a tuple; E309 for negative sizes, E505 beyond the limit on memory, E606 where
    that is for blocks of rows."""
    entries = shape if isinstance(shape, Sequence) else (shape,)
    size = tuple(whole_number(length, "a size") for length in entries)
    if any(length < 0 for length in size):
        raise fail("E309", f"a tensor cannot have the shape {size}", help="sizes from 0 on")
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
    if not float(np.finfo(kind).min) <= start <= stop - 1 <= float(np.finfo(kind).max):
        raise wrong_argument(
            f"the range from {start} to {stop} does not fit {kind.name}", "torch.float64"
        )
    above, below = int(kind.type(start + 1)), int(kind.type(stop - 1))
    if above < start:
        start = above + (1 << (abs(start + 1).bit_length() - digits))
    if below >= stop:
        stop = below - (1 << (abs(stop - 1).bit_length() - digits))
    if start >= stop:
        raise wrong_argument(
            f"no {kind.name} lies between {start} and {stop}", "dtype=torch.float64"
        )
    return start, stop
