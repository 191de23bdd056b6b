"""A drawing as text: tree, dot, mermaid, SVG, a page, JSON.

Invariant: the same drawing gives the same bytes, and nothing of a program is syntax of the form it
is written in: labels are escaped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

from ..document import enveloped, picked
from ..text import clip_inside, dumped, format_count, format_shape, printable
from ..values import brief
from .drawing import Drawing, Edge, Vertex, not_drawn
from .tree import Bounds, Row, Tree, everything

SCHEMA = "autodiff.graph/1"
_LONGEST = 60


def graph_text(found: Drawing, form: str, *, direction: str, precision: int) -> str:
    """The drawing as dot, mermaid, JSON, a picture or a page with it, with a line end after every
    line; what becomes PNG is SVG yet."""
    if form in ("svg", "png", "html"):
        from ..pictures.page import picture_text

        return picture_text(found, form == "html", direction, precision)
    if form == "json":
        return dumped(enveloped(SCHEMA, found, lambda: _body(found)))
    lines = dot(found, direction, precision) if form == "dot" else mermaid(
        found, direction, precision
    )  # fmt: skip
    return "\n".join(lines) + "\n"


# -- what a node says -----------------------------------------------------------------------------


def label_lines(vertex: Vertex, root: bool, precision: int) -> list[str]:
    """Name and expression, PyTorch's name of the function with the shape, value, gradient."""
    shape = format_shape(vertex.shape)
    arrays = {"value": vertex.value, "grad": vertex.grad}
    if vertex.kind == "result":
        text = clip_inside(vertex.text, _LONGEST)
        head = f"{vertex.name} = {text}" if vertex.name and vertex.name != text else text
        if vertex.value is not None and root and vertex.value.size == 1:
            head += f" = {brief(vertex.value, precision)}"
            del arrays["value"]
        lines = [head, str(vertex.grad_fn) + (f" {shape}" if vertex.shape else "")]
    else:
        lines = [f"{clip_inside(vertex.name or vertex.text or vertex.op, _LONGEST)} {shape}"]
    lines += [f"{word} {brief(a, precision)}" for word, a in arrays.items() if a is not None]
    if vertex.note:
        lines.append(f"<- {vertex.note}")
    return [printable(line) for line in lines]


def _extras(found: Drawing) -> list[tuple[str, str, str]]:
    """Nodes that stand for what is not drawn: id, label, whose operands they are."""
    ids = {"·": "c", "…": "more"}
    return [(f"{ids[text[0]]}_{v.id}", text, v.id) for v in found.vertices for text in not_drawn(v)]


# -- dot ------------------------------------------------------------------------------------------

_DOT_STYLES = {
    "leaf": 'shape=box, style="rounded,filled", fillcolor="#dbe9f6"',
    "constant": 'shape=box, style="dashed"',
    "result": "shape=box",
}


def dot(found: Drawing, direction: str, precision: int) -> list[str]:
    """Graphviz's language."""
    title = f"{found.of or 'objective'} of {found.file}"
    lines = [
        f"digraph {_quoted(printable(title))} {{",
        f"  rankdir={direction};",
        '  node [fontname="monospace"];',
        '  edge [fontname="monospace"];',
    ]
    for vertex in found.vertices:
        label = _quoted(*label_lines(vertex, vertex.id == found.root, precision))
        style = _DOT_STYLES[vertex.kind]
        if vertex.id == found.root:
            style += ", penwidth=2"
        if vertex.note:
            style += ', color="red"'
        lines.append(f"  {_quoted(vertex.id)} [label={label}, {style}];")
    for edge in found.edges:
        shown = "" if edge.grad is None else f" [label={_quoted(brief(edge.grad, precision))}]"
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)}{shown};")
    for own, label, target in _extras(found):
        lines.append(f"  {_quoted(own)} [label={_quoted(label)}, shape=plaintext];")
        lines.append(f"  {_quoted(own)} -> {_quoted(target)} [style=dashed];")
    if found.omitted:
        text = f"{format_count(found.omitted, 'node')} not drawn (--all, --max-nodes)"
        lines.append(f"  label={_quoted(text)};")
    return [*lines, "}"]


def _quoted(*lines: str) -> str:
    """A string of Graphviz: backslashes and quotes escaped, and `&` begins no entity."""
    escaped = (
        line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines
    )
    return '"' + "\\n".join(escaped) + '"'


