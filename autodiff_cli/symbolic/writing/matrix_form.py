"""Sums of products in index form as people write them, with `@`, `.T`, `outer` and `diag`.

A product of factors is printed in the cheapest way there is: for every set of its factors, what can
be written with the axes in which order, made of the ways of two smaller sets. The cost is the
number of operators and calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, reduce
from math import prod
from typing import Any

from ...graph.node import Shape
from ..algebra import Algebra
from ..atoms import axes
from ..atoms.axes import arranged, is_einsum, permuted
from ..atoms.masks import with_conditions
from ..atoms.places import behind
from ..atoms.windows import convolutions as convolved
from ..atoms.windows import moved
from ..shorter import opened, ways
from ..terms import At, Factor, Label, NoFormula, Product, Sum, is_summed, label_key, renamed
from .atom_form import AtomPrinter
from .expression import Call, Expression, Index, Infix, Listed, Name, Number
from .forms import (
    Form,
    Forms,
    Layout,
    add,
    as_listed,
    as_mean,
    broadcast,
    call,
    column,
    constant,
    constant_array,
    divided,
    final,
    first,
    fits,
    infix,
    inverted,
    is_better,
    is_condition,
    is_counted,
    is_inverse,
    is_label,
    is_plain,
    negative,
    price,
    promise,
    shortened,
    times,
    turned,
    with_number,
)
from .lets import cost_of, mentioned

MOST_COST = 300  # operators and calls, what is repeated as often as it is
MOST_WORK = 3_000  # steps of the search for the shortest form
MOST_STACKED = 8  # elements of a vector that are written one by one
MOVED = ("pool", "split", "move", "one_hot", "mask")  # what moves the axes of others
UNSAID = ("window", "mask", "split", "pool")  # what is written only with what it is applied to
WIDEST = 2  # times as many terms once brackets are multiplied out
MOST_TOGETHER = 7  # factors with axes of one product
MOST_AXES = 8


Sizes = dict[Any, int]  # of labels


class Printer(AtomPrinter):
    """Writes sums of one algebra. `named`: sums that have a name; `family`: of which each writes
    what has no more of the names in it than its own."""

    def __init__(
        self, algebra: Algebra, named: Mapping[Sum, str],
        family: dict[Any, Printer] | None = None,
    ):  # fmt: skip
        super().__init__(algebra, named)
        self.family = family
        self.named_products = [
            (product, value, algebra.atom("name", name, (), sum_.shape))
            for sum_, name in named.items()
            for product, value in self._products(sum_)
            if {i for i, n in enumerate(sum_.shape) if n != 1}
            == {x for factor in product for x in factor.at if is_label(x) and not is_summed(x)}
            and product
        ]
        self.counts: dict[Expression, int] = {}  # of elements that a sum adds
        for other in (family or {}).values():
            self.counts = other.counts
            break
        self.known: dict[Sum, Form] = {}
        self.products: dict[tuple[Product, Layout], tuple[Form, Layout] | None] = {}
        # Of factors with the labels that are met outside: their forms, and the best without gaps.
        self.parts: dict[Any, tuple[Forms, tuple[Form, Layout] | None]] = {}
        self.forms: dict[Sum, Form] = {}

    def _products(self, sum_: Sum) -> tuple[tuple[Product, float], ...]:
        """A sum as the one product that it is; of several terms where all have a number."""
        if len(sum_.terms) == 1:
            return (sum_ if sum_.shape else self.algebra.stretched(sum_, (2,))).terms
        at = tuple(None if n == 1 else axis for axis, n in enumerate(sum_.shape))
        number, factors = self.algebra.factor(sum_, at)
        return ((tuple(factors), number),) if number != 1 and sum_.shape else ()

    def form(self, sum_: Sum) -> Form:
        """The cheapest form of a sum, with its shape."""
        if self.family is not None:
            own = of_names(self.family, self.algebra, self.named, sum_)
            if own is not self:
                return own.form(sum_)
        sum_ = with_conditions(self.algebra, sum_)
        found = self.known.get(sum_)
        if found is None:
            found = self._shortest(sum_, self._form(sum_))
            wide = opened(self.algebra, sum_)
            if wide is not None and len(wide.terms) <= WIDEST * len(sum_.terms):
                with suppress(NoFormula):
                    other = self._shortest(wide, self._form(wide))
                    found = min(found, other, key=final)
            self.known[sum_] = found
        return found

    def _shortest(self, sum_: Sum, form: Form) -> Form:
        """The cheapest form on a way of changes that each make it cheaper."""
        best = form
        while True:
            found: tuple[Form, Sum] | None = None
            least = promise(form)
            for other in ways(self.algebra, sum_, self.named_products):
                if self.algebra.work > MOST_WORK:
                    break
                try:
                    shown = self._form(other)
                except NoFormula:
                    continue
                if promise(shown) < least:
                    found, least = (shown, other), promise(shown)
            if found is None:
                return best
            form, sum_ = found
            best = min(best, form, key=final)

    def _form(self, sum_: Sum) -> Form:
        found = self.forms.get(sum_)
        if found is None:
            found = self.forms[sum_] = self._as_it_is(sum_)
        if cost_of(found.shown) > MOST_COST:
            raise NoFormula
        return found

    def _as_it_is(self, sum_: Sum) -> Form:
        name = self.named.get(sum_)
        if name is not None:
            return Form(Name(name, sum_.shape))
        if not sum_.terms:
            return constant_array(0, sum_.shape)
        best = self._added(sum_)
        values = [value for _, value in sum_.terms]
        if len(values) > 1:
            for common in sorted(dict.fromkeys([*map(abs, values), *values]), key=lambda v: v < 0):
                if common == 1 or not shortened(values, common):
                    continue
                inner = Sum(tuple((p, v / common) for p, v in sum_.terms), sum_.shape)
                form = self._added(inner)
                best = min(best, self._numbered(form, common), key=price)
        return best

    def _stacked(self, sum_: Sum) -> Form | None:
        """The derivative with respect to what is read by places: an element or a row each."""
        places: dict[int, list[tuple[float, list[Factor]]]] = {}
        for product, value in sum_.terms:
            for position, factor in enumerate(product):
                if self.algebra.atoms[factor.atom].kind == "delta" and 0 in factor.at:
                    (other,) = [x for x in factor.at if x != 0]
                    if isinstance(other, At):
                        rest = renamed(product[:position] + product[position + 1 :], {1: 0})
                        places.setdefault(other.place, []).append((value, rest))
                        break
            else:
                return None
        parts = [
            self.form(self.algebra.made(places.get(place, []), sum_.shape[1:]))
            for place in range(sum_.shape[0])
        ]
        shown = Listed(tuple(map(as_listed, (part.shown for part in parts))))
        if not cost_of(shown) and not mentioned(shown):
            return Form(shown)
        return Form(Call("stack", (shown,)))

    def _added(self, sum_: Sum) -> Form:
        want: Layout = tuple(None if s == 1 else axis for axis, s in enumerate(sum_.shape))
        few = 0 < len(want) <= 2 and None not in want and max(sum_.shape) <= MOST_STACKED
        stacked = self._stacked(sum_) if few else None
        if stacked is not None and len(want) == 1:
            return stacked
        found = (
            self._switched(sum_, want)
            or behind(self.algebra, sum_, self.whole)
            or self._terms(sum_, want)
        )
        return found if stacked is None else min(found, stacked, key=price)

    def _terms(self, sum_: Sum, want: Layout) -> Form:
        """Terms added up."""
        terms = []
        met: set[Label] = set()
        for product, value in sum_.terms:
            found = self._product(product, want)
            if found is None:
                raise NoFormula
            form, layout = found
            met.update(layout)
            terms.append((value, product, form))
        missing = [axis for axis in want if axis is not None and axis not in met]
        order = sorted(terms, key=lambda term: (term[0] < 0, term[1] == (), first(term[1])))
        shown: Form | None = None
        stretched = missing and len(order) == 1 and order[0][1]
        for value, product, form in order:
            if stretched:
                ones = constant_array(1, self._sizes(sum_, missing))
                form = times(ones, form) if layout else times(form, ones)
            one = self._numbered(form, abs(value)) if product else constant(abs(value))
            if shown is None:
                shown = negative(one) if value < 0 else one
            else:
                shown = infix("sub" if value < 0 else "add", shown, one)
        assert shown is not None
        if missing and not stretched:
            if len(sum_.terms) == 1 and not sum_.terms[0][0]:
                return with_number(constant_array(1, sum_.shape), sum_.terms[0][1])
            shown = times(constant_array(1, self._sizes(sum_, missing)), shown)
        return shown

    def _switched(self, sum_: Sum, want: Layout) -> Form | None:
        """Terms where a comparison holds and terms where it does not, in one `where`."""
        gates = {
            (factor.atom, factor.at) for product, _ in sum_.terms for factor in product
            if fits(factor.at, want) and self.algebra.atoms[factor.atom].kind == "gate"
        }  # fmt: skip
        for number, at in sorted(gates, key=str):
            other = self.algebra.opposite(number)
            if (other, at) not in gates:
                continue
            sides: dict[int | None, list[tuple[Product, float]]] = {number: [], other: []}
            for product, value in sum_.terms:
                side = next((f.atom for f in product if f.atom in sides and f.at == at), None)
                rest = tuple(f for f in product if f.atom != side or f.at != at)
                sides.setdefault(side, []).append((rest, value))
            yes, no = (
                self.algebra.unstretched(
                    self.algebra.made([(v, p) for p, v in sides[x]], sum_.shape)
                )
                for x in (number, other)
            )
            if at != want and sum_.shape not in (yes.shape, no.shape):
                continue
            gate: Any = self.atom(number).shown
            condition = Form(gate.arguments[0])
            form = call("where", condition, self.side(yes), self.side(no))
            if None not in sides:
                return form
            return infix("add", form, self._form(Sum(tuple(sides[None]), sum_.shape)))
        return None

    def _numbered(self, form: Form, number: float) -> Form:
        """A form with its coefficient: of a sum over n elements 1/n makes the mean."""
        plain = with_number(form, number)
        found = as_mean(form.shown, self.counts)
        if found is None:
            return plain
        return min(plain, with_number(form._replace(shown=found[0]), number * found[1]), key=price)

    def _sizes(self, sum_: Sum, missing: list[Any]) -> Shape:
        return tuple(s if a in missing else 1 for a, s in enumerate(sum_.shape))

    # -- products ---------------------------------------------------------------------------------

    def _product(self, product: Product, want: Layout) -> tuple[Form, Layout] | None:
        """The cheapest form that broadcasts to the wanted axes, with its own; None where there is
        none."""
        key = product, want
        if key not in self.products:
            forms = self._made(product, {axis for axis in want if axis is not None})
            above = [(form, layout) for (layout, below), form in forms.items() if not below]
            fitting = [(form, layout) for form, layout in above if fits(layout, want)]
            if len(want) > 2 or not fitting:
                fitting += axes.all_arranged(above, want)
            whole = [found for found in fitting if len(found[1]) == len(want)]
            if want and want[0] is None and whole:
                fitting = whole
            self.products[key] = min(fitting, key=lambda found: price(found[0]), default=None)
        return self.products[key]

    def _made(self, product: Product, free: set[Any]) -> Forms:
        scalars = [f for f in product if all(not is_label(x) for x in f.at)]
        rest = [f for f in product if f not in scalars]
        above: list[Form] = []
        below: list[Form] = []
        for factor in scalars:
            form, is_below = self.powered(factor)
            (below if is_below else above).append(form)
        forms = self._together(rest, free) if rest else {((), False): Form(Number(1))}
        found: Forms = {}
        for (layout, is_below), form in forms.items():
            shown: Form | None = form if rest and not is_below else None
            for scalar in reversed(above):
                shown = scalar if shown is None else times(scalar, shown)
            if shown is None:
                shown = Form(Number(1))
            if is_below:
                shown = infix("div", shown, form)
            if below:
                shown = infix("div", shown, reduce(times, below))
            found[layout, False] = shown
        return found

    def _together(self, factors: list[Factor], free: set[Any]) -> Forms:
        """The ways to write a product: with as few axes as it has, or with more where there are
        none."""
        kinds = [self.algebra.atoms[f.atom].kind for f in factors]
        own = [len(f.at) for f, kind in zip(factors, kinds, strict=True) if kind != "split"]
        for limit in (max(2, len(free), *own), MOST_AXES):
            found = self._paired(factors, free, limit)
            if found:
                return found
        return {}

    def _paired(self, factors: list[Factor], free: set[Any], limit: int) -> Forms:
        """By parts that have no more axes than a limit."""
        for position, factor in enumerate(factors):
            if self.algebra.atoms[factor.atom].kind == "delta":
                first, second = factor.at
                if first in free and second in free:
                    return self._diagonal(factors[:position] + factors[position + 1 :], factor)
        units = [[factor] for factor in factors]
        if len(units) > MOST_TOGETHER:
            units = axes.with_splits(self.algebra, units, free)
        if len(units) > MOST_TOGETHER:
            raise NoFormula
        count = len(units)
        labels: list[set[Any]] = [set()]  # of each set of units
        for unit in units:
            own = {x for f in unit for x in f.at if is_label(x)}
            labels += [others | own for others in labels]
        sizes = self.algebra.sizes(factors)
        most = max(len(free), *(len(f.at) for f in factors))
        table: list[Forms] = [{} for _ in range(1 << count)]
        arrays: list[tuple[Form, Layout] | None] = [None] * (1 << count)
        kinds = [self.algebra.atoms[f.atom].kind for f, *_ in units]
        windows = [i for i, kind in enumerate(kinds) if kind == "window"]
        moving = {1 << i for i, kind in enumerate(kinds) if kind in MOVED}
        loose = sum(moving) + sum(1 << i for i in windows)  # what is beside them matters
        loose |= sum(1 << i for i, unit in enumerate(units) if len(unit) > 1)
        for subset in range(1, 1 << count):
            inside = [i for i in range(count) if subset >> i & 1]
            outside = free | labels[~subset]
            forms = table[subset]
            self.algebra.work += (1 << len(inside) - 1) - 1
            met = frozenset(outside & labels[subset])
            key = tuple([units[i][0] for i in inside]), met, limit, most
            shared = len(inside) > 1 and not subset & loose
            if shared and key in self.parts:
                table[subset], arrays[subset] = self.parts[key]
                continue
            if len(inside) == 1:
                factor, *splits = units[inside[0]]
                if splits:
                    forms.update(self._paired([factor, *splits], outside, limit))
                elif kinds[inside[0]] == "pool":  # of ones
                    one: Forms = {((), False): Form(Number(1))}
                    parts = moved(self, factor, one, outside, sizes)
                    self._all_closed(parts, outside, sizes, forms)
                elif kinds[inside[0]] not in UNSAID:
                    self._single(factor, outside, sizes, forms)
            else:
                for i in windows:
                    if subset >> i & 1:
                        parts = convolved(
                            self.algebra, units[i][0], subset ^ 1 << i, table, outside
                        )
                        self._all_closed(parts, outside, sizes, forms)
                part = (subset - 1) & subset
                while part:
                    other = subset ^ part
                    if part in moving:
                        factor, *_ = units[part.bit_length() - 1]
                        parts = moved(self, factor, table[other], outside, sizes)
                        parts = {x: form for x, form in parts.items() if len(x[0]) <= limit + 1}
                        self._all_closed(parts, outside, sizes, forms)
                    if part & (1 << inside[0]):
                        self._joined(table[part], table[other], outside, limit, sizes, forms)
                        self._einsum(arrays[part], arrays[other], outside, limit, forms)
                    part = (part - 1) & subset
            self._turned(forms, most)
            if limit > 2:
                arrays[subset] = _plainest(forms)
            if shared:
                self.parts[key] = forms, arrays[subset]
        return table[-1]

    def _diagonal(self, rest: list[Factor], delta: Factor) -> Forms:
        first, second = delta.at
        size = self.algebra.atoms[delta.atom].shape[0]
        if not rest:
            shown = Form(Call("eye", (Number(size),)))
        else:
            forms = self._together(rest, {first})
            form = forms.get(((first,), False))
            under = forms.get(((first,), True))
            if under is not None:
                over = infix("div", Form(Number(1)), under)
                form = over if form is None else min(form, over, key=price)
            if form is None:
                raise NoFormula
            shown = call("diag", form)
        return {((first, second), False): shown, ((second, first), False): shown}

    def _single(self, factor: Factor, outside: set[Any], sizes: Sizes, forms: Forms) -> None:
        """The ways to write one factor; what is nowhere else is summed."""
        atom = self.algebra.atoms[factor.atom]
        form, below = self.powered(factor)
        layout = tuple(x for x in factor.at if not isinstance(x, At))
        plain = [x for x in layout if x is not None]
        if len(set(plain)) < len(plain):
            if len(layout) != 2:
                raise NoFormula
            if layout[0] not in outside and not below and factor.power == 1:
                add(forms, (), False, call("trace", form))
                return
            form, layout = call("diag", form), layout[:1]
        closing = {x for x in layout if is_label(x)} - outside
        if factor.power == 2 and not below and set(layout) == closing and len(layout) == 1:
            base, _ = self.powered(factor._replace(power=1.0))
            add(forms, (), False, infix("matmul", base, base))
        self._closed(form, layout, below, closing, sizes, forms)
        if atom.symmetric and len(layout) == 2:
            self._closed(form, layout[::-1], below, closing, sizes, forms)

    def _all_closed(self, parts: Forms, outside: set[Any], sizes: Sizes, forms: Forms) -> None:
        for (layout, below), form in parts.items():
            closing = {x for x in layout if is_label(x)} - outside
            self._closed(form, layout, below, closing, sizes, forms)

    def _closed(
        self, form: Form, layout: Layout, below: bool, closing: set[Any] | frozenset[Any],
        sizes: Sizes, forms: Forms,
    ) -> None:  # fmt: skip
        """A form with the labels that are met nowhere else summed."""
        if not closing:
            add(forms, layout, below, form)
            return
        if below:
            form = infix("div", Form(Number(1)), form)
        holds: Any = form.shown
        if is_condition(holds):
            form = Form(holds.arguments[0], form.marks)  # how many bools are true
        axes = [i for i, label in enumerate(layout) if label in closing]
        if None in layout:  # axes of one element go with them
            rest = [i for i, label in enumerate(layout) if label in closing or label is None]
            if len(rest) < len(layout):
                every = Name(f"({', '.join(map(str, rest))})")
                labels = tuple(x for x in layout if x not in closing and x is not None)
                total = prod(sizes[label] for label in closing)
                self._add_sum(forms, labels, call("sum", form, every), total)
        count = prod(sizes[label] for label in closing)
        left = tuple(x for x in layout if x not in closing)
        if not any(is_label(x) for x in left) and len(left) + len(axes) == len(layout):
            holds = form.shown
            if isinstance(holds, Call) and holds.function == "sum":
                whole = form._replace(shown=Call("sum", holds.arguments[:1]))
                count *= self.counts[holds]
            else:
                whole = call("sum", form)
            self._add_sum(forms, (), whole, count)
            return
        among = f"({', '.join(map(str, axes))})"
        dims: Expression = Number(axes[0]) if len(axes) == 1 else Name(among)
        self._add_sum(forms, left, call("sum", form, dims), count)
        kept = tuple(None if x in closing else x for x in layout)
        shown = Call("sum", (form.shown, dims), (("keepdim", "True"),))
        self._add_sum(forms, kept, Form(shown, form.marks + 1), count)

    def _add_sum(self, forms: Forms, layout: Layout, form: Form, count: int) -> None:
        self.counts[form.shown] = count
        add(forms, layout, False, form)

    def _joined(
        self, left: Forms, right: Forms, outside: set[Any], limit: int, sizes: Sizes, forms: Forms
    ) -> None:
        """The ways to write a product of two parts."""
        if not left or not right:
            return
        closing = frozenset(
            x for side in (left, right) for x in next(iter(side))[0]
            if is_label(x) and x not in outside
        )  # fmt: skip
        known = [
            (*key, form, is_plain(form.shown), key[0][-2:][:1], key[0][-1:])
            for key, form in right.items()
        ]
        for (one, below), a in left.items():
            is_simple, start, end = is_plain(a.shown), one[-2:][:1], one[-1:]
            for other, under, b, plain, its_start, its_end in known:
                if closing and not below and not under:
                    chained: Forms = {}
                    for label in closing:
                        if end == (label,) == its_start:
                            self._chained(a, one, b, other, label, outside, forms, chained)
                        if its_end == (label,) == start:
                            self._chained(b, other, a, one, label, outside, forms, chained)
                    self._all_closed(chained, outside, sizes, forms)
                elif not below and not under:
                    vectors = len(one) == len(other) == 1 and None not in one + other
                    if vectors and one != other:
                        add(forms, one + other, False, call("outer", a, b))
                        add(forms, other + one, False, call("outer", b, a))
                c, d = a, b
                layout = broadcast(one, other)
                if layout is None and limit > 2:
                    ahead, behind = axes.side_by_side(one, other)
                    layout = broadcast(ahead, behind)
                    if layout is not None:
                        c, d = axes.beside(a, one, ahead), axes.beside(b, other, behind)
                if layout is None or len(layout) > limit:
                    continue
                is_below = below and under
                wider = below == under and len(one) != len(other)
                if (is_simple if c is a else is_plain(c.shown)) and (
                    plain if d is b else is_plain(d.shown)
                ):
                    cost, marks = cost_of(c.shown) + cost_of(d.shown), c.marks + d.marks + wider
                    if not self._may_be_better(forms, layout, is_below, closing, cost, marks):
                        continue
                if below == under:
                    form = times(c, d)
                    if wider:
                        form = form._replace(marks=form.marks + 1)
                else:
                    form = divided(*((d, c) if below else (c, d)))
                self._closed(form, layout, is_below, closing, sizes, forms)

    def _may_be_better(
        self, forms: Forms, layout: Layout, below: bool, closing: frozenset[Any], cost: int,
        marks: int,
    ) -> bool:  # fmt: skip
        """Whether a product of parts with this cost, summed, would be added anywhere."""
        if not closing:
            return is_better(forms, layout, below, cost + 1, marks)
        return any(
            is_better(forms, left, False, cost + 2 + below, more)
            for left, more in sums(layout, closing, marks)
        )

    def _einsum(
        self, left: tuple[Form, Layout] | None, right: tuple[Form, Layout] | None,
        outside: set[Any], limit: int, forms: Forms,
    ) -> None:  # fmt: skip
        """A sum of products with more than two axes."""
        if left is None or right is None:
            return
        (a, one), (b, other) = left, right
        result = sorted({*one, *other} & outside, key=lambda x: (is_summed(x), label_key(x)))
        if 2 < max(len(one), len(other), len(result)) <= limit:
            made = tuple(result)
            if is_better(forms, made, False, *axes.einsum_price(a, b)):
                add(forms, made, False, axes.einsum(a, one, b, other, made))

    def _chained(
        self, a: Form, one: Layout, b: Form, other: Layout, label: Label, outside: set[Any],
        known: Forms, forms: Forms,
    ) -> None:  # fmt: skip
        """`a @ b`, where the last axis of `a` and the first of `b` are summed, of each matrix of a
        batch, unless it is `known` in better ways."""
        its, batch, ahead = other[:-2], one[:-2], one[-2:-1]
        behind = other[-1:] if len(other) > 1 else ()
        layout = (*(batch or its), *ahead, *behind)
        if label in layout:
            return
        if (batch and its and batch != its) or any(x in layout[:i] for i, x in enumerate(layout)):
            return
        closing = frozenset(x for x in layout if is_label(x) and x not in outside)
        may_solve = not batch and not its and (is_inverse(a.shown) or is_inverse(b.shown))
        if not may_solve and not self._may_be_better(
            known, layout, False, closing, cost_of(a.shown) + cost_of(b.shown), a.marks + b.marks
        ):
            return
        if any(is_counted(x.shown) or is_einsum(x.shown) for x in (a, b)):
            return
        add(forms, layout, False, infix("matmul", a, b))
        if not may_solve:
            return
        if len(one) == 2:
            inner, right = inverted(a), b
        else:  # a @ inv(M) is inv(M).T @ a
            inner, right = inverted(turned(b)) if len(other) == 2 else None, a
        if inner is not None:
            add(forms, layout, False, call("solve", inner, right))

    def _turned(self, forms: Forms, most: int) -> None:
        """Transposes, and columns of vectors; with more axes up to the `most` that there are."""
        for (layout, below), form in list(forms.items()):
            ahead = next((i for i, x in enumerate(layout) if x is not None), 0)
            if ahead:
                shown = Index(form.shown, ", ".join(["0"] * ahead))
                add(forms, layout[ahead:], below, Form(shown, form.marks + 3))
            elif None in layout and len(layout) > 2 and not isinstance(form.shown, Index):
                plain = tuple(x for x in layout if x is not None)
                squeezed = arranged(form, layout, plain)
                if squeezed is not None:
                    add(forms, plain, below, squeezed)
            if len(layout) == 2 and not isinstance(form.shown, Index):
                other = layout[::-1]
                if type(form.shown) is not Infix or is_better(
                    forms, other, below, cost_of(form.shown) + 1, form.marks + 1
                ):
                    add(forms, other, below, turned(form))
            elif len(layout) > 2 and None not in layout[-2:]:
                order = [*range(len(layout) - 2), len(layout) - 1, len(layout) - 2]
                add(forms, (*layout[:-2], *layout[:-3:-1]), below, permuted(form, order))
            elif len(layout) == 1 and layout[0] is not None:
                whole = column(form.shown)
                if whole is not None:
                    add(forms, (*layout, None), below, Form(whole, form.marks + 1))
                else:
                    self._widened(layout, below, form, 1, forms)
            if layout and None not in layout:
                for more in range(3 - len(layout), most - len(layout) + 1):
                    self._widened(layout, below, form, more, forms)

    def _widened(self, layout: Layout, below: bool, form: Form, more: int, forms: Forms) -> None:
        """With axes of one element behind."""
        wider = (*layout, *[None] * more)
        if not is_better(forms, wider, below, cost_of(form.shown) + 1, form.marks + 1 + more):
            return
        shown = Index(form.shown, ", ".join([":"] * len(layout) + ["None"] * more))
        add(forms, wider, below, Form(shown, form.marks + 1 + more))


@lru_cache(1 << 12)
def sums(layout: Layout, closing: frozenset[Any], marks: int) -> tuple[tuple[Layout, int], ...]:
    """The axes of the sums over some of those of a product, and their marks."""
    left = tuple(x for x in layout if x not in closing)
    plain = tuple(x for x in left if x is not None)
    if not plain:
        return (((), marks),)
    kept = tuple(None if x in closing else x for x in layout)
    return (left, marks), (kept, marks + 1), (plain, marks)


def _plainest(forms: Forms) -> tuple[Form, Layout] | None:
    """The cheapest of forms that are arrays of numbers, none of their axes one of one element."""
    whole = [(form, layout) for (layout, below), form in forms.items()
             if not below and None not in layout
             and not is_condition(form.shown) and not is_counted(form.shown)]  # fmt: skip
    return min(whole, key=lambda found: price(found[0]), default=None)


def of_names(
    family: dict[Any, Printer], algebra: Algebra, named: Mapping[Sum, str], sum_: Sum
) -> Printer:
    """The one of a family that writes a sum with the names that may be in it."""
    inside = algebra.inside(sum_)
    known = {
        part: name for part, name in named.items()
        if all(factor.atom in inside for product, _ in part.terms for factor in product)
    }  # fmt: skip
    key = tuple(known.items())
    if key not in family:
        family[key] = Printer(algebra, known, family)
    return family[key]


def printed(printer: Printer, sum_: Sum) -> Expression:
    """The cheapest way to write a sum, with the axes that it has."""
    return printer.whole(sum_).shown
