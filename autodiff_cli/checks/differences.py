"""Gradients against finite differences: one graph, every leaf, element by element or along fixed
random directions.

Invariant: the gradient that is checked is the one reverse mode gives for this very graph; nothing
of the program runs again.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ..autograd import reverse, rules
from ..engine.evaluate import evaluate
from ..errors import AutodiffError
from ..graph import op as ops
from ..graph.dtypes import is_float
from ..graph.node import Node
from ..graph.state import grad_mode
from ..graph.walk import walk
from .analytic import is_analytic
from .cuts import Cut, find_cuts, hook_cut, hooked
from .deadline import go_on_after
from .replay import Replay, shows
from .slopes import ATOL, KINK, NOISY, RIGHT, RTOL, STEP, WRONG, Line, Verdict

MAX_ELEMENTS = 256  # larger leaves are checked along directions
PART = 0.1  # of what an element may be off: what all of them together may be
DIRECTIONS = 8
MAX_ROWS = 5
# Of the processor: how busy the machine is decides nothing.
PATIENCE = 4.0  # seconds for the elements of one leaf; then directions do
BUDGET = 20.0  # seconds for the elements of all leaves

Seeds = list[tuple[Node, Node]]


@dataclass(slots=True)
class Row:
    """A place where claim and measurement were compared; `index` None for a direction."""

    index: tuple[int, ...] | None
    verdict: Verdict


@dataclass(slots=True)
class LeafResult:
    """What was found about one leaf; `kind` right, wrong, kink, cut or noisy."""

    kind: str
    rows: list[Row] = field(default_factory=list)
    count: int = 0
    total: int = 0
    cuts: list[Cut] = field(default_factory=list)
    kinks: list[Node] = field(default_factory=list)
    gradient: Any = None
    by_direction: bool = False
    replay: Replay | None = None
    largest: float = 0.0  # difference of claim and measurement


class Objective:
    """What a backward pass differentiates: the sum of its tensors, weighted by their seeds."""

    def __init__(self, seeds: Seeds):
        self.seeds = seeds
        self.nodes = [node for node, _ in seeds]
        thaw(self.nodes)

    def gradients(self, leaves: list[Node], create_graph: bool = False) -> list[Node]:
        """Fresh gradient nodes of leaves."""
        with grad_mode(True):
            found = reverse.gradients(
                self.seeds, leaves, create_graph=create_graph, retain_graph=True
            )
        return [
            rules.zeros_like(leaf) if g is None else g
            for leaf, g in zip(leaves, found, strict=True)
        ]


class GraphCheck:
    """Checks of the leaves of one objective; they share the base values."""

    def __init__(self, seeds: Seeds, *, rtol: float = RTOL, atol: float = ATOL, seed: int = 0):
        self.names: dict[Node, str] = {}
        self.claimed: dict[Node, tuple[Node, Any]] = {}
        self.objective = Objective(seeds)
        self.rtol = rtol
        self.atol = atol
        self.seed = seed
        weights = [weight for _, weight in seeds]
        self.replay = Replay([*self.objective.nodes, *weights])
        self.weights = [self.replay.value(weight) for weight in weights]
        self.spent = 0.0

    @cached_property
    def here(self) -> Any:
        """The objective as the program computed it."""
        return self.total([self.replay.value(node) for node in self.objective.nodes])

    def total(self, values: list[Any]) -> Any:
        """The objective of the values of its tensors."""
        total: Any = 0.0
        for value, weight in zip(values, self.weights, strict=False):
            total = total + np.add.reduce(weight * value, axis=None)
        return total

    def leaves(self) -> list[Node]:
        """The leaves that the objective depends on, in order of creation."""
        found = (n for n in self.replay.order if n.op is ops.LEAF and n.requires_grad)
        return [n for n in found if not shows(n)]

    @np.errstate(all="ignore")
    def cost(self, leaf: Node) -> float:
        """The seconds of the processor that one value of the objective takes."""
        run, value = self.replay.function(leaf), self.replay.value(leaf)
        started = time.process_time()
        run(value)
        return time.process_time() - started

    # -- first order ----------------------------------------------------------------------------

    def claim(self, leaves: list[Node]) -> None:
        """Run backward once for several leaves that are going to be checked."""
        nodes = self.objective.gradients(leaves)
        if self.replay.wide:
            replay = Replay(nodes)
            values = [replay.value(node) for node in nodes]
        else:
            evaluate(nodes)
            values = [ops.value_of(node) for node in nodes]
        self.claimed.update(zip(leaves, zip(nodes, values, strict=True), strict=True))

    @np.errstate(all="ignore")
    def check(self, leaf: Node) -> LeafResult:
        """Compare the gradient of a leaf with differences."""
        if leaf not in self.claimed:
            self.claim([leaf])
        node, claimed = self.claimed[leaf]
        point = np.asarray(self.replay.value(leaf))
        gradient = np.asarray(claimed, np.float64)
        if point.size == 0:
            return LeafResult(RIGHT, gradient=gradient)
        result = self._compare(self.replay, leaf, point, gradient)
        result.gradient, result.replay = gradient, self.replay
        if result.kind == WRONG:
            result = self._explained(leaf, point, gradient, result)
        if result.kind == WRONG:
            result = self._without_hooks(leaf, point, result)
        if result.kind == WRONG and self._right_nearby(leaf, node, point):
            result.kind = KINK
        if result.kind == KINK:
            result.kinks = self.kinks_behind(leaf)
        return result

    def _explained(
        self, leaf: Node, point: np.ndarray, gradient: np.ndarray, result: LeafResult
    ) -> LeafResult:
        """Compare again with the cuts of the graph as constants; return what still disagrees."""
        cuts = find_cuts(self.replay, self.objective.nodes, leaf)
        if not cuts:
            return result
        frozen = Replay(
            [*self.objective.nodes, *(weight for _, weight in self.objective.seeds)],
            [cut.node for cut in cuts],
        )
        again = self._compare(frozen, leaf, point, gradient)
        again.gradient, again.replay = gradient, frozen
        if again.kind == WRONG:
            return again
        result.kind, result.cuts = "cut", cuts
        return result

    def _without_hooks(self, leaf: Node, point: np.ndarray, result: LeafResult) -> LeafResult:
        """Compare again without hooks on the gradient; return what still disagrees."""
        nodes = [n for n in (leaf, *self.replay.dependents(leaf)) if hooked(n)]
        if not nodes:
            return result
        with unhooked(nodes):
            plain = self.objective.gradients([leaf])[0]
            gradient = np.asarray(Replay([plain]).value(plain), np.float64)
        again = self._compare(self.replay, leaf, point, gradient)
        again.gradient = gradient
        if again.kind == WRONG:
            again = self._explained(leaf, point, gradient, again)
        if again.kind == WRONG:
            return again
        result.kind, result.cuts = "cut", [*map(hook_cut, nodes), *again.cuts]
        return result

    def _right_nearby(self, leaf: Node, node: Node, point: np.ndarray) -> bool:
        """Whether the rules are right a little off a declared kink. Where several kinks meet,
        backward's choice need not lie between the slopes of both sides."""
        if not self.kinks_behind(leaf):
            return False
        direction = signed_direction(generator_of(self.names.get(leaf, ""), self.seed), point)
        off = point + 1e-3 * math.sqrt(point.size) * direction
        gradient = np.asarray(Replay([node]).function(leaf)(off)[0], np.float64)
        return self._compare(self.replay, leaf, off, gradient).kind != WRONG

    def _compare(
        self, replay: Replay, leaf: Node, point: np.ndarray, gradient: np.ndarray
    ) -> LeafResult:
        probe = Probe(self, replay, leaf, point)
        if 1 < point.size <= MAX_ELEMENTS and not probe.near:
            settled = probe.together(gradient)
            if settled is not None:
                return settled
        expected = self.cost(leaf) * 2 * point.size
        if point.size <= MAX_ELEMENTS and expected <= min(PATIENCE, BUDGET - self.spent):
            self.spent += expected
            return probe.elements(gradient)
        return probe.directions(gradient)

    @cached_property
    def kinks(self) -> list[Node]:
        """Nodes with a declared kink that an element is at, or close to."""
        found = []
        for node in self.replay.order:
            if node.op.kink is None or not any(n.requires_grad for n in (node, *node.inputs)):
                continue
            with grad_mode(False):
                distance = node.op.kink(*node.args)
            if (np.asarray(Replay([distance]).value(distance)) <= 10 * STEP).any():
                found.append(node)
        return found

    def kinks_behind(self, leaf: Node) -> list[Node]:
        """Those of them that the leaf reaches."""
        reached = set(self.replay.dependents(leaf))
        return [node for node in self.kinks if node in reached]

    # -- second order ---------------------------------------------------------------------------

    @np.errstate(all="ignore")
    def check_second(self, leaf: Node) -> LeafResult:
        """Compare Hessian-vector products with differences of the gradient."""
        leaves = self.leaves()
        grads = self.objective.gradients(leaves, create_graph=True)
        point = np.asarray(self.replay.value(leaf))
        if point.size == 0:
            return LeafResult(RIGHT)
        rows: list[Row] = []
        cuts: list[Cut] = []
        generator = generator_of(self.names.get(leaf, ""), self.seed + 1)
        for _ in range(min(2, point.size)):
            direction = signed_direction(generator, point)
            weights = [
                ops.constant(np.asarray(signed_direction(generator, np.zeros(n.shape)), n.dtype))
                for n in leaves
            ]
            seeds = list(zip(grads, weights, strict=True))
            second = GraphCheck(seeds, rtol=max(self.rtol, 1e-5), atol=max(self.atol, 1e-7))
            verdict, found = self._second(second, leaf, direction)
            cuts = found or cuts
            rows.append(Row(None, verdict))
        worst = _worst(rows)
        bad = [row for row in rows if row.verdict.kind == worst]
        kinks = self.kinks_behind(leaf) if worst == KINK else []
        return LeafResult(worst, bad, len(bad), len(rows), cuts, kinks, by_direction=True)

    def _second(
        self, second: GraphCheck, leaf: Node, direction: np.ndarray
    ) -> tuple[Verdict, list[Cut]]:
        """Measure a weighted sum of gradients along a direction; return the verdict and the cuts
        that explain a disagreement."""
        point = np.asarray(self.replay.value(leaf))
        claimed = 0.0
        seeds = [(g, weight) for g, weight in second.objective.seeds if g.requires_grad]
        if seeds:
            product = Objective(seeds).gradients([leaf])[0]
            claimed = float(np.vdot(Replay([product]).value(product), direction))

        def examined(replay: Replay) -> Verdict:
            return Probe(second, replay, leaf, point).line(direction, 1.0).examine(claimed)

        verdict = examined(second.replay)
        if verdict.kind != WRONG:
            return verdict, []
        cuts = find_cuts(second.replay, second.objective.nodes, leaf)
        kink = bool(self.kinks_behind(leaf))
        if kink:  # on which side a rule says it is, is no cut of the program
            cuts = [cut for cut in cuts if cut.node in self.replay]
        frozen = [cut.node for cut in cuts]
        if cuts and examined(Replay(second.replay.outputs, frozen)).kind != WRONG:
            return verdict._replace(kind="cut"), cuts
        return verdict._replace(kind=KINK) if kink else verdict, []


