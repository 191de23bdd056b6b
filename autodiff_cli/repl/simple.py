"""The session without an editor: for dumb terminals, Emacs, expect scripts and screen readers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from .commands.editor import edit_in_editor
from .words import LEAVE, banner

if TYPE_CHECKING:
    from .loop import Loop


def converse(
    make: Callable[[], Loop],
    quiet: bool,
    preloaded: bool,
    variables: dict[str, str],
    typed: str = "",
) -> int:
    """Read lines and run them until the end of input; the exit code."""
    if variables.get("TERM") != "dumb":
        with suppress(ImportError):
            import readline  # noqa: F401  # `input` edits lines from now on
    loop = make()
    loop.around.edit = lambda text: edit_in_editor(text, variables)
    write = loop.around.write or (lambda text: None)
    if not quiet:
        write(banner(loop.status_line(), loop.around.width()) + "\n")
    lines: list[str] = []
    answer = ""  # to an interrupt: written where the next one is caught as well
    while True:
        running = False
        try:
            write(answer)
            answer = ""
            lines.append(
                input(" .. ".rjust(len(loop.settings.prompt)) if lines else loop.settings.prompt)
            )
            running = True
            text = "\n".join(lines)
            # An open block ends with an empty line, as at Python's prompt.
            reply = loop.feed(text if len(lines) == 1 else f"{text}\n")
        except KeyboardInterrupt:
            answer = "interrupted\n" if running else "\n" if lines else f"\n{LEAVE}\n"
            lines.clear()
            continue
        except EOFError:
            write("\n")
            return 0
        if reply.status == "quit":
            return 0
        if reply.status != "incomplete":
            lines.clear()
            if reply.suggestion:
                write(f"try: {reply.suggestion}\n")
