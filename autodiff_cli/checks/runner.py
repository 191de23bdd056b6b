"""Checking one file: run it once, then every item of it.

Invariant: whatever a file does wrong, `check_file` returns a result; nothing is written here,
changes are only proposed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from shlex import quote
from typing import Any

from ..autograd.rules import RuleError
from ..crash import crashed
from ..ended import explained
from ..errors import AutodiffError, Diagnostic, fail, fault, reason_of
from ..graph.state import STATE, own_state
from ..language.errors.exhaustion import out_of_memory
from ..language.program.report import Options, Report
from ..language.syntax.decode import decode
from ..language.values.exceptions import Handed
from ..outside import OUTSIDE, Lost
from ..source import Source
from . import expectations, snapshots
from .collect import BadKeyword, arrays_beside, leads_out, matches
from .comments import Directives, Expectation, read_comments
from .deadline import alarms, deadline, told_the_host
from .gradients import gradient_items
from .many import Crew, lost_file
from .model import ERROR, FAILED, SKIPPED, XFAILED, FileResult, Item, Settings
from .watched import Watched

FEW = 8  # fewer files are not worth starting processes

MAX_FILE = 1 << 26


def check_file(path: str, settings: Settings) -> FileResult:
    """Everything about one file of the disk."""
    started = time.perf_counter()
    OUTSIDE.bound(settings.max_memory)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE + 1)
    except (OSError, ValueError) as error:
        message = f"cannot read `{path}`: {reason_of(error)}"
        return _stillborn(path, fail("E701", message, help="check the path"))
    if len(data) > MAX_FILE:
        return _stillborn(path, fault("E505 path-longer-bytes", path, MAX_FILE))
    try:
        source = decode(data, path)
    except AutodiffError as error:
        return _stillborn(path, error)
    result = check_source(source, settings, path)
    result.seconds = time.perf_counter() - started
    return result


def check_many(
    files: list[str], settings: Settings, jobs: int = 1, lost: Lost | None = None
) -> Iterator[FileResult]:
    """The result of every file, in order, as soon as it and those before it are there; the process
    that checked the first one may be lost."""
    if lost is not None and files:
        yield lost_file(files[0], explained(lost, None, settings.timeout))
        files = files[1:]
    if jobs <= 1 or len(files) <= FEW:
        with alarms():
            for file in files:
                yield check_file(file, settings)
        return
    crew = Crew(f"{__name__}:check_file", files, settings, min(jobs, len(files)))
    try:
        yield from crew.results()
    finally:
        crew.dismiss()


@Handed()
def readable(keyword: str) -> None:
    """E205 for words of `-k` that cannot be read."""
    try:
        matches(keyword, "")
    except BadKeyword as problem:
        raise fault("E205 keyword-cannot-be-read", problem) from None


def check_source(source: Source, settings: Settings, path: str | None = None) -> FileResult:
    """Everything about one program; `path` when it is a file, which may have a snapshot."""
    result = FileResult(source.name)
    try:
        with deadline(settings.timeout), own_state():
            FileCheck(source, settings, path, result).run()
    except AutodiffError as error:
        _internal(result, error)
    except RecursionError:
        _internal(result, fail("E507", "the program recurses too deeply", help="use a loop"))
    except MemoryError:
        _internal(result, out_of_memory("checking"))
    except Exception as error:
        if told_the_host(error):
            raise
        failure = crashed(error)
        if isinstance(error, RuleError):
            failure.amend(code="E602", message=f"a backward rule is wrong: {error}")
        _internal(result, failure)
    return result


def _stillborn(path: str, error: AutodiffError) -> FileResult:
    item = Item(path, "run", status=ERROR, diagnostic=error.diagnostic)
    return FileResult(path, [item], unreadable=error.code == "E701")


def _internal(result: FileResult, error: AutodiffError) -> None:
    span = error.span
    run = next((i for i in result.items if i.kind == "run"), None)
    if run is None or run.bad:
        run = Item(result.file, "run")
        result.items.insert(0, run)
    run.status, run.diagnostic = ERROR, error.diagnostic
    run.line = span.line if span is not None and span.source.name == result.file else run.line


class FileCheck:
    """One program and what is asked of it."""

    def __init__(self, source: Source, settings: Settings, path: str | None, result: FileResult):
        self.source = source
        self.settings = settings
        self.path = path
        self.result = result
        self.program: Watched | None = None
        self.report = Report(source.name)
        self.wishes = Directives()
        self.run_seconds: float  # of the processor

    def selected(self, item: Item) -> bool:
        """Whether `-k` and `--lf` choose an item."""
        only = self.settings.only
        if only and item.id not in only and f"{item.file}::{item.kind}" not in only:
            return False
        return matches(self.settings.keyword, item.id)

    def add(self, item: Item) -> bool:
        """Keep an item if it is chosen."""
        if not self.selected(item):
            return False
        self.result.items.append(item)
        return True

    def item(self, kind: str, name: str = "", line: int = 1) -> Item:
        return Item(self.source.name, kind, name, line)

    # -- all of it ------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the program and check all items, unless the file says otherwise."""
        self.wishes = read_comments(self.source)
        if self.wishes.skip is not None:
            run = self.item("run")
            run.status, run.note = SKIPPED, self.wishes.skip
            self.add(run)
            return
        self._check()
        items = self.result.items
        settings = self.settings
        chosen = settings.collect or settings.only or settings.keyword
        if self.wishes.xfail is not None and not settings.collect:
            for item in items:
                if item.bad:
                    item.status, item.note = XFAILED, self.wishes.xfail
            if not chosen and all(item.status != XFAILED for item in items):
                failure = fault("E603 nothing-fails", self.wishes.xfail)
                items[0].status, items[0].diagnostic = FAILED, failure.diagnostic

    def _check(self) -> None:
        started, before = time.perf_counter(), time.process_time()
        error = self._run_program()
        run = self.item("run")
        run.seconds = time.perf_counter() - started
        self.run_seconds = time.process_time() - before
        self.result.warnings = list(self.report.warnings)
        if error is not None:
            run.status, run.diagnostic = ERROR, error.diagnostic
            if error.span is not None and error.span.source is self.source:
                run.line = error.span.line
            self.result.items.append(run)
            self._assertions()
            return
        self.add(run)
        self._assertions()
        self._expectations()
        self._snapshot()
        if self.settings.gradients and not self.wishes.skip_gradients:
            gradient_items(self)
        if self.settings.against:
            from .beside_torch.against_torch import against_item

            against_item(self)

    def options(self) -> Options:
        """How the program runs under a check."""
        settings = self.settings
        return Options(
            nan=self.wishes.nan or settings.nan,
            loss=self.wishes.loss,
            defines=settings.defines,
            opened=settings.opened,
            max_memory=settings.max_memory,
            max_steps=settings.max_steps,
        )

    def _run_program(self) -> AutodiffError | None:
        lines = frozenset(line for e in self.wishes.expectations if (line := self._line_of(e)))
        program = Watched(self.source, self.options(), lines=lines)
        self.program = program
        try:
            program.run()
            program.fill(self.report)
            program.check_finite(self.report)
        except AutodiffError as error:
            self.report.warnings = list(STATE.warnings)
            return error
        self.report.warnings = list(STATE.warnings)
        self.report.stdout = "".join(program.printed)
        return None

    # -- assertions -----------------------------------------------------------------------------

    def _assertions(self) -> None:
        assert self.program is not None
        for line, error in sorted(self.program.assertions.items()):
            item = self.item("assert", str(line), line)
            if error is not None:
                item.status, item.diagnostic = FAILED, error.diagnostic
            self.add(item)

    # -- expectations ---------------------------------------------------------------------------

    def _line_of(self, wish: Expectation) -> int:
        """The line where the statement of an expectation ends; 0 for a named one, or for none."""
        if wish.name:
            return 0
        if not wish.alone:
            return wish.line
        for line in reversed(range(1, wish.line)):
            if self.source.line(line).strip().partition("#")[0]:
                return line
        return 0

    def _expectations(self) -> None:
        edits: list[tuple[int, int, str]] = []
        for wish in self.wishes.expectations:
            item = self.item("expect", str(wish.line), wish.line)
            if not self.selected(item):
                continue
            self.result.items.append(item)
            found, value = self._value_of(wish)
            if not found:
                failure = fault("E603 expectation-without-value", value, span=wish.span)
                item.status, item.diagnostic = FAILED, failure.diagnostic
                continue
            text = expectations.compare(wish.text, value)
            if text is None:
                continue
            fresh = expectations.written(value)
            if self.settings.update and fresh is not None:
                edits.append((wish.start, wish.end, fresh))
                item.note = "updated"
                continue
            item.status = FAILED
            item.diagnostic = Diagnostic(
                "E603",
                f"expectation failed: {text}",
                wish.span,
                notes=expectations.sides(wish.text, value),
                helps=(
                    "if the new value is right: "
                    f"autodiff check {quote(item.file)} -k {quote(item.label)} --update",
                ),
            )
        if edits and self.path is not None:
            self._propose(edits)

    def _value_of(self, wish: Expectation) -> tuple[bool, Any]:
        """Whether there is a value, and the value or what is wrong."""
        program = self.program
        assert program is not None
        if wish.name:
            try:
                return True, program.evaluate_text(wish.name, f"<#=> {wish.name}>")
            except AutodiffError as error:
                return False, error.message
        line = self._line_of(wish)
        if line in program.values:
            return True, program.values[line]
        return False, "no statement that gives a value ends here, or it never ran"

    def _propose(self, edits: list[tuple[int, int, str]]) -> None:
        """New text of the file: only the values change, line ends and a byte-order mark stay."""
        assert self.path is not None
        with open(self.path, "rb") as file:
            data = file.read(MAX_FILE)
        if decode(data, self.path).text != self.source.text:
            raise fault("E603 was-changed-while-was", self.path)
        raw = data.decode("utf-8")
        self.result.changes.append((self.path, raw, expectations.rewritten(raw, edits)))

    # -- snapshots ------------------------------------------------------------------------------

    def _snapshot(self) -> None:
        if self.path is None:
            return
        snap = self.path + snapshots.SUFFIX
        exists = os.path.lexists(snap)
        settings = self.settings
        if not exists and not settings.snapshot:
            return
        item = self.item("snapshot")
        if not self.selected(item):
            return
        self.result.items.append(item)
        for path in (snap, arrays_beside(snap)):
            if leads_out(path, os.path.dirname(path)):
                item.status, item.diagnostic = ERROR, fault("E604 snapshot-link", path).diagnostic
                return
        if not exists:
            if settings.ci:
                item.status = FAILED
                item.diagnostic = fault("E604 no-snapshot", quote(self.source.name)).diagnostic
                return
            self._write_snapshot(snap, None, item)
            return
        try:
            with open(snap, "rb") as file:
                data = file.read(MAX_FILE)
            old = snapshots.read(snap, data)
        except OSError as error:
            item.status = ERROR
            message = f"cannot read `{snap}`: {reason_of(error)}"
            item.diagnostic = fail("E604", message).diagnostic
            return
        except AutodiffError as error:
            item.status, item.diagnostic = FAILED, error.diagnostic
            return
        found = snapshots.compare(old, self.report)
        if not found:
            return
        gone = all(d.code == "E605" for d in found)
        if settings.update or (settings.prune and gone):
            self._write_snapshot(snap, data.decode("utf-8"), item)
            return
        item.status = FAILED
        first = found[0]
        notes = tuple(d.message for d in found[1:6])
        if len(found) > 6:
            notes += (f"... and {len(found) - 6} more",)
        command = f"autodiff check {quote(self.source.name)} -k snapshot --update"
        item.diagnostic = replace(
            first, notes=notes, helps=(f"if the new values are right: {command}",)
        )

    def _write_snapshot(self, snap: str, old: str | None, item: Item) -> None:
        if self.settings.plain is None:
            return
        text = snapshots.write(self.report, self.settings.plain)
        item.note = "written" if old is None else "updated"
        self.result.changes.append((snap, old, text))
        if self.settings.full and self.path is not None:
            arrays = {n: a for n, (a, _) in snapshots.arrays_of(self.report).items()}
            self.result.arrays = (self.path + ".npz", arrays)
