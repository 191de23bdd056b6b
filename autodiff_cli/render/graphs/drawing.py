"""A graph as data for every form that draws it: nodes with names and expressions, edges by operand.

Invariant: the same program gives the same data, in the same order; ids are names of the program
where those are unique and plain, else numbers in the order of evaluation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...autograd.rules import ones_like
from ...autograd.tensor import grad_fn_name
from ...engine.evaluate import evaluate
from ...errors import AutodiffError, Ended
from ...graph.node import Node, Shape
from ...graph.op import LEAF, value_of
from ...graph.registry import F
from ...graph.sizes import not_single
from ...graph.state import STATE
from ...graph.walk import bodies, walk
from ...language.program.derivatives import Differentiated
from ...language.program.report import Report, TensorRecord
from ...language.program.running import Program
from ...language.program.variables import leaf_names, named_tensors, objective_of
from ...session import Options
from ...source import Source, Span
from ..text import format_count
from .outline import Outline, shape_of, source_text


@dataclass(frozen=True, slots=True)
class Vertex:
    """One node. `text` is the source expression, empty for leaves; `constants` counts operands
    that carry no gradient and are not drawn, `omitted` those left out because the graph is large;
    `note` marks where NaN or infinity starts; `count` nodes may stand in one place."""

    id: str
    kind: str  # leaf, result or constant
    name: str | None
    text: str
    op: str
    grad_fn: str | None
    shape: Shape
    dtype: str
    span: Span | None = None
    constants: int = 0
    omitted: int = 0
    note: str = ""
    value: np.ndarray | None = None
    grad: np.ndarray | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Edge:
    """`source` is operand number `operand` of `target`; `grad` is what `target` gave to it;
    `count` edges may go the same way."""

    source: str
    target: str
    operand: int
    shape: Shape
    grad: np.ndarray | None = None
    count: int = 1


def not_drawn(vertex: Vertex) -> list[str]:
    """What is said of the operands of a node that are not drawn."""
    counts = [("·", vertex.constants, "constant"), ("…", vertex.omitted, "more operand")]
    return [f"{sign} {format_count(count, noun)}" for sign, count, noun in counts if count]


@dataclass(slots=True)
class Drawing(Ended):
    """A graph, or why there is none. `omitted` counts nodes beyond the limit."""

    file: str
    of: str | None = None
    root: str = ""
    vertices: list[Vertex] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    omitted: int = 0
    outline: Outline | None = None
    by_node: dict[Node, Vertex] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to draw: of which tensor, with values, with gradients, constants one by one, at most so
    many nodes (the nearest to the objective)."""

    of: str | None = None
    values: bool = False
    grads: bool = False
    all: bool = False
    most: int | None = None


def drawing(source: Source, options: Options, wanted: Wanted) -> Drawing:
    """Run a program and collect the graph of its objective."""
    found = Drawing(source.name)
    program = Differentiated(source, replace(options, loss=None))
    try:
        program.run()
        draw_program(program, wanted, found)
    except AutodiffError as error:
        found.error = error
        found.more_errors = program.more_errors
    found.stdout = "".join(program.printed)
    found.warnings[:0] = STATE.warnings
    return found


def draw_program(program: Program, wanted: Wanted, found: Drawing) -> None:
    """Collect the graph of a program that has run, or of a session so far."""
    objective = objective_of(program, wanted.of, "jacobian")
    names: dict[Node, str] = {}
    tensors = named_tensors(program)
    for known, tensor in tensors.items():
        names.setdefault(tensor.node, known)
    name, out = objective.name, objective.node
    totals, paths = _gradients(out) if wanted.grads else ({}, {})
    evaluate([out])
    shown = TensorRecord(objective.text, out.shape, "", True, False, None, value_of(out), None, out)
    program.check_finite(Report(found.file, tensors={objective.text: shown}))
    outline = Outline(out, names, name, STATE.warnings, leaf_names(tensors))
    kept = _kept(outline, wanted)
    if wanted.values:
        evaluate([node for node in kept if node.outputs is None])
    if wanted.grads:
        evaluate([g for node in kept for g in _tensors(totals.get(node))])
        evaluate([g for given in paths.values() for g in given])
    ids = _ids(outline, kept)
    given = _by_visible(outline, paths)
    for node in kept:
        vertex, edges = _vertex(outline, node, ids, wanted, totals, given)
        found.vertices.append(vertex)
        found.by_node[node] = vertex
        found.edges += edges
    found.of, found.root, found.outline = name, ids[outline.root], outline
    found.omitted = len(_reach(outline, wanted.all)) - len(kept)


def _reach(outline: Outline, constants: bool) -> list[Node]:
    """Everything that could be drawn, nearest to the objective first."""
    if not constants:
        return outline.nodes
    order = dict.fromkeys(outline.nodes)
    for node in outline.nodes:
        for child, _, carries in outline.inputs(node) if node.op is not LEAF else ():
            if not carries:
                order.setdefault(child)
    return list(order)


