"""`autodiff derive`: derivatives as formulas in the names of the program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ...errors import Exit
from ..options import Command, Option, form_option, shared, whole
from ..runner import both_given, run_programs
from ..streams import Environment
from .explain import Documents, several_forms

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
  autodiff derive model.py --to numpy -o gradients.py
"""

FORMS, CODE = ("latex", "statements"), ("numpy", "torch", "jax")
OPTIONS = (
    Option(("--latex",), "latex", "--to latex: in an align* environment."),
    Option(("--statements",), "statements", "--to expr: program text, a statement for each "
           "derivative."),
    Option(("--order",), "order", "1 for gradients, 2 for Hessians.", "N", whole(1, 2), 1),
    Option(("--steps",), "steps", "How each formula comes about, rule by rule."),
    Option(("--simplify",), "simplify", "Add like terms and multiply factors (the default)."),
    Option(("--raw",), "raw", "As the derivative rules gave it."),
    form_option("rich", "plain", "json", "latex", "expr", *CODE, more=" The last three "
                "are code of the result and its gradients that checks itself when it is run."),
    *shared("wrt", "grad_output", "out"),
)  # fmt: skip


def derive(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """The derivatives of every program of a command line; the worst exit code."""
    if values["format"] == "expr":
        values["format"] = "statements"
    raw = [flag for flag in ("simplify", "raw") if values[flag]]
    first = ["steps"] * values["steps"] + ["order 2"] * (values["order"] > 1)
    two_forms = several_forms(values, env, "derive", *FORMS)
    if two_forms or any(both_given(env, "derive", *flags) for flags in (raw, first)):
        return Exit.USAGE
    return run_programs(values, files, env, lambda: Deriver(values, env), "derive", "derive")


COMMAND = Command(
    "derive", OPTIONS, ("files", "[FILE|-]..."), derive,
    "Derivatives as formulas, in the names of the program.\n\n"
    "A formula is evaluated where the program's values are and compared with the gradient. "
    "What has none is E404, what is too long E505, beside the formulas of the other names; "
    "`autodiff explain` shows any derivative step by step.",
    EXAMPLES,
)  # fmt: skip


class Deriver(Documents):
    """Finds formulas and writes them."""

    forms = (*FORMS, *CODE)

    def compute(self, source: Source, options: Options) -> Derived:
        from ...explain.derive import derive_source
        from ...explain.model import Request

        request = Request(self.values["loss"], self.values["wrt"])
        values = self.values
        beside = None
        code = self.form if self.form in CODE else None
        if self.to_file and code:
            beside = os.path.splitext(os.path.basename(str(self.out)))[0] + ".npz"
        return derive_source(
            source, options, request, values["raw"], values["order"], values["steps"], code, beside
        )

    def show(self, report: Derived, several: bool) -> None:
        from ...render.explanations import derive as shown

        if self.form == "json":
            self.emit(shown.dump(report))
        elif report.error is None or report.partial:
            if report.code:
                self.emit(report.code)
                if report.data:
                    from ...render.files import store_arrays

                    place = os.path.splitext(str(self.out))[0] + ".npz"
                    store_arrays(place, report.data, "array", "", "")
            elif self.form == "latex":
                self.emit(shown.latex(report))
            elif self.form == "statements":
                self.emit(shown.statements(report))
            else:
                width = self.look().width if self.form == "rich" else None
                self.emit(shown.lines(report, color=self.plain_color, width=width))
