"""A plan holds for graphs of its structure and for no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_cli as ad
import autodiff_cli.engine.evaluate as engine
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.engine.plan.schedule import Plan
from autodiff_cli.graph.dtypes import FLOAT32, FLOAT64
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, leaf
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE
from autodiff_cli.ops import load_all
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..regimes import REGIMES, plain, same
from ..together import together

load_all()


@pytest.fixture(params=list(REGIMES), autouse=True)
def regime(request: pytest.FixtureRequest) -> Any:
    STATE.reset()
    with REGIMES[request.param]() as patch:
        yield patch


def value(node: Node) -> np.ndarray:
    engine.evaluate([node])
    return node.value


def arrays(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(len(shape)).uniform(0.5, 2, shape).astype(dtype)


def test_equal_structures_share_a_plan() -> None:
    for scale in (1.0, 2.0, 3.5):
        x = arrays(6, 4) * scale
        same(value(F.mul(F.exp(constant(x)), constant(x))), np.exp(x) * x)
    assert len(engine.PLANS) == 1


OPERANDS = [
    (2, 3), (2.0, 3.0), (2, 2.0), (1.0, 1.5), (0.0, -0.0), (0, 0.0), (1, True), (0.5, -0.5),
    (float("nan"), 1.0), (float("inf"), 0.0),
]  # fmt: skip


@together(
    [(name, *pair) for name in ("pow", "mul", "div", "add", "maximum") for pair in OPERANDS],
    group=50,
)
def test_numbers_that_a_plan_may_depend_on(name: str, one: Any, other: Any) -> None:
    for number in (one, other, one):
        x = arrays(6, 4)
        found, wanted = (getattr(F, name)(constant(x), number) for _ in range(2))
        plain([wanted])
        same(value(found), wanted.value)
        np.testing.assert_array_equal(np.signbit(found.value), np.signbit(wanted.value))
        found, wanted = (F.div(1.0, F.mul(constant(x), number)) for _ in range(2))
        plain([wanted])
        same(value(found), wanted.value)


def test_shapes_and_dtypes() -> None:
    for shape in ((6, 4), (4, 6), (24,), (2, 3, 4), (6, 4), (1, 4), ()):
        for dtype in ("float64", "float32", "int64"):
            x = arrays(*shape, dtype=dtype)
            found = value(F.sum(F.mul(constant(x), 3)))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, x.sum() * 3, rtol=1e-6)


def test_operands_may_change_places() -> None:
    x, y = arrays(6, 4), arrays(6, 4) + 1
    for a, b in ((x, y), (y, x), (x, x), (x, y)):
        same(value(F.sub(constant(a), constant(b))), a - b)
    node, other = constant(x), constant(y)
    same(value(F.sub(node, other)), x - y)
    same(value(F.sub(other, node)), y - x)
    same(value(F.sub(node, node)), x - x)


def test_static_arguments() -> None:
    x = arrays(4, 4)
    for _ in range(2):
        for dim in (0, 1):
            for keep in (False, True):
                same(value(F.amax(constant(x), dim, keep)), x.max(dim, keepdims=keep))
            same(value(F.mul(F.flip(constant(x), (dim,)), 3.5)), np.flip(x, dim) * 3.5)
            same(value(F.mul(F.select(constant(x), dim, 1), 3.5)), x.take(1, dim) * 3.5)
        for low, high in ((1.0, 1.5), (1, 1.5), (-0.0, 1.25)):
            same(value(F.clamp(F.exp(constant(x)), low, high)), np.clip(np.exp(x), low, high))


def test_default_dtype() -> None:
    whole = np.arange(12).reshape(4, 3)
    for dtype in (FLOAT64, FLOAT32, FLOAT64):
        STATE.default_dtype = dtype
        assert value(F.exp(constant(whole))).dtype == dtype
        assert value(F.div(constant(whole), 4)).dtype == dtype


def test_wanted_values_and_flags() -> None:
    """The same ops with other targets, or with a gradient to come, keep other values."""
    x = arrays(5, 4)
    for requires_grad in (False, True, False):
        source = leaf(x, AccumulateGrad()) if requires_grad else constant(x)
        middle = F.exp(source)
        last = F.sum(F.mul(middle, middle))
        np.testing.assert_allclose(value(last), (np.exp(x) ** 2).sum(), rtol=1e-13)
        assert (middle.value is not None) is requires_grad
    for targets in ((0,), (1,), (0, 1), (1, 0)):
        nodes = [F.exp(constant(x)), F.tanh(constant(x))]
        engine.evaluate([nodes[at] for at in targets])
        for at, wanted in enumerate((np.exp(x), np.tanh(x))):
            if at in targets:
                np.testing.assert_allclose(nodes[at].value, wanted, rtol=1e-15)


def test_two_draws_are_never_merged() -> None:
    report = run(
        Source(
            "import torch\ntorch.manual_seed(0)\n"
            "a = torch.rand(64, 4) * 2\nb = torch.rand(64, 4) * 2\n"
            "x = torch.ones(64, 4)\nc = torch.dropout(x, 0.5, True) * 2\n"
            "d = torch.dropout(x, 0.5, True) * 2\n"
            "print((a == b).all().item(), (c == d).all().item())\n",
            "draws.py",
        )
    )
    assert report.error is None, str(report.error)
    assert report.stdout == "False False\n"


def test_equal_nodes_are_computed_once() -> None:
    engine.PLANS.clear()  # of whatever ran before in this process
    x = constant(arrays(6, 4))
    first, second = F.mul(F.exp(x), 3.5), F.mul(F.exp(x), 3.5)
    engine.evaluate([first, second])
    same(first.value, second.value)
    (plan,) = engine.PLANS.values()
    assert len(set(plan.targets)) == 1


@pytest.mark.parametrize(
    "program",
    [
        "x = ones(6, 4)\ny = x * 2\nx += 1\nz = x * 2\nprint(sum(y), sum(z))\n",
        "x = ones(6, 4)\nv = x[1]\nx *= 3\ny = v * 1.5\nv += 1\nprint(sum(y), sum(x), sum(v))\n",
        "x = ones(6, 4)\ny = exp(x)\nx[2] = 7\nprint(sum(y), sum(exp(x)))\nx[:, 1] = 0\n"
        "print(sum(y), sum(exp(x)))\n",
        "x = ones(6, 4)\nfor i in range(4):\n    y = x * 1.5\n    x[i] = i\n"
        "    print(sum(y), sum(x))\n",
    ],
)
def test_a_value_asked_for_after_an_inplace_change(
    program: str, regime: pytest.MonkeyPatch
) -> None:
    found = run(Source(program, "inplace.expr"))
    assert found.error is None, str(found.error)
    regime.setattr(engine, "evaluate", plain)
    regime.setattr(engine.ops.LATE, "evaluate", plain)
    assert found.stdout == run(Source(program, "inplace.expr")).stdout


LOOP = """
w = ones(4, 3, requires_grad=True)
x = [[0.5, -1, 2, 1], [1, 0.25, -1, 3]]
for i in range(8):
    loss = mean((tanh(x @ w) - 0.5 * i) ** 2)
    loss.backward()
    with no_grad():
        w -= 0.1 * w.grad
    w.grad.zero_()
