"""Writing to views of a batch of tensors: the view ops of one example, their dims moved by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...graph.node import Node
from ...graph.op import Op
from ...graph.registry import F
from ...graph.shapes import infer_size

if TYPE_CHECKING:
    from .examples import Trace


def shifted(op: Op, args: list[Any]) -> list[Any]:
    """Arguments whose dims leave room for one in front."""
    for at, param in enumerate(op.params):
        value = args[at]
        if param.annotation in ("Dim", "NewDim", "StaticDim"):
            args[at] = value + 1
        elif param.annotation in ("Dims", "DimList") and value is not None:
            args[at] = tuple(d + 1 for d in value)
    return args


def _shifted_view(op: Op, rest: tuple[Any, ...], shape: tuple[int, ...], size: int) -> Any:
    """A view op and its further arguments for a batch of tensors of `shape`; None if unknown."""
    key = op.key
    if key in ("detach", "data_alias", "whole_view"):
        return op, rest
    if key in ("view", "reshape_alias", "unshared_view"):
        return op, ((size, *infer_size(shape, rest[0])),)
    if key == "permute":
        return op, ((0, *(d + 1 for d in rest[0])),)
    if not shape:
        return None
    if key == "t":
        return (F.transpose, (1, 2)) if len(shape) == 2 else (F.alias, ())
    if key == "squeezed" and rest[0] is None:
        ones = tuple(d + 1 for d, n in enumerate(shape) if n == 1)
        return (op, (ones, 2)) if ones else (F.alias, ())
    if key in _VIEWS_BY_DIM:
        return op, tuple(shifted(op, [None, *rest])[1:])
    return None


_VIEWS_BY_DIM = frozenset(
    {
        "squeezed",
        "unsqueeze",
        "transpose",
        "slice",
        "select",
        "diagonal",
        "unbind",
        "split",
        "split_with_sizes",
        "unfold",
    }
)


def copy_slices(trace: Trace, node: Node) -> Any:
    """A base with a value written to its view."""
    base, value, (op, rest, index) = node.args
    found = _shifted_view(op, rest, base.shape, trace.size)
    if found is None:
        return None
    return F.copy_slices.apply([trace.full(base), trace.full(value), (*found, index)])


def embedded(trace: Trace, node: Node) -> Any:
    """A value in zeros, where a view would show it."""
    value, shape, (op, rest) = node.args
    found = _shifted_view(op, rest, shape, trace.size)
    if found is None:
        return None
    return F.embedded.apply([trace.full(value), (trace.size, *shape), found])
