"""Running sums, products, extremes and differences along one dim."""

from __future__ import annotations

import numpy as np

from ..graph.declare import Dim, Dtype, Tensor, opaque
from ..graph.dtypes import INT64
from ..graph.registry import F
from ..graph.rules import shifted
from ..graph.samples import Bad, S, ints, t

ALONG = (S(t(2, 3), 1), S(t(4), 0), S(t(), 0))


def _running_dtype(input, dtype):
    return dtype or (INT64 if input.dtype.kind in "iub" else input.dtype)


def _running_shape(input, dim, dtype):
    return input.shape, _running_dtype(input, dtype)


def _running(ufunc):
    def kernel(x, dim, dtype):
        dtype = _running_dtype(x, dtype)
        return ufunc.accumulate(x, axis=dim, dtype=dtype) if x.ndim else x.astype(dtype)

    return kernel


@opaque(_running(np.add), shape=_running_shape, inplace=True, samples=[*ALONG, S(ints(3), 0)],
        errors=[Bad("E304", t(2, 3), 2, words="dim 2")])
def cumsum(input: Tensor, dim: Dim, *, dtype: Dtype | None = None):
    """Running sums along `dim`."""


@cumsum.vjp
def _(g, out, input, dim, dtype):
    return (F.flip(F.cumsum(F.flip(g, (dim,)), dim), (dim,)) if input.shape else g,)


def _recurrence(decay, input, dim):
    """Doubling: after k rounds each element holds the recurrence over its last 2**k steps."""
    a = np.moveaxis(np.array(decay), dim, 0)
    b = np.moveaxis(np.array(input), dim, 0)
    step = 1
    while step < len(b):
        b[step:] = b[step:] + a[step:] * b[:-step]
        a[step:] = a[step:] * a[:-step]
        step *= 2
    return np.moveaxis(b, 0, dim)


@opaque(_recurrence, method=False, shape=lambda decay, input, dim: (input.shape, input.dtype),
        samples=[S(t(2, 3), t(2, 3), 1)])
def recurrence(decay: Tensor, input: Tensor, dim: Dim):
    """`out[i] = decay[i] * out[i - 1] + input[i]` along `dim`, from 0."""


@recurrence.vjp
def _(g, out, decay, input, dim):
    to_input = _backwards(decay, g, dim)
    return F.mul(to_input, shifted(out, dim, 0.0)), to_input


def _backwards(decay, g, dim):
    """What flows back through a recurrence: itself, from the end, with the decay of the next."""
    following = shifted(F.flip(decay, (dim,)), dim, 0.0)
    return F.flip(F.recurrence(following, F.flip(g, (dim,)), dim), (dim,))


@opaque(_running(np.multiply), shape=_running_shape, inplace=True,
        samples=[*ALONG, S(t(4, values=[2.0, 0.0, 3.0, 0.0]), 0)])
def cumprod(input: Tensor, dim: Dim, *, dtype: Dtype | None = None):
    """Running products along `dim`; slopes are right at zeros, too."""


@cumprod.vjp
def _(g, out, input, dim, dtype):
    if not input.shape:
        return (g,)
    return (F.mul(_backwards(input, g, dim), shifted(out, dim, 1.0)),)
