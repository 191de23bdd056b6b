"""Programs whose checks are compared with what was recorded of them; a letter for each item."""

from __future__ import annotations

import pytest

from autodiff_cli.checks import runner
from autodiff_cli.checks.model import ERROR, LETTERS, Settings
from autodiff_cli.checks.runner import FileCheck, check_source
from autodiff_cli.source import Source

XY = "x = [1, 2]\ny = [3, 4]\nloss = sum(x * y)\n"
TORCH = "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n"
WIDE = TORCH.replace("2.0]", "2.0], dtype=torch.float64")
FUNCTION = """class {}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return {}
    @staticmethod
    def backward(ctx, g):
        return {}
"""
ASKED = {
    "loss named": ("# check: loss=k\nx = [1, 2]\nk = sum(x ** 3)\nloss = sum(x)", ".."),
    "tolerances": (f"# check: rtol=1e-3 atol=1\n{XY}", "..."),
    "no tolerance": (f"# check: rtol=wide\n{XY}", "E"),
    "a negative tolerance": (f"# check: atol=-1\n{XY}", "E"),
    "no number": (f"# check: rtol=nan\n{XY}", "E"),
    "values that are not finite": ("# check: nan=ignore\nx = [0, 2]\nloss = sum(log(x))", ".n"),
    "a sign in a string": ("s = 'a # b'  # check: nograd\nx = 1\nloss = x * x", "."),
    "several names": (f"# check: wrt=x,y hessian=y\n{XY}", "E"),
    "patterns": ("# check: nograd w*\nx = 1\nw1 = 2\nw2 = 3\nloss = x * w1 * w2", ".."),
    "patterns wanted": ("# check: wrt=w*\nx = 1\nw1 = 2\nw2 = 3\nloss = x * w1 * w2", "..."),
    "Hessians": (f"# check: wrt=y hessian\n{XY}", "..."),
    "no elements": (
        "# check: hessian\nx = zeros(0, requires_grad=True)\nloss = sum(x ** 2)", "..."
    ),
    "no second derivative": (
        "# check: hessian\nimport torch\nimport torch.nn.functional as F\n"
        "z = torch.zeros(4, 1, 3).requires_grad_()\n"
        "x = z.log_softmax(2)\nx.retain_grad()\n"
        "loss = F.ctc_loss(x, torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2]))\n"
        "loss.backward()",
        "..n",
    ),
    "an op without a derivative": (
        TORCH + "y = torch.nextafter(x, x.detach() + 1).detach()\n"
        "loss = (x * y).sum()\nloss.backward()", ".c"
    ),
    "whole numbers between": (
        TORCH + "loss = (x * (x * 2.2).to(torch.int64)).sum()\nloss.backward()", ".."
    ),
    "a step of a float16": (
        "import torch\nx = torch.tensor([0.1, 3.3], dtype=torch.float16, requires_grad=True)\n"
        "loss = (x.exp() * x).sum()\nloss.backward()",
        "..",
    ),
    "a gradient that is too coarse": (
        "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n"
        "loss = ((x * 1e4 + 1e8) - 1e8 - x * 1e4 + x).sum() ** 2\nloss.backward()",
        "..",
    ),
    "hooks that only look": (
        "x = [1, 2]\nx.register_hook(lambda g: None)\nloss = sum(x * x)\nloss.backward()", ".."
    ),
    "a slope that is infinite": ("x = [0, 4]\nloss = sum(sqrt(x))", "E"),
    "an infinite slope, nothing refused": (
        "# check: nan=ignore\nx = [0, 4]\nloss = sum(sqrt(x))", ".k"
    ),
    "large numbers on the way": ("x = [1e-3, 2e-3]\nloss = sum((x + 1e12) - 1e12)", ".."),
    "written as a list": ("x = 3\nlist = [x.item(), 4]  #=> [3, 4]\nloss = x * x", "..."),
    "written as words": ("x = 3\ns = 'abc'  #=> abc\nt = 'abc'  #=> abd\nloss = x * x", "..F."),
    "true and false": ("x = 3\nb = x.item() > 2  #=> True\nloss = x * x", "..."),
    "ragged": ("x = 3  #=> [1, [2, 3]]\nloss = x * x", ".F."),
    "deeper than anybody writes": (f"x = 3  #=> {'[' * 70}1{']' * 70}\nloss = x * x", ".F."),
    "a name that is not there": ("x = 3  #=> y 3\nloss = x * x", ".F."),
    "above a comment": ("x = 3\n# the square\n\n#=> 3\nloss = x * x", "..."),
    "nothing above": ("#=> 3\nx = 3\nloss = x * x", ".F."),
    "an unbalanced bracket": ("x = 3  #=> [3\nloss = x * x", ".F."),
    "read with another name": (
        WIDE + "k = float(x.sum())\nloss = (x * k).sum()\nloss.backward()", ".c"
    ),
    "strict": (
        "# check: strict\n" + WIDE + "k = float(x.sum())\nloss = (x * k).sum()\nloss.backward()",
        ".F",
    ),
    "read in conditions": (
        WIDE + "k = x.sum().item() if x.sum() > 0 else 1.0\n"
        "if x[0] > 0.5:\n    k = k * x[0].item()\n"
        "while k > 100:\n    k = k / 2\nloss = (x * k).sum()\nloss.backward()",
        ".c",
    ),
    "made without a graph": (
        TORCH + "with torch.no_grad():\n    y = torch.nextafter(x, x + 1)\n"
        "loss = (x * y).sum()\nloss.backward()", ".c"
    ),
    "hooked and cut": (
        TORCH + "x.register_hook(lambda g: g * 3)\nloss = (x * x.detach()).sum()\n"
        "loss.backward()", ".c"
    ),
    "hooked and wrong": (
        TORCH + "class F(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * 5\n"
        "x.register_hook(lambda g: g * 3)\nloss = F.apply(x).sum()\nloss.backward()", ".F"
    ),
    "without a name": (
        TORCH + "loss = (torch.ones(2, requires_grad=True) * x).sum()\nloss.backward()", "..."
    ),
    "several results of constants": (
        TORCH + "v, i = torch.sort(torch.tensor([0.3, 0.1]))\nloss = (x.exp() * v).sum()\n"
        "loss.backward()", ".."
    ),
    "an assertion that cannot be": ("x = [1, 2]\nassert x < [1, 2, 3]\nloss = sum(x)", "E"),
    "a program that refuses other values": (
        WIDE + "k = {3.0: 2.0}[float(x.sum())]\nloss = (x * k).sum()\nloss.backward()", ".."
    ),
    "numbers that swallow small steps": (
        "x = [1, 2]\nloss = sum(abs((x + 1e11) - 1e11) * x)", ".n"
    ),
    "two of them": (
        TORCH + "y = torch.tensor([3.0, 4.0], requires_grad=True)\n"
        "loss = (x * y.detach()).sum() + (y * x.detach()).sum()\nloss.backward()",
        ".cc",
    ),
    "as many elements as are looked at": (
        "x = arange(256.0, requires_grad=True)\nloss = sum(abs(x - 3))", ".k"
    ),
    "more of them": ("x = arange(257.0, requires_grad=True)\nloss = sum(abs(x - 3))", ".k"),
    "slopes that are nearly too large": (
        "# check: nan=ignore\nx = [1, 2]\nloss = sum(x * 9e307)", ".n"
    ),
    "a directive below": ("x = 1\n# check: rtol=wide\nloss = x", "E"),
    "a tolerance without end": (f"# check: rtol=inf\n{XY}", "E"),
    "Hessians on a kink": (
        "# check: hessian\nx = [0, 1]\nloss = sum((relu(x) - relu(-x))**2)", "..k"
    ),
    "an element that is assigned": (
        "x = [1, 2]\nz = const([3, 4])\nz[0] = 5  #=> [5, 4]\nloss = sum(x * z)", "..."
    ),
    "kinks of two leaves": ("a = [0, 1]\nb = [0, 2]\nloss = sum(abs(a)) + sum(relu(b))", ".kk"),
    "two rules that are wrong": (
        TORCH + FUNCTION.format("A", "x * 3", "g * 5") + FUNCTION.format("B", "x * 2", "g")
        + "y = x * 2\nloss = (A.apply(y) + B.apply(y)).sum()\nloss.backward()", ".F"
    ),
    "wrong only together": (
        TORCH + "x = torch.linspace(-1, 1, 400, dtype=torch.float64, requires_grad=True)\n"
        "odd = torch.arange(400) % 7 % 2 * 2 - 1\n"
        + FUNCTION.format("A", "x * 1", "g * (1 + odd * 9e-7)")
        + "loss = A.apply(x).sum()\nloss.backward()", ".F"
    ),
    "one of many": (
        TORCH + "x = torch.linspace(-1, 1, 400, dtype=torch.float64, requires_grad=True)\n"
        + FUNCTION.format("A", "x * 1", "g * (1 + (torch.arange(400) == 17))")
        + "loss = A.apply(x).sum()\nloss.backward()", ".F"
    ),
    "a twentieth off beside infinity": (
        WIDE + FUNCTION.format("A", "x * 1", "g * 1.05") +
        "loss = torch.where(x < 5, A.apply(x), x.detach() * float('inf')).sum()\n"
        "loss.backward()", ".F"
    ),
}  # fmt: skip
SETTINGS = {"one of many": Settings(seed=3)}


@pytest.mark.parametrize("name", ASKED)
def test_as_recorded(name: str) -> None:
    text, letters = ASKED[name]
    suffix = "py" if "import torch" in text else "expr"
    found = check_source(Source(text, f"t.{suffix}"), SETTINGS.get(name, Settings()))
    assert "".join(LETTERS[item.status] for item in found.items) == letters


def test_a_crash_is_the_error_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(check: FileCheck) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(runner, "gradient_items", broken)
    (item,) = check_source(Source("x = 2\nloss = x * x", "t.expr"), Settings()).items
    assert item.status == ERROR and item.diagnostic is not None and item.diagnostic.code == "E900"
