"""Runs do not see each other: in threads, inside of one another, and the process they run in."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import autodiff_cli as ad
from autodiff_cli.checks.deadline import deadline
from autodiff_cli.repl.interactive import Interactive
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

TRAINED = """\
import random
import numpy as np
import torch
import torch.nn as nn
torch.manual_seed(SEED)
random.seed(SEED)
np.random.seed(SEED)
torch.set_default_dtype(torch.float64 if SEED % 2 else torch.float32)
model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x = torch.randn(6, 3, requires_grad=True)
seen = []
x.register_hook(lambda g: seen.append(g.sum().item()))
with torch.autograd.set_detect_anomaly(SEED == 1):
    for i in range(3 + SEED):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        print(i, loss.item(), len(seen), random.random(), np.random.rand())
with torch.no_grad():
    print(torch.func.vmap(torch.func.grad(lambda row: (row ** 3).sum()))(x)[0], torch.rand(2))
try:
    raise KeyError(SEED)
except KeyError as error:
    print(repr(error))
"""
PROGRAMS: list[tuple[str, dict[str, Any]]] = [
    *((TRAINED.replace("SEED", str(seed)), {}) for seed in range(3)),
    ("A = [1, 2, 3]\nprint(A + A)\nloss = sum(A * A)", {}),
    ("def f(n):\n  return f(n + 1)\nx = 2.0\nloss = f(0) * x", {"max_depth": 40}),
    ("x = 2.0\nwhile True:\n  x = x + 1", {"max_steps": 300}),
    (
        "import torch\nx = torch.zeros(2, requires_grad=True)\n"
        "with torch.autograd.detect_anomaly():\n    (x / x).sqrt().sum().backward()",
        {},
    ),
    ("x = [1.0, 2.0]\nloss = sum(x * k)", {"defines": (("k", "7", True),)}),
]


def outcome(program: tuple[str, dict[str, Any]]) -> str:
    """What a program does, as one text."""
    try:
        found = ad.run(program[0], **program[1])
    except ad.AutodiffError as error:
        return f"{error.code} {error.message}"
    tensors = {
        name: (tensor["dtype"], tensor["value"].tolist(), str(tensor["grad"]))
        for name, tensor in found["tensors"].items()
    }
    return f"{found['stdout']} {tensors}"


def test_threads_run_different_programs() -> None:
    """Seeds, dtypes, hooks, anomaly mode, limits, defines and handled exceptions are of a run."""
    f = ad.value_and_grad("y = tanh(x * k)\nloss = sum(y * y)", wrt="x")
    x = np.linspace(-1, 1, 5)
    slopes = {k: f(x=x, k=np.array(k))[1] for k in (1.0, 2.0, 3.0)}
    wanted = [outcome(program) for program in PROGRAMS]
    wrong: list[Any] = []

    def work(start: int) -> None:
        for at in range(len(PROGRAMS)):
            at = (at * 3 + start) % len(PROGRAMS)
            found = outcome(PROGRAMS[at])
            if found != wanted[at]:
                wrong.append((at, found))
            k = float(start + 1)
            if not np.array_equal(f(x=x, k=np.array(k))[1], slopes[k]):
                wrong.append(("call", k))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        team = [threading.Thread(target=work, args=(start,)) for start in range(3)]
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert [text[:4] for text in wanted[4:7]] == ["E507", "E506", "E501"]


def test_runs_inside_of_a_run() -> None:
    """What a program prints is written by a function that runs others: a session, a check, calls,
    one that ends at a limit."""
    f = ad.value_and_grad("loss = sum(x * x * x)", wrt="x")
    session = Interactive(Options(), lambda piece: None)
    inner: list[Any] = []

    def write(piece: str) -> None:
        inner.append([outcome(PROGRAMS[at]) for at in (3, 4, 5, 6)])
        inner[-1].append(f(x=np.arange(3.0))[1].tolist())
        checked = ad.check("x = [1, 2]\nloss = sum(x * x)  #=> 5.0")
        inner[-1].append([item.status for item in checked.items])
        with pytest.raises(ad.AutodiffError, match="`y`"):
            session.run_text(Source("y", "<session>"))
        session.run_text(Source("a = [2.0, 3.0]" if len(inner) < 2 else "a = a * 2", "<session>"))

    alone = outcome(PROGRAMS[1])
    assert outcome((PROGRAMS[1][0], {"write": write})) == alone
    assert len(inner) == 6
    assert all(found == inner[0] for found in inner)
    assert inner[0][:4] == [outcome(PROGRAMS[at]) for at in (3, 4, 5, 6)]
    assert inner[0][4] == [0.0, 3.0, 12.0]
    assert inner[0][5] and set(inner[0][5]) <= {"passed"}
    count = len(inner) - 1
    assert session.scope.names["a"].numpy().tolist() == [2.0 * 2**count, 3.0 * 2**count]


def test_what_writing_raises_is_no_mistake_of_the_program() -> None:
    with pytest.raises(TypeError, match="bytes"):
        ad.run("print(1)", write=lambda piece: b"" + piece)


def test_the_process_is_as_it_was() -> None:
    def handler(number: int, frame: Any) -> None:
        raise AssertionError("the timer is a minute away")

    before = signal.signal(signal.SIGALRM, handler)
    limit = sys.getrecursionlimit()
    signal.setitimer(signal.ITIMER_REAL, 60, 7)
    try:
        for program in PROGRAMS:
            outcome(program)
        ad.check("x = [1, 2]\nloss = sum(x * x)", timeout=30)
        with pytest.raises(ad.AutodiffError, match="100"), deadline(100), deadline(200):
            with pytest.raises(ad.AutodiffError, match=r"0\.01"), deadline(0.01):
                while True:
                    pass
            signal.raise_signal(signal.SIGALRM)
        rest, again = signal.getitimer(signal.ITIMER_REAL)
        assert 50 < rest <= 60
        assert again == 7
        assert signal.getsignal(signal.SIGALRM) is handler
        assert sys.getrecursionlimit() == limit
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_is_set_in_a_try_stays_set() -> None:
    """As PyTorch prints it: an exception that is caught does not turn gradients on again."""
    text = """
