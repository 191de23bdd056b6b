"""A time limit around a piece of work, where the system has timers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Any

from ..ended import out_of_time
from ..errors import AutodiffError
from ..outside import DEADLINE, OUTSIDE

REPEATED = 0.5  # seconds between two alarms once the time is over
SOON = 0.02  # until the next try where the first alarm came at a bad time


class Alarm:
    """Whether the signal is ours, what to say when it comes, and how the program is ended."""

    __slots__ = ("end", "limit", "ours", "what")

    def __init__(self) -> None:
        self.end: Callable[[AutodiffError], None]
        self.ours = False
        self.limit = 0.0
        self.what = ""


ALARM = Alarm()


def _expired(signum: int, frame: Any) -> None:
    error = out_of_time(ALARM.limit, ALARM.what)
    ALARM.end(error)
    if delicate(frame):
        from signal import ITIMER_REAL, setitimer

        setitimer(ITIMER_REAL, SOON, REPEATED)
    else:
        raise error


def go_on_after(error: AutodiffError) -> None:
    """Go on after the failure of a part of the work, unless it is that the time is over."""
    if error.code == "E508":
        raise error


def delicate(frame: FrameType | None) -> bool:
    """Whether nothing may be raised here by a signal: in the middle of an import, because a module
    that was read half would stay so, and in finalizers and callbacks of the collector and of weak
    references, where Python drops what is raised."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if (
            code.co_filename.startswith(("<frozen importlib", weakref.__file__))
            or code.co_name == "__del__"
            or code in callbacks
        ):
            return True
        frame = frame.f_back
    return False


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
    """Raise E508 when the time is over. A timer that was set before goes on afterwards; inside of
    a deadline that comes sooner, that one holds."""
    if seconds is None or not _possible():
        yield
        return
    from signal import ITIMER_REAL, getitimer, setitimer

    from ..graph.state import STATE

    if ALARM.ours and 0 < getitimer(ITIMER_REAL)[0] <= seconds:
        yield
        return
    ALARM.end = STATE.end
    before = ALARM.limit, ALARM.what, OUTSIDE.seconds[DEADLINE]
    with alarms():
        ALARM.limit, ALARM.what = float(seconds), what
        # It repeats, in case the first is swallowed where exceptions are ignored.
        began = monotonic()
        rest, again = setitimer(ITIMER_REAL, seconds, REPEATED)
        OUTSIDE.seconds[DEADLINE] = monotonic() + seconds
        try:
            yield
        finally:
            setitimer(ITIMER_REAL, rest and max(rest - (monotonic() - began), SOON), again)
            ALARM.limit, ALARM.what, OUTSIDE.seconds[DEADLINE] = before
