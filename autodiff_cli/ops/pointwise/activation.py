"""Activations: relu and its relatives.

Bodies never overflow where the result does not: their derivatives would be nan there.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import fail, fault, labelled
from ...graph.declare import Dim, Flag, Scalar, Tensor, composite, function, pointwise
from ...graph.dtypes import INT64
from ...graph.op import rounded_once
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.state import STATE
from ..kernels.indices import check_number
from ..kernels.rules import NAMED_SLOPE, ONCE, flat, moving, refuse_bools, require_float

ALL = (S(t(2, 3)), S(t()))
KINKS = (S(t(2, 3)), S(t(values=[-1.0, 0.0, 0.5, 1.0, 3.0, -3.0]), order=0, because="kinks"))


def _functional(*names):
    """Aliases of functions that PyTorch has in two places."""
    return [f"nn.functional.{name}" for name in names]


def _numbers_fit(input, *options):
    """PyTorch's kernels take the numbers in the dtype of the input."""
    for number in options if input.dtype.kind == "f" else ():
        check_number(number, input.dtype)


# -- rectifiers ------------------------------------------------------------------------------------


@function(name="nn.functional.relu", samples=KINKS)
def functional_relu(input: Tensor, inplace: Flag = False):
    """The positive part; its slope at 0 is 0."""
    return F.relu(input)


@pointwise(
    lambda x: np.maximum(0, x),  # the second where both are equal: -0.0 stays
    check=lambda input: refuse_bools("relu", input),
    kink=lambda input: F.abs(input),
    vjp=lambda g, out, input: flat(F.where(F.le(out, 0), 0, g), out, "ThresholdBackwardBackward0"),
    samples=[*KINKS, S(ints(3, low=-2))],
    properties=frozenset({"rectifies"}),
    phrase="passes where the input is positive",
)
def relu(input: Tensor):
    """The positive part; its slope at 0 is 0."""


def _to_bounds(input, low, high):
    """The distance to the nearer of two kinks."""
    return F.minimum(F.abs(input - low), F.abs(input - high))


ASK = (
    " File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place "
    "leakRelu backward calculation with negative slope"
)


def _check_slope(name, out, input, slope, more=""):
    """From a result that stands where its operand was PyTorch reads the sign of the operand."""
    change = input.marks and input.marks.overwritten
    if slope < 0 and change and change[1] is out:
        raise fault(
            "E407 negative-slope-in-place", name, more, labels=labelled(change[0], "in place")
        )


def _leaky_vjp(g, out, input, slope, inplace=False):
    _check_slope("leakyReLu", out, input, slope, ASK)
    return F.where(F.gt(input, 0), g, g * slope)


@composite(
    name="nn.functional.leaky_relu",
    vjp=_leaky_vjp,
    samples=[*KINKS, S(t(3), 0.2)],
    properties=NAMED_SLOPE,
    kink=lambda input, *rest: F.abs(input),
    phrase="passes where the input is positive, times negative_slope below",
)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: Flag = False):
    """`input` above 0, `negative_slope * input` elsewhere."""
    require_float("leaky_relu", input)
    return F.where(F.gt(input, 0), input, input * negative_slope)


def _elu(input, alpha, scale, input_scale):
    positive = F.gt(input, 0)
    safe = F.where(positive, 0, input)
    below = F.expm1(safe if input_scale == 1 else safe * input_scale)
    above = input if scale == 1 else input * scale
    factor = alpha * scale
    return F.where(positive, above, below if factor == 1 else below * factor)


def _elu_vjp(g, out, input, alpha, scale, input_scale):
    """Curved below 0 only: at 0 the second derivative is 0, as in PyTorch."""
    _check_slope("elu", out, input, alpha)
    return _elu_slope(g, input, alpha, scale, input_scale)


@rounded_once
def _elu_slope(g, input, alpha, scale, input_scale):
    safe = F.where(F.lt(input, 0), input, 0)
    below = g * F.exp(safe if input_scale == 1 else safe * input_scale)
    factor = alpha * scale * input_scale
    return F.where(
        F.le(input, 0), below if factor == 1 else below * factor, g if scale == 1 else g * scale
    )


