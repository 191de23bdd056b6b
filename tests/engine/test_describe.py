"""Plans as data: what they say is what is run; measured runs compute the same numbers."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.api import run as api_run
from autodiff_cli.engine import evaluate as engine
from autodiff_cli.engine import profile as profile_module
from autodiff_cli.engine.plan.describe import (
    GroupPlan,
    KernelPlan,
    PlanData,
    _ufuncs,
    predicted,
)
from autodiff_cli.engine.profile import Profile, fresh
from autodiff_cli.engine.threads import WORKERS
from autodiff_cli.graph.op import constant
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE
from autodiff_cli.session import Options, Report, run
from autodiff_cli.source import Source

NEURON = """\
import torch
w = torch.linspace(-1, 1, 500000, dtype=torch.float64).reshape(500, 1000).requires_grad_()
x = torch.linspace(2, 3, 1000, dtype=torch.float64)
loss = ((1 - torch.sigmoid(w * x + 0.5)) ** 2).sum()
loss.backward()
"""
PRODUCTS = """\
X = const(ones(256, 512)); W = ones(512, 512).requires_grad_(); V = ones(512, 10).requires_grad_()
h = relu(X @ W)
loss = mean((h @ V) ** 2)
"""
DEMO = "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n"
DESCENT = """\
import torch
w = torch.zeros(20, requires_grad=True)
X = torch.ones(100, 20)
opt = torch.optim.SGD([w], lr=0.1)
for i in range(60):
    opt.zero_grad()
    loss = ((X @ w - 1) ** 2).mean()
    loss.backward()
    opt.step()
