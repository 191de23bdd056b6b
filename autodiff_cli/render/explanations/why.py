"""Answers about gradients: a frame around the guilty expression and the repair as a small diff for
people, lines for pipes, strict JSON."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any

from ...errors import AutodiffError, Diagnostic, Label
from ...source import Source
from ...why.model import Answer
from ..document import picked, problem
from ..frames import Paint, frames
from ..text import WORD, dumped, printable, prose

SCHEMA = "autodiff.why/1"
ANSWER = ("name", "verdict", "cause", "line", "message", "fix")
RED, GREEN, YELLOW, BOLD = "1;31", "1;32", "1;33", "1"
WORDS = {
    "none": "is None",
    "nan": "has NaN",
    "inf": "is infinite",
    "zero": "is zero",
    "partly-zero": "is zero in places",
    "ok": "is fine",
}


def heading(answer: Answer) -> str:
    """`w.grad is None: detached`."""
    found = f"{printable(answer.name, WORD)}.grad {WORDS[answer.verdict]}"
    return found if answer.verdict == "ok" else f"{found}: {answer.cause}"


def page(answer: Answer, source: Source, *, color: bool, width: int, unicode: bool) -> str:
    """The answer for a terminal."""
    paint = Paint(color)
    accent = GREEN if answer.verdict == "ok" else YELLOW if "zero" in answer.verdict else RED
    name, _, rest = heading(answer).partition(" ")
    lines = [paint(name, BOLD) + " " + paint(rest, accent), *prose("  ", answer.message, width)]
    shown = Diagnostic(
        "",
        answer.message,
        answer.span,
        answer.label,
        tuple(Label(span, text) for span, text in answer.places),
        notes=answer.notes,
    )
    lines += frames(shown, accent, paint, width, "…" if unicode else "...")
    if answer.fix is not None:
        title = "help: this keeps the gradient; it was run"
        lines += ["", paint("help", GREEN) + title.removeprefix("help")]
        lines += _painted(changes(answer, source), paint)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def changes(answer: Answer, source: Source) -> list[str]:
    """The repair as lines with their numbers: `4 - old`, `4 + new`."""
    if answer.fix is None:
        return []
    before, after = source.text.splitlines(), answer.fix.splitlines()
    size = len(str(max(len(before), len(after))))
    diff = list(unified_diff(before, after, n=0, lineterm=""))
    found: list[str] = []
    old = new = 0
    for line in diff[2:]:
        if line.startswith("@@"):
            first, second = line.split()[1:3]
            old, new = (int(part[1:].partition(",")[0]) for part in (first, second))
            continue
        number = old if line[0] == "-" else new
        found.append(f"{number:>{size}} {line[0]} {printable(line[1:])}")
        if line[0] == "-":
            old += 1
        else:
            new += 1
    return found


def _painted(lines: list[str], paint: Paint) -> list[str]:
    styles = {"-": RED, "+": GREEN}
    return [paint(line, styles.get(line.lstrip(" 0123456789")[:1], "")) for line in lines]


def plain(answer: Answer, source: Source) -> str:
    """The answer for a pipe: one line, then what the repair changes."""
    place = f"{printable(source.name, WORD)}:{answer.line}: " if answer.line is not None else ""
    lines = [f"{place}{heading(answer)}: {printable(answer.message)}"]
    lines += [f"note: {printable(note)}" for note in answer.notes]
    lines += [f"fix: {line}" for line in changes(answer, source)]
    return "\n".join(lines) + "\n"


def dump(file: str, answer: Answer | None, error: AutodiffError | None) -> str:
    """The document as one line, with its line end."""
    found: dict[str, Any] = {"schema": SCHEMA, "file": file}
    if error is not None:
        found |= {"status": "error", "error": problem(error.diagnostic)}
    elif answer is not None:
        found |= {"status": "ok", **picked(answer, *ANSWER)}
    return dumped(found)
