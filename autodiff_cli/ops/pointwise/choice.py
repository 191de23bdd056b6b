"""Choice between elements: where, fills, the larger of two, bounds."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Mask, Tensor, function, pointwise, rows
from ...graph.op import cast
from ...graph.registry import F
from ...graph.samples import Bad, S, bools, t
from ..kernels.indices import check_weak
from ..kernels.rules import moving, zeros

# -- choice ----------------------------------------------------------------------------------------


def _check_condition(condition, *sides):
    if condition.dtype.kind not in "bu":
        raise fault("E307 condition-bool-tensor", condition)
    for side, other in (sides, sides[::-1]):
        if other.dtype.kind in "iu" and side.dtype.kind == "i":
            check_weak(side, other.dtype)


@pointwise(
    lambda condition, input, other: np.where(condition, input, other),
    numpy="np.where(condition, input, other)",
    method=False,
    check=_check_condition,
    samples=[S(bools(2, 3), t(2, 3), t(3)), S(bools(3), t(3), 0.5), S(bools(3), 1.0, t())],
    errors=[Bad("E307", t(2), t(2), t(2)), Bad("E302", bools(2), t(2), t(3))],
    properties=frozenset({"selects"}),
    phrase="each element gets the gradient of the side it chose",
)
def where(condition: Mask, input: Tensor, other: Tensor):
    """Elements of `input` where `condition` holds, elements of `other` elsewhere."""


@where.vjp
def _(g, out, condition, input, other):
    return (
        None,
        F.where(condition, g, 0) if input.requires_grad else None,
        F.where(condition, 0, g) if other.requires_grad else None,
    )


@function(name="where", samples=[S(t(2, 3), bools(2, 3), 1.0)])
def where_method(input: Tensor, condition: Mask, other: Tensor):
    """`x.where(condition, other)`: elements of `x` where `condition` holds."""
    return F.where(condition, input, other)


@function(name="where", method=False, samples=[S(bools(2, 3))])
def where_true(condition: Mask):
    """The indices of true elements, one tensor for each dim."""
    return F.nonzero(condition, as_tuple=True)


def _one_number(name, value):
    if value.shape:
        raise fault("E308 takes-number-d-tensor", name, tuple(value.shape))


def _check_masked_fill(input, mask, value):
    _one_number("masked_fill", value)
    if mask.dtype.kind != "b":
        raise fault("E307 masked_fill-takes-bool-mask", mask)


def _of_dtype(value, input):
    """A number in the dtype of the tensor that it is written to; a tensor as it is."""
    check_weak(value, input.dtype)
    return cast(value, input.dtype) if value.weak else value


@function(
    inplace=True,
    samples=[S(t(2, 3), bools(3), 1.1), S(t(2), bools(2, 2), t())],
    errors=[Bad("E308", t(2), bools(2), t(2))],
)
def masked_fill(input: Tensor, mask: Mask, value: Mask):
    """`value` where `mask` holds, elements of `input` elsewhere."""
    return F.masked_written.apply([input, mask, _of_dtype(value, input)])


@pointwise(
    lambda input, mask, value: np.where(mask, value.astype(input.dtype), input),
    name="masked_fill",
    public=False,
    check=_check_masked_fill,
    grad_fn=lambda input, mask, value: f"MaskedFillBackward{0 if value.weak else 1}",
    samples=[S(t(2, 3), bools(3), t()), S(t(2), bools(2, 2), t())],
    properties=frozenset({"selects", "row-major"}),
    counterpart="masked_fill",
)
def masked_written(input: Tensor, mask: Mask, value: Mask):
    """`value` where `mask` holds, elements of `input` elsewhere."""


@masked_written.vjp
def _(g, out, input, mask, value):
    return F.where(mask, 0, g), None, (F.where(mask, g, 0) if value.requires_grad else None)


@function(inplace=True, samples=[S(t(2, 3), 1.1), S(t(2), t())], counterpart="fill")
def fill(input: Tensor, value: Mask):
    """`value` everywhere, in the shape and dtype of `input`."""
    return F.filled_with.apply([input, _of_dtype(value, input)])


@pointwise(
    lambda input, value: np.full_like(input, value),
    name="fill",
    public=False,
    check=lambda input, value: _one_number("fill", value),
    grad_fn=lambda input, value: f"FillBackward{0 if value.weak else 1}",
    samples=[S(t(2, 3), t()), S(t(2), t())],
    properties=frozenset({"selects"}),
    counterpart="fill",
    vjp=lambda g, out, input, value: (F.zeros_like(g), g),
)
def filled_with(input: Tensor, value: Mask):
    """`value` everywhere, in the shape and dtype of `input`."""


# -- extremes of two -------------------------------------------------------------------------------

TIES = (
    S(t(2, 3), t(3)),
    S(t(values=[1.0, 2.0]), t(values=[1.0, 3.0]), order=0, because="tie"),
    S(t(), t(2)),
)


def _distance(input, other):
    return F.abs(input - other)


def _first(chosen):
    """Cotangents where the first is chosen, and where the other is not a number."""

    def vjp(g, out, input, other):
        first = F.logical_or(chosen(input, other), F.isnan(other))
        return F.where(first, g, 0), F.where(first, 0, g)

    return vjp


def _shared(beyond):
    """Half the cotangent each where the two are equal; the other's where that is `beyond`."""

    def vjp(g, out, input, other):
        half = F.where(F.eq(input, other), g / 2, g)
        return F.where(beyond(input, other), 0, half), F.where(beyond(other, input), 0, half)

    return vjp


