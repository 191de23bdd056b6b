"""Random graphs: every regime of the engine gives what node by node and NumPy give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autodiff_cli.autograd import reverse, rules
from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, value_of
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE

from ..regimes import close, fixed, fused, plain, same
from .exact_graphs import LEAVES, STEPS, Leaf, array_of, build, node_of

SETTINGS = settings(max_examples=80, deadline=None, derandomize=True, database=None)

Steps = list[tuple[str, int, int, int, bool]]


def gradients(values: list[Node], leaves: list[Node]) -> list[Node]:
    """Of the weighted sum of all values that gradients reach."""
    seeds = []
    for node in values:
        if node.requires_grad and node.dtype.kind == "f":
            factors = np.arange(node.numel).reshape(node.shape) % 3 - 1
            seed = F.sum(node * constant(factors.astype(node.dtype)))
            seeds.append((seed, rules.ones_like(seed)))
    wanted = [node for node in leaves if node.requires_grad]
    if not seeds:
        return []
    found = reverse.gradients(seeds, wanted, create_graph=False, retain_graph=True)
    return [g for g in found if g is not None]


def check(specs: list[Leaf], steps: Steps, picks: list[int], before: int, last: bool) -> None:
    """Several targets and the gradients of their sums, with some value asked for before."""
    STATE.reset()
    arrays = [array_of(spec) for spec in specs]
    answers: list[list[np.ndarray]] = []
    for evaluated in (plain, evaluate):
        leaves = [node_of(spec, array) for spec, array in zip(specs, arrays, strict=True)]
        values = build(steps, list(zip(leaves, arrays, strict=True)))
        if before:
            evaluated([values[before % len(values)][0]])
        chosen = [values[at % len(values)] for at in picks]
        slopes = gradients([node for node, _ in chosen], leaves)
        evaluated([*[node for node, _ in chosen], *slopes], last)
        for node, wanted in chosen:
            same(value_of(node), wanted)
        answers.append([value_of(g) for g in slopes])
    for one, other in zip(*answers, strict=True):
        close(other, one)


PICKS = st.lists(st.integers(0, 20), min_size=1, max_size=4).map(lambda picks: [-1, *picks])


@SETTINGS
@given(LEAVES, STEPS, PICKS, st.integers(0, 9), st.booleans(), st.sampled_from([8, 64, 1024]))
def test_fused(
    specs: list[Leaf], steps: Steps, picks: list[int], before: int, last: bool, tile: int
) -> None:
    with fused(tile):
        check(specs, steps, picks, before, last)


@SETTINGS
@given(LEAVES, STEPS, PICKS, st.integers(0, 9), st.booleans())
def test_memory_that_stays(
    specs: list[Leaf], steps: Steps, picks: list[int], before: int, last: bool
) -> None:
    with fixed():
        check(specs, steps, picks, before, last)


SMOOTH = ["tanh", "exp", "sigmoid", "sin", "softplus"]
NORMED = ["softmax", "log_softmax", "logsumexp", "mean", "var", "norm"]


def smooth(names: list[tuple[str, int]], x: Node, y: Node) -> list[Node]:
    nodes: list[Any] = [x, F.mul(x, y)]
    for name, back in names:
        node = nodes[-1 - back % len(nodes)]
        if name in SMOOTH:
            nodes.append(getattr(F, name)(node))
        elif name == "times":
            nodes.append(F.mul(node, F.tanh(y)))
        elif name == "norm":
            scale = F.sqrt(F.sum(F.square(node), (1,), True) + 1.0)
            nodes.append(F.div(node, scale))
        elif name in ("softmax", "log_softmax"):
            nodes.append(getattr(F, name)(node, 1))
        else:
            dims = (0,) if back % 2 else (1,)
            nodes.append(F.sub(node, getattr(F, name)(node, dims, keepdim=True)))
    return [F.tanh(node) for node in nodes[2:]]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@settings(SETTINGS, max_examples=20)
@given(
    st.lists(
        st.tuples(st.sampled_from([*SMOOTH, *NORMED, "times"]), st.integers(0, 3)),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([(2, 5), (5, 3), (17, 4), (33, 2)]),
    st.integers(1, 3),
)
def test_functions_of_rows(
    dtype: str, names: list[tuple[str, int]], shape: tuple[int, int], threads: int
) -> None:
    STATE.reset()
    generator = np.random.default_rng(3)
    x, y = generator.uniform(-1, 1, shape), generator.uniform(-1, 1, shape[1:])
    specs = [Leaf((), dtype, "dense", 0, True)] * 2
    found: list[list[Node]] = []
    for how in (plain, evaluate):
        leaves = [node_of(s, a.astype(dtype)) for s, a in zip(specs, (x, y), strict=True)]
        values = smooth(names, *leaves)
        targets = values + gradients(values, leaves)
        with fused(64, threads):
            how(targets)
        found.append(targets)
    for one, other in zip(*found, strict=True):
        close(other.value, one.value, 4096)
