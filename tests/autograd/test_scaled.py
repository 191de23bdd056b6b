"""Jacobians from scaled batches are those from batches: a sample of every third op between
others."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.autograd.transform_levels import jacobian_of
from autodiff_cli.autograd.transforms import jacobians
from autodiff_cli.engine.evaluate import plan
from autodiff_cli.engine.plan.schedule import planned
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import argument, constant, leaf, value_of
from autodiff_cli.graph.registry import F
from tests.table import Case, apply, arrays_of, cases, each_op, nodes_of, share, variables

SMALL = 48  # elements of results and variables
TOLERANCE = {2: 1e-2, 4: 1e-4, 8: 1e-9}  # by the bytes of a number


def among_others(out: Node) -> Node:
    """A result that elementwise ops, sums and a product of matrices follow."""
    flat = F.reshape(out, (out.numel,))
    wave = np.sin(np.arange(3.0 * out.numel)).reshape(3, -1).astype(out.dtype)
    bent = F.mul(F.sub(F.tanh(flat), F.mul(flat, constant(wave[0]))), constant(wave[1]))
    return F.mul(F.matmul(constant(wave), bent), constant(wave[:, 0]))


def small(case: Case) -> bool:
    """Whether a sample has variables, and few elements of them; CTC has no second derivative."""
    sizes = [array.size for place, array in arrays_of(case).items() if place in variables(case)]
    return bool(sizes) and sum(sizes) <= SMALL and case.op.name != "nn.functional.ctc_loss"


@each_op(share((c for c in cases() if not c.number and small(c)), 3))
def test_jacobians_are_equal(case: Case) -> None:
    nodes = nodes_of(case, arrays_of(case))
    inputs = [nodes[place] for place in variables(case)]
    results = [n for n in apply(case, nodes) if n.requires_grad and 0 < n.numel <= SMALL]
    # Where there is no slope the rules have PyTorch's convention, their derivatives need not.
    modes = ["reverse", "forward"] if case.sample.order else ["reverse"]
    for out in map(among_others, results):
        (wanted,) = jacobian_of([out], inputs)
        tolerance = TOLERANCE[min(x.dtype.itemsize for x in (out, *inputs))]
        for mode in modes:
            found = jacobians.jacobian(out, inputs, mode)
            for g, h, x in zip(found, wanted, inputs, strict=True):
                assert g.shape == (*out.shape, *x.shape)
                dense = np.zeros(g.shape) if h is None else value_of(h)
                # Zeros times an infinite slope: elements that do not depend are zero here.
                dense = np.where(np.isnan(dense) & (value_of(g) == 0), 0, dense)
                size = max(1.0, float(np.abs(dense[np.isfinite(dense)]).max(initial=0.0)))
                np.testing.assert_allclose(value_of(g), dense, tolerance, tolerance * size)


def variable(*shape: int) -> Node:
    array = np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)
    return leaf(argument(array), AccumulateGrad())


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("own", [(3,), (2, 3), (2, 2, 3)])
@pytest.mark.parametrize("other", [(3,), (3, 3), (2, 3, 3)])
@pytest.mark.parametrize("first", [True, False])
def test_products_of_all_ranks(
    own: tuple[int, ...], other: tuple[int, ...], first: bool, mode: str
) -> None:
    x, w = variable(*own), constant(np.sin(np.arange(1.0 + np.prod(other))[1:]).reshape(other))
    if not first and len(own) > 1:
        x = F.transpose(x, -1, -2)
    bent = F.sin(x)
    out = F.exp(F.matmul(bent, w) if first else F.matmul(w, bent))
    ((wanted,),) = jacobian_of([out], [x])
    assert wanted is not None
    (found,) = jacobians.jacobian(out, [x], mode)
    np.testing.assert_allclose(value_of(found), value_of(wanted), 1e-10, 1e-12)


def large_steps(x: Node, found: list[Node]) -> list[str]:
    """What a plan computes of more elements than an example has, changes of shape left out."""
    steps = planned(plan(found)[0], [x.inputs[0]], found).steps
    return [
        s.name for s in steps if np.prod(s.shape) > SMALL and not s.moves and s.name != "permute"
    ]


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_rows_of_a_product_are_scaled_rows_of_the_matrix(mode: str) -> None:
    x, w = variable(8), constant(np.ones((8, 8)))
    found = jacobians.jacobian(F.exp(F.matmul(w, F.sin(x))), [x], mode)
    assert large_steps(x, found) == ["mul", "mul"]


def test_blocks_of_a_product_with_a_matrix_are_not_multiplied_out() -> None:
    x, w = variable(4, 3), constant(np.ones((3, 5)))
    found = jacobians.jacobian(F.matmul(x, w), [x], "reverse")
    assert large_steps(x, found) == ["mul", "diag_embed"]


def test_one_base_for_what_is_added_up() -> None:
    x, w = variable(8), constant(np.ones((8, 8)))
    h = F.matmul(w, x)
    y = F.sub(F.add(F.mul(h, h), F.where(F.gt(h, 0), h, F.neg(h))), F.div(h, 3.0))
    found = jacobians.jacobian(F.matmul(w, y), [x], "reverse")
    assert large_steps(x, found) == ["mul", "matmul"]
