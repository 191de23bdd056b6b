"""Elementwise functions: exponentials, roots, trigonometry, rounding, bounds and choice."""

from __future__ import annotations

import numpy as np

from ..graph.declare import Mask, Promote, Scalar, Tensor, function, pointwise
from ..graph.registry import F
from ..graph.samples import S, t, bools

TWO = (S(t(2, 3)), S(t()))
POSITIVE = (S(t(2, 3, low=0.1)), S(t(low=0.1)))


@pointwise(np.exp, promote=Promote.FLOAT, vjp=lambda g, out, input: g * out, samples=TWO)
def exp(input: Tensor):
    """e to the power of each element."""


@pointwise(np.log, promote=Promote.FLOAT, vjp=lambda g, out, input: g / input, samples=POSITIVE)
def log(input: Tensor):
    """Natural logarithm."""


@pointwise(np.sqrt, promote=Promote.FLOAT, vjp=lambda g, out, input: g / (2 * out), samples=POSITIVE)
def sqrt(input: Tensor):
    """Square root; its slope at 0 is inf."""


@pointwise(np.abs, aliases=["absolute"], vjp=lambda g, out, input: g * F.sign(input), samples=TWO)
def abs(input: Tensor):
    """Absolute value; its slope at 0 is 0."""


@pointwise(np.sign, vjp=lambda g, out, input: F.zeros_like(g), samples=TWO)
def sign(input: Tensor):
    """-1, 0 or 1; the slope is 0."""


@pointwise(np.where, samples=[S(bools(2, 3), t(2, 3), t(3)), S(bools(3), t(3), 0.5), S(bools(3), 1.0, t())])
def where(condition: Mask, input: Tensor, other: Tensor):
    """Elements of `input` where `condition` holds, elements of `other` elsewhere."""


@where.vjp
def _(g, out, condition, input, other):
    return None, F.where(condition, g, 0), F.where(condition, 0, g)


@pointwise(np.maximum, samples=[S(t(2, 3), t(3)), S(t(values=[1.0, 2.0]), t(values=[1.0, 3.0]))])
def maximum(input: Tensor, other: Tensor):
    """The larger of two elements, nan if one is nan; equal elements share the slope."""


@maximum.vjp
def _(g, out, input, other):
    return extreme_slopes(g, input, other, F.lt(input, other), F.lt(other, input))


def extreme_slopes(g, input, other, not_input, not_other):
    """Cotangents of a choice between two: half each where they are equal."""
    shared = F.where(F.eq(input, other), g / 2, g)
    return F.where(not_input, 0, shared), F.where(not_other, 0, shared)


@pointwise(np.minimum, samples=[S(t(2, 3), t(3)), S(t(values=[1.0, 2.0]), t(values=[1.0, 3.0]))])
def minimum(input: Tensor, other: Tensor):
    """The smaller of two elements, nan if one is nan; equal elements share the slope."""


@minimum.vjp
def _(g, out, input, other):
    return extreme_slopes(g, input, other, F.gt(input, other), F.gt(other, input))


@function(samples=[S(t(3), -1, 1)])
def clamp(input: Tensor, min: Scalar | None = None, max: Scalar | None = None):
    """Elements held between `min` and `max`."""
    if min is not None:
        input = F.maximum(input, min)
    return input if max is None else F.minimum(input, max)
