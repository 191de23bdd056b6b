"""Picks the subcommand, turns every way to end into an exit code.

Importing this module must stay cheap: no numpy, no click, no rich.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ..errors import AutodiffError, Exit
from ..render.text import Shown
from ..version import __version__
from .streams import Environment, OutputFailed, is_terminal

if TYPE_CHECKING:
    from .options import Command

# name: (module, one line of help)
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Evaluate a program, differentiate it, print the results."),
    "repl": ("repl", "Open a session: statements run as they are entered."),
    "check": ("check", "Check programs: gradients, assertions, expectations, snapshots."),
    "diff": ("diff", "Compare two programs or saved results: where they part."),
    "jacobian": ("jacobian", "All first derivatives of a result, in named blocks."),
    "hessian": ("hessian", "Second derivatives, eigenvalues, Hessian-vector products."),
    "derive": ("derive", "Derivatives as formulas: text, LaTeX, program text."),
    "explain": ("explain", "The chain rule step by step, with names and numbers."),
    "why": ("why", "Why a gradient is None, zero, NaN or infinite, with a repair."),
    "graph": ("graph", "Draw the graph behind a result: a tree, SVG, PNG, HTML, dot, mermaid."),
    "report": ("report", "One page of HTML: source, graph and values, to step through."),
    "ops": ("ops", "List the operations, or describe one."),
    "lsp": ("lsp", "Serve editors: diagnostics, hover, completion, rename, hints."),
    "completion": ("completion", "Print the script of a shell that completes command lines."),
    "help": ("help", "Explain a command, an operation, an error code or a topic."),
}

# BLAS libraries start one thread for each core when numpy is imported, which costs more than a
# small program; who wants them sets the variable.
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def dispatched(words: list[str] | None, environment: Environment | None) -> int:
    """Run a command line, by default that of this process; the exit code."""
    import gc

    gc.disable()  # start-up makes many objects and no garbage; commands turn it on again
    words = sys.argv[1:] if words is None else words
    env = Environment.current() if environment is None else environment
    if not any(variable in os.environ for variable in THREAD_VARIABLES):
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
        os.environ["AUTODIFF_BLAS"] = "managed"  # big products get more threads (engine/blas.py)
    asked = env.variables.get("_AUTODIFF_COMPLETE")
    Shown.escapes = env.escapes()
    try:
        if asked is None:
            code = _dispatch(words, env)
        else:  # by a shell: what may come next on a command line
            from .commands.completion import answer

            code = answer(asked, env)
        env.flush()
        return int(code)
    except KeyboardInterrupt:
        return _interrupted(env)
    except OutputFailed as failure:
        if failure.broken_pipe:
            return Exit.PIPE
        env.stdout = None
        env.complain(f"cannot write to standard output: {failure.reason}")
        return Exit.EVALUATION
    except AutodiffError as error:
        env.diagnose(error.diagnostic)
        return error.diagnostic.exit_code
    except Exception as error:
        from ..crash import crashed

        try:
            found = crashed(error, env.note if "--debug" in words else None)
        except KeyboardInterrupt:
            return _interrupted(env)
        env.diagnose(found.diagnostic)
        return Exit.INTERNAL
    finally:
        Shown.escapes = False
        gc.enable()


def _interrupted(env: Environment) -> int:
    """Leave quietly: what was printed before is kept, the shell's prompt gets a line of its own."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        env.flush()
        env.note("" if is_terminal(env.stderr) else "interrupted")
    except OutputFailed:
        pass
    return Exit.INTERRUPTED


def _dispatch(words: list[str], env: Environment) -> int:
    if not words:
        if is_terminal(env.stdin):
            from .commands.repl import OPTIONS, repl
            from .options import starts

            return repl(starts(OPTIONS), [], env)
        words = ["run"]
    first = words[0]
    if first in ("--version", "-V"):
        env.write(f"autodiff {__version__}\n")
        return Exit.OK
    if first not in COMMANDS and first not in ("-h", "--help"):
        if first != "-" and not first.startswith("-") and not _is_file(first):
            return _unknown_command(first, env)
        words = ["run", *words]
    if words[0] in COMMANDS:
        from .options import parse

        command = load_command(words[0])
        parsed = parse(words[1:], command.options)
        if parsed is not None:
            return command.call(*parsed, env)
    from .group import run_group

    return run_group(words, env)


def _is_file(word: str) -> bool:
    """A word that can only mean a file, whether it exists or not."""
    return os.path.exists(word) or not {".", "/", os.sep}.isdisjoint(word)


def _unknown_command(word: str, env: Environment) -> int:
    from ..render.text import WORD, printable
    from ..suggest import did_you_mean, files_like, suggest

    close = suggest(word, COMMANDS) + files_like(f"{word}.expr")
    env.complain(
        f"there is no command and no file `{printable(word, WORD)}`",
        *did_you_mean(close),
        f"commands are {', '.join(COMMANDS)}; `autodiff -e CODE` runs a line",
    )
    return Exit.USAGE


def load_command(name: str) -> Command:
    """A command, from its module."""
    from importlib import import_module

    command: Command = import_module(f"{__package__}.commands.{COMMANDS[name][0]}").COMMAND
    return command
