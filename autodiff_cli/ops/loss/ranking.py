"""Losses of margins and distances: ranking, hinge, triplet and multi-class margins."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import (
    Any,
    Flag,
    Function,
    Scalar,
    Tensor,
    Word,
    composite,
    function,
    pointwise,
)
from ...graph.dtypes import INT64, is_float
from ...graph.op import cast, constant, known, value_of
from ...graph.params import node_of
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import count
from ...graph.sizes import shape_text
from ..kernels.indices import check_number
from ..kernels.losses import loss_function, loss_node, reduced, reduction_of
from ..kernels.rules import NAMED_SLOPE, ONCE, no_derivative, require_constant, require_float

NN = "nn.functional."


def _signs(*shape):
    values: Any = (np.arange(count(shape)) % 2 * 2.0 - 1.0).reshape(shape).tolist()
    return t(*shape, values=values, grad=False)


@loss_function(
    name=NN + "margin_ranking_loss",
    samples=[
        S(t(3), t(3), _signs(3)),
        S(t(2, 3), t(2, 3), _signs(2, 3), margin=1.0, reduction="none"),
    ],
    errors=[Bad("E308", t(2), t(2, 3), t(2, 3))],
)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: Word = "mean"
):
    """How far `input1` is from leading `input2` (target 1) or trailing it (-1) by `margin`."""
    if not len(input1.shape) == len(input2.shape) == len(target.shape):
        shapes = ", ".join(shape_text(x.shape) for x in (input1, input2, target))
        raise fault("E308 margin_ranking_loss-needs-tensors-same", shapes)
    loss = F.clamp_min(-target * (input1 - input2) + margin, 0)
    return reduced(loss, reduction)


@loss_function(
    name=NN + "hinge_embedding_loss",
    samples=[S(t(4), _signs(4)), S(t(2, 2), _signs(2, 2), margin=2.0, reduction="none")],
)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: Word = "mean"
):
    """`input` where target is 1, `max(0, margin - input)` where it is -1."""
    zero: Any = 0.0 if is_float(input.dtype) else 0
    apart = F.where(F.ne(target, 1), F.to(F.clamp_min(margin - input, 0), input.dtype), zero)
    together = F.where(F.ne(target, -1), input, zero)
    return reduced(apart + together, reduction)


@loss_function(
    name=NN + "cosine_embedding_loss",
    samples=[S(t(2, 3), t(2, 3), _signs(2)), S(t(3), t(3), _signs(), margin=0.1, reduction="none")],
    errors=[
        Bad("E308", t(2, 3), t(3), _signs(2)),
        Bad("E308", t(2, 3, 2), t(2, 3, 2), _signs(2, 3)),
    ],
)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: Word = "mean"
):
    """One less the cosine where target is 1, the cosine beyond `margin` where it is -1."""
    ndim = len(input1.shape)
    if len(target.shape) > 1 or ndim != len(target.shape) + 1 or len(input2.shape) != ndim:
        raise fault("E308 cosine_embedding_loss-needs-inputs", input1, input2, target)
    dim = ndim - 1
    along = F.sum(input1 * input2, dim)
    size1 = F.sum(input1 * input1, dim) + 1e-12
    size2 = F.sum(input2 * input2, dim) + 1e-12
    cosine = along / F.sqrt(size1 * size2)
    near = F.where(F.eq(target, 1), 1 - cosine, 0.0)
    far = F.where(F.eq(target, -1), F.clamp_min(cosine - margin, 0), 0.0)
    return reduced(near + far, reduction)


def _triplet(near, far, margin):
    if margin <= 0:
        raise fault("E504 margin-triplet-loss", margin)
    return F.clamp_min(margin + near - far, 0)


def _same_dims(name, anchor, positive, negative):
    if not len(anchor.shape) == len(positive.shape) == len(negative.shape):
        shapes = ", ".join(shape_text(x.shape) for x in (anchor, positive, negative))
        raise fault("E308 needs-tensors-same-number", name, shapes)


def _shown(node):
    """What a program's function takes: the tensor that shows the node."""
    tensor = None if node.handle is None else node.handle()
    return node if tensor is None else tensor


TRIPLES = (t(2, 3), t(2, 3), t(2, 3))


@loss_function(
    name=NN + "triplet_margin_loss",
    samples=[S(*TRIPLES), S(*TRIPLES, margin=2.0, p=1, swap=True, reduction="none")],
    errors=[Bad("E504", *TRIPLES, margin=0.0), Bad("E308", t(3), t(2, 3), t(2, 3))],
)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Word = "mean",
):
    """By how much `positive` is not closer to `anchor` than `negative` by `margin`."""
    _same_dims("triplet_margin_loss", anchor, positive, negative)
    near = F.pairwise_distance(anchor, positive, p, eps)
    far = F.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = F.minimum(far, F.pairwise_distance(positive, negative, p, eps))
    return reduced(_triplet(near, far, margin), reduction)


