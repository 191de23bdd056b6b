"""The loop fed with text: values, errors that keep the session, prompts that were pasted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.repl.complete import candidates
from autodiff_cli.repl.hints import hint
from tests.repl.conftest import Session

DEMO = ["A = [[1, 2], [3, 4]]", "B = [[1, 1], [1, 1]]", "loss = sum((A + B) * A)"]

SHOWN = [
    ("A = [[1, 2], [3, 4]]", "A  (2, 2)\n"),
    ("n = 3", "n  3\n"),
    ("loss = sum([1.0, 2.0] * 3)", "loss  9\n"),
    ("a, b = 1, 2", "a  1\nb  2\n"),
    ("s = 'text'", "s  'text'\n"),
    ("xs = [1, 'a']", "xs  list of 2\n"),
    ("2 + 3", "5\n"),
    ("[1, 2] * tensor([2.0, 2.0])", "[2, 4]\n"),
    ("tensor([[1.0, 2.0], [3.0, 4.5]])", "[[1  , 2  ],\n [3  , 4.5]]\n"),
    ("sum([1.0, 2.0] * const(1.5))", "4.5\n"),
    ("print('hello', 3)", "hello 3\n"),
    ("'text'", "'text'\n"),
    ("None", ""),
    ("", ""),
    ("# a comment", ""),
    ("x = 1; x + 1", "2\n"),
    ("def f(x, y):\n  return x * y\n\n", "f  function(x, y)\n"),
    ("for i in range(2):\n  print(i)\n\n", "0\n1\ni  1\n"),
    ("x = tensor([1, 2], dtype=torch.int64)", "x  (2,) int64\n"),
]


@pytest.mark.parametrize(("text", "output"), SHOWN, ids=[text[:30] for text, _ in SHOWN])
def test_output(session: Any, text: str, output: str) -> None:
    assert session(text) == output


INCOMPLETE = [
    "x = [1,",
    "def f(x):",
    "def f(x):\n  return x",
    "for i in range(3):\n  print(i)\n",
    "f(1,\n  2",
    "x = 1 + \\",
    'text = """abc',
    "ad> x = [1,",
]


@pytest.mark.parametrize("text", INCOMPLETE)
def test_incomplete(session: Any, text: str) -> None:
    assert session.loop.feed(text).status == "incomplete"
    assert not session.loop.session.entries


FAILING = [
    ("C = A @ [1, 2, 3]", "E301"),
    ("x = A + [1, 2, 3]", "E302"),
    ("undefined + 1", "E201"),
    ("reul(A)", "E202"),
    ("A = 1; B = undefined", "E201"),
    ("d = {}; d[0] = 9; undefined_function(1)", "E202"),
    ("with no_grad():\n  A *= 2\n  A @ [1, 2, 3]\n\n", "E301"),
    ("for i in range(3):\n  A = A * 2\n  A[7]\n\n", "E305"),
    ("x = 1 / 0", "E504"),
    ("y = A +* 2", "E102"),
    ("y = A)", "E102"),
    ("linalg.inv(zeros(2, 2))", "E503"),
    ("z = linalg.inv(zeros(2, 2))", "E503"),
    ("assert A[0, 0] == 2", "E601"),
    ("ones(10**9, 8)", "E505"),
    ("load('nothing.npy')", "E701"),
    ("load('../nothing.npy')", "E704"),
    ("import ctypes", "E209"),
    ("raise ValueError('no')", "E212"),
    ("def f(n):\n  return f(n)\nf(1)\n\n", "E507"),
    ("A.grd", "E207"),
    ("del nothing", "E201"),
]


@pytest.mark.parametrize(("text", "code"), FAILING, ids=[text[:30] for text, _ in FAILING])
def test_errors_keep_the_session(session: Any, text: str, code: str) -> None:
    for line in DEMO:
        session(line)
    before = session.state()
    output = session.fails(text)
    assert f"error[{code}]" in output
    assert session.state() == before
    assert len(session.loop.session.entries) == len(DEMO)
    assert "40" in session("loss")


