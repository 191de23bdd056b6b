"""Plans that can be read: what runs together, in which pieces, and what that is predicted to cost.

A `Described` plan runs as any other and remembers what it was made of; `describe` turns it into
plain data. Predictions come from the costs that the engine itself plans with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...graph.kinds import Kind
from ...graph.node import Node, Shape
from ...transform.simplify import special
from .. import blas
from ..fused.groups import POINTWISE, reduces
from ..fused.tiles import Tiled
from ..fused.tracing import Unknown, trace
from ..fused.writer import DEFAULT, REDUCED, Member, Writer, cost_of
from ..threaded_kernels import BLAS_FROM, CUT, is_cut, multiplications, parts_of
from ..threads import WORKERS
from .schedule import Plan, Step, bytes_of

CALL = 1000.0  # nanoseconds of a kernel's call
LINE = 400.0  # of a line of a tile
MEMORY = 0.04  # of a byte that goes to memory or comes from there
CACHED = 1 << 20  # bytes up to which an array is in cache
PRODUCT = 0.022  # of a float64 multiplication and addition in BLAS, on one thread
TRACED_FROM = 1024  # elements from which a kernel's ufuncs decide what it costs

IsBackward = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a plan; `name` is what the source of its group calls it."""

    name: str
    shape: Shape
    dtype: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """The ops that a group runs for one expression, forward or backward."""

    span: Any
    backward: bool
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Nodes that run together over `rows` times `row` elements, `tile` rows at a time.

    `buffers` are the scratch memory of one thread; `bytes` is what is read and written outside.
    """

    pieces: tuple[Piece, ...]
    nodes: int
    rows: int
    row: Shape
    tile: int
    tiles: int
    threads: int
    inputs: tuple[Array, ...]
    buffers: tuple[Array, ...]
    outputs: tuple[Array, ...]
    bytes: int
    flops: int
    seconds: float
    source: str


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """One kernel over whole arrays, cut in `parts`; `blas` are threads of the BLAS library, 0 where
    it is left to itself."""

    op: str
    piece: Piece
    shape: Shape
    dtype: str
    parts: int
    threads: int
    blas: int
    bytes: int
    flops: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PlanData:
    """A plan; `how` it was run: "plan", or "nodes" where one node was run after the other and the
    plan is what would have been. `peak` are the most bytes that are held at a time."""

    how: str
    units: tuple[GroupPlan | KernelPlan, ...]
    inputs: int
    results: int
    peak: int
    bytes: int
    flops: int
    seconds: float


class DescribedTiled(Tiled):
    """A group that remembers its members and arrays."""

    members: list[Member]
    read: list[Array]
    made: list[tuple[Any, int, int]]  # (span, seq, bytes) of what leaves the group

    def _compile(self, writer: Writer, wanted: list[Node]) -> None:
        self.members = writer.members
        self.flops = writer.flops
        self.read = [
            _array(f"x[{i}]", node.shape, node.dtype) for i, (node, _) in enumerate(writer.inputs)
        ]
        self.made = [(node.span, node.seq, bytes_of(node)) for node in (*wanted, *writer.finals)]
        self.names = writer.globals
        self.rests = [ref.rest for _, ref in writer.inputs if ref.rows]
        self.rests += [line.result.rest for line in writer.lines if line.result is not None]
        super()._compile(writer, wanted)


class Detail:
    """Facts about a step's node for predictions: `cost` in nanoseconds of one thread, `product`
    whether BLAS computes it; and of its first result the shape and dtype."""

    __slots__ = ("cost", "dtype", "flops", "many", "parts", "product", "read", "seq", "shape")

    def __init__(self, node: Node):
        self.seq = node.seq
        self.shape, self.dtype = node.outputs[0] if node.outputs else (node.shape, node.dtype)
        self.read = 0 if node.op.view else sum(map(bytes_of, node.inputs))
        self.flops, self.cost = predicted(node)
        self.parts = parts_of(node) if is_cut(node) else 1
        self.product = node.op.kind is Kind.CONTRACTION
        self.many = self.product and blas.MANAGED and multiplications(node) >= BLAS_FROM


class Described(Plan):
    """A plan that can be described; it holds no nodes either."""

    tiled = DescribedTiled

    def __init__(self, order: list[Node], inputs: list[Node], targets: list[Node]):
        self.details: dict[int, Detail] = {}
        super().__init__(order, inputs, targets)

    def _add(self, node: Node) -> None:
        super()._add(node)
        step = self.steps[-1]
        assert isinstance(step, Step)
        self.details[step.result] = Detail(node)


def describe(plan: Described, is_backward: IsBackward, how: str = "plan") -> PlanData:
    """The plan as data."""
    units: list[GroupPlan | KernelPlan] = []
    for step in plan.steps:
        if isinstance(step, DescribedTiled):
            units.append(_group(step, is_backward))
        elif isinstance(step, Step) and step.name != "output":
            units.append(_kernel(step, plan.details[step.result], is_backward))
    return PlanData(
        how,
        tuple(units),
        len(plan.inputs),
        len(plan.targets),
        plan.most_bytes()[0],
        sum(unit.bytes for unit in units),
        sum(unit.flops for unit in units),
        sum(unit.seconds for unit in units),
    )


def _group(step: DescribedTiled, is_backward: IsBackward) -> GroupPlan:
    outputs = [
        _array(f"y[{i}]", shape, dtype) for i, (_, shape, _, dtype) in enumerate(step.outputs)
    ]
    outputs += [_array(f"z[{i}]", f.whole, f.dtype) for i, f in enumerate(step.finals)]
    buffers = [
        _array(f"b{i}", (step.tile, *rest) if rows else rest, dtype)
        for i, (rest, rows, dtype) in enumerate(step.buffers)
    ]
    moved = sum(array.bytes for array in (*step.read, *outputs))
    threads = step.threads()
    lines = step.tiles * len(step.spans)
    nanoseconds = (step.cost + LINE * lines + MEMORY * moved) / threads
    return GroupPlan(
        _pieces(step.members, is_backward), step.nodes, step.rows, max(step.rests, key=prod),
        step.tile, step.tiles, threads, tuple(step.read), tuple(buffers), tuple(outputs),
        moved, step.flops, nanoseconds * 1e-9, _legend(step.names) + step.source,
    )  # fmt: skip


def _legend(names: dict[str, Any]) -> str:
    """Write a comment that explains the numbered names of a generated source."""
    found = []
    for name, value in names.items():
        function = getattr(value, "ufunc", value)
        if name != (called := getattr(function, "__name__", str(value))):
            found.append(f"{name} {called}".partition("\n")[0])
    return f"# {', '.join(found)}\n" if found else ""


def _kernel(step: Step, detail: Detail, is_backward: IsBackward) -> KernelPlan:
    count = WORKERS.count()
    threads = min(detail.parts, count)
    moved = detail.read + step.bytes
    nanoseconds = CALL + detail.cost / (count if detail.many else threads)
    nanoseconds += MEMORY * moved if moved > CACHED else 0
    managed = detail.product and blas.MANAGED
    return KernelPlan(
        step.name, Piece(step.span, is_backward(detail.seq), (step.name,)), detail.shape,
        detail.dtype.name, detail.parts, threads, (count if detail.many else 1) if managed else 0,
        moved, detail.flops, nanoseconds * 1e-9,
    )  # fmt: skip


def predicted(node: Node) -> tuple[int, float]:
    """Flops of a node's kernel, and the nanoseconds they take on one thread."""
    op = node.op
    if op.view or not node.inputs:
        return 0, 0.0
    if op.kind is Kind.CONTRACTION or not op.properties.isdisjoint(CUT):
        product = op.kind is Kind.CONTRACTION
        flops = 2 * (multiplications(node) if product else _convolved(node))
        if flops:
            return flops, PRODUCT * flops * node.dtype.itemsize / 8
    elements = max(prod(node.shape), *[prod(x.shape) for x in node.inputs])
    if reduces(node):
        return elements, REDUCED * elements
    if op.kind is not POINTWISE or elements < TRACED_FROM:
        return elements, DEFAULT * elements
    functions = _ufuncs(node)
    cost = sum(map(cost_of, functions))
    return len(functions) * elements, cost * elements


