"""Statistics over dims: variances, covariances, correlations."""

from __future__ import annotations

from ...errors import fail, fault
from ...graph.declare import Dims, Scalar, Tensor, composite, function
from ...graph.dtypes import is_float
from ...graph.op import known, number, value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import reduced_count
from ..kernels.rules import require_float, spread, widened

DIMS = (
    S(t(2, 3)),
    S(t(2, 3), 1),
    S(t(2, 3, 4), (0, -1), keepdim=True),
    S(t(4), correction=0),
    S(t(2, 3), dim=0, unbiased=False),
)
NO_FLOATS = [Bad("E307", ints(3), words="int64")]


def _freedom(input, dim, unbiased, correction):
    """How many the squares are divided by; 0 instead of negative numbers."""
    lost = int(unbiased) if correction is None else correction
    return max(reduced_count(input.shape, dim) - lost, 0)


@composite(
    samples=DIMS,
    errors=NO_FLOATS,
    phrase="upstream times 2 * (x - mean) / (n - correction)",
    vjp=lambda g, out, input, dim, unbiased, keepdim, correction: (
        _variance_slope(g, input, dim, unbiased, correction),
    ),
)
def var(
    input: Tensor,
    dim: Dims | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
):
    """Variance over `dim`, or over everything, dividing by n - `correction` (1 when unbiased)."""
    require_float("var", input, "RuntimeError")
    return F.to(
        _variance(widened(input, input.numel), dim, unbiased, keepdim, correction), input.dtype
    )


def _variance(input, dim, unbiased, keepdim, correction):
    centered = F.sub(input, F.mean(input, dim, True))
    return F.div(
        F.sum(F.mul(centered, centered), dim, keepdim), _freedom(input, dim, unbiased, correction)
    )


def _variance_slope(g, input, dim, unbiased, correction):
    n = _freedom(input, dim, unbiased, correction)
    if dim == ():  # PyTorch counts one element there
        n = 1 - (int(unbiased) if correction is None else correction)
    if n <= 0 and input.numel == 1:  # PyTorch's is a constant there
        flat = F.eq(input, F.mean(input, dim, True))
        return F.mul(spread(g, input, dim), F.where(flat, float("nan"), float("inf")))
    scale = 2.0 / n if n else float("inf")
    return F.mul(F.mul(spread(g, input, dim), scale), F.sub(input, F.mean(input, dim, True)))


@composite(
    like=var,
    samples=[*DIMS, S(t(3, values=[1.0, 1.0, 1.0]), order=0, because="no slope at 0")],
    errors=NO_FLOATS,
    kink=lambda input, dim, *rest: F.std(input, dim, False),
    phrase="upstream times (x - mean) / ((n - correction) * std)",
    vjp=lambda g, out, input, dim, unbiased, keepdim, correction: (
        _variance_slope(_through_root(g, out), input, dim, unbiased, correction),
    ),
)
def std(input, dim, unbiased, keepdim, correction):
    """Standard deviation, the root of `var`; the slope at 0 is 0."""
    require_float("std", input, "RuntimeError")
    root = F.sqrt(_variance(widened(input, input.numel), dim, unbiased, keepdim, correction))
    return F.to(root, input.dtype)


def _through_root(g, out):
    flat = F.eq(out, 0)
    return F.where(flat, 0.0, F.div(g, F.mul(F.where(flat, 1.0, out), 2.0)))


@composite(
    like=var,
    method=False,
    samples=DIMS,
    errors=NO_FLOATS,
    phrase="the rules of var and of mean, added",
)
def var_mean(input, dim, unbiased, keepdim, correction):
    """Variance and mean."""
    require_float("var_mean", input, "RuntimeError")
    return F.var(input, dim, unbiased, keepdim, correction=correction), F.mean(input, dim, keepdim)


