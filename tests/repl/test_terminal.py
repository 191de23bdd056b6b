"""Keys in a real pseudo-terminal, shown by a terminal emulator. Every step waits for what it
expects to see, never for a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import pexpect
import pyte
import pytest

from tests.pace import PATIENCE, TRIES

UP, TAB, CTRL_C, CTRL_D, ENTER, ALT_ENTER = "\x1b[A", "\t", "\x03", "\x04", "\r", "\x1b\r"
RIGHT, CTRL_L = "\x1b[C", "\x0c"


class Terminal:
    """A command at a terminal of 80 by 24, and what its screen shows."""

    def __init__(self, folder: Path, *words: str, columns: int = 80, **variables: str):
        project = str(Path(__file__).resolve().parents[2])
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PYTHONPATH": project,
            "AUTODIFF_HISTORY": str(folder / "history"),
            **variables,
        }
        self.screen = pyte.HistoryScreen(columns, 24, history=1000)
        self.screen.write_process_input = self.answer
        self.stream = pyte.Stream(self.screen)
        self.child = pexpect.spawn(
            sys.executable, ["-m", "autodiff_cli", *words], env=environment, cwd=str(folder),
            dimensions=(24, columns), encoding="utf-8", echo=False,
        )  # fmt: skip
        self.child.delaybeforesend = None
        self.child.delayafterclose = 0

    def answer(self, data: str) -> None:
        """What a terminal sends back when it is asked where the cursor is."""
        self.child.send(data)

    def send(self, *keys: str) -> None:
        for key in keys:
            self.child.send(key)

    @property
    def text(self) -> str:
        lines = [line.rstrip() for line in self.screen.display]
        return "\n".join(lines).rstrip()

    def sees(self, text: str, times: int = 1) -> None:
        """Wait until the screen shows a text so often."""
        end = time.monotonic() + PATIENCE
        while self.text.count(text) < times:
            assert time.monotonic() < end, f"no {text!r} in\n{self.text}"
            self._read()

    def sees_no(self, text: str) -> None:
        end = time.monotonic() + PATIENCE
        while text in self.text:
            assert time.monotonic() < end, f"still {text!r} in\n{self.text}"
            self._read()

    def _read(self) -> None:
        try:
            self.stream.feed(self.child.read_nonblocking(65536, 0.1))
        except pexpect.TIMEOUT:
            pass
        except pexpect.EOF:
            time.sleep(0.01)

    def interrupt(self, text: str, times: int = 1) -> None:
        """Ctrl-C until the screen shows a text so often: Python's `input` does not notice one that
        comes after its prompt and before it reads."""
        end = time.monotonic() + PATIENCE
        while self.text.count(text) < times:
            assert time.monotonic() < end, f"no {text!r} in\n{self.text}"
            self.send(CTRL_C)
            self._read()

    def ready(self) -> None:
        """Wait for the next prompt: what is typed before it may get lost."""
        end = time.monotonic() + PATIENCE
        while not self.text.endswith(("ad>", "..")):
            assert time.monotonic() < end, f"no prompt in\n{self.text}"
            self._read()

    def enter(self, line: str, sees: str) -> None:
        """Type a line and wait for its answer and the next prompt."""
        self.send(line, ENTER)
        self.sees(sees)
        self.ready()

    def code(self) -> int:
        """The exit code, once the command has ended."""
        end = time.monotonic() + PATIENCE
        while self.child.isalive() and time.monotonic() < end:
            self._read()
        self.child.close()
        return int(self.child.exitstatus)

    def end(self) -> None:
        with suppress(OSError, pexpect.ExceptionPexpect):  # a test ended it
            if self.child.isalive():
                self.child.kill(signal.SIGKILL)
                self.child.wait()
            self.child.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    found = Terminal(folder)
    found.sees("ad>")
    yield found
    found.end()


def editor(folder: Path) -> Path:
    path = folder / "editor"
    path.write_text('#!/bin/sh\necho "added = 42" >> "$1"\n')
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("session")
    found = Terminal(folder, "repl", "-e", "x = 1", EDITOR=str(editor(folder)))
    found.sees("x  1")
    yield found
    found.end()


@pytest.fixture
def shared(session: Terminal) -> Terminal:
    """A session of several tests, that begins anew on an empty screen."""
    session.ready()
    session.enter(":set hint on", "hint on")
    session.enter(":reset", "the session is empty")
    session.send(CTRL_L)
    end = time.monotonic() + PATIENCE
    while session.text != "ad>":
        assert time.monotonic() < end, session.text
        session._read()
    return session


def test_several_lines_and_alt_enter(shared: Terminal) -> None:
    shared.send("C = [[1, 2],", ENTER)
    shared.sees("\n ..")
    shared.enter("[3, 4]]", "C  (2, 2)")
    shared.send("def f(x):", ENTER, "return x * 2", ENTER)
    shared.sees("\n ..", 3)
    shared.send(ENTER)
    shared.sees("f  function(x)")
    shared.ready()
    shared.send("x = 1", ALT_ENTER)
    shared.sees("\n ..", 4)
    shared.enter("y = f(x) + 7", "y  9")


def test_paste_is_one_entry(shared: Terminal) -> None:
    text = "ad> A = [1.0, 2.0]\nA  (2,)\nad> def f(t):\n ..   return t\n ..\nad> loss = sum(f(A))"
    shared.send(f"\x1b[200~{text}\x1b[201~")
    shared.sees("loss = sum(f(A))")
    shared.send(ENTER)
    shared.sees("loss  3")
    shared.enter(":undo", "undone: A = [1.0, 2.0] ...")
    shared.enter(":list", "there are no names yet")


def test_history_prefix_search_and_suggestion(terminal: Terminal, folder: Path) -> None:
    terminal.sees("names: none yet")
    terminal.enter("first = 11", "first  11")
    terminal.enter("second = 22", "second  22")
    terminal.enter("first + 1", "12")
    terminal.send("sec", UP)
    terminal.sees("second = 22", 2)
    terminal.send(ENTER)
    terminal.sees("second  22", 2)
    terminal.send("fir")
    terminal.sees("first + 1", 2)  # the grey suggestion
    terminal.send(RIGHT, ENTER)
    terminal.sees("\n12\n", 2)
    terminal.send(":quit", ENTER)
    assert terminal.code() == 0
    again = Terminal(folder)
    again.sees("ad>")
    again.send("sec", UP)
    again.sees("second = 22")
    again.send(CTRL_C)
    again.sees("ad>", 2)
    again.send(CTRL_D)
    assert again.code() == 0
    assert (folder / "history").read_text().count("+second = 22") >= 1


def test_completion(shared: Terminal) -> None:
    shared.enter("weights = [1.0, 2.0]", "weights  (2,)")
    shared.send("sum(wei", TAB)
    shared.sees("sum(weights")
    shared.send(")", ENTER)
    shared.sees("\n3\n")
    shared.enter("well = 4", "well  4")
    shared.send("4 * we", TAB)
    shared.sees("well     () float64")
    shared.send(TAB)
    shared.sees("4 * weights")
    shared.send(TAB)
    shared.sees("4 * well")
    shared.send(ENTER)  # takes what is marked, and runs nothing
    shared.sees_no("weights  (2,) float64")
    shared.send(" + 1", ENTER)
    shared.sees("\n17\n")
    shared.enter(":undo", "undone: well")
    shared.send(":und", TAB)
    shared.sees(":undo")
    shared.send(ENTER)
    shared.sees("undone: weights")


def test_the_hint_is_below_the_line_and_about_it(shared: Terminal) -> None:
    shared.enter("A = [[1, 2], [3, 4]]", "A  (2, 2)")
    shared.send("B = [[1, 2], [3, 4]]")
    shared.sees("(2, 2) float64   [[1, 2], [3, 4]]")
    line, hint = shared.text.split("\n")[-2:]
    assert line == "ad> B = [[1, 2], [3, 4]]" and hint.startswith(" ─ (2, 2)")
    shared.send(ENTER)
    shared.sees("B  (2, 2)")
    shared.sees_no("float64")


def test_live_hint(shared: Terminal) -> None:
    shared.enter("A = [[1, 2], [3, 4]]", "A  (2, 2)")
    shared.send("A + A")
    shared.sees("(2, 2) float64   [[2, 4], [6, 8]]")
    shared.send(" @ ones(3, 3)")
    shared.sees("needs matching inner sizes: (2, 2) @ (3, 3)")
    shared.send(CTRL_C)
    shared.enter(":list", "A  (2, 2)  float64 leaf")
    shared.enter(":set hint off", "hint off")
    shared.send("A - A")
    shared.sees("A - A")
    shared.send(ENTER)
    shared.sees("[[0, 0],")


def test_ctrl_c_never_leaves(shared: Terminal) -> None:
    shared.send("text that is not run")
    shared.sees("not run")
    shared.send(CTRL_C)
    shared.sees("ad>", 2)
    assert "to leave" not in shared.text
    shared.send(CTRL_C)
    shared.sees("Ctrl-D or :quit to leave")
    shared.enter("n = 5", "n  5")
    shared.send("print('go')", ALT_ENTER, "while True:", ENTER, "n = n + 1", ENTER, ENTER)
    shared.sees("\ngo")
    shared.send(CTRL_C)
    shared.sees("interrupted; the session is as it was")
    shared.ready()
    shared.enter("n", "\n5\n")


def test_the_corrected_line_is_offered(shared: Terminal) -> None:
    shared.enter("x = [1.0, 2.0]", "x  (2,)")
    shared.send("y = sum(x^2)", ENTER)
    shared.sees("error[E105]")
    shared.sees("ad> y = sum(x**2)")
    shared.send(ENTER)
    shared.sees("y  5")


def test_editor(shared: Terminal) -> None:
    shared.enter("x = 1", "x  1")
    shared.enter(":edit", "names: x")
    shared.enter("added + 0", "42")


def test_simple(folder: Path) -> None:
    (folder / "a.expr").write_text("A = [1.0, 2.0]\n")
    terminal = Terminal(folder, "repl", "a.expr", TERM="dumb", EDITOR=str(editor(folder)))
    terminal.sees("1 statement loaded")
    terminal.sees("names: A")
    terminal.enter("def f(x):", " ..")
    terminal.send("  return x * 2\n\n")
    terminal.sees("f  function(x)")
    terminal.enter("sum(f(A))", "6\n")
    terminal.send("[1,\n")
    terminal.sees(" ..", 3)
    terminal.interrupt("ad>", 4)
    terminal.interrupt("Ctrl-D or :quit")
    assert "\x1b" not in terminal.text
    terminal.enter("y = sum(A^2)", "try: y = sum(A**2)")
    terminal.enter(":edit", "names: A")
    terminal.enter("added", "42")
    terminal.send(":quit", ENTER)
    assert terminal.code() == 0


def test_narrow_without_colours_and_unwritable_history(folder: Path) -> None:
    (folder / "file").touch()
    terminal = Terminal(
        folder, columns=44, NO_COLOR="1", LANG="C", AUTODIFF_HISTORY=str(folder / "file" / "no")
    )
    terminal.sees("ad>")
    terminal.enter("A = [[1, 2], [3, 4]]", "A  (2, 2)")
    terminal.enter("loss = sum(A * A)", "loss  30")
    terminal.child.setwinsize(24, 30)
    terminal.screen.resize(24, 30)
    terminal.enter(":grad", "A.grad  [[2, 4],")
    terminal.enter("a_name_of_some_length = 11 + 22 + 33", "a_name_of_some_length  66")
    terminal.send(CTRL_D)
    assert terminal.code() == 0


def test_the_terminal_is_closed(terminal: Terminal) -> None:
    terminal.enter("n = 5", "n  5")
    pid: Any = terminal.child.pid
    os.close(terminal.child.child_fd)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, _ = os.waitpid(pid, os.WNOHANG)
        if done:
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("it still runs")


def test_the_prompt_comes_soon(folder: Path) -> None:
    """Not much later than what it needs of other packages is imported."""

    def ratio() -> float:
        start = time.monotonic()
        subprocess.run([sys.executable, "-c", "import numpy, prompt_toolkit"], check=True)
        bare = time.monotonic() - start
        terminal = Terminal(folder)
        terminal.sees("ad>")
        terminal.end()
        return (time.monotonic() - start - bare) / bare

    assert any(ratio() < 4 for _ in range(TRIES))


@pytest.mark.skipif(sys.platform != "linux", reason="supervised on Linux only")
@pytest.mark.parametrize("words", [(), ("--simple",)])
def test_a_session_outlives_its_process(folder: Path, words: tuple[str, ...]) -> None:
    """The input that killed the process is named; what was entered before is there again."""
    project = Path(__file__).resolve().parents[2]
    path = f"{project / 'tests' / 'fatal'}{os.pathsep}{project}"
    terminal = Terminal(folder, "repl", *words, AUTODIFF_HISTORY="", PYTHONPATH=path)
    terminal.ready()
    terminal.enter("x = 3", "x  3")
    terminal.enter(":set precision 3", "ad>")
    terminal.enter("y = x / 7", "0.429")
    terminal.send("import math", ENTER)
    terminal.ready()
    terminal.send("d = math.lgamma(1)", ENTER)
    terminal.sees("E509")
    terminal.sees("this input ran")
    terminal.sees("the session is as it was before")
    terminal.ready()
    terminal.enter("y * 1", "0.429")
    terminal.send(":history", ENTER)
    terminal.sees("d = math.lgamma(1)", times=2)
    terminal.enter("y * 2", "0.857")
    if not words:
        terminal.send("math.lgamma(2)")  # and nothing more: what is typed is evaluated
        terminal.sees("hints are off now")
        terminal.sees("ad> math.lgamma(2)", times=2)
        terminal.send(CTRL_C)
        terminal.ready()
        (folder / "z.expr").write_text("z = 5\n")
        terminal.enter(":load z.expr", "1 statement loaded")
        numpy.save(folder / "w.npy", numpy.ones(2))
        terminal.enter("w = load('w.npy')", "w  (2,)")
        (folder / "w.npy").unlink()
        terminal.send("d = math.lgamma(3)", ENTER)
        terminal.sees("the session could not be put back beyond here:")
        terminal.sees("E701")
        terminal.ready()
        terminal.enter("z * 20", "100")
    terminal.send(CTRL_D)
    assert terminal.code() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="supervised on Linux only")
def test_a_job_is_stopped_and_goes_on(folder: Path) -> None:
    """Ctrl-Z stops both processes, `fg` lets both go on, Ctrl-C ends them."""
    (folder / "long.expr").write_text("print('started')\nwhile True: x = 1\n")
    shell = pexpect.spawn(
        "/bin/sh", ["-i"], encoding="utf-8", cwd=str(folder), dimensions=(24, 80),
        env={"PATH": os.environ["PATH"], "PS1": "sh> ", "TERM": "dumb", "HOME": str(folder),
             "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    shell.expect_exact("sh> ")
    shell.sendline(f"{sys.executable} -m autodiff_cli run long.expr --max-steps 1000000000")
    shell.expect("started\r", timeout=PATIENCE)
    shell.send("\x1a")
    shell.expect_exact("sh> ", timeout=PATIENCE)
    shell.sendline("jobs; ps -o stat= -t $(tty) | grep -c T")
    shell.expect("(?i)stopped.*\r\n2\r", timeout=PATIENCE)
    shell.sendline("fg")
    while os.tcgetpgrp(shell.child_fd) == shell.pid:  # until the terminal is the job's
        time.sleep(0.01)
    shell.send("\x03")
    shell.expect_exact("sh> ", timeout=PATIENCE)
    shell.sendline("echo code $?")
    shell.expect("code 130", timeout=PATIENCE)
    shell.sendline("ps -t $(tty) | grep -c autodif[f]")
    shell.expect("\r\n0\r", timeout=PATIENCE)
    shell.close(force=True)
