"""Order statistics: medians, modes, k-th values, quantiles."""

from __future__ import annotations

import numpy as np

from ...errors import fail, fault
from ...graph.declare import Dim, Tensor, composite, function, opaque
from ...graph.dtypes import INT64, is_float
from ...graph.op import cast, known, number, value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.shapes import reduced_shape
from ..kernels.rules import picked, read_evenly, refuse_bools, require_float, shared_by_equal

# -- order statistics ------------------------------------------------------------------------------


def _require_elements(name, input, dim):
    if input.shape and input.shape[dim] == 0:
        raise fault("E308 over-dim-shape", name, dim, input)


def _nans(input, dim):
    """How many elements along `dim` are nan, or None where none can be."""
    return F.sum(F.isnan(input), (dim,), True) if is_float(input.dtype) else None


def _middle(input, dim, skip_nan):
    """Index of the lower median; nan counts as the largest, or not at all."""
    order = F.argsort(input, dim)
    if not input.shape:
        return order
    n, nans = input.shape[dim], _nans(input, dim)
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
    @composite(
        key=name,
        phrase="shared evenly by the elements that are it",
        vjp=shared_by_equal,
        forward=read_evenly,
        properties=frozenset({"selects"}),
        lacks="median_cpu bool",
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
        phrase="the elements that were chosen get the upstream gradient",
        grad_fn=f"{name.capitalize()}Backward1",
        fields=("values", "indices"),
        saves="result 1",
        lacks="median_out bool",
        samples=[S(t(2, 5), 1), S(t(2, 3), 0, True), S(t(), 0)],
        errors=[Bad("E308", t(2, 0), 1)],
    )
    def along(input: Tensor, dim: Dim, keepdim: bool = False):
        _require_elements(name, input, dim)
        return picked(input, dim, _middle(input, dim, skip_nan), keepdim)

    full.doc = f"{text}; the lower of two middle elements, equal ones share the slope."
    along.doc = f"{text} along `dim` and its index; the slope goes to the one that was picked."


_declare_median("median", False, "Median of the elements; nan if one is nan")
_declare_median("nanmedian", True, "Median of the elements that are not nan")


def _place_of(x, k, dim):
    """Where the `k`-th smallest elements are; among equal ones where PyTorch's way of selecting
    (that of Hoare, with the median of three) ends."""
    rows = np.moveaxis(x, dim, -1) if x.ndim else x.reshape(1)
    order = np.argsort(rows)
    found = order[..., k - 1 : k]
    chosen = np.take_along_axis(rows, found, -1)
    equal = (rows == chosen) | ((rows != rows) & (chosen != chosen))
    for row in map(tuple, np.argwhere(equal.sum(-1) > 1)):
        ranks = np.searchsorted(rows[row][order[row]], rows[row])
        found[row] = _selected(list(zip(ranks.tolist(), range(ranks.size), strict=True)), k - 1)
    return np.moveaxis(found, -1, dim) if x.ndim else found.reshape(())


def _selected(items, k):
    """The place of the `k`-th of pairs of a rank and a place."""
    first, last = 0, len(items) - 1

    def exchanged(i, j, always=False):
        if always or items[i][0] > items[j][0]:
            items[i], items[j] = items[j], items[i]

    while first + 1 < last:
        exchanged((first + last) // 2, first + 1, True)
        exchanged(first + 1, last)
        exchanged(first, last)
        exchanged(first + 1, first)
        i, j, pivot = first + 2, last - 1, items[first][0]
        while True:
            while items[i][0] < pivot:
                i += 1
            while items[j][0] > pivot:
                j -= 1
            if j < i:
                break
            exchanged(i, j, True)
            i, j = i + 1, j - 1
        exchanged(first, j, True)
        first, last = i if j <= k else first, j - 1 if j >= k else last
    if first + 1 == last:
        exchanged(first, last)
    return items[k][1]


@opaque(
    _place_of,
    jax=lambda input, k, dim: (
        "np.take(np.argsort(input, dim, stable=True), np.array([k - 1]), dim)"
        if input.shape
        else "np.zeros((), np.int64)"
    ),
    shape=lambda input, k, dim: (reduced_shape(input.shape, (dim,), True), INT64),
    samples=[S(t(5), 2, 0), S(t(2, 3), 1, 0), S(t(), 1, 0)],
    kink=lambda input, k, dim: F.gaps(input, dim),
    public=False,
)
def kth_place(input: Tensor, k: int, dim: Dim):
    """Indices of the `k`-th smallest elements along `dim`, which stays."""


@composite(
    fields=("values", "indices"),
    samples=[S(t(5), 2), S(t(2, 3), 1, 0, True), S(t(), 1)],
    errors=[Bad("E308", t(3), 4, words="4"), Bad("E308", t(3), 0)],
    properties=frozenset({"selects"}),
    phrase="the elements that were chosen get the upstream gradient",
    saves="result 1",
)
def kthvalue(input: Tensor, k: int, dim: Dim = -1, keepdim: bool = False):
    """The `k`-th smallest element along `dim` (from 1) and its index."""
    refuse_bools("kthvalue", input)
    size = input.shape[dim] if input.shape else 1
    _require_elements("kthvalue", input, dim)
    if not 1 <= k <= size:
        raise fault("E308 kthvalue-along-dim-shape", k, dim, input, size)
    return picked(input, dim, F.kth_place(input, k, dim), keepdim)


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
    phrase="the elements that were chosen get the upstream gradient",
    saves="result 1",
)
def mode(input: Tensor, dim: Dim = -1, keepdim: bool = False):
    """The most frequent element along `dim` (the smallest of them), and the index of its last."""
    _require_elements("mode", input, dim)
    if not input.shape:
        return picked(input, dim, F.argsort(input, dim), keepdim)
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
    return picked(input, dim, F.gather(order, dim, F.argmax(run_lengths, dim, True)), keepdim)


# -- quantiles -------------------------------------------------------------------------------------


ROUNDINGS = {
    "linear": None,
    "lower": "floor",
    "higher": "ceil",
    "midpoint": None,
    "nearest": "round",
}


def _checked_quantile(name, input, q, interpolation):
    require_float(name, input, "RuntimeError")
    if not q.weak and q.dtype != input.dtype:
        raise fault("E307 q-q-input-input", name, q, input)
    if q.ndim > 1:
        raise fault("E308 q-number-dim-got", name, q)
    if not input.numel:
        raise fault("E308 empty-tensor-shape", name, input)
    if interpolation not in ROUNDINGS:
        raise fault(
            "E205 no-interpolation-interpolation", name, interpolation, ", ".join(ROUNDINGS)
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
        ranks = getattr(F, rounding)(ranks)
    below = cast(F.floor(ranks), INT64)
    values = F.gather(ordered, last, below)
    if rounding is None:
        above = F.gather(ordered, last, cast(F.ceil(ranks), INT64))
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


@function(
    samples=QUANTILES,
    errors=BAD_QUANTILES,
    lacks="float16: quantile() input tensor must be either float or double dtype",
)
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


@function(
    like=quantile,
    samples=QUANTILES,
    errors=BAD_QUANTILES,
    lacks="float16: quantile() input tensor must be either float or double dtype",
)
def nanquantile(input, q, dim, keepdim, interpolation):
    """Quantiles `q` (0 to 1) over `dim`, or over everything, of the elements that are not nan."""
    return _quantile("nanquantile", True, input, q, dim, keepdim, interpolation)
