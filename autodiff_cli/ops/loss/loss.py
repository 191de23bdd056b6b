"""Losses of regression and classification, and how losses are reduced; PyTorch's `nn.functional`.

Elements of a loss are a composite of graph ops; the reduction (`none`, `mean`, `sum`) comes last.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import fault
from ...graph.declare import Flag, Scalar, Tensor, Word, composite, function, pointwise
from ...graph.dtypes import promote
from ...graph.op import cast, known, value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ..kernels.losses import loss_function, loss_node, reduced, reduction_of
from ..kernels.rules import NAMED_SLOPE, require_constant, require_float

NN = "nn.functional."
MODES = (
    S(t(2, 3), t(2, 3)),
    S(t(3), t(3), reduction="sum"),
    S(t(2), t(2), reduction="none"),
    S(t(), t()),
)


def _floating(name, *nodes):
    for i, node in enumerate(nodes):
        if node.dtype.kind != "f":
            raises = "RuntimeError" if i else "NotImplementedError"
            raise fault("E307 loss-needs-floats", name, node, raises)


def _alike(input, target):
    """Both in the dtype that holds both: PyTorch broadcasts them first, so neither is a number."""
    one_number = bool(input.shape) != bool(target.shape) and not input.weak and not target.weak
    if not one_number or input.dtype == target.dtype:
        return input, target
    common = promote(input.dtype, target.dtype)
    return cast(input, common), cast(target, common)


def _difference(input, target):
    """Bools count as numbers where a kernel takes both operands."""
    input, target = _alike(input, target)
    if input.dtype.kind == "b" or target.dtype.kind == "b":
        return F.add(input, F.mul(target, -1))
    return input - target


def _as_many(name, input, loss):
    """Losses with their weights, which may not make them more."""
    if loss.shape != input.shape:
        raise fault("E308 weights-broadcast-losses", name, input.shape, loss.shape)
    return loss


def _same_shape(name, input, target, other="target"):
    if input.shape != target.shape:
        raise fault("E308 needs-one-shape", name, other, input, target)


@composite(
    public=False,
    grad_fn="DivBackward1",
    vjp=lambda g, out, input, number: F.div(g, number),
    samples=[S(t(2, 3), 4)],
    phrase="upstream divided by the number",
)
def div_by(input: Tensor, number: Scalar):
    """A tensor over a Python number."""
    return F.div(input, number)


# -- differences -----------------------------------------------------------------------------------


def _weighted(loss, input, weight, mode, mean_of_weight=True):
    if weight is not None:
        _same_shape("loss", input, weight, "weight")
        loss = loss * weight
        if mode == "mean" and mean_of_weight:
            return F.sum(loss) / F.sum(weight)
    return reduced(loss, mode)


@loss_function(name=NN + "l1_loss", samples=(*MODES, S(t(2, 3), t(2, 3), weight=t(2, 3, low=0.1))))
def l1_loss(input: Tensor, target: Tensor, reduction: Word = "mean", weight: Tensor | None = None):
    """Absolute differences. The slope is 0 where they are 0."""
    first, second = _alike(input, target)
    return _weighted(F.abs(first - second), input, weight, reduction)


@loss_node(
    name=NN + "mse_loss",
    samples=MODES,
    errors=[Bad("E302", t(2, 3), t(2)), Bad("E307", ints(2), ints(2))],
    properties=NAMED_SLOPE,
    phrase="2 * (input - target), divided by their number for the mean",
)
def mse_loss(input: Tensor, target: Tensor, reduction: Word = "mean"):
    """Squared differences."""
    difference = _difference(input, target)
    if target.dtype.kind != "f":
        _floating("mse_loss", input)
    return reduced(difference * difference, reduction)


@loss_function(name=NN + "mse_loss", samples=[S(t(2, 3), t(2, 3), weight=t(2, 3, low=0.1))])
def mse_loss_weighted(
    input: Tensor, target: Tensor, reduction: Word = "mean", weight: Tensor | None = None
):
    """Squared differences times weights; the mean is over the sum of weights."""
    if weight is None:
        return F.mse_loss(input, target, reduction=reduction)
    return _weighted(F.pow(input - target, 2), input, weight, reduction)


@composite(public=False, samples=[S(t(2, 3), 0.5)])
def huber(difference: Tensor, beta: float):
    """`d**2 / (2 beta)` near 0, `|d| - beta / 2` beyond `beta`."""
    size = F.abs(difference)
    return F.where(size < beta, difference * difference * (0.5 / beta), size - 0.5 * beta)


@huber.vjp
def _(g, out, difference, beta):
    return g * F.where(F.abs(difference) >= beta, F.sign(difference), difference / beta)


def _no_slope(g, out, input, want, have):
    raise fault("E307 huber_loss-needs-one-dtype", want, have)


@pointwise(
    lambda x, *rest: x,
    public=False,
    samples=[S(t(3, grad=False), "float32", "float64")],
    counterpart=lambda input, *rest: input,
    vjp=_no_slope,
)
def of_two_dtypes(input: Tensor, want: Word, have: Word):
    """The tensor itself, a loss of operands of two dtypes, which PyTorch cannot differentiate."""


def _positive(name, parameter, value, zero):
    if not value >= 0 or (value == 0 and not zero):
        raise fault("E504 needs-parameter", name, parameter, ">= 0" if zero else "> 0", value)


@loss_function(
    name=NN + "smooth_l1_loss",
    samples=(*MODES, S(t(2, 3), t(2, 3), beta=0.5), S(t(2), t(2), beta=0)),
    errors=[Bad("E504", t(2), t(2), beta=-1.0)],
)
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: Word = "mean", beta: float = 1.0):
    """Squared differences over `2 beta` below `beta`, absolute less `beta / 2` beyond.

    `beta=0` is `l1_loss`.
    """
    _positive("smooth_l1_loss", "beta", beta, True)
    if beta == 0:
        return F.l1_loss(input, target, reduction=reduction)
    return F.smooth_l1_loss_curved(input, target, reduction=reduction, beta=beta)


@composite(
    name=NN + "smooth_l1_loss",
    grad_fn="SmoothL1LossBackward0",
    public=False,
    samples=[S(t(3), t(3), reduction="mean", beta=1.0)],
    phrase="the difference over beta, cut at -1 and 1, divided by their number for the mean",
)
def smooth_l1_loss_curved(input: Tensor, target: Tensor, *, reduction: Word, beta: float):
    """Squared differences below `beta`, absolute beyond."""
    difference = _difference(input, target)
    if target.dtype.kind != "f":
        _floating("smooth_l1_loss", input)
    return reduced(F.huber(difference, beta), reduction)


@composite(
    name=NN + "huber_loss",
    samples=(*MODES, S(t(2, 3), t(2, 3), delta=0.5)),
    errors=[Bad("E504", t(2), t(2), delta=0.0)],
    properties=NAMED_SLOPE,
    phrase="the difference, cut at -delta and delta, divided by their number for the mean",
)
def huber_loss(input: Tensor, target: Tensor, reduction: Word = "mean", delta: float = 1.0):
    """Half squared differences below `delta`, `delta (|d| - delta / 2)` beyond."""
    _floating("huber_loss", input)
    _positive("huber_loss", "delta", delta, False)
    loss = cast(F.huber(input - target, delta) * delta, input.dtype)
    if input.dtype != target.dtype:
        loss = F.of_two_dtypes(loss, input.dtype.name, target.dtype.name)
    return reduced(loss, reduction_of(reduction))


@function(name=NN + "huber_loss", samples=[S(t(2, 3), t(2, 3), weight=t(2, 3, low=0.1))])
def huber_loss_weighted(
    input: Tensor,
    target: Tensor,
    reduction: Word = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
):
    """The Huber loss times weights."""
    mode = reduction_of(reduction)
    if weight is None:
        return F.huber_loss(input, target, mode, delta)
    return _weighted(F.huber_loss(input, target, "none", delta), input, weight, mode, False)


# -- likelihoods -----------------------------------------------------------------------------------


@function(
    name=NN + "kl_div",
    samples=[
        S(t(2, 3), t(2, 3, low=0.1)),
        S(t(2, 3), t(2, 3), log_target=True),
        S(t(2, 3), t(2, 3, low=0.1), reduction="batchmean"),
        S(t(2), t(2, low=0.1), reduction="none"),
    ],
)
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Flag | None = None,
    reduce: Flag | None = None,
    reduction: Word = "mean",
    log_target: bool = False,
):
    """Kullback-Leibler divergence of log-probabilities `input` from `target`; `batchmean` is the
    mathematical one."""
    for x in (input, target):
        require_float("kl_div", x, "RuntimeError")
    batch = reduction == "batchmean" and size_average is None and reduce is None
    mode = "sum" if batch else reduction_of(reduction, size_average, reduce)
    if log_target:
        loss = F.exp(target) * (target - input)
    else:
        loss = F.xlogy(target, target) - target * input
    loss = reduced(loss, mode)
    return loss / input.shape[0] if reduction == "batchmean" and input.shape else loss


@function(
    name=NN + "poisson_nll_loss",
    samples=[
        S(t(2, 3), t(2, 3, low=0.1)),
        S(t(3, low=0.1), t(3, low=0.1), log_input=False),
        S(t(3), t(3, low=0.1, high=4.0), full=True, reduction="sum"),
    ],
)
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Flag | None = None,
    eps: float = 1e-8,
    reduce: Flag | None = None,
    reduction: str = "mean",
):
    """Negative log-likelihood of a Poisson distribution; `full` adds Stirling's term."""
    mode = reduction_of(reduction, size_average, reduce)
    loss = F.exp(input) - target * input if log_input else input - target * F.log(input + eps)
    if full:
        stirling = target * F.log(target) - target + 0.5 * F.log(2 * math.pi * target)
        loss = loss + F.where(F.le(target, 1), 0.0, stirling)
    return reduced(loss, mode)


