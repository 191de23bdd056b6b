"""Derivatives as formulas: lines for people, program text, LaTeX, JSON."""

from __future__ import annotations

from typing import Any

from ...explain.derive import Derived
from ...symbolic.writing.latex import name as latex_name
from ..document import enveloped, picked, problem
from ..plain import BOLD, DIM, RESET
from ..text import WHOLE, broken, dumped, identifier, pad, printable, text_width

SCHEMA = "autodiff.derive/1"
WIDTH = 100  # cells of a page that is no terminal
GAP = 3  # cells between a line and the rule beside it


def lines(found: Derived, *, color: bool = False, width: int | None = None) -> str:
    """`d loss / d A = 2 * A + B`, one a line; long ones go on below themselves in a terminal of
    `width` cells. The rule that made a line of a derivation stands beside it where there is
    room."""
    dim, end = (DIM, RESET) if color else ("", "")

    def put(start: str, text: str) -> list[str]:
        """A text behind its start, or below it where there is too little room."""
        text = printable(text, WHOLE)
        own = text_width(start)
        if width is None or own + text_width(text) <= width:
            return [start + text]
        indent = len(start) - len(start.lstrip()) + 4
        for margin in [own] * (own <= width // 2) + [min(indent, width // 2), 4]:
            rows = [" " * margin + row for row in broken(text, width - margin, code=True)]
            if max(map(text_width, rows)) <= width:
                break
        if margin == own:
            return [start + rows[0].lstrip(), *rows[1:]]
        return [*broken(start.rstrip(), width), *rows]

    shown: list[str] = []
    for d in found.derivatives:
        head, of = _head(found, d.wrt), f"d({printable(found.of)})"
        margin = text_width(head)
        if width is not None and margin + 3 > width // 2:
            margin = min(text_width(of), width // 2 - 3)
        steps = [
            (put(f"{pad('' if at else of, margin, '>')} = ", line), printable(rule, WHOLE), lets)
            for at, (line, rule, lets) in enumerate(d.steps)
        ]
        sizes = [(text_width(rows[-1]), text_width(rule)) for rows, rule, _ in steps if rule]
        column = _column(sizes, width or WIDTH)
        for rows, rule, lets in steps:
            space = column - text_width(rows[-1])
            if rule and space >= GAP and column + text_width(rule) <= (width or WIDTH):
                rows[-1] += f"{' ' * space}{dim}{rule}{end}"
            elif rule:
                rows += [f"{dim}{row}{end}" for row in put(" " * (margin + 5), rule)]
            for name, part in lets:
                rows += put(f"{' ' * (margin + 3)}  let {name} = ", part)
            shown += rows
        rows = put(f"{head} = ", d.text)
        if color:
            rows[0] = rows[0].replace(head, f"{BOLD}{head}{RESET}")
        if not d.verified:
            rows[-1] += f"   {dim}(not verified){end}"
        for at, (name, part, _) in enumerate(d.lets):
            rows += put(f"{'and' if at else 'where':>{margin + 2}} {name} = ", part)
        shown += rows
    return "".join(f"{row}\n" for row in shown)


def _column(sizes: list[tuple[int, int]], width: int) -> int:
    """Where rules stand so that most of them have room beside their lines; `sizes` of both."""
    columns = sorted({line + GAP for line, _ in sizes})
    return max(
        columns,
        key=lambda at: sum(line + GAP <= at <= width - rule for line, rule in sizes),
        default=0,
    )


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
