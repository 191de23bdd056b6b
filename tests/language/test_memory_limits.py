"""What a program may hold, wherever it piles up: E505 before the machine runs out of memory."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress

import pytest

import autodiff_cli as ad
from autodiff_cli.outside import OUTSIDE, RELIEF, Outside

# The arrays take 4 MB each.
GREEDY = {
    "evaluated": "for i in range(300):\n    x = torch.ones(1000, 1000) * i\n    x.sum().item()\n"
    "    kept.append(x)",
    "comprehension": "kept = [torch.rand(1000, 1000) for i in range(300)]",
    "lists": "kept = [[0.5] * 500000 for i in range(300)]",
    "recursion": "def f(n):\n    x = torch.rand(1000, 1000)\n"
    "    return x.sum() if n == 0 else f(n - 1) + x.sum()\nf(300)",
    "trained": "w = torch.ones(1000, 1000, requires_grad=True)\n"
    "optimizer = torch.optim.SGD([w], lr=0.1)\nfor i in range(300):\n"
    "    optimizer.zero_grad()\n    (w * w).sum().backward()\n    optimizer.step()\n"
    "    kept.append(w.detach().clone())",
}


# The command, with less for libraries than the 512 MB which each process would fill first.
LESS = """\
import sys
from autodiff_cli import outside
from autodiff_cli.cli.main import main
outside.ALLOWANCE = 64 << 20
sys.exit(main())"""


def run(text: str, *command: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: what others freed would be used again and not be noticed."""
    words = [sys.executable, *command, "run", "--max-memory", "64M", "-q", "-e", text]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", GREEDY)
def test_what_piles_up_is_bounded(name: str) -> None:
    command = ("-m", "autodiff_cli") if name == "lists" else ("-c", LESS)
    done = run(f"import torch\nkept = []\n{GREEDY[name]}\n", *command)
    assert done.returncode == 4
    assert re.match(
        r"error\[E505\]: .* needs? more than 64\.0 MiB\n --> <expr>:\d+:\d+\n", done.stderr
    )
    assert "--max-memory" in done.stderr


def test_a_loop_that_keeps_one_array_goes_on() -> None:
    """Nobody looks at the values before the end."""
    done = run(
        "import torch\nx = torch.rand(1000, 1000)\n"
        "for i in range(60):\n    x = x * 0.5 + torch.rand(1000, 1000)\nprint(x.max() < 2)\n",
        *("-c", LESS),
    )
    assert done.stderr == ""
    assert done.stdout.startswith("tensor(True)\n")


@pytest.mark.parametrize("text", ["loss = 2.0 * 3.0", "loss = 1.0 + nobody"])
def test_what_is_said_of_a_program_has_memory_of_its_own(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules that show errors are imported then, and the program may have left nothing."""
    allowed: list[int] = []
    monkeypatch.setattr(Outside, "_allow", lambda self, size: allowed.append(size))
    monkeypatch.setattr(OUTSIDE, "watched", True)
    monkeypatch.setattr(OUTSIDE, "bounded", 0)
    with suppress(ad.AutodiffError):
        ad.run(text, max_memory=64 << 20)
    assert allowed == [64 << 20, (64 << 20) + RELIEF]


def test_which_window_reads_what_is_bounded_too() -> None:
    text = "y = avg_pool1d(ones(1, 1, 8000), 4000, 1)"
    with pytest.raises(ad.AutodiffError, match=r"of shape \(4001, 4000\) would need 122") as caught:
        ad.run(text, max_memory=32 << 20)
    assert caught.value.code == "E505"
