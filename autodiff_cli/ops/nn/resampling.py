"""Resampling: interpolation to another size, sampling at given places, and affine grids.

Every interpolation is a linear map of each dim by itself, given by a rule of `graph.windows`.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import fault
from ...graph.declare import (
    Any,
    Flag,
    Floats,
    Ints,
    Size,
    Tensor,
    Word,
    composite,
    function,
    movement,
    opaque,
)
from ...graph.dtypes import INT64, UINT8
from ...graph.op import cast, constant
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.sizes import check_size
from ...graph.strides import CHANNELS
from ..kernels.indices import MOST_WRITTEN
from ..kernels.rules import require_float
from ..kernels.windows import resampled, spread_back

NN = "nn.functional."


def _resampled_shape(input, rules):
    lead = len(input.shape) - len(rules)
    return (*input.shape[:lead], *(rule[1] for rule in rules)), input.dtype


def _in_jax(input, rules, sizes=None):
    """A product with the matrix of each rule."""
    text = "input"
    for axis, rule in enumerate(rules, input.ndim - len(rules)):
        size = input.shape[axis] if sizes is None else sizes[axis - input.ndim]
        matrix = resampled(np.eye(size, dtype=input.dtype), (rule,))
        matrix = matrix if sizes is None else matrix.T
        if matrix.size > MOST_WRITTEN:
            return None
        array = f"np.array({matrix.tolist()}, np.{input.dtype})"
        text = f"np.moveaxis(np.tensordot({text}, {array}, ({axis}, 0)), -1, {axis})"
    return text


@opaque(
    resampled,
    jax=_in_jax,
    public=False,
    properties=frozenset({"samplewise"}),
    shape=_resampled_shape,
    samples=[S(t(2, 5), (("adaptive", 2),))],
    vjp=lambda g, out, input, rules: (
        F.resample_adjoint(g, rules, input.shape[len(input.shape) - len(rules) :]),
    ),
)
def resample(input: Tensor, rules: Any):
    """The last dims mapped linearly, each by its rule."""


@opaque(
    spread_back,
    jax=_in_jax,
    public=False,
    properties=frozenset({"samplewise"}),
    shape=lambda input, rules, sizes: (
        (*input.shape[: len(input.shape) - len(rules)], *sizes),
        input.dtype,
    ),
    samples=[S(t(2, 2), (("adaptive", 2),), (5,))],
    vjp=lambda g, out, input, rules, sizes: (F.resample(g, rules),),
)
def resample_adjoint(input: Tensor, rules: Any, sizes: Size):
    """The transpose of `resample` onto dims of the given sizes."""


# -- interpolate -----------------------------------------------------------------------------------

_KINDS = {
    "nearest": "Nearest",
    "nearest-exact": "NearestExact",
    "linear": "Linear",
    "cubic": "Bicubic",
    "linear-aa": "Linear",
    "cubic-aa": "Bicubic",
    "lanczos-aa": "Lanczos",
}
_LINEAR = {1: "Linear", 2: "Bilinear", 3: "Trilinear"}


def _upsample_name(input, rules):
    n = len(rules)
    kind = rules[0][0]
    word = _LINEAR[n] if kind.startswith("linear") else _KINDS[kind]
    return f"Upsample{word}{n}D{'Aa' if kind.endswith('-aa') else ''}Backward0"


@composite(
    public=False,
    grad_fn=_upsample_name,
    phrase="each source gets its shares of the interpolation",
    properties=frozenset({CHANNELS}),
)
def upsampled(input: Tensor, rules: Any):
    """The last dims interpolated to other sizes."""
    return F.resample(input, rules)


# mode -> (kind of rule, dims it works on)
_MODES = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "trilinear": ("linear", (3,)),
    "bicubic": ("cubic", (2,)),
    "area": ("area", (1, 2, 3)),
    "lanczos": ("lanczos", (2,)),
}


def _mode(mode, n, align_corners, antialias):
    if mode not in _MODES:
        raise fault("E205 interpolate-no-mode", mode, ", ".join(_MODES))
    kind, dims = _MODES[mode]
    if n not in dims:
        wanted = " or ".join(f"{d + 2}" for d in dims)
        raise fault("E308 mode-works-tensors-dims", mode, wanted, n + 2)
    if antialias and (n != 2 or kind not in ("linear", "cubic", "lanczos")):
        raise fault("E205 antialias-works-modes-bilinear")
    if kind == "lanczos" and (not antialias or align_corners):
        raise fault("E205 mode-lanczos-needs-antialias")
    return kind


def _sizes_and_scales(input, size, scale_factor, recompute):
    spatial = input.shape[2:]
    n = len(spatial)
    given = size if scale_factor is None else scale_factor
    values = given if isinstance(given, tuple) else (given,) * n
    if len(values) != n:
        raise fault("E308 interpolate-shape-needs-sizes", input, n, len(values))
    if scale_factor is None:
        if recompute:
            raise fault("E205 recompute_scale_factor-no-meaning-size")
        sizes, scales = values, (None,) * n
    else:
        if not all(0 < factor < 1e9 for factor in values):
            raise fault("E309 interpolate-needs-positive-factors", scale_factor)
        sizes = tuple(
            math.floor(length * factor) for length, factor in zip(spatial, values, strict=True)
        )
        scales = (None,) * n if recompute else values
    if any(v < 1 for v in (*sizes, *spatial)):
        raise fault("E309 interpolate-cannot-go", spatial, sizes)
    return sizes, scales


@function(
    name=NN + "interpolate",
    samples=[
        S(t(1, 2, 3), size=5),
        S(t(1, 2, 3, 4), scale_factor=1.7),
        S(t(1, 1, 3, 3), size=(5, 2), mode="bilinear"),
        S(t(1, 1, 3, 3), scale_factor=2, mode="bicubic", align_corners=True),
        S(t(1, 1, 2, 2, 2), size=3, mode="trilinear"),
        S(t(1, 1, 5), size=2, mode="area"),
        S(t(1, 1, 5, 5), size=(2, 3), mode="bilinear", antialias=True),
    ],
    errors=[Bad("E205", t(1, 2, 3)), Bad("E308", t(1, 2, 3), size=4, mode="bilinear")],
)
def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Floats | None = None,
    mode: Word = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: Flag | None = None,
    antialias: Flag = False,
):
    """The dims after batch and channels brought to another size, or scaled."""
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise fault("E205 align_corners-no-meaning-mode", mode)
    if (size is None) == (scale_factor is None):
        raise fault("E205 interpolate-needs-either-size", size is not None)
    n = len(input.shape) - 2
    if not 1 <= n <= 3:
        raise fault(
            "E308 interpolate-needs-dims",
            input,
            "ValueError" if isinstance(size or scale_factor, tuple) else "NotImplementedError",
        )
    if input.dtype != UINT8 or mode in ("linear", "trilinear"):
        require_float("interpolate", input)
    sizes, scales = _sizes_and_scales(input, size, scale_factor, recompute_scale_factor)
    kind = _mode(mode, n, align_corners, antialias)
    if kind == "area":
        return getattr(F, f"adaptive_avg_pool{n}d")(input, sizes)
    if not input.shape[1]:
        raise fault("E308 interpolate-needs-channels", input)
    align = bool(align_corners)
    if antialias:
        kind += "-aa"
    rest = () if kind.startswith("nearest") else (align,)
    rules = tuple((kind, out, scale, *rest) for out, scale in zip(sizes, scales, strict=True))
    return F.upsampled(input, rules)


@function(name=NN + "upsample", samples=[S(t(1, 1, 3), size=5)])
def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Floats | None = None,
    mode: Word = "nearest",
    align_corners: bool | None = None,
):
    """The old name of `interpolate`."""
    return F.interpolate(input, size, scale_factor, mode, align_corners)


@function(
    name=NN + "upsample_nearest",
    samples=[S(t(1, 1, 3), size=5), S(t(1, 1, 2, 2), scale_factor=1.7)],
)
def upsample_nearest(input: Tensor, size: Ints | None = None, scale_factor: Floats | None = None):
    """`interpolate` with mode nearest."""
    return F.interpolate(input, size, scale_factor)


@function(
    like=upsample_nearest, name=NN + "upsample_bilinear", samples=[S(t(1, 1, 2, 3), size=(3, 5))]
)
def upsample_bilinear(input, size, scale_factor):
    """`interpolate` with mode bilinear and aligned corners."""
    return F.interpolate(input, size, scale_factor, "bilinear", True)


# -- affine grids and sampling at places -----------------------------------------------------------


def _base_grid(sizes, align, dtype):
    """Places (x, y[, z], 1) of the grid's points, shape (*sizes, n + 1)."""
    lines = []
    for size in sizes:
        line = np.linspace(-1, 1, size) if size > 1 else np.zeros(size)
        lines.append(line if align else line * (size - 1) / size)
    axes = np.meshgrid(*lines, indexing="ij")[::-1]
    return np.stack([*axes, np.ones(sizes)], -1).astype(dtype)


