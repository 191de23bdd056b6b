"""Tensor text equals PyTorch's, letter by letter (tests/oracles/printing.py made the fixture)."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.autograd.printing import (
    MAX_PRECISION,
    PrintOptions,
    format_tensor,
    set_printoptions,
)
from autodiff_cli.errors import AutodiffError
from tests.pace import takes_at_most

from ..together import together

FIXTURE = Path(__file__).parents[1] / "fixtures" / "printing.json"
CASES = json.loads(FIXTURE.read_text(encoding="utf-8"))["cases"]


def build(case: dict) -> np.ndarray:
    dtype = case["dtype"]
    if "shape" in case:
        shape = tuple(case["shape"])
        values = ((np.arange(math.prod(shape)) * 7919 + 13) % 101 - 50) * case["scale"]
        return values.reshape(shape).astype(dtype)
    if dtype == "bool":
        return np.array([text == "True" for text in case["values"]])
    kind = int if dtype == "int64" else float
    with np.errstate(all="ignore"):
        return np.array([kind(text) for text in case["values"]], dtype=dtype)


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 150


def test_every_text_equals_pytorchs() -> None:
    wrong = []
    for case in CASES:
        text = format_tensor(
            build(case),
            requires_grad=case["requires_grad"],
            grad_fn=case["grad_fn"],
            default_dtype=np.dtype(case.get("default", "float32")),
            options=set_printoptions(**case.get("options", {})),
            is_parameter=case.get("kind") in ("parameter", "buffer"),
        )
        if text != case["text"]:
            wrong.append((case, text))
    assert not wrong


def test_printing_a_matrix() -> None:
    text = format_tensor(np.array([[1.0, -2.5], [3.0, 4.0]], dtype=np.float32), requires_grad=True)
    assert text == "tensor([[ 1.0000, -2.5000],\n        [ 3.0000,  4.0000]], requires_grad=True)"


def test_strided_views_print_their_own_order() -> None:
    array = np.arange(6).reshape(2, 3).T
    assert format_tensor(array) == "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])"


def test_another_prefix_sets_the_indent() -> None:
    text = format_tensor(np.eye(2, dtype=np.float32), prefix="Weight(")
    assert text == "Weight([[1., 0.],\n        [0., 1.]])"


def test_a_summary_of_a_huge_tensor_is_quick() -> None:
    array = np.broadcast_to(np.float32(1.5), (1000, 1000, 1000))
    assert format_tensor(array).count("...") == 36 + 6 + 1
    assert takes_at_most(3, lambda: format_tensor(array))


def test_options_start_from_the_given_ones_and_sci_mode_is_forgotten() -> None:
    options = set_printoptions(precision=2, sci_mode=True)
    assert options == PrintOptions(precision=2, sci_mode=True)
    assert set_printoptions(precision=MAX_PRECISION).precision == MAX_PRECISION
    options = set_printoptions(options, linewidth=100)
    assert options == PrintOptions(precision=2, linewidth=100)
    assert set_printoptions(options, profile="full", edgeitems=5) == PrintOptions(
        threshold=math.inf, edgeitems=5
    )


@together(
    [
        {"profile": "wide"},
        {"precision": -1},
        {"precision": MAX_PRECISION + 1},
        {"precision": 2.5},
        {"precision": True},
        {"edgeitems": "3"},
        {"threshold": "full"},
        {"threshold": math.nan},
        {"linewidth": math.inf},
        {"linewidth": [80]},
        {"sci_mode": "yes"},
    ]
)
def test_wrong_options_are_named(wrong: dict) -> None:
    with pytest.raises(AutodiffError) as caught:
        set_printoptions(**wrong)
    assert caught.value.code == "E205"
    assert next(iter(wrong)) in caught.value.message
    assert caught.value.diagnostic.helps
