"""Expressions and names as LaTeX mathematics, as journals print it: vectors are columns.

Invariant: whatever the names are, braces are balanced and every special character is escaped; the
result needs `amsmath` and nothing else, and a font that has the letters of the names.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from ...defaults import PRECISION
from .expression import (
    ATOM,
    INFIX,
    Call,
    Index,
    Infix,
    Listed,
    Name,
    Negative,
    Number,
    Transposed,
    axes_of,
    is_column,
    reduced_axes,
)
from .forms import apart
from .lets import is_root

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
    "…": r"\ldots{}", "·": r"$\cdot$",
}  # fmt: skip
_FUNCTIONS = {
    "exp": r"\exp", "log": r"\log", "sin": r"\sin", "cos": r"\cos", "tan": r"\tan",
    "sinh": r"\sinh", "cosh": r"\cosh", "tanh": r"\tanh", "max": r"\max", "min": r"\min",
    "det": r"\det", "sigmoid": r"\sigma", "logdet": r"\log\det", "erf": r"\operatorname{erf}",
    "lgamma": r"\log\Gamma", "trace": r"\operatorname{tr}",
}  # fmt: skip
_SIGNS = {
    "add": "+", "sub": "-", "gt": ">", "ge": r"\geq", "lt": "<", "le": r"\leq", "eq": "=",
    "ne": r"\ne", "bitwise_and": r"\land", "bitwise_or": r"\lor",
}  # fmt: skip
_GRADIENT = re.compile(r"g\((.*)\)", re.DOTALL)
_OCCURRENCE = re.compile(r"(.*)#(\d+)", re.DOTALL)
_NUMBERED = re.compile(r"([^\W\d_]+)_?(\d+)")
_DIGITS = re.compile(r"-?[\d.]+(e[+-]?\d+)?|-?inf|nan")
_GREEK = frozenset(
    ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda",
     "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega", "Gamma",
     "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"]
)  # fmt: skip
_LETTERS = "ijklmnpqrs"  # of axes
_OVER = {  # what is made of some axes, and of what of each element
    "sum": (r"\sum", ""), "prod": (r"\prod", ""), "amax": (r"\max", ""), "amin": (r"\min", ""),
    "max": (r"\max", ""), "min": (r"\min", ""), "logsumexp": (r"\log \sum", r"\exp "),
    "mean": (r"\operatorname{mean}", ""), "var": (r"\operatorname{var}", ""),
    "std": (r"\operatorname{std}", ""), "median": (r"\operatorname{median}", ""),
}  # fmt: skip
_KEPT = ("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "flip")
_SHORT = {"lam": r"\lambda", "eps": r"\epsilon", "loss": r"\ell"}


def escaped(text: str) -> str:
    """Text for LaTeX's text mode."""
    return "".join(map(_escaped, " ".join(text.split())))


def _escaped(char: str) -> str:
    if char in _SPECIAL:
        return _SPECIAL[char]
    greek = _greek(char)
    if greek in _GREEK:
        return rf"$\{greek}$"
    return char if char.isprintable() else "?"


def _greek(char: str) -> str:
    found = unicodedata.name(char, "") if len(char) == 1 else ""
    if found.startswith("GREEK CAPITAL LETTER "):
        return found.removeprefix("GREEK CAPITAL LETTER ").capitalize()
    return found.removeprefix("GREEK SMALL LETTER ").lower()


def name(text: str) -> str:
    """A name of a program as a symbol: `A`, `t_{1}`, `\\mathrm{cost}`, `\\bar{A}` for `g(A)`."""
    gradient = _GRADIENT.fullmatch(text)
    if gradient:
        inner = name(gradient[1])
        narrow = len(gradient[1]) <= 2 and not inner.startswith(r"\text{")
        return rf"\bar{{{inner}}}" if narrow else rf"\overline{{{inner}}}"
    if _DIGITS.fullmatch(text):
        return number(float(text))
    again = _OCCURRENCE.fullmatch(text)
    if again:
        return f"{name(again[1])}^{{({again[2]})}}"
    symbol = _symbol(text)
    if symbol is not None:
        return symbol
    numbered = _NUMBERED.fullmatch(text)
    if numbered and (symbol := _symbol(numbered[1])) is not None:
        return f"{symbol}_{{{numbered[2]}}}"
    base, _, tail = text.partition("_")
    if tail.isalnum() and tail.isascii() and (symbol := _symbol(base)) is not None:
        letter = _symbol(_NUMBERED.sub(r"\1", tail)) is not None
        below = name(tail) if letter else rf"\mathrm{{{tail}}}"
        return f"{symbol}_{{{below}}}"
    if re.fullmatch(r"\([\d, -]*\)", text):
        return rf"\left({text[1:-1].rstrip(',')}\right)"
    if not text.isidentifier():
        return rf"\texttt{{{escaped(text)}}}"
    runs = []
    greek = any(_greek(c) in _GREEK for c in text)
    for upright, run in groupby(
        text, lambda c: text.isascii() or (greek and (c.isascii() or _greek(c) in _GREEK))
    ):
        letters = [rf"\{_greek(c)} " if _greek(c) in _GREEK else escaped(c) for c in run]
        runs.append(rf"\{'mathrm' if upright else 'text'}{{{''.join(letters).strip()}}}")
    return runs[0] if len(runs) == 1 else f"{{{''.join(runs)}}}"


