"""What random draws leave in the graph: constant numbers, and a backward function as history."""

from __future__ import annotations

from ...graph.declare import Any, Flag, Tensor, opaque
from ...graph.samples import S, t
from ..kernels.rules import NAMED_SLOPE, zeros


@opaque(
    lambda values, first, second, grad_fn: values,
    public=False,
    grad_fn=lambda values, first, second, grad_fn: grad_fn,
    samples=[S(t(2, 3, grad=False), t(2, 3), None, "BernoulliBackward0")],
    counterpart=lambda values, *rest: values,
)
def drawn(values: Tensor, first: Tensor, second: Tensor | None, grad_fn: Any):
    """Numbers drawn with parameters that require grad: the gradients of those are zero."""


@drawn.vjp
def _(g, out, values, first, second, grad_fn):
    return None, zeros(first), None if second is None else zeros(second)


@opaque(
    lambda input, noise, inplace: input * noise,
    public=False,
    grad_fn=lambda input, noise, inplace: f"RreluWithNoiseBackward{int(inplace)}",
    samples=[S(t(2, 3), t(2, 3, low=0.1, high=0.3, grad=False))],
    vjp=lambda g, out, input, noise, inplace: (g * noise, None),
    properties=NAMED_SLOPE | {"one edge"},
)
def rrelu_with_noise(input: Tensor, noise: Tensor, inplace: Flag = False):
    """The input times slopes drawn for it."""
