"""`python -m benchmarks [WORKLOAD ...]`: measure, check and print a table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from .harness import OURS, Measured, measure, peers_here, ratio, start_up
from .worker import NOT_WRITTEN
from .workloads import BY_NAME, WORKLOADS

START_UP = "start-up"
START_UP_GOALS = {"numpy": 1.8}


def arguments(words: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure against hand-written NumPy, PyTorch and JAX.",
    )
    names = [START_UP, *BY_NAME]
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=9, help="rounds of turns (default: 9)")
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="time of one turn (default: 0.2)"
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes: do all parts work?")
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="the Python that has a peer, for example jax=/path/to/python",
    )
    parser.add_argument("--markdown", action="store_true", help="print a table for a document")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all times to FILE")
    chosen = parser.parse_args(words)
    for name in chosen.workloads:
        if name not in names:
            parser.error(f"no workload {name}; there are {', '.join(names)}")
    for text in chosen.peer:
        if "=" not in text:
            parser.error(f"--peer {text}: write NAME=PYTHON")
    return chosen


def time_text(seconds: float) -> str:
    """A time with three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            value = seconds / scale
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def cells(name: str, peer: str, found: dict[str, Measured], goals: dict[str, float]) -> list[str]:
    """One row of the table."""
    measured, ours = found[peer], found[OURS]
    if measured.problem:
        return [name, peer, measured.problem, *[""] * 4]
    row = [name, peer, time_text(measured.best), time_text(measured.first)]
    row.append(f"{measured.peak / 1e6:.0f} MB" if measured.peak else "")
    if peer == OURS or ours.problem:
        return [*row, "", ""]
    goal = goals.get(peer)
    return [*row, f"{ratio(ours, measured):.2f}", "" if goal is None else f"{goal:.2f}"]


HEADINGS = ["workload", "who", "best", "first", "peak", "ours / theirs", "goal"]
WIDTHS = [11, 9, 9, 9, 8, 13, 5]


def line(row: list[str], markdown: bool) -> str:
    """A row as text."""
    if markdown:
        return "| " + " | ".join(row) + " |"
    return "  ".join(cell.ljust(width) for cell, width in zip(row, WIDTHS, strict=True)).rstrip()


def machine() -> str:
    """Where this ran, for the line above the table."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"Python {platform.python_version()}, {platform.machine()}, {cores} cores{load}"


def main(words: list[str] | None = None) -> int:
    """Run the chosen workloads (all of them by default)."""
    options = arguments(words)
    chosen = options.workloads or [START_UP, *(workload.name for workload in WORKLOADS)]
    peers = peers_here(dict(text.split("=", 1) for text in options.peer))
    print(machine())
    for peer in ("torch", "jax"):
        if peer not in peers:
            print(f"{peer} is not installed: skipped")
    print()
    print(line(HEADINGS, options.markdown))
    if options.markdown:
        print(line(["---"] * len(HEADINGS), True))
    everything: dict[str, Any] = {}
    wrong = 0
    for name in chosen:
        if name == START_UP:
            found, goals = start_up(sys.executable, options.rounds), START_UP_GOALS
        else:
            workload = BY_NAME[name]
            goals = workload.goals
            found = measure(
                workload,
                peers,
                rounds=options.rounds,
                seconds=options.seconds,
                small=options.small,
            )
        for peer in [p for p, m in found.items() if m.problem != NOT_WRITTEN]:
            print(line(cells(name, peer, found, goals), options.markdown), flush=True)
        wrong += bool(found[OURS].problem or found["numpy"].problem)
        everything[name] = {peer: vars(measured) for peer, measured in found.items()}
    if options.json is not None:
        options.json.write_text(json.dumps(everything, indent=1), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
