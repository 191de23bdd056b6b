"""Samplers that reject: gamma, Dirichlet and binomial numbers, each taking from the stream as
PyTorch's CPU kernels do, one number after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .stream import Generator

_THIRD = float(np.float32(1) / np.float32(3))
_SQUEEZE = float(np.float32(0.0331))

# Tail of Stirling's series at 0 to 9.
_TAIL = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _gamma(alpha: float, stream: Generator) -> float:
    """Marsaglia and Tsang's method."""
    scale = 1.0
    if alpha < 1.0:
        if alpha == 0.0:
            return 0.0
        scale = (1 - float(stream._float64(1)[0])) ** (1.0 / alpha)
        alpha += 1.0
    d = alpha - _THIRD
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        y = 0.0
        while y <= 0.0:
            x = float(stream._pairs(1)[0])
            y = 1.0 + c * x
        v = y * y * y
        u = 1 - float(stream._float64(1)[0])
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def standard_gamma(alphas: np.ndarray, stream: Generator) -> np.ndarray:
    """`torch._standard_gamma`: draws with rate 1."""
    drawn = np.array([_gamma(a, stream) for a in alphas.ravel().tolist()], np.float64)
    kind = alphas.dtype
    return np.maximum(drawn.astype(kind), np.finfo(kind).tiny).reshape(alphas.shape)


def dirichlet(alphas: np.ndarray, stream: Generator) -> np.ndarray:
    """`torch._sample_dirichlet`: each row sums to 1."""
    kind = alphas.dtype
    tiny = np.finfo(np.float64).tiny
    drawn = np.array([max(tiny, _gamma(a, stream)) for a in alphas.ravel().tolist()])
    drawn = drawn.reshape(alphas.shape)
    shares = (drawn / drawn.sum(-1, keepdims=True)).astype(kind)
    return np.clip(shares, np.finfo(kind).tiny, np.nextafter(kind.type(1), kind.type(0)))


def binomial(counts: np.ndarray, probs: np.ndarray, stream: Generator) -> np.ndarray:
    """`torch.binomial`."""
    pairs = zip(counts.ravel(), probs.ravel(), strict=True)
    drawn = np.array([_binomial(n, p, stream) for n, p in pairs], counts.dtype)
    return drawn.reshape(counts.shape)


def _binomial(count: Any, prob: Any, stream: Generator) -> Any:
    kind = type(count)
    if count <= 0 or prob <= 0:
        return kind(0)
    if prob >= 1:
        return count
    small = prob if prob <= 0.5 else kind(1) - prob
    sample = _transformed if count * small >= 10 else _inversion
    found = sample(count, small, kind, stream)
    return found if prob <= 0.5 else count - found


def _inversion(count: Any, prob: Any, kind: Any, stream: Generator) -> Any:
    """Sums of geometric numbers."""
    log_prob = np.log1p(-prob)
    total, successes = kind(0), kind(0)
    while True:
        with np.errstate(divide="ignore"):
            total += np.ceil(np.log(kind(stream._float64(1)[0])) / log_prob)
        if total > count:
            return successes
        successes += kind(1)


def _transformed(count: Any, prob: Any, kind: Any, stream: Generator) -> Any:
    """Transformed rejection with squeeze, after Hörmann."""
    deviation = kind(math.sqrt(count * prob * (1 - prob)))
    b = kind(1.15 + 2.53 * deviation)
    a = kind(-0.0873 + 0.0248 * b + 0.01 * prob)
    c = kind(count * prob + 0.5)
    limit = kind(0.92 - 4.2 / b)
    ratio = kind(prob / (1 - prob))
    alpha = kind((2.83 + 5.1 / b) * deviation)
    m = kind(math.floor((count + 1) * prob))
    while True:
        u, v = (kind(x) for x in stream._float64(2))
        u = kind(u - kind(0.5))
        inside = kind(kind(0.5) - abs(u))
        if not inside:
            continue
        k = kind(math.floor((2 * a / inside + b) * u + c))
        if k < 0 or k > count:
            continue
        if (inside >= 0.07 and v <= limit) or v <= 0:
            return k
        v = kind(math.log(v * alpha / (a / (inside * inside) + b)))
        bound = (
            (m + 0.5) * math.log((m + 1) / (ratio * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(ratio * (count - k + 1) / (k + 1))
            + _tail(m) + _tail(count - m) - _tail(k) - _tail(count - k)
        )  # fmt: skip
        if v <= bound:
            return k


def _tail(k: Any) -> float:
    if k <= 9:
        return _TAIL[int(k)]
    square = (k + 1) * (k + 1)
    return float((1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1))
