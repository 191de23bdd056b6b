"""Loops whose steps are replayed end as they would had every step been run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.language.replay import recorded_step, replay_driver
from autodiff_cli.language.values.housekeeping import HOUSEKEEPING
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from .loop_programs import CASES, HEAD
from .replaying import early

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
    "the index is read": "for i in range(20):\n    y = (w * i).sum()\n",
    "printed": "for i in range(20):\n    print((w + 1).sum().item())\n",
    "counted steps": """\
opt = torch.optim.Adam([w, b], lr=0.1)
for i in range(20):
    opt.zero_grad()
    loss = F.mse_loss(x @ w + b, t)
    loss.backward()
    opt.step()
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
    "data": """\
for i in range(20):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
    w.data -= 0.1 * w.grad
    w.grad = None
""",
    "numbers that change": "n = 0\nfor i in range(20):\n    n += 1\n    y = w * n\n",
    "random numbers": "for i in range(20):\n    w.data = w.data + torch.randn(2)\n",
    "a value that decides": """\
for i in range(20):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= (0.1 if loss > 0.5 else 0.01) * w.grad
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
    "a list that grows": "kept = []\nfor i in range(20):\n    kept.append(w * 2)\n",
    "a value from step to step": "y = w\nfor i in range(20):\n    y = y * 0.5 + 1\n",
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
    "hooks": """\
seen = []
h = w.register_hook(lambda g: seen.append(1))
for i in range(20):
    loss = ((x @ w + b - t) ** 2).mean()
    loss.backward()
""",
}


def outcome(program: str, replays: bool, start: str = DATA) -> Any:
    before, HOUSEKEEPING.replays = HOUSEKEEPING.replays, replays
    try:
        return run(Source(start + program, "program.py"), Options(backward=False))
    finally:
        HOUSEKEEPING.replays = before


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each recording."""
    found: list[int] = []

    def counted(*args: Any) -> Any:
        made = recorded_step.record(*args)
        found.extend([1] * (made is not None))
        return made

    monkeypatch.setattr(replay_driver, "record", counted)
    return found


def same(program: str) -> None:
    one, other = outcome(program, True), outcome(program, False)
    assert one.error is None, one.error
    compare(one, other)


def place(report: Any) -> Any:
    """What an error says, and where."""
    error = report.error
    if error is None:
        return None
    span = error.span
    return error.code, error.message, span and (span.line, span.column)


def compare(one: Any, other: Any) -> None:
    """Bit for bit the same."""
    assert place(one) == place(other)
    assert one.stdout == other.stdout
    assert repr(one.scalars) == repr(other.scalars)
    assert list(one.tensors) == list(other.tensors)
    for name, record in one.tensors.items():
        expected = other.tensors[name]
        assert record.grad_fn == expected.grad_fn
        assert record.is_leaf == expected.is_leaf
        np.testing.assert_array_equal(record.value, expected.value)
        assert (record.grad is None) is (expected.grad is None)
        if record.grad is not None:
            np.testing.assert_array_equal(record.grad, expected.grad)


@pytest.mark.parametrize("name", REPLAYED)
def test_replayed(name: str, replayed: list[int]) -> None:
    same(REPLAYED[name])
    assert len(replayed) > (6 if name == "left early" else 10)


@pytest.mark.parametrize("name", SPECIAL)
def test_steps_that_do_more_run_as_written(name: str, replayed: list[int]) -> None:
    same(SPECIAL[name])
    assert len(replayed) > 10


def test_what_a_special_step_changes_ends_the_recording(recordings: list[int]) -> None:
    rate = (
        "    if i == 12:\n        for group in opt.param_groups:\n            group['lr'] = 0.01\n"
    )
    same(SGD.format(options="") + rate)
    assert len(recordings) == 2


# Steps of these depend on what nobody knows before, or leave more than tensors.
ASIDE = frozenset(
    [
        "break",
        "nadam",
        "minibatch_ragged",
        "power_of_i",
        "rebinding",
        "path_tolist",
        "alias_path",
        "while",
    ]
)


@pytest.mark.parametrize("name", CASES)
def test_programs(name: str, replayed: list[int]) -> None:
    one, other = outcome(CASES[name], True, HEAD), outcome(CASES[name], False, HEAD)
    compare(one, other)
    assert bool(replayed) is (name.replace(" ", "_") not in ASIDE)


def test_replay_leaves_what_the_last_complete_step_left() -> None:
    """An error in the middle of a run: the parameters are those of the step before."""
    program = HEAD + CASES["error later"]
    one, other = outcome(program, True, ""), outcome(program, False, "")
    assert one.error is not None
    compare(one, other)


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


def test_a_recording_is_for_the_layouts_it_was_made_for(replayed: list[int]) -> None:
    """One loop, run again with tensors of other sizes, dtypes and orders in memory."""
    program = """
def train(w, x):
    for i in range(12):
        loss = ((w * x).sum(0) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
        w.grad = None
    return loss.item()
def ones(rows, dtype=torch.float32): return torch.ones(rows, 2, dtype=dtype)
for rows in (3, 3, 5, 1, 3): print(train(ones(rows).requires_grad_(), ones(rows)))
for kind in (torch.float32, torch.float64):
    print(train(ones(3, kind).requires_grad_(), ones(3, kind)))
for x in (torch.arange(6.0).view(3, 2), torch.arange(6.0).view(2, 3).t()):
    print(train(ones(3).requires_grad_(), x))
"""
    same(program)
    assert len(replayed) > 60


