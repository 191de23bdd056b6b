"""The history file: one entry for each input, appended at once, without repetitions.

A file that cannot be read or written is no reason to fail: the session goes on without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

MOST = 10_000  # entries that are offered
COMPACTED = 4 << 20  # bytes; a longer file is written anew at the start of a session


def history_path(variables: Mapping[str, str]) -> str:
    """`AUTODIFF_HISTORY`, else the user's state folder; empty: no file."""
    given = variables.get("AUTODIFF_HISTORY")
    if given is not None:
        return os.path.expanduser(given)
    state = variables.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "autodiff", "history")


def open_history(variables: Mapping[str, str]) -> History:
    """The history of interactive sessions."""
    path = history_path(variables)
    if not path:
        return InMemoryHistory()
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        history = SafeHistory(path)
        if os.path.exists(path) and os.path.getsize(path) > COMPACTED:
            history.compact()
        return history
    except OSError:
        return InMemoryHistory()


class SafeHistory(FileHistory):
    """prompt_toolkit's file, read without repetitions and written without ever failing."""

    def __init__(self, path: str):
        super().__init__(path)
        self.path = path

    def load_history_strings(self) -> Iterable[str]:
        try:
            newest_first = list(super().load_history_strings())
        except OSError:
            return
        yield from list(dict.fromkeys(newest_first))[:MOST]

    def append_string(self, string: str) -> None:
        strings = self.get_strings()
        if not strings or strings[-1] != string:
            super().append_string(string)

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string.encode("utf-8", "replace").decode("utf-8"))

    def compact(self) -> None:
        """Keep what is offered, oldest first."""
        kept = list(self.load_history_strings())[::-1]
        temporary = f"{self.path}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            for entry in kept:
                lines = "".join(f"+{line}\n" for line in entry.split("\n"))
                file.write(f"\n# {datetime.now()}\n{lines}")
        os.replace(temporary, self.path)
