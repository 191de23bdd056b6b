"""A graph as an SVG that is legible on light and dark, with nothing from outside.

Invariant: the same drawing gives the same bytes, and text of a program is text of the picture.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from math import copysign

from ...defaults import PRECISION
from ..graphs.drawing import Drawing, Vertex
from ..text import format_count, format_shape, printable
from .boxes import LINE, PAD, Line, Picture, picture_of
from .layout import Box, Point, Route

_LIGHT = {
    "paper": "#ffffff", "ink": "#1b1f24", "dim": "#5b6470", "box": "#f6f7f9", "rim": "#8a94a0",
    "leaf": "#dcebfa", "leaf-rim": "#2f6fae", "edge": "#7b8591", "grad": "#a84300",
    "bad": "#c01c28", "root-rim": "#1b1f24",
}  # fmt: skip
_DARK = {
    "paper": "#14171b", "ink": "#e8eaed", "dim": "#9aa4b0", "box": "#22272e", "rim": "#66717e",
    "leaf": "#16324d", "leaf-rim": "#5aa2e6", "edge": "#8b96a3", "grad": "#ffa657",
    "bad": "#ff7b72", "root-rim": "#e8eaed",
}  # fmt: skip
_FONT = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'


_FIXED = f"""\
svg.graph text {{ font: 12px {_FONT}; }}
svg.graph .node rect, svg.graph .edge path {{ stroke-width: 1.2; }}
svg.graph .constant rect {{ stroke-dasharray: 4 3; }}
svg.graph .root rect, svg.graph .bad rect {{ stroke-width: 2; }}
svg.graph .edge .line {{ fill: none; }}
svg.graph .back .line {{ stroke-dasharray: 5 4; }}
svg.graph .name, svg.graph .note {{ font-weight: bold; }}
"""
_PAINTS = (
    ("text", "fill", "ink"), (".paper", "fill", "paper"), (".node rect", "fill", "box"),
    (".node rect", "stroke", "rim"), (".leaf rect", "fill", "leaf"),
    (".leaf rect", "stroke", "leaf-rim"), (".constant rect", "fill", "paper"),
    (".root rect", "stroke", "root-rim"), (".bad rect", "stroke", "bad"),
    (".edge rect", "fill", "paper"), (".edge .line", "stroke", "edge"),
    (".edge .head", "fill", "edge"), ("text .op", "fill", "dim"), ("text .more", "fill", "dim"),
    ("text .grad", "fill", "grad"), ("text .note", "fill", "bad"),
)  # fmt: skip


def _style() -> str:
    """Light paper for readers that know no custom properties, and those for all others."""
    plain = "".join(f"svg.graph {of} {{ {key}: {_LIGHT[name]}; }}\n" for of, key, name in _PAINTS)
    paints = "".join(f"svg.graph {of} {{ {key}: var(--g-{name}); }}\n" for of, key, name in _PAINTS)
    light, dark = (
        " ".join(f"--g-{name}: {color};" for name, color in colors.items())
        for colors in (_LIGHT, _DARK)
    )
    return (
        f"{_FIXED}{plain}@supports (color: var(--g-ink)) {{\nsvg.graph {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ svg.graph {{ {dark} }} }}\n{paints}}}\n"
    )


STYLE = _style()

_MARGIN = 16.0


def graph_svg(
    found: Drawing, *, direction: str = "BT", precision: int = PRECISION, style: bool = True
) -> str:
    """A drawing as one `<svg class="graph">` element, a document of its own or part of a page.

    Its parts, in the order of `found.vertices` and `found.edges` (of `collapsed(found)` when there
    are more than 300 vertices), edges first:

    `<g class="edge" data-from="n1" data-to="n3" data-operand="0">`: the line `path.line`, the arrow
    `path.head`, and the gradient on it, if the drawing has gradients, as `g.label`;
    `<g class="node leaf" id="n1" data-id="A" data-line="1">`: `rect` and `text`; `leaf` may also be
    `result` or `constant`, with `root` or `bad` (where NaN or infinity starts) behind it.

    n1, n2, ... count the vertices from 1; `data-id` is the id of the vertex in the data of
    `autodiff graph -f json`, `data-line` is missing where a node has no place in the program.
    Colours are the custom properties `--g-*` of `STYLE`; with `style=False` a page that shows
    several graphs has STYLE in its own style sheet. There are no style attributes, scripts or
    references, so that a strict content security policy needs no exception.
    """
    return svg_text(picture_of(found, direction, precision), style=style)


def svg_text(picture: Picture, *, style: bool = True) -> str:
    """A picture that is laid out as SVG."""
    found, size = picture.drawing, picture.layout.size
    width, height = size.width + 2 * _MARGIN, size.height + 2 * _MARGIN
    if found.omitted:
        height += LINE
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}">',
        f"<title>{escape(title_of(found))}</title>",
        f"<desc>{escape(_description(found))}</desc>",
    ]
    if style:
        out += [f"<style>\n{STYLE}</style>"]
    out.append(f'<rect class="paper" width="{width:g}" height="{height:g}"/>')
    out.append(f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">')
    numbers = {vertex.id: at for at, vertex in enumerate(found.vertices, 1)}
    for edge, route, label in zip(found.edges, picture.layout.routes, picture.labels, strict=True):
        start, end = numbers[edge.source], numbers[edge.target]
        back = " back" if start >= end else ""
        out.append(
            f'<g class="edge{back}" data-from="n{start}" data-to="n{end}" '
            f'data-operand="{edge.operand}">{_line(route, picture.layout.lying)}'
        )
        if route.label is not None:
            out[-1] += (
                f'<g class="label">{_box(route.label, 2)}{_text(route.label, label, 4.0)}</g>'
            )
        out[-1] += "</g>"
    for number, (vertex, box, lines) in enumerate(
        zip(found.vertices, picture.layout.boxes, picture.lines, strict=True), 1
    ):
        classes = f"node {vertex.kind}" + " root" * (vertex.id == found.root)
        classes += " bad" * bool(vertex.note)
        line = f' data-line="{vertex.span.line}"' if vertex.span else ""
        out.append(
            f'<g class="{classes}" id="n{number}" data-id="{escape(vertex.id)}"{line}>'
            f"<title>{escape(_tip(vertex))}</title>"
            f"{_box(box, 10 if vertex.kind == 'leaf' else 3)}{_text(box, lines, PAD)}</g>"
        )
    if found.omitted:
        text = f"… {format_count(found.omitted, 'node')} not drawn"
        out.append(
            f'<text x="0" y="{size.height + LINE:g}"><tspan class="more">{text}</tspan></text>'
        )
    return "\n".join([*out, "</g>", "</svg>"]) + "\n"


def title_of(found: Drawing) -> str:
    """What a drawing shows, in a line."""
    return printable(f"Graph of {found.of or 'the result'} in {found.file}")


def _description(found: Drawing) -> str:
    """What a reader who does not see the picture is told."""
    leaves = [printable(v.name or v.text or v.op) for v in found.vertices if v.kind == "leaf"]
    known = f": {', '.join(leaves[:12])}" if leaves else ""
    return (
        f"{format_count(sum(v.count for v in found.vertices), 'node')} and "
        f"{format_count(sum(e.count for e in found.edges), 'edge')} from "
        f"{format_count(len(leaves), 'leaf', 'leaves')}{known}"
        f"{', ...' if len(leaves) > 12 else ''} up to {found.of or 'the result'}."
    )


def _tip(vertex: Vertex) -> str:
    """What is shown of a node when the pointer rests on it: its whole expression, its type."""
    name = f"{vertex.name} = " if vertex.name and vertex.text else vertex.name or ""
    words = [f"{name}{vertex.text}", vertex.grad_fn or vertex.op]
    words.append(f"{format_shape(vertex.shape)} {vertex.dtype}")
    if vertex.span is not None:
        words.append(f"line {vertex.span.line}")
    return printable("   ".join(words))


def _box(box: Box, radius: int) -> str:
    x, y, width, height = (f"{number:g}" for number in box)
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>'


def _text(box: Box, lines: list[Line], pad: float) -> str:
    """Lines from the upper left corner; spaces are kept."""
    x, y = box.x + pad, box.y + pad / 2 + LINE - 4
    spans = []
    for at, line in enumerate(lines):
        name = f'<tspan class="name">{_kept(line.name)}</tspan>' if line.name else ""
        spans.append(
            f'<tspan class="{line.kind}" x="{x:g}" y="{y + at * LINE:g}">{name}{_kept(line.text)}'
            "</tspan>"
        )
    return f"<text>{''.join(spans)}</text>"


def _kept(text: str) -> str:
    return escape(text).replace(" ", "\u00a0")


def _line(route: Route, lying: bool) -> str:
    """A way of straight and curved pieces, and its arrow."""
    points = route.points
    x, y = points[-1]
    steps = [f"M{_at(points[0])}"]
    for at, (p, q) in enumerate(pairwise(points), 1):
        if p == q:
            continue
        if at % 2 == 0 and p[0] != q[0] and p[1] != q[1]:
            if lying:
                middle = (p[0] + q[0]) / 2
                steps.append(f"C{_at((middle, p[1]))} {_at((middle, q[1]))} {_at(q)}")
            else:
                middle = (p[1] + q[1]) / 2
                steps.append(f"C{_at((p[0], middle))} {_at((q[0], middle))} {_at(q)}")
        else:
            if steps[-1][0] == "L":
                steps.pop()  # the same line goes on
            steps.append(f"L{_at(q)}")
    along = copysign(7, x - points[0][0] if lying else y - points[0][1])
    dx, dy = (along, 0) if lying else (0, along)
    head = [(x - dx - dy / 2, y - dy - dx / 2), (x, y), (x - dx + dy / 2, y - dy + dx / 2)]
    return (
        f'<path class="line" d="{"".join(steps)}"/>'
        f'<path class="head" d="M{"L".join(map(_at, head))}z"/>'
    )


def _at(point: Point) -> str:
    return f"{round(point[0], 1):g} {round(point[1], 1):g}"
