"""Other ways to say a sum: a common factor in front, brackets multiplied out, names of values.

Each way is one change; who prints takes the cheapest and asks again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any

from .algebra import Algebra
from .terms import (
    At,
    Factor,
    Label,
    NoFormula,
    Product,
    Sum,
    factor_key,
    function,
    is_summed,
    number_of,
    raised,
    renamed,
)

EMPTY: Mapping[int, bool] = {}
Made = tuple[float, list[Factor]]
Products = list[tuple[Product, float, int]]  # with what each is over the name that it has
MOST_AXES = 2  # of what is put in brackets, unless a part of it has more


def ways(algebra: Algebra, sum_: Sum, products: Products) -> Iterator[Sum]:
    """Sums equal to this one."""
    terms = sum_.terms
    rules = (*ALONE, _reversed) if all(value < 0 for _, value in terms) else ALONE
    for i, one in enumerate(terms):
        for j, other in enumerate(terms[i + 1 :], i + 1):
            rest = [(v, p) for k, (p, v) in enumerate(terms) if k not in (i, j)]
            for pair in PAIRS:
                for made in pair(algebra, *one, *other):
                    yield from _tried(algebra, [*rest, made], sum_)
    for i, (product, value) in enumerate(terms):
        rest = [(v, p) for k, (p, v) in enumerate(terms) if k != i]
        for opened in _opened(algebra, product, value):
            yield from _tried(algebra, [*rest, *opened], sum_)
        for over in _over(algebra, sum_, i):
            yield from _tried(algebra, [over], sum_)
        for rule in rules:
            for number, same in rule(algebra, product, products):
                yield from _tried(algebra, [*rest, (value * number, same)], sum_)


def opened(algebra: Algebra, sum_: Sum) -> Sum | None:
    """All brackets of the sum multiplied out."""
    found = sum_
    for _ in range(8):
        terms: list[tuple[float, Any]] = []
        changed = False
        for product, value in found.terms:
            ways_ = next(_opened(algebra, product, value), None)
            changed = changed or ways_ is not None
            terms += ways_ if ways_ is not None else [(value, product)]
        if not changed:
            return found if found != sum_ else None
        try:
            found = algebra.made(terms, sum_.shape)
        except NoFormula:
            return None
    return found


def _tried(algebra: Algebra, terms: list[tuple[float, Any]], sum_: Sum) -> Iterator[Sum]:
    try:
        yield algebra.made(terms, sum_.shape)
    except NoFormula:
        return


def _merged(algebra: Algebra, left: Product, a: float, right: Product, b: float) -> Iterator[Made]:
    """Two terms as a common factor times what is left of them, or as one sum over an axis."""
    summed = _summed(algebra, right)
    for label, mine_size in _summed(algebra, left).items():
        for other, its_size in summed.items():
            if mine_size == its_size:
                renaming: dict[Any, Label] = {
                    x: label if x == other else algebra.fresh() for x in summed
                }
                terms = [(a, list(left)), (b, renamed(right, renaming))]
                yield from _brackets(algebra, terms, {label})
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            if one.atom != other.atom or one.divides != other.divides:
                continue
            power = min(one.power, other.power, key=abs)
            turned = other.at[::-1]
            forms = [other.at]
            if algebra.atoms[one.atom].symmetric and turned != other.at:
                forms.append(turned)
            for at in forms:
                names = _matched(one.at, at)
                if names is None:
                    continue
                mine = _less(left, i, power)
                its = _less(right, j, power)
                for factor in its:
                    for label in factor.at:
                        if is_summed(label) and label not in names:
                            names[label] = algebra.fresh()
                its = renamed(its, names)
                pulled = [one._replace(power=power)]
                for factor in mine[:]:  # what is summed together with it
                    if factor in its and any(is_summed(x) for x in factor.at):
                        pulled.append(factor)
                        mine.remove(factor)
                        its.remove(factor)
                shared = {x for factor in pulled for x in factor.at if is_summed(x)}
                for number, factors in _brackets(algebra, [(a, mine), (b, its)], shared):
                    yield number, [*pulled, *factors]


def _opposite(
    algebra: Algebra, left: Product, a: float, right: Product, b: float
) -> Iterator[Made]:
    """`1 - sigmoid(u)` as `sigmoid(-u)`, with whatever both terms are multiplied by."""
    for one, other in ((left, right), (right, left)) if a == -b else ():
        for i, factor in enumerate(other):
            atom = algebra.atoms[factor.atom]
            if atom.function != "sigmoid" or factor.power != 1:
                continue
            if other[:i] + other[i + 1 :] == one:
                parts = (algebra.scaled(atom.parts[0], -1.0),)
                turned = algebra.atom("function", atom.data, parts, atom.shape)
                yield a if one is left else b, [*one, Factor(turned, factor.at)]


def _clamped(algebra: Algebra, left: Product, a: float, right: Product, b: float) -> Iterator[Made]:
    """`u` where `abs(u) < c`, and `c * sign(u)` elsewhere, as `clamp(u, -c, c)`, with whatever both
    terms are multiplied by."""
    yield from _between(algebra, left, a, right, b)
    yield from _between(algebra, right, b, left, a)


def _between(
    algebra: Algebra, inside: Product, a: float, outside: Product, b: float
) -> Iterator[Made]:
    for gate in inside:
        atom = algebra.atoms[gate.atom]
        size = algebra.alone(atom.parts[0]) if atom.data in ("lt", "le") else None
        bound = number_of(atom.parts[1]) if size is not None else None
        if size is None or bound is None or size[1].function != "abs" or size[2] != 1:
            continue
        (inner,) = size[1].parts
        sign = algebra.alone(function(algebra, "sign", inner))
        ends = {Factor(algebra.opposite(gate.atom), gate.at)}
        ends |= {Factor(sign[0].atom, gate.at)} if sign is not None else set()
        value, factors = algebra.factor(inner, gate.at)
        rest = [factor for factor in outside if factor not in ends]
        mine = sorted([gate, *factors, *rest], key=factor_key)
        if isclose(a / value * bound, b) and mine == [*inside]:
            bounds = [algebra.number(x, inner.shape) for x in (-bound, bound)]
            whole = algebra.alone(function(algebra, "clamp", inner, *bounds))
            if whole is not None and len(rest) == len(outside) - 2:
                yield a / value, [*rest, Factor(whole[0].atom, gate.at)]


def _summed(algebra: Algebra, product: Product) -> dict[Any, int]:
    """The labels that are summed, and their sizes."""
    return {label: n for label, n in algebra.sizes(product).items() if is_summed(label)}


def _matched(one: tuple[Label, ...], other: tuple[Label, ...]) -> dict[Any, Label] | None:
    """The names of summed labels that make two places one."""
    names: dict[Any, Label] = {}
    for mine, its in zip(one, other, strict=True):
        if is_summed(mine) and is_summed(its):
            if names.setdefault(its, mine) != mine:
                return None
        elif mine != its:
            return None
    return names if len(set(names.values())) == len(names) else None


def _less(product: Product, position: int, power: float) -> list[Factor]:
    """The factors without one of them to a power."""
    found = [factor for i, factor in enumerate(product) if i != position]
    left = product[position].power - power
    if left:
        found.append(product[position]._replace(power=left))
    return found


def _brackets(
    algebra: Algebra, terms: list[tuple[float, list[Factor]]], shared: set[Any]
) -> Iterator[Made]:
    """A sum of products as one factor, with its axes in either order; `shared`: summed labels that
    are met outside as well."""
    sizes: dict[Any, int] = {}
    for _, factors in terms:
        for factor in factors:
            for label, size in zip(factor.at, algebra.atoms[factor.atom].shape, strict=True):
                if type(label) is int and (label >= 0 or label in shared):
                    sizes[label] = size
    most = (len(factor.at) for _, factors in terms for factor in factors)
    if len(sizes) > max(MOST_AXES, *most, 0):
        return
    axes = sorted(sizes, key=lambda label: (label < 0, abs(label)))
    for order in dict.fromkeys([tuple(axes), tuple(axes[::-1])]):
        names: dict[Any, Label] = {label: axis for axis, label in enumerate(order)}
        inner = algebra.made(
            [(number, renamed(factors, names)) for number, factors in terms],
            tuple(sizes[label] for label in order),
        )
        yield algebra.factor(inner, order)


def _opened(
    algebra: Algebra, product: Product, value: float
) -> Iterator[list[tuple[float, list[Factor]]]]:
    """A term with a bracket multiplied out."""
    for position, (atom, at, power) in enumerate(product):
        if power != 1 or algebra.atoms[atom].kind != "group":
            continue
        rest = list(product[:position] + product[position + 1 :])
        inner = algebra.atoms[atom].parts[0]
        if len(inner.terms) > 1:
            found = [(v, rest + algebra.placed(p, at)) for p, v in inner.terms]
            yield [(value * v * algebra.repeats(product, f), f) for v, f in found]


def _within(algebra: Algebra, product: Product, names: Products) -> Iterator[Made]:
    """A product with one bracket over what one of its terms is divided by."""
    number, factors = _spread(algebra, product)
    for position, (atom, at, power) in enumerate(factors):
        if algebra.atoms[atom].kind == "group" and power in (1, -1):
            (inner,) = algebra.atoms[atom].parts
            rest = [*factors[:position], *factors[position + 1 :]]
            beside = {f.atom: f.divides == factors[position].divides for f in rest}
            for i in range(len(inner.terms)):
                for value, made in _over(algebra, inner, i, beside):
                    found = tuple(raised(made, power))
                    yield number * value**power, rest + algebra.placed(found, at)


def _spread(algebra: Algebra, product: Product) -> tuple[float, Product]:
    """A product in which a number that is summed up is what is summed."""
    number = 1.0
    found: list[Factor] = []
    for factor in product:
        atom = algebra.atoms[factor.atom]
        if (
            atom.kind == "group"
            and not atom.shape
            and factor.power == 1 == len(atom.parts[0].terms)
        ):
            ((inner, value),) = atom.parts[0].terms
            number *= value
            found += algebra.placed(inner, ())
        else:
            found.append(factor)
    return number, tuple(found)


def _over(
    algebra: Algebra, sum_: Sum, i: int, beside: Mapping[int, bool] = EMPTY
) -> Iterator[Made]:
    """All terms over what the term `i` is divided by, where that makes them fewer, or where it or
    what they become is gone from the product that they stand in: `beside` which is on their side
    of a fraction."""
    product, value = sum_.terms[i]
    if len(sum_.terms) < 2:
        return
    for position, below in enumerate(product):
        if not below.divides or any(is_summed(x) for x in below.at):
            continue
        atom = algebra.atoms[below.atom]
        if atom.kind == "group" and below.power == -1:
            inner = [(algebra.placed(p, below.at), w) for p, w in atom.parts[0].terms]
        else:
            inner = [([below._replace(power=-below.power)], 1.0)]
        terms = [(value, list(product[:position] + product[position + 1 :]))]
        for j, (other, v) in enumerate(sum_.terms):
            if j != i:
                terms += [(v * w, [*other, *p]) for p, w in inner]
        for number, factors in _brackets(algebra, terms, set()):
            made = algebra.atoms[factors[0].atom].parts if len(factors) == 1 else ()
            gone = beside.get(below.atom) or any(beside.get(f.atom) is False for f in factors)
            if gone or not made or len(made[0].terms) < len(sum_.terms):
                yield number, [below, *factors]


def _with_names(algebra: Algebra, product: Product, names: Products) -> Iterator[Made]:
    """A product in which a part, or what it is divided by, is a name."""
    for spread, factors in dict.fromkeys([(1.0, product), _spread(algebra, product)]):
        for parts, number, name in names:
            for power in (1.0, -1.0):
                gone = tuple(raised(parts, power))
                for left_over, places in _without(factors, gone, {None: None}):
                    inside = [y for x, y in places.items() if is_summed(x)]
                    met = {y for factor in left_over for y in factor.at}
                    moved = any(isinstance(x, At) and x != y for x, y in places.items())
                    if moved or power < 0 < len(inside) or len({*inside}) < len(inside):
                        continue
                    if not met.isdisjoint(inside) or not all(map(is_summed, inside)):
                        continue
                    sizes = algebra.atoms[name].shape
                    at = tuple(None if n == 1 else places[i] for i, n in enumerate(sizes))
                    yield spread * number**-power, [*left_over, Factor(name, at, power)]


def _without(
    product: Product, parts: Product, places: dict[Any, Label]
) -> Iterator[tuple[Product, dict[Any, Label]]]:
    """A product without the factors of another one, whose axes are at these places."""
    if not parts:
        yield product, places
        return
    for i, factor in enumerate(product):
        rest = factor._replace(power=factor.power - parts[0].power)
        turned = rest.power and rest.divides != factor.divides
        if factor.atom != parts[0].atom or turned:
            continue
        new = dict(places)
        if all(new.setdefault(x, y) == y for x, y in zip(parts[0].at, factor.at, strict=True)):
            left = (rest,) if rest.power else ()
            yield from _without((*product[:i], *left, *product[i + 1 :]), parts[1:], new)


def _equal(algebra: Algebra, product: Product, names: Products) -> Iterator[Made]:
    """Where `u == v` holds, `u` for `v`."""
    for gate in product:
        atom = algebra.atoms[gate.atom]
        if atom.kind != "gate" or atom.data != "eq":
            continue
        value, factors = algebra.factor(atom.parts[1], gate.at)
        for i, factor in enumerate(product):
            if value == 1 and [factor._replace(power=1.0)] == factors:
                number, same = algebra.factor(atom.parts[0], gate.at)
                if factor.power == int(factor.power):
                    same = [f._replace(power=f.power * factor.power) for f in same]
                    yield number**factor.power, [*product[:i], *product[i + 1 :], *same]


def _reversed(algebra: Algebra, product: Product, names: Products) -> Iterator[Made]:
    """`(v - u) * w` for `-(u - v) * w`."""
    for i, factor in enumerate(product):
        atom = algebra.atoms[factor.atom]
        if atom.kind == "group" and factor.power % 2 == 1:
            parts = (algebra.scaled(atom.parts[0], -1.0),)
            turned = factor._replace(atom=algebra.atom("group", None, parts, atom.shape))
            yield -1.0, [*product[:i], turned, *product[i + 1 :]]


def _softened(algebra: Algebra, product: Product, names: Products) -> Iterator[Made]:
    soft = softened(algebra, product)
    if soft is not None:
        yield 1.0, soft


def softened(algebra: Algebra, product: Product) -> list[Factor] | None:
    """`exp(u) / sum(exp(u))` as a softmax."""
    for i, below in enumerate(product):
        atom = algebra.atoms[below.atom]
        if below.power != -1 or atom.kind != "group" or len(atom.parts[0].terms) != 1:
            continue
        (inner, number), *_ = atom.parts[0].terms
        if len(inner) != 1 or number != 1 or inner[0].power != 1:
            continue
        (source,) = inner
        kind = algebra.atoms[source.atom]
        summed = [axis for axis, label in enumerate(source.at) if is_summed(label)]
        if kind.function != "exp" or len(summed) != 1:
            continue
        for j, above in enumerate(product):
            if above.atom != source.atom or above.power != 1:
                continue
            places = [
                (label, below.at[x])
                for label, x in zip(above.at, source.at, strict=True)
                if type(x) is int and x >= 0
            ]
            if any(mine != its for mine, its in places):
                continue
            p = algebra.atom("softmax", summed[0], kind.parts, kind.shape)
            rest = [f for k, f in enumerate(product) if k not in (i, j)]
            return [*rest, Factor(p, above.at)]
    return None


# Rules for two terms, and for one.
PAIRS = (_opposite, _clamped, _merged)
ALONE = (_with_names, _within, _equal, _softened)
