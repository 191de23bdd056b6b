"""A graph as a page of its own: the picture, and its nodes as a table for readers and searches."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from ...defaults import PRECISION
from ..graphs.drawing import Drawing
from ..text import format_shape, printable
from ..values import brief
from .boxes import Picture, picture_of
from .svg import STYLE, svg_text, title_of

_STYLE = """
body { margin: 1rem; font: 14px/1.4 system-ui, sans-serif; color-scheme: light dark; }
figure { margin: 0; overflow: auto; }
h1 { font-size: 1.1rem; }
summary { cursor: pointer; margin-top: 1rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .15rem .8rem .15rem 0; }
td { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 12px; }
@media (prefers-color-scheme: dark) { body { background: #14171b; color: #e8eaed; } }
"""


def picture_text(
    found: Drawing, page: bool, direction: str = "BT", precision: int = PRECISION
) -> str:
    """A drawing as SVG, or as a page with it: one file, nothing from outside, no scripts."""
    picture = picture_of(found, direction, precision)
    return _page(picture, precision) if page else svg_text(picture)


def _page(picture: Picture, precision: int) -> str:
    found = picture.drawing
    style = STYLE + _STYLE
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    title = escape(title_of(found))
    heads = ("name", "expression", "operation", "shape", "line", "value", "gradient")
    rows = [
        (
            vertex.name or "", vertex.text, vertex.grad_fn or vertex.op,
            format_shape(vertex.shape), str(vertex.span.line) if vertex.span else "",
            *("" if array is None else brief(array, precision)
              for array in (vertex.value, vertex.grad)),
        )
        for vertex in found.vertices
    ]  # fmt: skip
    return "\n".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'sha256-{digest}'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<h1>{title}</h1>",
        f"<figure>\n{svg_text(picture, style=False)}</figure>",
        "<details>\n<summary>The nodes as a table</summary>\n<table>",
        f"<tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>",
        *(f"<tr>{''.join(f'<td>{escape(printable(cell))}</td>' for cell in row)}</tr>"
          for row in rows),
        "</table>\n</details>\n</body>\n</html>\n",
    ])  # fmt: skip
