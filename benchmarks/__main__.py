"""`python -m benchmarks [WORKLOAD ...]`: measure, check and print a table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from itertools import chain
from pathlib import Path

from . import growth, processes
from .harness import NUMPY, OURS, Measured, measure, peers_here
from .tables import HEADINGS, WIDTHS, document, line, rows
from .worker import NOT_WRITTEN, keep_big_blocks
from .workloads import BY_NAME, WORKLOADS, Goals

GROWTH = "growth"


def arguments(words: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure against hand-written NumPy, PyTorch and JAX, and against what bounds "
        "the work; `growth` shows how our time grows with size.",
    )
    names = [*processes.STARTS, *BY_NAME, GROWTH]
    parser.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help=f"{', '.join(names)} (default: all but {GROWTH})",
    )
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
    parser.add_argument("--markdown", action="store_true", help="tables for a document, at the end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all times to FILE")
    chosen = parser.parse_args(words)
    for name in chosen.workloads:
        if name not in names:
            parser.error(f"no workload {name}; there are {', '.join(names)}")
    for text in chosen.peer:
        if "=" not in text:
            parser.error(f"--peer {text}: write NAME=PYTHON")
    return chosen


def machine() -> str:
    """Where this ran, for the line above the table."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"Python {platform.python_version()}, {platform.machine()}, {cores} cores{load}"


def compare(names: list[str], options: argparse.Namespace) -> bool:
    """Measure workloads with all peers and print what was found; whether ours were right."""
    peers, skipped = peers_here(dict(text.split("=", 1) for text in options.peer))
    for reason in skipped:
        print(reason)
    print()
    print(line(HEADINGS, WIDTHS))
    everything: dict[str, tuple[dict[str, Measured], Goals]] = {}
    for name in names:
        if name in processes.STARTS:
            goals = processes.STARTS[name].goals
            found = processes.start_up(name, peers, options.rounds)
        else:
            goals = BY_NAME[name].wanted
            found = measure(
                BY_NAME[name],
                peers,
                rounds=options.rounds,
                seconds=options.seconds,
                small=options.small,
            )
            found = {p: m for p, m in found.items() if m.problem != NOT_WRITTEN}
        for row in rows(name, found, goals):
            print(line(row, WIDTHS), flush=True)
        everything[name] = found, goals
    if options.markdown:
        print(f"\n{document(everything)}")
    if options.json is not None:
        data = {n: {p: vars(m) for p, m in found.items()} for n, (found, _) in everything.items()}
        options.json.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return not any(found[p].problem for found, _ in everything.values() for p in (OURS, NUMPY))


def grow(options: argparse.Namespace) -> None:
    """Print how our time grows."""
    keep_big_blocks()
    for title, headings, table in growth.tables(options.small, options.seconds):
        print(f"\n{title}\n")
        if options.markdown:
            print(line(headings))
            print(line(["---"] * len(headings)))
        for row in table if options.markdown else chain([headings], table):
            print(line(row, None if options.markdown else growth.WIDTHS), flush=True)


def main(words: list[str] | None = None) -> int:
    """Run the chosen workloads (all of them by default)."""
    options = arguments(words)
    chosen = options.workloads or [*processes.STARTS, *(workload.name for workload in WORKLOADS)]
    print(machine())
    compared = [name for name in chosen if name != GROWTH]
    right = not compared or compare(compared, options)
    if GROWTH in chosen:
        grow(options)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
