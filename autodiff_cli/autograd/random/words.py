"""The words that random numbers are made of: seeds, states, the Mersenne twister.

A word is drawn only when a number asks for it, so that any sequence of draws after a seed goes on
as it does in PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ...errors import fault
from ...graph.state import STATE
from .arguments import seed_number

if TYPE_CHECKING:
    from numpy.random import MT19937

DEFAULT_SEED = 67280421310721
"""The seed of a fresh `torch.Generator()`. A fresh PyTorch process seeds its default generator
from the system's entropy instead; using this one makes unseeded programs repeatable too."""


class GeneratorState(NamedTuple):
    """Where a generator stands; immutable, so it may be kept and set any number of times."""

    seed: int
    words: Any
    kept: float | None


class Words:
    """A stream of 32-bit words, and uniforms in [0, 1) made of one or two of them; with it goes the
    normal that the last odd draw kept back."""

    __slots__ = ("_bits", "_kept", "_seed", "_seeded")

    def __init__(self, seed: object = DEFAULT_SEED):
        self._bits: MT19937 | None = None
        self.manual_seed(seed)

    def manual_seed(self, seed: object) -> Self:
        """Start again from `seed`, a whole number in [-2**63, 2**64); E205 otherwise."""
        number = seed_number(seed)
        self._seed = number
        self._seeded = False  # the first draw does it: numpy.random loads slowly
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

    def set_state(self, state: GeneratorState) -> Self:
        if not isinstance(state, GeneratorState):
            raise fault("E205 set_state-takes-what")
        self._seed, words, self._kept = state
        self._twister().state = words
        return self

    def clone(self) -> Self:
        """An independent generator at the same place."""
        return type(self)().set_state(self.get_state())

    # -- draws
    def _twister(self) -> MT19937:
        if self._bits is None or not self._seeded:
            from numpy.random import MT19937, RandomState

            self._bits = self._bits or MT19937(0)  # to make one takes far longer than to seed it
            RandomState(self._bits).seed(self._seed & 0xFFFFFFFF)  # as PyTorch's mt19937 does
            self._seeded = True
        return self._bits

    def _words(self, count: int) -> np.ndarray:
        if not STATE.draws:
            raise fault("E203 vmap-called-random-operation")
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
