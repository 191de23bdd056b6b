"""Functions of one step, and what is said of slopes that are claimed of them: right, a little off,
wrong, infinite; beside kinks, rounding, borders. Held against `fixtures/said_checks.txt`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autodiff_cli.checks.slopes import Line, Verdict
from tests.said import compare

Function = tuple[Callable[[Any], Any], float]  # and the slope at 0
SMOOTH: dict[str, Function] = {
    "linear": (lambda t: 3 * t + 1, 3.0),
    "flat": (lambda t: 0 * t + 7, 0.0),
    "cubic": (lambda t: (t + 2) ** 3, 12.0),
    "exp": (lambda t: np.exp(t), 1.0),
    "large": (lambda t: 1e8 + 5 * t, 5.0),
    "drowned": (lambda t: (1e14 + 0.5 * t) - 1e14, 0.5),
    "steep": (lambda t: np.exp(40 * t), 40.0),
    "wave": (lambda t: np.sin(1e3 * t), 1e3),
    "sudden": (lambda t: np.tanh(1e9 * t), 1e9),
    "small": (lambda t: 1e-9 * t, 1e-9),
}
KINKED: dict[str, Function] = {
    "abs": (abs, 0.0),
    "relu": (lambda t: 2 * max(t.real, 0.0), 1.0),
    "beside": (lambda t: abs(t - 1e-6), -1.0),
    "step": (lambda t: float(t.real > 0), 0.0),
    "root": (lambda t: math.sqrt(t.real) if t.real >= 0 else math.nan, math.inf),
    "border": (lambda t: 3 * t.real if t.real >= 0 else math.nan, 3.0),
    "cusp": (lambda t: math.sqrt(abs(t)), math.inf),
    "nowhere": (lambda t: math.nan if t else 1.0, 1.0),
    "ring": (lambda t: 2 * t.real if not t or 4e-6 < abs(t) < 8e-6 else math.nan, 2.0),
    "blunt": (lambda t: abs(t) ** 1.2, 0.0),
    "rising": (lambda t: abs(t) ** 0.8, math.inf),
    "growing": (lambda t: np.copysign(abs(t) ** 0.6, t), math.inf),
    "one side": (lambda t: t.real**0.867 if t.real >= 0 else math.nan, math.inf),
    "two kinks": (lambda t: abs(t) + 10 * max(0.0, abs(t) - 2e-6), 0.0),
    "nearer kinks": (lambda t: abs(t) + 10 * max(0.0, abs(t) - 2e-7), 0.0),
    "wide ring": (lambda t: np.sign(t) if not t or 4e-6 < abs(t) < 1e-4 else math.nan, 1e6),
    "noisy": (lambda t: t.real + 1e-7 * math.sin(1e9 * t.real), 1.0),
}
CLAIMS = {
    "right": lambda s: s, "near": lambda s: s * (1 + 4e-7) + 4e-9, "off": lambda s: s * 1.00002,
    "wrong": lambda s: 1.01 * s + 0.01, "other": lambda s: -s - 1, "zero": lambda s: 0.0,
    "inf": lambda s: math.inf, "nan": lambda s: math.nan,
}  # fmt: skip
LINES: list[dict[str, Any]] = [
    {}, {"scale": 1e3}, {"scale": 1e-3}, {"near_kink": True}, {"size": lambda: 1e14},
    {"rtol": 1e-2}, {"atol": 1e-1}, {"rtol": 0.0, "atol": 0.0},
]  # fmt: skip


def told(verdict: Verdict) -> str:
    """A verdict in so many digits as do not depend on rounding."""
    near = [round(x, 3) + 0.0 if math.isfinite(x) else x for x in verdict[1:3]]
    return f"{verdict.kind} {near} {verdict.allowed:.3g} {verdict.step:.2g}"


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", [*SMOOTH, *KINKED])
def test_slopes_that_are_claimed(name: str, request: pytest.FixtureRequest) -> None:
    f, slope = (SMOOTH | KINKED)[name]
    found = []
    for at, options in enumerate(LINES):
        for analytic in (False, True)[: 2 if name in SMOOTH else 1]:
            line = Line(f, float(f(0.0)), analytic=analytic, **options)
            finite = slope if math.isfinite(slope) else 1.0
            claims = [of(slope if claim == "right" else finite) for claim, of in CLAIMS.items()]
            said = [told(line.examine(claimed)) for claimed in claims]
            found.append(f"{at} {'complex' if analytic else 'real'}: {'; '.join(said)}")
    compare(request, found)
