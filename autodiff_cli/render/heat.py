"""Sign and size of numbers as the colour of their background.

Invariant: the scale is symmetric about zero (blue, none, red) and belongs to the whole tensor.
"""

from __future__ import annotations

import re

import numpy as np
from rich.text import Text

BAD, DIM = "bold black on yellow", "dim"

_NUMBER = re.compile(r"-?(?:nan|inf|\d[\d.]*(?:e[+-]?\d+)?)")


def scale_of(array: np.ndarray) -> float:
    """The largest finite magnitude; 0 when there is nothing to compare."""
    if array.dtype.kind not in "fiu":
        return 0.0
    magnitudes = np.abs(np.asarray(array, np.float64))
    finite = magnitudes[np.isfinite(magnitudes)]
    return float(finite.max(initial=0.0))


def background(share: float) -> str:
    """The colour of a value between -1 (blue), 0 (none) and 1 (red)."""
    if not abs(share) >= 0.02:  # nan too
        return ""
    share = max(-1.0, min(1.0, share))
    depth = round(60 + 150 * abs(share))
    return f"rgb({depth},20,30)" if share > 0 else f"rgb(20,40,{depth})"


def cell_style(share: float) -> str:
    """A number on its background; white, because the background is dark on light terminals too."""
    color = background(share)
    return f"rgb(255,255,255) on {color}" if color else ""


LEGEND = {"< 0": cell_style(-1), "> 0": cell_style(1), "nan": BAD, "inf": BAD}
SIGNS = {"< 0", "> 0"}  # the two ends of one scale; alone they would read as a condition


def meanings(line: Text) -> set[str]:
    """Which entries of the legend the backgrounds in a line of numbers are of."""
    numbers = {
        line.plain[span.start : span.end].lstrip("-") for span in line.spans if span.style != DIM
    }
    bad = numbers & LEGEND.keys()
    return bad | SIGNS if numbers - bad else bad


def is_summary(line: str) -> bool:
    """Whether a line says what many numbers are like."""
    return "log10|g|" in line or "% zero" in line


def heated(line: str, scale: float) -> Text:
    """A line of numbers on backgrounds that show sign and size; NaN and infinity on yellow."""
    text = Text(line)
    if is_summary(line):
        text.stylize(DIM)
        return text
    for match in _NUMBER.finditer(line.partition("…")[0]):
        if match[0].lstrip("-") in ("nan", "inf"):
            text.stylize(BAD, *match.span())
        elif scale:
            style = cell_style(float(match[0]) / scale)
            if style:
                text.stylize(style, *match.span())
    return text
