"""Real processes: pipes that close, full disks, signals, terminals, and what start-up imports."""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.pace import PATIENCE

DEMO = "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n"
COMMAND = [sys.executable, "-m", "autodiff_cli"]


@pytest.fixture
def place(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with demo.expr, and an environment that finds the package from there."""
    (tmp_path / "demo.expr").write_text(DEMO)
    monkeypatch.setenv("PYTHONPATH", str(project))
    for variable in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which "$@" is the command."""
    return subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND], capture_output=True, text=True, timeout=60
    )


def test_a_process_end_to_end(place):
    done = subprocess.run([*COMMAND, "run", "demo.expr"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "A.grad = [[7.0, 10.0], [13.0, 16.0]]  # (2, 2)\n" in done.stdout


def test_a_closed_pipe_is_silent(place):
    (place / "big.expr").write_text("x = 1\nv = arange(200000) * x\nloss = sum(v)\n")
    for argv in (
        ["run", "--format", "json"],
        ["run", "--format", "rich"],
        ["run", "--heat", "v"],
        ["graph", "--values"],
        ["graph", "-f", "json", "--values"],
    ):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([*COMMAND, *argv, "big.expr"], stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, b""), argv


def test_closed_and_full_streams(place):
    closed = shell('"$@" run demo.expr >&-')
    assert closed.returncode == 4
    assert "closed" in closed.stderr
    if os.path.exists("/dev/full"):
        full = shell('"$@" run demo.expr >/dev/full')
        assert full.returncode == 4
        assert "no space" in full.stderr
        assert "Traceback" not in full.stderr + closed.stderr
    assert shell('"$@" run -e "x = yy" 2>&-').returncode == 3
    assert shell('"$@" <&-').returncode == 2


def interrupted(process: subprocess.Popen[str], after: str) -> tuple[int, str, str]:
    """Send SIGINT once the process has printed `after`."""
    assert process.stdout is not None
    seen = process.stdout.readline() if after else ""
    assert after in seen
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, seen + out, err


def listening() -> None:
    """Take SIGINT in the child also where whoever runs the tests ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interrupt_while_computing(place):
    (place / "long.expr").write_text(
        "x = 1.0\nprint('started')\n"
        "for i in range(900000):\n    x = tanh(x)\n    print('' if x.item() else '')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "autodiff_cli", "run", "long.expr"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listening,
    )  # fmt: skip
    code, _, err = interrupted(process, "started")
    assert code == 130
    assert "Traceback" not in err


def test_interrupt_while_reading(place):
    process = subprocess.Popen(
        [*COMMAND, "run", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=listening,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write("x = 1\n")
    process.stdin.flush()
    unread = array.array("i", [1])
    while unread[0]:  # who reads waits for the end of the program
        time.sleep(0.01)
        fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
    code, _, err = interrupted(process, "")
    assert code == 130
    assert "Traceback" not in err


# ------------------------------------------------------------------ terminals


def on_terminal(argv: list[str], columns: int, **variables: str) -> str:
    """What a command writes on a terminal of so many columns, with plain line ends."""
    import pty
    import struct

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *argv], stdin=follower, stdout=follower, stderr=follower,
        env={**os.environ, "TERM": "xterm-256color", **variables},
    )  # fmt: skip
    os.close(follower)
    pieces = []
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        pieces.append(piece)
    process.wait(timeout=60)
    os.close(leader)
    return b"".join(pieces).decode().replace("\r\n", "\n")


def test_a_terminal_gets_tables_and_colours(place):
    wide = on_terminal(["demo.expr"], 80)
    assert "\x1b[" in wide
    text = re.sub(r"\x1b\[[0-9;]*m", "", wide)
    assert "Gradients   d loss / d name" in text
    assert "[[ 7, 10]," in text
    assert all(len(line) <= 80 for line in text.splitlines())
    narrow = on_terminal(["demo.expr"], 44, NO_COLOR="1")
    assert "\x1b[" not in narrow
    assert "A  (2, 2)  norm 23.9583" in narrow


def test_dumb_terminals_get_plain_text(place):
    text = on_terminal(["demo.expr"], 80, TERM="dumb")
    assert text.startswith("# autodiff.plain/1")
    assert "\x1b" not in text


def test_a_terminal_without_arguments(place):
    assert "there is no program to run" in on_terminal(["run"], 80)


# ------------------------------------------------------------------ start-up

DENIED = (
    "rich", "scipy", "prompt_toolkit", "pygments", "pytest", "asyncio", "sympy", "click", "lark",
    "dataclasses_json", "unittest", "multiprocessing", "http", "socket",
)  # fmt: skip


@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_piped_run_imports_little(place, form):
    code = (
        "import json, sys\n"
        "from autodiff_cli.cli.main import main\n"
        f"code = main(['run', 'demo.expr', '--format', '{form}'])\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    loaded = {name.split(".")[0] for name in json.loads(done.stderr)}
    assert not loaded & set(DENIED)


def test_version_and_help_do_without_numpy(place):
    for argv in (["--version"], ["--help"], ["run", "--help"], ["help", "E302"]):
        code = (
            "import sys\n"
            "from autodiff_cli.cli.main import main\n"
            f"main({argv!r})\n"
            "sys.exit('numpy' in sys.modules)\n"
        )
        assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize("words", [["run"], ["graph"], ["explain"]])
def test_what_a_program_prints_cannot_use_a_terminal(place, words):
    """No code but those of colours gets there; a pipe gets what PyTorch would print."""
    code = "\x1b]52;c;aGk=\x07\x1b[2J"
    (place / "rude.expr").write_text(f"print({code!r})\nx = 1\nloss = x * x\n")
    shown = on_terminal([*words, str(place / "rude.expr")], 80)
    assert code not in shown and f"{code!r}"[1:-1] in shown
    piped = subprocess.run(
        [*COMMAND, *words, str(place / "rude.expr")], capture_output=True, text=True
    )
    assert code in piped.stdout + piped.stderr
