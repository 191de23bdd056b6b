"""Numbers and arrays as text for people: the same in tables, trees and diagnostics.

Nothing here imports numpy; arrays come as nested lists.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from .defaults import PRECISION
from .source import shortened

_WHOLE = re.compile(r"-?\d+|")  # what stands before the point; nothing of what is no number
_ROW = 9  # numbers that stand in one row, with nothing above or below them
DIGITS = 4301  # the most that Python writes of an integer, and its sign


def format_number(value: float | int | bool, precision: int = PRECISION, sci: bool = False) -> str:
    """A number for people: `precision` significant digits, whole floats without `.0`."""
    if isinstance(value, bool | int):
        return short(value, DIGITS)
    value = value or 0.0  # no minus before zero
    return f"{value:.{max(0, precision - 1)}e}" if sci else f"{value:.{precision}g}"


def dust(value: object, scale: float) -> bool:
    """Whether a number is what rounding leaves of a zero beside numbers as large as `scale`; much
    smaller ones are no rounding."""
    most = min(scale * 2**-51, 1e-12)
    return isinstance(value, float) and most * 2**-12 < abs(value) <= most


def short(value: Any, most: int = 30) -> str:
    """The beginning of a number's text; of integers that Python does not write out how long they
    are."""
    try:
        return shortened(str(value), most)
    except ValueError:
        return f"<integer of {value.bit_length()} bits>"


def writable(value: float) -> bool:
    """Whether Python writes the number out: no integers of thousands of digits."""
    return not isinstance(value, int) or value.bit_length() <= 3 * DIGITS


def aligned(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Rows of cells as columns, a gap apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [gap.join(map(str.ljust, row, widths)).rstrip() for row in rows]


def matrix_lines(
    values: Any, precision: int = PRECISION, *, sci: bool = False, edge: int | None = None
) -> list[str]:
    """Lines of a number or a nested list, all entries with their points below each other; an entry
    that is text already stays as it is.

    With `edge`, only that many items are shown at each end of a list longer than twice `edge`.
    """
    entries: list[Any] = []

    def shown(level: Any) -> Any:
        if not isinstance(level, list):
            entries.append(level)
            return len(entries) - 1
        if edge is None or len(level) <= 2 * edge:
            return [shown(item) for item in level]
        return [*map(shown, level[:edge]), ..., *map(shown, level[len(level) - edge :])]

    tree = shown(values)
    texts = _column(entries, precision, sci)
    if entries and tree == [*range(len(entries))] and len(entries) <= _ROW:
        texts = [text.strip() for text in texts]

    def lines(level: Any) -> list[str]:
        if level is ...:
            return ["..."]
        if not isinstance(level, list):
            return [texts[level]]
        if not any(isinstance(item, list) for item in level):
            return ["[" + ", ".join(lines(item)[0] for item in level) + "]"]
        result: list[str] = []
        for position, item in enumerate(level):
            block = [" " + line for line in lines(item)]
            if position == 0:
                block[0] = "[" + block[0][1:]
            block[-1] += "]" if position == len(level) - 1 else ","
            result += block
        return result

    return lines(tree)


def _column(entries: list[Any], precision: int, sci: bool) -> list[str]:
    """Numbers as texts of one width; what rounding leaves of numbers as large as these is 0."""
    floats = [abs(e) for e in entries if isinstance(e, float) and math.isfinite(e)]
    scale = max(floats, default=0.0)
    texts = [
        e if isinstance(e, str) else format_number(0.0 if dust(e, scale) else e, precision, sci)
        for e in entries
    ]
    points = [len(_WHOLE.match(t)[0]) for t in texts]  # type: ignore[index]  # it matches all
    before = max(points, default=0)
    texts = [" " * (before - at) + t if at else t for t, at in zip(texts, points, strict=True)]
    width = max(map(len, texts), default=0)
    return [t.ljust(width) if at else t.rjust(width) for t, at in zip(texts, points, strict=True)]
