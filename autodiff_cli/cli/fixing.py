"""`--fix`: corrections that a diagnostic proposes, applied to the program's text.

Invariant: a correction is kept only if the program gets further with it; the file changes nowhere
else, not even in its line ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..source import Source

if TYPE_CHECKING:
    from ..errors import AutodiffError, Diagnostic

MOST = 100  # rounds; each corrects everything it can
_MEANT = re.compile(r"did you mean `\.?(?:\w+\.)*([^\W\d]\w*)`\?")
_NAMES = ("E201", "E202", "E203", "E207")


class Edit(NamedTuple):
    """Put `text` in place of the characters `start:end`."""

    start: int
    end: int
    text: str


def edit_of(diagnostic: Diagnostic, source: Source) -> Edit | None:
    """The correction that a diagnostic proposes: `**` for `^`, the name that was meant."""
    span = diagnostic.span
    if span is None or span.source is not source:
        return None
    if diagnostic.code == "E105" and span.text == "^":
        return Edit(span.start, span.end, "**")
    meant = next(filter(None, map(_MEANT.match, diagnostic.helps)), None)
    if diagnostic.code in _NAMES and meant is not None and span.text.isidentifier():
        return Edit(span.start, span.end, meant[1])
    return None


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
