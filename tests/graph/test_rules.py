"""Promotion, broadcasting and strides as PyTorch has them, and binding of arguments."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_cli.ops  # noqa: F401  # declares the table
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.dtypes import FLOAT32
from autodiff_cli.graph.op import constant, leaf, number
from autodiff_cli.graph.params import LARGEST, BindError, shown, to_index, to_scalar
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.shapes import broadcast_shapes
from autodiff_cli.graph.sizes import bytes_text, check_size
from autodiff_cli.graph.state import MOST_WARNINGS, RECURSION_LIMIT, STATE, own_state
from autodiff_cli.graph.symbolic_numbers import _power
from autodiff_cli.session import run
from autodiff_cli.source import Source

from ..together import together

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


@together(TABLES["layouts"])
def test_strides(row: list[Any]) -> None:
    text, shape, strides, contiguous = row
    program = (
        "import torch\nx = torch.arange(24.0).reshape(4, 6)\ny = torch.ones(6, 4)\n"
        f"z = {text}\nprint(list(z.shape), list(z.stride()), z.is_contiguous())\n"
    )
    report = run(Source(program, "strides.py"))
    assert report.error is None, str(report.error)
    assert report.stdout == f"{shape} {strides} {contiguous}\n"


@together(
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
    ]
)
def test_arguments_bind_in_every_spelling(call: str, same: str) -> None:
    report = run(Source(f"A = [[1, 2], [3, 4]]\nassert {call} == {same}\n", "bind.expr"))
    assert report.error is None, str(report.error)


@together(["sum()", "sum(A, 0, dim=1)", "softmax(A, 0, 1, 2, 3)", "relu(A, colour=1)",
     "sum(A, dim='x')", "A.reshape(1.5)", "clamp(A, [1], {})", "cat(A)",
     "one_hot('a')"])  # fmt: skip
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


SHAPES: list[list[tuple[int, ...]]] = [[], [()], [(2, 3)], [(2, 1), (3,)], [(), (1, 4), (5, 1, 1)]]


@pytest.mark.parametrize("shapes", SHAPES)
def test_common_shapes_are_those_of_numpy(shapes: list[tuple[int, ...]]) -> None:
    assert broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)


# What PyTorch makes of integers beside a tensor of int8; None where it refuses them.
WRAPPED = [
    (2**64 - 1, -1), (2**64, None), (2**63, 0), (2**63 + 5, 5), (-(2**63), 0), (-(2**63) + 3, 3),
    (-(2**63) - 1, None), (1 - 2**64, None), (200, -56),
]  # fmt: skip


@together(WRAPPED)
def test_large_integers_beside_small_tensors(value: int, seen: int | None) -> None:
    report = run(Source(
        f"import torch\nprint((torch.zeros((), dtype=torch.int8) + {value}).item())", "p.py"
    ))  # fmt: skip
    if seen is None:
        assert report.error is not None and report.error.code == "E504"
    else:
        assert report.error is None and report.stdout == f"{seen}\n"


def test_integers_at_their_limits() -> None:
    for value in (-(2**63), 2**63 - 1):
        assert to_index(value) == value
    for value in (-(2**63) - 1, 2**63):
        with pytest.raises(AutodiffError, match="does not fit into"):
            to_index(value)
    assert to_scalar(LARGEST) == LARGEST and to_scalar(-LARGEST) == -LARGEST
    for value in (LARGEST + 1, -LARGEST - 1):
        with pytest.raises(AutodiffError, match="the number"):
            to_scalar(value)


@pytest.mark.parametrize("slot", [None, AccumulateGrad()])
def test_numbers_that_were_not_written_as_integers(slot: AccumulateGrad | None) -> None:
    assert to_index(leaf(np.array(2.0), AccumulateGrad(True))) == 2
    with pytest.raises(BindError, match="an int"):
        to_index(leaf(np.array(2.0), slot))


def test_shapes_at_their_limits() -> None:
    ones = constant(np.ones(()))
    assert F.expand(ones, (1,) * 64).ndim == F.ones((1,) * 64).ndim == 64
    for make in (lambda: F.expand(ones, (1,) * 65), lambda: F.ones((1,) * 65)):
        with pytest.raises(AutodiffError, match="65 dims"):
            make()
    for places, fits in ((2**60 - 1, True), (2**60, False)):
        if fits:
            check_size((0, places), FLOAT32)
            continue
        with pytest.raises(AutodiffError, match="more places"):
            check_size((0, places), FLOAT32)


def test_powers_that_are_computed_ahead() -> None:
    for x, y in ((0, 5), (5, 0), (0, 0), (2, 100), (-3, 3)):
        assert _power(x, y) == x**y
    for x, y in ((2, -1), (2, 1 << 40), (3, 1 << 40)):
        with pytest.raises(OverflowError):
            _power(x, y)


# Images, and the strides that `pad(images, (1, 1))` has in PyTorch.
PADDED = {
    "ones(2, 1, 3, 3)": (15, 15, 5, 1),
    "ones(2, 3, 3, 1).permute(0, 3, 1, 2)": (15, 1, 5, 1),
    "ones(2, 1, 3, 3).expand(2, 4, 3, 3)": (60, 15, 5, 1),
    "ones(2, 3, 3, 4).permute(0, 3, 1, 2)": (60, 1, 20, 4),
    "ones(2, 1, 1, 1)": (3, 3, 3, 1),
    "ones(4, 3, 3, 2).permute(0, 3, 1, 2)[:, :, :, :1]": (18, 1, 6, 2),
    "ones(1, 3, 3, 2).expand(4, 3, 3, 2).permute(0, 3, 1, 2)": (30, 15, 5, 1),
}


@pytest.mark.parametrize("images", PADDED)
def test_layouts_of_padded_images(images: str) -> None:
    text = f"import torch\nprint(torch.nn.functional.pad(torch.{images}, (1, 1)).stride())"
    assert run(Source(text, "p.py")).stdout == f"{PADDED[images]}\n"


def test_a_run_leaves_the_limits_of_recursion_as_they_were() -> None:
    before = sys.getrecursionlimit()
    try:
        for limit in (5_000, RECURSION_LIMIT, RECURSION_LIMIT + 5):
            sys.setrecursionlimit(limit)
            with own_state():
                assert sys.getrecursionlimit() == max(limit, RECURSION_LIMIT)
                with own_state():
                    assert sys.getrecursionlimit() == max(limit, RECURSION_LIMIT)
                assert sys.getrecursionlimit() == max(limit, RECURSION_LIMIT)
            assert sys.getrecursionlimit() == limit
    finally:
        sys.setrecursionlimit(before)


def test_warnings_are_as_many_as_somebody_reads() -> None:
    with own_state():
        for i in range(MOST_WARNINGS + 2):
            STATE.warn("W101", f"the {i}th", "look")
        assert [w.message for w in STATE.warnings] == [f"the {i}th" for i in range(MOST_WARNINGS)]


def test_long_texts_do_not_fill_messages() -> None:
    assert [len(shown("x" * n)) for n in (10, 73, 74, 75, 1000)] == [16, 79, 80, 80, 80]
