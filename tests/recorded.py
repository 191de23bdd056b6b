"""Comparing a run with what was recorded of PyTorch: prints, tensors, the failing line."""

from __future__ import annotations

import gzip
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from autodiff_cli.session import Options, Report, run
from autodiff_cli.source import Source

FIXTURES = Path(__file__).parent / "fixtures"
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-3}


@cache
def cases(name: str) -> Any:
    """The cases of a fixture file, which several modules read."""
    path = FIXTURES / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text("utf-8"))
    with gzip.open(FIXTURES / f"{name}.json.gz") as file:
        return json.load(file)


def close(found: np.ndarray, expected: Any, dtype: str, scale: float = 1.0) -> bool:
    """Equal to rounding, in relation to the largest value."""
    tolerance = TOLERANCE.get(dtype, 0.0) * scale
    wanted = np.array(expected, dtype=object).astype(float).reshape(found.shape)
    size = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)))
    same = np.isclose(found.astype(float), wanted, tolerance, tolerance * size, equal_nan=True)
    return bool(same.all())


# `<MulBackward0 object at 0x7f3c058d88d0>` is recorded as `<MulBackward0>`.
OBJECT = re.compile(r"<(?:[\w.]+\.)?(\w+) object at 0x[0-9a-f]+>")


def same_text(found: str, expected: str) -> bool:
    """Equal but for the last digits of floats, and for what only tells objects apart."""
    found = OBJECT.sub(r"<\1>", found)
    if found == expected:
        return True
    if NUMBER.sub("#", found) != NUMBER.sub("#", expected):
        return False
    pairs = zip(NUMBER.findall(found), NUMBER.findall(expected), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=3e-4, abs_tol=1.01e-4) for a, b in pairs)


# Of an exception that a program prints its class, not its words; of an object not where it lies.
WORDS = re.compile(r"^(.*?\b\w*(?:Error|Exception|Iteration|Warning)\b).*$", re.MULTILINE)
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def same_but_words(found: str, expected: str) -> bool:
    """`same_text` of what programs print that were drawn at random."""
    plain = (OBJECT.sub(r"<\1>", WORDS.sub(r"\1", text)) for text in (found, expected))
    return same_text(*(ADDRESS.sub("", text) for text in plain))


def check(case: dict[str, Any], names: bool = True, scale: float = 1.0) -> Report:
    """Run a case here; everything that was recorded must be so."""
    report = run(Source(case["source"], "program.py"), Options())
    if case["error"] is not None:
        assert report.error is not None
        assert report.error.span is not None
        assert report.error.span.source.name == "program.py"
        assert report.error.span.line == case["error"]["line"], str(report.error)
        assert report.error.diagnostic.helps
    else:
        assert report.error is None, str(report.error)
        for name, want in case["tensors"].items():
            got = report.tensors[name]
            assert (list(got.shape), got.dtype) == (want["shape"], want["dtype"]), name
            assert got.requires_grad == want["requires_grad"], name
            assert got.is_leaf == want["is_leaf"], name
            assert not names or got.grad_fn == want["grad_fn"], name
            assert close(got.value, want["value"], got.dtype, scale), (
                name,
                got.value,
                want["value"],
            )
            assert (got.grad is None) == (want["grad"] is None), name
            if got.grad is not None:
                assert close(got.grad, want["grad"], got.dtype, scale), (
                    name,
                    got.grad,
                    want["grad"],
                )
    assert same_text(report.stdout, case["stdout"]), f"{report.stdout}\n---\n{case['stdout']}"
    return report
