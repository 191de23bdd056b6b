"""Batches of cotangents and tangents kept as a base times a scale that all examples share.

What is elementwise multiplies the scale, which has the size of one example, and not the batch. The
base of unit vectors is never written down as long as that is all that happens to them: a product
with a matrix is the matrix with its rows scaled. Elements that do not depend on one another are
zero then, whatever lies between; sums of products are associated otherwise than example by example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ...graph.node import Node
from ...graph.op import number
from ...graph.registry import F
from ...ops.kernels.matrices import transposed
from ...transform.simplify import uniform
from ..rules import ones_like

if TYPE_CHECKING:
    from .examples import Trace


class Scaled(NamedTuple):
    """`base * scale`; without a base the unit vectors, example i being one at its element i."""

    base: Node | None
    scale: Node


def unit_vectors(trace: Trace, like: Node) -> Node:
    """A placeholder for all unit vectors of the shape of `like`, one for each example."""
    return trace.placeholder(_kept(trace, Scaled(None, ones_like(like)), like.shape))


def scaled_rule(trace: Trace, node: Node) -> Node | None:
    """The batch of an op that scales its operand; None where the general rules are as good."""
    rule = RULES.get(node.op.key)
    if rule is None and "reshapes" in node.op.properties:
        rule = _reshaped
    return None if rule is None else rule(trace, node)


def _kept(trace: Trace, found: Scaled, shape: tuple[int, ...]) -> Node:
    """The node of a scaled batch, which is computed only when somebody reads it as it is."""
    base, scale = found
    if base is None:
        unit = F.diag_embed(F.reshape(_spread(scale, shape), (trace.size,)))
        dense = F.reshape(unit, (trace.size, *shape))
    else:
        dense = F.mul(base, scale)
    trace.scaled[dense] = found
    return dense


def _spread(scale: Node, shape: tuple[int, ...]) -> Node:
    return scale if scale.shape == shape else F.expand(scale, shape)


def _found(trace: Trace, x: Node) -> Scaled:
    """The batch of an operand; one that is no product is its own base."""
    batch = trace.memo[x]
    return trace.scaled.get(batch) or Scaled(batch, number(1.0, x.dtype))


# -- elementwise -----------------------------------------------------------------------------------


def _product(trace: Trace, node: Node) -> Node | None:
    """Ops that are linear in the one operand that is a batch, the first or any."""
    batched = [x for x in node.inputs if x in trace.memo]
    if len(batched) != 1 or (node.op.key == "div" and node.inputs[0] is not batched[0]):
        return None
    return _applied(trace, node, batched)


def _sum(trace: Trace, node: Node) -> Node | None:
    """Ops that are linear in all operands together, which have one base."""
    batched = [x for x in node.inputs if x in trace.memo]
    return _applied(trace, node, batched) if len(batched) == len(node.inputs) else None


def _choice(trace: Trace, node: Node) -> Node | None:
    """A choice among batches of one base and zeros."""
    condition, *sides = node.args
    batched = [x for x in sides if x in trace.memo]
    if condition in trace.memo or any(x not in batched and uniform(x) != 0 for x in sides):
        return None
    return _applied(trace, node, batched)


def _applied(trace: Trace, node: Node, batched: list[Node]) -> Node | None:
    """The op applied to the scales."""
    found = {x: _found(trace, x) for x in batched}
    bases = {scaled.base for scaled in found.values()}
    if len(bases) != 1 or any(x.shape != node.shape or x.dtype != node.dtype for x in batched):
        return None
    args = [found[x].scale if x in found else x for x in node.args]
    return _kept(trace, Scaled(bases.pop(), node.op.apply(args)), node.shape)


# -- shapes ----------------------------------------------------------------------------------------


def _reshaped(trace: Trace, node: Node) -> Node | None:
    x = node.inputs[0]
    base, scale = _found(trace, x)
    if base is not None:
        return None
    return _kept(trace, Scaled(None, F.reshape(_spread(scale, x.shape), node.shape)), node.shape)


def _total(trace: Trace, node: Node) -> Node | None:
    """The sum over all dims, or over those in front."""
    x = node.inputs[0]
    base, scale = _found(trace, x)
    if base is not None or (node.numel != 1 and not _sums_in_front(node, x)):
        return None
    apart = F.reshape(_spread(scale, x.shape), (-1, node.numel))
    return F.reshape(F.diag_embed(apart), (trace.size, *node.shape))


def _sums_in_front(node: Node, x: Node) -> bool:
    return node.op.key == "summed_to" and node.shape == x.shape[x.ndim - node.ndim :]


# -- products of matrices --------------------------------------------------------------------------


def _matmul(trace: Trace, node: Node) -> Node | None:
    a, b = node.args
    if a in trace.memo and b not in trace.memo and b.ndim <= 2:
        return _left(trace, a, b)
    if b in trace.memo and a not in trace.memo and a.ndim <= 2:
        return _right(trace, node, a, b)
    return None


def _left(trace: Trace, batch: Node, other: Node) -> Node | None:
    """A batch times a matrix that is the same for all examples: the smaller one is scaled."""
    base, scale = _found(trace, batch)
    scale = _spread(scale, batch.shape)
    if batch.ndim == 1:
        rows = F.mul(other, F.unsqueeze(scale, 1) if other.ndim == 2 else scale)
        return rows if base is None else _smaller(base, rows)
    if base is not None or other.ndim == 1:
        return None
    # Each row of an example has the matrix to itself: blocks on a diagonal.
    k, m = other.shape
    parts = F.mul(F.reshape(scale, (-1, k, 1)), other)
    blocks = F.diag_embed(F.permute(parts, (1, 2, 0)), 0, 0, 2)
    return F.reshape(blocks, (trace.size, *batch.shape[:-1], m))


def _right(trace: Trace, node: Node, other: Node, batch: Node) -> Node | None:
    """A matrix that is the same for all examples times a batch."""
    base, scale = _found(trace, batch)
    scale = _spread(scale, batch.shape)
    if batch.ndim == 1:
        rows = F.mul(other, scale)
        rows = rows if other.ndim == 1 else transposed(rows)
        return rows if base is None else _smaller(base, rows)
    if base is not None or batch.ndim != 2 or other.ndim != 2:
        return None
    parts = F.mul(F.unsqueeze(transposed(other), 2), F.unsqueeze(scale, 1))
    blocks = F.diag_embed(parts, 0, 1, 3)
    return F.reshape(blocks, (trace.size, *node.shape))


def _smaller(base: Node, rows: Node) -> Node | None:
    return F.matmul(base, rows) if rows.numel <= base.numel else None


RULES: dict[str, Callable[[Trace, Node], Node | None]] = {
    "mul": _product,
    "div": _product,
    "neg": _product,
    "add": _sum,
    "sub": _sum,
    "where": _choice,
    "sum": _total,
    "summed_to": _total,
    "matmul": _matmul,
}
