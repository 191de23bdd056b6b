"""Index tensors for a batch of examples: the number of the example is one more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph.node import Node
from ...graph.op import constant
from ...graph.registry import F

if TYPE_CHECKING:
    from .examples import Trace


def aligned(x: Node, own: int, ndim: int) -> Node:
    """A batch of examples of `own` dims with dims of size 1 after the first, for broadcasting."""
    if own == ndim:
        return x
    return F.reshape(x, (x.shape[0], *(1,) * (ndim - own), *x.shape[1:]))


def _examples(size: int, ndim: int) -> Node:
    """The number of each example, against index tensors of `ndim` dims."""
    return constant(np.arange(size).reshape(size, *(1,) * ndim))


def _layout(ndim: int, indices: tuple[Any, ...], picked: int) -> tuple[list[int], list[int]]:
    """Indexed dims come first: the order of the dims of a batch for that, and the order that brings
    the result, (examples, picked dims, other dims), to where indexing one example puts them."""
    used = [d for d, x in enumerate(indices) if x is not None]
    rest = [d for d in range(ndim) if d not in used]
    adjacent = used == list(range(used[0], used[-1] + 1))
    first = used[0] if adjacent else 0
    order = [0, *(d + 1 for d in used), *(d + 1 for d in rest)]
    back = [
        0,
        *(1 + picked + d for d in range(first)),
        *range(1, 1 + picked),
        *(1 + picked + d for d in range(first, len(rest))),
    ]
    return order, back


def _pick_batches(trace: Trace, indices: tuple[Node | None, ...]) -> tuple[dict[int, Node], int]:
    """The index tensors for all examples, with as many dims, and how many those are."""
    picked = max(x.ndim for x in indices if x is not None)
    found: dict[int, Node] = {}
    for d, x in enumerate(indices):
        if x is not None:
            batch = trace.memo.get(x)
            found[d] = x if batch is None else aligned(batch, x.ndim, picked)
    return found, picked


def index(trace: Trace, node: Node) -> Any:
    """`x[i, j]`."""
    input, indices = node.args
    picks, picked = _pick_batches(trace, indices)
    order, back = _layout(input.ndim, indices, picked)
    x = F.permute(trace.full(input), tuple(order))
    chosen = F.index.apply([x, (_examples(trace.size, picked), *picks.values())])
    return F.permute(chosen, tuple(back))


def index_written(trace: Trace, node: Node) -> Any:
    """`x[i, j] = values`, or `+=`."""
    input, indices, values, accumulate = node.args
    picks, picked = _pick_batches(trace, indices)
    order, back = _layout(input.ndim, indices, picked)
    x = F.permute(trace.full(input), tuple(order))
    lead = [np.zeros(n.shape, np.int8) for n in indices if n is not None]
    picked_shape = np.broadcast_shapes(*(a.shape for a in lead))
    rest = [input.shape[d - 1] for d in order[1 + len(picks) :]]
    shape = (trace.size, *picked_shape, *rest)
    written = trace.full(values)
    target = [shape[d] for d in back]
    written = F.expand(aligned(written, values.ndim, len(target) - 1), tuple(target))
    written = F.permute(written, _inverse(back))
    key = (_examples(trace.size, picked), *picks.values())
    result = F.index_written.apply([x, key, written, accumulate])
    return F.permute(result, _inverse(order))


def _inverse(order: list[int]) -> tuple[int, ...]:
    places = [0] * len(order)
    for at, d in enumerate(order):
        places[d] = at
    return tuple(places)


def embedding(trace: Trace, node: Node) -> Any:
    """Rows of one table for all examples."""
    weight, indices, *rest = node.args
    if weight in trace.memo:
        return None
    return node.op.apply([weight, trace.full(indices), *rest])
