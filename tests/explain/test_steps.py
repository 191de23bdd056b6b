"""`derive --steps`: each line has the value of the one before, by a rule that is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autodiff_cli.explain.derive import Derived, derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.session import Options
from autodiff_cli.source import Source
from autodiff_cli.symbolic.differentials import Rules
from autodiff_cli.symbolic.terms import NoFormula
from autodiff_cli.symbolic.writing.expression import Infix

from .test_textbook import DATA, fits


def steps(loss: str, wrt: str) -> Derived:
    program = Source(f"{DATA}loss = {loss}\n", "test.expr")
    return derive_source(program, Options(), Request(wrt=(wrt,)), steps=True)


@pytest.mark.parametrize(
    ("wrt", "loss", "rule"),
    [
        ("A", "sum(linalg.svdvals(A))", "the derivative of svd"),
        ("A", "linalg.norm(A @ B, 'nuc')", "the derivative of svd"),
        ("A", "sum(linalg.eigvalsh(A + A.T)**2)",
         "d eigvalsh(u) = sum(du @ linalg.eigh(u)[1] * linalg.eigh(u)[1], 0)"),
        ("A", "sum(linalg.pinv(A))", "the derivative of pinv"),
        ("A", "sum(linalg.qr(A)[1]**2)", "the derivative of qr"),
        ("x", "sum(nan_to_num(x)**2)", "d nan_to_num(u) = where(isfinite(u), du, 0)"),
    ],
)  # fmt: skip
def test_rules_of_ops_themselves(wrt: str, loss: str, rule: str) -> None:
    """What no textbook has a rule for changes as the op's own rule says."""
    found = steps(loss, wrt)
    assert found.error is None and rule in [step.rule for step in found.derivatives[0].steps]


def test_conditions_have_names() -> None:
    found = steps("multi_margin_loss(Q, k)", "Q")
    assert found.error is None and [let[0] for let in found.derivatives[0].lets] == ["u"]


def test_what_cannot_be_said_is_refused_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Any, node: Any) -> Any:
        raise NoFormula(node)

    monkeypatch.setattr(Rules, "_linearized", fails)
    found = steps("sum(linalg.pinv(A @ B))", "A")
    assert found.error is not None and found.error.code == "E404"
    assert "`linalg.pinv(A @ B)`" in found.error.diagnostic.message


@pytest.mark.parametrize(
    ("loss", "wrt", "lines"),
    [
        ("mean((X @ w - y)**2)", "w", [
            ("d(mean((X @ w - y)**2))", ""),
            ("mean(d((X @ w - y)**2))", "d of mean is mean of d"),
            ("mean(2 * (X @ w - y) * d(X @ w - y))", "power rule"),
            ("mean(2 * (X @ w - y) * (X @ dw))", "the rest is constant; a constant factor stays"),
            ("sum(0.5 * (X @ w - y) @ X * dw)", "what multiplies dw, collected"),
        ]),
        ("logdet(A)", "A", [
            ("d(logdet(A))", ""),
            ("trace(inv(A) @ dA)", "d logdet(M) = trace(inv(M) @ dM)"),
            ("sum(inv(A).T * dA)", "what multiplies dA, collected"),
        ]),
        ("einsum('i,ij,j->', x, A, x)", "x", [
            ("d(A @ x @ x)", ""),
            ("x @ (dx @ A + A @ dx)", "product rule"),
            ("sum((x @ A + A @ x) * dx)", "what multiplies dx, collected"),
        ]),
        ("sum(einsum('ij,kj->ik', A, B) * C)", "A", [
            ("d(sum(A @ B.T * C))", ""),
            ("sum(d(A @ B.T * C))", "d of sum is sum of d"),
            ("sum(d(A @ B.T) * C)", "a constant factor stays"),
            ("sum(dA @ B.T * C)", "a constant factor stays"),
            ("sum(C @ B * dA)", "what multiplies dA, collected"),
        ]),
        ("log_softmax(Q, 1)[arange(4), k].mean()", "Q", [
            ("d(mean(log_softmax(Q, 1)[arange(4), k]))", ""),
            ("mean(d(log_softmax(Q, 1)[arange(4), k]))", "d of mean is mean of d"),
            ("mean(d(log_softmax(Q, 1))[arange(4), k])", "elements only move"),
            ("mean((dQ - sum(softmax(Q, 1) * dQ, 1, keepdim=True))[arange(4), k])",
             "d log_softmax(z) = dz - sum(softmax(z) * dz)"),
            ("sum(0.25 * (one_hot(k, 2) - softmax(Q, 1)) * dQ)", "what multiplies dQ, collected"),
        ]),
        ("b + 2", "b", [("d(b + 2)", ""), ("db", "the rest is constant")]),
        ("x @ x / sum(x)", "x", [
            ("d(x @ x / sum(x))", ""),
            ("(d(x @ x) * sum(x) - x @ x * d(sum(x))) / sum(x)**2", "quotient rule"),
            ("((dx @ x + x @ dx) * sum(x) - x @ x * sum(dx)) / sum(x)**2",
             "product rule; d of sum is sum of d"),
            ("sum((2 * x - loss) / sum(x) * dx)", "what multiplies dx, collected"),
        ]),
    ],
)  # fmt: skip
def test_as_on_a_blackboard(loss: str, wrt: str, lines: list[tuple[str, str]]) -> None:
    (found,) = steps(loss, wrt).derivatives
    assert [(step.shown, step.rule) for step in found.steps] == lines


