"""The last line of an explanation: what central differences say about its totals."""

from __future__ import annotations

import time

from ..checks.deadline import go_on_after
from ..checks.differences import BUDGET, GraphCheck
from ..checks.slopes import NOISY, RIGHT, WRONG
from ..errors import AutodiffError
from ..graph.node import Node
from ..language.program.variables import Variable
from .model import Verified
from .record import Seeds

PATIENCE = 10.0  # seconds of the processor for all
EVALUATIONS = 50  # of the objective, for a leaf along directions
SECONDS = 3.0  # for elements; larger leaves are compared along directions

_WORDS = {
    RIGHT: "central differences agree: max abs diff {}",
    WRONG: "central differences DISAGREE for {}",
    "kink": "{}: on a kink, the slopes of both sides differ and backward's lies between them",
    "cut": "central differences differ for {}: part of the graph is detached, or a hook replaces "
    "a gradient",
    NOISY: "central differences are too noisy here to decide about {}",
    "slow": "not compared with central differences, which would take long: {}",
    "unknown": "not compared with central differences: {}",
}
_ORDER = (WRONG, "cut", "kink", NOISY, "slow", "unknown")


def compared(seeds: Seeds, wanted: list[Variable], hooked: bool) -> Verified:
    """Compare every total with central differences, which know of no hooks."""
    try:
        return _compared(seeds, wanted, hooked)
    except AutodiffError as error:
        go_on_after(error)
        return Verified("unknown", 0.0, _WORDS["unknown"].format(error.diagnostic.message))


def _compared(seeds: Seeds, wanted: list[Variable], hooked: bool) -> Verified:
    kinds: dict[str, list[str]] = {}
    largest = 0.0
    started = time.process_time()
    graph = GraphCheck(seeds)
    graph.spent = BUDGET - SECONDS
    for variable in wanted:
        expected = EVALUATIONS * graph.cost(variable.node)
        if time.process_time() - started + expected > PATIENCE:
            kinds.setdefault("slow", []).append(variable.name)
            continue
        graph.names[variable.node] = variable.name
        result = graph.check(variable.node)
        kind = "cut" if hooked and result.kind == WRONG else result.kind
        kinds.setdefault(kind, []).append(variable.name)
        largest = max(largest, result.largest)
    for kind in _ORDER:
        if kind in kinds:
            found = tuple(kinds[kind])
            shown = "unknown" if kind == "slow" else kind
            return Verified(shown, largest, _WORDS[kind].format(_listed(found)), found)
    bound = "< 1e-6" if largest < 1e-6 else f"{largest:.2g}"
    return Verified(RIGHT, largest, _WORDS[RIGHT].format(bound))


def confirmed(seeds: Seeds, leaves: list[Node]) -> set[Node]:
    """The leaves whose gradients are what central differences along directions say."""
    try:
        graph = GraphCheck(seeds)
        graph.spent = BUDGET
        return {leaf for leaf in leaves if graph.check(leaf).kind == RIGHT}
    except AutodiffError as error:
        go_on_after(error)
        return set()


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more
