"""What was measured as text: a row for each peer while it runs, and tables for a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .harness import LIMIT, NUMPY, OURS, RESULTS, Measured, best_ratio, first_ratio, ratio
from .workloads import Goals

HEADINGS = ["workload", "who", "best", "first", "peak", "ours / theirs", "goal"]
WIDTHS = [15, 13, 9, 9, 8, 13, 5]

NAMES = {
    NUMPY: "NumPy",
    LIMIT: "limit",
    "torch": "PyTorch",
    "torch-compile": "torch.compile",
    "jax": "JAX",
    "hips": "HIPS autograd",
}


def time_text(seconds: float) -> str:
    """A time with three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            value = seconds / scale
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def ratio_text(value: float) -> str:
    """A ratio with the digits that mean something."""
    return f"{value:.{3 if value < 0.1 else 2 if value < 10 else 0}f}"


def size_text(size: int) -> str:
    """Bytes as megabytes."""
    return f"{size / 1e6:.0f} MB"


def line(row: list[str], widths: Iterable[int] | None = None) -> str:
    """A row as text; without widths as one of a table in a document."""
    if widths is None:
        return "| " + " | ".join(row) + " |"
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def rows(name: str, found: Mapping[str, Measured], goals: Goals) -> list[list[str]]:
    """The rows of a workload: one for each peer, and for what is to be reached besides times."""
    made = [_row(name, peer, found, goals) for peer in found]
    ours = found[OURS]
    for peer, goal in goals.first.items():
        if peer in found and not (ours.problem or found[peer].problem):
            compared = ratio_text(first_ratio(ours, found[peer]))
            made.append([name, f"{peer}: first", "", "", "", compared, f"{goal:.2f}"])
    if goals.memory and ours.peak and ours.results:
        compared = ratio_text(ours.peak / ours.results)
        size = size_text(ours.results)
        made.append([name, RESULTS, "", "", size, compared, f"{goals.memory:.2f}"])
    return made


def _row(name: str, peer: str, found: Mapping[str, Measured], goals: Goals) -> list[str]:
    measured, ours = found[peer], found[OURS]
    if measured.problem:
        return [name, peer, measured.problem, *[""] * 4]
    first = time_text(measured.first) if measured.first else ""
    peak = size_text(measured.peak) if measured.peak else ""
    row = [name, peer, time_text(measured.best), first, peak]
    if peer == OURS or ours.problem:
        return [*row, "", ""]
    goal = goals.ratios.get(peer)
    return [*row, ratio_text(ratio(ours, measured)), "" if goal is None else f"{goal:.2f}"]


# -- tables for a document ------------------------------------------------------------------------

Everything = Mapping[str, tuple[Mapping[str, Measured], Goals]]


def document(everything: Everything) -> str:
    """A table of times and ratios, and one of first calls and memory; a line for each workload."""
    peers = [p for p in NAMES if any(_times(found, p) for found, _ in everything.values())]
    times = [["workload", "ours", *(NAMES[p] for p in peers), *(f"/ {NAMES[p]}" for p in peers)]]
    more = [["workload", *_both("first: ours", "peak: ours", peers), "results"]]
    for name, (found, goals) in everything.items():
        who = [OURS, *peers]
        quickest = [time_text(found[p].best) if _times(found, p) else "" for p in who]
        times.append([name, *quickest, *(_compared(found, p, goals) for p in peers)])
        first = [_first(found, p, goals) for p in who if p != LIMIT]
        peak = [_peak(found, p) for p in who if p != LIMIT]
        more.append([name, *first, *peak, _results(found, goals)])
    return "\n\n".join("\n".join(_table(table)) for table in (times, more))


def _both(first: str, peak: str, peers: list[str]) -> list[str]:
    named = [NAMES[p] for p in peers if p != LIMIT]
    return [first, *named, peak, *named]


def _table(table: list[list[str]]) -> list[str]:
    return [line(table[0]), line(["---"] * len(table[0])), *map(line, table[1:])]


def _times(found: Mapping[str, Measured], peer: str) -> bool:
    return peer in found and not found[peer].problem


def _compared(found: Mapping[str, Measured], peer: str, goals: Goals) -> str:
    """Our time by a peer's: of the quickest calls, the median over the rounds, and the goal."""
    if not (_times(found, peer) and _times(found, OURS)):
        return ""
    ours, theirs = found[OURS], found[peer]
    best = best_ratio(ours, theirs)
    text = f"{ratio_text(best)}, {ratio_text(ratio(ours, theirs))}"
    return text + _goal(best, goals.ratios.get(peer))


def _first(found: Mapping[str, Measured], peer: str, goals: Goals) -> str:
    if not (_times(found, peer) and found[peer].first):
        return ""
    text = time_text(found[peer].first)
    goal = goals.first.get(peer)
    if goal is None or not _times(found, OURS):
        return text
    compared = first_ratio(found[OURS], found[peer])
    return f"{text}, {ratio_text(compared)}{_goal(compared, goal)}"


def _peak(found: Mapping[str, Measured], peer: str) -> str:
    return size_text(found[peer].peak) if _times(found, peer) and found[peer].peak else ""


def _results(found: Mapping[str, Measured], goals: Goals) -> str:
    ours = found[OURS]
    if not ours.results or ours.problem:
        return ""
    text = size_text(ours.results)
    if not (goals.memory and ours.peak):
        return text
    compared = ours.peak / ours.results
    return f"{text}, {ratio_text(compared)}{_goal(compared, goals.memory)}"


def _goal(reached: float, goal: float | None) -> str:
    """A goal in brackets; a cross where it is missed."""
    if goal is None:
        return ""
    return f" ({goal:g})" if reached <= goal else f" ({goal:g} ✗)"
