"""Forward equals reverse: every sample of the table has one directional derivative."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import pytest

from autodiff_cli.autograd.forward import jvp
from autodiff_cli.autograd.reverse import gradients
from autodiff_cli.engine import evaluate  # noqa: F401  # nodes get values
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, value_of
from tests.table import Case, apply, arrays_of, cases, nodes_of, variables, weights


def direction(case: Case, place: str, shape: tuple[int, ...]) -> np.ndarray:
    seed = crc32(f"{case.name}/{place}/direction".encode())
    return np.asarray(np.random.RandomState(seed).uniform(-1, 1, shape))


def applied(case: Case) -> tuple[list[Node], list[Node], list[Node]]:
    """Variables, directions for them, and outputs that depend on them."""
    nodes = nodes_of(case, arrays_of(case))
    places = variables(case)
    inputs = [nodes[place] for place in places]
    moves = [
        constant(direction(case, place, x.shape).astype(x.dtype))
        for place, x in zip(places, inputs, strict=True)
    ]
    return inputs, moves, [out for out in apply(case, nodes) if out.requires_grad]


def dot(pairs: list[tuple[Any, Any]]) -> float:
    return float(sum(np.sum(a.astype(float) * b) for a, b in pairs))


WITH_VARIABLES = [case for case in cases() if variables(case)]


@pytest.mark.parametrize("case", WITH_VARIABLES, ids=lambda case: case.name)
def test_forward_equals_reverse(case: Case) -> None:
    inputs, moves, outputs = applied(case)
    if not outputs or case.op.name == "nn.functional.ctc_loss":  # no second derivative, as PyTorch
        return
    scales = [
        weights(case, out.shape, f"forward{i}").astype(out.dtype) for i, out in enumerate(outputs)
    ]
    seeds = [(out, constant(w)) for out, w in zip(outputs, scales, strict=True)]
    pulled = gradients(seeds, inputs, create_graph=True, retain_graph=True)
    reverse = [
        (value_of(g), value_of(move))
        for g, move in zip(pulled, moves, strict=True)
        if g is not None
    ]
    changes = jvp(outputs, inputs, list(moves))
    forward = [(value_of(change), w) for change, w in zip(changes, scales, strict=True)]
    for change, out in zip(changes, outputs, strict=True):
        assert change.shape == out.shape
    rtol = 1e-6 if all(out.dtype == np.float64 for out in outputs) else 1e-3
    np.testing.assert_allclose(dot(forward), dot(reverse), rtol=rtol, atol=1e-9)
