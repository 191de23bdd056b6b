"""The structure of what is to be computed, as a key: equal keys have equal plans.

Values are not part of it, except the few numbers a plan may depend on; arrays from outside are
numbered in the order in which the nodes read them.
"""

from __future__ import annotations

from typing import Any

from ..graph import op as ops
from ..graph.node import Node
from ..transform.simplify import special


def structure(order: list[Node], targets: list[Node]) -> tuple[Any, list[Node]] | None:
    """The key of a planned order and the nodes from outside that it reads; None where an
    argument cannot be part of a key."""
    number: dict[Node, Any] = {}
    outside: list[Node] = []
    parts: list[Any] = []

    def place(node: Node) -> Any:
        found = number.get(node)
        if found is None:
            at = len(outside)
            outside.append(node)
            found = number[node] = (
                -1 - at, node.shape, node.dtype, special(node), node.value.__class__
            )  # fmt: skip
        return found

    def argument(arg: Any) -> Any:
        kind = type(arg)
        if kind is Node:
            return place(arg)
        if kind is tuple:
            return tuple([argument(part) for part in arg])
        if kind is slice:
            return "slice", arg.start, arg.stop, arg.step
        return (kind, repr(arg)) if kind is float else (kind, arg)

    for at, node in enumerate(order):
        body = node.body
        if body is not None:
            inner = tuple([place(n) for n in body]) if type(body) is tuple else place(body)
            parts.append(inner)
        elif node.op is ops.LEAF:
            parts.append(place(node.inputs[0]))
        elif node.inputs is node.args:
            parts.append((node.op, *[place(x) for x in node.args]))
        else:
            parts.append((node.op, node.shape, node.dtype, *[argument(arg) for arg in node.args]))
        number[node] = at
    key = (tuple(parts), tuple([place(node) for node in targets]))
    try:
        hash(key)
    except TypeError:
        return None
    return key, outside
