"""Forward equals reverse: for every sample of the table, both give the same directional derivative."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import pytest

from autodiff_cli.autograd.forward import Linearized, jvp
from autodiff_cli.autograd.reverse import gradients
from autodiff_cli.engine import evaluate  # noqa: F401  # nodes get values
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import LEAF, constant, value_of
from autodiff_cli.graph.registry import F
from tests.table import Case, apply, arrays_of, cases, nodes_of, specs, weights


def direction(case: Case, place: str, shape: tuple[int, ...]) -> np.ndarray:
    seed = crc32(f"{case.name}/{place}/direction".encode())
    return np.asarray(np.random.RandomState(seed).uniform(-1, 1, shape))


def applied(case: Case) -> tuple[list[Node], list[Node], list[Node]]:
    """Variables, directions for them, and outputs that depend on them."""
    nodes = nodes_of(case, arrays_of(case))
    places = [place for place, spec in specs(case) if spec.grad]
    inputs = [nodes[place] for place in places]
    moves = [
        constant(direction(case, place, x.shape).astype(x.dtype))
        for place, x in zip(places, inputs, strict=True)
    ]
    return inputs, moves, [out for out in apply(case, nodes) if out.requires_grad]


def dot(pairs: list[tuple[Any, Any]]) -> float:
    return float(sum(np.sum(a.astype(float) * b) for a, b in pairs))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_forward_equals_reverse(case: Case) -> None:
    inputs, moves, outputs = applied(case)
    if not outputs:
        return
    scales = [
        weights(case, out.shape, f"forward{i}").astype(out.dtype) for i, out in enumerate(outputs)
    ]
    seeds = [(out, constant(w)) for out, w in zip(outputs, scales, strict=True)]
    pulled = gradients(seeds, inputs, create_graph=True, retain_graph=True)
    reverse = [
        (value_of(g), value_of(move))
        for g, move in zip(pulled, moves, strict=True)
        if g is not None
    ]
    changes = jvp(outputs, inputs, list(moves))
    forward = [(value_of(change), w) for change, w in zip(changes, scales, strict=True)]
    for change, out in zip(changes, outputs, strict=True):
        assert change.shape == out.shape
    np.testing.assert_allclose(dot(forward), dot(reverse), rtol=1e-6, atol=1e-9)


def test_the_change_does_not_depend_on_the_dual() -> None:
    x = nodes_of_one(np.array([0.5, -1.0]))
    derivative = Linearized([F.mul(F.sin(x), x)], [x])
    (change,) = derivative.along([constant(np.array([1.0, 2.0]))])
    pending, seen = [change], set()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(node.inputs)
    assert not seen & {dual for dual in derivative.duals if dual is not None}


def nodes_of_one(array: np.ndarray) -> Node:
    return Node(LEAF, (object(), None), (), array.shape, array.dtype, True, array)
