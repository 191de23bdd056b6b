"""Arithmetic: sums, products, quotients, powers and their combinations, element by element."""

from __future__ import annotations

import math

import numpy as np

from ...errors import fault, refused
from ...graph.declare import Promote, Scalar, Tensor, composite, function, pointwise, rows
from ...graph.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, is_float
from ...graph.op import cast, value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, bools, ints, t
from ..kernels.indices import check_number, check_weak
from ..kernels.rules import (
    meeting,
    no_derivative,
    refuse_bools,
    require_float,
    require_some_float,
    whole_factor,
)

PAIRS = (S(t(2, 3), t(3)), S(t(), t(4)), S(t(2, 1), t(1, 3)), S(t(2), 2.5))
SINGLE = t(dtype="float32")
APART = (S(t(2, 3), t(3, low=0.5)), S(t(), t(4, low=0.5)), S(t(3), 1.5))


_INVERT = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
NO_MINUS = "use `~x` or `logical_not(x)` to invert a mask, `x ^ y` for what differs"


def _no_bool_minus(input, other):
    if input.dtype.kind == "b" or other.dtype.kind == "b":
        both = input.dtype == other.dtype
        words = (
            f"Subtraction, the `-` operator, with {'two bool tensors' if both else 'a bool tensor'}"
            " is not supported. "
            + ("Use the `^` or `logical_xor()` operator instead." if both else _INVERT)
        )
        raise refused("E307", "`-` does not work on bool tensors", words, NO_MINUS)


# -- sums ------------------------------------------------------------------------------------------


@pointwise(
    np.add,
    vjp=lambda g, out, input, other: (g, g),
    samples=PAIRS,
    errors=[Bad("E302", t(2, 3), t(2), words="broadcast")],
    phrase="each side gets the upstream gradient",
)
def add(input: Tensor, other: Tensor):
    """Sum of two tensors, element by element, with broadcasting."""


def _added_product(x, y, z):
    if x.dtype == np.float64:
        return x + y * z
    return (x + y.astype(np.float64) * z).astype(x.dtype)


@pointwise(
    _added_product,
    public=False,
    vjp=lambda g, out, input, left, right: (g, g * right, g * left),
    samples=[S(t(2, 3), t(3), t(2, 1)), S(SINGLE, SINGLE, SINGLE)],
    counterpart=lambda input, left, right: F.add(input, F.mul(left, right)),
)
def add_product(input: Tensor, left: Tensor, right: Tensor):
    """`input + left * right`, rounded once."""


def _rounded_once(input, other):
    """Whether PyTorch's kernels round the sum of a product once, and each number in it before."""
    return input.dtype in (FLOAT16, FLOAT32) and (other.weak or other.dtype == input.dtype)


def _times(other, factor, like):
    """`other` times a number; a number in the precision of `like`. Bools stay bools."""
    if like.dtype == other.dtype == BOOL:
        return F.logical_and(other, bool(factor))
    return F.mul(cast(other, like.dtype) if other.weak and is_float(like.dtype) else other, factor)


@composite(
    name="add",
    grad_fn="AddBackward0",
    inplace=True,
    check=lambda input, other, alpha: whole_factor("alpha", alpha, input, other),
    samples=[S(t(2, 3), t(3), alpha=2), S(t(2), 1.1, alpha=0.1)],
    errors=[Bad("E307", ints(2), ints(2), alpha=0.5)],
    properties=frozenset({"broadcasts", "rounds each step"}),
    vjp=lambda g, out, input, other, alpha: (g, F.mul(g, alpha)),
    phrase="each side gets the upstream gradient, the second times alpha",
)
def add_scaled(input: Tensor, other: Tensor, *, alpha: Scalar):
    """`input + alpha * other`."""
    if _rounded_once(input, other):
        return F.add_product(input, cast(other, input.dtype), alpha)
    return F.add(input, _times(other, alpha, input))


@function(name="add", inplace=True, samples=[S(t(2, 3), 2, t(3))])
def add_scaled_first(input: Tensor, alpha: Scalar, other: Tensor):
    """`input + alpha * other`, the older order of arguments."""
    return F.add_scaled(input, other, alpha=alpha)


@pointwise(
    np.subtract,
    aliases=["subtract"],
    grad_fn=lambda input, other: "RsubBackward1" if input.weak else "SubBackward0",
    check=_no_bool_minus,
    vjp=lambda g, out, input, other: (g, -g if other.requires_grad else None),
    samples=PAIRS,
    errors=[Bad("E307", bools(2), bools(2))],
    phrase="the first side gets the upstream gradient, the second its negative",
)
def sub(input: Tensor, other: Tensor):
    """Difference of two tensors, element by element, with broadcasting."""


