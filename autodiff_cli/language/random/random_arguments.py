"""What all random functions share: arguments, the order of draws in memory, filling in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.random.stream import Generator
from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.node import Node
from ...graph.op import constant
from ...graph.params import BindError, to_float
from ...graph.registry import F
from ...graph.state import STATE
from ...graph.strides import elementwise_strides, is_row_major, laid_out_as, strides_of
from ..values.dialect import kind_of
from ..values.operations import as_operand
from .generators import stream_of

Draw = Callable[[tuple[int, ...]], np.ndarray]


def converted(name: str, argument: str, convert: Callable[[Any], Any], value: Any) -> Any:
    """`value` as the kind of `convert`; E205 naming function and argument."""
    try:
        return convert(value)
    except BindError as error:
        if error.wants == "a tuple of ints" and type(value) is int:
            raise fault("E205 argument-tuple-ints", name, argument, value, f"({value},)") from None
        raise fault(
            "E205 argument-argument-error", name=name, argument=argument, error=error
        ) from None


def tensor_argument(name: str, value: Any, argument: str = "input") -> Tensor:
    """`value`, which must be a tensor; native files may give a numeric list."""
    value = as_operand(value)
    if not isinstance(value, Tensor):
        raise fault("E205 argument-tensor", kind_of(value), name=name, argument=argument)
    return value


def memory_order(node: Node) -> list[int] | None:
    """The dims from the slowest to the fastest in PyTorch's memory; None when that is row-major."""
    if is_row_major(node.shape, strides_of(node)):
        return None
    strides = elementwise_strides(node.shape, (node,))
    return sorted(range(len(node.shape)), key=lambda dim: -strides[dim])


def in_memory_order(node: Node, draw: Draw) -> np.ndarray:
    """Numbers for every element of `node`, drawn in the order in which PyTorch walks its memory."""
    order = memory_order(node)
    if order is None:
        return draw(node.shape)
    drawn = draw(tuple(node.shape[d] for d in order))
    return np.ascontiguousarray(drawn.transpose(np.argsort(order)))


def normals(
    stream: Generator, node: Node, shape: tuple[int, ...], dtype: np.dtype, mean: float, std: float
) -> np.ndarray:
    """Normals to fill `node`: in blocks if its memory is row-major, else in pairs, as PyTorch."""
    if is_row_major(node.shape, strides_of(node)):
        return stream.normal(mean, std, shape, dtype)
    drawn = np.empty(node.numel, dtype)
    for start in range(0, node.numel, 15):  # fewer than 16 are drawn in pairs
        part = drawn[start : start + 15]
        part[:] = stream.normal(mean, std, part.shape, dtype)
    return drawn.reshape(shape)


def fill(tensor: Tensor, grad_fn: str, draw: Draw) -> Tensor:
    """Overwrite a tensor with draws; the gradient of what it was is zero."""
    tensor.check_writable()
    node = tensor.node
    values = laid_out_as(node, constant(in_memory_order(node, draw)))
    recorded = STATE.grad and node.requires_grad
    tensor.write(F.drawn(values, node, None, grad_fn) if recorded else values)
    return tensor


def number_argument(name: str, argument: str, value: Any) -> float:
    return converted(name, argument, to_float, value)


def overwritten(kind: str, tensor: Tensor, generator: Any, **numbers: Any) -> Tensor:
    """Fill a tensor with draws of a kind that streams have, which depends on some numbers."""
    given = [number_argument(f"{kind}_", name, value) for name, value in numbers.items()]
    draw = getattr(stream_of(generator), kind)
    grad_fn = f"{kind.title().replace('_', '')}Backward0"
    return fill(tensor, grad_fn, lambda shape: draw(shape, tensor.dtype, *given))


def uniform_(tensor: Tensor, from_: Any = 0.0, to: Any = 1.0, *, generator: Any = None) -> Tensor:
    return overwritten("uniform", tensor, generator, **{"from": from_, "to": to})


def normal_(tensor: Tensor, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Tensor:
    center, width = number_argument("normal_", "mean", mean), number_argument("normal_", "std", std)
    stream = stream_of(generator)
    node = tensor.node
    return fill(
        tensor,
        "NormalBackward0",
        lambda shape: normals(stream, node, shape, node.dtype, center, width),
    )