@composite(
    name="nn.functional.elu",
    vjp=lambda g, out, input, alpha, inplace: _elu_vjp(g, out, input, alpha, 1, 1),
    samples=[*KINKS, S(t(3), 0.5)],
    kink=lambda input, *rest: F.abs(input),
    properties=frozenset({"saturates", "slope has a name"}),
    phrase="passes where the input is positive, times alpha * exp(x) below",
)
def elu(input: Tensor, alpha: float = 1.0, inplace: Flag = False):
    """`input` above 0, `alpha * (exp(input) - 1)` elsewhere."""
    require_float("elu", input)
    return _elu(input, alpha, 1, 1)


SELU = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)


@composite(
    aliases=_functional("selu"),
    vjp=lambda g, out, input, inplace: _elu_vjp(g, out, input, *SELU),
    grad_fn="EluBackward0",
    method=False,
    inplace=True,
    samples=KINKS,
    kink=lambda input, *rest: F.abs(input),
    properties=frozenset({"saturates", "slope has a name"}),
    phrase="elu's slope times the scale",
)
def selu(input: Tensor, inplace: Flag = False):
    """The elu of self-normalizing networks: alpha 1.6733, all times 1.0507."""
    require_float("selu", input)
    return _elu(input, *SELU)


@composite(
    aliases=_functional("celu"),
    vjp=lambda g, out, input, alpha, inplace: _elu_vjp(g, out, input, alpha, 1, 1 / alpha),
    method=False,
    inplace=True,
    samples=[*KINKS, S(t(3), 2.0)],
    errors=[Bad("E205", t(2), 0.0)],
    properties=frozenset({"saturates"}),
    phrase="passes where the input is positive, times exp(x / alpha) below",
)
def celu(input: Tensor, alpha: float = 1.0, inplace: Flag = False):
    """`input` above 0, `alpha * (exp(input / alpha) - 1)` elsewhere."""
    require_float("celu", input)
    if alpha == 0:
        raise fail("E205", "`celu` needs an alpha other than 0", help="`celu(x, 1.0)`")
    return _elu(input, alpha, 1, 1 / alpha)


@composite(
    aliases=_functional("rrelu"),
    vjp=lambda g, out, input, lower, upper, *rest: _leaky_vjp(g, out, input, (lower + upper) / 2),
    grad_fn="RreluWithNoiseBackward0",
    method=False,
    inplace=True,
    samples=KINKS,
    kink=lambda input, *rest: F.abs(input),
    properties=NAMED_SLOPE,
    phrase="passes where the input is positive, times the drawn slope below",
)
def rrelu(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: Flag = False,
):
    """`input` above 0, elsewhere times the mean of the bounds; in training programs draw slopes."""
    require_float("rrelu", input)
    if lower > upper or not math.isfinite(lower) or not math.isfinite(upper):
        raise fault("E205 rrelu-needs-lower-upper", lower, upper)
    return F.leaky_relu(input, (lower + upper) / 2)


def _prelu_slopes(grad, input, weight):
    above = F.gt(input, 0)
    return F.where(above, grad, weight * grad), F.where(above, 0, input * grad)


@composite(
    public=False,
    grad_fn="PreluKernelBackwardBackward0",
    properties=frozenset({"broadcasts", "convention"}),
    samples=[S(t(2, 3), t(2, 3), t(1, 3))],
    kink=lambda grad, input, weight: F.abs(input),
)
def prelu_slopes(grad: Tensor, input: Tensor, weight: Tensor):
    """The slopes of `prelu_kernel`, times `grad`; in theirs 0 counts as positive."""
    return _prelu_slopes(grad, input, weight)


@prelu_slopes.vjp
def _(g, out, grad, input, weight):
    positive = F.ge(input, 0)
    to_input, to_weight = g
    to_grad = F.where(positive, to_input, weight * to_input + input * to_weight)
    return (
        to_grad,
        F.where(positive, 0, grad * to_weight),
        F.where(positive, 0, grad * to_input),
    )


def _prelu_vjp(g, out, input, weight):
    slopes = F.prelu_slopes if STATE.grad else _prelu_slopes
    to_input, to_weight = slopes(g, input, weight)
    return flat(to_input, input, "PreluKernelBackwardBackward0"), to_weight


