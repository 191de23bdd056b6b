"""Peers take turns: one process for each, rounds in which every one runs once, ratios within a
round.

A machine that is busy slows all peers of a round alike, so the median of the ratios holds where
single times do not; the minimum over all rounds stands beside it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .workloads import Workload

OURS = "autodiff"
ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Measured:
    """What a peer did: the times of its rounds in seconds, its first call, its memory in bytes."""

    rounds: list[float] = field(default_factory=list)
    first: float = 0.0
    peak: int = 0
    problem: str = ""

    @property
    def best(self) -> float:
        return min(self.rounds)


def ratio(ours: Measured, peer: Measured) -> float:
    """The median over the rounds of our time by the peer's."""
    return median(a / b for a, b in zip(ours.rounds, peer.rounds, strict=True))


class Peer:
    """A worker process of one peer."""

    def __init__(self, name: str, python: str, workload: Workload, small: bool, folder: Path):
        self.name = name
        self.path = folder / f"{name}.npz"
        self.measured = Measured()
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [python, "-m", "benchmarks.worker", name, workload.name]
        self.errors = (folder / f"{name}.txt").open("w+")
        self.process = subprocess.Popen(
            [*command, "small" if small else "full", str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=folder,
            env=environment,
        )
        answer = self._answer()
        self.measured.problem = answer.get("error", "")
        self.measured.first = answer.get("first", 0.0)

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.errors.seek(0)
        words = self.errors.read().strip().splitlines()
        return {"error": words[-1] if words else "the process ended"}

    def _ask(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self._answer()

    def turn(self, seconds: float) -> None:
        """Run for a while and note the quickest call."""
        answer = self._ask(str(seconds))
        if "error" in answer:
            self.measured.problem = answer["error"]
        else:
            self.measured.rounds.append(answer["seconds"])

    def end(self) -> None:
        """Ask for the memory and let the process go."""
        if self.process.poll() is None and not self.measured.problem:
            self.measured.peak = self._ask("end").get("peak", 0)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.errors.close()


def differs(path: Path, reference: Path, tolerance: float) -> str:
    """The first result that is not that of hand-written NumPy; empty when all agree."""
    with np.load(path) as found, np.load(reference) as wanted:
        for name in found.files:
            scale = float(np.abs(wanted[name]).max(initial=0)) or 1.0
            distance = float(np.abs(found[name] - wanted[name]).max(initial=0))
            if found[name].shape != wanted[name].shape or not distance <= tolerance * scale:
                return f"`{name}` differs from NumPy's by {distance / scale:.1e} of its largest"
    return ""


def measure(
    workload: Workload, peers: dict[str, str], *, rounds: int, seconds: float, small: bool
) -> dict[str, Measured]:
    """Run a workload with all peers (name -> its Python); results are checked before any timing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = [Peer(peer, python, workload, small, folder) for peer, python in peers.items()]
        reference = next(peer.path for peer in started if peer.name == "numpy")
        for peer in started:
            if not peer.measured.problem:
                peer.measured.problem = differs(peer.path, reference, workload.tolerance)
        running = [peer for peer in started if not peer.measured.problem]
        order = random.Random(1)
        for _ in range(rounds):
            for peer in order.sample(running, len(running)):
                peer.turn(seconds)
        for peer in started:
            peer.end()
        return {peer.name: peer.measured for peer in started}


# -- whole processes ------------------------------------------------------------------------------

THREE_LINES = "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n"


def start_up(python: str, rounds: int) -> dict[str, Measured]:
    """Whole processes, taking turns: bare Python, `import numpy`, and a file of three lines.

    Byte code is written before the first round, and PYTHONDONTWRITEBYTECODE is taken out of the
    environment: with it, every start would compile the project anew.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "three.expr"
        program.write_text(THREE_LINES, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        commands = {
            "python": [python, "-c", "pass"],
            "numpy": [python, "-c", "import numpy"],
            OURS: [python, "-m", "autodiff_cli", "run", str(program)],
        }
        found = {name: Measured() for name in commands}
        for name, command in commands.items():
            found[name].first = _process(command, environment)
        order = random.Random(1)
        for _ in range(rounds):
            for name in order.sample(list(commands), len(commands)):
                found[name].rounds.append(_process(commands[name], environment))
        return found


def _process(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    elapsed = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return elapsed


def importable(python: str, module: str) -> bool:
    """Whether a Python has a module."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return not subprocess.run([python, "-c", code], capture_output=True).returncode


def peers_here(given: dict[str, str]) -> dict[str, str]:
    """The Python of each peer; those that are not installed are left out."""
    pythons = {name: given.get(name, sys.executable) for name in (OURS, "numpy", "torch", "jax")}
    return {
        name: python
        for name, python in pythons.items()
        if name in (OURS, "numpy") or importable(python, name)
    }
