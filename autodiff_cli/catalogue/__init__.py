"""Explanations of every error code, the help topics and the manual; loaded only when help is asked
for."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

from ..errors import kinds
from ..source import shipped


class Entry(NamedTuple):
    """What `autodiff help CODE` tells; `wrong` fails with the code and `right` runs; a comment
    gives the command line where one matters."""

    title: str
    cause: str
    wrong: str
    right: str


def _blocks(name: str, heading: str) -> dict[str, str]:
    """The text below each heading of a file."""
    _, *parts = re.split(heading, Path(__file__).with_name(name).read_text("utf-8"), flags=re.M)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _entry(text: str) -> Entry:
    title, _, rest = text.partition("\n")
    cause, _, programs = rest.partition("\nWrong:\n")
    wrong, right = (textwrap.dedent(p).strip("\n") for p in programs.split("\nRight:\n"))
    return Entry(title, cause.replace("\n", " "), wrong, right)


ENTRIES = {code: _entry(text) for code, text in _blocks("errors.txt", r"^(E\d{3}) \S+: ").items()}
TOPICS = _blocks("topics.txt", r"^== (\S+)\n")


_FOLDER = shipped("docs")
MANUAL = {path.stem: path for path in sorted(Path(_FOLDER).glob("*.md"))} if _FOLDER else {}
"""Pages of the manual, in Markdown, by name."""


def pages_with(word: str, lines: int | None = None) -> list[str]:
    """Names of the pages that have a word; with `lines` within so many of their first lines."""
    sought = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    texts = {name: path.read_text("utf-8").split("\n") for name, path in MANUAL.items()}
    return [name for name, text in texts.items() if sought.search("\n".join(text[:lines]))]


def explain_code(code: str) -> str:
    """The page of an error or warning code (`E302`, `w501`) as plain text.

    Raises KeyError for a code that does not exist.
    """
    asked = code.strip().upper()
    known = "E" + asked[1:] if asked.startswith("W") else asked
    entry = ENTRIES[known]
    parts = [
        f"{asked} ({kinds()[known]}): {entry.title}",
        textwrap.fill(entry.cause, 80, break_on_hyphens=False),
        "Wrong:\n" + textwrap.indent(entry.wrong, "    "),
        "Right:\n" + textwrap.indent(entry.right, "    "),
    ]
    return "\n\n".join(parts) + "\n"
