"""Elementwise functions: exponentials, roots, trigonometry, rounding, bounds and choice."""

from __future__ import annotations

import math

import numpy as np

from ..errors import fail
from ..graph.declare import Mask, Promote, Tensor, composite, function, opaque, pointwise
from ..graph.dtypes import INT32
from ..graph.registry import F
from ..graph.samples import Bad, S, bools, ints, t

ALL = (S(t(2, 3)), S(t()), S(ints(2)))
POSITIVE = (S(t(2, 3, low=0.1)), S(t(low=0.1)), S(ints(2, low=1)))
INSIDE = (S(t(2, 3, low=-0.9, high=0.9)), S(t(low=-0.9, high=0.9)))
ABOVE_ONE = (S(t(2, 3, low=1.1)), S(t(low=1.1)))


# -- one operand, floats -----------------------------------------------------------------------------
# name, kernel, slope times g, samples, other names, documentation

FLOATS = (
    ("exp", np.exp, lambda g, out, x: g * out, ALL, (), "e to the power of each element."),
    ("exp2", np.exp2, lambda g, out, x: g * out * math.log(2), ALL, ("special.exp2",),
     "2 to the power of each element."),
    ("expm1", np.expm1, lambda g, out, x: g * (out + 1), ALL, ("special.expm1",),
     "`exp(input) - 1`, exact for small elements."),
    ("log", np.log, lambda g, out, x: g / x, POSITIVE, (), "Natural logarithm."),
    ("log2", np.log2, lambda g, out, x: g / (x * math.log(2)), POSITIVE, (), "Logarithm to base 2."),
    ("log10", np.log10, lambda g, out, x: g / (x * math.log(10)), POSITIVE, (), "Logarithm to base 10."),
    ("log1p", np.log1p, lambda g, out, x: g / (x + 1), POSITIVE, ("special.log1p",),
     "`log(1 + input)`, exact for small elements."),
    ("sqrt", np.sqrt, lambda g, out, x: g / (2 * out), POSITIVE, (), "Square root; its slope at 0 is inf."),
    ("sin", np.sin, lambda g, out, x: g * F.cos(x), ALL, (), "Sine."),
    ("cos", np.cos, lambda g, out, x: g * -F.sin(x), ALL, (), "Cosine."),
    ("tan", np.tan, lambda g, out, x: g * (1 + out * out), ALL, (), "Tangent."),
    ("sinh", np.sinh, lambda g, out, x: g * F.cosh(x), ALL, (), "Hyperbolic sine."),
    ("cosh", np.cosh, lambda g, out, x: g * F.sinh(x), ALL, (), "Hyperbolic cosine."),
    ("tanh", np.tanh, lambda g, out, x: g * (1 - out * out), ALL, ("nn.functional.tanh",), "Hyperbolic tangent."),
    ("asin", np.arcsin, lambda g, out, x: g * F.rsqrt(1 - x * x), INSIDE, ("arcsin",), "Inverse sine."),
    ("acos", np.arccos, lambda g, out, x: g * -F.rsqrt(1 - x * x), INSIDE, ("arccos",), "Inverse cosine."),
    ("atan", np.arctan, lambda g, out, x: g / (x * x + 1), ALL, ("arctan",), "Inverse tangent."),
    ("asinh", np.arcsinh, lambda g, out, x: g * F.rsqrt(x * x + 1), ALL, ("arcsinh",),
     "Inverse hyperbolic sine."),
    ("acosh", np.arccosh, lambda g, out, x: g * F.rsqrt(x * x - 1), ABOVE_ONE, ("arccosh",),
     "Inverse hyperbolic cosine."),
    ("atanh", np.arctanh, lambda g, out, x: g / (1 - x * x), INSIDE, ("arctanh",),
     "Inverse hyperbolic tangent."),
    ("rsqrt", lambda x: 1 / np.sqrt(x), lambda g, out, x: -0.5 * g * (out * out * out), POSITIVE, (),
     "`1 / sqrt(input)`."),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), lambda g, out, x: g * (out * (1 - out)), ALL,
     ("special.expit", "nn.functional.sigmoid"), "The logistic function `1 / (1 + exp(-input))`."),
    ("deg2rad", np.deg2rad, lambda g, out, x: g * (math.pi / 180), ALL, (), "Degrees to radians."),
    ("rad2deg", np.rad2deg, lambda g, out, x: g * (180 / math.pi), ALL, (), "Radians to degrees."),
)


def _unary(key, kernel, vjp, samples, aliases, doc, **options):
    def unary(input: Tensor):
        pass

    unary.__doc__ = doc
    return pointwise(kernel, key=key, vjp=vjp, samples=samples, aliases=aliases, **options)(unary)


for _row in FLOATS:
    _unary(*_row, promote=Promote.FLOAT)


