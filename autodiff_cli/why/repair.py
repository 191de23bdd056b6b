"""Repairs: whole programs with a change in place, run before one is proposed.

Candidates come in the order in which a person would try them; the first that works wins. One that
only uncovers the next cause is repaired further, a few times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from ..errors import AutodiffError
from ..source import Source, Span
from . import finite, reconnect, slopes
from .answering import Inquiry
from .edits import Text
from .model import Cause
from .zeros import TINY

MOST_TRIALS = 40
SECONDS = 20.0  # of the processor
ROUNDS = 4


class Trial:
    """What is left of trials and time for one answer, and what the first program gave."""

    def __init__(self, inquiry: Inquiry, verdict: str, cause: Cause):
        self.verdict = verdict
        self.cause = cause
        self.loss = inquiry.loss()
        self.zeros = self._zeros(inquiry)
        self.left = MOST_TRIALS
        self.until = time.process_time() + SECONDS
        self.seen = {inquiry.source.text}

    @staticmethod
    def _zeros(inquiry: Inquiry) -> int:
        g = inquiry.gradient()
        return -1 if g is None else int((np.abs(g) < TINY).sum())

    def run(self, text: str, inquiry: Inquiry) -> Inquiry | None:
        """The question asked of a candidate; None when it does not run, or was tried."""
        if text in self.seen or self.left <= 0 or time.process_time() > self.until:
            return None
        self.seen.add(text)
        self.left -= 1
        try:
            return Inquiry(Source(text, inquiry.source.name), inquiry.name, inquiry.limited)
        except (AutodiffError, RecursionError, MemoryError):
            return None

    def works(self, other: Inquiry) -> bool:
        """Whether the gradient came out, finite, and the loss stayed."""
        g = other.gradient()
        if g is None or not np.isfinite(g).all() or other.program.failure is not None:
            return False
        zeros = self._zeros(other)
        if self.verdict == "zero" and zeros == g.size:
            return False
        if self.verdict == "partly-zero" and zeros >= self.zeros:
            return False
        return self.cause.code == "saturated" or self.same_loss(other)

    def same_loss(self, other: Inquiry) -> bool:
        """Whether a loss that was finite is as it was."""
        before, after = self.loss, other.loss()
        if before is None or not np.isfinite(before):
            return after is None or bool(np.isfinite(after))
        return after is not None and abs(after - before) <= 0.009 * abs(before) + 1e-4


def repaired(inquiry: Inquiry, verdict: str, cause: Cause) -> str | None:
    """The program with a repair that works; None when none was found."""
    try:
        return _search(inquiry, Trial(inquiry, verdict, cause), cause, ROUNDS)
    except (AutodiffError, RecursionError):
        return None


def _search(inquiry: Inquiry, trial: Trial, cause: Cause, rounds: int) -> str | None:
    uncovered: list[Inquiry] = []
    for text in candidates(inquiry, cause):
        other = trial.run(text, inquiry)
        if other is None:
            continue
        if trial.works(other):
            return text
        uncovered.append(other)
    if rounds <= 1:
        return None
    for other in uncovered:
        next_verdict, next_cause = other.found()
        if next_verdict == "ok" or (next_verdict, next_cause.code) in HOPELESS:
            continue
        found = _search(other, trial, next_cause, rounds - 1)
        if found is not None:
            return found
    return None


# Nothing follows from these but what the program means.
HOPELESS = {("none", "not-reached"), ("zero", "times-zero"), ("zero", "cancelled")}


# What is tried against a cause, in this order.
REPAIRS: dict[str, tuple[Callable[[Text, Span | None, str], Iterator[str]], ...]] = {
    "detached": (reconnect.attached,),
    "no-grad": (reconnect.with_gradients,),
    "requires-grad-false": (reconnect.requiring,),
    "integer": (reconnect.requiring, slopes.without_cast),
    "not-a-leaf": (reconnect.retained,),
    "rebound": (reconnect.renamed,),
    "dead-relu": (slopes.leaky,),
    "saturated": (finite.rewritten, slopes.steeper),
    **dict.fromkeys(("flat-op", "comparison"), (slopes.straight_through,)),
    **dict.fromkeys(("nan-forward", "nan-backward", "inf-forward", "inf-backward"), (finite.kept,)),
}


def candidates(inquiry: Inquiry, cause: Cause) -> Iterator[str]:
    """Programs that may be without the cause."""
    text = Text(inquiry.source)
    for repair in REPAIRS.get(cause.code, ()):
        yield from repair(text, cause.span, inquiry.name)
