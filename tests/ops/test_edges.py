"""What PyTorch prints, or which exception it raises, at edges of operations: sizes 0 and 1, the
last value that is taken and the first one that is not, operands of more dims or another layout.

`tests/oracles/edges.py` records what the lines of `edges.txt` give.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from autodiff_cli.autograd import calls
from autodiff_cli.autograd.random.stream import Generator
from autodiff_cli.autograd.tensor import new_leaf
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.registry import overloads
from autodiff_cli.graph.state import STATE
from autodiff_cli.language.program.running import run_program
from autodiff_cli.language.values.exceptions import class_of
from autodiff_cli.session import Options
from autodiff_cli.source import Source
from tests.oracles.edges import BEFORE, edges
from tests.together import together

HEADS = "torch.nn.MultiheadAttention(4, 2, "
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def printed(expression: str) -> str:
    pieces: list[str] = []
    source = Source(f"{BEFORE}print({expression})\n", "<test>")
    report = run_program(source, Options(write=pieces.append, backward=False))
    if report.error is not None:
        raise report.error
    return "".join(pieces).rstrip("\n")


@together(edges(), lambda edge: edge[0])
def test_as_pytorch(expression: str, wanted: str) -> None:
    try:
        found = printed(expression)
    except AutodiffError as error:
        cls = class_of(error)
        found = cls.name if cls else error.code
    assert NUMBER.sub("#", found) == NUMBER.sub("#", wanted)
    for ours, theirs in zip(NUMBER.findall(found), NUMBER.findall(wanted), strict=True):
        assert float(ours) == pytest.approx(float(theirs), rel=2e-4, abs=1.01e-4)


def test_a_gradient_pytorch_lacks() -> None:
    """It is that of the elements that are read: none."""
    found, used = (
        f"grad(lambda x: {y}, torch.ones(3, 2))" for y in ("F.adaptive_avg_pool1d(x, 0)", "x[:0]")
    )
    assert printed(f"torch.equal({found}, {used})") == "True"


@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("p", [0.5, 1.0])
def test_channels_are_dropped(rank: int, p: float) -> None:
    STATE.reset()
    STATE.default_generator = Generator(0)
    x = new_leaf(np.ones((4, 3, 2, 2)[:rank]))
    found = calls.call_ops(overloads("nn.functional.dropout2d"), "dropout2d", (x, p, True), {})
    kept = Generator(0).dropout((4, 3, 1, 1)[:rank], p, np.float64)
    np.testing.assert_array_equal(found.numpy(), np.broadcast_to(kept, x.shape))
    STATE.reset()


@together(
    [
        ("E308", "F.embedding_bag(torch.zeros(2, 0, dtype=torch.int64), torch.ones(3, 2))"),
        ("E308", "torch.ormqr(torch.ones(3, 2), torch.tensor(1.0), torch.ones(3, 3))"),
        ("E205", "torch.nn.init.sparse_(torch.empty(2, 2), 1.5)"),
        ("E504", "torch.histogram(torch.tensor([0.5]), bins=torch.tensor([0.0, 1.0, 0.5]))"),
        ("E504", "torch.histc(torch.tensor([-1.5e308, 1.5e308], dtype=torch.float64), 2)"),
        ("E504", "torch.histogram(torch.tensor([-1.5e308, 1.5e308], dtype=torch.float64), 2)"),
        ("E309", "F.interpolate(torch.ones(1, 1, 1), scale_factor=1e9)"),
        ("E308", "F.linear(torch.ones(3), torch.ones(2, 2, 3))"),
        ("E308", "F.linear_cross_entropy(torch.ones(3), torch.ones(2, 2, 3), torch.tensor([0]))"),
        ("E308", "F.fractional_max_pool2d(torch.ones(1, 4, 4), 0, 2)"),
        ("E308", "F.fractional_max_pool3d(torch.ones(1, 4, 4, 4), 3, 2)"),
        ("E308", f"{HEADS}vdim=3)(torch.ones(2, 4), torch.ones(3, 4), torch.ones(2, 3))"),
        ("E308", f"{HEADS})(torch.ones(2, 4), torch.ones(3, 4), torch.ones(3, 3))"),
        ("E203", "F.max_pool2d(torch.ones(1, 1, 3), (1, 2), (1, 2), (0, 3), (1, 5))"),
        ("E205", "torch.poisson(torch.tensor([2.0**53 + 2], dtype=torch.float64))"),
    ]
)
def test_refused(code: str, expression: str) -> None:
    with pytest.raises(AutodiffError) as caught:
        printed(expression)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("limit", "fine", "beyond"),
    [
        ("autograd.random.stream.MAX_PERMUTATION", "torch.randperm(5)", "torch.randperm(6)"),
        ("ops.shapes.joining.MAX_PIECES", "torch.ones(5).split(1)", "torch.ones(6).split(1)"),
    ],
)
def test_limits(limit: str, fine: str, beyond: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"autodiff_cli.{limit}", 5)
    printed(fine)
    with pytest.raises(AutodiffError) as caught:
        printed(beyond)
    assert caught.value.code == "E505"
