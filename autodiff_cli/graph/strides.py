"""Strides: how PyTorch would have laid out a node's elements in memory.

Arrays here are laid out as NumPy likes; PyTorch's layout decides only what a program can see:
whether `view` is allowed, whether `reshape` and `contiguous` copy, and what `stride()` says. It
follows from the graph: views rearrange strides by their op's rule, pointwise ops keep the order
of their operands, ops of images the channels that lie side by side; everything else is contiguous.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .node import Node, Shape
from .op import CAST, LEAF, OUTPUT, POINTWISE

Strides = tuple[int, ...]
CHANNELS = "channels stay"  # of ops: where those of images lie side by side, they do in the result


@lru_cache(4096)
def contiguous_strides(shape: Shape) -> Strides:
    """The strides of row-major order."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    strides.reverse()
    return tuple(strides)


def is_row_major(shape: Shape, strides: Strides) -> bool:
    """Whether elements lie in row-major order without gaps (dims of size 1 do not matter)."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return 0 in shape
        step *= size
    return True


def _channels_last(shape: Shape) -> Strides:
    """The strides of images (or volumes) whose channels lie side by side."""
    lead, channels, *sizes = shape
    first, *others, step = contiguous_strides((lead, *sizes, channels))
    return (first, step, *others)


def _has_channels_last(node: Node) -> bool:
    """Whether PyTorch takes the channels for the fastest dim (`is_channels_last_strides`)."""
    shape, strides = node.shape, strides_of(node)
    if len(shape) not in (4, 5) or not strides[1] or 0 in shape:
        return False
    least = 0
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if strides[dim] < least or (not dim and least == strides[1]):
            return False
        least = strides[dim] * shape[dim]
    return True


def kept_channels(shape: Shape, images: tuple[Node, ...]) -> Strides:
    """Of a result with the channels of these images."""
    kept = len(shape) in (4, 5) and all(map(_has_channels_last, images))
    return _channels_last(shape) if kept else contiguous_strides(shape)


def with_channels(strides: Strides, input: Node, *rest: Any) -> Strides:
    """Row-major order, of images whose channels lie side by side without gaps that of their own."""
    shape = input.shape
    if len(shape) in (4, 5) and same_layout(shape, strides, _channels_last(shape)):
        return strides
    return contiguous_strides(shape)


def same_layout(shape: Shape, a: Strides, b: Strides) -> bool:
    """Whether strides say the same of every element (dims of size 1 do not matter)."""
    return all(x == y for n, x, y in zip(shape, a, b, strict=True) if n != 1)


def dense_strides(node: Node) -> Strides:
    """The node's strides where its elements lie without gaps, else those of row-major order."""
    strides = strides_of(node)
    packed = elementwise_strides(node.shape, (node,))
    return packed if same_layout(node.shape, strides, packed) else contiguous_strides(node.shape)


def strides_of(node: Node) -> Strides:
    """The strides of a node in elements."""
    found = node.strides
    if found is not None:
        return found
    pending = [node]
    while pending:
        current = pending[-1]
        if current.strides is not None:
            pending.pop()
            continue
        missing = [n for n in _deciding(current) if n.strides is None]
        if missing:
            pending.extend(missing)
            continue
        current.strides = _strides(current)
        pending.pop()
    assert node.strides is not None
    return node.strides


def is_contiguous(node: Node) -> bool:
    """Whether PyTorch's `is_contiguous()` holds."""
    return is_row_major(node.shape, strides_of(node))


def _deciding(node: Node) -> tuple[Node, ...]:
    """The nodes whose strides decide those of `node`."""
    op = node.op
    if len(node.shape) < 2 and (not node.shape or op.kind is POINTWISE):
        return ()
    if "row-major" in op.properties or "columns" in op.properties:
        return ()
    made_by = node.args[0] if op is OUTPUT else node
    if CHANNELS in made_by.op.properties:
        return made_by.inputs if type(made_by.args[0]) is tuple else (made_by.args[0],)
    if op is CAST or op.strides_rule is not None:
        return (node.args[0],)
    body = node.body
    if body is not None:
        return (body,) if type(body) is Node else ()
    if op is OUTPUT:
        parent = node.args[0]
        if parent.op.strides_rule is not None:
            return (parent.args[0],)
        return () if parent.body is None else (parent.body[node.args[1]],)
    if op.kind is POINTWISE and "own numbers" in op.properties:
        return tuple(x for x in node.inputs if not x.weak)
    if op.kind is POINTWISE or op is LEAF:
        return node.inputs
    return ()


