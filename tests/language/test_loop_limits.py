"""What ends a loop from outside while its steps are replayed: Ctrl-C, the limits on time, steps and
memory, and errors of kernels."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autodiff_cli.checks.deadline import deadline
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.node import Node
from autodiff_cli.language.program.running import Program
from autodiff_cli.language.replay import replay_driver
from autodiff_cli.language.values.housekeeping import HOUSEKEEPING
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from tests.pace import PATIENCE

from .test_loops import compare, outcome

ENDLESS = """\
import torch
x = torch.tensor([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]])
w = torch.ones(2, requires_grad=True)
seen = []
for i in range(10**9):
    loss = ((x @ w) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w += 1e-9 * w.grad + 1
    w.grad = None
"""
WATCHED = ENDLESS + "    seen.append(loss.item())\n"
CHOSEN = ENDLESS.replace("    loss =", "    y = x[i % 2:i % 2 + 2]\n    loss =", 1).replace(
    "(x @ w)", "(y @ w)"
)
LOOPS = {"alone": ENDLESS, "watched": WATCHED, "chosen": CHOSEN}
Action = Callable[[], object]
LONG = Options(backward=False, max_steps=10**9)


@pytest.fixture
def soon(replayed: list[int], monkeypatch: pytest.MonkeyPatch) -> Callable[[Action], None]:
    """Lets something happen at any moment after the hundredth step that is replayed."""

    def when(action: Action) -> None:
        actions = [action]

        class Watched(replay_driver.Replay):
            def step(self, item: Any) -> bool:
                done = super().step(item)
                if len(replayed) >= 100 and actions:
                    actions.pop()()
                return done

        monkeypatch.setattr(replay_driver, "Replay", Watched)

    return when


@pytest.mark.parametrize("name", LOOPS)
def test_the_time_limit_holds(name: str, soon: Callable[[Action], None]) -> None:
    soon(lambda: signal.setitimer(signal.ITIMER_REAL, 0.01, 0.5))
    with deadline(PATIENCE):
        report = run(Source(LOOPS[name], "program.py"), LONG)
    assert report.error is not None
    assert report.error.code == "E508"


@pytest.mark.parametrize("name", LOOPS)
def test_interrupted_between_steps(name: str, soon: Callable[[Action], None]) -> None:
    """All names are those of one step: the weights say how many there were."""
    program = Program(Source(LOOPS[name], "program.py"), LONG)
    timer = threading.Timer(0.01, signal.raise_signal, (signal.SIGINT,))
    soon(timer.start)
    with pytest.raises(KeyboardInterrupt):
        program.run()
    timer.join()
    names = program.scope.names
    steps = names["i"]
    w, loss = names["w"].numpy(), names["loss"]
    assert steps > 40
    assert abs(w[0] - steps) < 3
    assert loss.node.requires_grad
    y = names.get("y", names["x"]).numpy()
    np.testing.assert_allclose(loss.numpy(), ((y @ (w - 1)) ** 2).mean(), rtol=1e-3)
    assert names["w"].grad is None
    if name == "watched":
        assert len(names["seen"]) - steps in (0, 1)


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("most", [5, 17, 100])
def test_the_limit_on_steps_holds(name: str, most: int) -> None:
    reports = []
    for replays in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("autodiff_cli.language.values.housekeeping.HOUSEKEEPING.replays", replays)
            options = Options(backward=False, max_steps=most)
            reports.append(run(Source(LOOPS[name], "program.py"), options))
    assert reports[0].error is not None
    assert reports[0].error.code == "E506"
    compare(*reports)


COUNTED = """\
import torch
x = torch.tensor([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]])
w = torch.ones(2, requires_grad=True)
def f(a):
    return a * a
for i in range(12):
    k = sum([j for j in range(2)])
    for j in range(2):
        loss = f(x @ w).mean() * k
    loss.backward()
    with torch.no_grad():
        w -= 1e-3 * w.grad
    w.grad = None
