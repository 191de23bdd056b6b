"""Which rule is to blame for a wrong gradient: the graph is walked from the result towards the
leaf until the gradient first disagrees."""

from __future__ import annotations

import numpy as np

from ..errors import AutodiffError
from ..graph.node import Node
from .differences import GraphCheck, Probe, generator_of, signed_direction
from .replay import Replay
from .slopes import WRONG

MAX_NODES = 200


def blamed(check: GraphCheck, leaf: Node) -> Node | None:
    """The node whose rule first gives a wrong cotangent to what the leaf reaches."""
    path = [leaf, *check.replay.dependents(leaf)]
    path = [n for n in path if n.requires_grad and n.outputs is None and n.numel]
    consumers: dict[Node, list[Node]] = {}
    for node in path:
        for needed in node.inputs:
            consumers.setdefault(needed, []).append(node)
    for node in reversed(path[-MAX_NODES:]):
        if node in check.objective.nodes:
            continue
        users = consumers.get(node, [])
        if users and _wrong(check, node):
            return max(users, key=lambda n: n.seq)
    return None


def _wrong(check: GraphCheck, node: Node) -> bool:
    """Whether the gradient of an inner node disagrees along a direction."""
    try:
        found = check.objective.gradients([node])[0]
        claimed = np.asarray(Replay([found]).value(found), np.float64)
        point = np.asarray(check.replay.value(node))
        direction = signed_direction(generator_of("", check.seed), point)
        line = Probe(check, check.replay, node, point).line(direction, 1.0)
        return line.examine(float(np.vdot(claimed, direction))).kind == WRONG
    except AutodiffError as error:
        if error.code == "E508":
            raise
        return False
