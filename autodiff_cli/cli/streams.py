"""The streams of one command and what they can show: terminals, colours, width, encoding.

Everything a command writes goes through an `Environment`; nothing else touches `sys.stdout`.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..errors import Diagnostic, reason_of
from ..render.text import Shown, ascii_text, complaint, fitted_page, tamed

NARROWEST = 20  # columns


class OutputFailed(BaseException):
    """Standard output cannot be written. Not an `Exception`: no program may swallow it."""

    def __init__(self, reason: str, broken_pipe: bool):
        super().__init__(reason)
        self.reason = reason
        self.broken_pipe = broken_pipe


class Environment:
    """Standard streams (None: closed) and environment variables. `sign` is a line on standard
    error that has to go before anything is written; `seen`: messages are read on a terminal, and
    broken to its width; `again`: programs have run before, what they print was seen; `unended`: the
    stream on which what a program printed last did not end its line."""

    __slots__ = ("again", "seen", "sign", "stderr", "stdin", "stdout", "unended", "variables")

    def __init__(self, stdin: Any, stdout: Any, stderr: Any, variables: Mapping[str, str]):
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.variables = variables
        self.sign: Any = None
        self.seen = is_terminal(stderr)
        self.again = False
        self.unended: Any = None

    @classmethod
    def current(cls) -> Environment:
        """The streams of this process, made unable to fail on a character."""
        for stream in (sys.stdout, sys.stderr):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        return cls(sys.stdin, sys.stdout, sys.stderr, os.environ)

    # -- writing ------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Write to standard output; `OutputFailed` when that is impossible."""
        if self.stdout is None:
            raise OutputFailed("it is closed", broken_pipe=False)
        if self.sign is not None and is_terminal(self.stdout):
            self.sign.stop()
        if Shown.escapes and is_terminal(self.stdout):
            text = ascii_text(text)
        if self.unended is self.stdout:
            self.unended, text = None, "\n" + text
        try:
            self.stdout.write(text)
        except (OSError, ValueError) as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        if self.stdout is None:
            return
        try:
            self.stdout.flush()
        except (OSError, ValueError) as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> OutputFailed:
        self._abandon_stdout()
        number = getattr(error, "errno", None)
        return OutputFailed(reason_of(error), number in (errno.EPIPE, errno.ESHUTDOWN))

    def _abandon_stdout(self) -> None:
        """Let the interpreter's own flush at exit go nowhere instead of failing again."""
        if self.stdout is not sys.stdout:
            return
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stdout.fileno())
            os.close(nowhere)
        except (OSError, ValueError):
            self.stdout = None

    def note(self, text: str) -> None:
        """Write a line to standard error, after what standard output holds; never fails."""
        self.aside(text + "\n")

    def aside(self, text: str) -> None:
        """Write a text to standard error like `note`."""
        if self.sign is not None:
            self.sign.stop()
        if self.stdout is not None:
            self.flush()
        if self.unended is self.stderr or (self.unended and self.seen and is_terminal(self.stdout)):
            self.unended, text = None, "\n" + text
        if self.stderr is not None:
            try:
                self.stderr.write(text)
                self.stderr.flush()
            except (OSError, ValueError):
                self.stderr = None

    def printed(self, text: str, aside: bool = False) -> None:
        """Write what a program prints, of which what comes after it begins a line of its own."""
        stream = self.stderr if aside else self.stdout
        before, self.unended = self.unended, None
        (self.aside if aside else self.write)(tamed(text) if is_terminal(stream) else text)
        self.unended = None if text.endswith("\n") else stream if text else before

    def page(self, text: str) -> None:
        """Write a page of help to standard output, in the width of a terminal."""
        if is_terminal(self.stdout):
            text = fitted_page(text, self.width(self.stdout))
        self.write(text)

    def markdown(self, text: str) -> None:
        """Write a page of the manual to standard output; on a terminal laid out for it."""
        if is_terminal(self.stdout) and self.unicode(self.stdout) and not self.dumb():
            from ..render.manual import laid_out

            color = self.colors(self.stdout, "auto")
            text = laid_out(text, self.width(self.stdout), color, dict(self.variables))
        self.write(text)

    def complain(self, message: str, *helps: str, severity: str = "error") -> None:
        """Write what is wrong with a command to standard error, and what to type instead."""
        self.note(complaint(message, helps, self.message_width(), severity))

    def diagnose(self, diagnostic: Diagnostic, form: str = "full", color: str = "auto") -> None:
        """Write a diagnostic to standard error."""
        from ..render.diagnostics import render

        if self.stderr is None:
            return
        unicode = self.unicode(self.stderr)
        colors = self.colors(self.stderr, color)
        text = render(diagnostic, form, colors, self.message_width(), unicode=unicode)
        if form == "full":
            text = (ascii_text(text) if Shown.escapes else text) + "\n"
        self.note(text)

    # -- what the streams can show --------------------------------------------------------------

    def dumb(self) -> bool:
        return self.variables.get("TERM") == "dumb"

    def colors(self, stream: Any, option: str) -> bool:
        """Whether to colour: the option, then NO_COLOR, then FORCE_COLOR, then the terminal."""
        if option != "auto":
            return option == "always"
        if self.variables.get("NO_COLOR"):
            return False
        if self.variables.get("FORCE_COLOR", "0") not in ("", "0"):
            return True
        return is_terminal(stream) and not self.dumb()

    def unicode(self, stream: Any) -> bool:
        """Whether a stream shows any character; what Python writes in the locale C need not be."""
        encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
        return encoding.startswith("utf") and self.variables.get("LC_ALL") not in ("C", "POSIX")

    def escapes(self) -> bool:
        """Whether the stream that is read writes ASCII only."""
        stream = self.stdout or self.stderr
        return getattr(stream, "encoding", None) is not None and not self.unicode(stream)

    def message_width(self) -> int | None:
        """Columns that messages are broken to; None where they stay as they are."""
        return self.width(self.stderr) if self.seen else None

    def width(self, stream: Any) -> int:
        """Columns: `$COLUMNS`, else the terminal's, else 80 on a terminal and 100 elsewhere; at
        least `NARROWEST`, in fewer nothing can be laid out."""
        columns = self.variables.get("COLUMNS", "")
        found = 80 if is_terminal(stream) else 100
        if re.fullmatch("[0-9]{1,5}", columns) and int(columns):
            found = int(columns)
        elif is_terminal(stream):
            with suppress(OSError, ValueError):
                found = os.get_terminal_size(stream.fileno()).columns or found
        return max(found, NARROWEST)


def is_terminal(stream: Any) -> bool:
    """Whether a stream is an open terminal."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        return False