def test_tensors_that_grow_from_step_to_step_are_not_replayed() -> None:
    """Each step makes another shape; the next one has to find that one."""
    text = (
        "import torch\nx, y = torch.ones(1), torch.ones(2, 3)\nfor i in range(12):\n"
        "    x = torch.cat([x, x])\n    y = torch.stack([y.sum(0), y.sum(0)]) * 0.5\n"
        "d = torch.ones(2)\nfor i in range(12): d = (d * 1.5).double() if i > 4 else d * 1.5\n"
        "print(x.shape[0], y.sum().item(), d.dtype)\n"
    )
    report = run(Source(text, "t.py"), Options())
    assert report.stdout == "4096 6.0 torch.float64\n"


@pytest.mark.parametrize("when", ["i % 5 == 0", "i % 7 == 3", "i == 20", "i > 30", "i % 5 != 0"])
@pytest.mark.parametrize(
    ("start", "replace", "append"),
    [
        ("a = []", "a = []", "a.append(m)"),
        ("d = {'a': []}", "d['a'] = []", "d['a'].append(m)"),
        ("d = [[]]", "d[0] = []", "d[0].append(m)"),
        ("v = [9]; d = {'a': []}", "d['a'] = v", "d['a'].append(m)"),
        ("d = {'a': []}; b = d['a']", "d['a'] = []", "b.append(m)"),
        ("d = {'a': []}; b = d['a']", "b = []", "d['a'].append(m)"),
        ("d = {'a': []}", "d = {'a': []}", "d['a'].append(m)"),
        ("d = {'a': []}", "d['a'] = d['a'] + [1]", "d['a'].append(i)"),
        ("d = {'a': [], 'b': []}", "d['a'], d['b'] = d['b'], d['a']", "d['a'].append(i)"),
        ("a, b = [], []", "a, b = b, a", "a.append(i)"),
    ],
)
def test_lists_that_grow_and_are_now_and_then_others(
    start: str, replace: str, append: str, when: str
) -> None:
    """What Python has for the same statements on lists."""
    shown = ", ".join(
        sorted({name for name in "abdv" if f"{name} =" in start or name in start[:4]})
    )
    body = f"    if {when}:\n        {replace}\n    else:\n        {append}\n"
    expected: dict[str, Any] = {}
    exec(f"m = 0.5\n{start}\nfor i in range(40):\n{body}found = repr(({shown},))\n", expected)
    text = (
        f"import torch\nw = torch.ones(1, requires_grad=True)\nm = 0.5\n{start}\n"
        f"for i in range(40):\n    loss = (w * 2).sum()\n{body}print(({shown},))\n"
    )
    with early():
        assert run(Source(text, "t.py"), Options(backward=False)).stdout == expected["found"] + "\n"


@pytest.mark.parametrize("other", ["def tick(): return 3", "tick = int", "cell = [7]"])
def test_what_a_step_could_reach_before_is_left_alone(other: str) -> None:
    """A name that means something else from some step on leaves what it read as it was."""
    body = f"    tick()\n    if i > 30:\n        {other}\n"
    start = "cell = [0]\ndef tick():\n    cell[0] += 1\n    return cell[0]\nkept = cell\n"
    expected: dict[str, Any] = {}
    exec(f"{start}for i in range(60):\n{body}found = repr((cell, kept))\n", expected)
    text = (
        f"import torch\nw = torch.ones(2, requires_grad=True)\n{start}for i in range(60):\n"
        f"    loss = w.pow(2).sum()\n{body}    loss.backward()\n"
        "    with torch.no_grad(): w -= 0.01 * w.grad\n    w.grad = None\nprint((cell, kept))\n"
    )
    with early():
        assert run(Source(text, "t.py"), Options(backward=False)).stdout == expected["found"] + "\n"


def test_gradients_that_are_kept_go_on_growing() -> None:
    """`w.grad` in a list is the gradient itself, to which later steps add."""
    text = (
        "import torch\nw = torch.tensor([2.0, -1.0, 0.5], requires_grad=True)\nkept = []\n"
        "for i in range(40):\n    w.sum().mul(3).backward()\n    if i % 9 == 8:\n"
        "        w.grad = None\n    kept.append(w.grad)\n"
        "print([None if k is None else k[0].item() for k in kept])\n"
    )
    expected = ([27.0] * 8 + [None]) * 4 + [12.0] * 4  # nine steps add 3 to each
    with early():
        assert run(Source(text, "t.py"), Options(backward=False)).stdout == f"{expected}\n"


def test_a_training_loop_is_recorded_after_two_steps(replayed: list[int]) -> None:
    """The first backward pass of a program is told from later ones, which makes no other step."""
    program = f"{HEAD}w = torch.ones(3, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.25)\n"
    program += "for i in range(10):\n    opt.zero_grad()\n    (w * w).sum().backward()\n"
    program += "    opt.step()\nprint(w.tolist())\n"
    found = run(Source(program, "t.py"), Options(backward=False))
    assert found.stdout == f"{[0.5**10] * 3}\n"
    assert len(replayed) == 8


# Short loops, how many of their steps are replayed, and what PyTorch prints.
SHORT = Path(__file__).with_name("replays.txt").read_text("utf-8").split("=====\n")


@pytest.mark.parametrize("case", SHORT, ids=[case.splitlines()[0][2:] for case in SHORT])
def test_how_many_steps_are_replayed(case: str, replayed: list[int]) -> None:
    program, _, found = case.partition("-----\n")
    report = outcome(program, True, "import torch\n")
    assert f"{len(replayed)}\n{report.stdout}" == found
