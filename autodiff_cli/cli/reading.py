"""Programs and data that a command line names: files, `-e` texts, standard input.

Invariant: standard input is read once, and nothing is read beyond the memory limit.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ..errors import AutodiffError, fail, fault, reason_of
from ..language.syntax.decode import decode
from ..outside import OUTSIDE
from ..source import Source
from ..suggest import meant_file
from .streams import Environment

FIRST_PIECE, LARGEST_PIECE = 1 << 16, 1 << 24  # bytes asked for at once


class CannotRead(Exception):
    """A FILE of the command line that cannot be read."""


class Reader:
    """Reads what one command line names."""

    def __init__(self, env: Environment, expressions: tuple[str, ...], limit: int):
        self.env = env
        self.expressions = expressions
        self.limit = limit
        self.stdin_text: bytes | None = None

    def source(self, name: str | None, shown_name: str) -> Source:
        """The program of a FILE with the texts of `-e` after it; only those without a name."""
        parts = [os.fsencode(text) for text in self.expressions]
        if name is not None:
            data = self.stdin() if name == "-" else self._file(name)
            if not parts:
                return decode(data, shown_name)
            parts.insert(0, data.rstrip(b"\n"))
        return decode(b"\n".join(parts) + b"\n", shown_name)

    def defined(self, name: str, text: str, added: bool) -> tuple[str, str, bool]:
        """A `-D`; `@-` is JSON from standard input, which is an expression as well."""
        if text.strip() != "@-":
            return name, text, added
        import json

        data = self.stdin()
        try:
            json.loads(data)
        except (ValueError, RecursionError):
            raise fault("E702 d-standard-input-not", name) from None
        return name, data.decode("utf-8", "replace").strip(), added

    def stdin(self) -> bytes:
        """All of standard input."""
        if self.stdin_text is not None:
            return self.stdin_text
        kept = OUTSIDE.records("stdin")  # it can be read once
        if kept:
            self.stdin_text = kept[0]
            return kept[0]
        stream = self.env.stdin
        if stream is None:
            raise CannotRead("standard input is closed")
        try:
            text = self._limited(stream.buffer.read, "<stdin>")
        except (OSError, ValueError) as error:
            raise CannotRead(reason_of(error)) from None
        OUTSIDE.record("stdin", text)
        self.stdin_text = text
        return text

    def _file(self, name: str) -> bytes:
        try:
            with open(name, "rb", buffering=0) as file:
                return self._limited(file.read, name)
        except (OSError, ValueError) as error:
            raise CannotRead(reason_of(error)) from None

    def _limited(self, read: Callable[[int], bytes], name: str) -> bytes:
        """Everything up to the memory limit; an endless device ends there."""
        pieces: list[bytes] = []
        size, most = 0, FIRST_PIECE
        while piece := read(most):
            pieces.append(piece)
            size += len(piece)
            most = min(max(most, size), LARGEST_PIECE)
            if size > self.limit:
                raise fault("E505 longer-memory-limit-bytes", name, self.limit)
        return b"".join(pieces)


def unreadable(name: str, reason: str) -> AutodiffError:
    """E701 of a FILE, with a name like it that exists."""
    missing = reason.startswith("no such") and not name.startswith("<")
    helps = tuple(meant_file(name)) if missing else ()
    return fail("E701", f"cannot read `{name}`: {reason}", help=helps)
