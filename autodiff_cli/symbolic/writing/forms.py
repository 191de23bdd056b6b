"""Ways to write a part of a formula, and how they are put together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ...graph.node import Shape
from ..terms import At, Label, Product
from .expression import (
    FILLED,
    PI,
    Call,
    Expression,
    Index,
    Infix,
    Listed,
    Name,
    Negative,
    Number,
    Transposed,
    axes_of,
    filled,
    is_column,
)
from .lets import cost_of, cost_with_lets, distinct_cost, is_root, leads_with_number

MOST_UNDER_ROOT = 64

Layout = tuple[Label, ...]  # the label of every axis


class Form(NamedTuple):
    """A way to write something: of equally long ones that with fewer marks is better."""

    shown: Expression
    marks: int = 0


Forms = dict[tuple[Layout, bool], Form]  # by layout, and whether it is what is divided by


def is_label(label: Label) -> bool:
    return type(label) is int


def fits(layout: Layout, want: Layout) -> bool:
    """Whether an array with these axes broadcasts to the wanted ones."""
    if layout == want or len(layout) > len(want):
        return layout == want
    tail = want[len(want) - len(layout) :]
    return all(x is None or x == y for x, y in zip(layout, tail, strict=True))


@lru_cache(1 << 15)
def broadcast(one: Layout, other: Layout) -> Layout | None:
    """The axes of an elementwise product; None where they do not broadcast."""
    size = max(len(one), len(other))
    found = []
    for a, b in zip((None,) * (size - len(one)) + one, (None,) * (size - len(other)) + other,
                    strict=True):  # fmt: skip
        if a is not None and b is not None and a != b:
            return None
        found.append(b if a is None else a)
    labels = [x for x in found if x is not None]
    return tuple(found) if len(set(labels)) == len(labels) else None


def add(forms: Forms, layout: Layout, below: bool, form: Form) -> None:
    known = forms.get((layout, below))
    if known is None or price(form) < price(known):
        forms[layout, below] = form


def is_better(forms: Forms, layout: Layout, below: bool, cost: int, marks: int) -> bool:
    """Whether a form with this price would be added."""
    known = forms.get((layout, below))
    return known is None or (cost, marks) < price(known)


def price(form: Form) -> tuple[int, int]:
    return cost_of(form.shown), form.marks


def promise(form: Form) -> tuple[int, int]:
    """What a search goes down: the cost, and that of the parts that differ."""
    return cost_of(form.shown) + distinct_cost(form.shown), form.marks


def final(form: Form) -> tuple[int, int, int]:
    """The price where what is repeated is named once."""
    return cost_with_lets(form.shown), *price(form)


def first(product: Product) -> tuple[Any, ...]:
    return tuple(sorted(factor.atom for factor in product))


def infix(key: str, left: Form, right: Form) -> Form:
    return Form(Infix(key, left.shown, right.shown), left.marks + right.marks)


def times(left: Form, right: Form) -> Form:
    """`left * right`: a number goes to the front of a product, a condition around it."""
    for gate, other in ((left, right), (right, left)):
        inner: Any = gate.shown
        if is_condition(inner):
            return where(gate, other)
        if of_ones(inner) and _is_whole(other.shown):
            return Form(within(inner, other.shown), gate.marks)
    if leads_with_number(right.shown) and not leads_with_number(left.shown):
        left, right = right, left
    return Form(before(left.shown, right.shown), left.marks + right.marks)


def where(gate: Form, other: Form) -> Form:
    """Something where a condition holds, and 0 elsewhere."""
    inner: Any = gate.shown
    marks = gate.marks + other.marks
    match inner.arguments[0]:
        case Call("logical_not", (fails,)):
            return Form(Call("where", (fails, Number(0.0), other.shown)), marks)
    return Form(Call("where", (inner.arguments[0], other.shown, Number(0.0))), marks)


def divided(above: Form, below: Form) -> Form:
    """`above / below`, within a condition: what is 0 may be divided by 0."""
    if is_condition(above.shown):
        return where(above, infix("div", Form(Number(1)), below))
    return infix("div", above, below)


def before(factor: Expression, product: Any) -> Expression:
    """A factor in front of a product, within it: `2 * A @ x`."""
    if isinstance(product, Infix) and product.key in ("mul", "div"):
        return Infix(product.key, before(factor, product.left), product.right)
    if isinstance(product, Infix) and product.key == "matmul" and is_scalar(factor):
        return Infix("matmul", before(factor, product.left), product.right)
    if product == Number(1):
        return factor
    if isinstance(factor, Infix) and factor.key == "div" and not is_root(factor):
        above = product if factor.left == Number(1) else before(factor.left, product)
        return Infix("div", above, factor.right)
    return Infix("mul", factor, product)


def is_scalar(shown: Any) -> bool:
    if is_root(shown):
        return True
    return isinstance(shown, Number) or (isinstance(shown, Name) and shown.shape == ())


def call(function: str, *arguments: Form | Expression) -> Form:
    marks = 0
    shown = []
    for argument in arguments:
        if isinstance(argument, Form):
            marks += argument.marks
            argument = argument.shown
        shown.append(argument)
    return Form(Call(function, tuple(shown)), marks)


def turned(form: Form) -> Form:
    """The transpose."""
    shown: Any = form.shown
    if isinstance(shown, Transposed):
        return Form(shown.inner, form.marks - 1)
    if isinstance(shown, Listed):
        rows = zip(*(row.parts for row in shown.parts), strict=True)
        return form._replace(shown=Listed(tuple(map(Listed, rows))))
    if isinstance(shown, Call) and shown.function == "outer":
        return form._replace(shown=Call("outer", shown.arguments[::-1]))
    if isinstance(shown, Call) and shown.function in ("diag", "eye"):
        return form
    match shown:
        case Call("softmax", (Transposed(inner), Number(axis))):  # along the other axis
            made = Call("softmax", (inner, Number(1 - axis)))
            return Form(made, form.marks - 1)
    return Form(Transposed(shown), form.marks + 1)


REDUCTIONS = ("sum", "mean", "logsumexp", "amax", "amin", "prod", "norm")


def column(shown: Any) -> Any:
    """A vector that was made of a matrix, as a column of it; None where it was not made so."""
    match shown:
        case Listed(parts):
            return Listed(tuple(Listed((part,)) for part in parts))
        case Call(name, (inner, Number(1)), ()) if name in REDUCTIONS:
            return Call(name, (inner, Number(1)), (("keepdim", "True"),))
        case Infix("pow" | "div" | "mul" | "add" | "sub", left, Number()):
            found = column(left)
            return None if found is None else shown._replace(left=found)
        case Call("sqrt" | "log" | "exp", (inner,), ()):
            found = column(inner)
            return None if found is None else shown._replace(arguments=(found,))
    return None


def is_condition(shown: Any) -> bool:
    """Whether something is 1 where a comparison holds, and 0 elsewhere."""
    return type(shown) is Call and shown[:2] == ("where", (*shown[1][:1], Number(1), Number(0)))


def is_plain(shown: Any) -> bool:
    """Whether a product with something costs what both cost, and one more: where that is easily
    seen."""
    while type(shown) is Infix and shown.key in ("mul", "div", "matmul"):
        shown = shown.left
    if type(shown) is Call:
        return shown.function not in ("where", "tril", "triu", "sqrt")
    return type(shown) is not Number


def is_counted(shown: Any) -> bool:
    """Whether something holds integers, which no matrix is multiplied with."""
    if isinstance(shown, Transposed):
        return is_counted(shown.inner)
    if isinstance(shown, Call) and shown.function in ("transpose", "permute"):
        return is_counted(shown.arguments[0])
    return isinstance(shown, Call) and shown.function == "one_hot"


def is_inverse(shown: Any) -> bool:
    """Whether something is an inverse, or the transpose of one."""
    inner: Any = shown.inner if isinstance(shown, Transposed) else shown
    return isinstance(inner, Call) and inner.function == "inv"


def inverted(form: Form) -> Form | None:
    """The matrix of which a form is the inverse."""
    shown: Any = form.shown
    is_turned = isinstance(shown, Transposed)
    if is_turned:
        form, shown = Form(shown.inner, form.marks - 1), shown.inner
    if not isinstance(shown, Call) or shown.function != "inv":
        return None
    inner = Form(shown.arguments[0], form.marks)
    return turned(inner) if is_turned else inner


def constant_array(value: int, shape: Shape) -> Form:
    if not shape:
        return Form(Number(float(value)))
    return Form(filled(FILLED[value], shape))


def negative(form: Form) -> Form:
    """With a minus, which is a part of a number where one leads."""
    return Form(Negative(form.shown), form.marks)


def apart(shown: Any) -> tuple[float, Any]:
    """The number that a product begins with, 1 where there is none, and the rest."""
    match shown:
        case Negative(inner):
            number, rest = apart(inner)
            return -number, rest
        case Infix("mul", Number(value), right) if isinstance(value, int | float):
            return value, right
        case Infix("mul" | "div" | "matmul", left, right):
            number, rest = apart(left)
            return number, shown._replace(left=rest)
    return 1.0, shown


def with_number(form: Form, number: float) -> Form:
    """A form with its coefficient."""
    shown: Any = form.shown
    if is_condition(shown):
        ends = (shown.arguments[0], constant(number).shown, Number(0.0))
        return form._replace(shown=Call("where", ends)) if number != 1 else form
    own, rest = apart(form.shown)
    number *= own
    form = Form(rest, form.marks)
    top, bottom = quotient(abs(number))
    if top != Number(1):
        form = Form(before(top, form.shown), form.marks)
    if bottom != Number(1):
        form = Form(Infix("div", form.shown, bottom), form.marks)
    return negative(form) if number < 0 else form


@lru_cache(4096, typed=True)
def quotient(number: float) -> tuple[Expression, Expression]:
    """A number as a fraction, its sides numbers or roots: `1 / sqrt(2 * pi)`."""
    top, bottom = fraction(number)
    odd = len(repr(number)) > 14 and 1e-3 < number < 1e3  # else any square is near a fraction
    if top == number and bottom == 1 and odd:
        for power in (0, 1, -1):
            square = number**2 * math.pi**power
            near = Fraction(square).limit_denominator(MOST_UNDER_ROOT)
            if abs(near / Fraction(square) - 1) < 4e-15:
                n, d = near.numerator, near.denominator
                square = max(i for i in range(1, 65) if n * d % (i * i) == 0)
                root = _root(n * d // square**2, power)
                above, below = Fraction(square, d), Fraction(n, square)
                if power < 0 or (not power and above.denominator < below.numerator * 2):
                    shown, bottom = _beside(above.numerator, root), above.denominator
                    return shown if bottom == 1 else Infix("div", shown, Number(bottom)), Number(1)
                shown = _beside(below.denominator, root)
                if below.numerator == 1:
                    return Number(1), shown
                return Infix("div", Number(below.numerator), shown), Number(1)
    return literal(top), literal(bottom)


def _root(number: int, power: int) -> Expression:
    """`sqrt(number)`, with pi in it."""
    inner: Expression = Number(number)
    if power:
        inner = PI if number == 1 else Infix("mul", inner, PI)
    return Call("sqrt", (inner,))


def _beside(number: int, root: Expression) -> Expression:
    return root if number == 1 else Infix("mul", Number(number), root)


def constant(value: float) -> Form:
    """A number by itself: 1/60 as the fraction that it is."""
    top, bottom = quotient(abs(value))
    if isinstance(top, Number) and bottom == Number(1):
        return Form(literal(math.copysign(top.value, value)))
    return with_number(Form(Number(1)), value)


def dims(axes: Any) -> Expression:
    """An axis, or several, as an argument."""
    return Number(axes) if isinstance(axes, int) else Name(str(axes))


def literal(value: float) -> Number:
    return Number(int(value) if abs(value) < 1e15 and value == int(value) else value)


@lru_cache(4096, typed=True)
def fraction(number: float) -> tuple[float, float]:
    """1/3 as a fraction, 0.25 as the number that it is."""
    if len(repr(number)) <= 8 or not 1e-6 < abs(number) < 1e6:
        return number, 1.0
    near = partial(math.isclose, number, rel_tol=1e-14)
    short = float(f"{number:.12g}")
    if len(repr(short)) <= 8 and near(short):
        return short, 1.0
    close = Fraction(number).limit_denominator(1000)
    top, bottom = float(close.numerator), float(close.denominator)
    if bottom <= 100 and near(top / bottom):
        return top, bottom
    found = [(float(f"{above / number:.12g}"), float(above)) for above in range(1, 10)]
    decimals = [pair for pair in found if len(repr(pair[0])) <= 5 and near(pair[1] / pair[0])]
    if decimals:  # 2 / 9.81
        return min(decimals, key=lambda pair: len(repr(pair[0])))[::-1]
    return (top, bottom) if near(top / bottom) else (number, 1.0)


def shortened(values: list[float], common: float) -> bool:
    """Whether coefficients over what they have in common are no longer than they were."""

    def digits(value: float) -> int:
        return sum(len(f"{abs(x):.12g}") for x in fraction(value) if x != 1)

    return max(digits(v / common) for v in values) <= max(map(digits, values))


def placed(form: Form, at: tuple[Label, ...]) -> Form:
    """With fixed places on axes: `A[0, 1]`, `A[:, 2]`."""
    last = max(i for i, x in enumerate(at) if isinstance(x, At))
    rest = ":" if any(map(is_label, at)) else "0"  # an element is a number
    places = ", ".join(str(x.place) if isinstance(x, At) else rest for x in at[: last + 1])
    return Form(Index(form.shown, places), form.marks)


def _is_whole(shown: Any) -> bool:
    """Whether a matrix is no row or column that is broadcast."""
    shape = shown.shape if isinstance(shown, Name) else ()
    return axes_of(shown) == 2 and not is_column(shown) and 1 not in (shape or ())


def of_ones(shown: Any) -> bool:
    """Whether something is one side of a matrix of ones."""
    match shown:
        case Call("tril" | "triu", (Call("ones"), *_)):
            return True
    return False


def within(shown: Any, inner: Expression) -> Expression:
    """One side of something else."""
    return Call(shown.function, (inner, *shown.arguments[1:]))


def as_mean(shown: Any, counts: Mapping[Expression, int]) -> tuple[Expression, int] | None:
    """A product with a sum in it as one with a mean, and the number of elements."""
    if isinstance(shown, Call) and shown in counts:
        return shown._replace(function="mean"), counts[shown]
    if isinstance(shown, Infix) and shown.key in ("mul", "div", "matmul"):
        found = as_mean(shown.left, counts)
        if found is not None:
            return shown._replace(left=found[0]), found[1]
    if isinstance(shown, Index):
        found = as_mean(shown.inner, counts)
        return None if found is None else (shown._replace(inner=found[0]), found[1])
    return None


def as_listed(row: Any) -> Any:
    """A row or a number within a stack."""
    match row:
        case Call("stack", (listed,)):
            return listed
        case Number(value):
            return literal(value)
    return row
