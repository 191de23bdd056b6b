"""Samples of PyTorch's op database: results, gradients, second derivatives and names of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from autodiff_cli.autograd import gradients
from autodiff_cli.autograd.tensor import Tensor
from autodiff_cli.graph.op import constant
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE

from ..database import SIGN_FREE, array_of, called, load, weights_of
from ..together import together

DATABASE = load()


def weighted(found: list[Tensor], seed: int) -> Tensor:
    """The sum of all elements with fixed weights."""
    total = F.zeros(())
    for i, tensor in enumerate(found):
        weights = constant(weights_of(tuple(tensor.shape), seed + i))
        total = total + F.sum(F.mul(tensor.node, weights))
    return Tensor(total)


def close(found: Any, wanted: np.ndarray, rtol: float) -> None:
    finite = np.abs(wanted[np.isfinite(wanted)]) if wanted.dtype.kind == "f" else np.zeros(0)
    scale = max(1.0, float(finite.max(initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale / 100)


def check(call: dict[str, Any]) -> None:
    """Results, the names of their nodes, gradients and weighted second derivatives are equal."""
    STATE.reset()
    leaves: list[Tensor] = []
    results = called(call, leaves)
    assert [t.grad_name for t in results] == call["grad_fn"]
    if call["name"] in SIGN_FREE:
        results = [Tensor(F.mul(t.node, t.node)) for t in results]
    assert len(results) == len(call["out"])
    for tensor, written in zip(results, call["out"], strict=True):
        wanted = array_of(written)
        assert tuple(tensor.shape) == wanted.shape
        assert tensor.node.dtype == wanted.dtype
        close(tensor.numpy(), wanted, 1e-6)
    if "grad" not in call:
        return
    total = weighted([t for t in results if t.requires_grad], 1)
    first = gradients.grad([total], leaves, [None], create_graph=True, allow_unused=True)
    for g, written in zip(first, call["grad"], strict=True):
        assert (g is None) == (written is None)
        if g is not None:
            close(g.numpy(), array_of(written), 1e-6)
    reached = [g for g in first if g is not None and g.requires_grad]
    if "second" in call:
        sums = [0.0] * len(leaves)
        if reached:
            total = weighted(reached, 101)
            second = gradients.grad([total], leaves, [None], allow_unused=True)
            sums = [0.0 if g is None else float(weighted([g], 201).numpy()) for g in second]
        wanted = np.array([float(v) for v in call["second"]])
        close(np.array(sums), wanted, 1e-5)


@together(DATABASE)
def test_samples_give_what_pytorch_gives(variant: str) -> None:
    for call in DATABASE[variant]:
        check(call)
