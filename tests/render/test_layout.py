"""The layered layout: no boxes overlap, edges pass between them, the same places every time."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from autodiff_cli.render.pictures.layout import Box, Layout, Size, layout

from ..together import together

RECORDED = Path(__file__).parents[1] / "fixtures" / "layouts.json"
Graph = tuple[int, list[tuple[int, int]]]


def chain(count: int) -> Graph:
    return count, [(at, at + 1) for at in range(count - 1)]


def layers(count: int) -> Graph:
    """Each step takes a weight of its own and the step before."""
    return count, [(at - back, at) for at in range(2, count, 2) for back in (2, 1)]


def shared(count: int) -> Graph:
    """Each step takes the step before and the same weight, the first box."""
    return count, [edge for at in range(2, count) for edge in ((0, at), (at - 1, at))]


def leaves(count: int) -> Graph:
    """One box that takes all others."""
    return count, [(at, count - 1) for at in range(count - 1)]


def mixed(count: int) -> Graph:
    """Operands among the twelve before, some twice, some edges back."""
    draw = random.Random(count)
    edges = [(draw.randrange(max(0, at - 12), at), at) for at in range(1, count) for _ in "ab"]
    return count, edges + [(at, at - 5) for at in range(5, count, 40)]


WAYS = ["BT", "LR"]
GRAPHS = [(make, count) for make in (chain, layers, shared, leaves, mixed) for count in (3, 30)]
LARGE = [(make, 100) for make in (chain, leaves, mixed, shared)]
DRAWN = [(*graph, labels, way) for graph in GRAPHS for labels in (False, True) for way in WAYS]
DRAWN += [(*graph, True, "BT") for graph in LARGE]


def laid_out(
    make: Callable[[int], Graph], count: int, labels: bool, direction: str
) -> tuple[Graph, Layout]:
    draw = random.Random(7)
    number, edges = make(count)
    sizes = [Size(draw.randrange(40, 300), draw.randrange(20, 120)) for _ in range(number)]
    tags = [Size(50.0, 20.0) if labels and draw.random() < 0.8 else None for _ in edges]
    return (number, edges), layout(sizes, edges, tags, direction)


def apart(a: Box, b: Box) -> bool:
    return (
        a.x + a.width <= b.x or b.x + b.width <= a.x
        or a.y + a.height <= b.y or b.y + b.height <= a.y
    )  # fmt: skip


def through(box: Box, p: tuple[float, float], q: tuple[float, float]) -> bool:
    """Whether the rectangle that p and q span, in which their curve lies, meets the inside of a
    box."""
    (x0, x1), (y0, y1) = sorted((p[0], q[0])), sorted((p[1], q[1]))
    return (
        x0 < box.x + box.width - 0.2 and x1 > box.x + 0.2
        and y0 < box.y + box.height - 0.2 and y1 > box.y + 0.2
    )  # fmt: skip


@together(DRAWN)
def test_nothing_overlaps(
    make: Callable[[int], Graph], count: int, labels: bool, direction: str
) -> None:
    (number, edges), found = laid_out(make, count, labels, direction)
    assert len(found.boxes) == number and len(found.routes) == len(edges)
    tags = [route.label for route in found.routes if route.label is not None]
    boxes = [*found.boxes, *tags]
    for box in boxes:
        assert box.x >= 0 and box.x + box.width <= found.size.width + 0.2
        assert box.y >= 0 and box.y + box.height <= found.size.height + 0.2
    rows = sorted(boxes, key=lambda box: box.y)
    for at, box in enumerate(rows):
        for other in rows[at + 1 :]:
            if other.y >= box.y + box.height:
                break
            assert apart(box, other)
    if number > 60:
        return
    for (source, target), route in zip(edges, found.routes, strict=True):
        others = [box for box in found.boxes if box is not found.boxes[source]]
        others = [box for box in others if box is not found.boxes[target]]
        for p, q in pairwise(route.points):
            assert not any(through(box, p, q) for box in others)


@together(GRAPHS + LARGE)
def test_edges_join_their_boxes(make: Callable[[int], Graph], count: int) -> None:
    (_, edges), found = laid_out(make, count, False, "BT")
    for (source, target), route in zip(edges, found.routes, strict=True):
        start, end = found.boxes[source], found.boxes[target]
        for (x, y), box, edge in (
            (route.points[0], start, start.y if source < target else start.y + start.height),
            (route.points[-1], end, end.y + end.height if source < target else end.y),
        ):
            assert box.x <= x <= box.x + box.width and y == pytest.approx(edge, abs=0.11)
        if source < target:
            assert start.y > end.y + end.height  # upwards


def test_a_chain_is_straight_and_so_is_the_main_line_of_layers() -> None:
    """Weights stand beside the line of steps and do not push it to the side."""
    for make in (chain, layers):
        count, edges = make(201)
        found = layout([Size(100, 40)] * count, edges, [None] * len(edges))
        middles = [box.x + box.width / 2 for box in found.boxes]
        steps = range(0, count, 2) if make is layers else range(count)
        turns = [abs(middles[a] - middles[b]) for a, b in pairwise(steps)]
        assert max(turns[2:]) < 5 and found.size.width < 450


def test_trees_have_no_crossings() -> None:
    """A binary tree of 63 boxes: children stand in the order of their parents."""
    edges = [(child, at) for at in range(32, 63) for child in (2 * (at - 32), 2 * (at - 32) + 1)]
    found = layout([Size(60, 30)] * 63, edges, [None] * len(edges))
    for (a, b), (c, d) in combinations(edges, 2):
        if found.boxes[a].y == found.boxes[c].y and b != d:
            left = found.boxes[a].x < found.boxes[c].x
            assert left == (found.boxes[b].x < found.boxes[d].x)


def test_the_same_graph_has_the_same_layout() -> None:
    assert laid_out(mixed, 60, True, "BT")[1] == laid_out(mixed, 60, True, "BT")[1]


@pytest.mark.parametrize("direction", WAYS)
@pytest.mark.parametrize("labels", [False, True], ids=["plain", "labels"])
@pytest.mark.parametrize("make", [layers, shared, leaves, mixed])
def test_places_as_recorded(
    make: Callable[[int], Graph], labels: bool, direction: str, request: pytest.FixtureRequest
) -> None:
    """Every corner and turn is where it was (`RECORD_SAID=1` records it): what looks good was
    decided by looking at pictures."""
    _, found = laid_out(make, 25, labels, direction)
    turns = [[x for point in route.points for x in point] for route in found.routes]
    tags = [route.label or () for route in found.routes]
    places = [found.size, *found.boxes, *tags, *turns]
    said = " ".join(",".join(f"{x:.1f}" for x in place) for place in places)
    recorded = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    name = request.node.name
    if os.environ.get("RECORD_SAID"):
        recorded[name] = said
        RECORDED.write_text(json.dumps(recorded, indent=0, sort_keys=True) + "\n", "utf-8")
    assert said == recorded[name]