def test_frames_show_the_statement(session: Any) -> None:
    session(DEMO[0])
    output = session.fails("C = A @ [1, 2, 3]")
    assert " --> <repl>:1:" in output
    assert "1 | C = A @ [1, 2, 3]" in output


def test_last_value(session: Any) -> None:
    session("2 + 3")
    session("_ * 2")
    session.fails("undefined")
    assert session("_") == "10\n"


PASTED = [
    ("ad> x = 2", "x  2\n"),
    (">>> x = 2", "x  2\n"),
    ("In [3]: x = 2", "x  2\n"),
    ("ad> C = [[1, 2],\n ..      [3, 4]]", "C  (2, 2)\n"),
    (">>> def f(x):\n...     return x\n...\n>>> f(2)", "2\n"),
    ("In [1]: def f(x):\n   ...:     return x\n   ...:\n\nIn [2]: f(3)", "3\n"),
    ("ad> x = 2\nx  2\nad> x + 1\n3", "3\n"),
    (">>> def f(x):\n...     return x\n>>> f(2)", "2\n"),
    ("ad> :list", "there are no names yet\n"),
]


@pytest.mark.parametrize(("text", "output"), PASTED, ids=[text[:12] for text, _ in PASTED])
def test_pasted_prompts(session: Any, text: str, output: str) -> None:
    assert session(text) == output


def test_text_without_a_first_prompt_is_left_alone(session: Any) -> None:
    assert session("x = 1\n") == "x  1\n"
    assert "E102" in session.fails("x = 1\n>>> y = 2")


def test_caret_offers_the_corrected_line(session: Any) -> None:
    session("x = [1.0, 2.0]")
    reply = session.loop.feed("y = sum(x^2 + x^3)")
    assert reply.status == "error"
    assert "E105" in reply.output
    assert reply.suggestion == "y = sum(x**2 + x**3)"
    assert session(reply.suggestion) == "y  14\n"


def test_percent_is_not_for_commands(session: Any) -> None:
    assert "did you mean `:list`?" in session.fails("%list")
    assert "did you mean `:time`?" in session.fails("%tim A @ B")
    assert ":help" in session.fails("%xyzzy")


def test_python_session(session: Any) -> None:
    assert "a Python session" in session("import torch")
    session("x = torch.tensor([1., 2.], requires_grad=True)")
    session("y = (x * x).sum()")
    assert session("x.grad") == ""
    session("y.backward()")
    assert session("x.grad") == "tensor([2., 4.])\n"
    assert session("a = [1, 2]") == "a  list of 2\n"
    assert session("x") == "tensor([1., 2.], requires_grad=True)\n"


def test_import_in_a_native_session(session: Any) -> None:
    session("A = [1.0, 2.0]")
    assert "without import" in session("import torch")
    assert session("B = [1.0]") == "B  (1,)\n"
    assert session("torch.sum(A)") == "3\n"


def test_names_that_appear_while_an_entry_runs(session: Any) -> None:
    session("def f():\n  global z\n  z = 3\n\n")
    assert session("f(); z + 1") == "4\n"
    assert session("y = z") == "y  3\n"


def test_gradient_is_of_the_loss_there_is(session: Any) -> None:
    session("x = [1.0]")
    assert session("print(x.grad)") == "None\n"
    session(":undo")
    for line in DEMO:
        session(line)
    assert session("A.grad") == "[[3, 5],\n [7, 9]]\n"
    session("loss = sum(A)")
    assert session("A.grad") == "[[1, 1],\n [1, 1]]\n"
    session("assert A.grad == [[1, 1], [1, 1]]")
    assert session("A.grad[0] + A.grad[1]") == "[2, 2]\n"