NETWORK = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.norm = nn.LayerNorm(4)
        self.out = nn.Linear(4, 2)
    def forward(self, x):
        return self.out(nn.functional.gelu(self.norm(self.fc(x))))
torch.manual_seed(0)
net = Net()
x, y = torch.randn(5, 3), torch.randn(5, 2)
loss = nn.functional.mse_loss(net(x), y)
loss.backward()
"""


def test_networks_have_the_names_of_the_formula() -> None:
    """What multiplies the change of a value is collected and has the name that the formula has for
    it; no line is long."""
    found = derive_source(
        Source(NETWORK, "net.py"), Options(), Request(wrt=("net.fc.weight",)), steps=True
    )
    assert fits(found)
    (d,) = found.derivatives
    assert [(step.shown, step.rule) for step in d.steps[-5:]] == [
        ("sum(g_z * d(z))", "what multiplies d(z), collected"),
        ("sum(g_z * (d(h) - mean(d(h), 1, keepdim=True) - r / u * mean(r * d(h), 1, keepdim=True))"
         " / sqrt(u) * net.norm.weight)",
         "d n(u) = (du - mean(du) - n * mean(n * du)) / s, n(u) = (u - mean(u)) / s"),
        ("sum(g_h * d(h))", "what multiplies d(h), collected"),
        ("sum(g_h * (x @ d(net.fc.weight).T))",
         "the rest is constant; a constant factor stays; d(u.T) = d(u).T"),
        ("sum(g_h.T @ x * d(net.fc.weight))", "what multiplies d(net.fc.weight), collected"),
    ]  # fmt: skip
    lets = dict(let for step in d.steps for let in step.lets)
    assert d.text == "g_h.T @ x"
    assert {name: lets[name] for name, _, _ in d.lets if name in "hruz"} == {
        name: part for name, part, _ in d.lets if name in "hruz"
    }
    assert lets["g_h"] == {name: part for name, part, _ in d.lets}["g_h"]


@pytest.mark.parametrize(
    ("program", "wrt", "line"),
    [
        # The step after which everybody goes on by heart.
        ("loss = cross_entropy(X @ W, k)", "W", "sum(h * d(X @ W))"),
        # Two ways lead to h, and are taken together when both have arrived.
        ("h = tanh(A @ x); q = tanh(B @ h); loss = sum((h + tanh(C @ q) + q)**2)", "x",
         "sum(2 * (h + t + q) * d(h)) + sum(g_q * d(q))"),
        # What stands twice in a long line gets a name; what has one keeps it.
        ("loss = -sum(softmax(z, 0) * log(softmax(z, 0)))", "z",
         "-sum(d(p) * log(p) + p * d(log(p)))"),
        ("loss = std(x)", "x", "0.5 / loss * sum(2 * (x - mean(x)) * (dx - mean(dx))) / 2"),
        ("loss = cross_entropy(X @ W, k)", "W",
         "sum(-0.25 * one_hot(k, 2) * (d(X @ W) - sum(p * d(X @ W), 1, keepdim=True)))"),
        ("loss = -0.5 * (x - z) @ inv(A @ A.T) @ (x - z)", "x",
         "-0.5 * dx @ inv(A @ A.T) @ (x - z) + h @ dx"),
        ("loss = sum(maximum(x, z))", "x", "sum(where(x > z, dx, 0))"),
        ("loss = 1 / norm(x)", "x", "-d(norm(x)) / norm(x)**2"),
        ("loss = sum(max_pool2d(I, 2)**2)", "I",
         "sum(2 * max_pool2d(I, 2) * d(max_pool2d(I, 2)))"),
        ("loss = sum(avg_pool2d(I, 2, 1, 1)**2)", "I",
         "sum(2 * avg_pool2d(I, 2, 1, 1) * avg_pool2d(dI, 2, 1, 1))"),
        ("loss = sum(adaptive_max_pool1d(N, 4)[0]**2)", "N", None),
        ("loss = sum(max_pool1d(N, 3, 1, 1, 2)**2)", "N", None),
        ("dw = const([1, 2, 3]); loss = sum(w**2 * dw)", "w", "sum(2 * w * d(w) * dw)"),
        ("loss = sum(batch_norm(N[..., None], None, None, None, b2, True) * N[..., None])", "b2",
         "sum(N[:, :, :, None] * ones(2, 2, 6, 1) * db2[:, None, None])"),
        ("def dw(v):\n    return v\nloss = sum(w**2)", "w", "sum(2 * w * d(w))"),
        ("loss = mean(maximum(zeros(4), 1 - y * (X @ w)))", "w",
         "mean(d(maximum(zeros(4), 1 - y * (X @ w))))"),
        ("loss = sum(tanh(A @ x + x)**2)", "x", "sum(2 * t * (1 - t**2) * (A @ dx + dx))"),
    ],
)  # fmt: skip
def test_lines_of_a_derivation(program: str, wrt: str, line: str | None) -> None:
    found = derive_source(
        Source(f"{DATA}{program}\n", "a.expr"), Options(), Request(wrt=(wrt,)), steps=True
    )
    assert found.error is None
    lines = [step.shown for step in found.derivatives[0].steps]
    assert line is None or line in lines, lines


@pytest.mark.parametrize(
    ("loss", "line", "rule"),
    [
        ("sum(amin(h, 0)**2)",
         "sum(2 * amin(h, 0) * (d(h) @ where(h == min(h), 1, 0)) / sum(h == min(h)))",
         "d amin(u) = du @ where(u == min(u), 1, 0) / sum(u == min(u))"),
        ("median(h)", "where(h == median(h), 1, 0) @ d(h) / sum(h == median(h))",
         "d median(u) = where(u == median(u), 1, 0) @ du / sum(u == median(u))"),
        ("max(2 - h)", "where(r == max(r), 1, 0) @ d(r) / sum(r == max(r))",
         "d max(u) = where(u == max(u), 1, 0) @ du / sum(u == max(u))"),
    ],
)  # fmt: skip
def test_elements_that_are_alike_share_a_change(loss: str, line: str, rule: str) -> None:
    program = f"{DATA}h = tensor([1., 1., 2.]) * w[0]; loss = {loss}\n"
    found = derive_source(Source(program, "a.expr"), Options(), Request(wrt=("w",)), steps=True)
    (d,) = found.derivatives
    assert (line, rule) in [(step.shown, step.rule) for step in d.steps]


@pytest.mark.parametrize(
    ("loss", "wrt", "line"),
    [
        ("max(A)", "A", "sum(where(A == loss, dA, 0))"),
        ("logsumexp(x, 0)", "x", "sum(softmax(x, 0) * dx)"),
        ("huber_loss(X @ w, y)", "w",
         "mean(where(abs(r) < 1, r * d(X @ w), sign(r) * d(X @ w)))"),
        ("log(1.5 / sig)", "sig", "-1.5 * dsig / sig**2 / (1.5 / sig)"),
        ("100 * (sig - mu**2)**2", "mu", "-400 * (sig - mu**2) * mu * dmu"),
        ("sum(norm(X, dim=1))", "X", "sum(sum(X * dX, 1) / norm(X, dim=1))"),
        ("sum(prod(A * x, 1))", "x", "sum(prod(A * x, 1) * sum(d(A * x) / (A * x), 1))"),
        ("det(A)**2", "A", "2 * det(A) * det(A) * trace(inv(A) @ dA)"),
        ("sum(N[0, 1:, 2]**2)", "N", "sum(2 * N[0, 1:, 2] * dN[0, 1:, 2])"),
        ("sum(A[1:][1:])", "A", "sum(dA[1:][1:])"),
        ("sum(exp(x[:, None] * z))", "x", "sum(exp(x[:, None] * z) * dx[:, None] * z)"),
        ("mean(softplus(-y * (X @ w)))", "w", "mean(sigmoid(-y * (X @ w)) * d(-y * (X @ w)))"),
        ("sum(softplus(x, 2, 3))", "x",
         "sum(where(2 * x > 3, 1, sigmoid(2 * where(2 * x <= 3, x, 0))) * dx)"),
        ("x / norm(x) @ z", "x", "(dx * norm(x) - x * d(norm(x))) / norm(x)**2 @ z"),
    ],
)  # fmt: skip
def test_factors_stand_as_one_writes_them(loss: str, wrt: str, line: str) -> None:
    lines = [step.shown for step in steps(loss, wrt).derivatives[0].steps]
    assert line in lines, lines
    assert len(set(lines)) == len(lines)


def test_a_line_that_is_not_equal_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rules._power

    def wrong(self: Any, node: Any) -> Any:
        shown, name = rule(self, node)
        return Infix("mul", shown, shown), name

    monkeypatch.setattr(Rules, "_power", wrong)
    found = steps("sum(sin(x)**3)", "x")
    assert found.error is not None and found.error.code == "E404"
    assert "`sin(x)**3`" in found.error.diagnostic.message


def test_the_command(cli: Any) -> None:
    arguments = ("derive", "-e", "w = [1, 2]; loss = sum(w**3)", "--steps")
    assert cli(*arguments).out == (
        "     d(loss) = d(sum(w**3))\n"
        "             = sum(d(w**3))         d of sum is sum of d\n"
        "             = sum(3 * w**2 * dw)   power rule\n"
        "d loss / d w = 3 * w**2\n"
    )
    document = json.loads(cli(*arguments, "--format", "json").out)
    steps = document["derivatives"]["w"]["steps"]
    line = {"expr": "sum(3 * w**2 * dw)", "rule": "power rule", "lets": []}
    assert steps[2] == line and len(steps) == 3
    assert cli(*arguments, "--order", "2").code == 2


def test_values_of_one_name_are_told_apart_in_long_explanations(cli) -> None:
    lines = [f"x = {op}" for op in ["sin(x)", "x * 2", "cos(x)"] * 15]
    out = cli("explain", "-e", "\n".join(["x = 2", *lines, "loss = x + 1"])).out
    assert " 45  x#46 = cos(x#45) " in out and " 1  x#2 = sin(x#1) " in out
    assert "g(x#45) = -g(x#46) * sin(x#45)" in out


def test_numbers_of_double_precision_stay() -> None:
    """0.33333334 is 1/3 in single precision alone."""
    (d,) = steps("sum(0.33333334 * x**2) + sum(1.4142135 * x)", "x").derivatives
    assert d.steps[0].shown == "d(sum(0.33333334 * x**2) + sum(1.4142135 * x))"
    program = "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n"
    program += "loss = (0.33333334 * x**2).sum() + (1.4142135 * x).sum()\n"
    found = derive_source(Source(program, "a.py"), Options(), Request(), steps=True)
    assert found.derivatives[0].steps[0].shown == "d(sum(x**2 / 3) + sum(sqrt(2) * x))"