def _scaled_minus(input, other, alpha):
    _no_bool_minus(input, other)
    whole_factor("alpha", alpha, input, other)


@composite(
    name="sub",
    aliases=["subtract"],
    grad_fn="SubBackward0",
    inplace=True,
    check=_scaled_minus,
    samples=[S(t(2, 3), t(3), alpha=2), S(t(2), 1.1, alpha=0.1)],
    properties=frozenset({"broadcasts", "rounds each step"}),
    vjp=lambda g, out, input, other, alpha: (g, F.mul(F.neg(g), alpha)),
    phrase="the first side gets the upstream gradient, the second its negative times alpha",
)
def sub_scaled(input: Tensor, other: Tensor, *, alpha: Scalar):
    """`input - alpha * other`."""
    if _rounded_once(input, other):
        return F.add_product(input, F.neg(cast(other, input.dtype)), alpha)
    return F.sub(input, _times(other, alpha, input))


@composite(
    grad_fn=lambda input, other, alpha: "RsubBackward1" if other.weak else "RsubBackward0",
    check=_scaled_minus,
    samples=[S(t(2, 3), t(3)), S(t(2), 1.0, alpha=2)],
    counterpart="rsub",
    method=False,
    phrase="the second side gets the upstream gradient, the first its negative",
)
def rsub(input: Tensor, other: Tensor, alpha: Scalar = 1):
    """`other - alpha * input`."""
    return F.sub(other, input if alpha == 1 else F.mul(input, alpha))


@pointwise(
    np.negative,
    aliases=["negative"],
    check=lambda input: refuse_bools("-", input, help=NO_MINUS),
    vjp=lambda g, out, input: -g,
    samples=[S(t(2, 3)), S(t())],
    errors=[Bad("E307", bools(2))],
    phrase="the upstream gradient, negated",
)
def neg(input: Tensor):
    """The negative of each element."""


@function(samples=[S(t(2, 3)), S(ints(2))], errors=[Bad("E307", bools(2))])
def positive(input: Tensor):
    """The tensor itself, `+x`."""
    refuse_bools("+", input)
    return input


# -- products and quotients ------------------------------------------------------------------------


@pointwise(
    np.multiply,
    aliases=["multiply"],
    samples=PAIRS,
    phrase="product rule",
    properties=frozenset({"number in single"}),
)
def mul(input: Tensor, other: Tensor):
    """Product of two tensors, element by element, with broadcasting."""


@mul.vjp
def _(g, out, input, other):
    return (g * other if input.requires_grad else None), (
        g * input if other.requires_grad else None
    )


# -- powers ----------------------------------------------------------------------------------------


def _power(input, exponent):
    """PyTorch's special cases: roots and small exponents are what their names say."""
    if input.dtype.kind in "iu":
        return _integer_power(input, exponent)
    if exponent.ndim == 0:
        number = exponent.item()
        if number == 1:
            return input.copy()
        if number == 2:
            return input * input
        if number == 3:
            return input * input * input
        if number == 0.5:
            return np.sqrt(input)
        if number == -0.5:
            return 1 / np.sqrt(input)
        if number == -1:
            return np.reciprocal(input)
        if number == -2:
            return 1 / (input * input)
    return np.power(input, exponent)


def _integer_power(input, exponent):
    negative = exponent < 0
    whole = np.power(input, np.maximum(exponent, 0))
    odd = np.where(exponent % 2 == 0, 1, input)
    return np.where(negative, np.where(np.abs(input) == 1, odd, 0), whole).astype(input.dtype)


def _check_power(input, exponent):
    whole = exponent.dtype.kind == "i" and input.dtype.kind in "iub"
    if whole and exponent.weak and not input.weak and value_of(exponent).item() < 0:
        raise fault("E504 integers-negative-integer-powers")
    if whole or input.dtype == FLOAT16:
        check_weak(exponent, input.dtype)


@pointwise(
    _power,
    numpy="input**exponent",
    grad_fn=lambda input, exponent: (
        "PowBackward0" if exponent.weak else "PowBackward2" if input.weak else "PowBackward1"
    ),
    check=_check_power,
    lacks="pow bool",
    samples=[
        S(t(2, 3, low=0.3), t(3)),
        S(t(2, low=0.3), t()),
        S(t(3), 2),
        S(2, t(3)),
        S(t(2), 0),
        S(t(values=[0.0, 1.0]), t(values=[0.0, 2.0]), order=0, because="at the edge"),
    ],
    errors=[Bad("E504", ints(2), -1)],
    phrase="power rule",
    saves="input",
    properties=frozenset({"own numbers"}),
)
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
        number = value_of(exponent).item()
        if number == 0:
            return F.zeros_like(g)
        if number % 1 == 0:  # a number of the rule, which is no float of the program
            number = int(number)
        return g * (F.pow(input, number - 1) * number)
    return F.where(F.eq(exponent, 0), 0.0, g * (exponent * F.pow(input, exponent - 1)))


