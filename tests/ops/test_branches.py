"""Branches on rank, sizes, dtype or a missing argument in `ops/` are taken by what PyTorch
recorded; which ones are is listed by `python -m tests.oracles.branches`."""

from __future__ import annotations

from tests.oracles.branches import LIST, listed

MOST = 6  # taken by no recorded program or sample; this number only gets smaller


def test_every_branch_was_looked_at() -> None:
    recorded = dict(line.split(" ", 1)[::-1] for line in LIST.read_text("utf-8").splitlines())
    unknown = listed() - set(recorded)
    assert not unknown, "run python -m tests.oracles.branches for:\n" + "\n".join(sorted(unknown))
    assert list(recorded.values()).count("-") <= MOST
