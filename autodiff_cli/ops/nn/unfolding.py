"""Unfolding images into columns, and folding columns back: adjoints of each other."""

from __future__ import annotations

import math

from ...errors import fault
from ...graph.declare import Any, Ints, Size, Tensor, function, opaque
from ...graph.dtypes import BOOL
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ..kernels.columns import Canvas, Steps, padded, positive, windows
from ..kernels.rules import require_float
from ..kernels.windows import spread

NN = "nn.functional."


def _unfold(x, kernel, steps, sizes):
    images = x if x.ndim == 4 else x[None]
    view = windows(padded(images, steps, sizes, kernel), steps, sizes, kernel)
    rows = x.shape[-3] * math.prod(kernel)
    return view.reshape(*x.shape[:-3], rows, math.prod(sizes))


def _fold(columns, kernel, steps, sizes, kept):
    *lead, rows, _ = columns.shape
    batch, channels = math.prod(lead), rows // math.prod(kernel)
    canvas = Canvas((batch, channels), steps, sizes, kernel, kept, columns.dtype)
    canvas.add(slice(0, batch), slice(0, sizes[0]), columns, sizes)
    return canvas.result().reshape(*lead, channels, *kept)


_PATCHES = (
    "(lambda x: jax.lax.conv_general_dilated_patches(x, kernel, {stride}, {padding}, "
    "rhs_dilation={dilation}))"
)


def _patches_in_jax(steps, sizes, kernel, kept):
    """JAX's function of images: their windows as channels."""
    padding = []
    for n, k, s, p, d, size in zip(
        sizes, kernel, steps.stride, steps.padding, steps.dilation, kept, strict=True
    ):
        padding.append((p, (n - 1) * s + d * (k - 1) + 1 - p - size))
    return _PATCHES.format(stride=steps.stride, padding=padding, dilation=steps.dilation)


def _unfolded_in_jax(input, kernel, steps, sizes):
    images = f"input.reshape({(-1, *input.shape[-3:])})"
    return f"{_patches_in_jax(steps, sizes, kernel, input.shape[-2:])}({images}).reshape(shape)"


def _folded_in_jax(input, kernel, steps, sizes, kept):
    batch, rows = math.prod(input.shape[:-2]), input.shape[-2]
    images = f"jax.ShapeDtypeStruct({(batch, rows // math.prod(kernel), *kept)}, input.dtype)"
    back = f"jax.linear_transpose({_patches_in_jax(steps, sizes, kernel, kept)}, {images})"
    return f"{back}(input.reshape({(batch, rows, *sizes)}))[0].reshape(shape)"


@opaque(
    _unfold,
    jax=_unfolded_in_jax,
    public=False,
    shape=lambda input, kernel, steps, sizes: (
        (*input.shape[:-3], input.shape[-3] * math.prod(kernel), math.prod(sizes)),
        input.dtype,
    ),
    phrase="each element gets the sum over the windows it is in",
    vjp=lambda g, out, input, kernel, steps, sizes: (
        F.col2im(g, kernel, steps, sizes, input.shape[-2:]),
    ),
)
def im2col(input: Tensor, kernel: Size, steps: Any, sizes: Size):
    """The windows of images (..., C, H, W) as columns."""


@opaque(
    _fold,
    jax=_folded_in_jax,
    public=False,
    shape=lambda input, kernel, steps, sizes, kept: (
        (*input.shape[:-2], input.shape[-2] // math.prod(kernel), *kept),
        input.dtype,
    ),
    vjp=lambda g, out, input, kernel, steps, sizes, kept: (F.im2col(g, kernel, steps, sizes),),
)
def col2im(input: Tensor, kernel: Size, steps: Any, sizes: Size, kept: Size):
    """Columns summed back into their windows."""


def _steps(name, kernel_size, dilation, padding, stride, spatial):
    kernel = spread(kernel_size, 2, name, "kernel_size")
    dilation = spread(dilation, 2, name, "dilation")
    pads = spread(padding, 2, name, "padding")
    stride = spread(stride, 2, name, "stride")
    positive(name, kernel_size=kernel, dilation=dilation, stride=stride)
    if min(pads) < 0:
        raise fault("E309 cannot-negative-padding", name, pads)
    sizes = tuple(
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, p, d, k, s in zip(spatial, pads, dilation, kernel, stride, strict=True)
    )
    return kernel, Steps(stride, pads, dilation, 1), sizes


@function(
    name=NN + "unfold",
    samples=[S(t(1, 2, 3, 4), 2), S(t(1, 1, 4, 4), (2, 3), 1, 1, 2), S(t(2, 3, 3), 2)],
    errors=[Bad("E308", t(2, 3), 2), Bad("E308", t(1, 1, 2, 2), 3)],
)
def unfold_columns(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
):
    """The windows of images (N, C, H, W) as columns (N, C * taps, places)."""
    if len(input.shape) not in (3, 4) or 0 in input.shape[-3:]:
        raise fault("E308 unfold-needs-images", input, len(input.shape) - 1)
    spatial = input.shape[-2:]
    kernel, steps, sizes = _steps("unfold", kernel_size, dilation, padding, stride, spatial)
    if min(sizes) < 1:
        raise fault("E308 windows", kernel, steps, spatial, sizes)
    if input.dtype != BOOL:
        require_float("unfold", input)
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
    shape, taps, places = input.shape, math.prod(kernel), math.prod(sizes)
    filled = len(shape) in (2, 3) and 0 not in shape[-2:]
    if not filled or shape[-2] % taps or shape[-1] != places or min(sizes) < 1:
        rows, columns = (0, 0, *shape)[-2:]
        raise fault(
            "E308 fold-into-windows-needs",
            kept,
            kernel,
            taps,
            places,
            shape,
            over=rows % taps if filled else "dims",
            rows=rows,
            columns=columns,
            steps=steps,
            sizes=sizes,
        )
    if input.dtype != BOOL:
        require_float("fold", input)
    return F.col2im(input, kernel, steps, sizes, kept)
