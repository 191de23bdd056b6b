"""Jacobians on nodes, and what a long chain or a large output costs."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.autograd.tensor import AccumulateGrad, Tensor, new_leaf
from autodiff_cli.autograd.transform_levels import Opened, forward_jacobian_of, jacobian_of
from autodiff_cli.autograd.transforms.functional import hessian, jacobian
from autodiff_cli.engine import evaluate  # noqa: F401  # nodes get values
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import leaf, value_of
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE
from tests.pace import takes_at_most


@pytest.fixture(autouse=True)
def fresh() -> None:
    STATE.reset()


def variable(array: np.ndarray) -> Node:
    return leaf(array, AccumulateGrad())


def test_blocks_have_the_shapes_of_output_and_input() -> None:
    a = variable(np.arange(6.0).reshape(2, 3))
    b = variable(np.arange(3.0))
    ((to_a, to_b),) = jacobian_of([F.matmul(a, b)], [a, b])
    assert to_a is not None and to_b is not None
    assert to_a.shape == (2, 2, 3) and to_b.shape == (2, 3)
    np.testing.assert_array_equal(value_of(to_b), value_of(a))


def test_what_does_not_depend_is_none() -> None:
    a, b = variable(np.ones(2)), variable(np.ones(3))
    ((to_a, to_b),) = jacobian_of([F.exp(a)], [a, b])
    assert to_a is not None and to_b is None


def test_forward_gives_the_same_blocks() -> None:
    opened = Opened(
        [new_leaf(np.array([0.3, -0.8])), new_leaf(np.array([1.5, 2.0, 0.1]))], "jacfwd"
    )
    x, y = opened.nodes
    outputs = [F.tanh(F.mul(F.unsqueeze(x, 1), y)), F.sum(F.exp(x))]
    reverse = jacobian_of(outputs, opened.nodes)
    forward = forward_jacobian_of(opened, outputs)
    for row, other in zip(reverse, forward, strict=True):
        for g, h in zip(row, other, strict=True):
            np.testing.assert_allclose(0.0 if g is None else value_of(g), value_of(h), rtol=1e-12)


def test_a_long_chain_needs_no_recursion() -> None:
    def chain(args: list[Tensor], kwargs: dict[str, object]) -> Tensor:
        node = args[0].node
        for _ in range(5000):
            node = F.mul(F.sin(node), 1.01)
        return Tensor(node)

    found = jacobian(chain, new_leaf(np.array([0.5, 1.0, 1.5])))
    assert found.shape == (3, 3) and np.isfinite(found.numpy()).all()


def test_the_jacobian_is_one_pass_for_all_rows() -> None:
    weight = np.linspace(-1, 1, 200 * 200).reshape(200, 200)
    x = new_leaf(np.linspace(0, 1, 200))

    def layer(args: list[Tensor], kwargs: dict[str, object]) -> Tensor:
        return Tensor(F.tanh(F.matmul(new_leaf(weight).node, args[0].node)))

    before = Node.counter()
    found = jacobian(layer, x)
    assert Node.counter() - before < 200
    assert takes_at_most(20, lambda: jacobian(layer, x).numpy())
    values = found.numpy()
    slope = 1 - np.tanh(weight @ x.numpy()) ** 2
    np.testing.assert_allclose(values, slope[:, None] * weight, rtol=1e-9, atol=1e-12)


def test_too_large_a_jacobian_is_refused_before_any_work() -> None:
    x = new_leaf(np.zeros(200_000))
    with pytest.raises(AutodiffError) as caught:
        jacobian(lambda args, kwargs: Tensor(F.exp(args[0].node)), x)
    assert caught.value.code == "E505"


def test_hessian_of_rosenbrock() -> None:
    def rosenbrock(args: list[Tensor], kwargs: dict[str, object]) -> Tensor:
        x = args[0].node
        a, b = F.slice(x, 0, 0, -1), F.slice(x, 0, 1, None)
        return Tensor(F.sum(100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2))

    found = hessian(rosenbrock, new_leaf(np.array([1.0, 1.0, 1.0]))).numpy()
    np.testing.assert_allclose(
        found, [[802.0, -400.0, 0.0], [-400.0, 1002.0, -400.0], [0.0, -400.0, 200.0]], rtol=1e-12
    )
