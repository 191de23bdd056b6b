"""Order: sorting, the k largest, searching in sorted tensors, distinct elements."""

from __future__ import annotations

import numpy as np

from ...errors import fail, fault
from ...graph.declare import Any, Dim, Mask, Tensor, composite, function, opaque
from ...graph.dtypes import INT32, INT64
from ...graph.op import decisive
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import count
from ...graph.strides import like_input
from ..kernels.rules import no_derivative, refuse_bools


def _argsort(x, dim, descending, stable):
    if not x.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return _order(x, dim)
    return np.flip(x.shape[dim] - 1 - _order(np.flip(x, dim), dim), dim)


def _order(x, dim):
    """Indices that sort; equal elements keep their order. NumPy's quick way does not keep it, and
    takes a third of the time: it is right for rows without equal elements."""
    if x.dtype.kind != "f" or x.size < MANY:
        return np.argsort(x, axis=dim, kind="stable")
    order = np.argsort(x, axis=dim)
    rows, places = np.moveaxis(x, dim, -1), np.moveaxis(order, dim, -1)
    found = np.take_along_axis(rows, places, -1)
    unlike = (found[..., :-1] < found[..., 1:]).all(-1)  # neither equal ones nor nan
    if not unlike.all():
        places[~unlike] = np.argsort(rows[~unlike], kind="stable")
    return order


MANY = 1024


ORDERED = t(4, values=[0.0, 1.0, 1.0, 2.0], grad=False)
REPEATS = ints(5, values=[2, 0, 2, 2, 1])
SORTED = (
    S(t(2, 3)),
    S(t(2, 3), 0, True),
    S(t()),
    S(t(4, values=[2.0, 1.0, 2.0, 1.0]), order=0, because="the slope jumps at ties"),
)


@function(public=False, samples=[S(t(2, 3), 1), S(t(3), 0), S(t(), 0), S(t(1, 2), 0)])
def gaps(input: Tensor, dim: Dim):
    """Distances between neighbours in the order along `dim`; 0 where two elements are equal."""
    if not input.shape or input.shape[dim] < 2:
        return F.full_like(input, float("inf"))
    ordered = F.gather(input, dim, F.argsort(input, dim))
    following = F.narrow(ordered, dim, 1, input.shape[dim] - 1)
    return following - F.narrow(ordered, dim, 0, input.shape[dim] - 1)


@function(public=False, samples=[S(t(2, 3), 1), S(t(2, 3), 2)])
def gaps_of_last(input: Tensor, n: int):
    """`gaps` between all elements of the last `n` dims."""
    lead = input.shape[: len(input.shape) - n]
    return F.gaps(F.reshape(input, (*lead, count(input.shape[len(lead) :]))), len(lead))


@opaque(
    _argsort,
    jax=lambda input, dim, descending, stable: (
        "np.argsort(input, axis=dim, descending=descending)"
        if input.shape
        else "np.zeros((), np.int64)"
    ),
    shape=lambda input, dim, descending, stable: (input.shape, INT64),
    samples=SORTED,
    kink=lambda input, dim, *rest: F.gaps(input, dim),
)
def argsort(input: Tensor, dim: Dim = -1, descending: bool = False, stable: bool = False):
    """Indices that sort along `dim`; equal elements keep their order, nan is largest."""


@composite(
    fields=("values", "indices"),
    samples=SORTED,
    errors=[Bad("E304", t(2), 1)],
    grad_fn=lambda input, dim, descending, stable: (
        "SortBackward0" if stable is None else "SortBackward1"
    ),
    properties=frozenset({"selects"}),
    saves="result 1",
    strides_rule=like_input,
    phrase="each gradient goes back to where its element came from",
)
def sort(input: Tensor, dim: Dim = -1, descending: bool = False, stable: bool | None = None):
    """Elements in order along `dim`, and their indices."""
    index = F.argsort(input, dim, descending)
    return F.gather(input, dim, index), index


@composite(
    fields=("values", "indices"),
    samples=[S(t(2, 3), 2), S(t(2, 4), 2, 0, False), S(t(), 1)],
    errors=[Bad("E308", t(3), 4, words="4")],
    properties=frozenset({"selects"}),
    saves="result 1",
    phrase="the elements that were chosen get the upstream gradient",
)
def topk(input: Tensor, k: int, dim: Dim = -1, largest: bool = True, sorted: bool = True):
    """The `k` largest (or smallest) elements along `dim` in order, and their indices."""
    refuse_bools("topk", input)
    size = input.shape[dim] if input.shape else 1
    if not 0 <= k <= size:
        raise fault("E308 topk-along-dim-shape", k, dim, input, size)
    index = F.argsort(input, dim, largest)
    if input.shape:
        index = F.narrow(index, dim, 0, k)
    return F.gather(input, dim, index), index


@function(samples=[S(t(4)), S(t(3, 2)), S(t())])
def msort(input: Tensor):
    """Elements in order along the first dim."""
    return F.sort(input, 0)[0]


# -- searching -------------------------------------------------------------------------------------


