"""How losses are reduced: PyTorch's word for it, and the two flags that it had before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import fault
from ...graph.declare import composite, function
from ...graph.node import Node
from ...graph.op import Op
from ...graph.params import Param
from ...graph.registry import F


def reduction_of(reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """`reduction`, or what the two old flags say; E205 for an unknown word."""
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in ("none", "mean", "sum"):
        raise fault("E205 reduction-cannot-reduction", reduction)
    return reduction


def reduced(loss: Node, mode: str) -> Node:
    """The mean, the sum or all elements of a loss."""
    return F.mean(loss) if mode == "mean" else F.sum(loss) if mode == "sum" else loss


FLAGS = (
    Param("size_average", "Flag | None", None, False),
    Param("reduce", "Flag | None", None, False),
)


def _with_flags(make: Callable[..., Any]) -> Callable[..., Any]:
    """`function` or `composite` for losses: PyTorch's two old flags stand before `reduction`, and
    the body gets the word that all three mean."""

    def declare(**options: Any) -> Callable[[Callable[..., Any]], Op]:
        def decorate(body: Callable[..., Any]) -> Op:
            op: Op = make(**options)(body)
            at = op.index["reduction"]
            plain: Any = op.body
            op.declare_params((*op.params[:at], *FLAGS, *op.params[at:]))

            def told(*args: Any) -> Any:
                size_average, reduce, word = args[at : at + 3]
                mode = reduction_of(word, size_average, reduce)
                return plain(*args[:at], mode, *args[at + 3 :])

            op.body = told
            return op

        return decorate

    return declare


loss_function, loss_node = _with_flags(function), _with_flags(composite)
