"""ruff and mypy find nothing, with the settings of pyproject.toml."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "--no-cache", "."], ["mypy", "--no-error-summary"]],
    ids=["ruff", "mypy"],
)
def test_clean(project: Path, command: list[str]) -> None:
    if command[0] == "mypy" and not (project / ".mypy_cache").exists():  # nobody asks again
        command = [*command, f"--cache-dir={os.devnull}"]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_exceptions_to_the_rules_have_reasons(project: Path) -> None:
    """Beside each `type: ignore` and `noqa`, in code that is written by hand."""
    mark = re.compile(r"#(?: type: ignore| (?:ruff: )?noqa).*")
    reason = re.compile(
        r"# (?:type: ignore\[[a-z, -]+\]|(?:ruff: )?noqa: [A-Z0-9, ]+)(?:  # | - ).+"
    )
    files = [
        p
        for root in ("autodiff_cli", "tests", "benchmarks")
        for p in project.glob(f"{root}/**/*.py")
    ]
    found = [(str(p), line) for p in files for line in mark.findall(p.read_text("utf-8"))]
    assert len(found) > 100
    bare = [place for place in found if not reason.fullmatch(place[1])]
    assert not bare
