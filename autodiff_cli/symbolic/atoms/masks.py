"""What a mask of bools picks: a product with an array of zeros and ones, a row for each element
that is picked, with the axes (which, where, ...).

What is done to the elements that were picked is done to all and then picked: `f(x[m])` is
`f(x)[m]`, so that a sum of it is one of `f(x)` where `m` holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ...graph.node import Node
from ..terms import Factor, Label, NoFormula, Product, Sum, is_summed, renamed

if TYPE_CHECKING:
    from ..algebra import Algebra
    from ..reading import Reader

Chosen = tuple[int, int]  # a mask, and the axis of what it picked


def picked(reader: Reader, node: Node, inner: Node, mask: Node, row: int = 0) -> Sum:
    """`x[m]`, or with axes in front `x[:, m]`."""
    if 1 in mask.shape or not node.numel:
        raise NoFormula(node)
    algebra, holds = reader.algebra, reader.condition(mask, mask.shape)
    shape = (node.shape[row], *mask.shape)
    chosen = algebra.atom("mask", None, (holds,), shape), row
    return lowered(algebra, chosen, reader.of(inner))


def selected(reader: Reader, node: Node, inner: Node, mask: Node) -> Sum:
    if inner.shape != mask.shape:
        raise NoFormula(node)
    return picked(reader, node, inner, mask)


def lifted(algebra: Algebra, parts: Sequence[Sum]) -> tuple[Chosen, list[Sum]] | None:
    """The mask that has picked the rows of parts of one shape, and what they were picked from; None
    where that is not one mask."""
    chosen = {
        pair for part in parts for product, _ in part.terms for pair in _picks(algebra, product)
    }
    if len(chosen) != 1:
        return None
    ((mask, row),) = chosen
    dims = algebra.atoms[mask].shape[1:]
    found = []
    for part in parts:
        rows = []
        for product, value in part.terms:
            of_rows = [f for f in product if row in f.at]
            names: dict[Any, Label] = {
                axis: axis + len(dims) - 1 for axis in range(row + 1, len(part.shape))
            }
            if of_rows:
                one = of_rows[0]
                if len(of_rows) > 1 or one.atom != mask or not all(map(is_summed, one.at[1:])):
                    return None
                names |= {label: row + axis for axis, label in enumerate(one.at[1:])}
            rest = [f for f in product if f not in of_rows]
            rows.append((value, renamed(rest, names)))
        found.append(algebra.made(rows, part.shape[:row] + dims + part.shape[row + 1 :]))
    return (mask, row), found


def _picks(algebra: Algebra, product: Product) -> list[Chosen]:
    """The masks in a product whose rows are an axis of the result, and which."""
    masks = (f for f in product if algebra.atoms[f.atom].kind == "mask")
    return [(f.atom, f.at[0]) for f in masks if type(f.at[0]) is int and f.at[0] >= 0]


def lowered(algebra: Algebra, chosen: Chosen, sum_: Sum) -> Sum:
    """The rows of a sum that a mask picks."""
    mask, row = chosen
    shape = algebra.atoms[mask].shape
    dims = len(shape) - 1
    where: tuple[Label, ...] = tuple(algebra.fresh() for _ in range(dims))
    which = None if shape[0] == 1 else row
    size = (*sum_.shape[:row], shape[0], *sum_.shape[row + dims :])
    kept = tuple(None if n == 1 else i for i, n in enumerate(size))
    at = (*kept[:row], *where, *kept[row + 1 :])
    terms = [
        (value, [Factor(mask, (which, *where)), *algebra.placed(product, at)])
        for product, value in sum_.terms
    ]
    return algebra.made(terms, size)


def with_conditions(algebra: Algebra, sum_: Sum) -> Sum:
    """A sum in which a mask that picks one element is where it holds."""
    terms, changed = [], False
    for product, value in sum_.terms:
        factors: list[Factor] = []
        for factor in product:
            atom = algebra.atoms[factor.atom]
            if atom.kind == "mask" and factor.at[0] is None:
                number, more = algebra.factor(atom.parts[0], factor.at[1:])
                value, changed = value * number, True
                factors += more
            else:
                factors.append(factor)
        terms.append((value, factors))
    return algebra.made(terms, sum_.shape) if changed else sum_


def without_masks(algebra: Algebra, factors: list[Factor]) -> tuple[float, list[Factor]] | None:
    """One for two that pick one element, of an axis each, and where all that was picked is added up
    what the mask holds for; None where there is neither."""
    for one in factors:
        atom = algebra.atoms[one.atom]
        if atom.kind != "mask" and (atom.kind != "move" or atom.data.name == "cumsum"):
            continue
        rest = [f for f in factors if f is not one]
        row = one.at[0]
        for other in rest if row is None else ():
            whole = not other.at and other.power in (1, 2, 3)
            inner = algebra.atoms[other.atom].parts if whole else ()
            alone = inner[0].terms[0] if inner and len(inner[0].terms) == 1 else ((), 0)
            if alone[1] == 1 and any(f.atom == one.atom for f in alone[0]):  # the element itself
                often = [f for _ in range(int(other.power)) for f in algebra.placed(alone[0], ())]
                return 1.0, [one, *(f for f in rest if f is not other), *often]
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
            return 1.0, [one, *rest, *deltas]
        if atom.kind == "mask" and is_summed(row) and not any(row in f.at for f in rest):
            _, placed = algebra.factor(atom.parts[0], one.at[1:])
            return 1.0, [*rest, *placed]
    return None


def count(algebra: Algebra, sum_: Sum, axes: Sequence[int]) -> Sum | None:
    """How many elements a mask picks of those that a sum adds up; None where none does."""
    chosen = {pair for product, _ in sum_.terms for pair in _picks(algebra, product)}
    if len(chosen) != 1:
        return None
    ((mask, row),) = chosen
    if row not in axes:
        return None
    (holds,) = algebra.atoms[mask].parts
    total = algebra.reduced(holds, tuple(range(len(holds.shape))))
    return algebra.scaled(total, prod(sum_.shape[axis] for axis in axes if axis != row))


def either(
    algebra: Algebra, terms: dict[Product, float]
) -> list[tuple[float, list[Factor]]] | None:
    """Terms of which two are one where a comparison holds and elsewhere, as that one; None
    where there are none."""
    for product, value in terms.items():
        for factor in product:
            if algebra.atoms[factor.atom].kind != "gate":
                continue
            rest = [f for f in product if f is not factor]
            other = [*rest, factor._replace(atom=algebra.opposite(factor.atom))]
            twin = algebra.ordered(other) if len(terms) > 1 else product
            if twin != product and terms.get(twin) == value:
                kept = [(v, list(p)) for p, v in terms.items() if p not in (product, twin)]
                return [*kept, (value * algebra.repeats(product, rest), rest)]
    return None
