"""Derivatives as formulas: lines for people, program text, LaTeX, JSON."""

from __future__ import annotations

from typing import Any

from ...explain.derive import Derived
from ...symbolic.writing.latex import name as latex_name
from ..document import enveloped, picked, problem
from ..plain import BOLD, DIM, RESET
from ..text import WHOLE, broken, dumped, identifier, printable, text_width

SCHEMA = "autodiff.derive/1"


def lines(found: Derived, *, color: bool = False, width: int | None = None) -> str:
    """`d loss / d A = 2 * A + B`, one a line; long ones go on below themselves in a terminal of
    `width` cells."""

    def put(text: str, margin: int) -> str:
        text = printable(text, WHOLE)
        if width is None:
            return text
        return f"\n{' ' * margin}".join(broken(text, max(width - margin, 20)))

    shown = []
    for d in found.derivatives:
        head = _head(found, d.wrt)
        note = "" if d.verified else "   (not verified)"
        margin = text_width(head) + 3
        text = put(d.text, margin)
        for at, (line, rule, lets) in enumerate(d.steps):
            start = f"d({printable(found.of)})" if at == 0 else ""
            shown.append(f"{start:>{margin - 3}} = {put(line, margin)}\n")
            if rule:
                dim, end = (DIM, RESET) if color else ("", "")
                shown.append(f"{' ' * margin}  {dim}{put(rule, margin + 2)}{end}\n")
            for name, part in lets:
                start = f"{' ' * margin}  let {name} = "
                shown.append(f"{start}{put(part, text_width(start))}\n")
        if color:
            head = f"{BOLD}{head}{RESET}"
            note = f"{DIM}{note}{RESET}" if note else ""
        shown.append(f"{head} = {text}{note}\n")
        for at, (name, part, _) in enumerate(d.lets):
            start = f"{'where' if at == 0 else 'and':>{margin - 1}} {name} = "
            shown.append(f"{start}{put(part, text_width(start))}\n")
    return "".join(shown)


def _head(found: Derived, wrt: str) -> str:
    """`d loss / d x`, `d2 loss / d x d y`."""
    if found.order == 1:
        return f"d {printable(found.of)} / d {printable(wrt)}"
    names = wrt.split(",")
    return f"d2 {printable(found.of)} / d {printable(names[0])} d {printable(names[-1])}"


def statements(found: Derived) -> str:
    """`dloss_dA = 2 * A + B`: to be put below the program."""
    mark = "d" if found.order == 1 else "d2"
    made = []
    for d in found.derivatives:
        made += [f"{name} = {part}\n" for name, part, _ in d.lets]
        made.append(f"{mark}{identifier(found.of)}_d{identifier(d.wrt)} = {d.text}\n")
    return "".join(made)


def latex(found: Derived) -> str:
    """An `align*` environment; it needs `amsmath`."""
    rows = []
    for d in found.derivatives:
        if found.order > 1:
            head = rf"\nabla^{{2}}_{{{d.wrt_latex}}} {found.of_latex}"
        elif found.whole or not d.shape:
            head = rf"\frac{{\partial {found.of_latex}}}{{\partial {d.wrt_latex}}}"
        else:
            head = rf"\nabla_{{{d.wrt_latex}}} {found.of_latex}"
        row = f"{head} &= {d.latex}"
        if d.lets:
            row += r" \quad\text{where}\quad " + r",\; ".join(
                f"{latex_name(name)} = {part}" for name, _, part in d.lets
            )
        rows.append(row)
    return "\\begin{align*}\n" + " \\\\\n".join(rows) + "\n\\end{align*}\n"


def dump(found: Derived) -> str:
    """The document as one line, with its line end; where some names have no formula it has those
    of the others, and the errors by name."""
    document = enveloped(SCHEMA, found, lambda: _body(found))
    if found.missing:
        errors = {name: problem(error.diagnostic) for name, error in found.missing.items()}
        document |= {**_body(found), "missing": errors}
    return dumped(document)


def _body(found: Derived) -> dict[str, Any]:
    return {
        "of": found.of,
        "order": found.order,
        "derivatives": {
            d.wrt: {
                "expr": d.text,
                "text": d.text,
                "lets": [[name, part] for name, part, _ in d.lets],
                "steps": [
                    {"expr": line, "rule": rule, "lets": [list(let) for let in lets]}
                    for line, rule, lets in d.steps
                ],
                **picked(d, "cost", "latex", "shape", "verified"),
            }
            for d in found.derivatives
        },
    }
