"""What an answer is: plain data between the analysis and those who show it."""

from __future__ import annotations

from dataclasses import dataclass

from ..source import Span


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a gradient is what it is: one of the causes that `schema/why-1.json` lists, the place of
    the guilty expression, one sentence with the numbers, further places with a few words."""

    code: str
    span: Span | None
    message: str
    label: str = ""
    places: tuple[tuple[Span, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict with its cause. `line` is that of the guilty expression; `fix` the whole
    program with the repair in place, only after it was run; `notes` say more."""

    name: str
    verdict: str
    cause: str
    line: int | None
    message: str
    fix: str | None = None
    span: Span | None = None
    label: str = ""
    places: tuple[tuple[Span, str], ...] = ()
    notes: tuple[str, ...] = ()