@pointwise(np.sinc, promote=Promote.FLOAT, aliases=["special.sinc"], samples=[S(t(2, 3)), S(t(values=[0.0, 0.5]))])
def sinc(input: Tensor):
    """`sin(pi x) / (pi x)`, 1 at 0; its slope at 0 is 0."""


@sinc.vjp
def _(g, out, input):
    angle = input * math.pi
    below = input * angle
    slope = (angle * F.cos(angle) - F.sin(angle)) / below
    return F.where(F.eq(below, 0), 0.0, g * slope)


@pointwise(np.arctan2, promote=Promote.FLOAT, aliases=["arctan2"],
           samples=[S(t(2, 3), t(3)), S(t(values=[0.0, 1.0]), t(values=[0.0, 0.0]))])
def atan2(input: Tensor, other: Tensor):
    """The angle of the point (other, input); its slopes at (0, 0) are 0."""


@atan2.vjp
def _(g, out, input, other):
    squares = input * input + other * other
    inverse = F.where(F.eq(squares, 0), 0.0, 1 / squares)
    return g * other * inverse, g * -input * inverse


# -- sign and whole numbers: slopes are 0 ------------------------------------------------------------


def _no_bools(name):
    def check(input, *rest):
        if input.dtype.kind == "b":
            raise fail("E307", f"`{name}` does not work on bool tensors", help="write `.to(torch.int64)`")

    return check


def _floats_only(name):
    def check(input, *rest):
        if input.dtype.kind != "f":
            raise fail("E307", f"`{name}` works on floating point tensors, not on {input.dtype.name}",
                       help="write `.to(torch.float64)`, or floats: `[1.0, 2.0]`")

    return check


def zero_slope(g, out, *args):
    """The slope is 0 everywhere."""
    return F.zeros_like(g)


HALVES = (S(t(2, 3)), S(t(values=[-1.5, -0.5, 0.5, 2.5])), S(ints(3)))

for _row in (
    ("floor", np.floor, zero_slope, HALVES, (), "The whole number below; the slope is 0."),
    ("ceil", np.ceil, zero_slope, HALVES, (), "The whole number above; the slope is 0."),
    ("trunc", np.trunc, zero_slope, HALVES, ("fix",), "The number without its fraction; the slope is 0."),
    ("round", np.rint, zero_slope, HALVES, ("special.round",), "The nearest whole number, halves to even; the slope is 0."),
):
    _unary(_row[0], lambda x, kernel=_row[1]: x if x.dtype.kind in "iu" else kernel(x), *_row[2:],
           check=_no_bools(_row[0]))


def _rounded(x, decimals):
    scale = 10.0 ** math.fabs(decimals)
    return (np.rint(x / scale) * scale if decimals < 0 else np.rint(x * scale) / scale).astype(x.dtype)


@pointwise(_rounded, key="round_decimals", name="round", aliases=["special.round"], grad_fn="RoundBackward1",
           vjp=zero_slope, check=_floats_only("round"),
           samples=[S(t(2, 3), decimals=1), S(t(3, high=200.0), decimals=-1), S(t(3), decimals=0)])
def round_decimals(input: Tensor, *, decimals: int):
    """Rounded to `decimals` digits after the point; the slope is 0."""


@pointwise(np.abs, aliases=["absolute"], check=_no_bools("abs"), kink=lambda input: F.abs(input),
           vjp=lambda g, out, input: g * F.sgn(input), samples=[*ALL, S(t(values=[0.0, -1.0]))])
def abs(input: Tensor):
    """Absolute value; its slope at 0 is 0."""


def _sign(x):
    """0 at nan, as in PyTorch."""
    if x.dtype.kind == "f":
        return np.greater(x, 0).astype(x.dtype) - np.less(x, 0).astype(x.dtype)
    return x if x.dtype.kind == "b" else np.sign(x)


for _key in ("sign", "sgn"):
    _unary(_key, _sign, zero_slope, [*ALL, S(bools(2))], (), "-1, 0 or 1; the slope is 0.")


@pointwise(lambda x: x - np.trunc(x), check=_floats_only("frac"), vjp=lambda g, out, input: g,
           samples=[S(t(2, 3)), S(t())], kink=lambda input: F.abs(input - F.round(input)))
def frac(input: Tensor):
    """The fraction of each element, with its sign."""


def _angle(x):
    return np.where(np.isnan(x), x, np.where(x < 0, np.array(np.pi, x.dtype), np.array(0, x.dtype)))


@pointwise(_angle, promote=Promote.FLOAT, inplace=False, vjp=zero_slope, samples=ALL)
def angle(input: Tensor):
    """pi for negative numbers, 0 for others; the slope is 0."""


