"""`#=> VALUE`: reading what is written, comparing to the digits written, writing it anew.

Invariant: a value written by `written` is accepted by `compare` for the array it was made from.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from typing import Any

import numpy as np

from ..autograd.tensor import Tensor
from ..language.errors.array_diff import both, most_different
from ..language.values.formatting import text as shown_text

_NUMBER = re.compile(r"[+-]?(?:(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|nan|True\b|False\b)")
_GAP = re.compile(r"[\s,]*")
MAX_WRITTEN = 1000


class Unreadable(Exception):
    """The text after `#=>` is no number and no nested list of numbers."""


class Written:
    """Numbers as they stand in a text: their values and half a unit of their last digits."""

    def __init__(self, values: np.ndarray, units: np.ndarray):
        self.values = values
        self.units = units


def read(text: str) -> Written:
    """The numbers of a text; `Unreadable` when it is something else."""
    try:
        values, units, at = _read_part(text, 0)
        if text[at:].strip():
            raise Unreadable
        return Written(np.array(values, np.float64), np.array(units, np.float64))
    except (ValueError, OverflowError, RecursionError):
        raise Unreadable from None


def _read_part(text: str, at: int) -> tuple[Any, Any, int]:
    if text[at : at + 1] == "[":
        at += 1
        values: list[Any] = []
        units: list[Any] = []
        while True:
            at = _GAP.match(text, at).end()  # type: ignore[union-attr]  # it matches all
            if text[at : at + 1] == "]":
                return values, units, at + 1
            value, unit, at = _read_part(text, at)
            values.append(value)
            units.append(unit)
    match = _NUMBER.match(text, at)
    if match is None:
        raise Unreadable
    return *_number(match[0]), match.end()


def _number(word: str) -> tuple[float, float]:
    """A number and the tolerance that its digits say; whole numbers are meant exactly."""
    if word in ("True", "False"):
        return float(word == "True"), 0.0
    value = float(word.replace("_", ""))
    mantissa, _, exponent = word.lower().partition("e")
    if not math.isfinite(value) or ("." not in mantissa and not exponent):
        return value, 1e-7 * abs(value) if math.isfinite(value) else 0.0
    decimals = len(mantissa.partition(".")[2])
    unit = 0.5 * 10.0 ** (int(exponent or 0) - decimals)
    return value, unit * (1 + 1e-9) + 1e-12 * abs(value)


def as_numbers(value: Any) -> np.ndarray | None:
    """A value as an array; None when it is no tensor, number or numeric list."""
    if isinstance(value, Tensor):
        return np.asarray(value.numpy())
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bool | int | float):
        return np.asarray(value)
    if isinstance(value, list | tuple):
        try:
            array = np.array(value)
        except ValueError:
            return None
        return array if array.dtype.kind in "biuf" else None
    return None


def compare(text: str, value: Any) -> str | None:
    """None when a value is what was written; else what differs, in a few words."""
    if not text:
        return "nothing is written"
    array = as_numbers(value)
    if array is None:
        return None if text == shown_text(value) else f"it is {shown_text(value)[:200]}"
    try:
        wanted = read(text)
    except Unreadable:
        return f"`{text[:60]}` is no number and no list of numbers"
    if wanted.values.size == 0 and array.size == 0:
        return None
    if wanted.values.shape != array.shape:
        return f"shapes differ: written {wanted.values.shape}, found {tuple(array.shape)}"
    found = array.astype(np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(found - wanted.values)
    near = (error <= wanted.units) | (found == wanted.values)
    near |= np.isnan(found) & np.isnan(wanted.values)
    if not array.shape and not near:
        return f"written {text[:60]}, found {float(found):.9g}"
    return most_different(wanted.values, found, near, "written {:.9g}, found {:.9g}")


def sides(text: str, value: Any) -> tuple[str, ...]:
    """What is written and what was found, side by side, when both are arrays of numbers."""
    array = as_numbers(value)
    try:
        wanted = read(text).values
    except Unreadable:
        return ()
    if array is None or max(array.size, wanted.size) <= 1:
        return ()
    return (both(wanted, array, titles=("written", "found")),)


def written(value: Any) -> str | None:
    """The text of a value for `#=>`; None when it is too large to be written."""
    array = as_numbers(value)
    if array is None:
        text = shown_text(value)
        return text if "\n" not in text and len(text) <= 200 else None
    if array.size > MAX_WRITTEN:
        return None
    return _nested(array.tolist())


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_nested, value)) + "]"
    return _short(value)


def _short(value: bool | int | float) -> str:
    if isinstance(value, bool | int) or not math.isfinite(value):
        return repr(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    short = f"{value:.6g}"
    if "." in short or "e" in short:
        return short
    return repr(value)


def rewritten(raw: str, edits: list[tuple[int, int, str]]) -> str:
    """The text of a file with new values; `edits` count characters of the decoded program, where a
    line end is one character and a byte-order mark is none."""
    mark = raw.startswith("\ufeff")
    breaks = [match.start() for match in re.finditer("\r\n", raw)]
    # In the decoded text each line end before a place has made it one character earlier.
    ends = [at - mark - number for number, at in enumerate(breaks)]
    for start, end, fresh in sorted(edits, reverse=True):
        first, last = (at + mark + bisect_left(ends, at) for at in (start, end))
        gap = "" if first and raw[first - 1].isspace() else " "
        raw = raw[:first] + gap + fresh + raw[last:]
    return raw
