"""`--fix`: corrections that a diagnostic proposes, applied to the program's text.

Invariant: a correction is kept only if the program gets further with it; the file changes nowhere
else, not even in its line ends. Only what is safe is written: `**` for `^`, and the one name that
one slip is away. What else helps is proposed as a change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..source import Source, Span
from ..suggest import distance_of, likely

if TYPE_CHECKING:
    from ..errors import AutodiffError, Diagnostic

MOST = 100  # rounds; each corrects everything it can
TRIES = 12  # changes that are tried before none is proposed
_MEANT = re.compile(r"did you mean `")
_NAMED = re.compile(r"`\.?(?:\w+\.)*([^\W\d]\w*)`")
_NAMES = ("E201", "E202", "E203", "E207")
_WORD = re.compile(r"[\w.]+")
_CODE = re.compile(r"`([^`]+)`")
_FOR = re.compile(r"`([^`]+)` for `([^`]+)`")
_BEGIN = re.compile(r"begin the program with `([^`]+)`")
_TAKE_OUT = re.compile(r"remove (this|the spaces|the `)")


class Edit(NamedTuple):
    """Put `text` in place of the characters `start:end`."""

    start: int
    end: int
    text: str


def edit_of(diagnostic: Diagnostic, source: Source) -> Edit | None:
    """The safe correction that a diagnostic proposes: `**` for `^`, the name that was meant when
    no other is as close."""
    span = diagnostic.span
    if span is None or span.source is not source:
        return None
    if diagnostic.code == "E105" and span.text == "^":
        return Edit(span.start, span.end, "**")
    help = next(filter(_MEANT.match, diagnostic.helps), "")
    if diagnostic.code not in _NAMES or not span.text.isidentifier():
        return None
    word = span.text.lower()
    close = {n for n in _NAMED.findall(help) if distance_of(word, n.lower(), 1) <= 1}
    close = {n for n in close if likely(word, n.lower())} or close
    return Edit(span.start, span.end, close.pop()) if len(close) == 1 else None


def edits_of(diagnostic: Diagnostic, source: Source) -> Iterator[Edit]:
    """What the helps may mean, one after the other: code in place of what is marked, of its line,
    or of what the help names. Which of them it is shows when the program is run."""
    text = source.text
    spans = [s for s in (diagnostic.span, *(label.span for label in diagnostic.labels)) if s]
    spans = [span for span in spans if span.source.text == text]
    line = [span for span in spans if span.line == spans[0].line]
    if len(line) > 1:  # an operation with its operands
        low, high = min(s.start for s in line), max(s.end for s in line)
        spans.insert(0, Span(source, low, high))
    for help in diagnostic.helps:
        for new, old in _FOR.findall(help):
            at = text.find(old, max(0, spans[0].start - len(old)) if spans else 0)
            at = text.find(old) if at < 0 else at
            if at >= 0:
                yield Edit(at, at + len(old), new)
        for line in _BEGIN.findall(help):
            yield Edit(0, 0, f"{line}\n")
        if _TAKE_OUT.match(help):
            yield from (Edit(span.start, span.end, "") for span in spans)
        for code in _CODE.findall(help) if "..." not in help else ():
            for span in spans:
                yield from _in_place(code, span, text)


def _in_place(code: str, span: Span, text: str) -> Iterator[Edit]:
    head, dot, name = code.rpartition(".")
    inside = not head or (dot and text[: span.start].endswith(f"{head}."))
    new = name if inside else code
    if not new.isidentifier() or _WORD.fullmatch(span.text):
        yield Edit(span.start, span.end, new)
    if _WORD.fullmatch(new):
        return
    start, end = text.rfind("\n", 0, span.start) + 1, (text + "\n").index("\n", span.end)
    indent = len(text[start:end]) - len(text[start:end].lstrip())
    yield Edit(start + indent, end, new)
    if new.endswith("="):  # the name of an option, whose value stays
        yield Edit(span.start, span.end, new + span.text.partition("=")[2])


def corrected(source: Source, run: Callable[[Source], Any]) -> tuple[Any, Source]:
    """Run a program, correct it while that helps; the last report and the text that gave it."""
    report = run(source)
    for _ in range(MOST):
        found = _edits(report, source)
        if not found:
            break
        changed = Source(applied(source.text, found), source.name)
        after = run(changed)
        if _same(report.error, after.error, found):
            break
        report, source = after, changed
    return report, source


def proposed(report: Any, source: Source, run: Callable[[Source], Any]) -> Source | None:
    """The program with a change that a help means, and gets further with or is not warned of any
    more; what it computes may be another thing then."""
    error = report.error
    for diagnostic in [error.diagnostic, *report.warnings] if error else report.warnings:
        for edit in islice(edits_of(diagnostic, source), TRIES):
            changed = Source(applied(source.text, [edit]), source.name)
            lines = changed.text.count("\n") - source.text.count("\n")
            if _further(report, run(changed), lines):
                return changed
    return None


def _further(before: Any, after: Any, lines: int) -> bool:
    if after.error is None:
        return before.error is not None or len(after.warnings) < len(before.warnings)
    line, old = (e.span.line if e and e.span else 0 for e in (after.error, before.error))
    found = before.error and before.error.code in _NAMES and after.error.code not in _NAMES
    return before.error is not None and line + bool(found) > old + lines


def _edits(report: Any, source: Source) -> list[Edit]:
    if report.error is None:
        return []
    errors: Iterable[AutodiffError] = (report.error, *report.more_errors)
    found = {edit for e in errors if (edit := edit_of(e.diagnostic, source)) is not None}
    return sorted(found)


def _same(before: AutodiffError, after: AutodiffError | None, edits: list[Edit]) -> bool:
    """Whether the program still fails where it did, so that the correction was none."""
    if after is None or after.span is None or before.span is None:
        return False
    moved = sum(len(e.text) - (e.end - e.start) for e in edits if e.end <= before.span.start)
    return after.code == before.code and after.span.start == before.span.start + moved


def applied(text: str, edits: list[Edit]) -> str:
    """The text with all edits made; they are in order and apart."""
    pieces, at = [], 0
    for edit in edits:
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, text[at:]])


def written_back(data: bytes, text: str) -> bytes:
    """The bytes of a file with its text corrected: a byte-order mark and line ends stay."""
    raw = data.decode("utf-8-sig")
    mark = data[: len(data) - len(raw.encode("utf-8"))]
    pieces = re.split(r"(\r\n|\r|\n)", raw)
    pieces[::2] = text.split("\n")  # corrections are inside lines
    return mark + "".join(pieces).encode("utf-8")
