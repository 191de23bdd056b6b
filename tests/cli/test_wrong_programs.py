"""What people get wrong: every such program fails with a place, advice, and an exit code of its
phase, in every form of diagnostics and in narrow terminals."""

from __future__ import annotations

from pathlib import Path

import pytest

from autodiff_cli.errors import Exit
from autodiff_cli.render.diagnostics import render
from autodiff_cli.session import run
from autodiff_cli.source import Source

PROGRAMS = (
    (Path(__file__).parents[1] / "fixtures" / "wrong_programs.txt").read_text("utf-8")
).split("=====\n")
PHASES = {"6": Exit.NO, "5": Exit.EVALUATION, "7": Exit.EVALUATION}


@pytest.mark.parametrize("text", PROGRAMS, ids=range(len(PROGRAMS)))
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
    "x = [1.0]\nif sum(x) > 1\n    y = x\n": "write `if sum(x) > 1:`",
    "x = [1, 2]\nloss = x.sum\n": "write `loss = x.sum()`",
    "x = [1, 2]\ny = (x * 2).mean\n": "write `y = (x * 2).mean()`",
    "x = -3\nloss = |x|\n": "write `abs(x)` for the absolute value of x",
    "x = 3 y = 4\n": "begin a new line before `y`, or write `;`",
    "f(x) = x**2\n": "write `y = f(x)`; or, to define a function, `def f(x): return ...`",
    "x = true\n": "did you mean `True`?",
    "x = null\n": "did you mean `None`?",
    "x = Infinity\n": "did you mean `inf`?",
    "import torhc\n": "did you mean `torch`?",
    "import torch\nf = open('a')\n": "a program reaches no files",
    "import torch\neval('1')\n": "text is never run",
    "x = [1.0]\nloss == sum(x)\n": "`==` compares; to assign write `loss = sum(x)`",
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
}  # fmt: skip


@pytest.mark.parametrize("text", ADVICE)
def test_advice(text: str) -> None:
    error = run(Source(text, "wrong.expr")).error
    assert error is not None
    assert ADVICE[text] in error.diagnostic.helps[0]
