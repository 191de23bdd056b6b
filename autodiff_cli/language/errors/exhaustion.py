"""What a program that uses up stack, memory or digits ends with: E507 and E505."""

from __future__ import annotations

from ...ended import no_memory
from ...errors import AutodiffError, fault
from ...graph.sizes import bytes_text
from ...graph.state import STATE
from ...outside import OUTSIDE
from ..syntax.literals.numbers import MAX_DIGITS


def out_of_memory(what: str, smaller: str = "use less at a time") -> AutodiffError:
    """E505 for Python's MemoryError, at the expression that is being evaluated."""
    OUTSIDE.relieve()
    most = bytes_text(STATE.max_bytes) if OUTSIDE.watched else ""
    return no_memory(what, smaller, most).amend(span=STATE.span)


def too_many_digits(done: str) -> AutodiffError:
    """The failure of Python's bound, which programs may catch."""
    return fault("E504 integer-more-digits-cannot", MAX_DIGITS, done=done, span=STATE.span)


class Exhaustion:
    """A context in which Python's errors of recursion and memory become diagnostics; `what` is
    being made there, `smaller` says what to do about its memory."""

    __slots__ = ("smaller", "what")

    def __init__(self, what: str, smaller: str = "use less at a time"):
        self.what = what
        self.smaller = smaller

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            return
        if issubclass(kind, RecursionError):
            raise fault("E507 program-recurses-too-deeply") from None
        if issubclass(kind, MemoryError):
            raise out_of_memory(self.what, self.smaller) from None
