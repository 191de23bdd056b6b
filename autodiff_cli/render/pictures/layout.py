"""Where the boxes of a graph stand and how its edges go: a layered layout.

Invariant: boxes never touch, edges pass between them, and the same graph has the same layout.
Coordinates grow to the right and, against the edges, downwards: sources stand at the bottom.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import add
from typing import NamedTuple

GAP, LAYER_GAP = 24.0, 34.0  # between boxes of a layer, between layers
_PORT = 14.0  # between the ends of two edges at one box
_LINE = 8.0  # the room of an edge between boxes
_SWEEPS, _LAST = 12, 4


class Size(NamedTuple):
    """Width and height."""

    width: float
    height: float


class Box(NamedTuple):
    """The upper left corner and the size."""

    x: float
    y: float
    width: float
    height: float


Point = tuple[float, float]


class Route(NamedTuple):
    """An edge: points from its source to its target, straight and curved pieces in turn, the
    first straight; the box of its label."""

    points: list[Point]
    label: Box | None


@dataclass(slots=True)
class Layout:
    """Boxes and routes in the order that was given, the size of the whole, and whether edges go
    to the right and not up."""

    boxes: list[Box]
    routes: list[Route]
    size: Size
    lying: bool = False


def layout(
    sizes: Sequence[Size],
    edges: Sequence[tuple[int, int]],
    labels: Sequence[Size | None],
    direction: str = "BT",
) -> Layout:
    """Place boxes in layers: sources below targets ("BT") or left of them ("LR"). An edge whose
    source is not before its target is laid out as if it were turned around."""
    if direction == "LR":
        found = layout([_turned(size) for size in sizes], edges, [s and _turned(s) for s in labels])
        return Layout(
            [_lying(box, found.size.height) for box in found.boxes],
            [Route([(round(found.size.height - y, 1), x) for x, y in route.points],
                   route.label and _lying(route.label, found.size.height))
             for route in found.routes],
            _turned(found.size), lying=True,
        )  # fmt: skip
    slots = _Slots(sizes, edges, labels)
    slots.order()
    slots.place()
    return slots.drawn()


def _turned(size: Size) -> Size:
    return Size(size.height, size.width)


def _lying(box: Box, height: float) -> Box:
    return Box(round(height - box.y - box.height, 1), box.x, box.height, box.width)


class _Slots:
    """What takes room in a layer: boxes, labels, and edges that pass. Edges of one source that go
    far share their way, so that it looks like one line with branches."""

    def __init__(
        self, sizes: Sequence[Size], edges: Sequence[tuple[int, int]], labels: Sequence[Size | None]
    ):
        self.boxes = len(sizes)
        self.sizes = list(sizes)
        self.edges = edges
        depths, self.ranks = _ranks(len(sizes), edges)
        self.labels: list[int | None] = []
        if any(labels):
            self.ranks = [2 * rank for rank in self.ranks]  # a layer for labels between two others
        self.ways: list[list[int]] = []  # of each edge: slots from the lower box to the upper
        passing: dict[tuple[int, int], int] = {}
        for (source, target), label in zip(edges, labels, strict=True):
            low, high = sorted((source, target))
            top = self.ranks[high] - (1 if label else 0)
            way = [low]
            for rank in range(self.ranks[low] + 1, top):
                if (low, rank) not in passing:
                    passing[low, rank] = self._slot(Size(_LINE, 0.0), rank)
                way.append(passing[low, rank])
            self.labels.append(self._slot(label, top) if label else None)
            if label:
                way.append(len(self.sizes) - 1)
            self.ways.append([*way, high])
        self.near = self._near(depths)
        self.layers: list[list[int]] = [[] for _ in range(max(self.ranks) + 1)]
        self.at = [0] * len(self.sizes)
        self.x = [0.0] * len(self.sizes)
        self._first_order()

    def _slot(self, size: Size, rank: int) -> int:
        self.sizes.append(size)
        self.ranks.append(rank)
        return len(self.sizes) - 1

    def _near(
        self, depths: list[int]
    ) -> tuple[list[list[tuple[int, float]]], list[list[tuple[int, float]]]]:
        """The neighbours of each slot below and above it, with how much each draws it: most the
        one with the longest history, so that the main line of a computation is straight."""
        below: list[dict[int, float]] = [{} for _ in self.sizes]
        above: list[dict[int, float]] = [{} for _ in self.sizes]
        for way in self.ways:
            for a, b in pairwise(way):
                pull = ((depths[way[0]] + 0.5) / (depths[way[-1]] - 0.5)) ** 4
                if min(a, b) >= self.boxes:
                    pull = 2.0  # what only passes is straight
                above[a][b] = below[b][a] = pull
        return [list(d.items()) for d in below], [list(d.items()) for d in above]

    def _first_order(self) -> None:
        """From the targets down, operands from left to right: trees have no crossings so."""
        seen = [False] * len(self.sizes)
        ends = [slot for slot in range(self.boxes) if not self.near[1][slot]]
        pending = ends  # the last one is the result
        while pending:
            slot = pending.pop()
            if seen[slot]:
                continue
            seen[slot] = True
            self.at[slot] = len(self.layers[self.ranks[slot]])
            self.layers[self.ranks[slot]].append(slot)
            pending += [below for below, _ in reversed(self.near[0][slot])]

    # -- the order in each layer ------------------------------------------------------------------

    def order(self) -> None:
        """Sort layers by the mean place of neighbours, downwards and upwards in turn; keep the
        order with the fewest crossings."""
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            near = self.near[1 - sweep % 2]
            for layer in self.layers if sweep % 2 else self.layers[::-1]:
                if sweep % 4 > 1:
                    layer.reverse()  # where neighbours have the same mean, the other order
                self._sort(layer, near)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(layer) for layer in self.layers], crossings
        for layer, kept in zip(self.layers, best, strict=True):
            layer[:] = kept
            self._number(layer)

    def _sort(self, layer: list[int], near: list[list[tuple[int, float]]]) -> None:
        def key(slot: int) -> float:
            there = near[slot]
            if not there:
                return float(self.at[slot])
            return sum(self.at[other] for other, _ in there) / len(there)

        layer.sort(key=key)
        self._number(layer)

    def _number(self, layer: list[int]) -> None:
        for at, slot in enumerate(layer):
            self.at[slot] = at

    def _crossings(self) -> int:
        """Pairs of edges that cross, by counting inversions layer by layer."""
        count = 0
        for layer in self.layers:
            sorted_ends: list[int] = []
            for slot in layer:
                ends = sorted(self.at[other] for other, _ in self.near[1][slot])
                for end in ends:
                    count += len(sorted_ends) - bisect_left(sorted_ends, end + 1)
                for end in ends:
                    sorted_ends.insert(bisect_left(sorted_ends, end), end)
        return count

    # -- places in each layer ---------------------------------------------------------------------

    def place(self) -> None:
        """Move every slot towards its neighbours, as near as its own neighbours in the layer
        allow."""
        for layer in self.layers:
            self._settle(layer, [0.0] * len(layer), [1.0] * len(layer))
        for sweep in range(_SWEEPS + _LAST):
            down = sweep % 2 == 0
            sides = self.near if sweep >= _SWEEPS else (self.near[1 if down else 0],)
            for layer in self.layers[::-1] if down else self.layers:
                wishes, weights = [], []
                for slot in layer:
                    there = [pair for side in sides for pair in side[slot]]
                    weight = sum(w for _, w in there)
                    wishes.append(
                        sum(self.x[other] * w for other, w in there) / weight
                        if weight else self.x[slot]
                    )  # fmt: skip
                    weights.append(weight or 0.01)
                self._settle(layer, wishes, weights)

    def _settle(self, layer: list[int], wishes: list[float], weights: list[float]) -> None:
        halves = [self.sizes[slot].width / 2 for slot in layer]
        gaps = [a + GAP + b for a, b in pairwise(halves)]
        for slot, x in zip(layer, _settled(wishes, weights, gaps), strict=True):
            self.x[slot] = x

    # -- the drawing ------------------------------------------------------------------------------

    def drawn(self) -> Layout:
        """Boxes and routes, from the corner 0, 0."""
        left = min(x - size.width / 2 for x, size in zip(self.x, self.sizes, strict=True))
        right = max(x + size.width / 2 for x, size in zip(self.x, self.sizes, strict=True))
        xs = [round(x - left, 1) for x in self.x]
        heights = [max(self.sizes[slot].height for slot in layer) for layer in self.layers]
        tops, y = [0.0] * len(heights), 0.0
        for rank in reversed(range(len(heights))):
            tops[rank] = y
            y += heights[rank] + self._room(rank)
        bottoms = [round(bottom, 1) for bottom in map(add, tops, heights)]

        def box(slot: int) -> Box:
            size, rank = self.sizes[slot], self.ranks[slot]
            middle = tops[rank] + (heights[rank] - size.height) / 2
            return Box(
                round(xs[slot] - size.width / 2, 1), round(middle, 1), size.width, size.height
            )

        boxes = [box(slot) for slot in range(self.boxes)]
        lows, highs = self._ports(0, xs), self._ports(-1, xs)
        routes = []
        for number, ((source, _), way) in enumerate(zip(self.edges, self.ways, strict=True)):
            low, high = way[0], way[-1]
            start, end = round(lows[number], 1), round(highs[number], 1)
            points = [(start, boxes[low].y), (start, round(tops[self.ranks[low]], 1))]
            x = start
            for slot in way[1:-1]:
                rank = self.ranks[slot]
                if slot == way[1] or abs(xs[slot] - x) >= 2:  # else as good as straight
                    x = xs[slot]
                points += [(x, bottoms[rank]), (x, round(tops[rank], 1))]
            points += [(end, bottoms[self.ranks[high]]),
                       (end, boxes[high].y + boxes[high].height)]  # fmt: skip
            label = self.labels[number]
            routes.append(
                Route(points if low == source else points[::-1],
                      None if label is None else box(label))
            )  # fmt: skip
        return Layout(boxes, routes, Size(round(right - left, 1), bottoms[0]))

    def _room(self, rank: int) -> float:
        """Between a layer and the one below it: more where edges go far to the side."""
        ends = ((slot, other) for slot in self.layers[rank] for other, _ in self.near[0][slot])
        far = max((abs(self.x[slot] - self.x[other]) for slot, other in ends), default=0.0)
        return LAYER_GAP + min(far / 8, 60.0)

    def _ports(self, end: int, xs: list[float]) -> list[float]:
        """Where edges touch their lower (0) or upper (-1) box, side by side in the order of where
        they come from."""
        at_box: dict[int, list[int]] = {}
        for number, way in enumerate(self.ways):
            at_box.setdefault(way[end], []).append(number)
        ports = [0.0] * len(self.ways)
        for slot, numbers in at_box.items():
            after = 1 if end == 0 else -2
            # Edges that share their way share its beginning.
            ways = {n: (self.ways[n][after], 0 if self.ways[n][after] >= self.boxes else n)
                    for n in numbers}  # fmt: skip
            shown = sorted(set(ways.values()), key=lambda way: (xs[way[0]], way))
            room = self.sizes[slot].width - 12
            step = min(_PORT, room / max(1, len(shown) - 1))
            # A line that can be straight is.
            low, last = xs[slot] - room / 2, len(shown) - 1
            wishes = [min(max(xs[way[0]], low + at * step), low + room - (last - at) * step)
                      for at, way in enumerate(shown)]  # fmt: skip
            places = dict(
                zip(shown, _settled(wishes, [1.0] * len(shown), [step] * last), strict=True)
            )
            for number in numbers:
                ports[number] = places[ways[number]]
        return ports


def _settled(wishes: list[float], weights: list[float], gaps: list[float]) -> list[float]:
    """Places in this order and with at least these gaps that are nearest to the wishes by weighted
    squares: neighbours that would be too near form groups that move as one."""
    starts = list(accumulate(gaps, initial=0.0))
    groups: list[tuple[float, float, int]] = []  # place, weight, number of members
    for wish, weight, start in zip(wishes, weights, starts, strict=True):
        place, count = wish - start, 1
        while groups and groups[-1][0] > place:
            other, heavy, more = groups.pop()
            place = (place * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + more
        groups.append((place, weight, count))
    places = [place for place, _, count in groups for _ in range(count)]
    return list(map(add, places, starts))


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The longest way to each box from what has no sources, and its layer. What has no sources
    stands as high as the height of the whole allows, everything else right above its sources: a
    weight is beside its layer, and a penalty on it too. What has one source goes up to its
    targets, as its line would have to."""
    below: list[list[int]] = [[] for _ in range(count)]
    above: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        low, high = sorted((source, target))
        below[high].append(low)
        above[low].append(high)

    def upwards(starts: list[int]) -> list[int]:
        ranks = list(starts)
        for box in range(count):
            ranks[box] = max((ranks[low] + 1 for low in below[box]), default=starts[box])
        return ranks

    depths = upwards([0] * count)
    latest = [max(depths)] * count
    for box in reversed(range(count)):
        latest[box] = min((latest[high] - 1 for high in above[box]), default=latest[box])
    ranks = upwards(latest)
    for box in reversed(range(count)):
        if above[box] and len(set(below[box])) == 1:
            ranks[box] = min(ranks[high] for high in above[box]) - 1
    return depths, ranks
