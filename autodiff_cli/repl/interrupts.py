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

from ..checks.deadline import SOON, delicate


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt here, also where the process ignored it before."""
    with _handling(_interrupt):
        yield


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


def _interrupt(number: int, frame: Any) -> None:
    if delicate(frame):
        again = threading.Timer(SOON, signal.raise_signal, (signal.SIGINT,))
        again.daemon = True
        again.start()
    else:
        raise KeyboardInterrupt
