"""Losses as sums of products, from the losses of all elements to their mean."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from ...graph.node import Node, Shape
from ...graph.op import value_of
from ..terms import NoFormula, Sum, function, number_of

if TYPE_CHECKING:
    from ..reading import Reader


def cross_entropy(reader: Reader, node: Node, p: Node, target: Node, *args: Any) -> Sum:
    """`-(y * log(p) + (1 - y) * log(1 - p))`."""
    algebra, shape = reader.algebra, node.shape
    found = []
    for p_sum, y in zip(_both(reader, p, shape), _both(reader, target, shape), strict=True):
        logarithm = function(algebra, "log", p_sum)
        found.append(algebra.scaled(algebra.multiplied(y, logarithm, shape), -1.0))
    return algebra.added(*found)


def _both(reader: Reader, node: Node, shape: Shape) -> tuple[Sum, Sum]:
    """A probability, and that of the opposite."""
    p = reader.algebra.stretched(reader.of(node), shape)
    one = reader.algebra.number(1.0, shape)
    return p, reader.algebra.added(one, reader.algebra.scaled(p, -1.0))


def _averaged(reader: Reader, losses: Sum, reduction: str) -> Sum:
    """A loss from the losses of all elements."""
    if reduction == "none":
        return losses
    axes = tuple(range(len(losses.shape)))
    total = reader.algebra.reduced(losses, axes)
    if reduction != "mean":
        return total
    count = reader.count(losses, axes)
    if count is not None:
        return reader.algebra.multiplied(total, count, ())
    return reader.algebra.scaled(total, 1 / prod(losses.shape))


def logistic_loss(reader: Reader, node: Node, score: Node, target: Node, *args: Any) -> Sum:
    """`softplus(z) - y * z`."""
    if any(isinstance(a, Node) for a in args):
        raise NoFormula(node)
    algebra, shape = reader.algebra, score.shape
    z = reader.of(score)
    product = algebra.multiplied(z, reader.of(target), shape)
    losses = algebra.added(
        function(algebra, "nn.functional.softplus", z), algebra.scaled(product, -1.0)
    )
    return _averaged(reader, losses, next(a for a in args if isinstance(a, str)))


def nll_loss(
    reader: Reader, node: Node, scores: Node, classes: Node, weight: Node | None, ignored: int,
    reduction: str, *_: Any,
) -> Sum:  # fmt: skip
    """Minus the score of every row's class, times the weight of the class; the mean is that
    by weight."""
    if scores.ndim > 2:
        raise NoFormula(node)
    algebra, shape, rows = reader.algebra, scores.shape, classes.shape
    axis = len(rows)
    hot = reader.one_hot(classes, shape[axis])
    losses = algebra.reduced(algebra.multiplied(reader.of(scores), hot, shape), (axis,))
    losses = algebra.scaled(losses, -1.0)
    share = algebra.number(1.0, rows)
    if weight is not None:
        own = algebra.stretched(reader.of(weight), shape)
        share = algebra.reduced(algebra.multiplied(hot, own, shape), (axis,))
    if ignored != -100 and not none_ignored(classes, ignored):
        number = algebra.number(float(ignored), rows)
        kept = reader.gate("ne", reader.of(classes), number)
        share = algebra.multiplied(kept, share, rows)
    losses = algebra.multiplied(share, losses, rows)
    if reduction != "mean" or number_of(share) == 1:
        return _averaged(reader, losses, reduction)
    every = tuple(range(axis))
    total, count = (algebra.reduced(x, every) for x in (losses, share))
    return algebra.multiplied(total, algebra.raised(count, -1.0), ())


def xlogy(reader: Reader, node: Node, left: Node, right: Node) -> Sum:
    logarithm = function(reader.algebra, "log", reader.of(right))
    return reader.algebra.multiplied(reader.of(left), logarithm, node.shape)


def none_ignored(classes: Node, ignored: float | None) -> bool:
    """Whether no class is `ignore_index`, which none can be."""
    if classes.inputs or classes.dtype.kind != "i" or ignored is None or ignored >= 0:
        return False
    return bool((value_of(classes) >= 0).all())


LOSSES: dict[str, Callable[..., Sum]] = {
    "binary_cross_entropy_with_logits": logistic_loss, "nll_loss": nll_loss,
    "nll_loss_reduced": nll_loss, "bce": cross_entropy, "xlogy": xlogy,
}  # fmt: skip
