"""Every change of a program that a repair may try, at each expression and statement of programs of
all kinds: the changed lines are held against `fixtures/said_why.txt`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import unified_diff
from functools import cache

import pytest

from autodiff_cli.render.explanations.why import changes
from autodiff_cli.source import Source, Span
from autodiff_cli.why import finite, reconnect, slopes
from autodiff_cli.why.edits import Text
from autodiff_cli.why.model import Answer
from tests.said import compare

REPAIRS: list[Callable[[Text, Span | None, str], Iterator[str]]] = [
    reconnect.attached, reconnect.with_gradients, reconnect.requiring, reconnect.retained,
    reconnect.renamed, slopes.leaky, slopes.straight_through, slopes.without_cast, slopes.steeper,
    finite.kept,
]  # fmt: skip
TORCH = "import torch\nimport numpy as np\nimport torch.nn.functional as F\n"
PROGRAMS = {
    "leaving": TORCH + "x = torch.ones(3, requires_grad=True)\n"
    "a = x.detach().numpy().copy()  # kept\nb = torch.tensor([x[0].item(), 2.0, a[1]]); c = b\n"
    "if c.sum() > 0:\n\td = torch.from_numpy(np.sin(a) + np.arctan2(a, a))\n\te = x.data\n"
    "f = float(x.sum()); g = np.float64(e.cpu().numpy().astype('f4')) * np.concatenate([a])\n"
    "h = torch.full((2, 2), x.mean().item()) + torch.as_tensor(f'{f}') + torch.tensor([1, 2])\n"
    "print(x.item()); k = torch.stack([torch.tensor(v) for v in x.tolist()], 0)\n"
    "loss = (h * g).sum() + d.sum() + (k - (x.detach())).mean()",
    "switched": TORCH + "w = torch.tensor([1, 2], dtype=torch.int64)\n"
    "v = torch.tensor([1.0, 2], requires_grad=False)\nu = torch.arange(3)\n"
    "@torch.no_grad()\ndef f(x):\n    return x * 2\n"
    "with torch.no_grad():\n    y = f(w)\n\n    for i in range(2):\n        y = y + i\n"
    "with torch.no_grad(), torch.enable_grad(): z = v * 2\nwith torch.no_grad(): q = v * 3\n"
    "torch.set_grad_enabled(False)\ntorch.set_grad_enabled(mode=False); t = torch.zeros(2,)\n"
    "v.requires_grad_(False)\nw.requires_grad_(False); s = z.sum()\n"
    "for j in range(2): torch.is_grad_enabled(); loss = s * j\nloss.backward()\n",
    "steps": TORCH + "w = torch.rand(3, dtype=torch.float32, requires_grad=True)\n"
    "w_new = 1\nfor i in range(3):\n    loss = (w ** 2).sum()\n    loss.backward()\n"
    "    w = w - 0.1 * w.grad\n    w = (w * 2).detach().requires_grad_()\n    w.grad = None\n"
    "h = w * 3; loss = h.sum(); loss.backward()\nprint(h.grad, w)\n",
    "flat": TORCH + "x = torch.randn(2, 3, requires_grad=True)\nn = x.shape[0] // 2\n"
    "a = torch.relu(x - 5); b = F.relu_(x * 1)\nF.relu_(a)\n"
    "m = torch.nn.Sequential(torch.nn.ReLU())\n"
    "c = (x > 0.5).float() + torch.where(x <= 0, x, 1.0) * x.round() + torch.sign(input=x)\n"
    "d = x.long().float() + x.to(torch.int32) + torch.floor(x / 2) + x // 2 + x % 2\n"
    "e = torch.tanh(100 * x).sigmoid() + torch.sigmoid(-x)\n"
    "def g(t):\n    return t.argmax()\nloss = (a + b + c + d + e).sum() + g(x) == 0\n",
    "bounds": TORCH + "x = torch.tensor([0.0, 1.0, float('-inf')], requires_grad=True)\n"
    "y = torch.log(x) + x.sqrt() / x.norm() + 1 / x ** 0.5 - torch.acos(x) + x.std() + x.var(0)\n"
    "m = torch.where(x > 0, torch.log(x), torch.zeros_like(x)); k = x.masked_fill(x < 0, -np.inf)\n"
    "z = (x > 0).where(x, 1 / x); q = torch.where(x > 0, 0.0, x.log()); "
    "r = torch.std(x * x.std(), dim=0)\n"
    "s = x.mean() + torch.mean(x, 0) + np.array([1.0]) + torch.exp(x) * torch.pow(x, -0.5)\n"
    "t = torch.where(x > 0, m, m * 2) + x.reciprocal().lgamma() + x.std(unbiased=True)\n"
    "loss = (y + m + z + q + s + t).sum() / (x - x).sum() + -float('inf') * 0 + 3 % x.sum()",
    "by hand": TORCH + "x = torch.randn(2, 3, requires_grad=True)\nt = torch.ones(2, 3)\n"
    "e = torch.exp(x); p = e / e.sum(1, keepdim=True); q = x.exp() / x.exp().sum(dim=-1)\n"
    "a = torch.log(torch.sum(torch.exp(x))) + torch.log(x.exp().sum(1)) + e.sum(dim=0).log()\n"
    "b = torch.log(1 + torch.exp(x)) + (x.exp() + 1).log() + torch.log(1 - torch.sigmoid(x))\n"
    "c = torch.log(torch.softmax(x, 1)) + F.softmax(x, dim=1)[0].log() + torch.log(x.sigmoid())\n"
    "d = 1 / (1 + torch.exp(-x)) + 1.0 / (torch.exp(x) + 1) + torch.log(p) + torch.log(q)\n"
    "s = torch.sigmoid(x); f = "
    "F.binary_cross_entropy(s, t) + F.binary_cross_entropy(x.sigmoid(), t)\n"
    "g = torch.log(e / torch.sum(e, 1)) + torch.log(torch.exp(t) / torch.exp(x).sum())\n"
    "loss = (a + b + c + d + g).sum() + f + F.binary_cross_entropy(t, t) + 2 / (1 + torch.exp(x))",
    "quotients": TORCH + "x = torch.randn(2, 3, requires_grad=True); e = torch.exp(x)\n"
    "a = x.sin() / x.exp().sum() + e / x.sum() + e / e.prod(1, keepdim=True) + e / e\n"
    "b = e / (2 * x).exp().sum(1) + e / torch.sum(x.exp()) + e / sum(e) + e / e.exp().sum(0)\n"
    "c = x / e.sum(1) + torch.exp(x) / torch.sum(torch.exp(x), dim=1) + x.exp() / x.exp().sum()\n"
    "d = 1 / (2 + torch.exp(-x)) + 2 / (1 + e) + 1 / (1 - e) + 1 / (1 + x.sin()) + 1 / (1 * e)\n"
    "loss = (a / b - c / d).sum() + torch.log(a / e.sum()).sum()",
    "further": TORCH + "x = torch.randn(2, 3, requires_grad=True); e = torch.exp(x)\n"
    "a = torch.exp() / torch.exp(x).sum(1) + e / torch.sum() + torch.log(torch.exp().sum(1))\n"
    "b = e / e.sum(1, True) + e / torch.sum(e, -1, True) + e / e.sum(1, False) + torch.full((3,))\n"
    "s = F.softmax(x, 1)\n"
    "c = torch.log(torch.exp(s.softmax(1)) / s.softmax(1).exp().sum(1, True))\n"
    "loss = F.binary_cross_entropy(x.sigmoid(), F.binary_cross_entropy(s, s, reduction='none'))\n",
    "native": "x = [0, 2, 4]; k = const([1, 2]); i = tensor([1, 2])\nA = stop_gradient(x)\n"
    "y = relu(x - 9) + log(x) + sqrt(x) + x.detach() + round(x) + 1 / x\n"
    "with no_grad():\n  z = y * 2\ns = log(sum(exp(x))) + log(softmax(x, 0)) + log(1 + exp(x))\n"
    "p = where(x > 0, log(x), 0) + np.array(x) + binary_cross_entropy(sigmoid(x), k)\n"
    "loss = sum(y * z) + s.sum() + std(x) + float(x[0]) + x.item()",
}  # fmt: skip


MANY = "".join(f"x{i} = {i}\n" for i in range(12))
TEXTS = (
    "", "a = 1\n", "a = 2", "a = 1\nb = 2\nc = 3\n", "a = 1\nc = 3\n", "b = 2\n\nc = 3\na = 1\n",
    MANY, MANY.replace("x3 = 3\nx4 = 4\nx5 = 5\n", "y = 1\nz = 2\n"), MANY.replace("x9 = 9\n", ""),
    MANY.replace("x10", "w\tw"), MANY + "x12 = 12\n", MANY[:-6].replace("x0", "x1\nx2"),
)  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_changes_that_are_tried(name: str, request: pytest.FixtureRequest) -> None:
    source = Source(PROGRAMS[name], "program.expr")
    text = Text(source)
    found = []

    @cache
    def differences(changed: str) -> list[str]:
        return list(unified_diff(source.text.split("\n"), changed.split("\n"), n=0))[2:]

    spans = sorted({(node.span.start, node.span.end) for node in text.nodes[1:]})
    for repair in REPAIRS:
        lines = []
        for start, end in spans:
            for asked in ("x", "w.grad") if repair is reconnect.retained else ("w",):
                for changed in repair(text, Span(source, start, end), asked):
                    lines += [f"{source.text[start:end]!r}", *differences(changed)]
        found.append("\n".join([repair.__name__, *lines]))
    compare(request, found)


@pytest.mark.parametrize("before", TEXTS)
def test_repairs_are_shown_by_line(before: str, request: pytest.FixtureRequest) -> None:
    found = []
    for after in (None, *TEXTS):
        answer = Answer("x", "zero", "cut", 1, "message", after)
        found.append("\n".join(changes(answer, Source(before, "p.py"))))
    compare(request, found, 5)
