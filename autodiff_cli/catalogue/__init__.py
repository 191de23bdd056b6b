"""Explanations of every error code and of the help topics; loaded only when help is asked for.

Invariant: `ENTRIES` has exactly the codes of `errors.KINDS`.
"""

from __future__ import annotations

import textwrap

from ..errors import KINDS
from .entry import Entry
from .graphs import GRAPHS
from .programs import PROGRAMS
from .runs import RUNS
from .topics import TOPICS

__all__ = ["ENTRIES", "TOPICS", "Entry", "explain_code"]

ENTRIES: dict[str, Entry] = {**PROGRAMS, **GRAPHS, **RUNS}


def explain_code(code: str) -> str:
    """The page of an error or warning code (`E302`, `w501`) as plain text.

    Raises KeyError for a code that does not exist.
    """
    asked = code.strip().upper()
    known = "E" + asked[1:] if asked.startswith("W") else asked
    entry = ENTRIES[known]
    parts = [
        f"{asked} ({KINDS[known]}): {entry.title}",
        textwrap.fill(" ".join(entry.cause.split()), 80, break_on_hyphens=False),
        "Wrong:\n" + _program(entry.wrong),
        "Right:\n" + _program(entry.right),
    ]
    return "\n\n".join(parts) + "\n"


def _program(text: str) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