def _variance(input, var):
    if var.weak:
        var = var * F.ones_like(input)
    if known(var) and (value_of(var) < 0).any():
        raise fault("E504 gaussian_nll_loss-negative-variance")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            return F.unsqueeze(var, -1)
        unequal = [v for i, v in zip(input.shape, var.shape, strict=False) if i != v]
        if len(input.shape) != len(var.shape) or sum(unequal) != 1:
            raise fault("E308 gaussian_nll_loss-input-shape-cannot", input, var)
    return var


@function(
    name=NN + "gaussian_nll_loss",
    samples=[
        S(t(2, 3), t(2, 3), t(2, 3, low=0.5)),
        S(t(2, 3), t(2, 3), t(2, low=0.5), full=True),
        S(t(3), t(3), t(1, low=0.5), reduction="none"),
    ],
    errors=[Bad("E308", t(2, 3), t(2, 3), t(4, low=0.5))],
)
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    full: Flag = False,
    eps: float = 1e-6,
    reduction: str = "mean",
):
    """Negative log-likelihood of normal distributions; variances below `eps` count as `eps`, with
    their own slope."""
    mode = reduction_of(reduction)
    require_float("gaussian_nll_loss", var, "RuntimeError")
    var = _variance(input, var)
    var = F.with_value(var, F.where(var < eps, eps, var))
    difference = input - target
    loss = 0.5 * (F.log(var) + difference * difference / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, mode)


