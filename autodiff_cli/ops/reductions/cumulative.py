"""Running sums, products, extremes and differences along one dim."""

from __future__ import annotations

import numpy as np

from ...errors import fail, fault
from ...graph.declare import Dim, Dtype, Scalar, Tensor, composite, function, opaque
from ...graph.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from ...graph.op import cast
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import reduced_shape
from ..kernels.rules import (
    recorded_as_float,
    refuse_bools,
    require_float,
    shifted,
    without_zeros,
)

TIES = t(4, values=[1.0, 2.0, 2.0, 1.0])
ALONG = (S(t(2, 3), 1), S(t(4), 0), S(t(), 0))


# The dtypes in which PyTorch adds up along a dim.
_WIDER = {"float16": FLOAT32, "float32": FLOAT64}


def _running_dtype(input, dtype):
    return dtype or (INT64 if input.dtype.kind in "iub" else input.dtype)


def _running_shape(input, dim, dtype):
    return input.shape, _running_dtype(input, dtype)


def _running(ufunc):
    def kernel(x, dim, dtype):
        dtype = _running_dtype(x, dtype)
        x = np.asarray(x, dtype)
        wide = _WIDER.get(dtype.name, dtype)
        return (ufunc.accumulate(x, axis=dim, dtype=wide) if x.ndim else x).astype(dtype)

    return kernel


def _in_dtype(name, input, dtype):
    """The text in a dtype that is asked for."""
    return f"np.{name}(input, dim, dtype=dtype)" if input.shape and dtype is not None else None


def _sums(x, dim, dtype):
    """Running sums that begin at 0: no zero among them has a sign."""
    out = _running(np.add)(x, dim, dtype)
    if x.ndim:
        first = out[(slice(None),) * dim + (slice(1),)]
        if np.signbit(first[first == 0]).any():
            out += 0
    return out


@opaque(
    _sums,
    numpy=lambda input, dim, dtype: (
        _in_dtype("cumsum", input, dtype)
        or ("np.cumsum(input, dim)" if input.shape and input.dtype.kind == "f" else None)
    ),
    shape=_running_shape,
    check=recorded_as_float("cumsum"),
    inplace=True,
    samples=[*ALONG, S(ints(3), 0)],
    errors=[Bad("E304", t(2, 3), 2, words="dim 2")],
    phrase="the sum of upstream from each place to the end",
    vjp=lambda g, out, input, dim, dtype: (
        F.flip(F.cumsum(F.flip(g, (dim,)), dim), (dim,)) if input.shape else g,
    ),
    lacks="cumsum_out_cpu bool",
)
def cumsum(input: Tensor, dim: Dim, *, dtype: Dtype | None = None):
    """Running sums along `dim`."""


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


@opaque(
    _recurrence,
    jax="jax.lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), "
    "(decay, input), axis=dim)[1]",
    public=False,
    shape=lambda decay, input, dim: (input.shape, input.dtype),
    samples=[S(t(2, 3), t(2, 3), 1)],
)
def recurrence(decay: Tensor, input: Tensor, dim: Dim):
    """`out[i] = decay[i] * out[i - 1] + input[i]` along `dim`, from 0."""


@recurrence.vjp
def _(g, out, decay, input, dim):
    to_input = backwards(decay, g, dim)
    return F.mul(to_input, shifted(out, dim, 0.0)), to_input


def backwards(decay, g, dim):
    """What flows back through a recurrence: itself, from the end, with the decay of the next."""
    following = shifted(F.flip(decay, (dim,)), dim, 0.0)
    return F.flip(F.recurrence(following, F.flip(g, (dim,)), dim), (dim,))


@opaque(
    _running(np.multiply),
    numpy=lambda input, dim, dtype: _in_dtype("cumprod", input, dtype),
    shape=_running_shape,
    check=recorded_as_float("cumprod"),
    inplace=True,
    samples=[*ALONG, S(t(4, values=[2.0, 0.0, 3.0, 0.0]), 0)],
    phrase="products of the others, summed from each place to the end",
    saves="operands, results",
    lacks="cumprod_out_cpu bool",
)
def cumprod(input: Tensor, dim: Dim, *, dtype: Dtype | None = None):
    """Running products along `dim`; slopes are right at zeros, too."""


