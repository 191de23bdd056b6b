"""Commands that other parts of the program answer: they run on the session's program.

Invariant: the session's own values are never handed out, so nothing these do can change it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import Exit
from ..entries import Problem
from ..program_text import whole
from .inspect import sides

if TYPE_CHECKING:
    from ..loop import Loop


def _run(loop: Loop, words: list[str]) -> None:
    session = loop.session
    if not session.entries:
        raise Problem("there are no statements yet", "write some, or `:load FILE`")
    program = whole(session.entries, session.python)
    with session.aside():
        code, output = loop.around.tool(words, program)
    loop.show(output)
    loop.code = code


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Problem(f"the words after the command cannot be read: {error}") from None


def _tool(name: str) -> Callable[[Loop, str], None]:
    """The command that hands its words to another one: `y A B`, and options behind them."""

    def run(loop: Loop, text: str) -> None:
        words = _words(text)
        at = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
        of, wrt = sides(loop, words[:at])
        options = [*words[at:], *(["--of", of] if of else ())]
        _run(loop, [name, *options, *(["--wrt", ",".join(wrt)] if wrt else ())])

    return run


jacobian, hessian, explain, derive = map(_tool, ("jacobian", "hessian", "explain", "derive"))


def check(loop: Loop, words: str) -> None:
    """`:check`, with options."""
    _run(loop, ["check", *_words(words)])


def why(loop: Loop, words: str) -> None:
    """`:why NAME`."""
    given = _words(words)
    if not given:
        raise Problem("`:why` takes a name: why is its gradient as it is?", "write `:why A`")
    _run(loop, ["why", given[0].removesuffix(".grad"), *given[1:]])


def graph(loop: Loop, words: str) -> None:
    """`:graph`, `:graph FILE`: the suffix chooses the form."""
    given = _words(words)
    if given and not given[0].startswith("-"):
        suffix = given[0].rpartition(".")[2].lower()
        forms = {"mmd": "mermaid", "md": "mermaid", "json": "json", "txt": "tree", "dot": "dot",
                 "gv": "dot", "svg": "svg", "png": "png", "html": "html"}  # fmt: skip
        form = forms.get(suffix)
        if form is None:
            raise Problem(
                f"cannot tell the form of the graph from `{given[0]}`",
                "name it with one of .svg, .png, .html, .dot, .gv, .mmd, .md, .json, .txt",
            )
        given = ["-f", form, "-o", given[0], *given[1:]]
        _run(loop, ["graph", *given])
        if loop.code == Exit.OK:
            loop.say(f"written: {given[3]}")
        return
    _run(loop, ["graph", *given])


def plot(loop: Loop, words: str) -> None:
    """`:plot [NAME...] [FILE.png]`."""
    given = _words(words)
    files = [word for word in given if word.endswith((".png", ".svg"))]
    names = [word for word in given if word not in files]
    options = [option for name in names for option in ("--show", name)]
    _run(loop, ["run", "--plot", *options, *(o for file in files for o in ("-o", file))])
    if files and loop.code == Exit.OK:
        loop.say(f"written: {files[-1]}")
