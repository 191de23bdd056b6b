"""Binary operators become closures: tensors and numbers go straight to the op, all else to
`operations.binary`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import AutodiffError
from ...graph.node import Node
from ...graph.op import Op, number
from ...graph.registry import F
from ...graph.state import STATE
from ..errors.operand_labels import placed_operator
from ..syntax import tree as syntax
from ..values.operations import binary
from ..values.python_operators import BINARY
from ..values.values import Scope
from .expressions import Context, compile_expression

Run = Callable[[Scope], Any]

# Operators whose op takes two tensors or numbers as they are; others have meanings to look at.
DIRECT = frozenset({"add", "sub", "mul", "div"})


def compile_binary(tree: syntax.BinOp, context: Context) -> Run:
    """Compile an operator; a chain (`a + b + c ...`) becomes a loop, so that it may be long."""
    chain: list[syntax.BinOp] = []
    left: syntax.Node = tree
    while type(left) is syntax.BinOp:
        chain.append(left)
        left = left.left
    first = compile_expression(left, context)
    steps = [
        (_applier(node), compile_expression(node.right, context), node) for node in reversed(chain)
    ]

    def run(scope: Scope) -> Any:
        value = first(scope)
        for apply, right_run, node in steps:
            right = right_run(scope)
            STATE.span = node.span
            try:
                value = apply(value, right)
            except AutodiffError as error:
                raise placed_operator(error, node, value, right) from None
        return value

    return run


def _applier(tree: syntax.BinOp) -> Callable[[Any, Any], Any]:
    """`apply(left, right)` of one operator."""
    symbol = tree.op
    key = BINARY[symbol][0]
    if key == "matmul":
        return _product
    if key not in DIRECT:
        return lambda left, right: binary(symbol, left, right)
    op: Op | None = None

    def apply(left: Any, right: Any) -> Any:
        nonlocal op
        kind, other = type(left), type(right)
        if kind is Tensor:
            x: Node = left._node if left.storage is None else left.node
            if other is Tensor:
                y: Node = right._node if right.storage is None else right.node
            elif other is float or other is int:
                y = number(right)
            else:
                return binary(symbol, left, right)
        elif other is Tensor and (kind is float or kind is int) and key != "div":
            x, y = number(left), right.node
        else:
            return binary(symbol, left, right)
        if op is None:
            op = getattr(F, key)
        return Tensor(op.pair(x, y))

    return apply


def _product(left: Any, right: Any) -> Any:
    if type(left) is Tensor and type(right) is Tensor and left.tag is None:
        return Tensor(F.matmul(left.node, right.node))
    return binary("@", left, right)
