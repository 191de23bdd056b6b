"""Ctrl-C while a statement runs: it ends the statement, never the session.

The interrupt is raised between two operations, as Python raises it: a kernel runs to its end. It
waits in the middle of an import, because a module that was read half would stay so, and in
finalizers and callbacks of the collector, where Python drops what is raised.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_PAUSE = 0.02  # seconds until an interrupt that came at a bad time is tried again


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
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    at = frame
    while at is not None:
        code = at.f_code
        importing = code.co_filename.startswith("<frozen importlib")
        if importing or code.co_name == "__del__" or code in callbacks:
            again = threading.Timer(_PAUSE, signal.raise_signal, (signal.SIGINT,))
            again.daemon = True
            again.start()
            return
        at = at.f_back
    raise KeyboardInterrupt
