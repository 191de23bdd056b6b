"""Reverse mode on graphs built without text: accumulation, freeing, retained and unused values."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_cli.engine.evaluate  # gives values
import autodiff_cli.ops  # noqa: F401  # declares the table
from autodiff_cli.autograd.gradients import backward, grad
from autodiff_cli.autograd.tensor import Tensor, new_leaf
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.registry import F


def leaf(*values: float) -> Tensor:
    return new_leaf(np.array(values), True)


def gradient(tensor: Tensor) -> list[float]:
    assert tensor.grad is not None
    return tensor.grad.numpy().tolist()


def test_leaves_accumulate_in_one_tensor() -> None:
    x = leaf(1.0, 2.0)
    backward([Tensor(F.sum(F.mul(x.node, 3.0)))], [None])
    first = x.grad
    backward([Tensor(F.sum(x.node))], [None])
    assert x.grad is first
    assert gradient(x) == [4.0, 4.0]


def test_fan_out_adds_up() -> None:
    x = leaf(2.0)
    y = F.mul(x.node, x.node)
    backward([Tensor(F.sum(F.add(F.mul(y, y), y)))], [None])
    assert gradient(x) == [4 * 2.0**3 + 2 * 2.0]
    assert x.grad is not None
    assert not x.grad.requires_grad


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (1, 3), (2, 3)])
def test_broadcasting_is_undone(shape: tuple[int, ...]) -> None:
    x = new_leaf(np.ones(shape), True)
    other = new_leaf(np.arange(6.0).reshape(2, 3), True)
    backward([Tensor(F.sum(F.mul(x.node, other.node)))], [None])
    assert x.grad is not None
    assert x.grad.shape == shape
    assert x.grad.numpy().sum() == 15.0


def test_cotangents_lie_in_memory_in_any_order() -> None:
    """That of a view by `as_strided` is added up in the order of the whole; it was lost."""
    x = new_leaf(np.arange(9.0).reshape(3, 3), True)
    view = F.as_strided(x.node, (2, 2), (1, 2), 3)
    backward([Tensor(F.sum(F.pow(view, 2.0)))], [None])
    assert x.grad is not None
    assert x.grad.numpy().tolist() == [[0, 0, 0], [6, 8, 10], [12, 0, 0]]


def test_a_second_backward_needs_what_was_saved() -> None:
    x = leaf(1.0, 2.0)
    saved, plain = Tensor(F.sum(F.mul(x.node, x.node))), Tensor(F.sum(F.add(x.node, 1.0)))
    backward([plain], [None])
    backward([plain], [None])
    backward([saved], [None], retain_graph=True)
    backward([saved], [None])
    with pytest.raises(AutodiffError) as caught:
        backward([saved], [None])
    assert caught.value.code == "E406"
    assert gradient(x) == [2 + 2 * 2.0, 2 + 2 * 4.0]


def test_retained_gradients() -> None:
    x = leaf(1.0, 2.0)
    h = Tensor(F.mul(x.node, 2.0))
    h.retain_grad()
    backward([Tensor(F.sum(F.mul(h.node, h.node)))], [None], retain_graph=True)
    assert gradient(h) == [4.0, 8.0]
    assert gradient(x) == [8.0, 16.0]


def test_grad_leaves_no_trace() -> None:
    x, w = leaf(3.0), leaf(5.0)
    (found,) = grad([Tensor(F.sum(F.mul(x.node, w.node)))], [x], [None])
    assert found is not None
    assert found.numpy() == 5.0
    assert x.grad is None
    assert w.grad is None


def test_inputs_that_are_not_used() -> None:
    x, w = leaf(3.0), leaf(5.0)
    y = Tensor(F.sum(F.exp(x.node)))
    assert grad([y], [w], [None], allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(AutodiffError) as caught:
        grad([y], [w], [None])
    assert caught.value.code == "E410"


def test_derivatives_of_every_order() -> None:
    x = leaf(0.5)
    y = Tensor(F.sum(F.sin(x.node)))
    for expected in (np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin, np.cos):
        (found,) = grad([y], [x], [None], create_graph=True)
        assert found is not None
        np.testing.assert_allclose(found.numpy(), [expected(0.5)], rtol=1e-14)
        y = Tensor(F.sum(found.node))


def test_a_gradient_of_the_wrong_shape() -> None:
    x = leaf(1.0, 2.0)
    y = Tensor(F.mul(x.node, 2.0))
    for weights, code in ((None, "E401"), (leaf(1.0, 2.0, 3.0), "E308")):
        with pytest.raises(AutodiffError) as caught:
            backward([y], [weights])
        assert caught.value.code == code


def test_a_quotient_reads_its_operands_not_its_result() -> None:
    """What looks at the result, a hook or a change in place, does not meet second derivatives."""
    x = new_leaf(np.array([0.5, 2.0]), True)
    quotient = Tensor(F.div(x.node, F.add(F.mul(x.node, x.node), 1.0)))
    quotient.retain_grad()
    (slope,) = grad([Tensor(F.sum(quotient.node))], [x], [None], create_graph=True)
    assert quotient.accumulator is not None
    quotient.accumulator.grad = None
    backward([Tensor(F.sum(F.mul(slope.node, slope.node)))], [None])
    assert quotient.accumulator.grad is None
    v = x.numpy()
    first = (1 - v**2) / (1 + v**2) ** 2
    second = 2 * v * (v**2 - 3) / (1 + v**2) ** 3
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * first * second, rtol=1e-12)


def test_retained_gradients_are_new_tensors_each_time() -> None:
    x = new_leaf(np.array([0.5, 2.0]), True)
    square = Tensor(F.mul(x.node, x.node))
    square.retain_grad()
    loss = Tensor(F.sum(F.mul(square.node, square.node)))
    (slope,) = grad([loss], [x], [None], create_graph=True)
    assert square.accumulator is not None
    first = square.accumulator.grad
    assert first is not None
    assert first.requires_grad
    backward([Tensor(F.sum(F.mul(slope.node, slope.node)))], [None])
    again = square.accumulator.grad
    assert again is not None
    assert again is not first
    assert not again.requires_grad
    np.testing.assert_allclose(first.numpy(), [0.5, 8.0])
