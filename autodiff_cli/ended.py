"""What a limit, or the end of a process in the middle of its work, says about the program."""

from __future__ import annotations

from .errors import AutodiffError, fault
from .outside import MEMORY, STACK, STARVED, TIME, Lost
from .source import Source, Span


def explained(
    lost: Lost, source: Source | None, limit: float | None, memory: str = ""
) -> AutodiffError:
    """What it means for the program that its process is gone; `memory` is what it may have."""
    start, end = lost.statement
    span = Span(source, start, end) if source is not None and end else None
    if lost.limit == TIME:
        error = stubborn(limit)
    elif lost.limit == MEMORY or lost.code in STARVED:
        error = no_memory("the program", most=memory)
    else:
        error = death(lost.code)
    return error.amend(span=span, label="this statement ran" if span is not None else "")


def death(code: int) -> AutodiffError:
    """What the end of a process, an exit code or a signal with a minus, says about the program."""
    if code in STARVED:
        return no_memory("the program")
    if code in STACK:
        return fault("E509 program-overflowed-interpreter-s")
    if code == -9:  # nobody kills like that but a system without memory, or a person
        return fault("E505 process-ran-program-was")
    reason = f"signal {-code}" if code < 0 else f"code {code}"
    return fault("E900 internal-error-process-ran", reason)


def stubborn(limit: float | None, what: str = "--timeout") -> AutodiffError:
    """E508 of a process that did not stop by itself, in the middle of a single call."""
    error = out_of_time(limit or 0.0, what)
    return error.amend(message=f"{error.message}; its process did not stop and was ended")


def no_memory(what: str, smaller: str = "use less at a time", most: str = "") -> AutodiffError:
    """E505 for memory that ran out, of which there was at most so much."""
    error = fault("E505 ran-out-memory", what, smaller)
    return error.amend(message=f"{what} needs more than {most}") if most else error


def out_of_time(limit: float, what: str) -> AutodiffError:
    """E508."""
    return fault("E508 time-limit-s-reached", limit, what, limit * 10)