def _strides(node: Node) -> Strides:
    shape = node.shape
    deciding = _deciding(node)
    op = node.op
    made_by = node.args[0] if op is OUTPUT else node
    if not deciding:
        if "columns" in made_by.op.properties and len(shape) == made_by.args[0].ndim:
            return (*contiguous_strides(shape)[:-2], 1, max(shape[-2], 1))
        return contiguous_strides(shape)
    if CHANNELS in made_by.op.properties:
        return kept_channels(shape, deciding)
    if op is CAST:
        return like_input(deciding[0].strides, *deciding)  # type: ignore[arg-type]  # known
    if op.strides_rule is not None:
        return op.strides_rule(deciding[0].strides, *node.args)
    if op is LEAF or node.body is not None:
        return deciding[0].strides  # type: ignore[return-value]  # computed before
    if op is OUTPUT:
        parent, index = node.args
        if parent.op.strides_rule is None:
            return deciding[0].strides  # type: ignore[return-value]  # computed before
        return parent.op.strides_rule(deciding[0].strides, *parent.args, index)
    return elementwise_strides(shape, deciding)


def elementwise_strides(shape: Shape, operands: tuple[Node, ...]) -> Strides:
    """What PyTorch's TensorIterator chooses for a result: dims sorted by the operands' strides."""
    known = [(x.shape, x.strides) for x in operands if x.shape]
    contiguous = contiguous_strides(shape)
    alike = len(known) == len(operands)  # else also a dim of size 1 has its place in the order
    if all(
        s == shape and (strides == contiguous or (alike and is_row_major(s, strides)))  # type: ignore[arg-type]  # known
        for s, strides in known
    ):
        return contiguous
    return packed_strides(shape, [broadcast_strides(s, strides, shape) for s, strides in known])  # type: ignore[arg-type]  # known


def packed_strides(shape: Shape, operands: list[Strides]) -> Strides:
    """Strides without gaps in the order of dims that operands of these strides decide."""
    order = _iteration_order(shape, operands)
    strides = [0] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def broadcast_strides(shape: Shape, strides: Strides, to: Shape) -> Strides:
    """Strides of a tensor expanded to another shape."""
    lead = len(to) - len(shape)
    own = (0 if size == 1 and to[lead + i] != 1 else strides[i] for i, size in enumerate(shape))
    return (0,) * lead + tuple(own)


def _iteration_order(shape: Shape, operands: list[Strides]) -> list[int]:
    """Dims from the fastest to the slowest: an insertion sort whose comparison may be undecided."""
    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        at = i
        for before in reversed(range(i)):
            compared = _compare(order[before], order[at], shape, operands)
            if compared > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif compared < 0:
                break
    return order


def _compare(a: int, b: int, shape: Shape, operands: list[Strides]) -> int:
    for strides in operands:
        if strides[a] == 0 or strides[b] == 0:
            continue
        if strides[a] != strides[b]:
            return strides[a] - strides[b]
        if shape[a] > shape[b]:
            return 1
    return 0


def view_strides(shape: Shape, strides: Strides, size: Shape) -> Strides | None:
    """Strides with which the same memory shows as `size`; None when a copy is needed.

    Runs of dims that lie without gaps are split and merged; PyTorch's `computeStride`.
    """
    if 0 in shape:
        return strides if size == shape else contiguous_strides(size)
    if not shape:
        return (1,) * len(size)
    new = [0] * len(size)
    at = len(size) - 1
    base = strides[-1]
    run = covered = 1
    for dim in reversed(range(len(shape))):
        run *= shape[dim]
        if dim and (shape[dim - 1] == 1 or strides[dim - 1] == run * base):
            continue
        while at >= 0 and (covered < run or size[at] == 1):
            new[at] = covered * base
            covered *= size[at]
            at -= 1
        if covered != run:
            return None
        if dim:
            base = strides[dim - 1]
            run = covered = 1
    return tuple(new) if at == -1 else None


def same_strides(strides: Strides, *args: Any) -> Strides:
    """The rule of ops that hand their first operand on."""
    return strides


def laid_out_as(input: Node, node: Node) -> Node:
    """A fresh node of the shape of `input`, in its order of dims."""
    node.strides = like_input(strides_of(input), input)
    return node


def like_input(strides: Strides, input: Node, *rest: Any) -> Strides:
    """The rule of results that lie as the operand does, but without its gaps."""
    packed = packed_strides(input.shape, [strides])
    return strides if same_layout(input.shape, strides, packed) else packed


def kept_layout(strides: Strides, input: Node, memory_format: Any = None) -> Strides:
    """The rule of copies: the operand's order of dims, without its gaps."""
    if str(memory_format).endswith("contiguous_format"):
        return contiguous_strides(input.shape)
    return like_input(strides, input)
