"""The windows of arrays as columns of a matrix, and columns added back into windows.

Columns are made block by block: a block is small enough for the cache, and never more than asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...errors import fault
from ...graph.sizes import check_size

Size = tuple[int, ...]

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
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def padded(x: np.ndarray, steps: Steps, sizes: Size, kernel: Size) -> np.ndarray:
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


def windows(x: np.ndarray, steps: Steps, sizes: Size, kernel: Size) -> np.ndarray:
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


def blocks(
    batch: int, channels: int, kernel: Size, sizes: Size, itemsize: int
) -> Iterator[tuple[slice, slice]]:
    """Slices of the batch and of the first dim of places whose columns fill about a CHUNK."""
    line = max(channels * math.prod(kernel) * math.prod(sizes[1:]) * itemsize, 1)
    bands = min(-(-line * sizes[0] // CHUNK), sizes[0])
    cuts = [sizes[0] * i // bands for i in range(bands + 1)]
    samples = max(1, CHUNK // (line * sizes[0]))
    for start in range(0, batch, samples):
        for first, last in pairwise(cuts):
            yield slice(start, min(start + samples, batch)), slice(first, last)


class Memory:
    """Room for one array after the other: fresh memory costs more than what is written to it."""

    __slots__ = ("dtype", "room")

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self.room = np.empty(0, dtype)

    def array(self, shape: Size) -> np.ndarray:
        """An array of undefined values, in the place of the one before."""
        size = math.prod(shape)
        if self.room.size < size:
            self.room = np.empty(size, self.dtype)
        return self.room[:size].reshape(shape)


def columns_of(
    x: np.ndarray, groups: int, steps: Steps, sizes: Size, kernel: Size
) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """For each block its slices and columns (N, groups, channels * taps, places), which are only
    there until the next one is asked for."""
    n = len(kernel)
    batch, channels = x.shape[:2]
    height = channels // groups * math.prod(kernel)
    view = windows(padded(x, steps, sizes, kernel), steps, sizes, kernel)
    memory = Memory(x.dtype)
    for part, rows in blocks(batch, channels, kernel, sizes, x.itemsize):
        block = view[(part, *(slice(None),) * (n + 1), rows)]
        if math.prod(kernel) > 1:  # else the block may be in order as it is
            columns = memory.array(block.shape)
            columns[...] = block
            block = columns
        places = math.prod(block.shape[2 + n :])
        yield part, rows, block.reshape(block.shape[0], groups, height, places)


def rows_of(x: np.ndarray, part: slice, rows: slice, groups: int) -> np.ndarray:
    """The block of a tensor of places (N, C, *sizes) as (N, groups, C / groups, places): a view
    where `x` is in order."""
    batch, channels, *sizes = x.shape
    line = math.prod(sizes[1:])
    flat = x.reshape(batch, groups, channels // groups, math.prod(sizes))
    return flat[part, :, :, rows.start * line : rows.stop * line]


class Canvas:
    """Zeros (N, C, *spatial) with room for padding, to which windows are added back."""

    __slots__ = ("array", "inner", "kernel", "steps")

    def __init__(
        self, shape: Size, steps: Steps, sizes: Size, kernel: Size, kept: Size, dtype: np.dtype
    ):
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

    def add(self, part: slice, rows: slice, columns: np.ndarray, sizes: Size) -> None:
        """Add the columns of a block, tap by tap."""
        steps = self.steps
        target = self.array[part]
        if len(sizes) == 2 and steps.stride == (1, 1) and sizes[1] == target.shape[-1]:
            self._add_runs(target, rows, columns)
            return
        places = (rows.stop - rows.start, *sizes[1:])
        starts = (rows.start * steps.stride[0], *(0,) * (len(sizes) - 1))
        columns = columns.reshape(*target.shape[:2], *self.kernel, *places)
        for at in np.ndindex(*self.kernel):
            index: tuple[Any, ...] = tuple(
                slice(b + a * d, b + a * d + (size - 1) * s + 1, s)
                for b, a, d, size, s in zip(
                    starts, at, steps.dilation, places, steps.stride, strict=True
                )
            )
            target[(..., *index)] += columns[(slice(None), slice(None), *at)]

    def widened(self, x: np.ndarray) -> np.ndarray:
        """`x` (N, C, height, width) with zeros behind its rows, as long as those here where that is
        little more: then what a tap adds is one run in memory."""
        more = self.array.shape[-1] - x.shape[-1]
        if x.ndim != 4 or self.steps.stride != (1, 1) or more > x.shape[-1] // 8:
            return x
        return np.pad(x, ((0, 0), (0, 0), (0, 0), (0, more)))

    def _add_runs(self, target: np.ndarray, rows: slice, columns: np.ndarray) -> None:
        """The columns of rows as long as those here; what would be behind the last one is zero."""
        width = target.shape[-1]
        target = target.reshape(*target.shape[:2], -1)
        columns = columns.reshape(*target.shape[:2], *self.kernel, -1)
        down, right = self.steps.dilation
        for i, j in np.ndindex(*self.kernel):
            start = (rows.start + i * down) * width + j * right
            run = target[..., start : start + columns.shape[-1]]
            run += columns[:, :, i, j, : run.shape[-1]]

    def result(self) -> np.ndarray:
        """Without the room for padding."""
        return self.array[self.inner]


def positive(name: str, **values: Size) -> None:
    """E309 for a stride, dilation or kernel below 1."""
    for what, numbers in values.items():
        if any(v < 1 for v in numbers):
            raise fault("E309 needs-least", name, what, numbers)
