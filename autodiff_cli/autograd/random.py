"""PyTorch's CPU random numbers, drawn word by word from the same Mersenne twister.

Every method consumes exactly the 32-bit words that PyTorch 2.13 consumes, so that any sequence
of draws after `manual_seed` goes on as it does there. Integers, float32 uniforms and everything
computed in float64 are equal bit for bit; float32 normals of 16 or more elements agree to 5e-7,
because PyTorch's vectorised `log`, `sin` and `cos` are approximations of their own, and
orthogonal matrices to the rounding of the QR factorisation.
Sources: PyTorch's `DistributionsHelper.h`, `DistributionTemplates.h` and `nn/init.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import AutodiffError, fail
from ..graph.op import check_size
from ..graph.state import STATE

if TYPE_CHECKING:
    from numpy.random import MT19937

Shape = int | Sequence[int]
DType = np.dtype | type
Parameters = dict[str, np.ndarray]

DEFAULT_SEED = 67280421310721
"""The seed of a fresh `torch.Generator()`. A fresh PyTorch process seeds its default generator
from the system's entropy instead; using this one makes unseeded programs repeatable too."""

CHUNK = 1 << 16  # elements worked on at a time: they stay in the cache and bound temporaries
MAX_PERMUTATION = 1 << 26
MAX_ROUNDS = 10_000  # of rejection sampling, each over the whole tensor
WIDE_RANGE = 1 << 28  # from here on an integer takes 64 random bits
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


class GeneratorState(NamedTuple):
    """Where a generator stands; immutable, so it may be kept and set any number of times."""

    seed: int
    words: Any
    kept: float | None


