"""Programs whose loops are replayed as early and as often as they can be, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from autodiff_cli.language.replay import replay_driver
from autodiff_cli.language.runtime import replay_gate
from autodiff_cli.language.values.housekeeping import HOUSEKEEPING


@contextmanager
def early() -> Iterator[None]:
    """Loops of any length are replayed, however often they depart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_gate, "WORTH", 0)
        for name in ("MOST_TRIES", "MOST_LOOKS", "MOST_LEFT"):
            patch.setattr(replay_driver, name, 10**9)
        yield


@contextmanager
def replays_off() -> Iterator[None]:
    """Every step runs as it is written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HOUSEKEEPING, "replays", False)
        yield


__all__ = ["early", "replays_off"]
