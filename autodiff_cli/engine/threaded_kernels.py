"""Kernels of whole arrays that work sample by sample: their first dim is cut among threads.

The number of parts depends on shapes only, and sums of parts are added in order, so the numbers do
not depend on how many threads there are. While parts run, BLAS keeps to one thread in each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..graph.kinds import Kind
from ..graph.node import Node, Shape
from . import blas
from .memory import allocate
from .threads import WORKERS

PARTS = 4
PART_BYTES = 1 << 20  # of the first argument: then what is computed on the way stays in cache
CUT_FROM = 1 << 16  # elements of the first argument
BLAS_FROM = 1 << 25  # multiplications of a product from which more threads pay

Kernel = Callable[..., Any]


def kernel_of(node: Node) -> Kernel:
    """The kernel of a node, as it runs best for its shapes."""
    op = node.op
    kernel: Any = op.kernel
    if op.kind is Kind.CONTRACTION:
        return _threaded(kernel) if multiplications(node) >= BLAS_FROM else kernel
    if "samplewise" in op.properties:
        if _cut(node.inputs[0].shape) and node.shape[:1] == node.inputs[0].shape[:1]:
            return _samplewise(kernel, node.shape, node.dtype, parts_of(node))
    elif "sums samples" in op.properties and _cut(node.inputs[0].shape):
        return _summed(kernel, parts_of(node))
    return kernel


def multiplications(node: Node) -> int:
    """How many a product of matrices takes."""
    return prod(node.shape) * node.inputs[0].shape[-1]


def is_cut(node: Node) -> bool:
    """Whether a node is worth a plan of its own for the sake of its threads."""
    return bool(node.op.properties & CUT) and _cut(node.inputs[0].shape)


CUT = frozenset({"samplewise", "sums samples"})


def _cut(shape: Shape) -> bool:
    return shape[0] > 1 and prod(shape) >= CUT_FROM


def parts_of(node: Node) -> int:
    """Into how many parts a node is cut. Sums of parts are held until all are there."""
    first = node.inputs[0]
    most = PARTS
    if "samplewise" in node.op.properties:
        most = max(PARTS, first.numel * first.dtype.itemsize // PART_BYTES)
    return min(first.shape[0], most)


def _ranges(n: int, parts: int) -> list[tuple[int, int]]:
    return [(n * i // parts, n * (i + 1) // parts) for i in range(parts)]


def _share(job: Callable[[int, int, int], None], ranges: list[tuple[int, int]]) -> None:
    """Run the job for each range, the ranges dealt out to the threads in blocks."""
    count = min(WORKERS.count(), len(ranges))

    def block(first: int, last: int) -> None:
        for at in range(first, last):
            job(at, *ranges[at])

    if count < 2:
        block(0, len(ranges))
        return
    n = len(ranges)
    with blas.single():
        WORKERS.share([partial(block, n * i // count, n * (i + 1) // count) for i in range(count)])


def _samplewise(kernel: Kernel, shape: Shape, dtype: np.dtype, parts: int) -> Kernel:
    def run(x: np.ndarray, *rest: Any) -> np.ndarray:
        out = allocate(shape, dtype)

        def job(_: int, first: int, last: int) -> None:
            out[first:last] = kernel(x[first:last], *rest)

        _share(job, _ranges(shape[0], parts))
        return out

    return run


def _summed(kernel: Kernel, parts: int) -> Kernel:
    def run(x: np.ndarray, y: np.ndarray, *rest: Any) -> np.ndarray:
        ranges = _ranges(x.shape[0], parts)
        found: list[Any] = [None] * len(ranges)

        def job(at: int, first: int, last: int) -> None:
            found[at] = kernel(x[first:last], y[first:last], *rest)

        _share(job, ranges)
        total = found[0]
        for part in found[1:]:
            total += part
        return total

    return run


def _threaded(kernel: Kernel) -> Kernel:
    def run(*args: Any) -> Any:
        with blas.many():
            return kernel(*args)

    return run
