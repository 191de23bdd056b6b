"""Explanations as documents: Markdown and LaTeX to be pasted, JSON for programs.

Invariant: LaTeX needs `amsmath` only and has balanced braces and environments whatever the program
is; JSON is strict and never shortened.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...explain.model import Contribution, Explanation, Formula, Total
from ...symbolic.writing.latex import number
from ..document import as_data, enveloped, picked
from ..text import dumped, format_number, format_shape, printable
from ..values import Look, cell_lines, joined, norm
from .explain import added, notes

SCHEMA = "autodiff.explain/1"
MOST_IN_MATRIX = 36  # elements of a matrix that is written out


# -- Markdown -------------------------------------------------------------------------------------


def markdown(found: Explanation, look: Look, symbolic: bool = False) -> str:
    """The explanation as Markdown: tables of forward values and of contributions."""
    objective = _code(found.objective or "the objective")
    lines = [f"# Gradient of {objective}", ""]
    if found.forward:
        lines += ["## Forward", "", *_forward_table(found, look, symbolic), ""]
    if found.steps:
        lines += ["## Backward", "", f"`g(v)` means d {objective} / d `v`.", ""]
    for seed in found.seeds:
        value = "" if symbolic and seed.value.shape else f" = {_inline(seed.value, look)}"
        lines += [f"Seed: {_code(f'g({seed.name})')}{value}", ""]
    for step in found.steps:
        times = f", {step.times} times" if step.times > 1 else ""
        lines += [
            f"**Step {step.number}: {_code(step.op)}{times}.** {_plain(_sentence(step.rule))}.",
            "",
        ]
        lines += [f"* {_item(c, look, symbolic)}" for c in step.contributions]
        lines.append("")
    if found.totals and not symbolic:
        lines += ["## Total", ""]
        for total in found.totals:
            lines.append(
                f"* {_code(f'g({total.name})')} = {_inline(total.value, look)}{added(total)}"
            )
        lines.append("")
    if found.check is not None and not symbolic:
        lines += [f"Check: {_plain(found.check.text)}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _forward_table(found: Explanation, look: Look, symbolic: bool) -> list[str]:
    titles = ["step", "expression", *([] if symbolic else ["value"])]
    rows = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    for f in found.forward:
        times = f" ({f.times} times)" if f.times > 1 else ""
        cells = [str(f.number), _code(f"{f.name} = {f.expression.text}", table=True) + times]
        if not symbolic:
            cells.append(_inline(f.value, look))
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def _item(c: Contribution, look: Look, symbolic: bool) -> str:
    sign = "+=" if c.paths > 1 else "="
    shown = _code(f"g({c.to}) {sign} {c.formula.text}")
    if not symbolic:
        shown += f" = {_inline(c.value, look)}"
    said = notes(c)
    return shown + (f" ({'; '.join(said)})" if said else "")


def _inline(value: np.ndarray, look: Look) -> str:
    return f"`{shown_value(value, look)}`"


def shown_value(value: np.ndarray, look: Look) -> str:
    """A value on one line; shape and norm of a large one."""
    if look.sums_up(value):
        return f"{format_shape(value.shape)}, norm {format_number(norm(value), look.precision)}"
    return joined(cell_lines(value, look))


def _code(text: str, table: bool = False) -> str:
    """Text as code; a fence of backticks longer than any in it."""
    text = " ".join(printable(text).split())
    if table:
        text = text.replace("|", "\\|")
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plain(text: str) -> str:
    """Text in which Markdown sees no marks."""
    return "".join("\\" + char if char in "\\`*_[]<>#|" else char for char in printable(text))


# -- LaTeX ----------------------------------------------------------------------------------------


def latex(found: Explanation, look: Look, symbolic: bool = False) -> str:
    """The explanation as a LaTeX document that compiles by itself."""
    from ...symbolic.writing.latex import escaped, name

    objective = name(found.objective) if found.objective else r"\text{objective}"
    lines = [
        r"\documentclass{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[utf8]{inputenc}",
        r"\usepackage{amsmath}",
        r"\allowdisplaybreaks",
        r"\begin{document}",
    ]
    if found.forward:
        lines += [r"\section*{Forward}", *_aligned_rows([
            (name(f.name), "=", f.expression, None if symbolic else f.value,
             rf"\quad (\times {f.times})" if f.times > 1 else "")
            for f in found.forward
        ], look)]  # fmt: skip
    if found.steps:
        lines += [
            r"\section*{Backward}",
            rf"Here $\bar{{v}}$ means $\partial {objective} / \partial v$.",
        ]
    if found.seeds:
        lines += _display([
            f"{name(f'g({seed.name})')} &= {matrix(seed.value, look)}" for seed in found.seeds
        ])  # fmt: skip
    for step in found.steps:
        times = rf" ({step.times} times)" if step.times > 1 else ""
        lines.append(
            rf"\paragraph{{Step {step.number}: \texttt{{{escaped(step.op)}}}{times}}} "
            rf"{escaped(_sentence(step.rule))}."
        )
        if step.contributions:
            lines += _aligned_rows([
                (name(f"g({c.to})"), r"\mathrel{+}=" if c.paths > 1 else "=", c.formula,
                 None if symbolic else c.value,
                 rf"\quad\text{{({escaped('; '.join(notes(c)))})}}" if notes(c) else "")
                for c in step.contributions
            ], look)  # fmt: skip
    if found.totals and not symbolic:
        lines += [r"\section*{Total}", *_display([
            rf"\frac{{\partial {objective}}}{{\partial {name(t.name)}}} &= {matrix(t.value, look)}"
            rf"{_latex_added(t)}" for t in found.totals
        ])]  # fmt: skip
    if found.check is not None and not symbolic:
        lines.append(f"Check: {escaped(found.check.text)}.")
    return "\n".join([*lines, r"\end{document}"]) + "\n"


def _latex_added(total: Total) -> str:
    return rf"\quad\text{{{added(total).strip()}}}" if added(total) else ""


def _aligned_rows(
    rows: list[tuple[str, str, Formula, np.ndarray | None, str]], look: Look
) -> list[str]:
    shown = []
    for left, sign, formula, value, note in rows:
        result = "" if value is None or formula.latex == matrix(value, look) else (
            f" = {matrix(value, look)}"
        )  # fmt: skip
        shown.append(f"{left} &{sign} {formula.latex}{result}{note}")
    return _display(shown)


def _display(rows: list[str]) -> list[str]:
    ends = [row + r" \\" for row in rows[:-1]] + rows[-1:]
    return [r"\begin{align*}", *ends, r"\end{align*}"]


def matrix(value: np.ndarray, look: Look) -> str:
    """A number, vector or matrix; shape and norm of what is larger."""
    if value.ndim > 2 or not 0 < value.size <= min(MOST_IN_MATRIX, look.max_elements):
        sizes = r" \times ".join(map(str, value.shape)) or "1"
        shown = number(float(norm(value)), look.precision)
        return rf"\bigl[\,{sizes},\ \text{{norm }} {shown}\,\bigr]"
    if not value.shape:
        return number(value.item(), look.precision)
    rows = [
        " & ".join(number(x, look.precision) for x in row) for row in np.atleast_2d(value).tolist()
    ]
    return r"\begin{pmatrix} " + r" \\ ".join(rows) + r" \end{pmatrix}"


# -- JSON -----------------------------------------------------------------------------------------


def _body(found: Explanation) -> dict[str, Any]:
    check = found.check
    return {
        "objective": found.objective,
        "backward": found.backwards,
        "grouped": found.grouped,
        "seeds": [picked(seed, "name", "value", "given") for seed in found.seeds],
        "forward": [
            {
                "number": f.number, "name": f.name, "expression": f.expression.text,
                "latex": f.expression.latex,
                **picked(f, "shape", "dtype", "value", "line", "times"),
            }
            for f in found.forward
        ],
        "steps": [
            {
                **picked(step, "number", "op", "rule", "source", "line", "times"),
                "incoming": [picked(i, "name", "value", "paths", "hooked") for i in step.incoming],
                "contributions": list(map(_contribution, step.contributions)),
            }
            for step in found.steps
        ],
        "totals": {t.name: picked(t, "shape", "value", "paths", "hooked") for t in found.totals},
        "check": None if check is None else {
            "kind": check.kind, "max_abs_diff": as_data(np.float64(check.largest)),
            "text": check.text, "names": list(check.names),
        },
    }  # fmt: skip


def _contribution(c: Contribution) -> dict[str, Any]:
    return {
        "to": c.to, "formula": c.formula.text, "latex": c.formula.latex,
        **picked(c, "shape", "value", "path", "paths", "broadcast", "times"),
        "norms": None if c.norms is None else [as_data(np.float64(n)) for n in c.norms],
    }  # fmt: skip


def dump(found: Explanation) -> str:
    """The document as one line, with its line end."""
    return dumped(enveloped(SCHEMA, found, lambda: _body(found)))
