"""Lines of a derivation as one writes them: signs and numbers in front, `a * b` for `mul(a, b)`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from typing import Any

from ...graph.registry import overloads
from .expression import (
    KINDS,
    Call,
    Expression,
    Index,
    Infix,
    Left,
    Name,
    Negative,
    Number,
    Transposed,
    axes_of,
    exact,
)
from .forms import Form, apart, constant, with_number
from .lets import mapped

# Functions along an axis, which they are given by place.
LINEAR = ("sum", "mean", "summed_to", "cumsum", "diag_embed", "diagonal", "trace", "gather")
ALONG = ("softmax", "log_softmax", "logsumexp", "amax", "amin", "prod")


def tidied(shown: Any) -> Any:
    """`a * b / c` for `a * (b / c)`, `a / b` for `a * (1 / b)`, `a - b` for `a + -b`, `a**2` for
    `a * a`."""
    if type(shown) is tuple:
        return tuple(map(tidied, shown))
    if isinstance(shown, Number) and isinstance(shown.value, float):
        return shown if len(repr(shown.value)) < 15 else constant(shown.value).shown
    if type(shown) not in KINDS or (isinstance(shown, Call) and shown.function == "d"):
        return shown
    shown = shown._make(map(tidied, shown))
    match shown:
        case (
            Infix("mul", Number(1), inner)
            | Negative(Negative(inner))
            | Transposed(Transposed(inner))
        ):
            return inner
        case Call(function, (inner,), (("dim", dim), *rest)) if function in (*LINEAR, *ALONG):
            return Call(function, (inner, Name(dim)), tuple(rest))
        case Call("addmm", (first, left, right), ()):
            return Infix("add", first, Infix("matmul", left, right))
        case Infix("add" | "sub" | "mul" | "div" as key, left, right) if (
            is_kept(right) and not is_kept(left) and axes_of(left)
        ):
            return Infix(key, left, Call(right.function, right.arguments))
        case Infix("pow", Call("rsqrt", (inner,)), Number(2)):
            return Infix("div", Number(1), inner)
        case Infix("mul", left, Call("rsqrt", arguments)):
            return Infix("div", left, Call("sqrt", arguments))
        case Call("linalg.vector_norm", (inner,), keywords) if "ord" not in dict(keywords):
            return Call("norm", (inner,), keywords)
        case Call(function) if function.startswith("linalg."):
            short = function.removeprefix("linalg.")
            return shown._replace(function=short) if _same(short, function) else shown
        case Call("unsqueeze", (inner,), (("dim", dim),)):
            return Index(inner, ":, " * int(dim) + "None")
        case Index(Index(inner, str() as first), str() as second):
            kept = [place for place in first.split(", ") if not place.lstrip("-").isdigit()]
            places = second.split(", ")
            if all(place == ":" for place in places[: len(kept)]):
                return Index(inner, ", ".join([first, *places[len(kept) :]]))
        case Infix("pow", Call("sqrt", (inner,)), Number(2)):
            return inner
        case Infix("mul" | "div" | "matmul" as key, Negative(inner), other):
            return Negative(tidied(Infix(key, inner, other)))
        case Infix("matmul", left, Negative(inner)):
            return Negative(Infix("matmul", left, inner))
        case Infix("mul" | "div" | "matmul" as key, Number(value), other) if value < 0:
            return Negative(tidied(Infix(key, Number(-value), other)))
        case Call("eye", (), (("n", rows), ("m", columns), *_)) if rows == columns:
            return Call("eye", (Number(int(rows)),))
        case Infix("mul", Number(first), Number(second)):
            return Number(first * second)
        case Infix("mul", left, Number() as number):
            return tidied(Infix("mul", number, left))
        case Infix("mul", Number(first), Infix("mul" | "div" as key, Number(second), other)):
            return tidied(Infix(key, Number(first * second), other))
        case Infix("mul", left, Call("ones", sizes)) if _covers(left, sizes):
            return left
        case Infix("mul", left, Negative(inner)):
            return Negative(tidied(Infix("mul", left, inner)))
        case Infix("mul", Infix("div", Number(1), below), left) | Infix(
            "mul", left, Infix("div", Number(1), below)
        ):
            return tidied(Infix("div", left, below))
        case Infix("mul", left, Infix("mul" | "div" as key, first, second)):
            return Infix(key, tidied(Infix("mul", left, first)), second)
        case Infix("matmul", left, right) if (found := apart(right))[0] != 1:
            return _numbered(found[0], Infix("matmul", left, found[1]))
        case Transposed(inner) if (found := apart(inner))[0] != 1:
            return _numbered(found[0], Transposed(found[1]))
        case Infix("mul", left, right) if left == right and not isinstance(left, Number | Left):
            return Infix("pow", left, Number(2))
        case Call("diagonal_copy", (inner,), ()) if axes_of(inner) == 2:
            return Call("diag", (inner,))
        case Infix("add", left, Negative(inner)):
            return Infix("sub", left, inner)
        case Infix("sub", left, Negative(inner)):
            return Infix("add", left, inner)
    return shown


def in_full(shown: Any) -> Any:
    """With the numbers that those of single precision stand for."""

    def change(part: Any) -> Any:
        floats = isinstance(part, Number) and isinstance(part.value, float)
        return Number(exact(part.value)) if floats else None

    return mapped(shown, change)


def _numbered(value: float, shown: Expression) -> Expression:
    return with_number(Form(shown), value).shown


def _same(name: str, other: str) -> bool:
    """Whether two names are of the same ops."""
    return overloads(name) == overloads(other)


def is_kept(shown: Any) -> bool:
    """Whether something is made of all of a vector and has its axis."""
    match shown:
        case Call("sum" | "mean", (inner,), (("keepdim", "True"),)):
            return axes_of(inner) == 1
    return False


def _covers(shown: Any, sizes: tuple[Any, ...]) -> bool:
    """Whether something is at least as large as ones of these sizes."""
    match shown:
        case Name(_, shape):
            return shape == tuple(size.value for size in sizes)
        case Infix(key, left, right) if key != "matmul":
            return _covers(left, sizes) or _covers(right, sizes)
    return False


def given(shown: Any, parts: Mapping[str, Expression]) -> Any:
    """With expressions in place of names."""
    return mapped(shown, lambda part: parts.get(part.text) if isinstance(part, Name) else None)


def summed(parts: list[Expression]) -> Expression:
    return reduce(partial(Infix, "add"), parts)
