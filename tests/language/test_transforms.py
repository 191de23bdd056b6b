"""Programs with transforms leave the tensors that PyTorch left, and fail in the same lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from tests.together import together

FIXTURE = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "transforms.json").read_text("utf-8")
)


def numbers(value: Any) -> np.ndarray:
    return np.array(value, dtype=float)


def check(case: dict[str, Any]) -> None:
    report = run(
        Source(FIXTURE["prelude"] + case["program"] + "\n", "<test>"), Options(backward=False)
    )
    if report.error is not None:
        raise report.error
    for name, wanted in case["tensors"].items():
        found = report.tensors[name]
        assert list(found.shape) == wanted["shape"], name
        assert str(found.dtype) == wanted["dtype"], name
        assert found.requires_grad == wanted["requires_grad"], name
        assert found.is_leaf == wanted["is_leaf"], name
        np.testing.assert_allclose(
            numbers(found.value),
            numbers(wanted["value"]).reshape(found.shape),
            rtol=1e-9,
            atol=1e-11,
            err_msg=name,
        )


@together(FIXTURE["cases"], lambda case: case["program"])
def test_as_pytorch(case: dict[str, Any]) -> None:
    check(case)


@together(FIXTURE["failing"], lambda case: case["program"])
def test_fails_where_pytorch_fails(case: dict[str, Any]) -> None:
    source = Source(FIXTURE["prelude"] + case["program"] + "\n", "<test>")
    report = run(source, Options(backward=False))
    assert report.error is not None
    assert report.error.code != "E900"
    assert report.error.span is not None and report.error.span.line == case["line"]
    assert report.error.diagnostic.helps
