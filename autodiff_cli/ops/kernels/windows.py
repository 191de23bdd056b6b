"""Window arithmetic: which positions of a dim each position of a result reads, with what weight.

A rule is a hashable tuple `(kind, out, ...)` for one dim; `taps(rule, length, dtype)` is its table.
The kinds:

    ("sum", out, kernel, stride, padding)            windows clipped to the dim
    ("mean", out, kernel, stride, padding, pads)     over their sizes; `pads`: padding counts
    ("max", out, kernel, stride, padding, dilation)  clipped to the nearest position of the window
    ("adaptive", out)                                windows of nearly equal size that cover the dim
    ("nearest", out, scale)  ("nearest-exact", out, scale)
    ("linear", out, scale, align)  ("cubic", out, scale, align)
    ("linear-aa", out, scale, align)  ("cubic-aa", ...)  ("lanczos-aa", ...)

`scale` is the user's factor or None for the ratio of sizes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import fault
from ...graph.params import BindError, to_size
from ...graph.sizes import check_size

Rule = tuple[Any, ...]
INDEX = np.dtype(np.intp)


class Taps:
    """`at` and `weight`, both (out, taps): what each result reads; `valid` is False where a row has
    fewer taps (None when all are valid); `divisor` is what each sum is divided by, or None."""

    __slots__ = ("_columns", "_lines", "_transposed", "at", "divisor", "length", "valid", "weight")

    def __init__(self, at: Any, weight: Any, valid: Any, length: int, divisor: Any = None):
        self.at = at
        self.weight = weight
        self.valid = None if valid is None or valid.all() else valid
        self.length = length
        self.divisor = divisor
        self._columns: list[Any] | None = None
        self._lines: list[tuple[Any, Any]] | None = None
        self._transposed: Taps | None = None

    @property
    def columns(self) -> list[Any]:
        """What each tap reads for all results, where rows with fewer taps repeat one."""
        if self._columns is None:
            self._columns = [_spaced(self.at[:, k]) for k in range(self.at.shape[1])]
        return self._columns

    @property
    def lines(self) -> list[tuple[Any, Any]]:
        """For each tap the results that have it and what they read."""
        if self._lines is None:
            self._lines = []
            for k in range(self.at.shape[1]):
                if self.valid is None or self.valid[:, k].all():
                    self._lines.append((slice(None), _spaced(self.at[:, k])))
                else:
                    rows = np.flatnonzero(self.valid[:, k])
                    self._lines.append((_spaced(rows), _spaced(self.at[rows, k])))
        return self._lines

    @property
    def even(self) -> bool:
        """Whether all lines are slices."""
        return all(type(to) is type(at) is slice for to, at in self.lines)

    def transposed(self) -> Taps:
        """The table of the adjoint map: for each position of the dim, which results read it."""
        if self._transposed is None:
            self._transposed = self._adjoint()
        return self._transposed

    def _adjoint(self) -> Taps:
        out, width = self.at.shape
        rows = np.repeat(np.arange(out), width)
        columns = self.at.reshape(-1)
        weights = None if self.weight is None else self.weight.reshape(-1)
        if self.valid is not None:
            kept = self.valid.reshape(-1)
            rows, columns = rows[kept], columns[kept]
            weights = None if weights is None else weights[kept]
        order = np.argsort(columns, kind="stable")
        columns = columns[order]
        counts = np.bincount(columns, minlength=self.length)
        widest = int(counts.max(initial=1))
        check_size((self.length, widest), INDEX)
        slot = np.arange(columns.size) - (np.cumsum(counts) - counts)[columns]
        at = np.zeros((self.length, widest), np.intp)
        at[columns, slot] = rows[order]
        valid = np.arange(widest) < counts[:, None]
        weight = None
        if weights is not None:
            weight = np.zeros(at.shape, weights.dtype)
            weight[columns, slot] = weights[order]
        return Taps(at, weight, valid, out)


def spread(value: Any, n: int, name: str, what: str) -> tuple[int, ...]:
    """One int for each of `n` dims: a number or a tuple of one stands for all."""
    values = value if isinstance(value, tuple) else (value,)
    if len(values) == 1:
        values = values * n
    if len(values) != n:
        raise fault("E309 needs-what-n", name, what, n, value, values[0] if values else 1)
    return values


def whole_numbers(value: Any, name: str, what: str) -> tuple[int, ...]:
    """Ints given as a number, a list or a tensor; E205 for anything else."""
    try:
        return to_size(value)
    except BindError as error:
        raise fault("E205 argument-what-error", name, what, error) from None


# Functions that PyTorch lets ask for the size of a dim that is not there.
_FROM_THE_END = frozenset({"avg_pool2d", "fractional_max_pool2d", "fractional_max_pool3d"})


def lead_shape(
    name: str, input: Any, n: int, floats: bool = True, filled_dims: int | None = None
) -> tuple[int, ...]:
    """The shape before the `n` pooled dims; E308 when the tensor has too few or too many dims, or
    one of the last `filled_dims`, the channels and the pooled ones if not given, is empty."""
    shape = input.shape
    filled = shape[-(n + 1 if filled_dims is None else filled_dims) :]
    if len(shape) not in (n + 1, n + 2) or 0 in filled:
        names = ("", ", length", ", height, width", ", depth, height, width")[n]
        raises = "IndexError" if len(shape) <= n and name in _FROM_THE_END else ""
        raise fault("E308 pooled-dims", name, n + 1, n + 2, tuple(shape), names, raises)
    if input.dtype.kind != "f" and (floats or input.dtype.kind == "b"):
        raise fault("E307 needs-floats-not", name, input)
    return shape[: len(shape) - n]


def pooled_size(
    name: str, length: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> int:
    """The number of windows over a dim; E308 when there is none, E309 for impossible numbers."""
    if kernel < 1 or stride < 1 or dilation < 1:
        raise fault("E309 needs-kernel_size", name, kernel, stride, dilation)
    reach = dilation * (kernel - 1) + 1
    if padding < 0 or padding > reach // 2:
        raise fault("E309 allows-padding-half-window", name, reach // 2, padding)
    out = (length + 2 * padding - reach + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (out - 1) * stride >= length + padding:
        out -= 1
    if out < 1:
        raise fault("E308 window-finds-no-place", name, reach, length, padding)
    if dilation > length and ((np.arange(out) * stride - padding) % dilation >= length).any():
        raise fault("E203 windows-in-the-padding", name, length)
    return out


@lru_cache(maxsize=256)
def taps(rule: Rule, length: int, dtype: np.dtype) -> Taps:
    """The table of a rule over a dim of `length` elements; sources are computed in `dtype`."""
    kind, out = rule[0], rule[1]
    if kind in ("sum", "mean"):
        return _clipped(rule, length)
    if kind == "max":
        return _lattice(rule, length)
    if kind == "adaptive":
        return _adaptive(out, length)
    real = dtype.type if dtype.kind == "f" else np.float32 if "nearest" in kind else np.float64
    if kind.startswith("nearest"):
        return _nearest(kind, out, rule[2], length, real)
    if kind.endswith("-aa"):
        return _antialiased(kind, out, rule[2], rule[3], length)
    return _interpolated(kind, out, rule[2], rule[3], length, real)


def _ranges(start: Any, end: Any, length: int, divisor: Any = None) -> Taps:
    """Windows `start .. end - 1`, without what is before 0; rows have as many taps as the longest,
    some of them invalid."""
    width = int((end - start).max(initial=1))
    check_size((start.size, width), INDEX)
    at = start[:, None] + np.arange(width)
    valid = (at >= 0) & (at < end[:, None])
    return Taps(at.clip(0, end[:, None] - 1), None, valid, length, divisor)


def _clipped(rule: Rule, length: int) -> Taps:
    kind, out, kernel, stride, padding = rule[:5]
    start = np.arange(out) * stride - padding
    padded_end = np.minimum(start + kernel, length + padding)
    end = np.minimum(padded_end, length)
    divisor = None
    if kind == "mean":
        divisor = padded_end - start if rule[5] else end - np.maximum(start, 0)
    return _ranges(start, end, length, divisor)


def _lattice(rule: Rule, length: int) -> Taps:
    _, out, kernel, stride, padding, dilation = rule
    check_size((out, kernel), INDEX)
    at = (np.arange(out) * stride - padding)[:, None] + np.arange(kernel) * dilation
    last = length - 1
    at = np.where(at < 0, at % dilation, at)
    at = np.where(at > last, last - (last - at) % dilation, at)
    return Taps(at, None, None, length)


def _adaptive(out: int, length: int) -> Taps:
    places = np.arange(out)
    start = places * length // out
    end = -(-(places + 1) * length // out)
    return _ranges(start, end, length, end - start)


def _ratio(scale: float | None, length: int, out: int, align: bool, real: Any) -> Any:
    if align:
        return real(length - 1) / real(out - 1) if out > 1 else real(0)
    return real(1.0 / scale) if scale else real(length) / real(out)


def _nearest(kind: str, out: int, scale: float | None, length: int, real: Any) -> Taps:
    ratio = _ratio(scale, length, out, False, real)
    places = np.arange(out).astype(real)
    if kind == "nearest":
        source = places * ratio
    else:
        source = ratio * (places + real(0.5)) - real(0.5) + real(0.5)
    at = np.floor(source.astype(np.float32)).astype(np.intp)
    return Taps(np.minimum(at, length - 1)[:, None], None, None, length)


def _interpolated(
    kind: str, out: int, scale: float | None, align: bool, length: int, real: Any
) -> Taps:
    ratio = _ratio(scale, length, out, align, real)
    places = np.arange(out).astype(real)
    source = ratio * places if align else ratio * (places + real(0.5)) - real(0.5)
    if kind == "linear":
        source = np.maximum(source, 0)
        first = np.minimum(np.floor(source).astype(np.intp), length - 1)
        t = source - first
        at = np.stack([first, np.minimum(first + 1, length - 1)], 1)
        return Taps(at, np.stack([1 - t, t], 1), None, length)
    first = np.floor(source).astype(np.intp)
    weight = cubic_weights(source - first, -0.75)
    at = (first[:, None] + np.arange(-1, 3)).clip(0, length - 1)
    return Taps(at, weight, None, length)


def cubic_weights(t: Any, a: float) -> Any:
    """Weights of the four neighbours at a fraction `t` (Keys' kernel with parameter `a`)."""
    return np.stack([_cubic(t + 1, a), _cubic(t, a), _cubic(1 - t, a), _cubic(2 - t, a)], -1)


def _cubic(x: Any, a: float) -> Any:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


_FILTERS: dict[str, tuple[int, Any]] = {
    "linear-aa": (2, lambda x: np.maximum(1 - np.abs(x), 0)),
    "cubic-aa": (4, lambda x: _cubic(x, -0.5)),
    "lanczos-aa": (6, lambda x: np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)),
}


