"""From graph to arrays: plan everything wanted together, run it in order, free what died.

`evaluate(targets)` is the only door; it leaves `node.value` set on the targets, on nodes that a
tensor handle still shows, and on what a later backward will read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import AutodiffError, fail
from ..graph import op as ops
from ..graph.node import Node
from ..graph.op import Kind, bytes_text
from ..graph.state import STATE


def evaluate(targets: list[Node]) -> None:
    """Compute `targets` and whatever they need, all in one pass."""
    order = plan(targets)
    if order:
        run(order, targets)


def dependencies(node: Node) -> tuple[Node, ...]:
    """The nodes whose values make this node's value: a composite's body, else its inputs."""
    body = node.body
    if body is None:
        return node.inputs
    return body if type(body) is tuple else (body,)


def plan(targets: list[Node]) -> list[Node]:
    """Unevaluated nodes that the targets need, in an order in which they can run."""
    pending = [node for node in targets if node.value is None]
    seen: set[Node] = set(pending)
    order: list[Node] = []
    while pending:
        node = pending.pop()
        order.append(node)
        for needed in dependencies(node):
            if needed.value is None and needed not in seen:
                seen.add(needed)
                pending.append(needed)
    order.sort(key=_sequence)
    return order


def _sequence(node: Node) -> int:
    return node.seq


def run(order: list[Node], targets: list[Node]) -> None:
    """Run nodes in order; afterwards drop the values that nobody will ask for."""
    uses: dict[Node, int] = {}
    for node in order:
        for needed in dependencies(node):
            uses[needed] = uses.get(needed, 0) + 1
    wanted = set(targets)
    held = 0
    limit = STATE.max_bytes
    with np.errstate(all="ignore"):
        for node in order:
            if (
                node.numel * node.dtype.itemsize > limit - held
                and node.op.kind is not Kind.MOVEMENT
            ):
                raise too_large(node)
            try:
                value = compute(node)
            except AutodiffError as error:
                if error.span is None:
                    error.amend(span=node.span)
                raise
            except MemoryError:
                raise too_large(node) from None
            node.value = value
            if type(value) is np.ndarray:
                held += value.nbytes
                if held > limit:
                    raise too_large(node)
            for needed in dependencies(node):
                left = uses[needed] - 1
                uses[needed] = left
                if not left and needed not in wanted and _is_dead(needed):
                    if type(needed.value) is np.ndarray and needed in uses:
                        held -= needed.value.nbytes
                    needed.value = None


def _is_dead(node: Node) -> bool:
    """Whether the value may go: it can be made again, no handle shows it, no backward reads it."""
    if node.requires_grad or (node.op.kind is Kind.SOURCE and node.op is not ops.OUTPUT):
        return False
    if "draw" in node.op.properties:
        return False
    handle = node.handle
    return handle is None or handle() is None


def compute(node: Node) -> Any:
    """The value of one node whose dependencies have values."""
    body = node.body
    if body is not None:
        return tuple(part.value for part in body) if type(body) is tuple else body.value
    op = node.op
    if op is ops.OUTPUT:
        return node.args[0].value[node.args[1]]
    if op is ops.LEAF:
        return node.inputs[0].value
    inputs = node.inputs
    args = node.args
    if inputs is args:
        value = op.kernel(*[x.value for x in inputs])  # type: ignore[misc]  # every such kind has one
    else:
        value = op.kernel(*[_argument(arg) for arg in args])  # type: ignore[misc]
    if node.outputs is None:
        return np.asarray(value) if isinstance(value, np.generic) else value
    return tuple(np.asarray(v) if isinstance(v, np.generic) else v for v in value)


def _argument(arg: Any) -> Any:
    kind = type(arg)
    if kind is Node:
        return arg.value
    if kind is tuple and arg and any(type(v) is Node for v in arg):
        return tuple(v.value if type(v) is Node else v for v in arg)
    return arg


def too_large(node: Node) -> AutodiffError:
    return fail(
        "E505",
        f"the tensors of this program need more than {bytes_text(STATE.max_bytes)}",
        node.span,
        help="use smaller shapes, or raise the limit: --max-memory 8G",
    )


def release(nodes: list[Node], since: int) -> None:
    """Let go of the history behind evaluated nodes that no gradient needs; nodes older than
    `since` were looked at before."""
    pending = list(nodes)
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node.seq < since or node in seen:
            continue
        seen.add(node)
        if node.value is not None and (not node.requires_grad or node.op is ops.LEAF):
            if node.op is ops.LEAF:
                node.args = (node.args[0], None)
            elif node.op is not ops.CONSTANT and node.outputs is None and node.op is not ops.OUTPUT:
                node.op = ops.CONSTANT
                node.args = ()
            else:
                continue
            node.inputs = ()
            node.body = None
        else:
            pending.extend(dependencies(node))


ops.LATE.evaluate = evaluate
