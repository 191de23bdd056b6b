"""`--heat NAME`: a tensor as a picture, half blocks of two colours or shades of magnitudes.

Invariant: a picture has a bounded number of cells whatever the tensor, and is left out where it
cannot be shown; its title is always there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from ...suggest import unknown
from ..files import CannotWrite
from ..heat import background, scale_of
from ..text import format_number, format_shape, text_width

if TYPE_CHECKING:
    from ...session import Report
    from ..tables import Page

DIM = "dim"
SHADES = " ·░▒▓█"
ROWS, COLUMNS = 20, 40  # cells of the largest picture


def print_pictures(report: Report, names: Sequence[str], page: Page) -> None:
    """Print the picture of each name, or `CannotWrite` before anything is printed."""
    arrays = [(name, _array(report, name)) for name in names]
    look = page.look
    for at, (name, array) in enumerate(arrays):
        if at:
            page.line()
        for line in picture(name, array, color=page.heat, unicode=look.unicode, width=look.width):
            page.line(line)


def _array(report: Report, name: str) -> np.ndarray:
    """The value of `A`, the gradient of `A.grad`."""
    record = report.tensors.get(name)
    if record is not None:
        return record.value
    record = report.tensors.get(name.removesuffix(".grad"))
    if record is not None and record.grad is not None:
        return record.grad
    if record is not None:
        raise CannotWrite(f"--heat {name}: `{record.name}` has no gradient", "name another tensor")
    known = [n for r in report.tensors.values() for n in (r.name, f"{r.name}.grad")]
    raise unknown(f"--heat {name}: the program has no such tensor", name, known)


def picture(name: str, array: np.ndarray, *, color: bool, unicode: bool, width: int) -> list[Text]:
    """A heat map with its title: half blocks of two colours, or shades of magnitudes."""
    shape = format_shape(array.shape)
    grid = grid_of(array)
    if grid is None:
        return _title(name, ["  nothing to picture", shape], width)
    cells = reduced(grid, ROWS, max(1, min(COLUMNS, (width - 2) // (1 if color else 2))))
    unit = "g" if name.endswith(".grad") else "x"
    parts = [f"  {unit} / max" if color else f"  |{unit}| / max", shape]
    parts.append(f"max {format_number(scale_of(grid))}")
    if grid.shape != cells.shape:
        rows, columns = (-(-grid.shape[dim] // cells.shape[dim]) for dim in (0, 1))
        parts.append(f"means of {rows}x{columns}")
    if not unicode:
        return _title(name, [*parts, "(the picture needs UTF-8)"], width)
    largest = scale_of(cells)
    shares = cells / largest if largest else cells
    return [*_title(name, parts, width), *(_blocks(shares) if color else _shades(shares))]


def _title(name: str, parts: list[str], width: int) -> list[Text]:
    """The name and what is said of it, in as many lines as that takes."""
    lines = [Text(name, "bold")]
    for at, part in enumerate(parts):
        gap = "   " if at else ""
        if text_width(lines[-1].plain) + len(gap + part) > width:
            lines.append(Text(f"  {part.strip()}", DIM))
        else:
            lines[-1].append(gap + part, DIM)
    return lines


def grid_of(array: np.ndarray) -> np.ndarray | None:
    """The tensor as a matrix: a vector is one row, leading dims are stacked."""
    if not array.size or array.dtype.kind not in "fiub":
        return None
    values = array.astype(np.float64)
    return values.reshape(1, -1) if values.ndim < 2 else values.reshape(-1, values.shape[-1])


def reduced(grid: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """At most so many cells: means of magnitudes, with the sign of the sum."""
    sizes, sums = np.abs(grid), grid
    for axis, most in ((0, rows), (1, columns)):
        length = grid.shape[axis]
        if length > most:
            starts = np.arange(most) * length // most
            counts = np.diff(np.append(starts, length))
            counts = counts[:, None] if axis == 0 else counts
            sizes = np.add.reduceat(sizes, starts, axis) / counts
            sums = np.add.reduceat(sums, starts, axis)
    return np.copysign(sizes, sums)


def _shades(shares: np.ndarray) -> list[Text]:
    """Two characters a cell; not a number is `!!`."""

    def shade(share: float) -> str:
        if not math.isfinite(share):
            return "!"
        return SHADES[0 if share == 0 else min(5, 1 + int(share * 5))]

    return [Text(" " + "".join(shade(abs(v)) * 2 for v in row)) for row in shares]


def _blocks(shares: np.ndarray) -> list[Text]:
    """One line for two rows: the upper as foreground, the lower as background."""
    lines = []
    for at in range(0, len(shares), 2):
        line = Text(" ")
        lower = shares[at + 1] if at + 1 < len(shares) else None
        for column, share in enumerate(shares[at]):
            over = _color(share)
            under = "default" if lower is None else _color(lower[column])
            line.append("▀", f"{over} on {under}")
        lines.append(line)
    return lines


def _color(share: float) -> str:
    """The colour of a cell; what is not finite is yellow, zero nearly black."""
    if not math.isfinite(share):
        return "rgb(230,200,0)"
    return background(share) or "rgb(24,24,28)"
