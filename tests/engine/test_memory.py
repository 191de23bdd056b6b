"""Memory: the pool, the measured peak of fused programs, the limit, and bounds on what is kept."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pytest

import autodiff_cli.engine.evaluate as engine
from autodiff_cli.autograd import reverse, rules
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.engine import memory
from autodiff_cli.engine.fused import tiles
from autodiff_cli.engine.plan import plan_memory_budget, resident_plan
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, leaf
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE
from autodiff_cli.ops import load_all
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..regimes import same

load_all()

FLOAT = np.dtype("float64")
BIG = (memory.POOLED_FROM // 8,)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> dict[Any, list[np.ndarray]]:
    """An empty pool."""
    monkeypatch.setattr(memory, "_held", 0)
    monkeypatch.setattr(memory, "_POOL", {})
    return memory._POOL


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_an_array_is_used_again_when_nobody_holds_it(pool: dict[Any, Any]) -> None:
    first = memory.allocate(BIG, FLOAT)
    at = address(first)
    assert address(memory.allocate(BIG, FLOAT)) != at
    view = first[1:]
    del first
    assert address(memory.allocate(BIG, FLOAT)) != at
    window = memoryview(view)
    part = view.reshape(-1)[::2]
    del view
    assert address(memory.allocate(BIG, FLOAT)) != at
    del window
    assert address(memory.allocate(BIG, FLOAT)) != at
    del part
    assert at in {address(a) for a in [memory.allocate(BIG, FLOAT)]} | {
        address(a) for a in pool[BIG, FLOAT]
    }
    ready = [memory.allocate(BIG, FLOAT) for _ in range(3)]
    assert at in {address(a) for a in ready}
    assert len({address(a) for a in ready}) == 3


def test_other_forms_and_small_ones(pool: dict[Any, Any]) -> None:
    first = memory.allocate(BIG, FLOAT)
    assert memory.allocate(BIG, np.dtype("int64")).dtype == "int64"
    assert memory.allocate((2, BIG[0]), FLOAT).shape == (2, *BIG)
    memory.allocate((3,), FLOAT)
    memory.allocate((0, 10**9), FLOAT)
    assert {key[0] for key in pool} == {BIG, (2, *BIG)}
    assert first.flags.owndata


def test_the_pool_is_bounded(pool: dict[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_BYTES", 8 * memory.POOLED_FROM)
    held = [memory.allocate(BIG, FLOAT) for _ in range(12)]
    assert len({address(a) for a in held}) == 12
    assert sum(a.nbytes for ready in pool.values() for a in ready) <= memory.MOST_BYTES
    del held
    for n in range(20):  # other forms push those out that nobody uses
        memory.allocate((BIG[0] + n,), FLOAT)
        assert sum(a.nbytes for ready in pool.values() for a in ready) <= memory.MOST_BYTES


def test_who_has_memory_for_itself() -> None:
    """A value stays the array it is where it has all of some memory that nothing else has."""
    n = memory.SMALL
    kept, whole, turned, large = np.ones(n), np.ones(n), np.ones((2, n)), np.ones(2 * n)
    foreign = np.frombuffer(bytearray(8 * n))
    values = [
        whole, turned.T, kept, kept.reshape(2, -1), large[:n], large[n:], foreign,
        foreign.reshape(2, -1), whole, whole.reshape(2, -1), np.ones(n - 1),
    ]  # fmt: skip
    found = memory.owned(values, [kept.reshape(2, -1), "no array"])
    assert [mine is value for mine, value in zip(found, values, strict=True)] == [True] * 2 + [
        False
    ] * 9
    for mine, value in zip(found, values, strict=True):
        same(mine, value)
    assert not any(np.shares_memory(a, b) for a, b in combinations([*found, kept], 2))


def test_results_held_keep_their_values() -> None:
    """Nothing that somebody holds, whole or in part, is written over by later runs."""
    n = memory.POOLED_FROM // 8
    held: list[tuple[np.ndarray, np.ndarray]] = []
    for k in range(4):
        x = np.full((n // 512, 512), float(k))
        node = F.exp(F.mul(constant(x), 0.5))
        other = F.mul(F.transpose(node, 0, 1), 2.0)
        engine.evaluate([node, other])
        for array in (node.value[1:3], other.value.T[5], node.value[0]):
            held.append((array, array.copy()))
        del node, other
    for found, wanted in held:
        same(found, wanted)


def neuron(x: Node, w: Node, b: Node) -> Node:
    return F.sum(F.square(F.sub(1.0, F.sigmoid(F.add(F.mul(w, x), b)))))


def layer_norm(x: Node, w: Node, b: Node) -> Node:
    normal = F.gelu(F.add(F.layer_norm(x, (x.shape[-1],), w, None), b))
    return F.cross_entropy(normal, constant(np.arange(x.shape[0]) % 1000))


def peak_over_outputs(program: Any, shapes: list[tuple[int, ...]]) -> tuple[int, int]:
    """Bytes at the peak beyond inputs and results, and bytes of the results."""
    STATE.reset()
    STATE.max_bytes = 1 << 34
    arrays = [np.linspace(-1, 1, prod(shape)).reshape(shape) for shape in shapes]
    leaves = [leaf(array, AccumulateGrad()) for array in arrays]
    tracemalloc.start()
    try:
        loss = program(*leaves)
        grads = reverse.gradients(
            [(loss, rules.ones_like(loss))], leaves, create_graph=False, retain_graph=True
        )
        targets = [loss, *[g for g in grads if g is not None]]
        engine.evaluate(targets, last=True)
        results = sum(node.value.nbytes for node in targets)
        return tracemalloc.get_traced_memory()[1] - results, results
    finally:
        tracemalloc.stop()


def neurons(n: int) -> list[tuple[int, ...]]:
    return [(n,), (n,), (n,)]


def rows(n: int) -> list[tuple[int, ...]]:
    return [(n, 1024), (1024,), (1024,)]


@pytest.mark.parametrize(
    ("program", "shapes", "n"), [(neuron, neurons, 2_000_000), (layer_norm, rows, 9766)]
)
def test_peak_above_inputs_and_results(
    program: Any, shapes: Any, n: int, pool: dict[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    peak_over_outputs(program, shapes(40))  # what is imported on first use counts otherwise
    monkeypatch.setattr(tiles.SCRATCH, "of", {})
    monkeypatch.setattr(engine, "PLANS", {})
    above, results = peak_over_outputs(program, shapes(n))
    assert above <= 0.15 * results


@pytest.mark.parametrize(
    "program",
    [
        "x = ones(1000, 1000)\ny = x * 2\nz = exp(y) + y.T\nprint(z.sum())\n",
        "x = ones(1000, 1)\ny = x * x.T\nz = (y + 1) * (y.T - 1)\nprint(sum(z @ z))\n",
        "x = ones(300000)\nys = [x * i for i in range(9)]\nprint(sum(cat(ys) * 2))\n",
    ],
)
def test_the_limit_refuses_what_is_planned(program: str) -> None:
    report = run(Source(program, "limit.expr"), Options(max_memory=18_000_000))
    assert report.error is not None
    assert report.error.code == "E505", str(report.error)
    assert report.error.span is not None
    report = run(Source(program, "limit.expr"), Options(max_memory=1 << 28))
    assert report.error is None, str(report.error)


def test_a_plan_that_was_made_is_refused_under_a_lower_limit() -> None:
    program = "x = ones(400000)\ny = exp(x * 1.25) * x\nprint(y.sum())\n"
    for limit, code in ((1 << 28, None), (4_000_000, "E505"), (1 << 28, None)):
        error = run(Source(program, "limit.expr"), Options(max_memory=limit)).error
        assert (error.code if error else None) == code


STRUCTURES = """
import autodiff_cli
from autodiff_cli.session import run
from autodiff_cli.source import Source

