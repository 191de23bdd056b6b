"""One representative for nodes that are equal, so that a plan computes each value once.

`representatives` is a pure function of a planned order: composites stand for their bodies, equal
applications are merged (random draws never), factors of one and changes of shape to the same shape
fall away. Every replacement is bit-equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from types import MappingProxyType
from typing import Any

import numpy as np

from ..graph import op as ops
from ..graph.kinds import Kind
from ..graph.node import Node

# Numbers whose value a plan may depend on; any other constant is an input like other arrays.
SPECIAL = frozenset({0, 1, 2, 3, -1, -2, 0.5, -0.5})

# The operand at this place may be 1 without effect.
UNITS: dict[Any, tuple[int, ...]] = {np.multiply: (0, 1), np.true_divide: (1,), np.divide: (1,)}


def special(node: Node) -> Any:
    """The value of a number a plan may depend on, else None."""
    if node.op is ops.CONSTANT and not node.shape and node.args and node.value is not None:
        value = node.args[0]
        if value in SPECIAL:
            return value
    return None


def representatives(
    order: list[Node], alike: Mapping[Node, Node] = MappingProxyType({})
) -> tuple[dict[Node, Node], list[Node]]:
    """For each node of the order the one that is computed in its place, and those, in order;
    `alike`: for nodes that are given, one that is equal."""
    chosen = dict(alike)
    seen: dict[Any, Node] = {}
    computed: list[Node] = []
    for node in order:
        other = _replacement(node, chosen)
        if other is None:
            key = _identity(node, chosen)
            if key is not None:
                other = seen.setdefault(key, node)
                if other is node:
                    other = None
        if other is None:
            chosen[node] = node
            computed.append(node)
        else:
            chosen[node] = other
    return chosen, computed


def _replacement(node: Node, chosen: dict[Node, Node]) -> Node | None:
    """The node of the same value that is there already."""
    body = node.body
    if body is not None:
        return chosen.get(body, body) if type(body) is not tuple else None
    op = node.op
    if op is ops.LEAF:
        return chosen.get(node.inputs[0], node.inputs[0])
    if op is ops.OUTPUT:
        parent, index = node.args
        if parent.body is None:
            return None
        inner = parent.body[index]  # which nothing computes where the parent has a value
        return chosen.get(inner, inner if parent.value is None else None)
    units = UNITS.get(op.kernel)
    if units is not None:
        for at in units:
            other = node.args[1 - at]
            if (
                other.shape == node.shape
                and other.dtype == node.dtype
                and uniform(node.args[at]) == 1
            ):
                return chosen.get(other, other)
    elif "reshapes" in op.properties or "expands" in op.properties:
        x = node.inputs[0]
        if x.shape == node.shape:
            return chosen.get(x, x)
    return None


def uniform(node: Node) -> Any:
    """The special number that every element is, else None."""
    while node.inputs and node.body is None and node.value is None:
        properties = node.op.properties
        if "reshapes" not in properties and "expands" not in properties:
            return None
        node = node.inputs[0]
    return special(node)


def _identity(node: Node, chosen: dict[Node, Node]) -> Any:
    """What equal applications have in common; None for those that are never merged."""
    given = node.op.kind is Kind.SOURCE and node.op is not ops.OUTPUT
    if given or type(node.body) is tuple:
        return None

    def own(x: Node) -> Node:
        return chosen.get(x, x)

    args, inputs = node.args, node.inputs  # one tuple, or two of the same nodes
    alike = args is inputs or (len(args) == len(inputs) and all(map(is_, args, inputs)))
    if alike and not node.op.eager:
        return (node.op, *[chosen.get(x, x) for x in args])
    try:
        key = (node.op, node.shape, node.dtype, *[static_key(arg, own) for arg in node.args])
        hash(key)
    except TypeError:
        return None
    return key


def static_key(arg: Any, of_node: Callable[[Node], Any]) -> Any:
    """An argument of an op as part of a key, nodes as `of_node` says."""
    kind = type(arg)
    if kind is Node:
        return of_node(arg)
    if kind is tuple:
        return tuple([static_key(part, of_node) for part in arg])
    # 1, 1.0 and True are equal and mean different things; so are 0.0 and -0.0
    return (kind, repr(arg)) if kind is float else (kind, arg)
