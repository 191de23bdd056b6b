"""Loops whose steps are replayed end as they would had every step been run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autodiff_cli.language import loops
from autodiff_cli.language.housekeeping import HOUSEKEEPING
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

DATA = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(3)
torch.set_default_dtype(torch.float64)
x = torch.tensor([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5], [1.0, 1.0]])
t = torch.tensor([1.0, 0.0, 1.0, 1.0])
w = torch.zeros(2, requires_grad=True)
b = torch.zeros((), requires_grad=True)
"""

SGD = """\
opt = torch.optim.SGD([w, b], lr=0.1{options})
for i in range(30):
    opt.zero_grad()
    loss = F.binary_cross_entropy_with_logits(x @ w + b, t)
    loss.backward()
    opt.step()
"""

REPLAYED = {
    "sgd": SGD.format(options=""),
    "momentum": SGD.format(options=", momentum=0.9"),
    "nesterov": SGD.format(options=", momentum=0.9, nesterov=True, weight_decay=0.01"),
    "maximize": SGD.format(options=", maximize=True"),
    "by hand": """\
for i in range(25):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
    w.grad = None
    b.grad = None
""",
    "zeroed gradients": """\
for i in range(25):
    loss = F.mse_loss(x @ w + b, t)
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
        w.grad.zero_()
        b.grad.zero_()
""",
    "gradients that add up": """\
for i in range(20):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
""",
    "an average": """\
average = torch.zeros(2)
for i in range(20):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.05 * w.grad
        average.mul_(0.9).add_(0.1 * w)
    w.grad = None
""",
    "a model": """\
model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
criterion = nn.MSELoss()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(20):
    opt.zero_grad()
    out = model(x).squeeze(1)
    loss = criterion(out, t)
    loss.backward()
    opt.step()
first = model[0].weight
""",
    "in a function": """\
def train(n):
    opt = torch.optim.SGD([w, b], lr=0.1)
    for i in range(n):
        opt.zero_grad()
        loss = F.mse_loss(x @ w + b, t)
        loss.backward()
        opt.step()
    return loss
last = train(20)
""",
}

SPECIAL = {
    "printed now and then": SGD.format(options="")
    + "    if i % 7 == 0:\n        print(i, round(loss.item(), 9), w.grad)\n",
    "kept now and then": "kept = []\nevery = 6\n"
    + SGD.format(options=", momentum=0.5")
    + "    if (i + 1) % every == 0 or i == 2:\n        kept.append(loss.item())\n"
    + "print(kept)\n",
    "another rate in the middle": "rate = 0.1\n"
    + REPLAYED["by hand"].replace("0.1", "rate").replace("25", "40")
    + "    if i == 20:\n        opt = 3\n        w.grad = None\n",
}

RUN_AS_WRITTEN = {
    "the index is read": "for i in range(20):\n    y = (w * i).sum()\n",
    "numbers that change": "n = 0\nfor i in range(20):\n    n += 1\n    y = w * n\n",
    "printed": "for i in range(20):\n    print((w + 1).sum().item())\n",
    "a list that grows": "kept = []\nfor i in range(20):\n    kept.append(w * 2)\n",
    "a value from step to step": "y = w\nfor i in range(20):\n    y = y * 0.5 + 1\n",
    "random numbers": "for i in range(20):\n    w.data = w.data + torch.randn(2)\n",
    "dropout": """\
opt = torch.optim.SGD([w], lr=0.1)
for i in range(20):
    opt.zero_grad()
    loss = F.dropout(x @ w, 0.5).sum()
    loss.backward()
    opt.step()
""",
    "a module that draws": """\
drop = nn.Dropout(0.5)
opt = torch.optim.SGD([w], lr=0.1)
for i in range(20):
    opt.zero_grad()
    loss = drop(x @ w).sum()
    loss.backward()
    opt.step()
""",
    "counted steps": """\
opt = torch.optim.Adam([w, b], lr=0.1)
for i in range(20):
    opt.zero_grad()
    loss = F.mse_loss(x @ w + b, t)
    loss.backward()
    opt.step()
""",
    "a value that decides": """\
for i in range(20):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= (0.1 if loss > 0.5 else 0.01) * w.grad
    w.grad = None
""",
    "a schedule": """\
opt = torch.optim.SGD([w, b], lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(opt, 3)
for i in range(20):
    opt.zero_grad()
    loss = F.mse_loss(x @ w + b, t)
    loss.backward()
    opt.step()
    schedule.step()
""",
    "left early": """\
for i in range(20):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
    if i == 11:
        break
""",
    "hooks": """\
seen = []
h = w.register_hook(lambda g: seen.append(1))
for i in range(20):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
""",
    "data": """\
for i in range(20):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
    w.data -= 0.1 * w.grad
    w.grad = None
""",
    "a function of the program": """\
calls = [0]
def f(a):
    calls[0] += 1
    return (a * a).sum()
for i in range(20):
    y = f(w)
""",
}


