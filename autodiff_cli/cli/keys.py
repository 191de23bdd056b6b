"""One key from a terminal, without waiting for a line.

Invariant: the terminal is as it was afterwards, also when the wait is interrupted.
"""

from __future__ import annotations

import os
from typing import Any


def read_key(stream: Any) -> str:
    """The next key in lower case; `q` at the end of input. Ctrl-C interrupts as ever."""
    try:
        import termios
        import tty

        number = stream.fileno()
        before = termios.tcgetattr(number)
    except (ImportError, OSError, ValueError, AttributeError):
        return _from_line(stream)
    except Exception as error:  # termios.error is no OSError
        if type(error).__name__ != "error":
            raise
        return _from_line(stream)
    try:
        tty.setcbreak(number)
        data = os.read(number, 32)  # a key that sends several bytes is one key
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
    key = data.decode("utf-8", "replace").lower()
    return "q" if key in ("", "\x04", "\x1b") else key


def _from_line(stream: Any) -> str:
    """Where there are no single keys: the first letter of a line."""
    line = stream.readline()
    return "q" if not line else line.strip()[:1].lower()
