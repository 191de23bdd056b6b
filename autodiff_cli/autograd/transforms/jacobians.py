"""Jacobians and Hessians as matrices in the graph, for whoever wants arrays and no functions.

Unit vectors are followed as scaled batches, some rows or columns at a time where all together would
need much memory. `torch.func` and its kin, in `levels`, follow them as PyTorch does.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...graph.node import Node
from ...graph.op import cast
from ...graph.registry import F
from ...graph.state import STATE
from ...ops.kernels.matrices import transposed
from ..batching.examples import Trace
from ..batching.factored_batches import unit_vectors
from ..forward import Linearized
from ..reverse import gradients
from ..rules import history, ones_like, zeros_like
from ..transform_levels import or_zeros, pulled

# Elements of the largest intermediate result of directions followed together: as many as the
# Jacobian has, within these bounds, and an eighth of the memory that there may be at most.
BATCH, MOST = 1 << 22, 1 << 24

Piece = tuple[int, int, list[Node | None]]


def _steps(count: int, out: Node, entries: int) -> Iterator[tuple[int, int]]:
    """The directions to follow at once, so that memory stays bounded."""
    elements = min(max(BATCH, min(entries, MOST)), STATE.max_bytes >> 6)
    step = max(1, elements // max([1, *(node.numel for node in history(out))]))
    for start in range(0, count, step):
        yield start, min(start + step, count)


def rows(out: Node, inputs: list[Node], kept: bool = True) -> Iterator[Piece]:
    """Reverse mode: rows `start` to `stop` of the Jacobian for each input, as matrices; None where
    nothing depends. `kept`: whether all pieces will be held together."""
    if not out.requires_grad:
        return
    count = out.numel
    flat = out if out.ndim == 1 else F.reshape(out, (count,))
    entries = count * sum(x.numel for x in inputs) if kept else 0
    for start, stop in _steps(count, out, entries):
        some = flat if stop - start == count else F.narrow(flat, 0, start, stop - start)
        found = pulled(some, inputs, unit_vectors, False)
        yield start, stop, [
            None if g is None else F.reshape(g, (stop - start, x.numel))
            for g, x in zip(found, inputs, strict=True)
        ]  # fmt: skip


def columns(out: Node, inputs: list[Node], at: int) -> Iterator[Piece]:
    """Forward mode: columns `start` to `stop` of the Jacobian for input number `at`, as the rows of
    a matrix."""
    derivative = Linearized([out], inputs)
    for start, stop in _steps(inputs[at].numel, out, out.numel * inputs[at].numel):
        trace = Trace(stop - start)
        with trace.running():
            tangents: list[Node | None] = [None] * len(inputs)
            tangents[at] = _moved(trace, inputs[at], start, stop)
            changes = derivative.along(tangents)
        trace.lift(changes)
        yield start, stop, [F.reshape(trace.full(changes[0]), (stop - start, out.numel))]


def _moved(trace: Trace, x: Node, start: int, stop: int) -> Node:
    """Elements `start` to `stop` of an input moved, one in each example."""
    if stop - start == x.numel:
        return unit_vectors(trace, x)
    some = unit_vectors(trace, F.narrow(F.reshape(x, (x.numel,)), 0, start, stop - start))
    return F.reshape(F.constant_pad_nd(some, (start, x.numel - stop)), x.shape)


# -- whole ones ------------------------------------------------------------------------------------


def jacobian(out: Node, inputs: list[Node], mode: str = "auto") -> list[Node]:
    """For each input the derivative, of the output's shape followed by the input's. `auto` takes
    the mode with fewer directions."""
    if not goes_forward(out, inputs, mode):
        return _shaped(out, inputs, _joined(list(rows(out, inputs)), len(inputs)))
    found = [_joined(list(columns(out, inputs, at)), 1)[0] for at in range(len(inputs))]
    return _shaped(out, inputs, [None if m is None else transposed(m) for m in found])


def goes_forward(out: Node, inputs: list[Node], mode: str) -> bool:
    """Whether a mode means forward."""
    return mode == "forward" or (mode == "auto" and out.numel > sum(x.numel for x in inputs))


def hessian(out: Node, inputs: list[Node]) -> list[list[Node]]:
    """For each pair of inputs the second derivative of one number; blocks below the diagonal are
    the others transposed."""
    firsts = slopes(out, inputs)
    blocks: dict[tuple[int, int], Node] = {}
    for i, (first, x) in enumerate(zip(firsts, inputs, strict=True)):
        for j, block in enumerate(jacobian(first, inputs[i:], "reverse"), i):
            blocks[i, j] = block
            if i != j:
                flat = transposed(F.reshape(block, (x.numel, inputs[j].numel)))
                other = F.reshape(flat, (*inputs[j].shape, *x.shape))
                blocks[j, i] = cast(other, x.dtype)
    return [[blocks[i, j] for j in range(len(inputs))] for i in range(len(inputs))]


def slopes(out: Node, inputs: list[Node]) -> list[Node]:
    """The gradient of one number, to be differentiated again."""
    found = gradients([(out, ones_like(out))], inputs, create_graph=True, retain_graph=True)
    return [zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def _joined(pieces: list[Piece], count: int) -> list[Node | None]:
    """Pieces one below the other."""
    if not pieces:
        return [None] * count
    parts = list(zip(*[nodes for _, _, nodes in pieces], strict=True))
    return [
        None if part[0] is None else part[0] if len(part) == 1 else F.cat(part, 0) for part in parts
    ]


def _shaped(out: Node, inputs: list[Node], found: list[Node | None]) -> list[Node]:
    return [
        or_zeros(None, out, x) if m is None else F.reshape(m, (*out.shape, *x.shape))
        for m, x in zip(found, inputs, strict=True)
    ]
