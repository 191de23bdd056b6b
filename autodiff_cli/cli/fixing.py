"""`--fix`: corrections that a diagnostic proposes, applied to the program's text.

Invariant: a correction is kept only if the program gets further with it; the file changes nowhere
else, not even in its line ends. Only what is safe is written: `**` for `^`, and the one name that
one slip is away. What else helps is proposed as a change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..errors import AutodiffError, Diagnostic
from ..source import Source, Span
from ..suggest import distance_of, likely

MOST = 100  # rounds; each corrects everything it can
TRIES = 12  # changes that are tried before none is proposed
_MEANT = re.compile(r"did you mean `")
_NAMED = re.compile(r"`\.?(?:\w+\.)*([^\W\d]\w*)`")
_NAMES = ("E201", "E202", "E203", "E207")
_PARTS = re.compile(r"[^\W\d]\w*|\d+")
_WORD = re.compile(r"[\w.]+")
_CODE = re.compile(r"`([^`]+)`")
_FOR = re.compile(r"`([^`]+)` for `([^`]+)`")
_BEGIN = re.compile(r"begin the program with `([^`]+)`")
_FIRST = re.compile(r"call `([^`]+)` first in `\w*\.?(\w+)`")
_BEFORE = re.compile(r"(?:or first|make it first:) `([^`]+(?<!\.{3}))`")
_END = re.compile(r"add `([^`]+)` at the end of line (\d+)")
_NO_CODE = re.compile(rf"\.\.\.|for example|{_FOR.pattern}")
_SAID = re.compile(r"did you mean|write")
_OPTION = re.compile(r"\w+=(?!=)")
_STATEMENT = re.compile(r"(\w+ [-+*/]?= |(def|class|if|for|while|with) )")
_TAKE_OUT = re.compile(r"remove (this|the spaces)")
_REMOVED = re.compile(r"remove the `([^`]+)`")


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
    if diagnostic.code == "E105" and "^" in span.text:
        at = span.text.index("^") + span.start
        return Edit(at, at + 1, "**")
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
            word = rf"(?<!\w){re.escape(old)}(?!\w)" if old.isidentifier() else re.escape(old)
            places = [m.start() for m in re.finditer(word, text)]
            near = [at for at in places if any(s.start <= at < s.end for s in spans[:1])]
            yield from (Edit(at, at + len(old), new) for at in [*near, *places])
        for code, where in _FIRST.findall(help):
            yield from (
                Edit(m.end(), m.end(), f"{m[1]}{code}\n")
                for m in re.finditer(rf"def {where}\(.*\n(?=([ \t]+))", text)
            )
        if "outside of the `with" in help:
            yield from (
                Edit(m.start(), m.end(), re.sub(rf"(?m)^{m[1]}[ \t]+", m[1], m[2]))
                for m in re.finditer(r"(?m)^([ \t]*)with .*no_grad.*:\n((?:\1[ \t]+.*\n)+)", text)
            )
        for code in _BEFORE.findall(help):  # before the statement of the module
            at = max(m.start() for m in re.finditer(r"(?m)^(?=\S|\Z)", text[: spans[0].start + 1]))
            yield Edit(at, at, f"{code}\n")
            help = help.replace(f"`{code}`", "")
        for code in _BEGIN.findall(help):
            yield Edit(0, 0, f"{code}\n")
        for code, number in _END.findall(help):
            at = len("".join(text.splitlines(True)[: int(number)]).rstrip("\n"))
            yield Edit(at, at, code)
        if help.startswith("remove this line"):
            start = spans[0].start - spans[0].column + 1
            yield Edit(start, start + len(source.line(spans[0].line)) + 1, "")
        elif removed := _REMOVED.match(help):
            starts = [s.start for s in spans if text.startswith(removed[1], s.start)]
            yield from (Edit(at, at + len(removed[1]), "") for at in starts)
        elif _TAKE_OUT.match(help):
            yield from (Edit(span.start, span.end, "") for span in spans)
        for code in () if _NO_CODE.search(help) else _CODE.findall(help):
            yield from _lines(code, spans, text)
            if not _WORD.fullmatch(code) or _SAID.search(help):
                yield from (edit for span in spans for edit in _in_place(code, span, text))
                yield from _alike(code, spans, text)


def _in_place(code: str, span: Span, text: str) -> Iterator[Edit]:
    """Code for what is marked: a word for a word, an expression for one that has a word of it."""
    if code.endswith("="):  # the name of an option, whose value stays
        _, equals, value = span.text.partition("=")
        yield from [Edit(span.start, span.end, code + value)] if equals else ()
        return
    if _OPTION.match(code) and span.text.endswith(")"):
        yield from _options(code, span)
        return
    head, dot, name = code.rpartition(".")
    inside = not head or (dot and text[: span.start].endswith(f"{head}."))
    new = name if inside else code
    parts, own = set(_PARTS.findall(span.text)), set(_PARTS.findall(new))
    fits = not parts or bool(parts & own)
    if re.fullmatch(r"\w+|\w+=-?\d+", new):
        fits = _WORD.fullmatch(span.text) is not None
    if fits and not _STATEMENT.match(new):
        yield Edit(span.start, span.end, new)


def _options(code: str, span: Span) -> Iterator[Edit]:
    """An argument for the one of its name in the call that is marked; where none has it, behind
    the others, which fails if it is one of them, and for each of them."""
    name, _, value = code.partition("=")
    depth, end, parts = 0, len(span.text) - 1, []
    for at in range(end, -1, -1):
        depth += (span.text[at] in ")]}") - (span.text[at] in "([{")
        if depth == 0 or (depth == 1 and span.text[at] == ","):
            parts.append((at + 1, end))
            end = at
        if depth == 0:
            break
    parts = [(end - len(span.text[at:end].lstrip()), end) for at, end in parts]
    named = [at for at in parts if re.match(rf"{name}\s*=", span.text[slice(*at)])]
    last = span.end - 1
    yield from [] if named else [Edit(last, last, f", {code}")]
    for at, end in named or parts:
        yield Edit(span.start + at, span.start + end, code if named else value)


def _lines(code: str, spans: list[Span], text: str) -> Iterator[Edit]:
    """A statement for the marked line, when both begin alike, or for the line that assigns the
    same name; a block around the marked line."""
    for at, line in ((m.start(1), m[1]) for m in re.finditer(r"^[ \t]*(.+)$", text, re.M)):
        marked = any(at <= s.start <= at + len(line) for s in spans)
        first = re.match(r"\w+", line)
        assigns = _STATEMENT.match(code) and _STATEMENT.match(line)
        if code.startswith("with ") and marked:
            body = f" {line}" if code.endswith(":") and not line.startswith("with ") else ""
            yield Edit(at, at + len(line), code + body)
        elif first and re.match(rf"{first[0]}\b", code) and (marked or assigns):
            yield Edit(at, at + len(line), code)


def _alike(code: str, spans: list[Span], text: str) -> Iterator[Edit]:
    """An expression for the one of the same words that is marked; a call for one of the same
    function with the same number of arguments, some of them the same."""
    words = r"\W*".join(map(re.escape, re.findall(r"\w+", code)))
    for m in re.finditer(rf"\b{words}\b", text) if words else ():
        more = len(re.findall(r"[(\[{]", m[0])) - len(re.findall(r"[)\]}]", m[0]))
        end = m.end() + len(re.match(rf"[)\]}}]{{0,{max(more, 0)}}}", text[m.end() :])[0])  # type: ignore[index]  # it matches all
        if any(m.start() <= span.start <= end for span in spans):
            yield Edit(m.start(), end, code)
    called = re.fullmatch(r"([\w.]+)\((.*)\)", code)
    for m in re.finditer(rf"{re.escape(called[1])}\(([^()]*)\)", text) if called else ():
        new, old = (re.split(r"\s*,\s*", part) for part in (called[2], m[1]))  # type: ignore[index]  # as above
        if len(new) == len(old) > 1 and any(map(str.__eq__, new, old)):
            yield Edit(m.start(), m.end(), code)


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


def proposed(report: Any, source: Source, run: Callable[[Source], Any]) -> Edit | None:
    """A change that a help means, and that the program gets further with or is not warned of any
    more; what it computes may be another thing then."""
    error = report.error
    told = [error.diagnostic, *report.warnings] if error else report.warnings
    edits = dict.fromkeys(edit for diagnostic in told for edit in edits_of(diagnostic, source))
    for edit in islice(edits, TRIES):
        changed = Source(applied(source.text, [edit]), source.name)
        if _further(report, run(changed), source.text, edit):
            return edit
    return None


def _further(before: Any, after: Any, text: str, edit: Edit) -> bool:
    if after.error is None:
        return before.error is not None or len(after.warnings) < len(before.warnings)
    if before.error is None or (after.error.code[:2] == "E1" != before.error.code[:2]):
        return False
    at, same = after.error.span, after.error.code == before.error.code
    if same and at is not None and edit.start < at.end <= edit.start + len(edit.text):
        return False  # what was put there is wrong itself
    lines = edit.text.count("\n") - text[edit.start : edit.end].count("\n")
    shift = len(edit.text) - (edit.end - edit.start)
    line, old = (e.span.line if e.span else 0 for e in (after.error, before.error))
    column, first = (e.span.column if e.span else 0 for e in (after.error, before.error))
    found = before.error.code in _NAMES and after.error.code not in _NAMES
    return line > old + lines or (line == old + lines and (found or column > first + max(shift, 0)))


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
