"""What a mask of bools picks: a product with an array of zeros and ones, a row for each element
that is picked, with the axes (which, where, ...).

What is done to the elements that were picked is done to all and then picked: `f(x[m])` is
`f(x)[m]`, so that a sum of it is one of `f(x)` where `m` holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..graph.node import Node
from .terms import Factor, Label, NoFormula, Sum, is_summed, renamed

if TYPE_CHECKING:
    from .algebra import Algebra
    from .reading import Reader


def picked(reader: Reader, node: Node, inner: Node, mask: Node) -> Sum:
    """`x[m]`."""
    if 1 in mask.shape or not node.numel:
        raise NoFormula(node)
    algebra, holds = reader.algebra, reader.condition(mask, mask.shape)
    shape = (node.shape[0], *mask.shape)
    if node.shape[0] == 1:
        where: tuple[Label, ...] = tuple(algebra.fresh() for _ in mask.shape)
        rest = tuple(None if n == 1 else i for i, n in enumerate(node.shape[1:], 1))
        return algebra.einsum([(holds, where), (reader.of(inner), where + rest)], node.shape)
    return lowered(algebra, algebra.atom("mask", None, (holds,), shape), reader.of(inner))


def selected(reader: Reader, node: Node, inner: Node, mask: Node) -> Sum:
    if inner.shape != mask.shape:
        raise NoFormula(node)
    return picked(reader, node, inner, mask)


def lifted(algebra: Algebra, parts: Sequence[Sum]) -> tuple[int, list[Sum]] | None:
    """The mask that has picked the rows of parts of one shape, and what they were picked from; None
    where that is not one mask."""
    mask: int | None = None
    split: list[list[tuple[float, list[Factor], dict[Any, Label]]]] = []
    for part in parts:
        terms = []
        for product, value in part.terms:
            of_rows = [f for f in product if 0 in f.at]
            names: dict[Any, Label] = {}
            if of_rows:
                one = of_rows[0]
                if len(of_rows) > 1 or not _picks(algebra, one):
                    return None
                if mask not in (None, one.atom) or not all(map(is_summed, one.at[1:])):
                    return None
                mask = one.atom
                names = {label: axis for axis, label in enumerate(one.at[1:])}
            terms.append((value, [f for f in product if f not in of_rows], names))
        split.append(terms)
    if mask is None:
        return None
    dims = algebra.atoms[mask].shape[1:]
    found = []
    for part, terms in zip(parts, split, strict=True):
        ends: dict[Any, Label] = {axis: axis + len(dims) - 1 for axis in range(1, len(part.shape))}
        rows = [(value, renamed(rest, {**ends, **names})) for value, rest, names in terms]
        found.append(algebra.made(rows, dims + part.shape[1:]))
    return mask, found


def _picks(algebra: Algebra, factor: Factor) -> bool:
    return algebra.atoms[factor.atom].kind == "mask" and factor.at[0] == 0


def lowered(algebra: Algebra, mask: int, sum_: Sum) -> Sum:
    """The rows of a sum that a mask picks."""
    shape = algebra.atoms[mask].shape
    dims = len(shape) - 1
    where: tuple[Label, ...] = tuple(algebra.fresh() for _ in range(dims))
    rest = tuple(None if n == 1 else i + 1 for i, n in enumerate(sum_.shape[dims:]))
    terms = []
    for product, value in sum_.terms:
        terms.append((value, [Factor(mask, (0, *where)), *algebra.placed(product, where + rest)]))
    return algebra.made(terms, (shape[0], *sum_.shape[dims:]))


def without_masks(algebra: Algebra, factors: list[Factor]) -> list[Factor] | None:
    """One for two that pick one element, of an axis each, and where all that was picked is added up
    what the mask holds for; None where there is neither."""
    for one in factors:
        atom = algebra.atoms[one.atom]
        if atom.kind != "mask" and (atom.kind != "move" or atom.data.name == "cumsum"):
            continue
        rest = [f for f in factors if f is not one]
        row = one.at[0]
        others = [f for f in rest if f.atom == one.atom and f.at[0] == row]
        if others and (atom.kind == "mask" or sum(f.at.count(row) for f in factors) > 2):
            other = min(others, key=lambda f: any(map(is_summed, f.at[1:])))  # a diagonal
            mine, its = one.at[1:], other.at[1:]
            rest.remove(other)
            deltas = []
            for a, b, size in zip(mine, its, atom.shape[1:], strict=True):
                if a != b:
                    delta = algebra.atom("delta", None, (), (size, size))
                    deltas.append(Factor(delta, (a, b)))
            return [one, *rest, *deltas]
        if atom.kind == "mask" and is_summed(row) and not any(row in f.at for f in rest):
            _, placed = algebra.factor(atom.parts[0], one.at[1:])
            return [*rest, *placed]
    return None


def count(algebra: Algebra, sum_: Sum, axes: Sequence[int]) -> Sum | None:
    """How many elements a mask picks of those that a sum adds up; None where none does."""
    if 0 not in axes:
        return None
    masks = {f.atom for product, _ in sum_.terms for f in product if _picks(algebra, f)}
    if len(masks) != 1:
        return None
    (holds,) = algebra.atoms[masks.pop()].parts
    total = algebra.reduced(holds, tuple(range(len(holds.shape))), False)
    more = 1.0
    for axis in axes:
        more *= sum_.shape[axis] if axis else 1
    return algebra.scaled(total, more)
