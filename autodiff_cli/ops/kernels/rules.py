"""Pieces that rules and bodies of several families share, in graph ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import fail, fault
from ...graph.dtypes import BOOL, FLOAT32, FLOAT64, is_float, result_dtype
from ...graph.node import Node, Shape
from ...graph.op import number
from ...graph.registry import F
from ...graph.shapes import reduced_shape
from ...graph.state import STATE
from .indices import check_number

Dims = tuple[int, ...] | None


def restored(value: Node, input: Node, dim: Dims) -> Node:
    """A reduced value with its reduced dims as 1."""
    shape = reduced_shape(input.shape, dim, True)
    return value if value.shape == shape else F.reshape(value, shape)


def spread(g: Node, input: Node, dim: Dims) -> Node:
    """The cotangent of a reduction at every element that went into it."""
    return F.expand(restored(g, input, dim) if g.shape else g, input.shape)


# PyTorch computes the slope by a function of its own, of the operands too.
NAMED_SLOPE = frozenset({"slope has a name"})
# For samples of ops of which PyTorch has one derivative only.
ONCE: Any = {"order": 1, "because": "PyTorch has no second derivative of it"}
FEW = 1 << 16  # elements that are summed in float64


def flat(g: Node, on: Node, name: str) -> Node:
    """A cotangent that does not change with `on`, but that PyTorch computes from it: when it may be
    differentiated again it requires grad, and the gradient of `on` is zeros instead of missing."""
    if not (STATE.grad and on.requires_grad):
        return g
    result = F.depends(g, on)
    result.mark().name = name
    return result


def zeros(like: Node, shape: Shape | None = None) -> Node:
    """Zeros that take no memory, in the dtype of a node and its shape, or another one."""
    return F.expand(number(0.0, like.dtype), like.shape if shape is None else shape)


def picked(input: Node, dim: int, index: Node, keepdim: bool) -> tuple[Node, Node]:
    """Values at `index` (reduced dim kept), and the index, both as a reduction returns them."""
    shape = reduced_shape(input.shape, (dim,), keepdim)
    return F.reshape(F.gather(input, dim, index), shape), F.reshape(index, shape)


def shared_by_equal(g: Node, out: Node, input: Node) -> Node:
    """The cotangent of one element of all, shared evenly by those that are equal to it."""
    hit = F.logical_or(F.eq(input, out), F.logical_and(F.isnan(input), F.isnan(out)))
    return F.where(hit, F.div(g, F.sum(hit)), 0.0)


def moving(moves: list[Any], *operands: Node) -> list[Node]:
    """Changes of operands, zeros where they stand still."""
    return [zeros(x) if move is None else move for move, x in zip(moves, operands, strict=True)]


def read_evenly(moves: list[Any], out: Node, input: Node) -> Node:
    """How one element of all changes in forward mode: the mean over those that are equal to it, nan
    where it is nan."""
    hit = F.eq(input, out)
    return F.sum(F.mul(F.div(moves[0], F.sum(hit)), hit))


def require_dims(name: str, input: Node) -> None:
    """E304 for a tensor without dims."""
    if not input.shape:
        raise fault("E304 needs-tensor-dims", name)


def without_zeros(input):
    """Whether there is a 0, and what PyTorch divides by where there is none."""
    zeros = F.any(F.eq(input, 0))
    return zeros, F.where(zeros, 1.0, input)


def shifted(x: Node, dim: int, first: float) -> Node:
    """`x` moved on by one along `dim`, with `first` in front."""
    n = x.shape[dim]
    if n == 0:
        return x
    front = F.expand(number(first, x.dtype), reduced_shape(x.shape, (dim,), True))
    return F.cat((front, F.narrow(x, dim, 0, n - 1)), dim)


def widened(x: Node, numel: int) -> Node:
    """float32 as float64, where few elements are summed: PyTorch rounds such sums once. Of large
    arrays that takes three times as long here for the last digit."""
    return F.to(x, FLOAT64) if x.dtype == FLOAT32 and numel <= FEW else x


def as_float(input: Node) -> Node:
    """Integers as the default float dtype."""
    return input if is_float(input.dtype) else F.mul(input, 1.0)


def require_float(name: str, input: Node, raises: str = "NotImplementedError") -> None:
    """E307 for integers where PyTorch takes floats only."""
    if not is_float(input.dtype):
        raise fault("E307 needs-floating-point-numbers", name, input.dtype.name, raises)


def recorded_as_float(name: str) -> Callable[..., None]:
    """A check of a reduction that takes `dtype` last: E306 for integers of what is recorded."""

    def check(input: Node, *rest: Any) -> None:
        dtype = rest[-1]
        if dtype is not None and not is_float(dtype) and input.requires_grad and STATE.grad:
            raise fault("E306 whole-and-recorded", name, dtype)

    return check


def require_constant(name: str, parameter: str, node: Node | None) -> None:
    """E404 for an operand that PyTorch has no derivative towards."""
    if node is not None and node.requires_grad and STATE.grad:
        raise fault("E404 no-derivative-towards", name, parameter, span=node.span)


def require_some_float(name: str, *inputs: Node) -> None:
    """E307 when no operand is of a float dtype."""
    if not any(is_float(x.dtype) for x in inputs):
        require_float(name, inputs[0])


def refuse_bools(name: str, *inputs: Node, help: str = "convert: `.to(torch.int64)`") -> None:
    """E307 when all operands are bools."""
    for x in inputs:
        if x.dtype.kind != "b":
            return
    raise fault("E307 does-not-work-bools", name, help, x=inputs[0])


def whole_factor(name: str, factor: bool | int | float, *inputs: Node) -> None:
    """E307 for a fractional factor of integer tensors, for a bool of others than bools, and for a
    number that the dtype of the result does not have, where PyTorch refuses it."""
    if type(factor) is bool and not all(x.dtype == BOOL for x in inputs):
        raise fault("E307 bool-factor", name, factor, number=int(factor))
    if type(factor) is float and not any(is_float(x.dtype) for x in inputs):
        raise fault("E307 integer-tensors-integer", name, factor)
    check_number(factor, meeting(*inputs))


def meeting(*inputs: Node) -> np.dtype:
    """The dtype in which operands meet."""
    return result_dtype([(x.dtype, not x.shape, x.weak) for x in inputs])


def no_derivative(name: str, listed: str | None = None) -> Callable[..., Node]:
    """The rule of an op that PyTorch records but cannot differentiate; `listed` is what its table
    of derivatives, where the op stands without one, calls it."""

    def vjp(g: Node, out: Node, *args: object) -> Node:
        if listed is not None:
            raise fault("E404 no-derivative-listed", name, listed)
        raise fault("E404 no-derivative-here", name)

    return vjp


def random_stream() -> Any:
    """The program's generator of random numbers."""
    if STATE.default_generator is None:
        raise fail("E203", "there are no random numbers here", help="use `training=False`")
    return STATE.default_generator