def test_not_finite(session: Any) -> None:
    session("x = [-1.0, 4.0]")
    output = session("y = sqrt(x)")
    assert "y  (2,)" in output
    assert "warning[W501]" in output
    assert "help: `sqrt(clamp(x, min=1e-12))` stays finite" in output
    session(":set nan error")
    output = session.fails("z = sqrt(x)")
    assert "error[E501]" in output
    assert "z  (2,)" not in output
    session.fails("z")
    session(":set nan ignore")
    assert session("z = sqrt(x)") == "z  (2,)\n"


def test_output_is_written_as_it_comes(make_session: Callable[..., Any]) -> None:
    pieces: list[str] = []
    session = make_session(write=pieces.append)
    output = session("for i in range(3):\n  print(i)\n\n")
    assert pieces[:3] == ["0\n", "1\n", "2\n"]
    assert "".join(pieces) == output


def test_ascii_terminal(make_session: Callable[..., Any]) -> None:
    session = make_session(encoding="ascii")
    session("x = [1.0, 2.0]")
    assert session("print('→ é')") == "> \\xe9\n"
    assert session.fails("x + 'é'").isascii()
    assert session(":help").isascii()


@pytest.mark.parametrize("width", [30, 44, 80, 120])
def test_lines_fit_the_width(make_session: Callable[..., Any], width: int) -> None:
    session = make_session(width=lambda: width)
    for line in DEMO:
        session(line)
    for command in (":help", ":set", ":list", ":grad", ":info A", "A"):
        lines = session(command).splitlines()
        assert max(map(len, lines)) <= width, command


def test_interrupt_leaves_the_session(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import signal
    import threading

    for line in DEMO:
        session(line)
    session("with no_grad():\n  A[0] = 5\n\n")
    before = session.state()
    timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    reply = session.loop.feed("while True:\n  A = A + 0\n  with no_grad():\n    B += 1\n\n")
    timer.join()
    assert reply.status == "error"
    assert "interrupted" in reply.output
    assert session.loop.code == 130
    assert session.state() == before


# An exception that Python drops is what the test is about: pytest tells of each.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("noticed", [True, False])
def test_an_interrupt_where_exceptions_are_dropped_is_not_lost(
    session: Any, monkeypatch: pytest.MonkeyPatch, noticed: bool
) -> None:
    import gc
    import signal
    from contextlib import suppress

    from autodiff_cli.repl import interrupts

    raised: list[str] = []

    def callback(phase: str, info: dict[str, int]) -> None:
        running = getattr(signal.getsignal(signal.SIGINT), "__name__", "") == "interrupt"
        if running and not raised:
            raised.append(phase)
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
                for _ in range(100):  # signals are looked at when a loop goes back
                    len(phase)

    if not noticed:
        monkeypatch.setattr(interrupts, "delicate", lambda frame: False)
    session("A = [1, 2]")
    others, gc.callbacks[:] = gc.callbacks[:], [callback]  # Hypothesis has one, which is not ours
    before = gc.get_threshold()
    gc.set_threshold(100)
    try:
        reply = session.loop.feed("while True:\n  A = A + 0\n\n")
    finally:
        gc.callbacks[:] = others
        gc.set_threshold(*before)
    assert raised
    assert "interrupted" in reply.output
    assert session.loop.code == 130


def test_sessions_do_not_disturb_each_other(make_session: Callable[..., Any]) -> None:
    native, python = make_session(), make_session()
    native("x = [1.0, 2.0]")
    python("import torch")
    native("torch.manual_seed(1)")
    python("y = torch.tensor([1.0])")
    assert native("z = [3.0]") == "z  (1,)\n"
    assert python("z = [3.0]") == "z  list of 1\n"
    assert python("y.dtype") == "torch.float32\n"


def test_a_fault_of_the_program_keeps_the_session(
    make_session: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from autodiff_cli.errors import Diagnostic
    from autodiff_cli.repl import interactive

    session = make_session(crashed=lambda error: Diagnostic("E900", f"a fault: {error}"))
    session("x = [1.0, 2.0]")
    before = session.state()
    with monkeypatch.context() as patched:
        patched.setattr(interactive, "compile_block", lambda *given: 1 // 0)
        assert "error[E900]: a fault" in session.fails("y = x + 1")
    assert session.state() == before
    assert session("y = x + 1") == "y  (2,)\n"


WORDS = [
    "A", "B", "x", "loss", "f(", "(", ")", "[", "]", "[1,", "2.0]", "=", "==", "+", "-", "*",
    "@", "**", "^", ",", ";", ":", ".", ".grad", ".T", ".sum()", ".add_(1)", ":undo", ":redo",
    ":grad", ":list", ":info", ":set", ":time", ":save", ":load", ":jac", "sum(", "for", "if",
    "def", "in", "range(3)", "\\n", "\\n\\n", "\\t", "#", "'", "\"", "with", "no_grad():",
    "lambda", "return", "_", "?", "%x", "é", "\x00", "\x1b", "rand(2)", "load('x')", "import",
    "torch", "del", "1e999", "-1",
]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=8), max_size=4))
def test_whatever_is_typed(inputs: list[list[str]]) -> None:
    session = Session(tool=None)
    session("A = [[1.0, 2.0], [3.0, 4.0]]")
    for words in inputs:
        text = " ".join(words).replace("\\n", "\n").replace("\\t", "\t")
        if ":save" in text:
            continue
        before = session.state()
        hint(text, len(text), session.loop)
        candidates(text, session.loop)
        assert session.state() == before
        reply = session.loop.feed(text)
        assert reply.status in ("ok", "error", "incomplete")
        if reply.status != "ok":
            assert session.state() == before


