"""Which backward rule is to blame for a wrong gradient: the graph is walked from the result towards
the leaf until the gradient first disagrees, and where several nodes read that value each of them is
examined alone."""

from __future__ import annotations

import numpy as np

from ..autograd.rules import parents
from ..errors import AutodiffError
from ..graph.node import Node
from ..graph.op import constant
from ..graph.walk import walk
from .deadline import go_on_after
from .differences import GraphCheck, LeafResult, Probe, generator_of, signed_direction
from .replay import Replay
from .slopes import WRONG

MAX_NODES = 200


@np.errstate(all="ignore")
def blamed(check: GraphCheck, leaf: Node, result: LeafResult) -> Node | None:
    """The node whose rule first gives a wrong cotangent to what the leaf reaches."""
    replay = result.replay or check.replay  # without what is cut off
    passed = set(walk(check.objective.nodes, parents))  # what a rule stands for is not
    path = [n for n in (leaf, *replay.dependents(leaf)) if n.requires_grad and n in passed]
    consumers: dict[Node, list[Node]] = {}
    for node in path:
        for needed in dict.fromkeys(parents(node)):
            consumers.setdefault(needed, []).append(node)
    for node in reversed([n for n in path if n.outputs is None and n.numel][-MAX_NODES:]):
        users = consumers.get(node, [])
        if not users or node in check.objective.nodes:
            continue
        point = np.asarray(replay.value(node))
        direction = signed_direction(generator_of("", check.seed), point)
        if node is leaf:
            direction = _worst(result, direction)
        elif not _wrong(check, node, replay, direction):
            continue
        return _guilty(users, consumers, node, replay, direction)
    return None


def _worst(result: LeafResult, direction: np.ndarray) -> np.ndarray:
    """The direction of the element that is most wrong, if elements were compared."""
    index = result.rows[0].index
    if index is None:
        return direction
    alone = np.zeros(direction.shape)
    alone[index] = 1.0
    return alone


def _guilty(
    users: list[Node], consumers: dict[Node, list[Node]], node: Node, replay: Replay,
    direction: np.ndarray,
) -> Node:  # fmt: skip
    """Of all that read a node, the one whose own rule is wrong."""
    newest = sorted(users, key=lambda user: user.seq, reverse=True)
    for user in newest:
        results = [user] if user.outputs is None else consumers.get(user, [])
        weights = [signed_direction(generator_of("weight", 0), np.zeros(n.shape)) for n in results]
        alone = GraphCheck(
            [(n, constant(np.asarray(w, n.dtype))) for n, w in zip(results, weights, strict=True)]
        )
        if _wrong(alone, node, Replay(results, replay.frozen), direction):
            return user
    return newest[0]


def _wrong(check: GraphCheck, node: Node, replay: Replay, direction: np.ndarray) -> bool:
    """Whether the gradient of an inner node disagrees along a direction."""
    try:
        found = check.objective.gradients([node])[0]
        claimed = np.asarray(Replay([found]).value(found), np.float64)
        line = Probe(check, replay, node, np.asarray(replay.value(node))).line(direction, 1.0)
        return line.examine(float(np.vdot(claimed, direction))).kind == WRONG
    except AutodiffError as error:
        go_on_after(error)
        return False
