"""Warnings about NaN name the op that made it, however often a program runs in one process."""

from __future__ import annotations

import pytest

from autodiff_cli.session import run
from autodiff_cli.source import Source

SEVERAL_RESULTS = [
    "u, v = torch.topk(y, 1)",
    "u, v = torch.sort(y)",
    "u, v = torch.std_mean(y)",
    "u, v = torch.max(y, 0)",
]


@pytest.mark.parametrize("line", SEVERAL_RESULTS)
def test_nan_before_several_results(line: str) -> None:
    text = f"import torch\nx = torch.tensor([-1.0, 0.7, 2.0])\ny = torch.log2(x)\n{line}\n"
    for _ in range(3):  # as it is, planned, and in a plan that was kept
        report = run(Source(text, "nan.py"))
        assert report.error is None
        (warning,) = report.warnings
        assert warning.message == "NaN first appears in `torch.log2(x)`"


def test_infinity_reaches_several_results() -> None:
    text = (
        "import torch\nx = torch.tensor([float('inf'), 2.0], requires_grad=True)\n"
        "deviation, mean = torch.std_mean(x * 2)\n(deviation + mean).backward()\n"
    )
    for _ in range(3):
        report = run(Source(text, "infinity.py"))
        assert report.error is None


def test_what_is_not_finite_for_another_reason_is_not_reached() -> None:
    text = "x = [1, 0, 4]\nloss = sum(log(x))\ny = x / 0\n"
    (warning,) = run(Source(text, "two.expr")).warnings
    assert warning.notes == (
        "reaches y = [inf, nan, inf]",
        "x.grad[1] = inf is separate: the slope of log is infinite at 0.0",
        "not finite for another reason: `loss` (-inf)",
    )
    assert "keep the divisor away from 0" in warning.helps[0]