def _symbol(text: str) -> str | None:
    """A letter, Latin or Greek, as it is or by its name."""
    if len(text) == 1 and text.isalpha() and text.isascii():
        return text
    if text in _SHORT:
        return _SHORT[text]
    greek = text if text in _GREEK else _greek(text)
    return "\\" + greek if greek in _GREEK else None


def number(value: Any, precision: int = PRECISION) -> str:
    """A number; large and small ones with a power of ten."""
    if isinstance(value, float) and value != value:
        return r"\mathrm{nan}"
    if isinstance(value, float) and math.isinf(value):
        return str(value).replace("inf", r"\infty")
    shown = f"{value:.{precision}g}" if isinstance(value, float) else str(value)
    if isinstance(value, bool):
        return rf"\mathrm{{{shown}}}"
    digits, mark, power = shown.partition("e")
    if not mark:
        return digits
    front = digits.removesuffix("1") if digits in ("1", "-1") else rf"{digits} \cdot "
    return rf"{front}10^{{{int(power)}}}"


def latex(expression: Any, priority: float = 0) -> str:
    """The expression as LaTeX for math mode."""
    shown, own = _shown(expression)
    return _bracketed(shown) if own < priority else shown


_SUM, _ELEMENTS, _PRODUCT, _POWER = 1, 2, 3, 4  # products of elements bind less than of matrices


def _shown(expression: Any) -> tuple[str, float]:
    """LaTeX, and how tightly it binds."""
    match expression:
        case Name(text):
            shown = name(text)
            return shown, _SUM if shown.startswith("-") else ATOM
        case Number(value):
            shown = number(value)
            return shown, _SUM if shown.startswith("-") else ATOM
        case Infix("div", left, right):
            return _quotient(left, right)
        case Infix("pow", left, right):
            exponent = latex(right)
            many = axes_of(left) and isinstance(right, Number)
            return _raised(left, rf"\odot {exponent}" if many else exponent), _POWER
        case Infix("matmul", left, right):
            return _matmul(left, right), _PRODUCT
        case Infix("mul", left, right):
            return _product(left, right)
        case Infix(key, left, right):
            own = INFIX[key][1]
            second = _spread(right, left, own + 1)
            return f"{_spread(left, right, own)} {_SIGNS[key]} {second}", own
        case Negative(inner):
            return f"-{latex(inner, _ELEMENTS)}", _SUM
        case Index(inner, at):
            if is_column(expression):
                return _shown(inner)
            if re.fullmatch(r"(:|\.\.\.)(, :)*(, None)+", str(at)):
                return rf"{latex(inner, _PRODUCT + 1)} \otimes \mathbf{{1}}", _PRODUCT
            if re.fullmatch(r"(None, )*None(, :)*", str(at)):
                return rf"\mathbf{{1}} \otimes {latex(inner, _PRODUCT + 1)}", _PRODUCT
            if isinstance(at, str) and "None" in at:
                letters = iter(_LETTERS)
                named = [next(letters) if part == ":" else part for part in at.split(", ")]
                read = "".join(part for part in named if part != "None")
                made = "".join(part for part in named if not part.isdigit()).replace("None", "1")
                return rf"\left[{{{latex(inner, ATOM)}}}_{{{read}}}\right]_{{{made}}}", ATOM
            if isinstance(at, tuple):
                at = ", ".join(":" if part == Name(":") else latex(part) for part in at)
            shown = latex(inner, ATOM)
            return f"{_bracketed(shown) if '_' in shown else f'{{{shown}}}'}_{{{at}}}", ATOM
        case Transposed(inner):
            return _turned(inner), _POWER
        case Listed(parts):
            return _array(parts) or rf"\left[{', '.join(map(latex, parts))}\right]", ATOM
        case Call(function, arguments, keywords):
            return _call(function.removeprefix("nn.functional."), arguments, keywords)
    return r"\ldots", ATOM


