"""What every front end says; importing this costs nothing."""

from __future__ import annotations

from typing import NamedTuple

from ..version import __version__

LEAVE = "Ctrl-D or :quit to leave"


class Hint(NamedTuple):
    """A line below the input. `error`: it is shown only after a rest, because what is being typed
    is seldom right."""

    text: str = ""
    error: bool = False


def banner(names: str, width: int) -> str:
    """The one line above the first prompt; the names only where there is room."""
    line = f"autodiff {__version__}   :help  :quit (Ctrl-D)"
    return f"{line}   {names}" if len(line) + 3 + len(names) <= width else line
