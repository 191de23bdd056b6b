"""A time limit around a piece of work, where the system has timers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import fail


class Alarm:
    """Whether the signal is ours, and what to say when it comes."""

    __slots__ = ("limit", "ours", "what")

    def __init__(self) -> None:
        self.ours = False
        self.limit = 0.0
        self.what = ""


ALARM = Alarm()


def _expired(signum: int, frame: Any) -> None:
    raise fail(
        "E508",
        f"the time limit of {ALARM.limit:g} s is reached",
        help=f"give it more time: {ALARM.what} {ALARM.limit * 10:g}",
    )


def _possible() -> bool:
    """Whether work can be interrupted: only where there are timers, and in the main thread."""
    import signal
    import threading

    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


@contextmanager
def alarms() -> Iterator[None]:
    """What all deadlines inside have in common: setting it costs as much as some small programs."""
    if ALARM.ours or not _possible():
        yield
        return
    import signal

    before = signal.signal(signal.SIGALRM, _expired)
    ALARM.ours = True
    try:
        yield
    finally:
        ALARM.ours = False
        signal.signal(signal.SIGALRM, before)


@contextmanager
def deadline(seconds: float | None, what: str = "--timeout") -> Iterator[None]:
    """Raise E508 when the time is over."""
    if seconds is None or not _possible():
        yield
        return
    from signal import ITIMER_REAL, setitimer

    with alarms():
        ALARM.limit, ALARM.what = float(seconds), what
        # It repeats, in case the first is swallowed where exceptions are ignored (a destructor).
        setitimer(ITIMER_REAL, seconds, 0.5)
        try:
            yield
        finally:
            setitimer(ITIMER_REAL, 0)
