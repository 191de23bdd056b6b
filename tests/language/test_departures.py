"""A step that departs from the recorded one does what it would had every step run as it is written.

Replay begins as early as it can. What is compared is all that a program may see: names, gradients,
state of optimizers, output, generators.
"""

from __future__ import annotations

import random

import pytest

from autodiff_cli.language.replay import replay_driver

from .departing_loops import DEPARTURES, LOOPS, program, programs
from .replaying import early
from .test_loops import compare, outcome

EVERY = 311  # of how many programs one runs here; a prime, so that all kinds meet


def sample() -> list[tuple[str, int, int, int]]:
    found = list(programs())
    random.Random(0).shuffle(found)
    return found[::EVERY]


@pytest.mark.parametrize("name", LOOPS)
def test_departures(name: str, replayed: list[int]) -> None:
    for _, number, at, k in [case for case in sample() if case[0] == name][::2]:
        text = program(name, DEPARTURES[number], at, k)
        with early():
            one = outcome(text, True, "")
        compare(one, outcome(text, False, ""))
    assert bool(replayed) is (name not in ("iterators", "another generator"))


def test_a_step_that_does_not_fit_touches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs of a step that does not fit, names and containers stay as they were."""
    seen: list[bool] = []

    class Watched(replay_driver.Replay):
        def step(self, item: object) -> bool:
            names = self.scope.names
            before = dict(names), repr(names["losses"]), names["w"].node, names["w"].grad
            fits = super().step(item)
            after = dict(names), repr(names["losses"]), names["w"].node, names["w"].grad
            seen.append(fits)
            if not fits:
                assert before == after
            return fits

    monkeypatch.setattr(replay_driver, "Replay", Watched)
    text = program("lists that grow", DEPARTURES[0], 2, 7)
    with early():
        report = outcome(text, True, "")
    assert report.error is None
    assert seen.count(False) == 1