def _array(parts: tuple[Any, ...]) -> str:
    """A column of numbers, or rows of them; empty where it is none."""
    rows = [row.parts if isinstance(row, Listed) else (row,) for row in parts]
    if len(rows) < 2 or any(axes_of(part) != 0 for row in rows for part in row):
        return ""
    return _matrix(r" \\ ", (" & ".join(map(latex, row)) for row in rows))


def _raised(base: Any, exponent: str) -> str:
    shown = latex(base, ATOM)
    depth = 0
    for mark in re.findall(r"\\left|\\right|\\.|[{}^]", shown):
        depth += (mark in ("{", r"\left")) - (mark in ("}", r"\right"))
        if mark == "^" and not depth:  # two exponents
            return f"{{{shown}}}^{{{exponent}}}"
    return f"{shown}^{{{exponent}}}"


def _turned(matrix: Any) -> str:
    """The transpose; of a vector the row."""
    match matrix:
        case Transposed(inner):
            return latex(inner, ATOM)
        case Call("inv" | "inverse", (inner,)):
            return _raised(inner, r"-\top")
        case Infix("matmul", left, right) if axes_of(left) == 1 and axes_of(right) == 2:
            return f"{_turned(left)} {latex(right, _PRODUCT + 1)}"
    return _raised(matrix, r"\top")


def _fronted(factor: float, shown: str) -> str:
    between = r"\cdot " if shown[:1].isdigit() else ""
    return f"{number(factor)} {between}{shown}"


def _matmul(left: Any, right: Any) -> str:
    for position, part in enumerate((left, right)):
        factor, rest = apart(part)
        if factor > 0 and factor != 1:
            return _fronted(factor, _matmul(*((left, rest) if position else (rest, right))))
    ahead, behind = axes_of(left), axes_of(right)
    if ahead == 1:
        if behind == 1:
            if _OPEN in _turned(left)[:7] and _OPEN not in _turned(right)[:7]:
                left, right = right, left
            return f"{_turned(left)} {_last(right)}"
        return f"{_turned(right)} {_last(left)}"
    return f"{latex(left, _PRODUCT)} {_last(right)}"


def _last(factor: Any) -> str:
    """The last factor of a product of matrices: brackets around another one say nothing."""
    match factor:
        case Infix("matmul") | Call("solve" | "outer"):
            return latex(factor, _PRODUCT)
    return latex(factor, _PRODUCT + 1)


def _product(left: Any, right: Any) -> tuple[str, int]:
    """Numbers in front, vectors along the rows or columns of a matrix as diagonal matrices; and
    how tightly that binds."""
    for position, part in enumerate((left, right)):
        factor, rest = apart(part)
        if factor > 0 and factor != 1 and not is_root(part):
            shown, own = _product(*((left, rest) if position else (rest, right)))
            return _fronted(factor, shown), own
    ahead, behind = axes_of(left), axes_of(right)
    if ahead == 0 or behind == 0:
        first, second = latex(left, _PRODUCT), latex(right, _PRODUCT + 1)
        own = _PRODUCT
        if isinstance(left, Number):
            second = latex(right, _ELEMENTS)
            own = _ELEMENTS if _shown(right)[1] == _ELEMENTS else _PRODUCT
        elif isinstance(left, Infix) and left.key == "matmul":
            first = _bracketed(first)
        digits = isinstance(right, Number) or second[:1].isdigit()
        return (rf"{first} \cdot {second}" if digits else f"{first} {second}"), own
    for column, row in ((left, right), (right, left)):
        if (
            is_column(column)
            and isinstance(row, Call)
            and row[:2] == ("ones", (Number(1), *row[1][1:]))
        ):
            return rf"{latex(column, _PRODUCT)} {latex(row)}^{{\top}}", _PRODUCT
    columns = is_column(left) or (isinstance(left, Name) and (left.shape or ())[1:] == (1,))
    if columns and behind == 1:
        return f"{latex(left, _PRODUCT)} {_turned(right)}", _PRODUCT
    if is_column(left) != is_column(right):
        column, other = (left, right) if is_column(left) else (right, left)
        return f"{_diagonal(column)} {_last(other)}", _PRODUCT
    if ahead == 2 and behind == 1:
        return f"{latex(left, _PRODUCT)} {_diagonal(right)}", _PRODUCT
    if ahead == 1 and behind == 2:
        return f"{latex(right, _PRODUCT)} {_diagonal(left)}", _PRODUCT
    return rf"{latex(left, _ELEMENTS)} \odot {latex(right, _PRODUCT + 1)}", _ELEMENTS


