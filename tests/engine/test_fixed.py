"""Plans of small steps in memory that stays: what goes in is copied or bound, what comes out is the
caller's own, and what is kept is bounded."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import autodiff_cli.engine.evaluate as engine
from autodiff_cli.engine.plan import (
    plan_memory_budget,
    resident_plan,
    rotating_buffers,
    schedule,
)
from autodiff_cli.engine.plan.schedule import Plan, planned
from autodiff_cli.errors import AutodiffError, fail
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import argument, constant
from autodiff_cli.graph.registry import F
from autodiff_cli.ops import load_all

from ..regimes import same

load_all()


def recording(function: Any, *arrays: np.ndarray) -> tuple[Plan, list[Node]]:
    """A plan of what a function of nodes gives, run until it has memory of its own."""
    arguments = [argument(array) for array in arrays]
    targets = function(*arguments)
    order, _ = engine.plan(targets)
    made = planned(order, arguments, targets)
    for _ in range(schedule.FIXED_AFTER):
        made.run(list(arrays), own=True)
    return made, targets


def arrays(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape)


def mixed(x: Node, w: Node) -> list[Node]:
    """Views, products, ufuncs, a kernel of several, and readers of a value at several times."""
    a = F.matmul(F.transpose(x, 0, 1), w)
    b = F.sigmoid(F.add(F.reshape(a, (-1,)), 0.5))
    c = F.reshape(b, (4, 3))
    return [F.softmax(c, 1), c, F.sum(F.mul(a, F.flip(c, (0,)))), F.transpose(a, 0, 1)]


def by_numpy(x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    a = x.T @ w
    c = 1 / (1 + np.exp(-(a + 0.5)))
    e = np.exp(c - c.max(1, keepdims=True))
    return [e / e.sum(1, keepdims=True), c, np.asarray((a * c[::-1]).sum()), a.T]


def test_other_arrays_and_layouts() -> None:
    x, w = arrays(5, 4), arrays(5, 3)
    made, _ = recording(mixed, x, w)
    assert made.fixed is not None
    layouts = [x, np.asfortranarray(x), x[::-1], np.repeat(x, 2, 1)[:, ::2], x * 3]
    layouts.append(np.broadcast_to(x[:1], x.shape))
    for given in layouts:
        for found, wanted in zip(made.run([given, w], own=True), by_numpy(given, w), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)


def test_results_are_the_callers_own() -> None:
    x, w = arrays(5, 4), arrays(5, 3)
    made, _ = recording(mixed, x, w)
    held = made.run([x, w], own=True)
    plan_memory_budget = [value.copy() for value in held]
    for value in made.run([x * 2, w], own=True):
        value[...] = np.nan
    for value, wanted in zip(held, plan_memory_budget, strict=True):
        same(value, wanted)
        value[...] = np.nan
    for value, wanted in zip(made.run([x, w], own=True), plan_memory_budget, strict=True):
        same(value, wanted)
    same(x, arrays(5, 4))


def test_targets_that_are_views_of_one_another_and_of_inputs() -> None:
    x = arrays(3, 4)
    made, _ = recording(lambda a: [F.transpose(a, 0, 1), F.select(a, 0, 1), F.neg(a)], x)
    first = made.run([x], own=True)
    for value in first:
        value += 100
    same(x, arrays(3, 4))
    for value, wanted in zip(made.run([x], own=True), (x.T, x[1], -x), strict=True):
        same(value, wanted)


def test_big_inputs_are_bound_and_others_taken() -> None:
    big = np.ones((resident_plan.COPIED // 8 // 4 + 1, 4))
    w = np.arange(4.0)
    made, _ = recording(lambda x, y: [F.sum(F.matmul(x, y))], big, w)
    assert made.fixed is not None
    assert [number for number, _ in made.fixed.bound] == [0]
    same(made.run([big, w], own=True)[0], np.asarray(6.0 * len(big)))
    big *= 2  # the caller's array, changed by the caller
    same(made.run([big, w], own=True)[0], np.asarray(12.0 * len(big)))
    for other in (big * 2, big.copy(order="F"), np.broadcast_to(big[:1], big.shape)):
        for _ in range(3):
            same(made.run([other, w], own=True)[0], (other @ w).sum())


def test_what_is_copied_and_what_is_bound() -> None:
    n = resident_plan.COPIED // 8
    for size, bound in ((n, []), (n + 1, [0])):
        made, _ = recording(lambda x: [F.sum(F.cumsum(x, 0))], np.ones(size))
        assert made.fixed is not None
        assert [number for number, _ in made.fixed.bound] == bound


def test_all_that_a_plan_may_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = recording(mixed, arrays(5, 4), arrays(5, 3))
    assert made.fixed is not None
    size = made.fixed.bytes
    for limit, fits in ((size, True), (size - 1, False)):
        monkeypatch.setattr(resident_plan, "MOST_BYTES", limit)
        assert (recording(mixed, arrays(5, 4), arrays(5, 3))[0].fixed is not None) == fits


def test_all_that_a_plan_may_need() -> None:
    made, _ = recording(mixed, arrays(5, 4), arrays(5, 3))
    peak, _ = made.most_bytes()
    made.check(peak)
    with pytest.raises(AutodiffError, match="memory"):
        made.check(peak - 1)


def test_all_that_plans_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_memory_budget, "HOLDING", {})
    monkeypatch.setattr(plan_memory_budget, "MOST_HELD", 100)

    class Holder:
        holds = True

        def let_go(self) -> None:
            self.holds = False

    first, second, third = (Holder() for _ in range(3))
    for holder, size in ((first, 60), (second, 40)):
        plan_memory_budget.held(holder, size)
    assert first.holds and second.holds
    plan_memory_budget.held(third, 1)
    assert not first.holds and second.holds and third.holds


LAID = np.arange(64.0)
LAYOUTS = [
    LAID, LAID[::-1], LAID.reshape(8, 8).T, LAID.reshape(8, 8)[::-1, ::2],
    LAID.reshape(16, 4)[:, 3], LAID[:8][::7], LAID[::4],
    LAID.reshape(4, 4, 4)[:, ::-1].transpose(2, 0, 1),
]  # fmt: skip


@pytest.mark.parametrize("like", LAYOUTS)
def test_memory_that_lies_as_other_does(like: np.ndarray) -> None:
    found = resident_plan.laid_out(like)
    assert (found.shape, found.strides, found.dtype) == (like.shape, like.strides, like.dtype)
    found[...] = like
    same(found, like)
    base = found if found.base is None else found.base
    assert np.lib.array_utils.byte_bounds(found) == np.lib.array_utils.byte_bounds(base)


@pytest.mark.parametrize(
    "like", [LAID.reshape(8, 8)[:, 3], LAID[:9][::8], LAID[:16][::8], np.broadcast_to(1.0, (3, 3))]
)
def test_memory_that_is_far_apart_or_shared(like: np.ndarray) -> None:
    with pytest.raises(resident_plan.Unfit):
        resident_plan.laid_out(like)


def test_all_that_goes_beside_what_goes_round() -> None:
    made, _ = recording(lambda x, y: [F.add(x, F.sum(y))], np.ones(3), np.ones(4))
    n = rotating_buffers.MOST_COPIED // 8
    for size, fits in ((n, True), (n + 1, False)):
        rest = [np.ones(size)]
        if fits:
            rotating_buffers.Turns(made._fixed, [np.ones(3)], rest)
            continue
        with pytest.raises(resident_plan.Unfit):
            rotating_buffers.Turns(made._fixed, [np.ones(3)], rest)


def test_what_a_plan_keeps_is_bounded() -> None:
    huge = np.ones((resident_plan.MOST_BYTES // 8 // 4 + 1, 4))
    for given in (huge, huge[:20]):  # the second shows a little of much memory
        made, _ = recording(lambda x: [F.matmul(x, constant(np.ones(4)))], given)
        for _ in range(4):
            same(made.run([given], own=True)[0], given.sum(1))
        bound = [] if made.fixed is None else made.fixed.bound
        assert not bound


def test_what_all_plans_keep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_memory_budget, "HOLDING", {})
    monkeypatch.setattr(plan_memory_budget, "MOST_HELD", 40_000)
    x = np.ones(1000)
    made = [recording(lambda a: [F.cumsum(F.mul(a, 1.5), 0)], x[: 1000 - at])[0] for at in range(8)]
    assert sum(plan_memory_budget.HOLDING.values()) <= 40_000
    holding = [one for one in made if one.fixed is not None]
    assert made[-1] in holding
    assert len(holding) < len(made)
    for at, one in enumerate(made * 3):
        same(one.run([x[: 1000 - at % 8]])[0], np.cumsum(x[: 1000 - at % 8] * 1.5))
        assert sum(plan_memory_budget.HOLDING.values()) <= 40_000
    del made, holding, one
    gc.collect()
    last, _ = recording(lambda a: [F.cumsum(F.mul(a, 1.5), 0)], x)
    assert last.fixed is not None
    assert len(plan_memory_budget.HOLDING) == 1


def test_a_failure_leaves_the_memory_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(x: np.ndarray) -> np.ndarray:
        if (x > 8).any():
            raise fail("E503", "too much", help="take less")
        return x + 1

    monkeypatch.setattr(F.tanh, "kernel", failing)
    made, _ = recording(lambda x: [F.mul(F.tanh(F.add(x, x)), 1.5)], np.eye(3))
    assert made.fixed is not None
    for given in (np.eye(3), np.eye(3) * 5, np.eye(3) * 2, np.eye(3) * 6):
        if given[0, 0] > 4:
            with pytest.raises(AutodiffError, match="too much"):
                made.run([given], own=True)
        else:
            same(made.run([given], own=True)[0], (given + given + 1) * 1.5)


def test_empty_and_single_numbers() -> None:
    for shape in ((0,), (0, 3), (3, 0), (), (1,), (1, 1)):
        x = np.ones(shape)
        made, _ = recording(lambda a: [F.sum(F.exp(a)), F.mul(F.reshape(a, (-1, 1)), 2.0)], x)
        for given in (x, x * 2):
            total, doubled = made.run([given], own=True)
            same(total, np.asarray(np.exp(given).sum()))
            same(doubled, given.reshape(given.size, 1) * 2)
