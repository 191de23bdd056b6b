"""Normalization layers: centre, scale, then an affine map for each channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import fault
from ...graph.declare import Size, Tensor, composite, function
from ...graph.dtypes import FLOAT16, FLOAT32
from ...graph.op import cast, number
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.shapes import count
from ...graph.state import grad_mode
from ...graph.strides import with_channels
from ..kernels.matrices import require_same_dtype
from ..kernels.rules import require_constant, require_float, widened

NN = "nn.functional."
MOMENTS = "the moments are those of the input"


def _moments(x, dims, eps):
    """The mean and what to multiply with for variance 1."""
    mean = F.mean(x, dims, True)
    centered = F.sub(x, mean)
    return mean, F.rsqrt(F.add(F.mean(F.mul(centered, centered), dims, True), eps))


def _batch_moments(x, dims, eps):
    """The same, as PyTorch's kernel for batches rounds them."""

    def wide(node):
        return widened(node, x.numel)

    mean = F.to(F.mean(wide(x), dims, True), x.dtype)
    centered = F.sub(x, mean)
    squares = F.to(F.sum(wide(F.mul(centered, centered)), dims, True), x.dtype)
    var = F.div(squares, count(tuple(x.shape[d] for d in dims)))
    return mean, F.to(F.rsqrt(F.add(wide(var), eps)), x.dtype)


def _standardized_vjp(g, out, input, mean, rstd, weight, bias, dims, shape, by_row):
    """PyTorch saves the moments, and its formulas cancel exactly where the true slope is 0; the
    slopes by way of the moments are in that of the input."""
    slopes = _slopes_by_row if by_row else _slopes_of_batch
    scale = None if weight is None else F.reshape(weight, shape)
    to_input, to_weight, to_bias = slopes(g, input, mean, rstd, scale, dims)
    return (
        to_input, None, None,
        None if weight is None else F.summed_to(to_weight, weight.shape),
        None if bias is None else F.summed_to(to_bias, bias.shape),
    )  # fmt: skip


def _slopes_by_row(g, input, mean, rstd, scale, dims):
    n = count(tuple(input.shape[d] for d in dims))
    weighted = g if scale is None else F.mul(g, scale)
    total = F.sum(weighted, dims, True)
    product = F.sum(F.mul(weighted, input), dims, True)
    slope = (total * mean - product) * rstd * rstd * rstd / n
    offset = -slope * mean - total * rstd / n
    to_input = F.add(F.add(F.mul(weighted, rstd), F.mul(input, slope)), offset)
    return to_input, F.mul(F.mul(g, F.sub(input, mean)), rstd), g


def _slopes_of_batch(g, input, mean, rstd, scale, dims):
    n = count(tuple(input.shape[d] for d in dims))
    away = F.sub(input, mean)
    total, product = F.sum(g, dims, True), F.sum(F.mul(away, g), dims, True)
    along = F.mul(away, product * rstd * rstd / n)
    to_input = F.mul(F.sub(F.sub(g, total / n), along), rstd)
    if scale is not None:
        to_input = F.mul(to_input, scale)
    return to_input, F.reshape(product * rstd, (-1,)), F.reshape(total, (-1,))


@composite(
    public=False,
    vjp=_standardized_vjp,
    counterpart=lambda input, mean, rstd, weight, bias, dims, shape, by_row: _affine(
        F.mul(F.sub(input, mean), rstd), weight, bias, shape
    ),
    properties=frozenset({"whole slope"}),
    samples=[
        S(t(2, 3), t(2, 1), t(2, 1), t(3), t(3), (1,), (3,), True, order=0, because=MOMENTS),
        S(t(2, 3), t(1, 3), t(1, 3), t(3), None, (0,), (3,), False, order=0, because=MOMENTS),
    ],
)
def standardized(
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    dims: Any,
    shape: Any,
    by_row: bool,
):
    """`input` with mean 0 and variance 1 over `dims`, given its moments, then an affine map whose
    parameters are seen in a shape."""
    if by_row:
        return _affine(F.mul(F.sub(input, mean), rstd), weight, bias, shape)
    return _scaled(input, mean, rstd, weight, bias, shape)


def _scaled(x, mean, rstd, weight, bias, shape):
    """`(x - mean) * rstd`, then the affine map, as one product and one sum for each element."""
    scale = rstd if weight is None else F.mul(rstd, F.reshape(weight, shape))
    offset = number(0.0, x.dtype) if bias is None else F.reshape(bias, shape)
    return F.add_product(F.add_product(offset, F.neg(mean), scale), x, scale)