@cumprod.vjp
def _(g, out, input, dim, dtype):
    if input.numel < 2:
        return (g,)
    g = cast(g, input.dtype)
    zeros, safe = without_zeros(input)
    carried = F.mul(backwards(input, g, dim), shifted(out, dim, 1.0))
    summed = F.flip(F.cumsum(F.flip(F.mul(out, g), (dim,)), dim), (dim,))
    return (F.where(zeros, carried, F.div(summed, safe)),)


# -- running extremes ------------------------------------------------------------------------------


def _reached(ufunc, beats):
    """Where the running extreme was last attained; nan beats everything."""

    def kernel(x, dim):
        if not x.ndim:
            return np.zeros((), np.int64)
        best = ufunc.accumulate(x, axis=dim)
        places = np.arange(x.shape[dim]).reshape([-1 if i == dim else 1 for i in range(x.ndim)])
        hit = beats(x, best) | np.isnan(x)
        return np.maximum.accumulate(np.where(hit, places, 0), axis=dim)

    return kernel


def _declare_running_extreme(name, ufunc, beats, word):
    @opaque(
        _reached(ufunc, beats),
        key=f"{name}_index",
        public=False,
        shape=lambda input, dim: (input.shape, INT64),
        samples=[S(t(2, 3), 1)],
        kink=lambda input, dim: F.gaps(input, dim),
    )
    def index(input: Tensor, dim: Dim):
        """Where a running extreme was last attained."""

    @composite(
        phrase="the elements that were chosen get the upstream gradient",
        key=name,
        fields=("values", "indices"),
        samples=[*ALONG, S(TIES, 0, order=0, because="the slope jumps at ties")],
        saves="input, result 1",
    )
    def running(input: Tensor, dim: Dim):
        at = index(input, dim)
        return F.gather(input, dim, at), at

    running.doc = (
        f"Running {word} along `dim` and where they were last attained, "
        "which is where the slope goes."
    )


_declare_running_extreme("cummax", np.maximum, np.greater_equal, "maxima")
_declare_running_extreme("cummin", np.minimum, np.less_equal, "minima")


# -- running log-sum-exp ---------------------------------------------------------------------------


def _float_shape(input, dim):
    require_float("logcumsumexp", input)
    return input.shape, input.dtype


def _share_of_sums(move, input, dim):
    """PyTorch's formula in forward mode, with what it adds to the sums."""
    if not input.shape:
        return move
    sizes = F.exp(F.sub(input, F.amax(input, (dim,), True)))
    return F.div(F.cumsum(F.mul(sizes, move), dim), F.add(F.cumsum(sizes, dim), 1e-13))


@opaque(
    lambda x, dim: np.logaddexp.accumulate(x, axis=dim) if x.ndim else x.copy(),
    shape=_float_shape,
    samples=ALONG,
    properties=frozenset({"saturates"}),
    phrase="upstream times the share of each element in the sums it is in",
    saves="operands, results",
    forward=lambda moves, out, input, dim: _share_of_sums(moves[0], input, dim),
)
def logcumsumexp(input: Tensor, dim: Dim):
    """Logarithms of the running sums of exponentials along `dim`, without overflow."""


@logcumsumexp.vjp
def _(g, out, input, dim):
    if not input.shape:
        return (g,)
    n = input.shape[dim]
    if n:
        here, after = F.narrow(out, dim, 0, n - 1), F.narrow(out, dim, 1, n - 1)
        decay = F.where(
            F.eq(here, after), 1.0, F.exp(F.sub(here, after))
        )  # also where both are inf
        first = F.zeros_like(F.narrow(out, dim, 0, 1))
        g = backwards(F.cat((first, decay), dim), g, dim)
    return (F.mul(g, F.exp(F.sub(input, out))),)


# -- differences and areas -------------------------------------------------------------------------


@composite(
    public=False,
    grad_fn="CopyBackwards",
    vjp=lambda g, out, input: g,
    samples=[S(t(2, 3))],
    phrase="the upstream gradient",
)
def copied(input: Tensor):
    """The same values, written into a new tensor."""
    return F.clone(input)


