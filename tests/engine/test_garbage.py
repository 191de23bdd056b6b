"""Programs leave no cycles behind: what they made is freed without the collector."""

from __future__ import annotations

import gc

import pytest

import autodiff_cli
from autodiff_cli.graph.node import Node

PROGRAMS = {
    "matrices": "A = [[1, 2], [3, 4]]\nB = [1, 0.5]\nloss = sum((A + B) * A)",
    "chain": "x = 0.3\ny = x\nfor i in range(100):\n    y = sin(y) * x\nloss = y",
    "function": "def f(a):\n    return a * a\nx = [1, 2]\nloss = sum(f(x))",
    "backward": "import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()",
    "views": "x = [1, 2, 3, 4]\ny = x[1:].reshape(3, 1)\nloss = sum(y[0] * y)",
    "training": (
        "import torch\nfrom torch import nn\nmodel = nn.Linear(3, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for i in range(5):\n    optimizer.zero_grad()\n"
        "    model(torch.ones(2, 3)).sum().backward()\n    optimizer.step()"
    ),
}


def nodes() -> int:
    return sum(type(value) is Node for value in gc.get_objects())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_leaves_no_node_behind(name: str) -> None:
    for _ in range(3):
        autodiff_cli.run(PROGRAMS[name])
    gc.collect()
    gc.disable()
    try:
        before = nodes()
        autodiff_cli.run(PROGRAMS[name])
        assert nodes() == before
    finally:
        gc.enable()
