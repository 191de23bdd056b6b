"""The members of a fusion group as straight-line code of a tile: which ufunc runs on which values.

A value that was broadcast stays narrow until somebody needs it wide. Kernels that are made of
ufuncs are written out (`tracing`), so that every intermediate value can have its memory given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...graph.node import Node, Shape
from ...graph.op import POINTWISE
from ...transform.simplify import special
from .. import bitwise_where
from .groups import Group, Grouping, reduced_dims, reduces
from .tracing import Place, Unknown, trace

# Nanoseconds an element takes in cache, float64; what is not listed costs as much as DEFAULT.
COSTS: dict[Any, float] = {
    np.true_divide: 0.4, np.maximum: 0.35, np.minimum: 0.35, np.exp: 0.8, np.expm1: 1.2,
    np.log: 0.85, np.log1p: 1.0, np.sqrt: 1.2, np.tanh: 1.7, np.tan: 1.4, np.arctan: 1.2,
    np.sin: 8.4, np.cos: 8.4, np.power: 2.9, np.hypot: 6.6, np.logaddexp: 14.0, np.where: 1.0,
}  # fmt: skip
DEFAULT = 0.25
UNTRACED = 5.0

REDUCED = 0.28  # a reduction, of each element of its operand


def cost_of(function: Any) -> float:
    """Nanoseconds that a function takes for an element."""
    known = COSTS.get(getattr(function, "ufunc", function))
    return getattr(function, "cost", DEFAULT) if known is None else known


class Member(NamedTuple):
    """A node of a group as plans remember it: `seq` tells when it was made, `cost` are nanoseconds
    of one thread."""

    name: str
    span: Any
    seq: int
    cost: float


class Ref:
    """A value inside a tile: `rows` tells whether it has the tile's rows before `rest`, `base`
    whose memory it may be."""

    __slots__ = ("bases", "buffer", "dtype", "last", "name", "rest", "rows")

    def __init__(self, name: str, rows: bool, rest: Shape, dtype: np.dtype):
        self.name = name
        self.rows = rows
        self.rest = rest
        self.dtype = dtype
        self.bases: tuple[Ref, ...] = ()
        self.buffer = ""
        self.last = -1


@dataclass(slots=True, eq=False)
class Line:
    """`result = function(operands)`, with the result's memory given when `into` is set."""

    text: str
    operands: list[Ref]
    result: Ref | None
    node: Node
    into: bool = False
    writes: str = ""