def _prelu_forward(moves, out, input, weight):
    to_input, to_weight = moving(moves, input, weight)
    return F.where(F.ge(input, 0), to_input, weight * to_input + input * to_weight)


@composite(
    public=False,
    vjp=_prelu_vjp,
    forward=_prelu_forward,
    properties=frozenset({"broadcasts"}),
    samples=[S(t(2, 3), t(1, 3))],
    kink=lambda input, *rest: F.abs(input),
    phrase="passes where the input is positive, times the weight below",
)
def prelu_kernel(input: Tensor, weight: Tensor):
    """`input` above 0, `weight * input` elsewhere."""
    return F.where(F.gt(input, 0), input, weight * input)


@function(
    aliases=_functional("prelu"),
    samples=[S(t(2, 3), t(3)), S(t(2, 3), t(1)), S(t(), t())],
    errors=[Bad("E308", t(2, 3), t(2))],
)
def prelu(input: Tensor, weight: Tensor):
    """`input` above 0, `weight * input` elsewhere; one weight, or one for each channel (dim 1)."""
    if weight.numel != 1:
        channels = input.shape[1] if len(input.shape) > 1 else 1
        if len(weight.shape) != 1 or weight.numel != channels:
            raise fault("E308 prelu-needs-weight", channels, weight, input)
    require_float("prelu", input)
    if weight.dtype != input.dtype:
        raise fault("E307 prelu-needs-dtype", input, weight)
    if not (weight.shape == () and len(input.shape) < 2):
        dims = len(input.shape)
        shape = (
            (weight.numel,) if dims == 1 else (1, weight.numel, *(1,) * (dims - 2)) if dims else ()
        )
        if weight.shape != shape:
            weight = F.reshape(weight, shape)
    return F.prelu_kernel(input, weight)


@composite(
    aliases=_functional("threshold"),
    inplace=True,
    method=False,
    check=_numbers_fit,
    vjp=lambda g, out, input, threshold, value, inplace: F.where(F.le(input, threshold), 0, g),
    samples=[
        S(t(2, 3), 0.5, -1.0),
        S(t(values=[0.5, 1.0]), 0.5, 2.0, order=0, because="at the kink"),
    ],
    kink=lambda input, threshold, *rest: F.abs(input - threshold),
    properties=NAMED_SLOPE | {"clamps"},
    phrase="passes where the input is above the threshold",
    lacks="threshold_cpu bool",
)
def threshold(input: Tensor, threshold: float, value: float, inplace: Flag = False):
    """`input` above `threshold`, `value` elsewhere."""
    if input.dtype.kind != "f":
        for number in (threshold, value):
            check_number(number, input.dtype)
        threshold, value = int(threshold), int(value)
    return F.where(F.le(input, threshold), value, input)


# -- bounded and shrunk ----------------------------------------------------------------------------


def _held(input, low, high, inside, below=None, above=None):
    """`inside` between the bounds, flat at and beyond them."""
    inside = F.where(F.ge(input, high), high if above is None else above, inside)
    return F.where(F.le(input, low), low if below is None else below, inside)


def _within(input, bound):
    return F.logical_and(F.ge(input, -bound), F.le(input, bound))


@composite(
    name="nn.functional.hardtanh",
    check=_numbers_fit,
    samples=[*KINKS, S(t(3), -0.5, 0.5)],
    vjp=lambda g, out, input, low, high, inplace: F.where(
        F.logical_or(F.le(input, low), F.ge(input, high)), 0, g
    ),
    kink=lambda input, low, high, *rest: _to_bounds(input, low, high),
    properties=NAMED_SLOPE | {"clamps"},
    phrase="passes between the bounds",
)
def hardtanh(input: Tensor, min_val: Scalar = -1.0, max_val: Scalar = 1.0, inplace: Flag = False):
    """`input` held between the bounds; the slope at a bound is 0."""
    if min_val > max_val:
        raise fault("E205 hardtanh-needs-min_val-max_val", min_val, max_val)
    if input.dtype.kind != "f":
        refuse_bools("hardtanh", input)
        for number in (min_val, max_val):
            check_number(number, INT64)
        min_val, max_val = int(min_val), int(max_val)
        if input.dtype.kind == "u" and min(min_val, max_val) < 0:
            raise fault("E307 hardtanh-cannot-negative-bounds", input)
    return _held(input, min_val, max_val, input)


