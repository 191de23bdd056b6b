"""The import contracts of pyproject.toml hold: layers, lark, rich and click, no oracle."""

from __future__ import annotations

from pathlib import Path

import pytest
from importlinter.cli import lint_imports


def test_import_contracts(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    status = lint_imports(config_filename=str(project / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out
