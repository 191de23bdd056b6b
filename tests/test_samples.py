"""The samples that a reader tries first: they run, quietly, and say what the README says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.render.plain import plain
from autodiff_cli.session import run
from autodiff_cli.source import Source

FOLDER = Path(__file__).parents[1] / "samples"
SAMPLES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".expr", ".py"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_runs_quietly(path: Path) -> None:
    report = run(Source(path.read_text("utf-8"), str(path)))
    assert report.error is None, str(report.error)
    assert not report.warnings
    assert report.tensors
    gradients = [record.grad for record in report.tensors.values() if record.grad is not None]
    assert gradients
    assert all(np.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize(
    "path", [path for path in SAMPLES if path.suffix == ".expr"], ids=lambda path: path.name
)
def test_plain_output_runs_again(path: Path) -> None:
    first = run(Source(path.read_text("utf-8"), path.name))
    second = run(Source(plain(first), path.name))
    assert second.error is None, str(second.error)
    for name, record in first.tensors.items():
        np.testing.assert_array_equal(second.tensors[name].value, record.value)


def test_demo_as_in_the_readme() -> None:
    report = run(Source((FOLDER / "demo.expr").read_text("utf-8"), "demo.expr"))
    a, b = report.tensors["A"].grad, report.tensors["B"].grad
    assert a is not None
    assert b is not None
    assert (a.tolist(), b.tolist()) == ([[7, 10], [13, 16]], [[1, 2], [3, 4]])
    assert report.tensors["loss"].value == 100
