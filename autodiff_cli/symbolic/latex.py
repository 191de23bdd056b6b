"""Expressions and names as LaTeX mathematics.

Invariant: whatever the names are, braces are balanced and every special character is escaped; the
result needs `amsmath` and nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from .expression import (
    ATOM,
    INFIX,
    NEGATION,
    Call,
    Index,
    Infix,
    Listed,
    Name,
    Negative,
    Number,
    Transposed,
)

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
    "`": r"\textasciigrave{}", "…": r"\ldots{}", "·": r"\textperiodcentered{}",
}  # fmt: skip
_FUNCTIONS = {
    "exp": r"\exp", "log": r"\ln", "sin": r"\sin", "cos": r"\cos", "tan": r"\tan",
    "sinh": r"\sinh", "cosh": r"\cosh", "tanh": r"\tanh", "max": r"\max", "min": r"\min",
    "det": r"\det", "sigmoid": r"\sigma",
}  # fmt: skip
_SIGNS = {
    "add": "+", "sub": "-", "gt": ">", "ge": r"\ge", "lt": "<", "le": r"\le", "eq": "=",
    "ne": r"\ne",
}  # fmt: skip
_GRADIENT = re.compile(r"g\((.*)\)", re.DOTALL)
_OCCURRENCE = re.compile(r"(.*)#(\d+)", re.DOTALL)
_NUMBERED = re.compile(r"([A-Za-z])_?(\d+)")
_DIGITS = re.compile(r"-?[\d.]+(e[+-]?\d+)?|-?inf|nan")
_GREEK = frozenset(
    ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda",
     "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"]
)  # fmt: skip


def escaped(text: str) -> str:
    """Text for LaTeX's text mode; letters that its fonts lack are numbers."""
    return "".join(map(_escaped, " ".join(text.split())))


def _escaped(char: str) -> str:
    if char in _SPECIAL:
        return _SPECIAL[char]
    if char.isascii():
        return char if char.isprintable() else "?"
    if char.isalpha() and char < "\u0180":
        return char
    greek = _greek(char)
    return rf"\ensuremath{{\{greek}}}" if greek in _GREEK else f"[U+{ord(char):04X}]"


def _greek(char: str) -> str:
    found = unicodedata.name(char, "") if len(char) == 1 else ""
    return found.removeprefix("GREEK SMALL LETTER ").lower()


def name(text: str) -> str:
    """A name of a program as a symbol: `A`, `t_{1}`, `\\mathit{loss}`, `\\bar{A}` for `g(A)`."""
    gradient = _GRADIENT.fullmatch(text)
    if gradient:
        inner = name(gradient[1])
        return rf"\bar{{{inner}}}" if len(gradient[1]) <= 2 else rf"\overline{{{inner}}}"
    if _DIGITS.fullmatch(text):
        return number(float(text))
    again = _OCCURRENCE.fullmatch(text)
    if again:
        return f"{name(again[1])}^{{({again[2]})}}"
    if len(text) == 1 and text.isalpha() and text.isascii():
        return text
    numbered = _NUMBERED.fullmatch(text)
    if numbered:
        return f"{numbered[1]}_{{{numbered[2]}}}"
    if text in _GREEK:
        return "\\" + text
    if _greek(text) in _GREEK:
        return "\\" + _greek(text)
    letters = [rf"\{_greek(c)} " if _greek(c) in _GREEK else escaped(c) for c in text]
    if text.isidentifier() and "".join(letters).isascii() and not any("[" in c for c in letters):
        return rf"\mathit{{{''.join(letters).strip()}}}"
    return rf"\texttt{{{escaped(text)}}}"


def number(value: Any, precision: int = 6) -> str:
    """A number; large and small ones with a power of ten."""
    if isinstance(value, float) and value != value:
        return r"\mathrm{nan}"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return r"\infty" if value > 0 else r"-\infty"
    shown = f"{value:.{precision}g}" if isinstance(value, float) else str(value)
    if isinstance(value, bool):
        return rf"\mathrm{{{shown}}}"
    digits, mark, power = shown.partition("e")
    return rf"{digits} \cdot 10^{{{int(power)}}}" if mark else digits


def latex(expression: Any, priority: int = 0) -> str:
    """The expression as LaTeX for math mode."""
    match expression:
        case Name(text):
            shown = name(text)
            return _bracketed(shown) if shown.startswith("-") and priority > 1 else shown
        case Number(value):
            shown = number(value)
            return _bracketed(shown) if shown.startswith("-") and priority > 1 else shown
        case Infix("div", left, right):
            return rf"\frac{{{latex(left)}}}{{{latex(right)}}}"
        case Infix("pow", left, right):
            base = latex(left, ATOM)
            if "^" in base and not isinstance(left, Infix):
                base = f"{{{base}}}"
            shown = f"{base}^{{{latex(right)}}}"
            return _bracketed(shown) if priority >= ATOM else shown
        case Infix(key, left, right):
            own = INFIX[key][1]
            first, second = latex(left, own), latex(right, own + 1)
            shown = f"{first} {_product(key, left, right)} {second}"
            return _bracketed(shown) if own < priority else shown
        case Negative(inner):
            shown = f"-{latex(inner, NEGATION)}"
            return _bracketed(shown) if priority > 1 else shown
        case Index(inner, at):
            places = ", ".join(map(latex, at)) if isinstance(at, tuple) else at
            return f"{{{latex(inner, ATOM)}}}_{{{places}}}"
        case Transposed(inner):
            return f"{{{latex(inner, ATOM)}}}^{{\\top}}"
        case Listed(parts):
            return rf"\left[{', '.join(map(latex, parts))}\right]"
        case Call():
            return _call(expression)
    return r"\ldots"


def _product(key: str, left: Any, right: Any) -> str:
    if key == "matmul":
        return r"\,"
    if key != "mul":
        return _SIGNS[key]
    scalar = any(isinstance(x, Number) or (isinstance(x, Name) and x.shape == ())
                 for x in (left, right))  # fmt: skip
    return r"\cdot" if scalar else r"\odot"


def _call(call: Call) -> str:
    function = call.function.removeprefix("nn.functional.")
    if function == "sqrt" and len(call.arguments) == 1:
        return rf"\sqrt{{{latex(call.arguments[0])}}}"
    if function == "abs" and len(call.arguments) == 1:
        return rf"\left|{latex(call.arguments[0])}\right|"
    if function == "ones" and all(isinstance(a, Number) for a in call.arguments):
        sizes = r" \times ".join(str(a.value) for a in call.arguments)
        return rf"\mathbf{{1}}_{{{sizes}}}"
    head = _FUNCTIONS.get(function) or rf"\operatorname{{{escaped(function)}}}"
    parts = [latex(a) for a in call.arguments]
    parts += [rf"\text{{{escaped(f'{key}={value}')}}}" for key, value in call.keywords]
    return rf"{head}\left({', '.join(parts)}\right)"


def _bracketed(shown: str) -> str:
    return rf"\left({shown}\right)"