@function(
    aliases=_functional("relu6"), method=False, samples=KINKS, counterpart="nn.functional.relu6"
)
def relu6(input: Tensor, inplace: Flag = False):
    """`input` held between 0 and 6; the slope at 0 and 6 is 0."""
    return F.hardtanh(input, 0, 6)


@composite(
    name="nn.functional.hardsigmoid",
    samples=[S(t(2, 3), **ONCE), KINKS[1]],
    kink=lambda input, *rest: _to_bounds(input, -3, 3),
    properties=frozenset({"clamps"}),
    phrase="a sixth between -3 and 3, nothing outside",
)
def hardsigmoid(input: Tensor, inplace: Flag = False):
    """`input / 6 + 1/2` held between 0 and 1; the slope at the bounds is 0."""
    require_float("hardsigmoid", input)
    input = F.once(input, "aten::hardsigmoid_backward")
    beyond = _held(input, -3, 3, input * 0.0, 0.0, 1.0)  # nan has no slope
    return F.where(F.lt(F.abs(input), 3), input / 6 + 0.5, beyond)


def _hardswish_vjp(g, out, input, inplace):
    inside = F.where(F.lt(input, 3), g * (input / 3 + 0.5), g)
    return F.where(F.le(input, -3), 0, inside)


@composite(
    name="nn.functional.hardswish",
    samples=KINKS,
    vjp=_hardswish_vjp,
    kink=lambda input, *rest: _to_bounds(input, -3, 3),
    properties=frozenset({"clamps", "slope has a name"}),
    phrase="(2x + 3) / 6 between -3 and 3, passes above",
)
def hardswish(input: Tensor, inplace: Flag = False):
    """`input` times hardsigmoid; slope 0 at -3, 1 at 3."""
    require_float("hardswish", input)
    return _held(input, -3, 3, input * (input + 3) / 6, input * 0.0, input)


def _shrunk_vjp(g, out, input, lambd):
    return (F.where(_within(input, lambd), 0, g),)


def _check_lambd(input, lambd):
    require_float("softshrink", input)
    if not 0 <= lambd <= float(np.finfo(input.dtype).max):
        raise fault("E205 softshrink-needs-lambd-least", lambd)


@composite(
    name="nn.functional.softshrink",
    check=_check_lambd,
    vjp=_shrunk_vjp,
    samples=[*KINKS, S(t(3), 1.0)],
    errors=[Bad("E205", t(2), -1.0)],
    kink=lambda input, lambd: _to_bounds(input, -lambd, lambd),
    properties=NAMED_SLOPE | {"clamps"},
    phrase="passes where the input is outside of the band",
)
def softshrink(input: Tensor, lambd: float = 0.5):
    """Moved towards 0 by `lambd`, 0 between the bounds; the slope at the bounds is 0."""
    moved = F.where(F.gt(input, 0), input - lambd, input + lambd)
    return F.where(_within(input, lambd), input * 0, moved)


@composite(
    aliases=_functional("hardshrink"),
    check=_numbers_fit,
    vjp=_shrunk_vjp,
    samples=[*KINKS, S(t(3), 1.0)],
    kink=lambda input, lambd: _to_bounds(input, -lambd, lambd),
    properties=NAMED_SLOPE | {"clamps"},
    phrase="passes where the input is outside of the band",
)
def hardshrink(input: Tensor, lambd: float = 0.5):
    """0 between `-lambd` and `lambd`, `input` elsewhere; the slope at the bounds is 0."""
    require_float("hardshrink", input)
    return F.where(_within(input, lambd), 0, input)


@function(name="nn.functional.tanhshrink", samples=ALL)
def tanhshrink(input: Tensor):
    """`input - tanh(input)`."""
    return input - F.tanh(input)


@function(name="nn.functional.softsign", samples=[*ALL, S(t(values=[0.0, 1.0]))])
def softsign(input: Tensor):
    """`input / (1 + |input|)`."""
    return input / (F.abs(input) + 1)


# -- smooth ----------------------------------------------------------------------------------------


