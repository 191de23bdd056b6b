"""Measured runs compute the same numbers, and say what took the time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.api import run as api_run
from autodiff_cli.engine import evaluate as engine
from autodiff_cli.engine.profile import Profile, fresh
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
    report = run(Source(program, "p.expr"), Options(profile=True, **options))  # type: ignore[arg-type]  # the tests' own
    assert report.error is None, str(report.error)
    return report


def profile_of(program: str) -> Profile:
    profile = measured(program).profile
    assert profile is not None
    return profile


def test_nothing_evaluated_has_no_lines():
    assert measured("print(1 + 1)\n", backward=False).profile.lines == ()
    assert measured("").profile.lines == ()


PROGRAMS = [NEURON, PRODUCTS, DEMO, DESCENT]


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
    assert report.profile is None


def test_python_users_get_the_data(tmp_path: Path):
    result = api_run(DEMO, profile=True)
    assert isinstance(result["profile"], Profile)
    assert "profile" not in api_run(DEMO)
    assert json.dumps([line.share for line in result["profile"].lines])
