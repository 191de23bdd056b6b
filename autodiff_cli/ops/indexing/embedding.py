"""Bags of embeddings and one-hot rows: what tables of weights are read with."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Flag, Mask, Tensor, Word, composite, function, opaque
from ...graph.dtypes import INT64
from ...graph.op import constant, known, value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.sizes import check_size
from ..kernels.matrices import require_same_dtype
from ..kernels.rules import ONCE, require_float

NN = "nn.functional."


@function(
    name=NN + "one_hot",
    samples=[S(ints(3, high=4)), S(ints(2, 2, high=3), 4)],
    errors=[Bad("E305", ints(1, values=[5]), 3), Bad("E307", t(2))],
)
def one_hot(input: Mask, num_classes: int = -1):
    """Rows of zeros with a 1 at the class; `num_classes=-1` takes the largest class plus 1."""
    if input.dtype != INT64:
        raise fault("E307 one_hot-needs-class-numbers", input)
    if num_classes == 0 or num_classes < -1:
        raise fault("E309 one_hot-needs-num_classes-least", num_classes)
    values = value_of(input) if num_classes == -1 or known(input) else np.zeros(0, INT64)
    if not values.size and num_classes == -1:
        raise fault("E309 one_hot-empty-tensor-needs")
    classes = int(values.max()) + 1 if num_classes == -1 else num_classes
    if values.size and (values.min() < 0 or values.max() >= classes):
        wrong = values.min() if values.min() < 0 else values.max()
        raise fault(
            "E305 one_hot-cannot-take-class",
            wrong,
            "classes are numbered from 0" if wrong < 0 else f"there are {classes} classes",
        )
    check_size((*input.shape, classes), INT64)
    check_size((classes,), INT64)
    hits = F.eq(F.unsqueeze(input, len(input.shape)), constant(np.arange(classes)))
    return F.where(hits, constant(np.array(1)), constant(np.array(0)))


# -- bags ------------------------------------------------------------------------------------------


class Bags:
    """Which rows of a table go into which bag: `rows` and `bag` for each kept entry, `kept` their
    places among all entries, `sizes` the number of entries of each bag."""

    __slots__ = ("bag", "kept", "rows", "sizes")

    def __init__(self, rows: Any, bag: Any, kept: Any, count: int):
        self.rows = rows
        self.bag = bag
        self.kept = kept
        self.sizes = np.bincount(bag, minlength=count)

    def __repr__(self) -> str:
        return f"{self.sizes.size} bags"


def _bags(rows, starts, padding_idx):
    ends = np.append(starts[1:], rows.size)
    bag = np.repeat(np.arange(starts.size), ends - starts)
    kept = np.arange(rows.size) if padding_idx is None else np.flatnonzero(rows != padding_idx)
    return Bags(rows[kept], bag[kept], kept, starts.size)


def _table(bags, width):
    """The rows of each bag, the last of them as often as it takes; any for an empty bag."""
    longest = int(bags.sizes.max(initial=1))
    check_size((bags.sizes.size, longest, width), np.dtype(np.float64))
    slots = np.minimum(np.arange(longest), np.maximum(bags.sizes - 1, 0)[:, None])
    places = (np.cumsum(bags.sizes) - bags.sizes)[:, None] + slots
    return np.append(bags.rows, 0)[places]


@opaque(
    lambda weight, table: np.take_along_axis(table, weight[table].argmax(1), 1),
    public=False,
    shape=lambda weight, table: ((table.shape[0], weight.shape[1]), INT64),
    kink=lambda weight, table: F.gaps(weight, 0),
)
def bag_highest_rows(weight: Tensor, table: Tensor):
    """For each bag, a row of `table`, and column, the first row of `weight` with the largest
    entry."""


@composite(
    public=False,
    grad_fn="EmbeddingBagBackward0",
    no_forward="_embedding_bag",
    properties=frozenset({"two edges"}),
    phrase="each row of a bag gets the gradient of its bag",
    saves=lambda weight, scales, *rest: "input, offsets" if scales is None else "operands",
)
def bag_reduced(
    weight: Tensor,
    per_sample_weights: Tensor | None,
    input: Mask,
    offsets: Mask | None,
    bags: Any,
    mode: Word,
    by_frequency: bool,
):
    """Sums, means or maxima of rows of a table, bag by bag."""
    count, width = bags.sizes.size, weight.shape[1]
    weight = F.once(weight, "_embedding_bag_backward", False)
    if mode == "max":
        found = F.gather(weight, 0, F.bag_highest_rows(weight, constant(_table(bags, width))))
        return F.where(constant((bags.sizes > 0)[:, None]), found, 0.0)
    rows = F.index_select(weight, 0, constant(bags.rows))
    if by_frequency:
        often = np.bincount(bags.rows)[bags.rows]
        rows = F.slope_scaled(rows, constant((1 / often)[:, None].astype(weight.dtype)))
    if per_sample_weights is not None:
        slope = "aten::_embedding_bag_per_sample_weights_backward"
        per_sample_weights = F.once(per_sample_weights, slope, False)
        chosen = F.index_select(F.reshape(per_sample_weights, (-1,)), 0, constant(bags.kept))
        rows = rows * F.unsqueeze(chosen, 1)
    base = F.zeros((count, width), dtype=weight.dtype)
    total = F.index_add(base, 0, constant(bags.bag), rows)
    if mode == "mean":
        sizes = np.maximum(bags.sizes, 1)[:, None].astype(weight.dtype)
        total = total / constant(sizes)
    return total


@composite(
    public=False,
    samples=[S(t(2, 3), t(2, 1), order=0, because="the slopes are scaled, the values are not")],
    properties=frozenset({"convention"}),
    vjp=lambda g, out, input, scale: (g * scale, None),
)
def slope_scaled(input: Tensor, scale: Tensor):
    """`input` itself, with gradients times `scale`."""
    return F.alias(input)


def _offsets(offsets, entries, include_last):
    if offsets is None or len(offsets.shape) != 1 or offsets.dtype.kind not in "iu":
        raise fault("E308 embedding_bag-line-indices-needs")
    starts = value_of(offsets).astype(np.int64)
    if include_last:
        if not starts.size:
            raise fault("E308 embedding_bag-include_last_offset-needs-least")
        starts = starts[:-1]
    if starts.size and (starts[0] != 0 or starts[-1] > entries or (np.diff(starts) < 0).any()):
        raise fault("E305 embedding_bag-got-offsets-indices", starts.tolist()[:8], entries)
    return starts


BAG = (ints(4, values=[0, 2, 2, 1]), t(3, 2), ints(2, values=[0, 3]))


@function(
    name=NN + "embedding_bag",
    samples=[
        S(*BAG, **ONCE),
        S(*BAG, mode="sum", per_sample_weights=t(4), **ONCE),
        S(*BAG, mode="max", **ONCE),
        S(ints(2, 2), t(3, 2), mode="sum", padding_idx=1, **ONCE),
    ],
    errors=[Bad("E308", ints(3), t(3, 2)), Bad("E305", ints(1, 2, values=[[0, 7]]), t(3, 2))],
)
def embedding_bag(
    input: Mask,
    weight: Tensor,
    offsets: Mask | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: Word = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: Flag = False,
    padding_idx: int | None = None,
):
    """Sums, means or maxima of bags of rows of `weight`; an empty bag gives zeros."""
    if weight.dtype.kind in "iu" and input.dtype.kind == "f":
        input, weight = weight, input
    if mode not in ("sum", "mean", "max"):
        raise fault("E205 embedding_bag-no-mode", mode)
    if mode == "max" and scale_grad_by_freq:
        raise fault("E205 embedding_bag-mode-max-cannot")
    if len(weight.shape) != 2 or input.dtype.kind not in "iu" or len(input.shape) not in (1, 2):
        raise fault("E308 embedding_bag-needs-integer-indices", input, weight)
    if per_sample_weights is not None and (
        per_sample_weights.shape != input.shape or mode != "sum"
    ):
        raise fault(
            "E308 embedding_bag-takes-per_sample_weights-shape", per_sample_weights, input, mode
        )
    require_float("embedding_bag", weight, "RuntimeError")
    if per_sample_weights is not None:
        require_same_dtype("embedding_bag", weight, per_sample_weights)
    rows = value_of(input).reshape(-1)
    count = weight.shape[0]
    for at in np.flatnonzero((rows < 0) | (rows >= count)):
        raise fault("E305 index-out-range-rows", rows[at], count, count - 1, at)
    if len(input.shape) == 2:
        if offsets is not None or input.shape[1] == 0:
            raise fault("E308 embedding_bag-indices-takes-no", input)
        starts = np.arange(0, rows.size, input.shape[1])
    else:
        starts = _offsets(offsets, rows.size, include_last_offset)
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise fault("E305 padding_idx-out-range-rows", padding_idx, count, count - 1)
        padding_idx %= count
    if max_norm is not None:
        weight = F.shortened_rows(weight, constant(rows), max_norm, norm_type)
    bags = _bags(rows, starts, padding_idx)
    return F.bag_reduced(weight, per_sample_weights, input, offsets, bags, mode, scale_grad_by_freq)
