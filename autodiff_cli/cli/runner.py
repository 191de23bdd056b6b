"""What commands that take programs have in common: read, run, diagnose, write, exit code.

Invariant: whatever one program does, the next one runs, and every way to end has its exit code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..checks.deadline import deadline
from ..ended import explained
from ..errors import AutodiffError, Exit, fail
from ..outside import OUTSIDE
from ..render.files import CannotWrite, check_target, write_text
from ..render.text import WORD, for_encoding, printable
from .options import RUN_OPTIONS, chosen, starts
from .reading import CannotRead, Reader, unreadable
from .streams import Environment, is_terminal
from .supervisor import forget_printed, printing
from .waiting import waiting

if TYPE_CHECKING:
    from ..errors import Diagnostic
    from ..render.tables import Page
    from ..render.values import Look
    from ..session import Options
    from ..source import Source


def run_programs(
    values: dict[str, Any],
    files: list[str],
    env: Environment,
    make: Callable[[], Runner],
    command: str,
    verb: str,
) -> int:
    """Run every program of a command line; the worst exit code."""
    if not files and not values["expr"]:
        if env.stdin is None or is_terminal(env.stdin):
            env.complain(
                f"there is no program to {verb}",
                f"name a file: `autodiff {command} demo.expr`",
                f"or give a line: `autodiff {command} -e 'x = 3; loss = x**2'`",
            )
            return Exit.USAGE
        files = ["-"]
    names: list[str | None] = [*files] or [None]
    if values.get("engine", "numpy") == "numpy":
        if values.get("scheduler") is not None or values.get("workers") is not None:
            env.complain("--scheduler and --workers are of a cluster", "add --engine dask")
            return Exit.USAGE
        return _all(names, env, make, values)
    from ..engine.rows.cluster import connected

    with connected(*(values[key] for key in CLUSTER)) as cluster:
        if values["verbose"]:
            env.note(f"dashboard: {cluster.client.dashboard_link}")

        def there() -> Runner:
            runner = make()
            runner.cluster = cluster
            return runner

        return _all(names, env, there, values)


def _all(
    names: list[str | None], env: Environment, make: Callable[[], Runner], values: dict[str, Any]
) -> Exit:
    return _watched(names, env, make) if values.get("watch") else _once(make(), names)


def both_given(env: Environment, command: str, *flags: str) -> bool:
    """Whether there are two of these flags, of which a command takes one; says so."""
    if len(flags) > 1:
        env.complain(
            f"--{flags[0]} and --{flags[1]} cannot be given together",
            f"`autodiff {command} --help` lists the options",
        )
    return len(flags) > 1


def _once(runner: Runner, names: list[str | None]) -> Exit:
    if not runner.prepared(len(names)):
        return Exit.USAGE
    OUTSIDE.begin()
    done = OUTSIDE.records("program")  # by a process before this one
    runner.read.update(OUTSIDE.records("read"))
    codes: list[Exit] = []
    for code, collected in done:
        codes.append(code)
        runner.collected += collected
    for name in names[len(done) :]:
        before = len(runner.collected)
        codes.append(runner.run_one(name, several=len(names) > 1))
        if len(names) > 1:
            OUTSIDE.record("program", (int(codes[-1]), runner.collected[before:]))
    codes.append(runner.finish())
    return Exit.worst(codes)


def _watched(names: list[str | None], env: Environment, make: Callable[[], Runner]) -> Exit:
    """Run again and again; an interrupt ends it."""
    from .watch import watch

    files = [name for name in names if name not in (None, "-")]
    if len(files) < len(names):
        env.complain("--watch needs a FILE, not standard input or -e alone")
        return Exit.USAGE
    if not make().prepared(len(names)):
        return Exit.USAGE

    def run() -> set[str]:
        runner = make()
        _once(runner, names)
        return runner.read

    watch(run, map(str, files), env)
    return Exit.OK


CLUSTER = ("scheduler", "workers", "chunk", "max_memory")
# Options that the session has too.
SAME = (
    "loss", "wrt", "grad_output", "dtype", "max_memory", "max_steps", "max_depth", "nan", "profile",
    "plan",
)  # fmt: skip


class Runner:
    """One command line: settings, what goes where, and the texts collected for `-o`.

    A command says in `compute` what it makes of a program and in `show` how that looks; what it
    makes has `file`, `status`, `error`, `more_errors`, `warnings` and `exit_code`. What a program
    prints stands in the output before results in one of the forms `beside_prints`.
    """

    beside_prints: tuple[str, ...] = ("rich",)

    def __init__(self, values: dict[str, Any], env: Environment):
        # Where a command has no option for it: as `run` without it, but that no NaN is told of.
        self.values = {**starts(RUN_OPTIONS), "nan": "ignore", **values}
        self.env = env
        self.cluster: Any = None  # `engine.rows.cluster.Cluster`
        self.out: str | None = values["out"]
        self.to_file = self.out is not None and self.out != "-"
        self.form = self._form()
        self.collected: list[str] = []
        self.reader = Reader(env, values["expr"], values["max_memory"])
        self.read: set[str] = set()  # data files of the programs

    def _form(self) -> str:
        form: str = self.values["format"]
        if self.to_file:
            return "json" if str(self.out).lower().endswith(".json") else "plain"
        if form == "auto":
            shown = is_terminal(self.env.stdout) and not self.env.dumb()
            form = "rich" if shown else "plain"
        return form

    # -- what a command says ----------------------------------------------------------------------

    def compute(self, source: Source, options: Options) -> Any:
        """What the command makes of a program."""

    def show(self, report: Any, several: bool) -> None:
        """Write what was made; `CannotWrite` when that is impossible."""

    def worded(self, diagnostic: Diagnostic, report: Any) -> Diagnostic:
        """An error as people are told it; documents have it as it is."""
        return diagnostic

    # -- before -----------------------------------------------------------------------------------

    def prepared(self, programs: int) -> bool:
        """Check what can be checked before anything runs; False after saying what is wrong."""
        if not self.to_file:
            return True
        try:
            self.check_file(str(self.out), programs)
        except CannotWrite as problem:
            return self.refused(problem)
        return True

    def check_file(self, path: str, programs: int) -> None:
        """Refuse a file that cannot take the results; by default its suffix is their form."""
        check_target(path, programs)

    def refused(self, problem: Any) -> bool:
        """Say why something cannot be written; False."""
        self.env.complain(problem.message, *filter(None, [problem.help]))
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
            **chosen(values, *SAME),
            defines=tuple(self.reader.defined(*define) for define in values["define"]),
            allow_read=folders,
            backward=not values["no_backward"],
            write=self._printed(),
            cluster=self.cluster,
            opened=self.cluster and self.cluster.opened,
        )

    def _printed(self) -> Callable[[str], Any] | None:
        """Where the prints of programs go: to standard error where standard output is a document
        without a heading to part them, and nowhere when they were seen before."""
        if self.env.again:
            return None
        if self.form == "json":
            return printing()
        document = (
            self.form not in self.beside_prints or self.values["asserts"] or self.values["plot"]
        )
        return partial(self.env.printed, aside=document and not self.to_file)

    # -- one program ------------------------------------------------------------------------------

    def run_one(self, name: str | None, *, several: bool) -> Exit:
        """Run one program and show what it did."""
        import time

        from ..language.python.loading import READ

        start = time.perf_counter()
        shown_name = "<expr>" if name is None else "<stdin>" if name == "-" else name
        with waiting(self.env, shown_name, self.values["quiet"], self.cluster):
            report, missing = self._result(name, shown_name)
        self.read.update(READ)
        code = Exit.USAGE if missing else report.exit_code
        self._diagnose(report, missing=missing)
        try:
            self.show(report, several)
        except CannotWrite as problem:
            self.refused(problem)
            code = code or Exit.USAGE
        except (AutodiffError, MemoryError) as error:
            told = error if isinstance(error, AutodiffError) else _out_of_memory()
            self.env.diagnose(told.diagnostic, self.values["diagnostics"])
            return told.diagnostic.exit_code
        if self.values["verbose"]:
            elapsed = time.perf_counter() - start
            self.env.note(f"{shown_name}: {report.status}, {elapsed:.3f} s")
        return code

    def _result(self, name: str | None, shown_name: str) -> tuple[Any, bool]:
        """What the command made of a program, and whether its FILE could not be read."""
        missing = False
        try:
            return self._computed(name, shown_name), False
        except CannotRead as problem:
            missing, error = True, unreadable(shown_name, str(problem))
        except AutodiffError as problem:
            error = problem
        except MemoryError:
            error = _out_of_memory()
        except RecursionError:
            help = "use names for parts of it"
            error = fail("E507", "the program is nested too deeply", help=help)
        except Exception as problem:
            from ..crash import crashed

            error = crashed(problem, self.env.note if self.values["debug"] else None)
        return _failure(shown_name, error), missing

    def _computed(self, name: str | None, shown_name: str) -> Any:
        from ..graph.sizes import bytes_text
        from ..graph.state import own_state

        with deadline(self.values["timeout"]), own_state():
            source = self.reader.source(name, shown_name)
            lost = OUTSIDE.take()
            if lost is not None:
                most = bytes_text(self.values["max_memory"])
                error = explained(lost, source, self.values["timeout"], most)
                failure = _failure(shown_name, error)
                failure.stdout = lost.printed
                return failure
            if self.form == "json":
                forget_printed()
            return self.compute(source, self.settings)

    # -- showing ----------------------------------------------------------------------------------

    def _diagnose(self, report: Any, *, missing: bool) -> None:
        """Warnings and the error, on standard error."""
        values, quiet = self.values, self.values["quiet"]
        if not quiet:
            for warning in report.warnings:
                self.env.diagnose(warning, values["diagnostics"], values["color"])
        if report.error is None or (quiet and self.form == "json" and not self.to_file):
            return
        if missing and values["diagnostics"] == "full":
            self.env.complain(report.error.message, *report.error.diagnostic.helps)
            return
        for error in (report.error, *report.more_errors):
            self.env.diagnose(
                self.worded(error.diagnostic, report), values["diagnostics"], values["color"]
            )

    @cached_property
    def settings(self) -> Options:
        """The options, the same for all programs: made for the first one."""
        from ..language.program.gc_control import collect_seldom

        options = self.options()
        collect_seldom()
        return options

    @cached_property
    def plain_color(self) -> bool:
        """Plain text has colours only where they are asked for, and never in a file."""
        return not self.to_file and self.env.colors(self.env.stdout, self.values["color"])

    def emit(self, text: str) -> None:
        """Write to standard output, or collect for `-o`."""
        if self.to_file:
            self.collected.append(text)
        elif text:
            self.env.write(text)

    def look(self) -> Look:
        """How numbers are shown on standard output."""
        from ..render.values import Look

        env, values = self.env, self.values
        return Look(
            values["precision"], values["sci"], values["max_elements"], env.width(env.stdout),
            env.unicode(env.stdout),
        )  # fmt: skip

    def title(self, report: Any) -> None:
        """The line above the results of one of several programs."""
        title = printable(f"── {report.file} ──", WORD)
        self.env.write(for_encoding(title, getattr(self.env.stdout, "encoding", None)) + "\n")

    @contextmanager
    def drawn(self, report: Any, several: bool, look: Look | None = None) -> Iterator[Page]:
        """What results are drawn on, one of several programs with its title."""
        if several:
            self.title(report)
        yield self.page(look=look)
        if several:
            self.env.write("\n")

    def page(self, stream: Any = None, color: bool | None = None, look: Look | None = None) -> Page:
        """A stream to draw on: standard output, with colours where it shows them."""
        from ..render.tables import Page, terminal

        env, look = self.env, look or self.look()
        if color is None:
            color = env.colors(env.stdout, self.values["color"])
        target: Any = stream or Guarded(env)
        return Page(terminal(target, color, env.variables), look)

    def finish(self) -> Exit:
        """Write what was collected for `-o`."""
        if self.collected and self.to_file:
            try:
                self.write_file(str(self.out), "".join(self.collected))
            except CannotWrite as problem:
                self.refused(problem)
                return Exit.USAGE
        return Exit.OK

    def write_file(self, path: str, text: str) -> None:
        """Write what was collected, by default as it is."""
        write_text(path, text)


class Guarded:
    """The environment's standard output as the file object that rich writes to."""

    def __init__(self, env: Environment):
        self.env = env

    def write(self, text: str) -> None:
        self.env.write(text)

    def flush(self) -> None:
        self.env.flush()


def _failure(name: str, error: AutodiffError) -> Any:
    from ..session import Report

    return Report(name, error=error)


def _out_of_memory() -> AutodiffError:
    from ..language.errors.exhaustion import out_of_memory

    return out_of_memory("showing the results")
