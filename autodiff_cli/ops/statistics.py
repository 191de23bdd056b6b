"""Statistics over dims: variance, quantiles, order statistics, covariances, histograms."""

from __future__ import annotations

import numpy as np

from ..errors import fail
from ..graph.declare import Dim, Dims, Floats, Mask, Scalar, Tensor, composite, function, opaque
from ..graph.dtypes import FLOAT32, FLOAT64, INT64, is_float
from ..graph.op import cast, known, number, shape_text, value_of
from ..graph.registry import F
from ..graph.rules import require_float, spread
from ..graph.samples import Bad, S, ints, t
from ..graph.shapes import reduced_count, reduced_shape

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


@composite(samples=DIMS, errors=NO_FLOATS)
def var(
    input: Tensor,
    dim: Dims | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
):
    """Variance over `dim`, or over everything, dividing by n - `correction` (1 when unbiased)."""
    require_float("var", input)
    centered = F.sub(input, F.mean(input, dim, True))
    return F.div(
        F.sum(F.mul(centered, centered), dim, keepdim), _freedom(input, dim, unbiased, correction)
    )


def _variance_slope(g, input, dim, unbiased, correction):
    n = _freedom(input, dim, unbiased, correction)
    scale = 2.0 / n if n else float("inf")
    return F.mul(F.mul(spread(g, input, dim), scale), F.sub(input, F.mean(input, dim, True)))


@var.vjp
def _(g, out, input, dim, unbiased, keepdim, correction):
    return (_variance_slope(g, input, dim, unbiased, correction),)


@composite(
    samples=[*DIMS, S(t(3, values=[1.0, 1.0, 1.0]), order=0, because="no slope at 0")],
    errors=NO_FLOATS,
)
def std(
    input: Tensor,
    dim: Dims | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
):
    """Standard deviation, the root of `var`; the slope at 0 is 0."""
    require_float("std", input)
    return F.sqrt(F.var(input, dim, unbiased, keepdim, correction=correction))


@std.vjp
def _(g, out, input, dim, unbiased, keepdim, correction):
    to_var = F.mul(g, F.where(F.eq(out, 0), 0.0, F.div(0.5, out)))
    return (_variance_slope(to_var, input, dim, unbiased, correction),)


@composite(method=False, samples=DIMS, errors=NO_FLOATS)
def var_mean(
    input: Tensor,
    dim: Dims | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
):
    """Variance and mean."""
    require_float("var_mean", input)
    return F.var(input, dim, unbiased, keepdim, correction=correction), F.mean(input, dim, keepdim)


@composite(method=False, samples=DIMS, errors=NO_FLOATS)
def std_mean(
    input: Tensor,
    dim: Dims | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
):
    """Standard deviation and mean."""
    require_float("std_mean", input)
    return F.std(input, dim, unbiased, keepdim, correction=correction), F.mean(input, dim, keepdim)


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


# -- order statistics ------------------------------------------------------------------------------


def _slope_to_all_equal(g, out, input):
    """Shared evenly by all elements equal to the result."""
    hit = F.logical_or(F.eq(input, out), F.logical_and(F.isnan(input), F.isnan(out)))
    return F.where(hit, F.div(g, F.sum(hit)), 0.0)


def _pick(input, dim, index, keepdim):
    shape = reduced_shape(input.shape, (dim,), keepdim)
    return F.reshape(F.gather(input, dim, index), shape), F.reshape(index, shape)


def _require_elements(name, input, dim):
    if input.shape and input.shape[dim] == 0:
        raise fail(
            "E308",
            f"`{name}` over dim {dim} of shape {shape_text(input.shape)}: there are no elements",
            help="the dim to reduce must not be empty",
        )


def _nans(input, dim):
    """How many elements along `dim` are nan, or None where none can be."""
    return F.sum(F.isnan(input), (dim,), True) if is_float(input.dtype) else None