@function(
    inplace=True, samples=[S(t(2, 3, low=0.3), t(3)), S(t(2), 2), S(2.0, t(2)), S(ints(2), 2)]
)
def float_power(input: Tensor, exponent: Tensor):
    """`input ** exponent` in float64."""
    return F.pow(F.to_dtype(input, FLOAT64), F.to_dtype(exponent, FLOAT64))


@function(inplace=True, samples=[S(t(2, 3)), S(t())])
def square(input: Tensor):
    """`input ** 2`."""
    return F.pow(input, 2)


@composite(
    inplace=True,
    samples=[S(t(2, 3), ints(3)), S(t(2), t(2))],
    properties=frozenset({"two edges", "broadcasts"}),
    phrase="upstream times 2**other",
    saves="other for input, results",
    vjp=lambda g, out, input, other: (g * F.pow(2.0, other), g * out * math.log(2)),
)
def ldexp(input: Tensor, other: Tensor):
    """`input * 2 ** other`."""
    if input.dtype.kind == "f" and other.dtype.kind != "f":
        other = F.to_dtype(other, input.dtype)
    return F.mul(input, F.pow(2.0, other))


# -- combinations ----------------------------------------------------------------------------------


def _same_kind(name, first, *others):
    for x in others:
        if x.dtype != first.dtype and not x.weak:
            raise fault("E307 needs-operands-dtype", name, first, x, wanted=first.dtype)


@composite(
    inplace=True,
    samples=[S(t(2, 3), t(3), t(2, 1)), S(t(2), t(2), t(2), value=0.5)],
    phrase="the sum passes on; product rule times value",
    lacks="addcmul_cpu_out bool",
    properties=frozenset({"broadcasts"}),
)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1):
    """`input + value * tensor1 * tensor2`."""
    dtype = meeting(input, tensor1, tensor2)
    check_number(value, dtype)
    if not is_float(dtype):
        value = int(value)
    scaled = tensor1 if value == 1 else cast(tensor1, dtype) * value
    if input.dtype == scaled.dtype == tensor2.dtype == FLOAT32:
        return F.add_product(input, scaled, tensor2)
    return input + scaled * tensor2


@addcmul.vjp
def _(g, out, input, tensor1, tensor2, value):
    return g, g * (tensor2 * value), g * (tensor1 * value)


@composite(
    inplace=True,
    samples=[S(t(2, 3), t(3), t(2, 1, low=0.5)), S(t(2), t(2), t(2, low=0.5), value=0.5)],
    errors=[Bad("E307", ints(2), ints(2), ints(2, low=1))],
    phrase="the sum passes on; quotient rule times value",
    properties=frozenset({"broadcasts"}),
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1):
    """`input + value * tensor1 / tensor2`."""
    if all(x.dtype.kind != "f" for x in (tensor1, tensor2)):
        raise fault("E307 addcdiv-does-not-divide")
    dtype = meeting(input, tensor1, tensor2)
    check_number(value, dtype)
    quotient = (tensor1 if value == 1 else cast(tensor1, dtype) * value) / tensor2
    return input + quotient


@addcdiv.vjp
def _(g, out, input, tensor1, tensor2, value):
    return g, g * (value / tensor2), -g * (value * tensor1 / (tensor2 * tensor2))


def _value_second(key):
    def combined(input: Tensor, value: Scalar, tensor1: Tensor, tensor2: Tensor):
        """The same with `value` second, the older order of arguments."""
        return getattr(F, key)(input, tensor1, tensor2, value=value)

    function(
        key=key + "_older", name=key, inplace=True, samples=[S(t(2), 0.5, t(2), t(2, low=0.5))]
    )(combined)


_value_second("addcmul")
_value_second("addcdiv")


def _lerp_slopes(g, out, input, end, weight):
    if weight.weak and weight.args and type(weight.args[0]) in (int, float):
        number = weight.args[0]  # PyTorch saves nothing
        return F.mul_by(g, 1 - number), F.mul_by(g, number), None
    near = g * (1 - cast(weight, input.dtype))
    return near, g * weight, g * (end - input) if weight.requires_grad else None