def size():
    with open("/proc/self/status") as text:
        return next(int(line.split()[1]) for line in text if line.startswith("VmRSS")) >> 10

def many(first, last):
    for k in range(first, last):
        n = 1000 + k
        wide = f"x = ones({n}, 17, requires_grad=True)\\ny = x\\n" + "y = tanh(y * x) * y\\n" * 3
        report = run(Source(wide + "loss = sum(y)\\n", "wide"))
        assert report.error is None, report.error
        small = f"x = ones({n})\\nfor i in range(4):\\n    y = cumsum(x, 0) * 2\\n"
        small += "    y = cumsum(y + 1, 0)\\n    z = y.sum().item()\\n"
        report = run(Source(small, "small"))
        assert report.error is None, report.error

many(0, 65)
before = size()
many(65, 100)
print(size() - before)
"""


def test_many_structures_do_not_fill_memory() -> None:
    if sys.platform != "linux":
        return
    found = subprocess.run(
        [sys.executable, "-c", STRUCTURES], capture_output=True, text=True, timeout=100
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) < 20  # MiB


def test_what_is_kept_is_bounded() -> None:
    assert engine.MOST_PLANS * 2 * 8 < 2048
    assert tiles.SCRATCH_BYTES <= 8 << 20
    assert resident_plan.MOST_BYTES <= plan_memory_budget.MOST_HELD <= 64 << 20
    for worker in tiles.SCRATCH.of.values():
        assert worker.nbytes <= 4 * tiles.SCRATCH_BYTES
