"""`autodiff jacobian`: all first derivatives of one result, a named block for each input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..options import RUN_OPTIONS, Command, Option, choice
from ..runner import Runner, run_programs
from ..streams import Environment

if TYPE_CHECKING:
    from ...language.program.derivatives import Derivatives, Request
    from ...session import Options
    from ...source import Source

EXAMPLES = """\
  autodiff jacobian -e 'x = [1, 2, 3]; y = x**2 * sum(x)'
  autodiff jacobian model.expr --of y --wrt 'W*,b' --format json
  autodiff jacobian model.expr --layout flat -o J.npz
"""

# Settings of `run` that mean something here.
SHARED = tuple(
    option
    for option in RUN_OPTIONS
    if option.key not in (
        "no_backward", "grad_output", "only", "show", "all", "asserts", "heat", "plot",
        "fix", "watch",
    )
)  # fmt: skip
OPTIONS = (
    Option(("--mode",), "mode", "How it is computed: reverse (row by row), forward (column by "
           "column), or auto: whichever has fewer.", "MODE",
           choice("auto", "reverse", "forward"), "auto"),
    Option(("--layout",), "layout", "block: an array for each input, of the output's shape "
           "followed by the input's; flat: one matrix.", "LAYOUT", choice("block", "flat"),
           "block"),
    Option(("--force",), "force", "However many entries it has."),
    *SHARED,
)  # fmt: skip


def jacobian(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """The Jacobians of all programs of a command line; the worst exit code."""
    from ...language.program.derivatives import Request

    request = Request(
        "jacobian", values["loss"], values["wrt"], values["mode"], force=values["force"]
    )
    return run_all(values, files, env, request, values["layout"] == "flat")


COMMAND = Command(
    "jacobian", OPTIONS, ("files", "[FILE|-]..."), jacobian,
    "All derivatives of a result, in named blocks.\n\n"
    "What is differentiated is --of NAME, else `loss`, else what the program computed last; "
    "with respect to --wrt, else every leaf it depends on. More than 10,000,000 entries need "
    "--force.",
    EXAMPLES,
)  # fmt: skip


def run_all(
    values: dict[str, Any], files: list[str], env: Environment, request: Request, flat: bool = False
) -> int:
    """Find what is wanted of every program; the worst exit code, as `run` has it."""
    return run_programs(
        values, files, env, lambda: BlockRunner(values, env, request, flat), request.kind,
        "differentiate",
    )  # fmt: skip


class BlockRunner(Runner):
    """Computes blocks of derivatives and shows them."""

    def __init__(self, values: dict[str, Any], env: Environment, request: Request, flat: bool):
        super().__init__(values, env)
        self.request = request
        self.flat = flat

    def compute(self, source: Source, options: Options) -> Derivatives:
        from ...language.program.derivatives import derivatives

        return derivatives(source, options, self.request)

    def show(self, report: Any, several: bool) -> None:
        from ...render import blocks

        if self.form == "json":
            self.emit(blocks.dump(report, self.request.kind, self.flat))
            return
        if report.error is not None:
            return
        if self.to_file and str(self.out).lower().endswith((".npz", ".npy", ".csv")):
            blocks.write_blocks(str(self.out), report, self.flat)
            return
        if self.form == "rich":
            with self.drawn(report, several) as page:
                blocks.print_blocks(report, page, flat=self.flat)
        else:
            self.emit(blocks.plain(report, flat=self.flat, color=self.plain_color))
