"""Quotients and remainders, element by element."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Promote, Tensor, composite, function, pointwise, rows
from ...graph.op import known, value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ..kernels.rules import no_derivative

APART = (S(t(2, 3), t(3, low=0.5)), S(t(), t(4, low=0.5)), S(t(3), 1.5))


@function(
    name="div",
    aliases=["divide", "true_divide"],
    inplace=True,
    samples=[*APART, S(2.0, t(3, low=0.5)), S(ints(3), 2)],
)
def quotient(input: Tensor, other: Tensor):
    """Quotient of two tensors; integers divide to floats. Division by 0 gives inf or nan."""
    return F.div.apply([input, other])


def _numerator(moves, out):
    """What is divided for the change of a quotient."""
    to_input, to_other = moves
    if to_other is None:
        return to_input
    through = F.mul(to_other, out)
    return F.neg(through) if to_input is None else F.sub(to_input, through)


@pointwise(
    np.true_divide,
    promote=Promote.FLOAT,
    public=False,
    samples=APART,
    phrase="quotient rule",
    counterpart="div",
    forward=lambda moves, out, input, other: F.div(_numerator(moves, out), other),
    properties=frozenset({"number in single"}),
)
def div(input: Tensor, other: Tensor):
    """Quotient of two tensors; integers divide to floats. Division by 0 gives inf or nan."""


@div.vjp
def _(g, out, input, other):
    to_input = g / other if input.requires_grad else None
    return to_input, (-g * ((input / other) / other) if other.requires_grad else None)


@composite(
    name="div",
    public=False,
    grad_fn="MulBackward0",
    samples=[S(1.5, t(2, 3, low=0.5)), S(2, ints(3)), S(1, t(low=0.5))],
    counterpart="div",
    properties=frozenset({"rounds each step"}),
)
def number_quotient(input: Tensor, other: Tensor):
    """A number by a tensor, with PyTorch's rounding: the reciprocal times the number."""
    return F.mul(F.reciprocal(other), input)


@composite(
    name="div",
    aliases=["divide", "true_divide"],
    grad_fn="DivBackward2",
    inplace=True,
    samples=[
        S(t(2, 3), t(3, low=0.5), rounding_mode="floor"),
        S(t(3), 1.5, rounding_mode="trunc"),
        S(ints(3, low=-5, high=5), 2, rounding_mode="trunc"),
        S(t(3), 2.0, rounding_mode=None),
    ],
    errors=[Bad("E205", t(2), t(2), rounding_mode="up")],
    properties=frozenset({"flat"}),
    phrase="quotient rule, nothing where the result was rounded",
    saves="other, input for other",
)
def div_rounded(input: Tensor, other: Tensor, *, rounding_mode: str | None):
    """Quotient rounded towards zero (`trunc`) or down (`floor`); the slopes are 0 then."""
    if rounding_mode is None:
        return F.div(input, other)
    if rounding_mode == "floor":
        return F.quotient_down(input, other)
    if rounding_mode == "trunc":
        return F.quotient_to_zero(input, other)
    raise fault("E205 rounding_mode-trunc", rounding_mode)


def _without_zeros(other, size):
    if other.dtype.kind in "iu" and size and not other.all():
        raise fault("E504 integer-division")


def _divides(input, other):
    """The check of the operands of a division that may be one of integers."""
    if input.dtype.kind in "iub" and other.dtype.kind in "iu" and known(other):
        _without_zeros(value_of(other), input.numel)


def _towards_zero(input, other):
    if input.dtype.kind != "f":
        _without_zeros(other, input.size)
        down = np.floor_divide(input, other)
        return down + ((down < 0) & (down * other != input)).astype(down.dtype)
    return np.trunc(np.true_divide(input, other))


def _down(input, other):
    _without_zeros(other, input.size)
    return np.floor_divide(input, other)


def _to_jump(input, other):
    """How far the quotient is from a whole number."""
    quotient = F.div(input, other)
    return F.abs(quotient - F.round(quotient))


_rounded = rows(
    __name__,
    "input other",
    """
    quotient_to_zero: Quotient without its fraction.
    quotient_down: Quotient rounded down.
    """,
    name="div",
    public=False,
    check=_divides,
    lacks="div_floor_cpu bool",
    grad_fn="DivBackward2",
    kink=_to_jump,
)

for _name, _kernel, _mode in (
    ("quotient_to_zero", _towards_zero, "trunc"),
    ("quotient_down", _down, "floor"),
):
    _rounded(
        _name,
        _kernel,
        lambda g, out, input, other: (F.zeros_like(g), F.zeros_like(g)),
        [S(t(3), t(3, low=0.5))],
        counterpart=("div", lambda *args, mode=_mode: (args, {"rounding_mode": mode})),
    )


@pointwise(
    _down,
    check=_divides,
    lacks="div_floor_cpu bool",
    grad_fn="NotImplemented",
    vjp=no_derivative("floor_divide"),
    samples=[S(t(2, 3, grad=False), t(3, low=0.5, grad=False)), S(ints(3, low=-5, high=5), 2)],
    errors=[Bad("E504", ints(2, low=1), ints(2, values=[0, 1]))],
    properties=frozenset({"flat", "number in single"}),
)
def floor_divide(input: Tensor, other: Tensor):
    """`input // other`, the quotient rounded down; PyTorch has no derivative of it."""


def _modulus(kernel):
    def rest(input, other):
        _without_zeros(other, input.size)
        return kernel(input, other)

    return rest


@pointwise(
    _modulus(np.fmod),
    check=_divides,
    lacks="fmod_cpu bool",
    grad_fn=lambda input, other: "FmodBackward0" if other.weak else "FmodBackward1",
    samples=[S(t(2, 3), t(3, low=0.5)), S(t(3), 1.5), S(ints(3, low=-5, high=5), 3)],
    kink=_to_jump,
)
def fmod(input: Tensor, other: Tensor):
    """Rest of the division, with the sign of `input`."""


@fmod.vjp
def _(g, out, input, other):
    return g, (-g * F.quotient_to_zero(input, other) if other.requires_grad else None)


def _remainder_name(input, other):
    if input.weak:
        return "NotImplemented"
    return "RemainderBackward0" if other.weak else "RemainderBackward1"


def _signed_rest(input, other):
    """NumPy's remainder; that of floats is a zero of the sign of `input`."""
    rest = np.remainder(input, other)
    return rest if rest.dtype.kind != "f" else np.where(rest == 0, np.copysign(rest, input), rest)


@pointwise(
    _modulus(_signed_rest),
    check=_divides,
    lacks="remainder_cpu bool",
    grad_fn=_remainder_name,
    samples=[S(t(2, 3), t(3, low=0.5)), S(t(3), -1.5), S(ints(3, low=-5, high=5), 3)],
    kink=_to_jump,
)
def remainder(input: Tensor, other: Tensor):
    """Rest of the division, `input % other`, with the sign of `other`."""


@remainder.vjp
def _(g, out, input, other):
    if input.weak:
        return no_derivative("remainder")(g, out)
    return g, (-g * F.quotient_down(input, other) if other.requires_grad else None)


@pointwise(
    np.reciprocal,
    promote=Promote.FLOAT,
    vjp=lambda g, out, input: -g * (out * out),
    samples=[S(t(2, 3, low=0.5)), S(ints(2, low=1, high=4))],
)
def reciprocal(input: Tensor):
    """`1 / input`."""
