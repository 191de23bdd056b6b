"""A script on standard input in pieces: commands, and the statements between them one by one.

Every piece comes with the number of lines above it, so that messages have the script's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..language.syntax.lexer import tokenize
from ..language.syntax.tokens import DEDENT, END, ERROR, INDENT, KIND, NEWLINE
from ..source import Source
from .pasted import without_prompts

_COMMAND = re.compile(r"[:%][A-Za-z]|\?{1,2}\s*\w|[\w.]+\?{1,2}\s*$")
_GOES_ON = frozenset(KIND[name] for name in ("ELSE", "ELIF", "EXCEPT", "FINALLY"))
_AT = KIND["AT"]


def pieces(text: str) -> Iterator[tuple[str, int]]:
    """The inputs of a script, each as it would be entered, and how many lines stand above it."""
    text = without_prompts(text)
    chunk: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if _COMMAND.match(line):
            yield from _statements(chunk, number - len(chunk))
            chunk = []
            yield line, number
        else:
            chunk.append(line)
    yield from _statements(chunk, text.count("\n") + 1 - len(chunk))


def _statements(lines: list[str], before: int) -> Iterator[tuple[str, int]]:
    text = "\n".join(lines)
    if not text.strip():
        return
    start = 0
    for end in [*_ends(text), len(text)]:
        if text[start:end].strip():
            yield text[start:end].rstrip("\n") + "\n\n", before
        before += text.count("\n", start, end)
        start = end


def _ends(text: str) -> Iterator[int]:
    """Offsets of the lines after which a statement at the outermost level is complete."""
    source = Source(text)
    tokens = tokenize(source)
    kinds, starts = tokens.kinds, tokens.starts
    depth = 0
    first = 0
    for at, kind in enumerate(kinds):
        if kind in (ERROR, END):
            return
        depth += (kind == INDENT) - (kind == DEDENT)
        if depth or kind not in (NEWLINE, DEDENT) or kinds[at + 1] in (INDENT, END, *_GOES_ON):
            continue
        if kind == NEWLINE and kinds[first] == _AT:
            first = at + 1  # a decorator belongs to what it stands before
            continue
        yield source.line_start(starts[at + 1])
        first = at + 1