@composite(
    inplace=True,
    properties=frozenset({"broadcasts"}),
    vjp=_lerp_slopes,
    grad_fn=lambda input, end, weight: "LerpBackward0" if weight.weak else "LerpBackward1",
    samples=[S(t(2, 3), t(3), 0.3), S(t(3), t(3), t(2, 3)), S(SINGLE, SINGLE, 0.4)],
    errors=[Bad("E307", t(2), t(2, dtype="float32"), 0.5)],
    counterpart=("lerp", lambda *args: ((*args[:2], cast(args[2], args[0].dtype)), {})),
    phrase="1 - weight to the start, weight to the end, end - start to the weight, times g",
)
def lerp(input: Tensor, end: Tensor, weight: Tensor):
    """The point between `input` (weight 0) and `end` (weight 1)."""
    require_float("lerp", input)
    _same_kind("lerp", input, end, *([weight] if weight.shape else []))
    check_weak(weight, input.dtype)
    weight = cast(weight, input.dtype)
    way = end - input
    near, far = F.add_product(input, way, weight), F.add_product(end, way, weight - 1)
    return F.where(F.lt(F.abs(weight), 0.5), near, far)


@pointwise(
    np.hypot,
    samples=APART[:2],
    check=lambda input, other: require_some_float("hypot", input, other),
    vjp=lambda g, out, input, other: (g * (input / out), g * (other / out)),
)
def hypot(input: Tensor, other: Tensor):
    """`sqrt(input**2 + other**2)` without overflow; nan slopes at (0, 0)."""


_log_sum = rows(
    __name__,
    "input other",
    """
    logaddexp: `log(exp(input) + exp(other))` without overflow.
    logaddexp2: `log2(2**input + 2**other)` without overflow.
    """,
    inplace=False,
    properties=frozenset({"saturates"}),
)

for _kernel, _raised in (
    (np.logaddexp, lambda x: F.exp(x)),
    (np.logaddexp2, lambda x: F.pow(2, x)),
):
    _log_sum(
        _kernel.__name__,
        _kernel,
        lambda g, out, input, other, raised=_raised: (
            g / (1 + raised(other - input)),
            g / (1 + raised(input - other)),
        ),
        [S(t(2, 3), t(3)), S(t(), t(2))],
        check=lambda input, other, name=_kernel.__name__: require_some_float(name, input, other),
    )


@pointwise(
    np.copysign,
    promote=Promote.FLOAT,
    grad_fn=lambda input, other: "CopysignBackward1" if other.weak else "CopysignBackward0",
    samples=APART,
    kink=lambda input, other: F.abs(input),
)
def copysign(input: Tensor, other: Tensor):
    """The size of `input` with the sign of `other`; the slope at 0 is 0."""


@copysign.vjp
def _(g, out, input, other):
    return g * F.where(F.eq(input, 0), 0.0, out / input), F.zeros_like(g)


@pointwise(
    np.nextafter,
    check=lambda input, other: require_some_float("nextafter", input, other),
    samples=[S(t(2, 3), t(3))],
    vjp=lambda g, out, input, other: (F.where(F.eq(input, other), 0.0, g), F.zeros_like(g)),
    kink=lambda input, other: F.abs(input - other),
)
def nextafter(input: Tensor, other: Tensor):
    """The next number of the dtype after `input` in the direction of `other`."""


# -- steps and whole numbers -----------------------------------------------------------------------


@pointwise(
    lambda x, values: np.where(x == 0, values, (x > 0).astype(x.dtype)),
    vjp=no_derivative("heaviside"),
    grad_fn="NotImplemented",
    no_forward="aten::heaviside",
    check=lambda input, values: _same_kind("heaviside", input, values),
    samples=[S(t(values=[-1.0, 0.0, 2.0], grad=False), t(3, grad=False))],
    properties=frozenset({"flat"}),
)
def heaviside(input: Tensor, values: Tensor):
    """0 below zero, 1 above, `values` at zero; PyTorch has no derivative of it."""


def _whole_numbers(name):
    def check(*args):
        for x in args:
            if x.dtype.kind == "f" or all(y.dtype.kind == "b" for y in args):
                raise fault("E307 works-integer-tensors", name, x)

    return check


@pointwise(
    np.gcd,
    check=_whole_numbers("gcd"),
    samples=[S(ints(4, high=20), ints(4, high=20))],
    errors=[Bad("E307", t(2), t(2))],
)
def gcd(input: Tensor, other: Tensor):
    """Greatest common divisor of integers."""


@pointwise(
    np.lcm,
    check=_whole_numbers("lcm"),
    samples=[S(ints(4, low=1, high=20), ints(4, low=1, high=20))],
)
def lcm(input: Tensor, other: Tensor):
    """Least common multiple of integers."""
