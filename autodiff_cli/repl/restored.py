"""A session whose process was lost, put back together from its log by the next one.

The log (`outside.py`) has every input before it ran, and what the session was a list of after it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ..ended import explained
from ..errors import AutodiffError
from ..outside import OUTSIDE, Lost
from ..source import Source, Span
from .loop import Loop

INPUT, DONE, SHOWN, TYPING = "input", "done", "shown", "typing"


class Before(NamedTuple):
    """What is known of a session: its statements, inputs, settings; what the last input, if it did
    not end, is and had printed; and what stood on the line where nothing ran."""

    statements: list[tuple[str, str, str | None]]
    inputs: list[str]
    settings: Any
    running: tuple[str, int] | None
    shown: str
    typed: str


def before() -> Before:
    """What the log tells."""
    statements: list[Any] = []
    inputs: list[str] = []
    settings: Any = None
    running: tuple[str, int] | None = None
    shown: list[str] = []
    typed = ""
    for kind, value in OUTSIDE.left():
        if kind == INPUT:
            inputs.append(value[0].strip("\n"))
            running = value
            shown.clear()
            typed = ""
        elif kind == DONE:
            kept, added, settings = value
            statements[kept:] = added
            running = None
        elif kind == SHOWN:
            shown.append(value)
        elif kind == TYPING:
            typed = value
    return Before(statements, inputs, settings, running, "".join(shown), typed)


def what_happened(found: Before, lost: Lost, name: str) -> AutodiffError:
    """The error of the input that ran."""
    error = explained(lost, None, None)
    if found.running is not None:
        text, above = found.running
        start, end = len(text) - len(text.lstrip("\n")), len(text.rstrip())
        error.amend(span=Span(Source(text, name, above), start, end), label="this input ran")
    return error


def put_back(loop: Loop, found: Before, lost: Lost) -> None:
    """Run the statements again, without their output, and say what happened."""
    if found.settings is not None:
        loop.settings = loop.around.settings = found.settings
    loop.inputs[:] = found.inputs
    problem: AutodiffError | None = None
    for text, name, folder in found.statements:
        try:
            loop.session.again(Source(text, name), None if folder is None else Path(folder))
        except AutodiffError as error:
            problem = error
            break
    loop.note()
    death = what_happened(found, lost, "<repl>")
    if found.running is None and found.typed:
        loop.settings.hint = False
        death.amend(notes=("it happened in the hint below the line; hints are off now",))
    if problem is None:
        death.amend(notes=(*death.diagnostic.notes, "the session is as it was before"))
    loop.fail_with(death.diagnostic)
    if problem is not None:
        loop.say("the session could not be put back beyond here:")
        loop.fail_with(problem.diagnostic)
