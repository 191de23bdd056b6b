"""Helps tried out: what an error advises is put into the program, as its reader would."""

from __future__ import annotations

import re
from collections.abc import Iterator

from autodiff_cli.errors import AutodiffError, Diagnostic
from autodiff_cli.session import run
from autodiff_cli.source import Source

_CODE = re.compile(r"`([^`]+)`")
_FOR = re.compile(r"(?:write|reduce it:) `([^`]+)` for `([^`]+)`")
_LINE = re.compile(r"begin the program with `([^`]+)`")
_TAKE_OUT = re.compile(r"remove (this|the spaces|the `)")
_NAMES_CODE = re.compile(r"write `|did you mean|call it|reduce it|make it first|convert|begin the")


def names_code(diagnostic: Diagnostic) -> bool:
    """Whether a help says what to type, not a signature or a sketch of it."""
    return any(
        _NAMES_CODE.search(help) and "..." not in help and not re.search(r"\(\w+, .*=", help)
        for help in diagnostic.helps
    )


def applied(text: str, diagnostic: Diagnostic) -> Iterator[str]:
    """The program with the code of a help in place of what is marked, of its line, or of what the
    help names."""
    spans = [s for s in (diagnostic.span, *(label.span for label in diagnostic.labels)) if s]
    spans = [span for span in spans if span.source.text == text]
    for help in diagnostic.helps:
        for new, old in _FOR.findall(help):
            yield text.replace(old, new)
        for line in _LINE.findall(help):
            yield f"{line}\n{text}"
        if _TAKE_OUT.match(help):
            yield from (text[: span.start] + text[span.end :] for span in spans)
        for code in _CODE.findall(help):
            new = code.removeprefix(".") if code[1:].isidentifier() else code
            for span in spans:
                yield text[: span.start] + new + text[span.end :]
                start = text.rfind("\n", 0, span.start) + 1
                end = (text + "\n").index("\n", span.end)
                indent = re.match(r"\s*", text[start:end])
                yield text[:start] + (indent[0] if indent else "") + new + text[end:]
                if new.endswith("="):  # the name of an option, whose value stays
                    value = span.text.partition("=")[2]
                    yield text[: span.start] + new + value + text[span.end :]


def better(text: str, name: str = "wrong.py") -> str:
    """A program that does what a help says and runs, or fails later than the wrong one; empty
    where there is none."""
    error = run(Source(text, name)).error
    assert error is not None
    for changed in applied(text, error.diagnostic):
        after = run(Source(changed, name)).error
        if after is None or _line(after) > _line(error) + changed.count("\n") - text.count("\n"):
            return changed
    return ""


def _line(error: AutodiffError) -> int:
    return error.span.line if error.span is not None else 0
