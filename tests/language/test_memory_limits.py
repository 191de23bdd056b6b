"""What a program may hold, wherever it piles up: E505 before the machine runs out of memory."""

from __future__ import annotations

import pytest

from autodiff_cli.language import housekeeping
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

MB = 1 << 20
LIMIT = 64 * MB  # the arrays below take at most 4 MB each

GREEDY = {
    "evaluated": "for i in range(300):\n    x = torch.ones(1000, 1000) * i\n    x.sum().item()\n"
    "    kept.append(x)",
    "drawn": "for i in range(300):\n    kept.append(torch.rand(1000, 1000))",
    "while": "i = 0\nwhile i < 300:\n    kept.append(torch.rand(1000, 1000))\n    i += 1",
    "comprehension": "kept = [torch.rand(1000, 1000) for i in range(300)]",
    "dict": "kept = {i: torch.rand(1000, 1000) for i in range(300)}",
    "lists": "kept = [[0.5] * 500000 for i in range(300)]",
    "recursion": "def f(n):\n    x = torch.rand(1000, 1000)\n"
    "    return x.sum() if n == 0 else f(n - 1) + x.sum()\nf(300)",
    "trained": "w = torch.ones(1000, 1000, requires_grad=True)\n"
    "optimizer = torch.optim.SGD([w], lr=0.1)\nfor i in range(300):\n"
    "    optimizer.zero_grad()\n    (w * w).sum().backward()\n    optimizer.step()\n"
    "    kept.append(w.detach().clone())",
}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "OWN", 192 * MB)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("name", GREEDY)
def test_what_piles_up_is_bounded(name: str) -> None:
    text = f"import torch\nkept = []\n{GREEDY[name]}\n"
    report = run(Source(text, "greedy.py"), Options(max_memory=LIMIT))
    assert report.error is not None
    assert report.error.code == "E505"
    assert report.error.span is not None
    assert report.error.diagnostic.helps
    assert "64.0 MiB" in report.error.message


@pytest.mark.usefixtures("narrow")
def test_a_loop_that_keeps_one_array_goes_on() -> None:
    """Nobody looks at the values before the end."""
    text = (
        "import torch\nx = torch.rand(1000, 1000)\n"
        "for i in range(150):\n    x = x * 0.5 + torch.rand(1000, 1000)\nprint(x.max() < 2)\n"
    )
    report = run(Source(text, "modest.py"), Options(max_memory=LIMIT))
    assert report.error is None
    assert report.stdout == "tensor(True)\n"
