"""What the session prints about values: short after assignments, whole for expressions.

Invariant: no line is wider than the look says unless a single number is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any

import numpy as np

from ..autograd.tensor import Tensor
from ..graph.op import value_of
from ..language.values.dialect import kind_of
from ..language.values.formatting import represent, text
from ..language.values.values import UserFunction
from ..render.text import WORD, clip, format_number, format_shape, pad, printable, text_width
from ..render.values import Look, cell_lines, fit_lines, norm

LONGEST = 10_000  # characters of a value that is no tensor


def indented(value: Any, look: Look, python: bool) -> list[str]:
    """A value in full below its name."""
    room = look._replace(width=look.width - 2)
    return [f"  {line}" for line in value_lines(value, room, python)]


def value_lines(value: Any, look: Look, python: bool) -> list[str]:
    """A value in full, as a bare expression shows it."""
    if isinstance(value, Tensor) and not python:
        array = value_of(value.node)
        if not array.shape:
            return [format_number(array.item(), look.precision, look.sci)]
        head = []
        if array.size > look.max_elements:
            head = [f"{format_shape(array.shape)} {array.dtype.name}"]
        return head + fit_lines(cell_lines(array, look), look.width)
    if isinstance(value, float) and not python:
        return [format_number(value, look.precision, look.sci)]
    words = represent(value) if isinstance(value, str) or python else text(value)
    if len(words) > LONGEST:
        words = f"{words[:LONGEST]} ... ({len(words)} characters)"
    return [printable(line, LONGEST + 100) for line in words.split("\n")]


def assigned_line(name: str, value: Any, look: Look) -> str:
    """`A  (2, 2)`, `loss  40`, `n  3`: what an assignment made."""
    return clip(f"{name}  {summary(value, look)}", look.width, _ellipsis(look))


def summary(value: Any, look: Look) -> str:
    """A value in a few words: the number, the shape, the kind."""
    if isinstance(value, Tensor):
        shape, dtype = tuple(value.shape), value.dtype.name
        if shape:
            return format_shape(shape) + ("" if dtype == "float64" else f" {dtype}")
        return format_number(value_of(value.node).item(), look.precision, look.sci)
    if isinstance(value, bool | int | float | str) or value is None:
        return clip(printable(represent(value), WORD), 60, _ellipsis(look))
    if isinstance(value, UserFunction):
        return f"function({', '.join([*value.params.positional, *value.params.keyword])})"
    if isinstance(value, list | tuple | dict | set):
        return f"{type(value).__name__} of {len(value)}"
    return kind_of(value)


def describe(value: Tensor) -> str:
    """`float64 leaf`, `float32 <MulBackward0>`, `int64 const`."""
    origin = value.grad_name
    made = f"<{origin}>" if origin else "leaf" if value.requires_grad else "const"
    return f"{value.dtype.name} {made}"


def table(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """Columns two spaces apart; the last one goes on in further lines."""
    if not rows:
        return []
    sizes = [max(text_width(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    start = sum(sizes) + 2 * len(sizes)
    if width - start < 24:  # too narrow for columns: the last one has lines of its own
        start, sizes = 4, []
    lines = []
    for row in rows:
        parts = wrap(row[-1], max(16, width - start)) or [""]
        head = "  ".join(pad(cell, size) for cell, size in zip(row, sizes, strict=False))
        if not sizes:
            lines += wrap("  ".join(cell for cell in row[:-1] if cell), width)
            lines += [f"    {part}" for part in parts if part]
            continue
        lines.append(f"{head}  {parts[0]}".rstrip())
        lines += [" " * start + part for part in parts[1:]]
    return lines


def side_by_side(blocks: list[list[str]], width: int) -> list[str]:
    """Blocks of lines beside each other as long as they fit, then below."""
    rows: list[list[list[str]]] = []
    used = 0
    for block in blocks:
        size = max(map(text_width, block))
        if rows and used + 5 + size <= width:
            rows[-1].append(block)
            used += 5 + size
        else:
            rows.append([block])
            used = size
    return [line for row in rows for line in _row(row)]


def _row(blocks: list[list[str]]) -> list[str]:
    sizes = [max(map(text_width, block)) for block in blocks]
    return [
        "     ".join(map(pad, cells, sizes)).rstrip()
        for cells in zip_longest(*blocks, fillvalue="")
    ]


def gradient_block(name: str, gradient: np.ndarray | None, look: Look) -> list[str]:
    """`A.grad  [[3, 5],` and the lines below it."""
    head = f"{name}.grad  "
    if gradient is None:
        return [f"{head}None"]
    if gradient.size > look.max_elements:
        title = f"{head}{format_shape(gradient.shape)}  norm {format_number(norm(gradient))}"
        return [title, *(f"  {line}" for line in cell_lines(gradient, look, signs=True))]
    if not gradient.shape:
        return [head + format_number(gradient.item(), look.precision, look.sci)]
    margin = text_width(head)
    room = max(20, look.width - margin)
    lines = fit_lines(cell_lines(gradient, look), room)
    return [(" " * margin if at else head) + line for at, line in enumerate(lines)]


def _ellipsis(look: Look) -> str:
    return "…" if look.unicode else "..."