@composite(method=False, samples=[S(t(1, 2, 3), (1, 1, 2, 2), False)])
def affine_grid_generator(theta: Tensor, size: Size, align_corners: bool):
    """Places of a grid under affine maps."""
    sizes = size[2:]
    if min(size) < 0:
        raise fault("E309 size-cannot-negative", tuple(size))
    base = constant(_base_grid(sizes, align_corners, theta.dtype).reshape(-1, len(sizes) + 1))
    grid = F.matmul(F.expand(base, (size[0], *base.shape)), F.transpose(theta, 1, 2))
    return F.reshape(grid, (size[0], *sizes, len(sizes)))


@function(
    name=NN + "affine_grid",
    samples=[S(t(1, 2, 3), (1, 1, 2, 3)), S(t(2, 3, 4), (2, 1, 2, 2, 2), align_corners=True)],
    errors=[Bad("E308", t(1, 3, 3), (1, 1, 2, 2))],
)
def affine_grid(theta: Tensor, size: Size, align_corners: bool | None = None):
    """A grid for `grid_sample` from affine maps, (N, 2, 3) for planes and (N, 3, 4) for volumes."""
    n = len(size) - 2
    if n not in (2, 3) or theta.shape != (size[0], n, n + 1):
        raise fault("E308 affine_grid-size-cannot-use", size, theta)
    if theta.dtype.kind != "f" or min(size) < 1:
        raise fault("E309 affine_grid-needs-float-theta", theta, size)
    check_size((*size[2:], n + 1), theta.dtype)
    return F.affine_grid_generator(theta, size, bool(align_corners))