def _convolved(node: Node) -> int:
    """Multiplications of a convolution or one of its adjoints; 0 for what is none."""
    shapes = [x.shape for x in node.inputs]
    if len(shapes) < 2:
        return 0
    if "samplewise" in node.op.properties:  # N, C, ... and weights
        windows = min(prod(shapes[0][2:]), prod(node.shape[2:]))
        return shapes[0][0] * windows * prod(shapes[1])
    samples, _, *places = shapes[1]
    return samples * prod(places) * prod(node.shape)


def _ufuncs(node: Node) -> list[Any]:
    """The ufuncs a pointwise kernel is made of."""
    kernel: Any = node.op.kernel
    args: list[Any] = []
    for arg in node.args:
        if type(arg) is Node:
            arg = Unknown(arg.dtype) if special(arg) is None else arg.value
        args.append(arg)
    traced = trace(kernel, args, node.dtype)
    return [kernel] if traced is None else [step.function for step in traced[0]]


def _pieces(members: Sequence[Member], is_backward: IsBackward) -> tuple[Piece, ...]:
    """The expressions of a group, forward before backward."""
    found: dict[tuple[bool, Any], list[str]] = {}
    for member in members:
        found.setdefault((is_backward(member.seq), member.span), []).append(member.name)
    ordered = sorted(found.items(), key=lambda item: item[0][0])
    return tuple(Piece(span, back, tuple(names)) for (back, span), names in ordered)


def _array(name: str, shape: Shape, dtype: np.dtype) -> Array:
    return Array(name, shape, dtype.name, prod(shape) * dtype.itemsize)