# -- two classes -----------------------------------------------------------------------------------


def _bce(x, target):
    for name, values in (("probabilities", x), ("targets", target)):
        if not ((values >= 0) & (values <= 1)).all():
            raise fault("E504 binary_cross_entropy-needs-between", name)
    return -(target * np.maximum(np.log(x), -100) + (1 - target) * np.maximum(np.log1p(-x), -100))


@pointwise(
    _bce,
    public=False,
    eager=True,
    inplace=False,
    samples=[S(t(2, 3, low=0.1, high=0.9), t(2, 3, low=0.1, high=0.9))],
)
def bce(input: Tensor, target: Tensor):
    """`-(target log(input) + (1 - target) log(1 - input))`, logarithms no lower than -100."""


@bce.vjp
def _(g, out, input, target):
    return g * F.bce_slope(input, target), g * (F.log(1 - input) - F.log(input))


@composite(public=False, samples=[S(t(3, low=0.1, high=0.9), t(3, low=0.1, high=0.9))])
def bce_slope(input: Tensor, target: Tensor):
    """The slope of `bce` towards its input, finite at 0 and 1 as PyTorch has it."""
    return (input - target) / F.maximum((1 - input) * input, 1e-12)


@bce_slope.vjp
def _(g, out, input, target):
    spread = (input + 1e-12) * (1 - input + 1e-12)
    curve = (input * input - 2 * input * target + target) / (spread * spread)
    return g * curve, -g / F.maximum((1 - input) * input, 1e-12)


