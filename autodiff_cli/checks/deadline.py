"""A time limit around a piece of work, where the system has timers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from types import CodeType, FrameType
from typing import Any

from ..ended import out_of_time
from ..errors import AutodiffError
from ..outside import DEADLINE, OUTSIDE

REPEATED = 0.5  # seconds between two alarms once the time is over
SOON = 0.02  # until the next try where the first alarm came at a bad time
EARLY = 0.001  # that a timer may go off before it is due


class Alarm:
    """The only timer that there is, shared by the deadline that holds and by the host of the
    library: when each is due, what to say and how the program is ended, the host's handler."""

    __slots__ = ("again", "due", "end", "host", "host_due", "limit", "ours", "what")

    def __init__(self) -> None:
        self.end: Callable[[AutodiffError], None]
        self.ours = False  # whether the signal is handled here
        self.due = self.host_due = inf
        self.again = self.limit = 0.0
        self.what = ""
        self.host: Any = None

    def set(self) -> None:
        """The timer goes off when the first of both is due. Ours repeats, in case the first is
        swallowed where exceptions are ignored."""
        from signal import ITIMER_REAL, setitimer

        due = min(self.due, self.host_due)
        seconds = 0.0 if due == inf else max(due - monotonic(), SOON)
        setitimer(ITIMER_REAL, seconds, self.again if self.due == inf else REPEATED)


ALARM = Alarm()


def _expired(signum: int, frame: Any) -> None:
    hosts = monotonic() + EARLY >= ALARM.host_due
    if not (hosts or importing(frame)):  # whose words need modules, perhaps those
        error = out_of_time(ALARM.limit, ALARM.what)
        ALARM.end(error)
    if delicate(frame):
        from signal import ITIMER_REAL, setitimer

        setitimer(ITIMER_REAL, SOON, REPEATED)
    elif hosts:
        _tell_the_host(signum)
    else:
        raise error


def _tell_the_host(signum: int) -> None:
    import signal

    ALARM.host_due = monotonic() + ALARM.again if ALARM.again else inf
    ALARM.set()
    if ALARM.host is not None:
        signal.signal(signum, ALARM.host)
        try:
            signal.raise_signal(signum)
        finally:
            signal.signal(signum, _expired)


def told_the_host(error: BaseException) -> bool:
    """Whether the host's own handler raised this."""
    from traceback import walk_tb

    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    return any(frame.f_code is _tell_the_host.__code__ for frame in frames)


def go_on_after(error: AutodiffError) -> None:
    """Go on after the failure of a part of the work, unless it is that the time is over."""
    if error.code == "E508":
        raise error


def importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported."""
    return any(code.co_filename.startswith("<frozen importlib") for code in _running(frame))


def delicate(frame: FrameType | None) -> bool:
    """Whether nothing may be raised here by a signal: in the middle of an import, because a module
    that was read half would stay so, and in finalizers and callbacks of the collector and of weak
    references, where Python drops what is raised."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    return importing(frame) or any(
        code.co_filename.startswith(weakref.__file__)
        or code.co_name == "__del__"
        or code in callbacks
        for code in _running(frame)
    )


def _running(frame: FrameType | None) -> Iterator[CodeType]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


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

    rest, ALARM.again = signal.getitimer(signal.ITIMER_REAL)
    ALARM.host_due = monotonic() + rest if rest else inf
    ALARM.host = signal.signal(signal.SIGALRM, _expired)
    ALARM.ours = True
    try:
        yield
    finally:
        ALARM.ours = False
        signal.signal(signal.SIGALRM, ALARM.host)
        ALARM.host = None


@contextmanager
def deadline(seconds: float | None, what: str = "--timeout") -> Iterator[None]:
    """Raise E508 when the time is over. A timer that was set before goes on, and goes off when it
    is due; inside of a deadline that comes sooner, that one holds."""
    if seconds is None or not _possible():
        yield
        return
    from ..graph.state import STATE

    with alarms():
        due = monotonic() + seconds
        if ALARM.due <= due:
            yield
            return
        before = ALARM.due, ALARM.limit, ALARM.what, OUTSIDE.seconds[DEADLINE]
        ALARM.end = STATE.end
        ALARM.due, ALARM.limit, ALARM.what = due, float(seconds), what
        OUTSIDE.seconds[DEADLINE] = due
        ALARM.set()
        try:
            yield
        finally:
            ALARM.due, ALARM.limit, ALARM.what, OUTSIDE.seconds[DEADLINE] = before
            ALARM.set()
