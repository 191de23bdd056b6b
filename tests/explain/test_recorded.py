"""Formulas and explanations in all their forms, as they were recorded (`RECORD_SAID=1` does).
Whether a formula is the gradient is checked by `derive` itself, at the values of the program: the
last of what is recorded."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from autodiff_cli.explain.derive import derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.session import Options
from autodiff_cli.source import Source

from .test_output import PROGRAMS

FIXTURE = Path(__file__).parents[1] / "fixtures" / "explained.json"
RECORDED: dict[str, Any] = json.loads(FIXTURE.read_text("utf-8")) if FIXTURE.exists() else {}

XY = "x = [1.5, 2]; y = [3, 0.25]; "
M = "A = [[1, 2, 0.5], [3, 4, 1.5]]; "
FORMULAS = [
    XY + "loss = sum(x*y + x/y - y)",
    XY + "loss = sum(x**2 * y**-1) + sum(x**y)",
    XY + "loss = sum(-x * (-y)) - sum(-(x + y))",
    XY + "loss = sum(x) * sum(y) / 3",
    XY + "loss = sum((x*y)**3) * 2.5e-7",
    XY + "loss = sum(sin(x)*cos(y) + exp(x - y))",
    XY + "loss = sum(sqrt(x) + x**0.5 + x**1.5 + x**-0.5 + 1/sqrt(x))",
    XY + "loss = sum(log(x) * tanh(y) + sigmoid(x))",
    XY + "loss = sum(relu(x - y)) + sum(abs(y - x))",
    XY + "loss = sum(maximum(x, y) * where(x > 1, x, y))",
    XY + "loss = mean(x * y) + var(x) + std(y)",
    XY + "loss = (x[0] * y[1])**2 + x[1:].sum()",
    XY + "loss = sum(x) ** 0 + sum(x * 0) + sum(x ** 1)",
    XY + "loss = sum(2 * (3 * x) * (y * 4))",
    XY + "loss = sum((x + y) * (x - y))",
    XY + "loss = sum((x + 1)**2 / (y + 1)**2)",
    XY + "loss = dot(x, y) + prod(x)",
    XY + "loss = sum(cumsum(x, 0) * y) + max(x)",
    XY + "loss = sum(reciprocal(x) + rsqrt(y) + square(x) + log1p(y) + expm1(x))",
    XY + "loss = sum(atan2(x, y) + hypot(x, y))",
    M + "loss = sum(A @ A.T)",
    M + "b = [1, 2, 3]; loss = sum(A * b) + sum((A + b)**2)",
    M + "c = [[1], [2]]; loss = sum(A * c) + sum(A / c)",
    M + "v = [1, 2, 3]; loss = sum(tanh(A @ v))",
    M + "loss = sum(A.sum(0) * A.mean(1).sum()) + sum(A.transpose(0, 1) @ A)",
    M + "loss = sum(A.reshape(3, 2) @ A) + sum(A.flatten() * 2)",
    M + "w = 2; loss = sum(w * A) + w**3 * A[0, 1] + sum(expand(w, (2, 3)))",
    M + "loss = trace(A @ A.T) + norm(A)",
    M + "B = [[2, 1], [0.5, 3]]; loss = sum(inverse(B) @ A) + det(B)",
    M + "loss = sum(softmax(A, 1) * A) ",
    M + "loss = sum(cat([A, A * 2]) ** 2) + sum(stack([A, A]))",
    "x = 2; loss = x*1e-30 + x/1e30 + 123456789*x",
    "x = 2; loss = x*x*x/x - x/(x*x)",
    "x = 2; loss = (x**2)**3 + x**2**-1",
    "x = 2; loss = (x**2)**4",
    "x = 2; y = 3; loss = (x**y)**4 + x**y**2",
    "x = 2; loss = 0*x",
    "x_1 = 2; theta_12 = 3; α = 0.5; é = 2; loss = x_1 * theta_12 ** α * é",
    "x = 3; loss = sin(sin(sin(x))) * cos(x) ** 2",
    "x = zeros(0, requires_grad=True); loss = sum(x * 3)",
    "x = [[1.5]]; loss = sum(x.view(1) * 2 + x.reshape(1, 1).unsqueeze(0) ** 2)",
    "x = [1, 2]; k = const([3, 3]); loss = sum(x * k + x * const(5)) + sum(x * const([[1], [2]]))",
    "x = 0.5\nfor i in range(4):\n    x = x * 3 - x ** 2\nloss = x",
    "layers = {'w': [1, 2]}\nx = [3, 4]\nloss = sum(layers['w'] * x)",
    "x = [1, 2]; y = x * 2; loss = sum(y * y)",
    "x = [3, 1, 2]; v, i = sort(x); loss = sum(v * const([1, 2, 3])) + v[0]",
    "x = [1.5, 2]; y = x.clone(); y[0] = 3 * x[1]; loss = sum(y * x)",
]  # fmt: skip


def compared(name: str, found: Any) -> None:
    if os.environ.get("RECORD_SAID"):
        RECORDED[name] = found
        rows = (f"{json.dumps(key)}: {json.dumps(RECORDED[key])}" for key in sorted(RECORDED))
        FIXTURE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
    assert found == RECORDED.get(name)


@pytest.mark.parametrize("raw", [False, True], ids=["", "raw"])
@pytest.mark.parametrize("text", FORMULAS)
def test_formulas(text: str, raw: bool) -> None:
    found = derive_source(Source(text, "test.expr"), Options(), Request(), raw)
    said = [[d.wrt, d.text, d.latex, d.wrt_latex, d.verified] for d in found.derivatives]
    compared(f"derive{' --raw' * raw} {text}", said if found.error is None else str(found.error))


FORMS = ["", "--symbolic", "--all", "--latex", "--markdown", "--format json", "--open softmax"]
FEW = [name for name in PROGRAMS if name not in ("large", "loop")]  # hundreds of lines


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FEW)
def test_explanations(cli, name: str, form: str) -> None:
    result = cli("explain", "-e", PROGRAMS[name], *form.split())
    compared(f"explain {form} {name}", [result.code, *(result.out + result.err).splitlines()])
