"""Branches on rank, sizes, dtype or a missing argument in `ops/` are taken by what PyTorch
recorded; which ones are is listed by `python -m tests.oracles.branches`."""

from __future__ import annotations

from tests.oracles.branches import LIST, listed

# Not taken by any recorded program or sample; this number only gets smaller.
MOST = 0


def test_every_branch_was_looked_at() -> None:
    recorded = [line.partition(" ") for line in LIST.read_text("utf-8").splitlines()]
    titles = {title for _, _, title in recorded}
    assert titles == set(listed()), "run python -m tests.oracles.branches"
    assert sum(sign == "-" for sign, _, _ in recorded) <= MOST
