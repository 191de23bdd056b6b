"""`--watch` and the sign of life: real processes, files that change, terminals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from autodiff_cli.cli import watch
from autodiff_cli.cli.streams import Environment
from autodiff_cli.cli.watch import stamps_of

from .conftest import Stream

# The command, that looks at files more often.
QUICK = """\
import sys
from autodiff_cli.cli import main, watch
watch.POLL = 0.02
sys.exit(main.main())
"""


@pytest.fixture
def place(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(project))
    for variable in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CI"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def replaced(path: Path, text: str) -> None:
    """A new file in place of the old one, as editors write."""
    other = path.with_name("other")
    other.write_text(text)
    other.replace(path)


@pytest.fixture
def watching(place: Path) -> Iterator[subprocess.Popen[str]]:
    (place / "data.csv").write_text("1,2\n")
    (place / "a.expr").write_text("x = load('data.csv', requires_grad=True); loss = sum(x * x)\n")
    process = subprocess.Popen(
        [sys.executable, "-c", QUICK, "run", "--watch", "a.expr", "--only", "gradients"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    yield process
    process.kill()
    process.communicate()


def test_runs_again_when_something_changed(place: Path, watching: subprocess.Popen[str]):
    assert watching.stdout is not None and watching.stderr is not None

    def until(text: str, stream) -> str:
        for line in stream:
            if text in line:
                return line
        raise AssertionError(f"no {text!r} before the end")

    assert "2.0, 4.0" in until("x.grad", watching.stdout)
    replaced(place / "a.expr", "x = load('data.csv', requires_grad=True); loss = sum(x * 7)\n")
    assert "7.0, 7.0" in until("x.grad", watching.stdout)
    (place / "data.csv").write_text("1,2,3\n")
    assert "7.0, 7.0, 7.0" in until("x.grad", watching.stdout)
    (place / "a.expr").write_text("x = yy\n")
    until("E201", watching.stderr)
    (place / "a.expr").unlink()
    until("cannot read", watching.stderr)
    (place / "a.expr").write_text("x = 3; loss = x * x\n")
    assert "6.0" in until("x.grad", watching.stdout)
    watching.send_signal(signal.SIGINT)
    rest, err = watching.communicate(timeout=30)
    assert watching.returncode == 130
    assert "\x1b" not in rest
    assert "Traceback" not in err


def test_only_a_terminal_is_cleared(place: Path):
    (place / "a.expr").write_text("x = 2; loss = x * x\n")
    child = pexpect.spawn(
        sys.executable, ["-c", QUICK, "a.expr", "-w"], timeout=60, encoding="utf-8",
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
    )  # fmt: skip
    child.expect("watching a.expr")
    assert "\x1b[2J" not in child.before
    replaced(place / "a.expr", "x = 5; loss = x * x\n")
    child.expect_exact("\x1b[2J")
    child.expect("watching a.expr")
    assert "10" in child.before
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_what_cannot_be_watched(cli):
    for argv in (["--watch", "-"], ["--watch", "-e", "x = 1"]):
        result = cli("run", *argv)
        assert result.code == 2
        assert "--watch needs a FILE" in result.err
    assert cli("run", "--watch", "demo.expr", "-o", "x.png").code == 2
    assert cli("check", "--watch", "--update").code == 2


@pytest.mark.parametrize(
    ("names", "said"),
    [("ba", "a, b"), ("abcde", "a, b, c, d, e"), ("abcdef", "a, b, c, d and 2 more")],
)
def test_files_that_are_watched(monkeypatch: pytest.MonkeyPatch, names: str, said: str):
    def interrupted(before: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_changed", interrupted)
    err = Stream(tty=True)
    with pytest.raises(KeyboardInterrupt):
        watch.watch(set, names, Environment(None, Stream(), err, {}))
    assert f"watching {said} (Ctrl-C ends)" in err.getvalue()


def test_stamps(tmp_path: Path):
    path = tmp_path / "a"
    assert stamps_of([str(path), "\0"]) == {str(path): None, "\0": None}
    path.write_text("1")
    first = stamps_of([str(path)])
    replaced(path, "2")
    assert stamps_of([str(path)]) != first


# ------------------------------------------------------------------ the sign of life


def test_a_sign_of_life_on_terminals_only(place: Path):
    (place / "slow.expr").write_text("i = 0\nwhile True:\n    i = i + 1\n")
    code = (
        "import sys\n"
        "from autodiff_cli.cli import main, waiting\n"
        "waiting.PATIENCE = waiting.PAUSE = 0.1\n"
        "sys.exit(main.main(sys.argv[1:]))\n"
    )
    argv = ["-c", code, "slow.expr", "--max-steps", "100000000000"]
    child = pexpect.spawn(
        sys.executable, argv, timeout=60, encoding="utf-8", dimensions=(24, 40),
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
    )  # fmt: skip
    child.expect(r"running slow.expr  [\d.]+ s  [\d,]+ steps")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "\r\x1b[K" in child.before
    done = subprocess.run(
        [sys.executable, *argv, "--timeout", "0.3"], capture_output=True, text=True
    )
    assert done.returncode == 4
    assert "running" not in done.stderr


def test_the_sign_leaves_before_anything_is_written(place: Path):
    import pyte

    (place / "slow.expr").write_text(
        "i = 0\nwhile i < 4000:\n    i = i + 1\nprint('half')\nx = 2\n"
        "while i < 8000:\n    i = i + 1\nloss = x * x\n"
    )
    code = (
        "import sys\n"
        "from autodiff_cli.cli import main, waiting\n"
        "waiting.PATIENCE, waiting.PAUSE = 0.001, 0.01\n"
        "sys.exit(main.main(['slow.expr']))\n"
    )
    child = pexpect.spawn(
        sys.executable, ["-c", code], timeout=60, encoding="utf-8", dimensions=(40, 60),
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
    )  # fmt: skip
    text = child.read()
    child.close()
    assert child.exitstatus == 0
    assert "running slow.expr" in text
    screen = pyte.Screen(60, 40)
    pyte.Stream(screen).feed(text)
    lines = [line.rstrip() for line in screen.display]
    assert lines[:2] == ["half", "Values"]
    assert not any(re.search(r"running|steps", line) for line in lines)


def test_checks_are_watched_too(place: Path):
    (place / "a.expr").write_text("x = 2; loss = x * x  #=> 4\n")
    process = subprocess.Popen(
        [sys.executable, "-c", QUICK, "check", "--watch"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None

    def until(text: str) -> None:
        assert any(text in line for line in process.stdout), text

    until("passed in")
    replaced(place / "a.expr", "x = 2; loss = x * x  #=> 5\n")
    until("FAILED a.expr::expect[1]")
    until("failed in")
    (place / "new.expr").write_text("x = 3; loss = x * x  #=> 9\n")
    until("new.expr")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err


FATAL = Path(__file__).resolve().parents[1] / "fatal"  # its `lgamma` ends the process
SQUARE = "x = load('data.csv', requires_grad=True); loss = sum(x * {n}); print({n})\n"


@pytest.mark.skipif(sys.platform != "linux", reason="supervised on Linux only")
def test_whatever_becomes_of_the_file(place: Path, project: Path, monkeypatch: pytest.MonkeyPatch):
    """It kills, after it read a file; it goes, is a folder, a pipe, a link to nothing or to itself:
    each is said, and the next good one runs."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FATAL), str(project)]))
    file = place / "a\x1b[31m.expr"
    (place / "data.csv").write_text("1\n")
    file.write_text("import math\nif load('data.csv')[0] == 1: math.lgamma(1)\nprint('gone')\n")
    child = pexpect.spawn(
        sys.executable, ["-c", QUICK, "run", "--watch", file.name, "--only", "values"],
        encoding="utf-8", timeout=60,
    )  # fmt: skip
    child.expect("E509")
    child.expect(r"watching a\\x1b\[31m.expr, data.csv \(Ctrl-C ends\)")
    (place / "data.csv").write_text("2\n3\n")
    child.expect("gone")
    for at, (become, words) in enumerate((
        (file.unlink, "no such file"),
        (file.mkdir, "directory"),
        (lambda: os.mkfifo(file), "is a pipe"),
        (lambda: file.symlink_to("nowhere"), "no such file"),
        (lambda: file.symlink_to(file.name), "symbolic links"),
    )):  # fmt: skip
        child.expect("watching")
        if become != file.unlink:
            file.unlink()
        become()
        child.expect(words)
        child.expect("watching")
        if file.is_dir():
            file.rmdir()
        replaced(file, SQUARE.format(n=at + 70))
        child.expect(f"{at + 70}\r\n")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_it_waits_between_looks(monkeypatch: pytest.MonkeyPatch):
    """Also until a file that is being written has come to rest."""
    looks = [{"a": 1}, {"a": 1}, {"a": 2}, {"a": 3}, {"a": 3}]
    seen: list[str] = []
    monkeypatch.setattr(watch, "stamps_of", lambda before: seen.append("look") or looks.pop(0))
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: seen.append("wait"))
    watch._changed({"a": 1})
    assert " ".join(seen) == "look wait look wait look wait look wait look" and not looks
