"""Fractional max pooling: maxima over windows that begin at random places."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Flag, Floats, Ints, Tensor, composite, function, opaque
from ...graph.dtypes import INT64
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.shapes import count
from ..kernels.windows import lead_shape, spread

NN = "nn.functional."


def _fractional_starts(sample, length, out, kernel):
    """Starts of windows of `kernel` elements at random fractions; PyTorch's sequence."""
    if out <= 1:
        return np.full((*sample.shape, out), length - kernel)
    alpha = (length - kernel) / (out - 1)
    places = np.arange(out)
    starts = ((places + sample[..., None]) * alpha).astype(np.int64)
    starts -= (sample[..., None] * alpha).astype(np.int64)
    starts[..., -1] = length - kernel
    return starts


def _fractional_indices(x, samples, kernel, sizes):
    n = len(sizes)
    lead = x.shape[: x.ndim - n]
    spatial = x.shape[x.ndim - n :]
    flat = np.zeros((*lead, *(1,) * (2 * n)), np.int64)
    for i in range(n):
        which = samples[..., n - 1 - i] if n == 2 else samples[..., i]
        starts = _fractional_starts(which.reshape(lead), spatial[i], sizes[i], kernel[i])
        at = starts[..., None] + np.arange(kernel[i])
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = sizes[i], kernel[i]
        flat = flat * spatial[i] + at.reshape(*lead, *shape)
    taps = count(kernel)
    flat = flat.reshape(*lead, count(sizes) * taps)
    values = np.take_along_axis(x.reshape(*lead, count(spatial)), flat, -1)
    values = values.reshape(*lead, count(sizes), taps)
    best = np.where(np.isnan(values), np.inf, values).argmax(-1)
    found = np.take_along_axis(flat.reshape(values.shape), best[..., None], -1)
    return found.reshape(*lead, *sizes)


@opaque(
    _fractional_indices,
    public=False,
    shape=lambda input, samples, kernel, sizes: (
        (*input.shape[: len(input.shape) - len(sizes)], *sizes),
        INT64,
    ),
    kink=lambda input, samples, kernel, sizes: F.gaps_of_last(input, len(sizes)),
)
def fractional_indices(input: Tensor, samples: Tensor, kernel: Any, sizes: Any):
    """Flat positions of the maxima of windows at random places."""


@composite(
    public=False,
    grad_fn=lambda i, s, k, sizes: f"FractionalMaxPool{len(sizes)}DBackward0",
    properties=frozenset({"selects"}),
    saves="input",
)
def fractional_maximum(input: Tensor, samples: Tensor, kernel: Any, sizes: Any):
    """The maxima of windows at random places, and their flat positions."""
    indices = F.fractional_indices(input, samples, kernel, sizes)
    lead = input.shape[: len(input.shape) - len(sizes)]
    flat = F.reshape(input, (*lead, count(input.shape[len(lead) :])))
    values = F.gather(flat, len(lead), F.reshape(indices, (*lead, count(sizes))))
    return F.reshape(values, indices.shape), indices


def _declare_fractional(n):
    name = f"fractional_max_pool{n}d"
    shape = (1, 1, 5, 4, 4)[: n + 2]
    given = t(1, 1, n, values=[[[0.3, 0.6, 0.2][:n]]], grad=False)

    @function(
        key=name,
        name=NN + name,
        samples=[S(t(*shape), 2, output_size=2, _random_samples=given)],
        errors=[Bad("E205", t(*shape), 2)],
    )
    def pool(
        input: Tensor,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: Floats | None = None,
        return_indices: Flag = False,
        _random_samples: Tensor | None = None,
    ):
        lead = lead_shape(name, input, n)
        kernel = spread(kernel_size, n, name, "kernel_size")
        spatial = input.shape[-n:]
        if output_size is not None:
            sizes = spread(output_size, n, name, "output_size")
        elif output_ratio is None:
            raise fault("E205 needs-output_size-output_ratio", name)
        else:
            if n == 2 and not isinstance(output_ratio, tuple):
                raise fault("E208 needs-two-ratios", name)
            ratio = spread(output_ratio, n, name, "output_ratio")
            sizes = tuple(int(size * r) for size, r in zip(spatial, ratio, strict=True))
        most = 0 if n == 2 else -1  # PyTorch refuses the last fit in three dims
        if any(
            out < 0 or k < 1 or out + k - 1 > size + most
            for out, k, size in zip(sizes, kernel, spatial, strict=True)
        ):
            raise fault("E308 cannot-take-windows", name, sizes, kernel, spatial)
        batch = (1, *lead) if len(lead) == 1 else lead
        wanted, samples = (*batch, n), _random_samples
        assert samples is not None  # drawn where a program calls it
        if samples.dtype != input.dtype:
            raise fault("E307 random-samples-need-dtype", name, input.dtype, samples.dtype)
        got = samples.shape
        if len(got) != 3 or got[0] < wanted[0] or got[1:] != wanted[1:]:
            wrong = [got[:1] < wanted[:1], got[1:2] != wanted[1:2], True].index(True)
            raise fault("E308 random-samples-do-not-fit", name, wanted, got, wrong=wrong)
        samples = F.slice(samples, 0, 0, wanted[0], 1)
        values, indices = F.fractional_maximum(input, samples, kernel, sizes)
        return (values, indices) if return_indices else values

    pool.doc = f"Maxima of windows at random places over the last {n} dims."


for _n in (2, 3):
    _declare_fractional(_n)
