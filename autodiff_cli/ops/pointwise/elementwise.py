"""Elementwise functions: exponentials, roots, trigonometry, rounding, bounds and choice."""

from __future__ import annotations

import math

import numpy as np

from ...graph.declare import Any, Promote, Tensor, function, opaque, pointwise, rows
from ...graph.dtypes import FLOAT32, INT32
from ...graph.op import number, rounded_once
from ...graph.registry import F
from ...graph.samples import Bad, S, bools, ints, t
from ...graph.strides import like_input
from ..kernels.in_double import InDouble, exp
from ..kernels.rules import moving, no_derivative, refuse_bools, require_float

ALL = (S(t(2, 3)), S(t()), S(ints(2)))
POSITIVE = (S(t(2, 3, low=0.1)), S(t(low=0.1)), S(ints(2, low=1)))
INSIDE = (S(t(2, 3, low=-0.9, high=0.9)), S(t(low=-0.9, high=0.9)))
ABOVE_ONE = (S(t(2, 3, low=1.1)), S(t(low=1.1)))


# -- one operand, floats ---------------------------------------------------------------------------

_unary = rows(
    __name__,
    "input",
    """
    exp: e to the power of each element.
    exp2 special.exp2: 2 to the power of each element.
    expm1 special.expm1: `exp(input) - 1`, exact for small elements.
    log: Natural logarithm.
    log2: Logarithm to base 2.
    log10: Logarithm to base 10.
    log1p special.log1p: `log(1 + input)`, exact for small elements.
    sqrt: Square root; its slope at 0 is inf.
    sin: Sine.
    cos: Cosine.
    tan: Tangent.
    sinh: Hyperbolic sine.
    cosh: Hyperbolic cosine.
    tanh nn.functional.tanh: Hyperbolic tangent.
    asin arcsin: Inverse sine.
    acos arccos: Inverse cosine.
    atan arctan: Inverse tangent.
    asinh arcsinh: Inverse hyperbolic sine.
    acosh arccosh: Inverse hyperbolic cosine.
    atanh arctanh: Inverse hyperbolic tangent.
    rsqrt: `1 / sqrt(input)`.
    sigmoid special.expit nn.functional.sigmoid: The logistic function `1 / (1 + exp(-input))`.
    deg2rad: Degrees to radians.
    rad2deg: Radians to degrees.
    floor: The whole number below; the slope is 0.
    ceil: The whole number above; the slope is 0.
    trunc fix: The number without its fraction; the slope is 0.
    round: The nearest whole number, halves to even; the slope is 0.
    sign: -1, 0 or 1; the slope is 0.
    sgn: -1, 0 or 1; the slope is 0.
""",
)


def _one_less_square(out):
    """`1 - out * out`; in single precision PyTorch's kernel rounds it once."""
    if out.dtype == FLOAT32:
        return F.add_product.apply([number(1.0, FLOAT32), -out, out])
    return 1 - out * out


def _of_result(slope):
    """A rule that is the slope by the result."""
    once = rounded_once(slope)
    return lambda g, out, x: once(g, out)


def _made_anew(slope):
    """The slope of a result that was not written in place: of others PyTorch has none."""

    def rule(g, out, x):
        if out.grad_name.endswith("1"):
            no_derivative(f"{out.op.name}_", f"inplace version of {out.op.name}")(g, out)
        return slope(g, x)

    return rule


def _sigmoid(x):
    if type(x) is np.ndarray and x.dtype == np.float16:
        return _sigmoid(x.astype(np.float32)).astype(np.float16)
    return 1 / (1 + exp(-x))


# name, kernel, slope times g, samples

