"""A progress bar on standard error, for terminals and only after a second of waiting.

Invariant: whoever writes a line calls `clear` first, so the bar never shares a line with output.
"""

from __future__ import annotations

import time
from typing import Any

WIDTH = 20
PATIENCE = 1.0


class Bar:
    """`[########            ] 4/11`; without a stream it does nothing."""

    def __init__(self, stream: Any, total: int):
        self.stream = stream
        self.total = total
        self.started = time.perf_counter()
        self.shown = False

    def show(self, done: int) -> None:
        """Draw the bar once there was time to wonder, while something is left to wait for."""
        late = time.perf_counter() - self.started > PATIENCE
        if self.stream is None or not late or done >= self.total:
            return
        filled = "#" * (WIDTH * done // self.total)
        self.shown = self._write(f"\r\x1b[K[{filled:<{WIDTH}}] {done}/{self.total}")

    def clear(self) -> None:
        """Take the bar away."""
        if self.shown:
            self._write("\r\x1b[K")
            self.shown = False

    def _write(self, text: str) -> bool:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # a terminal that went away shows no bar
            self.stream = None
        return self.stream is not None
