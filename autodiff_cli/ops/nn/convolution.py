"""Convolution in one to three dims, and its transpose.

Three bilinear primitives are closed under differentiation: the convolution itself, its adjoint in
the input (the transposed convolution) and its adjoint in the weight. All work on columns: the
windows of an input as one matrix, so that the work is a product of BLAS.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Ints, Size, Tensor, composite, function, opaque
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.strides import CHANNELS
from ..kernels.columns import Canvas, Memory, Steps, blocks, columns_of, positive, rows_of
from ..kernels.rules import NAMED_SLOPE
from ..kernels.windows import spread, whole_numbers

NN = "nn.functional."


def _convolve(x, weight, steps, sizes):
    kernel, groups = weight.shape[2:], steps.groups
    matrix = weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))
    out = np.empty((x.shape[0], weight.shape[0], *sizes), np.result_type(x, weight))
    for part, rows, columns in columns_of(x, groups, steps, sizes, kernel):
        np.matmul(matrix, columns, out=rows_of(out, part, rows, groups))
    return out


def _convolve_input(g, weight, steps, kept):
    kernel, groups = weight.shape[2:], steps.groups
    taps = math.prod(weight.shape[1:])
    matrix = weight.reshape(groups, weight.shape[0] // groups, taps).transpose(0, 2, 1)
    channels = weight.shape[1] * groups
    dtype = np.result_type(g, weight)
    canvas = Canvas((g.shape[0], channels), steps, g.shape[2:], kernel, kept, dtype)
    g = np.ascontiguousarray(canvas.widened(g))
    sizes, memory = g.shape[2:], Memory(dtype)
    for part, rows in blocks(g.shape[0], channels, kernel, sizes, g.itemsize):
        block = rows_of(g, part, rows, groups)
        columns = memory.array((*block.shape[:2], taps, block.shape[-1]))
        canvas.add(part, rows, np.matmul(matrix, block, out=columns), sizes)
    return canvas.result()


def _convolve_weight(x, g, steps, kernel):
    g = np.ascontiguousarray(g)
    sizes, groups = g.shape[2:], steps.groups
    taps = x.shape[1] // groups * math.prod(kernel)
    total = np.zeros((groups, g.shape[1] // groups, taps), np.result_type(x, g))
    for part, rows, columns in columns_of(x, groups, steps, sizes, kernel):
        block = rows_of(g, part, rows, groups)
        total += np.matmul(block, columns.mT).sum(0)
    return total.reshape(g.shape[1], x.shape[1] // groups, *kernel)


def _in_jax(source, kernel, steps, ends, strides=None, groups="feature_group_count"):
    """A convolution by XLA: what it strides over, what is put before and after each dim, and of
    what its `groups` are."""
    keywords = [("rhs_dilation", steps.dilation)]
    if strides is None:
        strides, keywords = (1,) * len(ends), [*keywords, ("lhs_dilation", steps.stride)]
    keywords += [(groups, steps.groups)] * (steps.groups != 1)
    said = "".join(f", {key}={value}" for key, value in keywords if value not in ((1,), (1, 1)))
    return f"jax.lax.conv_general_dilated({source}, {kernel}, {strides}, {ends}{said})"


def _convolve_in_jax(input, weight, steps, sizes):
    return _in_jax("input", "weight", steps, [(p, p) for p in steps.padding], steps.stride)


def _convolve_input_in_jax(g, weight, steps, kept):
    ends = []
    for d, size in enumerate(kept):
        reach = steps.dilation[d] * (weight.shape[2 + d] - 1)
        ahead = reach - steps.padding[d]
        ends.append((ahead, size - (g.shape[2 + d] - 1) * steps.stride[d] - 1 - ahead + reach))
    axes = tuple(range(2, g.ndim))
    kernel = "weight.swapaxes(0, 1)"
    if steps.groups != 1:
        (out, own, *size), groups = weight.shape, steps.groups
        parts, whole = (groups, out // groups, own, *size), (own * groups, out // groups, *size)
        kernel = f"weight.reshape({parts}).swapaxes(1, 2).reshape({whole})"
    return _in_jax("g", f"np.flip({kernel}, {axes})", steps, ends)


def _convolve_weight_in_jax(x, g, steps, kernel):
    ends = []
    for d, size in enumerate(kernel):
        reach = (size - 1) * steps.dilation[d] + (g.shape[2 + d] - 1) * steps.stride[d] + 1
        ends.append((steps.padding[d], reach - x.shape[2 + d] - steps.padding[d]))
    turned = Steps(steps.dilation, steps.padding, steps.stride, steps.groups)
    found = _in_jax("input.swapaxes(0, 1)", "g.swapaxes(0, 1)", turned, ends, steps.dilation,
                    "batch_group_count")  # fmt: skip
    return f"{found}.swapaxes(0, 1)"


ONE = Steps((1,), (0,), (1,), 1)


@opaque(
    _convolve,
    jax=_convolve_in_jax,
    public=False,
    properties=frozenset({"samplewise"}),
    samples=[S(t(1, 2, 4), t(3, 2, 2), ONE, (3,))],
    shape=lambda input, weight, steps, sizes: (
        (input.shape[0], weight.shape[0], *sizes),
        input.dtype,
    ),
    vjp=lambda g, out, input, weight, steps, sizes: (
        F.convolve_input(g, weight, steps, input.shape[2:]),
        F.convolve_weight(input, g, steps, weight.shape[2:]),
    ),
)
def convolve(input: Tensor, weight: Tensor, steps: Any, sizes: Size):
    """Products of windows of `input` (N, C, ...) with `weight` (O, C / groups, ...)."""


@opaque(
    _convolve_input,
    jax=_convolve_input_in_jax,
    public=False,
    properties=frozenset({"samplewise"}),
    samples=[S(t(1, 3, 3), t(3, 2, 2), ONE, (4,))],
    shape=lambda g, weight, steps, sizes: (
        (g.shape[0], weight.shape[1] * steps.groups, *sizes),
        g.dtype,
    ),
    vjp=lambda g, out, given, weight, steps, sizes: (
        F.convolve(g, weight, steps, given.shape[2:]),
        F.convolve_weight(g, given, steps, weight.shape[2:]),
    ),
)
def convolve_input(g: Tensor, weight: Tensor, steps: Any, sizes: Size):
    """The adjoint of `convolve` in its input: the transposed convolution."""


@opaque(
    _convolve_weight,
    jax=_convolve_weight_in_jax,
    public=False,
    properties=frozenset({"sums samples"}),
    samples=[S(t(1, 2, 4), t(1, 3, 3), ONE, (2,))],
    shape=lambda input, g, steps, kernel: (
        (g.shape[1], input.shape[1] // steps.groups, *kernel),
        input.dtype,
    ),
    vjp=lambda g, out, input, given, steps, kernel: (
        F.convolve_input(given, g, steps, input.shape[2:]),
        F.convolve(input, g, steps, given.shape[2:]),
    ),
)
def convolve_weight(input: Tensor, g: Tensor, steps: Any, kernel: Size):
    """The adjoint of `convolve` in its weight."""


# -- what users call -------------------------------------------------------------------------------


def _with_bias(out, bias):
    if bias is None:
        return out
    return out + F.reshape(bias, (-1,) + (1,) * (len(out.shape) - 2))


@composite(
    public=False,
    properties=NAMED_SLOPE | {"three edges", CHANNELS},
    phrase="the input: g convolved back; the weight: the input correlated with g",
)
def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, steps: Any, sizes: Size, transposed: bool
):
    """A convolution of a batch, or a transposed one, with a bias for each channel."""
    product = F.convolve_input if transposed else F.convolve
    return _with_bias(product(input, weight, steps, sizes), bias)


def _check(name, n, input, weight, bias, groups, transposed):
    """E307 and E308 for what cannot be convolved."""
    if input.dtype != weight.dtype or (bias is not None and bias.dtype != input.dtype):
        if bias is None:
            raise fault("E307 conv-dtypes", name, input, weight)
        raise fault("E307 conv-dtypes-bias", name, input, weight, bias)
    if input.dtype.kind == "b":
        raise fault("E307 needs-numbers-not-bools", name)
    form = (
        "in_channels, out_channels / groups" if transposed else "out_channels, in_channels / groups"
    )
    if len(weight.shape) != n + 2 or len(input.shape) not in (n + 1, n + 2):
        raise fault("E308 needs-input-dims-weight", name, n + 1, n + 2, input, weight, form)
    channels = input.shape[-n - 1]
    first = weight.shape[0]
    wanted = first if transposed else weight.shape[1] * groups
    if groups < 1 or first % groups or channels != wanted or (first == 0 or 0 in weight.shape[2:]):
        raise fault(
            "E308 input-cannot-use-weight", name, input, weight, groups, wanted, channels, form
        )
    out = weight.shape[1] * groups if transposed else first
    if bias is not None and bias.shape != (out,):
        raise fault("E308 output-channels-needs-bias", name, out, bias, weight)


def _padding(name, n, padding, input, kernel, stride, dilation):
    """Padding as ints, and the input padded behind where "same" is uneven."""
    if not isinstance(padding, str):
        pads = spread(whole_numbers(padding, name, "padding"), n, name, "padding")
        if any(p < 0 for p in pads):
            raise fault("E309 cannot-negative-padding", name, pads)
        return pads, input
    if padding == "valid":
        return (0,) * n, input
    if padding != "same":
        raise fault("E205 no-padding-padding", name, padding)
    if any(s != 1 for s in stride):
        raise fault("E205 padding-same-needs-stride", name, stride)
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    extra = [value % 2 for value in total]
    if any(extra):
        input = F.pad(input, tuple(v for e in reversed(extra) for v in (0, e)))
    return tuple(value // 2 for value in total), input


def _batched(n, input, run):
    if len(input.shape) == n + 2:
        return run(input)
    return F.squeeze(run(F.unsqueeze(input, 0)), 0)


def _convolution(name, n, input, weight, bias, stride, padding, dilation, groups):
    _check(name, n, input, weight, bias, groups, False)
    stride = spread(stride, n, name, "stride")
    dilation = spread(dilation, n, name, "dilation")
    positive(name, stride=stride, dilation=dilation)
    kernel = weight.shape[2:]

    def run(x):
        pads, x = _padding(name, n, padding, x, kernel, stride, dilation)
        padded = tuple(size + 2 * p for size, p in zip(x.shape[2:], pads, strict=True))
        reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
        sizes = tuple((size - k) // s + 1 for size, k, s in zip(padded, reach, stride, strict=True))
        if min(sizes) < 1:
            short = max(k - size for size, k in zip(padded, reach, strict=True))
            fits = max(pads) - (-short // 2)
            raise fault(
                "E308 kernel-does-not-fit", name, kernel, x.shape[2:], pads, fits, padded, reach
            )
        steps = Steps(stride, pads, dilation, groups)
        found = F.convolution(x, weight, bias, steps, sizes, False)
        return found if x.shape[1] else F.narrow(found, 1, 0, 0)  # as PyTorch has it

    return _batched(n, input, run)


def _transposed(name, n, input, weight, bias, stride, padding, output_padding, groups, dilation):
    _check(name, n, input, weight, bias, groups, True)
    stride = spread(stride, n, name, "stride")
    dilation = spread(dilation, n, name, "dilation")
    pads = spread(padding, n, name, "padding")
    extra = spread(output_padding, n, name, "output_padding")
    positive(name, stride=stride, dilation=dilation)
    if any(e >= max(s, d) or e < 0 for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise fault("E309 needs-output_padding-smaller-stride", name, extra, stride, dilation)
    sizes = tuple(
        (size - 1) * s - 2 * p + d * (k - 1) + e + 1
        for size, s, p, d, k, e in zip(
            input.shape[-n:], stride, pads, dilation, weight.shape[2:], extra, strict=True
        )
    )
    if min(sizes) < 1 or min(pads) < 0:
        raise fault("E308 padding-no-result", name, input, pads)
    steps = Steps(stride, pads, dilation, groups)
    return _batched(n, input, lambda x: F.convolution(x, weight, bias, steps, sizes, True))


def _declare(n):
    name, back = f"conv{n}d", f"conv_transpose{n}d"
    spatial, kernel = (4, 3, 3)[:n], (2, 2, 1)[:n]

    @function(
        key=name,
        name=NN + name,
        aliases=[name],
        samples=[
            S(t(1, 2, *spatial), t(3, 2, *kernel), t(3)),
            S(t(2, *spatial), t(2, 1, *kernel), groups=2),
            S(t(1, 1, *spatial), t(1, 1, *kernel), stride=2, padding=1, dilation=2),
            S(t(1, 1, *spatial), t(1, 1, *kernel), padding="same"),
        ],
        errors=[
            Bad("E308", t(1, 3, *spatial), t(3, 2, *kernel), words="channels"),
            Bad("E308", t(3), t(3)),
        ],
    )
    def convolution_dims(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Ints = 1,
        padding: Any = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ):
        return _convolution(name, n, input, weight, bias, stride, padding, dilation, groups)

    convolution_dims.doc = (
        f'Convolution over {n} dim{"s" * (n > 1)}; padding may be "same" or "valid".'
    )

    @function(
        key=back,
        name=NN + back,
        aliases=[back],
        samples=[
            S(t(1, 2, *spatial), t(2, 3, *kernel), t(3)),
            S(t(2, *spatial), t(2, 1, *kernel), groups=2),
            S(t(1, 1, *spatial), t(1, 1, *kernel), stride=2, padding=1, output_padding=1),
        ],
        lacks=f"slow_conv_transpose{max(n, 2)}d_out_cpu int32 int16 int8 uint8",
        errors=[
            Bad("E308", t(1, 3, *spatial), t(2, 2, *kernel), words="channels"),
            Bad("E309", t(1, 1, *spatial), t(1, 1, *kernel), output_padding=3),
        ],
    )
    def transposed_dims(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        dilation: Ints = 1,
    ):
        return _transposed(
            back, n, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    transposed_dims.doc = f"The transpose of `{name}`: what takes its results back to its inputs."


for _n in (1, 2, 3):
    _declare(_n)
