"""Formulas of modules: the chain rule backwards, by way of the values that a person would name.

Every formula was evaluated beside reverse mode, or it is not `verified`."""

from __future__ import annotations

import json
from functools import cache

import pytest

from autodiff_cli.explain.derive import Derived, derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.session import Options
from autodiff_cli.source import Source
from autodiff_cli.symbolic.between import Chain

from .test_recorded import compared

HEAD = """import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
"""
NORMED = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.norm = nn.LayerNorm(3)
        self.out = nn.Linear(3, 2, bias=False)
    def forward(self, x):
        return self.out(F.gelu(self.norm(self.a(x))))
net = Net()
x = torch.tensor([[1.0, 2.0], [0.5, -1.0]])
loss = F.softplus(net(x)).sum()
"""
BLOCK = """class Block(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.n = nn.LayerNorm(d)
        self.f, self.g = nn.Linear(d, 8), nn.Linear(8, d)
    def forward(self, x):
        p = F.softmax(self.q(x) @ self.k(x).T / 2, dim=-1)
        x = self.n(x + self.o(p @ self.v(x)))
        return x + self.g(F.relu(self.f(x)))
net = Block()
x = torch.randn(3, 4)
y = torch.randn(3, 4)
loss = ((net(x) - y)**2).mean()
"""
# By the name of a program: it, a parameter, and what its formula cost when it was last read line by
# line beside the same derivation on paper.
MODULES = {
    "layer norm": (NORMED, "net.a.weight", 46),
    "attention": (BLOCK, "net.q.weight", 60),
    "LSTM, two steps of one sequence": (
        "net = nn.LSTM(2, 3)\nx = torch.randn(2, 1, 2)\nloss = (net(x)[0]**2).sum()",
        "net.weight_hh_l0", 96,
    ),
    "convolution, means of windows": (
        "net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AvgPool2d(2))\n"
        "x = torch.randn(2, 1, 6, 6)\nloss = (net(x)**2).sum()",
        "net.0.weight", 17,
    ),
    "means of windows": (
        "w = torch.randn(3, 2, 4, requires_grad=True)\nloss = (F.avg_pool1d(w, 2)**3).sum()",
        "w", 5,
    ),
    "means of equal parts": (
        "w = torch.randn(2, 3, 6, 4, requires_grad=True)\n"
        "loss = (F.adaptive_avg_pool2d(w, (3, 1))**3).sum()",
        "w", 9,
    ),
    "means of windows that meet": (
        "w = torch.randn(2, 3, 6, 5, requires_grad=True)\n"
        "loss = (F.avg_pool2d(w, 3, 2, 1)**3).sum()",
        "w", 6,
    ),
    "means of what is inside": (
        "w = torch.randn(3, 6, requires_grad=True)\n"
        "loss = F.avg_pool1d(w, 3, 2, 1, count_include_pad=False).tanh().sum()",
        "w", 12,
    ),
    "convolution, maxima of windows": (
        "net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2))\n"
        "x = torch.randn(2, 1, 7, 6)\nloss = (net(x)**2).sum()",
        "net.0.weight", 15,
    ),
    "maxima of windows that meet": (
        "w = torch.randn(2, 3, 6, 5, requires_grad=True)\n"
        "loss = (F.max_pool2d(w, 3, 2, 1)**3).sum()",
        "w", 10,
    ),
    "maxima of parts of rows": (
        "w = torch.randn(3, 7, requires_grad=True)\nt = torch.randn(3)\n"
        "loss = (F.adaptive_max_pool1d(w, 3) * t).sum() + F.max_pool1d(w, 2).sum()",
        "w", 11,
    ),
    "convolutions in groups": (
        "net = nn.Sequential(nn.Conv1d(4, 4, 3, groups=4, stride=2), nn.ReLU(), "
        "nn.Conv1d(4, 6, 1, groups=2))\nx = torch.randn(2, 4, 7)\nloss = (net(x)**2).mean()",
        "net.0.weight", 19,
    ),
    "convolution in two groups": (
        "net = nn.Conv2d(4, 6, 2, groups=2)\nx = torch.randn(2, 4, 5, 4)\n"
        "loss = (net(x)**3).sum()",
        "net.weight", 11,
    ),
    "cross attention behind a mask": (
        "net = nn.MultiheadAttention(4, 2, batch_first=True)\nx = torch.randn(2, 3, 4)\n"
        "c = torch.randn(2, 3, 4); m = torch.ones(3, 3).triu(1).bool()\n"
        "loss = (net(x, c, c, attn_mask=m)[0]**2).sum()",
        "net.out_proj.weight", 35,
    ),
    "words in order": (
        "emb, fc = nn.Embedding(5, 3), nn.Linear(6, 4)\n"
        "i = torch.tensor([[0, 1], [2, 3], [1, 1]]); y = torch.tensor([1, 3, 0])\n"
        "loss = F.cross_entropy(fc(emb(i).flatten(1)), y)",
        "emb.weight", 17,
    ),
}  # fmt: skip
RESIZED = {
    "A = [[1, 2], [3, 4]]; B = [[5, 6, 1], [7, 8, 2]]; x = const([1, 2, 3, 4, 5, 6]); "
    "y = const([1, 0, 2, 3]); loss = y @ (kron(A, B) @ x)": {
        "A": "reshape(y, (2, 2)) @ B @ reshape(x, (2, 3)).T",
        "B": "reshape(y, (2, 2)).T @ A @ reshape(x, (2, 3))",
    },
    "x = [1, 2, 3, 4, 5, 6]; w = [1, 2, 3]; X = x.view(2, 3); loss = sum(tanh(X @ w))": {
        "x": "flatten(outer(1 - tanh(X @ w)**2, w))", "w": "(1 - tanh(X @ w)**2) @ X",
    },
    "X = [[1, 2], [3, 4]]; w = [1, 2, 3, 4]; loss = sigmoid(flatten(X) @ w)": {
        "X": "loss * (1 - loss) * reshape(w, (2, 2))", "w": "loss * (1 - loss) * flatten(X)",
    },
    "X = [[1, 2, 3], [4, 5, 6]]; loss = X.view(6) @ X.T.reshape(6)": {
        "X": "reshape(X, (3, 2)).T + reshape(X.T, (2, 3))",
    },
}  # fmt: skip


@cache
def derived(program: str, *wrt: str) -> Derived:
    text = f"{HEAD}{program}\nloss.backward()\n"
    return derive_source(Source(text, "test.py"), Options(), Request(wrt=wrt))


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    program, wrt, most = MODULES[name]
    found = derived(program, wrt)
    assert found.error is None
    (made,) = found.derivatives
    assert made.verified
    assert made.cost <= most
    compared(f"modules {name}", json.loads(json.dumps([made.text, made.latex, *made.lets])))


def test_parameters_share_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are chosen once for all of them, and the names of one are those of the others."""
    passes: list[object] = []
    passed = Chain._passed
    monkeypatch.setattr(Chain, "_passed", lambda *args: passes.append(1) or passed(*args))
    found = derived(BLOCK)
    assert found.error is None
    assert len(found.derivatives) == 10
    assert all(made.verified for made in found.derivatives)
    assert len(passes) <= 12
    lines = [line for made in found.derivatives for line in made.lets]
    assert len({text for name, text, _ in lines if name == "q"}) == 1


def test_values_in_between_have_names() -> None:
    (made,) = derived(NORMED, "net.a.weight").derivatives
    lines = [(name, text) for name, text, _ in made.lets]
    assert made.text == "g_h.T @ x"
    assert lines[0] == ("h", "net.a.bias + x @ net.a.weight.T")  # no mean is pushed into it
    assert [name for name, _ in lines if name.startswith("g_")] == ["g_z", "g_h"]
    assert dict(lines)["g_z"].startswith("sigmoid(gelu(z) @ net.out.weight.T) @ net.out.weight * ")


def test_names_of_the_program_are_its_own() -> None:
    text = NORMED.replace("net = Net()", "net = Net()\nh = z = g_u = torch.ones(2)")
    (made,) = derived(text, "net.a.weight").derivatives
    assert {"h", "z", "g_u"}.isdisjoint(name for name, _, _ in made.lets)
    assert made.verified


def test_a_loop_is_short() -> None:
    text = "x = 0.5\nfor i in range(3):\n    x = x * 3 - x ** 2\nloss = x"
    (made,) = derive_source(Source(text, "test.expr"), Options(), Request()).derivatives
    assert made.verified
    assert made.cost < 17


@pytest.mark.parametrize("text", RESIZED)
def test_axes_that_are_split_and_joined(text: str) -> None:
    found = derive_source(Source(text, "test.expr"), Options(), Request())
    assert found.error is None
    assert {d.wrt: d.text for d in found.derivatives} == RESIZED[text]
    assert all(d.verified for d in found.derivatives)


def test_a_norm_of_instances_has_formulas() -> None:
    text = "x = torch.randn(1, 2, 2, 2, requires_grad=True)\n"
    text += "loss = nn.InstanceNorm2d(2, affine=True)(x).pow(2).sum()"
    found = derived(text, "x")
    assert found.error is None and found.derivatives
