"""Inverses, determinants and factors of matrices as atoms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...graph.node import Node
from ..terms import Factor, Label, NoFormula, Sum, is_summed

if TYPE_CHECKING:
    from ..algebra import Algebra
    from ..reading import Reader


def inverse(reader: Reader, node: Node, inner: Node) -> Sum:
    if inner.ndim != 2:
        raise NoFormula(node)
    return inverted(reader.algebra, reader.of(inner))


def inverted(algebra: Algebra, sum_: Sum) -> Sum:
    """The inverse of a matrix: of an inverse the matrix, of a transpose the transpose."""
    number, inner, one = 1.0, sum_, algebra.alone(sum_)
    if len(sum_.terms) == 1:
        ((product, number),) = sum_.terms
        inner = Sum(((product, 1.0),), sum_.shape)
    if one is not None and one[0].power == 1:
        if one[0].at == (1, 0):
            turned = inverted(algebra, algebra.of_atom(one[0].atom))
            return algebra.scaled(algebra.moved(turned, (1, 0)), 1 / number)
        if one[1].kind == "inverse":
            return algebra.scaled(one[1].parts[0], 1 / number)
    found = algebra.of_atom(algebra.atom("inverse", None, (inner,), inner.shape))
    return algebra.scaled(found, 1 / number)


def square_factors(algebra: Algebra, sum_: Sum) -> list[Sum]:
    """The square matrices of which a matrix is the product; itself where it is none."""
    rest = list(sum_.terms[0][0]) if len(sum_.terms) == 1 else []
    found: list[Sum] = []
    end: Label = 0
    while rest:
        here = [factor for factor in rest if end in factor.at]
        shape = algebra.atoms[here[0].atom].shape if here else ()
        if len(here) != 1 or here[0].power != 1 or len(set(here[0].at)) != 2 or shape != sum_.shape:
            return [sum_]
        rest.remove(here[0])
        end = here[0].at[here[0].at[0] == end]
        found.append(algebra.of_atom(here[0].atom))
    return found if end == 1 else [sum_]


def solve(reader: Reader, node: Node, matrix: Node, right: Node, left: bool = True) -> Sum:
    if matrix.ndim != 2 or right.ndim > 2 or not left:
        raise NoFormula(node)
    return _solved(reader.algebra, reader.of(matrix), reader.of(right))


def _solved(algebra: Algebra, matrix: Sum, right: Sum) -> Sum:
    inner: Label = algebra.fresh()
    tail: tuple[Label, ...] = (1,) if len(right.shape) == 2 and right.shape[1] != 1 else (None,)
    at = (inner, *tail[: len(right.shape) - 1])
    return algebra.einsum([(inverted(algebra, matrix), (0, inner)), (right, at)], right.shape)


def triangular(
    reader: Reader, node: Node, matrix: Node, right: Node, upper: bool, left: bool, unit: bool
) -> Sum:
    """Only of factors of matrices: of others half is not read."""
    factor = _root(reader.algebra, reader.of(matrix))
    if factor is None or not left or unit or right.ndim != 2 or upper is not (factor.at == (1, 0)):
        raise NoFormula(node)
    return _solved(reader.algebra, reader.of(matrix), reader.of(right))


def cholesky(reader: Reader, node: Node, inner: Node, upper: bool) -> Sum:
    if inner.ndim != 2 or upper:
        raise NoFormula(node)
    atom = reader.algebra.atom("cholesky", None, (reader.of(inner),), inner.shape)
    return reader.algebra.of_atom(atom)


def cholesky_solve(reader: Reader, node: Node, right: Node, factor: Node, upper: bool) -> Sum:
    found = _root(reader.algebra, reader.of(factor))
    if found is None or found.at != (0, 1) or upper:
        raise NoFormula(node)
    (matrix,) = reader.algebra.atoms[found.atom].parts
    return _solved(reader.algebra, matrix, reader.of(right))


def _root(algebra: Algebra, sum_: Sum) -> Factor | None:
    """The factor of a matrix that a sum is."""
    one = algebra.alone(sum_)
    if one is None or one[1].kind != "cholesky" or (one[0].power, one[2]) != (1, 1):
        return None
    return one[0]


def determinant(reader: Reader, node: Node, inner: Node) -> Sum:
    """That of a factor is the root of that of its matrix."""
    algebra, kind = reader.algebra, "det" if node.op.key == "det" else "logdet"
    if inner.ndim != 2:
        raise NoFormula(node)
    root = _root(algebra, reader.of(inner)) if kind == "logdet" else None
    if root is not None:
        return halved(algebra, root.atom)
    return algebra.of_atom(algebra.atom(kind, None, (reader.of(inner),), ()))


def halved(algebra: Algebra, root: int) -> Sum:
    """The sum of the logarithms on the diagonal of a factor."""
    atom = algebra.atom("logdet", None, algebra.atoms[root].parts, ())
    return algebra.scaled(algebra.of_atom(atom), 0.5)


def sum_of_logarithms(algebra: Algebra, sum_: Sum) -> Sum | None:
    """`sum(log(diag(cholesky(M))))` as half of `logdet(M)`."""
    one = algebra.alone(sum_)
    if one is None or len(sum_.shape) != 1 or one[1].function != "log" or one[0].power != 1:
        return None
    root = _root(algebra, one[1].parts[0])
    if root is None or root.at != (0, 0):
        return None
    return algebra.scaled(halved(algebra, root.atom), one[2])


MATRICES: dict[str, Callable[..., Sum]] = {
    "inv": inverse, "inv_raw": inverse, "solve": solve, "solve_raw": solve, "det": determinant,
    "slogdet": determinant, "cholesky_factor": cholesky, "cholesky_solve": cholesky_solve,
    "solve_triangular": triangular,
}  # fmt: skip


def without_roots(algebra: Algebra, factors: list[Factor]) -> tuple[float, list[Factor]] | None:
    """`inv(L).T @ inv(L)` as the inverse of `L @ L.T`; None where there is none."""
    for i, one in enumerate(factors):
        root = rooted(algebra, one)
        for j, other in enumerate(factors):
            label = one.at[0] if root is not None else None
            if j <= i or other.atom != one.atom or not is_summed(label):
                continue
            if other.at[0] != label or sum(f.at.count(label) for f in factors) != 2:
                continue
            assert root is not None
            inner = inverted(algebra, algebra.atoms[root].parts[0])
            value, more = algebra.factor(inner, (one.at[1], other.at[1]))
            if value == 1:
                return 1.0, [*(f for k, f in enumerate(factors) if k not in (i, j)), *more]
    return None


def rooted(algebra: Algebra, factor: Factor) -> int | None:
    """The factor of a matrix of which this is the inverse."""
    atom = algebra.atoms[factor.atom]
    if atom.kind != "inverse" or factor.power != 1:
        return None
    root = _root(algebra, atom.parts[0])
    return None if root is None else root.atom


def without_inverses(algebra: Algebra, factors: list[Factor]) -> tuple[float, list[Factor]] | None:
    """`inv(M) @ M` as the identity; None where there is none."""
    for one in factors:
        atom = algebra.atoms[one.atom]
        if atom.kind != "inverse" or one.power != 1:
            continue
        terms = atom.parts[0].terms
        if len(terms) != 1 or len(terms[0][0]) != 1 or terms[0][0][0].power != 1:
            continue
        (inner,) = terms[0][0]
        for other in factors:
            if other.atom != inner.atom or other.power != 1 or len(other.at) != 2:
                continue
            # inv[a,b] M[b,c] and inv[b,c] M[a,b]
            for mine, its, left, right in ((1, 0, 0, 1), (0, 1, 1, 0)):
                label = one.at[mine]
                if label != other.at[its] or not is_summed(label):
                    continue
                if sum(f.at.count(label) for f in factors) != 2:
                    continue
                rest = [f for f in factors if f is not one and f is not other]
                delta = algebra.atom("delta", None, (), atom.shape)
                at = (one.at[left], other.at[right])
                return 1.0, [*rest, Factor(delta, at)]
    return None
