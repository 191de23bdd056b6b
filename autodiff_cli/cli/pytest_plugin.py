"""pytest collects `.expr` files: items for what is checked, under a node for the file.

Nothing but pytest is imported until a program runs: pytest loads this module in every run of its
environment. `-p no:autodiff` switches it off.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WORKERS = pytest.StashKey[list[Any]]()
CHECK = "autodiff_cli.cli.checked:check"  # what they run

FIRST = 1 << 13  # characters of a file that are looked at before it is taken for a program
PROGRAM = re.compile(
    r"[ \t]*(?:[A-Za-z_][\w.]*[ \t]*(?:[(=,\[]|[-+*/@]=)[^\t]|import |from |def |class |# ?check:)"
)
CHECKED = re.compile(r"[ \t]*(?:(assert)\b|[^\n]*#=>)")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process that checked programs."""
    for worker in config.stash.get(WORKERS, []):
        worker.end()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("autodiff")
    group.addoption(
        "--expr-update",
        action="store_true",
        help="write new values into the `#=>` expectations and snapshots of .expr files",
    )
    group.addoption("--no-expr", action="store_true", help="do not collect .expr files")
    parser.addini(
        "expr_files",
        "glob patterns of the programs that are collected; by default *.expr files that look like "
        "programs",
        "args",
        [],
    )


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """A program is a file node, and nothing else: a `.py` that is one is not imported."""
    others = yield
    return [ExprFile.from_parent(parent, path=file_path)] if _ours(file_path, parent) else others


def pytest_collection_finish(session: pytest.Session) -> None:
    """Each program knows which of its items will run, and which programs come with it."""
    series = Series()
    for item in session.items:
        if not isinstance(item, ExprItem):  # it may write programs
            series = Series()
            continue
        item.parent.chosen.append(item.name)
        if item.parent not in series.files:
            series.files[item.parent] = None
            item.parent.series = series


def _ours(path: Path, parent: pytest.Collector) -> bool:
    config = parent.config
    if path.suffix not in (".expr", ".py") or path.name.startswith("_"):
        return False
    patterns = config.getini("expr_files")
    if config.getoption("--no-expr") or not any(map(path.match, patterns or ["*.expr"])):
        return False
    if patterns or parent.session.isinitpath(path):
        return True
    try:
        with open(path, encoding="utf-8") as file:
            return any(map(PROGRAM.match, file.readlines(FIRST)))
    except (OSError, ValueError):
        return False


class ExprFile(pytest.File):
    """One program. Its text says what its items are; it runs once for all that were chosen."""

    found: list[Any] | None = None
    series: Series

    def collect(self) -> Iterator[pytest.Item]:
        """An item for the run, each assertion and expectation, the snapshot, the gradients."""
        text = self.path.read_text("utf-8", "replace")
        self.labels = labels = {"run": 1}
        self.chosen: list[str] = []
        for line, words in enumerate(text.split("\n"), 1):
            if match := CHECKED.match(words):
                labels[f"{'assert' if match[1] else 'expect'}[{line}]"] = line
        if Path(f"{self.path}.snap").exists():
            labels["snapshot"] = 1
        for label, line in {**labels, "grad": 1}.items():
            # As pytest reads it again for `--lf`: what it makes of a name alone has no brackets.
            nodeid = f"{self.nodeid}::{label}"
            yield ExprItem.from_parent(self, name=label, nodeid=nodeid, line=line)

    @property
    def whole(self) -> bool:
        """Whether all is checked; else what was chosen, the others' part belongs to the run."""
        return "run" in self.chosen and not self.config.getoption("--expr-update")

    def items(self) -> list[Any]:
        """What was found about the items that were chosen."""
        with _as_written(self.config):
            if self.found is None and self.whole and not hasattr(self.config, "workerinput"):
                self.series.check(self)
            if self.found is None:
                ((_, result),) = _checked([self])
                _write(result.changes)
                self.found = result.items
        return self.found


class Series:
    """Programs without other tests between them: while pytest tells of one the next is checked."""

    def __init__(self) -> None:
        self.files: dict[ExprFile, None] = {}
        self.checked: Iterator[tuple[ExprFile, Any]] | None = None

    def check(self, last: ExprFile) -> None:
        """Check programs up to this one."""
        if self.checked is None:
            self.checked = _checked([file for file in self.files if file.whole])
        for file, result in self.checked:
            file.found = result.items
            if file is last:
                break


