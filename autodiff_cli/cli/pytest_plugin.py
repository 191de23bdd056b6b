"""pytest collects `.expr` files: one item for every check, under a node for the file.

Nothing but pytest is imported until a `.expr` file is seen: pytest loads this module in every run
of its environment. `-p no:autodiff` switches it off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WORKERS = pytest.StashKey[list[Any]]()


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
        default=False,
        help="write new values into the `#=>` expectations and snapshots of .expr files",
    )
    group.addoption(
        "--no-expr", action="store_true", default=False, help="do not collect .expr files"
    )
    parser.addini(
        "expr_files", "glob patterns of the programs that are collected", "args", ["*.expr"]
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A program is a file node."""
    config = parent.config
    if config.getoption("--no-expr") or file_path.name.startswith("_"):
        return None
    if file_path.suffix not in (".expr", ".py") or not any(
        file_path.match(pattern) for pattern in config.getini("expr_files")
    ):
        return None
    node: pytest.Collector = ExprFile.from_parent(parent, path=file_path)
    return node


class ExprFile(pytest.File):
    """One program. It runs once to know its items; each item checks itself anew, so that it can
    run in any process."""

    def collect(self) -> Iterator[pytest.Item]:
        """The items of the program, in its order."""
        from ..checks.model import Settings

        result = _checked(self, Settings(collect=True, ci=True))
        items = result.items
        if not any(item.kind == "run" for item in items):
            items = []
        for found in items:
            yield ExprItem.from_parent(self, name=found.label, kind=found.kind, line=found.line)


class ExprItem(pytest.Item):
    """One check of a program."""

    def __init__(self, *, kind: str, line: int, **keywords: Any):
        super().__init__(**keywords)
        self.kind = kind
        self.line = line

    def runtest(self) -> None:
        """Check this item alone."""
        from ..checks.model import Settings
        from ..render.plain import plain

        settings = Settings(
            only=(f"{_shown(self)}::{self.name}",),
            update=self.config.getoption("--expr-update"),
            plain=plain,
        )
        result = _checked(self, settings)
        self._write(result)
        for item in result.items:
            if item.bad:
                raise Failed(item.diagnostic)
            if item.label == self.name and item.diagnostic is not None:
                from ..render.diagnostics import render

                self.add_report_section("call", "autodiff", render(item.diagnostic))
                self.user_properties.append(("autodiff", item.status))

    def _write(self, result: Any) -> None:
        import os

        from ..render.files import CannotWrite, write_bytes

        if result.changes and os.environ.get("CI"):
            raise Failed(None, "nothing is updated under CI")
        if result.changes and os.environ.get("PYTEST_XDIST_WORKER"):
            raise Failed(None, "two processes may write one file: --expr-update without -n")
        for path, _, new in result.changes:
            try:
                write_bytes(path, new.encode("utf-8"))
            except CannotWrite as problem:
                raise Failed(None, problem.message) from None

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Our frame is the text of a failure."""
        if isinstance(excinfo.value, Failed):
            return excinfo.value.text()
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the check stands; pytest counts lines from 0."""
        return self.path, self.line - 1, self.name


class Failed(Exception):
    """A check failed."""

    def __init__(self, diagnostic: Any, message: str = ""):
        super().__init__(message or getattr(diagnostic, "message", "the check failed"))
        self.diagnostic = diagnostic

    def text(self) -> str:
        """The rendered diagnostic."""
        if self.diagnostic is None:
            return str(self)
        from ..render.diagnostics import render

        return render(self.diagnostic)


def _checked(node: pytest.Item | pytest.Collector, settings: Any) -> Any:
    """Check a program in a process that is kept for all of them; where one is lost, the next check
    has a new one."""
    from ..checks.many import Crew

    workers = node.config.stash.setdefault(WORKERS, [])
    return next(Crew([_shown(node)], settings, 1, workers).results())


def _shown(node: pytest.Item | pytest.Collector) -> str:
    """The path as messages show it, relative to the folder pytest was started in."""
    start = node.config.invocation_params.dir
    try:
        return str(node.path.relative_to(start)) if Path.cwd() == start else str(node.path)
    except ValueError:
        return str(node.path)
