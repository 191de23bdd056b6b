"""The program of one fusion group: straight-line source that runs a tile, compiled once.

Values live in a few scratch buffers of tile size that are used again as soon as their last reader
is done; what leaves the group is written straight to its place in the result. A value that was
broadcast stays narrow until somebody needs it wide. Tiles depend on shapes only, never on the
number of threads, and partial results are put together in the order of the tiles: the numbers are
the same however many threads ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from math import prod
from threading import local
from typing import Any

import numpy as np

from ...errors import AutodiffError
from ...graph.node import Node, Shape
from ..threads import WORKERS
from .groups import Group, Grouping, reduced_dims
from .writer import Line, Ref, Writer

TILE_BYTES = 256 << 10  # of one buffer
SCRATCH_BYTES = 8 << 20  # of all buffers of one thread: a quarter of a usual last-level cache
SCRATCH_PIECE = 1 << 20  # bytes that are made at once
ALIGNMENT = 64
SHARE_FROM = 0.5e6  # predicted nanoseconds from which a second thread pays


class Scratch(local):
    """The memory for the buffers of the groups that a thread runs, one for each of its workers."""

    def __init__(self) -> None:
        self.of: dict[int, np.ndarray] = {}


SCRATCH = Scratch()


class Tiled:
    """A step that runs a group: registers in, registers out.

    `inputs` are `(register, with rows)`, `outputs` and `finals` registers with what is made there.
    """

    def __init__(
        self,
        group: Group,
        grouping: Grouping,
        outputs: list[Node],
        register: Callable[[Node], int],
        new: Callable[[Node], int],
    ):
        writer = Writer(group, grouping)
        self.rows = group.rows
        self.cost = writer.cost
        self.spans = [line.node.span for line in writer.lines]
        self.span = self.spans[0] if self.spans else None
        self.inputs = [(register(node), ref.rows, ref.rest) for node, ref in writer.inputs]
        self.done: tuple[int, ...] = ()
        wanted = [node for node in outputs if node not in group.partials]
        self.outputs = [
            (new(node), node.shape, (self.rows, *node.shape[writer.depth :]), node.dtype)
            for node in wanted
        ]
        self.finals = [_final(node, new(node), writer.depth) for node in writer.finals]
        self.nodes = len(writer.members)
        self._compile(writer, wanted)
        self.places = tuple(at for at, _, _ in self.inputs)
        self.results = [at for at, *_ in self.outputs] + [final.result for final in self.finals]

    def bytes(self) -> dict[int, int]:
        """What each result takes."""
        sizes = {at: prod(shape) * dtype.itemsize for at, shape, _, dtype in self.outputs}
        return {**dict.fromkeys(self.results, 0), **sizes}

    # -- source -----------------------------------------------------------------------------------

    def _compile(self, writer: Writer, wanted: list[Node]) -> None:
        lines = writer.lines
        targets: dict[Ref, str] = {}
        copies: list[tuple[str, Ref]] = []
        for i, node in enumerate(wanted):
            ref = writer.refs[node, True]
            rest = node.shape[writer.depth :]
            made = ref.rows and ref.rest == rest
            if made and ref not in targets and _made_into(ref, lines):
                targets[ref] = f"o{i}"
            else:
                copies.append((f"o{i}", ref))
        end = len(lines)
        for at, line in enumerate(lines):
            for operand in line.operands:
                _used(operand, at)
        for _, ref in copies:
            _used(ref, end)
        self.buffers: list[tuple[Shape, bool, np.dtype]] = []
        body = self._assign(lines, targets)
        body += [f"  {name}[...] = {ref.name}" for name, ref in copies]
        self.source = self._text(writer, body)
        self.program = _compiled(self.source, writer.globals)
        scratch = [prod(rest) * dtype.itemsize for rest, rows, dtype in self.buffers if rows]
        widest = max(
            scratch
            + [prod(shape[1:]) * dtype.itemsize for _, _, shape, dtype in self.outputs]
            + [prod(ref.rest) * ref.dtype.itemsize for _, ref in writer.inputs if ref.rows]
            + [1]
        )
        tile = max(1, min(TILE_BYTES // widest, SCRATCH_BYTES // max(widest, sum(scratch))))
        self.tile = min(self.rows, tile)
        self.tiles = -(-self.rows // self.tile)
        self.layout: list[tuple[Shape, np.dtype, int]] = []  # of the buffers in scratch memory
        self.scratch = 0
        for rest, rows, dtype in self.buffers:
            shape = (self.tile, *rest) if rows else rest
            self.layout.append((shape, dtype, self.scratch))
            self.scratch += -(-prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT

    def _assign(self, lines: list[Line], targets: dict[Ref, str]) -> list[str]:
        """The lines as text, with scratch buffers by linear scan: a dying operand of the same form
        is written over."""
        free: dict[tuple[Shape, bool, np.dtype], list[str]] = {}
        ends: dict[int, list[Ref]] = {}
        for line in lines:
            if line.result is not None and line.into and line.result not in targets:
                ends.setdefault(line.result.last, []).append(line.result)
        text: list[str] = []
        for at, line in enumerate(lines):
            for ref in ends.get(at, ()):
                if ref is not line.result:
                    free.setdefault((ref.rest, ref.rows, ref.dtype), []).append(ref.buffer)
            result = line.result
            if result is None:
                text.append(f"  {line.writes}{line.text}")
            elif not line.into:
                text.append(f"  {result.name} = {line.text}")
            else:
                name = targets.get(result)
                if name is None:
                    form = (result.rest, result.rows, result.dtype)
                    ready = free.get(form)
                    if ready:
                        name = self._reused(ready, line)
                    else:
                        name = f"b{len(self.buffers)}"
                        self.buffers.append(form)
                    result.buffer = name
                text.append(f"  {result.name} = {line.text}, out={name})")
        return text

    def _reused(self, ready: list[str], line: Line) -> str:
        """A free buffer; best one that an operand of this line just left."""
        for operand in line.operands:
            if operand.buffer in ready:
                ready.remove(operand.buffer)
                return operand.buffer
        return ready.pop()

    def _text(self, writer: Writer, body: list[str]) -> str:
        reads: list[str] = []
        for i, (_, ref) in enumerate(writer.inputs):
            reads.append(f"  {ref.name} = x[{i}]{'[lo:hi]' if ref.rows else ''}")
        for i in range(len(self.outputs)):
            reads.append(f"  o{i} = y[{i}][lo:hi]")
        for i, name in enumerate(writer.finals.values()):
            reads.append(f"  {name} = z[{i}]")
        if self.buffers:
            names = "".join(f"b{i}, " for i in range(len(self.buffers)))
            reads.append(f"  {names}= b")
        self.offset = len(reads) + 2
        return "\n".join(["def tile(t, lo, hi, n, x, y, z, b):", *reads, *body]) + "\n"

    # -- running ----------------------------------------------------------------------------------

    def threads(self) -> int:
        """How many threads run the tiles: each has half of what makes a second one pay."""
        return max(1, min(WORKERS.count(), self.tiles, int(2 * self.cost / SHARE_FROM)))

    def run(self, registers: list[Any], allocate: Callable[[Shape, np.dtype], np.ndarray]) -> None:
        """Make the outputs from the inputs."""
        x = [
            registers[at].reshape((self.rows, *rest) if rows else rest)
            for at, rows, rest in self.inputs
        ]
        y = []
        for at, shape, rows, dtype in self.outputs:
            registers[at] = made = allocate(shape, dtype)
            y.append(made.reshape(rows))
        z = [np.empty((self.tiles, *final.shape), final.dtype) for final in self.finals]
        tiles = iter(range(self.tiles))  # whoever is free takes the next one
        job = partial(self._run_tiles, memory=SCRATCH.of, tiles=tiles, x=x, y=y, z=z)
        try:
            WORKERS.share([partial(job, worker) for worker in range(self.threads())])
        except AutodiffError as error:
            raise error if error.span is not None else error.amend(span=self._span(error)) from None
        for final, parts in zip(self.finals, z, strict=True):
            registers[final.result] = final.combine(parts)

    def _run_tiles(
        self,
        worker: int,
        memory: dict[int, np.ndarray],
        tiles: Iterator[int],
        x: list[Any],
        y: list[Any],
        z: list[Any],
    ) -> None:
        tile = self.tile
        program = self.program
        scratch = self._buffers(worker, memory)
        for t in tiles:
            lo = t * tile
            n = min(tile, self.rows - lo)
            if n < tile:
                scratch = [
                    b[:n] if rows else b
                    for b, (_, rows, _) in zip(scratch, self.buffers, strict=True)
                ]
            program(t, lo, lo + n, n, x, y, z, scratch)

    def _buffers(self, worker: int, all_memory: dict[int, np.ndarray]) -> list[np.ndarray]:
        """The scratch buffers, in memory that all groups of a thread share: one runs at a time."""
        memory = all_memory.get(worker)
        if memory is None or memory.nbytes < self.scratch:
            size = -(-self.scratch // SCRATCH_PIECE) * SCRATCH_PIECE
            memory = all_memory[worker] = np.empty(size, np.uint8)
        return [np.ndarray(shape, dtype, memory, at) for shape, dtype, at in self.layout]

    def _span(self, error: AutodiffError) -> Any:
        """The span of the line that raised."""
        trace_: Any = error.__traceback__
        while trace_.tb_frame.f_code.co_name != "tile":
            trace_ = trace_.tb_next
        return self.spans[trace_.tb_lineno - self.offset]


class Final:
    """How the partial results of all tiles become the value of a reduction over the lead."""

    __slots__ = ("dtype", "kernel", "more", "result", "shape", "whole")

    def __init__(self, kernel: Any, more: tuple[Any, ...], result: int, shape: Shape, node: Node):
        self.kernel = kernel
        self.more = more
        self.result = result
        self.shape = shape
        self.whole = node.shape
        self.dtype = node.dtype

    def combine(self, parts: np.ndarray) -> np.ndarray:
        """The value, from one partial result for each tile."""
        value = self.kernel(parts, (0,), False, *self.more)
        return np.asarray(value).reshape(self.whole)


def _final(node: Node, result: int, depth: int) -> Final:
    x = node.inputs[0]
    dims = reduced_dims(node)
    shape = tuple(n for d, n in enumerate(x.shape) if d >= depth and d not in dims)
    if "sums" in node.op.properties:
        return Final(_summed, (), result, shape, node)
    return Final(node.op.kernel, node.args[3:], result, shape, node)


def _summed(x: np.ndarray, dims: tuple[int, ...], _: bool) -> Any:
    return np.sum(x, dims)


def _used(ref: Ref, at: int) -> None:
    ref.last = at
    for base in ref.bases:
        _used(base, at)


def _made_into(ref: Ref, lines: list[Line]) -> bool:
    return any(line.result is ref and line.into for line in lines)


@lru_cache(512)
def _code(source: str) -> Any:
    return compile(source, "<tile>", "exec")


def _compiled(source: str, names: dict[str, Any]) -> Callable[..., None]:
    """The function of a source text; equal texts are compiled once."""
    space = dict(names)
    exec(_code(source), space)  # our own text: names are numbered, nothing of the program's
    tile: Callable[..., None] = space["tile"]
    return tile
