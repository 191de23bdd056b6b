"""Axes that are split, joined and moved: views, transposes, and products of matrices.

What a view joined is read as the axes that it was made of, so that a product over them (what
`einsum` and `kron` compute) is one in index form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.node import Node, Shape
from .matrices import sum_of_logarithms
from .terms import Label, NoFormula, Sum

if TYPE_CHECKING:
    from .reading import Reader


class Grouped(NamedTuple):
    """A sum, and which of its axes are together each axis of a node."""

    sum: Sum
    groups: tuple[tuple[int, ...], ...]

    def sizes(self, axis: int) -> list[int]:
        return [self.sum.shape[i] for i in self.groups[axis]]


def grouped(reader: Reader, node: Node) -> Grouped:
    found = reader.known[node]
    if isinstance(found, Grouped):
        return found
    return Grouped(found, tuple((i,) if size != 1 else () for i, size in enumerate(found.shape)))


def _plain(reader: Reader, found: Grouped, shape: Shape) -> Sum | Grouped:
    """Without groups where no axis was joined."""
    if any(len(group) > 1 for group in found.groups):
        return found
    order: list[Label] = [None] * len(found.sum.shape)
    for axis, group in enumerate(found.groups):
        for part in group:
            order[part] = axis
    return reader.algebra.moved(found.sum, tuple(order), shape)


def view(reader: Reader, node: Node, inner: Node, *args: Any) -> Sum | Grouped:
    source = grouped(reader, inner)
    left = [part for group in source.groups for part in group]
    groups = []
    for size in node.shape:
        group: list[int] = []
        while size > 1 and left and size % source.sum.shape[left[0]] == 0:
            size //= source.sum.shape[left[0]]
            group.append(left.pop(0))
        if size != 1:
            raise NoFormula(node)
        groups.append(tuple(group))
    return _plain(reader, Grouped(source.sum, tuple(groups)), node.shape)


def permute(reader: Reader, node: Node, inner: Node, dims: tuple[int, ...]) -> Sum | Grouped:
    source = grouped(reader, inner)
    groups = tuple(source.groups[axis] for axis in dims)
    return _plain(reader, Grouped(source.sum, groups), node.shape)


def transpose(
    reader: Reader, node: Node, inner: Node, first: int = -2, second: int = -1
) -> Sum | Grouped:
    order = list(range(node.ndim))
    if len(order) > 1:
        order[first], order[second] = order[second], order[first]
    return permute(reader, node, inner, tuple(order))


def matmul(reader: Reader, node: Node, left: Node, right: Node) -> Sum | Grouped:
    """Rows times columns; what is in front is broadcast."""
    algebra = reader.algebra
    one, other = grouped(reader, left), grouped(reader, right)
    inner, outer = left.ndim - 1, max(right.ndim - 2, 0)
    if one.sizes(inner) != other.sizes(outer):
        raise NoFormula(node)
    at: list[list[Label]] = [[None] * len(one.sum.shape), [None] * len(other.sum.shape)]
    for mine, its in zip(one.groups[inner], other.groups[outer], strict=True):
        at[0][mine] = at[1][its] = algebra.fresh()
    groups: list[tuple[int, ...]] = []
    sizes: list[int] = []
    batch = node.ndim - (left.ndim > 1) - (right.ndim > 1)
    for axis in range(node.ndim):
        sources = []  # the operands that have this axis, and which of theirs it is
        if axis < batch:
            for k, operand in enumerate((left, right)):
                own = axis - (batch - (operand.ndim - 2))
                if own >= 0:
                    sources.append((k, own))
        else:
            is_row = axis == batch and left.ndim > 1
            sources.append((0, left.ndim - 2) if is_row else (1, right.ndim - 1))
        found: tuple[int, ...] = ()
        for k, own in sources:
            parts = (one, other)[k].groups[own]
            if not parts:
                continue
            if found and [sizes[i] for i in found] != (one, other)[k].sizes(own):
                raise NoFormula(node)
            if not found:
                found = tuple(range(len(sizes), len(sizes) + len(parts)))
                sizes += (one, other)[k].sizes(own)
            for label, part in zip(found, parts, strict=True):
                at[k][part] = label
        groups.append(found)
    product = algebra.einsum([(one.sum, tuple(at[0])), (other.sum, tuple(at[1]))], tuple(sizes))
    return _plain(reader, Grouped(product, tuple(groups)), node.shape)


def diagonal(reader: Reader, node: Node, inner: Node, offset: int = 0, *args: Any) -> Sum | Grouped:
    source = grouped(reader, inner)
    if offset or inner.ndim != 2 or args not in DIAGONALS or source.sizes(0) != source.sizes(1):
        raise NoFormula(node)
    at: list[Label] = [None] * len(source.sum.shape)
    for label, pair in enumerate(zip(*source.groups, strict=True)):
        for part in pair:
            at[part] = label
    sizes = tuple(source.sizes(0))
    found = Grouped(reader.algebra.moved(source.sum, tuple(at), sizes), (tuple(range(len(sizes))),))
    return _plain(reader, found, node.shape)


def total(reader: Reader, inner: Node) -> Sum:
    """The sum over everything."""
    sum_ = grouped(reader, inner).sum
    half = sum_of_logarithms(reader.algebra, sum_)
    return half or reader.algebra.reduced(sum_, tuple(range(len(sum_.shape))), False)


DIAGONALS = ((), (0, 1), (-2, -1))
AXES: dict[str, Callable[..., Sum | Grouped]] = {
    **dict.fromkeys(
        ["view", "unsafe_view", "unshared_view", "reshape", "reshape_alias", "unsqueeze",
         "squeeze", "squeeze_dims"], view),
    **dict.fromkeys(["matmul", "bmm", "mm", "mv", "dot"], matmul),
    **dict.fromkeys(["transpose", "t"], transpose),
    **dict.fromkeys(["diagonal", "diagonal_copy"], diagonal),
    "permute": permute,
}  # fmt: skip
