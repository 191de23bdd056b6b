"""Arrays as HTML: numbers, tables with cells coloured by sign and size, pictures of large ones.

Invariant: no element has a style of its own; colours are classes that the style sheet gives a
meaning on light and on dark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import escape

import numpy as np

from ...numerals import dust
from ..heat import scale_of
from ..pictures.blocks import grid_of, reduced
from ..text import format_number, format_shape
from ..values import extremes, sparkline

MOST = 64  # elements that are written out
LEVELS = 6
LINE = 8  # numbers that stand beside or below one another in full size
ROWS, COLUMNS = 24, 48  # cells of a picture


def value(array: np.ndarray, precision: int) -> str:
    """An array as people look at it."""
    if array.size == 1 and not array.ndim:
        return f'<span class="number">{_number(array.item(), precision)}</span>'
    if not array.size:
        return f'<span class="number">empty {format_shape(array.shape)}</span>'
    if array.size > MOST:
        return picture(array, precision)
    scale = scale_of(array)
    if array.ndim <= 2:
        return _table(np.atleast_2d(array), scale, precision, array.shape)
    parts = []
    for index in np.ndindex(array.shape[:-2]):
        where = ", ".join(map(str, index))
        parts.append(
            f'<div class="slice"><small>[{where}]</small>'
            f"{_table(array[index], scale, precision, array.shape[-2:])}</div>"
        )
    return f'<div class="slices">{"".join(parts)}</div>'


def _table(array: np.ndarray, scale: float, precision: int, shape: tuple[int, ...]) -> str:
    rows = "".join(
        "<tr>" + "".join(_cell(x, scale, precision) for x in row) + "</tr>"
        for row in array.tolist()
    )
    height, width = array.shape
    kind = "matrix" + " vector" * (height == 1) + " long" * (height == 1 and width > LINE)
    kind += " tall" * (height > LINE) + " wide" * (width > LINE // 2)
    return f'<table class="{kind}" aria-label="shape {format_shape(shape)}">{rows}</table>'


def _cell(x: object, scale: float, precision: int) -> str:
    level, shown = _level(x, scale), _number(x, precision)
    if dust(x, scale):
        return f'<td class="dust" title="{shown}">≈ 0</td>'
    return f'<td class="{level}">{shown}</td>' if level else f"<td>{shown}</td>"


def _number(x: object, precision: int) -> str:
    shown = str(x) if isinstance(x, (bool, complex)) else format_number(x, precision)  # type: ignore[arg-type]  # of an array
    return escape(re.sub("^-", "\N{MINUS SIGN}", shown))


def _level(x: object, scale: float) -> str:
    """The class of a number: `p1` to `p6` above zero, `m1` to `m6` below, `bad` if not finite."""
    if not isinstance(x, (int, float)) or isinstance(x, bool):
        return ""
    if not math.isfinite(x):
        return "bad"
    share = abs(x) / scale if scale else 0.0
    if share < 0.02:
        return ""
    return f"{'p' if x > 0 else 'm'}{max(1, math.ceil(share * LEVELS))}"


def picture(array: np.ndarray, precision: int, rows: int = ROWS, columns: int = COLUMNS) -> str:
    """A heat map, with what numbers say of it."""
    grid = grid_of(array)
    words = escape(_said(array, precision))
    if grid is None:
        return f'<p class="number">{words}</p>'
    cells = reduced(grid, rows, columns)
    height, width = cells.shape
    scale = scale_of(cells)
    paths: dict[str, list[str]] = {}
    for at, level, start, length in _runs(cells, scale):
        paths.setdefault(level, []).append(f"M{start} {at}h{length}v1h-{length}z")
    drawn = "".join(
        f'<path class="{level}" d="{"".join(paths[level])}"/>' for level in sorted(paths)
    )
    note = words
    if cells.shape != grid.shape:
        note += f", means of {-(-grid.shape[0] // height)}×{-(-grid.shape[1] // width)}"
    pixels = min(22, 440 // width, 320 // height)
    return (
        f'<figure><svg class="heat" role="img" aria-label="{note}" viewBox="0 0 {width} {height}" '
        f'width="{pixels * width}" height="{pixels * height}" preserveAspectRatio="none" '
        f'shape-rendering="crispEdges">{drawn}</svg><figcaption>{note}</figcaption></figure>'
    )


def _runs(cells: np.ndarray, scale: float) -> Iterator[tuple[int, str, int, int]]:
    """Cells of one colour beside one another: row, class, first column, count."""
    for at, row in enumerate(cells.tolist()):
        levels = [_level(x, scale) for x in row]
        start = 0
        for end in range(1, len(levels) + 1):
            if end == len(levels) or levels[end] != levels[start]:
                if levels[start]:
                    yield at, levels[start], start, end - start
                start = end


def _said(array: np.ndarray, precision: int) -> str:
    shown = extremes(array, precision) if array.dtype.kind in "fiu" else []
    return ", ".join([format_shape(array.shape), *shown])


def histogram(array: np.ndarray) -> str:
    """How the magnitudes of a gradient are spread, where there are enough of them."""
    if array.size <= MOST or array.dtype.kind != "f":
        return ""
    spread = sparkline(array)
    return f'<p class="spark">{escape(spread)}</p>' if spread else ""
