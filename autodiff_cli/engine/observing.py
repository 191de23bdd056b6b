"""Who observes evaluations, while somebody does; nobody else pays for it."""

from __future__ import annotations

from typing import Any


class Observed:
    """`by` is the observer (`profile.Observer`), or None."""

    __slots__ = ("by",)

    def __init__(self) -> None:
        self.by: Any = None


OBSERVED = Observed()
