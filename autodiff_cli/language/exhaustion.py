"""What a program that uses up stack or memory ends with: E507 and E505."""

from __future__ import annotations

from ..errors import fail


class Exhaustion:
    """A context in which Python's errors of recursion and memory become diagnostics; `what` is
    being made there, `smaller` says what to do about its memory."""

    __slots__ = ("smaller", "what")

    def __init__(self, what: str, smaller: str = "use smaller shapes"):
        self.what = what
        self.smaller = smaller

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            return
        if issubclass(kind, RecursionError):
            raise fail(
                "E507", "the program recurses too deeply", help="use a loop instead of recursion"
            ) from None
        if issubclass(kind, MemoryError):
            raise fail(
                "E505", f"{self.what} needs more memory than there is", help=self.smaller
            ) from None
