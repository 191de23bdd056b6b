"""Reductions over dims: sums, means, products, extremes, truth.

Functions named like Python's built-ins carry a trailing underscore here; their keys do not.
"""

from __future__ import annotations

import numpy as np

from ...errors import fail, fault
from ...graph.declare import (
    AllDims,
    Dim,
    Dims,
    Dtype,
    StaticDim,
    Tensor,
    composite,
    function,
    opaque,
    reduction,
)
from ...graph.dtypes import BOOL, FLOAT16, INT64, UINT8, is_float
from ...graph.op import cast
from ...graph.registry import F
from ...graph.samples import Bad, S, bools, ints, t
from ...graph.shapes import dims_of, reduced_count, reduced_shape
from ...graph.strides import contiguous_strides
from ..kernels.pytorch_sum_order import noted, small_sum
from ..kernels.rules import (
    as_float,
    picked,
    read_evenly,
    recorded_as_float,
    require_float,
    restored,
    shared_by_equal,
    shifted,
    spread,
    without_zeros,
)

DIMS = (S(t(2, 3)), S(t(2, 3), dim=1), S(t(2, 3, 4), dim=(0, -1), keepdim=True), S(t()))
TIES = t(2, 3, values=[[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
# The kernel takes `(x, dim, keepdim, ...)`, and of the results of parts gives that of the whole.
PARTIAL = frozenset({"partial"})
JUMP = "the slope jumps at ties"


def one(dim):
    """An optional dim as a tuple of dims."""
    return None if dim is None else (dim,)


def require_elements(name, input, dim):
    """E308 for an extreme of no elements."""
    if dim and input.shape:
        for d in dim:
            if input.shape[d] == 0:
                raise fault("E308 over-dim-shape", name, d, input)
    elif not input.numel:
        raise fault("E308 empty-tensor-shape-2", name, input)


# -- sums and means --------------------------------------------------------------------------------


def _name(full, dims):
    return lambda input, dim=None, *rest: full if dim is None else dims


def _sum_dtype(input, dtype=None):
    return dtype or (INT64 if input.dtype.kind in "iub" else input.dtype)


def _sum(x, dim, keepdim, dtype=None, note=None):
    total = small_sum(x, dim or None, note) if dtype is None else None
    if total is None:
        total = noted(note, np.add.reduce, x, dim or None, _sum_dtype(x, dtype))
    return total.reshape(reduced_shape(x.shape, dim, keepdim))


@reduction(
    _sum,
    dtype=_sum_dtype,
    numpy="np.sum(input, axis=dim or None, dtype=dtype, keepdims=keepdim)",
    properties=PARTIAL | {"noted"},
    check=recorded_as_float("sum"),
    grad_fn=_name("SumBackward0", "SumBackward1"),
    samples=[
        *DIMS,
        S(ints(2, 3)),
        S(t(3), dtype=np.dtype("float32"), order=0, because="computed in single precision"),
    ],
    errors=[Bad("E304", t(2, 3), dim=2, words="dim 2")],
    phrase="every element gets the upstream gradient",
    vjp=lambda g, out, input, dim, keepdim, dtype: (spread(g, input, dim),),
)
def sum_(
    input: Tensor, dim: AllDims | None = None, keepdim: bool = False, *, dtype: Dtype | None = None
):
    """Sum over `dim`, or over everything; integers and bools sum to int64."""


@composite(
    like=sum_,
    grad_fn=_name("MeanBackward0", "MeanBackward1"),
    samples=DIMS,
    errors=[Bad("E307", ints(3), words="int64")],
    phrase="every element gets an equal share of the upstream gradient",
)
def mean(input, dim, keepdim, dtype):
    """Mean over `dim`, or over everything; nan of no elements."""
    if dtype is None:
        require_float("mean", input, "RuntimeError")
    elif not is_float(dtype):
        raise fail("E307", f"`mean` cannot give {dtype.name}", help="use a floating point dtype")
    return F.div(F.sum(input, dim, keepdim, dtype=dtype), reduced_count(input.shape, dim))


@mean.vjp
def _(g, out, input, dim, keepdim, dtype):
    share = spread(F.div(g, reduced_count(input.shape, dim)), input, dim)
    share.strides = contiguous_strides(share.shape)  # PyTorch divides what it has spread
    return (share,)


@composite(
    samples=[S(t(2, 3)), S(t(2, 3), dim=1), S(t(3, values=[1.0, np.nan, 2.0]))],
    phrase="every element that is a number gets the upstream gradient",
)
def nansum(
    input: Tensor, dim: Dims | None = None, keepdim: bool = False, *, dtype: Dtype | None = None
):
    """Sum that takes nan for 0."""
    kept = F.where(F.isnan(input), 0, input) if is_float(input.dtype) else input
    return F.sum(kept, dim, keepdim, dtype=dtype)


@function(
    like=nansum,
    samples=nansum.samples,
    errors=[Bad("E307", ints(3))],
    lacks="ints bool: nanmean(): could not infer output dtype. Optional dtype must be either a "
    "floating point or complex dtype. Got: {0}",
)
def nanmean(input, dim, keepdim, dtype):
    """Mean of the elements that are not nan."""
    require_float("nanmean", input, "RuntimeError")
    counted = F.sum(F.logical_not(F.isnan(F.detach(input))), dim, keepdim)
    return F.div(F.nansum(input, dim, keepdim, dtype=dtype), counted)


# -- products --------------------------------------------------------------------------------------


def _prod(x, dim, keepdim, dtype=None):
    axis = dim if dim is not None and x.ndim else None
    dtype = _sum_dtype(x, dtype)
    if dtype == FLOAT16:  # rounded after each factor, as in PyTorch
        last = np.multiply.accumulate(np.insert(x, 0, 1, axis), axis or 0, dtype).take(-1, axis)
        return last.reshape(reduced_shape(x.shape, one(axis), keepdim))
    return np.multiply.reduce(x, axis=axis, dtype=dtype, keepdims=keepdim)


ZEROS = S(t(2, 3, values=[[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]]), 1)


@opaque(
    _prod,
    shape=lambda input, dim, keepdim, dtype: (
        reduced_shape(input.shape, one(dim), keepdim),
        _sum_dtype(input, dtype),
    ),
    check=recorded_as_float("prod"),
    grad_fn=_name("ProdBackward0", "ProdBackward1"),
    samples=[S(t(2, 3)), S(t(2, 3), 1, True), S(t()), ZEROS],
    phrase="upstream times the product of the other elements",
    saves="operands, results",
)
def prod(
    input: Tensor, dim: Dim | None = None, keepdim: bool = False, *, dtype: Dtype | None = None
):
    """Product over `dim`, or over everything; slopes are right at zeros, too."""


@prod.vjp
def _(g, out, input, dim, keepdim, dtype):
    if not input.shape:
        return (g,)
    input = cast(input, out.dtype)
    if dim is None:
        others = F.reshape(F.prod_of_others(F.reshape(input, (-1,)), 0), input.shape)
    else:
        others = F.prod_of_others(input, dim)
    zeros, safe = without_zeros(input)
    slope = F.where(zeros, others, F.div(restored(out, input, one(dim)), safe))
    return (F.mul(spread(g, input, one(dim)), slope),)


@composite(public=False, samples=[S(t(2, 3), 1), ZEROS])
def prod_of_others(input: Tensor, dim: Dim):
    """For each element the product of all others along `dim`, without division."""

    def before(x):
        return shifted(F.cumprod(x, dim), dim, 1.0)

    return F.mul(before(input), F.flip(before(F.flip(input, (dim,))), (dim,)))


# -- extremes --------------------------------------------------------------------------------------


def _extreme_shape(name):
    def shape(input, dim, keepdim):
        require_elements(name, input, dim)
        return reduced_shape(input.shape, dim, keepdim), input.dtype

    return shape


def _shared(g, out, input, dim, keepdim):
    """Slope of an extreme: shared evenly by all elements that attain it."""
    hit = F.eq(input, restored(out, input, dim))
    return (F.div(F.mul(spread(g, input, dim), hit), F.sum(hit, dim or None, True)),)


def _lead(input, extreme, dim):
    """How far each element is from the extreme one; 0 where several are."""
    away = F.abs(input - extreme(input, dim, True))
    first = F.eq(away, 0)
    alone = F.logical_and(first, F.eq(F.sum(first, dim, True), 1))
    return F.where(alone, float("inf"), away)


EXTREMES = [*DIMS, S(TIES, 1, order=0, because=JUMP), S(TIES, order=0, because=JUMP)]
EMPTY = [Bad("E308", t(0), words="empty"), Bad("E308", t(2, 0), dim=1, words="dim 1")]


def _declare_extreme_over(name, kernel, word):
    @reduction(
        lambda x, dim, keepdim: kernel(x, axis=dim or None, keepdims=keepdim),
        key=name,
        shape=_extreme_shape(name),
        properties=PARTIAL | {"selects"},
        vjp=_shared,
        samples=EXTREMES,
        errors=EMPTY,
        kink=lambda input, dim, keepdim: _lead(input, getattr(F, name), dim),
    )
    def extreme(input: Tensor, dim: Dims | None = (), keepdim: bool = False):
        pass

    extreme.doc = f"{word} element over `dim`, or over everything; ties share the slope evenly."


_declare_extreme_over("amax", np.max, "Largest")
_declare_extreme_over("amin", np.min, "Smallest")


FULL = [S(t(2, 3)), S(t()), S(TIES, order=0, because=JUMP), S(ints(2, 3))]
BY_DIM = [S(t(2, 3), 1), S(t(2, 3), 0, keepdim=True), S(TIES, 1, order=0, because=JUMP), S(t(), 0)]


def _declare_extreme(name, extreme, place, pairwise, superlative, comparative):
    """`max` or `min` in its three forms; the first that takes the arguments is meant."""

    def extreme_of(input, dim=(), keepdim=False):
        return getattr(F, extreme)(input, dim, keepdim)

    @composite(
        name=name,
        key=f"{name}_full",
        phrase="shared evenly by the elements that are it",
        grad_fn=f"{name.capitalize()}Backward1",
        samples=FULL,
        errors=EMPTY[:1],
        vjp=shared_by_equal,
        forward=read_evenly,
        kink=lambda input: _lead(input, extreme_of, ()),
        properties=frozenset({"selects"}),
    )
    def full(input: Tensor):
        require_elements(name, input, None)
        return extreme_of(input)

    full.doc = f"{superlative} of all elements; ties share the slope evenly."

    @composite(
        name=name,
        key=f"{name}_dim",
        phrase="the elements that were chosen get the upstream gradient",
        grad_fn=f"{name.capitalize()}Backward0",
        fields=("values", "indices"),
        saves="result 1",
        samples=BY_DIM,
        errors=EMPTY[1:],
        kink=lambda input, dim, keepdim: _lead(input, extreme_of, (dim,)),
        properties=frozenset({"selects"}),
    )
    def along(input: Tensor, dim: StaticDim, keepdim: bool = False):
        require_elements(name, input, (dim,))
        counted = F.to(input, UINT8) if input.dtype == BOOL else input
        return picked(input, dim, getattr(F, place)(counted, dim, True), keepdim)

    along.doc = (
        f"{superlative} elements along `dim` and where they are; the slope goes to the picked ones."
    )

    @function(
        name=name, key=f"{name}_other", samples=[S(t(2, 3), t(3)), S(ints(2), ints(values=1))]
    )
    def pairs(input: Tensor, other: Tensor):
        return getattr(F, pairwise)(input, other)

    pairs.doc = f"The {comparative} of two tensors, element by element: `{pairwise}`."


_declare_extreme("max", "amax", "argmax", "maximum", "Largest", "larger")
_declare_extreme("min", "amin", "argmin", "minimum", "Smallest", "smaller")


@composite(
    fields=("min", "max"),
    samples=[S(t(2, 3)), S(t(2, 3), dim=1), S(TIES, dim=1, keepdim=True, order=0, because=JUMP)],
    properties=frozenset({"selects"}),
    phrase="the elements that were chosen get the upstream gradient",
)
def aminmax(input: Tensor, *, dim: Dim | None = None, keepdim: bool = False):
    """Smallest and largest elements together; ties share the slope evenly."""
    dims = () if dim is None else (dim,)
    require_elements("aminmax", input, dims)
    return F.amin(input, dims, keepdim), F.amax(input, dims, keepdim)


def _declare_place(kernel, word):
    name = kernel.__name__

    def shape(input, dim, keepdim):
        require_elements(name, input, one(dim))
        return reduced_shape(input.shape, one(dim), keepdim), INT64

    @opaque(
        lambda x, dim, keepdim: kernel(x, axis=dim, keepdims=keepdim),
        key=name,
        shape=shape,
        jax=lambda input, dim, keepdim: None if input.shape else "np.zeros((), int)",
        samples=[S(t(2, 3)), S(t(2, 3), 1), S(TIES, 1, True)],
        errors=EMPTY,
        lacks=f"bool: {name}(): does not support bool input",
    )
    def place(input: Tensor, dim: Dim | None = None, keepdim: bool = False):
        pass

    place.doc = f"Where the {word} element is: the first of equal ones."


_declare_place(np.argmax, "largest")
_declare_place(np.argmin, "smallest")


# -- truth -----------------------------------------------------------------------------------------


def _truth_dtype(input):
    return UINT8 if input.dtype == UINT8 else BOOL


def _truth(ufunc):
    def kernel(x, dim, keepdim):
        return ufunc.reduce(x, axis=dim, keepdims=keepdim).astype(_truth_dtype(x))

    return kernel


def _truth_text(name):
    def text(input, dim, keepdim):
        rest = f"{', axis=dim' if dim is not None else ''}{', keepdims=True' if keepdim else ''}"
        return f"np.{name}(input{rest}){'.astype(np.uint8)' if input.dtype == UINT8 else ''}"

    return text


def _over_some(name):
    """Unlike other reductions these take no dims for none of them."""

    def check(input, dim, keepdim):
        if dim == () and input.ndim:
            raise fault("E308 over-no-dims", name, "write `x != 0` for the elements as bools")

    return check


TRUTH = {
    "dtype": _truth_dtype, "properties": PARTIAL,
    "samples": [S(bools(2, 3)), S(bools(2, 3), 1), S(t(2, 3), (0, 1), True)],
    "errors": [Bad("E308", bools(2), ())],
}  # fmt: skip


@reduction(
    _truth(np.logical_and),
    numpy=_truth_text("all"),
    check=_over_some("all"),
    **TRUTH,
)
def all_(input: Tensor, dim: Dims | None = None, keepdim: bool = False):
    """Whether all elements are true (not 0)."""


@reduction(
    _truth(np.logical_or),
    numpy=_truth_text("any"),
    check=_over_some("any"),
    **TRUTH,
)
def any_(input: Tensor, dim: Dims | None = None, keepdim: bool = False):
    """Whether any element is true (not 0)."""


@reduction(
    lambda x, dim: np.count_nonzero(x, axis=dims_of(x.shape, dim)),
    samples=[S(ints(2, 3)), S(ints(2, 3), 1)],
    shape=lambda input, dim: (reduced_shape(input.shape, dim, False), INT64),
)
def count_nonzero(input: Tensor, dim: Dims | None = None):
    """How many elements are not 0."""


# -- logsumexp -------------------------------------------------------------------------------------


@composite(
    aliases=["special.logsumexp"],
    samples=[S(t(2, 3), 1), S(t(2, 3), (0, 1), keepdim=True), S(t(), 0)],
    properties=frozenset({"saturates"}),
    phrase="upstream times softmax(x)",
    vjp=lambda g, out, input, dim, keepdim: (
        F.mul(spread(g, input, dim), F.exp(F.sub(input, restored(out, input, dim)))),
    ),
)
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False):
    """Logarithm of the sum of exponentials over `dim`, without overflow."""
    x = as_float(input)
    if not x.numel:
        return F.log(F.sum(F.exp(x), dim, keepdim))
    if dim == () and input.ndim and not keepdim:
        every = f"`dim={tuple(range(input.ndim))}` is over all dims"
        raise fault("E308 over-no-dims", "logsumexp", every)
    top = F.detach(F.amax(x, dim, True))
    top = F.where(F.isinf(top), 0.0, top)
    total = F.log(F.sum(F.exp(F.sub(x, top)), dim, keepdim))
    return F.add(total, F.reshape(top, total.shape))
