"""Forward equals reverse: every third sample of the table has one directional derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

import autodiff_cli
from autodiff_cli.autograd.forward import jvp
from autodiff_cli.autograd.reverse import gradients
from autodiff_cli.engine import evaluate  # noqa: F401  # nodes get values
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, value_of
from tests.table import (
    Case,
    apply,
    arrays_of,
    cases,
    each_op,
    nodes_of,
    seeded,
    share,
    variables,
    weights,
)


def direction(case: Case, place: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(seeded(f"{case.name}/{place}/direction").uniform(-1, 1, shape))


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


WITH_VARIABLES = [case for case in share(cases(), 3) if variables(case)]


@each_op(WITH_VARIABLES)
def test_forward_equals_reverse(case: Case) -> None:
    inputs, moves, outputs = applied(case)
    if not outputs or case.op.name == "nn.functional.ctc_loss":  # no second derivative, as PyTorch
        return
    if case.op.forward is not None and not case.sample.order:
        return  # where there is no derivative, PyTorch's two formulas part
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


def test_gradients_of_tangents_of_norms_are_those_of_differences() -> None:
    """PyTorch takes the moments for constants there."""
    x = np.array([[1.0, 2.0, 4.0], [0.5, -1.0, 2.0]])
    v = np.array([[1.0, 0.5, 2.0], [1.0, 1.0, -1.0]])

    def normal(x: np.ndarray) -> np.ndarray:
        away = x - x.mean(-1, keepdims=True)
        return away / np.sqrt((away**2).mean(-1, keepdims=True) + 1e-5)

    def loss(x: np.ndarray) -> float:
        tangent = (normal(x + 1e-5 * v) - normal(x - 1e-5 * v)) / 2e-5
        return float((tangent**2).sum())

    steps = np.eye(6).reshape(6, 2, 3) * 1e-4
    slopes = np.array([(loss(x + step) - loss(x - step)) / 2e-4 for step in steps]).reshape(2, 3)
    text = f"""
import torch
x = torch.tensor({x.tolist()}, dtype=torch.float64, requires_grad=True)
v = torch.tensor({v.tolist()}, dtype=torch.float64)
f = lambda a: torch.nn.functional.layer_norm(a, (3,))
(torch.func.jvp(f, (x,), (v,))[1] ** 2).sum().backward()
"""
    found = autodiff_cli.run(text)["tensors"]["x"]["grad"]
    np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-7)
