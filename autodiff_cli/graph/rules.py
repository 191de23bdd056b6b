"""Pieces that rules and bodies of several families share, in graph ops."""

from __future__ import annotations

from ..errors import fail
from .dtypes import is_float
from .node import Node
from .op import number
from .registry import F
from .shapes import reduced_shape

Dims = tuple[int, ...] | None


def restored(value: Node, input: Node, dim: Dims) -> Node:
    """A reduced value with its reduced dims as 1."""
    return F.reshape(value, reduced_shape(input.shape, dim, True))


def spread(g: Node, input: Node, dim: Dims) -> Node:
    """The cotangent of a reduction at every element that went into it."""
    return F.expand(restored(g, input, dim), input.shape)


def shifted(x: Node, dim: int, first: float) -> Node:
    """`x` moved on by one along `dim`, with `first` in front."""
    n = x.shape[dim]
    if n == 0:
        return x
    front = F.expand(number(first, x.dtype), reduced_shape(x.shape, (dim,), True))
    return F.cat((front, F.narrow(x, dim, 0, n - 1)), dim)


def as_float(input: Node) -> Node:
    """Integers as the default float dtype."""
    return input if is_float(input.dtype) else F.mul(input, 1.0)


def require_float(name: str, input: Node) -> None:
    """E307 for integers where PyTorch takes floats only."""
    if not is_float(input.dtype):
        raise fail(
            "E307",
            f"`{name}` needs floating point numbers, got {input.dtype.name}",
            help=f"convert first: `x.to(torch.float64)`, then `{name}`",
        )
