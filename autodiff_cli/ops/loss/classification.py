"""Losses of many classes, given as class numbers or probabilities."""

from __future__ import annotations

import math

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Flag, Tensor, Word, composite, function
from ...graph.op import cast, known, value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ..kernels.losses import reduced, reduction_of
from ..kernels.rules import NAMED_SLOPE, require_constant, require_dims, require_float

NN = "nn.functional."


def _class_targets(name, input, target, weight, ignore_index):
    """Check shapes and values of class numbers; whether some are ignored."""
    shape = input.shape
    if not shape:
        raise fault(
            "E308 needs-scores-shape",
            name,
            "IndexError" if name == "cross_entropy" else "ValueError",
        )
    want = shape[:1] + shape[2:] if len(shape) > 1 else ()
    if target.shape != want:
        if len(shape) > 1 and shape[:1] == target.shape[:1]:
            raise fault("E308 class-targets-several", name, shape, want, target, len(shape))
        raise fault("E308 class-targets", name, shape, want, target)
    if target.dtype.name not in ("int64", "uint8"):
        raise fault("E307 needs-class-numbers-int64", name, target)
    classes = shape[1] if len(shape) > 1 else shape[0]
    if weight is not None:
        if weight.shape != (classes,):
            raise fault("E308 needs-weight-each-classes", name, classes, weight)
        if weight.dtype != input.dtype:
            raise fault("E307 needs-weight-dtype", name, input, weight)
    if not known(target):
        return True
    values = value_of(target)
    ignored = values == ignore_index
    wrong = values[~ignored & ((values < 0) | (values >= classes))]
    if wrong.size:
        raise fault("E305 class-out-range", wrong, classes, classes - 1)
    return bool(ignored.any())


X, Y = t(2, 3), ints(2, high=3)


@function(
    name=NN + "nll_loss",
    samples=[
        S(X, Y),
        S(X, Y, weight=t(3, low=0.1, grad=False), reduction="sum"),
        S(X, Y, ignore_index=1),
        S(t(2, 3, 2), ints(2, 2, high=3), reduction="none"),
        S(t(3), ints(high=3)),
    ],
    errors=[Bad("E308", X, ints(3)), Bad("E305", X, ints(2, values=[0, 5])), Bad("E307", X, t(2))],
)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag | None = None,
    ignore_index: int = -100,
    reduce: Flag | None = None,
    reduction: Word = "mean",
):
    """Negative log-likelihood: minus the log-probabilities `input` at the classes `target`."""
    mode = reduction_of(reduction, size_average, reduce)
    planar = "2d" * (len(input.shape) > 2)
    require_constant(f"nll_loss{planar}_forward", "weight", weight)
    shape = input.shape
    loss = F.nll_loss_reduced(input, target, weight, ignore_index=ignore_index, reduction=mode)
    if mode == "none" and len(shape) > 2 and len(shape) != 4:
        return F.view(loss, loss.shape)
    return loss


@composite(
    name=NN + "nll_loss",
    grad_fn=lambda input, *rest: (
        "NllLossBackward0" if len(input.shape) < 3 else "NllLoss2DBackward0"
    ),
    public=False,
    counterpart=(
        NN + "nll_loss",
        lambda input, target, weight, ignore_index, reduction: (
            (input, target) if weight is None else (input, target, weight),
            {
                key: value
                for key, value, usual in (
                    ("ignore_index", ignore_index, -100),
                    ("reduction", repr(reduction), "'mean'"),
                )
                if value != usual
            },
        ),
    ),
    samples=[S(t(2, 3), ints(2))],
    properties=NAMED_SLOPE | {"one edge"},
    saves="operands",
    phrase="minus the weight of each class at its target, divided by what the mean divides by",
)
def nll_loss_reduced(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: Word = "mean",
):
    """The negative entries of `input` at the classes `target`."""
    ignored = _class_targets("nll_loss", input, target, weight, ignore_index)
    require_float("nll_loss", input)
    classes_dim = 1 if len(input.shape) > 1 else 0
    kept: Any = F.ne(target, ignore_index) if ignored else None
    at = F.where(kept, target, 0) if ignored else target
    picked = F.gather(input, classes_dim, F.unsqueeze(cast(at, np.dtype(np.int64)), classes_dim))
    loss = F.neg(F.reshape(picked, target.shape))
    total = None
    if weight is not None:
        scale = F.reshape(F.index_select(weight, 0, F.reshape(at, (-1,))), target.shape)
        loss = loss * scale
        total = F.where(kept, scale, 0.0) if ignored else scale
    elif ignored:
        total = cast(kept, input.dtype)
    if ignored:
        loss = F.where(kept, loss, 0.0)
    if reduction == "mean" and total is not None:
        return F.sum(loss) / F.sum(total)
    return reduced(loss, reduction)


