"""Peers take turns: one process for each, rounds in which every one runs once, ratios within a
round.

A machine that is busy slows all peers of a round alike, so the median of the ratios holds where
single times do not; the minimum over all rounds stands beside it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
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

OURS, NUMPY, LIMIT, RESULTS = "autodiff", "numpy", "limit", "results"
ALWAYS = (OURS, NUMPY, LIMIT)  # these need nothing but what the project needs
# What the others need.
MODULES = {"torch": "torch", "torch-compile": "torch", "jax": "jax", "hips": "autograd"}
PAUSE = 0.05  # seconds after a turn, in which the threads of who ran stop spinning
ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Measured:
    """What a peer did: the times of its rounds in seconds, its first call, its memory and that of
    its results in bytes."""

    rounds: list[float] = field(default_factory=list)
    first: float = 0.0
    peak: int = 0
    results: int = 0
    problem: str = ""

    @property
    def best(self) -> float:
        return min(self.rounds)


def ratio(ours: Measured, peer: Measured) -> float:
    """The median over the rounds of our time by the peer's."""
    return median(a / b for a, b in zip(ours.rounds, peer.rounds, strict=True))


def best_ratio(ours: Measured, peer: Measured) -> float:
    """Our quickest call by the peer's."""
    return ours.best / peer.best


def first_ratio(ours: Measured, peer: Measured) -> float:
    """Our first call by the peer's, each with what it compiles."""
    return ours.first / peer.first


class Peer:
    """A worker process of one peer."""

    def __init__(self, name: str, python: str, workload: Workload, small: bool, folder: Path):
        self.name = name
        self.path = folder / f"{name}.npz"
        self.measured = Measured()
        environment = clean_environment()
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "compiled")  # first calls compile
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
        self.measured.results = answer.get("results", 0)

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
        started = [
            Peer(peer, python, workload, small, folder)
            for peer, python in peers.items()
            if peer != LIMIT or (LIMIT in workload.goals and workload.operations is None)
        ]
        reference = next(peer.path for peer in started if peer.name == NUMPY)
        for peer in started:
            if not peer.measured.problem:
                peer.measured.problem = differs(peer.path, reference, workload.tolerance)
        running = [peer for peer in started if not peer.measured.problem]
        order = random.Random(1)
        for _ in range(rounds):
            for peer in order.sample(running, len(running)):
                peer.turn(seconds)
                time.sleep(PAUSE if seconds else 0)
        for peer in started:
            peer.end()
        found = {peer.name: peer.measured for peer in started}
        if workload.operations is not None:
            found[LIMIT] = Measured([workload.allowed(small)] * rounds)
        return found


def clean_environment() -> dict[str, str]:
    """The environment of every process that is measured: the project is found, byte code kept."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


# -- which peers there are ------------------------------------------------------------------------


def importable(python: str, module: str) -> bool:
    """Whether a Python has a module."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return not subprocess.run([python, "-c", code], capture_output=True).returncode


def peers_here(given: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """The Python of each peer, and a line for each that is left out."""
    peers = dict.fromkeys(ALWAYS, sys.executable)
    skipped = []
    for name, module in MODULES.items():
        python = given.get(name) or given.get(module, sys.executable)
        if not importable(python, module):
            skipped.append(f"{name} is not installed: skipped")
        elif name == "torch-compile" and not compiler():
            skipped.append(f"{name} needs a C++ compiler, and there is none: skipped")
        else:
            peers[name] = python
    return peers, skipped


def compiler() -> str | None:
    """The C++ compiler that torch.compile would use."""
    named = os.environ.get("CXX", "").split()
    return next(filter(None, map(shutil.which, [*named[:1], "g++", "clang++"])), None)