def _quotient(left: Any, right: Any) -> tuple[str, int]:
    ahead, behind = axes_of(left), axes_of(right)
    if behind is None or behind == 0:
        while isinstance(left, Infix) and left.key == "div" and not axes_of(left.right):
            first, second = sorted(
                (left.right, right), key=lambda part: not isinstance(part, Number)
            )
            left, right = left.left, Infix("mul", first, second)
        return rf"\frac{{{latex(left)}}}{{{latex(right)}}}", _POWER
    if is_column(left) and behind == 1:
        below = _bracketed(rf"\mathbf{{1}} \oslash {latex(right, _PRODUCT + 1)}")
        return rf"{latex(left, _PRODUCT)} {below}^{{\top}}", _PRODUCT
    if is_column(right) and not is_column(left):
        return f"{_diagonal(right)}^{{-1}} {latex(left, _PRODUCT + 1)}", _PRODUCT
    if ahead == 2 and behind == 1:
        return f"{latex(left, _PRODUCT)} {_diagonal(right)}^{{-1}}", _PRODUCT
    return rf"{latex(left, _ELEMENTS)} \oslash {latex(right, _PRODUCT + 1)}", _ELEMENTS


def _diagonal(vector: Any) -> str:
    return rf"\operatorname{{diag}}\left({latex(vector)}\right)"


def _spread(one: Any, other: Any, own: float) -> str:
    """A term beside another: a vector beside a matrix, or across another vector, is in each of its
    rows or columns."""
    column, along = is_column(one), is_column(other)
    if axes_of(other) and (column != along or (axes_of(other) == 2 and not along)):
        if column:
            return rf"{latex(one, _PRODUCT)} \mathbf{{1}}^{{\top}}"
        if axes_of(one) == 1:
            return rf"\mathbf{{1}} {_turned(one)}"
    return latex(one, own)


