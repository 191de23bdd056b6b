"""Diagnostics as text: code frames for people, one line, JSON, GitHub's workflow commands.

Invariant: no character of a program, a file name or a message reaches the result unescaped if it
could change a terminal's state, and the work does not grow with the length of a source line.
"""

from __future__ import annotations

from typing import Any

from ..errors import Diagnostic
from ..source import Source, Span
from .frames import BOLD, RED, YELLOW, Paint, frames, location
from .text import dumped, printable, prose


def render(
    diagnostic: Diagnostic,
    format: str = "full",
    color: bool = False,
    width: int | None = None,
    *,
    unicode: bool = True,
) -> str:
    """The text of a diagnostic, without a final line end.

    `format` is full, concise, json or github; `color`, `width` (cells of the terminal; None: no
    terminal, so messages are not broken) and `unicode` (False: nothing but ASCII is added to the
    program's own text) concern full only.
    """
    match format:
        case "full":
            return _full(diagnostic, color, width, "…" if unicode else "...")
        case "concise":
            return _concise(diagnostic)
        case "json":
            return dumped(document(diagnostic)).rstrip("\n")
        case "github":
            return _github(diagnostic)
    raise ValueError(f"unknown diagnostics format {format!r}")


def _heading(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.severity}[{diagnostic.code}]"


def _full(diagnostic: Diagnostic, color: bool, width: int | None, ellipsis: str) -> str:
    paint = Paint(color)
    accent = YELLOW if diagnostic.severity == "warning" else RED
    heading = _heading(diagnostic)
    first, *rest = prose(f"{heading}: ", diagnostic.message, width)
    result = [paint(heading, accent) + paint(first.removeprefix(heading), BOLD)]
    result += [paint(line, BOLD) for line in rest]
    result += frames(diagnostic, accent, paint, width, ellipsis)
    return "\n".join(line.rstrip() for line in result)


# ------------------------------------------------------------------ one line


def _concise(diagnostic: Diagnostic) -> str:
    where = f"{location(diagnostic.span)}: " if diagnostic.span else ""
    return f"{where}{_heading(diagnostic)}: {printable(diagnostic.message)}"


def _github(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    properties = [] if span is None else [
        ("file", span.source.name), ("line", str(span.line)), ("col", str(span.column))
    ]  # fmt: skip
    properties.append(("title", f"{diagnostic.code} {diagnostic.kind}"))
    listed = ",".join(f"{key}={_github_escape(value, ':,')}" for key, value in properties)
    body = "\n".join([diagnostic.message, *(f"help: {text}" for text in diagnostic.helps)])
    command = {"error": "error", "warning": "warning"}.get(diagnostic.severity, "notice")
    return f"::{command} {listed}::{_github_escape(body)}"


def _github_escape(text: str, further: str = "") -> str:
    text = "\n".join(printable(line) for line in text.split("\n"))
    for char in "%\r\n" + further:
        text = text.replace(char, f"%{ord(char):02X}")
    return text


# ------------------------------------------------------------------ JSON


def document(diagnostic: Diagnostic) -> dict[str, Any]:
    """The diagnostic as plain data for `json.dumps`; columns count from 1, in characters and,
    as `byte_column` and `end_byte_column`, in bytes of UTF-8."""
    return {
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "kind": diagnostic.kind,
        "message": diagnostic.message,
        "help": "\n".join(diagnostic.helps) or None,
        "notes": [note.strip("\n") for note in diagnostic.notes],
        "label": diagnostic.label,
        **_place(diagnostic.span),
        "labels": [{"text": label.text, **_place(label.span)} for label in diagnostic.labels],
    }


def place(span: Span | None) -> dict[str, Any]:
    """Lines and columns, which count from 1; null where there is no place."""
    names = ("line", "column", "end_line", "end_column")
    return {name: getattr(span, name, None) for name in names}


def _place(span: Span | None) -> dict[str, Any]:
    return {
        "file": span and span.source.name,
        **place(span),
        "byte_column": span and _byte_column(span.source, span.start),
        "end_byte_column": span and _byte_column(span.source, span.end),
    }


def _byte_column(source: Source, offset: int) -> int:
    _, column = source.position(offset)
    if source.text.isascii():  # known to CPython without a scan
        return column
    before = source.text[offset - column + 1 : offset]
    return len(before.encode("utf-8", "replace")) + 1
