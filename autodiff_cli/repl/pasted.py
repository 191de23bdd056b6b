"""Text copied from another session: its prompts are taken off.

Invariant: text whose first line shows no prompt is left as it is.
"""

from __future__ import annotations

import re

# Ours, Python's, IPython's; the continuation prompts are recognised after one of these only.
_FIRST = re.compile(r"[ \t]*(?:ad> ?|>>> ?|In \[\d+\]: ?)")
_NEXT = re.compile(r"[ \t]*(?:ad> ?|>>> ?|In \[\d+\]: ?|\.\.\.:? ?|\.\. ?)")


def without_prompts(text: str) -> str:
    """The input of a copied session, without prompts; lines that its program printed are left
    out when prompts mark what was typed."""
    lines = text.split("\n")
    start = next((line for line in lines if line.strip()), "")
    first = _FIRST.match(start)
    if first is None:
        return text
    kept: list[str] = []
    for line in lines:
        match = _NEXT.match(line)
        if match is not None:
            last = kept[-1] if kept else ""
            if _FIRST.match(line) and last.strip() and last[0] in " \t":
                kept.append("")  # the empty line that ended a block may be missing
            kept.append(line[match.end() :])
        elif not line.strip():
            kept.append("")
    return "\n".join(kept)
