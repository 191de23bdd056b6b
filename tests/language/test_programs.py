"""Programs in PyTorch's words do here what they did in PyTorch: prints, tensors, failing lines."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.session import Report, run
from autodiff_cli.source import Source

CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "programs.json").read_text("utf-8"))
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def array_of(value: Any) -> np.ndarray:
    """Values of the fixture; text stands for what is not finite."""
    return np.array(value, dtype=object).astype(float)


def close(found: np.ndarray, expected: Any, dtype: str) -> bool:
    tolerance = {"float32": 2e-5, "float16": 2e-3}.get(dtype, 1e-10)
    wanted = array_of(expected).reshape(found.shape)
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    near = np.isclose(found.astype(float), wanted, tolerance, tolerance * scale, equal_nan=True)
    return bool(near.all())


def same_text(found: str, expected: str) -> bool:
    """Equal but for the last digits of floats."""
    if found == expected:
        return True
    if NUMBER.sub("#", found) != NUMBER.sub("#", expected):
        return False
    pairs = zip(NUMBER.findall(found), NUMBER.findall(expected), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=3e-4, abs_tol=1.01e-4) for a, b in pairs)


def check_tensors(report: Report, expected: dict[str, Any]) -> None:
    for name, want in expected.items():
        got = report.tensors[name]
        assert (list(got.shape), got.dtype) == (want["shape"], want["dtype"]), name
        assert got.requires_grad == want["requires_grad"], name
        assert got.is_leaf == want["is_leaf"], name
        assert got.grad_fn == want["grad_fn"], name
        assert close(got.value, want["value"], got.dtype), (name, got.value, want["value"])
        assert (got.grad is None) == (want["grad"] is None), name
        if got.grad is not None:
            assert close(got.grad, want["grad"], got.dtype), (name, got.grad, want["grad"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_as_pytorch(case: dict[str, Any]) -> None:
    report = run(Source(case["source"], "program.py"))
    if case["error"] is None:
        assert report.error is None, str(report.error)
        check_tensors(report, case["tensors"])
    else:
        assert report.error is not None
        assert report.error.span is not None
        assert report.error.span.line == case["error"]["line"], str(report.error)
        assert report.error.diagnostic.helps
    assert same_text(report.stdout, case["stdout"]), f"{report.stdout}\n---\n{case['stdout']}"
