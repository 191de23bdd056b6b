"""Fused, tiled, threaded runs and runs in memory that stays give what node by node gives, on the
samples of the op table: results, gradients and second derivatives."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
import pytest

import autodiff_cli.engine.evaluate as engine
from autodiff_cli.autograd import reverse, rules
from autodiff_cli.engine.fused import tiles
from autodiff_cli.engine.fused.tiles import Tiled
from autodiff_cli.engine.fused.tracing import Unknown, trace
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant
from autodiff_cli.graph.registry import F

from ..regimes import REGIMES, close, fused, plain, same
from ..said import compare
from ..table import Case, apply, arrays_of, cases, each_op, listed, nodes_of, share, weights

SHARE = share(cases(), 12)
POINTWISE = [case for case in cases() if case.op.kind is engine.Kind.POINTWISE]


def weighted(case: Case, nodes: list[Node], which: str) -> Node | None:
    """One number of all nodes that gradients reach."""
    total = None
    for i, node in enumerate(nodes):
        if node.requires_grad and node.dtype.kind == "f":
            factors = constant(weights(case, node.shape, f"{which}{i}").astype(node.dtype))
            term = F.sum(node * factors)
            total = term if total is None else total + term
    return total


def targets_of(case: Case) -> list[Node]:
    """Results, gradients and, where the sample has them, second derivatives."""
    nodes = nodes_of(case, arrays_of(case))
    leaves = [node for node in nodes.values() if node.requires_grad]
    found = list(apply(case, nodes))
    level = found
    for order in range(1, case.sample.order + 1):
        total = weighted(case, level, "wv"[order - 1])
        if total is None:
            break
        level = [
            g
            for g in reverse.gradients(
                [(total, rules.ones_like(total))],
                leaves,
                create_graph=order < case.sample.order,
                retain_graph=True,
            )
            if g is not None
        ]
        found += level
    return found


@each_op(SHARE)
def test_as_node_by_node(case: Case) -> None:
    wanted = targets_of(case)
    plain(wanted, last=True)
    for name, regime in REGIMES.items():
        with regime():
            found = targets_of(case)
            engine.evaluate(found, last=True)
        for one, other in zip(found, wanted, strict=True):
            if name == "fused":
                close(one.value, other.value)
            else:
                same(one.value, other.value)


def test_pointwise_results_are_equal_to_the_bit(request: pytest.FixtureRequest) -> None:
    """In tiles, but for those that are recorded: one number, or what is looked up."""
    apart = []
    for case in POINTWISE:
        wanted = apply(case, nodes_of(case, arrays_of(case)))
        plain(list(wanted))
        with fused(16):
            found = apply(case, nodes_of(case, arrays_of(case)))
            engine.evaluate(list(found))
            if not any(s.tiles > 1 for p in engine.PLANS.values() for s in tiled(p)):
                apart.append(("not in tiles", case))
        for one, other in zip(found, wanted, strict=True):
            same(one.value, other.value)
    compare(request, listed(apart))


def tiled(plan: engine.Plan) -> list[Tiled]:
    return [step for step in plan.steps if isinstance(step, Tiled)]


def everything(x: np.ndarray, w: np.ndarray) -> list[Node]:
    """Pointwise nodes, reductions of rows, of columns and of all, and a reader of each."""
    a = F.exp(F.mul(constant(x), constant(w)))
    rows = F.sum(a, (1,), True)
    normal = F.div(a, rows)
    columns = F.amax(normal, (0,))
    total = F.sum(normal)
    return [a, rows, normal, columns, total, F.mul(columns, total), F.gt(a, rows)]


ROW = 8  # elements
TILE = 16  # rows


@pytest.mark.parametrize("rows", [2, 3, 7, TILE - 1, TILE, TILE + 1, 2 * TILE, 5 * TILE - 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_borders_of_tiles(rows: int, dtype: str) -> None:
    generator = np.random.default_rng(rows)
    x = generator.uniform(-1, 1, (rows, ROW)).astype(dtype)
    w = generator.uniform(-1, 1, ROW).astype(dtype)
    wanted = everything(x, w)
    plain(wanted)
    with fused(TILE * ROW * x.itemsize):
        found = everything(x, w)
        engine.evaluate(found)
        (plan,) = engine.PLANS.values()
        first = tiled(plan)[0]
        assert (first.tile, first.tiles) == (min(rows, TILE), -(-rows // TILE))
    for one, other in zip(found, wanted, strict=True):
        close(one.value, other.value, 4 * rows)


@pytest.mark.parametrize("n", [1, 7, 16_383, 16_384, 32_767, 32_768, 32_769, 1_000_000])
def test_borders_of_regimes(n: int) -> None:
    """With the settings everybody has: one number, small, a tile, more than one, very many."""
    x = np.random.default_rng(n).uniform(-2, 2, n)
    node = constant(x)
    square = F.mul(node, node)
    found = [square, F.sum(square), F.amax(F.tanh(node)), F.sin(square)]
    engine.evaluate(found)
    same(found[0].value, x * x)
    np.testing.assert_allclose(found[1].value, np.sum(x * x), rtol=1e-13)
    same(found[2].value, np.asarray(np.tanh(x).max()))
    np.testing.assert_allclose(found[3].value, np.sin(x * x), rtol=1e-14)
    assert tiles.TILE_BYTES == 32_768 * 8


def test_forward_and_backward_are_one_group() -> None:
    from autodiff_cli.autograd.gradients import grad
    from autodiff_cli.autograd.tensor import Tensor, new_leaf

    x = new_leaf(np.linspace(-1, 1, 40_000).reshape(200, 200), True)
    loss = Tensor(F.sum(F.square(F.sub(1.0, F.sigmoid(x.node)))))
    (slope,) = grad([loss], [x], [None])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "PLANS", {})
        engine.evaluate([loss.node, slope.node])
        (plan,) = engine.PLANS.values()
    assert len(plan.steps) == 1
    s = 1 / (1 + np.exp(-x.numpy()))
    np.testing.assert_allclose(slope.numpy(), -2 * (1 - s) * s * (1 - s), rtol=1e-13)
    np.testing.assert_allclose(loss.numpy(), np.sum((1 - s) ** 2), rtol=1e-13)


@pytest.mark.parametrize("size", [100_000, 3_000_000])
def test_long_sums_keep_pairwise_accuracy(size: int) -> None:
    x = np.full(size, 0.1, np.float32)
    total = F.sum(F.mul(constant(x), 1.5))
    engine.evaluate([total])
    exact = float(np.float32(np.float32(0.1) * np.float32(1.5))) * size
    assert abs(float(total.value) - exact) <= 8e-7 * exact


@pytest.mark.parametrize("dim", [1, 2])
def test_what_is_taken_from_each_slice(dim: int) -> None:
    """Tiles are cut along all dims before the one that is reduced."""
    generator = np.random.default_rng(dim)
    x, index = generator.uniform(-1, 1, (6, 7, 9)), generator.integers(0, 6, (6, 7, 9))

    def results() -> list[Node]:
        scores = F.exp(constant(x))
        shares = F.div(scores, F.sum(scores, (dim,), True))
        chosen = F.gather(shares, dim, constant(index))
        return [chosen, F.sum(F.mul(chosen, scores), (dim,))]

    wanted = results()
    plain(wanted)
    with fused(16):
        found = results()
        engine.evaluate(found)
        rows = [step.rows for p in engine.PLANS.values() for step in tiled(p)]
    assert rows == [6 * 7 ** (dim - 1)]
    for one, other in zip(found, wanted, strict=True):
        close(one.value, other.value)


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_scratch_memory_is_bounded(rows: int) -> None:
    """Many values that live at the same time have tiles of fewer rows."""
    x = np.random.default_rng(0).uniform(-1, 1, (40, ROW))

    def results() -> list[Node]:
        first = F.sin(constant(x))
        many = [F.exp(F.mul(first, 1.0 + i)) for i in range(6)]
        total = F.add(many[0], many[5])
        for one, other in pairwise(many):
            total = F.add(F.mul(total, one), other)
        return [total]

    wanted = results()
    plain(wanted)
    with fused(TILE * ROW * x.itemsize) as patch:
        patch.setattr(tiles, "SCRATCH_BYTES", 6 * rows * ROW * x.itemsize)
        found = results()
        engine.evaluate(found)
        (plan,) = engine.PLANS.values()
        (step,) = tiled(plan)
    held = sum(prod(rest) * dtype.itemsize for rest, rows, dtype in step.buffers if rows)
    assert len(step.buffers) >= 6 and step.tile == 6 * rows * ROW * x.itemsize // held
    close(found[0].value, wanted[0].value)


def test_kernels_that_cannot_be_traced() -> None:
    unknown, dtype = Unknown(np.dtype(float)), np.dtype(float)
    assert trace(lambda x: x + 1, [unknown], dtype) is not None
    for kernel in (
        lambda x: np.ones(3), lambda x: x > 0, lambda x: x[0], lambda x: 1.0,
        lambda x: np.add.outer(x, x), lambda x: np.add(x, x, dtype=np.float32) * 1.0,
        lambda x: np.matmul(x, x), lambda x: np.modf(x)[0],
    ):  # fmt: skip
        assert trace(kernel, [unknown], dtype) is None
