"""Native programs and their options give PyTorch's numbers; their plain output runs again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.render.plain import plain
from autodiff_cli.session import Options, Report, run
from autodiff_cli.source import Source

CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "native.json").read_text("utf-8"))


def run_case(case: dict[str, Any], folder: Path) -> Report:
    for name, content in case["files"].items():
        (folder / name).write_text(content)
    given = dict(case["options"])
    given["defines"] = tuple(tuple(define) for define in given["defines"])
    given["wrt"] = tuple(given.get("wrt", ()))
    return run(Source(case["source"], str(folder / "program.expr")), Options(**given))


def assert_close(found: np.ndarray, expected: Any, name: str) -> None:
    tolerance = 1e-5 if found.dtype == np.float32 else 1e-10
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_as_pytorch(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = run_case(case, tmp_path)
    assert report.error is None, str(report.error)
    assert report.loss == case["loss"]
    for name, want in case["tensors"].items():
        got = report.tensors[name]
        assert (list(got.shape), got.dtype) == (want["shape"], want["dtype"]), name
        assert got.requires_grad == want["requires_grad"], name
        assert got.grad_fn == want["grad_fn"], name
        assert_close(got.value, want["value"], name)
        assert (got.grad is None) == (want["grad"] is None), name
        if got.grad is not None:
            assert_close(got.grad, want["grad"], f"{name}.grad")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_plain_output_runs_again(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = run_case(case, tmp_path)
    again = run(Source(plain(first), "again.expr"))
    assert again.error is None, str(again.error)
    for name, record in first.tensors.items():
        other = again.tensors[name]
        assert (other.dtype, other.requires_grad) == (record.dtype, record.requires_grad)
        np.testing.assert_array_equal(other.value, record.value)
        if record.grad is not None:
            assert other.grad is not None
            np.testing.assert_array_equal(other.grad, record.grad)


def test_gradient_of_the_loss_itself_is_kept_when_asked_for() -> None:
    report = run(Source("x = [1.0, 2.0]\nloss = sum(x * x)\nloss.retain_grad()\n", "kept.expr"))
    assert report.tensors["loss"].grad == 1.0
    assert report.tensors["x"].grad.tolist() == [2.0, 4.0]