@function(samples=[S(t(2))], aliases=["conj", "conj_physical", "resolve_conj", "resolve_neg"])
def real(input: Tensor):
    """The tensor itself: its numbers are real."""
    return input


# -- nan and infinities ------------------------------------------------------------------------------


def _without_nan(x, nan, posinf, neginf):
    if x.dtype.kind != "f":
        return x
    return np.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


@pointwise(_without_nan, samples=[S(t(2, 3)), S(t(values=[math.nan, math.inf, 1.0]), nan=2.0, posinf=3.0)])
def nan_to_num(input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None):
    """nan and infinities replaced: by 0, the largest and the smallest number unless given."""


@nan_to_num.vjp
def _(g, out, input, nan, posinf, neginf):
    return F.where(F.isfinite(input), g, 0)


def _frexp_shape(input):
    _floats_only("frexp")(input)
    return (input.shape, input.dtype), (input.shape, INT32)


@opaque(np.frexp, fields=("mantissa", "exponent"), samples=[S(t(2, 3)), S(t())],
        errors=[Bad("E307", ints(2))],
        shape=_frexp_shape)
def frexp(input: Tensor):
    """Mantissa in [0.5, 1) and exponent of 2."""


@frexp.vjp
def _(g, out, input):
    return g[0] / F.exp2(out[1])


# -- choice ------------------------------------------------------------------------------------------


def _check_condition(condition, *rest):
    if condition.dtype.kind not in "bu":
        raise fail("E307", f"the condition must be a bool tensor, not {condition.dtype.name}",
                   help="write a comparison: `x > 0`, or `.to(torch.bool)`")


def _chosen(condition, input, other):
    return np.where(condition if condition.dtype.kind == "b" else condition != 0, input, other)


@pointwise(_chosen, method=False, check=_check_condition, grad_fn="WhereBackward0",
           samples=[S(bools(2, 3), t(2, 3), t(3)), S(bools(3), t(3), 0.5), S(bools(3), 1.0, t())],
           errors=[Bad("E307", t(2), t(2), t(2)), Bad("E302", bools(2), t(2), t(3))])
def where(condition: Mask, input: Tensor, other: Tensor):
    """Elements of `input` where `condition` holds, elements of `other` elsewhere."""


@where.vjp
def _(g, out, condition, input, other):
    return (None, F.where(condition, g, 0) if input.requires_grad else None,
            F.where(condition, 0, g) if other.requires_grad else None)


@function(name="where", samples=[S(t(2, 3), bools(2, 3), 1.0)])
def where_method(input: Tensor, condition: Mask, other: Tensor):
    """`x.where(condition, other)`: elements of `x` where `condition` holds."""
    return F.where(condition, input, other)


@function(name="where", method=False)
def where_true(condition: Mask):
    """The indices of true elements, one tensor for each dim."""
    return F.unbind(F.nonzero(condition), 1)


def _one_number(name, value):
    if value.shape:
        raise fail("E308", f"`{name}` takes a number or a 0-d tensor as value, not shape {tuple(value.shape)}",
                   help="use `where(mask, value, x)` for a tensor of values")


def _check_masked_fill(input, mask, value):
    _one_number("masked_fill", value)
    if mask.dtype.kind != "b":
        raise fail("E307", f"masked_fill takes a bool mask, not {mask.dtype.name}", help="write a comparison: `x > 0`")


@pointwise(lambda input, mask, value: np.where(mask, value.astype(input.dtype), input), check=_check_masked_fill,
           grad_fn=lambda input, mask, value: f"MaskedFillBackward{0 if value.weak else 1}",
           samples=[S(t(2, 3), bools(3), 1.5), S(t(2), bools(2, 2), t())], errors=[Bad("E308", t(2), bools(2), t(2))])
def masked_fill(input: Tensor, mask: Mask, value: Mask):
    """`value` where `mask` holds, elements of `input` elsewhere."""


@masked_fill.vjp
def _(g, out, input, mask, value):
    return F.where(mask, 0, g), None, (F.where(mask, g, 0) if value.requires_grad else None)


@pointwise(lambda input, value: np.full_like(input, value), check=lambda input, value: _one_number("fill", value),
           grad_fn=lambda input, value: f"FillBackward{0 if value.weak else 1}",
           samples=[S(t(2, 3), 1.5), S(t(2), t())])
def fill(input: Tensor, value: Mask):
    """`value` everywhere, in the shape and dtype of `input`."""


@fill.vjp
def _(g, out, input, value):
    return F.zeros_like(g), g


@composite(inplace=True, samples=[S(t(2, 3))], vjp=lambda g, out, input: F.zeros_like(g))
def zero(input: Tensor):
    """Zeros in the shape of `input`."""
    return F.zeros_like(input)


# -- extremes of two -------------------------------------------------------------------------------

