"""A graph as a sum of products: like terms added, factors multiplied, broadcasting left to readers.

Invariant: what is made has the value of the graph wherever no factor that was cancelled is zero;
work is bounded, and a graph that is too long for a formula is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from ..graph.node import Node, Shape
from ..graph.op import CONSTANT
from ..graph.registry import overloads
from ..graph.walk import bottom_up
from .expression import (
    Call,
    Expression,
    Index,
    Infix,
    Name,
    Negative,
    Number,
    Transposed,
    call_of,
    sum_of,
    text,
    transposes,
)

MOST = 400  # nodes of one formula
MOST_TERMS = 24
LONGEST = 1000  # characters of a factor

# Factors by their text, each with its power; and the coefficient of that product.
Product = tuple[tuple[str, float], ...]
Sum = dict[Product, float]


class NoFormula(Exception):
    """A graph that is no formula: too long, or `node` has none that a program could say."""

    def __init__(self, node: Node | None = None):
        super().__init__()
        self.node = node


class Simplifier:
    """Formulas of the nodes of one graph, in the names given."""

    def __init__(self, names: Mapping[Node, str]):
        self.names = names
        self.factors: dict[str, Expression] = {}
        self.shapes: dict[str, Shape] = {}
        self.known: dict[Node, Sum] = {}

    def expression(self, node: Node) -> Expression:
        """The formula of a node; its value has the node's shape."""
        terms = self._sum(node)
        return self._whole(terms, node.shape)

    # -- sums of products ---------------------------------------------------------------------

    def _sum(self, node: Node) -> Sum:
        """Nodes in the order of the graph, so that nothing recurses."""
        known = self.known
        for top in bottom_up(node, lambda n: () if self._is_end(n) else n.inputs, known):
            if len(known) > MOST:
                raise NoFormula
            known[top] = self._made(top)
        return known[node]

    def _is_end(self, node: Node) -> bool:
        return node in self.names or node.op is CONSTANT

    def _made(self, node: Node) -> Sum:
        name = self.names.get(node)
        if name is not None:
            return self._factor(Name(name, node.shape), node.shape)
        if node.op is CONSTANT:
            if node.value.size == 1:
                return _number(float(node.value.item()))
            flat = node.value.reshape(-1)
            if flat.size and (flat == flat[0]).all():
                return _number(float(flat[0]))
            raise NoFormula(node)
        parts = [self.known[n] for n in node.inputs]
        match node.op.key:
            case "cast" | "alias" | "expand" | "clone":
                return parts[0]
            case "add":
                return added(parts[0], parts[1])
            case "sub":
                return added(parts[0], scaled(parts[1], -1.0))
            case "neg":
                return scaled(parts[0], -1.0)
            case "mul":
                return self._product(node, parts)
            case "div":
                return self._quotient(node, parts)
            case "reciprocal":
                return self._quotient(node, [_number(1.0), *parts])
            case "pow":
                return self._power(node, parts)
            case "view" | "reshape" | "unsqueeze" if node.numel == 1:
                return parts[0]
        return self._opaque(node)

    def _factor(self, expression: Expression, shape: Shape) -> Sum:
        key = text(expression)
        if len(key) > LONGEST:
            raise NoFormula
        self.factors[key] = expression
        self.shapes[key] = shape
        return {((key, 1.0),): 1.0}

    def _product(self, node: Node, parts: list[Sum]) -> Sum:
        left, right = parts
        if len(left) == 1 or len(right) == 1 or len(left) * len(right) <= 1:
            found: Sum = {}
            for a, x in left.items():
                for b, y in right.items():
                    found = added(found, {multiplied(a, b): x * y})
            return found
        first = self._factor(self._of(node.inputs[0]), node.inputs[0].shape)
        second = self._factor(self._of(node.inputs[1]), node.inputs[1].shape)
        ((a, x),), ((b, y),) = first.items(), second.items()
        return {multiplied(a, b): x * y}

    def _quotient(self, node: Node, parts: list[Sum]) -> Sum:
        left, right = parts
        if len(right) != 1:
            right = self._factor(self._of(node.inputs[-1]), node.inputs[-1].shape)
        ((below, y),) = right.items()
        if y == 0:
            return self._opaque(node)
        inverse = tuple((key, -power) for key, power in below)
        found: Sum = {}
        for above, x in left.items():
            found = added(found, {multiplied(above, inverse): x / y})
        return found

    def _power(self, node: Node, parts: list[Sum]) -> Sum:
        base, exponent = parts
        if set(exponent) - {()}:
            return self._opaque(node)
        power = exponent.get((), 0.0)
        if power == 1:
            return base
        if power == 0 or not base:
            return _number(1.0) if power == 0 else self._opaque(node)
        whole = power == int(power)
        if len(base) != 1 or (not whole and not _is_plain(base)):
            # A root of a product is no product of roots where factors are negative.
            base = self._factor(self._of(node.inputs[0]), node.inputs[0].shape)
        ((product, x),) = base.items()
        return {tuple((key, p * power) for key, p in product): x**power}

    def _opaque(self, node: Node) -> Sum:
        """An op that is written as a call of what goes in."""
        if transposes(node):
            inner: Expression = Transposed(self._of(node.inputs[0]))
        elif node.op.key == "matmul":
            inner = Infix("matmul", *(self._of(n) for n in node.inputs))
        elif node.op.key in ("gt", "ge", "lt", "le", "eq", "ne"):
            inner = Infix(node.op.key, *(self._of(n) for n in node.inputs))
        elif node.op.key == "summed_to":
            inner = sum_of(self._of(node.inputs[0]), node.shape, node.inputs[0].shape)
        elif node.op.key == "output":
            inner = Index(self._of(node.args[0]), node.args[1])
        elif not overloads(node.op.name):
            raise NoFormula(node)
        else:
            inner = call_of(node, self._of)
        return self._factor(inner, node.shape)

    def _of(self, node: Node) -> Expression:
        return self._whole(self.known[node], node.shape)

    # -- and back -----------------------------------------------------------------------------

    def _whole(self, terms: Sum, shape: Shape) -> Expression:
        """A sum as an expression of this very shape."""
        if len(terms) > MOST_TERMS:
            raise NoFormula
        found: Expression | None = None
        made: Shape = ()
        for product, number in _ordered(terms):
            for key, _ in product:
                made = np.broadcast_shapes(made, self.shapes[key])
            term = self._term(product, abs(number))
            if found is None:
                found = Negative(term) if number < 0 else term
            else:
                found = Infix("sub" if number < 0 else "add", found, term)
        if found is None:
            found = Number(0.0)
        if made == shape:
            return found
        sizes = tuple(Number(size) for size in shape)
        if isinstance(found, Number) and found.value in (0, 1):
            return Call("ones" if found.value else "zeros", sizes)
        return Infix("mul", found, Call("ones", sizes))

    def _term(self, product: Product, number: float) -> Expression:
        top, bottom = _fraction(number)
        above: Expression | None = None if top == 1 else Number(top)
        below: Expression | None = None if bottom == 1 else Number(bottom)
        for key, power in product:
            factor = self.factors[key]
            size = abs(power)
            raised = factor if size == 1 else Infix("pow", factor, Number(size))
            if power > 0:
                above = raised if above is None else Infix("mul", above, raised)
            else:
                below = raised if below is None else Infix("mul", below, raised)
        if above is None:
            above = Number(1.0)
        return above if below is None else Infix("div", above, below)


