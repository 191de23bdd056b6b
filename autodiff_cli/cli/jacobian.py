"""`autodiff jacobian`: all first derivatives of one result, a named block for each input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Exit
from .options import RUN_OPTIONS, Option, choice
from .run import ORDER, Runner, _Guarded, deadline
from .streams import Environment, is_terminal, is_unicode

if TYPE_CHECKING:
    from ..language.derivatives import Derivatives, Request

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
        "no_backward", "grad_output", "only", "show", "all", "asserts",
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


def command() -> Any:
    """The click command."""
    from .group import make_command

    return make_command(
        "jacobian",
        OPTIONS,
        ("files", "[FILE|-]..."),
        jacobian,
        "All derivatives of a result, in named blocks.\n\n"
        "What is differentiated is --of NAME, else `loss`, else what the program computed last; "
        "with respect to --wrt, else every leaf it depends on. More than 10,000,000 entries need "
        "--force.",
        EXAMPLES,
    )


def jacobian(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """The Jacobians of all programs of a command line; the worst exit code."""
    from ..language.derivatives import Request

    request = Request(
        "jacobian", values["loss"], wrt_of(values), values["mode"], force=values["force"]
    )
    return run_all(values, files, env, request, values["layout"] == "flat")


def wrt_of(values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for group in values["wrt"] for name in group)


def run_all(
    values: dict[str, Any], files: list[str], env: Environment, request: Request, flat: bool = False
) -> int:
    """Find what is wanted of every program; the worst exit code, as `run` has it."""
    if not files and not values["expr"]:
        if env.stdin is None or is_terminal(env.stdin):
            env.note("error: there is no program to differentiate")
            env.note(f"help: name a file: `autodiff {request.kind} demo.expr`")
            env.note(f"help: or give a line: `autodiff {request.kind} -e 'x = 3; loss = x**2'`")
            return Exit.USAGE
        files = ["-"]
    runner = BlockRunner(values, env, request, flat)
    names: list[str | None] = [*files] or [None]
    if not runner.prepared(len(names)):
        return Exit.USAGE
    codes = [runner.run_one(name, several=len(names) > 1) for name in names]
    codes.append(runner.finish())
    return next(code for code in ORDER if code in codes)


class BlockRunner(Runner):
    """Reads, diagnoses and writes as `run` does; computes and shows blocks."""

    def __init__(self, values: dict[str, Any], env: Environment, request: Request, flat: bool):
        unused = {"only": (), "show": (), "asserts": False, "all": False, "grad_output": None}
        super().__init__({**unused, "no_backward": False, **values}, env)
        self.request = request
        self.flat = flat

    def _report(self, name: str | None, shown_name: str) -> Any:
        with deadline(self.values["timeout"]):
            source = self._source(name, shown_name)
            import gc

            from ..language.derivatives import derivatives

            options = self.options()
            gc.freeze()
            gc.enable()
            return derivatives(source, options, self.request)

    def _show(self, report: Any, several: bool) -> bool:
        from ..render import blocks
        from ..render.files import CannotWrite

        if self.form == "json":
            self._emit(blocks.dump(report, self.request.kind, self.flat))
            return True
        if report.error is not None:
            return True
        if self.to_file and str(self.out).lower().endswith((".npz", ".npy", ".csv")):
            try:
                blocks.write_blocks(str(self.out), report, self.flat)
            except CannotWrite as problem:
                return self._refused(problem)
            return True
        if self.form == "rich":
            self._blocks(report, several)
        else:
            color = not self.to_file and self._plain_color(self.env, self.values["color"])
            self._emit(blocks.plain(report, flat=self.flat, color=color))
        return True

    def _blocks(self, report: Derivatives, several: bool) -> None:
        from ..render.blocks import print_blocks
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
        print_blocks(
            report, stream, look, env.colors(env.stdout, values["color"]), dict(env.variables),
            flat=self.flat,
        )  # fmt: skip
        if several:
            env.write("\n")