def _antialiased(kind: str, out: int, scale: float | None, align: bool, length: int) -> Taps:
    """Filters as wide as the step between results, weights normalized (as Pillow does)."""
    width, filter_of = _FILTERS[kind]
    ratio = float(_ratio(scale, length, out, align, np.float64))
    support = width / 2 * max(ratio, 1.0)
    center = ratio * (np.arange(out) + 0.5)
    start = np.maximum((center - support + 0.5).astype(np.intp), 0)
    end = np.minimum((center + support + 0.5).astype(np.intp), length)
    table = _ranges(start, end, length)
    offset = start[:, None] + np.arange(table.at.shape[1])
    weight = filter_of((offset - center[:, None] + 0.5) / max(ratio, 1.0))
    if table.valid is not None:
        weight = np.where(table.valid, weight, 0)
    return Taps(table.at, weight / weight.sum(1, keepdims=True), table.valid, length)


def _spaced(at: Any) -> Any:
    """Positions as a slice where they are evenly spaced."""
    n = at.size
    if n == 0 or (n > 1 and at[1] <= at[0]):
        return at
    step = int(at[1] - at[0]) if n > 1 else 1
    return slice(int(at[0]), int(at[-1]) + 1, step) if (np.diff(at) == step).all() else at


def tap(x: Any, axis: int, at: Any) -> Any:
    """`x` at the positions of one tap along a dim: a view for a slice."""
    if type(at) is slice:
        return x[_key(axis, at)]
    return np.take(x, at, axis=axis)