def outcome(program: str, replays: bool) -> Any:
    before, HOUSEKEEPING.replays = HOUSEKEEPING.replays, replays
    try:
        return run(Source(DATA + program, "program.py"), Options(backward=False))
    finally:
        HOUSEKEEPING.replays = before


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each step that was replayed."""
    found: list[int] = []

    class Counted(loops.Recording):
        def run(self, arrays: list[np.ndarray]) -> list[Any]:
            found.append(1)
            return super().run(arrays)

    monkeypatch.setattr(loops, "Recording", Counted)
    return found


def same(program: str) -> None:
    one, other = outcome(program, True), outcome(program, False)
    assert one.error is None, one.error
    assert other.error is None, other.error
    assert one.stdout == other.stdout
    assert one.scalars == other.scalars
    assert list(one.tensors) == list(other.tensors)
    for name, record in one.tensors.items():
        expected = other.tensors[name]
        assert record.grad_fn == expected.grad_fn
        assert record.is_leaf == expected.is_leaf
        np.testing.assert_allclose(record.value, expected.value, rtol=1e-12, atol=1e-14)
        assert (record.grad is None) is (expected.grad is None)
        if record.grad is not None:
            np.testing.assert_allclose(record.grad, expected.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", REPLAYED)
def test_replayed(name: str, replayed: list[int]) -> None:
    same(REPLAYED[name])
    assert len(replayed) > 10


@pytest.mark.parametrize("name", SPECIAL)
def test_steps_that_do_more_run_as_written(name: str, replayed: list[int]) -> None:
    same(SPECIAL[name])
    assert len(replayed) > 10


def test_what_a_special_step_changes_ends_the_replay(replayed: list[int]) -> None:
    rate = (
        "    if i == 12:\n        for group in opt.param_groups:\n            group['lr'] = 0.01\n"
    )
    same(SGD.format(options="") + rate)
    assert len(replayed) < 12


@pytest.mark.parametrize("name", RUN_AS_WRITTEN)
def test_run_as_written(name: str, replayed: list[int]) -> None:
    same(RUN_AS_WRITTEN[name])
    assert not replayed


def test_steps_count_against_the_limit() -> None:
    report = run(
        Source(DATA + REPLAYED["by hand"], "program.py"), Options(backward=False, max_steps=20)
    )
    assert report.error is not None
    assert report.error.code == "E506"


def test_backward_through_what_a_step_changed_is_refused() -> None:
    program = "early = (w * w * x[0]).sum()\n" + REPLAYED["by hand"] + "early.backward()\n"
    report = run(Source(DATA + program, "program.py"), Options(backward=False))
    assert report.error is not None
    assert report.error.code == "E407"


def test_training_goes_on_after_the_loop() -> None:
    same(SGD.format(options=", momentum=0.9") + "loss = w.sum()\nloss.backward()\nopt.step()\n")


def test_a_loop_within_a_loop() -> None:
    program = "".join("    " + line + "\n" for line in REPLAYED["by hand"].splitlines())
    same("for epoch in range(3):\n" + program + "    print(round(loss.item(), 9))\n")
