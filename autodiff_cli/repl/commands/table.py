"""The commands of the session as a table: name, argument, one line of help, function.

`:help`, completion and the documentation are made from the table.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from ...render.text import format_count
from ...suggest import did_you_mean, suggest
from ..entries import Problem, Quit
from . import files, inspect, settings, tools

if TYPE_CHECKING:
    from ..loop import Loop


class Command(NamedTuple):
    """`argument` is shown in the help; `completes` names what its words are: names, ops, files,
    settings, leaves, or nothing."""

    name: str
    argument: str
    help: str
    run: Callable[[Loop, str], None]
    completes: str = ""


def find(word: str) -> Command:
    """The command of a name or of an unambiguous beginning of one."""
    if word in COMMANDS:
        return COMMANDS[word]
    if word in _SHORT:
        return COMMANDS[_SHORT[word]]
    longer = [name for name in COMMANDS if word and name.startswith(word)]
    if len(longer) == 1:
        return COMMANDS[longer[0]]
    close = did_you_mean([f":{name}" for name in longer or suggest(word, COMMANDS)])
    helps = close or ["`:help` lists the commands"]
    raise Problem(f"there is no command `:{word[:60]}`", *helps)


# What one letter means although several commands begin with it.
_SHORT = {"e": "edit", "h": "help", "l": "list", "q": "quit", "r": "redo", "s": "save", "t": "time"}


HELP_END = (
    "`x?` is `:help x`; `_` is the last value; Ctrl-D leaves. Anything else is a program: "
    "`A = [[1, 2], [3, 4]]`, `loss = sum(A * A)`, then `:grad`."
)


def _help(loop: Loop, words: str) -> None:
    if words:
        inspect.help_about(loop, words, COMMANDS)
        return
    usages = [(f":{c.name} {c.argument}".rstrip(), c.help) for c in COMMANDS.values()]
    for line in inspect.columns(usages, loop):
        loop.say(line)
    loop.say("")
    for line in wrap(HELP_END, loop.look.width):
        loop.say(line)


def _undo(loop: Loop, words: str) -> None:
    count = settings.whole_number(words, "undo")
    if loop.careful(loop.session.put_back):
        loop.say(f"the session is as it was before: {loop.status_line()}")
        return
    gone = loop.careful(lambda: loop.session.undo(count))
    if not gone:
        raise Problem("there is nothing to undo")
    for entry in gone:
        loop.say(f"undone: {inspect.clipped(entry.title, loop, 8)}")


def _redo(loop: Loop, words: str) -> None:
    count = settings.whole_number(words, "redo")
    done = loop.session.redo(count)
    if not done:
        raise Problem("there is nothing to redo", "`:undo` takes back a statement first")
    for entry in done:
        loop.say(f"redone: {inspect.clipped(entry.title, loop, 8)}")


def _reset(loop: Loop, words: str) -> None:
    count = len(loop.session.entries)
    loop.session.reset()
    dropped = f"; {format_count(count, 'entry', 'entries')} dropped (:undo)" if count else ""
    loop.say(f"the session is empty{dropped}")


def _quit(loop: Loop, words: str) -> None:
    raise Quit


_TABLE = (
    Command("help", "[NAME]", "these lines; or about an operation, name, command or code",
            _help, "help"),
    Command("list", "[leaves|values|defs]", "the names of the session", inspect.list_names, "list"),
    Command("info", "NAME", "everything about one name", inspect.info, "names"),
    Command("grad", "[OF] [WRT...]", "gradients of the loss, or of OF", inspect.gradients,
            "names"),
    Command("explain", "[OF] [WRT...]", "the chain rule step by step", tools.explain, "names"),
    Command("why", "NAME", "why a gradient is None, zero, NaN or infinite", tools.why, "names"),
    Command("graph", "[FILE]", "the graph of the loss as a tree, or into a file", tools.graph,
            "files"),
    Command("plot", "[NAME...] [FILE]", "values and gradients as images, losses as a curve",
            tools.plot, "names"),
    Command("derive", "[OF] [WRT...]", "the derivative as a formula", tools.derive, "names"),
    Command("check", "", "gradients against differences, and assertions", tools.check),
    Command("jac", "[OF] [WRT...]", "the Jacobian, in named blocks", tools.jacobian, "names"),
    Command("hess", "[OF] [WRT...]", "the Hessian, and its eigenvalues", tools.hessian, "names"),
    Command("undo", "[N]", "take back the last N entries, changes in place too", _undo),
    Command("redo", "[N]", "run again what was undone", _redo),
    Command("reset", "", "begin anew with no names", _reset),
    Command("load", "FILE", "run the statements of a program file", files.load, "files"),
    Command("save", "FILE [--asserts]", "write the session as a program", files.save, "files"),
    Command("edit", "", "change the whole session in $EDITOR", files.edit),
    Command("time", "EXPR", "how long an expression takes, with and without its gradient",
            inspect.timing, "names"),
    Command("set", "[NAME VALUE]", "settings: echo, hint, precision, nan, ...", settings.change,
            "settings"),
    Command("history", "[N]", "what was entered", inspect.history),
    Command("quit", "", "leave (Ctrl-D)", _quit),
)  # fmt: skip

COMMANDS: dict[str, Command] = {command.name: command for command in _TABLE}
