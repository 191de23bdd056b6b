"""Reverse mode on graphs built without text: accumulation, freeing, retained and unused values."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_cli.engine.evaluate  # gives values
import autodiff_cli.ops  # noqa: F401  # declares the table
from autodiff_cli.autograd import literals
from autodiff_cli.autograd.gradients import backward, grad
from autodiff_cli.autograd.tensor import Tensor, new_leaf
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.registry import F
from autodiff_cli.session import run
from autodiff_cli.source import Source

from ..together import together


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


EXPANDED = (
    "The expanded size of the tensor (3) must match the existing size (4) at non-singleton "
    "dimension 1.  Target sizes: [2, 3].  Tensor sizes: {}"
)
HOOKED = (
    "a = torch.ones(2, requires_grad=True); b = torch.ones(2, requires_grad=True)\ny = a * b\n"
    "y.grad_fn.register_hook(lambda gi, go: {})\ny.sum().backward()\nprint(a.grad, b.grad)"
)
FUNCTIONAL = (
    "from torch.autograd.functional import jacobian, vjp\nx = torch.ones(2)\nf = torch.mul\n{}"
)
LBFGS = (
    "p = torch.ones(2, requires_grad=True)\nopt = torch.optim.LBFGS([p], max_iter={})\n"
    "def closure():\n    opt.zero_grad(); loss = (p ** 2).sum(); loss.backward(); return loss\n"
    "opt.step(closure)\nprint(p.tolist(), opt.state_dict()['state'][0]['n_iter'])"
)
GIVEN = "The inputs given to jacobian must be either a Tensor or a tuple of Tensors but the value "
TWO, ONE = "torch.ones(2)", "torch.ones(3)"

# Programs and what PyTorch prints of them, or says when the last line fails.
AS_PYTORCH = {
    "x = torch.zeros(2, 3)\nx[0:2] = torch.ones(1, 1, 1, 4)": EXPANDED.format("[4]"),
    "x = torch.zeros(2, 3)\nx[0:2] = torch.ones(1, 4)": EXPANDED.format("[4]"),
    "x = torch.zeros(2, 3)\nx[0:2] = torch.ones(2, 4)": EXPANDED.format("[2, 4]"),
    "x = torch.zeros(3)\nx[0] = torch.ones(1, 2)": "expand(torch.FloatTensor{[2]}, size=[]): the "
    "number of sizes provided (0) must be greater or equal to the number of dimensions in the "
    "tensor (1)",
    "x = torch.zeros(1, 3); v = torch.ones(1, 1, 3, requires_grad=True); x[...] = v\n"
    "x.sum().backward()\nprint(v.grad, x.grad_fn.name())":
    "tensor([[[1., 1., 1.]]]) torch::autograd::CopyBackwards",
    "x = torch.zeros(2, 3); v = torch.ones(1, 3, requires_grad=True); x[0:2] = v\n"
    "x.sum().backward()\nprint(v.grad)": "tensor([[2., 2., 2.]])",
    HOOKED.format("(None, gi[1] * 2)"): "None tensor([2., 2.])",
    HOOKED.format("(gi[0] * 3, None)"): "tensor([3., 3.]) None",
    FUNCTIONAL.format("jacobian(f, (1.0, x))"): GIVEN + "at index 0 has type <class 'float'>.",
    FUNCTIONAL.format("jacobian(f, (x, 1.0))"): GIVEN + "at index 1 has type <class 'float'>.",
    FUNCTIONAL.format(f"vjp(lambda a: (a, a), x, ({TWO}, {ONE}))"):
    "Entry 1 in v has invalid size: should be torch.Size([2]) but got torch.Size([3]).",
    FUNCTIONAL.format(f"vjp(lambda a: a, x, {ONE})"):
    "v has invalid size: should be torch.Size([2]) but got torch.Size([3]).",
    FUNCTIONAL.format(f"vjp(lambda a: (a, a, a), x, ({TWO}, {TWO}))"):
    "v is a tuple of invalid length: should be 3 but got 2.",
    FUNCTIONAL.format(f"vjp(lambda a: a, x, ({TWO}, {TWO}))"):
    "The given v should contain a single Tensor.",
    LBFGS.format(0): "[1.0, 1.0] 0",
    "print(torch.tensor([2**63, -1]))": "Overflow when unpacking long long",
    "print(torch.tensor([2**63 - 1, -1]))": "tensor([9223372036854775807,                  -1])",
    "print(torch.tensor([2**63, 1.5, -1]))": "tensor([ 9.2234e+18,  1.5000e+00, -1.0000e+00])",
    "print(torch.tensor([1e-4], dtype=torch.float64), torch.tensor([1e-4]))":
    "tensor([0.0001], dtype=torch.float64) tensor([1.0000e-04])",
    "f = lambda x: (x ** 3, x.long())\nx = torch.ones(2, dtype=torch.float64, requires_grad=True)\n"
    "print(torch.autograd.gradgradcheck(f, x))": "True",
}  # fmt: skip


@together(AS_PYTORCH)
def test_as_pytorch(program: str) -> None:
    *before, last = program.split("\n")
    caught = ["try:", f"    {last}", "except Exception as e:", "    print(e)"]
    report = run(Source("\n".join(["import torch", *before, *caught]), "p.py"))
    assert report.error is None and report.stdout == f"{AS_PYTORCH[program]}\n"


def test_lists_of_as_many_numbers_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literals, "MAX_NUMBERS", 6)
    row: list[object] = [1, 2, 3]
    assert literals.array_of([[row], [row]]).tolist() == [[[1, 2, 3]], [[1, 2, 3]]]
    for values in ([[row], [row], [row]], [[[*row, *row, 7]]]):
        with pytest.raises(AutodiffError, match="numbers"):
            literals.array_of(values)
