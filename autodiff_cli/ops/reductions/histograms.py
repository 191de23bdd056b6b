"""Histograms and counts of elements."""

from __future__ import annotations

import numpy as np

from ...errors import fail, fault
from ...graph.declare import Floats, Mask, Scalar, Tensor, opaque
from ...graph.dtypes import FLOAT32, FLOAT64, INT64
from ...graph.op import value_of
from ...graph.samples import Bad, S, ints, t
from ..kernels.indices import check_dtypes
from ..kernels.rules import no_derivative, require_float


def _histc(x, bins, low, high):
    if low == high:
        low, high = (x.min(), x.max()) if x.size else (low, high)
        if low == high:
            low, high = low - 1, high + 1
    if not np.isfinite(high - low):
        raise fault("E504 range-data", "histc", low, high)
    inside = x[(x >= low) & (x <= high)]
    at = ((inside - low) / (high - low) * bins).astype(np.int64)
    return np.bincount(np.minimum(at, bins - 1), minlength=bins).astype(x.dtype)


def _histc_shape(input, bins, low, high):
    require_float("histc", input)
    if bins < 1:
        raise fault("E309 bins", "histc", bins)
    if not low <= high:
        raise fault("E504 histc-falls", low, high)
    return (bins,), input.dtype


@opaque(
    _histc,
    eager=True,
    shape=_histc_shape,
    samples=[S(t(6), 4), S(t(2, 3), 3, -1, 1)],
    errors=[Bad("E309", t(3), 0), Bad("E504", t(3), 2, 1, 0)],
)
def histc(input: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0):
    """How many elements fall into each of `bins` equal intervals from `min` to `max` (0 0: all)."""


def _bincount_shape(input, weights, minlength):
    if input.dtype.kind not in "iu":
        raise fault("E307 bincount-needs-integers", input)
    if input.ndim != 1:
        raise fault("E308 bincount-shape-input", input)
    if weights is not None and weights.shape != input.shape:
        raise fault("E308 bincount-weights", weights, input)
    values = value_of(input)
    if minlength < 0:
        raise fault("E504 bincount-minlength", minlength)
    if (values < 0).any():
        raise fault("E504 bincount-takes-no-negative")
    size = max(int(values.max()) + 1 if values.size else 0, minlength)
    return (size,), _bincount_dtype(values, weights)


def _bincount_dtype(x, weights):
    if weights is None or not x.size:
        return INT64
    return weights.dtype if weights.dtype == FLOAT32 else FLOAT64


def _bincount(x, weights, minlength):
    return np.bincount(x, weights, minlength).astype(_bincount_dtype(x, weights))


@opaque(
    _bincount,
    shape=_bincount_shape,
    grad_fn="NotImplemented",
    vjp=no_derivative("bincount"),
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
        if not np.isfinite(high - low):
            raise fault("E504 range-data", "histogram", low, high)
        edges = np.linspace(low, high, bins + 1)
    elif (np.diff(edges) < 0).any():
        raise fault("E504 histogram-edges-fall")
    weights = None if weight is None else weight.reshape(-1)
    counts, edges = np.histogram(x.reshape(-1), edges, weights=weights, density=density)
    return counts.astype(x.dtype), edges.astype(x.dtype)


def _histogram_shape(input, count, weight):
    require_float("histogram", input)
    if count < 1:
        raise fault("E309 bins", "histogram", count)
    if weight is not None and weight.shape != input.shape:
        raise fault("E308 histogram-weights-weight-input", weight, input)
    if weight is not None:
        check_dtypes("histogram", input, weight)
    return ((count,), input.dtype), ((count + 1,), input.dtype)


def _even_shape(input, bins, range, weight, density):
    if range is not None and (isinstance(range, float) or len(range) != 2 or range[0] > range[1]):
        raise fail("E504", f"`histogram`: range {range}", help="write `range=(low, high)`")
    return _histogram_shape(input, bins, weight)


def _given_shape(input, bins, weight, density):
    if bins.ndim != 1:
        raise fault("E308 histogram-bin-edges-shape", bins)
    check_dtypes("histogram", input, bins)
    return _histogram_shape(input, bins.shape[0] - 1, weight)


@opaque(
    _histogram,
    eager=True,
    shape=_even_shape,
    fields=("hist", "bin_edges"),
    samples=[S(t(6, grad=False), 3), S(t(4, grad=False), 2, range=(-1.0, 1.0), density=True)],
    errors=[Bad("E309", t(3), 0), Bad("E504", t(3), 2, range=(1.0, 0.0))],
    lacks="histogramdd float16",
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
