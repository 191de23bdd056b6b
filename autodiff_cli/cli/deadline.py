"""`--timeout`: a time limit on what a command computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import fail


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise E508 in the main thread when the time is over."""
    if seconds is None:
        yield
        return
    import signal

    if not hasattr(signal, "setitimer"):  # Windows has no timers; the limit on steps remains
        yield
        return

    def expired(signum: int, frame: Any) -> None:
        raise fail(
            "E508",
            f"the time limit of {seconds:g} s is reached",
            help=f"give it more time: --timeout {seconds * 10:g}",
        )

    before = signal.signal(signal.SIGALRM, expired)
    # It repeats, in case the first is swallowed where exceptions are ignored (a destructor).
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