class Generator:
    """A stream of random numbers: the twister and the normal kept back by the last odd draw."""

    __slots__ = ("_bits", "_kept", "_seed")

    def __init__(self, seed: object = DEFAULT_SEED):
        self.manual_seed(seed)

    def manual_seed(self, seed: object) -> Generator:
        """Start again from `seed`, a whole number in [-2**63, 2**64); E205 otherwise."""
        number = _seed(seed)
        self._seed = number
        self._bits: MT19937 | None = None  # seeded by the first draw: numpy.random loads slowly
        self._kept: float | None = None
        return self

    def seed(self) -> int:
        """Start again from an unpredictable seed, and return that."""
        import os

        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> GeneratorState:
        return GeneratorState(self._seed, self._twister().state, self._kept)

    def set_state(self, state: GeneratorState) -> Generator:
        if not isinstance(state, GeneratorState):
            raise _wrong("set_state takes what get_state returned", "state = torch.get_rng_state()")
        self._seed, words, self._kept = state
        self._twister().state = words
        return self

    def clone(self) -> Generator:
        """An independent generator at the same place."""
        return Generator().set_state(self.get_state())

    # Raw draws: a 32-bit word, and uniforms in [0, 1) made of one or two of them.

    def _twister(self) -> MT19937:
        if self._bits is None:
            from numpy.random import MT19937, RandomState

            bits = MT19937(0)
            RandomState(bits).seed(self._seed & 0xFFFFFFFF)  # seeds as PyTorch's mt19937 does
            self._bits = bits
        return self._bits

    def _words(self, count: int) -> np.ndarray:
        if not STATE.draws:
            raise fail(
                "E203",
                "vmap called a random operation while in randomness error mode",
                help='write `vmap(f, randomness="same")`, or draw the numbers outside of vmap',
            )
        return self._twister().random_raw(count)

    def _long_words(self, count: int) -> np.ndarray:
        words = self._words(2 * count).reshape(count, 2)
        return (words[:, 0] << np.uint64(32)) | words[:, 1]

    def _float32(self, count: int) -> np.ndarray:
        bits = self._words(count).astype(np.int32) & np.int32((1 << 24) - 1)
        return bits.astype(np.float32) * np.float32(2.0**-24)

    def _float64(self, count: int) -> np.ndarray:
        bits = self._long_words(count).view(np.int64) & np.int64((1 << 53) - 1)
        return bits.astype(np.float64) * 2.0**-53

    # Uniforms and normals.

    def rand(self, shape: Shape, dtype: DType = np.float32) -> np.ndarray:
        """`torch.rand`: uniform in [0, 1)."""
        return self.uniform(shape, dtype)

    def uniform(
        self, shape: Shape, dtype: DType = np.float32, low: float = 0.0, high: float = 1.0
    ) -> np.ndarray:
        """`uniform_(low, high)`: uniform in [low, high); float16 is drawn in float32."""
        kind = _floating(dtype, "uniform_")
        limit = float(np.finfo(kind).max)
        if not low <= high:
            raise _wrong(
                f"uniform_ needs from <= to, not from={low} and to={high}", "uniform_(0, 1)"
            )
        if not high - low <= limit:
            raise _wrong(f"uniform_: the range from {low} to {high} overflows", "uniform_(-1, 1)")
        work = kind if kind == np.float64 else np.dtype(np.float32)
        start, stop = work.type(low), work.type(high)
        draw = self._float64 if work == np.float64 else self._float32

        def fill(count: int) -> np.ndarray:
            values = _fused(draw(count), stop - start, start).astype(kind, copy=False)
            # Rounding may reach the upper bound, which is not in the range.
            values[values == kind.type(high)] = kind.type(low)
            return values

        return _filled(shape, kind, fill)

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
            raise _wrong("normal needs every std >= 0", "torch.normal(mean, std.abs())")
        if not stds:
            drawn = self._normal(np.shape(mean), np.asarray(mean).dtype, 0.0, float(std))
            return drawn + mean
        try:
            size = np.broadcast_shapes(np.shape(mean), np.shape(std))
        except ValueError:
            raise fail(
                "E302",
                f"normal: mean of shape {np.shape(mean)} and std of shape {np.shape(std)} "
                "do not broadcast",
                help="give mean and std the same shape",
            ) from None
        kind = np.asarray(mean if means else std).dtype
        scaled = self._normal(size, kind, 0.0, 1.0) * _weak(std, kind)
        return (scaled.astype(kind, copy=False) + _weak(mean, kind)).astype(kind, copy=False)

    def _normal(self, shape: Shape, dtype: DType, mean: Any, std: Any) -> np.ndarray:
        kind = _floating(dtype, "normal")
        mean, std = float(mean), float(std)
        if not std >= 0:
            raise _wrong(f"normal needs std >= 0, not {std}", "std=1.0")
        size = _size(shape, kind)
        count = math.prod(size)
        if count >= 16:
            return self._normal_blocks(count, kind, mean, std).reshape(size)
        values = _fused(self._pairs(count), std, mean)
        return _cast(values, kind).reshape(size)

    def _normal_blocks(self, count: int, kind: np.dtype, mean: float, std: float) -> np.ndarray:
        """Box-Muller on blocks of 16; a remainder redraws the last 16 places."""
        work = kind if kind == np.float64 else np.dtype(np.float32)
        draw = self._float64 if work == np.float64 else self._float32
        whole = count - count % 16

        def fill(amount: int) -> np.ndarray:
            pairs = draw(amount).reshape(-1, 2, 8)
            radius = np.sqrt(work.type(-2) * np.log(1 - pairs[:, 0]))
            angle = work.type(2 * math.pi) * pairs[:, 1]
            pairs[:, 0] = radius * np.cos(angle)
            pairs[:, 1] = radius * np.sin(angle)
            return _fused(pairs.reshape(-1), work.type(std), work.type(mean))

        values = np.empty(count, kind)
        values[:whole] = _filled(whole, kind, fill)
        if whole < count:
            if kind != np.float16:  # float16 goes through a buffer that skips these draws
                draw(count - whole)
            values[-16:] = _cast(fill(16), kind)
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
        self,
        shape: Shape,
        dtype: DType = np.int64,
        low: int | None = None,
        high: int | None = None,
    ) -> np.ndarray:
        """`random_()`, `random_(to)` (low 0) and `random_(from, to)`.

        Without bounds: 0 up to the largest value of an integer dtype, or 2**digits of a float.
        With `low` alone: up to that largest value too.
        """
        kind = np.dtype(dtype)
        if kind.kind not in "biuf":
            raise fail("E307", f"random_ cannot make {kind.name}", help="dtype=torch.int64")
        largest = 1 << (np.finfo(kind).nmant + 1) if kind.kind == "f" else _largest(kind)
        if low is None and high is None:
            wide = kind in (np.float64, np.int64)
            return self._modulo(shape, kind, largest + 1, 0, wide)
        start = 0 if low is None else _whole(low, "low")
        if high is not None:
            stop = _whole(high, "high")
        elif start == INT64_MIN and kind.itemsize >= 4 and kind != np.int32:
            return _filled(shape, kind, lambda count: self._long_words(count).view(np.int64))
        else:
            stop = largest + 1
        if start >= stop:
            raise _wrong(
                f"random numbers need low < high, not low={start} and high={stop}",
                "torch.randint(0, 10, (3,))",
            )
        if kind.kind == "f":
            start, stop = _representable(start, stop, kind)
        elif start < np.iinfo(kind).min if kind != np.bool_ else start < 0:
            raise _wrong(f"low={start} does not fit {kind.name}", "dtype=torch.int64")
        elif stop - 1 > largest:
            raise _wrong(f"high - 1 = {stop - 1} does not fit {kind.name}", "dtype=torch.int64")
        return self._modulo(shape, kind, stop - start, start, stop - start >= WIDE_RANGE)

    def _modulo(self, shape: Shape, kind: np.dtype, span: int, base: int, wide: bool) -> np.ndarray:
        divisor, offset = np.uint64(span), np.uint64(base & ((1 << 64) - 1))
        draw = self._long_words if wide else self._words

        def fill(count: int) -> np.ndarray:
            words = draw(count)
            if kind == np.bool_ and span == 2 and base == 0:
                return (words & np.uint64(1)).astype(np.bool_)
            return (words % divisor + offset).view(np.int64)

        return _filled(shape, kind, fill)

    def randperm(self, n: int, dtype: DType = np.int64) -> np.ndarray:
        """`torch.randperm`: Fisher-Yates, step i swapping places i and i + u % (n - i).

        PyTorch changes its algorithm at n = 2**32 / 20; this stops before that (E505).
        """
        count = _whole(n, "n of randperm")
        if count < 0:
            raise fail("E309", f"randperm needs n >= 0, not {count}", help="torch.randperm(10)")
        if count > MAX_PERMUTATION:
            raise fail(
                "E505",
                f"a permutation of {count} elements is too large",
                help=f"n of at most {MAX_PERMUTATION}",
            )
        if count < 2:
            return np.arange(count).astype(dtype)
        step = np.arange(count - 1)
        place = step + (self._words(count - 1) % (count - step).view(np.uint64)).view(np.int64)
        return _swapped(step, place).astype(dtype, copy=False)

    # Other distributions.

    def bernoulli(
        self, p: float | np.ndarray, shape: Shape | None = None, dtype: DType | None = None
    ) -> np.ndarray:
        """`torch.bernoulli(p)`, `bernoulli_(p)`: ones with probability `p`, else zeros.

        A number `p` is compared with float64 uniforms whatever the dtype is, an array with
        uniforms of its own dtype (float16 as float32) in the order of the broadcast result.
        """
        if not isinstance(p, np.ndarray):
            _probability(p, "bernoulli_")
            kind = np.dtype(np.float32 if dtype is None else dtype)
            return _filled(() if shape is None else shape, kind, lambda n: self._float64(n) < p)
        kind = _floating(p.dtype, "bernoulli")
        if not ((p >= 0) & (p <= 1)).all():
            raise _wrong("bernoulli needs every probability in [0, 1]", "p.clamp(0, 1)")
        size = p.shape if shape is None else _size(shape)
        chances = np.broadcast_to(p, size)
        draw = self._float64 if kind == np.float64 else self._float32
        drawn = _filled(size, draw(0).dtype, draw) < chances
        return drawn.astype(kind if dtype is None else dtype)

    def exponential(self, shape: Shape, dtype: DType = np.float32, rate: float = 1.0) -> np.ndarray:
        """`exponential_(lambd)`."""
        if not rate > 0:
            raise _wrong(f"exponential_ needs lambd > 0, not {rate}", "exponential_(1.0)")
        factor = -1.0 / rate
        kind = _floating(dtype, "exponential_")
        return _filled(shape, kind, lambda count: factor * np.log1p(-self._float64(count)))

    def geometric(self, shape: Shape, dtype: DType = np.float32, p: float = 0.5) -> np.ndarray:
        """`geometric_(p)`: the number of trials up to the first success."""
        if not 0 < p < 1:
            raise _wrong(f"geometric_ needs p in (0, 1), not {p}", "geometric_(0.5)")
        scale = math.log1p(-p)

        def fill(count: int) -> np.ndarray:
            with np.errstate(divide="ignore"):  # a uniform of exactly 0
                return np.ceil(np.log(self._float64(count)) / scale)

        return _filled(shape, np.dtype(dtype), fill)

    def log_normal(
        self, shape: Shape, dtype: DType = np.float32, mean: float = 1.0, std: float = 2.0
    ) -> np.ndarray:
        """`log_normal_(mean, std)`: exponentials of normals made in pairs, at any size."""
        if not std > 0:
            raise _wrong(f"log_normal_ needs std > 0, not {std}", "log_normal_(0, 1)")
        kind = _floating(dtype, "log_normal_")
        return _filled(shape, kind, lambda n: np.exp(_fused(self._pairs(n), std, mean)))

    def cauchy(
        self, shape: Shape, dtype: DType = np.float32, median: float = 0.0, sigma: float = 1.0
    ) -> np.ndarray:
        """`cauchy_(median, sigma)`."""
        if not sigma > 0:
            raise _wrong(f"cauchy_ needs sigma > 0, not {sigma}", "cauchy_(0, 1)")
        kind = _floating(dtype, "cauchy_")

        def fill(count: int) -> np.ndarray:
            return _fused(np.tan(math.pi * (self._float64(count) - 0.5)), sigma, median)

        return _filled(shape, kind, fill)

    def multinomial(self, weights: np.ndarray, count: int, replacement: bool = False) -> np.ndarray:
        """`torch.multinomial`: int64 categories of shape (..., count) from weights of 1 or 2 dims.

        One draw, or draws without replacement, race exponentials; else the cumulative sum is
        searched. Wrong weights raise E205, wrong shapes E308.
        """
        kind = _floating(weights.dtype, "multinomial")
        if weights.ndim not in (1, 2):
            raise fail(
                "E308",
                f"multinomial needs weights of 1 or 2 dimensions, not {weights.ndim}",
                help="weights.reshape(1, -1)",
            )
        number = _whole(count, "num_samples")
        categories = weights.shape[-1]
        if number <= 0:
            raise _wrong(f"multinomial cannot draw {number} samples", "num_samples=1")
        if not replacement and number > categories:
            raise _wrong(
                f"multinomial cannot draw {number} of {categories} categories without replacement",
                "replacement=True",
            )
        if not ((weights >= 0) & np.isfinite(weights)).all():
            raise _wrong("multinomial needs finite weights >= 0", "torch.softmax(logits, -1)")
        if weights.size and (weights.sum(-1) <= 0).any():
            raise _wrong("multinomial needs weights with a sum > 0", "torch.ones(3)")
        if not replacement or number == 1:
            race = weights / self.exponential(weights.shape, kind)
            return np.argsort(-race, axis=-1, kind="stable")[..., :number]
        rows = np.atleast_2d(weights)
        _size((len(rows), 2 * number), np.int64)  # the words drawn must fit too
        uniform = self._float64(len(rows) * number).reshape(len(rows), number)
        drawn = np.empty(uniform.shape, np.int64)
        for row, sample, result in zip(rows, uniform, drawn, strict=True):
            heights = np.cumsum(row, dtype=kind)
            heights /= heights[-1]
            heights[-1] = 1
            result[:] = np.searchsorted(heights.astype(np.float64), sample)
        return drawn.reshape(*weights.shape[:-1], number)

    def poisson(self, rates: np.ndarray) -> np.ndarray:
        """`torch.poisson`: counts in the dtype and shape of `rates`; E205 unless finite, >= 0."""
        kind = _floating(rates.dtype, "poisson")
        if not ((rates >= 0) & (rates <= 2.0**53)).all():
            raise _wrong("poisson needs every rate >= 0 and finite", "rates.abs()")
        before = self._twister().state
        stream = _Uniforms(self._float64)
        counts = [_poisson(rate, stream) for rate in rates.ravel().tolist()]
        self._twister().state = before
        self._words(2 * stream.used)
        return np.array(counts, dtype=kind).reshape(rates.shape)

    # Noise of layers.

    def dropout(self, shape: Shape, p: float = 0.5, dtype: DType = np.float32) -> np.ndarray:
        """What `F.dropout` multiplies its input by: 0, or 1 / (1 - p). p of 0 or 1 draws nothing.

        `dropout1d/2d/3d` draw one value a channel: give the shape (N, C, 1, ...).
        """
        _probability(p, "dropout")
        kind = _floating(dtype, "dropout")
        if p in (0, 1):
            return np.full(_size(shape, kind), 1 - p, kind)
        return self.bernoulli(1 - p, shape, kind) / kind.type(1 - p)

    def alpha_dropout(
        self, shape: Shape, p: float = 0.5, dtype: DType = np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        """Factor and summand of `F.alpha_dropout`; with shape (N, C, 1, ...) the feature form."""
        _probability(p, "alpha_dropout")
        kind = _floating(dtype, "alpha_dropout")
        if p in (0, 1):
            return np.full(_size(shape, kind), 1 - p, kind), np.zeros(_size(shape, kind), kind)
        alpha = 1.7580993408473766  # the fixed point of SELU
        scale = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
        noise = self.bernoulli(1 - p, shape, kind)
        summand = (noise - 1) * kind.type(alpha * scale) + kind.type(alpha * scale * p)
        return noise * kind.type(scale), summand

    def rrelu(self, values: np.ndarray, lower: float = 1 / 8, upper: float = 1 / 3) -> np.ndarray:
        """The slopes of `F.rrelu` in training: drawn where `values` <= 0, 1 elsewhere."""
        if not lower <= upper:
            raise _wrong(f"rrelu needs lower <= upper, not {lower} and {upper}", "F.rrelu(x)")
        noise = np.ones(values.shape, _floating(values.dtype, "rrelu"))
        below = values <= 0
        noise[below] = self.uniform(int(below.sum()), np.float64, lower, upper)
        return noise


class _Uniforms:
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


def _poisson(rate: float, stream: _Uniforms) -> int:
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
        if us >= 0.07 and v <= sure:
            return count
        if count < 0 or (us < 0.013 and v > us) or v == 0:
            continue
        left = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if left <= -rate + count * log_rate - math.lgamma(count + 1):
            return count


def _swapped(step: np.ndarray, place: np.ndarray) -> np.ndarray:
    """What 0..n-1 becomes after swapping `step[k]` with `place[k] >= step[k]` in order.

    The value met at place j is the one put there by the last step that chose j, which moved it
    from its own place, and so on back; following those links for all places at once replaces
    the loop.
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


def _fused(values: np.ndarray, scale: Any, shift: Any) -> np.ndarray:
    """`values * scale + shift` rounded once, as the fused instruction in PyTorch's kernels."""
    if shift == 0:
        return values * scale
    if values.dtype == np.float32:
        return (values.astype(np.float64) * float(scale) + float(shift)).astype(np.float32)
    if not (abs(scale) < 2.0**900 and abs(shift) < 2.0**1000):
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


def _filled(shape: Shape, kind: np.dtype, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """A new array filled in order, chunk by chunk (chunks are whole blocks of 16)."""
    size = _size(shape, kind)
    values = np.empty(math.prod(size), kind)
    for start in range(0, values.size, CHUNK):
        part = values[start : start + CHUNK]
        part[:] = _cast(draw(part.size), kind)
    return values.reshape(size)


def _cast(values: np.ndarray, kind: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(kind, copy=False)


def _weak(value: Any, kind: np.dtype) -> Any:
    """A number or an array without dimensions takes the dtype of what it meets."""
    return kind.type(value) if np.ndim(value) == 0 else value


def _wrong(message: str, help: str) -> AutodiffError:
    return fail("E205", message, help=help)


def _seed(seed: object) -> int:
    try:
        number = int(seed) if isinstance(seed, float) else operator.index(seed)  # type: ignore[arg-type]  # what index refuses is caught
    except (TypeError, ValueError, OverflowError):
        raise _wrong(
            f"a seed is a whole number, not {seed!r:.60}", "torch.manual_seed(0)"
        ) from None
    if not INT64_MIN <= number < 1 << 64:
        raise _wrong("a seed lies between -2**63 and 2**64 - 1", "torch.manual_seed(0)")
    return number % (1 << 64)


def _whole(value: object, name: str) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # what index refuses is caught
    except TypeError:
        raise _wrong(
            f"{name} must be a whole number, not {value!r:.60}", "a number such as 10"
        ) from None
    if not INT64_MIN <= number <= INT64_MAX:
        raise _wrong(f"{name}: {str(number)[:40]} does not fit 64 bits", "a number such as 10")
    return number


def _size(shape: Shape, kind: DType = np.float32) -> tuple[int, ...]:
    """The shape as a tuple; E309 for negative sizes, E505 beyond the limit on memory."""
    entries = shape if isinstance(shape, Sequence) else (shape,)
    size = tuple(_whole(length, "a size") for length in entries)
    if any(length < 0 for length in size):
        raise fail("E309", f"a tensor cannot have the shape {size}", help="sizes from 0 on")
    check_size(size, np.dtype(kind))
    return size


def _floating(dtype: Any, name: str) -> np.dtype:
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise fail(
            "E307", f"{name} works on floating-point numbers, not {kind.name}", help="x.float()"
        )
    return kind


def _largest(kind: np.dtype) -> int:
    return 1 if kind == np.bool_ else int(np.iinfo(kind).max)


def _probability(p: float, name: str) -> None:
    if not 0 <= p <= 1:
        raise _wrong(f"{name} needs a probability in [0, 1], not {p}", f"{name}(0.5)")


def _representable(start: int, stop: int, kind: np.dtype) -> tuple[int, int]:
    """Bounds moved inwards so that no result rounds out of [start, stop) in a float dtype."""
    digits = np.finfo(kind).nmant + 1
    if not float(np.finfo(kind).min) <= start <= stop - 1 <= float(np.finfo(kind).max):
        raise _wrong(f"the range from {start} to {stop} does not fit {kind.name}", "torch.float64")
    above, below = int(kind.type(start + 1)), int(kind.type(stop - 1))
    if above < start:
        start = above + (1 << (abs(start + 1).bit_length() - digits))
    if below >= stop:
        stop = below - (1 << (abs(stop - 1).bit_length() - digits))
    if start >= stop:
        raise _wrong(f"no {kind.name} lies between {start} and {stop}", "dtype=torch.float64")
    return start, stop


# Initial values: `torch.nn.init`, each returning the array that PyTorch would write.


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """`nn.init.calculate_gain`; E205 for an unknown name."""
    if nonlinearity in ("linear", "sigmoid") or nonlinearity in _CONVOLUTIONS:
        return 1.0
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise _wrong(f"no gain is known for {nonlinearity!r:.60}", 'nonlinearity="relu"')
    return gains[nonlinearity]


_CONVOLUTIONS = {f"conv{kind}{dims}d" for kind in ("", "_transpose") for dims in (1, 2, 3)}


def fans(shape: Shape) -> tuple[int, int]:
    """Fan in and fan out of a weight of two or more dims; E308 for fewer."""
    size = _size(shape)
    if len(size) < 2:
        raise fail(
            "E308",
            f"fan in and fan out need 2 or more dimensions, not shape {size}",
            help="a weight of shape (out, in)",
        )
    field = math.prod(size[2:])
    return size[1] * field, size[0] * field


def init_uniform(
    generator: Generator, shape: Shape, a: float = 0.0, b: float = 1.0, dtype: DType = np.float32
) -> np.ndarray:
    return generator.uniform(shape, dtype, a, b)


def init_normal(
    generator: Generator,
    shape: Shape,
    mean: float = 0.0,
    std: float = 1.0,
    dtype: DType = np.float32,
) -> np.ndarray:
    return generator.normal(mean, std, shape, dtype)


def init_trunc_normal(
    generator: Generator,
    shape: Shape,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    dtype: DType = np.float32,
) -> np.ndarray:
    """Normals within [a, b] by rejection: of normals if enough of them fall there, else of
    uniforms. E506 when an unlikely interval needs too many rounds."""
    kind = _floating(dtype, "trunc_normal_")
    if not (std > 0 and a <= b):
        raise _wrong(f"trunc_normal_ needs std > 0 and a <= b, not {std}, {a}, {b}", "std=0.02")
    inside = math.erf((b - mean) / std / math.sqrt(2.0)) - math.erf(
        (a - mean) / std / math.sqrt(2.0)
    )
    if inside / 2 > 0.3:
        low, high = float(kind.type(a)), float(kind.type(b))
        values = generator.normal(mean, std, shape, kind)
        for _ in range(MAX_ROUNDS):
            pending = (values < low) | (values > high)
            if not pending.any():
                return values
            values = np.where(pending, generator.normal(mean, std, shape, kind), values)
    else:
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
        values = np.empty(_size(shape), kind)
        pending = np.ones(values.shape, np.bool_)
        for _ in range(MAX_ROUNDS):
            drawn = generator.uniform(shape, kind, a, b)
            values = np.where(pending, drawn, values)
            density = ((drawn - kind.type(mean)) / kind.type(std)) ** 2 * kind.type(-0.5)
            with np.errstate(divide="ignore"):  # a uniform of exactly 0
                heights = np.log(generator.uniform(shape, kind))
            pending = pending & (heights > density - kind.type(peak))
            if not pending.any():
                return values
    raise fail(
        "E506",
        f"trunc_normal_ found no values in [{a}, {b}] for mean {mean} and std {std}",
        help="bounds nearer to the mean",
    )


def init_xavier_uniform(
    generator: Generator, shape: Shape, gain: float = 1.0, dtype: DType = np.float32
) -> np.ndarray:
    bound = math.sqrt(3.0) * _xavier(shape, gain)
    return generator.uniform(shape, dtype, -bound, bound)


def init_xavier_normal(
    generator: Generator, shape: Shape, gain: float = 1.0, dtype: DType = np.float32
) -> np.ndarray:
    return generator.normal(0.0, _xavier(shape, gain), shape, dtype)


def _xavier(shape: Shape, gain: float) -> float:
    both = sum(fans(shape))
    if both == 0:
        raise fail("E309", f"no fan in a weight of shape {_size(shape)}", help="sizes from 1 on")
    return gain * math.sqrt(2.0 / both)


def init_kaiming_uniform(
    generator: Generator,
    shape: Shape,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    dtype: DType = np.float32,
) -> np.ndarray:
    if 0 in _size(shape):
        return np.empty(_size(shape), dtype)
    bound = math.sqrt(3.0) * _kaiming(shape, a, mode, nonlinearity)
    return generator.uniform(shape, dtype, -bound, bound)


def init_kaiming_normal(
    generator: Generator,
    shape: Shape,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    dtype: DType = np.float32,
) -> np.ndarray:
    if 0 in _size(shape):
        return np.empty(_size(shape), dtype)
    return generator.normal(0.0, _kaiming(shape, a, mode, nonlinearity), shape, dtype)


def _kaiming(shape: Shape, a: float, mode: str, nonlinearity: str) -> float:
    choice = str(mode).lower()
    if choice not in ("fan_in", "fan_out"):
        raise _wrong(f"the mode is fan_in or fan_out, not {mode!r:.60}", 'mode="fan_in"')
    fan = fans(shape)[choice == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def init_orthogonal(
    generator: Generator, shape: Shape, gain: float = 1.0, dtype: DType = np.float32
) -> np.ndarray:
    """Orthonormal rows or columns, whichever are fewer, of the weight flattened to two dims."""
    size = _size(shape)
    if len(size) < 2:
        raise fail(
            "E308",
            f"orthogonal_ needs 2 or more dimensions, not shape {size}",
            help="a weight of shape (out, in)",
        )
    if 0 in size:
        return np.empty(size, dtype)
    flat = generator.randn((size[0], math.prod(size[1:])), dtype)
    wide = flat.shape[0] < flat.shape[1]
    q, r = np.linalg.qr(flat.T if wide else flat)
    q = q * np.sign(np.diag(r))  # makes the distribution uniform (Mezzadri, math-ph/0609050)
    kind = np.dtype(dtype)
    return (q.T if wide else q).reshape(size).astype(kind) * kind.type(gain)


def init_sparse(
    generator: Generator,
    shape: Shape,
    sparsity: float,
    std: float = 0.01,
    dtype: DType = np.float32,
    permutations: Generator | None = None,
) -> np.ndarray:
    """Normals with a share of zeros in every column.

    PyTorch draws the places of the zeros from its default generator even when another one is
    passed for the values; that one can be given as `permutations`.
    """
    size = _size(shape)
    if len(size) != 2:
        raise fail("E308", f"sparse_ needs 2 dimensions, not shape {size}", help="shape (3, 5)")
    if not 0 <= sparsity <= 1:
        raise _wrong(f"sparse_ needs a share of zeros in [0, 1], not {sparsity}", "sparsity=0.1")
    values = generator.normal(0.0, std, size, dtype)
    zeros = math.ceil(sparsity * size[0])
    for column in range(size[1]):
        values[(permutations or generator).randperm(size[0])[:zeros], column] = 0
    return values


def init_constant(shape: Shape, value: float, dtype: DType = np.float32) -> np.ndarray:
    return np.full(_size(shape, dtype), value, dtype)


def init_eye(shape: Shape, dtype: DType = np.float32) -> np.ndarray:
    size = _size(shape, dtype)
    if len(size) != 2:
        raise fail("E308", f"eye_ needs 2 dimensions, not shape {size}", help="shape (3, 3)")
    return np.eye(*size, dtype=dtype)


def init_dirac(shape: Shape, groups: int = 1, dtype: DType = np.float32) -> np.ndarray:
    """A convolution weight that passes its channels through."""
    size = _size(shape, dtype)
    if len(size) not in (3, 4, 5):
        raise fail(
            "E308", f"dirac_ needs 3, 4 or 5 dimensions, not shape {size}", help="shape (3, 3, 3)"
        )
    if groups < 1 or size[0] % groups:
        raise _wrong(f"dirac_: {size[0]} channels do not make {groups} groups", "groups=1")
    values = np.zeros(size, dtype)
    per_group = size[0] // groups
    middle = tuple(length // 2 for length in size[2:])
    for group in range(groups):
        for channel in range(min(per_group, size[1])):
            values[(group * per_group + channel, channel, *middle)] = 1
    return values


# Parameters of modules at construction, by PyTorch's names and in its order of drawing.


def init_linear(
    generator: Generator,
    out_features: int,
    in_features: int,
    bias: bool = True,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.Linear`: weight, then bias."""
    return _weight_and_bias(generator, (out_features, in_features), out_features, bias, dtype)


def init_conv(
    generator: Generator,
    out_channels: int,
    in_channels: int,
    kernel_size: Sequence[int],
    groups: int = 1,
    bias: bool = True,
    transposed: bool = False,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.Conv1d/2d/3d` and `nn.ConvTranspose1d/2d/3d`, by the length of `kernel_size`."""
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise _wrong(
            f"{in_channels} input and {out_channels} output channels do not make {groups} groups",
            "groups=1",
        )
    ends = (in_channels, out_channels) if transposed else (out_channels, in_channels)
    shape = (ends[0], ends[1] // groups, *kernel_size)
    return _weight_and_bias(generator, shape, out_channels, bias, dtype)


def _weight_and_bias(
    generator: Generator, shape: tuple[int, ...], length: int, bias: bool, dtype: DType
) -> Parameters:
    made = {"weight": init_kaiming_uniform(generator, shape, a=math.sqrt(5), dtype=dtype)}
    if bias:
        fan_in = fans(shape)[0]
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        made["bias"] = generator.uniform(length, dtype, -bound, bound)
    return made


def init_bilinear(
    generator: Generator,
    out_features: int,
    in1_features: int,
    in2_features: int,
    bias: bool = True,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.Bilinear`: weight, then bias."""
    if in1_features <= 0:
        raise fail(
            "E309",
            f"Bilinear needs in1_features > 0, not {in1_features}",
            help="nn.Bilinear(2, 3, 4)",
        )
    shapes: dict[str, Shape] = {"weight": (out_features, in1_features, in2_features)}
    if bias:
        shapes["bias"] = out_features
    return _all_uniform(generator, shapes, in1_features, dtype)


def init_embedding(
    generator: Generator,
    count: int,
    length: int,
    padding_idx: int | None = None,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.Embedding` and `nn.EmbeddingBag`: standard normals, zeros in the padding row."""
    weight = generator.randn((count, length), dtype)
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise fail(
                "E305",
                f"padding_idx={padding_idx} is outside an embedding of {count} rows",
                help=f"padding_idx from 0 to {count - 1}",
            )
        weight[padding_idx] = 0
    return {"weight": weight}


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def init_recurrent(
    generator: Generator,
    kind: str,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    bias: bool = True,
    bidirectional: bool = False,
    proj_size: int = 0,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.RNN`, `nn.GRU` and `nn.LSTM`: names such as `weight_ih_l0`, in drawing order."""
    rows = GATES[kind] * hidden_size
    state = proj_size or hidden_size
    directions = ("", "_reverse") if bidirectional else ("",)
    shapes: dict[str, Shape] = {}
    for layer in range(num_layers):
        width = input_size if layer == 0 else state * len(directions)
        for direction in directions:
            end = f"_l{layer}{direction}"
            shapes["weight_ih" + end] = (rows, width)
            shapes["weight_hh" + end] = (rows, state)
            if bias:
                shapes["bias_ih" + end] = rows
                shapes["bias_hh" + end] = rows
            if proj_size:
                shapes["weight_hr" + end] = (proj_size, hidden_size)
    return _all_uniform(generator, shapes, hidden_size, dtype)


def init_recurrent_cell(
    generator: Generator,
    kind: str,
    input_size: int,
    hidden_size: int,
    bias: bool = True,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.RNNCell`, `nn.GRUCell` and `nn.LSTMCell` (`kind` without `Cell`)."""
    layer = init_recurrent(generator, kind, input_size, hidden_size, bias=bias, dtype=dtype)
    return {name.removesuffix("_l0"): values for name, values in layer.items()}


def _all_uniform(
    generator: Generator, shapes: dict[str, Shape], fan: int, dtype: DType
) -> Parameters:
    bound = 1 / math.sqrt(fan) if fan > 0 else 0.0
    return {name: generator.uniform(shape, dtype, -bound, bound) for name, shape in shapes.items()}


def init_multihead_attention(
    generator: Generator,
    embed_dim: int,
    kdim: int | None = None,
    vdim: int | None = None,
    bias: bool = True,
    add_bias_kv: bool = False,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.MultiheadAttention`: the output projection is drawn first; its bias is then zeroed."""
    projection = init_linear(generator, embed_dim, embed_dim, bias, dtype)
    keys, values = kdim or embed_dim, vdim or embed_dim
    made: Parameters = {}
    if keys == values == embed_dim:
        made["in_proj_weight"] = init_xavier_uniform(
            generator, (3 * embed_dim, embed_dim), dtype=dtype
        )
    else:
        for name, width in (("q", embed_dim), ("k", keys), ("v", values)):
            made[f"{name}_proj_weight"] = init_xavier_uniform(
                generator, (embed_dim, width), dtype=dtype
            )
    if bias:
        made["in_proj_bias"] = np.zeros(3 * embed_dim, dtype)
    if add_bias_kv:
        for name in ("bias_k", "bias_v"):
            made[name] = init_xavier_normal(generator, (1, 1, embed_dim), dtype=dtype)
    made["out_proj.weight"] = projection["weight"]
    if bias:
        made["out_proj.bias"] = np.zeros(embed_dim, dtype)
    return made