class Probe:
    """The objective as a function of one leaf."""

    def __init__(self, check: GraphCheck, replay: Replay, leaf: Node, point: np.ndarray):
        self.check = check
        self.point = point
        self.leaf = leaf
        self.run = replay.function(leaf)
        nodes = replay.dependents(leaf)
        self.analytic = is_analytic(nodes)
        self.near = bool(check.kinks_behind(leaf))
        same = leaf in replay and point is replay.value(leaf)
        self.here = check.here if same else self.value(point)
        self.size = lambda: max((_largest(replay.value(n)) for n in nodes), default=0.0)

    def value(self, point: np.ndarray) -> Any:
        """The objective at a point; nan where an op refuses what it gets."""
        try:
            return self.check.total(self.run(point))
        except AutodiffError as error:
            go_on_after(error)
            return math.nan

    def line(self, direction: np.ndarray, scale: float) -> Line:
        point = self.point
        return Line(
            lambda t: self.value(point + t * direction),
            float(self.here),
            scale,
            analytic=self.analytic,
            near_kink=self.near,
            size=self.size,
            rtol=self.check.rtol,
            atol=self.check.atol,
        )

    def _element(self, gradient: np.ndarray, at: tuple[int, ...]) -> Verdict:
        direction = np.zeros(self.point.shape)
        direction[at] = 1.0
        return self.line(direction, abs(float(self.point[at]))).examine(float(gradient[at]))

    def together(self, gradient: np.ndarray) -> LeafResult | None:
        """All elements at once, along an uneven direction and to a part of what each may be off.
        None when that does not settle it: then each is looked at."""
        size, check = self.point.size, self.check
        direction = uneven(check.seed, size).reshape(self.point.shape)
        direction = direction * np.maximum(np.abs(self.point), 1.0)
        verdict = self._along(gradient, direction)
        error = abs(verdict.claimed - verdict.measured)
        allowed = (check.rtol * np.abs(gradient) + check.atol) * np.abs(direction)
        if verdict.kind != RIGHT or not error <= PART * np.minimum.reduce(allowed, axis=None):
            return None
        return LeafResult(RIGHT, [], size, size, largest=error)

    def elements(self, gradient: np.ndarray) -> LeafResult:
        """Every element on its own."""
        places = product(*map(range, self.point.shape))
        rows = [Row(at, self._element(gradient, at)) for at in places]
        return _summary(rows, self.point.size)

    def directions(self, gradient: np.ndarray) -> LeafResult:
        """Fixed random directions; where one disagrees, the elements that are to blame."""
        generator = generator_of(self.check.names.get(self.leaf, ""), self.check.seed)
        rows = []
        total = DIRECTIONS
        for _ in range(DIRECTIONS):
            direction = signed_direction(generator, self.point)
            verdict = self._along(gradient, direction)
            rows.append(Row(None, verdict))
            if verdict.kind == WRONG:
                if found := self._blamed(gradient, direction):
                    rows, total = found, self.point.size
                break
        result = _summary(rows, total)
        result.by_direction = True
        return result

    def _along(self, gradient: np.ndarray, direction: np.ndarray) -> Verdict:
        return self.line(direction, 1.0).examine(float(np.vdot(gradient, direction)))

    def _blamed(self, gradient: np.ndarray, direction: np.ndarray) -> list[Row]:
        """Halve the direction until single elements are left, the most wrong halves first."""
        flat = direction.reshape(-1)
        pending = [(0, flat.size)]
        found: list[Row] = []
        while pending and len(found) < MAX_ROWS:
            start, end = pending.pop()
            if end - start == 1:
                at = tuple(int(i) for i in np.unravel_index(start, self.point.shape))
                verdict = self._element(gradient, at)
                if verdict.kind == WRONG:
                    found.append(Row(at, verdict))
                continue
            middle = (start + end) // 2
            halves = []
            for part in ((start, middle), (middle, end)):
                piece = np.zeros(flat.size)
                piece[slice(*part)] = flat[slice(*part)]
                verdict = self._along(gradient, piece.reshape(self.point.shape))
                if verdict.kind == WRONG:
                    halves.append((abs(verdict.claimed - verdict.measured), part))
            pending.extend(part for _, part in sorted(halves))
        return found