def _checked(files: list[ExprFile]) -> Iterator[tuple[ExprFile, Any]]:
    """Programs and what was found about them, by the process that checked those before."""
    from ..checks.many import Crew
    from ..checks.model import Settings

    config, names = files[0].config, list(map(_shown, files))
    whole = all(file.whole for file in files)
    settings = Settings(
        only=() if whole else tuple(f"{names[0]}::{label}" for label in files[0].chosen),
        update=config.getoption("--expr-update"),
    )
    workers = config.stash.setdefault(WORKERS, [])
    for worker in workers[:]:
        if worker.at is not None:  # nobody waits for that any more
            worker.end()
            workers.remove(worker)
    crew = Crew(CHECK, names, settings, 1, workers)
    return zip(files, crew.results(), strict=True)


class ExprItem(pytest.Item):
    """The checks of a program that have one name: `expect[3]`, or `grad` for all of a kind."""

    parent: ExprFile

    def __init__(self, *, line: int, **keywords: Any):
        super().__init__(**keywords)
        self.line = line

    def runtest(self) -> None:
        """Tell what was found, and run the program if no other item of it did."""
        items = self.parent.items()
        mine = [item for item in items if self._tells(item)]
        for status, end in (("skipped", pytest.skip), ("xfailed", pytest.xfail)):
            for item in items if status == "skipped" else mine:
                if item.status == status:
                    end(item.note or status)
        if bad := [item for item in mine if item.bad]:
            raise Failed([item.diagnostic for item in bad])
        if not mine and self.name != "run":
            pytest.skip("the program has none, or did not get there")
        for item in mine:
            if item.diagnostic is not None:
                from ..render.diagnostics import render

                self.user_properties.append(("autodiff", f"{item.label}: {item.status}"))
                if item.status == "kink":  # nothing is wrong there
                    self.add_report_section("call", "autodiff", render(item.diagnostic))
                else:
                    self.warn(ExprWarning(render(item.diagnostic)))

    def _tells(self, item: Any) -> bool:
        if self.name == "grad":
            return item.kind in ("grad", "hess")
        if item.label == self.name:
            return True
        known = item.kind in ("grad", "hess") or item.label in self.parent.labels
        return self.name == "run" and not known

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Our frame is the text of a failure."""
        if isinstance(excinfo.value, Failed | ExprWarning):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the check stands; pytest counts lines from 0."""
        return self.path, self.line - 1, self.name


@contextmanager
def _as_written(config: pytest.Config) -> Iterator[None]:
    """Modules are loaded without pytest's own assertions in them, which takes twice as long."""
    import sys

    hook = config.pluginmanager.rewrite_hook
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "meta_path", [f for f in sys.meta_path if id(f) != id(hook)])
        yield


def _write(changes: list[Any]) -> None:
    """New values of expectations and snapshots."""
    import os

    from ..render.files import CannotWrite, write_bytes

    if changes and os.environ.get("CI"):
        raise Failed([], "nothing is updated under CI")
    if changes and os.environ.get("PYTEST_XDIST_WORKER"):
        raise Failed([], "two processes may write one file: --expr-update without -n")
    for path, _, new in changes:
        try:
            write_bytes(path, new.encode("utf-8"))
        except CannotWrite as problem:
            raise Failed([], problem.message) from None


class ExprWarning(pytest.PytestWarning):
    """A gradient could not be checked, or is none of a function (W602)."""


class Failed(Exception):
    """Checks failed, with these diagnostics."""

    def __init__(self, diagnostics: list[Any], message: str = ""):
        super().__init__(message)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        from ..render.diagnostics import render

        return "\n".join(map(render, self.diagnostics)) or super().__str__()


def _shown(node: pytest.Item | pytest.Collector) -> str:
    """The path as messages show it, relative to the folder pytest was started in."""
    start = node.config.invocation_params.dir
    try:
        return str(node.path.relative_to(start)) if Path.cwd() == start else str(node.path)
    except ValueError:
        return str(node.path)
