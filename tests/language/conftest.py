"""What tests of loops have in common."""

from __future__ import annotations

from typing import Any

import pytest

from autodiff_cli.language.replay import replay_driver


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each step that was replayed."""
    found: list[int] = []

    class Counted(replay_driver.Replay):
        def step(self, item: Any) -> bool:
            done = super().step(item)
            found.extend([1] * done)
            return done

    monkeypatch.setattr(replay_driver, "Replay", Counted)
    return found
