"""Gradients of matrices used in many places: terms that are added some at a time give what adding
them one after the other gives, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autodiff_cli.engine.evaluate as engine
from autodiff_cli.engine import outer_sums
from autodiff_cli.engine.plan.schedule import planned
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import argument
from autodiff_cli.graph.registry import F
from autodiff_cli.ops import load_all

from ..regimes import plain, same

load_all()


def sums(
    vectors: list[tuple[Node, Node]], start: Node | None, turned: set[int], shown: set[int]
) -> list[Node]:
    """The sum of outer products, the `shown` sums on the way first."""
    total = start
    found: list[Node] = []
    for number, (a, b) in enumerate(vectors):
        column = F.reshape(a, (-1, 1))
        row = F.reshape(b, (1, -1)) if number % 3 else b
        product = F.mul(row, column) if number in turned else F.mul(column, row)
        if total is None:
            total = product
        else:
            total = F.add(product, total) if number in turned else F.add(total, product)
        if number in shown:
            found.append(total if number % 2 else F.neg(total))
    assert total is not None
    return [*found, total, F.sum(total)]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 80),
    st.sampled_from(["f8", "f4"]),
    st.booleans(),
    st.sets(st.integers(0, 79)),
    st.sets(st.integers(0, 79), max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_as_one_after_the_other(
    height: int,
    width: int,
    count: int,
    dtype: str,
    started: bool,
    turned: set[int],
    shown: set[int],
    seed: int,
) -> None:
    random = np.random.default_rng(seed)
    arrays = [random.standard_normal(n).astype(dtype) for n in [height, width] * count]
    start = random.standard_normal((height, width)).astype(dtype)
    arguments = [argument(array) for array in [*arrays, start]]
    pairs = list(zip(arguments[:-1:2], arguments[1:-1:2], strict=True))
    targets = sums(pairs, arguments[-1] if started else None, turned, shown)
    order, _ = engine.plan(targets)
    recording = planned(order, arguments, targets)
    plain(targets)
    for _ in range(3):
        for found, node in zip(recording.run([*arrays, start], own=True), targets, strict=True):
            same(found, node.value)


@pytest.mark.parametrize(
    ("shown", "terms"),
    [
        (set(), [15, 24]),
        ({20}, [19, 1, 19]),
        ({21}, [20, 1, 18]),
        ({30, 31}, [5, 24, 1, 1, 8]),
    ],
)
def test_sums_that_are_read_on_the_way(shown: set[int], terms: list[int]) -> None:
    """Terms are added together up to so many, and to where somebody else reads the sum."""
    arguments = [argument(np.ones(5)) for _ in range(80)]
    pairs = list(zip(arguments[::2], arguments[1::2], strict=True))
    targets = sums(pairs, None, set(), shown)
    order, _ = engine.plan(targets)
    made = planned(order, arguments, targets)
    added = [step for step in made.steps if step.kernel.__name__ == "add"]
    assert [len(step.places) // 2 for step in added] == terms


@pytest.mark.parametrize("count", [3, outer_sums.FEWEST, outer_sums.FEWEST + 1, 40])
@pytest.mark.parametrize("short", [False, True])
def test_long_sums_have_fewer_steps(
    count: int, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [argument(np.ones(5)) for _ in range(2 * count)]
    pairs = list(zip(arguments[::2], arguments[1::2], strict=True))
    targets = sums(pairs, None, set(), set())
    order, _ = engine.plan(targets)
    monkeypatch.setattr(outer_sums, "LONG", 1000)
    steps = len(planned(order, arguments, targets).steps)
    monkeypatch.setattr(outer_sums, "LONG", steps + short)
    made = planned(order, arguments, targets)
    names = [step.kernel.__name__ for step in made.steps]
    merged = not short and count > outer_sums.FEWEST
    assert names.count("multiply") == (1 if merged else count)
