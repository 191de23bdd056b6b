"""`autodiff run`: programs in, results on standard output, diagnostics on standard error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import AutodiffError, Exit, fail
from .streams import Environment, OutputFailed, is_terminal, is_unicode

if TYPE_CHECKING:
    from ..session import Options, Report
    from ..source import Source

EXAMPLES = """\
  autodiff run demo.expr
  autodiff run -e 'x = 3; loss = x**2 + sin(x)'
  autodiff run demo.expr -D lr=0.1 -D W=@weights.npy --format json
  autodiff run a.expr b.expr --only gradients
"""

# The worst of several files, first.
ORDER = (Exit.INTERNAL, Exit.PROGRAM, Exit.EVALUATION, Exit.USAGE, Exit.NO, Exit.OK)


def command() -> Any:
    """The click command."""
    from .group import make_command
    from .options import RUN_OPTIONS

    return make_command(
        "run",
        RUN_OPTIONS,
        ("files", "[FILE|-]..."),
        run_files,
        "Evaluate programs, differentiate them, print the results.\n\n"
        "FILE is program text; - is standard input, which is also read when there is neither FILE "
        "nor -e and it is not a terminal.",
        EXAMPLES,
    )


def run_files(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """Run every program of a command line; the worst exit code."""
    if not files and not values["expr"]:
        if env.stdin is None or is_terminal(env.stdin):
            return _nothing_to_run(env)
        files = ["-"]
    runner = Runner(values, env)
    names: list[str | None] = [*files] or [None]
    if not runner.prepared(len(names)):
        return Exit.USAGE
    codes = [runner.run_one(name, several=len(names) > 1) for name in names]
    codes.append(runner.finish())
    return next(code for code in ORDER if code in codes)


def _nothing_to_run(env: Environment) -> int:
    env.note("error: there is no program to run")
    env.note("help: name a file: `autodiff run demo.expr`")
    env.note("help: or give a line: `autodiff run -e 'x = 3; loss = x**2'`")
    return Exit.USAGE


class CannotRead(Exception):
    """A FILE of the command line that cannot be read."""


class Runner:
    """One command line: settings, what goes where, and the texts collected for `-o`."""

    def __init__(self, values: dict[str, Any], env: Environment):
        self.values = values
        self.env = env
        self.only = tuple(part for group in values["only"] for part in group)
        self.show = tuple(glob for group in values["show"] for glob in group)
        self.out: str | None = values["out"]
        self.to_file = self.out is not None and self.out != "-"
        self.form = self._form()
        self.collected: list[str] = []
        self.stdin_text: bytes | None = None

    def _form(self) -> str:
        form = self.values["format"]
        if self.to_file:
            return "json" if str(self.out).lower().endswith(".json") else "plain"
        if form == "auto":
            shown = is_terminal(self.env.stdout) and not self.env.dumb()
            form = "rich" if shown else "plain"
        return "plain" if form == "rich" and self.values["asserts"] else form

    # -- before ---------------------------------------------------------------------------------

    def prepared(self, programs: int) -> bool:
        """Check what can be checked before anything runs; False after saying what is wrong."""
        if not self.to_file:
            return True
        from ..render.files import CannotWrite, check_target

        try:
            check_target(str(self.out), programs)
        except CannotWrite as problem:
            return self._refused(problem)
        return True

    def _refused(self, problem: Any) -> bool:
        from ..render.text import printable

        self.env.note(f"error: {printable(problem.message)}")
        if problem.help:
            self.env.note(f"help: {printable(problem.help)}")
        return False

    def options(self) -> Options:
        """The options of the session, from the command line."""
        from ..session import Options

        values = self.values
        folders: tuple[Any, ...] = values["allow_read"]
        if folders:
            from pathlib import Path

            folders = tuple(map(Path, folders))
        return Options(
            loss=values["loss"],
            wrt=tuple(name for group in values["wrt"] for name in group),
            grad_output=values["grad_output"],
            dtype=values["dtype"],
            defines=tuple(self._defined(*define) for define in values["define"]),
            allow_read=folders,
            max_memory=values["max_memory"],
            max_steps=values["max_steps"],
            max_depth=values["max_depth"],
            nan=values["nan"],
            backward=not values["no_backward"],
            write=self._print if self.form != "json" else None,
        )

    def _defined(self, name: str, text: str, added: bool) -> tuple[str, str, bool]:
        """A `-D`; `@-` is JSON from standard input, which is an expression as well."""
        if text.strip() != "@-":
            return name, text, added
        import json

        data = self._read_stdin()
        try:
            json.loads(data)
        except (ValueError, RecursionError):
            raise fail(
                "E702",
                f"-D {name}=@-: standard input is not JSON",
                help="write a number or a nested list of numbers to standard input",
            ) from None
        return name, data.decode("utf-8", "replace").strip(), added

    def _print(self, text: str) -> None:
        """What a program prints appears at once on a terminal."""
        self.env.write(text)

    # -- one program ------------------------------------------------------------------------------

    def run_one(self, name: str | None, *, several: bool) -> Exit:
        """Run one program and show what it did."""
        import time

        start = time.perf_counter()
        shown_name = "<expr>" if name is None else "<stdin>" if name == "-" else name
        missing = False
        try:
            report = self._report(name, shown_name)
        except CannotRead as problem:
            report = self._failure(shown_name, _unreadable(shown_name, str(problem)))
            missing = True
        except AutodiffError as error:
            report = self._failure(shown_name, error)
        except MemoryError:
            report = self._failure(shown_name, _out_of_memory())
        except RecursionError:
            report = self._failure(shown_name, _too_deep())
        except Exception as error:
            from .crash import crashed

            crash = crashed(error, self.env, self.values["debug"])
            report = self._failure(shown_name, crash)
        code = Exit.USAGE if missing else report.exit_code
        self._diagnose(report, missing=missing)
        try:
            shown = self._show(report, several)
        except MemoryError:
            self.env.diagnose(_out_of_memory().diagnostic, self.values["diagnostics"])
            return Exit.EVALUATION
        if self.values["verbose"]:
            elapsed = time.perf_counter() - start
            self.env.note(f"{shown_name}: {report.status}, {elapsed:.3f} s")
        return code if shown or code is not Exit.OK else Exit.USAGE

    def _report(self, name: str | None, shown_name: str) -> Report:
        with deadline(self.values["timeout"]):
            source = self._source(name, shown_name)
            import gc

            from .. import session

            options = self.options()
            gc.freeze()
            gc.set_threshold(5000, 10, 10)  # graphs are many objects and few cycles
            gc.enable()
            return session.run(source, options)

    def _failure(self, name: str, error: AutodiffError) -> Report:
        from ..session import Report

        return Report(name, status="error", error=error)

    def _source(self, name: str | None, shown_name: str) -> Source:
        from ..language.decode import decode

        parts = [os.fsencode(text) for text in self.values["expr"]]
        if name is not None:
            data = self._read_stdin() if name == "-" else self._read_file(name)
            if not parts:
                return decode(data, shown_name)
            parts.insert(0, data.rstrip(b"\n"))
        return decode(b"\n".join(parts) + b"\n", shown_name)

    def _read_stdin(self) -> bytes:
        if self.stdin_text is not None:
            return self.stdin_text
        stream = self.env.stdin
        if stream is None:
            raise CannotRead("standard input is closed")
        try:
            read = getattr(stream, "buffer", stream).read
            data = self._limited(read, "<stdin>")
        except (OSError, ValueError) as error:
            raise CannotRead(_reason(error)) from None
        self.stdin_text = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
        return self.stdin_text

    def _read_file(self, name: str) -> bytes:
        try:
            with open(name, "rb", buffering=0) as file:
                return self._limited(file.read, name)
        except (OSError, ValueError) as error:
            raise CannotRead(_reason(error)) from None

    def _limited(self, read: Any, name: str) -> Any:
        """Everything up to the memory limit; an endless device ends there."""
        limit = self.values["max_memory"]
        pieces: list[Any] = []
        size = 0
        while piece := read(1 << 24):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise fail(
                    "E505",
                    f"`{name}` is longer than the memory limit of {limit} bytes",
                    help="load large data with load(), or raise the limit: --max-memory 8G",
                )
        return type(pieces[0])().join(pieces) if pieces else b""

    # -- showing ------------------------------------------------------------------------------

    def _diagnose(self, report: Report, *, missing: bool) -> None:
        """Warnings and the error, on standard error."""
        values, quiet = self.values, self.values["quiet"]
        if not quiet:
            for warning in report.warnings:
                self.env.diagnose(warning, values["diagnostics"], values["color"])
        if report.error is None or (quiet and self.form == "json" and not self.to_file):
            return
        if missing and values["diagnostics"] == "full":
            from ..render.text import printable

            self.env.note(f"error: {printable(report.error.message)}")
            for text in report.error.diagnostic.helps:
                self.env.note(f"help: {printable(text)}")
            return
        for error in (report.error, *report.more_errors):
            self.env.diagnose(error.diagnostic, values["diagnostics"], values["color"])

    def _show(self, report: Report, several: bool) -> bool:
        """The results of one program; False when they could not be written."""
        if self.form == "json":
            from ..render.document import dump

            self._emit(dump(report))
            return True
        if report.error is not None:
            return True
        if self.to_file and str(self.out).lower().endswith((".npz", ".npy", ".csv")):
            from ..render.files import CannotWrite, write_arrays

            try:
                write_arrays(str(self.out), report, self.only, self.show)
            except CannotWrite as problem:
                return self._refused(problem)
            return True
        if self.show and not self.values["quiet"]:
            self._unmatched(report)
        if self.form == "rich":
            self._tables(report, several)
        else:
            from ..render.plain import plain

            env, values = self.env, self.values
            self._emit(plain(
                report, only=self.only, show=self.show, asserts=values["asserts"],
                all=values["all"],
                color=not self.to_file and self._plain_color(env, values["color"]),
            ))  # fmt: skip
        return True

    @staticmethod
    def _plain_color(env: Environment, option: str) -> bool:
        """Plain text stays plain on a dumb terminal; colours in a pipe are asked for."""
        return env.colors(env.stdout, option)

    def _emit(self, text: str) -> None:
        if self.to_file:
            self.collected.append(text)
        elif text:
            self.env.write(text)

    def _unmatched(self, report: Report) -> None:
        from fnmatch import fnmatchcase

        from ..render.text import printable
        from ..suggest import suggest

        for glob in self.show:
            wanted = glob.removesuffix(".grad")
            if not any(fnmatchcase(name, wanted) for name in report.tensors):
                close = suggest(wanted, report.tensors, 1)
                meant = f"; did you mean `{close[0]}`?" if close else ""
                self.env.note(f"warning: --show {printable(glob, 100)} matches nothing{meant}")

    def _tables(self, report: Report, several: bool) -> None:
        from ..render.tables import print_report
        from ..render.text import for_encoding, printable
        from ..render.values import Look

        env, values = self.env, self.values
        look = Look(
            values["precision"], values["sci"], values["max_elements"], env.width(env.stdout),
            is_unicode(env.stdout),
        )  # fmt: skip
        if several:
            title = printable(f"── {report.file} ──", 300)
            env.write(for_encoding(title, getattr(env.stdout, "encoding", None)) + "\n")
        stream: Any = _Guarded(env)
        print_report(
            report, stream, look, env.colors(env.stdout, values["color"]), dict(env.variables),
            only=self.only, show=self.show, all=values["all"],
        )  # fmt: skip
        if several:
            env.write("\n")

    def finish(self) -> Exit:
        """Write what was collected for `-o`."""
        if not self.collected or not self.to_file:
            return Exit.OK
        from ..render.files import CannotWrite, write_text

        try:
            write_text(str(self.out), "".join(self.collected))
        except CannotWrite as problem:
            self._refused(problem)
            return Exit.USAGE
        return Exit.OK


class _Guarded:
    """The environment's standard output as the file object that rich writes to."""

    def __init__(self, env: Environment):
        self.env = env
        self.encoding = getattr(env.stdout, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        self.env.write(text)
        return len(text)

    def flush(self) -> None:
        self.env.flush()

    def isatty(self) -> bool:
        return is_terminal(self.env.stdout)


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if number else str(error)


def _unreadable(name: str, reason: str) -> AutodiffError:
    from ..suggest import suggest

    helps: tuple[str, ...] = ()
    folder = os.path.dirname(name)
    try:
        beside = os.listdir(folder or ".")[:2000] if not name.startswith("<") else []
    except (OSError, ValueError):
        beside = []
    if reason.startswith("no such"):
        close = suggest(os.path.basename(name), beside, 1)
        if close:
            helps = (f"did you mean `{os.path.join(folder, close[0])}`?",)
    return fail("E701", f"cannot read `{name}`: {reason}", help=helps)


def _out_of_memory() -> AutodiffError:
    return fail("E505", "the results need more memory than there is", help="use smaller shapes")


def _too_deep() -> AutodiffError:
    return fail("E507", "the program is nested too deeply", help="use names for parts of it")


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise E508 in the main thread when the time is over."""
    if seconds is None:
        yield
        return
    import signal

    if not hasattr(signal, "setitimer"):  # Windows has no timers; the limit on steps remains
        yield
        return

    def expired(signum: int, frame: Any) -> None:
        raise fail(
            "E508",
            f"the time limit of {seconds:g} s is reached",
            help=f"give it more time: --timeout {seconds * 10:g}",
        )

    before = signal.signal(signal.SIGALRM, expired)
    # It repeats, in case the first is swallowed where exceptions are ignored (a destructor).
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


__all__ = ["OutputFailed", "command", "run_files"]
