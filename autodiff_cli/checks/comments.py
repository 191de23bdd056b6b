"""What comments ask for: `# check: wrt=A,B rtol=1e-6 hessian` and `#=> VALUE`.

Invariant: only comments count; the same characters in a string mean nothing.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal

from ..errors import fail, fault
from ..language.syntax.lexer import tokenize
from ..source import Source, Span
from ..suggest import meant

_COMMENT = re.compile(r"#(=>|[ \t]*check:)([^\n]*)")
_NAMED = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*(?:\[\d+\])*)[ \t]+(?=[^\s=])")
_VALUES = ("True", "False", "None", "nan", "inf")


@dataclass(slots=True)
class Expectation:
    """`#=> value` after a statement, or `#=> name value` for a name at the end of the program.

    `start` and `end` delimit the value's text in the source; `names` is empty for the statement
    that ends on line `line`, or, for a comment on a line of its own, before it.
    """

    line: int
    name: str
    text: str
    start: int
    end: int
    alone: bool
    span: Span


@dataclass(slots=True)
class Directives:
    """What `# check:` lines of one file say."""

    wrt: tuple[str, ...] = ()
    nograd: tuple[str, ...] = ()
    rtol: float | None = None
    atol: float | None = None
    hessian: bool = False
    strict: bool = False
    skip_gradients: bool = False
    loss: str | None = None
    nan: Literal["error", "warn", "ignore"] | None = None
    skip: str | None = None
    xfail: str | None = None
    expectations: list[Expectation] = field(default_factory=list)


def read_comments(source: Source) -> Directives:
    """The directives and expectations of a program; E205 for a `# check:` nobody understands."""
    found = Directives()
    if "#=>" not in source.text and "check:" not in source.text:
        return found
    tokens = tokenize(source)

    def in_token(at: int) -> bool:
        return bisect_right(tokens.starts, at) > bisect_right(tokens.ends, at)

    for match in _COMMENT.finditer(source.text):
        at = match.start()
        line_start = source.line_start(at)
        earlier = (i for i in range(line_start, at) if source.text[i] == "#")
        if in_token(at) or not all(map(in_token, earlier)):  # in a comment that has begun
            continue
        if match[1] == "=>":
            alone = not source.text[line_start:at].strip()
            found.expectations.append(_expectation(source, match, alone))
        else:
            _direct(found, match[2], Span(source, at, match.end()))
    return found


def _expectation(source: Source, match: re.Match[str], alone: bool) -> Expectation:
    text = match[2]
    lead = len(text) - len(text.lstrip())
    start = match.start(2) + lead
    text = text.strip()
    named = _NAMED.match(text)
    name = ""
    if named and named[1] not in _VALUES:
        name = named[1]
        start += named.end()
        text = text[named.end() :]
    span = Span(source, match.start(), match.end())
    return Expectation(span.line, name, text, start, start + len(text), alone, span)


_WORDS = (
    "wrt", "nograd", "rtol", "atol", "hessian", "strict", "loss", "nan", "grad", "skip", "xfail",
)  # fmt: skip
_WRITE = (
    "write wrt=A,B, nograd A, rtol=1e-6, atol=1e-8, loss=NAME, nan=ignore, hessian, strict, "
    "skip WHY or xfail WHY"
)


def _direct(found: Directives, text: str, span: Span) -> None:
    words = text.split()
    while words:
        word = words.pop(0)
        key, equals, value = word.partition("=")
        if key == "nograd":
            names = value if equals else words.pop(0) if words else ""
            if not names:
                found.skip_gradients = True
            found.nograd += tuple(n for n in names.split(",") if n)
        elif key == "wrt" and value:
            found.wrt += tuple(n for n in value.split(",") if n)
        elif key in ("rtol", "atol") and value:
            setattr(found, key, _positive(key, value, span))
        elif (key == "loss" and value) or (key == "nan" and value in ("warn", "error", "ignore")):
            setattr(found, key, value)
        elif word in ("skip", "xfail"):
            setattr(found, word, " ".join(words))
            return
        elif word in ("hessian", "strict"):
            setattr(found, word, True)
        else:
            message = f"`# check:` does not understand `{word[:60]}`"
            raise fail("E205", message, span, help=meant(key, _WORDS, _WRITE))


def _positive(key: str, value: str, span: Span) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        raise fault("E205 no-tolerance", key, value[:40], span=span)
    return number