def _affine(x, weight, bias, shape):
    if weight is not None:
        x = F.mul(x, F.reshape(weight, shape))
    return x if bias is None else F.add(x, F.reshape(bias, shape))


def _check_parameter(op, name, parameter, shape, input):
    if parameter is None:
        return
    if parameter.dtype != input.dtype and input.dtype.itemsize > 2 and "rms" not in op:
        raise fault("E307 dtype-parameter-input-input", op, name, parameter, input)
    if parameter.shape != shape:
        raise fault("E308 shape-parameter-expected-shape", op, name, parameter, shape)


def _last_dims(op, input, normalized_shape, *parameters):
    weighted = op == "layer_norm" and any(p is not None for p in parameters)
    require_float(op, input, "RuntimeError" if weighted else "NotImplementedError")
    n = len(normalized_shape)
    if not n or input.shape[max(input.ndim - n, 0) :] != normalized_shape:
        raises = "ValueError" if op == "rms_norm" and input.ndim < n else ""
        raise fault("E308 last-dims", op, input, normalized_shape, raises)
    for name, parameter in zip(("weight", "bias"), parameters, strict=False):
        _check_parameter(op, name, parameter, normalized_shape, input)
    return tuple(range(input.ndim - n, input.ndim))


@composite(
    name=NN + "layer_norm",
    aliases=["layer_norm"],
    grad_fn="NativeLayerNormBackward0",
    properties=frozenset(
        {"row-major", "saves its body", "slope has a name", "three edges", "as its input"}
    ),
    samples=[
        S(t(2, 3), (3,)),
        S(t(2, 3), (3,), t(3), t(3)),
        S(t(2, 2, 3), (2, 3), t(2, 3), eps=0.5),
    ],
    errors=[Bad("E308", t(2, 3), (2,)), Bad("E308", t(2, 3), (3,), t(2))],
    phrase="(g*w - mean(g*w) - y * mean(g*w * y)) / std, where y is the normalised input",
    saves="operands",
)
def layer_norm(
    input: Tensor,
    normalized_shape: Size,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
):
    """Mean 0 and variance 1 over the last dims, then `weight` and `bias`."""
    dims = _last_dims("layer_norm", input, normalized_shape, weight, bias)
    moments = _moments(input, dims, eps)
    return F.standardized(input, *moments, weight, bias, dims, normalized_shape, True)


@function(
    name=NN + "rms_norm",
    aliases=["rms_norm"],
    samples=[S(t(2, 3), (3,)), S(t(2, 3), (3,), t(3), 1e-3)],
    errors=[Bad("E308", t(2, 3), (2,))],
)
def rms_norm(
    input: Tensor, normalized_shape: Size, weight: Tensor | None = None, eps: float | None = None
):
    """Root mean square 1 over the last dims, then `weight`."""
    dims = _last_dims("rms_norm", input, normalized_shape, weight)
    x = F.to(input, FLOAT32) if input.dtype == FLOAT16 else input
    if eps is None:
        eps = float(np.finfo(x.dtype).eps)
    scaled = F.mul(x, F.rsqrt(F.add(F.mean(F.mul(x, x), dims, True), eps)))
    found = F.to(scaled if weight is None else F.mul(scaled, weight), input.dtype)
    return F.contiguous(found)


def _channels(op, input):
    if input.ndim < 2:
        raise fault("E308 needs-least-dims", op, input)
    return input.shape[1]


