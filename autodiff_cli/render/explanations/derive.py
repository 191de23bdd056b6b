"""Derivatives as formulas: lines for people, program text, LaTeX, JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..document import enveloped, strict_text
from ..plain import BOLD, DIM, RESET
from ..text import broken, printable, text_width

if TYPE_CHECKING:
    from ...explain.derive import Derived

SCHEMA = "autodiff.derive/1"


def lines(found: Derived, *, color: bool = False, width: int | None = None) -> str:
    """`d loss / d A = 2*A + B`, one a line; long ones go on below themselves in a terminal of
    `width` cells."""
    shown = []
    for d in found.derivatives:
        head = f"d {printable(found.of)} / d {printable(d.wrt)}"
        note = "" if d.verified else "   (not verified)"
        margin = text_width(head) + 3
        text = printable(d.text, 100_000)
        if width is not None:
            text = f"\n{' ' * margin}".join(broken(text, max(width - margin, 20)))
        if color:
            head = f"{BOLD}{head}{RESET}"
            note = f"{DIM}{note}{RESET}" if note else ""
        shown.append(f"{head} = {text}{note}\n")
    return "".join(shown)


def statements(found: Derived) -> str:
    """`dloss_dA = 2*A + B`: to be put below the program."""
    return "".join(
        f"d{_identifier(found.of)}_d{_identifier(d.wrt)} = {d.text}\n" for d in found.derivatives
    )


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "value"


def latex(found: Derived) -> str:
    """An `align*` environment; it needs `amsmath`."""
    rows = [
        rf"\frac{{\partial {found.of_latex}}}{{\partial {d.wrt_latex}}} &= {d.latex}"
        for d in found.derivatives
    ]
    return "\\begin{align*}\n" + " \\\\\n".join(rows) + "\n\\end{align*}\n"


def dump(found: Derived) -> str:
    """The document as one line, with its line end."""
    result = enveloped(SCHEMA, found, lambda: _body(found))
    return json.dumps(result, allow_nan=False, check_circular=False) + "\n"


def _body(found: Derived) -> dict[str, Any]:
    return {
        "of": strict_text(found.of),
        "derivatives": {
            d.wrt: {
                "text": strict_text(d.text), "latex": strict_text(d.latex),
                "shape": list(d.shape), "verified": d.verified,
            }
            for d in found.derivatives
        },
    }  # fmt: skip
