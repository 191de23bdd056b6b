"""Convolutions in blocks of columns are those of all columns at once."""

from __future__ import annotations

import pytest

from autodiff_cli.ops.kernels import columns
from autodiff_cli.session import run
from autodiff_cli.source import Source

PROGRAM = """\
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
x = torch.randn({x}, requires_grad=True)
w = torch.randn({w}, requires_grad=True)
y = F.{call}
print(y.flatten().tolist())
for g in torch.autograd.grad((y * torch.randn(y.shape)).sum(), (x, w)):
    print(g.flatten().tolist())
"""


@pytest.mark.parametrize(
    ("x", "w", "call"),
    [
        ("3, 2, 9", "4, 2, 3", "conv1d(x, w, stride=2, padding=1)"),
        ("3, 4, 9, 7", "4, 2, 3, 2", "conv2d(x, w, groups=2, dilation=2)"),
        ("2, 2, 9, 17", "3, 2, 3, 2", "conv2d(x, w, padding=1)"),
        ("2, 2, 9, 7", "3, 2, 3, 2", "conv2d(x, w, stride=(2, 1))"),
        ("2, 1, 5, 4, 6", "2, 1, 2, 3, 2", "conv3d(x, w, stride=(1, 2, 1))"),
        ("2, 3, 6, 7", "3, 2, 3, 2", "conv_transpose2d(x, w, stride=2, padding=1)"),
    ],
)
def test_blocks(x: str, w: str, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Source(PROGRAM.format(x=x, w=w, call=call), "program.py")
    found = []
    for size in (columns.CHUNK, 1000, 300, 1):
        monkeypatch.setattr(columns, "CHUNK", size)
        report = run(program)
        assert report.error is None, report.error
        found.append(
            [
                float(n)
                for n in report.stdout.replace("[", "")
                .replace("]", ",")
                .replace("\n", "")
                .split(",")
                if n
            ]
        )
    for blocks in found[1:]:
        assert blocks == pytest.approx(found[0], rel=1e-12, abs=1e-12)
