"""The session as a class fed with text: `Loop.feed(text)` gives a status and what to show.

It needs no terminal. Every front end (the line editor, plain `input`, a script on standard input,
tests) feeds the same loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..autograd.tensor import Tensor
from ..crash import crashed
from ..defaults import MAX_ELEMENTS, PRECISION
from ..errors import AutodiffError, Diagnostic, Exit, reason_of
from ..language.program.nonfinite_origin import first_guilty
from ..language.program.report import Options
from ..language.syntax.parser import is_incomplete
from ..language.values.values import Namespace
from ..outside import OUTSIDE
from ..render.diagnostics import render
from ..render.text import broken, complaint, for_encoding, format_count, tamed
from ..render.values import Look
from ..source import Source
from ..suggest import suggest
from .commands.table import COMMANDS, find
from .entries import Entry, Outcome, Problem, Quit, imports
from .interactive import Interactive
from .interrupts import uninterrupted
from .pasted import without_prompts
from .show import assigned_line, indented, value_lines

# Runs a command of the command line on the session's program: words, program text -> code, output.
Tool = Callable[[list[str], str], tuple[int, str]]
SLOW_REPLAY = 0.5  # seconds; a longer restoration is announced


class Reply(NamedTuple):
    """`status` is ok, error, incomplete or quit; `suggestion` is offered as the next input."""

    status: str
    output: str = ""
    suggestion: str = ""


@dataclass(slots=True)
class Settings:
    """What `:set` changes. `echo`: what an assignment prints, short, full or none."""

    echo: str = "short"
    hint: bool = True
    fuzzy: bool = False
    prompt: str = "ad> "
    precision: int = PRECISION
    max_elements: int = MAX_ELEMENTS
    sci: bool = False
    nan: str = "warn"


@dataclass(slots=True)
class Surroundings:
    """What the loop knows of where it runs. `width` is asked anew for every output, as is
    `message_width`, to which messages are broken (None: they stay as they are); `write` receives
    output as it comes; `tool` runs other commands; `edit` lets the user change a text; `crashed`
    reports a fault of this program."""

    width: Callable[[], int] = lambda: 80
    message_width: Callable[[], int | None] = lambda: None
    color: bool = False
    encoding: str = "utf-8"
    write: Callable[[str], Any] | None = None
    tool: Tool = lambda words, text: (Exit.USAGE, f"error: no `{words[0]}` here\n")
    edit: Callable[[str], str | None] | None = None
    crashed: Callable[[Exception], Diagnostic] = lambda error: crashed(error).diagnostic
    history: Callable[[], list[str]] | None = None
    settings: Settings = field(default_factory=Settings)


class Loop:
    """A session that is fed with text."""

    def __init__(self, options: Options | None = None, around: Surroundings | None = None):
        self.around = around or Surroundings()
        self.settings = self.around.settings
        self.session = Interactive(options or Options(), self.printed)
        self.pieces: list[str] = []
        self.code: int = Exit.OK
        self.inputs: list[str] = []
        self.noted: list[Entry] = []  # what the log knows of the session
        self.draft = ""  # what `:edit` could not run, for the next try

    # -- feeding ------------------------------------------------------------------------------

    def feed(
        self, text: str, name: str = "<repl>", complete: bool = False, before: int = 0
    ) -> Reply:
        """Run what was entered, `before` lines into it. Whatever goes wrong, the session goes on.
        `complete`: there is no more, so what is cut off is an error."""
        text = without_prompts(text)
        self.pieces.clear()
        self.code = Exit.OK
        if not text.strip():
            return Reply("ok")
        if not complete and self.is_incomplete(text):
            return Reply("incomplete")
        self.inputs.append(text.strip("\n"))
        OUTSIDE.record("input", (text, before))
        try:
            return self._fed(Source(text, name, before))
        finally:
            self.note()

    def note(self) -> None:
        """Tell the log what the session is a list of, where that changed."""
        entries, noted = self.session.entries, self.noted
        same = min(len(entries), len(noted))
        while same and entries[same - 1] is not noted[same - 1]:  # those before it are the same
            same -= 1
        added = [
            (e.source.text, e.source.name, None if e.folder is None else str(e.folder))
            for e in entries[same:]
        ]
        OUTSIDE.record("done", (same, added, self.settings))
        noted[same:] = entries[same:]

    def _fed(self, source: Source) -> Reply:
        suggestion = ""
        try:
            with uninterrupted():  # but for what runs programs
                self._dispatch(source)
        except Quit:
            return Reply("quit", "".join(self.pieces))
        except AutodiffError as error:
            self.fail_with(error.diagnostic)
            suggestion = _corrected(error.diagnostic, source.text)
        except Problem as problem:
            self.complain(problem)
        except KeyboardInterrupt:
            self.say("interrupted; the session is as it was")
            self.code = Exit.INTERRUPTED
        except OSError as error:
            name = f" `{error.filename}`" if error.filename else ""
            message = f"cannot use{name}: {reason_of(error)}"
            self.complain(Problem(message, code=Exit.EVALUATION))
        except Exception as error:
            self.fail_with(self.around.crashed(error))
        status = "ok" if self.code == Exit.OK else "error"
        return Reply(status, "".join(self.pieces), suggestion)

    def is_incomplete(self, text: str) -> bool:
        """Whether more lines are needed before the text can run."""
        stripped = text.lstrip()
        if stripped.startswith((":", "%")) or _QUESTION.fullmatch(stripped.strip()):
            return False
        return is_incomplete(text)

    def _dispatch(self, source: Source) -> None:
        stripped = source.text.strip()
        word = stripped.removesuffix("()")
        question = _QUESTION.fullmatch(stripped)
        if question:
            self.command(f":help {question[1] or question[2]}")
        elif stripped.startswith(":"):
            self.command(stripped)
        elif word in _WORDS and word not in self.session.scope.names:
            self.command(_WORDS[word])
        elif stripped.startswith("%"):
            raise self._percent(stripped)
        else:
            self.run(source)

    def _percent(self, text: str) -> Problem:
        word = text.removeprefix("%").strip().partition(" ")[0]
        known = word in COMMANDS
        close = [word] if known else suggest(word, COMMANDS, 1)
        return Problem(
            f"commands begin with `:`, not with `%`: `{text[:60]}`",
            f"did you mean `:{close[0]}`?" if close else "`:help` lists the commands",
        )

    def command(self, line: str) -> None:
        """Run a line that begins with `:`."""
        word, _, rest = line[1:].strip().partition(" ")
        find(word).run(self, rest.strip())

    # -- statements ---------------------------------------------------------------------------

    def run(self, source: Source, folder: Path | None = None, echo: bool = True) -> None:
        """Run statements and say what they made."""
        session = self.session
        first = not session.entries
        outcome = self.careful(lambda: session.run_text(source, folder))
        python = bool(session.entries) and imports(session.entries[-1].trees)
        if echo and python and self.settings.echo != "none":
            self._say_dialect(first)
        for warning in outcome.warnings:
            self.fail_with(warning)
        found = self._not_finite(outcome)
        if echo:
            self._echo(outcome)
        if found is not None:
            self.fail_with(found)

    def _say_dialect(self, first: bool) -> None:
        """What an import means for the numbers that follow."""
        if not self.session.python:
            self.say("PyTorch's names are there without import; numbers go on being tensors "
                     "(`:reset`, then import, for a Python session)")  # fmt: skip
        elif first:
            self.say("a Python session: numbers are Python's, tensors are float32, `backward()` "
                     "is yours")  # fmt: skip

    def careful(self, work: Callable[[], Any]) -> Any:
        """Do what may have to be undone by running the session again, and say so when that
        takes a while."""
        seconds = self.session.spent
        if seconds > SLOW_REPLAY:
            self.session.announce = lambda: self.say(
                f"putting the session back together, about {seconds:.1f} s ..."
            )
        try:
            return work()
        finally:
            self.session.announce = None

    def _echo(self, outcome: Outcome) -> None:
        names = self.session.scope.names
        look = self.look
        if outcome.has_value:
            self.say("\n".join(self._whole(outcome.value)))
        elif self.settings.echo == "short":
            made = [n for n in outcome.assigned if n in names]
            made = [n for n in made if not isinstance(names[n], Namespace)]
            for name in made[:MOST_ECHOED]:
                self.say(assigned_line(name, names[name], look))
            if len(made) > MOST_ECHOED:
                more = format_count(len(made) - MOST_ECHOED, "more name")
                self.say(f"... and {more} (:list)")
        elif self.settings.echo == "full":
            for name in outcome.assigned:
                if name in names:
                    self.say(assigned_line(name, names[name], look))
                    if isinstance(names[name], Tensor) and names[name].shape:
                        with self.session.aside():
                            block = indented(names[name], look, self.session.python)
                        self.say("\n".join(block))

    def _whole(self, value: Any) -> list[str]:
        with self.session.aside():
            return value_lines(value, self.look, self.session.python)

    def _not_finite(self, outcome: Outcome) -> Diagnostic | None:
        """W501 and W502 for what a statement made, or its failure with `:set nan error`."""
        if self.settings.nan == "ignore":
            return None
        names = self.session.scope.names
        made = {name: names[name] for name in outcome.assigned if name in names}
        if outcome.has_value:
            made["_"] = outcome.value
        with self.session.aside():
            records: dict[str, Any] = {
                name: _Record(value.node.value, None, value.node)
                for name, value in made.items()
                if isinstance(value, Tensor) and value.node.value is not None
            }
            found = first_guilty(records, {})
        if found is None:
            return None
        helps = tuple(text.partition("   (--nan")[0] for text in found.helps)
        found = replace(found, helps=helps)
        if self.settings.nan == "error":
            self.session.drop_last()
            raise AutodiffError(replace(found, code="E" + found.code[1:], severity="error"))
        return found

    # -- showing ------------------------------------------------------------------------------

    @property
    def look(self) -> Look:
        settings = self.settings
        return Look(
            settings.precision, settings.sci, settings.max_elements,
            self.around.width(), self.around.encoding.lower().startswith("utf"),
        )  # fmt: skip

    def say(self, text: str) -> None:
        """A line of output, or several; on a terminal long ones are broken between words."""
        width = self.around.message_width()
        if width is not None and "\x1b" not in text:
            text = "\n".join(piece for line in text.split("\n") for piece in broken(line, width))
        self.show(text + "\n")

    def printed(self, text: str) -> None:
        """What a program prints."""
        self.show(text if self.around.message_width() is None else tamed(text))

    def show(self, text: str) -> None:
        """Output."""
        text = for_encoding(text, self.around.encoding)
        self.pieces.append(text)
        if self.around.write is None:
            OUTSIDE.record("shown", text)
        else:
            self.around.write(text)

    def fail_with(self, diagnostic: Diagnostic) -> None:
        """Show a diagnostic; an error gives the exit code of a script that stops here."""
        if diagnostic.severity == "error":
            self.code = diagnostic.exit_code
        self.say(
            render(
                diagnostic, "full", self.around.color, self.around.message_width(),
                unicode=self.look.unicode,
            )
        )  # fmt: skip

    def complain(self, problem: Problem) -> None:
        """Show what is wrong with a command."""
        self.code = problem.code
        width = self.around.message_width()
        self.say(complaint(problem.message, problem.helps, width, "error"))

    def status_line(self) -> str:
        """`names: A, B and 3 more`, for the banner."""
        names = [name for name in self.session.scope.names if name != "_"]
        if not names:
            return "names: none yet"
        shown = ", ".join(names[:6])
        return f"names: {shown}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")


class _Record(NamedTuple):
    """As much of a report's record as the search for a NaN reads."""

    value: Any
    grad: Any
    node: Any


MOST_ECHOED = 12
_WORDS = {"exit": ":quit", "quit": ":quit", "help": ":help"}  # as at Python's own prompt
_QUESTION = re.compile(r"\?{1,2}\s*([\w.@-]+)|([\w.@-]+)\s*\?{1,2}")


def _corrected(diagnostic: Diagnostic, text: str) -> str:
    """The input with `**` for every `^`, when that was the mistake."""
    plain = not any(char in text.strip() for char in "\n'\"")
    return text.replace("^", "**").strip() if plain and diagnostic.code == "E105" else ""
