"""Arrays as text: exact for machines, aligned and bounded for people.

Invariant: the work for people is bounded by what is shown, except for the statistics of large
arrays, which read every element once.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from ..defaults import MAX_ELEMENTS, PRECISION
from ..numerals import writable
from .text import format_count, format_number, matrix_lines

SPARK, BINS = "▁▂▃▄▅▆▇█", 16
_EDGE = 2  # rows and columns shown at each end of a large matrix
_VECTOR_EDGE = 3
_FEW = 9  # elements that fit on one line


class Look(NamedTuple):
    """How numbers are shown to people."""

    precision: int = PRECISION
    sci: bool = False
    max_elements: int = MAX_ELEMENTS
    width: int = 80
    unicode: bool = True

    def sums_up(self, array: np.ndarray) -> bool:
        """Whether an array is too large to be shown whole; a single number never is."""
        return array.size > max(1, self.max_elements)


# ------------------------------------------------------------------ for machines


def shortest(array: np.ndarray) -> Any:
    """Nested lists of numbers whose `repr` is the shortest that reads back as the same value."""
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        array = array.astype("U").astype(np.float64)
    return array.tolist()


def strict(array: np.ndarray) -> Any:
    """Nested lists for strict JSON: non-finite numbers are the strings nan, inf and -inf."""
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    flat = array.astype(object).ravel()
    for at in np.flatnonzero(~np.isfinite(array)):
        flat[at] = format_number(float(flat[at]))
    return flat.reshape(array.shape).tolist()


def strict_number(value: Any) -> Any:
    """A Python number for strict JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return format_number(value)
    return value if writable(value) else format_number(value)


# ------------------------------------------------------------------ for people


def cell_lines(array: np.ndarray, look: Look, *, signs: bool = False) -> list[str]:
    """Lines of an array for a table: all of it, or corners and statistics when it is large.

    `signs` adds the distribution of magnitudes, which is what matters of a gradient.
    """
    if look.sums_up(array):
        lines = [statistics(array, brief=signs), *corner(array, look)]
        spark = sparkline(array) if signs and look.unicode else ""
        return [*lines, spark] if spark else lines
    if array.size == 0:
        return ["[]" if array.ndim == 1 else f"empty {array.shape}"]
    return matrix_lines(array.tolist(), look.precision, sci=look.sci)


def brief(array: np.ndarray, precision: int = PRECISION) -> str:
    """An array on one line: itself when it has few elements, else its norm and range."""
    if array.size <= _FEW and array.ndim <= 2:
        return joined(matrix_lines(array.tolist(), precision))
    if array.dtype.kind == "b":
        return f"{int(array.sum())} of {array.size} True"
    shown = extremes(array, precision)
    return " ".join(shown) or ("nothing finite" if array.size else "empty")


def extremes(array: np.ndarray, precision: int = PRECISION) -> list[str]:
    """Norm, smallest and largest finite element; nothing where there is none."""
    low, high = finite_range(array)
    if low is None:
        return []
    found = {"norm": norm(array), "min": low.item(), "max": high.item()}
    return [f"{word} {format_number(number, precision)}" for word, number in found.items()]


def joined(lines: list[str]) -> str:
    """Lines of an array as one, without the spaces that align them."""
    rows = " ".join(line.strip() for line in lines)
    return re.sub(r"(?<=[\[,]) +| +(?=[\],])", "", rows).replace(",", ", ")


def corner(array: np.ndarray, look: Look) -> list[str]:
    """The ends of every dim."""
    edge = _VECTOR_EDGE if array.ndim == 1 else _EDGE
    for dim, size in enumerate(array.shape):
        if size > 2 * edge + 1:
            array = np.take(array, [*range(edge + 1), *range(size - edge, size)], axis=dim)
    return matrix_lines(array.tolist(), min(look.precision, 3), sci=look.sci, edge=edge)


