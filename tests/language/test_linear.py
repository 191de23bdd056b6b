"""Long programs and long loops take time in proportion to their length, as in Python."""

from __future__ import annotations

import pytest

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from tests.pace import in_proportion

VIEWS = """\
import torch
x = torch.ones(2, 2, requires_grad=True)
y = x
for i in range({n}):
    y = y.t()
(3 * y).sum().backward()
print(int(x.grad.sum()))
"""
TEXT = """\
import torch
def grown(s):
    for i in range({n} * 8):
        s += "ab"
    return s
first = "start"
other = first
first += grown("ab")
print(len(first), other)
"""
GLOBALS = "import torch\ndef f():\n{lines}f()\nprint(x7)\n"
FUNCTIONS = "import torch\n{lines}print(f7(torch.ones(1)).item())\n"
LINES = {GLOBALS: "    global x{i}\n    x{i} = {i}\n", FUNCTIONS: "def f{i}(x): return x + {i}\n"}


def outcome(text: str, n: int) -> list[str]:
    lines = "".join(LINES.get(text, "").format(i=i) for i in range(n))
    source = Source(text.format(n=n, lines=lines), "program.py")
    written: list[str] = []
    report = run(source, Options(backward=False, write=written.append))
    assert report.error is None
    return "".join(written).split()


@pytest.mark.parametrize(
    ("text", "printed"),
    [(VIEWS, "12"), (TEXT, "{n} start"), (GLOBALS, "7"), (FUNCTIONS, "8.0")],
    ids=["views", "text", "globals", "functions"],
)
def test_ten_times_as_much_takes_ten_times_as_long(text: str, printed: str) -> None:
    """Twenty-five times as long is allowed for; quadratic work would take a hundred."""

    def work(n: int) -> None:
        assert outcome(text, n) == printed.format(n=16 * n + 7).split()

    assert in_proportion(work, 150, 1500)