def _kept(outline: Outline, wanted: Wanted) -> list[Node]:
    """What is drawn, in the order of evaluation."""
    nodes = _reach(outline, wanted.all)
    return sorted(nodes[: wanted.most], key=lambda node: node.seq)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NUMBERED = re.compile(r"[nck][0-9]+(_[a-z]+)?\Z")
# What mermaid or dot take for something else.
_RESERVED = frozenset({
    "call", "class", "classdef", "click", "default", "digraph", "direction", "edge", "end",
    "flowchart", "graph", "href", "interpolate", "linkstyle", "node", "omitted", "strict", "style",
    "subgraph",
})  # fmt: skip


def _ids(outline: Outline, nodes: list[Node]) -> dict[Node, str]:
    """Leaves by name, results n1, n2, ..., constants k1, k2, ..."""
    ids: dict[Node, str] = {}
    taken: set[str] = set()
    counts = {"n": 0, "k": 0}
    for node in nodes:
        name = outline.names.get(node, "")
        plain = _PLAIN.match(name) and not _NUMBERED.match(name) and name.lower() not in _RESERVED
        if node.op.key == "leaf" and plain and name not in taken:
            ids[node] = name
        else:
            letter = "n" if node.requires_grad else "k"
            counts[letter] += 1
            ids[node] = f"{letter}{counts[letter]}"
        taken.add(ids[node])
    return ids


def _vertex(
    outline: Outline,
    node: Node,
    ids: dict[Node, str],
    wanted: Wanted,
    totals: dict[Node, Any],
    given: dict[tuple[Node, Node], list[Node]],
) -> tuple[Vertex, list[Edge]]:
    leaf = node.op.key == "leaf"
    kind = "leaf" if leaf else "result" if node.requires_grad else "constant"
    edges: list[Edge] = []
    constants = omitted = 0
    for operand, (child, _, carries) in enumerate(outline.inputs(node) if kind == "result" else ()):
        if child in ids:
            path = given.get((node, child))
            grad = value_of(path.pop(0)) if path else None
            edges.append(Edge(ids[child], ids[node], operand, shape_of(child), grad))
        elif carries:
            omitted += 1
        else:
            constants += 1
    word = outline.guilty.get(node)
    total = _tensors(totals.get(node))
    _, name = outline.visible(outline.out) if node is outline.root else (None, None)
    name = name or outline.names.get(node) or (source_text(node) if leaf else "") or None
    scalar_root = node is outline.root and node.numel == 1
    dtype = node.dtype if node.outputs is None else node.outputs[0][1]
    return Vertex(
        ids[node], kind, name, "" if leaf else source_text(node) or node.op.name, node.op.name,
        grad_fn_name(node) if kind == "result" else None, tuple(map(int, shape_of(node))),
        np.dtype(dtype).name, node.span, constants, omitted,
        f"{word} starts here" if word else "",
        value_of(node) if (wanted.values or scalar_root) and node.outputs is None else None,
        value_of(total[0]) if len(total) == 1 else None,
    ), edges  # fmt: skip


def _tensors(total: Any) -> list[Node]:
    """The cotangent of a node; one with several results has them by number."""
    if total is None:
        return []
    return [g for g in total.values() if g is not None] if isinstance(total, dict) else [total]


def _gradients(out: Node) -> tuple[dict[Node, Any], dict[tuple[Node, Node], list[Node]]]:
    """The whole gradient of every node, and what each gave to its operands, in their order."""
    from ...explain.record import recorded, untouched

    if out.numel != 1:
        raise not_single(
            out,
            "gradients need a single number, but the objective",
            help="choose another result: --of NAME; or draw the graph without --grads",
        )
    with untouched([out]):
        recording = recorded([(out, ones_like(out))])
    paths: dict[tuple[Node, Node], list[Node]] = defaultdict(list)
    for source, target, g in recording.given:
        paths[source, target].append(g)
    return recording.arrived, paths


def _by_visible(
    outline: Outline, paths: dict[tuple[Node, Node], list[Node]]
) -> dict[tuple[Node, Node], list[Node]]:
    """What one visible node gave to another. A composite without a rule of its own gave what its
    body gave: one sum for each operand."""
    shown = set(outline.nodes)
    owners = {inner: node for node in shown for inner in _inside(node, shown)}
    given: dict[tuple[Node, Node], list[Node]] = defaultdict(list)
    for (source, target), parts in paths.items():
        child, _ = outline.visible(target)
        owner = owners.get(source, source)
        if owner is source:
            given[owner, child] += parts
            continue
        for part in parts:
            before = given[owner, child]
            given[owner, child] = [F.add(before[0], part) if before else part]
    return given


def _inside(node: Node, shown: set[Node]) -> Iterable[Node]:
    """The nodes of a composite's body that are no operands of it."""
    if node.body is None or node.op.vjp_rule is not None:
        return []
    ends = {node, *node.inputs}
    inner = [part for part in bodies(node) if part not in ends]
    return list(walk(inner, lambda part: (*part.inputs, *bodies(part)), ends, shown))
