"""`masked.*`: reductions and normalizations of the elements that a mask keeps.

What the mask leaves out is replaced by the neutral element of the reduction, then PyTorch's plain
op is applied; that is also what its gradients show.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np

from ...errors import fault
from ...graph.declare import Dim, Dims, Dtype, Flag, Ints, Mask, Scalar, Tensor, function
from ...graph.dtypes import BOOL, FLOAT32, INT64, is_float
from ...graph.op import cast, number
from ...graph.params import Param, to_dims
from ...graph.registry import F
from ...graph.samples import Bad, S, bools, t
from ...graph.shapes import dims_of
from ...graph.state import STATE
from ..kernels.rules import refuse_bools, require_float


def fitted_mask(input, mask):
    """The mask in the shape of the input, or None."""
    if mask is None:
        return None
    if mask.dtype != BOOL:
        mask = F.ne(mask, 0)
    if mask.ndim > input.ndim:
        raise fault("E308 mask-more-dims-input", mask, input)
    return mask if mask.shape == input.shape else F.expand(mask, input.shape)


def kept(input, mask, neutral):
    """The input with `neutral`, which may be a function of it, where the mask is False."""
    mask = fitted_mask(input, mask)
    if mask is None:
        return input
    value = neutral(input) if callable(neutral) else neutral
    return F.where(mask, input, number(value, input.dtype))


def _lowest(input):
    if input.dtype == BOOL:
        raise fault("E307 needs-numbers-not-bools", "masked.amax")
    return -inf if is_float(input.dtype) else int(np.iinfo(input.dtype).min)


def _highest(input):
    if input.dtype == BOOL:
        raise fault("E307 needs-numbers-not-bools", "masked.amin")
    return inf if is_float(input.dtype) else int(np.iinfo(input.dtype).max)


def _all_dims(input, dim):
    return dims_of(input.shape, dim)


def _converted(input, dtype):
    return input if dtype is None else cast(input, dtype)


MASKED = (Param("dtype", "Dtype | None", None, True), Param("mask", "Mask | None", None, True))
REDUCING = (Param("keepdim", "Flag", False, True), *MASKED)
MASK = bools(2, 3, values=[[True, False, True], [True, True, True]])
REDUCED = [S(t(2, 3), mask=MASK), S(t(2, 3), 1, mask=MASK), S(t(2, 3), 0, keepdim=True), S(t())]
MISFIT = [Bad("E302", t(2, 3), mask=bools(2, 2)), Bad("E308", t(3), mask=bools(2, 3))]


def _declare_reduction(name, reduce, text):
    @function(
        name=f"masked.{name}", key=f"masked_{name}", samples=REDUCED, errors=MISFIT, more=REDUCING
    )
    def body(input: Tensor, dim: Dims | None = None, *more):
        keepdim, dtype, mask = more
        return reduce(_converted(input, dtype), _all_dims(input, dim), keepdim, mask)

    body.doc = f"{text} over `dim` of the elements that `mask` keeps."


def _counted(x, dims, keepdim, mask):
    """How many elements of `x` are kept."""
    mask = fitted_mask(x, mask)
    return F.sum(F.ones_like(x, dtype=INT64) if mask is None else mask, dims, keepdim)


def _sum(x, dims, keepdim, mask):
    return F.sum(kept(x, mask, 0), dims, keepdim)


def _mean(x, dims, keepdim, mask):
    require_float("masked.mean", x, "ValueError")
    return F.div(_sum(x, dims, keepdim, mask), _counted(x, dims, keepdim, mask))


for _row in (
    ("sum", _sum, "Sum"),
    (
        "amax",
        lambda x, dims, keepdim, mask: F.amax(kept(x, mask, _lowest), dims, keepdim),
        "Largest element",
    ),
    (
        "amin",
        lambda x, dims, keepdim, mask: F.amin(kept(x, mask, _highest), dims, keepdim),
        "Smallest element",
    ),
    ("mean", _mean, "Mean"),
    (
        "logsumexp",
        lambda x, dims, keepdim, mask: F.to(
            F.logsumexp(kept(x, mask, _lowest), dims, keepdim), x.dtype
        ),
        "Logarithm of the sum of exponentials",
    ),
):
    _declare_reduction(*_row)


@function(name="masked.prod", samples=REDUCED, errors=MISFIT, more=REDUCING)
def masked_prod(input: Tensor, dim: Ints | None = None, *more):
    """Product over `dim` of the elements that `mask` keeps."""
    keepdim, dtype, mask = more
    x = kept(_converted(input, dtype), mask, 1)
    if dtype is None and not is_float(x.dtype):
        x = cast(x, INT64)
    if not x.shape:
        return x if dim in (None, ()) else F.prod(x, dim, keepdim)
    for one in sorted(_all_dims(input, None if dim is None else to_dims(dim, input)), reverse=True):
        x = F.prod(x, one, keepdim)
    return x


def _declare_arg(name, pick, neutral, word):
    @function(
        name=f"masked.{name}",
        key=f"masked_{name}",
        samples=[S(t(2, 3), 1, mask=MASK), S(t(2, 3), mask=MASK)],
        more=REDUCING,
    )
    def body(input: Tensor, dim: Dim | None = None, *more):
        keepdim, dtype, mask = more
        found = getattr(F, pick)(kept(input, mask, neutral), dim, keepdim)
        return cast(found, dtype or input.dtype)

    body.doc = f"Where the {word} of the elements that `mask` keeps is."


_declare_arg("argmax", "argmax", _lowest, "largest")
_declare_arg("argmin", "argmin", _highest, "smallest")


@function(name="masked.median", samples=[S(t(2, 3), 1, mask=MASK)], more=REDUCING)
def masked_median(input: Tensor, dim: Dim = -1, *more):
    """Median along `dim` of the elements that `mask` keeps; nan if there are none."""
    keepdim, _, mask = more  # PyTorch takes a dtype there and looks at it nowhere
    x = input if is_float(input.dtype) else cast(input, STATE.default_dtype)
    return F.to(F.nanmedian_dim(kept(x, mask, nan), dim, keepdim)[0], input.dtype)


@function(
    name="masked.norm",
    samples=[S(t(2, 3), 2.0, 1, mask=MASK), S(t(2, 3), -inf, mask=MASK), S(t(2, 3), 1.0)],
    more=REDUCING,
)
def masked_norm(input: Tensor, ord: Scalar = 2.0, dim: Dims | None = None, *more):
    """Norm of order `ord` over `dim` of the elements that `mask` keeps."""
    keepdim, dtype, mask = more
    x = kept(input, mask, inf if ord == -inf else 0)
    return F.vector_norm(x, ord, _all_dims(input, dim), keepdim, dtype=dtype)


# -- variance --------------------------------------------------------------------------------------


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise fault("E205 give-unbiased-correction")
    lost = (1.0 if unbiased in (None, True) else 0.0) if correction is None else float(correction)
    dims = _all_dims(input, dim)
    x = _converted(input, dtype)
    refuse_bools("masked.var", x)
    x = x if is_float(x.dtype) else cast(x, FLOAT32)
    n = _counted(x, dims, True, mask)
    centered = F.sub(x, F.div(_sum(x, dims, True, mask), n))
    total = _sum(F.mul(centered, centered), dims, keepdim, mask)
    n = cast(n if keepdim else F.reshape(n, total.shape), x.dtype)
    return F.div(total, F.clamp_min(F.sub(n, lost), 0.0) if lost else n)


def _declare_variance(name, finish, text):
    @function(
        name=f"masked.{name}",
        key=f"masked_{name}",
        samples=[*REDUCED[:3], S(t(2, 3), 1, False, mask=MASK), S(t(2, 3), correction=0)],
        more=(Param("correction", "Scalar | None", None, True), *REDUCING),
    )
    def body(input: Tensor, dim: Dims | None = None, unbiased: Flag | None = None, *more):
        return finish(_variance(input, dim, unbiased, *more))

    body.doc = f"{text} over `dim` of the elements that `mask` keeps."


_declare_variance("var", lambda variance: variance, "Variance")
_declare_variance("std", lambda variance: F.sqrt(variance), "Standard deviation")


# -- along one dim ---------------------------------------------------------------------------------


INFINITE = "what a mask leaves out is minus infinity, where a difference is nan"
ALONG = [S(t(2, 3), 1, mask=MASK), S(t(2, 3), 0), S(t(), 0)]


LEFT_OUT = [S(t(2, 3), 1, mask=MASK, order=0, because=INFINITE), *ALONG[1:]]


def _declare_along(name, apply, neutral, text):
    samples = LEFT_OUT if name == "log_softmax" else ALONG

    @function(name=f"masked.{name}", key=f"masked_{name}", samples=samples, more=MASKED)
    def body(input: Tensor, dim: Dim, *more):
        dtype, mask = more
        x = kept(_converted(input, dtype), mask, neutral)
        if apply.startswith("cum") and not is_float(x.dtype):
            return getattr(F, apply)(x, dim, dtype=x.dtype)
        return getattr(F, apply)(x, dim)

    body.doc = f"{text} along `dim` of the elements that `mask` keeps."


for _along in (
    ("cumsum", "cumsum", 0, "Running sums"),
    ("cumprod", "cumprod", 1, "Running products"),
    ("softmax", "softmax", -inf, "Softmax"),
    ("log_softmax", "log_softmax", -inf, "Logarithm of the softmax"),
    ("softmin", "softmin", inf, "Softmax of the negative"),
):
    _declare_along(*_along)


@function(name="masked.normalize", samples=[S(t(2, 3), 2.0, 1, mask=MASK), S(t(2, 3), 1.0, 0)])
def masked_normalize(
    input: Tensor,
    ord: Scalar,
    dim: Dim,
    *,
    eps: float = 1e-12,
    dtype: Dtype | None = None,
    mask: Mask | None = None,
):
    """Vectors along `dim` scaled to norm 1, of the elements that `mask` keeps."""
    size = masked_norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return F.div(kept(input, mask, 0), F.maximum(size, number(eps, size.dtype)))


@function(
    name="masked.logaddexp",
    samples=[
        S(t(2, 3), t(2, 3)),
        S(t(2, 3), t(2, 3), input_mask=MASK, order=0, because=INFINITE),
        S(t(3), t(3), other_mask=bools(3), order=0, because=INFINITE),
    ],
)
def masked_logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Dtype | None = None,
    input_mask: Mask | None = None,
    other_mask: Mask | None = None,
):
    """`logaddexp` of the elements that each mask keeps."""
    both = kept(input, input_mask, _lowest), kept(other, other_mask, _lowest)
    return F.to(F.logaddexp(*both), dtype or input.dtype)
