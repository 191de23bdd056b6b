"""Whether a claimed slope is the slope of a function: steps of several sizes, both sides, and the
complex step; the answer tells wrong from "on a kink" and from "too noisy to say".

Invariant: a verdict `WRONG` is given only when the measured slopes agree with each other much
better than with the claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

RIGHT, WRONG, KINK, NOISY = "right", "wrong", "kink", "noisy"
EPS = float(np.finfo(np.float64).eps)
STEP = EPS ** (1 / 3)
COMPLEX_STEP = 1e-30
RTOL, ATOL = 1e-6, 1e-8


class Verdict(NamedTuple):
    """What was found along one direction: the claim, the measured slope and its step."""

    kind: str
    claimed: float
    measured: float
    allowed: float
    step: float
    left: float = math.nan
    right: float = math.nan


class Sample(NamedTuple):
    """The function at one step to both sides."""

    step: float
    central: float
    left: float
    right: float


@dataclass(eq=False)
class Line:
    """A function along one direction: `at(t)` is its value t steps of the direction away.

    `scale` is the size of the point along the direction; `near_kink` says that some op is within
    reach of a declared kink; `size` tells the largest number on the way, which bounds rounding.
    Who asks decides about NumPy's warnings.
    """

    at: Callable[[complex], Any]
    here: float
    scale: float = 1.0
    _: KW_ONLY
    analytic: bool = False
    near_kink: bool = False
    size: Callable[[], float] = float
    rtol: float = RTOL
    atol: float = ATOL

    def examine(self, claimed: float) -> Verdict:
        """Compare a claimed slope with what the function does."""
        if not math.isfinite(self.here):
            return Verdict(NOISY, claimed, math.nan, math.nan, STEP)
        exact = self._complex_slope() if self.analytic else math.nan
        finite = math.isfinite(claimed)
        tight = self.rtol * max(abs(claimed), abs(exact)) + self.atol
        settles = finite and math.isfinite(exact) and not self.near_kink
        if settles and abs(exact - claimed) <= tight:
            return Verdict(RIGHT, claimed, exact, tight, COMPLEX_STEP)
        step = STEP * max(1.0, self.scale)
        first = self._sample(step)
        allowed = self._allowed(claimed, first.central)
        agreed = finite and abs(first.central - claimed) <= allowed
        if agreed and not self.near_kink:
            if math.isfinite(exact):  # has no rounding; where both measure the same, it decides
                return Verdict(WRONG, claimed, exact, tight, COMPLEX_STEP)
            return Verdict(RIGHT, claimed, first.central, allowed, step)
        return self._closer(claimed, first, agreed)

    def _allowed(self, claimed: float, measured: float) -> float:
        return self.rtol * max(abs(claimed), abs(measured)) + self.atol * max(1.0, abs(self.here))

    def _complex_slope(self) -> float:
        value = self.at(COMPLEX_STEP * 1j)
        if isinstance(value, complex | np.complexfloating):
            return float(value.imag) / COMPLEX_STEP
        return math.nan

    def _sample(self, step: float) -> Sample:
        up, down = float(self.at(step)), float(self.at(-step))
        here = self.here
        return Sample(step, (up - down) / (2 * step), (here - down) / step, (up - here) / step)

    def _closer(self, claimed: float, first: Sample, agreed: bool) -> Verdict:
        """Look at more steps: smaller ones, larger ones, and what they say together."""
        step = first.step
        steps = [step / 10, step * 10, step / 100]
        if 0 < self.scale < 1:
            steps.append(STEP * self.scale)
        samples = [first, *map(self._sample, steps)]
        kink = self._kink(claimed, samples)
        if kink is not None:
            return kink
        usable = sorted((s for s in samples if math.isfinite(s.central)), reverse=True)
        if agreed:
            return self._verdict(RIGHT, claimed, first)
        if not usable:
            return self._one_sided(claimed, samples)
        candidates = [(s.central, s.step) for s in usable]
        for large, small in pairwise(usable):
            ratio = (large.step / small.step) ** 2
            if ratio > 2:  # two steps that are nearly one say nothing more
                better = (ratio * small.central - large.central) / (ratio - 1)
                candidates.append((better, small.step))
        best, at = min(candidates, key=lambda c: abs(c[0] - claimed))
        if math.isfinite(claimed) and abs(best - claimed) <= self._allowed(claimed, best):
            return Verdict(RIGHT, claimed, best, self._allowed(claimed, best), at)
        if self._steeper(usable):
            return self._steep(claimed, usable)
        return self._disagreement(claimed, usable, abs(best - claimed))

    def _steeper(self, usable: list[Sample]) -> bool:
        """Whether slopes still grow as the step shrinks, by more than rounding explains."""
        large, small = (usable * 2)[-2:]
        rounding = 4 * EPS * (abs(self.here) / small.step + abs(small.central))
        grown = abs(small.central - large.central)
        return abs(small.central) > 2 * abs(large.central) and grown > 1e3 * rounding

    def _steep(self, claimed: float, usable: list[Sample]) -> Verdict:
        """A function that changes within less than the smallest step: smaller ones, or no verdict.
        They round, so only a rough agreement can be asked for; infinite is what grows on there."""
        least = usable[-1].step
        samples = [self._sample(least * factor) for factor in (1e-2, 1e-4, 1e-6, 1e-8)]
        finite = [s for s in samples if math.isfinite(s.central)]
        if math.isinf(claimed):
            *_, last = reached = [*usable, *finite]
            grows = self._steeper(reached) and last.central * claimed > 0
            return self._verdict(RIGHT if grows else NOISY, claimed, last)
        near = min(finite or usable, key=lambda s: abs(s.central - claimed))
        close = abs(near.central - claimed) <= 1e-4 * max(abs(near.central), abs(claimed))
        return self._verdict(RIGHT if close else NOISY, claimed, near)

    def _verdict(self, kind: str, claimed: float, sample: Sample) -> Verdict:
        allowed = self._allowed(claimed, sample.central)
        return Verdict(
            kind, claimed, sample.central, allowed, sample.step, sample.left, sample.right
        )

    def _kink(self, claimed: float, samples: list[Sample]) -> Verdict | None:
        """A verdict when the slopes of both sides stay apart however small the step."""
        large, small = samples[0], samples[1]
        smallest = samples[3]
        if not all(math.isfinite(v) for s in (large, small, smallest) for v in (s.left, s.right)):
            return None
        gaps = [abs(s.right - s.left) for s in (large, small, smallest)]
        floor = 1e3 * EPS * abs(self.here)
        tolerance = 1e-4 * max(abs(small.left), abs(small.right)) + self.atol
        if gaps[1] <= 0.5 * gaps[0] or gaps[2] <= 0.5 * gaps[1] or gaps[1] <= tolerance:
            return None
        if gaps[1] * small.step <= floor or gaps[2] * smallest.step <= floor:
            return None
        low, high = sorted((smallest.left, smallest.right))
        if low - tolerance <= claimed <= high + tolerance:
            return self._verdict(KINK, claimed, smallest)
        if not math.isfinite(claimed):
            kind = KINK if max(gaps) > 2 * min(gaps) else NOISY
            return self._verdict(kind, claimed, smallest)
        return self._verdict(WRONG, claimed, smallest)

    def _one_sided(self, claimed: float, samples: list[Sample]) -> Verdict:
        """At the border of where the function is defined only one side can be compared."""
        found = [
            slope for s in sorted(samples) for slope in (s.right, s.left) if math.isfinite(slope)
        ]
        if not found:
            return self._verdict(NOISY, claimed, samples[0])
        if math.isinf(claimed):
            grows = abs(found[0]) > 2 * abs(found[-1])
            return self._verdict(KINK if grows else NOISY, claimed, samples[0])
        near = min(found, key=lambda slope: abs(slope - claimed))
        allowed = 1e-3 * max(abs(near), abs(claimed)) + self.atol
        kind = KINK if abs(near - claimed) <= allowed else NOISY
        return Verdict(kind, claimed, near, allowed, samples[0].step)

    def _disagreement(self, claimed: float, usable: list[Sample], error: float) -> Verdict:
        """Wrong, or too noisy to say: do the measurements agree better with each other?"""
        reference = min(usable, key=lambda s: abs(math.log(s.step / STEP)))
        values = [s.central for s in usable]
        spread = min(
            (abs(a - b) for i, a in enumerate(values) for b in values[i + 1 :]), default=math.inf
        )
        noise = max(spread, 4 * EPS * abs(self.here) / usable[0].step)
        if not math.isfinite(claimed) or error <= 5 * noise or self._drowned(claimed, error):
            return self._verdict(NOISY, claimed, reference)
        return self._verdict(WRONG, claimed, reference)

    def _drowned(self, claimed: float, error: float) -> bool:
        """Whether large numbers on the way swallow small steps, while large steps do agree."""
        if error > 8 * EPS * self.size() / STEP:
            return False
        wide = [self._sample(step).central for step in (1e-3, 1e-1, 10.0, 1e3)]
        return any(abs(slope - claimed) <= 0.1 * abs(claimed) for slope in wide)
