"""Index assignment: `x[index] = value` on handles, with PyTorch's views, broadcasting and names."""

from __future__ import annotations

from typing import Any

from ..errors import fault
from ..graph.node import Node
from ..graph.op import cast, number
from ..graph.registry import F
from ..graph.shapes import fits
from ..ops.kernels.indices import check_no_bytes, check_weak
from .handles import wrap_view
from .tensor import Tensor
from .views import single


def write_index(tensor: Tensor, index: Any, value: Tensor | bool | int | float) -> None:
    """`tensor[index] = value`.

    Ints, slices, None and `...` write through a view, index tensors and masks put values in place.
    Raises E305 for a wrong index, E302 when the value does not fit, E405 for leaves that require
    grad.
    """
    from ..ops.indexing.indexing import basic_part, index_items

    items = index_items(index)
    whole = tensor.node
    node, advanced = basic_part(whole, items, skip_whole=True)
    if value is tensor and advanced is None and node.shape == whole.shape and not single(whole):
        tensor.count_change()
        return
    given = value.node if isinstance(value, Tensor) else number(value)
    check_weak(given, whole.dtype)
    fills = given.numel == 1 and _by_one_mask(items)
    if fills:
        check_no_bytes(index if isinstance(index, tuple) else (index,))
    if given.weak or fills:
        given = cast(given, whole.dtype)
    source = value if isinstance(value, Tensor) and not fills else None
    if advanced is not None:
        given = _without_leading_ones(given)
        handle = tensor if node is whole else wrap_view(node, tensor)
        handle.check_writable()
        written = F.index_written.apply([handle.node, advanced, given, False])
        handle.write(written, None if fills else written, source)
        return
    if given.shape != node.shape:
        given = _without_leading_ones(given)
    if not fits(given.shape, node.shape):
        raise fault("E302 value-shape-does-not", given, node.shape)
    if node is whole:
        tensor.check_writable()
        filled = whole.shape and not given.shape
        over = F.fill_over(whole, given) if filled else F.copy_over(whole, given)
        tensor.write(over, source=source)
        return
    if source is not None and source.shape != node.shape:
        source = None  # what is expanded is not checked
    spread = given if given.shape == node.shape else F.expand(given, node.shape)
    wrap_view(node, tensor).write(spread, source=source)


def _by_one_mask(items: list[Any]) -> bool:
    """Whether a mask is all the advanced part of an index: PyTorch then fills, and casts."""
    advanced = [i for i in items if type(i) is bool or isinstance(i, Node)]
    return len(advanced) == 1 and (type(advanced[0]) is bool or advanced[0].dtype.kind == "b")


def _without_leading_ones(value: Node) -> Node:
    """PyTorch lets a value have more dims than its place when those in front have size 1."""
    first = 0
    while first < value.ndim and value.shape[first] == 1:
        first += 1
    return F.reshape(value, value.shape[first:]) if first else value