# -- mermaid --------------------------------------------------------------------------------------


def mermaid(found: Drawing, direction: str, precision: int) -> list[str]:
    """A flowchart of Mermaid; a node is described where it first occurs."""
    labels = {
        vertex.id: "<br/>".join(
            map(_entities, label_lines(vertex, vertex.id == found.root, precision))
        )
        for vertex in found.vertices
    }
    described: set[str] = set()

    def node(id: str) -> str:
        if id in described:
            return id
        described.add(id)
        return f'{id}["{labels[id]}"]'

    lines = [f"flowchart {direction}"]
    for edge in found.edges:
        shown = "" if edge.grad is None else f'|"{_entities(brief(edge.grad, precision))}"|'
        lines.append(f"  {node(edge.source)} -->{shown} {node(edge.target)}")
    for own, label, target in _extras(found):
        lines.append(f'  {own}(["{_entities(label)}"]) -.-> {node(target)}')
    lines += [f"  {node(v.id)}" for v in found.vertices if v.id not in described]
    bad = [vertex.id for vertex in found.vertices if vertex.note]
    lines += [f"  style {id} stroke:#d00,stroke-width:3px" for id in bad]
    if found.omitted:
        text = f"… {format_count(found.omitted, 'node')} not drawn"
        lines.append(f'  omitted(["{_entities(text)}"])')
    return lines


# Characters that Mermaid, its Markdown or HTML would read; a sign with spaces around it is no
# emphasis, a name with `_` inside neither.
_SPECIAL = re.compile(r"""["#&<>`\\{}|~]|(?<!\s)\*|\*(?!\s)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])""")
_LIST = re.compile(r"^(\d+[.)]|[-+*])(?=\s)")


def _entities(text: str) -> str:
    def entity(match: re.Match[str]) -> str:
        return f"#{ord(match[0])};"

    text = _SPECIAL.sub(entity, text)
    # What begins like an item of a list would be one.
    return _LIST.sub(lambda m: f"{m[1][:-1]}#{ord(m[1][-1])};", text)


# -- JSON -----------------------------------------------------------------------------------------


def _body(found: Drawing) -> dict[str, Any]:
    """The drawing as data for strict JSON; see schema/graph-1.json."""
    return {
        **picked(found, "of", "root"),
        "nodes": list(map(_node, found.vertices)),
        "edges": list(map(_edge, found.edges)),
        "omitted": found.omitted,
    }


def _node(vertex: Vertex) -> dict[str, Any]:
    return {
        **picked(vertex, "id", "kind", "name", "text", "op", "grad_fn", "shape", "dtype"),
        "line": vertex.span and vertex.span.line,
        "column": vertex.span and vertex.span.column,
        **picked(vertex, "constants", "omitted"),
        **_given(picked(vertex, "note", "value", "grad")),
    }


def _edge(edge: Edge) -> dict[str, Any]:
    ends = {"from": edge.source, "to": edge.target}
    return {**ends, **picked(edge, "operand", "shape"), **_given(picked(edge, "grad"))}


def _given(data: dict[str, Any]) -> dict[str, Any]:
    """What a node or an edge has; the others lack the key."""
    return {key: value for key, value in data.items() if value not in ("", None)}


# -- tree -----------------------------------------------------------------------------------------


def tree_of(
    found: Drawing, *, most: int, near: bool, all: bool, width: int, precision: int
) -> list[Row]:
    """Rows of the drawing as a tree, `near` only of nodes that were drawn; values and gradients
    stand below their node."""
    assert found.outline is not None
    deep = everything(width)
    limit = sys.maxsize if near else most
    bounds = deep if all else Bounds(limit, 5000, deep.depth, False, " (--all, --max-nodes)", "")
    tree = Tree(found.outline, bounds, _remarks(found.by_node, found.root, precision))
    tree.drawn = found.by_node if near and not all else None
    return tree.draw()


def _remarks(vertices: dict[Any, Vertex], root: str, precision: int) -> Callable[[Any], list[str]]:
    def remarks(node: Any) -> list[str]:
        vertex = vertices[node]
        known = vertex.id == root and vertex.value is not None and vertex.value.size == 1
        shown = [("value", None if known else vertex.value), ("grad", vertex.grad)]
        return [f"{word} {brief(array, precision)}" for word, array in shown if array is not None]

    return remarks
