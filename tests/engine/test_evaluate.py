"""The engine on long, wide and oversized graphs, and what it frees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_cli.ops  # noqa: F401  # declares the table
from autodiff_cli.autograd.gradients import backward
from autodiff_cli.autograd.tensor import Tensor, new_leaf
from autodiff_cli.engine import evaluate as engine
from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import cast, constant
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE, own_state
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..together import together


def test_forty_thousand_chained_ops() -> None:
    program = "x = 1.0\ny = x\nfor i in range(20000):\n    y = y * 1.00001 + 0.0\nloss = y\n"
    report = run(Source(program, "chain.expr"))
    assert report.error is None, str(report.error)
    expected = 1.00001**20000
    np.testing.assert_allclose(report.tensors["loss"].value, expected, rtol=1e-9)
    np.testing.assert_allclose(report.tensors["x"].grad, expected, rtol=1e-9)


def test_a_chain_of_nodes_is_no_recursion() -> None:
    leaf = new_leaf(np.ones(()), True)
    node = leaf.node
    for _ in range(40_000):
        node = F.neg(node)
    backward([Tensor(node)], [None])
    assert leaf.grad is not None
    assert leaf.grad.numpy() == 1.0
    evaluate([node])
    assert node.value == 1.0


def test_an_expression_of_many_terms() -> None:
    terms = " + ".join(["x"] * 20_000)
    report = run(Source(f"x = 2\nloss = {terms}\n", "wide.expr"))
    assert report.error is None, str(report.error)
    assert report.tensors["x"].grad == 20_000


def test_fan_out_is_computed_once() -> None:
    """2**60 paths lead through this graph."""
    report = run(Source("x = 1\ny = x\nfor i in range(60):\n    y = y + y\nloss = y\n", "fan.expr"))
    assert report.error is None, str(report.error)
    assert report.tensors["x"].grad == 2.0**60


def test_results_asked_for_one_by_one_are_computed_twice_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = F.unbind(constant(np.arange(12.0).reshape(6, 2)), 0)
    unbind = rows[0].args[0].op
    cut, calls = unbind.kernel, []
    monkeypatch.setattr(unbind, "kernel", lambda *args: (calls.append(args), cut(*args))[1])
    for at, row in enumerate(rows):
        evaluate([row])
        np.testing.assert_array_equal(row.value, [2.0 * at, 2.0 * at + 1.0])
    assert len(calls) == 2


def test_values_in_between_are_dropped() -> None:
    first = F.mul(constant(np.ones(1000)), 2.0)
    second = F.add(first, 1.0)
    evaluate([second])
    assert second.value is not None
    assert first.value is None


SIDE = 64  # such a square of float32 is as large as what is looked at
READERS: dict[str, tuple[Any, bool]] = {
    "another summand": (lambda t, w, c: F.add(t, w), False),
    "a number": (lambda t, w, c: F.mul(t, 2.0), False),
    "a constant factor": (lambda t, w, c: F.mul(t, c), False),
    "a factor": (lambda t, w, c: F.mul(t, w), True),
    "a divisor": (lambda t, w, c: F.div(w, t), True),
    "a product with a constant": (lambda t, w, c: F.matmul(t, c), False),
    "a product": (lambda t, w, c: F.matmul(w, t), True),
    "its result is read": (lambda t, w, c: F.exp(t), False),
    "itself is read": (lambda t, w, c: F.sin(t), True),
    "sums": (lambda t, w, c: F.sum(t, [0]), False),
    "products": (lambda t, w, c: F.prod(t, 0), True),
    "another dtype": (lambda t, w, c: cast(t, np.dtype("float64")), False),
    "a view": (lambda t, w, c: F.t(t), False),
    "a composite": (lambda t, w, c: F.std(t), True),
    "its factors are read": (lambda t, w, c: F.lu(t)[1], False),
    "its rule asks for a value": (
        lambda t, w, c: F.embedding_rows(t, F.argmax(c, 0), -1, True, False),
        True,
    ),
    "nobody needs a gradient": (lambda t, w, c: F.mul(F.detach(t), c), False),
    "several, of which one reads": (lambda t, w, c: F.add(F.sin(t), F.neg(t)), True),
}


@together([(*reader, side) for reader in READERS.values() for side in (SIDE, SIDE - 1)])
def test_large_values_stay_where_a_rule_reads_them(reader: Any, reads: bool, side: int) -> None:
    numbers = np.random.default_rng(0).normal(size=(3, side, side)).astype(np.float32)
    leaf, other = (new_leaf(part, True).node for part in numbers[:2])
    value = F.add(leaf, 1.0)
    result = F.sum(reader(value, other, constant(numbers[2])))
    evaluate([result])
    assert (value.value is not None) == (reads or side < SIDE)
    evaluate([value])  # again, where it went


@together([
        ("x = 1\nwhile True:\n    x = x + 1\n", Options(max_steps=1000), "E506"),
        ("def f(x):\n    return f(x)\nf(1)\n", Options(max_depth=50), "E507"),
        ("def f(x):\n    return f(x)\nf(1)\n", Options(max_depth=100_000, max_steps=10**9), "E507"),
        ("x = ones(1000, 1000)\n", Options(max_memory=1 << 20), "E505"),
        ("x = ones(1000)\nloss = sum(x[:, None] * x)\n", Options(max_memory=1 << 20), "E505"),
        ("x = 2\nloss = x * sum(zeros(10**6, 10**6))\n", Options(), "E505"),
        ("import torch\nx = [1] * 10**9\n", Options(), "E505"),
        ("x = 'a' * 10**10\n", Options(), "E505"),
        ("n = 9**9**9\n", Options(), "E505"),
        ("for i in range(10**12):\n    pass\n", Options(max_steps=1000), "E506"),
        ("x = ones(3).expand(10**6, 3)\ny = x.repeat(10**6, 1)\n", Options(), "E505"),
    ])  # fmt: skip
def test_limits(program: str, options: Options, code: str) -> None:
    report = run(Source(program, "limits.expr"), options)
    assert report.error is not None
    assert report.error.code == code, str(report.error)
    assert report.error.span is not None
    assert report.error.diagnostic.helps


# What is computed of 1,000 numbers, and how many of them are held at a time.
HELD: list[tuple[Callable[[Node], list[Node]], int]] = [
    (lambda x: [F.exp(x)], 1000),
    (lambda x: [y := F.exp(x), F.sin(y)], 2000),
    (lambda x: [F.sin(F.exp(F.sin(x)))], 2000),
    (lambda x: [F.flip(x, (0,))], 1000),
    (lambda x: [F.cat([x, F.sin(x)], 0)], 3000),
    (lambda x: [y := F.exp(x), F.unsqueeze(y, 0), F.flip(y, (0,))], 1000),
    (lambda x: [F.unsqueeze(x, 0), z := F.t(F.expand(x, (2, 1000))), F.reshape(z, (2000,))], 3000),
]


@pytest.mark.parametrize(("make", "held"), HELD)
def test_a_limit_may_be_reached(make: Callable[[Node], list[Node]], held: int) -> None:
    for limit, fits in ((8 * held, True), (8 * held - 1, False)):
        with own_state():
            targets = make(constant(np.arange(1000.0)))
            order, _ = engine.plan(targets)
            STATE.max_bytes = limit
            if fits:
                engine.run(order, targets, True)
                continue
            with pytest.raises(AutodiffError) as error:
                engine.run(order, targets, True)
            assert error.value.code == "E505"


WAYS = ["run_few", "run", "_run_numbers", "run_planned"]


def way(shape: tuple[int, ...], last: bool, **limits: int) -> str:
    """How six nodes are evaluated."""
    found: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(engine, name, value)
        for name in WAYS:
            patch.setattr(engine, name, lambda *_, name=name: found.append(name) or True)
        x = constant(np.ones(shape))
        for _ in range(6):
            x = F.neg(x)
        evaluate([x], last)
    return found[0]


def test_ways_of_small_evaluations() -> None:
    assert way((2,), True, MOST=6) == "run_few"
    assert way((2,), True, MOST=5) == "run_few"
    assert way((2,), True, FEW_BYTES=12 * 8) == "run_few"
    assert way((2,), True, FEW_BYTES=12 * 8 - 1) == "run"
    assert way((), False, MOST=6) == "run_planned"
    assert way((), False, MOST=5) == "_run_numbers"
    assert way((2,), False, MOST=5) == "run"
    assert way((2,), False, FEWEST=6) == "run_planned"
    assert way((2,), False, FEWEST=7) == "run"


def test_an_error_while_evaluating_has_a_place() -> None:
    report = run(Source("A = zeros(2, 2)\nB = inv(A)\nprint(B)\n", "late.expr"))
    assert report.error is not None
    assert (report.error.code, report.error.span is not None) == ("E503", True)


def test_evaluating_nothing() -> None:
    evaluate([])
    node = constant(np.ones(2))
    evaluate([node, node])
    with pytest.raises(AutodiffError):
        backward([Tensor(node)], [None])


@pytest.mark.parametrize("last", [False, True])
def test_many_single_numbers_of_all_kinds(last: bool) -> None:
    """Python's own numbers where there are thousands of nodes of one number each."""
    x, w = constant(np.array(1.25)), constant(np.array(0.75))
    found, value = [], 1.25
    for i in range(900):
        x = F.add(F.mul(x, 1.001), w)
        x = F.clamp(F.maximum(F.sub(x, w), F.sin(x)), 0.1, 2.0)
        x = F.softplus(x) if i % 100 == 0 else F.square(F.sqrt(F.sum(F.neg(F.neg(x)))))
        step = value * 1.001 + 0.75
        value = min(max(max(step - 0.75, np.sin(step)), 0.1), 2.0)
        value = np.log1p(np.exp(value)) if i % 100 == 0 else value
        found.append((x, value))
    evaluate([node for node, _ in found[::100]] + [x], last=last)
    for node, wanted in [*found[::100], found[-1]]:
        assert type(node.value) is np.ndarray
        np.testing.assert_allclose(node.value, wanted, rtol=1e-12)
