"""Fusion groups: which nodes of a plan run together, tile by tile over their leading dims.

A group has a `lead`, the leading dims that its nodes share; a tile is a range of rows of the
flattened lead. Pointwise nodes, reductions of the other dims, and changes of shape behind the lead
stay inside a tile. A reduction over the lead is a partial result of each tile, put together when
the group is done; whoever reads it comes later.

Constraints only ever shorten the lead, so a group is built in one pass over the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from ...graph.kinds import Kind
from ...graph.node import Node, Shape

FUSE_FROM = 16_384  # elements; below that a call costs more than the memory it saves
ROW_LIMIT = 65_536  # elements behind the lead that a tile must hold
FEWEST_ROWS = 16  # in a tile, when its partial results are arrays

POINTWISE, REDUCTION, MOVEMENT = Kind.POINTWISE, Kind.REDUCTION, Kind.MOVEMENT


class Group:
    """Nodes that run together; `partials` are those reduced over the lead."""

    __slots__ = ("after", "index", "lead", "members", "partials", "widest")

    def __init__(self, index: int, lead: Shape):
        self.index = index
        self.lead = lead
        self.members: dict[Node, None] = {}
        self.partials: set[Node] = set()
        self.widest = 1
        self.after = 0

    @property
    def rows(self) -> int:
        return prod(self.lead)


class Grouping:
    """The groups of a plan: `of` a node its group. `after` has a bit for each group that must be
    complete before a node without a group can run."""

    def __init__(self, computed: list[Node], chosen: dict[Node, Node]):
        self.groups: list[Group] = []
        self.of: dict[Node, Group] = {}
        self.again: set[Node] = set()  # computed again where they are read (see `recompute`)
        self.after: dict[Node, int] = {}
        self._readers: dict[Node, Group] = {}
        self.chosen = chosen
        for node in computed:
            self._place(node)

    def inputs(self, node: Node) -> list[Node]:
        """Return the nodes that a node reads, each replaced by the one computed in its place."""
        chosen = self.chosen
        return [chosen.get(x, x) for x in node.inputs]

    def _place(self, node: Node) -> None:
        inputs = self.inputs(node)
        if fits(node):
            for group in self._candidates(inputs):
                lead = self._joined(group, node, inputs)
                if lead:
                    self._join(group, node, inputs, lead)
                    return
            lead = self._start(node, inputs)
            if lead:
                group = Group(len(self.groups), lead)
                self.groups.append(group)
                self._join(group, node, inputs, lead)
                return
        self.after[node] = self._after(inputs)

    def _after(self, inputs: list[Node], own: Group | None = None) -> int:
        """The bits of the groups that what a node reads comes from, but for its own."""
        after = 0
        for x in inputs:
            after |= self.after.get(x, 0)
            group = self.of.get(x)
            if group is not None and group is not own:
                after |= 1 << group.index
        return after

    def _candidates(self, inputs: list[Node]) -> list[Group]:
        found: dict[int, Group] = {}
        for x in inputs:
            group = self.of.get(x)
            if group is None or x in group.partials:
                group = self._readers.get(x)
            if group is not None:
                found[group.index] = group
        return [found[index] for index in sorted(found, reverse=True)]

    def _joined(self, group: Group, node: Node, inputs: list[Node]) -> Shape:
        """The lead after joining, or () when the node cannot join."""
        bit = 1 << group.index
        if any(x in group.partials for x in inputs):
            return ()
        after = self._after(inputs, group)
        if after & bit or self._reaches(after & ~group.after, bit):
            return ()
        own = {x for x in inputs if self.of.get(x) is group}
        lead = group.lead[: lead_length(node, inputs, group.lead, own)]
        if not lead:
            return ()
        rows = prod(lead)
        widest = max(group.widest * (group.rows // rows), _width(node, inputs, rows))
        partials = [*group.partials, node] if is_partial(node, len(lead)) else group.partials
        return lead if rows > 1 and _holds(widest, partials) else ()

    def _reaches(self, after: int, bit: int) -> bool:
        """Whether one of the groups in `after` comes after the group of `bit`."""
        seen = 0
        while after & ~seen:
            rest = after & ~seen
            seen |= rest
            while rest:
                low = rest & -rest
                rest ^= low
                group = self.groups[low.bit_length() - 1]
                if group.after & bit:
                    return True
                after |= group.after
        return False

    def _start(self, node: Node, inputs: list[Node]) -> Shape:
        """The lead of a group that begins with this node, or ()."""
        if node.op.kind is MOVEMENT and "elementwise" not in node.op.properties:
            return ()
        shape = inputs[0].shape if reduces(node) else node.shape
        if prod(shape) < FUSE_FROM:
            return ()
        lead = shape[: lead_length(node, inputs, shape, set())]
        rows = prod(lead)
        partials = [node] if is_partial(node, len(lead)) else []
        return lead if rows > 1 and _holds(prod(shape) // rows, partials) else ()

    def _join(self, group: Group, node: Node, inputs: list[Node], lead: Shape) -> None:
        after = self._after(inputs, group)
        for x in inputs:
            if self.of.get(x) is not group:
                self._readers[x] = group
        rows = prod(lead)
        group.widest = max(group.widest * (group.rows // rows), _width(node, inputs, rows))
        group.lead = lead
        group.members[node] = None
        group.after |= after
        self.of[node] = group
        if is_partial(node, len(lead)):
            group.partials.add(node)


def _holds(width: int, partials: Iterable[Node]) -> bool:
    """Whether a tile holds rows of so many elements, and some more where partial results are
    arrays."""
    least = FEWEST_ROWS if any(partial.numel > 1 for partial in partials) else 1
    return width <= ROW_LIMIT // least


def _width(node: Node, inputs: list[Node], rows: int) -> int:
    shape = inputs[0].shape if reduces(node) else node.shape
    return max(1, prod(shape) // rows)


def fits(node: Node) -> bool:
    """Whether a node may be part of a group at all."""
    op = node.op
    if node.outputs is not None or node.body is not None:
        return False
    if op.kind is POINTWISE:
        return True
    if op.kind is REDUCTION:
        return "partial" in op.properties
    return not op.properties.isdisjoint(INSIDE)


INSIDE = frozenset({"reshapes", "expands", "sums", "slicewise", "elementwise"})


def reduces(node: Node) -> bool:
    """Whether a node is a reduction, by kind or by declaration."""
    return node.op.kind is REDUCTION or "sums" in node.op.properties


def reduced_dims(node: Node) -> tuple[int, ...]:
    """The dims of its input that a reduction takes away, ascending."""
    shape = node.inputs[0].shape
    if "sums" in node.op.properties:
        offset = len(shape) - len(node.shape)
        kept = node.shape
        return tuple(
            i for i in range(len(shape)) if i < offset or (kept[i - offset] == 1 and shape[i] != 1)
        )
    dims: Any = node.args[1]
    if dims is None or dims == ():
        return tuple(range(len(shape)))
    return tuple(sorted(dims)) if type(dims) is tuple else (dims,)


def is_partial(node: Node, lead: int) -> bool:
    """Whether a reduction takes the lead away."""
    if not reduces(node):
        return False
    dims = reduced_dims(node)
    return bool(dims) and dims[0] < lead


def common_prefix(a: Shape, b: Shape) -> int:
    """How many leading dims are equal."""
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n


def lead_length(node: Node, inputs: list[Node], lead: Shape, own: set[Node]) -> int:
    """How many leading dims of `lead` a tile may run over when the node is inside; 0 for none.

    `own` are the inputs made in the same tile: they must be cut as the node is.
    """
    op = node.op
    if reduces(node):
        return _of_reduction(node, common_prefix(inputs[0].shape, lead))
    if op.kind is POINTWISE or "elementwise" in op.properties or "expands" in op.properties:
        length = common_prefix(node.shape, lead)
        for x in inputs:
            if x not in own:
                length = _of_operand(x.shape, node.shape, length)
            elif len(x.shape) != len(node.shape):
                return 0
            else:
                length = min(length, common_prefix(x.shape, node.shape))
        return length
    if "reshapes" in op.properties:
        return min(common_prefix(node.shape, lead), common_prefix(inputs[0].shape, lead))
    dim = node.args[op.index["dim"]]  # slicewise
    length = min(dim, common_prefix(node.shape, lead))
    for x in inputs:
        length = min(length, common_prefix(x.shape, lead))
    return length


def _of_operand(shape: Shape, full: Shape, length: int) -> int:
    """An operand is cut like the result (equal leading dims) or not at all (1 there)."""
    if shape == full:
        return length
    padded = (1,) * (len(full) - len(shape)) + shape
    ones = 0
    while ones < len(full) and padded[ones] == 1:
        ones += 1
    same = common_prefix(shape, full) if len(shape) == len(full) else 0
    return min(length, max(same, ones))


def _of_reduction(node: Node, length: int) -> int:
    dims = reduced_dims(node)
    run = common_prefix(dims, tuple(range(len(dims))))
    if run or not dims:
        return min(length, run)
    return min(length, dims[0])
