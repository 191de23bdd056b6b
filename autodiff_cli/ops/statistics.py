"""Statistics over dims: variance, quantiles, order statistics, covariances, histograms."""

from __future__ import annotations


from ..graph.declare import Dims, Scalar, Tensor, composite, function
from ..graph.registry import F
from ..graph.rules import require_float, spread
from ..graph.samples import Bad, S, ints, t
from ..graph.shapes import reduced_count

DIMS = (S(t(2, 3)), S(t(2, 3), 1), S(t(2, 3, 4), (0, -1), keepdim=True), S(t(4), correction=0),
        S(t(2, 3), dim=0, unbiased=False))
NO_FLOATS = [Bad("E307", ints(3), words="int64")]


def _freedom(input, dim, unbiased, correction):
    """How many the squares are divided by; 0 instead of negative numbers."""
    lost = int(unbiased) if correction is None else correction
    return max(reduced_count(input.shape, dim) - lost, 0)


@composite(samples=DIMS, errors=NO_FLOATS)
def var(input: Tensor, dim: Dims | None = None, unbiased: bool = True, keepdim: bool = False, *,
        correction: Scalar | None = None):
    """Variance over `dim`, or over everything, dividing by n - `correction` (1 when unbiased)."""
    require_float("var", input)
    centered = F.sub(input, F.mean(input, dim, True))
    return F.div(F.sum(F.mul(centered, centered), dim, keepdim), _freedom(input, dim, unbiased, correction))


@var.vjp
def _(g, out, input, dim, unbiased, keepdim, correction):
    n = _freedom(input, dim, unbiased, correction)
    scale = 2.0 / n if n else float("inf")
    return (F.mul(F.mul(spread(g, input, dim), scale), F.sub(input, F.mean(input, dim, True))),)


@composite(samples=[*DIMS, S(t(3, values=[1.0, 1.0, 1.0]), order=1, because="the slope jumps at 0")], errors=NO_FLOATS)
def std(input: Tensor, dim: Dims | None = None, unbiased: bool = True, keepdim: bool = False, *,
        correction: Scalar | None = None):
    """Standard deviation, the root of `var`; the slope at 0 is 0."""
    require_float("std", input)
    return F.sqrt(F.var(input, dim, unbiased, keepdim, correction=correction))


@std.vjp
def _(g, out, input, dim, unbiased, keepdim, correction):
    to_var = F.where(F.eq(out, 0), 0.0, F.div(g, F.mul(out, 2)))
    return var.vjp_rule(to_var, out, input, dim, unbiased, keepdim, correction)


@composite(samples=DIMS, errors=NO_FLOATS)
def var_mean(input: Tensor, dim: Dims | None = None, unbiased: bool = True, keepdim: bool = False, *,
             correction: Scalar | None = None):
    """Variance and mean."""
    require_float("var_mean", input)
    return F.var(input, dim, unbiased, keepdim, correction=correction), F.mean(input, dim, keepdim)


@composite(samples=DIMS, errors=NO_FLOATS)
def std_mean(input: Tensor, dim: Dims | None = None, unbiased: bool = True, keepdim: bool = False, *,
             correction: Scalar | None = None):
    """Standard deviation and mean."""
    require_float("std_mean", input)
    return F.std(input, dim, unbiased, keepdim, correction=correction), F.mean(input, dim, keepdim)


def _declare_unbiased(name):
    @function(name=name, key=f"{name}_unbiased", samples=[S(t(4), False)])
    def _(input: Tensor, unbiased: bool):
        return getattr(F, name)(input, None, unbiased)

    _.doc = f"`{name}` over everything, with or without Bessel's correction."


for _name in ("var", "std", "var_mean", "std_mean"):
    _declare_unbiased(_name)