def _shaped(vector: Any, x: Any, axis: int) -> Any:
    shape = [1] * x.ndim
    shape[axis] = vector.size
    return vector.reshape(shape)


# Above this many taps one segmented sum is faster than a pass for each tap.
MANY_TAPS = 16


def weighted_sum(x: Any, axis: int, table: Taps) -> Any:
    """Add up the elements that each row of a table of taps reads along a dim."""
    if table.at.shape[1] > MANY_TAPS:
        return _segmented(x, axis, table)
    total: Any = None
    for k, (to, at) in enumerate(table.lines):
        part = tap(x, axis, at)
        if table.weight is not None:
            part = part * _shaped(table.weight[to, k].astype(x.dtype), x, axis)
        if total is None and len(table.at) == part.shape[axis]:
            total = np.array(part, x.dtype)
            continue
        if total is None:
            total = _zeros(x, axis, len(table.at))
        total[_key(axis, to)] += part
    return total


def scattered_sum(x: Any, axis: int, table: Taps) -> Any:
    """The adjoint of `weighted_sum`."""
    if not table.even or table.at.shape[1] > MANY_TAPS:
        return weighted_sum(x, axis, table.transposed())
    total = _zeros(x, axis, table.length)
    for k, (to, at) in enumerate(table.lines):
        part = tap(x, axis, to)
        if table.weight is not None:
            part = part * _shaped(table.weight[to, k].astype(x.dtype), x, axis)
        total[_key(axis, at)] += part
    return total


