"""A sign of life on standard error while a program runs long; terminals only.

Invariant: nothing appears in the first second, the line is gone before anything else is written,
and it never takes more than one line of the terminal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..render.text import clip, for_encoding, printable
from .streams import Environment, is_terminal

PATIENCE = 1.0  # seconds without a sign
PAUSE = 0.2  # between two signs


class Sign:
    """`demo.expr  3.2 s  12,345 steps`, drawn again and again by a thread."""

    def __init__(self, env: Environment, text: str, count: Callable[[], str]):
        import threading

        self.env = env
        self.text = text
        self.count = count
        self.started = time.monotonic()
        self.shown = False
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        pause = PATIENCE
        while not self.over.wait(pause):
            pause = PAUSE
            with self.lock:
                if not self.over.is_set():
                    self._draw()

    def _draw(self) -> None:
        seconds = f"{time.monotonic() - self.started:.1f} s"
        text = "  ".join(filter(None, (self.text, seconds, self.count())))
        shown = clip(text, self.env.width(self.env.stderr) - 1)
        self._write(for_encoding(f"\r{shown}\x1b[K", getattr(self.env.stderr, "encoding", None)))
        self.shown = True

    def _write(self, text: str) -> None:
        try:
            self.env.stderr.write(text)
            self.env.stderr.flush()
        except (OSError, ValueError, AttributeError):  # the terminal went away
            self.over.set()

    def stop(self) -> None:
        """Take the line away for good."""
        with self.lock:
            self.over.set()
            if self.shown:
                self._write("\r\x1b[K")


@contextmanager
def waiting(env: Environment, name: str, quiet: bool, cluster: Any) -> Iterator[None]:
    """Show that the program called `name` still runs, and how far it is, by steps if no cluster
    counts blocks, where somebody may be looking."""
    if quiet or not is_terminal(env.stderr) or env.dumb() or env.variables.get("CI"):
        yield
        return
    from ..graph.state import STATE

    state = vars(STATE)  # this thread's
    steps = lambda: f"{n:,} steps" if (n := state["steps"]) else ""  # noqa: E731  # the type is `Sign`'s
    sign: Any = Sign(env, f"running {printable(name, 60)}", cluster.progress if cluster else steps)
    env.sign = sign
    try:
        yield
    finally:
        env.sign = None
        sign.stop()
