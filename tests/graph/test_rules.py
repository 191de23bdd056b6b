"""Promotion, broadcasting and strides as PyTorch has them, and binding of arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_cli.ops  # noqa: F401  # declares the table
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.dtypes import FLOAT32
from autodiff_cli.graph.op import constant, number
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.sizes import bytes_text
from autodiff_cli.graph.state import STATE
from autodiff_cli.session import run
from autodiff_cli.source import Source

TABLES = json.loads((Path(__file__).parents[1] / "fixtures" / "graph.json").read_text("utf-8"))
NUMBERS: dict[str, Any] = {"f": 1.0, "i": 1, "u": 1, "b": True}


def operand(dtype: str, kind: str) -> Any:
    if kind == "number":
        return number(NUMBERS[dtype[0]])
    return constant(np.ones((2,) if kind == "dims" else (), dtype))


@pytest.mark.parametrize("dtype", sorted({row[0] for row in TABLES["promotions"]}))
def test_promotion(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STATE, "default_dtype", FLOAT32)
    for a, left, b, right, expected in TABLES["promotions"]:
        if a == dtype:
            found = F.add(operand(a, left), operand(b, right)).dtype.name
            assert found == expected, (a, left, b, right)


def test_broadcasting() -> None:
    for a, b, expected in TABLES["broadcasts"]:
        left, right = constant(np.zeros(a)), constant(np.zeros(b))
        if expected is None:
            with pytest.raises(AutodiffError) as caught:
                F.add(left, right)
            assert caught.value.code == "E302"
        else:
            assert list(F.add(left, right).shape) == expected, (a, b)


@pytest.mark.parametrize("row", TABLES["layouts"], ids=lambda row: row[0])
def test_strides(row: list[Any]) -> None:
    text, shape, strides, contiguous = row
    program = (
        "import torch\nx = torch.arange(24.0).reshape(4, 6)\ny = torch.ones(6, 4)\n"
        f"z = {text}\nprint(list(z.shape), list(z.stride()), z.is_contiguous())\n"
    )
    report = run(Source(program, "strides.py"))
    assert report.error is None, str(report.error)
    assert report.stdout == f"{shape} {strides} {contiguous}\n"


@pytest.mark.parametrize(
    ("call", "same"),
    [
        ("sum(A, 1)", "sum(A, dim=1)"),
        ("sum(A, axis=1, keepdims=True)", "A.sum(1, True)"),
        ("softmax(A, -1)", "softmax(dim=-1, input=A)"),
        ("A.reshape(4)", "reshape(A, (4,))"),
        ("A.reshape((2, 2))", "A.reshape(2, 2)"),
        ("A.permute(1, 0)", "permute(A, [1, 0])"),
        ("clamp(A, max=2)", "A.clamp(None, 2)"),
        ("add(A, A, alpha=3)", "A + 3 * A"),
        ("A.mean([0, 1])", "A.mean()"),
        ("transpose(A, 0, 1)", "A.transpose(dim0=0, dim1=1)"),
    ],
)
def test_arguments_bind_in_every_spelling(call: str, same: str) -> None:
    report = run(Source(f"A = [[1, 2], [3, 4]]\nassert {call} == {same}\n", "bind.expr"))
    assert report.error is None, str(report.error)


@pytest.mark.parametrize(
    "call",
    ["sum()", "sum(A, 0, dim=1)", "softmax(A, 0, 1, 2, 3)", "relu(A, colour=1)", "sum(A, dim='x')",
     "A.reshape(1.5)", "clamp(A, [1], {})", "cat(A)", "one_hot('a')"],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_explained(call: str) -> None:
    report = run(Source(f"A = [[1, 2], [3, 4]]\nx = {call}\n", "bind.expr"))
    assert report.error is not None
    assert report.error.code[:2] in ("E2", "E3"), str(report.error)
    assert report.error.span is not None
    assert report.error.span.line == 2
    assert report.error.diagnostic.helps


def test_bytes_as_people_read_them() -> None:
    sizes = [0, 1023, 1024, 1536, 1 << 20, 5 << 29, 1 << 40, 3 << 50, 1 << 60]
    assert [bytes_text(n) for n in sizes] == [
        "0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "1.0 MiB", "2.5 GiB", "1.0 TiB", "3.0 PiB",
        "1024.0 PiB",
    ]  # fmt: skip
