"""Arithmetic: sums, products, quotients, powers and their combinations, element by element."""

from __future__ import annotations

import numpy as np


from ..errors import fail
from ..graph.declare import Promote, Scalar, Tensor, function, pointwise
from ..graph.registry import F
from ..graph.samples import Bad, S, t

PAIRS = (S(t(2, 3), t(3)), S(t(), t(4)), S(t(2, 1), t(1, 3)), S(t(2), 2.5))


@pointwise(np.add, key="add", vjp=lambda g, out, input, other: (g, g), samples=PAIRS,
           errors=[Bad("E302", t(2, 3), t(2), words="broadcast")])
def add(input: Tensor, other: Tensor):
    """Sum of two tensors, element by element, with broadcasting."""


@function(name="add", key="add_scaled", samples=[S(t(2, 3), t(3), alpha=2)])
def add_scaled(input: Tensor, other: Tensor, *, alpha: Scalar):
    """`input + alpha * other`."""
    return F.add(input, F.mul(other, alpha))


@pointwise(np.multiply, aliases=["multiply"], samples=PAIRS)
def mul(input: Tensor, other: Tensor):
    """Product of two tensors, element by element, with broadcasting."""


@mul.vjp
def _(g, out, input, other):
    return g * other, g * input


@pointwise(np.negative, aliases=["negative"], vjp=lambda g, out, input: -g, samples=[S(t(2, 3)), S(t())])
def neg(input: Tensor):
    """The negative of each element."""


@pointwise(np.subtract, aliases=["subtract"], vjp=lambda g, out, input, other: (g, -g), samples=PAIRS)
def sub(input: Tensor, other: Tensor):
    """Difference of two tensors, element by element, with broadcasting."""


@function(name="sub", samples=[S(t(2, 3), t(3), alpha=2)])
def sub_scaled(input: Tensor, other: Tensor, *, alpha: Scalar):
    """`input - alpha * other`."""
    return F.sub(input, F.mul(other, alpha))


@pointwise(np.true_divide, aliases=["divide", "true_divide"], promote=Promote.FLOAT,
           samples=[S(t(2, 3), t(3, low=0.5)), S(t(), t(4, low=0.5)), S(t(3), 2)])
def div(input: Tensor, other: Tensor):
    """Quotient of two tensors; integers divide to floats. Division by 0 gives inf or nan."""


@div.vjp
def _(g, out, input, other):
    gx = g / other
    return gx, -gx * out


def _power(input: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """PyTorch's special cases: roots and small exponents are what their names say."""
    if input.dtype.kind in "iu" and exponent.dtype.kind in "iu":
        return _integer_power(input, exponent)
    if exponent.ndim == 0:
        number = exponent.item()
        if number == 2:
            return input * input
        if number == 3:
            return input * input * input
        if number == 0.5:
            return np.sqrt(input)
        if number == -1:
            return np.reciprocal(input)
    return np.power(input, exponent)


def _integer_power(input: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    negative = exponent < 0
    if not negative.any():
        return np.power(input, exponent)
    whole = np.power(input, np.where(negative, 0, exponent))
    odd = np.where(exponent % 2 == 0, 1, input)
    return np.where(negative, np.where(np.abs(input) == 1, odd, 0), whole).astype(input.dtype)


def _power_name(input, exponent):
    return "PowBackward0" if exponent.weak else "PowBackward2" if input.weak else "PowBackward1"


@pointwise(_power, grad_fn=_power_name,
           samples=[S(t(2, 3, low=0.3), t(3)), S(t(2, low=0.3), t()), S(t(3), 2), S(2, t(3)), S(t(2), 0),
                    S(t(values=[0.0, 1.0]), t(values=[0.0, 2.0]))])
def pow(input: Tensor, exponent: Tensor):
    """`input ** exponent`.

    The slope towards the base is 0 where `exponent` is 0; the slope towards the exponent is 0 where
    `input` is 0 and `exponent` is not negative, as in PyTorch.
    """


@pow.vjp
def _(g, out, input, exponent):
    to_base = to_exponent = None
    if input.requires_grad:
        to_base = _slope_of_base(g, input, exponent)
    if exponent.requires_grad:
        at_zero = F.logical_and(F.eq(input, 0), F.ge(exponent, 0))
        to_exponent = g * F.where(at_zero, 0.0, out * F.log(input))
    return to_base, to_exponent


def _slope_of_base(g, input, exponent):
    if exponent.weak:
        number = exponent.value.item()
        if number == 0:
            return F.zeros_like(g)
        return g * (F.pow(input, number - 1) * number)
    return g * F.where(F.eq(exponent, 0), 0.0, exponent * F.pow(input, exponent - 1))