"""


def measured(program: str, **options: object) -> Report:
    report = run(Source(program, "p.expr"), Options(plan=True, profile=True, **options))  # type: ignore[arg-type]  # the tests' own
    assert report.error is None, str(report.error)
    return report


def plan_of(program: str) -> PlanData:
    plan = measured(program).plan
    assert plan is not None
    return plan


def profile_of(program: str) -> Profile:
    profile = measured(program).profile
    assert profile is not None
    return profile


def group_of(plan: PlanData) -> GroupPlan:
    """The only group."""
    (group,) = [unit for unit in plan.units if isinstance(unit, GroupPlan)]
    return group


def texts(group: GroupPlan, backward: bool) -> list[str]:
    return [piece.span.text for piece in group.pieces if piece.backward is backward]


# ------------------------------------------------------------------ plans


def test_forward_and_backward_are_one_group():
    plan = plan_of(NEURON)
    assert plan.how == "plan"
    group = group_of(plan)
    assert (group.rows, group.row) == (500, (1000,))
    assert group.tiles == -(-group.rows // group.tile)
    assert 1 <= group.threads <= max(WORKERS.count(), 1)
    assert "torch.sigmoid(w * x + 0.5)" in texts(group, False)
    assert texts(group, False)[0] == "w * x"
    assert texts(group, True)[-1] == "w * x"
    assert group.nodes == sum(len(piece.ops) for piece in group.pieces)
    assert group.source.startswith("# g")
    assert "def tile(" in group.source
    compile(group.source, "<group>", "exec")


def test_the_row_of_a_group_is_its_widest():
    given = "x = linspace(0, 1, 60000).reshape(10000, 2, 3).requires_grad_()\n"
    plan = plan_of(given + "loss = sum(exp(x).sum(1) ** 2)\n")
    assert group_of(plan).row == (2, 3)


def test_flops_are_those_of_the_ufuncs_of_a_kernel():
    for n, each in ((1023, 1), (1024, len(_ufuncs(F.sigmoid(constant(np.ones(1024))))))):
        assert predicted(F.sigmoid(constant(np.ones(n))))[0] == each * n
    assert each > 1


def test_arrays_have_their_sizes():
    plan = plan_of(NEURON)
    group = group_of(plan)
    for array in (*group.inputs, *group.buffers, *group.outputs):
        assert array.bytes == prod(array.shape) * np.dtype(array.dtype).itemsize
        assert array.name.rstrip("]") in group.source or array.name[0] in "xyz"
    for buffer in group.buffers:
        assert buffer.shape[0] == group.tile
    # w is read; its gradient and the loss are written: backward() used up everything in between.
    assert [array.shape for array in group.inputs] == [(500, 1000), (1000,)]
    assert sorted(array.shape for array in group.outputs) == [(), (500, 1000)]
    assert group.bytes == sum(array.bytes for array in (*group.inputs, *group.outputs))
    assert plan.bytes == sum(unit.bytes for unit in plan.units)
    assert plan.peak >= 500 * 1000 * 8


def test_memory_that_only_a_view_shows_counts():
    program = "x = linspace(0, 1, 200000).reshape(200, 1000).requires_grad_()\nloss = sum(x * x)\n"
    plan = plan_of(program)
    assert plan.peak >= 2 * 200_000 * 8  # x and its gradient


def test_flops_are_those_of_the_products():
    plan = plan_of(PRODUCTS)
    products = [u for u in plan.units if isinstance(u, KernelPlan) and u.op == "matmul"]
    flops = sorted(kernel.flops for kernel in products)
    big, small = 2 * 256 * 512 * 512, 2 * 256 * 512 * 10
    assert flops == [small, small, small, big, big]
    assert plan.flops == sum(unit.flops for unit in plan.units)
    assert plan.seconds == pytest.approx(sum(unit.seconds for unit in plan.units))
    assert {kernel.piece.backward for kernel in products} == {False, True}
    largest = max(plan.units, key=lambda unit: unit.seconds)
    assert isinstance(largest, KernelPlan)
    assert largest.flops == big


def test_convolutions_are_cut_into_parts():
    program = (
        "import torch\nx = torch.ones(8, 4, 64, 64)\nw = torch.ones(2, 4, 3, 3).requires_grad_()\n"
        "loss = torch.nn.functional.conv2d(x, w).sum()\nloss.backward()\n"
    )
    plan = plan_of(program)
    kernel = next(u for u in plan.units if isinstance(u, KernelPlan) and u.parts > 1)
    assert (kernel.op, kernel.shape, kernel.parts) == ("convolve", (8, 2, 62, 62), 4)
    assert kernel.flops == 2 * 8 * 62 * 62 * prod((2, 4, 3, 3))
    assert kernel.threads == min(4, WORKERS.count())


def test_a_small_program_has_the_plan_that_it_would_have():
    plan = plan_of(DEMO)
    assert plan.how == "nodes"
    assert all(isinstance(unit, KernelPlan) for unit in plan.units)
    assert [unit.op for unit in plan.units][:3] == ["add", "mul", "sum"]  # type: ignore[union-attr]  # kernels
    first = plan.units[0]
    assert isinstance(first, KernelPlan)
    assert (first.shape, first.dtype, first.piece.span.text) == ((2, 2), "float64", "A + B")
    assert first.bytes == 3 * 32  # two operands and the result


def test_a_loop_shows_the_plan_that_ran_most():
    plan = plan_of(DESCENT)
    assert plan.how == "plan"
    spans = {unit.piece.span.text for unit in plan.units if isinstance(unit, KernelPlan)}
    assert "opt.step()" in spans
    assert "X @ w" in spans


@pytest.mark.parametrize("n", [128, 400])
def test_the_last_big_evaluation_is_shown(n: int):
    big = f"y = exp(ones({n}, {n})) + {{}}\nprint(y.sum().item())\n"
    plan = plan_of(big.format(1) + big.format(2) + "z = [1, 2]\nprint((z * 2).sum().item())\n")
    assert group_of(plan).pieces[0].span.line == 3


def test_nothing_evaluated_is_no_plan():
    report = measured("print(1 + 1)\n", backward=False)
    assert report.plan is None
    assert report.profile is not None
    assert report.profile.lines == ()
    assert measured("").plan is None


def test_numbers_drawn_run_node_by_node():
    report = measured("x = ones(300, 300).requires_grad_()\nloss = sum(dropout(x, 0.5))\n")
    assert report.plan is not None
    assert report.plan.units


# ------------------------------------------------------------------ profiles


PROGRAMS = [NEURON, PRODUCTS, DEMO, DESCENT]


@pytest.mark.parametrize("program", PROGRAMS, ids=["neuron", "products", "demo", "descent"])
def test_times_of_a_clock_that_stands(program: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(profile_module, "perf_counter", lambda: 1.0)
    profile = profile_of(program)
    assert {line.share for line in profile.lines} == {0.0} and profile.kernels == 0


@pytest.mark.parametrize("program", PROGRAMS, ids=["neuron", "products", "demo", "descent"])
def test_times_add_up(program: str):
    profile = profile_of(program)
    assert sum(line.share for line in profile.lines) == pytest.approx(1, abs=1e-12)
    assert sum(line.seconds for line in profile.lines) == pytest.approx(profile.kernels)
    parts = profile.kernels + profile.parsing + profile.building + profile.planning
    assert parts == pytest.approx(profile.seconds)
    assert min(profile.parsing, profile.building, profile.planning, profile.kernels) > 0
    seconds = [line.seconds for line in profile.lines]
    assert seconds == sorted(seconds, reverse=True)
    assert {line.backward for line in profile.lines} == {False, True}


@pytest.mark.parametrize("program", PROGRAMS, ids=["neuron", "products", "demo", "descent"])
def test_measuring_changes_no_number(program: str):
    wanted = run(Source(program, "p.expr"), Options())
    found = measured(program)
    assert list(found.tensors) == list(wanted.tensors)
    for name, record in found.tensors.items():
        other = wanted.tensors[name]
        np.testing.assert_array_equal(record.value, other.value)
        if other.grad is None:
            assert record.grad is None
        else:
            np.testing.assert_array_equal(record.grad, other.grad)


def test_bytes_are_those_of_the_arrays():
    lines = {(ln.span.text, ln.backward): ln for ln in profile_of(DEMO).lines}
    assert lines["A + B", False].bytes == 4 * 8
    assert lines["(A + B) * A", False].bytes == 4 * 8
    assert lines["sum((A + B) * A)", False].bytes == 8
    assert all(ln.calls == 1 for (_, backward), ln in lines.items() if not backward)


def test_bytes_of_a_group_are_what_leaves_it():
    profile = profile_of(NEURON)
    lines = {(ln.span.text, ln.backward): ln.bytes for ln in profile.lines}
    assert lines["w * x", True] == 500 * 1000 * 8  # the gradient of w
    assert lines["((1 - torch.sigmoid(w * x + 0.5)) ** 2).sum()", False] == 8
    assert lines["torch.sigmoid(w * x + 0.5)", False] == 0


def test_calls_of_a_loop_are_counted():
    lines = {(ln.span.text, ln.backward): ln for ln in profile_of(DESCENT).lines}
    assert lines["X @ w", False].calls >= 60
    assert lines["X @ w", True].calls >= 60
    assert lines["opt.step()", False].calls >= 60
    assert lines["X @ w", False].bytes == lines["X @ w", False].calls * 100 * 4


def test_views_make_no_bytes():
    array = np.zeros((4, 4))
    assert fresh(array[1:], [array]) == 0
    assert fresh(array + 1, [array]) == 128
    assert fresh((array, array[0] + 1), [array]) == 32
    assert fresh(np.float64(1), []) == 8
    assert fresh(3, []) == 0


def test_expressions_of_equal_structure_are_told_apart():
    """A plan is used again for equal structures; a profile still says which line it was."""
    line = "y{0} = exp(sin(x)) * 2 + 1\nprint(y{0}.sum().item())\n"
    program = "x = const([0.1, 0.2])\n" + "".join(line.format(n) for n in range(6))
    profile = profile_of(program)
    lines = [ln.span.line for ln in profile.lines if ln.span.text == "sin(x)"]
    assert sorted(lines) == [2, 4, 6, 8, 10, 12]


def test_failures_leave_nobody_observing():
    report = run(Source("x = [1, 2]\ny = x @ [1, 2, 3]\n", "p.expr"), Options(profile=True))
    assert report.error is not None
    assert report.profile is None
    assert STATE.observer is None


def test_measured_plans_do_not_stay():
    before = set(engine.PLANS)
    measured(NEURON)
    assert set(engine.PLANS) == before


def test_nothing_is_measured_unless_asked(monkeypatch: pytest.MonkeyPatch):
    def never(*_: object) -> float:
        raise AssertionError("measured")

    monkeypatch.setattr("autodiff_cli.engine.profile.perf_counter", never)
    report = run(Source(DEMO, "p.expr"), Options())
    assert report.error is None
    assert (report.profile, report.plan) == (None, None)


def test_python_users_get_the_data(tmp_path: Path):
    result = api_run(DEMO, profile=True, plan=True)
    assert isinstance(result["profile"], Profile)
    assert isinstance(result["plan"], PlanData)
    assert "profile" not in api_run(DEMO)
    assert json.dumps([line.share for line in result["profile"].lines])