@function(
    name=NN + "triplet_margin_with_distance_loss",
    samples=[S(*TRIPLES), S(*TRIPLES, swap=True, reduction="none")],
    errors=[Bad("E504", *TRIPLES, margin=0.0)],
)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Function | None = None,
    margin: float = 1.0,
    swap: Flag = False,
    reduction: Word = "mean",
):
    """`triplet_margin_loss` with a distance of your own, a function of two tensors."""
    _same_dims("triplet_margin_with_distance_loss", anchor, positive, negative)

    def distance(a, b):
        if distance_function is None:
            return F.pairwise_distance(a, b)
        found = node_of(distance_function(_shown(a), _shown(b)))
        if found is None:
            raise fault("E208 distance_function-return-tensor")
        return found

    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = F.minimum(far, distance(positive, negative))
    return reduced(_triplet(near, far, margin), reduction_of(reduction))


@loss_node(
    name=NN + "soft_margin_loss",
    samples=[
        S(t(3), _signs(3)),
        S(t(2, 3), _signs(2, 3), reduction="sum"),
        S(t(2), _signs(2), reduction="none"),
    ],
    properties=NAMED_SLOPE | {"one edge"},
    phrase="-y * sigmoid(-y * x), divided by their number for the mean",
)
def soft_margin_loss(input: Tensor, target: Tensor, reduction: Word = "mean"):
    """`log(1 + exp(-target * input))`, for targets 1 and -1."""
    require_constant("soft_margin_loss", "target", target)
    require_float("soft_margin_loss", input, "RuntimeError")
    loss = F.to(F.soft_margin(input * target), input.dtype)
    return reduced(loss, reduction)


def _soft_margin_slope(g, out, product):
    size = F.exp(-product)
    return -g * (size / (1 + size))


@composite(public=False, samples=[S(t(3))], vjp=_soft_margin_slope)
def soft_margin(product: Tensor):
    """`log(1 + exp(-product))`, inf as in PyTorch where the exponential is."""
    return F.log1p(F.exp(-product))


@loss_function(
    name=NN + "multilabel_soft_margin_loss",
    samples=[
        S(t(2, 3), t(2, 3, low=0.0, high=1.0)),
        S(t(2, 3), t(2, 3, low=0.0, high=1.0), weight=t(3, low=0.1, grad=False), reduction="none"),
    ],
)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
):
    """Binary cross entropy of `sigmoid(input)`, the mean over classes."""
    if not input.shape:
        raise fault("E304 multilabel_soft_margin_loss-needs-dim-classes")
    loss = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = F.sum(loss, len(input.shape) - 1) / input.shape[-1]
    return reduced(loss, reduction)


def _rows(name, input, target):
    """Scores as (N, C); E308 when they are not."""
    if len(input.shape) > 2 or input.shape[-1:] == (0,):
        raise fault("E308 needs-scores-shape-2", name, input)
    if target.dtype != INT64 and target.numel:
        raise fault("E307 needs-targets-integers", name, target)
    input = F.once(input, f"aten::{name}_backward")
    return F.reshape(input, (-1, input.shape[-1] if input.shape else 1))


def _in_range(name, target, classes, low):
    if not known(target):
        return
    values = value_of(target)
    wrong = values[(values < low) | (values >= classes)]
    if wrong.size:
        raise fault("E305 class-out-range-2", wrong, name, classes, classes - 1)


@pointwise(
    lambda x, *rest: x,
    public=False,
    samples=[S(t(3), "aten::slope", **ONCE)],
    counterpart=lambda input, slope, read: input,
    vjp=lambda g, out, input, slope, read: F.once_slope(g, input if read else None, slope),
)
def once(input: Tensor, slope: Word, read: bool = True):
    """The tensor itself, of which there is a first derivative, PyTorch's op `slope`, and none of
    that; whether `slope` reads the tensor."""


@pointwise(
    lambda g, input, slope: g,
    public=False,
    grad_fn=lambda g, input, slope: (
        "NotImplemented" if "::" in slope else slope.title().replace("_", "") + "Backward0"
    ),
    samples=[S(t(3, grad=False), t(3, grad=False), "aten::slope")],
)
def once_slope(g: Tensor, input: Tensor | None, slope: Word):
    """What `once` gives a gradient to."""


