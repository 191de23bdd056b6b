"""`autodiff run`: programs in, results on standard output, diagnostics on standard error."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...render.files import CannotWrite, write_arrays, write_bytes, write_zarr
from ...render.text import WORD, format_count, printable
from ...suggest import named, unknown
from ..options import RUN_OPTIONS, Command
from ..runner import Runner, run_programs
from ..streams import Environment

if TYPE_CHECKING:
    from ...errors import Diagnostic
    from ...session import Options, Report
    from ...source import Source

EXAMPLES = """\
  autodiff run demo.expr
  autodiff run -e 'x = 3; loss = x**2 + sin(x)'
  autodiff run demo.expr -D lr=0.1 -D W=@weights.npy --format json
  autodiff run a.expr b.expr --only gradients
"""


def run_files(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """Run every program of a command line; the worst exit code."""
    return run_programs(values, files, env, lambda: Run(values, env), "run", "run")


COMMAND = Command(
    "run", RUN_OPTIONS, ("files", "[FILE|-]..."), run_files,
    "Evaluate programs, differentiate them, print the results.\n\n"
    "FILE is program text; - is standard input, which is also read when there is neither FILE "
    "nor -e and it is not a terminal.",
    EXAMPLES,
)  # fmt: skip


WIDTH = 120  # cells of plans and profiles where there is no terminal


class Run(Runner):
    """Evaluates and differentiates; shows values, graph and gradients."""

    beside_prints = ("rich", "plain")

    def __init__(self, values: dict[str, Any], env: Environment):
        super().__init__(values, env)
        self.globs: tuple[str, ...] = values["show"]
        self.losses: list[float] = []
        self.figure = b""

    def _form(self) -> str:
        form = super()._form()
        return "plain" if form == "rich" and self.values["asserts"] else form

    def compute(self, source: Source, options: Options) -> Report:
        from ...language.program.running import run_program

        if self.values["fix"]:
            return self._corrected(source, options)
        if self.values["plot"]:
            report, self.losses = self._plotting.observed(source, options)
            return report
        return run_program(source, options)

    @cached_property
    def _plotting(self) -> Any:
        from ...render.pictures import plots

        return plots

    def check_file(self, path: str, programs: int) -> None:
        if self.values["plot"]:
            self._plotting.check_file(path, programs)
        else:
            super().check_file(path, programs)

    def write_file(self, path: str, text: str) -> None:
        if self.values["plot"]:
            write_bytes(path, self.figure)
        else:
            super().write_file(path, text)

    def _corrected(self, source: Source, options: Options) -> Report:
        """Run with `--fix`: what was printed on the way to an error that is gone is not shown."""
        from dataclasses import replace

        from ... import session
        from ..fixing import applied, corrected, proposed

        silent = replace(options, write=None)

        def run(text: Source) -> Report:
            return session.run(text, silent)

        report, changed = corrected(source, run)
        if changed is not source:
            self._keep(source, changed)
        unsafe = proposed(report, changed, run)
        if unsafe is not None and not self.values["quiet"]:
            self._differ(
                changed,
                applied(changed.text, [unsafe]),
                "not written: it may compute something else",
            )
        if options.write is not None:
            options.write(report.stdout)
        return report

    def worded(self, diagnostic: Diagnostic, report: Report) -> Diagnostic:
        """An error that `--fix` corrects says so; where a limit ended the program there may be no
        memory to look for it."""
        if "E505" <= diagnostic.code <= "E508":
            return diagnostic
        from dataclasses import replace
        from shlex import quote

        from ..fixing import edit_of

        span = diagnostic.span
        correctable = not (self.values["fix"] or self.values["expr"] or report.file[:1] == "<")
        if not correctable or span is None or span.source.name != report.file:
            return diagnostic
        if edit_of(diagnostic, span.source) is None:
            return diagnostic
        help = f"`autodiff run --fix {quote(report.file)}` applies this"
        return replace(diagnostic, helps=(*diagnostic.helps, help))

    def _keep(self, source: Source, changed: Source) -> None:
        """Show the corrections and write them into the file."""
        from ..fixing import written_back

        if not self.values["quiet"]:
            self._differ(source, changed.text)
        if self.values["expr"] or source.name.startswith("<"):
            return
        try:
            with open(source.name, "rb") as file:
                data = file.read()
            write_bytes(source.name, written_back(data, changed.text))
        except (CannotWrite, OSError) as problem:
            self.env.complain(f"the corrections are not kept: {problem}", severity="warning")

    def _differ(self, source: Source, changed: str, *words: str) -> None:
        from ...render.checks import diff_text

        diff = diff_text(source.name, source.text, changed).rstrip("\n")
        self.env.note("\n".join([*words, diff]))

    def show(self, report: Report, several: bool) -> None:
        if self.form == "json":
            from ...render.document import dump

            self.emit(dump(report, self.values["plan"]))
        elif report.error is None:
            self._results(report, several)
            self._measured(report)

    def _results(self, report: Report, several: bool) -> None:
        suffix = str(self.out).lower()[-5:] if self.to_file else ""
        if self.values["plot"]:
            self._plots(report)
        elif self.values["heat"]:
            self._pictures(report, self.values["heat"])
        elif suffix == ".zarr":
            write_zarr(str(self.out), report, self.globs, self.cluster)
        elif suffix.endswith((".npz", ".npy", ".csv")):
            write_arrays(str(self.out), report, self.values["only"], self.globs)
        else:
            self._unmatched(report)
            if self.form == "rich":
                self._tables(report, several)
                return
            from ...render.plain import plain

            self.emit(plain(
                report, only=self.values["only"], show=self.globs, asserts=self.values["asserts"],
                all=self.values["all"] or bool(self.out), color=self.plain_color,
            ))  # fmt: skip

    def _measured(self, report: Report) -> None:
        """The plan and the profile, after the results."""
        values, env = self.values, self.env
        if not (values["plan"] or values["profile"]):
            return
        from ...render.plain import comments
        from ...render.plan import plan_lines
        from ...render.profile import profile_lines

        rich = self.form == "rich"
        width = self.look().width if rich else WIDTH
        parts = []
        if values["plan"]:
            parts.append(plan_lines(report.plan, width, values["all"], values["verbose"]))
        if report.profile is not None:
            parts.append(profile_lines(report.profile, report.file, width, values["all"]))
        for lines in parts:
            if rich:
                env.write("\n")
                self.page().lines(lines)
            elif self.to_file and not str(self.out).lower().endswith(".txt"):
                env.write(comments(lines, False))
            else:
                self.emit(comments(lines, self.plain_color))

    def _plots(self, report: Report) -> None:
        plots, look = self._plotting, self.look()
        arrays = plots.chosen(report, self.globs, self.losses)
        if self.to_file:
            self.figure = plots.figure(report, arrays, self.losses, str(self.out)[-3:].lower())
            self.emit(report.file)
            return
        name = report.objective or "loss"
        lines = plots.curve_lines(self.losses, name, look.unicode, look.width)
        self.emit("".join(f"{line}\n" for line in lines))
        self._pictures(report, list(arrays)[: plots.MOST])
        if (more := len(arrays) - plots.MOST) > 0:
            dots = "…" if look.unicode else "..."
            self.emit(f"\n {dots} {format_count(more, 'more picture')} (--show)\n")

    def _pictures(self, report: Report, wanted: Sequence[str]) -> None:
        from io import StringIO

        from ...render.pictures.blocks import print_pictures

        text = StringIO()
        print_pictures(report, wanted, self.page(text, self.plain_color))
        self.emit(text.getvalue())

    def _unmatched(self, report: Report) -> None:
        for glob in self.globs:
            wanted = glob.removesuffix(".grad")
            if not named(wanted, report.tensors):
                message = f"--show {printable(glob, WORD)}: the program has no such tensor"
                raise unknown(message, wanted, report.tensors)

    def _tables(self, report: Report, several: bool) -> None:
        values = self.values
        with self.drawn(report, several) as page:
            page.report(report, only=values["only"], show=self.globs, all=values["all"])
        said = report.tensors or report.scalars or report.stdout or report.shown is not None
        if not said and not values["quiet"]:
            self.env.note(
                f"{printable(report.file, WORD)} computes nothing: there is nothing to show"
            )
