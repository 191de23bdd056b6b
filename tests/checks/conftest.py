"""The command in a real process, in a folder of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.render import checks

DEMO = "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


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
            "PYTHONDONTWRITEBYTECODE": "1",
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


def read(text: str, name: str) -> dict[str, Any]:
    """A document read by a strict reader and held against the schema that ships with it."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    (line,) = text.splitlines()
    found: dict[str, Any] = json.loads(line, parse_constant=refuse)
    path = Path(checks.__file__).parent / "schema" / f"{name}-1.json"
    schema = json.loads(path.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(found)
    return found