FLOATS = (
    ("exp", exp, lambda g, out, x: g * out, ALL),
    ("exp2", InDouble(np.exp2), lambda g, out, x: g * out * math.log(2), ALL),
    ("expm1", InDouble(np.expm1), lambda g, out, x: g * (out + 1), ALL),
    ("log", InDouble(np.log, True), lambda g, out, x: g / x, POSITIVE),
    ("log2", InDouble(np.log2, True), lambda g, out, x: g / (x * math.log(2)), POSITIVE),
    ("log10", InDouble(np.log10, True), lambda g, out, x: g / (x * math.log(10)), POSITIVE),
    ("log1p", InDouble(np.log1p), lambda g, out, x: g / (x + 1), POSITIVE),
    ("sqrt", np.sqrt, lambda g, out, x: g / (2 * out), POSITIVE),
    ("sin", InDouble(np.sin), lambda g, out, x: g * F.cos(x), ALL),
    ("cos", InDouble(np.cos), lambda g, out, x: g * -F.sin(x), ALL),
    ("tan", InDouble(np.tan), lambda g, out, x: g * (1 + out * out), ALL),
    ("sinh", InDouble(np.sinh), lambda g, out, x: g * F.cosh(x), ALL),
    ("cosh", InDouble(np.cosh), lambda g, out, x: g * F.sinh(x), ALL),
    ("tanh", InDouble(np.tanh), _of_result(lambda g, out: g * _one_less_square(out)), ALL),
    ("asin", InDouble(np.arcsin), lambda g, out, x: g * F.rsqrt(1 - x * x), INSIDE),
    ("acos", InDouble(np.arccos), lambda g, out, x: g * -F.rsqrt(1 - x * x), INSIDE),
    ("atan", InDouble(np.arctan), lambda g, out, x: g / (x * x + 1), ALL),
    ("asinh", np.arcsinh, _made_anew(lambda g, x: g * F.rsqrt(x * x + 1)), ALL),
    ("acosh", np.arccosh, _made_anew(lambda g, x: g * F.rsqrt(x * x - 1)), ABOVE_ONE),
    ("atanh", InDouble(np.arctanh), _made_anew(lambda g, x: g / (1 - x * x)), INSIDE),
    ("rsqrt", lambda x: 1 / np.sqrt(x), lambda g, out, x: -0.5 * g * (out * out * out), POSITIVE),
    ("sigmoid", _sigmoid, _of_result(lambda g, out: g * (out * (1 - out))), ALL),
    ("deg2rad", np.deg2rad, lambda g, out, x: g * (math.pi / 180), ALL),
    ("rad2deg", np.rad2deg, lambda g, out, x: g * (180 / math.pi), ALL),
)


_row: Any

SATURATING = frozenset({"exp", "exp2", "expm1", "tanh", "atan", "sigmoid"})

for _row in FLOATS:
    _words = frozenset({"saturates"} if _row[0] in SATURATING else ())
    if _row[0] in ("tanh", "sigmoid"):
        _words |= {"slope has a name"}
    _unary(*_row, promote=Promote.FLOAT, properties=_words)


@pointwise(
    np.sinc,
    promote=Promote.FLOAT,
    aliases=["special.sinc"],
    samples=[S(t(2, 3)), S(t(values=[0.0, 0.5]), order=1, because="cancellation at 0")],
)
def sinc(input: Tensor):
    """`sin(pi x) / (pi x)`, 1 at 0; its slope at 0 is 0."""


@sinc.vjp
def _(g, out, input):
    angle = input * math.pi
    below = input * angle
    slope = (angle * F.cos(angle) - F.sin(angle)) / below
    return F.where(F.eq(below, 0), 0.0, g * slope)


@pointwise(
    np.arctan2,
    promote=Promote.FLOAT,
    aliases=["arctan2"],
    samples=[
        S(t(2, 3), t(3)),
        S(t(values=[0.0, 1.0]), t(values=[0.0, 0.0]), order=0, because="kink"),
    ],
    kink=lambda input, other: F.where(other > 0, F.hypot(input, other), F.abs(input)),
    forward=lambda moves, out, input, other: _angle_forward(moves, input, other),
)
def atan2(input: Tensor, other: Tensor):
    """The angle of the point (other, input); its slopes at (0, 0) are 0, in forward mode nan."""


def _angle_forward(moves, input, other):
    to_input, to_other = moving(moves, input, other)
    return (other * to_input - input * to_other) / (input * input + other * other)


@atan2.vjp
def _(g, out, input, other):
    squares = input * input + other * other
    inverse = F.where(F.eq(squares, 0), 0.0, 1 / squares)
    return g * other * inverse, g * -input * inverse


# -- sign and whole numbers: slopes are 0 ----------------------------------------------------------


def _no_bools(name):
    return lambda input: refuse_bools(name, input)


def zero_slope(g, out, *args):
    """The slope is 0 everywhere."""
    return F.zeros_like(g)


def _to_whole(input):
    return F.abs(input - F.round(input))


def _to_half(input):
    return F.abs(input - F.floor(input) - 0.5)


HALVES = (S(t(2, 3)), S(t(values=[-1.5, -0.5, 0.5, 2.5]), order=0, because="jumps"), S(ints(3)))