@function(
    name=NN + "cross_entropy",
    samples=[
        S(X, Y),
        S(X, Y, weight=t(3, low=0.1, grad=False)),
        S(X, Y, label_smoothing=0.1, ignore_index=1),
        S(X, t(2, 3, low=0.1)),
        S(t(2, 3, 2), ints(2, 2, high=3), reduction="none"),
        S(t(3), ints(high=3)),
    ],
    errors=[Bad("E308", X, ints(3)), Bad("E305", X, ints(2, values=[0, 5]))],
)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag | None = None,
    ignore_index: int = -100,
    reduce: Flag | None = None,
    reduction: Word = "mean",
    label_smoothing: float = 0.0,
):
    """Cross entropy of `softmax(input)`; `target` has class numbers or probabilities."""
    mode = reduction_of(reduction, size_average, reduce)
    if not 0 <= label_smoothing <= 1:
        raise fault("E504 label_smoothing-between", label_smoothing)
    if input.shape == target.shape:
        return _soft_cross_entropy(input, target, weight, mode, label_smoothing)
    if label_smoothing:
        return _smoothed_cross_entropy(input, target, weight, mode, ignore_index, label_smoothing)
    _class_targets("cross_entropy", input, target, weight, ignore_index)
    logs = F.log_softmax(input, 1 if len(input.shape) > 1 else 0)
    return F.nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=mode)


def _by_class(weight, logs, dim):
    shape = [1] * len(logs.shape)
    shape[dim] = logs.shape[dim]
    return F.reshape(weight, tuple(shape))


def _class_weights(weight, classes):
    if weight is not None and weight.shape != (classes,):
        raise fault("E308 cross_entropy-needs-weight-each", classes, weight)


def _soft_cross_entropy(input, target, weight, mode, smoothing):
    if target.dtype.kind != "f":
        raise fault("E307 cross_entropy-targets-shape-scores", input, target)
    require_dims("cross_entropy", input)
    dim = 1 if len(input.shape) > 1 else 0
    classes = input.shape[dim]
    _class_weights(weight, classes)
    logs = F.log_softmax(input, dim)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / max(classes, 1)
    product = logs * target
    if weight is not None:
        product = product * _by_class(weight, logs, dim)
    if mode == "none":
        return -F.sum(product, dim)
    total = -F.sum(product)
    if mode == "mean" and not classes:
        return F.div_by(total, float("nan"))
    return total if mode == "sum" else F.div_by(total, input.numel / classes)


def _smoothed_cross_entropy(input, target, weight, mode, ignore_index, smoothing):
    _class_targets("cross_entropy", input, target, weight, ignore_index)
    dim = 1 if len(input.shape) > 1 else 0
    classes = input.shape[dim]
    logs = F.log_softmax(input, dim)
    hard = F.nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=mode)
    product = logs if weight is None else logs * _by_class(weight, logs, dim)
    kept = F.ne(target, ignore_index)
    soft = F.where(kept, -F.sum(product, dim), 0.0)
    if mode == "mean":
        if weight is None:
            total = F.sum(cast(kept, input.dtype))
        else:
            at = F.reshape(F.where(kept, target, 0), (-1,))
            total = F.sum(F.where(F.reshape(kept, (-1,)), F.index_select(weight, 0, at), 0.0))
        soft = F.sum(soft) / total
    elif mode == "sum":
        soft = F.sum(soft)
    return hard * (1 - smoothing) + soft * (smoothing / classes)


@function(
    name=NN + "linear_cross_entropy",
    samples=[
        S(X, t(4, 3), ints(2, high=4)),
        S(t(3), t(4, 3), ints(high=4)),
        S(X, t(4, 2, 3), ints(2, 2, high=4), linear_bias=t(4, 2), label_smoothing=0.1),
    ],
    errors=[Bad("E308", X, t(4, 5), ints(2))],
)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: Word = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
):
    """`cross_entropy` of `linear(input, linear_weight, linear_bias)`."""
    rows, shape = input.shape[:-1], linear_weight.shape
    if (
        not 1 <= len(input.shape) <= 2
        or len(shape) < 2
        or input.shape[-1] != shape[-1]
        or (len(shape) > 2 and not rows)
    ):
        raise fault("E308 linear_cross_entropy-cannot-apply-linear_weight", shape, input)
    if linear_bias is not None and linear_bias.shape != shape[:-1]:
        raise fault("E308 linear_bias-shape", shape[:-1], linear_bias)
    logits_shape = (*rows, *shape[:-1])
    if target.shape == logits_shape and ignore_index is not None:
        raise fault("E205 ignore_index-no-meaning-when")
    if len(shape) > 2:
        linear_weight = F.reshape(linear_weight, (math.prod(shape[:-1]), shape[-1]))
        linear_bias = linear_bias if linear_bias is None else F.reshape(linear_bias, (-1,))
    logits = F.reshape(F.linear(input, linear_weight, linear_bias), logits_shape)
    return F.cross_entropy(
        logits,
        target,
        weight,
        reduction=reduction,
        label_smoothing=label_smoothing,
        ignore_index=-100 if ignore_index is None else ignore_index,
    )
