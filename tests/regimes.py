"""The engine's ways of running, forced upon small arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from autodiff_cli.engine import evaluate as engine
from autodiff_cli.engine.fused import groups, tiles
from autodiff_cli.engine.plan import schedule
from autodiff_cli.engine.threads import WORKERS
from autodiff_cli.graph.node import Node

NEVER = 1 << 60


class _Everything(dict[int, None]):
    """Whatever is asked for was seen."""

    def __contains__(self, key: object) -> bool:
        return True


@contextmanager
def _patched(fuse_from: int, fixed_after: int, **tiling: int) -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (groups, schedule, engine):
            patch.setattr(module, "FUSE_FROM", fuse_from)
        patch.setattr(schedule, "FIXED_AFTER", fixed_after)
        patch.setattr(engine, "PLANS", {})
        patch.setattr(engine, "FEWEST", 1)
        patch.setattr(engine, "SEEN", _Everything())  # plans are made at first sight
        for name, value in tiling.items():
            patch.setattr(tiles, name, value)
        yield patch


@contextmanager
def fused(tile_bytes: int = 64, threads: int = 2) -> Iterator[pytest.MonkeyPatch]:
    """Whatever can be is fused, into tiles of a few elements that threads share."""
    with _patched(1, NEVER, TILE_BYTES=tile_bytes, SHARE_FROM=1e-9) as patch:
        patch.setattr(groups, "FEWEST_ROWS", 1)
        patch.setattr(WORKERS, "limit", threads)
        yield patch


@contextmanager
def fixed() -> Iterator[pytest.MonkeyPatch]:
    """Every plan runs twice, the second time in memory of its own where it can, and gives the same
    both times."""
    run = schedule.Plan.run

    def twice(plan: schedule.Plan, arrays: list[Any], own: bool = False) -> list[Any]:
        first = run(plan, arrays, own)
        before = [copied(value) for value in first]
        second = run(plan, arrays, own)
        for one, other, kept in zip(first, second, before, strict=True):
            same(one, kept)
            same(other, kept)
        return second

    with _patched(NEVER, 1) as patch:
        patch.setattr(schedule.Plan, "run", twice)
        yield patch


REGIMES = {"fused": fused, "fixed": fixed}


def plain(targets: list[Node], last: bool = False) -> None:
    """Node by node: what every regime must agree with."""
    engine.run(engine.plan(targets)[0], targets, last)


def copied(value: Any) -> Any:
    """A copy of an array, or of each of several."""
    return tuple([part.copy() for part in value]) if isinstance(value, tuple) else value.copy()


def same(found: Any, wanted: Any) -> None:
    """Equal in shape, dtype and every bit that means something."""
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
        return
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(found, wanted)


def close(found: np.ndarray, wanted: np.ndarray, ulps: int = 64) -> None:
    """Equal but for the order of sums."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    scale = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
    bound = ulps * float(np.finfo(wanted.dtype).eps)
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound * scale)
