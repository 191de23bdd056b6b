"""A client in typed code: mypy, which `test_style.py` runs, knows what functions return, and finds
the one mistake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import autodiff_cli as ad


def descend(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    f = ad.value_and_grad("loss = sum((x - 3)**2)", wrt="x", seed=1)
    value, slope = f(x=x)
    return value, x - 0.1 * slope


def wrong() -> str:
    return ad.value_and_grad("loss = sum(x)")(x=1.0)[0]  # type: ignore[return-value]  # a float


def main() -> None:
    try:
        print(descend(np.zeros(2)), ad.value("y = x * 2", of="y")(x=2.0))
        print(ad.jacobian("y = x * x", ["x"], of="y", mode="forward")(x=np.ones(2))["x"])
        print([item.label for item in ad.check(Path("demo.expr"), order=2).items])
    except ad.AutodiffError as error:
        span = error.span
        print(error.code, error.message, ", ".join(error.helps), span.line if span else 0)
    except ad.CheckFailed as failed:
        print(failed.items)
