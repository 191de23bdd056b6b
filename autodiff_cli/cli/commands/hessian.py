"""`autodiff hessian`: second derivatives of one number, its eigenvalues, or only a product."""

from __future__ import annotations

from typing import Any

from ...errors import Exit
from ..options import Command, Option
from ..runner import both_given
from ..streams import Environment
from .jacobian import SHARED, run_all

EXAMPLES = """\
  autodiff hessian -e 'x = [1, 2]; loss = x[0]**2 * x[1]'
  autodiff hessian model.expr --wrt W,b --eig
  autodiff hessian model.expr --hvp ones
  autodiff hessian model.expr --hvp '{"W": [[1, 0], [0, 0]]}' --format json
"""

OPTIONS = (
    Option(("--hvp",), "hvp", "Only the product with a vector: `ones`, a number, a list with one "
           "for each input, a dict by name, all elements in a row, or @v.npy.", "EXPR"),
    Option(("--diag",), "diag", "Only the diagonal."),
    Option(("--eig",), "eig", "The extreme eigenvalues, and what they say: minimum, maximum, "
           "saddle; always shown up to 64 rows."),
    Option(("--force",), "force", "However many entries it has."),
    *SHARED,
)  # fmt: skip


def hessian(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """The Hessians of all programs of a command line; the worst exit code."""
    from ...language.program.derivatives import Request

    asked = [flag for flag in ("hvp", "diag", "eig") if values[flag] not in (None, False)]
    if both_given(env, "hessian", *asked):
        return Exit.USAGE
    part = "product" if "hvp" in asked else "diagonal" if "diag" in asked else "full"
    request = Request(
        "hessian", values["loss"], values["wrt"], "reverse", part, values["hvp"] or "",
        values["eig"], values["force"],
    )  # fmt: skip
    return run_all(values, files, env, request)


COMMAND = Command(
    "hessian", OPTIONS, ("files", "[FILE|-]..."), hessian,
    "Second derivatives of one number, in a named block for each pair of inputs.\n\n"
    "What is differentiated is --of NAME, else `loss`, else the last number that was "
    "computed; with respect to --wrt, else every leaf it depends on. More than 10,000,000 "
    "entries need --force; --hvp and --diag never build the matrix.",
    EXAMPLES,
)  # fmt: skip
