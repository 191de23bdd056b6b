"""Tensors of inference mode: outside of it no backward function may save them."""

from __future__ import annotations

from ..errors import fault
from ..graph.node import Node
from ..graph.op import CAST, OUTPUT
from ..graph.state import STATE
from ..graph.walk import bodies, walk
from .overwritten import declared
from .rules import parents, read_by
from .tensor import made_in_inference


def check_inferred(result: Node) -> None:
    """E407 where a new result, or a node that led to it, has saved an inference tensor."""
    if STATE.inference:
        return

    def behind(node: Node) -> tuple[Node, ...]:
        return parents(node) if node is result or node.handle is None else ()

    for node in walk([result], behind):
        looked = node.requires_grad and any(map(_inferred, node.inputs))
        if looked and any(map(_inferred, [*read(node), *declared(node)])):
            raise fault("E407 inference-tensor-cannot-saved", node.op)


def read(node: Node) -> list[Node]:
    """Return the nodes that the gradient of a node reads; of a composite the operands that its body
    reads from."""
    if node.op is OUTPUT or "own saving" in node.op.properties:
        return []
    if node.grad_name == "NotImplemented" or (node.marks is not None and node.marks.freed):
        return []
    if node.op.vjp_rule is not None:
        return read_by(node)
    body = walk(bodies(node), parents, node.inputs)
    steps = (part for part in body if part.op.vjp_rule is not None and part.op is not OUTPUT)
    reads = [each for part in steps for each in read_by(part)]
    return list(walk(reads, lambda part: () if part in node.inputs else part.inputs))


def _inferred(node: Node) -> bool:
    """Whether the memory that a node shows was made in inference mode; numbers are no memory."""
    while not node.weak:
        handle = node.handle and node.handle()
        if handle is not None:
            return bool(handle.inferred)
        if not (node.op.view or (node.op is CAST and node.handle is None)):
            return made_in_inference(node)
        node = node.args[0]
    return False
