"""The structure of what is to be computed, as a key: equal keys have equal plans.

Values are not part of it, except the few numbers a plan may depend on; arrays from outside are
numbered in the order in which the nodes read them. Shapes and dtypes of most nodes follow from
those of what they read.
"""

from __future__ import annotations

from typing import Any

from ...graph import op as ops
from ...graph.kinds import Kind
from ...graph.node import Node
from ...graph.state import STATE
from ...transform.simplify import special, static_key

LEAF = ops.LEAF
FREE = frozenset({Kind.OPAQUE, Kind.MOVEMENT})


def structure(order: list[Node], targets: list[Node]) -> tuple[Any, list[Node]] | None:
    """The key of a planned order and the nodes from outside that it reads; None where an
    argument cannot be part of a key or a shape depends on values."""
    number: dict[Node, int] = {}
    known = number.get
    outside: list[Node] = []
    parts: list[Any] = []
    add = parts.append

    def place(node: Node) -> int:
        at = known(node)
        if at is None:
            outside.append(node)
            at = number[node] = -len(outside)
        return at

    for at, node in enumerate(order):
        op = node.op
        body = node.body
        if body is not None:
            add("body")
            for part in body if type(body) is tuple else (body,):
                add(place(part))
        elif op is LEAF:
            add("leaf")
            add(place(node.inputs[0]))
        else:
            add(op)
            if op.kind in FREE:  # shapes of these may depend on values
                add(node.shape if node.outputs is None else node.outputs)
            if node.inputs is node.args and not op.eager:
                for x in node.args:
                    found = known(x)
                    add(place(x) if found is None else found)
            else:
                if op.eager:
                    return None
                for arg in node.args:
                    add(static_key(arg, lambda node: ("node", place(node))))
        number[node] = at
    add("wanted")
    for node in targets:
        add(place(node))
    for node in outside:
        add(node.shape)
        add(node.dtype.num)
        if not node.shape:
            value = special(node)
            add(value or repr(value))  # 0.0 and -0.0 are equal
        if type(node.value) is tuple:
            return None
    key = (STATE.default_dtype.num, *parts)
    try:
        hash(key)
    except TypeError:
        return None
    return key, outside