for _row in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", np.rint)):
    _unary(
        _row[0],
        lambda x, kernel=_row[1]: x if x.dtype.kind in "iu" else kernel(x),
        zero_slope,
        HALVES,
        check=_no_bools(_row[0]),
        properties=frozenset({"flat"}),
        kink=_to_half if _row[0] == "round" else _to_whole,
    )


def _rounded(x, decimals):
    scale = 10.0 ** math.fabs(decimals)
    return (np.rint(x / scale) * scale if decimals < 0 else np.rint(x * scale) / scale).astype(
        x.dtype
    )


@pointwise(
    _rounded,
    name="round",
    aliases=["special.round"],
    grad_fn="RoundBackward1",
    vjp=zero_slope,
    check=lambda input, *rest: require_float("round", input),
    samples=[S(t(2, 3), decimals=1), S(t(3, high=200.0), decimals=-1), S(t(3), decimals=0)],
    kink=lambda input, decimals: _to_half(input * 10.0**decimals),
    properties=frozenset({"flat"}),
)
def round_decimals(input: Tensor, *, decimals: int = 0):
    """Rounded to `decimals` digits after the point; the slope is 0."""


@pointwise(
    np.abs,
    aliases=["absolute"],
    check=lambda input: refuse_bools("abs", input),
    kink=lambda input: F.abs(input),
    vjp=lambda g, out, input: g * F.sgn(input),
    samples=[*ALL, S(t(values=[0.0, -1.0]), order=0, because="kink")],
    phrase="the sign of the input",
)
def abs(input: Tensor):
    """Absolute value; its slope at 0 is 0."""


def _sign(x):
    """0 at nan, as in PyTorch."""
    if x.dtype.kind == "f":
        return np.greater(x, 0).astype(x.dtype) - np.less(x, 0).astype(x.dtype)
    return x if x.dtype.kind == "b" else np.sign(x)


for _key in ("sign", "sgn"):
    _unary(
        _key,
        _sign,
        zero_slope,
        [*ALL, S(bools(2))],
        properties=frozenset({"flat"}),
        kink=lambda input: F.abs(input),
        saves="operands, results" if _key == "sgn" else "",
    )


@pointwise(
    lambda x: x - np.trunc(x),
    check=lambda input, *rest: require_float("frac", input),
    vjp=lambda g, out, input: g,
    samples=[S(t(2, 3)), S(t())],
    kink=_to_whole,
)
def frac(input: Tensor):
    """The fraction of each element, with its sign."""


def _angle(x):
    return np.where(np.isnan(x), x, np.where(x < 0, np.array(np.pi, x.dtype), np.array(0, x.dtype)))


@pointwise(
    _angle,
    promote=Promote.FLOAT,
    inplace=False,
    properties=frozenset({"flat"}),
    vjp=zero_slope,
    samples=ALL,
    kink=lambda input: F.abs(input),
    saves="input",
)
def angle(input: Tensor):
    """pi for negative numbers, 0 for others; the slope is 0."""


@function(samples=[S(t(2))], aliases=["conj", "conj_physical", "resolve_conj", "resolve_neg"])
def real(input: Tensor):
    """The tensor itself: its numbers are real."""
    return input


# -- nan and infinities ----------------------------------------------------------------------------


def _without_nan(x, nan, posinf, neginf):
    if x.dtype.kind != "f":
        return x
    return np.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


@pointwise(
    _without_nan,
    strides_rule=like_input,
    properties=frozenset({"selects"}),
    samples=[S(t(2, 3)), S(t(values=[math.nan, math.inf, 1.0]), 2.0, 3.0, order=0, because="nan")],
    vjp=lambda g, out, input, nan, posinf, neginf: F.where(F.isfinite(input), g, 0),
)
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
):
    """nan and infinities replaced: by 0, the largest and the smallest number unless given."""


def _to_power_of_two(input):
    mantissa = F.abs(F.frexp(input)[0])
    return F.abs(input) * F.minimum(mantissa - 0.5, 1.0 - mantissa)


def _frexp_shape(input):
    require_float("frexp", input, "RuntimeError")
    return (input.shape, input.dtype), (input.shape, INT32)


@opaque(
    np.frexp,
    fields=("mantissa", "exponent"),
    samples=[S(t(2, 3)), S(t())],
    errors=[Bad("E307", ints(2))],
    shape=_frexp_shape,
    kink=_to_power_of_two,
    vjp=lambda g, out, input: g[0] / F.exp2(out[1]),
    phrase="upstream divided by the power of two",
)
def frexp(input: Tensor):
    """Mantissa in [0.5, 1) and exponent of 2."""
