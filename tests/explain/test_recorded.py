"""Formulas and explanations in all their forms, as they were recorded (`RECORD_SAID=1` does).
Whether a formula is the gradient is checked by `derive` itself, at the values of the program: the
last of what is recorded."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from autodiff_cli.explain.derive import derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.session import Options
from autodiff_cli.source import Source

from ..said import ROUNDING
from ..together import together
from .test_output import PROGRAMS
from .test_textbook import typeset

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
    M + "b = [5, 6, 7]; loss = sum(A * (A.sum(1, keepdim=True) * b))",
    "layers = {'w': [1, 2]}\nx = [3, 4]\nloss = sum(layers['w'] * x)",
    "x = [1, 2]; y = x * 2; loss = sum(y * y)",
    "x = [3, 1, 2]; v, i = sort(x); loss = sum(v * const([1, 2, 3])) + v[0]",
    "x = [1.5, 2]; y = x.clone(); y[0] = 3 * x[1]; loss = sum(y * x)",
]  # fmt: skip

W = "W = [[1, 2], [3, 4], [5, 6]]; k = torch.tensor([0, 1, 1]); "
C = "C = [[2, 1], [1, 4]]; "
S = "X = [[1, 2], [3, 5]]; "
P = "X = torch.arange(30.).sin().reshape(1, 1, 5, 6).requires_grad_(); "
Z = "X = zeros({}, requires_grad=True); "
# What has a formula in words of its own, and what is left to the graph or has none.
FURTHER = [
    # sums of what is divided by
    "A = [[1, 2], [3, 5]]; loss = sum(sum(1/A, 0)**2)",
    "x = [1, 2, 4]; y = [1, 3]; loss = sum(1/x)**2 * sum(y) + exp(sum(1/x**2))",
    # rows, parts and places
    W + "loss = -torch.log_softmax(W, 1)[torch.arange(3), k].mean()",
    W + "i = torch.tensor([0, 1, 2]); loss = sum(W[i, k] ** 2)",
    W + "loss = sum(W[torch.arange(2), k[:2]] ** 2)",
    W + "n = torch.tensor([[0, 2], [1, 1]]); loss = sum(W[n] ** 2)",
    W + "n = torch.tensor([0, 0]); loss = sum(W[:, n] ** 2)",
    W + "loss = sum(torch.nn.functional.embedding(k, W) ** 2)",
    W + "loss = sum(torch.nn.functional.embedding(k, W, padding_idx=1) ** 2)",
    W + "loss = sum(torch.index_select(W, 0, k) ** 2)",
    W + "loss = sum(torch.index_select(W, 1, k) ** 2)",
    W + "n = torch.tensor([[0], [1], [1]]); loss = sum(W.gather(1, n) ** 2)",
    W + "a, b = W.split(2); loss = sum(a ** 2) + sum(b ** 3)",
    W + "loss = sum(W[W.max(0)[1]] ** 2)",
    "x = [1, 2, 3, 4, 5]; loss = sum(x[1:4][1] ** 2) + sum(x[:] * x)",
    "x = [1, 2, 3]; y = [4]; loss = sum(cat([x, y]) ** 2) + sum(cat([x]))",
    "x = [1, 2]; loss = sum(roll(outer(x, x), 1) ** 2)",
    S + "loss = sum(X.diagonal(-1) ** 2)",
    "x = [1, 2]; loss = sum(torch.diag_embed(x, 1) ** 2)",
    Z.format("2, 2, 2") + "loss = sum(tril(X) ** 2)",
    Z.format("3, 3, 2") + "loss = sum(X ** 2 * torch.eye(3)[:, :, None])",
    # products
    "a = [1, 2]; b = [1, 2, 3]; Q = zeros(6, 1, 2, requires_grad=True); "
    "loss = sum((outer(a, b).reshape(6, 1, 1) @ Q) ** 2)",
    "X = [[1, 2, 3], [4, 5, 6]]; "
    "loss = sum((X.reshape(2, 1, 3).expand(2, 2, 3).reshape(4, 3) @ X.T) ** 2)",
    "A = [[2, 0.5], [1, 3]]; loss = sum((A - A) @ A + A)",
    "A = [[2, 0.5], [1, 3]]; loss = sum(ones(2, 2) @ A) + sum(ones(3, 2) @ ones(2, 2) * A[0, 0])",
    "; ".join(f"{n} = [{i}, 2]" for i, n in enumerate("abcdefghk"))
    + "; loss = sum(a*b*c*d*e*f*g*h*k)",
    "x = [[1, 2], [3, 4]]; b = [3, 4]; "
    "g = torch.autograd.grad(sum(x ** 2 * b), b, create_graph=True)[0]; loss = sum(g ** 2)",
    # matrices
    C + "loss = sum(inverse(stack([C, C])))",
    C + "loss = sum(det(stack([C, C])))",
    C + "B = [[2, 3], [1, 4]]; loss = sum(inverse(B.T) @ C) + sum(inverse(3 * inverse(B)))",
    C + "b = [1, 2]; loss = sum(torch.linalg.solve(stack([C, C]), stack([b, b])))",
    C + "loss = sum(torch.linalg.solve(C, C, left=False))",
    C + "b = [[1], [2]]; loss = sum(torch.linalg.solve_triangular(C, b, upper=True))",
    C + "b = [[1], [2]]; loss = sum(cholesky_solve(b, C))",
    C + "loss = sum(torch.linalg.cholesky(stack([C, C])))",
    C + "loss = sum(torch.linalg.cholesky(C, upper=True) ** 2)",
    C + "x = [1, 2]; loss = sum(torch.linalg.cholesky(C) @ x)",
    # rows that factors share, and that nothing sums over
    "C = const([[4.0, 1.0], [1.0, 3.0]]); b = [1, 2]; c = const([2.0, 5.0]); loss = sum("
    "(inverse(cholesky(C)) @ b) * (inverse(cholesky(C)) @ c) * (inverse(cholesky(C)) @ b))",
    # functions and losses
    "x = [1, 2]; loss = sum(x * sqrt(const(0)) + x)",
    "x = [1, 2]; loss = sum(torch.full((2,), 1.5) * torch.full((2,), x[0]) * x)",
    S + "loss = sum(exp(X) / exp(X).sum(1, keepdim=True) * X)",
    S + "loss = sum(exp(X) / exp(X).sum(0) * X)",
    "x = [[1], [3]]; loss = sum(torch.softmax(x, 1) * x) + sum(torch.logsumexp(x, 1) ** 2)",
    "x = 2; loss = torch.softmax(x, 0) * x + torch.logsumexp(x, 0)",
    "x = [1, 2]; y = [2, 1]; loss = sum(where(x > y, x, 2 * x)) + sum(where(x > 3 * x, y, x))",
    Z.format("2, 3, 4") + "loss = sum(torch.logsumexp(X, (0, 1)))",
    "x = [1, 2]; loss = sum(where(x > 1.5, x ** 2, x ** 3) + x)",
    "x = [1, 2]; m = torch.tensor([True, False]); loss = sum(where(m, x, 2 * x * x))",
    "x = [1, 2]; loss = sum(where(relu(x) > 0, x, 2 * x))",
    "x = [1, 2]; y = [0.5, 1]; p = const([1, 2]); "
    "loss = torch.nn.functional.binary_cross_entropy_with_logits(x, y, weight=p)",
    "x = [1, 2]; y = [0.5, 1]; "
    "loss = torch.nn.functional.binary_cross_entropy_with_logits(x, y, reduction='none').sum()",
    S + "t = torch.tensor([0, 1]); loss = torch.nn.functional.nll_loss(X, t, ignore_index=1)",
    "X = [[1], [3]]; w = [2]; loss = sum(torch.nn.functional.layer_norm(X, (1,), w) ** 2)",
    Z.format("1, 3, 4") + "w = [1, 2, 3]; b = [3, 4, 5]; "
    "loss = sum(torch.nn.functional.batch_norm(X, None, None, w, b, training=True))",
    # order, windows of several sizes, classes
    "x = [1, 5, 2, 4]; loss = torch.quantile(x, 0.3)"
    " + torch.quantile(x, 0.5, interpolation='lower')",
    P + "loss = sum(torch.nn.functional.avg_pool2d(X, 2, ceil_mode=True) ** 2)",
    P + "loss = sum(torch.nn.functional.adaptive_avg_pool2d(X, (2, 4)) ** 2)",
    P + "loss = sum(amax(X, (1, 3)) ** 2)",
    W + "loss = sum(torch.nn.functional.one_hot(k, 2) * W)",
    "z = [[0.5, 1.5], [0.2, 0.4], [0.3, -0.5]]; t = torch.tensor([2, 0, 1]); "
    "u = torch.nn.functional.normalize(z, dim=1); "
    "s = (u @ u.T / 0.5).masked_fill(torch.eye(3).bool(), -1e9); "
    "loss = torch.nn.functional.cross_entropy(s, t)",
    W + "m = torch.tensor([[True], [False], [True]]); loss = sum(W.masked_fill(m, 0.5) ** 2)",
    W + "m = const([[1.0], [0.0], [1.0]]); loss = sum(W.masked_fill(m.bool(), 0.5) ** 2)",
    "x = [1, 2]; loss = sum(x**2 / 9.81)",
    "z = [[0.1, 0.2, 0.3]]; loss = softmax(z, 1)[0, 2]",
    "x = [1, 2]; loss = norm(x, 3)",
    W + "loss = sum(where(k[:, None] == torch.arange(2), W, 0))",
    W + "mu = mean(W, 1, keepdim=True); loss = sum((W - mu) ** 3 * W)",
    # names, and what is too long
    "Γ = 2; Σ_1 = 3; loss = Γ ** Σ_1",
    "x = 2; loss = " + "(" * 9 + "x" + " + 1) * x" * 9,
    "x = 2; y = x\nfor i in range(450):\n    y = y * 1\nloss = y",
]  # fmt: skip
STEPS = [
    "x = [1, 2]; k = const([2, 3]); loss = sum(gelu(x)**k)",
    "x = [1, 2]; loss = sum(torch.nn.functional.silu(x)) + sum(torch.relu(x))",
    "x = 2; y = x\nfor i in range(70):\n    y = y * 1.25\nloss = y",
    P + "loss = sum(torch.nn.functional.max_pool1d(X[0, 0], 2) ** 2)",
    P + "loss = sum(torch.nn.functional.adaptive_avg_pool1d(X[0], 4) ** 2)",
    S + "loss = sum(torch.quantile(X, 0.4, 1) ** 2)",
    C + "loss = sum(torch.linalg.cholesky(C) ** 2)",
    C + "A = [[1, 2], [3, 5]]; loss = sum(torch.linalg.solve(A, C, left=False) ** 2)",
    C + "b = [[1], [2]]; L = torch.linalg.cholesky(C @ C.T); "
    "loss = sum(cholesky_solve(b, L)) + 2 * sum(log(diag(L)))",
    "x = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True); k = torch.tensor([0, 1]); "
    "loss = torch.nn.functional.cross_entropy(x / 3 ** 0.5, k, label_smoothing=0.1)",
    XY + "w = const([0.3, 0.6]); loss = sum(torch.lerp(x, y, w) ** 2)",
]


def compared(name: str, found: Any) -> None:
    if os.environ.get("RECORD_SAID"):
        RECORDED[name] = found
        rows = (f"{json.dumps(key)}: {json.dumps(RECORDED[key])}" for key in sorted(RECORDED))
        FIXTURE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
    assert found == RECORDED.get(name)


def formulas_in_latex() -> list[str]:
    """Of every derivative that is recorded, and of its named parts."""
    found = []
    for name, rows in RECORDED.items():
        if name.startswith("derive ") and "--steps" not in name and type(rows) is list:
            for _, _, latex, *rest in rows:
                found += [latex, *(part[2] for part in rest if type(part) is list)]
    return found


def test_mathtext_compiles_what_is_recorded() -> None:
    """Long ones first, as long as two pairs of marks stand together as they did not before."""
    found = sorted(set(formulas_in_latex()), key=len, reverse=True)
    assert len(found) > 200
    met: set[tuple[str, str]] = set()
    for latex in found:
        marks = re.findall(r"\\[A-Za-z]+|\\?[^\w\s]", latex)
        pairs = {*pairwise(["", *marks])}
        if len(pairs - met) > 1:
            typeset(latex)
        met |= pairs


@together([(text, raw) for text in FORMULAS for raw in (False, True)], group=16)
def test_formulas(text: str, raw: bool) -> None:
    found = derive_source(Source(text, "test.expr"), Options(), Request(), raw)
    said = [[d.wrt, d.text, d.latex, d.wrt_latex, d.verified] for d in found.derivatives]
    compared(f"derive{' --raw' * raw} {text}", said if found.error is None else str(found.error))


@together(FURTHER, group=5)
def test_further_formulas(text: str) -> None:
    found = derive_source(Source(text, "test.expr"), Options(), Request())
    said = [[d.wrt, d.text, d.latex, d.verified, *d.lets] for d in found.derivatives]
    compared(
        f"derive {text}", json.loads(json.dumps(said)) if found.error is None else str(found.error)
    )


@together(STEPS, group=3)
def test_steps(text: str) -> None:
    found = derive_source(Source(text, "test.expr"), Options(), Request(), steps=True)
    said = found.derivatives[0].steps if found.error is None else str(found.error)
    compared(f"derive --steps {text}", json.loads(json.dumps(said)))


FORMS = ["", "--symbolic", "--all", "--latex", "--markdown", "--format json", "--open softmax"]
FEW = [name for name in PROGRAMS if name not in ("large", "loop")]  # hundreds of lines


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FEW)
def test_explanations(cli, name: str, form: str) -> None:
    result = cli("explain", "-e", PROGRAMS[name], *form.split())
    shown = re.sub(ROUNDING, "0", result.out + result.err)
    compared(f"explain {form} {name}", [result.code, *shown.splitlines()])
