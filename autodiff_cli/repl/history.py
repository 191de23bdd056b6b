"""The history file: one entry for each input, appended at once, without repetitions.

A file that cannot be read or written is no reason to fail: the session goes on without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

MOST = 10_000  # entries that are offered


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
        return SafeHistory(path)
    except OSError:
        return InMemoryHistory()


class SafeHistory(FileHistory):
    """prompt_toolkit's file, read without repetitions and written without ever failing."""

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
