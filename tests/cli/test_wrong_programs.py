"""What people get wrong: every such program fails with a place, advice, and an exit code of its
phase, in every form of diagnostics and in narrow terminals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.errors import Exit
from autodiff_cli.render.diagnostics import render
from autodiff_cli.session import run
from autodiff_cli.source import Source

from ..together import together

PROGRAMS = (
    (Path(__file__).parents[1] / "fixtures" / "wrong_programs.txt").read_text("utf-8")
).split("=====\n")
PHASES = {"6": Exit.NO, "5": Exit.EVALUATION, "7": Exit.EVALUATION}


@together(PROGRAMS)
def test_fails_with_advice(text: str) -> None:
    error = run(Source(text, "wrong.expr")).error
    assert error is not None
    diagnostic = error.diagnostic
    assert diagnostic.span is not None
    assert diagnostic.helps
    assert all(diagnostic.helps)
    assert diagnostic.exit_code == PHASES.get(error.code[1], Exit.PROGRAM)
    for form in ("full", "concise", "json", "github"):
        for width in (30, 44, 80):
            shown = render(diagnostic, form, False, width, unicode=False)
            assert error.code in shown
            assert "Traceback" not in shown
            assert shown.isascii() or form != "full"


ADVICE = {
    "loss = f(3)\ndef f(x):\n    return x\n": "it is assigned in line 2: move that line up",
    "loss = sum(f([1, 2]))\n": "define it, `def f(...):`",
    "x = [1.0]\nif sum(x) > 1\n    y = x\n": "write `if sum(x) > 1:`",
    "x = [1, 2]\nloss = x.sum\n": "write `loss = x.sum()`",
    "x = [1, 2]\ny = (x * 2).mean\n": "write `y = (x * 2).mean()`",
    "sum = 0\nloss = sum([1, 2])\n": "`sum` is a value since line 1: give that another name",
    "x = 3 y = 4\n": "begin a new line before `y`, or write `;`",
    "f(x) = x**2\n": "write `y = f(x)`; or, to define a function, `def f(x): return ...`",
    "x = true\n": "did you mean `True`?",
    "x = 3\nx++\nloss = x\n": "write `x += 1`",
    "x = 3\nloss = x++\n": "write `x + 1` for `x++`",
    "import torch\nx = torch.ones(2)\nx.require_grad = True\n": "did you mean `.requires_grad`?",
    "import torch\nx = torch.ones(2)\nprint(x.grad.norm())\n": "`autodiff why NAME FILE`",
    "import torch\nx = torch.ones(2)\ny = 0.1 * x.grad\n": "`autodiff why NAME FILE`",
    "x = null\n": "did you mean `None`?",
    "x = Infinity\n": "did you mean `inf`?",
    "import torhc\n": "did you mean `torch`?",
    "import torch\nf = open('a')\n": "a program reaches no files",
    "import torch\neval('1')\n": "text is never run",
    "x = [1.0]\nloss == sum(x)\n": "`==` compares; to assign write `loss = sum(x)`",
    f"loss == {'1' * 40}\n": f"to assign write `loss = {'1' * 40}`",
    f"loss == {'1' * 41}\n": "to assign write `loss = ...`",
    "x = [1.0]\nloss = tf.reduce_sum(x)\n": "write `sum` for `tf.reduce_sum`",
    "x = [1.0]\nloss = reduce_sum(x)\n": "did you mean `sum`?",
    "let x = 3\n": "write `x = ...`",
    "x = [[1.0, 2.0, 3.0]]\ny = x.view(2)\n": "3 elements fit `x.view(-1, 1)`",
    "x = [1.0, 2.0]\ny = x * 2\ny.backward()\n": "`y.sum().backward()`",
    "import torch\nx = torch.ones(3)\nx.sum().backward()\n": "`x = torch.ones(3, requires_grad=",
    "import torch\na = torch.ones(2, 3)\nb = torch.ones(2, 4)\ntorch.cat([a, b])\n": "dim=1)`",
    "import torch\nx = torch.ones(3)\ntorch.cat(x, x)\n": "write `torch.cat([x, x])`",
    "import torch\nk = torch.arange(4)\nk.mean()\n": "write `k.float().mean()`",
    "import torch\nx = torch.ones(3)\ntorch.softmax(x)\n": "write `torch.softmax(x, dim=-1)`",
    "import torch\nx = torch.ones(3)\ntorch.sum(x, dimm=0)\n": "did you mean `dim=`?",
    "import torch\nx = torch.ones(1, 1, 2, 2)\n"
    "torch.nn.functional.conv2d(x, torch.ones(1, 1, 3, 3))\n": "or `padding=1`",
    "import torch\nfrom torch import nn\nnet = nn.Sequential(nn.ReLU(), nn.Linear(18, 2))\n"
    "net(torch.ones(5, 2, 3, 3))\n": "`torch.ones(5, 2, 3, 3).flatten(1)` for",
    "import torch\nfrom torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n        self.layers = [nn.Linear(1, 1)]\nnet = Net()\n"
    "torch.optim.SGD(net.parameters(), lr=0.1)\n": "`self.layers = nn.ModuleList([...])`",
    "import torch\nw = torch.ones(2, requires_grad=True)\nloss = (w * w).sum()\n"
    "for i in range(2):\n    loss.backward()\n": "in the loop: move line 3 into it",
    "x = {1, 2}\ny = x * 2.0\n": "as a list, `[...]`",
    "x = 1,5\ny = x ** 2\n": "a decimal has a point",
    "import torch\nx = torch.ones(2)\nif x > 0:\n    x = -x\n": "`(x > 0).any()`",
    "import torch\ny = torch.nn.ReLU(torch.ones(2))\ny.sum()\n": "`ReLU()(x)` is its result",
    "import torch\nw = torch.ones(2, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
    "torch.optim.lr_scheduler.StepLR(opt)\n":
        "StepLR(optimizer, step_size, gamma=0.1, last_epoch=-1)`",
    "import torch\nfrom torch import nn\nbn = nn.BatchNorm1d(3)\nbn(torch.ones(1, 3))\n":
        "or first `bn.eval()`",
    "import torch\nT = torch.ones(2).__class__\nT.sum()\n": "call it on a value: `x.sum()`",
    "import numpy as np\nnp.concatenate([np.ones((2, 3))], axis=2)\n": "its axes are 0, 1",
    "import torch\nm = torch.nn.Sequential()\nm.fit(1)\n": "train it in a loop",
    "import torch\nm = torch.nn.Sequential()\nm += [torch.nn.ReLU()]\n":
        "`nn.Sequential(...)` around",
}  # fmt: skip


@together(ADVICE)
def test_advice(text: str) -> None:
    error = run(Source(text, "wrong.expr")).error
    assert error is not None
    assert ADVICE[text] in error.diagnostic.helps[0]


NET = (
    "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n        self.fc = torch.nn.Linear(2, 1)\n"
    "    def forward(self, x):\n"
)
OPT = "import torch\nw = torch.ones(2, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
CONV = "import torch\nfrom torch import nn\nconv = nn.Conv2d(1, 2, 3)\n"
# What stands in a program, what does it in its place, and the part of that which is advised.
TRIED = {
    "import torch\nn = 3\nx = torch.full(n, 1.0)\n": ("full(n,", "full((n,),", "`(n,)` for `n`"),
    "import torch\nx = torch.ones(6).unflatten(0, 6)\n": ("(0, 6)", "(0, (6,))", "`(6,)` for `6`"),
    "import torch\nx = torch.zeros(size=3)\n": ("size=3", "size=(3,)"),
    "import torch\nx = torch.ones(2)\nm = torch.any(x, dim=())\n": (
        "torch.any(x, dim=())", "x != 0", "`x != 0`",
    ),
    "import torch\nx = torch.rand(size=3)\n": ("size=3", "size=(3,)", "write `(3,)`"),
    "import torch\nx = torch.randint(0, 5, 3)\n": ("5, 3", "5, (3,)", "write `(3,)`"),
    "import torch\nx = torch.normal(0.0, 1.0, 3)\n": ("1.0, 3", "1.0, (3,)", "write `(3,)`"),
    "import torch\nx = torch.nn.functional.pad(torch.ones(2), 1)\n": (
        ", 1)", ", (1, 1))", "`(1, 1)`",
    ),
    "import torch\nclass M: pass\nwith M(): x = 1\n": (
        "class M: pass",
        "class M:\n    def __enter__(self): pass\n    def __exit__(self, *of): pass",
        "give the class `__enter__` and `__exit__`",
    ),
    "import torch\nwith 5 as x: pass\n": ("5 as x", "torch.no_grad() as x", "torch.no_grad()"),
    "import torch\nfrom enum import Enum\nclass N(Enum):\n    A = 1\nN()\n": (
        "N()\n", "N(1)\n", "`N(1)`",
    ),
    "import torch\nnet = torch.nn.Sequential(torch.nn.Sigmoid(), torch.nn.ReLU(inplace=True))\n"
    "x = torch.ones(2, requires_grad=True)\nnet(x).sum().backward()\n": (
        "inplace=True", "", "leave `inplace=True` out",
    ),
    "import torch\nx = torch.ones(2, requires_grad=True)\nh = x * 1\nfor i in range(2): h.tanh_()\n"
    "h.sum().backward()\n": ("h.tanh_()", "h = h.tanh()", "the form that makes a new tensor"),
    "import torch\nh = torch.ones(2, requires_grad=True) * 1\nh.tanh_()\nh.add_(1)\n"
    "h.sum().backward()\n": ("h.add_(1)", "h = h + 1", "`x = x + 1`"),
    "import torch\nx = torch.ones(2, requires_grad=True)\n"
    "torch.sigmoid(x).relu_().sum().backward()\n": (
        "torch.sigmoid(x)", "torch.sigmoid(x).clone()",
    ),
    "import torch\nx = torch.ones(2, requires_grad=True)\nv = (x * 2).item()\n": (
        "(x * 2).item()", "(x * 2).sum().item()",
    ),
    "import torch\nx = torch.ones(2, requires_grad=True)\n(x * 2).backward()\n": (
        "(x * 2).backward()", "(x * 2).backward(torch.ones_like(x * 2))",
    ),
    "import torch\nx = torch.ones(2, requires_grad=True)\nv = (x * 2).numpy()\n": (
        "(x * 2).numpy()", "(x * 2).detach().numpy()",
    ),
    "import torch\na = torch.arange(2)\nv = (a + a).mean()\n": (
        "(a + a).mean()", "(a + a).float().mean()",
    ),
    "import torch\na = torch.eye(2)\nb = a.T()\n": ("a.T()", "a.T"),
    "import torch\nfrom torch import nn\nx, t = torch.eye(2), torch.arange(2)\n"
    "loss = nn.CrossEntropyLoss(x, t)\n": (
        "nn.CrossEntropyLoss(x, t)", "nn.CrossEntropyLoss()(x, t)",
    ),
    "import torch\nw = torch.ones(2, 1)\nloss = (torch.tensor([[5, 6]]) @ w).sum()\n": (
        "torch.tensor([[5, 6]])", "torch.tensor([[5, 6]]).to(torch.float32)", ".to(torch.float32)",
    ),
    "import torch\nx = torch.tensor(3.0, requires_grad=True)\n"
    "torch.tensor(x.item()**2).backward()\n": (
        "torch.tensor(x.item()**2)", "(x**2)", "write `x**2`",
    ),
    "A = [[1, 2], [3, 4]]\nB = A' @ A\n": ("A'", "A.T", ".T"),
    "import torch\nw = torch.ones(2, requires_grad=True)\nfor i in range(2):\n"
    "    (w * w).sum().backward()\n    w = w - 0.1 * w.grad\n": (
        "w = w - 0.1 * w.grad", "with torch.no_grad(): w -= 0.1 * w.grad",
    ),
    "import torch\nx = torch.ones(2, requires_grad=True)\n"
    "g, = torch.autograd.grad((x * x).sum(), x)\ng.sum().backward()\n": (
        ".sum(), x)", ".sum(), x, create_graph=True)", "create_graph=True",
    ),
    "import torch\nw = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\nopt.step()\n": (
        "opt.step", "opt = torch.optim.SGD([w], lr=0.1)\nopt.step",
        "opt = torch.optim.SGD([w], lr=0.1)",
    ),
    "import torch\nnet = torch.nn.Linear(2, 1)\nopt.zero_grad()\nopt.step()\n": (
        "opt.zero", "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nopt.zero",
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
    ),
    f"{OPT}opt.step()\nscheduler.step()\n": (
        "scheduler.s",
        "scheduler = torch.optim.lr_scheduler.StepLR(opt, step_size=10)\nscheduler.s",
        "scheduler = torch.optim.lr_scheduler.StepLR(opt, step_size=10)",
    ),
    f"{OPT}optimizer.zero_grad()\noptimizer.step()\n": ("optimizer", "opt", "`opt`"),
    "import torch\nnet = torch.nn.Linear(2, 1)\nlist(model.parameters())\n": ("model", "net"),
    f"{CONV}img = torch.ones(28, 28)\nconv(img)\n": (
        "conv(img)", "conv(img.expand(1, 1, 28, 28))", "img.expand(1, 1, 28, 28)",
    ),
    f"{CONV}img = torch.ones(64, 784)\nconv(img)\n": (
        "conv(img)", "conv(img.view(-1, 1, 28, 28))", "img.view(-1, 1, 28, 28)",
    ),
    f"{CONV}net = nn.Sequential(conv, nn.Flatten(), nn.Linear(18, 1))\nx = torch.ones(1, 5, 5)\n"
    "net(x)\n": ("net(x)", "net(x.unsqueeze(0))", "x.unsqueeze(0)"),
    "import torch\nimg = torch.ones(4, 4)\ntorch.nn.Linear(16, 2)(img)\n": (
        "(img)", "(img.reshape(1, -1))", "img.reshape(1, -1)",
    ),
    "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
    "        super(Net).__init__()\n        self.fc = torch.nn.Linear(2, 1)\nNet()\n": (
        "super(Net)", "super()",
    ),
    "x = [1, 2]\nloss = x.__class__\n": ("x.__class__", "x.sum()"),
    f"{NET}        y = self.fc(x)\nnet = Net()\nloss = net(torch.ones(1, 2)).sum()\n": (
        "y = self.fc(x)", "return self.fc(x)", "write `return self.fc(x)` for `y = self.fc(x)`",
    ),
    f"{NET}        y = self.fc(x)\nout = Net()(torch.ones(1, 2))\nout.sum()\n": (
        "y = self.fc(x)", "return self.fc(x)", "write `return self.fc(x)` for `y = self.fc(x)`",
    ),
    f"{NET}        return self.fc(x)\nlist(Net.parameters())\n": (
        "Net.parameters()", "Net().parameters()",
    ),
    f"{NET}        return self.fc(x)\nNet().predict(torch.ones(1, 2))\n": (
        "Net().predict", "Net()", "write `Net()` for `Net().predict`",
    ),
    "import torch\nx = torch.ones(4, 3)\nn = x.size[0]\n": ("x.size[0]", "x.size()[0]", "x.size()"),
    "x = [1, 2]\nif sum(x) > 1 && sum(x) < 9:\n    y = x\n": ("&&", "and"),
    "x = 1\nif x > 1:\n    y = x\nelse if x > 0:\n    y = -x\n": ("else if", "elif"),
    "import torch\nx = torch.rand(4, 3)\np = torch.max(x, 1)\na = (p == torch.arange(4)).sum()\n": (
        "(p ", "(p.indices ", "`p.indices`",
    ),
    "import torch\nq = k = torch.ones(2, 5, 4)\ns = q @ k\n": ("q @ k", "q @ k.mT"),
    "import torch\nq = torch.ones(2, 5, 4)\ns = q.transpose()\n": (
        "q.transpose()", "q.transpose(-2, -1)",
    ),
    "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
    "m = nn.Sequential(nn.Linear(2, 2), F.relu)\n": ("F.relu", "nn.ReLU()"),
    "import torch\nfrom torch import nn\nm = nn.Sequential(nn.Linear(2, 2), nn.ReLU)\n": (
        "nn.ReLU", "nn.ReLU()",
    ),
    "import torch\nx = torch.Tensor([1.0], requires_grad=True)\n": (
        "torch.Tensor([1.0], requires_grad=True)", "torch.tensor([1.0], requires_grad=True)",
    ),
    "import torch\na, b = torch.zeros(3, 2), torch.zeros(2)\nc = torch.cat([a, b])\n": (
        "[a, b]", "[a, b.unsqueeze(0)]", "write `b.unsqueeze(0)` for `b`",
    ),
    "import torch\nx = torch.ones(4, 3).double()\ny = torch.nn.Linear(3, 1)(x)\n": (
        "(x)", "(x.to(torch.float32))", "write `x.to(torch.float32)` for `x`",
    ),
    "import torch\nx = torch.ones(1, 1, 5, 5).double()\ny = torch.nn.Conv2d(1, 1, 3)(x)\n": (
        "(x)", "(x.to(torch.float32))", "write `x.to(torch.float32)` for `x`",
    ),
    "import torch\nlstm = torch.nn.LSTM(3, 5)\nh = c = torch.zeros(1, 2, 5)\n"
    "y, _ = lstm(torch.ones(2, 7, 3), (h, c))\n": (
        "torch.ones(2, 7, 3)", "torch.ones(2, 7, 3).transpose(0, 1)",
    ),
    "import torch\nloss = torch.tensor(3.0)\nprint('%.2f of %d' % (loss.item, 3))\n": (
        "loss.item", "loss.item()",
    ),
    "import torch\nw = torch.ones(1, requires_grad=True)\nh = torch.zeros(1)\nfor t in range(3):\n"
    "    h = torch.tanh(h + w)\n    h.sum().backward()\n": (
        "torch.tanh(h + w)", "torch.tanh(h.detach() + w)",
    ),
    "import torch\nm = torch.nn.Dense(4, 2)\n": ("nn.Dense", "nn.Linear"),
    "import torch\nx, t = torch.zeros(2), torch.tensor([0, 1])\n"
    "loss = torch.nn.BCEWithLogitsLoss()(x, t)\n": (
        "(x, t)", "(x, t.float())", "`t.float()` for `t`",
    ),
    "x = -3\nloss = |x|**2\n": ("|x|", "abs(x)", "`abs(x)` for `|x|`"),
    "x = [3, 4]\nloss = ||x||\n": ("||x||", "norm(x)", "`norm(x)` for `||x||`"),
    "A = [1, 2; 3, 4]\nloss = sum(A)\n": ("[1, 2; 3, 4]", "[[1, 2], [3, 4]]"),
    "A = [[1, 2]]\nB = [[3, 4]]\nloss = sum(A @ B')\n": ("B'", "B.T", "the transpose is `.T`"),
    "x = 3\nloss = √x\n": ("√x", "sqrt(x)", "`sqrt(x)` for `√x`"),
    "x = 3\nfor i in range(2):\n    x = x * 2\nend\nloss = x\n": ("end\n", "", "remove this line"),
    "x = 1:10\nloss = sum(x)\n": ("1:10", "arange(1, 11)"),
    "x = 10:-2:1\ny = sum(x)\n": ("10:-2:1", "arange(10, 1 + -2 / 2, -2)"),
    "x = 0:0.1:1\ny = sum(x)\n": ("0:0.1:1", "arange(0, 1 + 0.1 / 2, 0.1)"),
    "n = const(4)\nx = 1:n\nloss = sum(x)\n": ("1:n", "arange(1, n + 1)"),
    "loss = sum(1:3)\n": ("1:3", "arange(1, 4)"),
    "import torch\nx = torch.zeros(2, 3)\nx(1, :) = 5\n": ("x(1, :)", "x[1, :]"),
    "x = [1, 2, 3]\ny = x[1:end]\n": (":end", ":"),
    "x = [1, 2, 3]\ny = x[end]\n": ("end", "-1", "write `-1` for `end`"),
    "p = 5%\nx = 100\nloss = x * p\n": ("5%", "0.05"),
    "x = [1, 2]\ny = x .* x\n": (".*", "*", "write `*` for `.*`"),
    "x = [1, 2]\ny = x.^2\n": (".^", "**", "write `**` for `.^`"),
    "x <- c(1, 2, 3)\n": ("<- c(1, 2, 3)", "= [1, 2, 3]"),
    "function f(x)\n    return x\ny = f(3)\n": ("function f(x)", "def f(x):"),
    "x = 0.5\ny = tan^-1(x)\n": ("tan^-1(x)", "atan(x)"),
    "x = 0.5\ny = 2 * sin^2(x)\n": ("sin^2(x)", "sin(x)**2"),
    "a = [1, 2]\nloss = a · a\n": ("·", "@", "between vectors `@` for `·`"),
    "x = [1, 2]\nloss = ∑(x)\n": ("∑", "sum", "write `sum` for `∑`"),
    "import torch\nx = [torch.ones(2)]\ny = x.mean()\n": ("x.mean", "torch.stack(x).mean", "(x)`"),
    "import torch\nx = torch.ones(2)\ny = torch.max(0, x)\n": (
        "(0, x)", "(torch.tensor(0), x)", "(0)`",
    ),
    "import torch\nx = torch.ones(3)\nfor i in x.shape[0]:\n    x[i]\n": (
        "x.shape[0]", "range(x.shape[0])",
    ),
    "import torch, math\nx = torch.tensor(2.0, requires_grad=True)\ny = math.sin(x)\n"
    "y.backward()\n": (
        "math.sin(x)", "torch.sin(x)",
    ),
    "import torch\nk = torch.arange(3)\nk.requires_grad = True\n": (
        "k.requires", "k = k.float()\nk.requires", "k = k.float()",
    ),
    "import torch\nnet = torch.nn.Linear(2, 2)\ns = net.state_dict\nnet.load_state_dict(s)\n": (
        "net.state_dict", "net.state_dict()",
    ),
    "import torch\nx, t = torch.eye(2, requires_grad=True), torch.tensor([0, 1])\n"
    "p = (x * 2).argmax(dim=1)\nloss = torch.nn.functional.cross_entropy(p, t)\n": (
        "(p, t)", "((x * 2), t)", "`(x * 2)` for `p`",
    ),
    "import torch\np = torch.tensor([1.4])\nt = torch.ones(1)\n"
    "loss = torch.nn.functional.binary_cross_entropy(p, t)\n": (
        "binary_cross_entropy", "binary_cross_entropy_with_logits",
    ),
    "x = linspace(0, 1)\n": ("1)", "1, steps=10)", "linspace(0, 1, steps=10)"),
    "import torch\nm = torch.nn.Sequential(\n    torch.nn.Linear(2, 2)\n    torch.nn.ReLU()\n)\n": (
        "2)\n", "2),\n", "add `,` at the end of line 3",
    ),
    "import torch\nbn = torch.nn.BatchNorm1d(5)\ny = bn(torch.rand(4, 3))\n": (
        "torch.nn.BatchNorm1d(5)", "torch.nn.BatchNorm1d(3)",
    ),
    "import torch\nln = torch.nn.LayerNorm(5)\ny = ln(torch.rand(4, 3))\n": (
        "torch.nn.LayerNorm(5)", "torch.nn.LayerNorm(3)",
    ),
    "import torch\nc = torch.nn.Conv2d(3, 8, 2)\ny = c(torch.ones(1, 1, 4, 4))\n": (
        "torch.nn.Conv2d(3, 8, 2)", "torch.nn.Conv2d(1, 8, 2)",
    ),
    "import torch\nfc = torch.nn.Linear(10, 2)\ny = fc(torch.ones(3, 8))\n": (
        "torch.nn.Linear(10, 2)", "torch.nn.Linear(8, 2)",
    ),
    "import torch\nk = torch.ones(2, 5, 4)\ns = k @ k.T\n": (
        "k.T", "k.mT", "write `k.mT` for `k.T`",
    ),
    "import torch\ng = torch.func.grad(lambda x: (x * x).sum())\nd = g([1.0, 2.0])\n": (
        "[1.0, 2.0]", "torch.tensor([1.0, 2.0])",
    ),
    "x = '3'\nw = 2.0\nloss = x * w\n": ("x * w", "float(x) * w", "`float(x)` for `x`"),
    "import torch\nimport torch.nn.functional as F\nx = torch.ones(2, requires_grad=True)\n"
    "y = F.leaky_relu(x * 1, -0.5, inplace=True)\ny.sum().backward()\n": (
        ", inplace=True", "", "leave `inplace=True` out",
    ),
    "import torch\nx = torch.ones(2, requires_grad=True)\ny = x * 1\n"
    "torch.nn.functional.elu_(y, -1.0).sum().backward()\n": ("elu_(", "elu(", "without `_`"),
    "import numpy as np\nimport torch\nm = torch.nn.Linear(2, 1, bias=False)\n"
    "m.load_state_dict({'weight': np.ones((1, 2))})\n": (
        "np.ones((1, 2))", "torch.from_numpy(np.ones((1, 2)))", "`torch.from_numpy(a)`",
    ),
    "import torch\ny = torch.ones(2, 6).unflatten(1, (2, 4))\n": (
        "(2, 4)", "(2, -1)", "-1 stands for one size to infer",
    ),
    "import torch\ny = torch.nn.Unflatten(1, 6)(torch.ones(2, 6))\n": (
        "1, 6", "1, (2, -1)", "`(2, -1)`",
    ),
    "import torch\nn = torch.tensor(1.0).size(0)\n": ("size(0)", "size()", "`x.size()`"),
    "import torch\nx = torch.ones(2, requires_grad=True)\nn = x.sum(dtype=torch.int64)\n": (
        "x.sum(", "x.detach().sum(", "write `.detach()` in front of it",
    ),
    "x = 3 // the input\nloss = x\n": ("//", "#", "write `#` for `//`"),
    "In [1]: import torch\nx = torch.ones(2)\n": ("In [1]: ", "", "remove the `In [1]: `"),
    "import torch\nx = torch.ones(2)\nIn [2]: y = x.sum()\n": (
        "In [2]: ", "", "remove the `In [2]: `",
    ),
}  # fmt: skip


@together(TRIED)
def test_what_is_advised_runs(text: str) -> None:
    wrong, right, *part = TRIED[text]
    report = run(Source(text, "wrong.expr"))
    assert report.error is not None
    given = [*report.error.diagnostic.helps, *(h for w in report.warnings for h in w.helps)]
    advised = part[0] if part else right
    assert any(advised in help for help in given), given
    assert run(Source(text.replace(wrong, right), "right.expr")).error is None


def test_advice_at_an_infinite_slope_is_that_of_the_cause() -> None:
    text = "x = [1.0, 2.0]\ny = const([1.0, 2.0])\nloss = sqrt(sum((x - y)**2))\n"
    (warning,) = run(Source(text, "distance.expr")).warnings
    assert (warning.code, warning.span and warning.span.text) == (
        "W501", "sqrt(sum((x - y)**2))",
    )  # fmt: skip
    fixed = "sqrt(clamp(sum((x - y)**2), min=1e-12))"
    assert f"`{fixed}`" in warning.helps[0]
    report = run(Source(text.replace("sqrt(sum((x - y)**2))", fixed), "distance.expr"))
    assert (report.error, report.warnings) == (None, [])


def test_how_many_more_unknown_names_there_are() -> None:
    text = "x = 3\n" + "".join(f"y{at} = x * u{at}\n" for at in range(30))
    report = run(Source(text, "wrong.expr"))
    assert len(report.more_errors) == 20
    notes = [error.diagnostic.notes for error in report.more_errors if error.diagnostic.notes]
    assert notes == [("9 more not defined: u21, u22, u23, u24, u25 ...",)]
    text = "".join(f"y{at} = u{at}\n" for at in range(23))
    last = run(Source(text, "wrong.expr")).more_errors[-1]
    assert last.diagnostic.notes == ("2 more not defined: u21, u22",)


def test_all_unknown_names_are_told() -> None:
    text = "x = 3\na = xx + 1\nb = [yy for yy in [1]]\nc = yyy * a\nd = xx + yyy\ne = mystery(d)\n"
    report = run(Source(text, "wrong.expr"))
    assert report.error is not None
    found = [error.span and error.span.text for error in (report.error, *report.more_errors)]
    assert found == ["xx", "yyy", "mystery"]
    text = "x = a + b * c\nd = b + nothing\n"
    report = run(Source(text, "wrong.expr"))
    assert report.error is not None
    found = [error.span and error.span.text for error in (report.error, *report.more_errors)]
    assert found == ["a", "b", "c", "nothing"]


# Products of integers and floats in a native program, by hand; (5, 6) are the integers.
PROMOTED = {
    "sum(const([[5, 6], [7, 8]]) @ w)": 1 * 12 + 2 * 12 + 3 * 14 + 4 * 14,
    "sum(w @ const([[5, 6], [7, 8]]))": 1 * 11 + 2 * 15 + 3 * 11 + 4 * 15,
    "dot(const([5, 6]), w[0])": 5 + 12,
    "sum(einsum('i,ij->j', const([5, 6]), w))": 5 + 10 + 18 + 24,
    "sum(linear(const([[5, 6]]), w))": 5 + 12 + 15 + 24,
    "sum(bmm(const([[[5, 6]]]), w[None]))": 5 + 10 + 18 + 24,
    "sum(addmm(const([[5, 6]]), w[:1], eye(2)))": 11 + 3,
}


@pytest.mark.parametrize("product", PROMOTED)
def test_integer_constants_of_native_programs_are_promoted(product: str) -> None:
    report = run(Source(f"w = [[1, 2], [3, 4]]\nloss = {product}\n", "native.expr"))
    assert report.error is None
    assert report.tensors["loss"].value == PROMOTED[product]
    assert report.tensors["w"].grad is not None
    assert run(Source(f"import torch\nfrom torch import *\nfrom torch.nn.functional import linear\n"
                      f"def const(x): return torch.tensor(x)\nw = torch.ones(2, 2)\n"
                      f"loss = {product}\n", "snippet.py")).error is not None  # fmt: skip


def test_pictures_are_left_out() -> None:
    """Programs that draw run; it is said once, and a drawing is no number."""
    text = "import matplotlib.pyplot as plt\nimport seaborn as sns\nimport torch\n"
    report = run(Source(text + "plt.plot([1])\nsns.despine()\nx = torch.ones(2)\n", "a.py"))
    (warning,) = report.warnings
    assert warning.code == "W209" and warning.span is not None and report.error is None
    assert warning.span.text == "matplotlib.pyplot as plt"
    for wrong in ("plt.gca() < 1", "torch.tensor(plt.xlim())", "a, b = plt.x()"):
        assert run(Source(f"{text}x = torch.ones(2)\n{wrong}\n", "a.py")).error is not None


def test_the_power_is_advised_in_the_form_of_the_statement() -> None:
    for statement, help in (("y = x ^ 2", "`x**2`"), ("x ^= 2", "`x **= 2`")):
        error = run(Source(f"x = 2.5\n{statement}\n")).error
        assert error is not None and error.code == "E105" and help in error.helps[0]


# Programs that run and do not do what they say: what is warned of, where, and what mends it.
SLIPS = {
    "y = [1, 2, 4]\nt = const([[1], [2], [3]])\nloss = mean((y - t)**2)\n": (
        "W302", "y - t", "y - t.squeeze(1)",
    ),
    "y = [1, 2, 4]\nt = const([[1], [2], [3]])\nloss = mse_loss(y, t)\n": (
        "W302", "mse_loss(y, t)", "mse_loss(y, t.squeeze(1))",
    ),
    "import torch\nw = torch.ones(3, requires_grad=True)\nx = torch.eye(3)[:, :1]\n"
    "loss = (w - (x * 2)).abs().sum()\nloss.backward()\n": (
        "W302", "w - (x * 2)", "w - (x * 2).squeeze(1)",
    ),
    "import torch\nx = torch.ones(3, requires_grad=True)\nloss = x.sum()\nloss.backward\n": (
        "W208", "loss.backward", "loss.backward()",
    ),
    "k = 1^2\nx = 3\nloss = k * x\n": ("W105", "1^2", "1**2"),
    "x = [1, 2]\nn = len(x)\nn ^= 2\nloss = sum(x) * n\n": ("W105", "n ^= 2", "n **= 2"),
}  # fmt: skip


@together(SLIPS)
def test_slips_are_warned_of(text: str) -> None:
    code, place, right = SLIPS[text]
    (warning,) = run(Source(text, "slip.py")).warnings
    assert (warning.code, warning.span and warning.span.text) == (code, place)
    advised = right.partition(" - ")[2] or right.partition(", ")[2].removesuffix(")") or right
    assert f"`{advised}`" in warning.helps[0]
    report = run(Source(text.replace(place, right), "slip.py"))
    assert (report.error, report.warnings) == (None, [])


@pytest.mark.parametrize(
    "loss", ["sum(exp(-(x - x[:, None])**2))", "sum((x - x.reshape(1, 3))**2)", "sum(x * m)"]
)
def test_meant_broadcasts_are_not_warned_of(loss: str) -> None:
    assert run(Source(f"x = [1, 2, 4]\nm = const([[1], [2], [3]])\nloss = {loss}\n")).warnings == []


@pytest.mark.parametrize(
    ("words", "help"),
    [
        ("run demo.expr --json", "did you mean `--format json`"),
        ("derive demo.expr --numpy", "did you mean `--format numpy`"),
        ("graph demo.expr --svg", "did you mean `--format svg`"),
        ("run demo.expr --outt x.json", "did you mean `--out`"),
        ("run demo.expr --fromat json", "did you mean `--format`"),
    ],
)
def test_the_help_of_a_wrong_command_line_helps(cli, words: str, help: str) -> None:
    wrong = cli(*words.split())
    assert wrong.code == 2 and help in wrong.err
    said = help.split("`")[1].split()
    given = [w for w in words.split() if not w.startswith("--")]
    assert cli(*given[:2], *said, *given[2:]).code == 0


def test_notebooks_and_pages_are_no_programs(cli, tmp_path: Path) -> None:
    for text, what in (
        ('{"cells": []}', "a Jupyter notebook"), ('{\n "cells": []\n}', "a Jupyter notebook"),
        ("<!DOCTYPE html>", "a page of HTML"),
    ):  # fmt: skip
        (tmp_path / "a.ipynb").write_text(text)
        result = cli("a.ipynb")
        assert result.code == 3 and "error[E109]" in result.err and what in result.err


def test_ranges_of_other_languages_have_their_elements() -> None:
    for wrong, numbers in (("0:0.1:1", np.arange(11) / 10), ("10:-2:1", np.arange(10, 1, -2))):
        error = run(Source(f"y = {wrong}\n", "wrong.expr")).error
        assert error is not None
        right = error.diagnostic.helps[0].split("`")[1]
        assert np.allclose(run(Source(f"y = {right}\n", "r.expr")).tensors["y"].value, numbers)
    text = "n = 0\nfor i in 9:-3:1:\n    n = 10 * n + i\n"
    error = run(Source(text, "wrong.expr")).error
    assert error is not None and error.diagnostic.helps == (
        "write `range(9, 1 + -3 // 2, -3)` for `9:-3:1`",
    )