@composite(
    public=False,
    grad_fn="MulBackward1",
    vjp=lambda g, out, input, number: F.mul(g, number),
    samples=[S(t(2, 3), 2.5)],
    phrase="upstream times the number",
)
def mul_by(input: Tensor, number: Scalar):
    """A tensor times a Python number."""
    return F.mul(input, number)


@function(
    samples=[
        S(t(4)),
        S(t(2, 4), 2),
        S(t(2, 3), dim=0),
        S(t(2, 2), prepend=t(2, 1), append=t(2, 2)),
    ],
    errors=[Bad("E308", t()), Bad("E309", t(3), -1)],
)
def diff(
    input: Tensor,
    n: int = 1,
    dim: Dim = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
):
    """Differences of neighbours along `dim`, taken `n` times."""
    if not input.shape:
        raise fault("E308 diff-needs-least-dim")
    if n < 0:
        raise fail("E309", f"`diff` cannot be taken {n} times", help="`n` must be 0 or more")
    if n == 0:
        return F.copied(input)
    parts = tuple(part for part in (prepend, input, append) if part is not None)
    x = F.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(min(n, x.shape[dim])):
        later, earlier = _neighbours(x, dim)
        x = F.logical_xor(later, earlier) if x.dtype == BOOL else F.sub(later, earlier)
    return x


def _neighbours(x, dim):
    """Elements without the first, and without the last, along `dim`."""
    rest = max(x.shape[dim] - 1, 0)
    return F.narrow(x, dim, min(1, x.shape[dim]), rest), F.narrow(x, dim, 0, rest)


def _steps(y, x, dim):
    """Distances between sample points `x`, laid out so that they broadcast against `y`."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise fault("E308 sample-points-values-along", x, y.shape[dim], dim, y)
        x = F.reshape(x, tuple(-1 if i == dim else 1 for i in range(y.ndim)))
    elif x.ndim < y.ndim:
        x = F.reshape(x, (*(1,) * (y.ndim - x.ndim), *x.shape))
    later, earlier = _neighbours(x, dim)
    return F.sub(later, earlier)


AREAS = (S(t(4)), S(t(2, 3), dx=0.5, dim=0), S(t(2, 3), t(3)), S(t(2, 3), t(2, 3), dim=0))


def _pairs(y, x, dx, dim, name):
    """Sums of neighbours, times their distance when sample points are given."""
    if not y.shape:
        raise fault("E308 needs-least-dim", name)
    for part in (y,) if x is None else (y, x):
        refuse_bools(name, part)
    if x is not None and dx is not None:
        raise fault("E205 takes-or-not-both", name)
    later, earlier = _neighbours(y, dim)
    both = F.add(earlier, later)
    return both if x is None else F.mul(_steps(y, x, dim), both)


@function(
    aliases=["trapz"],
    method=False,
    samples=AREAS,
    errors=[Bad("E308", t(3), t(4))],
)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Scalar | None = None, dim: Dim = -1):
    """Area under `y` by the trapezoid rule, with sample points `x` or their distance `dx`."""
    if y.shape and not y.shape[dim]:
        return F.zeros(reduced_shape(y.shape, (dim,), False), dtype=y.dtype)
    pairs = _pairs(y, x, dx, dim, "trapezoid")
    if x is not None:
        return F.div_by(F.sum(pairs, (dim,)), 2.0)
    ends = F.add(F.select(y, dim, 0), F.select(y, dim, -1))
    return F.mul_by(F.sub(F.sum(y, (dim,)), F.mul_by(ends, 0.5)), 1.0 if dx is None else dx)


@function(
    like=trapezoid,
    method=False,
    samples=AREAS,
    errors=trapezoid.errors,
)
def cumulative_trapezoid(y, x, dx, dim):
    """Running area under `y` by the trapezoid rule."""
    pairs = _pairs(y, x, dx, dim, "cumulative_trapezoid")
    if x is not None:
        return F.div_by(F.cumsum(pairs, dim), 2.0)
    return F.cumsum(F.mul_by(pairs, (1.0 if dx is None else dx) * 0.5), dim)