@composite(
    like=var,
    method=False,
    samples=DIMS,
    errors=NO_FLOATS,
    properties=frozenset({"no zero cotangents"}),
    phrase="the rules of std and of mean, added",
)
def std_mean(input, dim, unbiased, keepdim, correction):
    """Standard deviation and mean."""
    require_float("std_mean", input, "RuntimeError")
    return F.std(input, dim, unbiased, keepdim, correction=correction), F.mean(input, dim, keepdim)


def _mean_slope(g, input, dim):
    return F.div(spread(g, input, dim), reduced_count(input.shape, dim))


@std_mean.vjp
def _(g, out, input, dim, unbiased, keepdim, correction):
    to_std, to_mean = g
    found = None if to_mean is None else _mean_slope(to_mean, input, dim)
    if to_std is None:
        return (found,)
    slope = _variance_slope(_through_root(to_std, out[0]), input, dim, unbiased, correction)
    return (slope if found is None else F.add(slope, found),)


def _declare_unbiased(name):
    @function(
        name=name,
        key=f"{name}_unbiased",
        method=not name.endswith("mean"),
        samples=[S(t(4), False)],
    )
    def _(input: Tensor, unbiased: bool):
        return getattr(F, name)(input, None, unbiased)

    _.doc = f"`{name}` over everything, with or without Bessel's correction."


for _name in ("var", "std", "var_mean", "std_mean"):
    _declare_unbiased(_name)


# -- covariance ------------------------------------------------------------------------------------


def _cov_weights(x, fweights, aweights):
    """The product of both weights, or None."""
    n = x.shape[1]
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and weights.shape != (n,):
            raise fault("E308 cov-shape-observations", name, weights, n)
        if weights is not None and known(weights) and not (value_of(weights) >= 0).all():
            raise fail("E504", f"`cov`: {name} cannot be negative", help="weights are 0 or larger")
    if fweights is not None and is_float(fweights.dtype):
        raise fault("E307 cov-fweights-count-observations", fweights)
    if aweights is not None:
        if not is_float(aweights.dtype):
            raise fault("E307 cov-aweights-floats", aweights)
        return F.mul(fweights, aweights) if fweights is not None else aweights
    return fweights


@function(
    samples=[
        S(t(2, 4)),
        S(t(3)),
        S(t(2, 3), correction=0, aweights=t(3, low=0.5, grad=False)),
        S(t(2, 3), fweights=ints(3, low=1)),
    ],
    errors=[
        Bad("E308", t(2, 2, 2)),
        Bad("E504", t(2), fweights=ints(values=[1, -1])),
        Bad("E504", t(2), fweights=ints(values=[0, 0])),
    ],
)
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
):
    """Covariances of the rows; columns are observations, which may be weighted."""
    if input.ndim > 2:
        raise fault("E308 cov-takes-most-dims", input)
    x = F.reshape(input, (1, -1)) if input.ndim < 2 else input
    weights = _cov_weights(x, fweights, aweights)
    if weights is not None and known(weights) and not value_of(weights).sum():
        raise fault("E504 cov-weights-sum-zero")
    total = number(float(x.shape[1])) if weights is None else F.sum(weights)
    weighted = x if weights is None else F.mul(x, weights)
    centered = F.sub(x, F.div(F.sum(weighted, (1,), True), total))
    lost = number(float(correction))
    if aweights is not None and correction != 0:
        lost = F.mul(F.div(F.sum(F.mul(weights, aweights)), total), correction)
    scale = F.clamp(F.sub(total, lost), 0)
    other = centered if weights is None else F.mul(centered, weights)
    return F.squeeze(F.div(F.mm(centered, F.t(other)), scale))


@function(samples=[S(t(2, 4)), S(t(3))], errors=[Bad("E308", t(2, 2, 2))])
def corrcoef(input: Tensor):
    """Correlations of the rows."""
    c = F.cov(input)
    if not c.shape:
        return F.div(c, c)
    deviations = F.sqrt(F.diag(c))
    c = F.div(F.div(c, F.reshape(deviations, (-1, 1))), F.reshape(deviations, (1, -1)))
    return F.clamp(c, -1, 1)
