"""`--watch`: run again when a file changes that the last run read.

Invariant: a change while the command runs is seen too, and a file that is being written is read
when it has come to rest.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable

from ..render.text import WORD, printable
from .streams import Environment, is_terminal

POLL = 0.1  # seconds between two looks, and how long a file must be at rest

Stamps = dict[str, tuple[int, int, int] | None]


def stamps_of(paths: Iterable[str]) -> Stamps:
    """What tells one state of a file from another; None of a file that is not there."""
    found: Stamps = {}
    for path in paths:
        try:
            status = os.stat(path)
            found[path] = status.st_mtime_ns, status.st_size, status.st_ino
        except (OSError, ValueError):
            found[path] = None
    return found


def watch(run: Callable[[], set[str]], files: Iterable[str], env: Environment) -> None:
    """Run, wait for a change of `files` or of what the run says that it read, run again; ends by
    an interrupt only."""
    paths = set(files)
    while True:
        before = stamps_of(paths)
        pipes = [path for path in paths if _is_pipe(path)]
        for path in pipes:
            env.complain(f"cannot watch `{printable(path, WORD)}`: it is a pipe")
        read = set() if pipes else run()
        # What only this run read is taken as it is now.
        before |= stamps_of(read - paths)
        paths |= read
        env.flush()
        if is_terminal(env.stderr):
            shown = sorted({printable(os.path.basename(path), WORD) for path in paths})
            more = f" and {len(shown) - 4} more" if len(shown) > 5 else ""
            names = ", ".join(shown[: 4 if more else 5])
            env.note(f"watching {names}{more} (Ctrl-C ends)")
        _changed(before)
        if is_terminal(env.stdout) and not env.dumb():
            env.write("\x1b[H\x1b[2J\x1b[3J")


def _is_pipe(path: str) -> bool:
    """Who opens a pipe waits for its other end."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _changed(before: Stamps) -> None:
    """Return when a file differs from `before` and has come to rest."""
    while (now := stamps_of(before)) == before:
        time.sleep(POLL)
    while True:
        time.sleep(POLL)
        later = stamps_of(before)
        if later == now:
            return
        now = later
