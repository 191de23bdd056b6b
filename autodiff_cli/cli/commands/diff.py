"""`autodiff diff`: two programs, one program under two sets of values, or two saved results."""

from __future__ import annotations

import math
import os
from shlex import quote
from typing import TYPE_CHECKING, Any

from ...checks.deadline import deadline
from ...ended import explained
from ...errors import AutodiffError, Exit
from ...language.syntax.decode import decode
from ...numerals import aligned
from ...outside import OUTSIDE
from ...render.text import WORD, dumped, pad, printable, text_width
from ..options import FORMAT, Command, Option, chosen, define, only
from ..streams import Environment

if TYPE_CHECKING:
    from ...checks.beside_torch.departures import Comparison, Departure, Outcome

EXAMPLES = """\
  autodiff diff before.expr after.expr
  autodiff diff train.expr -D lr=0.1 --with lr=0.2
  autodiff diff results.npz demo.expr
"""


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"{text} is no tolerance")
    return value


OPTIONS = (
    Option(("--with",), "other", "An assignment of the second side only.", "NAME=VALUE", define,
           repeat=True),
    Option(("--rtol",), "rtol", "Relative tolerance; default by dtype.", "X", _tolerance),
    Option(("--atol",), "atol", "Absolute tolerance; default by dtype.", "X", _tolerance),
    FORMAT,
    *only("define", "loss", "wrt", "dtype", "color", "diagnostics", "max_memory", "max_steps",
          "timeout", "quiet", "debug"),
)  # fmt: skip


def diff(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """Compare; 0 when everything agrees, 1 when not."""
    if not 1 <= len(files) <= 2:
        env.complain("give one program or two files", "autodiff diff before.expr after.expr")
        return Exit.USAGE
    if len(files) == 1 and not (values["define"] or values["other"]):
        env.complain(
            "one program and one set of values: there is nothing to compare",
            f"autodiff diff {quote(files[0])} -D NAME=VALUE --with NAME=OTHER",
        )
        return Exit.USAGE
    for file in files:
        if not os.path.exists(file):
            env.complain(f"cannot read `{file}`: no such file or directory")
            return Exit.USAGE
    from ...checks.beside_torch.departures import compare

    second = tuple(values["other"])
    defines = tuple(values["define"])
    try:
        lost = OUTSIDE.take()
        if lost is not None:
            raise explained(lost, None, values["timeout"])
        with deadline(values["timeout"]):
            left = _outcome(files[0], values, defines)
            right = _outcome(files[-1], values, second if len(files) == 1 else defines + second)
            found = compare(left, right, values["rtol"], values["atol"])
    except AutodiffError as error:
        env.diagnose(error.diagnostic, values["diagnostics"], values["color"])
        return error.diagnostic.exit_code
    if values["format"] == "json":
        env.write(dumped(document(left, right, found)))
    elif not values["quiet"]:
        env.write("".join(line + "\n" for line in lines(left, right, found)))
    return Exit.OK if found.equal else Exit.NO


COMMAND = Command(
    "diff", OPTIONS, ("files", "A [B]"), diff,
    "Compare two results: the first node that departs, and how far that spreads.\n\nA and B "
    "are programs (.expr, .py) or saved results (.npz, .json, .snap, .txt). With A alone the "
    "two sides are A with the values of -D, and A with those of --with.",
    EXAMPLES,
)  # fmt: skip


def _outcome(path: str, values: dict[str, Any], defines: tuple[Any, ...]) -> Outcome:
    from ...checks.beside_torch.departures import outcome_of_arrays, outcome_of_program, read_saved
    from ...session import Options

    if path.lower().endswith((".npz", ".json", ".snap", ".txt")):
        return outcome_of_arrays(read_saved(path), path)
    with open(path, "rb") as file:
        source = decode(file.read(1 << 26), path)
    same = chosen(values, "loss", "wrt", "dtype", "max_memory", "max_steps")
    options = Options(**same, defines=defines, nan="ignore")
    title = path + "".join(f" -D {name}={text}" for name, text, _ in defines)
    return outcome_of_program(source, options, title)


# -- showing --------------------------------------------------------------------------------------


def _where(departure: Departure) -> str:
    span = departure.span
    return "" if span is None else f"  {span.source.name}:{span.line}"


def lines(left: Outcome, right: Outcome, found: Comparison) -> list[str]:
    """The comparison for people."""
    text = [f"left   {printable(left.title, WORD)}", f"right  {printable(right.title, WORD)}", ""]
    if found.equal:
        return [*text, f"no departure: {found.values} values and {found.compared_gradients} "
                "gradients agree"]  # fmt: skip
    departed = [*found.departures, *found.gradients]
    for first in departed[:1]:
        text += _first(first)
    if later := departed[1:]:
        text.append("spreads to")
        width = max(text_width(d.name) for d in later)
        for departure in later[:50]:
            turn = f" (assignment {departure.turn + 1})" if departure.turn else ""
            text.append(
                f"  {pad(departure.name, width)}  {departure.text}, relative error up to "
                f"{departure.largest:.2g}{turn}{_where(departure)}"
            )
        if len(later) > 50:
            text.append(f"  ... and {len(later) - 50} more")
    for title, names in (("left", found.only_left), ("right", found.only_right)):
        if names:
            shown = list(dict.fromkeys(names))
            more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
            text.append(f"only {title}: {printable(', '.join(shown[:20]))}{more}")
    text.append(
        f"{len(found.departures)} of {found.values} values and {len(found.gradients)} of "
        f"{found.compared_gradients} gradients depart"
    )
    return text


def _first(first: Departure) -> list[str]:
    text = [f"first departure: `{first.name}`{_where(first)}: {first.text}"]
    inner = first.inner
    if inner is not None and inner.span is not None and inner.op.key not in ("leaf", "constant"):
        place = f"{inner.span.source.name}:{inner.span.line}:{inner.span.column}"
        text.append(f"  in `{printable(inner.span.text, WORD)}` ({inner.op.name}), {place}")
    rows = [("index", "left", "right", "abs diff"), *first.rows]
    return text + [f"    {line}" for line in aligned(rows) if first.rows]


def document(left: Outcome, right: Outcome, found: Comparison) -> dict[str, Any]:
    """The comparison as data for strict JSON."""

    def entry(departure: Departure) -> dict[str, Any]:
        finite = departure.largest < float("inf")
        return {
            "name": departure.name,
            "difference": departure.text,
            "relative_error": departure.largest if finite else "inf",
            "assignment": departure.turn + 1,
            "line": departure.span.line if departure.span else None,
            "other_line": departure.other.line if departure.other else None,
            "node": departure.inner.op.name if departure.inner is not None else None,
        }

    return {
        "schema": "autodiff.diff/1",
        "left": left.title,
        "right": right.title,
        "equal": found.equal,
        "values": [entry(departure) for departure in found.departures],
        "gradients": [entry(departure) for departure in found.gradients],
        "only_left": found.only_left,
        "only_right": found.only_right,
    }