class Writer:
    """Turns the members of a group into lines."""

    def __init__(self, group: Group, grouping: Grouping):
        self.group = group
        self.grouped = grouping.of
        self.again = grouping.again
        self.chosen = grouping.chosen
        self.depth = len(group.lead)
        self.lines: list[Line] = []
        self.refs: dict[tuple[Node, bool], Ref] = {}
        self.globals: dict[str, Any] = {"broadcast_to": np.broadcast_to}
        self.names: dict[int, str] = {}
        self.count = 0
        self.inputs: list[tuple[Node, Ref]] = []
        self.finals: dict[Node, str] = {}
        self.cost = 0.0
        self.flops = 0
        self.members: list[Member] = []
        for node in group.members:
            if node not in self.again:  # else it is written where it is read
                self._member(node)

    def _spend(self, cost: float, elements: int) -> None:
        self.cost += cost * elements
        self.flops += elements

    # -- names ------------------------------------------------------------------------------------

    def _global(self, value: Any) -> str:
        name = self.names.get(id(value))
        if name is None:
            name = self.names[id(value)] = f"g{len(self.globals)}"
            self.globals[name] = value
        return name

    def _new(self, rows: bool, rest: Shape, dtype: np.dtype) -> Ref:
        self.count += 1
        return Ref(f"v{self.count}", rows, rest, dtype)

    def _ref(self, node: Node, aligned: bool = True) -> Ref:
        """The value of a node inside a tile: its rows, or when not `aligned` the whole."""
        node = self.chosen.get(node, node)
        ref = self.refs.get((node, aligned))
        if ref is None and node in self.again:
            self._member(node)
            ref = self.refs[node, True]
        if ref is None:
            rest = node.shape[self.depth :] if aligned else node.shape
            while not aligned and rest and rest[0] == 1:
                rest = rest[1:]
            ref = self._new(aligned, rest, node.dtype)
            self.refs[node, aligned] = ref
            self.inputs.append((node, ref))
        return ref

    def _operand(self, x: Node, node: Node) -> Ref:
        """The value of an operand that broadcasts to `node`, as narrow as it comes."""
        x = self.chosen.get(x, x)
        while x not in self.grouped and "expands" in x.op.properties and x.value is None:
            narrow = self.chosen.get(x.inputs[0], x.inputs[0])
            if self._cut(narrow, node) is None:
                break
            x = narrow
        return self._ref(x, self._cut(x, node) is True)

    def _cut(self, x: Node, node: Node) -> bool | None:
        """True: cut like `node`; False: the same for all rows; None: neither."""
        depth = self.depth
        if x in self.group.members or x in self.again:
            return True
        if len(x.shape) == len(node.shape) and x.shape[:depth] == self.group.lead:
            return True
        missing = len(node.shape) - len(x.shape)
        if all(n == 1 for n in x.shape[: max(depth - missing, 0)]):
            return False
        return None

    def _wide(self, ref: Ref, rest: Shape, node: Node) -> Ref:
        """The value with all rows and all of `rest`."""
        if ref.rows and ref.rest == rest:
            return ref
        shape = "".join(f"{n}, " for n in rest)
        return self._call(f"broadcast_to({ref.name}, (n, {shape}))", [ref], True, rest, node)

    def _call(
        self,
        text: str,
        operands: list[Ref],
        rows: bool,
        rest: Shape,
        node: Node,
        dtype: np.dtype | None = None,
        fresh: bool = False,
    ) -> Ref:
        result = self._new(rows, rest, dtype or node.dtype)
        if not fresh:
            result.bases = tuple(operands)
        self.lines.append(Line(text, operands, result, node))
        return result

    # -- members ----------------------------------------------------------------------------------

    def _member(self, node: Node) -> None:
        """Write a node, after those that are computed again for it."""
        cost, before = self.cost, len(self.members)
        self._write(node)
        cost = self.cost - cost - sum(member.cost for member in self.members[before:])
        self.members.append(Member(node.op.name, node.span, node.seq, cost))

    def _write(self, node: Node) -> None:
        op = node.op
        if reduces(node):
            self._reduction(node)
            return
        if op.kind is POINTWISE or "elementwise" in op.properties:
            ref = self._pointwise(node)
        elif "expands" in op.properties:
            ref = self._operand(node.inputs[0], node)
        elif "reshapes" in op.properties:
            ref = self._reshaped(node)
        else:
            ref = self._slicewise(node)
        self.refs[node, True] = ref

    def _pointwise(self, node: Node) -> Ref:
        args: list[Any] = []
        operands: list[Ref] = []
        numbers: list[Any] = []
        for arg in node.args:
            if type(arg) is Node:
                arg = self.chosen.get(arg, arg)
                if special(arg) is not None:
                    args.append(arg.value)
                    numbers.append(arg.value)
                else:
                    ref = self._operand(arg, node)
                    operands.append(ref)
                    args.append(Unknown(ref.dtype))
                    numbers.append(ref)
            else:
                args.append(arg)
                numbers.append(arg)
        kernel: Any = node.op.kernel
        traced = trace(kernel, args, node.dtype) if operands else None
        if traced is None:
            return self._untraced(node, kernel, numbers)
        instructions, result = traced
        values = list(operands)
        for instruction in instructions:
            values.append(self._instruction(instruction, values, node))
        return values[result]

    def _untraced(self, node: Node, kernel: Callable[..., Any], numbers: list[Any]) -> Ref:
        refs = [x for x in numbers if type(x) is Ref]
        rows, rest = _common(refs)
        self._spend(UNTRACED, self._elements(rows, rest))
        texts = [x.name if type(x) is Ref else self._global(x) for x in numbers]
        return self._call(f"{self._global(kernel)}({', '.join(texts)})", refs, rows, rest, node)

    def _instruction(self, instruction: Any, values: list[Ref], node: Node) -> Ref:
        function = instruction.function
        refs: list[Ref] = []
        texts: list[str] = []
        for operand in instruction.operands:
            if type(operand) is Place:
                refs.append(values[operand.at])
                texts.append(values[operand.at].name)
            else:
                texts.append(self._global(operand))
        rows, rest = _common(refs)
        if function is np.where:
            picked = self._chosen(instruction, values, node)
            if picked is not None:
                return picked
        cost = cost_of(function)
        self._spend(cost, self._elements(rows, rest))
        listed = ", ".join(texts)
        if hasattr(function, "nout"):  # a ufunc, or called like one
            result = self._new(rows, rest, instruction.dtype)
            text = f"{self._global(function)}({listed}"
            self.lines.append(Line(text, refs, result, node, into=True))
            return result
        text = f"{self._global(function)}({listed})"
        return self._call(text, refs, rows, rest, node, instruction.dtype, fresh=True)

    def _chosen(self, instruction: Any, values: list[Ref], node: Node) -> Ref | None:
        """A choice between two values of one dtype; None for others."""
        condition, *sides = [values[x.at] if type(x) is Place else x for x in instruction.operands]
        dtype = instruction.dtype
        if dtype.itemsize < 4 or any(side.dtype != dtype for side in sides):
            return None
        refs = [x for x in sides if type(x) is Ref]
        if type(condition) is not Ref or condition.dtype.kind != "b" or len(set(refs)) < len(refs):
            return None
        zero = [type(side) is not Ref and bitwise_where.is_zero(side) for side in sides]
        mask = self._new(condition.rows, condition.rest, np.dtype(f"i{dtype.itemsize}"))
        spread = bitwise_where.spread_not if zero[0] else bitwise_where.spread
        text = f"{self._global(spread)}({condition.name}"
        self.lines.append(Line(text, [condition], mask, node, into=True))
        function: Any = bitwise_where.kept if any(zero) else bitwise_where.chosen
        used = [side for side, left_out in zip(sides, zero, strict=True) if not left_out]
        rows, rest = _common([mask, *refs])
        result = self._new(rows, rest, dtype)
        names = [x.name if type(x) is Ref else self._global(x) for x in used]
        text = f"{self._global(function)}({', '.join([mask.name, *names])}"
        self.lines.append(Line(text, [mask, *refs], result, node, into=True))
        self._spend(bitwise_where.COST, self._elements(rows, rest))
        return result

    def _elements(self, rows: bool, rest: Shape) -> int:
        return prod(rest) * (self.group.rows if rows else 1)

    def _reshaped(self, node: Node) -> Ref:
        x = self.chosen.get(node.inputs[0], node.inputs[0])
        ref = self._ref(x)
        rest = node.shape[self.depth :]
        if not ref.rows and ref.rest == ():
            return ref
        ref = self._wide(ref, x.shape[self.depth :], node)
        shape = "".join(f"{n}, " for n in rest)
        return self._call(f"{ref.name}.reshape((n, {shape}))", [ref], True, rest, node)

    def _slicewise(self, node: Node) -> Ref:
        at = node.op.index["dim"]
        refs: list[Ref] = []
        texts: list[str] = []
        for i, arg in enumerate(node.args):
            if type(arg) is Node:
                x = self.chosen.get(arg, arg)
                ref = self._wide(self._ref(x), x.shape[self.depth :], node)
                refs.append(ref)
                texts.append(ref.name)
            else:
                texts.append(self._global(arg - self.depth + 1 if i == at else arg))
        rest = node.shape[self.depth :]
        self._spend(UNTRACED, self._elements(True, rest))
        text = f"{self._global(node.op.kernel)}({', '.join(texts)})"
        return self._call(text, refs, True, rest, node)

    def _reduction(self, node: Node) -> None:
        x = self.chosen.get(node.inputs[0], node.inputs[0])
        ref = self._wide(self._ref(x), x.shape[self.depth :], node)
        self._spend(REDUCED, self._elements(True, ref.rest))
        dims = reduced_dims(node)
        partial = node in self.group.partials
        inner = tuple(d - self.depth + 1 for d in dims if d >= self.depth)
        if partial:
            inner = (0, *inner)
        sums = "sums" in node.op.properties
        keep = not partial and (sums or bool(node.args[2]))
        if sums:
            text = f"{self._global(np.add.reduce)}({ref.name}, {inner}, None, None, {keep})"
        else:
            more = "".join(f", {self._global(arg)}" for arg in node.args[3:])
            text = f"{self._global(node.op.kernel)}({ref.name}, {inner}, {keep}{more})"
        if partial:
            name = self.finals[node] = f"p{len(self.finals)}"
            line = Line(text, [ref], None, node)
            line.writes = f"{name}[t] = "
            self.lines.append(line)
            return
        shape = node.shape[self.depth :]
        self.refs[node, True] = self._call(text, [ref], True, shape, node, fresh=True)


def _common(refs: list[Ref]) -> tuple[bool, Shape]:
    """Shape of a pointwise result of these operands."""
    rows = any(ref.rows for ref in refs)
    rest = refs[0].rest
    for ref in refs[1:]:
        if ref.rest != rest:
            rest = np.broadcast_shapes(rest, ref.rest)
    return rows, rest
