"""How programs are run: which way each evaluation takes, what its plan calls, keeps and lets go,
and what plans and profiles say of themselves, as it was recorded (`RECORD_SAID=1` writes it). A
choice decides about time and memory, not about numbers: other tests hold these. What changes here
is to be measured."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
import pytest

from autodiff_cli.engine import blas
from autodiff_cli.engine import evaluate as engine
from autodiff_cli.engine.fused.tiles import Tiled
from autodiff_cli.engine.plan import plan_memory_budget, resident_plan, rotating_buffers, schedule
from autodiff_cli.engine.plan.describe import GroupPlan, KernelPlan, Piece
from autodiff_cli.engine.threads import WORKERS
from autodiff_cli.graph.registry import OPS
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..recorded import FIXTURES, cases
from ..said import compare

# Of the recorded programs half of those by which two come by each block of `engine` and `graph`
# that any of them reaches.
PICKED = (FIXTURES / "ways.txt").read_text("utf-8").splitlines()
RECORDED = {case["id"]: case["source"] for case in cases("programs")}


def named(function: Any) -> str:
    """What a call of a plan in memory that stays calls."""
    return str(getattr(function, "__name__", type(function).__name__))


def fixed_text(fixed: resident_plan.Fixed) -> str:
    """The calls of a plan, the number of arrays that each has, and what it keeps."""
    arrays: dict[int, int] = {}
    calls = []
    for function, args in fixed.calls:
        places = [
            str(arrays.setdefault(id(x), len(arrays))) if isinstance(x, np.ndarray) else "_"
            for x in args
        ]
        calls.append(f"{named(function)}({','.join(places)})")
    return (
        f"{fixed.bytes} bytes, {len(fixed.copied)} copied, {len(fixed.bound)} bound, "
        f"{len(fixed.targets)} given: {' '.join(calls)}"
    )


def kernel_name(step: Any) -> str:
    """What a step of a plan runs: a group in tiles on threads, or a kernel and whether it is one of
    threads."""
    kernel = getattr(step, "kernel", None)
    if isinstance(step, Tiled):
        return f"group {step.rows}/{step.tiles}/{step.threads()}"
    return "group" if kernel is None else f"{step.name}:{getattr(kernel, '__qualname__', '')}"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the engine decides, on a machine of four threads that has run nothing before."""
    found: list[str] = []
    for module, name, empty in (
        (engine, "PLANS", {}), (engine, "SEEN", {}), (plan_memory_budget, "HOLDING", {}),
        (WORKERS, "limit", 4), (blas, "MANAGED", False),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, empty)
    for op in OPS.values():  # the structure of a call that is bound in full is another
        if op.known:
            op.known.clear()

    def telling(place: Any, name: str, text: Callable[..., str]) -> None:
        function = getattr(place, name)

        @wraps(function)
        def told_of(*args: Any, **kwargs: Any) -> Any:
            at = len(found)
            result = function(*args, **kwargs)
            found.insert(at, text(result, *args, **kwargs))
            return result

        monkeypatch.setattr(place, name, told_of)

    telling(engine, "run_few", lambda _, order: f"few {len(order)}")
    telling(engine, "run", lambda _, order, targets, last: f"nodes {len(order)} {last}")
    telling(engine, "_run_numbers", lambda _, order, *rest: f"numbers {len(order)} {rest[-1]}")
    telling(engine, "run_planned", lambda ran, order, targets, *more: f"plan {len(order)} {more}"
            if ran else f"no plan {len(order)} {more}")  # fmt: skip
    telling(schedule.Plan, "__init__", lambda _, plan, order, inputs, targets: (
        f"made of {len(order)}: {len(inputs)} to {len(targets)} in {len(plan.steps)} steps, "
        f"{plan.size} bytes itself, {plan.most_bytes()[0]} at a time: "
        f"{' '.join(kernel_name(step) for step in plan.steps)}"))  # fmt: skip
    telling(schedule.Plan, "turn", lambda _, plan, arrays, rest: f"turn {len(arrays)} {len(rest)}")
    start, turns = resident_plan.Fixed.__init__, rotating_buffers.Turns.__init__

    def fixed(self: Any, *args: Any, **kwargs: Any) -> None:
        at = len(found)
        found.append("unfit")
        start(self, *args, **kwargs)
        found[at] = fixed_text(self)

    def turned(self: Any, *args: Any, **kwargs: Any) -> None:
        turns(self, *args, **kwargs)
        found.append(f"{self.bytes} bytes in turns")

    monkeypatch.setattr(resident_plan.Fixed, "__init__", fixed)
    monkeypatch.setattr(rotating_buffers.Turns, "__init__", turned)
    drop = engine._drop

    def dropped(node: Any) -> None:
        found.append("let go")
        drop(node)

    monkeypatch.setattr(engine, "_drop", dropped)
    gc.disable()  # values in cycles stay
    yield found
    gc.enable()


