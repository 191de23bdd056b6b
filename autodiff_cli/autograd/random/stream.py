"""PyTorch's CPU random numbers, drawn word by word from the same Mersenne twister.

Every method consumes exactly the 32-bit words that PyTorch 2.13 consumes, so that any sequence
of draws after `manual_seed` goes on as it does there. Integers, float32 numbers and everything else
computed in float64 are equal bit for bit, but one in 500 of 16 or more float64 normals by one unit.
Sources: PyTorch's `DistributionsHelper.h` and `DistributionTemplates.h`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import fault
from . import approximations
from .arguments import (
    INT64_MIN,
    DType,
    Shape,
    check_probability,
    checked_size,
    floating_dtype,
    largest_integer,
    representable_bounds,
    whole_number,
)
from .arithmetic import Uniforms, cast_quietly, filled, fused, poisson_count, swapped, weak
from .words import DEFAULT_SEED as DEFAULT_SEED
from .words import GeneratorState as GeneratorState
from .words import Words

MAX_PERMUTATION = 1 << 26
WIDE_RANGE = 1 << 28  # from here on an integer takes 64 random bits


def _largest(kind: np.dtype) -> int:
    """The largest whole number up to which a dtype has all."""
    return 1 << (np.finfo(kind).nmant + 1) if kind.kind == "f" else largest_integer(kind)


class Generator(Words):
    """A stream of random numbers of all distributions."""

    __slots__ = ()

    # Uniforms and normals.

    def rand(self, shape: Shape, dtype: DType = np.float32) -> np.ndarray:
        """`torch.rand`: uniform in [0, 1)."""
        return self.uniform(shape, dtype)

    def uniform(
        self, shape: Shape, dtype: DType = np.float32, low: float = 0.0, high: float = 1.0
    ) -> np.ndarray:
        """`uniform_(low, high)`: uniform in [low, high); float16 is drawn in float32."""
        kind = floating_dtype(dtype, "uniform_")
        limit = float(np.finfo(kind).max)
        if not low <= high:
            raise fault("E205 uniform-bounds", low, high)
        if not high - low <= limit:
            raise fault("E205 uniform-range-overflows", low, high)
        work = kind if kind == np.float64 else np.dtype(np.float32)
        start, stop = work.type(low), work.type(high)
        draw = self._float64 if work == np.float64 else self._float32

        def fill(count: int) -> np.ndarray:
            values = fused(draw(count), stop - start, start).astype(kind, copy=False)
            # Rounding may reach the upper bound, which is not in the range.
            values[values == kind.type(high)] = kind.type(low)
            return values

        return filled(shape, kind, fill)

    def randn(self, shape: Shape, dtype: DType = np.float32) -> np.ndarray:
        """`torch.randn`: standard normals."""
        return self._normal(shape, dtype, 0.0, 1.0)

    def normal(
        self,
        mean: float | np.ndarray = 0.0,
        std: float | np.ndarray = 1.0,
        shape: Shape | None = None,
        dtype: DType | None = None,
    ) -> np.ndarray:
        """`normal_(mean, std)` and the four forms of `torch.normal`.

        Two numbers need a `shape` (and take a `dtype`, float32 if left out); with arrays the
        result has their broadcast shape and the dtype of `mean`, or of `std` if only that is one.
        """
        means, stds = isinstance(mean, np.ndarray), isinstance(std, np.ndarray)
        if not means and not stds:
            size = () if shape is None else shape
            return self._normal(size, np.float32 if dtype is None else dtype, mean, std)
        if stds and not (np.asarray(std) >= 0).all():
            raise fault("E205 normal-stds")
        if not stds:
            drawn = self._normal(np.shape(mean), np.asarray(mean).dtype, 0.0, float(std))
            return drawn + mean
        try:
            size = np.broadcast_shapes(np.shape(mean), np.shape(std))
        except ValueError:
            raise fault("E302 normal-mean-shape-std", np.shape(mean), np.shape(std)) from None
        kind = np.asarray(mean if means else std).dtype
        drawn = self._normal(size, kind, 0.0, 1.0)
        drawn *= weak(std, kind)
        drawn += weak(mean, kind)
        return drawn

    def _normal(self, shape: Shape, dtype: DType, mean: Any, std: Any) -> np.ndarray:
        kind = floating_dtype(dtype, "normal")
        mean, std = float(mean), float(std)
        if not std >= 0:
            raise fault("E205 normal-std", std)
        size = checked_size(shape, kind)
        count = math.prod(size)
        if count >= 16:
            return self._normal_blocks(count, kind, mean, std).reshape(size)
        values = fused(self._pairs(count), std, mean)
        return cast_quietly(values, kind).reshape(size)

    def _normal_blocks(self, count: int, kind: np.dtype, mean: float, std: float) -> np.ndarray:
        """Box-Muller on blocks of 16; a remainder redraws the last 16 places."""
        work = kind if kind == np.float64 else np.dtype(np.float32)
        draw = self._float64 if work == np.float64 else self._float32
        whole = count - count % 16

        def fill(amount: int) -> np.ndarray:
            pairs = draw(amount).reshape(-1, 2, 8)
            log, both = (
                (np.log, lambda x: (np.sin(x), np.cos(x)))
                if work == np.float64
                else (approximations.log, approximations.sine_and_cosine)
            )
            radius = np.sqrt(work.type(-2) * log(1 - pairs[:, 0]))
            sine, cosine = both(work.type(2 * math.pi) * pairs[:, 1])
            pairs[:, 0] = radius * cosine
            pairs[:, 1] = radius * sine
            return fused(pairs.reshape(-1), work.type(std), work.type(mean))

        values = np.empty(count, kind)
        values[:whole] = filled(whole, kind, fill)
        if whole < count:
            if kind != np.float16:  # float16 goes through a buffer that skips these draws
                draw(count - whole)
            values[-16:] = cast_quietly(fill(16), kind)
        return values

    def _pairs(self, count: int) -> np.ndarray:
        """Standard normals in float64, in pairs whose second half is kept for the next draw."""
        values = np.empty(count)
        at = 0
        if self._kept is not None and count:
            values[0], self._kept, at = self._kept, None, 1
        missing = count - at
        if missing:
            couples = (missing + 1) // 2
            uniform = self._float64(2 * couples).reshape(couples, 2)
            radius = np.sqrt(-2.0 * np.log1p(-uniform[:, 1]))
            angle = 2.0 * math.pi * uniform[:, 0]
            both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)
            values[at:] = both[:missing]
            if missing % 2:
                self._kept = float(both[-1])
        return values

    # Whole numbers.

    def randint(self, low: int, high: int, shape: Shape, dtype: DType = np.int64) -> np.ndarray:
        """`torch.randint`: whole numbers in [low, high), in any dtype that can hold them."""
        return self.random(shape, dtype, low, high)

    def random(
        self, shape: Shape, dtype: DType = np.int64, low: int | None = None, high: int | None = None
    ) -> np.ndarray:
        """`random_()`, `random_(to)` (low 0) and `random_(from, to)`.

        Without bounds: 0 up to the largest value of an integer dtype, or 2**digits of a float.
        With `low` alone: up to that largest value too.
        """
        kind = np.dtype(dtype)
        largest = _largest(kind)
        if low is None and high is None:
            wide = kind in (np.float64, np.int64)
            return self._modulo(shape, kind, largest + 1, 0, wide)
        start = 0 if low is None else whole_number(low, "low")
        if high is not None:
            stop = whole_number(high, "high")
        elif start == INT64_MIN and kind in (np.float32, np.float64, np.int64):
            return filled(shape, kind, lambda count: self._long_words(count).view(np.int64))
        else:
            stop = largest + 1
        if start >= stop:
            raise fault("E205 random-bounds", start, stop)
        if kind.kind == "f":
            start, stop = representable_bounds(start, stop, kind)
        elif start < np.iinfo(kind).min if kind != np.bool_ else start < 0:
            raise fault("E205 low-does-not-fit", start, kind)
        elif stop - 1 > largest:
            raise fault("E205 high-does-not-fit", kind, stop - 1)
        return self._modulo(shape, kind, stop - start, start, stop - start >= WIDE_RANGE)

    def _modulo(self, shape: Shape, kind: np.dtype, span: int, base: int, wide: bool) -> np.ndarray:
        divisor, offset = np.uint64(span), np.uint64(base & ((1 << 64) - 1))
        draw = self._long_words if wide else self._words

        def fill(count: int) -> np.ndarray:
            words = draw(count)
            if kind == np.bool_ and span == 2 and base == 0:
                return (words & np.uint64(1)).astype(np.bool_)
            return (words % divisor + offset).view(np.int64)

        return filled(shape, kind, fill)

    def randperm(self, n: int, dtype: DType = np.int64) -> np.ndarray:
        """`torch.randperm`: Fisher-Yates, step i swapping places i and i + u % (n - i).

        PyTorch changes its algorithm at n = 2**32 / 20; this stops before that (E505).
        """
        count = whole_number(n, "n of randperm")
        if count < 0:
            raise fault("E309 randperm-negative", count)
        kind = np.dtype(dtype)
        if count - 1 > _largest(kind):
            raise fault("E205 randperm-too-large", count, kind)
        if count > MAX_PERMUTATION:
            raise fault("E505 permutation-elements-too-large", count, MAX_PERMUTATION)
        if count < 2:
            return np.arange(count).astype(dtype)
        step = np.arange(count - 1)
        place = step + (self._words(count - 1) % (count - step).view(np.uint64)).view(np.int64)
        return swapped(step, place).astype(dtype)

    # Other distributions.

    def bernoulli(
        self, p: float | np.ndarray, shape: Shape | None = None, dtype: DType | None = None
    ) -> np.ndarray:
        """`torch.bernoulli(p)`, `bernoulli_(p)`: ones with probability `p`, else zeros.

        A number `p` is compared with float64 uniforms whatever the dtype is, an array with
        uniforms of its own dtype (float16 as float32) in the order of the broadcast result.
        """
        if not isinstance(p, np.ndarray):
            check_probability(p, "bernoulli_")
            kind = np.dtype(np.float32 if dtype is None else dtype)
            return filled(() if shape is None else shape, kind, lambda n: self._float64(n) < p)
        kind = floating_dtype(p.dtype, "bernoulli")
        if not ((p >= 0) & (p <= 1)).all():
            raise fault("E205 bernoulli-probabilities")
        size = p.shape if shape is None else checked_size(shape)
        chances = np.broadcast_to(p, size)
        draw = self._float64 if kind == np.float64 else self._float32
        drawn = filled(size, draw(0).dtype, draw) < chances
        return drawn.astype(kind if dtype is None else dtype)

    def exponential(self, shape: Shape, dtype: DType = np.float32, rate: float = 1.0) -> np.ndarray:
        """`exponential_(lambd)`."""
        if not rate > 0:
            raise fault("E205 exponential-rate", rate)
        factor = -1.0 / rate
        kind = floating_dtype(dtype, "exponential_")
        return filled(shape, kind, lambda count: factor * np.log1p(-self._float64(count)))

    def geometric(self, shape: Shape, dtype: DType = np.float32, p: float = 0.5) -> np.ndarray:
        """`geometric_(p)`: the number of trials up to the first success."""
        if not 0 < p < 1:
            raise fault("E205 geometric-probability", p)
        scale = math.log1p(-p)

        def fill(count: int) -> np.ndarray:
            with np.errstate(divide="ignore"):  # a uniform of exactly 0
                return np.ceil(np.log(self._float64(count)) / scale)

        return filled(shape, np.dtype(dtype), fill)

    def log_normal(
        self, shape: Shape, dtype: DType = np.float32, mean: float = 1.0, std: float = 2.0
    ) -> np.ndarray:
        """`log_normal_(mean, std)`: exponentials of normals made in pairs, at any size."""
        if not std > 0:
            raise fault("E205 log_normal-std", std)
        kind = floating_dtype(dtype, "log_normal_")
        return filled(shape, kind, lambda n: np.exp(fused(self._pairs(n), std, mean)))

    def cauchy(
        self, shape: Shape, dtype: DType = np.float32, median: float = 0.0, sigma: float = 1.0
    ) -> np.ndarray:
        """`cauchy_(median, sigma)`."""
        if not sigma > 0:
            raise fault("E205 cauchy-sigma", sigma)
        kind = floating_dtype(dtype, "cauchy_")

        def fill(count: int) -> np.ndarray:
            return fused(np.tan(math.pi * (self._float64(count) - 0.5)), sigma, median)

        return filled(shape, kind, fill)

    def multinomial(
        self,
        weights: np.ndarray,
        count: int,
        replacement: bool = False,
        exponentials: Callable[..., np.ndarray] | None = None,
    ) -> np.ndarray:
        """`torch.multinomial`: int64 categories of shape (..., count) from weights of 1 or 2 dims.

        One draw, or draws without replacement, race `exponentials`; else the cumulative sum is
        searched. Wrong weights raise E205, wrong shapes E308.
        """
        kind = floating_dtype(weights.dtype, "multinomial")
        if weights.ndim not in (1, 2):
            raise fault("E308 multinomial-needs-weights-dimensions", weights)
        number = whole_number(count, "num_samples")
        categories = weights.shape[-1]
        if number <= 0:
            raise fault("E205 multinomial-no-samples", number)
        if not replacement and number > categories:
            raise fault("E205 multinomial-too-many", number, categories)
        if not ((weights >= 0) & np.isfinite(weights)).all():
            raise fault("E205 multinomial-weights")
        if weights.size and (weights.sum(-1) <= 0).any():
            raise fault("E205 multinomial-sum")
        if not replacement or number == 1:
            race = weights / (exponentials or self.exponential)(weights.shape, kind)
            return np.argsort(-race, kind="stable")[..., :number]
        rows = np.atleast_2d(weights)
        checked_size((len(rows), 2 * number), np.int64)  # the words drawn must fit too
        uniform = self._float64(len(rows) * number).reshape(len(rows), number)
        drawn = np.empty(uniform.shape, np.int64)
        for row, sample, result in zip(rows, uniform, drawn, strict=True):
            heights = np.cumsum(row)
            heights /= heights[-1]
            heights[-1] = 1
            result[:] = np.searchsorted(heights.astype(np.float64), sample)
        return drawn.reshape(*weights.shape[:-1], number)

    def poisson(self, rates: np.ndarray) -> np.ndarray:
        """`torch.poisson`: counts in the dtype and shape of `rates`; E205 unless finite, >= 0."""
        kind = floating_dtype(rates.dtype, "poisson")
        if not ((rates >= 0) & (rates <= 2.0**53)).all():
            raise fault("E205 poisson-rates")
        before = self._twister().state
        stream = Uniforms(self._float64)
        counts = [poisson_count(rate, stream) for rate in rates.ravel().tolist()]
        self._twister().state = before
        self._words(2 * stream.used)
        return np.array(counts, dtype=kind).reshape(rates.shape)

    # Noise of layers.

    def dropout(self, shape: Shape, p: float = 0.5, dtype: DType = np.float32) -> np.ndarray:
        """Draw the factors of `F.dropout`: 0, or 1 / (1 - p). p of 0 or 1 draws nothing.

        `dropout1d/2d/3d` draw one value a channel: give the shape (N, C, 1, ...).
        """
        check_probability(p, "dropout")
        kind = floating_dtype(dtype, "dropout")
        if p in (0, 1):
            return np.full(checked_size(shape, kind), 1 - p, kind)
        return self.bernoulli(1 - p, shape, kind) / kind.type(1 - p)

    def alpha_dropout(
        self, shape: Shape, p: float = 0.5, dtype: DType = np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        """Factor and summand of `F.alpha_dropout`; with shape (N, C, 1, ...) the feature form."""
        check_probability(p, "alpha_dropout")
        kind = floating_dtype(dtype, "alpha_dropout")
        alpha = 1.7580993408473766  # the fixed point of SELU
        scale = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
        noise = self.bernoulli(1 - p, shape, kind)
        summand = (noise - 1) * kind.type(alpha * scale) + kind.type(alpha * scale * p)
        return noise * kind.type(scale), summand

    def rrelu(self, values: np.ndarray, lower: float = 1 / 8, upper: float = 1 / 3) -> np.ndarray:
        """The slopes of `F.rrelu` in training: drawn where `values` <= 0, 1 elsewhere."""
        if not lower <= upper:
            raise fault("E205 rrelu-needs-lower-upper", lower, upper)
        noise = np.ones(values.shape, floating_dtype(values.dtype, "rrelu"))
        below = values <= 0
        noise[below] = self.uniform(int(below.sum()), np.float64, lower, upper)
        return noise
