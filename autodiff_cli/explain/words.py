"""What a step's rule does, in a few words: declared with the op, else told by its kind."""

from __future__ import annotations

from typing import Any

from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import CAST
from ..graph.registry import overloads
from ..symbolic.writing.expression import FIRST, INFIX, Call, Left
from ..symbolic.writing.lets import parts

# What the printer itself writes.
HELPERS = frozenset(["ones", "zeros", "sum", "sum_to_size", *FIRST.values()])

# Kinds whose rules all do the same.
_KINDS = {
    Kind.REDUCTION: "each element gets its share of the upstream gradient",
    Kind.MOVEMENT: "each gradient goes back to where its element came from",
    Kind.CONTRACTION: "product rule of matrix products",
}


def sign_of(node: Node) -> str:
    """The operator of a node's op, or its name without the module."""
    op = node.op
    if op.key in INFIX:
        return INFIX[op.key][0]
    if op.key == "custom_function":
        return node.grad_name.removesuffix("Backward")
    return (
        "-" if op.key == "neg" else op.name.removeprefix("nn.functional.").removeprefix("linalg.")
    )


def rule_of(node: Node, opened: bool) -> str:
    """One phrase about the rule of a node; `opened` when its body answers."""
    op = node.op
    if op.phrase:
        return op.phrase
    if op.key == "custom_function":
        return "the backward of your own Function"
    if op is CAST:
        return "the gradient in the dtype of the operand"
    if opened:
        return "chain rule through its parts"
    if op.kind in _KINDS:
        return _KINDS[op.kind]
    if op.kind is Kind.POINTWISE:
        several = sum(x.requires_grad for x in node.inputs) > 1
        return "upstream times the slope by each operand" if several else "upstream times the slope"
    return f"the rule of {sign_of(node)}"


def through(nodes: list[Node]) -> str:
    """The ops of a step, the newest first, each once."""
    signs = list(dict.fromkeys(sign_of(node) for node in nodes))
    return ", ".join(signs[:5]) + (", ..." if len(signs) > 5 else "")


def readable(expression: Any) -> bool:
    """Whether all functions of an expression are ones that a program may call."""
    if isinstance(expression, Call):
        known = expression.function in HELPERS or bool(overloads(expression.function))
    else:
        known = not isinstance(expression, Left)
    return known and all(map(readable, parts(expression)))
