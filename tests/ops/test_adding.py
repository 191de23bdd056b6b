"""docs/adding-an-op.md is followed to the letter, in a copy of the package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from math import cos, exp, sin
from pathlib import Path

import pytest

COMMANDS = """
from autodiff_cli.cli.main import main
for words in ("run --format json wave.expr", "check wave.expr", "ops ripple"):
    assert main(words.split()) == 0
    print("----")
"""
PAGE = Path(__file__).parents[2] / "docs" / "adding-an-op.md"


def test_an_op_that_pytorch_does_not_have(project: Path, tmp_path: Path) -> None:
    shutil.copytree(project / "autodiff_cli", tmp_path / "autodiff_cli")
    text = PAGE.read_text("utf-8").partition("## An op that PyTorch does not have")[2]
    name, code = re.findall(r"`(autodiff_cli/ops/\S+)`:\n\n```python\n(.*?)```", text, re.S)[0]
    (tmp_path / name).write_text(code, "utf-8")
    (tmp_path / "wave.expr").write_text("x = [0.5, -1.0]\nloss = sum(ripple(x))\n", "utf-8")

    def python(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert not done.returncode, done.stdout + done.stderr
        return done.stdout

    python("-m", "autodiff_cli.ops.build")
    run, _, *page = python("-c", COMMANDS).split("\n----\n")
    report = json.loads(run)
    slopes = [exp(-x * x) * (cos(x) - 2 * x * sin(x)) for x in (0.5, -1.0)]
    assert report["tensors"]["x"]["grad"] == pytest.approx(slopes)
    assert "A wave that dies out." in page[0]
    before = (project / "autodiff_cli" / "ops" / "index.txt").read_text("utf-8").splitlines()
    after = (tmp_path / "autodiff_cli" / "ops" / "index.txt").read_text("utf-8").splitlines()
    assert [line for line in after if line not in before] == ["pointwise.waves: ripple"]


def test_every_family_is_listed(project: Path) -> None:
    listed = set(re.findall(r"`(\w+)`", PAGE.read_text("utf-8").partition("## Families")[2]))
    files = (project / "autodiff_cli" / "ops").glob("*/[!_]*.py")
    families = {path.stem for path in files if path.parent.name != "kernels"}
    assert listed - {"F"} == families
