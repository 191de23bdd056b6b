"""Derivatives of sums of products: the product rule, and one rule for each kind of atom.

The derivative of an array of shape S with respect to a name of shape T has the shape S + T; the
identity matrices that come of it disappear into the labels of what they meet. A second derivative
is the derivative of a derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from ..autograd.rules import ruled
from ..graph.node import Node
from ..graph.op import Op, constant
from .algebra import Algebra
from .atoms.matrices import inverted, square_factors
from .atoms.places import Move
from .reading import Reader
from .terms import OPERAND, Factor, Label, NoFormula, Sum, function, is_summed


class Slopes:
    """Derivatives with respect to one name, of which no other name is independent that has a
    meaning."""

    def __init__(self, algebra: Algebra, name: int):
        self.algebra = algebra
        self.name = name
        self.tail = algebra.atoms[name].shape
        self.known: dict[int, Sum | None] = {}

    def of(self, sum_: Sum) -> Sum:
        """The derivative of a sum."""
        shape = sum_.shape + self.tail
        ends = self._labels(len(sum_.shape))
        terms: list[tuple[float, list[Factor]]] = []
        for product, number in sum_.terms:
            for position, (atom, at, power) in enumerate(product):
                slope = self.of_atom(atom)
                if slope is None:
                    continue
                rest = list(product[:position] + product[position + 1 :])
                if power != 1:
                    rest.append(Factor(atom, at, power - 1))
                for inner, value in self.algebra.known_parts(slope):
                    factors = rest + self.algebra.placed(inner, at + ends)
                    value *= number * power * self.algebra.repeats(product, factors)
                    terms.append((value, factors))
        return self.algebra.made(terms, shape)

    def pulled(self, g: Sum, sum_: Sum) -> Sum:
        """The derivative of `sum(g * sum_)`, where `g` is held."""
        slope = self.of(sum_)
        at: tuple[Label, ...] = tuple(None if n == 1 else self.algebra.fresh() for n in g.shape)
        return self._times([(g, at)], slope, at + self._labels(0), self.tail)

    def _labels(self, first: int) -> tuple[Label, ...]:
        return tuple(None if s == 1 else first + i for i, s in enumerate(self.tail))

    def of_atom(self, number: int) -> Sum | None:
        """The derivative of an atom; None where it has none."""
        if number not in self.known:
            found = self._of_atom(number)
            self.known[number] = found if found is not None and found.terms else None
        return self.known[number]

    def _of_atom(self, number: int) -> Sum | None:
        algebra = self.algebra
        atom = algebra.atoms[number]
        if number == self.name:
            factors = [
                Factor(algebra.atom("delta", None, (), (size, size)), (axis, len(self.tail) + axis))
                for axis, size in enumerate(self.tail)
                if size != 1
            ]
            return algebra.made([(1.0, factors)], self.tail + self.tail)
        if atom.kind == "name":
            meaning = algebra.meanings.get(number)
            return None if meaning is None else self.of(meaning)
        if not atom.parts or atom.kind in ("gate", "detached", "one_hot", "order", "pool"):
            return None
        if atom.kind == "function":
            return self._of_function(number)
        if atom.kind == "masked":
            return self._of_masked(number)
        (inner,) = atom.parts
        slope = self.of(inner)
        if not slope.terms:
            return None
        if atom.kind == "group":
            return slope
        if atom.kind == "cholesky":
            raise NoFormula
        shape = atom.shape + self.tail
        labels = tuple(None if s == 1 else i for i, s in enumerate(atom.shape))
        ends = self._labels(len(atom.shape))
        own = algebra.of_atom(number)
        if atom.kind in ("softmax", "logsumexp"):
            return self._of_softmax(number, slope, labels, ends, shape)
        if atom.kind in ("amax", "amin", "prod", "median", "kthvalue"):
            return self._of_reduction(number, slope, ends, shape)
        if atom.kind == "maxima":
            return self._of_maxima(number, slope, ends, shape)
        if atom.kind in ("cumprod", "logcumsumexp"):
            return self._of_running(number, slope, labels, ends, shape)
        first, second = algebra.fresh(), algebra.fresh()
        if atom.kind == "inverse":  # d inv(X) = -inv(X) dX inv(X)
            beside = [(own, (0, first)), (own, (second, 1))]
            found = self._times(beside, slope, (first, second, *ends), shape)
            return algebra.scaled(found, -1.0)
        # d log det X = trace(inv(X) dX), of a product that of each of its factors
        sums = []
        for part in square_factors(algebra, inner):
            parts: list[tuple[Sum, tuple[Label, ...]]]
            parts = [(inverted(algebra, part), (first, second))]
            if atom.kind == "det":
                parts.append((own, ()))
            if (slope := self.of(part)).terms:
                sums.append(self._times(parts, slope, (second, first, *ends), shape))
        return algebra.added(*sums)

    def _of_masked(self, number: int) -> Sum:
        """That of what was there before, where nothing was filled in."""
        inner, mask, _ = self.algebra.atoms[number].parts
        shape = inner.shape
        reader, one = Reader(self.algebra, {}), self.algebra.alone(mask)
        if one is not None and one[0].atom in self.algebra.bools:
            kept = reader.opposite(reader.holds(mask))
        else:
            kept = reader.gate("eq", mask, self.algebra.number(0.0, shape))
        labels = tuple(None if s == 1 else i for i, s in enumerate(shape))
        at = labels + self._labels(len(shape))
        return self._times([(kept, labels)], self.of(inner), at, shape + self.tail)

    def _times(
        self, beside: Sequence[tuple[Sum, tuple[Label, ...]]], slope: Sum, at: tuple[Label, ...],
        shape: tuple[int, ...],
    ) -> Sum:  # fmt: skip
        """The product of some factors and of each term of a slope."""
        number, factors = 1.0, []
        for sum_, labels in beside:
            value, more = self.algebra.factor(sum_, labels)
            number *= value
            factors += more
        terms = []
        for product, value in self.algebra.known_parts(slope):
            found = factors + self.algebra.placed(product, at)
            met = {label for factor in found for label in factor.at}
            gone = {x: s for x, s in zip(at, slope.shape, strict=True) if is_summed(x)}
            times = prod(size for label, size in gone.items() if label not in met)
            terms.append((number * value * times, found))
        return self.algebra.made(terms, shape)

    def _of_softmax(
        self, number: int, slope: Sum, labels: tuple[Label, ...], ends: tuple[Label, ...],
        shape: tuple[int, ...],
    ) -> Sum:  # fmt: skip
        """`p * (d - sum(p * d))` along the axis; of logsumexp only that sum."""
        algebra = self.algebra
        atom = algebra.atoms[number]
        axis = atom.data
        p = algebra.atom("softmax", axis, atom.parts, atom.parts[0].shape)
        after = labels[axis + (atom.kind == "softmax") :]
        along = (*labels[:axis], algebra.fresh(), *after)
        summed = [
            (value, [Factor(p, along), *algebra.placed(product, along + ends)])
            for product, value in slope.terms
        ]
        if atom.kind == "logsumexp":
            return algebra.made(summed, shape)
        own = Factor(p, labels)
        terms = [(-value, [own, *factors]) for value, factors in summed]
        for product, value in slope.terms:
            terms.append((value, [own, *algebra.placed(product, labels + ends)]))
        return algebra.made(terms, shape)

    def _of_running(
        self, number: int, slope: Sum, labels: tuple[Label, ...], ends: tuple[Label, ...],
        shape: tuple[int, ...],
    ) -> Sum:  # fmt: skip
        """Of a product that times the sum so far of `d / x`; of a logarithm of sums that of
        `exp(x) * d`, over the sum."""
        algebra = self.algebra
        atom = algebra.atoms[number]
        (inner,), axis = atom.parts, atom.data
        size = atom.shape[axis]
        so_far = algebra.of_atom(algebra.atom("move", Move("cumsum"), (), (size, size)))
        label = algebra.fresh()
        along = (*labels[:axis], label, *labels[axis + 1 :])
        own = algebra.of_atom(number)
        if atom.kind == "cumprod":
            over = Reader(algebra, {}).raised(inner, -1.0)
        else:
            own, over = (function(algebra, "exp", x) for x in (algebra.scaled(own, -1.0), inner))
        beside = [(own, labels), (so_far, (axis, label)), (over, along)]
        return self._times(beside, slope, along + ends, shape)

    def _of_reduction(
        self, number: int, slope: Sum, ends: tuple[Label, ...], shape: tuple[int, ...]
    ) -> Sum:
        """Of a product that without each element; of the largest element what it is equal to."""
        algebra = self.algebra
        atom = algebra.atoms[number]
        (inner,) = atom.parts
        axes = range(len(inner.shape)) if atom.axis is None else atom.axis
        axes = (axes,) if isinstance(axes, int) else axes
        kept = iter(range(len(atom.shape)))
        labels: tuple[Label, ...] = tuple(
            algebra.fresh() if axis in axes else next(kept) for axis in range(len(inner.shape))
        )
        labels = tuple(None if n == 1 else x for x, n in zip(labels, inner.shape, strict=True))
        outer = tuple(x for axis, x in enumerate(labels) if axis not in axes)
        own = algebra.of_atom(number)
        if atom.kind == "prod":
            rest = Reader(algebra, {}).raised(inner, -1.0)
            return self._times([(own, outer), (rest, labels)], slope, labels + ends, shape)
        order = tuple(None if n == 1 else axis for axis, n in enumerate(inner.shape))
        spread = tuple(x for axis, x in enumerate(order) if axis not in axes)
        all_ = algebra.moved(own, spread, inner.shape)
        there = Reader(algebra, {}).gate("eq", inner, all_)
        return self._times([(there, labels)], slope, labels + ends, shape)

    def _of_maxima(
        self, number: int, slope: Sum, ends: tuple[Label, ...], shape: tuple[int, ...]
    ) -> Sum:
        """Of each window that of its largest element."""
        algebra = self.algebra
        atom = algebra.atoms[number]
        (inner,) = atom.parts
        dims = len(atom.data.sizes) // 3
        inside = inner.shape[-dims:]
        places = algebra.atom("pool", atom.data, atom.parts, atom.shape + inside)
        to = tuple(None if n == 1 else axis for axis, n in enumerate(atom.shape))
        read = tuple(None if n == 1 else algebra.fresh() for n in inside)
        at = (*to[:-dims], *read, *ends)
        return self._times([(algebra.of_atom(places), (*to, *read))], slope, at, shape)

    def _of_function(self, number: int) -> Sum | None:
        """The slopes of a function of elements, by the rule of its op, times those of what it is a
        function of; one that has no rule is what its body is."""
        algebra = self.algebra
        atom = algebra.atoms[number]
        op, statics = atom.data
        inner = [self.of(part) for part in atom.parts]
        if not any(slope.terms for slope in inner):
            return None
        if op.vjp_rule is None and not is_plain(op, statics):
            return self._of_body(op, statics, atom.parts[0])
        locals_ = self.local(number)
        labels = tuple(None if s == 1 else i for i, s in enumerate(atom.shape))
        at = labels + self._labels(len(atom.shape))
        shape = atom.shape + self.tail
        found = [
            self._times([(local, labels)], slope, at, shape)
            for local, slope in zip(locals_, inner, strict=True)
            if slope.terms and local is not None
        ]
        return algebra.added(*found) if found else None

    def local(self, number: int) -> list[Sum | None]:
        """The slopes of a function of elements, one for each operand."""
        atom = self.algebra.atoms[number]
        op, statics = atom.data
        if is_plain(op, statics):
            return [*PLAIN[op.name](self.algebra, *atom.parts)]
        return self._by_rule(op, statics, atom.parts, self.algebra.of_atom(number))

    def _of_body(self, op: Op, statics: tuple[object, ...], inner: Sum) -> Sum:
        operand = constant(np.full(inner.shape, 0.5))
        result = op.apply([operand if a is OPERAND else a for a in statics])
        assert isinstance(result.body, Node)
        reader = Reader(self.algebra, {})
        reader.known[operand] = inner
        return self.of(reader.read(result.body))

    def _by_rule(
        self, op: Op, statics: tuple[object, ...], parts: tuple[Sum, ...], own: Sum
    ) -> list[Sum | None]:
        operands = [constant(np.full(part.shape, 0.5)) for part in parts]
        left = iter(operands)
        result = op.apply([next(left) if a is OPERAND else a for a in statics])
        g = constant(np.ones(own.shape))
        reader = Reader(self.algebra, {})
        reader.known.update({**dict(zip(operands, parts, strict=True)), result: own})
        reader.known[g] = self.algebra.number(1.0, own.shape)
        return [
            self.algebra.stretched(reader.read(slope), own.shape)
            if isinstance(slope, Node)
            else None
            for slope in ruled(result, g)[: len(parts)]
        ]


def _pow(algebra: Algebra, base: Sum, exponent: Sum) -> list[Sum]:
    """`b * a**(b - 1)` and `a**b * log(a)`."""
    shape = base.shape
    lower = algebra.added(exponent, algebra.number(-1.0, shape))
    return [
        algebra.multiplied(exponent, function(algebra, "pow", base, lower), shape),
        algebra.multiplied(
            function(algebra, "pow", base, exponent), function(algebra, "log", base), shape
        ),
    ]


def _atan2(algebra: Algebra, y: Sum, x: Sum) -> list[Sum]:
    """`x / (x**2 + y**2)` and `-y / (x**2 + y**2)`."""
    squares = algebra.added(algebra.raised(x, 2.0), algebra.raised(y, 2.0))
    over = algebra.raised(squares, -1.0)
    return [
        algebra.multiplied(x, over, x.shape),
        algebra.scaled(algebra.multiplied(y, over, x.shape), -1.0),
    ]


def _elu(algebra: Algebra, inner: Sum) -> list[Sum]:
    """1 above 0, `exp(u)` below."""
    reader, shape = Reader(algebra, {}), inner.shape
    above = reader.gate("gt", inner, algebra.number(0.0, shape))
    below = algebra.multiplied(reader.opposite(above), function(algebra, "exp", inner), shape)
    return [algebra.added(above, below)]


PLAIN: Mapping[str, Callable[..., list[Sum]]] = {
    "nn.functional.softplus": lambda algebra, inner: [function(algebra, "sigmoid", inner)],
    "nn.functional.logsigmoid": lambda algebra, inner: [
        function(algebra, "sigmoid", algebra.scaled(inner, -1.0))
    ],
    "nn.functional.elu": _elu,
    "abs": lambda algebra, inner: [function(algebra, "sign", inner)],
    "pow": _pow,
    "atan2": _atan2,
}


def is_plain(op: Op, args: tuple[object, ...]) -> bool:
    """Whether an op, with what it takes where nothing else is said, has slopes that are shorter
    than its rule."""
    pairs = zip(op.params, args, strict=False)
    return op.name in PLAIN and all(p.tensorial or value == p.default for p, value in pairs)
