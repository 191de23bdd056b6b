"""The command in a real process, in a folder of its own; and what every check in this process says
is compared with what it once said, word for word: `RECORD_SAID=1 pytest tests/checks` writes it."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from autodiff_cli.checks.model import FileResult, Item
from autodiff_cli.checks.runner import FileCheck
from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.render import checks

DEMO = "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


SAID = Path(__file__).parents[1] / "fixtures" / "checks.json"
RECORDED: dict[str, list[str]] = json.loads(SAID.read_text("utf-8")) if SAID.exists() else {}


def words(item: Item) -> str:
    """An item with all that is said about it."""
    found = [f"{item.label} line {item.line} {item.status} {item.note}".rstrip()]
    if (d := item.diagnostic) is not None:
        place = "" if d.span is None else f"{d.span.line}:{d.span.column} `{d.span.text}`"
        found += [f"{d.severity} {d.code} {d.message}", place, d.label, *d.notes, *d.helps]
        found += [f"{label.span.line}:{label.span.column} {label.text}" for label in d.labels]
    return "\n".join(found)


@pytest.fixture(autouse=True)
def said(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """What the checks of a test say is what they said."""
    results: list[FileResult] = []
    run = FileCheck.run

    def noted(self: FileCheck) -> None:
        results.append(self.result)
        run(self)

    monkeypatch.setattr(FileCheck, "run", noted)
    yield
    name = request.node.nodeid.partition("tests/checks/")[2]
    if name.partition("[")[0] in TIMED or not results:
        return
    lines = [words(item) for result in results for item in result.items]
    lines = [NAMED.sub("", line.replace(str(tmp_path), "")) for line in lines]
    if os.environ.get("RECORD_SAID"):
        RECORDED[name] = lines
        rows = (f"{json.dumps(key)}: {json.dumps(RECORDED[key])}" for key in sorted(RECORDED))
        SAID.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
    assert lines == RECORDED.get(name)


# Folders, the words of a file's name that were drawn, the version.
NAMED = re.compile(r"/\S*/(?=\w)|(?<=autodiff-crash-)\w+|(?<=in autodiff )[\d.]+")
# What these say depends on how quick the machine is, or is the same each time.
TIMED = {"test_gradients.py::test_time_is_limited", "test_time_over.py::test_the_time_is_over"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with `demo.expr`, which is the current one."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "demo.expr").write_text(DEMO)
    return work


@pytest.fixture
def run(folder: Path, project: Path) -> Run:
    """Run `autodiff` with these words; more environment variables as keywords."""

    def call(*words: str, module: str = "autodiff_cli", **variables: str) -> object:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(project),
            "XDG_CACHE_HOME": str(folder.parent / "cache"),
            **variables,
        }
        return subprocess.run(
            [sys.executable, "-m", module, *words],
            capture_output=True, text=True, cwd=folder, env=environment, timeout=60,
        )  # fmt: skip

    return call  # type: ignore[return-value]  # CompletedProcess in fact


@pytest.fixture
def call(folder: Path) -> Run:
    """The same in this process, which is quicker."""

    def call(*words: str, **variables: str) -> object:
        out, err = io.StringIO(), io.StringIO()
        variables = {"XDG_CACHE_HOME": str(folder.parent / "cache"), **variables}
        code = main(list(words), Environment(io.StringIO(), out, err, variables))
        return subprocess.CompletedProcess(words, int(code), out.getvalue(), err.getvalue())

    return call  # type: ignore[return-value]  # CompletedProcess in fact


@cache
def validator(name: str) -> Any:
    """Of a schema that ships."""
    path = Path(checks.__file__).parent / "schema" / f"{name}-1.json"
    schema = json.loads(path.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def read(text: str, name: str) -> dict[str, Any]:
    """A document read by a strict reader and held against the schema that ships with it."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    (line,) = text.splitlines()
    found: dict[str, Any] = json.loads(line, parse_constant=refuse)
    validator(name).validate(found)
    return found