@movement(
    lambda x, other: x,
    public=False,
    samples=[S(t(2, 3), t(2))],
    counterpart=lambda input, other: input,
)
def depends(input: Tensor, other: Tensor):
    """`input`, said to depend on `other` with slope 0."""


@depends.vjp
def _(g, out, input, other):
    return g, F.expand(constant(np.zeros((), other.dtype)), other.shape)


def _unnormalized(place, size, align, n):
    """From -1 .. 1 to positions; rounded as PyTorch does for planes and for volumes."""
    if align:
        return (place + 1) * ((size - 1) / 2)
    return (place + 1) * (size / 2) - 0.5 if n == 2 else ((place + 1) * size - 1) / 2


def _reflect(x, low2, high2):
    """Reflected into [low2 / 2, high2 / 2]."""
    if low2 == high2:
        return x * 0.0
    low, span = low2 / 2, (high2 - low2) / 2
    x = F.abs(x - low)
    flips = F.detach(F.floor(x / span))
    extra = x - flips * span
    even = F.eq(F.remainder(flips, 2), 0)
    return F.where(even, extra + low, span - extra + low)


def _padded(x, size, padding_mode, align):
    if padding_mode == "zeros":
        return x
    if padding_mode == "reflection":
        x = _reflect(x, 0, 2 * (size - 1)) if align else _reflect(x, -1, 2 * size - 1)
    return F.where(x > 0, F.where(x < size - 1, x, float(size - 1)), 0.0)


def _values_at(input, places):
    """Elements of input (N, C, ...) at whole places, each (N, P); 0 outside."""
    spatial = input.shape[2:]
    inside = None
    flat = None
    for place, size in zip(places, spatial, strict=True):
        ok = F.logical_and(F.ge(place, 0), F.le(place, size - 1))
        inside = ok if inside is None else F.logical_and(inside, ok)
        flat = place if flat is None else flat * size + place
    index = cast(F.where(inside, F.detach(flat), 0.0), INT64)
    batch, channels, points = input.shape[0], input.shape[1], index.shape[1]
    index = F.expand(F.unsqueeze(index, 1), (batch, channels, points))
    values = F.gather(F.reshape(input, (batch, channels, math.prod(spatial))), 2, index)
    return F.where(F.unsqueeze(inside, 1), values, 0.0)


def _linear_sample(input, places):
    """Multilinear: the corners of the cell of each place, weighted."""
    floors = [F.detach(F.floor(p)) for p in places]
    rights = [p - f for p, f in zip(places, floors, strict=True)]
    total = None
    for corner in range(1 << len(places)):
        bits = [corner >> i & 1 for i in range(len(places))]
        at = [f + b for f, b in zip(floors, bits, strict=True)]
        weight = None
        for right, bit in zip(rights, bits, strict=True):
            part = right if bit else 1 - right
            weight = part if weight is None else weight * part
        term = _values_at(input, at) * F.unsqueeze(weight, 1)
        total = term if total is None else total + term
    return total


