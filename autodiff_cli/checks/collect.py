"""Which files are checked: programs named, and `*.expr` below folders.

Invariant: the order is sorted and every file comes once; hidden, ignored and `_`-files of folders
are left out, as are links out of them; a file named by the user never is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from glob import escape

SUFFIX = ".expr"
LONGEST_PATTERN = 4096  # no path is longer
ESCAPED = re.compile(r"(\[[^]]*\])|\\(.)")  # a sign that means itself, outside of `[...]`


class Missing(Exception):
    """A path on the command line that does not exist."""


def collect(paths: Iterable[str]) -> list[str]:
    """The files to check; `Missing` for a path that is not there."""
    found: dict[str, str] = {}
    for path in paths:
        if os.path.isdir(path):
            for file in sorted(_below(path)):
                found.setdefault(os.path.realpath(file), file)
        elif os.path.lexists(path):
            found.setdefault(os.path.realpath(path), path)
        else:
            raise Missing(path)
    return list(found.values())


def orphans(paths: Iterable[str]) -> list[str]:
    """`.expr.snap` files below folders whose program is gone."""
    found = []
    for path in paths:
        if os.path.isdir(path):
            for file in _below(path, SUFFIX + ".snap"):
                if not os.path.exists(file.removesuffix(".snap")):
                    found.append(file)
    return sorted(found)


def arrays_beside(snapshot: str) -> str:
    """Where `--full` puts all data of a snapshot."""
    return snapshot.removesuffix(".snap") + ".npz"


def _below(top: str, suffix: str = SUFFIX) -> list[str]:
    found: list[str] = []
    ignored = Ignored(top)
    for folder, folders, files in os.walk(top):
        ignored.read(folder)
        folders[:] = [
            name
            for name in folders
            if not name.startswith((".", "_")) and not ignored.has(os.path.join(folder, name), True)
        ]
        for name in files:
            path = os.path.join(folder, name)
            if not name.endswith(suffix) or name.startswith((".", "_")):
                continue
            if not ignored.has(path, False) and _is_text(path) and not leads_out(path, top):
                found.append(path if top != "." else os.path.relpath(path, "."))
    return found


def _is_text(path: str) -> bool:
    """Whether reading can end: not of pipes and devices. Of what is not there reading says why."""
    return os.path.isfile(path) or not os.path.exists(path)


def leads_out(path: str, top: str) -> bool:
    """Whether a file is a link out of a folder, in which others may have put it."""
    within = os.path.join(os.path.realpath(top), "")
    return os.path.islink(path) and not os.path.realpath(path).startswith(within)


class Ignored:
    """The patterns of the `.gitignore` files from the repository's root down to a folder."""

    def __init__(self, top: str):
        self.rules: list[tuple[str, list[str], bool, bool]] = []
        folder = os.path.abspath(top)
        above = []
        while not os.path.isdir(os.path.join(folder, ".git")):
            parent = os.path.dirname(folder)
            if parent == folder:
                return
            above.append(parent)
            folder = parent
        for parent in reversed(above):
            self.read(parent)

    def read(self, folder: str) -> None:
        """Add the patterns of one folder."""
        path = os.path.join(folder, ".gitignore")
        if not os.path.isfile(path):
            return
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                lines = f.read(1 << 20).splitlines()
        except OSError:
            return
        for line in lines:
            line = line.strip()
            if line.startswith("#"):
                continue
            keep = line.startswith("!")
            pattern = line.removeprefix("!")
            only_folders = pattern.endswith("/")
            pattern = pattern.rstrip("/")
            if len(pattern) > LONGEST_PATTERN:
                continue
            pattern = ESCAPED.sub(lambda found: found[1] or escape(found[2]), pattern)
            parts = pattern.lstrip("/").split("/")
            parts = parts if "/" in pattern else ["**", *parts]
            if parts[-1] == "**":  # what is inside, not the folder itself
                parts.insert(-1, "*")
            self.rules.append((os.path.abspath(folder), parts, only_folders, keep))

    def has(self, path: str, folder: bool) -> bool:
        """Whether a path is ignored; the last pattern that matches decides."""
        absolute = os.path.abspath(path)
        ignored = False
        for base, parts, only_folders, keep in self.rules:
            if only_folders and not folder:
                continue
            prefix = base.rstrip(os.sep) + os.sep
            names = absolute.removeprefix(prefix)
            if names != absolute and _fits(names.split(os.sep), parts):
                ignored = not keep
        return ignored


def _fits(names: list[str], parts: list[str]) -> bool:
    """Whether a path is one that a pattern means, name by name: in linear time, whatever the
    pattern."""
    places = set(_passed(0, parts))
    for name in names:
        stay = {at for at in places if parts[at : at + 1] == ["**"]}
        on = {at + 1 for at in places - stay if at < len(parts) and fnmatchcase(name, parts[at])}
        places = {after for at in stay | on for after in _passed(at, parts)}
    return len(parts) in places


def _passed(at: int, parts: list[str]) -> Iterator[int]:
    """A place in a pattern, and those after it that no name is needed for."""
    yield at
    while parts[at : at + 1] == ["**"]:
        at += 1
        yield at


# -- -k -------------------------------------------------------------------------------------------


class BadKeyword(Exception):
    """A `-k` expression that cannot be read."""


def matches(keyword: str, item_id: str) -> bool:
    """Whether an item is chosen by `-k`: words in its id, `and`, `or`, `not`, parentheses."""
    if not keyword.strip():
        return True
    words = re.findall(r"[()]|(?:[^\s()\[\]]|\[[^\]]*\]?)+", keyword)
    value, rest = _either(words, item_id.lower())
    if rest:
        raise BadKeyword(f"`{rest[0]}` is not expected in -k {keyword!r}")
    return value


def _either(words: list[str], text: str) -> tuple[bool, list[str]]:
    either = both = False
    words = ["or", *words]
    while words and words[0] in ("or", "and"):
        value, rest = _single(words[1:], text)
        if words[0] == "or":
            either, both = either or both, value
        words, both = rest, both and value
    return either or both, words


def _single(words: list[str], text: str) -> tuple[bool, list[str]]:
    negated = False
    while words and words[0] == "not":
        negated, words = not negated, words[1:]
    if not words or words[0] in (")", "and", "or"):
        raise BadKeyword("-k ends where a word is expected")
    if words[0] == "(":
        value, words = _either(words[1:], text)
        if not words or words[0] != ")":
            raise BadKeyword("a `(` of -k is never closed")
    else:
        word = words[0].lower()
        value = fnmatchcase(text, f"*{word}*") if "*" in word else word in text
    return value != negated, words[1:]
