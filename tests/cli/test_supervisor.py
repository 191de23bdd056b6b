"""The command as processes: what kills the one that works is said by the next, which goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import hold_against_schema
from tests.language.test_memory_limits import LESS
from tests.pace import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervised on Linux only")

COMMAND = [sys.executable, "-m", "autodiff_cli"]
FATAL = Path(__file__).resolve().parents[1] / "fatal"  # its `lgamma` and `gamma` never return
PROGRAMS = {
    "fatal.expr": "print('before')\nprint('unfinished', end='')\n"
    "import math\nd = math.lgamma(1)\nx = 2\n",
    "slow.py": "print('before')\nimport math\nd = math.gamma(1)\n",
    "big.expr": "print('before')\nx = []\ndef f(): return f, x\n"
    "for i in range(999): x.append('a' * 9000000)\n",
    "good.expr": "x = 3\nloss = x * x\n",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def call(
    place: Path, *words: str, text: str = "", command: list[str] = COMMAND
) -> subprocess.CompletedProcess[str]:
    """The command in another process, with output that is kept until it is written."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONUNBUFFERED", "CI")}
    env["PYTHONPATH"] = os.pathsep.join([str(FATAL), *sys.path])
    return subprocess.run(
        [*command, *words], cwd=place, env=env, input=text, capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip


def documents(text: str) -> list[Any]:
    hold_against_schema(text)
    return [json.loads(line) for line in text.splitlines()]


def test_the_time_of_a_single_call(place: Path) -> None:
    for limit in ("0.8", "6", "24"):  # until the program gets to its call, on any machine
        done = call(place, "run", "slow.py", "--timeout", limit)
        if done.stdout:
            break
    assert (done.returncode, done.stdout) == (4, "before\n")
    assert " --> slow.py:3:1" in done.stderr
    assert f"error[E508]: the time limit of {limit} s is reached; its process did" in done.stderr


def test_one_of_several_programs(place: Path) -> None:
    """Each has its document, whatever happened to another."""
    done = call(place, "run", "good.expr", "fatal.expr", "good.expr", "--format", "json")
    found = documents(done.stdout)
    assert [d["status"] for d in found] == ["ok", "error", "ok"]
    assert found[1]["error"]["code"] == "E509"
    assert found[1]["error"]["line"] == 4
    assert found[1]["stdout"] == "before\nunfinished"
    assert found[0]["tensors"]["x"]["grad"] == found[2]["tensors"]["x"]["grad"] == 6.0
    assert done.returncode == 4


@pytest.mark.parametrize("command", ["run", "check"])
def test_memory_that_ran_out_is_there_again(place: Path, command: str) -> None:
    """What values that are no tensors took, in the programs before it, is no limit for the next
    one."""
    (place / "whole.expr").write_text("print(sum(ones(7_000_000)).item())\n")
    words = [command, "big.expr", "whole.expr", "--max-memory", "64M"]
    done = call(place, *words, command=[sys.executable, "-c", LESS])
    assert "error[E505]: the program needs more than 64.0 MiB\n --> big.expr:4:31" in done.stderr
    assert "--max-memory 8G" in done.stderr
    assert "E900" not in done.stderr and done.returncode == 4
    assert ("7000000.0" if command == "run" else "1 passed, 1 error") in done.stdout


def test_results_that_are_collected_for_a_file(place: Path) -> None:
    done = call(place, "run", "good.expr", "fatal.expr", "good.expr", "-o", "out.json")
    assert [d["status"] for d in documents((place / "out.json").read_text())] == [
        "ok", "error", "ok",
    ]  # fmt: skip
    assert (done.returncode, done.stdout) == (4, "")


def test_standard_input_after_another_program(place: Path) -> None:
    """What is recorded of the first is not lost when it is read; it is read once for all."""
    done = call(place, "run", "good.expr", "-", "fatal.expr", "-", text="print('from there')\n")
    assert done.stdout.count("x.grad = 6.0") == 1 and done.stdout.count("from there") == 2
    assert done.stderr.splitlines()[:4] == [
        "error[E509]: the program overflowed the interpreter's stack",
        " --> fatal.expr:4:1",
        "  |",
        "4 | d = math.lgamma(1)",
    ]
    assert done.stderr.count("error[E509]") == 1 and done.returncode == 4
    done = call(place, "run", "good.expr", "-", text=PROGRAMS["fatal.expr"])
    assert done.stdout.endswith("before\nunfinished") and done.returncode == 4
    assert " --> <stdin>:4:1" in done.stderr and done.stdout.count("x.grad = 6.0") == 1


def test_a_library_that_gets_no_memory_and_leaves(place: Path) -> None:
    done = call(place, "run", "-e", "import math\nx = math.erfc(1)")
    assert done.returncode == 4
    assert "error[E505]: the program needs more than 1.0 GiB\n --> <expr>:2:1" in done.stderr


def test_an_error_that_nothing_else_says(place: Path) -> None:
    text = "from autodiff_cli.cli.supervisor import supervised; supervised(lambda: 1 // 0)"
    words = [sys.executable, "-c", text]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 70
    assert done.stderr.startswith("error[E900]: internal error: ZeroDivisionError")


@pytest.mark.parametrize(
    ("work", "code", "said"),
    [
        ("os.kill(os.getpid(), 15)", -15, ""),
        ("os.kill(os.getpid(), 9)", 4, "error[E505]: the process that ran the program was killed"),
        ("os._exit(0)", 70, "error[E900]: internal error: the process that ran the program ended"),
        ("os._exit(77)", 70, "error[E900]: internal error: the process that ran the program ended"),
        ("bytes(1 << 60)", 4, "error[E505]: the program ran out of memory"),
    ],
)
def test_both_workers_are_lost(place: Path, work: str, code: int, said: str) -> None:
    text = (
        f"import os; from autodiff_cli.cli.supervisor import supervised; supervised(lambda: {work})"
    )
    words = [sys.executable, "-c", text]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == code
    assert done.stderr.startswith(said) and bool(done.stderr) is bool(said)


def test_more_output_than_is_kept(place: Path) -> None:
    """In order and whole, whatever its parts fit into."""
    sizes = [3, 40_000, 40_000, 300_000, 7]
    (place / "much.expr").write_text("".join(f"print('{n % 10}' * {n})\n" for n in sizes))
    done = call(place, "run", "much.expr", "-q")
    assert done.stdout.splitlines() == [str(n % 10) * n for n in sizes]


def test_a_script_of_a_session(place: Path) -> None:
    text = "print('before')\nx = 2\nimport math\nd = math.lgamma(1)\nprint('after')\n"
    done = call(place, "repl", text="x = 1\n" + text)
    assert (done.returncode, done.stdout) == (4, "before\n")
    assert "error[E509]" in done.stderr and "5 | d = math.lgamma(1)" in done.stderr


@pytest.mark.parametrize("words", [["graph"], ["diff", "good.expr"]])
def test_other_commands(place: Path, words: list[str]) -> None:
    done = call(place, *words, "fatal.expr")
    assert done.returncode == 4
    assert "error[E509]" in done.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_check_goes_on(place: Path, jobs: str) -> None:
    """The file that kills the process fails alone, in all forms of the results."""
    for name in "abcdefg":
        (place / f"{name}.expr").write_text(PROGRAMS["good.expr"])
    (place / "big.expr").unlink()
    done = call(place, "check", "-j", jobs, "--junit", "out.xml", "--format", "json")
    (document,) = documents(done.stdout)
    bad = {item["id"] for item in document["items"] if item["status"] == "error"}
    assert bad == {"fatal.expr::run"}
    assert "good.expr::grad[x]" in {item["id"] for item in document["items"]}
    assert (place / "out.xml").read_text().count("<testcase") == len(document["items"])
    assert done.returncode == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_sent_to_the_command(place: Path, number: signal.Signals) -> None:
    """Both processes end, as one did: nobody holds the output open."""
    (place / "long.expr").write_text("print('started')\nwhile True: x = 1\n")
    process = subprocess.Popen(
        [*COMMAND, "run", "long.expr", "--max-steps", "1000000000"],
        cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"}, start_new_session=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL) and None,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert "Traceback" not in err


def test_the_worker_ends_with_the_command(place: Path) -> None:
    (place / "long.expr").write_text("print('started')\nwhile True: x = 1\n")
    process = subprocess.Popen(
        [*COMMAND, "run", "long.expr", "--max-steps", "1000000000"], cwd=place,
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=PATIENCE)  # its output ends when nobody can write to it any more
    assert process.returncode == -9


def test_the_workers_of_a_check_end_with_it(place: Path) -> None:
    names = [f"slow{i}.py" for i in range(12)]
    for name in names:
        (place / name).write_text(PROGRAMS["slow.py"])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FATAL), *sys.path])}
    words = [*COMMAND, "check", "-j", "2", *names]
    process = subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, env=env)

    def below(number: int) -> list[int]:
        """The processes that a process has made."""
        return [*map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split())]

    while not (first := below(process.pid)) or len(below(first[0])) < 2:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=PATIENCE / 2)  # the call that they are in takes longer


def test_an_interrupt_between_two_workers(place: Path) -> None:
    """The one that it should have reached is lost already: the next one ends."""
    (place / "long.expr").write_text("print('started')\nwhile True: x = 1\n")
    process = subprocess.Popen(
        [*COMMAND, "run", "long.expr", "--watch", "--max-steps", "1000000000"], cwd=place,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"}, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    worker = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
    process.send_signal(signal.SIGSTOP)
    os.kill(worker, signal.SIGSEGV)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    try:
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130