@contextmanager
def unhooked(nodes: list[Node]) -> Iterator[None]:
    """These nodes without their hooks."""
    kept = [(node, node.mark().hooks) for node in nodes if hooked(node)]
    for node, _ in kept:
        node.mark().hooks = {}
    try:
        yield
    finally:
        for node, hooks in kept:
            node.mark().hooks = hooks


def thaw(nodes: list[Node]) -> None:
    """Forget that a backward freed this graph, and what retain_grad wants: it is read once more."""
    for node in walk(nodes, lambda node: (*node.inputs, *Replay.needed(node))):
        if node.marks is not None:
            marks = node.mark()
            marks.freed = None
            marks.overwritten = None
            marks.slots = []


def generator_of(name: str, seed: int) -> Any:
    """Numbers that are the same in every run: they depend on the leaf's name and the seed."""
    from random import Random

    return Random(zlib.crc32(f"{name}/{seed}".encode()))


def uneven(seed: int, size: int) -> np.ndarray:
    """Steps of both signs, none of them small."""
    generator = generator_of("together", seed)
    steps = [generator.choice((-1, 1)) * generator.uniform(0.5, 1.5) for _ in range(size)]
    return np.array(steps)


def signed_direction(generator: Any, point: np.ndarray) -> np.ndarray:
    """A direction of uneven steps of both signs, scaled to the elements of the point."""
    count = max(point.size, 1)
    data = generator.getrandbits(8 * count).to_bytes(count, "little")
    steps = (np.frombuffer(data, np.uint8)[: point.size].astype(np.float64) - 127.5) / 74.0
    spread = np.maximum(np.abs(point), 1.0) / math.sqrt(count)
    return steps.reshape(point.shape) * spread


def _largest(value: Any) -> float:
    if type(value) is tuple:
        return max(map(_largest, value))
    value = np.asarray(value)
    if not is_float(value.dtype):
        return 0.0
    return float(np.abs(value).max(initial=0.0, where=np.isfinite(value)))


_SEVERITY = (RIGHT, KINK, NOISY, "cut", WRONG)


def _worst(rows: list[Row]) -> str:
    return max((row.verdict.kind for row in rows), key=_SEVERITY.index)


def _summary(rows: list[Row], total: int) -> LeafResult:
    """The worst kind among the rows, and the rows of that kind, the largest error first."""
    largest = max(map(_error, rows))
    kind = _worst(rows)
    if kind == RIGHT:
        return LeafResult(kind, [], len(rows), total, largest=largest)
    chosen = [row for row in rows if row.verdict.kind == kind]
    chosen.sort(key=_error, reverse=True)
    return LeafResult(kind, chosen[:MAX_ROWS], len(chosen), total, largest=largest)


def _error(row: Row) -> float:
    error = abs(row.verdict.claimed - row.verdict.measured)
    return error if math.isfinite(error) else math.inf