print(loss, w)
"""


def test_loops_repeat_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(Source(LOOP, "loop.expr"), Options(dtype="float64"))
    assert found.error is None, str(found.error)
    monkeypatch.setattr(engine, "run_planned", lambda *_: False)
    assert found.stdout == run(Source(LOOP, "loop.expr"), Options(dtype="float64")).stdout


JACOBIANS = """
import torch
def f(v):
    return torch.tanh(v) * (v * v).sum() + v[0]
def g(v):
    return (f(v) * v).sum()
x = torch.tensor([0.5, -1, 2, 1, 0.25])
J = torch.func.jacrev(f)(x)
print(J, torch.func.jacfwd(f)(x), torch.func.hessian(g)(x), torch.vmap(f)(J))
"""


def test_rows_of_jacobians(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(Source(JACOBIANS, "rows.py"))
    assert found.error is None, str(found.error)
    monkeypatch.setattr(engine, "run_planned", lambda *_: False)
    assert found.stdout == run(Source(JACOBIANS, "rows.py")).stdout


def test_results_of_two_runs_are_apart() -> None:
    """Results held from one run keep their values while plans run again, and share no memory with
    inputs that are given again."""
    f = ad.value_and_grad("y = x * w\nloss = sum(y * y) + sum(w)", wrt=["x", "w"])
    held: list[tuple[np.ndarray, np.ndarray]] = []
    x, w = arrays(6, 4), arrays(6, 4)
    for scale in (1.0, 2.0, 3.0, 1.0, 5.0):
        x[...] = scale
        _, grads = f(x=x, w=w)
        for g in grads.values():
            assert not np.shares_memory(g, x)
            assert not np.shares_memory(g, w)
            assert not any(np.shares_memory(g, other) for other, _ in held)
            held.append((g, g.copy()))
        for found, wanted in held:
            same(found, wanted)


@pytest.mark.parametrize(
    "program",
    [
        "loss = sum(c * x)", "loss = sum(x.T * c.T)",
        "loss = sum(x.reshape(8, 3) * 2 + c.view(8, 3))",
        "y = x.T\nloss = sum(y) + sum(c)", "loss = sum(x + c)", "loss = sum((x * c)[1:])",
        "loss = sum(x.expand(2, 6, 4) * c)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("rows", [6, 600])
def test_gradients_are_memory_of_their_own(program: str, rows: int) -> None:
    program = program.replace("8, 3", "-1, 3").replace("6, 4", f"{rows}, 4")
    f = ad.value_and_grad(program, wrt=["x", "c"])
    x, c = np.ones((rows, 4)), np.full((rows, 4), 2.0)
    first: dict[str, np.ndarray] = {}
    for _ in range(4):
        _, grads = f(x=x, c=c)
        first = first or {name: g.copy() for name, g in grads.items()}
        for name, g in grads.items():
            same(g, first[name])
            assert g.flags.writeable
            g += 17.0
    assert (x == 1).all()
    assert (c == 2).all()


def test_what_has_no_structure_runs_node_by_node() -> None:
    node = F.mul(constant(arrays(6, 4)), 3.5)
    order, _ = engine.plan([node])
    assert engine.structure(order, [node]) is not None
    chosen = F.masked_select(constant(arrays(6, 4)), constant(arrays(6, 4) > 1))
    same(value(F.mul(chosen, 2.0)), arrays(6, 4)[arrays(6, 4) > 1] * 2)


def test_plans_are_few(regime: pytest.MonkeyPatch) -> None:
    for n in range(2, 2 + 2 * engine.MOST_PLANS):
        value(F.mul(F.exp(constant(np.ones(n))), 3.5))
        assert len(engine.PLANS) <= engine.MOST_PLANS
    assert all(type(plan) is Plan for plan in engine.PLANS.values())