def _cubic_weights(fraction):
    a = -0.75
    near = [((a + 2) * x - (a + 3)) * x * x + 1 for x in (fraction, 1 - fraction)]
    far = [((a * x - 5 * a) * x + 8 * a) * x - 4 * a for x in (fraction + 1, 2 - fraction)]
    return [far[0], near[0], near[1], far[1]]


def _cubic_sample(input, places, padding_mode, align):
    """Bicubic over 4 x 4 neighbours; padding moves the neighbours, not the place."""
    floors = [F.detach(F.floor(p)) for p in places]
    weights = [_cubic_weights(p - f) for p, f in zip(places, floors, strict=True)]
    spatial = input.shape[2:]
    total = None
    for i in range(4):
        row = _padded(floors[0] + (i - 1), spatial[0], padding_mode, align)
        line = None
        for j in range(4):
            column = _padded(floors[1] + (j - 1), spatial[1], padding_mode, align)
            term = _values_at(input, [row, column]) * F.unsqueeze(weights[1][j], 1)
            line = term if line is None else line + term
        term = line * F.unsqueeze(weights[0][i], 1)
        total = term if total is None else total + term
    return total


@composite(
    public=False,
    grad_fn=lambda input, grid, *rest: f"GridSampler{len(input.shape) - 2}DBackward0",
    no_forward="grid_sampler_2d",
    phrase="each corner gets its share of the interpolation, the grid the slope between them",
    saves="operands",
    lacks="grid_sampler_2d_cpu_kernel_impl ints bool",
)
def grid_sampler(input: Tensor, grid: Tensor, mode: Word, padding_mode: Word, align_corners: bool):
    """`input` at the places of `grid`."""
    spatial = input.shape[2:]
    n = len(spatial)
    batch = input.shape[0]
    points = math.prod(grid.shape[1:-1])
    flat = F.reshape(grid, (batch, points, n))
    places = [
        _unnormalized(F.select(flat, 2, n - 1 - i), size, align_corners, n)
        for i, size in enumerate(spatial)
    ]
    if mode == "bicubic":
        out = _cubic_sample(input, places, padding_mode, align_corners)
    else:
        places = [
            _padded(p, size, padding_mode, align_corners)
            for p, size in zip(places, spatial, strict=True)
        ]
        if mode == "bilinear":
            out = _linear_sample(input, places)
        else:
            out = F.depends(_values_at(input, [F.detach(F.round(p)) for p in places]), grid)
    return F.reshape(out, (batch, input.shape[1], *grid.shape[1:-1]))


@function(
    name=NN + "grid_sample",
    samples=[
        S(t(1, 2, 3, 3), t(1, 2, 2, 2, low=-1.2, high=1.2)),
        S(t(1, 1, 3, 3), t(1, 2, 2, 2, low=-1.2, high=1.2), mode="bicubic", padding_mode="border"),
        S(
            t(1, 1, 3, 3),
            t(1, 2, 2, 2, low=-1.2, high=1.2),
            mode="nearest",
            padding_mode="reflection",
        ),
        S(t(1, 1, 2, 3, 2), t(1, 1, 2, 2, 3, low=-1.2, high=1.2), align_corners=True),
    ],
    errors=[
        Bad("E308", t(1, 2, 3, 3), t(2, 2, 2, 2)),
        Bad("E205", t(1, 1, 2, 2), t(1, 1, 1, 2), mode="linear"),
    ],
)
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: Word = "bilinear",
    padding_mode: Word = "zeros",
    align_corners: bool | None = None,
):
    """`input` (N, C, H, W) or (N, C, D, H, W) at places of `grid`, whose last dim holds (x, y[, z])
    from -1 to 1. The slope towards the grid is 0 for mode nearest and beyond the border."""
    n = len(input.shape) - 2
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise fault("E205 grid_sample-no-mode", mode)
    if padding_mode not in ("zeros", "border", "reflection"):
        raise fault("E205 grid_sample-no-padding_mode", padding_mode)
    if (
        n not in (2, 3)
        or len(grid.shape) != n + 2
        or grid.shape[-1] != n
        or grid.shape[0] != input.shape[0]
        or min(input.shape[2:]) < 1
        or (mode == "bicubic" and n != 2)
    ):
        raise fault("E308 grid_sample-cannot-use-grid", input, grid, mode)
    if input.dtype != grid.dtype:
        raise fault("E307 grid_sample-needs-input-grid", input, grid)
    return F.grid_sampler(input, grid, mode, padding_mode, bool(align_corners))