def _middle(input, dim, skip_nan):
    """Index of the lower median; nan counts as the largest, or not at all."""
    n = input.shape[dim] if input.shape else 1
    order = F.argsort(input, dim)
    nans = _nans(input, dim)
    if not input.shape:
        return order
    if nans is None:
        return F.narrow(order, dim, (n - 1) // 2, 1)
    counted = F.sub(n, nans)
    if skip_nan:
        at = F.clamp(F.floor_divide(F.sub(counted, 1), 2), 0)
    else:
        at = F.where(F.gt(nans, 0), counted, (n - 1) // 2)
    return F.gather(order, dim, at)


EQUAL = t(4, values=[1.0, 2.0, 2.0, 3.0])


def _declare_median(name, skip_nan, text):
    kind = name.capitalize()

    @composite(
        name=name,
        key=name,
        grad_fn=f"{kind}Backward0",
        vjp=_slope_to_all_equal,
        samples=[S(t(5)), S(t(2, 2)), S(t()), S(EQUAL, order=0, because="the slope jumps at ties")],
    )
    def full(input: Tensor):
        if not input.numel:
            return number(float("nan"), input.dtype)
        flat = F.reshape(input, (-1,))
        return F.reshape(F.gather(flat, 0, _middle(flat, 0, skip_nan)), ())

    @composite(
        name=name,
        key=f"{name}_dim",
        grad_fn=f"{kind}Backward1",
        fields=("values", "indices"),
        samples=[S(t(2, 5), 1), S(t(2, 3), 0, True), S(t(), 0)],
        errors=[Bad("E308", t(2, 0), 1)],
    )
    def along(input: Tensor, dim: Dim, keepdim: bool = False):
        _require_elements(name, input, dim)
        return _pick(input, dim, _middle(input, dim, skip_nan), keepdim)

    full.doc = f"{text}; the lower of two middle elements, equal ones share the slope."
    along.doc = f"{text} along `dim` and its index; the slope goes to the one that was picked."


_declare_median("median", False, "Median of the elements; nan if one is nan")
_declare_median("nanmedian", True, "Median of the elements that are not nan")


@composite(
    fields=("values", "indices"),
    samples=[S(t(5), 2), S(t(2, 3), 1, 0, True), S(t(), 1)],
    errors=[Bad("E308", t(3), 4, words="4"), Bad("E308", t(3), 0)],
    properties=frozenset({"selects"}),
)
def kthvalue(input: Tensor, k: int, dim: Dim = -1, keepdim: bool = False):
    """The `k`-th smallest element along `dim` (from 1) and its index."""
    size = input.shape[dim] if input.shape else 1
    if not 1 <= k <= size:
        raise fail(
            "E308",
            f"`kthvalue` {k} along dim {dim} of shape {shape_text(input.shape)}",
            help=f"k may be 1 to {size} here",
        )
    index = F.argsort(input, dim)
    return _pick(input, dim, F.narrow(index, dim, k - 1, 1) if input.shape else index, keepdim)


@composite(
    fields=("values", "indices"),
    errors=[Bad("E308", t(2, 0), 1)],
    samples=[
        S(t(4)),
        S(
            t(2, 4, values=[[1.0, 2.0, 2.0, 1.0], [3.0, 0.0, 3.0, 1.0]]),
            1,
            True,
            order=0,
            because="elements that are equal part when they move",
        ),
        S(t()),
    ],
    properties=frozenset({"selects"}),
)
def mode(input: Tensor, dim: Dim = -1, keepdim: bool = False):
    """The most frequent element along `dim` (the smallest of them), and the index of its last."""
    _require_elements("mode", input, dim)
    if not input.shape:
        return _pick(input, dim, F.argsort(input, dim), keepdim)
    n = input.shape[dim]
    order = F.argsort(input, dim)
    ordered = F.detach(F.gather(input, dim, order))
    places = F.reshape(F.arange(n), tuple(-1 if i == dim else 1 for i in range(input.ndim)))
    fresh = F.ne(F.narrow(ordered, dim, 1, n - 1), F.narrow(ordered, dim, 0, n - 1))
    starts = F.cat(
        (F.zeros_like(F.narrow(order, dim, 0, 1)), F.mul(fresh, F.narrow(places, dim, 1, n - 1))),
        dim,
    )
    run_lengths = F.sub(places, F.cummax(starts, dim)[0])
    return _pick(input, dim, F.gather(order, dim, F.argmax(run_lengths, dim, True)), keepdim)


# -- quantiles -------------------------------------------------------------------------------------


ROUNDINGS = {
    "linear": None,
    "lower": "floor",
    "higher": "ceil",
    "midpoint": None,
    "nearest": "round",
}


def _checked_quantile(name, input, q, interpolation):
    require_float(name, input)
    if not q.weak and q.dtype != input.dtype:
        raise fail(
            "E307",
            f"`{name}`: q is {q.dtype.name}, the input {input.dtype.name}",
            help=f"write `q.to(torch.{input.dtype.name})`",
        )
    if q.ndim > 1:
        raise fail(
            "E308",
            f"`{name}`: q must be a number or have one dim, got {shape_text(q.shape)}",
            help="list the quantiles in one dim",
        )
    if not input.numel:
        raise fail(
            "E308",
            f"`{name}` of an empty tensor of shape {shape_text(input.shape)}",
            help="give at least one element",
        )
    if interpolation not in ROUNDINGS:
        raise fail(
            "E205",
            f"`{name}` has no interpolation {interpolation!r}",
            help="one of " + ", ".join(ROUNDINGS),
        )
    if not known(q):
        return
    values = value_of(q)
    if not ((values >= 0) & (values <= 1)).all():
        raise fail("E504", f"`{name}`: q must lie between 0 and 1", help="0.5 is the median")


def _quantile(name, skip_nan, input, q, dim, keepdim, interpolation):
    _checked_quantile(name, input, q, interpolation)
    if dim is None:
        shape = (1,) * input.ndim if keepdim else ()
        x = F.reshape(input, (-1,))
    else:
        shape = reduced_shape(input.shape, (dim,), keepdim)
        x = F.movedim(input, dim, -1) if input.shape else F.reshape(input, (1,))
    ordered = F.sort(x, -1)[0]
    q = cast(q, input.dtype)
    levels = F.reshape(q, (-1,))
    last = x.ndim - 1
    nans = _nans(ordered, last)
    n = x.shape[-1]
    if skip_nan:
        ranks = F.clamp(F.mul(levels, F.sub(n - 1, nans)), 0)
    else:
        ranks = F.where(F.gt(nans, 0), n - 1.0, F.mul(levels, n - 1))
    rounding = ROUNDINGS[interpolation]
    if rounding:
        ranks = F.detach(getattr(F, rounding)(ranks))
    below = F.floor(F.detach(ranks))
    values = F.gather(ordered, last, cast(below, INT64))
    if rounding is None:
        above = F.gather(ordered, last, cast(F.ceil(F.detach(ranks)), INT64))
        weight = 0.5 if interpolation == "midpoint" else F.sub(ranks, below)
        values = F.lerp(values, above, weight)
    if not q.shape:
        return F.squeezed(F.reshape(values, (*shape, 1)), (len(shape),), 4)
    values = F.reshape(F.movedim(values, -1, 0), (q.shape[0], *shape, 1))
    return F.squeezed(values, (len(shape) + 1,), 4)


QUANTILES = [
    S(t(5), 0.4),
    S(t(2, 4), t(2, values=[0.3, 0.75], grad=False), 1, keepdim=True),
    S(t(2, 4), 0.6, 0, interpolation="midpoint"),
    S(t(4), 0.6, interpolation="nearest"),
]
BAD_QUANTILES = [Bad("E504", t(3), 1.5), Bad("E205", t(3), 0.5, interpolation="cubic")]


@function(samples=QUANTILES, errors=BAD_QUANTILES)
def quantile(
    input: Tensor,
    q: Tensor,
    dim: Dim | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
):
    """Quantiles `q` (0 to 1) over `dim`, or over everything; nan if an element is nan."""
    return _quantile("quantile", False, input, q, dim, keepdim, interpolation)


@function(samples=QUANTILES, errors=BAD_QUANTILES)
def nanquantile(
    input: Tensor,
    q: Tensor,
    dim: Dim | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
):
    """Quantiles `q` (0 to 1) over `dim`, or over everything, of the elements that are not nan."""
    return _quantile("nanquantile", True, input, q, dim, keepdim, interpolation)


# -- covariance ------------------------------------------------------------------------------------


def _cov_weights(x, fweights, aweights):
    """The product of both weights, or None."""
    n = x.shape[1]
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and weights.shape != (n,):
            raise fail(
                "E308",
                f"`cov`: {name} of shape {shape_text(weights.shape)} for {n} observations",
                help=f"give one weight for each of the {n} columns",
            )
        if weights is not None and known(weights) and (value_of(weights) < 0).any():
            raise fail("E504", f"`cov`: {name} cannot be negative", help="weights are 0 or larger")
    if fweights is not None and is_float(fweights.dtype):
        raise fail(
            "E307",
            f"`cov`: fweights count observations, got {fweights.dtype.name}",
            help="use integers, or `aweights`",
        )
    if aweights is not None:
        return F.mul(fweights, aweights) if fweights is not None else aweights
    return fweights


@function(
    samples=[
        S(t(2, 4)),
        S(t(3)),
        S(t(2, 3), correction=0, aweights=t(3, low=0.5, grad=False)),
        S(t(2, 3), fweights=ints(3, low=1)),
    ],
    errors=[Bad("E308", t(2, 2, 2)), Bad("E504", t(2), fweights=ints(values=[1, -1]))],
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
        raise fail(
            "E308",
            f"`cov` takes at most 2 dims, got {shape_text(input.shape)}",
            help="rows are variables, columns are observations",
        )
    x = F.reshape(input, (1, -1)) if input.ndim < 2 else input
    weights = _cov_weights(x, fweights, aweights)
    total = number(float(x.shape[1])) if weights is None else F.sum(weights)
    weighted = x if weights is None else F.mul(x, weights)
    centered = F.sub(x, F.div(F.sum(weighted, (1,), True), total))
    lost = number(float(correction))
    if weights is not None and aweights is not None and correction != 0:
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


# -- histograms ------------------------------------------------------------------------------------


def _histc(x, bins, low, high):
    if low == high:
        low, high = (x.min(), x.max()) if x.size else (low, high)
        if not np.isfinite(low) or not np.isfinite(high):
            raise fail(
                "E504",
                f"`histc`: the range of the data is {low} to {high}",
                help="give finite `min` and `max`",
            )
        if low == high:
            low, high = low - 1, high + 1
    inside = x[(x >= low) & (x <= high)]
    at = ((inside - low) / (high - low) * bins).astype(np.int64)
    return np.bincount(np.minimum(at, bins - 1), minlength=bins).astype(x.dtype)


def _histc_shape(input, bins, low, high):
    require_float("histc", input)
    if bins < 1:
        raise fail("E309", f"`histc` with {bins} bins", help="`bins` must be at least 1")
    if not low <= high:
        raise fail("E504", f"`histc` from {low} to {high}", help="`max` must not be below `min`")
    return (bins,), input.dtype


@opaque(
    _histc,
    shape=_histc_shape,
    samples=[S(t(6), 4), S(t(2, 3), 3, -1, 1)],
    errors=[Bad("E309", t(3), 0), Bad("E504", t(3), 2, 1, 0)],
)
def histc(input: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0):
    """How many elements fall into each of `bins` equal intervals from `min` to `max` (0 0: all)."""


def _bincount_shape(input, weights, minlength):
    if input.dtype.kind not in "iu":
        raise fail(
            "E307",
            f"`bincount` needs integers, got {input.dtype.name}",
            help="convert first: `x.to(torch.int64)`",
        )
    if input.ndim != 1 or (weights is not None and weights.shape != input.shape):
        raise fail(
            "E308",
            f"`bincount` of shape {shape_text(input.shape)}",
            help="give one dim, and as many weights",
        )
    values = value_of(input)
    if minlength < 0 or (values < 0).any():
        raise fail(
            "E504", "`bincount` takes no negative numbers", help="shift the numbers to start at 0"
        )
    size = max(int(values.max()) + 1 if values.size else 0, minlength)
    if weights is None:
        return (size,), INT64
    return (size,), weights.dtype if weights.dtype == FLOAT32 else FLOAT64


def _bincount(x, weights, minlength):
    dtype = (
        np.int64 if weights is None else weights.dtype if weights.dtype == FLOAT32 else np.float64
    )
    return np.bincount(x, weights, minlength).astype(dtype)


@opaque(
    _bincount,
    shape=_bincount_shape,
    samples=[S(ints(5, high=4)), S(ints(3), t(3, grad=False), 5)],
    errors=[Bad("E307", t(3)), Bad("E504", ints(2, values=[-1, 2]))],
)
def bincount(input: Tensor, weights: Mask | None = None, minlength: int = 0):
    """How often each number 0, 1, 2 ... occurs, or the sum of its weights."""


def _histogram(x, bins, span, weight, density):
    edges = bins
    if isinstance(bins, int):
        low, high = span or ((x.min(), x.max()) if x.size else (0.0, 1.0))
        if low == high:
            low, high = low - 0.5, high + 0.5
        if not np.isfinite(low) or not np.isfinite(high):
            raise fail(
                "E504",
                f"`histogram`: the range of the data is {low} to {high}",
                help="give a finite `range`",
            )
        edges = np.linspace(low, high, bins + 1)
    weights = None if weight is None else weight.reshape(-1)
    counts, edges = np.histogram(x.reshape(-1), edges, weights=weights, density=density)
    return counts.astype(x.dtype), edges.astype(x.dtype)


def _histogram_shape(input, count, weight):
    require_float("histogram", input)
    if count < 1:
        raise fail("E309", f"`histogram` with {count} bins", help="give at least one bin")
    if weight is not None and weight.shape != input.shape:
        raise fail(
            "E308",
            f"`histogram`: weights {shape_text(weight.shape)} for {shape_text(input.shape)}",
            help="give one weight for each element",
        )
    return ((count,), input.dtype), ((count + 1,), input.dtype)


def _even_shape(input, bins, range, weight, density):
    if range is not None and (isinstance(range, float) or len(range) != 2 or range[0] > range[1]):
        raise fail("E504", f"`histogram`: range {range}", help="write `range=(low, high)`")
    return _histogram_shape(input, bins, weight)


def _given_shape(input, bins, weight, density):
    if bins.ndim != 1:
        raise fail(
            "E308",
            f"`histogram`: bin edges of shape {shape_text(bins.shape)}",
            help="list the edges in one dim",
        )
    return _histogram_shape(input, bins.shape[0] - 1, weight)


@opaque(
    _histogram,
    shape=_even_shape,
    fields=("hist", "bin_edges"),
    samples=[S(t(6, grad=False), 3), S(t(4, grad=False), 2, range=(-1.0, 1.0), density=True)],
    errors=[Bad("E309", t(3), 0), Bad("E504", t(3), 2, range=(1.0, 0.0))],
)
def histogram(
    input: Tensor,
    bins: int,
    *,
    range: Floats | None = None,
    weight: Mask | None = None,
    density: bool = False,
):
    """How many elements fall into each of `bins` equal intervals, and the edges of those."""


@opaque(
    lambda x, bins, weight, density: _histogram(x, bins, None, weight, density),
    name="histogram",
    key="histogram_edges",
    shape=_given_shape,
    fields=("hist", "bin_edges"),
    samples=[S(t(6, grad=False), t(3, values=[-1.0, 0.0, 1.0], grad=False))],
)
def _(input: Tensor, bins: Mask, *, weight: Mask | None = None, density: bool = False):
    """How many elements fall between neighbouring edges, and the edges."""