TIES = (S(t(2, 3), t(3)), S(t(values=[1.0, 2.0]), t(values=[1.0, 3.0])), S(t(), t(2)))


def _shared(g, input, other, not_input, not_other):
    """Cotangents of a choice between two: half each where they are equal."""
    half = F.where(F.eq(input, other), g / 2, g)
    return F.where(not_input, 0, half), F.where(not_other, 0, half)


def _distance(input, other):
    return F.abs(input - other)


@pointwise(np.maximum, samples=TIES, inplace=False, kink=_distance)
def maximum(input: Tensor, other: Tensor):
    """The larger of two elements, nan if one is nan; equal elements share the slope."""


@maximum.vjp
def _(g, out, input, other):
    return _shared(g, input, other, F.lt(input, other), F.lt(other, input))


@pointwise(np.minimum, samples=TIES, inplace=False, kink=_distance)
def minimum(input: Tensor, other: Tensor):
    """The smaller of two elements, nan if one is nan; equal elements share the slope."""


@minimum.vjp
def _(g, out, input, other):
    return _shared(g, input, other, F.gt(input, other), F.gt(other, input))


@pointwise(np.fmax, samples=TIES, inplace=False, kink=_distance)
def fmax(input: Tensor, other: Tensor):
    """The larger of two elements, the other one if one is nan; the first has the slope of ties."""


@fmax.vjp
def _(g, out, input, other):
    first = F.logical_or(F.ge(input, other), F.isnan(other))
    return F.where(first, g, 0), F.where(first, 0, g)


@pointwise(np.fmin, samples=TIES, inplace=False, kink=_distance)
def fmin(input: Tensor, other: Tensor):
    """The smaller of two elements, the other one if one is nan; the first has the slope of ties."""


@fmin.vjp
def _(g, out, input, other):
    first = F.logical_or(F.le(input, other), F.isnan(other))
    return F.where(first, g, 0), F.where(first, 0, g)


# -- bounds ------------------------------------------------------------------------------------------


def _clamped(input, min, max):
    if min is not None:
        input = np.maximum(input, min)
    return input if max is None else np.minimum(input, max)


def _check_bounds(input, min, max):
    if min is None and max is None:
        raise fail("E205", "`clamp` needs min or max", help="`clamp(x, min=0)`")


def _clamp_name(input, min, max):
    return f"ClampBackward{1 if any(b is not None and b.weak for b in (min, max)) else 0}"


@pointwise(_clamped, aliases=["clip"], check=_check_bounds, grad_fn=_clamp_name,
           samples=[S(t(3), -1.0, 1.0), S(t(2, 3), min=0.5), S(t(2, 3), max=t(3)), S(t(2, 3), t(3), t(2, 1)),
                    S(t(values=[1.0, 2.0]), 1.0, 2.0)],
           errors=[Bad("E205", t(2))])
def clamp(input: Tensor, min: Tensor | None = None, max: Tensor | None = None):
    """Elements held between `min` and `max`; the slope at a bound is 1."""


@clamp.vjp
def _(g, out, input, min, max):
    above = None if min is None else F.ge(input, min)
    below = None if max is None else F.le(input, max)
    inside = below if above is None else above if below is None else F.logical_and(above, below)
    to_min = to_max = None
    if min is not None and min.requires_grad:
        at_min = F.lt(input, min)
        to_min = F.where(at_min if max is None else F.logical_and(at_min, F.lt(min, max)), g, 0)
    if max is not None and max.requires_grad:
        at_max = F.gt(input, max)
        to_max = F.where(at_max if min is None else F.logical_or(at_max, F.lt(max, min)), g, 0)
    return F.where(inside, g, 0), to_min, to_max


def _bound(key, kernel, inside, outside, doc):
    def bounded(input: Tensor, min: Tensor):
        pass

    def bounded_above(input: Tensor, max: Tensor):
        pass

    def vjp(g, out, input, bound):
        return (F.where(inside(input, bound), g, 0),
                F.where(outside(input, bound), g, 0) if bound.requires_grad else None)

    def name(input, bound):
        return f"Clamp{key[6:].capitalize()}Backward{0 if bound.weak else 1}"

    function = bounded if key == "clamp_min" else bounded_above
    function.__doc__ = doc
    pointwise(kernel, key=key, vjp=vjp, grad_fn=name,
              samples=[S(t(2, 3), 0.5), S(t(2, 3), t(3))])(function)


_bound("clamp_min", np.maximum, lambda x, b: F.ge(x, b), lambda x, b: F.lt(x, b),
       "Elements not below `min`; the slope at the bound is 1.")
_bound("clamp_max", np.minimum, lambda x, b: F.le(x, b), lambda x, b: F.gt(x, b),
       "Elements not above `max`; the slope at the bound is 1.")