def _call(
    function: str, arguments: tuple[Any, ...], keywords: tuple[tuple[str, str], ...]
) -> tuple[str, int]:
    axes = reduced_axes(arguments, keywords) if function in _OVER else ()
    match function, arguments:
        case "sqrt", (inner,):
            return rf"\sqrt{{{latex(inner)}}}", ATOM
        case "logical_not", (inner,):
            return rf"\lnot {latex(inner, ATOM)}", _POWER
        case "abs", (inner,):
            return rf"\left|{latex(inner)}\right|", ATOM
        case "norm", (inner,) if not keywords:
            mark = "F" if axes_of(inner) == 2 else "2"
            return rf"\left\lVert {latex(inner)} \right\rVert_{{{mark}}}", ATOM
        case "inv" | "inverse", (inner,):
            return _raised(inner, "-1"), _POWER
        case "solve", (matrix, right) if ("left", "False") in keywords:
            return _matmul(right, Call("inv", (matrix,))), _PRODUCT
        case "solve", (matrix, right):
            turned = isinstance(matrix, Transposed)
            ahead = _raised(matrix.inner, r"-\top") if turned else _raised(matrix, "-1")
            return f"{ahead} {_last(right)}", _PRODUCT
        case "stack", (Listed(parts),) if _array(parts):
            return _array(parts), ATOM
        case "stack", (Listed(parts),) if all(axes_of(part) == 1 for part in parts):
            return _matrix(r" \\ ", map(_turned, parts)), ATOM
        case "outer", (left, right):
            return f"{latex(left, _PRODUCT)} {_turned(right)}", _PRODUCT
        case "eye", (Number(size),):
            return f"I_{{{size}}}", ATOM
        case (("ones" | "zeros"), sizes) if all(isinstance(a, Number) for a in sizes):
            kept = [str(a.value) for a in sizes if a.value != 1 or len(sizes) > 2] or ["1"]
            digit = 1 if function == "ones" else 0
            shown = r" \times ".join(kept)
            return rf"\mathbf{{{digit}}}_{{{shown}}}", ATOM
        case "where", (condition, yes, no):
            return (
                rf"\begin{{cases}} {latex(yes)} & \text{{if }} {latex(condition)} \\ "
                rf"{latex(no)} & \text{{otherwise}} \end{{cases}}", 0,
            )  # fmt: skip
        case "sum", (inner,) if axes_of(inner) == 1:
            return rf"\mathbf{{1}}^{{\top}} {latex(inner, _PRODUCT + 1)}", _PRODUCT
        case "sum", (inner,) if axes_of(inner) == 2:
            return rf"\mathbf{{1}}^{{\top}} {latex(inner, _PRODUCT + 1)} \mathbf{{1}}", _PRODUCT
        case "sum", (inner, Number(1)) if axes_of(inner) == 2:
            return rf"{latex(inner, _PRODUCT)} \mathbf{{1}}", _PRODUCT
        case _, (inner, *_) if function in _OVER and axes_of(inner) and axes:
            head, tail = _OVER[function]
            return (
                rf"{head}_{{{','.join(_LETTERS[i] for i in axes)}}} {tail}{_along(inner, axes)}",
                _SUM,
            )
        case _, (inner, Number(axis)) if function in _KEPT and axes_of(inner):
            head = _head(function)
            if axes_of(inner) == 1:
                return rf"{head}\left({latex(inner)}\right)", ATOM
            return rf"{head}_{{{_LETTERS[axis]}}}\left({_along(inner, (axis,))}\right)", ATOM
        case "einsum", (Name(equation), *parts):
            return _summed(equation, parts), ATOM
        case "permute", (inner, Name(order)):
            found = "".join(_LETTERS[int(axis)] for axis in re.findall(r"\d+", order))
            return _summed(f"'{_LETTERS[: len(found)]}->{found}'", [inner]), ATOM
        case "reshape", (inner, Name(sizes)):
            shape = r" \times ".join(re.findall(r"\d+", sizes))
            return rf"{_head(function)}_{{{shape}}}\left({latex(inner)}\right)", ATOM
        case "flatten", (inner, Number(first), *last) if axes_of(inner):
            ends = range(first, last[0].value + 1 if last else axes_of(inner) or 0)
            letters = ",".join(_LETTERS[i] for i in ends)
            return rf"{_head(function)}_{{{letters}}}\left({latex(inner)}\right)", ATOM
        case "unflatten", (inner, Number(axis), Name(sizes)):
            shape = r" \times ".join(re.findall(r"\d+", sizes))
            return (
                rf"{_head(function)}_{{{_LETTERS[axis]} \to {shape}}}\left({latex(inner)}\right)",
                ATOM,
            )
        case "cat", (Listed(parts),):
            return _matrix(r" \\ ", map(latex, parts)), ATOM
        case "cat", (Listed(parts), Number(1)) if all(axes_of(part) == 2 for part in parts):
            return _matrix(" & ", map(latex, parts)), ATOM
        case "transpose", (inner, Number(0), Number(1)):
            return _turned(inner), _POWER
        case "transpose", (inner, Number(), Number(last)) if axes_of(inner) == last + 1:
            return _turned(inner), _POWER  # of each matrix of a batch
        case name_, (left, right) if re.fullmatch(r"conv(_transpose)?\dd", name_):
            marks = ", ".join(f"{key}={value}" for key, value in keywords)
            below = rf"_{{\text{{{escaped(marks)}}}}}" if marks else ""
            sign = r"\ast" if "transpose" in name_ else r"\star"  # with the flipped kernel
            return (
                f"{latex(left, _PRODUCT + 1)} {sign}{below} {latex(right, _PRODUCT + 1)}",
                _PRODUCT,
            )
    head = _head(function)
    said = [latex(a) for a in arguments]
    said += [rf"\text{{{escaped(f'{key}={value}')}}}" for key, value in keywords]
    return rf"{head}\left({', '.join(said)}\right)", ATOM


def _head(function: str) -> str:
    return _FUNCTIONS.get(function) or rf"\operatorname{{{escaped(function)}}}"


def _along(inner: Any, axes: tuple[int, ...]) -> str:
    """Something with the letters of some of its axes."""
    count = axes_of(inner) or 0
    at = [_LETTERS[i] if i in axes else ":" for i in range(count)]
    return f"{{{latex(inner, ATOM)}}}_{{{','.join(at)}}}"


def _summed(equation: str, parts: list[Any]) -> str:
    """A sum of products by its indices, in brackets with those of the result."""
    sides, _, result = equation[1:-1].partition("->")
    over = "".join(x for x in dict.fromkeys(sides.replace(",", "")) if x not in result)
    factors = [
        f"{{{latex(x, ATOM)}}}_{{{at}}}" for x, at in zip(parts, sides.split(","), strict=True)
    ]
    shown = rf"\sum_{{{over}}} " * bool(over) + r" \, ".join(factors)
    return rf"\left[{shown}\right]_{{{result}}}" if result else _bracketed(shown)


def _matrix(between: str, parts: Iterable[str]) -> str:
    return rf"\begin{{bmatrix}} {between.join(parts)} \end{{bmatrix}}"


_OPEN = r"\left("


def _bracketed(shown: str) -> str:
    return rf"{_OPEN}{shown}\right)"
