"""Ctrl-C while a statement runs: it ends the statement, never the session.

The interrupt is raised between two operations, as Python raises it: a kernel runs to its end. It
waits where nothing may be raised.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..checks.deadline import REPEATED, SOON, delicate


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt here, also where the process ignored it before: again and
    again until this is left, in case the first is swallowed where exceptions are ignored."""
    timers: list[threading.Timer] = []

    def interrupt(number: int, frame: Any) -> None:
        wait = delicate(frame)
        timers.append(threading.Timer(SOON if wait else REPEATED, _again))
        timers[-1].daemon = True
        timers[-1].start()
        if not wait:
            raise KeyboardInterrupt

    with _handling(interrupt):
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits: the session is being put back together."""
    with _handling(_wait):
        yield


@contextmanager
def _handling(action: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, action)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _wait(number: int, frame: Any) -> None:
    """Not SIG_IGN, which an editor that is started meanwhile would inherit."""


def _again() -> None:
    signal.raise_signal(signal.SIGINT)