def statistics(array: np.ndarray, *, brief: bool = False) -> str:
    """One line about a large array; `brief` leaves out norm, smallest and largest."""
    if array.dtype.kind == "b":
        return f"{int(array.sum())} of {array.size} elements True"
    parts: list[str] = []
    if not brief:
        parts += extremes(array)
    zeros = array.size - int(np.count_nonzero(array))
    parts.append(f"{100 * zeros // array.size}% zero")
    if array.dtype.kind == "f":
        parts.append(f"{np.count_nonzero(np.isnan(array))} nan")
        parts.append(f"{np.count_nonzero(np.isinf(array))} inf")
    return "   ".join(parts)


def norm(array: np.ndarray) -> float:
    """The Euclidean norm, without overflow on the way."""
    flat = np.abs(np.asarray(array, np.float64).ravel())
    largest = float(flat.max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    scaled = flat / largest
    return largest * math.sqrt(float(scaled @ scaled))


def finite_range(array: np.ndarray) -> tuple[Any, Any]:
    """Smallest and largest finite element, or None twice."""
    if array.dtype.kind == "f":
        array = array[np.isfinite(array)]
    return (array.min(), array.max()) if array.size else (None, None)


def extent(arrays: list[np.ndarray]) -> tuple[Any, Any]:
    """Smallest and largest element of arrays that is no NaN, infinities too; None twice when there
    is none."""
    found = [a[~np.isnan(a)] for a in arrays]
    found = [a for a in found if a.size]
    return (min(a.min() for a in found), max(a.max() for a in found)) if found else (None, None)


def sparkline(array: np.ndarray) -> str:
    """The distribution of log10 of the magnitudes of nonzero finite elements."""
    magnitudes = np.abs(np.asarray(array, np.float64).ravel())
    magnitudes = magnitudes[np.isfinite(magnitudes) & (magnitudes > 0)]
    if not magnitudes.size:
        return ""
    logs = np.log10(magnitudes)
    low, high = float(logs.min()), float(logs.max())
    if high - low < 1e-9:
        return f"log10|g|  {low:.1f} everywhere"
    counts, _ = np.histogram(logs, BINS, (low, high))
    heights = np.ceil(counts / counts.max() * (len(SPARK) - 1)).astype(int)
    return f"log10|g|  {low:.1f} {''.join(SPARK[h] for h in heights)} {high:.1f}"


_OPENING = re.compile(r" *\[+")


def fit_lines(
    lines: list[str], width: int, *, cut: bool = False, columns: int | None = None
) -> list[str]:
    """Lines no wider than `width`: a row goes on in further lines, or with `cut` ends with the
    count of the columns left out, of `columns` when the lines show only some. A single number is
    never broken."""
    if all(len(line) <= width for line in lines):
        return lines
    result: list[str] = []
    for line in lines:
        result += [line] if len(line) <= width else _fit(line, width, cut, columns)
    return result


def _fit(line: str, width: int, cut: bool, columns: int | None) -> list[str]:
    opening = _OPENING.match(line)
    start = opening.end() if opening else 0
    entries = line[start:].split(", ")
    if len(entries) == 1:
        return [line]
    if cut:
        return [_cut(line[:start], [entry.strip() for entry in entries], width, columns)]
    rows: list[str] = []
    row = line[:start] + entries[0]
    for entry in entries[1:]:
        if len(row) + len(entry) + 3 > width:
            rows.append(row + ",")
            row = " " * start + entry
        else:
            row += ", " + entry
    rows.append(row)
    return rows


def _cut(head: str, entries: list[str], width: int, columns: int | None) -> str:
    last = entries[-1]
    closing = last[len(last.rstrip("],")) :]
    total = len(entries) if columns is None else columns
    most = entries.index("...") if "..." in entries else len(entries) - 1
    for kept in range(most, 0, -1):
        left = format_count(total - kept, "more column")
        row = f"{head}{', '.join(entries[:kept])}, … {left}{closing}"
        if len(row) <= width:
            break
    return row
