"""Results of checks as text, one line a file and a summary, and as JSON.

Invariant: every failed item is shown with the command that runs it again.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any

from ..checks.model import LETTERS, FileResult, Item
from .diagnostics import document
from .document import picked
from .text import WORD, format_count, pad, printable, text_width

SCHEMA = "autodiff.check/1"
WORDS = ("passed", "kink", "cut", "noisy", "skipped", "xfailed", "failed", "error")
NEXT = "\n    "
GREEN, RED, RESET = "\x1b[32m", "\x1b[1;31m", "\x1b[0m"


def file_line(result: FileResult, width: int, color: bool) -> str:
    """`demo.expr  ....   4 passed  0.01s`; in a narrow terminal the counts have their own line."""
    shown = "".join(LETTERS[item.status] for item in result.items)
    if len(shown) > 40:
        shown = shown[:37] + "..."
    name = printable(result.file, WORD)
    counts = counted(result.items) or "nothing chosen"
    left = f"{pad(name, min(40, max(24, text_width(name))))} {shown}"
    right = f"{counts}  {result.seconds:.2f}s"
    gap = min(width, 100) - text_width(left) - len(right)
    between = " " * gap
    if gap < 2 and width < 100:
        left = f"{name} {shown}"
        between = "\n    " if text_width(left) + 2 + len(right) > width else "  "
    elif gap < 2:
        between = "  "
    if color:
        right = f"{RED if any(item.bad for item in result.items) else GREEN}{right}{RESET}"
    return left + between + right


def counted(items: list[Item]) -> str:
    """`3 passed, 1 kink, 1 FAILED`."""
    found = [item.status for item in items]
    return ", ".join([
        f"{found.count(word)} {word.upper() if word in ('failed', 'error') else word}"
        for word in WORDS
        if word in found
    ])  # fmt: skip


def failed_line(item: Item, width: int | None = None) -> str:
    """The id of a failed item and the command that runs it alone, below it where both do not fit
    into `width` cells."""
    command = f"autodiff check {shlex.quote(item.file)} -k {shlex.quote(item.label)}"
    if (
        item.diagnostic is not None
        and item.diagnostic.code == "E605"
        and item.file.endswith(".snap")
    ):
        what = "remove: autodiff check --prune"
    else:
        what = f"re-run: {printable(command)}"
    failed = f"FAILED {printable(item.id, WORD)}"
    fits = width is None or text_width(failed) + 5 + text_width(what) <= width
    return f"{failed}{' ' * 5 if fits else NEXT}{what}"


def summary(results: list[FileResult], seconds: float, color: bool) -> str:
    """`3 files, 13 passed, 1 failed in 0.31s`."""
    items = [item for result in results for item in result.items]
    counts = Counter(item.status for item in items)
    parts = [format_count(len(results), "file")]
    parts += [
        format_count(counts[word], word) if word == "error" else f"{counts[word]} {word}"
        for word in WORDS if counts[word]
    ]  # fmt: skip
    text = f"{', '.join(parts)} in {seconds:.2f}s"
    if not color:
        return text
    return f"{RED if any(item.bad for item in items) else GREEN}{text}{RESET}"


def durations(results: list[FileResult], count: int) -> list[str]:
    """The slowest items."""
    items = sorted((item for result in results for item in result.items), key=lambda i: -i.seconds)
    return [f"{item.seconds:8.3f}s  {printable(item.id, WORD)}" for item in items[:count]]


def check_document(results: list[FileResult], seconds: float, code: int) -> dict[str, Any]:
    """The results as data for strict JSON."""
    items = [item for result in results for item in result.items]
    counts = Counter(item.status for item in items)
    return {
        "schema": SCHEMA,
        "exit_code": int(code),
        "seconds": round(seconds, 6),
        "summary": {"files": len(results), **{word: counts[word] for word in WORDS}},
        "items": [_item(item) for item in items],
    }


def _item(item: Item) -> dict[str, Any]:
    found = picked(item, "id", "file", "kind", "name", "line", "status")
    found["seconds"] = round(item.seconds, 6)
    if item.note:
        found["note"] = item.note
    if item.diagnostic is not None:
        found["diagnostic"] = document(item.diagnostic)
    return found


def step_summary(results: list[FileResult]) -> str:
    """A Markdown table for GitHub's step summary."""
    lines = ["| file | result | seconds |", "| --- | --- | --- |"]
    for result in results:
        name = printable(result.file, WORD).replace("|", "\\|")
        lines.append(f"| `{name}` | {counted(result.items)} | {result.seconds:.2f} |")
    return "\n".join(lines) + "\n"


def diff_text(path: str, old: str | None, new: str | None) -> str:
    """A change as a unified diff."""
    import difflib

    lines = difflib.unified_diff(
        (old or "").splitlines(), (new or "").splitlines(),
        "/dev/null" if old is None else path, "/dev/null" if new is None else path, lineterm="",
    )  # fmt: skip
    return "".join(printable(line) + "\n" for line in lines)
