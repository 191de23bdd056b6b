"""Random graphs built without any text: reverse mode agrees with forward differences, and it does
not matter in which pieces a graph is evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import autodiff_cli.ops  # noqa: F401  # declares the table
from autodiff_cli.autograd.gradients import grad
from autodiff_cli.autograd.rules import zeros_like
from autodiff_cli.autograd.tensor import Tensor, new_leaf
from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant
from autodiff_cli.graph.registry import F

SETTINGS = settings(max_examples=30, deadline=None, derandomize=True, database=None)
UNARY = ["sin", "tanh", "sigmoid", "neg", "atan"]
BINARY = ["add", "sub", "mul"]
# Steps of a graph: an op, and the earlier results it takes (counted from the end).
STEPS = st.lists(
    st.tuples(st.sampled_from(UNARY + BINARY + ["matmul", "mT", "sum", "row"]),
              st.integers(0, 5), st.integers(0, 5)),
    min_size=1, max_size=12,
)  # fmt: skip


def build(steps: list[tuple[str, int, int]], leaves: list[Node]) -> list[Node]:
    """All results of a graph; every one is a (3, 3) matrix, so that any may follow any."""
    nodes = list(leaves)
    for name, i, j in steps:
        x, y = nodes[-1 - i % len(nodes)], nodes[-1 - j % len(nodes)]
        if name in UNARY:
            nodes.append(getattr(F, name)(x))
        elif name in BINARY:
            nodes.append(getattr(F, name)(x, y))
        elif name == "matmul":
            nodes.append(F.mul(F.matmul(x, y), 0.3))
        elif name == "mT":
            nodes.append(F.transpose(x, 0, 1))
        elif name == "sum":
            nodes.append(F.sub(x, F.mul(F.sum(x, (1,), True), 0.25)))
        else:
            nodes.append(F.add(x, F.select(y, 0, 1)))
    return nodes


def arrays() -> list[np.ndarray]:
    generator = np.random.default_rng(5)
    return [generator.uniform(-1, 1, (3, 3)) for _ in range(2)]


def total(steps: list[tuple[str, int, int]], values: list[np.ndarray]) -> float:
    last = F.sum(F.tanh(build(steps, [constant(v) for v in values])[-1]))
    evaluate([last])
    return float(last.value)


@SETTINGS
@given(STEPS)
def test_reverse_mode_equals_differences(steps: list[tuple[str, int, int]]) -> None:
    values = arrays()
    leaves = [new_leaf(v.copy(), True) for v in values]
    objective = Tensor(F.sum(F.tanh(build(steps, [t.node for t in leaves])[-1])))
    found = grad([objective], leaves, [None], allow_unused=True)
    generator = np.random.default_rng(6)
    for at, gradient in enumerate(found):
        direction = generator.uniform(-1, 1, (3, 3))
        sides = []
        for step in (1e-6, -1e-6):
            moved = list(values)
            moved[at] = values[at] + step * direction
            sides.append(total(steps, moved))
        slope = 0.0 if gradient is None else float((gradient.numpy() * direction).sum())
        assert abs(slope - (sides[0] - sides[1]) / 2e-6) < 1e-6 * max(1.0, abs(slope))


@SETTINGS
@given(STEPS, st.data())
def test_evaluation_in_pieces(steps: list[tuple[str, int, int]], data: Any) -> None:
    whole = build(steps, [constant(v) for v in arrays()])
    evaluate(whole)
    pieces = build(steps, [constant(v) for v in arrays()])
    order = data.draw(st.permutations(range(len(pieces))))
    for at in order:
        evaluate([pieces[at]])
        np.testing.assert_array_equal(pieces[at].value, whole[at].value)


@SETTINGS
@given(STEPS)
def test_second_derivatives_are_symmetric(steps: list[tuple[str, int, int]]) -> None:
    leaves = [new_leaf(v.copy(), True) for v in arrays()]
    objective = Tensor(F.sum(F.tanh(build(steps, [t.node for t in leaves])[-1])))
    found = grad([objective], leaves, [None], create_graph=True, allow_unused=True)
    first = [
        zeros_like(x.node) if g is None else g.node for g, x in zip(found, leaves, strict=True)
    ]
    generator = np.random.default_rng(7)
    u, v = (generator.uniform(-1, 1, (3, 3)) for _ in range(2))
    along_u = Tensor(F.sum(F.mul(first[0], constant(u))))
    along_v = Tensor(F.sum(F.mul(first[1], constant(v))))
    mixed = []
    for one, leaf, direction in ((along_u, leaves[1], v), (along_v, leaves[0], u)):
        if not one.requires_grad:
            mixed.append(0.0)
            continue
        (second,) = grad([one], [leaf], [None], retain_graph=True, allow_unused=True)
        mixed.append(0.0 if second is None else float((second.numpy() * direction).sum()))
    assert abs(mixed[0] - mixed[1]) <= 1e-9 * max(1.0, abs(mixed[0]))