def _zeros(x: Any, axis: int, length: int) -> Any:
    return np.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)


def _key(axis: int, at: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, at)


GATHERED = 1 << 23  # elements at a time: windows that overlap have each element many times


def _segmented(x: Any, axis: int, table: Taps) -> Any:
    out, width = table.at.shape
    result = _zeros(x, axis, out)
    lines = max(1, x.size // x.shape[axis])
    step = max(1, GATHERED // (width * lines))
    for first in range(0, out, step):
        rows = slice(first, first + step)
        valid = np.ones_like(table.at[rows], bool) if table.valid is None else table.valid[rows]
        parts = np.take(x, table.at[rows][valid], axis=axis)
        if table.weight is not None:
            parts = parts * _shaped(table.weight[rows][valid].astype(x.dtype), parts, axis)
        counts = valid.sum(1)
        filled = counts > 0
        starts = (np.cumsum(counts) - counts)[filled]
        to = first + np.flatnonzero(filled)
        result[_key(axis, to)] = np.add.reduceat(parts, starts, axis=axis)
    return result


def _divisor(tables: list[Taps], x: Any) -> Any:
    divisor: Any = None
    n = len(tables)
    for i, table in enumerate(tables):
        if table.divisor is not None:
            part = table.divisor.astype(x.dtype).reshape(-1, *(1,) * (n - 1 - i))
            divisor = part if divisor is None else divisor * part
    return divisor


def resampled(x: Any, rules: tuple[Rule, ...]) -> Any:
    """The last dims of `x` mapped by one rule each."""
    n = len(rules)
    tables = [taps(r, x.shape[x.ndim - n + i], x.dtype) for i, r in enumerate(rules)]
    if x.dtype == np.uint8 and tables[0].weight is not None:
        return _in_bytes(x, tables)
    divisor = _divisor(tables, x)
    for i in range(n):  # the last dim last: it is slow to step through, and then there is less
        x = weighted_sum(x, x.ndim - n + i, tables[i])
    return x if divisor is None else x / divisor


def _in_bytes(x: Any, tables: list[Taps]) -> Any:
    """Bytes, as PyTorch resamples images: the last dim first, with weights of 15 bits, and rounded
    after each dim."""
    for i, table in reversed(list(enumerate(tables))):
        bits = 14 - np.frexp(table.weight.max())[1]
        weight = np.trunc(table.weight * 2.0**bits + np.copysign(0.5, table.weight)) / 2.0**bits
        whole = Taps(table.at, weight, table.valid, table.length)
        total = weighted_sum(x.astype(np.float64), x.ndim - len(tables) + i, whole)
        x = np.floor(total + 0.5).clip(0, 255).astype(np.uint8)
    return x


def spread_back(x: Any, rules: tuple[Rule, ...], sizes: tuple[int, ...]) -> Any:
    """The adjoint of `resampled` over dims of the given sizes."""
    n = len(rules)
    tables = [taps(r, size, x.dtype) for r, size in zip(rules, sizes, strict=True)]
    divisor = _divisor(tables, x)
    if divisor is not None:
        x = x / divisor
    for i in reversed(range(n)):
        x = scattered_sum(x, x.ndim - n + i, tables[i])
    return x