def _fraction(number: float) -> tuple[float, float]:
    """1/3 as a fraction, 0.25 as the number that it is."""
    if len(repr(number)) <= 8 or not 1e-6 < abs(number) < 1e6:
        return number, 1.0
    close = Fraction(number).limit_denominator(1000)
    exact = close.numerator / close.denominator == number
    return (float(close.numerator), float(close.denominator)) if exact else (number, 1.0)


def _number(value: float) -> Sum:
    return {(): value} if value else {}


def added(left: Sum, right: Sum) -> Sum:
    found = dict(left)
    for product, number in right.items():
        total = found.get(product, 0.0) + number
        if total:
            found[product] = total
        else:
            found.pop(product, None)
    return found


def scaled(terms: Sum, number: float) -> Sum:
    return {product: number * x for product, x in terms.items()}


def multiplied(left: Product, right: Product) -> Product:
    powers = dict(left)
    for key, power in right:
        powers[key] = powers.get(key, 0.0) + power
    return tuple(sorted((key, power) for key, power in powers.items() if power))


def _is_plain(terms: Sum) -> bool:
    """Whether a sum is one factor and nothing else."""
    return all(number == 1 and len(product) == 1 and product[0][1] == 1
               for product, number in terms.items())  # fmt: skip


def _ordered(terms: Sum) -> list[tuple[Product, float]]:
    """Positive terms first, so that a formula does not begin with a sign."""
    return sorted(terms.items(), key=lambda term: (term[1] < 0, term[0] == ()))
