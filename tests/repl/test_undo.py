"""Undo and redo are exact, whatever a statement changed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.repl.conftest import Session
from tests.together import together

SETUP = [
    "A = [[1.0, 2.0], [3.0, 4.0]]",
    "b = const([1.0, 2.0])",
    "xs = [A, 2, [3]]",
    "d = {'a': 1}",
    "n = 3",
    "def f(t):\n  return t * n + sum(b)\n\n",
    "def change(t):\n  t += 1\n  return t\n\n",
    "class Net(nn.Module):\n  def __init__(self):\n    super().__init__()\n"
    "    self.lin = nn.Linear(2, 1)\n  def forward(self, x):\n    return self.lin(x)\n\n",
    "net = Net()",
    "opt = optim.SGD(net.parameters(), lr=0.1)",
    "v = b[1:]",
    "it = torch.Generator()",
    "loss = sum((A @ b) ** 2)",
]

# Each changes something, in its own way.
CHANGES = [
    "n = 4",
    "n += 1",
    "A = A * 2",
    "del d",
    "b[0] = 7",
    "b *= 2",
    "b += 1",
    "v[0] = 9",
    "b.add_(1)",
    "b.zero_()",
    "change(b)",
    "change(v)",
    "xs.append(1)",
    "xs[2].append(4)",
    "xs[0] = 5",
    "xs += [1]",
    "d['b'] = 2",
    "d.update(a=5)",
    "d.pop('a')",
    "A.grad",
    "loss.backward()",
    "loss = sum(A * A)",
    "with no_grad():\n  A *= 2\n\n",
    "with no_grad():\n  A[0, 0] = 9.0\n\n",
    "A.requires_grad_(False)",
    "A.data[0] = 5",
    "torch.manual_seed(5)",
    "r = rand(2)",
    "r = randn_like(b)",
    "q = dropout(b, 0.5, True)",
    "it.manual_seed(3)",
    "r = rand(2, generator=it)",
    "net(b).sum().backward(); opt.step()",
    "opt.zero_grad()",
    "net.train(False)",
    "net.lin.weight = nn.Parameter(ones(1, 2))",
    "nn.init.zeros_(net.lin.weight)",
    "torch.set_grad_enabled(False)",
    "torch.set_default_dtype(torch.float32)",
    "for i in range(3):\n  b = b + i\n  d[i] = b\n\n",
    "[x.append(2) for x in [xs]]",
    "list(map(change, [b]))",
    "y = exp(b); y[0] = 3.0; b = y",
    "import numpy as np; w = np.ones(2)",
    "def f(t):\n  return t\n\n",
    "z, *rest = [b, 1, 2]",
    "h = A.register_hook(lambda g: g * 2)",
    "s = A.sum(); s.retain_grad(); s.backward()",
    "setattr(net, 'k', 3)",
]


def started() -> Session:
    session = Session()
    for line in SETUP:
        session(line)
    return session


kept = cache(started)


def seen(session: Session) -> tuple[Any, ...]:
    """The names, and what the next statements would give."""
    state = session.state()
    probes = ["rand(2)", "f(b)", "tensor([1.0]).dtype", "(A * 1).requires_grad", "net(b)",
              "rand(1, generator=it)"]  # fmt: skip
    answers = []
    for probe in probes:
        answers.append(session(probe))
        if not session.loop.session.entries[-1].looks:
            session(":undo")
    return state, answers


# Whether the names they bind are all that they change: these are undone without running anything.
ONLY_NAMES = [
    ("n += 1", True),
    ("n += xs.pop()", False),
    ("b += 1", False),
    ("for i in range(3):\n  n = n + i\n\n", True),
    ("for xs[0] in [1, 2]:\n  n = 2\n\n", False),
    ("y = fact(3)", True),
    ("y = own + 1", False),
    ("y = [sum][0](b)", False),
    ("y = wrapped(b)", False),
    ("y = b.T.sum() + b[0].sum() + xs[0]", True),
    ("y = xs.pop()", False),
    ("y = d['x'].sum()", False),
    ("y = b.bernoulli()", False),
    ("y = own.b.sum()", False),
]


@pytest.mark.parametrize(("change", "only"), ONLY_NAMES, ids=[c for c, _ in ONLY_NAMES])
def test_what_only_binds_names(session: Any, change: str, only: bool) -> None:
    for line in ["import torch", "b = torch.tensor([0.25, 0.5])", "n = 3", "xs = [4, 5]",
                 "d = {'x': b}", "def fact(n):\n  return n * fact(n - 1) if n > 1 else 1\n\n",
                 "@torch.no_grad()\ndef wrapped(t):\n  return t.add_(1)\n\n",
                 "class Own:\n  b = b\n  def __add__(self, other):\n    return b.zero_()\n\n",
                 "own = Own()"]:  # fmt: skip
        session(line)
    before = session.state()
    session(change)
    assert session.loop.session.entries[-1].pure is only
    session(":undo")
    assert session.state() == before


@together(CHANGES, group=len(CHANGES))
def test_undo_and_redo_one(change: str) -> None:
    """Of one session, which is as it was before the next."""
    session = kept()
    before = session.state()
    reply = session.loop.feed(change)
    assert reply.status == "ok", reply.output
    after = session.state()
    if session.loop.session.entries[-1].looks:
        session(":undo")
        session(":redo")
        assert session.state() == before
        return
    session(":undo")
    assert session.state() == before
    session(":redo")
    assert session.state() == after
    session(":undo")


@pytest.mark.parametrize(
    "change",
    ["torch.manual_seed(5)", "r = rand(2, generator=it)", "torch.set_grad_enabled(False)",
     "torch.set_default_dtype(torch.float32)", "r = F.dropout(b)"],
)  # fmt: skip
def test_undo_of_what_no_name_shows(change: str) -> None:
    session = started()
    before = seen(session)
    session(change)
    session(":undo")
    assert seen(session) == before


def test_a_backward_that_was_undone_can_run_again(session: Any) -> None:
    session("x = [1.0, 2.0]")
    session("loss = sum(x * x)")
    session("loss.backward()")
    assert "E406" in session.fails("loss.backward()")
    session(":undo")
    assert session(":grad") == "x.grad  [2, 4]\n"
    session("loss.backward()")
    assert session("x.grad") == "[2, 4]\n"


def test_gradients_are_of_the_last_number_that_is_still_there(session: Any) -> None:
    for line in ("x = [1.0, 2.0]", "a = sum(x * x)", "b = sum(3 * x)"):
        session(line)
    assert session(":grad") == "x.grad  [3, 3]\n"
    session(":undo")
    assert session(":grad") == "x.grad  [2, 4]\n"


def test_looking_is_no_step_and_keeps_redo(session: Any) -> None:
    session("x = 1")
    session("x = 2")
    session("x + 1")
    assert session(":undo") == "undone: x = 2\n"
    assert session("x") == "1\n"
    assert session(":redo") == "redone: x = 2\n"
    assert session("x") == "2\n"
    session(":undo 2")
    session("y = 5")
    assert "nothing to redo" in session.fails(":redo")


def test_what_was_changed_through_another_name_is_undone_for_both(session: Any) -> None:
    for line in ("x = const([1, 2])", "y = x", "x = 5", "y.add_(1)", ":undo", ":undo"):
        session(line)
    assert session("x") == session("y") == "[1, 2]\n"


def test_undo_counts(session: Any) -> None:
    assert "nothing to undo" in session.fails(":undo")
    for n in range(5):
        session(f"x{n} = {n}")
    assert session(":undo 3").splitlines() == ["undone: x4 = 4", "undone: x3 = 3", "undone: x2 = 2"]
    assert list(session.state()) == ["x0", "x1"]
    assert len(session(":redo 99").splitlines()) == 3
    assert "takes a number" in session.fails(":undo x")
    assert "takes a number" in session.fails(":undo -1")


def test_what_was_taken_back_of_an_empty_session_stays_there(session: Any) -> None:
    session("x = 1")
    session(":reset")
    session("y = 2")
    session(":undo")
    session(":undo")
    assert session("x") == "1\n"
    assert "nothing to redo" in session.fails(":redo")


def test_files_that_changed_do_not_change_the_past(session: Any) -> None:
    np.save("x.npy", np.array([1.0, 2.0]))
    session("x = load('x.npy')")
    session("y = x + 1")
    session("y[0] = 5.0")
    Path("x.npy").unlink()
    session(":undo")
    assert session("x + y") == "[3, 5]\n"
    assert "E701" in session.fails("x = load('x.npy')")


def test_a_failure_in_the_middle_of_a_change(session: Any) -> None:
    session("xs = []")
    session("b = const([1.0, 2.0])")
    session("def f(t):\n  t += 1\n  xs.append(2)\n  return t @ ones(3, 3)\n\n")
    before = session.state()
    assert "E301" in session.fails("f(b)")
    assert session.state() == before


@settings(max_examples=20)
@given(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=5))
def test_any_sequence(changes: list[str]) -> None:
    session = started()
    states = [session.state()]
    for change in changes:
        reply = session.loop.feed(change)
        entries = session.loop.session.entries
        if reply.status == "ok" and not entries[-1].looks:
            states.append(session.state())
        elif reply.status == "error":
            assert session.state() == states[-1], change
    while len(states) > 1:
        states.pop()
        session(":undo")
        assert session.state() == states[-1]
