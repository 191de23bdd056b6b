"""Sums of products in index form as people write them: matrix products, transposes, `outer`, `diag`.

A product of factors is printed in the cheapest way there is: for every set of its factors, what can
be written with the axes in which order, made of the ways of two smaller sets. The cost is the
number of operators and calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

from ..graph.node import Shape
from .expression import Call, Expression, Index, Infix, Listed, Name, Negative, Number, Transposed
from .lets import cost_with_lets, leads_with_number
from .shorter import opened, ways
from .terms import Algebra, At, Factor, Label, NoFormula, Product, Sum, is_summed

Layout = tuple[Label, ...]  # the label of every axis
MOST_TRIES = 4000  # sums that are written to find the shortest
MOST_STACKED = 8  # elements of a vector that are written one by one
MOST_TOGETHER = 7  # factors with axes of one product


class Form(NamedTuple):
    """A way to write something: `cost`, then how it looks (fewer marks are better)."""

    cost: int
    marks: int
    shown: Expression


Forms = dict[tuple[Layout, bool], Form]  # by layout, and whether it is what is divided by


class Printer:
    """Writes sums of one algebra. `named`: sums that have a name."""

    def __init__(self, algebra: Algebra, named: Mapping[Sum, str]):
        self.algebra = algebra
        self.named = named
        self.scalars = [
            (product, value, algebra.atom("name", name, (), ()))
            for sum_, name in named.items() if not sum_.shape
            for product, value in algebra.made([(1.0, f) for _, f in [algebra.factor(sum_, ())]],
                                               (2,)).terms
            if product and len(sum_.terms) == 1
        ]  # fmt: skip
        self.named_atoms = {
            product[0].atom: name
            for sum_, name in named.items()
            for product, value in sum_.terms
            if len(product) == 1 and value == 1 and algebra.of_atom(product[0].atom) == sum_
        }
        self.tries = MOST_TRIES
        self.known: dict[Sum, Form] = {}
        self.products: dict[tuple[Product, Shape], Forms] = {}

    def form(self, sum_: Sum) -> Form:
        """The cheapest form of a sum, with its shape."""
        found = self.known.get(sum_)
        if found is None:
            found = self._shortest(sum_, self._form(sum_))
            wide = opened(self.algebra, sum_)
            if wide is not None:
                with suppress(NoFormula):
                    other = self._shortest(wide, self._form(wide))
                    found = min(found, other, key=_shared)
            self.known[sum_] = found
        return found

    def _shortest(self, sum_: Sum, best: Form) -> Form:
        """The cheapest form to be had by changes that each make it cheaper."""
        while True:
            found: tuple[Form, Sum] | None = None
            for other in ways(self.algebra, sum_, self.scalars):
                self.tries -= 1
                if self.tries < 0:
                    return best
                try:
                    form = self._form(other)
                except NoFormula:
                    continue
                if _shared(form) < _shared(best if found is None else found[0]):
                    found = form, other
            if found is None:
                return best
            best, sum_ = found

    def _form(self, sum_: Sum) -> Form:
        name = self.named.get(sum_)
        if name is not None:
            return Form(0, 0, Name(name, sum_.shape))
        if not sum_.terms:
            return _filled(0, sum_.shape)
        best = self._added(sum_)
        values = [value for _, value in sum_.terms]
        if len(values) > 1:
            for common in dict.fromkeys([*values, *map(abs, values)]):
                if common in (1, 0):
                    continue
                inner = Sum(tuple((p, v / common) for p, v in sum_.terms), sum_.shape)
                form = self._added(inner)
                best = min(best, _numbered(form, common), key=_price)
        return best

    def _stacked(self, sum_: Sum) -> Form | None:
        """The derivative with respect to a vector of which places are read: an element each."""
        places: dict[int, list[tuple[float, list[Factor]]]] = {}
        for product, value in sum_.terms:
            for position, factor in enumerate(product):
                if self.algebra.atoms[factor.atom].kind == "delta" and 0 in factor.at:
                    (other,) = [x for x in factor.at if x != 0]
                    if isinstance(other, At):
                        rest = list(product[:position] + product[position + 1 :])
                        places.setdefault(other.place, []).append((value, rest))
                        break
            else:
                return None
        parts = [
            self.form(self.algebra.made(places.get(place, []), ()))
            for place in range(sum_.shape[0])
        ]
        cost = 1 + sum(part.cost for part in parts)
        return Form(cost, 0, Call("stack", (Listed(tuple(_tensor(part.shown) for part in parts)),)))

    def _added(self, sum_: Sum) -> Form:
        if len(sum_.shape) == 1 and 1 < sum_.shape[0] <= MOST_STACKED:
            stacked = self._stacked(sum_)
            if stacked is not None:
                return stacked
        want: Layout = tuple(None if s == 1 else axis for axis, s in enumerate(sum_.shape))
        terms = []
        met: set[Label] = set()
        for product, value in sum_.terms:
            forms = self._product(product, sum_.shape)
            fitting = [(form, layout) for (layout, below), form in forms.items()
                       if not below and _fits(layout, want)]  # fmt: skip
            if not fitting:
                raise NoFormula
            whole = [found for found in fitting if len(found[1]) == len(want)]
            if want and want[0] is None and whole:
                fitting = whole
            form, layout = min(fitting, key=lambda found: _price(found[0]))
            met.update(layout)
            terms.append((value, product, form))
        missing = [axis for axis in want if axis is not None and axis not in met]
        order = sorted(terms, key=lambda term: (term[0] < 0, term[1] == (), _first(term[1])))
        if order[0][1] == () and len(order) > 1 and order[1][0] > 0:
            order = [*order[1:], order[0]]
        shown: Form | None = None
        stretched = missing and len(order) == 1 and order[0][1]
        for value, product, form in order:
            if stretched:
                form = _times(_filled(1, self._sizes(sum_, missing)), form)
            one = _numbered(form, abs(value)) if product else Form(0, 0, _number(abs(value)))
            if shown is None:
                shown = _negative(one) if value < 0 else one
            else:
                shown = _infix("sub" if value < 0 else "add", shown, one)
        assert shown is not None
        if missing and not stretched:
            if len(sum_.terms) == 1 and not sum_.terms[0][0]:
                value = sum_.terms[0][1]
                if abs(value) == 1:
                    filled = _filled(1, sum_.shape)
                    return _negative(filled) if value < 0 else filled
                return _numbered(_filled(1, sum_.shape), value)
            shown = _times(_filled(1, self._sizes(sum_, missing)), shown)
        return shown

    def _sizes(self, sum_: Sum, missing: list[int]) -> Shape:
        return tuple(s if a in missing else 1 for a, s in enumerate(sum_.shape))

    # -- products ---------------------------------------------------------------------------------

    def _product(self, product: Product, shape: Shape) -> Forms:
        key = product, tuple(size == 1 for size in shape)
        found = self.products.get(key)
        if found is None:
            found = self.products[key] = self._made(product, shape)
        return found

    def _made(self, product: Product, shape: Shape) -> Forms:
        free = {axis for axis, size in enumerate(shape) if size != 1}
        scalars = [f for f in product if all(not _is_label(x) for x in f.at)]
        rest = [f for f in product if f not in scalars]
        above: list[Form] = []
        below: list[Form] = []
        for factor in scalars:
            form, is_below = self._powered(factor)
            (below if is_below else above).append(form)
        forms = self._together(rest, free) if rest else {((), False): Form(0, 0, Number(1))}
        found: Forms = {}
        for (layout, is_below), form in forms.items():
            if is_below:
                form = _infix("div", Form(0, 0, Number(1)), form)
            shown: Form | None = form if rest else None
            for scalar in reversed(above):
                shown = scalar if shown is None else _times(scalar, shown)
            if shown is None:
                shown = Form(0, 0, Number(1))
            if below:
                shown = _infix("div", shown, reduce(_times, below))
            found[layout, False] = shown
        return found

    def _together(self, factors: list[Factor], free: set[int]) -> Forms:
        for position, factor in enumerate(factors):
            if self.algebra.atoms[factor.atom].kind == "delta":
                first, second = factor.at
                if first in free and second in free:
                    return self._diagonal(factors[:position] + factors[position + 1 :], factor)
        if len(factors) > MOST_TOGETHER:
            raise NoFormula
        count = len(factors)
        labels = [{x for x in f.at if _is_label(x)} for f in factors]
        table: list[Forms] = [{} for _ in range(1 << count)]
        for subset in range(1, 1 << count):
            inside = [i for i in range(count) if subset >> i & 1]
            outside: set[Any] = set(free)
            for i in range(count):
                if not subset >> i & 1:
                    outside |= labels[i]
            forms = table[subset]
            if len(inside) == 1:
                self._single(factors[inside[0]], outside, forms)
            else:
                part = (subset - 1) & subset
                while part:
                    other = subset ^ part
                    if part & (1 << inside[0]):
                        self._joined(table[part], table[other], outside, forms)
                    part = (part - 1) & subset
            self._turned(forms)
        return table[-1]

    def _diagonal(self, rest: list[Factor], delta: Factor) -> Forms:
        first, second = delta.at
        size = self.algebra.atoms[delta.atom].shape[0]
        if not rest:
            shown = Form(1, 0, Call("eye", (Number(size),)))
        else:
            forms = self._together(rest, {first})  # type: ignore[arg-type]
            form = forms.get(((first,), False))
            if form is None:
                raise NoFormula
            shown = _call("diag", form)
        return {((first, second), False): shown, ((second, first), False): shown}

    def _single(self, factor: Factor, outside: set[Any], forms: Forms) -> None:
        """The ways to write one factor; what is nowhere else is summed."""
        atom = self.algebra.atoms[factor.atom]
        form, below = self._powered(factor)
        layout = tuple(x for x in factor.at if not isinstance(x, At))
        plain = [x for x in layout if x is not None]
        if len(set(plain)) < len(plain):
            if len(layout) != 2:
                raise NoFormula
            if layout[0] not in outside and not below and factor.power == 1:
                _add(forms, (), False, _call("trace", form))
                return
            form, layout = _call("diag", form), layout[:1]
        if atom.kind == "logsumexp" and not below and factor.power == 1:
            kept = [x for i, x in enumerate(layout) if i != atom.data]
            _add(forms, tuple(kept), below, self._logsumexp(factor, False))
        closing = {x for x in layout if _is_label(x)} - outside
        if factor.power == 2 and not below and set(layout) == closing and len(layout) == 1:
            base, _ = self._powered(factor._replace(power=1.0))
            _add(forms, (), False, _infix("matmul", base, base))
        self._closed(form, layout, below, closing, forms)
        if atom.symmetric and len(layout) == 2:
            self._closed(form, layout[::-1], below, closing, forms)

    def _closed(
        self, form: Form, layout: Layout, below: bool, closing: set[Any], forms: Forms
    ) -> None:
        """A form with the labels that are met nowhere else summed."""
        if not closing:
            _add(forms, layout, below, form)
            return
        if below:
            form = _infix("div", Form(0, 0, Number(1)), form)
        axes = [i for i, label in enumerate(layout) if label in closing]
        left = tuple(x for x in layout if x not in closing)
        if not any(_is_label(x) for x in left) and len(left) + len(axes) == len(layout):
            _add(forms, (), False, _call("sum", form))
            return
        if len(axes) != 1:
            dims = Name(f"({', '.join(map(str, axes))})")
            _add(forms, left, False, _call("sum", form, dims))
            return
        _add(forms, left, False, _call("sum", form, Number(axes[0])))
        kept = tuple(None if x in closing else x for x in layout)
        shown = Call("sum", (form.shown, Number(axes[0])), (("keepdim", "True"),))
        _add(forms, kept, False, Form(form.cost + 1, form.marks + 1, shown))

    def _joined(self, left: Forms, right: Forms, outside: set[Any], forms: Forms) -> None:
        """The ways to write a product of two parts."""
        for (one, below), a in left.items():
            for (other, under), b in right.items():
                labels = {x for x in (*one, *other) if _is_label(x)}
                closing = labels - outside
                if not below and not under:
                    if len(closing) == 1:
                        (label,) = closing
                        self._chained(a, one, b, other, label, forms)
                        self._chained(b, other, a, one, label, forms)
                    if len(one) == len(other) == 1 and one != other and not closing:
                        if one[0] is not None and other[0] is not None:
                            _add(forms, one + other, False, _call("outer", a, b))
                            _add(forms, other + one, False, _call("outer", b, a))
                layout = _broadcast(one, other)
                if layout is None:
                    continue
                if below == under:
                    form, is_below = _times(a, b), below
                    if len(one) != len(other):
                        form = form._replace(marks=form.marks + 1)
                else:
                    form, is_below = _infix("div", *((b, a) if below else (a, b))), False
                self._closed(form, layout, is_below, closing, forms)

    def _chained(
        self, a: Form, one: Layout, b: Form, other: Layout, label: Label, forms: Forms
    ) -> None:
        """`a @ b`, where the last axis of `a` and the first of `b` are summed."""
        if not 1 <= len(one) <= 2 or not 1 <= len(other) <= 2 or one[-1] != label:
            return
        if other[0] != label or label in one[:-1] or label in other[1:]:
            return
        layout = one[:-1] + other[1:]
        if len(layout) == 2 and layout[0] == layout[1]:
            return
        _add(forms, layout, False, _infix("matmul", a, b))
        matrix: Any = a.shown
        if len(one) != 2:
            matrix = b.shown
            if len(other) == 2 and isinstance(matrix, Call) and matrix.function == "inv":
                turned = _turned(Form(b.cost - 1, b.marks, matrix.arguments[0]))
                _add(forms, layout, False, _call("solve", turned, a))
            return
        if isinstance(matrix, Call) and matrix.function == "inv":
            inner = Form(a.cost - 1, a.marks, matrix.arguments[0])
            _add(forms, layout, False, _call("solve", inner, b))
        elif isinstance(matrix, Transposed) and isinstance(matrix.inner, Call):
            if matrix.inner.function == "inv":
                inner = _turned(Form(a.cost - 2, a.marks - 1, matrix.inner.arguments[0]))
                _add(forms, layout, False, _call("solve", inner, b))

    def _turned(self, forms: Forms) -> None:
        """Transposes, and columns of vectors."""
        for (layout, below), form in list(forms.items()):
            if len(layout) == 2 and None not in layout:
                _add(forms, layout[::-1], below, _turned(form))
            elif len(layout) == 1 and layout[0] is not None:
                shown = Index(form.shown, ":, None")
                _add(forms, (*layout, None), below, Form(form.cost + 1, form.marks + 2, shown))

    # -- factors ----------------------------------------------------------------------------------

    def _powered(self, factor: Factor) -> tuple[Form, bool]:
        """A factor without its labels, and whether it is divided by."""
        power = abs(factor.power)
        below = factor.power < 0
        root = self._norm(factor) if power in (0.5, 1, 1.5) else None
        if root is not None:
            doubled = power * 2
            if doubled == 2 and not below:
                pass
            elif doubled == 1:
                return root, below
            elif root.cost < self._atom(factor.atom).cost + 1:
                exponent = Form(0, 0, Number(int(doubled)))
                return _infix("pow", root, exponent), below
        form = self._atom(factor.atom)
        if any(isinstance(label, At) for label in factor.at):
            form = _placed(form, factor.at)
        if power == 0.5:
            form = _call("sqrt", form)
        elif power != 1:
            exponent = Form(0, 0, _number(power))
            form = _infix("pow", form, exponent)
        return form, below

    def _norm(self, factor: Factor) -> Form | None:
        """`norm(r)` for the root of a sum of squares."""
        atom = self.algebra.atoms[factor.atom]
        if atom.kind != "group" or atom.shape or len(atom.parts[0].terms) != 1:
            return None
        product, value = atom.parts[0].terms[0]
        if value != 1 or len(product) != 1 or product[0].power != 2:
            return None
        (inner,) = product
        if len(set(inner.at)) < len(inner.at) or not all(is_summed(x) for x in inner.at):
            return None
        return _call("norm", self._atom(inner.atom))

    def _logsumexp(self, factor: Factor, keep: bool) -> Form:
        atom = self.algebra.atoms[factor.atom]
        form = self.form(atom.parts[0])
        keywords = (("keepdim", "True"),) if keep else ()
        shown = Call("logsumexp", (form.shown, Number(atom.data)), keywords)
        return Form(form.cost + 1, form.marks, shown)

    def _atom(self, number: int) -> Form:
        atom = self.algebra.atoms[number]
        if number in self.named_atoms:
            return Form(0, 0, Name(self.named_atoms[number], atom.shape))
        if atom.kind == "name":
            return Form(0, 0, Name(atom.data, atom.shape))
        if atom.kind == "delta":
            return Form(1, 0, Call("eye", (Number(atom.shape[0]),)))
        if atom.kind == "gate":
            one, other = (self.form(part) for part in atom.parts)
            right: Any = other.shown
            if isinstance(right, Call) and right.function == "zeros":
                other = Form(0, 0, Number(0))
            condition = _infix(atom.data, one, other)
            ends = (condition.shown, Number(1.0), Number(0.0))
            return Form(condition.cost + 1, condition.marks, Call("where", ends))
        form = self.form(atom.parts[0])
        if atom.kind in ("group", "detached"):
            return form
        if atom.kind == "logsumexp":
            return self._logsumexp(Factor(number, ()), len(atom.shape) > 1)
        if atom.kind == "softmax":
            return _call("softmax", form, Number(atom.data))
        if atom.kind == "function":
            op, statics = atom.data
            keywords = tuple(
                (param.name, str(value))
                for param, value in zip(op.params, statics, strict=False)
                if value is not None and value != param.default
            )
            name = op.name.removeprefix("nn.functional.")
            return Form(form.cost + 1, form.marks, Call(name, (form.shown,), keywords))
        return _call({"inverse": "inv"}.get(atom.kind, atom.kind), form)


def _is_label(label: Label) -> bool:
    return type(label) is int


def _fits(layout: Layout, want: Layout) -> bool:
    """Whether an array with these axes broadcasts to the wanted ones."""
    if len(layout) > len(want):
        return False
    tail = want[len(want) - len(layout) :]
    return all(x is None or x == y for x, y in zip(layout, tail, strict=True))


def _broadcast(one: Layout, other: Layout) -> Layout | None:
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


def _add(forms: Forms, layout: Layout, below: bool, form: Form) -> None:
    known = forms.get((layout, below))
    if known is None or _price(form) < _price(known):
        forms[layout, below] = form


def _price(form: Form) -> tuple[int, int]:
    return form.cost, form.marks


def _shared(form: Form) -> tuple[int, int, int]:
    """The price where what is repeated is named once."""
    return cost_with_lets(form.shown, form.cost), form.cost, form.marks


def _first(product: Product) -> tuple[Any, ...]:
    return tuple(sorted(factor.atom for factor in product))


def _infix(key: str, left: Form, right: Form) -> Form:
    return Form(
        left.cost + right.cost + 1, left.marks + right.marks, Infix(key, left.shown, right.shown)
    )


def _times(left: Form, right: Form) -> Form:
    """`left * right`: a number goes to the front of a product, a condition around it."""
    for gate, other in ((left, right), (right, left)):
        inner: Any = gate.shown
        if isinstance(inner, Call) and inner.function == "where":
            if inner.arguments[1:] == (Number(1.0), Number(0.0)):
                shown = Call("where", (inner.arguments[0], other.shown, Number(0.0)))
                return Form(gate.cost + other.cost, gate.marks + other.marks, shown)
    if leads_with_number(right.shown) and not leads_with_number(left.shown):
        left, right = right, left
    cost = left.cost + right.cost + 1
    return Form(cost, left.marks + right.marks, _before(left.shown, right.shown))


def _before(factor: Expression, product: Any) -> Expression:
    """A factor in front of a product, within it: `2 * A @ x`."""
    if isinstance(product, Infix) and product.key in ("mul", "div"):
        return Infix(product.key, _before(factor, product.left), product.right)
    if isinstance(product, Infix) and product.key == "matmul" and _is_scalar(factor):
        return Infix("matmul", _before(factor, product.left), product.right)
    if product == Number(1):
        return factor
    return Infix("mul", factor, product)


def _is_scalar(shown: Any) -> bool:
    return isinstance(shown, Number) or (isinstance(shown, Name) and shown.shape == ())


def _call(function: str, *arguments: Form | Expression) -> Form:
    cost, marks = 1, 0
    shown = []
    for argument in arguments:
        if isinstance(argument, Form):
            cost += argument.cost
            marks += argument.marks
            argument = argument.shown
        shown.append(argument)
    return Form(cost, marks, Call(function, tuple(shown)))


def _turned(form: Form) -> Form:
    """The transpose."""
    shown: Any = form.shown
    if isinstance(shown, Transposed):
        return Form(form.cost - 1, form.marks - 1, shown.inner)
    if isinstance(shown, Call) and shown.function == "outer":
        return form._replace(shown=Call("outer", shown.arguments[::-1]))
    if isinstance(shown, Call) and shown.function in ("diag", "eye"):
        return form
    return Form(form.cost + 1, form.marks + 1, Transposed(shown))


def _tensor(shown: Expression) -> Expression:
    return Call("tensor", (shown,)) if isinstance(shown, Number) else shown


def _filled(value: int, shape: Shape) -> Form:
    if not shape:
        return Form(0, 0, Number(float(value)))
    return Form(1, 0, Call("ones" if value else "zeros", tuple(map(Number, shape))))


def _negative(form: Form) -> Form:
    """With a minus, which is a part of a number where one leads."""
    cost = form.cost + (not leads_with_number(form.shown))
    return Form(cost, form.marks, Negative(form.shown))


def _numbered(form: Form, number: float) -> Form:
    """A form with its coefficient."""
    top, bottom = _fraction(abs(number))
    if top != 1:
        cost = form.cost + (form.shown != Number(1))
        form = Form(cost, form.marks, _before(_number(top), form.shown))
    if bottom != 1:
        form = Form(form.cost + 1, form.marks, Infix("div", form.shown, _number(bottom)))
    return _negative(form) if number < 0 else form


def _number(value: float) -> Number:
    return Number(int(value) if value == int(value) and abs(value) < 1e15 else value)


def _fraction(number: float) -> tuple[float, float]:
    """1/3 as a fraction, 0.25 as the number that it is."""
    if len(repr(number)) <= 8 or not 1e-6 < abs(number) < 1e6:
        return number, 1.0
    close = Fraction(number).limit_denominator(1000)
    if abs(close.numerator / close.denominator - number) <= 1e-14 * abs(number):
        short = round(number, 12)
        if len(repr(short)) <= 8:
            return short, 1.0
        return float(close.numerator), float(close.denominator)
    return number, 1.0


def _placed(form: Form, at: tuple[Label, ...]) -> Form:
    """With fixed places on axes: `A[0, 1]`, `A[:, 2]`."""
    last = max(i for i, x in enumerate(at) if isinstance(x, At))
    places = ", ".join(str(x.place) if isinstance(x, At) else ":" for x in at[: last + 1])
    return Form(form.cost + 1, form.marks, Index(form.shown, places))
