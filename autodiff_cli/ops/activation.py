"""Activations: relu and its relatives, the softmax family, dropout.

Bodies never overflow where the result does not: their derivatives would be nan there.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import fail
from ..graph.declare import Dim, Dtype, Scalar, Tensor, composite, function, pointwise
from ..graph.op import cast, constant, value_of
from ..graph.registry import F
from ..graph.samples import Bad, S, ints, t
from ..graph.state import STATE

ALL = (S(t(2, 3)), S(t()))
KINKS = (S(t(2, 3)), S(t(values=[-1.0, 0.0, 0.5, 1.0, 3.0, -3.0])))


def _floats_only(name, input):
    if input.dtype.kind != "f":
        raise fail("E307", f"`{name}` works on floating point tensors, not on {input.dtype.name}",
                   help="write `.to(torch.float64)`, or floats: `[1.0, 2.0]`")


def _no_bool(name, input):
    if input.dtype.kind == "b":
        raise fail("E307", f"`{name}` does not work on bool tensors", help="write `.to(torch.float64)`")


def _functional(*names):
    """Aliases of functions that PyTorch has in two places."""
    return [f"nn.functional.{name}" for name in names]


# -- rectifiers --------------------------------------------------------------------------------------


@function(name="nn.functional.relu", samples=KINKS)
def functional_relu(input: Tensor, inplace: bool = False):
    """The positive part; its slope at 0 is 0."""
    return F.relu(input)


@pointwise(lambda x: np.maximum(x, 0), check=lambda input: _no_bool("relu", input), kink=lambda input: F.abs(input),
           vjp=lambda g, out, input: F.where(F.le(out, 0), 0, g), samples=[*KINKS, S(ints(3, low=-2))])
def relu(input: Tensor):
    """The positive part; its slope at 0 is 0."""


@composite(name="nn.functional.leaky_relu", grad_fn="LeakyReluBackward0", samples=[*KINKS, S(t(3), 0.2)])
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False):
    """`input` above 0, `negative_slope * input` elsewhere."""
    _floats_only("leaky_relu", input)
    return F.where(F.gt(input, 0), input, input * negative_slope)


def _elu(input, alpha, scale, input_scale):
    positive = F.gt(input, 0)
    safe = F.where(positive, 0, input)
    below = F.expm1(safe if input_scale == 1 else safe * input_scale)
    above = input if scale == 1 else input * scale
    return F.where(positive, above, below if alpha * scale == 1 else below * (alpha * scale))


def _elu_vjp(g, input, alpha, scale, input_scale):
    """Curved below 0 only: at 0 the second derivative is 0, as in PyTorch."""
    safe = F.where(F.ge(input, 0), 0, input)
    below = g * F.exp(safe if input_scale == 1 else safe * input_scale)
    factor = alpha * scale * input_scale
    return F.where(F.gt(input, 0), g if scale == 1 else g * scale, below if factor == 1 else below * factor)


@composite(name="nn.functional.elu", vjp=lambda g, out, input, alpha, inplace: _elu_vjp(g, input, alpha, 1, 1), grad_fn="EluBackward0", samples=[*KINKS, S(t(3), 0.5)])
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False):
    """`input` above 0, `alpha * (exp(input) - 1)` elsewhere."""
    _floats_only("elu", input)
    return _elu(input, alpha, 1, 1)


SELU = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)


@composite(aliases=_functional("selu"), vjp=lambda g, out, input, inplace: _elu_vjp(g, input, *SELU), grad_fn="EluBackward0", method=False, inplace=True, samples=KINKS)
def selu(input: Tensor, inplace: bool = False):
    """The elu of self-normalizing networks: alpha 1.6733, all times 1.0507."""
    _floats_only("selu", input)
    return _elu(input, *SELU)


@composite(aliases=_functional("celu"), vjp=lambda g, out, input, alpha, inplace: _elu_vjp(g, input, alpha, 1, 1 / alpha),
           method=False, inplace=True, samples=[*KINKS, S(t(3), 2.0)],
           errors=[Bad("E205", t(2), 0.0)])
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False):
    """`input` above 0, `alpha * (exp(input / alpha) - 1)` elsewhere."""
    _floats_only("celu", input)
    if alpha == 0:
        raise fail("E205", "`celu` needs an alpha other than 0", help="`celu(x, 1.0)`")
    return _elu(input, alpha, 1, 1 / alpha)


@composite(name="rrelu", aliases=_functional("rrelu"), grad_fn="RreluWithNoiseBackward0", method=False, inplace=True,
           samples=KINKS)
def rrelu(input: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, inplace: bool = False):
    """`input` above 0, elsewhere times a slope: the mean of the bounds, or drawn between them in training."""
    _floats_only("rrelu", input)
    if training:
        slopes = _generator().rrelu(value_of(input), lower, upper)
        return input * constant(np.asarray(slopes, input.dtype))
    return F.where(F.gt(input, 0), input, input * ((lower + upper) / 2))


def _prelu_vjp(g, out, input, weight):
    above = F.gt(input, 0)
    return F.where(above, g, weight * g), F.where(above, 0, input * g)


@composite(method=False, grad_fn="PreluKernelBackward0", vjp=_prelu_vjp, properties=frozenset({"broadcasts"}), samples=[S(t(2, 3), t(1, 3))])
def prelu_kernel(input: Tensor, weight: Tensor):
    """`input` above 0, `weight * input` elsewhere."""
    return F.where(F.gt(input, 0), input, weight * input)


@function(aliases=_functional("prelu"), samples=[S(t(2, 3), t(3)), S(t(2, 3), t(1)), S(t(), t())],
          errors=[Bad("E308", t(2, 3), t(2))])
def prelu(input: Tensor, weight: Tensor):
    """`input` above 0, `weight * input` elsewhere, with one weight or one for each channel (dim 1)."""
    if weight.numel != 1:
        channels = input.shape[1] if len(input.shape) > 1 else 1
        if len(weight.shape) != 1 or weight.numel != channels:
            raise fail("E308", f"prelu needs one weight or {channels}, one for each channel, got shape "
                       f"{tuple(weight.shape)} for an input of shape {tuple(input.shape)}",
                       help="make the weight of shape `(input.shape[1],)`")
    _floats_only("prelu", input)
    if weight.dtype != input.dtype:
        raise fail("E307", f"prelu needs one dtype, got {input.dtype.name} and {weight.dtype.name}",
                   help=f"convert the weight: `.to(torch.{input.dtype.name})`")
    if not (weight.shape == () and len(input.shape) < 2):
        dims = len(input.shape)
        shape = (weight.numel,) if dims == 1 else (1, weight.numel, *(1,) * (dims - 2)) if dims else ()
        if weight.shape != shape:
            weight = F.reshape(weight, shape)
    return F.prelu_kernel(input, weight)


def _threshold_vjp(g, out, input, threshold, value, inplace):
    return F.where(F.le(input, threshold), 0, g)


@composite(aliases=_functional("threshold"), inplace=True, method=False, vjp=_threshold_vjp,
           samples=[S(t(2, 3), 0.5, -1.0), S(t(values=[0.5, 1.0]), 0.5, 2.0)])
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False):
    """`input` above `threshold`, `value` elsewhere."""
    if input.dtype.kind != "f":
        _no_bool("threshold", input)
        threshold, value = int(threshold), int(value)
    return F.where(F.le(input, threshold), value, input)


# -- bounded and shrunk ------------------------------------------------------------------------------


def _between(input, low, high):
    return F.logical_and(F.gt(input, low), F.lt(input, high))


def _within(input, bound):
    return F.logical_and(F.ge(input, -bound), F.le(input, bound))


@composite(name="nn.functional.hardtanh", grad_fn="HardtanhBackward0", samples=[*KINKS, S(t(3), -0.5, 0.5)],
           vjp=lambda g, out, input, low, high, inplace: F.where(_between(input, low, high), g, 0))
def hardtanh(input: Tensor, min_val: Scalar = -1.0, max_val: Scalar = 1.0, inplace: bool = False):
    """`input` held between the bounds; the slope at a bound is 0."""
    if min_val > max_val:
        raise fail("E205", f"hardtanh needs min_val <= max_val, got {min_val} and {max_val}",
                   help="`hardtanh(x, -1.0, 1.0)`")
    if input.dtype.kind != "f":
        _no_bool("hardtanh", input)
        min_val, max_val = int(min_val), int(max_val)
        if input.dtype.kind == "u" and min(min_val, max_val) < 0:
            raise fail("E307", f"hardtanh of {input.dtype.name} cannot have negative bounds",
                       help="write `.to(torch.float64)`")
    return F.clamp(input, min_val, max_val)


@function(aliases=_functional("relu6"), method=False, samples=KINKS)
def relu6(input: Tensor, inplace: bool = False):
    """`input` held between 0 and 6; the slope at 0 and 6 is 0."""
    return F.hardtanh(input, 0, 6)


@composite(name="nn.functional.hardsigmoid", grad_fn="HardsigmoidBackward0", samples=KINKS,
           vjp=lambda g, out, input, inplace: F.where(_between(input, -3, 3), g * (1 / 6), 0))
def hardsigmoid(input: Tensor, inplace: bool = False):
    """`input / 6 + 1/2` held between 0 and 1; the slope at the bounds is 0."""
    _floats_only("hardsigmoid", input)
    return F.clamp(input + 3, 0, 6) / 6


def _hardswish_vjp(g, out, input, inplace):
    inside = F.where(F.ge(input, 3), g, g * (input / 3 + 0.5))
    return F.where(F.le(input, -3), 0, inside)


@composite(name="nn.functional.hardswish", grad_fn="HardswishBackward0", samples=KINKS, vjp=_hardswish_vjp)
def hardswish(input: Tensor, inplace: bool = False):
    """`input` times hardsigmoid; slope 0 at -3, 1 at 3."""
    _floats_only("hardswish", input)
    return input * F.clamp(input + 3, 0, 6) / 6


def _shrunk_vjp(g, out, input, lambd):
    return F.where(F.logical_or(F.lt(input, -lambd), F.gt(input, lambd)), g, 0)


@composite(name="nn.functional.softshrink", grad_fn="SoftshrinkBackward0", vjp=_shrunk_vjp, samples=[*KINKS, S(t(3), 1.0)],
           errors=[Bad("E205", t(2), -1.0)])
def softshrink(input: Tensor, lambd: float = 0.5):
    """Moved towards 0 by `lambd`, 0 between the bounds; the slope at the bounds is 0."""
    _floats_only("softshrink", input)
    if lambd < 0:
        raise fail("E205", f"softshrink needs a lambd of at least 0, not {lambd}", help="`softshrink(x, 0.5)`")
    moved = F.where(F.gt(input, 0), input - lambd, input + lambd)
    return F.where(_within(input, lambd), input * 0, moved)


@composite(aliases=_functional("hardshrink"), vjp=_shrunk_vjp, samples=[*KINKS, S(t(3), 1.0)])
def hardshrink(input: Tensor, lambd: float = 0.5):
    """0 between `-lambd` and `lambd`, `input` elsewhere; the slope at the bounds is 0."""
    _floats_only("hardshrink", input)
    return F.where(_within(input, lambd), 0, input)


@function(name="nn.functional.tanhshrink", samples=ALL)
def tanhshrink(input: Tensor):
    """`input - tanh(input)`."""
    return input - F.tanh(input)


@function(name="nn.functional.softsign", samples=[*ALL, S(t(values=[0.0, 1.0]))])
def softsign(input: Tensor):
    """`input / (1 + |input|)`."""
    return input / (F.abs(input) + 1)


# -- smooth ------------------------------------------------------------------------------------------


@composite(name="nn.functional.softplus", grad_fn="SoftplusBackward0",
           samples=[*ALL, S(t(3), beta=2), S(t(values=[-50.0, 9.9, 10.1]), beta=2.0, threshold=20.0)])
def softplus(input: Tensor, beta: float = 1, threshold: float = 20):
    """`log(1 + exp(beta * input)) / beta`, `input` itself where `beta * input > threshold`."""
    _floats_only("softplus", input)
    scaled = input if beta == 1 else input * beta
    linear = F.gt(scaled, threshold)
    curve = F.log1p(F.exp(F.where(linear, 0, scaled)))
    return F.where(linear, input, curve if beta == 1 else curve / beta)


@composite(name="nn.functional.logsigmoid", grad_fn="LogSigmoidBackward0", samples=[*ALL, S(t(values=[0.0, -800.0, 800.0]))],
           vjp=lambda g, out, input: g * F.sigmoid(-input))
def logsigmoid(input: Tensor):
    """`log(sigmoid(input))` without overflow."""
    _floats_only("logsigmoid", input)
    return F.clamp_max(input, 0) - F.log1p(F.exp(-F.abs(input)))


@composite(name="nn.functional.silu", grad_fn="SiluBackward0", samples=ALL)
def silu(input: Tensor, inplace: bool = False):
    """`input * sigmoid(input)`."""
    _floats_only("silu", input)
    return input * F.sigmoid(input)


@composite(name="nn.functional.mish", grad_fn="MishBackward0", samples=ALL)
def mish(input: Tensor, inplace: bool = False):
    """`input * tanh(softplus(input))`."""
    _floats_only("mish", input)
    return input * F.tanh(F.softplus(input))


@composite(name="nn.functional.gelu", grad_fn="GeluBackward0", samples=[*ALL, S(t(3), approximate="tanh")],
           errors=[Bad("E205", t(2), approximate="erf")])
def gelu(input: Tensor, *, approximate: str = "none"):
    """`input` times the normal distribution function of `input`, exactly or by tanh."""
    _floats_only("gelu", input)
    if approximate == "none":
        return input * 0.5 * (1 + F.erf(input * math.sqrt(0.5)))
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (input + 0.044715 * (input * input * input))
        return 0.5 * input * (1 + F.tanh(inner))
    raise fail("E205", f"approximate must be \"none\" or \"tanh\", not {approximate!r}",
               help="`gelu(x, approximate=\"tanh\")`")


@composite(name="nn.functional.glu", grad_fn="GluBackward0", samples=[S(t(2, 4)), S(t(4, 3), 0)],
           errors=[Bad("E308", t(2, 3))])
def glu(input: Tensor, dim: Dim = -1):
    """First half along `dim` times sigmoid of the second half."""
    _floats_only("glu", input)
    size = input.shape[dim] if input.shape else 1
    if size % 2 or not input.shape:
        raise fail("E308", f"glu halves dim {dim}, whose size must be even, not {size}: shape {tuple(input.shape)}",
                   help="choose another dim")
    half = size // 2
    return F.narrow(input, dim, 0, half) * F.sigmoid(F.narrow(input, dim, half, half))


# -- softmax -----------------------------------------------------------------------------------------


def _shifted(input, dim):
    """`input` less its largest element along `dim`, so that exponentials do not overflow."""
    return input - F.detach(F.amax(input, dim, keepdim=True))


def _checked(name, input, dtype):
    if dtype is not None:
        input = cast(input, dtype)
    _floats_only(name, input)
    return input


SOFTMAX_SAMPLES = (S(t(2, 3), dim=-1), S(t(2, 3, 2), 1), S(t(), 0))
SOFTMAX_ERRORS = (Bad("E304", t(2, 3), 2), Bad("E307", ints(2), 0))


def _implicit_dim(input, dim):
    """The dim that `nn.functional` takes for None."""
    if dim is None:
        return 0 if len(input.shape) in (0, 1, 3) else 1
    return dim


def _softmax_pair(key, node):
    def plain(input: Tensor, dim: Dim, dtype: Dtype | None = None):
        return getattr(F, node)(_checked(key, input, dtype), dim)

    def functional(input: Tensor, dim: Dim | None = None, _stacklevel: int = 3, dtype: Dtype | None = None):
        return getattr(F, node)(_checked(key, input, dtype), _implicit_dim(input, dim))

    doc = "Logarithms of softmax along `dim`." if "log" in key else "Exponentials along `dim`, scaled to sum to one."
    plain.__doc__ = functional.__doc__ = doc
    function(key=key, aliases=[f"special.{key}"], samples=SOFTMAX_SAMPLES, errors=SOFTMAX_ERRORS)(plain)
    function(key=f"functional_{key}", name=f"nn.functional.{key}", method=False,
             samples=[*SOFTMAX_SAMPLES, S(t(2, 3))])(functional)


_softmax_pair("softmax", "softmax_node")
_softmax_pair("log_softmax", "log_softmax_node")


@composite(method=False, name="softmax", grad_fn="SoftmaxBackward0", samples=[S(t(2, 3), 1)])
def softmax_node(input: Tensor, dim: Dim):
    """Exponentials along `dim`, scaled to sum to one."""
    if not input.numel:
        return F.exp(input)
    powers = F.exp(_shifted(input, dim))
    return powers / F.sum(powers, dim, keepdim=True)


@softmax_node.vjp
def _(g, out, input, dim):
    weighted = g * out
    return weighted - out * F.sum(weighted, dim, keepdim=True)


@composite(method=False, name="log_softmax", grad_fn="LogSoftmaxBackward0", samples=[S(t(2, 3), 1)])
def log_softmax_node(input: Tensor, dim: Dim):
    """Logarithms of softmax along `dim`."""
    if not input.numel:
        return F.exp(input)
    shifted = _shifted(input, dim)
    return shifted - F.log(F.sum(F.exp(shifted), dim, keepdim=True))


@log_softmax_node.vjp
def _(g, out, input, dim):
    return g - F.exp(out) * F.sum(g, dim, keepdim=True)


@function(name="nn.functional.softmin", method=False, samples=[*SOFTMAX_SAMPLES, S(t(2, 3))])
def softmin(input: Tensor, dim: Dim | None = None, _stacklevel: int = 3, dtype: Dtype | None = None):
    """Softmax of the negated elements."""
    return F.softmax_node(_checked("softmin", -input, dtype), _implicit_dim(input, dim))


# -- dropout -----------------------------------------------------------------------------------------


def _generator():
    generator = STATE.default_generator
    if generator is None:
        raise fail("E203", "this program has no random numbers", help="use `training=False`")
    return generator




def _check_p(p):
    if not 0 <= p <= 1:
        raise fail("E205", f"the dropout probability must lie between 0 and 1, not {p}", help="`dropout(x, 0.5)`")


def _dropped(input, p, training, feature):
    _check_p(p)
    if not training or p == 0 or not input.numel:
        return input
    shape = input.shape
    if feature:
        shape = (*shape[:2], *(1,) * (len(shape) - 2))
    if p == 1:
        return F.mul(input, F.zeros(shape, dtype=input.dtype))
    return F.mul(input, constant(_generator().dropout(shape, p, input.dtype)))


def _alpha_dropped(input, p, training, feature):
    _check_p(p)
    if not training or p == 0 or not input.numel:
        return input
    shape = input.shape
    if feature:
        shape = (*shape[:2], *(1,) * (len(shape) - 2))
    if p == 1:
        return F.mul(input, F.zeros(shape, dtype=input.dtype))
    factor, summand = _generator().alpha_dropout(shape, p, input.dtype)
    return F.add(F.mul(input, constant(factor)), constant(summand))


def _dropout(key, names, drop, feature, trains, doc):
    """The function of `torch` (p and train required) and that of `nn.functional`."""

    def plain(input: Tensor, p: float, train: bool):
        return drop(input, p, train, feature)

    def functional(input: Tensor, p: float = 0.5, training: bool = trains, inplace: bool = False):
        return drop(input, p, training, feature)

    plain.__doc__ = functional.__doc__ = doc
    function(key=key, method=False, inplace=True, samples=[S(t(2, 3), 0.5, False), S(t(2, 3), 0.0, True)],
             errors=[Bad("E205", t(2), 1.5, True)])(plain)
    function(key=f"functional_{key}", name=names[0], aliases=names[1:], method=False,
             samples=[S(t(2, 3), 0.5, training=False), S(t(2, 3), 1.0, training=True)])(functional)


for _key, _names, _drop, _feature, _trains, _doc in (
    ("dropout", ["dropout"], _dropped, False, True, "Zeros elements with probability p in training, scales the others."),
    ("feature_dropout", ["dropout1d", "dropout2d", "dropout3d"], _dropped, True, True,
     "Zeros whole channels with probability p in training, scales the others."),
    ("alpha_dropout", ["alpha_dropout"], _alpha_dropped, False, False, "Dropout that keeps mean and variance of selu."),
    ("feature_alpha_dropout", ["feature_alpha_dropout"], _alpha_dropped, True, False,
     "Alpha dropout of whole channels."),
):
    _dropout(_key, _functional(*_names), _drop, _feature, _trains, _doc)
