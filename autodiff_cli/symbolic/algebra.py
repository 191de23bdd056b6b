"""What is done with sums of products: making them, their normal form, arithmetic.

Invariant: what is made has the value of what it was made of wherever no factor that was cancelled
is zero; work is bounded (`NoFormula`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from math import copysign, isclose, prod
from typing import Any

from ..graph.node import Shape
from .atoms.masks import either, lifted, lowered
from .atoms.matrices import rooted
from .fewer import FEWER, KINDS
from .terms import (
    JOINS,
    OPPOSITE,
    Atom,
    Factor,
    Label,
    NoFormula,
    Product,
    Sum,
    components,
    factor_key,
    is_summed,
    label_key,
    number_of,
    powers,
    product_key,
    raised,
    renamed,
)

IDEMPOTENT = ("gate", "delta", "triangle", "one_hot", "move", "window", "mask", "split")
MOST_TERMS = 40  # of one sum
MOST_FACTORS = 9  # of one term


class Algebra:
    """The atoms of one derivation, and what is done with sums of their products."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.ids: dict[tuple[Any, ...], int] = {}
        self.units: dict[Any, Sum] = {}  # what is in brackets, up to a coefficient
        self.shares: dict[int, int] = {}  # by name of a softmax: its axis
        self.bools: set[int] = set()  # names of conditions
        self.meanings: dict[int, Sum] = {}  # by atom: what a name stands for
        self.insides: dict[int, frozenset[int]] = {}  # by atom: what it is made of
        self.normal: dict[Product, int] = {}  # what is in its normal form: steps to see that
        self.orders: dict[Product, Product] = {}  # by factors: their order, with its labels
        self.labels = -1000
        self.work = 0

    # -- making -----------------------------------------------------------------------------------

    def atom(self, kind: str, data: Any, parts: tuple[Sum, ...], shape: Shape) -> int:
        """The number of an atom; equal ones have one number."""
        key = kind, data, parts, shape
        found = self.ids.get(key)
        if found is None:
            symmetric = len(shape) == 2 and shape[0] == shape[1] != 1
            if symmetric and kind != "delta":
                symmetric = kind in ("group", "inverse") and (
                    self.moved(parts[0], (1, 0)) == parts[0]
                )
            found = self.ids[key] = len(self.atoms)
            self.atoms.append(Atom(kind, data, parts, shape, symmetric))
        return found

    def of_atom(self, atom: int) -> Sum:
        """An atom as a sum of its own shape."""
        shape = self.atoms[atom].shape
        at = tuple(None if size == 1 else axis for axis, size in enumerate(shape))
        return self.made([(1.0, (Factor(atom, at),))], shape)

    def inside(self, sum_: Sum) -> frozenset[int]:
        """The atoms that a sum is made of, and those that these are made of."""
        own = {factor.atom for product, _ in sum_.terms for factor in product}
        for atom in own - self.insides.keys():
            parts = self.atoms[atom].parts
            self.insides[atom] = frozenset([atom]).union(*map(self.inside, parts))
        return frozenset().union(*(self.insides[atom] for atom in own))

    def alone(self, sum_: Sum) -> tuple[Factor, Atom, float] | None:
        """The one factor that a sum is, its atom, and its coefficient."""
        if len(sum_.terms) != 1 or len(sum_.terms[0][0]) != 1:
            return None
        (((factor,), number),) = sum_.terms
        return factor, self.atoms[factor.atom], number

    def gates_of(self, gate: Atom) -> list[int]:
        """The gates that an `and` or `or` joins."""
        return [part.terms[0][0][0].atom for part in gate.parts]

    def opposite(self, gate: int) -> int:
        """The gate that is 1 where this one is 0."""
        atom = self.atoms[gate]
        parts = atom.parts
        if atom.data in JOINS:
            parts = tuple(self.of_atom(self.opposite(inner)) for inner in self.gates_of(atom))
        return self.atom("gate", OPPOSITE[atom.data], parts, atom.shape)

    def number(self, value: float, shape: Shape = ()) -> Sum:
        return Sum((((), value),) if value else (), shape)

    def fresh(self) -> int:
        self.labels -= 1
        return self.labels

    def made(self, terms: Iterable[tuple[float, Iterable[Factor]]], shape: Shape) -> Sum:
        """A sum of terms in their normal form, like ones added."""
        found: dict[Product, float] = {}
        for number, factors in terms:
            for value, product in self._normal(number, list(factors), shape):
                known = found.get(product, 0.0)
                if isclose(known, -value, rel_tol=1e-14):
                    found.pop(product, None)
                else:
                    found[product] = known + value
        if len(found) > MOST_TERMS:
            raise NoFormula
        merged = either(self, found)
        if merged is not None:
            return self.made(merged, shape)
        return Sum(tuple(sorted(found.items(), key=lambda item: product_key(item[0]))), shape)

    def _normal(
        self, number: float, factors: list[Factor], shape: Shape
    ) -> list[tuple[float, Product]]:
        before, given = self.work, (number, tuple(factors))
        self.work += self.normal.get(given[1], 1)
        if given[1] in self.normal:
            return [given]
        while True:
            number, factors = self._merged(number, factors)
            if not number:
                return []
            opened = self._opened(factors)
            if opened is None:
                break
            value, factors = opened
            number *= value
        if len(factors) == 1 and factors[0].power == 1:
            (factor,) = factors
            atom = self.atoms[factor.atom]
            plain = [label for label in factor.at if label is not None]
            free = all(type(x) is int and x >= 0 for x in plain)
            if atom.kind == "group" and free and len(set(plain)) == len(plain):
                return [  # a sum within a sum
                    (number * value, product)
                    for inner, value in atom.parts[0].terms
                    for value, product in self._normal(value, self.placed(inner, factor.at), shape)
                ]
        if len(factors) > MOST_FACTORS:
            raise NoFormula
        if any(self._vanishes(factor, factors) for factor in factors):
            return []
        found = number, self.ordered(self._scalars_apart(factors, shape))
        if found == given:
            self.normal[given[1]] = self.work - before
        return [found]

    def _merged(self, number: float, factors: list[Factor]) -> tuple[float, list[Factor]]:
        """Powers added, and fewer factors by every rule that there is for them."""
        while number:
            factors = [
                Factor(f.atom, f.at) if self.atoms[f.atom].kind in IDEMPOTENT else f
                for f in powers(self._sorted(factors))
            ]
            kinds = {self.atoms[f.atom].kind for f in factors}
            fewer = (rule(self, factors) for rule in FEWER if not kinds.isdisjoint(KINDS[rule]))
            found = next((made for made in fewer if made is not None), None)
            if found is None:
                break
            number, factors = number * found[0], found[1]
        return number, factors

    def _opened(self, factors: list[Factor]) -> tuple[float, list[Factor]] | None:
        """The first group of a single term as its factors; None where there is none."""
        for position, (atom, at, power) in enumerate(factors):
            if self.atoms[atom].kind != "group":
                continue
            terms = self.atoms[atom].parts[0].terms
            if len(terms) != 1:
                continue
            ((product, value),) = terms
            summed = any(is_summed(label) for factor in product for label in factor.at)
            if summed and power == 2 and any(rooted(self, f) is not None for f in product):
                twice = self.placed(product, at) + self.placed(product, at)
                return value**2, [*factors[:position], *twice, *factors[position + 1 :]]
            if (summed and (power != 1 or not at)) or (power != int(power) and product):
                continue
            placed = self.placed(product, at)
            found = factors[:position] + raised(placed, power) + factors[position + 1 :]
            return value**power * self.repeats(factors, found), found
        return None

    def repeats(self, before: Iterable[Factor], after: Iterable[Factor]) -> float:
        """How often a product is summed over labels that it had and has no more."""
        left = {label for factor in after for label in factor.at}
        sizes = self.sizes(before)
        return float(prod(n for x, n in sizes.items() if is_summed(x) and x not in left))

    def sizes(self, factors: Iterable[Factor]) -> dict[Label, int]:
        """The labels of factors, and how many elements their axes have."""
        atoms = self.atoms
        return {x: n for f in factors for x, n in zip(f.at, atoms[f.atom].shape, strict=True)}

    def _scalars_apart(self, factors: list[Factor], shape: Shape) -> list[Factor]:
        """Numbers that are summed up, such as `x @ y`, as factors of their own."""
        parts = components(factors)
        if len(parts) == 1 and not shape:
            return factors
        found: list[Factor] = []
        for part in parts:
            labels = [label for factor in part for label in factor.at]
            free = any(type(x) is int and x >= 0 for x in labels)
            if not free and any(is_summed(x) for x in labels):
                inner = self.made([(1.0, part)], ())
                found.append(Factor(self.group(inner), ()))
            else:
                found += part
        return powers(found)

    def _vanishes(self, factor: Factor, factors: list[Factor]) -> bool:
        """Whether a group is 0 once it is summed over its own axes, as `x - mean(x)` is."""
        atom = self.atoms[factor.atom]
        if atom.kind != "group" or factor.power != 1 or len(atom.parts[0].terms) < 2:
            return False
        labels = [x for f in factors for x in f.at]
        axes = [i for i, x in enumerate(factor.at) if is_summed(x) and labels.count(x) == 1]
        if not axes:
            return False
        return not self._spelt(self.reduced(atom.parts[0], tuple(axes))).terms

    def _spelt(self, sum_: Sum) -> Sum:
        """A sum in which names are what they stand for."""
        terms = []
        for product, value in sum_.terms:
            factors: list[Factor] = []
            for factor in product:
                meaning = self.meanings.get(factor.atom) if factor.power == 1 else None
                number, more = (
                    (1.0, [factor]) if meaning is None else self.factor(meaning, factor.at)
                )
                value *= number
                factors += more
            terms.append((value, factors))
        return self.made(terms, sum_.shape)

    def group(self, inner: Sum) -> int:
        """A sum as an atom."""
        if inner.terms:
            self.units.setdefault(_unit(inner), inner)
        return self.atom("group", None, (inner,), inner.shape)

    def ordered(self, factors: list[Factor]) -> Product:
        """The factors with the summed labels -1, -2, ... in an order of their own."""
        summed: set[Any] = {x for factor in factors for x in factor.at if is_summed(x)}
        if not summed:
            return tuple(sorted(factors, key=factor_key))
        if len(summed) == 1:
            return self._labelled(factors, {summed.pop(): -1})
        names: dict[Any, Label] = {x: i for i, x in enumerate(sorted(summed), -len(summed))}
        key = tuple(renamed(factors, names))
        if key not in self.orders:
            self.orders[key] = self._in_order(key, {*names.values()})
        return self.orders[key]

    def _in_order(self, factors: Product, summed: set[Any]) -> Product:
        """The first of the ways to name the summed labels that are left where each is told apart by
        where it stands."""
        colors: dict[Any, Any] = dict.fromkeys(summed, 0)
        for _ in range(3):
            seen: dict[Any, list[Any]] = {label: [] for label in summed}
            for atom, at, power in factors:
                shown = [("=", colors[x]) if x in colors else ("", repr(x)) for x in at]
                symmetric = self.atoms[atom].symmetric
                whole = (atom, power, tuple(sorted(shown) if symmetric else shown))
                for place, label in enumerate(at):
                    if label in seen:
                        seen[label].append(repr((whole, 0 if symmetric else place)))
            keys = {label: tuple(sorted(marks)) for label, marks in seen.items()}
            ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values())))}
            colors = {label: ranks[keys[label]] for label in summed}
        classes: dict[Any, list[Any]] = {}
        for label in sorted(summed):
            classes.setdefault(colors[label], []).append(label)
        orders: list[list[Any]] = [[]]
        for color in sorted(classes):
            alike = classes[color]
            ways = list(permutations(alike)) if len(alike) < 6 else [tuple(alike)]
            orders = [order + list(way) for order in orders for way in ways]
        return min(
            (self._labelled(factors, {x: -1 - i for i, x in enumerate(order)}) for order in orders),
            key=product_key,
        )

    def _labelled(self, factors: Iterable[Factor], names: dict[Any, Label]) -> Product:
        return tuple(sorted(self._sorted(renamed(factors, names)), key=factor_key))

    def _sorted(self, factors: list[Factor]) -> list[Factor]:
        """With the labels of symmetric atoms in order."""
        return [
            Factor(f.atom, tuple(sorted(f.at, key=label_key)), f.power)
            if self.atoms[f.atom].symmetric
            else f
            for f in factors
        ]

    def applied(
        self, kind: str, data: Any, parts: tuple[Sum, ...], shape: Shape, along: int | None = None
    ) -> Sum:
        """An atom that makes of each row of its parts one of its own; `along`: the axis that its
        data mean."""
        picked = lifted(self, parts)
        if kind == "function" and data[0].name == "sigmoid":
            turned = self.scaled(parts[0], -1.0)
            mirrored = self.ids.get((kind, data, (turned,), shape))
            if mirrored is not None:  # of u and -u one is enough
                less = self.scaled(self.of_atom(mirrored), -1.0)
                return self.added(self.number(1.0, shape), less)
        if picked is None or along == picked[0][1]:
            return self.of_atom(self.atom(kind, data, parts, shape))
        (mask, row), whole = picked
        dims = self.atoms[mask].shape[1:]
        if along in range(row):
            row -= 1 if len(shape) < len(parts[0].shape) else 0
        elif along is not None:
            data = along + len(dims) - 1
        shape = shape[:row] + dims + shape[row + 1 :]
        return lowered(self, (mask, row), self.of_atom(self.atom(kind, data, tuple(whole), shape)))

    # -- doing ------------------------------------------------------------------------------------

    def placed(self, product: Product, at: tuple[Label, ...]) -> list[Factor]:
        """The factors of a product whose axes get these labels; what it sums gets new ones."""
        names: dict[Any, Label] = dict(enumerate(at))
        for factor in product:
            for label in factor.at:
                if is_summed(label) and label not in names:
                    names[label] = self.fresh()
        return renamed(list(product), names)

    def factor(self, sum_: Sum, at: tuple[Label, ...]) -> tuple[float, list[Factor]]:
        """A sum as one product: what it is, or a group."""
        if not sum_.terms:
            return 0.0, []
        if len(sum_.terms) == 1:
            ((product, value),) = sum_.terms
            return value, self.placed(product, at)
        value, inner = self._content(sum_)
        return value, [self.bracketed(inner, at)]

    def unstretched(self, sum_: Sum) -> Sum:
        """Without the axes along which a sum does not change."""
        labels = {label for product, _ in sum_.terms for factor in product for label in factor.at}
        met = labels.intersection(range(len(sum_.shape)))
        left = [i for i, size in enumerate(sum_.shape) if i in met or (met and size == 1)]
        if len(left) == len(sum_.shape):
            return sum_
        ahead = left[0] if left else len(sum_.shape)
        names: tuple[Label, ...] = tuple(
            axis - ahead if axis in met else None for axis in range(len(sum_.shape))
        )
        shape = tuple(
            size if axis in met else 1 for axis, size in enumerate(sum_.shape) if axis >= ahead
        )
        return self.moved(sum_, names, shape)

    def bracketed(self, inner: Sum, at: tuple[Label, ...], power: float = 1.0) -> Factor:
        """A sum as a factor of its own, without the axes along which it does not change."""
        inner = self.unstretched(inner)
        at = (None,) * (len(inner.shape) - len(at)) + at
        ends = zip(at[len(at) - len(inner.shape) :], inner.shape, strict=True)
        return Factor(self.group(inner), tuple(None if n == 1 else x for x, n in ends), power)

    def _content(self, sum_: Sum) -> tuple[float, Sum]:
        """What all coefficients have in common, and the rest: what is in brackets already where
        that is a multiple of it."""
        known = self.units.get(_unit(sum_))
        if known is not None:
            return sum_.terms[0][1] / known.terms[0][1], known
        values = [value for _, value in sum_.terms]
        sizes = {*map(abs, values)}
        common = copysign(sizes.pop() if len(sizes) == 1 else 1.0, max(values))
        return common, self.scaled(sum_, 1 / common)

    def known_parts(self, sum_: Sum) -> tuple[tuple[Product, float], ...]:
        """The terms of a sum; one where all of it is in brackets already."""
        if len(sum_.terms) > 1 and _unit(sum_) in self.units:
            at = tuple(None if size == 1 else axis for axis, size in enumerate(sum_.shape))
            value, factors = self.factor(sum_, at)
            return ((tuple(factors), value),)
        return sum_.terms

    def einsum(self, operands: list[tuple[Sum, tuple[Label, ...]]], shape: Shape) -> Sum:
        """The product of sums whose axes have these labels."""
        number, factors = 1.0, []
        for sum_, at in operands:
            value, more = self.factor(sum_, at)
            number *= value
            factors += more
        sizes = {x: n for sum_, at in operands for x, n in zip(at, sum_.shape, strict=True)}
        for label, size in sizes.items():
            if is_summed(label) and not any(label in factor.at for factor in factors):
                number *= size
        return self.made([(number, factors)], shape)

    def added(self, *sums: Sum) -> Sum:
        """Sums of one shape."""
        return self.made([(v, p) for s in sums for p, v in s.terms], sums[0].shape)

    def scaled(self, sum_: Sum, number: float) -> Sum:
        if not number:
            return Sum((), sum_.shape)
        return Sum(tuple((p, v * number) for p, v in sum_.terms), sum_.shape)

    def moved(self, sum_: Sum, order: tuple[Label, ...], shape: Shape | None = None) -> Sum:
        """The array whose old axis `i` has the label `order[i]`."""
        if shape is None:
            sizes = dict(zip(order, sum_.shape, strict=True))
            shape = tuple(sizes[axis] for axis in range(len(order)))
        return self.made([(v, self.placed(p, order)) for p, v in sum_.terms], shape)

    def reduced(self, sum_: Sum, axes: tuple[int, ...], keepdim: bool = False) -> Sum:
        """The sum over axes."""
        labels: list[Label] = []
        shape = []
        for axis, size in enumerate(sum_.shape):
            if axis in axes:
                labels.append(None if size == 1 else self.fresh())
                if keepdim:
                    shape.append(1)
            else:
                labels.append(None if size == 1 else len(shape))
                shape.append(size)
        terms = []
        for product, value in sum_.terms:
            placed = self.placed(product, tuple(labels))
            for label, size in zip(labels, sum_.shape, strict=True):
                if is_summed(label) and not any(label in factor.at for factor in placed):
                    value *= size
            terms.append((value, placed))
        return self.made(terms, tuple(shape))

    def stretched(self, sum_: Sum, shape: Shape) -> Sum:
        """Broadcast."""
        if sum_.shape == shape:
            return sum_
        extra = len(shape) - len(sum_.shape)
        order = tuple(None if size == 1 else extra + axis for axis, size in enumerate(sum_.shape))
        return self.moved(sum_, order, shape)

    def multiplied(self, left: Sum, right: Sum, shape: Shape) -> Sum:
        """Element by element, broadcast; a number multiplies every term."""
        for one, other in ((left, right), (right, left)):
            value = number_of(one)
            if value is not None:
                return self.scaled(self.stretched(other, shape), value)
        picked = lifted(self, [self.stretched(x, shape) for x in (left, right)])
        if picked is not None:
            one, other = picked[1]
            return lowered(self, picked[0], self.multiplied(one, other, one.shape))
        labels = tuple(None if size == 1 else axis for axis, size in enumerate(shape))
        return self.einsum(
            [(self.stretched(left, shape), labels), (self.stretched(right, shape), labels)], shape
        )

    def raised(self, sum_: Sum, power: float) -> Sum:
        """Element by element to a power."""
        if power == 1:
            return sum_
        if power == 0:
            return self.number(1.0, sum_.shape)
        value = number_of(sum_)
        if value is not None:
            if value <= 0 and (power != int(power) or not value):
                raise NoFormula
            return self.number(value**power, sum_.shape)
        picked = lifted(self, [sum_])
        if picked is not None:
            return lowered(self, picked[0], self.raised(picked[1][0], power))
        labels = tuple(None if size == 1 else axis for axis, size in enumerate(sum_.shape))
        number, inner = 1.0, sum_
        if len(sum_.terms) == 1:
            (product, coefficient) = sum_.terms[0]
            if power == int(power) or coefficient > 0:
                number, inner = coefficient, Sum(((product, 1.0),), sum_.shape)
        elif power == int(power):
            number, inner = self._content(sum_)
        return self.made([(number**power, [self.bracketed(inner, labels, power)])], sum_.shape)


def _unit(sum_: Sum) -> Any:
    """What sums have in common that differ in a coefficient, or in axes of one element ahead."""
    ahead = next((axis for axis, size in enumerate(sum_.shape) if size != 1), 0)
    names: dict[Any, Label] = {axis: axis - ahead for axis in range(ahead, len(sum_.shape))}
    first = sum_.terms[0][1]
    return sum_.shape[ahead:], tuple(
        (tuple(renamed(product, names)) if ahead else product, float(f"{value / first:.12g}"))
        for product, value in sum_.terms
    )
