"""`autodiff repl [FILE...]`: the session, on a terminal or fed from standard input."""

from __future__ import annotations

import gc
import io
import os
import shlex
from typing import TYPE_CHECKING, Any

from ...crash import crashed
from ...errors import Exit
from ...language.syntax.decode import decode
from ...outside import OUTSIDE
from ..options import Command, Option, chosen, only
from ..streams import Environment, is_terminal

if TYPE_CHECKING:
    from ...language.program.report import Options
    from ...repl.loop import Loop, Surroundings

EXAMPLES = """\
  autodiff
  autodiff repl demo.expr
  autodiff repl --simple
  autodiff repl < script.txt
"""

SHARED = only(
    "expr", "dtype", "nan", "precision", "max_elements", "sci", "color", "max_memory", "max_steps",
    "max_depth", "allow_read", "quiet", "debug",
)  # fmt: skip
OPTIONS = (
    Option(("--simple",), "simple", "Read lines without editing or colours (also: TERM=dumb)."),
    *SHARED,
)


def repl(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """A session to its end; the exit code."""
    gc.enable()  # a session may last for days
    preloaded = [(":load", name) for name in files]
    preloaded += [("", text) for text in values["expr"]]
    if env.stdin is None:
        env.complain("standard input is closed")
        return Exit.USAGE
    if not is_terminal(env.stdin):
        return _script(values, preloaded, env)
    if values["simple"] or env.dumb() or not is_terminal(env.stdout):
        from ...repl.simple import converse
    else:
        from ...repl.terminal import converse
    variables = dict(env.variables)
    if not env.colors(env.stdout, values["color"]):
        variables["NO_COLOR"] = "1"

    if OUTSIDE.lost is None:

        def make() -> Loop:
            return _fed(_loop(values, env), preloaded)

        return converse(make, values["quiet"], bool(preloaded), variables)

    from ...repl.restored import before, put_back

    found = before()
    lost = OUTSIDE.take()

    def make_again() -> Loop:
        loop = _loop(values, env)
        assert lost is not None
        put_back(loop, found, lost)
        return _fed(loop, preloaded[len(found.inputs) :])

    return converse(make_again, True, True, variables, found.typed)


COMMAND = Command(
    "repl", OPTIONS, ("files", "[FILE]..."), repl,
    "Open a session: statements are run as they are entered, `:help` lists commands.\n\n"
    "Each FILE is loaded first. When standard input is not a terminal its statements are run "
    "one by one; the first error ends it with its exit code.",
    EXAMPLES,
)  # fmt: skip


def _loop(values: dict[str, Any], env: Environment, echo: bool = True) -> Loop:
    """The session; NumPy is imported here, not before. Without `echo` it is that of a script, whose
    replies are written by who feeds it."""
    from ...repl.loop import Loop

    def write(text: str) -> None:
        env.write(text)
        env.flush()

    around = _surroundings(values, env)
    if echo:
        around.write = write
    else:
        around.settings.echo = "none"
    return Loop(session_options(values), around)


def _fed(loop: Loop, preloaded: list[tuple[str, str]]) -> Loop:
    """The session with what the command line asks for."""
    for kind, text in preloaded:
        if kind:
            loop.feed(f"{kind} {shlex.quote(text)}")
        else:
            loop.feed(text + "\n\n", "<expr>")
    return loop


def session_options(values: dict[str, Any]) -> Options:
    """The options of programs that are run here, again and again."""
    from pathlib import Path

    from ...language.program.report import Options

    return Options(
        **chosen(values, "dtype", "max_memory", "max_steps", "max_depth"),
        allow_read=tuple(map(Path, values["allow_read"])),
    )


def _surroundings(values: dict[str, Any], env: Environment) -> Surroundings:
    from ...repl.loop import Settings, Surroundings

    settings = Settings(**chosen(values, "precision", "max_elements", "sci", "nan"))
    return Surroundings(
        width=lambda: env.width(env.stdout),
        message_width=lambda: env.width(env.stdout) if is_terminal(env.stdout) else None,
        color=env.colors(env.stdout, values["color"]),
        encoding=getattr(env.stdout, "encoding", None) or "utf-8",
        crashed=lambda error: crashed(error, env.note if values["debug"] else None).diagnostic,
        tool=lambda words, program: run_tool(words, program, values, env),
        settings=settings,
    )


# -- standard input is no terminal ----------------------------------------------------------------


def _script(values: dict[str, Any], preloaded: list[tuple[str, str]], env: Environment) -> int:
    """Statements of standard input one by one: output, no echo, no prompt."""
    if OUTSIDE.lost is not None:
        return _lost(env)
    from ...repl.script import pieces

    try:
        text = decode(getattr(env.stdin, "buffer", env.stdin).read(), "<stdin>").text
    except (OSError, ValueError) as error:
        env.complain(f"cannot read standard input: {error}")
        return Exit.USAGE
    loop = _loop(values, env, echo=False)
    inputs = [
        (f"{kind} {shlex.quote(text)}" if kind else f"{text}\n\n", 0) for kind, text in preloaded
    ]
    for piece, before in (*inputs, *pieces(text)):
        reply = loop.feed(piece, "<stdin>", True, before)
        if reply.status == "error":
            env.note(reply.output.rstrip("\n"))
            return loop.code
        env.write(reply.output)
        if reply.status == "quit":
            break
    return Exit.OK


def _lost(env: Environment) -> int:
    """The process that ran a script is gone: the input that did it ends the script."""
    from ...repl.restored import before, what_happened

    found = before()
    lost = OUTSIDE.take()
    assert lost is not None
    error = what_happened(found, lost, "<stdin>")
    env.write(found.shown)
    env.diagnose(error.diagnostic)
    return error.diagnostic.exit_code


# -- other commands -------------------------------------------------------------------------------


class _Captured(io.StringIO):
    """A stream that keeps what is written to it."""

    encoding = "utf-8"


def run_tool(
    words: list[str], program: str, values: dict[str, Any], env: Environment
) -> tuple[int, str]:
    """Another command, on the session's program: its exit code and everything it wrote."""
    out = _Captured()
    out.encoding = getattr(env.stdout, "encoding", None) or "utf-8"
    color = env.colors(env.stdout, values["color"])
    variables = {
        **env.variables,
        "COLUMNS": str(env.width(env.stdout)),
        "NO_COLOR": "" if color else "1",
        "FORCE_COLOR": "1" if color else "",
    }
    text = io.TextIOWrapper(io.BytesIO(program.encode("utf-8", "replace")), "utf-8")
    inner = Environment(text, out, out, variables)
    inner.seen, inner.again = is_terminal(env.stdout), True
    code = _call(words, program, inner)
    shown = out.getvalue().replace("<stdin>", "<session>").rstrip("\n")
    return code, f"{shown}\n" if shown else ""


def _call(words: list[str], program: str, env: Environment) -> int:
    from ..group import run_group

    name = words[0]
    if name == "help":
        return run_group(words, env)
    read = ["--allow-read", os.getcwd()]
    if name == "check":
        return _check(words, program, env)
    form = (
        ["--format", "rich"] if name in ("jacobian", "hessian", "explain", "derive", "why") else []
    )
    # A session has leaves for several results: that one does not depend on another is no news.
    quiet = [] if name in ("why", "graph") else ["-q"]
    return run_group([*words, *form, *quiet, *read, "-"], env)


def _check(words: list[str], program: str, env: Environment) -> int:
    """The checks take files, so the session becomes one for a moment."""
    import tempfile

    from ..group import run_group

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "session.expr")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        code = run_group([*words, path], env)
    text = env.stdout.getvalue()
    env.stdout.seek(0)
    env.stdout.truncate()
    env.write(text.replace(folder + os.sep, "").replace(os.path.basename(folder), ""))
    return code
