"""Evaluating a graph whose data are blocked by rows: a few passes over the blocks.

What depends on rows alone, forward and backward, is done with one block after the other, and only
sums over rows leave it. A graph in which sums over all rows come before what rows need again
(a standardized column, a step of training) takes one pass more for each such turn. What has no
rows is computed where the program runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...errors import fault
from ...graph.kinds import Kind
from ...graph.node import Node
from ...graph.op import LEAF, OUTPUT
from ...graph.registry import F
from ...graph.sizes import bytes_text, shape_text
from ...graph.state import STATE
from ...graph.walk import SEQUENCE, walk
from ..evaluate import evaluate
from .job import Job, Measured, Ref, Sized, Step
from .placement import TAKEN, THROUGH, Placed, Placement, placed, read, taken

WHOLE = 1 << 26  # bytes of an array that may be computed whole although its rows are asked for
TOGETHER = 8  # results of blocks that one task combines


class Blocks(Protocol):
    """Where blocks of rows are, and what runs jobs there."""

    bounds: list[int]  # where blocks begin, and the number of rows
    axis: int  # that is cut of what is read: 0 for rows

    def run(
        self,
        job: Job,
        arrays: list[Any],
        whole: list[np.ndarray],
        how: Sequence[str | int],
        rows: np.ndarray | None = None,
    ) -> list[Any]:
        """The results of a job for all rows, or those of ascending numbers, combined over blocks as
        `how` says."""

    def lazy(self, job: Job, arrays: list[Any], whole: list[np.ndarray], axis: int) -> Any:
        """The only result of a job, with rows along `axis`, in blocks nobody has asked for yet."""


class Rows:
    """The value of a node whose rows are blocked: `array` is where `Blocks` has it."""

    def __init__(self, array: Any, shape: tuple[int, ...], dtype: np.dtype, rows: Placement):
        self.array = array
        self.shape = shape
        self.dtype = dtype
        self.rows = rows
        self.measured: Measured | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__array__()

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise fault("E606 rows-are-blocked", shape_text(self.shape), bytes_text(self.nbytes))

    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __len__ = __iter__ = __array__


class Key(NamedTuple):
    """A node as one block sees it: where its rows are, None for a whole one."""

    node: Node
    rows: Placement | None


class Passes:
    """The observer of evaluations (`STATE.observer`) that runs what depends on blocked rows."""

    inside = False

    def __init__(self, blocks: Blocks, max_bytes: int, whole: int = WHOLE):
        self.blocks = blocks
        self.max_bytes = max_bytes
        self.whole = whole

    @property
    def total(self) -> int:
        """The number of rows."""
        return self.blocks.bounds[-1]

    def backward_begins(self) -> None:
        """A graph of derivatives is being built: there is nothing to see."""

    backward_ends = backward_begins

    def is_blocked(self, node: Node) -> bool:
        """Whether the value of a node has rows."""
        return real(node) in _Graph([node], self).rows

    def draws(self, size: int) -> None:
        """Refuse to draw more random numbers than may be whole: they come one after the other."""
        if size > self.whole:
            raise fault("E606 too-many-drawn", bytes_text(size))

    def evaluate(self, targets: list[Node], last: bool) -> None:
        """Set the values of `targets`, `Rows` where they have rows."""
        before, STATE.observer, room = self, None, STATE.max_bytes
        STATE.max_bytes = self.max_bytes
        try:
            graph = _Graph(targets, self)
            if graph.rows:
                graph.evaluate(last)
            else:
                evaluate(targets, last)
        finally:
            STATE.observer, STATE.max_bytes = before, room


def real(node: Node) -> Node:
    """Return the node computed for another: the body of a composite, the source of a leaf."""
    while node.value is None:
        if node.op is OUTPUT and type(node.args[0].body) is tuple:
            node = node.args[0].body[node.args[1]]
        elif node.body is not None and type(node.body) is not tuple:
            node = node.body
        elif node.op is LEAF and node.inputs:
            node = node.inputs[0]
        else:
            return node
    return node


def _bytes(node: Node) -> int:
    return node.numel * node.dtype.itemsize


class _Graph:
    """The nodes that one evaluation needs, and where the rows of each are."""

    def __init__(self, targets: list[Node], passes: Passes):
        self.passes = passes
        self.total = passes.total
        self.targets = targets
        self.order = sorted(walk(map(real, targets), self._below), key=SEQUENCE)
        self.made: dict[Node, Any] = {}  # what the passes left
        self.shown: dict[Node, list[Node]] = {}  # nodes that stand for another, by that one
        for node in self.order:
            for raw in node.inputs:
                if (stands := real(raw)) is not raw:
                    self.shown.setdefault(stands, []).append(raw)
        self.rows: dict[Node, Placement] = {}
        self.placed: dict[Node, Placed] = {}
        self.turn: dict[Node, int] = {}  # the pass after which a node can be computed
        for node in self.order:
            self._place(node)

    @staticmethod
    def _below(node: Node) -> Iterable[Node]:
        return () if node.value is not None else map(real, node.inputs)

    def _place(self, node: Node) -> None:
        self.turn[node] = 0
        if node.value is not None:
            if isinstance(node.value, Rows):
                self.rows[node] = node.value.rows
            return
        inputs = [real(x) for x in node.inputs]
        self.turn[node] = max([self.turn[x] for x in inputs], default=0)
        if node.op is OUTPUT:
            if inputs[0] in self.rows:
                self.rows[node] = self.rows[inputs[0]]
            return
        at = [self.rows.get(x) for x in inputs]
        if any(at):
            found = placed(node, at, self.total)
            self.placed[node] = found
            if found.rows is None:
                self.turn[node] += 1
            else:
                self.rows[node] = found.rows
        elif node.op.key in ("expand", "filled") and _bytes(node) > self.passes.whole:
            axis = next((d for d, size in enumerate(node.shape) if size == self.total), None)
            if axis is not None and not any(read(x, node, (axis, 1)) for x in node.inputs):
                self.rows[node] = (axis, 1)
                self.placed[node] = Placed((axis, 1), "", at)

    def evaluate(self, last: bool) -> None:
        """One pass after the other, then what has no rows."""
        sums = [node for node, found in self.placed.items() if found.rows is None]
        blocked = [x for x in dict.fromkeys(map(real, self.targets)) if x in self.rows]
        here = [x for x in blocked if x.value is None and self._stays(x)]
        unmeasured = [x for x in blocked if getattr(x.value, "measured", None) is None]
        unmeasured = [x for x in unmeasured if x not in here]
        passes = {self.turn[node] - 1 for node in sums}
        passes |= {self.turn[node] for node in (*here, *unmeasured)}
        for turn in sorted(passes):
            due = [node for node in sums if self.turn[node] == turn + 1]
            wanted = [node for node in due if self.placed[node].combine != TAKEN]
            self._fits(wanted)
            self._take([node for node in due if self.placed[node].combine == TAKEN])
            brought = [node for node in here if self.turn[node] == turn]
            measured = [node for node in unmeasured if self.turn[node] == turn]
            how: list[str | int] = [self.placed[node].combine for node in wanted]
            how += [self.rows[node][0] for node in brought]
            wanted += brought
            if not wanted and not measured:
                continue
            job = _Builder(self, [*wanted, *measured])
            how += [""] * len(measured)
            found = self.passes.blocks.run(job.job(len(wanted)), job.arrays, job.given, how)
            for node, value in zip(wanted, found, strict=False):
                if node in self.placed and self.placed[node].combine == "begun":
                    value = value + self._known(real(node.inputs[0]))
                self.made[node] = np.asarray(value, node.dtype)
            for node, value in zip(measured, found[len(wanted) :], strict=True):
                self.made[node] = lazy = self._lazy(node)
                lazy.measured = value
        self._finish(last)

    def _fits(self, sums: list[Node]) -> None:
        """Refuse what no worker could combine."""
        sizes = list(map(_bytes, sums))
        if sum(sizes) * (TOGETHER + 1) > self.passes.max_bytes:
            largest = sums[int(np.argmax(sizes))]
            raise fault(
                "E606 sums-too-large",
                op=largest.op.name,
                bytes=bytes_text(sum(sizes)),
                limit=bytes_text(self.passes.max_bytes),
                least=-(-sum(sizes) * (TOGETHER + 1) >> 20),
                span=largest.span,
            )

    def _stays(self, node: Node) -> bool:
        """Whether a result with columns is small enough to be whole, as weights and slopes are."""
        return self.passes.blocks.axis > 0 and _bytes(node) <= self.passes.whole

    def _take(self, nodes: list[Node]) -> None:
        """Bring rows here, those of the same numbers of all arrays together."""
        numbers = {}
        asked: dict[Node, list[np.ndarray]] = {}  # of an operand
        for node in nodes:
            if (size := _bytes(node)) > self.passes.whole:
                raise fault(
                    "E606 too-many-rows-taken",
                    op=node.op.name,
                    shape=shape_text(node.shape),
                    bytes=bytes_text(size),
                    span=node.span,
                )
            indices = self._known(real(node.inputs[1])) if len(node.inputs) > 1 else None
            numbers[node] = found = taken(node, indices, self.total)
            asked.setdefault(real(node.inputs[0]), []).append(found)
        rows = {x: np.unique(np.hstack(found)).astype(int) for x, found in asked.items()}
        together: dict[bytes, list[Node]] = {}
        for operand, found in rows.items():
            together.setdefault(found.tobytes(), []).append(operand)
        arrays: dict[Node, np.ndarray] = {}
        for operands in together.values():
            found, job = rows[operands[0]], _Builder(self, operands)
            axes = [self.rows[operand][0] for operand in operands]
            run = self.passes.blocks.run
            parts = run(job.job(len(axes)), job.arrays, job.given, axes, found)
            arrays.update(zip(operands, parts, strict=True))
        for node in nodes:
            operand = real(node.inputs[0])
            places = np.searchsorted(rows[operand], numbers[node])
            value = arrays[operand].take(places, self.rows[operand][0])
            self.made[node] = value.reshape(node.shape)

    def _lazy(self, node: Node) -> Rows:
        if isinstance(node.value, Rows):
            return node.value
        job = _Builder(self, [node])
        rows = self.rows[node]
        array = self.passes.blocks.lazy(job.job(1), job.arrays, job.given, rows[0])
        return Rows(array, node.shape, node.dtype, rows)

    def _known(self, node: Node) -> Any:
        self.compute([node], True)
        return node.value

    def compute(self, nodes: list[Node], last: bool) -> None:
        """Evaluate nodes without rows from what the passes left."""
        for node, value in self.made.items():
            node.value = value
            for raw in self.shown.get(node, ()):
                raw.value = value
        evaluate([node for node in nodes if node.value is None], last)

    def _finish(self, last: bool) -> None:
        stand = [real(t) for t in self.targets]
        self.compute([node for node in stand if node not in self.rows], last)
        for target, node in zip(self.targets, stand, strict=True):
            target.value = self.made.get(node) if node.value is None else node.value


class _Builder:
    """The job of one pass: the steps that lead from blocks and whole arrays to results."""

    def __init__(self, graph: _Graph, wanted: list[Node]):
        self.graph = graph
        self.wanted = [Key(node, graph.rows.get(node)) for node in wanted]
        self.sources: dict[Key, None] = {}
        self.whole: dict[Key, None] = {}
        self.reads: dict[Key, list[Key]] = {}
        self._look()
        graph.compute([key.node for key in self.whole], True)
        self.arrays = [key.node.value.array for key in self.sources]
        self.given = [key.node.value for key in self.whole]
        self.number: dict[Key, int] = {}
        for key in (*self.sources, *self.whole):
            self.number[key] = len(self.number)
        self.steps: list[Step] = []
        for key in sorted(self.reads, key=lambda key: key.node.seq if self.reads[key] else 0):
            self.number[key] = len(self.number)
            self.steps.append(self._step(key))

    def job(self, wanted: int) -> Job:
        numbers = tuple(self.number[key] for key in self.wanted)
        return Job(
            len(self.sources),
            tuple(key.rows for key in self.whole),
            tuple(self.steps),
            numbers[:wanted],
            numbers[wanted:],
            self.graph.passes.max_bytes,
        )

    def _look(self) -> None:
        """Find what each result reads, down to blocks and whole arrays."""
        graph = self.graph
        pending = list(self.wanted)
        seen = set(pending)
        while pending:
            key = pending.pop()
            node, rows = key
            if isinstance(node.value, Rows):
                self.sources[key] = None
                continue
            found = graph.placed.get(node)
            through = rows is not None and node not in graph.rows
            if node.op is OUTPUT and node in graph.rows:
                reads: list[Placement | None] = [rows]
            elif found is not None and (found.rows is not None or key in self.wanted):
                reads = list(found.reads)
            elif rows is not None and through and self._passes(node):
                reads = [read(x, node, rows) for x in node.inputs]
            else:
                if through and _bytes(node) > graph.passes.whole:
                    raise fault(
                        "E606 whole-array-too-large",
                        bytes_text(_bytes(node)),
                        span=node.span,
                        op=node.op.name,
                    )
                self.whole[key] = None
                continue
            below = [Key(real(x), p) for x, p in zip(node.inputs, reads, strict=True)]
            if found is not None and found.combine == "begun":
                below[0] = Key(F.zeros(node.shape, dtype=node.dtype), None)
                self.reads[below[0]] = []
                seen.add(below[0])
            self.reads[key] = below
            for further in below:
                if further not in seen:
                    seen.add(further)
                    pending.append(further)

    def _passes(self, node: Node) -> bool:
        if node.value is not None:
            return False
        op = node.op
        return op.kind is Kind.POINTWISE or op.key in THROUGH or op.key == "filled"

    def _step(self, key: Key) -> Step:
        node, rows = key
        refs = iter([Ref(self.number[below]) for below in self.reads[key]])
        args = tuple([self._argument(i, arg, key, refs) for i, arg in enumerate(node.args)])
        if "reshapes" in node.op.properties:  # a block of one row is no axis to squeeze
            sized = Sized((node.shape, rows))
            return Step("view", (args[0], sized), sized.form, node.dtype, None)
        outputs = None
        if node.outputs is not None:
            outputs = tuple(((shape, rows), dtype) for shape, dtype in node.outputs)
        return Step(node.op.key, args, (node.shape, rows), node.dtype, outputs)

    @staticmethod
    def _argument(at: int, arg: Any, key: Key, refs: Iterator[Ref]) -> Any:
        if type(arg) is Node:
            return next(refs)
        if type(arg) is tuple and any(type(part) is Node for part in arg):
            return tuple([next(refs) if type(part) is Node else part for part in arg])
        node = key.node
        if key.rows is not None and type(arg) is tuple and _is_size(node, at):
            return Sized((node.shape, key.rows))
        return arg


def _is_size(node: Node, at: int) -> bool:
    """Whether an argument is the size of the result."""
    op = node.op
    if op.key in ("filled", "embedded"):
        return node.args[at] == node.shape
    return op.params[at].annotation == "Size" and "samplewise" not in op.properties