@once_slope.vjp
def _(g, out, input, given, slope):
    listed = None if "::" in slope else slope
    return no_derivative(slope.removeprefix("aten::"), listed)(g, out)


@loss_node(
    name=NN + "multi_margin_loss",
    samples=[
        S(t(2, 3), ints(2, high=3), **ONCE),
        S(t(2, 3), ints(2, high=3), p=2, margin=0.5, reduction="none", **ONCE),
        S(t(3), ints(high=3), weight=t(3, low=0.1, grad=False), **ONCE),
    ],
    errors=[Bad("E308", t(2, 3), ints(3)), Bad("E305", t(2, 3), ints(2, values=[0, 4]))],
    properties=frozenset({"clamps", "one edge"}),
    no_forward="multi_margin_loss",
    phrase="the classes inside of the margin, against that of the target",
    saves="operands",
    lacks="multi_margin_loss_cpu_kernel float16",
)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: Scalar = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: Word = "mean",
):
    """By how much other classes come within `margin` of the target's score, to the power `p`."""
    require_constant("multi_margin_loss", "weight", weight)
    if p not in (1, 2):
        raise fault("E504 multi_margin_loss-needs-p", p)
    scores = _rows("multi_margin_loss", input, target)
    rows, classes = scores.shape
    if target.numel != rows or len(target.shape) > 1:
        raise fault("E308 multi_margin_loss-scores-shape-needs", input, rows, target)
    if weight is not None and weight.shape != (classes,):
        raise fault("E308 multi_margin_loss-needs-weight-shape", classes, weight)
    if weight is not None and weight.dtype != input.dtype:
        raise fault("E307 needs-weight-dtype", "multi_margin_loss", input, weight)
    require_float("multi_margin_loss", input)
    check_number(margin, input.dtype)
    _in_range("multi_margin_loss", target, classes, 0)
    at = F.reshape(cast(target, INT64), (-1, 1))
    above = margin - F.gather(scores, 1, at) + scores
    counted = F.logical_and(above > 0, F.ne(at, constant(np.arange(classes))))
    loss = F.where(counted, above, 0.0)
    if p == 2:
        loss = loss * loss
    if weight is not None:
        loss = loss * F.reshape(F.index_select(weight, 0, F.reshape(at, (-1,))), (-1, 1))
    loss = F.sum(loss, 1) / classes
    return reduced(F.reshape(loss, target.shape), reduction)


@loss_node(
    name=NN + "multilabel_margin_loss",
    samples=[
        S(t(2, 3), ints(2, 3, values=[[0, -1, 1], [2, 1, -1]]), **ONCE),
        S(t(3), ints(3, values=[1, 2, -1]), **ONCE),
    ],
    errors=[
        Bad("E308", t(2, 3), ints(2, 2)),
        Bad("E308", t(2), ints(1, 1, 2)),
        Bad("E305", t(3), ints(3, values=[0, 4, -1])),
    ],
    properties=frozenset({"clamps"}),
    no_forward="multilabel_margin_loss_forward",
    phrase="the classes inside of the margin, against those of the targets",
    saves="operands",
    lacks="multilabel_margin_loss_forward_out_frame float16",
)
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: Word = "mean"):
    """Margins between the scores of a row's target classes and all others; a row of targets ends
    at its first -1."""
    scores = _rows("multilabel_margin_loss", input, target)
    alike = target.numel == input.numel and len(target.shape) < 2
    if not (target.shape == input.shape if len(input.shape) == 2 else alike):
        raise fault("E308 multilabel_margin_loss-needs-targets-shape", input, target)
    rows, classes = scores.shape
    require_float("multilabel_margin_loss", input)
    _in_range("multilabel_margin_loss", target, classes, -1)
    labels = F.reshape(cast(target, INT64), (rows, classes))
    listed = F.eq(F.cumsum(cast(labels < 0, INT64), 1), 0)
    at = F.where(listed, labels, 0)
    hits = F.zeros((rows, classes), dtype=INT64)
    is_target = F.scatter_add(hits, 1, at, cast(listed, INT64)) > 0
    wanted = F.unsqueeze(F.gather(scores, 1, at), 2)
    above = 1 - wanted + F.unsqueeze(scores, 1)
    counted = F.logical_and(F.unsqueeze(listed, 2), F.logical_not(F.unsqueeze(is_target, 1)))
    loss = F.where(F.logical_and(counted, above > 0), above, 0.0)
    loss = F.sum(loss, (1, 2)) / classes
    if len(input.shape) < 2:
        loss = F.reshape(loss, ())
    return reduced(loss, reduction)
