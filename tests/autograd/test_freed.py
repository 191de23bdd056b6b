"""A second backward fails exactly where the first one freed what PyTorch saves (2.13, by running
each line there)."""

from __future__ import annotations

from autodiff_cli.session import run
from autodiff_cli.source import Source

from ..together import together

BEGINNING = """\
import torch
import torch.nn.functional as F
x = torch.tensor([[1.5, -2.0], [0.5, 3.0]], requires_grad=True)
y = torch.tensor([[0.5, 1.0], [2.0, -1.0]], requires_grad=True)
"""

NOTHING = """\
x + 2; x - 2; 2 - x; -x; torch.add(x, y, alpha=2); torch.sub(x, y, alpha=2); x.sum(); x.sum(1)
x.mean(); x.t(); x.reshape(-1); x[0]; x[:, 1]; x.clone(); x.expand(3, 2, 2); x.repeat(2, 1)
x.unbind(0)[0]; torch.cat([x, y]); torch.stack([x, y]); torch.cumsum(x, 0); torch.flip(x, [0])
torch.roll(x, 1); torch.trapezoid(x); torch.tril(x); torch.trace(x); x.diag_embed()
torch.rot90(x); x.permute(1, 0); F.pad(x, (1, 1)); F.interpolate(x[None], scale_factor=2.0)
x.double(); torch.floor(x); torch.sign(x)"""

SOMETHING = """\
x * y; x / y; x ** 2; 2 ** x; torch.exp(x); torch.tanh(x); torch.sin(x); x.abs(); x.clamp(0, 1)
x.prod(); x.max(); x.max(0).values; x.std(); x.norm(); x @ y; torch.outer(x[0], y[0])
F.softmax(x, 1); F.relu(x); F.mse_loss(x, y); F.layer_norm(x, (2,)); torch.sort(x)[0]
torch.topk(x, 1)[0]; torch.logsumexp(x, 1); torch.linalg.inv(x); torch.linalg.qr(x)[0]
torch.linalg.lu(x)[1]; torch.det(x); torch.linalg.solve(x, y); x[x > 0]
torch.gather(x, 1, torch.tensor([[0], [1]])); torch.maximum(x, y); torch.atan2(x, y)"""


def lines(text: str) -> list[str]:
    return [part.strip() for line in text.splitlines() for part in line.split(";")]


def twice(expression: str) -> str | None:
    text = f"{BEGINNING}z = ({expression}).sum()\nz.backward()\nz.backward()\n"
    error = run(Source(text, "twice.py")).error
    return None if error is None else error.code


@together(lines(NOTHING))
def test_nothing_was_freed(expression: str) -> None:
    assert twice(expression) is None


@together(lines(SOMETHING))
def test_what_was_saved_is_freed(expression: str) -> None:
    assert twice(expression) == "E406"
