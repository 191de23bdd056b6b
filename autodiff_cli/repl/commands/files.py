"""`:load`, `:save`, `:edit`: the session and files.

A file that cannot be used says why; the session stays as it was.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...autograd.tensor import Tensor
from ...errors import Exit, reason_of
from ...graph.op import value_of
from ...language.syntax.decode import decode
from ...language.syntax.parser import parse
from ...render.files import CannotWrite, write_text
from ...render.plain import assertion
from ...render.text import WORD, format_count, printable
from ...source import Source
from ...suggest import meant_file
from ..entries import Problem, imports
from ..program_text import as_entered, saved
from .inspect import gradients_of

if TYPE_CHECKING:
    from ..loop import Loop

MOST_BYTES = 64 << 20


def _path(words: str, command: str) -> str:
    try:
        given = shlex.split(words)
    except ValueError:
        given = [words]
    if len(given) != 1:
        raise Problem(f"`:{command}` takes one file name", f"write `:{command} demo.expr`")
    return os.path.expanduser(given[0])


def load(loop: Loop, words: str) -> None:
    """Run the statements of a file, all of them or none."""
    path = _path(words, "load")
    source = read_program(path)
    trees = parse(source).body
    session = loop.session
    has_import = imports(trees)
    if session.entries and has_import != session.python:
        kind = "a Python program" if has_import else "a native program"
        raise Problem(
            f"`{printable(path, WORD)}` is {kind}, and this is "
            f"{'a Python session' if session.python else 'a native one'}",
            "`:reset` first, then load it",
        )
    loop.run(source, Path(path).resolve().parent, echo=False)
    names = [name for name in session.scope.names if name != "_"]
    loop.say(f"{format_count(len(trees), 'statement')} loaded from {printable(path, WORD)}; "
             f"{format_count(len(names), 'name')}")  # fmt: skip


def read_program(path: str) -> Source:
    """The program text of a file; Problem or E109 when it cannot be read."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise Problem(f"cannot read `{printable(path, WORD)}`: it is no regular file")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        message = f"cannot read `{printable(path, WORD)}`: {reason_of(error)}"
        raise Problem(message, *meant_file(path)) from None
    if len(data) > MOST_BYTES:
        raise Problem(
            f"`{printable(path, WORD)}` is longer than {MOST_BYTES >> 20} MiB",
            "load large data with load()",
        )
    return decode(data, path)


def save(loop: Loop, words: str) -> None:
    """Write the statements that the names of the session need."""
    given = words.split()
    asserts = "--asserts" in given
    path = _path(" ".join(word for word in given if word != "--asserts"), "save")
    session = loop.session
    if not session.entries:
        raise Problem("there is nothing to save", code=Exit.USAGE)
    text, count = saved(session.entries, session.python)
    further = _assertions(loop) if asserts else []
    text += "".join(f"{line}\n" for line in further)
    try:
        write_text(path, text)
    except CannotWrite as problem:
        raise Problem(problem.message, problem.help or "choose another name") from None
    added = f" and {format_count(len(further), 'assertion')}" if asserts else ""
    loop.say(f"{format_count(count, 'statement')}{added} written to {printable(path, WORD)}")


def _assertions(loop: Loop) -> list[str]:
    """What the names and gradients are now, as statements that hold."""
    session = loop.session
    lines: list[str] = []
    with session.aside():
        for name, value in session.scope.names.items():
            if isinstance(value, Tensor) and name != "_" and value.looked_at.op.key != "leaf":
                lines.append(assertion(name, value_of(value.looked_at)))
    found = gradients_of(loop, None, (), quiet=True)
    for name, gradient in found:
        if gradient is not None and "[" not in name:
            lines.append(assertion(f"{name}.grad", np.asarray(gradient)))
    return lines


def edit(loop: Loop, words: str) -> None:
    """The whole session in an editor; what comes back replaces it, if it runs."""
    change = loop.around.edit
    if change is None:
        raise Problem("there is no terminal to edit in", "`:save FILE`, edit it, `:load FILE`")
    session = loop.session
    before = loop.draft or as_entered(session.entries)
    after = change(before)
    if after is None:
        raise Problem("the editor did not end well; nothing is changed", "set $EDITOR")
    if after.strip() == before.strip() and not loop.draft:
        loop.say("nothing is changed")
        return
    loop.draft = after
    loop.careful(lambda: session.replace([(Source(after, "<edited>"), None)]))
    loop.draft = ""
    loop.say(f"the session is what you wrote: {loop.status_line()}")
