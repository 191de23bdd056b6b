"""What stands in the boxes of a graph, and how large they are: the picture before any form of it.

Invariant: every line of a box fits into it in any font of fixed width.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...numerals import matrix_lines
from ..graphs.drawing import Drawing, Edge, Vertex, not_drawn
from ..text import clip_inside, format_shape, printable, text_width
from ..values import brief, joined
from .collapsed import collapsed
from .layout import Layout, Size, layout

FONT, LINE, CELL = 12.0, 16.0, 7.3  # pixels: the font, a line, a character with some room
PAD = 10.0  # between the border of a box and its text
_LONGEST = 48  # characters of an expression
_WIDEST, _TALLEST = 48, 6  # characters and lines of an array


class Line(NamedTuple):
    """One line of a box: what it is (name, text, op, value, grad, note, more), its words, and a
    name that stands before them."""

    kind: str
    text: str
    name: str = ""


class Picture(NamedTuple):
    """A drawing with the lines of its boxes and labels, and where all of it stands."""

    drawing: Drawing
    lines: list[list[Line]]
    labels: list[list[Line]]
    layout: Layout


def picture_of(found: Drawing, direction: str, precision: int) -> Picture:
    """Lay a drawing out; one of many nodes by the lines of its program."""
    found = collapsed(found)
    places = {vertex.id: at for at, vertex in enumerate(found.vertices)}
    uses = Counter(edge.source for edge in found.edges if edge.grad is not None)
    lines = []
    for vertex in found.vertices:
        if vertex.kind == "result" and uses[vertex.id] == 1:
            vertex = replace(vertex, grad=None)  # it stands on the edge
        lines.append(_said(vertex, vertex.id == found.root, precision))
    labels = [_label(edge, precision) for edge in found.edges]
    placed = layout(
        [_size(said) for said in lines],
        [(places[edge.source], places[edge.target]) for edge in found.edges],
        [_size(said, 4.0) if said else None for said in labels],
        direction,
    )
    return Picture(found, lines, labels, placed)


def _size(lines: list[Line], pad: float = PAD) -> Size:
    cells = max(text_width(line.name + line.text) for line in lines)
    return Size(round(cells * CELL + 2 * pad, 1), len(lines) * LINE + pad)


def _said(vertex: Vertex, root: bool, precision: int) -> list[Line]:
    """Name and expression, PyTorch's name of the function with the shape, value, gradient, and
    what is not drawn."""
    shape = format_shape(vertex.shape) if vertex.shape else ""
    value = vertex.value
    if vertex.kind == "result" or vertex.count > 1:
        text = clip_inside(vertex.text, _LONGEST)
        name = vertex.name if vertex.name and vertex.name != text else ""
        if value is not None and root and value.size == 1 and name:
            text += f" = {brief(value, precision)}"
            value = None
        lines = [Line("text", text, f"{name} = " if name else "")]
        lines.append(Line("op", f"{vertex.grad_fn or vertex.op} {shape}".rstrip()))
    else:
        name = clip_inside(vertex.name or vertex.text or vertex.op, _LONGEST)
        lines = [Line("text", f" {shape}" if shape else "", name)]
    if value is not None:
        lines += [Line("value", text) for text in array_lines("", value, precision)]
    if vertex.grad is not None:
        lines += [Line("grad", text) for text in array_lines("grad ", vertex.grad, precision)]
    if vertex.note:
        lines.append(Line("note", vertex.note))
    lines += [Line("more", text) for text in not_drawn(vertex)]
    return [Line(kind, printable(text), printable(name)) for kind, text, name in lines]


def _label(edge: Edge, precision: int) -> list[Line]:
    if edge.count > 1:
        return [Line("op", f"{edge.count}x")]
    if edge.grad is None:
        return []
    return [Line("grad", text) for text in array_lines("", edge.grad, precision)]


def array_lines(word: str, array: np.ndarray, precision: int) -> list[str]:
    """A word and an array: a small matrix row by row, else on one line."""
    if array.ndim <= 2 and 0 < array.size <= 8 * _TALLEST:
        rows = matrix_lines(array.tolist(), min(precision, 4))
        rows = rows if len(rows) > 1 else [joined(rows)]
        if len(rows) <= _TALLEST and max(map(len, rows)) <= _WIDEST:
            margin = " " * len(word)
            return [f"{margin if at else word}{row}" for at, row in enumerate(rows)]
    return [word + brief(array, min(precision, 4))]
