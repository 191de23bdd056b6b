"""Sums of products in index form: what matrix products, transposes, traces, sums over axes and
broadcasting are where every axis has a label.

`A @ x - b` is the sum of `A[0,-1] x[-1]` and `-b[0]`: labels from 0 on are the axes of the result,
negative ones are summed over. Transposing renames, a trace is a label met twice, broadcasting a
label that is not met. Whatever is no product is an atom: a name, a function of a sum, the inverse
of one. Terms that are equal up to the names of their labels are equal, so like terms add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.node import Node, Shape
from ..graph.registry import overloads

if TYPE_CHECKING:
    from .algebra import Algebra

OPERAND = ...  # among the arguments of a function: what is one of its parts
OPPOSITE = {
    "gt": "le", "le": "gt", "lt": "ge", "ge": "lt", "eq": "ne", "ne": "eq", "holds": "fails",
    "fails": "holds", "and": "or", "or": "and",
}  # fmt: skip
JOINS = {"and": "bitwise_and", "or": "bitwise_or"}  # gates of gates, and how they are written


class At(NamedTuple):
    """A fixed place on an axis."""

    place: int


Label = int | None | At  # None: an axis of one element


class Factor(NamedTuple):
    """An atom with a label for each axis, to a power, element by element."""

    atom: int
    at: tuple[Label, ...]
    power: float = 1.0

    @property
    def divides(self) -> bool:
        """Whether it is what is divided by."""
        return self.power < 0


Product = tuple[Factor, ...]


class Sum(NamedTuple):
    """Products with their coefficients, as an array of a shape."""

    terms: tuple[tuple[Product, float], ...]
    shape: Shape


class Atom(NamedTuple):
    """What is no product. `kind`: name, function (`data`: how it is called), group (a sum in
    brackets), delta (the identity), inverse, det, softmax, logsumexp (`data`: the axis), gate
    (`data`: the comparison), power, masked, one_hot, detached, array (numbers
    without a name), call (`data`: the node)."""

    kind: str
    data: Any
    parts: tuple[Sum, ...]
    shape: Shape
    symmetric: bool = False

    @property
    def axis(self) -> Any:
        """The axis that the data mean; None where they mean all."""
        return self.data[0] if isinstance(self.data, tuple) else self.data

    @property
    def function(self) -> str:
        """The name of a function of elements."""
        return str(self.data[0].name) if self.kind == "function" else ""


class NoFormula(Exception):
    """A graph that is no formula: too long, or `node` has none that a program could say."""

    def __init__(self, node: Node | None = None):
        self.node = node


def label_key(label: Label) -> tuple[int, int]:
    if label is None:
        return 0, 0
    return (1, label.place) if isinstance(label, At) else (2, label)


@lru_cache(1 << 14)
def factor_key(factor: Factor) -> tuple[Any, ...]:
    return factor.atom, factor.power, tuple(map(label_key, factor.at))


def product_key(product: Product) -> tuple[Any, ...]:
    return tuple(map(factor_key, product))


def is_summed(label: Label) -> bool:
    return type(label) is int and label < 0


def renamed(factors: Iterable[Factor], names: dict[Any, Label]) -> list[Factor]:
    """With other labels; those of axes of one element disappear into them."""
    return [
        Factor(atom, tuple([names.get(x, x) if x is not None else None for x in at]), power)
        for atom, at, power in factors
    ]


def raised(factors: Iterable[Factor], power: float) -> list[Factor]:
    """Factors to a power."""
    return [Factor(atom, at, own * power) for atom, at, own in factors]


def powers(factors: Iterable[Factor]) -> list[Factor]:
    """Powers of one factor added."""
    found: dict[tuple[int, tuple[Label, ...]], float] = {}
    for atom, at, power in factors:
        found[atom, at] = found.get((atom, at), 0.0) + power
    return [Factor(atom, at, power) for (atom, at), power in found.items() if power]


def components(factors: list[Factor]) -> list[list[Factor]]:
    """Factors that share no label that is summed are apart; those with free labels are together."""
    groups: list[tuple[set[Any], list[Factor]]] = []
    for factor in factors:
        labels: set[Any] = {x for x in factor.at if is_summed(x)}
        if any(type(x) is int and x >= 0 for x in factor.at):
            labels.add("free")
        labels = labels or {id(factor), factor}
        joined = [factor]
        apart = []
        for seen, members in groups:
            if seen & labels:
                labels |= seen
                joined = members + joined
            else:
                apart.append((seen, members))
        groups = [*apart, (labels, joined)]
    return [members for _, members in groups]


def number_of(sum_: Sum) -> float | None:
    """The number that all elements are; None where they are none."""
    if not sum_.terms:
        return 0.0
    if len(sum_.terms) == 1 and not sum_.terms[0][0]:
        return sum_.terms[0][1]
    return None


def function(algebra: Algebra, name: str, *parts: Sum) -> Sum:
    """A function of elements by its name."""
    (op, *_) = overloads(name)
    statics = (OPERAND,) * len(parts)
    return algebra.applied("function", (op, statics), parts, parts[0].shape)
