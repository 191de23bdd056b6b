"""Convolution in one to three dims, its transpose, and unfolding into columns.

Three bilinear primitives are closed under differentiation: the convolution itself, its adjoint in
the input (the transposed convolution) and its adjoint in the weight. All work on columns: the
windows of an input as one matrix, so that the work is a product of BLAS.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..errors import fail
from ..graph.declare import Any, Ints, Size, Tensor, composite, function, opaque
from ..graph.registry import F
from ..graph.samples import Bad, S, t
from ..graph.sizes import check_size, shape_text
from ..graph.windows import spread, whole_numbers

NN = "nn.functional."

# Columns are made for so many bytes of a batch at a time: they stay in the cache.
CHUNK = 1 << 22


class Steps:
    """How a window moves: stride, padding and dilation of each dim, and the groups of channels."""

    __slots__ = ("dilation", "groups", "padding", "stride")

    def __init__(self, stride: Any, padding: Any, dilation: Any, groups: int):
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups

    def __repr__(self) -> str:
        return (
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"groups={self.groups}"
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is Steps and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def _padded(x, steps, sizes, kernel):
    """`x` with zeros around, and as many behind as the windows need."""
    n = len(kernel)
    pads = [(0, 0)] * (x.ndim - n)
    for i in range(n):
        reach = (sizes[i] - 1) * steps.stride[i] + steps.dilation[i] * (kernel[i] - 1) + 1
        have = x.shape[x.ndim - n + i] + steps.padding[i]
        pads.append((steps.padding[i], max(reach - have, 0)))
    if all(p == (0, 0) for p in pads):
        return x
    check_size(tuple(size + sum(p) for size, p in zip(x.shape, pads, strict=True)), x.dtype)
    return np.pad(x, pads)


def _windows(x, steps, sizes, kernel):
    """A view (..., *kernel, *sizes) of padded `x` (..., *spatial)."""
    n = len(kernel)
    lead = x.ndim - n
    reach = tuple(d * (k - 1) + 1 for d, k in zip(steps.dilation, kernel, strict=True))
    view = sliding_window_view(x, reach, axis=tuple(range(lead, x.ndim)))
    index = [slice(None)] * lead
    index += [slice(0, (size - 1) * s + 1, s) for size, s in zip(sizes, steps.stride, strict=True)]
    index += [slice(None, None, d) for d in steps.dilation]
    view = view[tuple(index)]
    order = (*range(lead), *range(lead + n, lead + 2 * n), *range(lead, lead + n))
    return view.transpose(order)


def _blocks(batch, channels, kernel, sizes, itemsize):
    """Slices of the batch and of the first dim of places whose columns fill about a CHUNK."""
    line = channels * math.prod(kernel) * math.prod(sizes[1:]) * itemsize
    rows = min(max(1, CHUNK // max(line, 1)), sizes[0]) or 1
    samples = max(1, CHUNK // max(line * sizes[0], 1)) if rows == sizes[0] else 1
    for start in range(0, batch, samples):
        for row in range(0, sizes[0], rows):
            yield slice(start, min(start + samples, batch)), slice(row, min(row + rows, sizes[0]))


def _columns(x, groups, steps, sizes, kernel):
    """For each block its slices and columns (N, groups, channels * taps, places)."""
    n = len(kernel)
    batch, channels = x.shape[:2]
    height = channels // groups * math.prod(kernel)
    view = _windows(_padded(x, steps, sizes, kernel), steps, sizes, kernel)
    for part, rows in _blocks(batch, channels, kernel, sizes, x.itemsize):
        block = view[(part, *(slice(None),) * (n + 1), rows)]
        places = math.prod(block.shape[2 + n :])
        yield part, rows, block.reshape(block.shape[0], groups, height, places)


def _rows_of(x, part, rows, groups):
    """The block of a tensor of places (N, C, *sizes) as (N, groups, C / groups, places)."""
    block = x[part, :, rows]
    channels = x.shape[1] // groups
    return block.reshape(block.shape[0], groups, channels, math.prod(block.shape[2:]))


class Canvas:
    """Zeros (N, C, *spatial) with room for padding, to which windows are added back."""

    __slots__ = ("array", "inner", "kernel", "steps")

    def __init__(self, shape, steps, sizes, kernel, kept, dtype):
        reach = [
            (out - 1) * s + d * (k - 1) + 1
            for out, s, d, k in zip(sizes, steps.stride, steps.dilation, kernel, strict=True)
        ]
        full = [max(size + 2 * p, r) for size, p, r in zip(kept, steps.padding, reach, strict=True)]
        check_size((*shape, *full), dtype)
        self.array = np.zeros((*shape, *full), dtype)
        inner = [slice(p, p + size) for p, size in zip(steps.padding, kept, strict=True)]
        self.inner = (slice(None), slice(None), *inner)
        self.steps = steps
        self.kernel = kernel

    def add(self, part, rows, columns, sizes):
        """Add the columns of a block, tap by tap."""
        steps = self.steps
        target = self.array[part]
        places = (rows.stop - rows.start, *sizes[1:])
        starts = (rows.start * steps.stride[0], *(0,) * (len(sizes) - 1))
        columns = columns.reshape(*target.shape[:2], *self.kernel, *places)
        for at in np.ndindex(*self.kernel):
            index = tuple(
                slice(b + a * d, b + a * d + (size - 1) * s + 1, s)
                for b, a, d, size, s in zip(
                    starts, at, steps.dilation, places, steps.stride, strict=True
                )
            )
            target[(..., *index)] += columns[(slice(None), slice(None), *at)]

    def result(self):
        """Without the room for padding."""
        return self.array[self.inner]


def _convolve(x, weight, steps, sizes):
    kernel, groups = weight.shape[2:], steps.groups
    matrix = weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))
    out = np.empty((x.shape[0], weight.shape[0], *sizes), np.result_type(x, weight))
    for part, rows, columns in _columns(x, groups, steps, sizes, kernel):
        product = np.matmul(matrix, columns)
        out[part, :, rows] = product.reshape(out[part, :, rows].shape)
    return out


def _convolve_input(g, weight, steps, kept):
    kernel, sizes, groups = weight.shape[2:], g.shape[2:], steps.groups
    taps = math.prod(weight.shape[1:])
    matrix = weight.reshape(groups, weight.shape[0] // groups, taps).transpose(0, 2, 1)
    channels = weight.shape[1] * groups
    dtype = np.result_type(g, weight)
    canvas = Canvas((g.shape[0], channels), steps, sizes, kernel, kept, dtype)
    for part, rows in _blocks(g.shape[0], channels, kernel, sizes, g.itemsize):
        canvas.add(part, rows, np.matmul(matrix, _rows_of(g, part, rows, groups)), sizes)
    return canvas.result()


def _convolve_weight(x, g, steps, kernel):
    sizes, groups = g.shape[2:], steps.groups
    taps = x.shape[1] // groups * math.prod(kernel)
    total = np.zeros((groups, g.shape[1] // groups, taps), np.result_type(x, g))
    for part, rows, columns in _columns(x, groups, steps, sizes, kernel):
        block = _rows_of(g, part, rows, groups)
        total += np.matmul(block, columns.swapaxes(-1, -2)).sum(0)
    return total.reshape(g.shape[1], x.shape[1] // groups, *kernel)


ONE = Steps((1,), (0,), (1,), 1)


@opaque(
    _convolve,
    public=False,
    properties=frozenset({"samplewise"}),
    samples=[S(t(1, 2, 4), t(3, 2, 2), ONE, (3,))],
    shape=lambda input, weight, steps, sizes: (
        (input.shape[0], weight.shape[0], *sizes),
        input.dtype,
    ),
)
def convolve(input: Tensor, weight: Tensor, steps: Any, sizes: Size):
    """Products of windows of `input` (N, C, ...) with `weight` (O, C / groups, ...)."""


@convolve.vjp
def _(g, out, input, weight, steps, sizes):
    return (
        F.convolve_input(g, weight, steps, input.shape[2:]),
        F.convolve_weight(input, g, steps, weight.shape[2:]),
    )


@opaque(
    _convolve_input,
    public=False,
    properties=frozenset({"samplewise"}),
    samples=[S(t(1, 3, 3), t(3, 2, 2), ONE, (4,))],
    shape=lambda g, weight, steps, sizes: (
        (g.shape[0], weight.shape[1] * steps.groups, *sizes),
        g.dtype,
    ),
)
def convolve_input(g: Tensor, weight: Tensor, steps: Any, sizes: Size):
    """The adjoint of `convolve` in its input: the transposed convolution."""


@convolve_input.vjp
def _(g, out, given, weight, steps, sizes):
    return (
        F.convolve(g, weight, steps, given.shape[2:]),
        F.convolve_weight(g, given, steps, weight.shape[2:]),
    )


@opaque(
    _convolve_weight,
    public=False,
    properties=frozenset({"sums samples"}),
    samples=[S(t(1, 2, 4), t(1, 3, 3), ONE, (2,))],
    shape=lambda input, g, steps, kernel: (
        (g.shape[1], input.shape[1] // steps.groups, *kernel),
        input.dtype,
    ),
)
def convolve_weight(input: Tensor, g: Tensor, steps: Any, kernel: Size):
    """The adjoint of `convolve` in its weight."""


@convolve_weight.vjp
def _(g, out, input, given, steps, kernel):
    return (
        F.convolve_input(given, g, steps, input.shape[2:]),
        F.convolve(input, g, steps, given.shape[2:]),
    )


# -- what users call -------------------------------------------------------------------------------


def _with_bias(out, bias):
    if bias is None:
        return out
    return out + F.reshape(bias, (-1,) + (1,) * (len(out.shape) - 2))


@composite(public=False, grad_fn="ConvolutionBackward0")
def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, steps: Any, sizes: Size, transposed: bool
):
    """A convolution of a batch, or a transposed one, with a bias for each channel."""
    product = F.convolve_input if transposed else F.convolve
    return _with_bias(product(input, weight, steps, sizes), bias)


def _check(name, n, input, weight, bias, groups, transposed):
    """E307 and E308 for what cannot be convolved."""
    if input.dtype != weight.dtype or (bias is not None and bias.dtype != input.dtype):
        dtypes = ", ".join(v.dtype.name for v in (input, weight, bias) if v is not None)
        raise fail(
            "E307",
            f"`{name}` needs input, weight and bias of one dtype, got {dtypes}",
            help="convert: `weight.to(input.dtype)`",
        )
    if input.dtype.kind == "b":
        raise fail(
            "E307", f"`{name}` needs numbers, not bools", help="convert: `x.to(torch.float64)`"
        )
    form = (
        "in_channels, out_channels / groups" if transposed else "out_channels, in_channels / groups"
    )
    if len(weight.shape) != n + 2 or len(input.shape) not in (n + 1, n + 2):
        raise fail(
            "E308",
            f"`{name}` needs input of {n + 1} or {n + 2} dims and weight of {n + 2}, got "
            f"{shape_text(input.shape)} and {shape_text(weight.shape)}",
            help=f"weight is ({form}, kernel ...)",
        )
    channels = input.shape[-n - 1]
    first = weight.shape[0]
    wanted = first if transposed else weight.shape[1] * groups
    if groups < 1 or first % groups or channels != wanted or (first == 0 or 0 in weight.shape[2:]):
        raise fail(
            "E308",
            f"`{name}` of input {shape_text(input.shape)} cannot use weight "
            f"{shape_text(weight.shape)} with groups={groups}: it takes {wanted} channels, the "
            f"input has {channels}",
            help=f"weight is ({form}, kernel ...)",
        )
    out = weight.shape[1] * groups if transposed else first
    if bias is not None and bias.shape != (out,):
        raise fail(
            "E308",
            f"`{name}` with {out} output channels needs bias of shape ({out},), got "
            f"{shape_text(bias.shape)}",
            help="one number for each output channel",
        )


def _positive(name, **values):
    for what, numbers in values.items():
        if any(v < 1 for v in numbers):
            raise fail(
                "E309",
                f"`{name}` needs {what} of at least 1, got {numbers}",
                help=f"leave `{what}` out for 1",
            )


def _padding(name, n, padding, input, kernel, stride, dilation):
    """Padding as ints, and the input padded behind where "same" is uneven."""
    if not isinstance(padding, str):
        pads = spread(whole_numbers(padding, name, "padding"), n, name, "padding")
        if any(p < 0 for p in pads):
            raise fail(
                "E309",
                f"`{name}` cannot have a negative padding, got {pads}",
                help="slice the input instead",
            )
        return pads, input
    if padding == "valid":
        return (0,) * n, input
    if padding != "same":
        raise fail(
            "E205", f"`{name}` has no padding {padding!r}", help='write "same", "valid" or ints'
        )
    if any(s != 1 for s in stride):
        raise fail(
            "E205",
            f'`{name}` with padding "same" needs stride 1, got {stride}',
            help="give the padding as ints",
        )
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
    _positive(name, stride=stride, dilation=dilation)
    kernel = weight.shape[2:]

    def run(x):
        pads, x = _padding(name, n, padding, x, kernel, stride, dilation)
        sizes = tuple(
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, p, d, k, s in zip(x.shape[2:], pads, dilation, kernel, stride, strict=True)
        )
        if min(sizes) < 1:
            raise fail(
                "E308",
                f"`{name}` with kernel {kernel} does not fit into {shape_text(x.shape[2:])} "
                f"with padding {pads}",
                help="use a smaller kernel or more padding",
            )
        return F.convolution(x, weight, bias, Steps(stride, pads, dilation, groups), sizes, False)

    return _batched(n, input, run)


def _transposed(name, n, input, weight, bias, stride, padding, output_padding, groups, dilation):
    _check(name, n, input, weight, bias, groups, True)
    stride = spread(stride, n, name, "stride")
    dilation = spread(dilation, n, name, "dilation")
    pads = spread(padding, n, name, "padding")
    extra = spread(output_padding, n, name, "output_padding")
    _positive(name, stride=stride, dilation=dilation)
    if any(e >= max(s, d) or e < 0 for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise fail(
            "E309",
            f"`{name}` needs an output_padding smaller than stride or dilation, got "
            f"{extra} with stride {stride} and dilation {dilation}",
            help="use a smaller one",
        )
    sizes = tuple(
        (size - 1) * s - 2 * p + d * (k - 1) + e + 1
        for size, s, p, d, k, e in zip(
            input.shape[-n:], stride, pads, dilation, weight.shape[2:], extra, strict=True
        )
    )
    if min(sizes) < 1 or min(pads) < 0:
        raise fail(
            "E308",
            f"`{name}` of {shape_text(input.shape)} with padding {pads} has no result",
            help="use less padding",
        )
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


# -- columns ---------------------------------------------------------------------------------------


def _unfold(x, kernel, steps, sizes):
    images = x if x.ndim == 4 else x[None]
    view = _windows(_padded(images, steps, sizes, kernel), steps, sizes, kernel)
    rows = x.shape[-3] * math.prod(kernel)
    return view.reshape(*x.shape[:-3], rows, math.prod(sizes))


def _fold(columns, kernel, steps, sizes, kept):
    *lead, rows, _ = columns.shape
    batch, channels = math.prod(lead), rows // math.prod(kernel)
    canvas = Canvas((batch, channels), steps, sizes, kernel, kept, columns.dtype)
    canvas.add(slice(0, batch), slice(0, sizes[0]), columns, sizes)
    return canvas.result().reshape(*lead, channels, *kept)


@opaque(
    _unfold,
    public=False,
    grad_fn="Im2ColBackward0",
    shape=lambda input, kernel, steps, sizes: (
        (*input.shape[:-3], input.shape[-3] * math.prod(kernel), math.prod(sizes)),
        input.dtype,
    ),
)
def im2col(input: Tensor, kernel: Size, steps: Any, sizes: Size):
    """The windows of images (..., C, H, W) as columns."""


@im2col.vjp
def _(g, out, input, kernel, steps, sizes):
    return (F.col2im(g, kernel, steps, sizes, input.shape[-2:]),)


@opaque(
    _fold,
    public=False,
    grad_fn="Col2ImBackward0",
    shape=lambda input, kernel, steps, sizes, kept: (
        (*input.shape[:-2], input.shape[-2] // math.prod(kernel), *kept),
        input.dtype,
    ),
)
def col2im(input: Tensor, kernel: Size, steps: Any, sizes: Size, kept: Size):
    """Columns summed back into their windows."""


@col2im.vjp
def _(g, out, input, kernel, steps, sizes, kept):
    return (F.im2col(g, kernel, steps, sizes),)


def _steps(name, kernel_size, dilation, padding, stride, spatial):
    kernel = spread(kernel_size, 2, name, "kernel_size")
    dilation = spread(dilation, 2, name, "dilation")
    pads = spread(padding, 2, name, "padding")
    stride = spread(stride, 2, name, "stride")
    _positive(name, kernel_size=kernel, dilation=dilation, stride=stride)
    sizes = tuple(
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, p, d, k, s in zip(spatial, pads, dilation, kernel, stride, strict=True)
    )
    if min(sizes) < 1 or min(pads) < 0:
        raise fail(
            "E308",
            f"`{name}` with windows of {kernel}, dilation {dilation}, padding {pads} finds no "
            f"place in {shape_text(spatial)}",
            help="use smaller windows or more padding",
        )
    return kernel, Steps(stride, pads, dilation, 1), sizes


@function(
    name=NN + "unfold",
    key="unfold_columns",
    samples=[S(t(1, 2, 3, 4), 2), S(t(1, 1, 4, 4), (2, 3), 1, 1, 2), S(t(2, 3, 3), 2)],
    errors=[Bad("E308", t(2, 3), 2), Bad("E308", t(1, 1, 2, 2), 3)],
)
def unfold_columns(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
):
    """The windows of images (N, C, H, W) as columns (N, C * taps, places)."""
    if len(input.shape) not in (3, 4) or 0 in input.shape[-3:]:
        raise fail(
            "E308",
            f"`unfold` needs images (N, C, H, W) or (C, H, W), got {shape_text(input.shape)}",
            help="add dims with `reshape`",
        )
    kernel, steps, sizes = _steps(
        "unfold", kernel_size, dilation, padding, stride, input.shape[-2:]
    )
    return F.im2col(input, kernel, steps, sizes)


@function(
    name=NN + "fold",
    samples=[S(t(1, 4, 6), (3, 4), 2), S(t(8, 4), 4, 2, stride=2)],
    errors=[Bad("E308", t(1, 4, 5), (3, 4), 2), Bad("E308", t(1, 5, 6), (3, 4), 2)],
)
def fold(
    input: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
):
    """Columns (N, C * taps, places) summed back into images: the transpose of `unfold`."""
    kept = spread(output_size, 2, "fold", "output_size")
    kernel, steps, sizes = _steps("fold", kernel_size, dilation, padding, stride, kept)
    shape = input.shape
    if len(shape) not in (2, 3) or shape[-2] % math.prod(kernel) or shape[-1] != math.prod(sizes):
        raise fail(
            "E308",
            f"`fold` into {shape_text(kept)} with windows of {kernel} needs columns (N, C * "
            f"{math.prod(kernel)}, {math.prod(sizes)}), got {shape_text(shape)}",
            help="these are the shapes that `unfold` makes",
        )
    return F.col2im(input, kernel, steps, sizes, kept)