def test_long_sessions_stay_quick(session: Any) -> None:
    """Calls, of Python's functions and those of C, do not grow."""
    session(":set echo none")
    calls = 0

    def count(*event: object) -> None:
        nonlocal calls
        calls += 1

    def lines(first: int, last: int) -> int:
        nonlocal calls
        calls = 0
        sys.setprofile(count)
        try:
            for n in range(first, last):
                session(f"x{n} = {n} * 2")
        finally:
            sys.setprofile(None)
        return calls

    early = lines(0, 60)
    lines(60, 240)
    assert lines(240, 300) < 1.1 * early
    session(":undo 200")
    assert len(session.state()) == 100


class Visited(list[Any]):
    """Counts how many of its items were looked at."""

    visits = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            self.visits += 1
            yield item

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.visits += len(found) if isinstance(at, slice) else 1
        return found


INPUTS = ["x = [1, 2]", "x + 1", "y{n} = _ * 2", "def f{n}(z):\n  return f{m}(z)\n\n", "x += 1"]


def test_an_input_looks_at_no_other(session: Any) -> None:
    """What is entered is not gone through again for each input, nor for each listed line."""
    session.loop.session.entries = visited = Visited()
    session("1 + 1")
    for n in range(180):
        session(INPUTS[n % 5].format(n=n, m=n - 5))
    assert visited.visits < 20 * 180
    visited.visits = 0
    for command, most in ((":list defs", 1), (":undo 9", 3), (":redo 9", 1)):
        session(command)
        assert visited.visits <= most * (len(visited) + 9)
        visited.visits = 0


def test_functions_that_call_one_another(session: Any) -> None:
    session("def f0(z):\n  return z * 2\n\n")
    for first in range(1, 700, 10):
        session(
            "".join(f"def f{n}(z):\n  return f{n - 1}(z)\n\n" for n in range(first, first + 10))
        )
    assert session("f700(21)") == "42\n"
    session("seen = []")
    session("def f0(z):\n  seen.append(z)\n\n")
    session("f700(21)")
    assert session("seen") == "[21]\n"
    session(":undo")
    assert session("seen") == "[]\n"
