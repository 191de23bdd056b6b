"""Padding, and pixels moved between space and channels."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Ints, Scalar, Tensor, composite, function, movement
from ...graph.node import Node, Shape
from ...graph.op import constant
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.strides import CHANNELS, Strides, contiguous_strides, kept_channels
from ..kernels.indices import check_number
from ..kernels.rules import NAMED_SLOPE, zeros

# -- a constant around the tensor ------------------------------------------------------------------


def _sides(ndim: int, pad: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """`(dim, before, after)` for each padded dim; `pad` starts with the last dim."""
    return [(ndim - 1 - i // 2, pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]


def _check_length(input: Node, pad: tuple[int, ...]) -> None:
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise fault("E303 pad-shape", pad, input, 2 * input.ndim)


def _padded_sizes(shape: Shape, pad: tuple[int, ...]) -> Shape:
    sizes = list(shape)
    for dim, before, after in _sides(len(shape), pad):
        sizes[dim] += before + after
        if shape[dim] + min(before, 0) + min(after, 0) < 0:
            raise fault("E303 pad-takes-more-elements", before, after, shape[dim], dim)
    return tuple(sizes)


def _constant_shape(input, pad, value):
    _check_length(input, pad)
    check_number(value, input.dtype)
    return _padded_sizes(input.shape, pad), input.dtype


def _widths(ndim, pad):
    widths = [(0, 0)] * ndim
    for dim, before, after in _sides(ndim, pad):
        widths[dim] = (max(before, 0), max(after, 0))
    return widths


def _surrounded(x, pad, value):
    cut = [slice(None)] * x.ndim
    for dim, before, after in _sides(x.ndim, pad):
        cut[dim] = slice(max(-before, 0), x.shape[dim] - max(-after, 0))
    return np.pad(x[tuple(cut)], _widths(x.ndim, pad), constant_values=value)


def _padded_text(input, pad, value):
    cut = [":"] * input.ndim
    for dim, before, after in _sides(input.ndim, pad):
        cut[dim] = f"{max(-before, 0)}:{input.shape[dim] - max(-after, 0)}"
    whole = f"input[{', '.join(cut)}]" if min(pad) < 0 else "input"
    return f"np.pad({whole}, {_widths(input.ndim, pad)}, constant_values=value)"


@movement(
    _surrounded,
    numpy=_padded_text,
    shape=_constant_shape,
    method=False,
    vjp=lambda g, out, input, pad, value: F.constant_pad_nd(g, tuple(-p for p in pad), 0),
    samples=[S(t(2, 3), (1, 2)), S(t(2, 3), (1, -1, 0, 1), 1.5)],
    errors=[
        Bad("E303", t(2), (1,)),
        Bad("E205", t(2), 1),
        Bad("E303", t(2), (-3, 1)),
        Bad("E303", t(2), (1, -3)),
    ],
    properties=frozenset({CHANNELS}),
)
def constant_pad_nd(input: Tensor, pad: Shape, value: Scalar = 0):
    """`value` before and after each dim, from the last on; negative numbers cut off."""


# -- the tensor continued beyond its ends ----------------------------------------------------------

_MODES = {"reflect": "ReflectionPad", "replicate": "ReplicationPad", "circular": "CopySlices"}


def _source_places(mode: str, size: int, before: int, after: int) -> np.ndarray:
    """For each element of a padded dim the element it is a copy of."""
    places = np.arange(-before, size + after)
    if mode == "replicate":
        return places.clip(0, size - 1)
    if mode == "reflect":
        return size - 1 - np.abs(size - 1 - np.abs(places))
    start = max(-before, 0)
    kept = size - start - max(-after, 0)
    return start + np.arange(-max(before, 0), kept + max(after, 0)) % max(kept, 1)


def _continued_shape(input, pad, mode):
    _check_length(input, pad)
    spatial = len(pad) // 2
    if spatial not in (1, 2, 3) or input.ndim - spatial not in (1, 2):
        raise fault("E303 pad-numbers-mode-shape", len(pad), mode, input)
    for dim, before, after in _sides(input.ndim, pad):
        size = input.shape[dim]
        most = max(before, after)
        if (
            size == 0
            or (mode == "reflect" and most >= size)
            or (mode == "circular" and most > size)
        ):
            raise fault("E303 pad-mode-needs-more", before, after, mode, size, dim)
    return _padded_sizes(input.shape, pad), input.dtype


def _continued_strides(strides: Strides, input: Node, pad: Shape, mode: str) -> Strides:
    """What goes around is written into new memory."""
    shape = _padded_sizes(input.shape, pad)
    return contiguous_strides(shape) if mode == "circular" else kept_channels(shape, (input,))


def _continued(x, pad, mode):
    for dim, before, after in _sides(x.ndim, pad):
        x = np.take(x, _source_places(mode, x.shape[dim], before, after), dim)
    return x


def _continued_name(input, pad, mode):
    name = _MODES[mode]
    return name if mode == "circular" else f"{name}{len(pad) // 2}DBackward0"


@movement(
    _continued,
    shape=_continued_shape,
    public=False,
    grad_fn=_continued_name,
    strides_rule=_continued_strides,
    properties=NAMED_SLOPE,
    saves=lambda input, pad, mode: "" if mode == "circular" else "input",
    samples=[S(t(1, 2, 4), (2, 1), mode) for mode in _MODES],
)
def continued(input: Tensor, pad: Shape, mode: str):
    """The tensor continued beyond its ends: reflected, with its last element, or around again."""


@continued.vjp
def _(g, out, input, pad, mode):
    for dim, before, after in reversed(_sides(input.ndim, pad)):
        size = input.shape[dim]
        base = zeros(g, (*g.shape[:dim], size, *g.shape[dim + 1 :]))
        g = F.index_add(base, dim, constant(_source_places(mode, size, before, after)), g)
    return (g,)


@function(
    name="nn.functional.pad",
    samples=[
        S(t(2, 3), (1, 2)),
        S(t(2, 3), (0, 1, 1, 0), value=2.0),
        S(t(2, 3), (-1, 1)),
        S(t(1, 4), (2, 1), mode="reflect"),
        S(t(1, 2, 2, 3), (1, 1, 0, 1), "replicate"),
        S(t(1, 1, 3), (3, 2), mode="circular"),
        S(t(1, 4), (-1, 2), mode="replicate"),
    ],
    errors=[
        Bad("E303", t(1, 3), (3, 0), mode="reflect"),
        Bad("E205", t(3), (1, 1), mode="wrap"),
        Bad("E303", t(3), (1, 1), mode="circular"),
        Bad("E303", t(3), (1, 1, 1)),
    ],
)
def pad(input: Tensor, pad: Ints, mode: str = "constant", value: Scalar | None = None):
    """Elements around a tensor: a constant, its reflection, its edge, or its other end."""
    if isinstance(pad, int):
        raise fault("E205 argument-tuple-ints", "pad", "pad", pad, f"({pad}, {pad})")
    if mode == "constant":
        return F.constant_pad_nd(input, pad, 0 if value is None else value)
    if mode not in _MODES:
        raise fault("E205 pad-mode-constant", ", ".join(_MODES), mode)
    if value:
        raise fault("E205 pad-mode-takes-no", mode)
    return F.continued(input, pad, mode)


# -- pixels and channels ---------------------------------------------------------------------------


def _pixels(name: str, input: Node, what: str, value: int) -> None:
    if input.ndim < 3:
        raise fault("E303 needs-least-dims", name, 3, input)
    if value < 1:
        raise fault("E303 needs-positive", name, what, value)


@composite(
    name="nn.functional.pixel_shuffle",
    aliases=["pixel_shuffle"],
    vjp=lambda g, out, input, factor: (
        F.pixel_unshuffle(g, factor) if input.numel else F.reshape(g, input.shape)
    ),
    samples=[S(t(4, 2, 3), 2), S(t(2, 9, 1, 1), 3)],
    errors=[Bad("E303", t(3, 2, 2), 2), Bad("E303", t(2, 2), 1)],
    phrase="each gradient goes back to where its element came from",
    properties=frozenset({CHANNELS}),
)
def pixel_shuffle(input: Tensor, upscale_factor: int):
    """Groups of `upscale_factor ** 2` channels as pixels of a larger picture."""
    _pixels("pixel_shuffle", input, "upscale_factor", upscale_factor)
    *lead, channels, height, width = input.shape
    r = upscale_factor
    if channels % (r * r):
        raise fault("E303 pixel_shuffle", r, channels, r * r)
    count = len(lead)
    apart = F.reshape(input, (*lead, channels // (r * r), r, r, height, width))
    order = (*range(count), *(count + i for i in (0, 3, 1, 4, 2)))
    return F.reshape(F.permute(apart, order), (*lead, channels // (r * r), height * r, width * r))


@composite(
    name="nn.functional.pixel_unshuffle",
    aliases=["pixel_unshuffle"],
    vjp=lambda g, out, input, factor: F.pixel_shuffle(g, factor) if input.numel else g,
    samples=[S(t(1, 4, 2), 2), S(t(2, 1, 3, 3), 3)],
    errors=[Bad("E303", t(1, 3, 2), 2)],
    phrase="each gradient goes back to where its element came from",
    properties=frozenset({CHANNELS}),
)
def pixel_unshuffle(input: Tensor, downscale_factor: int):
    """Squares of `downscale_factor ** 2` pixels as channels of a smaller picture."""
    _pixels("pixel_unshuffle", input, "downscale_factor", downscale_factor)
    *lead, channels, height, width = input.shape
    r = downscale_factor
    if height % r or width % r:
        raise fault("E303 pixel_unshuffle", r, height, width)
    if not input.numel:
        return F.clone(input)  # as PyTorch, in its own shape
    count = len(lead)
    apart = F.reshape(input, (*lead, channels, height // r, r, width // r, r))
    order = (*range(count), *(count + i for i in (0, 2, 4, 1, 3)))
    return F.reshape(F.permute(apart, order), (*lead, channels * r * r, height // r, width // r))


@composite(
    name="nn.functional.channel_shuffle",
    aliases=["channel_shuffle", "nn.functional.native_channel_shuffle"],
    vjp=lambda g, out, input, groups: F.channel_shuffle(g, input.shape[1] // groups),
    samples=[S(t(1, 4, 2), 2), S(t(2, 6, 1, 2), 3)],
    errors=[Bad("E303", t(1, 3, 2), 2)],
    phrase="each gradient goes back to where its element came from",
)
def channel_shuffle(input: Tensor, groups: int):
    """Channels of all groups in turn instead of group after group."""
    _pixels("channel_shuffle", input, "groups", groups)
    batch, channels, *rest = input.shape
    if channels % groups:
        raise fault("E303 channel_shuffle-channels-not-divisible", channels, groups)
    apart = F.reshape(input, (batch, groups, channels // groups, *rest))
    return F.reshape(F.transpose(apart, 1, 2), input.shape)
