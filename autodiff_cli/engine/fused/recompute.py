"""Which values a later group computes again rather than reads from memory.

A cheap pointwise value costs less in cache than writing it to memory and reading it back, as long
as no more is read for it than itself. Results of exp, log, tanh, divisions and matrix products are
stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.node import Node
from .groups import POINTWISE, Grouping, lead_length
from .writer import COSTS, DEFAULT

CHEAP = 0.36  # nanoseconds an element, see COSTS
DEEPEST = 4  # cheap operations on the way from what is stored


def computed_again(living: list[Node], grouping: Grouping, targets: list[Node]) -> set[Node]:
    """The nodes that groups which read them compute themselves."""
    stored = {grouping.chosen.get(node, node) for node in targets}
    readers: dict[Node, list[Node]] = {}
    for node in living:
        group = grouping.of.get(node)
        for x in grouping.inputs(node):
            made_in = grouping.of.get(x)
            if made_in is None or made_in is group:
                continue
            if group is None or x in made_in.partials:
                stored.add(x)
            else:
                readers.setdefault(x, []).append(node)
    again: set[Node] = set()
    for x in living:
        if x not in readers or x in stored:
            continue
        way = _way(x, DEEPEST, grouping, stored)
        if way is not None and all(
            _rows_read(reader, x)
            and all(_fits(node, grouping, grouping.of[reader].lead) for node in way[0])
            for reader in readers[x]
        ):
            again |= way[0]
        else:
            stored.add(x)
    return again


def _way(
    x: Node, depth: int, grouping: Grouping, stored: set[Node]
) -> tuple[set[Node], set[Node]] | None:
    """The operations to compute again for `x`, and the tensors of its size that they read; None
    where it is not worth it."""
    if x.op.kind is not POINTWISE or not depth:
        return None
    kernel: Any = x.op.kernel
    if not isinstance(kernel, np.ufunc) or COSTS.get(kernel, DEFAULT) > CHEAP:
        return None
    nodes = {x}
    reads: set[Node] = set()
    for y in grouping.inputs(x):
        group = grouping.of.get(y)
        if group is None or y in stored or y in group.partials:
            if y.numel == x.numel:
                reads.add(y)
            continue
        way = _way(y, depth - 1, grouping, stored)
        if way is None or not _rows_read(x, y):
            return None
        nodes |= way[0]
        reads |= way[1]
    return (nodes, reads) if len(reads) <= 1 else None


def _rows_read(reader: Node, x: Node) -> bool:
    """Whether rows of the reader need the same rows of `x`: an operand with fewer dims is
    repeated for all rows."""
    return reader.op.kind is not POINTWISE or len(x.shape) == len(reader.shape)


def _fits(node: Node, grouping: Grouping, lead: tuple[int, ...]) -> bool:
    """Whether a node can be computed in tiles of this lead."""
    return node.shape[: len(lead)] == lead and lead_length(
        node, grouping.inputs(node), lead, set()
    ) == len(lead)