@composite(
    name="nn.functional.softplus",
    samples=[
        *ALL,
        S(t(3), beta=2),
        S(t(values=[-50.0, 9.9, 10.1]), 2.0, 20.0, order=1, because="cancellation"),
    ],
    properties=frozenset({"saturates", "slope has a name"}),
    phrase="upstream times sigmoid(beta * x)",
)
def softplus(input: Tensor, beta: float = 1, threshold: float = 20):
    """`log(1 + exp(beta * input)) / beta`, `input` itself where `beta * input > threshold`."""
    require_float("softplus", input)
    scaled = input if beta == 1 else input * beta
    linear = F.gt(scaled, threshold)
    curve = F.log1p(F.exp(F.where(linear, 0, scaled)))
    return F.where(linear, input, curve if beta == 1 else curve / beta)


@composite(
    name="nn.functional.logsigmoid",
    grad_fn="LogSigmoidBackward0",
    samples=[*ALL, S(t(values=[0.0, -800.0, 800.0]), order=0, because="large values")],
    properties=frozenset({"saturates", "slope has a name", "row-major", "saves its body"}),
    phrase="upstream times sigmoid(-x)",
)
def logsigmoid(input: Tensor):
    """`log(sigmoid(input))` without overflow."""
    require_float("logsigmoid", input)
    return F.log_of_sigmoid(input, F.exp(F.where(F.lt(input, 0), input, -input)))


def _log_of_sigmoid_vjp(g, out, input, small):
    share = small / (1 + small)
    return g * F.where(F.lt(input, 0), 1 - share, share), None


@composite(
    public=False,
    vjp=_log_of_sigmoid_vjp,
    properties=frozenset({"whole slope"}),
    samples=[S(t(3), t(3), order=0, because="`small` is that of the input")],
)
def log_of_sigmoid(input: Tensor, small: Tensor):
    """`logsigmoid`, given `exp(-|input|)`, which PyTorch saves."""
    return F.clamp_max(input, 0) - F.log1p(small)


@composite(
    name="nn.functional.silu",
    samples=ALL,
    properties=frozenset({"saturates"}),
    phrase="upstream times s * (1 + x * (1 - s)), where s is sigmoid(x)",
)
def silu(input: Tensor, inplace: Flag = False):
    """`input * sigmoid(input)`."""
    require_float("silu", input)
    return input * F.sigmoid(input)


@composite(
    name="nn.functional.mish",
    samples=ALL,
    properties=frozenset({"saturates"}),
    phrase="product rule of x * tanh(softplus(x))",
)
def mish(input: Tensor, inplace: Flag = False):
    """`input * tanh(softplus(input))`."""
    require_float("mish", input)
    return input * F.tanh(F.softplus(input))


@composite(
    name="nn.functional.gelu",
    samples=[*ALL, S(t(3), approximate="tanh")],
    errors=[Bad("E205", t(2), approximate="erf")],
    properties=frozenset({"saturates", "slope has a name"}),
    phrase="upstream times Phi(x) + x * phi(x), of the normal distribution",
)
def gelu(input: Tensor, *, approximate: str = "none"):
    """`input` times the normal distribution function of `input`, exactly or by tanh."""
    require_float("gelu", input)
    if approximate == "none":
        return input * 0.5 * (1 + F.erf(input * math.sqrt(0.5)))
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (input + 0.044715 * (input * input * input))
        return 0.5 * input * (1 + F.tanh(inner))
    raise fault("E205 approximate-none-tanh", approximate)


@composite(
    name="nn.functional.glu",
    properties=frozenset({"slope has a name"}),
    samples=[S(t(2, 4)), S(t(4, 3), 0)],
    errors=[Bad("E308", t(2, 3))],
    phrase="product rule: one half times the sigmoid of the other",
)
def glu(input: Tensor, dim: Dim = -1):
    """First half along `dim` times sigmoid of the second half."""
    require_float("glu", input)
    size = input.shape[dim] if input.shape else 1
    if size % 2 or not input.shape:
        raise fault("E308 glu-halves-dim", dim, tuple(input.shape))
    half = size // 2
    return F.narrow(input, dim, 0, half) * F.sigmoid(F.narrow(input, dim, half, half))
