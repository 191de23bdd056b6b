"""Arithmetic of random numbers, rounded as in PyTorch's kernels and done chunk by chunk."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .arguments import Shape, checked_size

CHUNK = 1 << 16  # elements worked on at a time: they stay in the cache and bound temporaries


class Uniforms:
    """Uniforms one at a time for rules that need an unknown number; counts what was used."""

    def __init__(self, draw: Callable[[int], np.ndarray]):
        self._draw = draw
        self._buffer: list[float] = []
        self._at = 0
        self.used = 0

    def next(self) -> float:
        if self._at == len(self._buffer):
            self._buffer = self._draw(min(CHUNK, 64 + self.used)).tolist()
            self._at = 0
        self._at += 1
        self.used += 1
        return self._buffer[self._at - 1]


def poisson_count(rate: float, stream: Uniforms) -> int:
    """One Poisson count: by products of uniforms, or for rates from 10 on by transformed
    rejection (Hoermann, "The transformed rejection method for generating Poisson random
    variables", 1993)."""
    if rate == 0:
        return 0
    if rate < 10:
        floor, product, count = math.exp(-rate), stream.next(), 0
        while product > floor:
            count += 1
            product *= stream.next()
        return count
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    sure = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = stream.next() - 0.5
        v = stream.next()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        count = math.floor((2 * a / us + b) * u + rate + 0.43)
        if count < 0 or (us < 0.013 and v > us):
            continue
        if v == 0 or (us >= 0.07 and v <= sure):
            return count
        left = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if left <= -rate + count * log_rate - math.lgamma(count + 1):
            return count


def swapped(step: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return 0..n-1 after swapping `step[k]` with `place[k] >= step[k]` for each k in order.

    The last step that chose a place moved its value there from the step's own place. Following
    these links back for all places at once replaces the loop.
    """
    count = len(step) + 1
    bits = np.int64(count.bit_length())
    ordered = np.sort((place << bits) | step)
    chosen, chooser = ordered >> bits, ordered & ((np.int64(1) << bits) - 1)
    same = chosen[1:] == chosen[:-1]
    earlier = np.full(count, -1)
    earlier[chooser[1:][same]] = chooser[:-1][same]
    last = np.append(~same, True)
    link = np.arange(count)
    link[chosen[last]] = chooser[last]
    own = np.flatnonzero(place == step)  # chosen by itself, so nobody comes later
    link[own] = np.where(earlier[own] >= 0, earlier[own], own)
    while True:
        further = link[link]
        if np.array_equal(further, link):
            break
        link = further
    result = np.append(place, link[-1])
    moved = np.flatnonzero(earlier >= 0)
    result[moved] = link[earlier[moved]]
    return result


def fused(values: np.ndarray, scale: Any, shift: Any) -> np.ndarray:
    """`values * scale + shift` rounded once, as the fused instruction in PyTorch's kernels."""
    if shift == 0:
        return values * scale
    if values.dtype == np.float32:
        return (values.astype(np.float64) * float(scale) + float(shift)).astype(np.float32)
    if not max(abs(scale), abs(shift)) < 2.0**900:
        return values * scale + shift
    # Dekker's product and Knuth's sum split the exact result into value and error.
    product = values * scale
    high, low = _halves(values)
    scale_high, scale_low = _halves(np.float64(scale))
    rest = low * scale_low - (((product - high * scale_high) - low * scale_high) - high * scale_low)
    total = product + shift
    back = total - product
    rest += (product - (total - back)) + (shift - back)
    return total + rest


def _halves(values: Any) -> tuple[Any, Any]:
    """Two numbers of 26 bits that sum to each value (Veltkamp)."""
    spread = values * 134217729.0
    high = spread - (spread - values)
    return high, values - high


def filled(shape: Shape, kind: np.dtype, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """A new array filled in order, chunk by chunk (chunks are whole blocks of 16)."""
    size = checked_size(shape, kind)
    values = np.empty(math.prod(size), kind)
    for start in range(0, values.size, CHUNK):
        part = values[start : start + CHUNK]
        part[:] = cast_quietly(draw(part.size), kind)
    return values.reshape(size)


def cast_quietly(values: np.ndarray, kind: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(kind)


def weak(value: Any, kind: np.dtype) -> Any:
    """A number or an array without dimensions takes the dtype of what it meets."""
    return kind.type(value) if np.ndim(value) == 0 else value