def _mixed(share):
    """The change of the other, and of the difference of both the share of the first."""

    def forward(moves, out, input, other):
        first, second = moving(moves, input, other)
        return F.add(second, F.mul(share(input, other), F.sub(first, second)))

    return forward


def _half(beyond):
    return lambda x, y: F.where(F.eq(x, y), 0.5, cast(beyond(x, y), x.dtype))


def _or_nan(chosen):
    return lambda x, y: F.logical_or(chosen(x, y), F.isnan(y))


_extreme = rows(
    __name__,
    "input other",
    """
    maximum: The larger of two elements, nan if one is nan; equal elements share the slope.
    minimum: The smaller of two elements, nan if one is nan; equal elements share the slope.
    fmax: The larger of two elements, the other one if one is nan; the first has the slope of ties.
    fmin: The smaller of two elements, the other one if one is nan; the first has the slope of ties.
    """,
    inplace=False,
    kink=_distance,
    properties=frozenset({"selects"}),
)


def _greater(x, y):
    return F.gt(x, y)


def _less(x, y):
    return F.lt(x, y)


def _no_greater(x, y):
    return F.le(x, y)


_extreme("maximum", np.maximum, _shared(_less), TIES, forward=_mixed(_half(_greater)))
_extreme("minimum", np.minimum, _shared(_greater), TIES, forward=_mixed(_half(_less)))
_extreme(
    "fmax",
    lambda x, y: np.fmax(y, x),  # the first where both are equal
    _first(lambda x, y: F.ge(x, y)),
    TIES,
    forward=_mixed(_or_nan(_greater)),  # the share of ties is the other's there
)
_extreme(
    "fmin",
    lambda x, y: np.fmin(y, x),
    _first(_no_greater),
    TIES,
    forward=_mixed(_or_nan(_no_greater)),
)


# -- bounds ----------------------------------------------------------------------------------------


def _clamped(input, min, max):
    if min is not None:
        input = np.maximum(min, input)  # the second where both are equal: -0.0 stays
    return input if max is None else np.minimum(max, input)


def _clamp_forward(moves, out, input, min, max):
    """PyTorch's formula of bounds that are tensors: a bound alone has the change at it."""
    if any(bound is not None and bound.weak for bound in (min, max)):
        return _clamp_slopes(moves[0], out, input, min, max)[0]
    to_self, to_min, to_max = (move or zeros(input) for move in moves)
    if max is None:
        return F.where(F.gt(input, min), to_self, to_min)
    if min is None:
        return F.where(F.lt(input, max), to_self, to_max)
    inside = F.where(F.gt(input, max), to_max, to_self)
    return F.where(F.gt(min, max), to_max, F.where(F.lt(input, min), to_min, inside))


def _check_bounds(input, min, max=None):
    if min is None and max is None:
        raise fault("E205 clamp-needs-bounds")
    bounds = [bound for bound in (min, max) if bound is not None]
    if input.dtype.kind == "f" or all(bound.dtype.kind != "f" for bound in bounds):
        for bound in bounds:  # the result is of the dtype of the input
            check_weak(bound, input.dtype)


def _to_a_bound(input, low, high):
    """The distance to the nearer bound."""
    far = [F.abs(input - bound) for bound in (low, high) if bound is not None]
    return far[0] if len(far) == 1 else F.minimum(*far)


@pointwise(
    _clamped,
    numpy="np.clip(input, min, max)",
    aliases=["clip"],
    check=_check_bounds,
    lacks="clamp_cpu bool",
    grad_fn=lambda input, min, max: (
        f"ClampBackward{1 if any(b is not None and b.weak for b in (min, max)) else 0}"
    ),
    samples=[
        S(t(3), -1.0, 1.0),
        S(t(2, 3), min=0.5),
        S(t(2, 3), max=t(3)),
        S(t(2, 3), t(3), t(2, 1)),
        S(t(values=[1.0, 2.0]), 1.0, 2.0, order=0, because="at the bounds"),
    ],
    errors=[Bad("E205", t(2))],
    kink=_to_a_bound,
    forward=_clamp_forward,
    properties=frozenset({"clamps", "three edges", "own numbers"}),
)
def clamp(input: Tensor, min: Tensor | None = None, max: Tensor | None = None):
    """Elements held between `min` and `max`; the slope at a bound is 1."""


@clamp.vjp
def _clamp_slopes(g, out, input, min, max):
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


def _bound(key, extreme, inside, outside, place):
    def vjp(g, out, input, bound):
        to_bound = F.where(outside(input, bound), g, 0) if bound.requires_grad else None
        return F.where(inside(input, bound), g, 0), to_bound

    text = f"{key}: Elements not {place} `{key[6:]}`; the slope at the bound is 1."
    rows(__name__, f"input {key[6:]}", text)(
        key,
        lambda x, bound: extreme(bound, x),  # the second where both are equal: -0.0 stays
        vjp,
        [S(t(2, 3), 0.5), S(t(2, 3), t(3))],
        check=_check_bounds,
        grad_fn=lambda _, bound: f"Clamp{key[6:].capitalize()}Backward{0 if bound.weak else 1}",
        kink=_distance,
        forward=lambda moves, out, input, bound: F.where(
            inside(input, bound), *moving(moves, input, bound)
        ),
        properties=frozenset({"clamps"}),
    )


_bound("clamp_min", np.maximum, lambda x, b: F.ge(x, b), lambda x, b: F.lt(x, b), "below")
_bound("clamp_max", np.minimum, lambda x, b: F.le(x, b), lambda x, b: F.gt(x, b), "above")
