"""A large graph drawn by the lines of its program: the nodes of one line stand in one place.

Invariant: every node of the drawing is in one group, every edge in one edge or inside a group.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..graphs.drawing import Drawing, Edge, Vertex
from ..text import printable

MOST = 300  # nodes that are drawn one by one


def collapsed(found: Drawing) -> Drawing:
    """The drawing itself if it is small; else one vertex for the operations of a line, one for the
    leaves and one for the constants that were made there, in the order of their first nodes. An
    edge may lead back to an earlier vertex then, where a loop hands something on."""
    if len(found.vertices) <= MOST:
        return found
    groups: dict[object, list[Vertex]] = {}
    for vertex in found.vertices:
        place = (vertex.kind, vertex.span.line) if vertex.span else vertex.id
        groups.setdefault(place, []).append(vertex)
    homes = {v.id: members[0].id for members in groups.values() for v in members}
    inside: Counter[str] = Counter()
    merged: dict[tuple[str, str], Edge] = {}
    for edge in found.edges:
        source, target = homes[edge.source], homes[edge.target]
        known = merged.get((source, target))
        if source == target:
            inside[source] += 1
        elif known is None:
            merged[source, target] = replace(edge, source=source, target=target)
        else:
            merged[source, target] = replace(known, count=known.count + 1)
    return Drawing(
        found.file, found.of, homes.get(found.root, found.root),
        [_group(members, inside[members[0].id]) for members in groups.values()],
        list(merged.values()), found.omitted,
    )  # fmt: skip


def _group(members: list[Vertex], inside: int) -> Vertex:
    """One vertex for these: the line, how often each operation, the last shape."""
    first, last = members[0], members[-1]
    if len(members) == 1:
        return first
    assert first.span is not None
    functions = Counter(vertex.grad_fn or vertex.op for vertex in members).most_common()
    shown = [f"{count} x {name}" for name, count in functions[:3]]
    others = sum(count for _, count in functions[3:])
    if others:
        shown.append(f"{others} others")
    return replace(
        last, id=first.id, name=None, span=first.span, value=None, grad=None,
        text=" ".join(printable(first.span.source.line(first.span.line)).split()),
        grad_fn=", ".join(shown) + (", each from the last" if inside else ""),
        note=next((vertex.note for vertex in members if vertex.note), ""),
        constants=sum(vertex.constants for vertex in members),
        omitted=sum(vertex.omitted for vertex in members), count=len(members),
    )  # fmt: skip
