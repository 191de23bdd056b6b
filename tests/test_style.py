"""ruff and mypy find nothing, with the settings of pyproject.toml."""

from __future__ import annotations

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
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