"""


def test_every_limit_on_steps_is_met_where_it_is_without_replays(replayed: list[int]) -> None:
    """Twelve steps of nine: of the loop, its comprehension, a sum, two calls in a loop within."""
    for most in (*range(0, 12 * 9, 4), 12 * 9 - 1, 12 * 9):
        reports = []
        for replays in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(HOUSEKEEPING, "replays", replays)
                options = Options(backward=False, max_steps=most)
                reports.append(run(Source(COUNTED, "program.py"), options))
        assert (reports[0].error is None) is (most == 12 * 9)
        compare(*reports)
    assert len(replayed) > 50


def test_the_limit_on_memory_holds() -> None:
    program = """\
import torch
w = torch.ones(300, 1, requires_grad=True)
n = 100
for i in range(20):
    if i == 12:
        w = torch.ones(3000, 1, requires_grad=True)
    loss = (w * w.T).exp().sum()
    loss.backward()
    w.grad = None
"""
    report = run(Source(program, "program.py"), Options(backward=False, max_memory=20 << 20))
    assert report.error is not None
    assert report.error.code == "E505"
    assert report.error.span is not None


FAILING = """\
import torch
torch.manual_seed(0)
A = torch.eye(2)
w = torch.tensor([1.0, 1.0], requires_grad=True)
kept = []
{start}
for i in range(20):
    B = A * w.detach()
    factor = torch.linalg.cholesky(B)
    loss = factor.sum() + (w * i).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.11 * w.grad / (1 + w.grad)
    w.grad = None
    {after}
{end}
"""


@pytest.mark.parametrize("after", ["pass", "kept.append(loss.item())", "print(i, loss.item())"])
@pytest.mark.parametrize("caught", [False, True])
def test_kernels_that_fail_do_so_at_their_place(caught: bool, after: str) -> None:
    program = FAILING.format(start="", end="", after=after)
    if caught:
        head, _, body = program.partition("\n\n")
        lines = "\n".join("    " + line for line in body.rstrip().splitlines())
        program = (
            f"{head}\ntry:\n{lines}\nexcept RuntimeError as e:\n    print('failed', i, e)\n"
            "print(w, w.grad, B, factor, loss, kept)\nloss.sum()\n"
        )
    one, other = outcome(program, True, ""), outcome(program, False, "")
    assert (one.error is None) is caught
    compare(one, other)
    if one.error is not None:
        assert isinstance(one.error, AutodiffError)
        assert one.error.span is not None
        assert "cholesky" in program.splitlines()[one.error.span.line - 1]


@pytest.mark.parametrize(
    "keeps",
    [
        "w = step(w)",
        "kept[0] = step(kept[0])",
        "kept['a'] = [step(kept.get('a', [w])[0])]",
        "thing.held = step(thing.held)",
        "inner()",
        "v.grad = step(v.grad)",
        "pass\ndef loop():\n    for i in range(300):\n        kept[0] = step(kept[0])\nloop()",
        "pass\ni = 0\nwhile i < 300:\n    i += 1\n    w = step(w)",
    ],
)
def test_histories_that_nobody_needs_are_let_go(
    keeps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a loop keeps what its steps make."""
    monkeypatch.setattr(HOUSEKEEPING, "every", 50)
    monkeypatch.setattr(HOUSEKEEPING, "replays", False)
    program = f"""\
import torch
w = torch.ones(3)
v = torch.ones(3, requires_grad=True)
v.grad = torch.ones(3)
kept = {{0: w}}
class Thing: pass
thing = Thing()
thing.held = w
def step(x): return torch.sin(x) * 0.5 + 1
def inner():
    global w
    w = step(w)
for i in range(300):
    {keeps}
"""
    alive: list[int] = []
    collect = HOUSEKEEPING.collect

    def counted(scope: Any, since: int) -> None:
        collect(scope, since)
        alive.append(sum(type(x) is Node for x in gc.get_objects()))

    monkeypatch.setattr(HOUSEKEEPING, "collect", counted)
    report = run(Source(program, "program.py"), Options(backward=False))
    assert report.error is None
    assert len(alive) > 5 and alive[-1] <= alive[1] + 10
