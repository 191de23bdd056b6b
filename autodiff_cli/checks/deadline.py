"""A time limit around a piece of work, where the system has timers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import fail


@contextmanager
def deadline(seconds: float | None, what: str = "--timeout") -> Iterator[None]:
    """Raise E508 when the time is over; only the main thread can be interrupted."""
    if seconds is None:
        yield
        return
    import signal
    import threading

    usable = hasattr(signal, "setitimer")
    if not usable or threading.current_thread() is not threading.main_thread():
        yield
        return
    limit = float(seconds)

    def expired(signum: int, frame: Any) -> None:
        raise fail(
            "E508",
            f"the time limit of {limit:g} s is reached",
            help=f"give it more time: {what} {limit * 10:g}",
        )

    before = signal.signal(signal.SIGALRM, expired)
    # It repeats, in case the first is swallowed where exceptions are ignored (a destructor).
    signal.setitimer(signal.ITIMER_REAL, limit, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
