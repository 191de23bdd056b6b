"""The limit of time may be met wherever a check computes: what goes on after other failures does
not go on after this one."""

from __future__ import annotations

from typing import Any

import pytest

from autodiff_cli.checks.model import Settings
from autodiff_cli.checks.runner import check_source
from autodiff_cli.ended import out_of_time
from autodiff_cli.graph.registry import op
from autodiff_cli.source import Source

TORCH = "import torch\nx = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)\n"
PROGRAMS = {
    "right": "x = [0.5, 1]\ny = 2\nloss = sum(exp(x) * y)",
    "a kink": "x = [0.0, 1]\nloss = sum(abs(x) * exp(x))",
    "second order": "# check: hessian\nx = [0.5, 1]\nloss = sum(exp(x))",
    "a cut": TORCH + "loss = (x.exp() * x.exp().detach()).sum()\nloss.backward()",
    "a hook": TORCH + "x.register_hook(lambda g: g * 2)\nloss = x.exp().sum()\nloss.backward()",
    "read": TORCH + "k = float(x.exp().sum())\nloss = (x * k).sum()\nloss.backward()",
    "wrong": TORCH + "class Wrong(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x.exp()\n"
    "    @staticmethod\n    def backward(ctx, g):\n        return g * 2\n"
    "loss = (Wrong.apply(x) * x.exp()).sum()\nloss.backward()",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_time_is_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, left = op("exp").kernel, [1_000_000]
    assert kernel is not None

    def counted(*args: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise out_of_time(1.0, "--timeout")
        return kernel(*args)

    monkeypatch.setattr(op("exp"), "kernel", counted)
    source = Source(PROGRAMS[name], "p.py" if "import" in PROGRAMS[name] else "p.expr")
    check_source(source, Settings())
    calls = 1_000_001 - left[0]
    for call in range(1, calls, 1 + calls // 40):
        left[0] = call
        (run, *_) = check_source(source, Settings()).items
        assert run.diagnostic is not None and run.diagnostic.code == "E508", call
