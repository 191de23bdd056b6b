"""The workloads of big arrays in PyTorch, compiled by torch.compile; see with_numpy for the form.

Loss and gradient are one graph for the compiler: it may not fall back to eager mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .with_torch import Job, chain_loss, conv_loss, graded, mlp_loss, neuron_loss, norm_loss


def _compiled(loss: Callable[..., Any], wrt: dict[str, Any], **rest: Any) -> Job:
    """A call that computes a loss and its gradients, compiled at the first one."""
    return graded(torch.compile(loss, fullgraph=True, dynamic=False), wrt, **rest)


def neuron(w: Any, x: Any, b: Any) -> Job:
    return _compiled(neuron_loss, {"w": w, "x": x, "b": b})


def chain(x: Any) -> Job:
    return _compiled(chain_loss, {"x": x})


def norm(x: Any, weight: Any, bias: Any, target: Any) -> Job:
    return _compiled(norm_loss, {"x": x, "weight": weight, "bias": bias}, target=target)


def mlp(x: Any, t: Any, **weights: Any) -> Job:
    return _compiled(mlp_loss, weights, x=x, t=t)


def conv(x: Any, w: Any) -> Job:
    return _compiled(conv_loss, {"x": x, "w": w})