def _searched(ordered, values, right):
    """Bisection of all values at once; a nan is beyond everything, as in PyTorch."""
    n = ordered.shape[-1]
    low = np.zeros(values.shape, np.int64)
    high = np.full(values.shape, n, np.int64)
    for _ in range(n.bit_length()):
        open_ = low < high
        middle = np.minimum((low + high) // 2, n - 1)
        found = ordered[middle] if ordered.ndim == 1 else np.take_along_axis(ordered, middle, -1)
        beyond = open_ & ~(found > values if right else found >= values)
        high = np.where(open_ & ~beyond, middle, high)
        low = np.where(beyond, middle + 1, low)
    return low


def _searchsorted(ordered, values, right, out_int32, sorter):
    if sorter is not None:
        ordered = np.take_along_axis(ordered, sorter, -1)
    found = _searched(ordered, np.asarray(values), right)
    return found.astype(np.int32) if out_int32 else found


def _search_shape(ordered, values, right, out_int32, sorter):
    if not ordered.shape or (ordered.ndim > 1 and ordered.shape[:-1] != values.shape[:-1]):
        raise fault("E308 searching-values-ordered", values, ordered)
    if sorter is not None and (sorter.shape != ordered.shape or sorter.dtype != INT64):
        raise fault("E308 sorter-shape-dtype-tensor", sorter, ordered)
    return values.shape, INT32 if out_int32 else INT64


@opaque(
    _searchsorted,
    public=False,
    shape=_search_shape,
    samples=[S(ORDERED, t(2, grad=False), False, False, None)],
    lacks="searchsorted_out_cpu bool",
)
def bisected(ordered: Tensor, values: Tensor, right: bool, out_int32: bool, sorter: Mask | None):
    """Where values belong in a sorted tensor."""


@function(
    method=False,
    samples=[
        S(ORDERED, t(2, 3, grad=False)),
        S(ORDERED, 1.0, right=True),
        S(ORDERED, ORDERED, side="right"),
    ],
    errors=[Bad("E308", t(2, 3), t(3, 3))],
)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Mask | None = None,
):
    """Where to insert the elements of `input` to keep `sorted_sequence` sorted: before equal ones,
    or after them with `right=True`."""
    if side not in (None, "left", "right"):
        raise fault("E205 searchsorted-no-side", side)
    if side == "left" and right:
        raise fault("E205 searchsorted-side-left-but")
    return F.bisected(sorted_sequence, input, right or side == "right", out_int32, sorter)


@function(
    method=False,
    samples=[S(t(2, 3, grad=False), ORDERED), S(1.0, ORDERED, right=True)],
    errors=[Bad("E308", t(3), t(2, 2))],
)
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False):
    """Which interval between sorted `boundaries` each element falls into."""
    if boundaries.ndim != 1:
        raise fault("E308 bucketize-needs-boundaries-dim", boundaries)
    return F.bisected(boundaries, input, right, out_int32, None)


# -- distinct elements -----------------------------------------------------------------------------


def _rows(x, dim):
    """Elements to compare (flat), or slices along `dim` as rows."""
    if dim is None:
        return x.reshape(-1)
    n = x.shape[dim]
    return np.moveaxis(x, dim, 0).reshape(n, x.size // n if n else 0)


def _distinct(x, dim, consecutive):
    """Indices of the distinct ones, number of the distinct one for each, how often each occurs."""
    rows = _rows(x, dim)
    n = len(rows)
    if consecutive:
        order = np.arange(n)
    elif rows.ndim == 1:
        order = np.argsort(rows, kind="stable")
    else:
        order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(n)
    ordered = rows[order]
    fresh = np.ones(n, bool)
    changed = ordered[1:] != ordered[:-1]
    fresh[1:] = changed if rows.ndim == 1 else changed.any(axis=1)
    numbers = np.cumsum(fresh) - 1
    inverse = np.empty(n, np.int64)
    inverse[order] = numbers
    return order[fresh], inverse, np.bincount(numbers, minlength=fresh.sum())


def _unique(x, dim, consecutive, wanted):
    first, inverse, counts = _distinct(x, dim, consecutive)
    values = x.reshape(-1)[first] if dim is None else np.take(x, first, axis=dim)
    results = (values, inverse.reshape(x.shape) if dim is None else inverse, counts)
    return tuple(results[i] for i in (0, *wanted))


def _unique_shape(input, dim, consecutive, wanted):
    if dim is not None and not input.shape:
        raise fail("E304", "a 0-d tensor has no dim to compare along", help="leave `dim` out")
    if dim is not None and 0 in (s for d, s in enumerate(input.shape) if d != dim):
        raise fault("E308 slices-along-dim-shape", dim, input)
    found = _unique(decisive("_unique2", input), dim, consecutive, wanted)
    return tuple((v.shape, input.dtype if i == 0 else INT64) for i, v in enumerate(found))


def _unique_name(input, dim, consecutive, wanted):
    if consecutive:
        return "UniqueConsecutiveBackward0"
    return "Unique2Backward0" if dim is None else "UniqueDimBackward0"


@opaque(
    _unique,
    public=False,
    shape=_unique_shape,
    vjp=no_derivative("unique", "_unique2"),
    grad_fn=_unique_name,
    samples=[S(REPEATS, None, False, (1, 2)), S(REPEATS, 0, True, ())],
)
def distinct(input: Tensor, dim: Dim | None, consecutive: bool, wanted: Any):
    """Distinct elements (or slices along `dim`), where each went, and how often each occurs."""


def _selected(input, dim, consecutive, inverse, counts):
    wanted = (1,) * inverse + (2,) * counts
    found = F.distinct(input, dim, consecutive, wanted)
    return found if wanted else found[0]


@function(
    samples=[
        S(REPEATS),
        S(REPEATS, return_inverse=True, return_counts=True),
        S(ints(3, 2, high=2), dim=0),
    ]
)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Dim | None = None,
):
    """The distinct elements in order, or the distinct slices along `dim`."""
    return _selected(input, dim, False, return_inverse, return_counts)


@function(samples=[S(REPEATS), S(REPEATS, return_inverse=True, return_counts=True)])
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Dim | None = None
):
    """The elements without repetitions of their neighbour before."""
    return _selected(input, dim, True, return_inverse, return_counts)