@composite(
    name=NN + "group_norm",
    aliases=["group_norm"],
    grad_fn="NativeGroupNormBackward0",
    strides_rule=with_channels,
    properties=frozenset({"saves its body", "three edges", "as its input"}),
    samples=[S(t(2, 4), 2), S(t(2, 4, 3), 2, t(4), t(4), 0.5)],
    errors=[Bad("E308", t(2, 3), 2), Bad("E308", t(2, 4), 2, t(3))],
    phrase="as layer_norm, in each group",
)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
):
    """Mean 0 and variance 1 within each group of channels, then `weight` and `bias`."""
    channels = _channels("group_norm", input)
    places = count(input.shape[2:])
    if num_groups < 1:
        raises = "RuntimeError" if num_groups else "ZeroDivisionError"
        raise fault("E308 group_norm-channels-do-not", channels, num_groups, raises)
    if input.shape[0] * channels // num_groups * places == 1:
        raise fault("E308 group_norm-needs-more-value", input)
    if channels % num_groups:
        raise fault("E308 group_norm-channels-do-not", channels, num_groups, "")
    _check_parameter("group_norm", "weight", weight, (channels,), input)
    _check_parameter("group_norm", "bias", bias, (channels,), input)
    require_float("group_norm", input)
    size = places * (channels // num_groups)
    grouped = F.reshape(F.contiguous(input), (input.shape[0], num_groups, size))
    normal = F.standardized(grouped, *_moments(grouped, (2,), eps), None, None, (2,), (), True)
    return _affine(
        F.reshape(normal, input.shape), weight, bias, (channels, *(1,) * (input.ndim - 2))
    )


# -- batch statistics ------------------------------------------------------------------------------


@composite(
    public=False,
    counterpart=(
        NN + "batch_norm",
        lambda input, weight, bias, mean, var, eps: (
            (input, mean, var, weight, bias),
            {"training": True} if mean is None else {},
        ),
    ),
    grad_fn="NativeBatchNormBackward0",
    strides_rule=with_channels,
    properties=frozenset({"saves its body", "slope has a name", "three edges", "as its input"}),
    samples=[S(t(3, 2), t(2), t(2), None, None, 1e-5)],
    phrase="(g - mean(g) - y * mean(g * y)) / std of each channel, where y is the result",
    saves="input, weight, running_mean, running_var",
)
def batch_standardized(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    eps: float,
):
    """Each channel standardized by the batch, or by running statistics where they are given."""
    shape = (input.shape[1], *(1,) * (input.ndim - 2))
    if running_mean is None:
        dims = (0, *range(2, input.ndim))
        moments = _batch_moments(input, dims, eps)
        return F.standardized(input, *moments, weight, bias, dims, shape, False)
    mean, var = (F.reshape(F.detach(x), shape) for x in (running_mean, running_var))
    return _scaled(input, mean, F.rsqrt(F.add(var, eps)), weight, bias, shape)


def _write(parameter, value):
    """In-place change of a running statistic, if a program can see it."""
    tensor = parameter.handle and parameter.handle()
    if tensor is not None:
        with grad_mode(False):
            tensor.write(value)


def _blend(old, new, momentum):
    return F.add(F.mul(old, 1 - momentum), F.mul(new, momentum))


def _update(input, running_mean, running_var, momentum, fold=lambda x: x):
    """Move running statistics towards those of the batch; `fold` averages them over instances."""
    if (running_mean is None) != (running_var is None):
        raise fault("E205 one-running-statistic-alone")
    dims = (0, *range(2, input.ndim))
    x = F.detach(input)
    for running, moment in ((running_mean, F.mean), (running_var, F.var)):
        if running is not None:
            old = cast(F.detach(running), x.dtype)
            _write(running, _blend(old, fold(moment(x, dims)), momentum))


def _check_channels(op, channels, input, *parameters):
    names = ("running_mean", "running_var", "weight", "bias")
    for name, parameter in zip(names, parameters, strict=True):
        _check_parameter(op, name, parameter, (channels,), input)
        if name.startswith("running"):
            require_constant("native_batch_norm", name, parameter)


@function(
    name=NN + "batch_norm",
    aliases=["batch_norm"],
    samples=[
        S(t(3, 2), None, None, t(2), t(2), True),
        S(t(2, 2, 3), t(2, grad=False), t(2, low=0.5, grad=False), eps=0.1),
    ],
    errors=[Bad("E308", t(3, 2), t(3), t(3)), Bad("E308", t(1, 2), None, None, training=True)],
)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """Each channel standardized over the batch (training), or by running statistics."""
    if training and input.shape and input.shape[0] * count(input.shape[2:]) == 1:
        raise fault("E308 batch_norm-training-needs-more", input)
    channels = input.shape[1] if input.ndim > 1 else input.shape[0] if input.shape else 0
    _check_channels("batch_norm", channels, input, running_mean, running_var, weight, bias)
    if eps < 0 or (eps == 0 and training):
        raise fault("E504 batch_norm-needs-eps", eps)
    if not input.numel:  # as PyTorch, by the first channel
        out = input if weight is None else F.mul(input, F.select(weight, 0, 0))
        return F.clone(out) if bias is None else F.add(out, F.select(bias, 0, 0))
    _channels("batch_norm", input)
    require_float("batch_norm", input)
    if training:
        _update(input, running_mean, running_var, momentum)
        return F.batch_standardized(input, weight, bias, None, None, eps)
    if running_mean is None or running_var is None:
        raise fault("E205 batch_norm-needs-running_mean-running_var")
    return F.batch_standardized(input, weight, bias, running_mean, running_var, eps)


@function(
    name=NN + "instance_norm",
    aliases=["instance_norm"],
    samples=[S(t(2, 2, 3)), S(t(2, 2, 3), weight=t(2), bias=t(2), eps=0.5)],
    errors=[Bad("E308", t(2, 2)), Bad("E308", t(2, 2, 1))],
)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """Each channel of each instance standardized."""
    if input.ndim < 3:
        raise fault("E308 instance_norm-needs", input)
    batch, channels, *rest = input.shape
    if use_input_stats and count(tuple(rest)) == 1:
        raise fault("E308 instance_norm-needs-more-element", input)
    stats = [s if s is None else cast(s, input.dtype) for s in (running_mean, running_var)]
    _check_channels("instance_norm", channels, input, *stats, weight, bias)

    def repeated(parameter):
        return None if parameter is None else F.repeat(parameter, (batch,))

    def averaged(value):
        return F.mean(F.reshape(value, (batch, channels)), (0,))

    x = F.reshape(input, (1, batch * channels, *rest))
    if use_input_stats:
        _update(x, running_mean, running_var, momentum, averaged)
        stats = [None, None]
    given = map(repeated, (*stats, weight, bias))
    return F.view(F.batch_norm(x, *given, use_input_stats, momentum, eps), input.shape)


@function(
    name=NN + "local_response_norm",
    samples=[S(t(1, 3, 2), 2), S(t(1, 4, 2, 2), 3, 0.1, 0.5, 2.0)],
    errors=[Bad("E308", t(2, 3), 2)],
    lacks="avg_pool2d ints bool",
)
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
):
    """Each element over a power of the mean square of `size` neighbouring channels."""
    if input.ndim < 3:
        raise fault("E308 local_response_norm-needs-least-dims", input)
    if size < 1:
        raise fault("E309 local_response_norm-needs-size-least", size)
    if not input.numel:
        return input
    channels = input.shape[1]
    square = F.mul(input, input)
    padding = (0, 0) * (input.ndim - 2) + (size // 2, (size - 1) // 2)
    padded = F.pad(square, padding)
    total = F.narrow(padded, 1, 0, channels)
    for start in range(1, size):
        total = F.add(total, F.narrow(padded, 1, start, channels))
    return F.div(input, F.pow(F.add(F.mul(F.div(total, size), alpha), k), beta))


# -- weights ---------------------------------------------------------------------------------------


@composite(
    public=False,
    counterpart="_weight_norm",
    lacks="weight_norm_kernel ints bool",
    no_forward="_weight_norm_interface",
    samples=[S(t(2, 3), t(2, 1), 0), S(t(2, 2, 3), t(1, 1, 3), 2), S(t(3), t(3), 0)],
    phrase="to g times v / norm, summed; to v upstream less its part along v, times g / norm",
    saves="operands",
)
def weight_norm_interface(v: Tensor, g: Tensor, dim: int):
    """`v` scaled to the norms `g` along its first or last dim. Differentiated twice the norms are
    functions of `v`; PyTorch takes them for constants there."""
    return F.mul(v, F.div(g, F.norm_except_dim(v, 2, dim)))


@weight_norm_interface.vjp
def _(grad, out, v, g, dim):
    norms = F.norm_except_dim(v, 2, dim)
    others = tuple(d for d in range(v.ndim) if d != dim)
    along = F.sum(F.mul(grad, v), others, True) if others else F.mul(grad, v)
    to_v = F.mul(F.div(g, norms), F.sub(grad, F.mul(v, F.div(along, F.mul(norms, norms)))))
    return to_v, F.div(along, norms)


@function(
    public=False,
    counterpart="_weight_norm",
    samples=[
        S(t(2, 3), t(2, 1)),
        S(t(2, 3), t(1, 3), 1),
        S(t(2, 3, 2), t(1, 3, 1), 1),
        S(t(2, 3), t(), -1),
    ],
    errors=[
        Bad("E304", t(2, 3), t(2, 1), 2),
        Bad("E308", t(2, 3), t(3, 1), words="(3, 1), wanted (2, 1)"),
    ],
)
def weight_norm(v: Tensor, g: Tensor, dim: int = 0):
    """`v` with the norms `g` for each index of `dim`, or the norm `g` of all of it (-1)."""
    if not v.ndim or dim not in (0, v.ndim - 1):
        return F.mul(v, F.div(g, F.norm_except_dim(v, 2, dim)))
    require_same_dtype("weight_norm", v, g)
    shape = tuple(n if d == dim else 1 for d, n in enumerate(v.shape))
    if g.shape != shape:
        raise fault("E308 weight_norm-g-shape", g, shape)
    return F.weight_norm_interface(v, g, dim)
