"""The steps of an explanation in the order in which they are walked, and the graph they walk on.

Invariant: nothing is computed here but the sums of what a value has received so far, and each stop
says which node, which edges and which place of the program it is about.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...explain.model import Contribution, Explanation, Forward, Step
from ..graphs.drawing import Drawing, Edge, Vertex

SMALL = 6  # nodes of a graph that has numbers in it


@dataclass(frozen=True, slots=True)
class Given:
    """A contribution; where it is not the first one, what came before it and both together as
    `sums`."""

    contribution: Contribution
    sums: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(slots=True)
class Stop:
    """One stop of the walk: `start`, `forward`, `seed`, `backward` or `total`. Edges lead from an
    operand to what is made of it."""

    id: str
    phase: str
    node: str = ""
    edges: list[tuple[str, str]] = field(default_factory=list)
    forward: Forward | None = None
    step: Step | None = None
    given: list[Given] = field(default_factory=list)


class Walk:
    """Leaves, forward 1 to n, the seed, backward n to 1, totals."""

    def __init__(self, found: Explanation):
        self.found = found
        targets = [c for step in found.steps for c in step.contributions]
        leaves = dict.fromkeys([c.to for c in targets if not c.made])
        leaves |= dict.fromkeys(t.name for t in found.totals if t.name not in self._made())
        self.leaves = {name: f"n{at}" for at, name in enumerate(leaves, 1)}
        edges = {
            step.number: list(dict.fromkeys(
                (self._operand(c), self._node(step.number)) for c in step.contributions
            )) for step in found.steps
        }  # fmt: skip
        forward = {f.number: f for f in found.forward}
        self.root = self._node(max(forward, default=0))
        sums: dict[tuple[int, str], np.ndarray] = {}
        self.stops = [
            Stop("start", "start"),
            *(
                Stop(f"f{n}", "forward", self._node(n), edges.get(n, []), f)
                for n, f in forward.items()
            ),
            Stop("seed", "seed", self.root),
            *(
                Stop(f"b{s.number}", "backward", self._node(s.number), edges[s.number],
                     forward[s.number], s, [_given(c, sums) for c in s.contributions])
                for s in found.steps
            ),
            Stop("total", "total"),
        ]  # fmt: skip

    def _made(self) -> set[str]:
        return {f.name for f in self.found.forward}

    def _node(self, number: int) -> str:
        """What a step made, in the drawing: vertices are numbered as they stand in it."""
        return f"n{len(self.leaves) + number}"

    def _operand(self, c: Contribution) -> str:
        return self._node(c.made) if c.made else self.leaves[c.to]

    def drawing(self) -> Drawing:
        """The graph of the steps: leaves and what each step made. A small one has the numbers
        too, which are beside a larger one."""
        found = Drawing(self.found.file, self.found.objective, self.root)
        totals = {t.name: t for t in self.found.totals}
        small = len(self.leaves) + len(self.found.forward) <= SMALL
        for name, id in self.leaves.items():
            shown = Vertex(id, "leaf", name, "", "leaf", None, (), "")
            total = totals.get(name)
            if total is not None:
                shown = replace(shown, shape=total.shape, dtype=total.at.dtype.name)
                shown = replace(shown, value=total.at, grad=total.value) if small else shown
            found.vertices.append(shown)
        steps = {s.number: s for s in self.found.steps}
        for f in self.found.forward:
            step = steps.get(f.number)
            given = step.incoming if small and step is not None else ()
            value = f.value if small or not f.shape else None
            op = "" if step is None or self.found.grouped else step.op
            op = f"{f.times} times" if f.times > 1 else op
            found.vertices.append(Vertex(
                self._node(f.number), "result", f.name, f.expression.text, op, None, f.shape,
                f.dtype, f.span, value=value, grad=given[0].value if len(given) == 1 else None,
            ))  # fmt: skip
        shapes = {v.id: v.shape for v in found.vertices}
        for step in self.found.steps:
            for at, c in enumerate(step.contributions):
                ends = self._operand(c), self._node(step.number)
                found.edges.append(Edge(*ends, at, shapes[ends[0]], c.value if small else None))
        return found


def _given(c: Contribution, sums: dict[tuple[int, str], np.ndarray]) -> Given:
    """A contribution, added to what its name has received so far."""
    if c.paths == 1 or c.norms is not None:
        return Given(c)
    before = sums.get((c.made, c.to))
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf
        together = sums[c.made, c.to] = c.value if before is None else before + c.value
    return Given(c) if before is None else Given(c, (before, together))
