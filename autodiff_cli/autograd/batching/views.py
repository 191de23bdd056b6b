"""Writing to views of a batch of tensors: the steps that lead there are the view op's batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...graph.node import Node
from ...graph.op import Op
from ...graph.registry import F
from ..handles import view_steps
from ..views import Step, written_through

if TYPE_CHECKING:
    from .examples import Trace


def shifted(op: Op, args: list[Any]) -> list[Any]:
    """Arguments whose dims leave room for one in front."""
    for at, param in enumerate(op.params):
        value = args[at]
        if param.annotation in ("Dim", "NewDim", "StaticDim"):
            args[at] = value + 1
        elif param.annotation in ("Dims", "DimList", "Order") and value is not None:
            args[at] = tuple(d + 1 for d in value)
    return args


def _lifted_steps(trace: Trace, base: Node, step: Step) -> tuple[Step, ...] | None:
    """How a view op looks at all examples of its operand; None where it copies."""
    op, rest, index = step
    example = trace.placeholder(base)
    found = op.apply([example, *rest])
    (lifted,) = trace.lift([found if index < 0 else found[index]])
    return None if lifted is None else view_steps(lifted, base)


def copy_slices(trace: Trace, node: Node) -> Any:
    """A base with a value written to its view."""
    base, value, step = node.args
    whole = trace.full(base)
    steps = _lifted_steps(trace, whole, step)
    return None if steps is None else written_through(whole, steps, trace.full(value))


def embedded(trace: Trace, node: Node) -> Any:
    """A value in zeros, where a view would show it."""
    value, shape, (op, rest) = node.args
    zeros = F.zeros((trace.size, *shape), dtype=value.dtype)
    steps = _lifted_steps(trace, zeros, (op, rest, -1))
    return None if steps is None else written_through(zeros, steps, trace.full(value))