P = t(2, 3, low=0.1, high=0.9)


@loss_node(
    name=NN + "binary_cross_entropy",
    samples=[
        S(P, P),
        S(P, P, weight=t(3, low=0.1, grad=False)),
        S(P, P, reduction="none"),
        S(t(values=0.3), t(values=0.9)),
    ],
    errors=[Bad("E504", t(2, low=1.5), t(2)), Bad("E308", P, t(3, low=0.1, high=0.9))],
    phrase="(p - y) / (p * (1 - p)), divided by their number for the mean",
)
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: Word = "mean"
):
    """Cross entropy of probabilities `input`; logarithms are cut at -100."""
    _floating("binary_cross_entropy", input, target)
    _same_shape("binary_cross_entropy", input, target)
    if input.dtype != target.dtype:
        raise fault("E307 binary_cross_entropy-needs-input-target", input, target)
    require_constant("binary_cross_entropy", "weight", weight)
    loss = F.bce(input, target)
    if weight is not None:
        loss = F.to(_as_many("binary_cross_entropy", input, loss * weight), input.dtype)
    return reduced(loss, reduction)


@composite(
    public=False, samples=[S(t(3), t(3, low=0.0, high=1.0), t(3, low=0.1, high=2.0, grad=False))]
)
def logits_loss(input: Tensor, target: Tensor, pos_weight: Tensor | None = None):
    """`(1 - target) x + (1 + (pos_weight - 1) target) log(1 + exp(-x))`, stable for every x."""
    spread = F.log1p(F.exp(-F.abs(input))) + F.maximum(-input, 0.0)
    if pos_weight is not None:
        spread = spread * (1 + (pos_weight - 1) * target)
    return (1 - target) * input + spread


@logits_loss.vjp
def _(g, out, input, target, pos_weight=None):
    chance = F.sigmoid(input)
    if pos_weight is None:
        return g * (chance - target), -g * input if target.requires_grad else None, None
    lifted = pos_weight * target
    low = F.log1p(F.exp(-F.abs(input))) + F.maximum(-input, 0.0)
    slope = (lifted + 1 - target) * chance - lifted
    return g * slope, g * ((pos_weight - 1) * low - input), None


@loss_node(
    name=NN + "binary_cross_entropy_with_logits",
    samples=[
        *MODES,
        S(
            t(2, 3),
            t(2, 3, low=0.0, high=1.0),
            weight=t(3, grad=False),
            pos_weight=t(3, low=0.5, grad=False),
        ),
    ],
    errors=[Bad("E308", t(2, 3), t(3))],
    properties=frozenset({"saturates", "two edges"}),
    phrase="sigmoid(x) - y, divided by their number for the mean",
)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: Word = "mean",
    pos_weight: Tensor | None = None,
):
    """Cross entropy of `sigmoid(input)`, finite for every input."""
    _same_shape("binary_cross_entropy_with_logits", input, target)
    require_float("binary_cross_entropy_with_logits", input)
    for parameter, node in (("weight", weight), ("pos_weight", pos_weight)):
        require_constant("binary_cross_entropy_with_logits", parameter, node)
    loss = _as_many(
        "binary_cross_entropy_with_logits", input, F.logits_loss(input, target, pos_weight)
    )
    if target.dtype.kind in "iu":
        raise fault(
            "E307 works-floating-point-numbers-2",
            name="binary_cross_entropy_with_logits",
            x=target,
        )
    if weight is not None:
        loss = _as_many("binary_cross_entropy_with_logits", input, loss * weight)
    return reduced(
        F.to(loss, target.dtype), reduction
    )  # PyTorch computes it in place of 1 - target
