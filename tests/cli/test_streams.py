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


def test_a_closed_pipe_is_silent(place):
    (place / "big.expr").write_text("x = 1\nv = arange(20000) * x\nloss = sum(v)\n")
    for argv in (
        ["run", "--format", "json"],
        ["run", "--format", "rich"],
        ["graph", "--values"],
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


def listening() -> None:
    """Take SIGINT in the child also where whoever runs the tests ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


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
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
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
    """As wide as it is."""
    shown = on_terminal(["demo.expr"], 44)
    assert "\x1b[" in shown
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "Gradients   d loss / d name" in text
    assert "A  (2, 2)  norm 23.9583" in text
    assert all(len(line) <= 44 for line in text.splitlines())


# ------------------------------------------------------------------ start-up

DENIED = (
    "rich", "scipy", "prompt_toolkit", "pygments", "pytest", "asyncio", "sympy", "click", "lark",
    "dataclasses_json", "unittest", "multiprocessing", "http", "socket",
)  # fmt: skip


def test_a_piped_run_imports_little(place):
    code = (
        "import json, sys\n"
        "from autodiff_cli.cli.main import main\n"
        "code = [main(['run', 'demo.expr', '--format', form]) for form in ('plain', 'json')]\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
        "sys.exit(any(code))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    loaded = {name.split(".")[0] for name in json.loads(done.stderr)}
    assert not loaded & set(DENIED)


def test_version_and_help_do_without_numpy(place):
    code = (
        "import sys\n"
        "from autodiff_cli.cli.main import main\n"
        "for words in ['--version'], ['--help'], ['run', '--help'], ['help', 'E302']:\n"
        "    main(words)\n"
        "    assert 'numpy' not in sys.modules, words\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_a_program_prints_cannot_use_a_terminal(place):
    """No code but those of colours gets there; a pipe gets what PyTorch would print."""
    code = "\x1b]52;c;aGk=\x07\x1b[2J"
    (place / "rude.expr").write_text(f"print({code!r})\nx = 1\nloss = x * x\n")
    shown = on_terminal(["rude.expr"], 80)
    assert code not in shown and f"{code!r}"[1:-1] in shown
    piped = subprocess.run([*COMMAND, "rude.expr"], capture_output=True, text=True)
    assert code in piped.stdout
