"""Two arrays that should be equal, shown to a person: where they differ most, and both of them.

Invariant: the work is bounded by what is shown, besides one pass over the elements.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from ...graph.sizes import shape_text
from ...numerals import aligned, matrix_lines

MAX_ROWS = 5
MAX_ELEMENTS = 64  # larger arrays are shown by their corners
MAX_LINES = 12
WIDTH = 72  # wider blocks stand below each other
GAP = "         "


def elements(
    x: np.ndarray, y: np.ndarray, near: np.ndarray, rtol: float, atol: float
) -> tuple[str, str]:
    """How many elements differ, and a table of those that differ most."""
    bad = np.flatnonzero(~near)
    with np.errstate(all="ignore"):
        error = np.abs(x - y).reshape(-1)
        relative = error / np.maximum(np.abs(x), np.abs(y)).reshape(-1)
    order = np.argsort(-np.nan_to_num(error[bad], nan=np.inf), kind="stable")[:MAX_ROWS]
    rows = [("index", "left", "right", "abs diff", "rel diff", "allowed")]
    for flat in bad[order]:
        at = tuple(int(i) for i in np.unravel_index(int(flat), x.shape))
        rows.append(
            (
                str(list(at)) if at else "()", f"{x[at]:.9g}", f"{y[at]:.9g}",
                f"{error[flat]:.3g}", f"{relative[flat]:.2g}",
                f"{atol + rtol * abs(float(y[at])):.2g}",
            )
        )  # fmt: skip
    lines = aligned(rows)
    if len(bad) > len(order):
        lines.append(f"... and {len(bad) - len(order)} more")
    summary = differing(len(bad), x.size)
    if not x.shape:
        summary = f"{float(x):.9g} is not {float(y):.9g}"
    return summary, "\n" + "\n".join(lines)


def differing(count: int, total: int) -> str:
    """`2 of 6 elements differ`."""
    return "the only element differs" if total == 1 else f"{count} of {total} elements differ"


def most_different(x: np.ndarray, y: np.ndarray, near: np.ndarray, words: str) -> str | None:
    """How many elements differ, and the two that differ most, in these words; None for equal
    arrays."""
    if near.all():
        return None
    with np.errstate(all="ignore"):
        error = np.nan_to_num(np.where(near, 0.0, np.abs(x - y)), nan=np.inf)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    said = words.format(float(x[at]), float(y[at]))
    return f"{differing(int((~near).sum()), near.size)}, most at {list(at)}: {said}" if at else said


def both(
    x: np.ndarray,
    y: np.ndarray,
    near: np.ndarray | None = None,
    titles: tuple[str, str] = ("left", "right"),
) -> str:
    """Both arrays side by side, and, where `near` says which elements agree, their difference."""
    blocks = [_block(titles[0], x), _block(titles[1], y)]
    if near is not None and x.size <= MAX_ELEMENTS:
        with np.errstate(all="ignore"):
            difference = (x - y).astype(object)
        difference[near] = "."
        blocks.append([" - ".join(titles), *matrix_lines(difference.tolist())])
    widths = [max(map(len, block)) for block in blocks]
    if sum(widths) + len(GAP) * (len(blocks) - 1) > WIDTH:
        return "\n" + "\n".join(line for block in blocks for line in block)
    return "\n" + "\n".join(aligned([*zip_longest(*blocks, fillvalue="")], GAP))


def _block(title: str, array: np.ndarray) -> list[str]:
    """A title with the shape, and the elements: all of them, or those at the ends of every dim."""
    head = f"{title}  {shape_text(array.shape)}"
    if array.size == 0:
        return [head]
    if array.size <= MAX_ELEMENTS:
        return [head, *matrix_lines(array.tolist())]
    edge = max(1, 4 - array.ndim)
    for dim, size in enumerate(array.shape):
        if size > 2 * edge + 1:
            ends: Any = [*range(edge + 1), *range(size - edge, size)]
            array = np.take(array, ends, axis=dim)
    lines = matrix_lines(array.tolist(), edge=edge)
    return [head, *lines[:MAX_LINES], *(["..."] if len(lines) > MAX_LINES else [])]
