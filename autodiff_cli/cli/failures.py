"""What failed the last time, for `check --lf`: kept for each folder in the user's cache.

Invariant: it is a convenience, so neither reading nor writing it ever fails.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping

KEPT = 10_000  # ids


def _path(variables: Mapping[str, str]) -> str:
    home = variables.get("XDG_CACHE_HOME") or os.path.join(
        variables.get("HOME") or os.path.expanduser("~"), ".cache"
    )
    key = zlib.crc32(os.fsencode(os.getcwd()))
    return os.path.join(home, "autodiff", f"failed-{key:08x}.json")


def last_failures(variables: Mapping[str, str]) -> list[str]:
    """The ids of the items that failed the last time in this folder."""
    try:
        with open(_path(variables), encoding="utf-8", errors="surrogateescape") as file:
            known = json.load(file)
        if known["folder"] != os.getcwd():  # another one of the same key
            return []
        return [text for text in known["failed"] if isinstance(text, str)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def remember(variables: Mapping[str, str], checked: set[str], failed: list[str]) -> None:
    """Keep the ids that failed now, and those that failed before and were not checked now."""
    failed = [*failed, *(i for i in last_failures(variables) if i not in checked)]
    try:
        path = _path(variables)
        if not failed and not os.path.exists(path):
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump({"folder": os.getcwd(), "failed": failed[:KEPT]}, file)
        os.replace(temporary, path)
    except (OSError, ValueError):
        return