import torch
try:
    torch.set_grad_enabled(False)
    raise ValueError("x")
except ValueError:
    print(torch.is_grad_enabled())
print(torch.is_grad_enabled())
"""
    assert ad.run(text)["stdout"] == "False\nFalse\n"


def test_numbers_that_overflow_bring_no_words_of_numpy() -> None:
    text = (
        "import torch, numpy as np\nprint(torch.tensor([1e300, 1.0], dtype=torch.float32))\n"
        "a = np.array([])\nfound = np.mean(a), a.std(), np.log(np.array([-1.0])), np.nanmean(a)\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(Source(text, "program.py"), Options()).stdout == "tensor([inf, 1.])\n"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (
            "x = [1.0, 2.0], *([3.0], 4.0)\nprint(x, approx([1.5]))\n",
            "([1.0, 2.0], [3.0], 4.0) approx([1.5])\n",
        ),
        ("print(sin, len, nn)\n", "<function sin> <function len> <namespace nn>\n"),
        ("x = const([1.0])\nprint(x is x, sin is sin, x is sin)\n", "True True False\n"),
        ("\ufeffx = [1.0, 2.0]\nprint(sum(x).item())\n", "3.0\n"),
        ("\ufeff\n# of a pair\nx = [1.0, 2.0]\nprint(sum(x).item())\n", "3.0\n"),
    ],
    ids=range(5),
)
def test_native_programs_that_print(text: str, printed: str) -> None:
    report = run(Source(text, "program.expr"), Options(backward=False))
    assert (report.error, report.stdout) == (None, printed)
