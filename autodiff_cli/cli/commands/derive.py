"""`autodiff derive`: derivatives as formulas in the names of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import Exit
from ..options import Command, Option, shared, whole
from ..runner import both_given, run_programs
from ..streams import Environment
from .explain import Documents

if TYPE_CHECKING:
    from ...explain.derive import Derived
    from ...session import Options
    from ...source import Source

EXAMPLES = """\
  autodiff derive demo.expr
  autodiff derive -e 'x = 2; loss = sin(x)**2 / x' --latex
  autodiff derive model.expr --wrt W --raw
  autodiff derive demo.expr --statements -o demo.txt
  autodiff derive -e 'w = [1, 2]; loss = sum(w**3)' --order 2
"""

OPTIONS = (
    Option(("--latex",), "latex", "LaTeX, in an align* environment."),
    Option(("--statements",), "statements", "Program text: a statement for each derivative."),
    Option(("--order",), "order", "1 for gradients, 2 for Hessians.", "N", whole(1, 2), 1),
    Option(("--steps",), "steps", "How each formula comes about, rule by rule."),
    Option(("--simplify",), "simplify", "Add like terms and multiply factors (the default)."),
    Option(("--raw",), "raw", "As the derivative rules gave it."),
    *shared("wrt", "grad_output", "format", "out"),
)  # fmt: skip


def derive(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """The derivatives of every program of a command line; the worst exit code."""
    for pair in (("latex", "statements"), ("simplify", "raw")):
        if both_given(env, "derive", *[flag for flag in pair if values[flag]]):
            return Exit.USAGE
    if (
        values["steps"]
        and values["order"] > 1
        and both_given(env, "derive", "--steps", "--order 2")
    ):
        return Exit.USAGE
    return run_programs(values, files, env, lambda: Deriver(values, env), "derive", "derive")


COMMAND = Command(
    "derive", OPTIONS, ("files", "[FILE|-]..."), derive,
    "Derivatives as formulas, in the names of the program.\n\n"
    "A formula is evaluated where the program's values are and compared with the gradient. "
    "What has none is E404, what is too long E505; `autodiff explain` shows any derivative "
    "step by step.",
    EXAMPLES,
)  # fmt: skip


class Deriver(Documents):
    """Finds formulas and writes them."""

    forms = ("latex", "statements")

    def compute(self, source: Source, options: Options) -> Derived:
        from ...explain.derive import derive_source
        from ...explain.model import Request

        request = Request(self.values["loss"], self.values["wrt"])
        return derive_source(
            source, options, request, self.values["raw"], self.values["order"],
            self.values["steps"],
        )  # fmt: skip

    def show(self, report: Derived, several: bool) -> bool:
        from ...render.explanations import derive as shown

        if self.form == "json":
            self.emit(shown.dump(report))
        elif report.error is None:
            if self.form == "latex":
                self.emit(shown.latex(report))
            elif self.form == "statements":
                self.emit(shown.statements(report))
            else:
                width = self.look().width if self.form == "rich" else None
                self.emit(shown.lines(report, color=self.plain_color, width=width))
        return True