def brief(lines: list[str]) -> Iterator[str]:
    """How often each way was taken, and what was made."""
    counts = Counter(line for line in lines if "bytes" not in line)
    yield ", ".join(f"{n} {line}" for line, n in sorted(counts.items()))
    yield from dict.fromkeys(line for line in lines if "bytes" in line)


@pytest.mark.parametrize("name", PICKED)
def test_ways_of_programs(name: str, told: list[str], request: pytest.FixtureRequest) -> None:
    run(Source(RECORDED[name], "p.py"), Options(write=str))
    compare(request, brief(told))


SGD = """\
import torch
import torch.nn as nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
X = torch.linspace(-1, 1, 120).reshape(20, 6)
y = torch.arange(20) % 3
opt = torch.optim.{}
for i in range(40):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(X), y)
    loss.backward()
    opt.step()
"""
LONGER = {
    "a neuron": "import torch\n"
    "w = torch.linspace(-1, 1, 500000, dtype=torch.float64).reshape(500, 1000).requires_grad_()\n"
    "x = torch.linspace(2, 3, 1000, dtype=torch.float64)\n"
    "loss = ((1 - torch.sigmoid(w * x + 0.5)) ** 2).sum()\nloss.backward()\n",
    **{f"a neuron of {rows} rows": f"w = linspace(-1, 1, {rows}000).reshape({rows}, 1000)\n"
       "w = w.requires_grad_(); loss = sum((1 - sigmoid(w * 3 + 0.5)) ** 2)\n"
       for rows in (150, 200)},
    "groups beside each other": "x = linspace(-1, 1, 60000).reshape(300, 200).requires_grad_()\n"
    "y = linspace(1, 2, 60000).reshape(300, 200).requires_grad_()\na = exp(x) * 2\n"
    "b = sin(cumsum(a * x, 0)) / 3\nc = cos(cumsum(b * b, 1)) + 1\nd = a * c\n"
    "g = tanh(y) - 1\nh = cos(cumsum(g * y, 0)) * 3\nk = a * h + d * sin(cumsum(h * 2, 1))\n"
    "loss = mean((k - a) ** 2 + (g * b).sum(0))\n",
    "all of a group again": "x = linspace(-1, 1, 60000).reshape(300, 200).requires_grad_()\n"
    "y = linspace(1, 2, 60000).reshape(300, 200)\nloss = sum(x * 2 + y * 3)\n",
    "sums of two, and wide rows": "x = linspace(-1, 1, 120000).reshape(2, 60000)\n"
    "y = linspace(1, 2, 120000).reshape(2, 60000)\na = x * 2 + y * 3\n"
    "b = a * a.sum()\nprint(sum(b), sum(x * y.sum(1, keepdim=True)))\n",
    "slices and sums of rows": "x = linspace(-1, 1, 60000).reshape(300, 200).requires_grad_()\n"
    "y = exp(x) * 2\nz = y - (y * x).sum(1, keepdim=True)\n"
    "loss = sum(gather(z, 1, argsort(x, 1)) * softmax(z, 1)) + sum(cumsum(z, 1) * y)\n",
    "several results": "x = linspace(-1, 1, 40000).reshape(200, 200).requires_grad_()\n"
    "rows = unbind(x * 2, 0)\nv, i = topk(exp(x), 3, 1)\n"
    "loss = sum(v) + sum(rows[3] * rows[5])\n",
    "a big one, then small ones": "import torch\nx = torch.linspace(0, 1, 40000)\n"
    "print((x.exp() * 2).sum().item())\nc = torch.ones(8, 1)\nr = torch.ones(1, 8) / 2\n"
    "for i in range(12):\n    y = (c * r - r).tanh() + c\n    print(y.sum().item())\n"
    "    r = y[:1]\n",
    "products": "X = const(ones(256, 512)); W = ones(512, 512).requires_grad_()\n"
    "V = ones(512, 10).requires_grad_(); h = relu(X @ W); loss = mean((h @ V) ** 2)\n",
    "small": "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n",
    "convolutions": "import torch\nx = torch.ones(8, 4, 64, 64)\n"
    "w = torch.ones(2, 4, 3, 3).requires_grad_()\n"
    "loss = torch.nn.functional.conv2d(x, w).relu().sum()\nloss.backward()\n",
    "pictures": "import torch\nx = torch.ones(2, 1, 12, 12).requires_grad_()\n"
    "w = torch.ones(2, 1, 3, 3).requires_grad_()\nF = torch.nn.functional\n"
    "F.max_pool2d(F.conv_transpose2d(F.conv2d(x, w), w), 2).sum().backward()\n",
    "several statements": "y = 0\nfor i in range(3):\n    x = ones(200, 200) * i\n"
    "    z = exp(x) + x.sum(0)\n    y = y + z.sum().item()\nloss = [1.0, 2] @ [2.0, y]\n",
    "single numbers": "x = 0.5\ny = x\nfor i in range(450):\n"
    "    y = y * 0.5 + sin(x) - y / 3\nloss = y\n",
    "more nodes than a plan": "x = [0.5, 1]\ny = x\nfor i in range(450):\n"
    "    y = y * 0.5 + sin(x) - y / 3\nloss = sum(y)\n",
    "a network over time": "import torch\ntorch.manual_seed(1)\nU = torch.ones(8, 8) / 8\n"
    "W = (torch.eye(8) / 2).requires_grad_()\n"
    "h = torch.zeros(8)\nfor i in range(40):\n    h = torch.tanh(W @ h + U[i % 8])\n"
    "    if i == 9:\n        print(h.sum().item())\n"
    "h.sum().backward()\nprint(W.grad.sum().item())\n",
    "steps of a network over time": "import torch\n"
    "W = (torch.eye(8) / 2).requires_grad_()\nfor step in range(6):\n    h = torch.ones(8)\n"
    "    for i in range(12):\n        h = torch.tanh(W @ h + 0.1)\n    h.sum().backward()\n"
    "    print(W.grad.sum().item())\n    with torch.no_grad():\n"
    "        W -= 0.1 * W.grad\n        W.grad = None\n",
    "memory": "x = ones(300, 1000).requires_grad_()\nfor i in range(4):\n    y = exp(x) * i\n"
    "    print(y.sum().item())\nloss = sum(y.T @ y)\n",
    "a plan that fails": "import torch\nx = torch.linspace(0, 1, 40000).reshape(2, 20000)\n"
    "i = (x * 20000).long()\nf = torch.vmap(lambda x, i: (x.exp() * 2).gather(0, i).sum())\n"
    "try:\n    print(f(x, i))\nexcept RuntimeError as e:\n    print(e)\n",
    **{f"steps of {name}": SGD.format(call) for name, call in (
        ("SGD", "SGD(model.parameters(), lr=0.1)"),
        ("momentum", "SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)"),
        ("Adam", "Adam(model.parameters(), lr=0.01, amsgrad=True)"),
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", LONGER)
def test_ways_of_longer_programs(
    name: str, told: list[str], request: pytest.FixtureRequest
) -> None:
    assert run(Source(LONGER[name], "p.py"), Options(write=str)).error is None
    compare(request, brief(told))


def unit_text(unit: GroupPlan | KernelPlan) -> str:
    """All that a part of a plan says of itself."""
    time = f"{unit.seconds * 1e9:.5g} nanoseconds, {unit.threads} threads"
    costs = f"{unit.bytes} bytes, {unit.flops} flops, {time}"
    if isinstance(unit, KernelPlan):
        pieces = f"{unit.op} {unit.shape} {unit.dtype} in {unit.parts} parts, blas {unit.blas}"
        return f"{pieces}, {costs}: {piece_text(unit.piece)}"
    arrays = (*unit.inputs, *unit.buffers, *unit.outputs)
    listed = ", ".join(f"{x.name} {x.shape} {x.dtype} {x.bytes}" for x in arrays)
    pieces = "; ".join(map(piece_text, unit.pieces))
    tiles = f"{unit.rows} rows of {unit.row} in {unit.tiles} tiles of {unit.tile}"
    return f"{unit.nodes} nodes, {tiles}, {costs}: {pieces}\n{listed}\n{unit.source}"


def piece_text(piece: Piece) -> str:
    return f"{piece.span.text!r} {'backward ' * piece.backward}{' '.join(piece.ops)}"


@pytest.mark.parametrize(
    "name", [name for name in LONGER if "450" not in LONGER[name] and "steps" not in name]
)
def test_what_plans_and_profiles_say(
    name: str, told: list[str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blas, "MANAGED", True)
    report = run(Source(LONGER[name], "p.py"), Options(write=str, plan=True, profile=True))
    plan, profile = report.plan, report.profile
    assert plan is not None and profile is not None
    lines = sorted(
        f"{line.calls} calls, {line.bytes} bytes: {line.span.text!r} {'backward' * line.backward}"
        for line in profile.lines
    )
    whole = f"{plan.bytes} bytes, {plan.flops} flops, {plan.seconds * 1e9:.5g} nanoseconds"
    compare(request, ["\n".join([
        f"{plan.how} of {plan.inputs} to {plan.results}, {whole}, {plan.peak} at a time",
        f"{profile.evaluations} evaluations", *map(unit_text, plan.units), *lines,
    ])])  # fmt: skip
