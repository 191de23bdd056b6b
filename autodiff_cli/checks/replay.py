"""A graph evaluated again and again with other values in its leaves: planned once, run many times.

Everything floating is computed in float64, whatever the program says. Invariant: the nodes of the
graph are only read; draws of random numbers keep the values they had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..autograd.tensor import Unkept
from ..engine.evaluate import dependencies
from ..graph import op as ops
from ..graph.dtypes import FLOAT64
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import value_of
from ..graph.walk import SEQUENCE, walk

Step = tuple[int, Callable[[list[Any]], Any]]


def shows(node: Node) -> bool:
    """Whether a node is a view that was made under `no_grad`: a leaf that keeps no gradient."""
    return node.op is ops.LEAF and type(node.args[0]) is Unkept


class Replay:
    """The nodes behind `outputs`, with the values they have now as the base.

    `frozen` nodes keep their base value, whatever is put in the leaves.
    """

    def __init__(self, outputs: Iterable[Node], frozen: Iterable[Node] = ()):
        self.outputs = list(outputs)
        self.frozen = set(frozen)
        self.reached: dict[Node, list[Node]] = {}
        self.order = self._ordered()
        self.slots = {node: at for at, node in enumerate(self.order)}
        self.wide = any(node.dtype.kind == "f" and node.dtype != FLOAT64 for node in self.order)
        self.base: list[Any] = [None] * len(self.order)
        self.steps: list[Step | None] = [None] * len(self.order)
        with np.errstate(all="ignore"):
            for at, node in enumerate(self.order):
                self._prepare(at, node)

    def _ordered(self) -> list[Node]:
        """The nodes in the order in which they run; `reads` has what each is made of."""
        nodes = sorted(walk(self.outputs, self.needed), key=SEQUENCE)
        self.reads = {node: self.needed(node) for node in nodes}
        return nodes

    @staticmethod
    def needed(node: Node) -> tuple[Node, ...]:
        """The nodes a value is made of here: leaves and constants are given, but for views that
        were made under `no_grad`, which show what they look at."""
        if shows(node):
            return node.inputs
        if node.op is ops.LEAF or node.op is ops.CONSTANT:
            return ()
        return dependencies(node)

    def _prepare(self, at: int, node: Node) -> None:
        """The base value of a node and, unless it is given, the step that makes it again."""
        reads = self.reads[node]
        if not reads and (node.value is not None or node.op.kind is Kind.SOURCE):
            self.base[at] = finished(value_of(node), self.wide)
            return
        step = self._step(node)
        self.base[at] = step(self.base)
        if reads:
            self.steps[at] = (at, step)

    def _step(self, node: Node) -> Callable[[list[Any]], Any]:
        wide = self.wide
        if node.body is not None:
            return self._reader(node.body)
        if node.op is ops.LEAF:
            return self._reader(node.inputs[0])
        if node.op is ops.OUTPUT:
            whole, index = self._reader(node.args[0]), node.args[1]
            return lambda values: whole(values)[index]
        run: Any = node.op.kernel
        if wide or node.outputs is not None:
            kernel = run

            def run(*args: Any) -> Any:
                return finished(kernel(*args), wide)

        readers = [self._reader(arg) for arg in node.args]
        return lambda values: run(*[read(values) for read in readers])

    def _reader(self, arg: Any) -> Callable[[list[Any]], Any]:
        if type(arg) is Node:
            place = self.slots[arg]
            return lambda values: values[place]
        if type(arg) is tuple and any(type(part) is Node for part in arg):
            parts = [self._reader(part) for part in arg]
            return lambda values: tuple(read(values) for read in parts)
        if self.wide and isinstance(arg, np.dtype) and arg.kind == "f":
            arg = FLOAT64
        return lambda values: arg

    # -- which nodes depend on what -------------------------------------------------------------

    def dependents(self, leaf: Node) -> list[Node]:
        """The nodes whose values change with a leaf, in the order in which they run."""
        found = self.reached.get(leaf)
        if found is None:
            found = self.reached[leaf] = self._dependents(leaf)
        return found

    def _dependents(self, leaf: Node) -> list[Node]:
        reached = {leaf}
        found = []
        for node in self.order:
            reads = self.reads[node]
            if reached.isdisjoint(reads) or node in reached or node in self.frozen:
                continue
            reached.add(node)
            found.append(node)
        return found

    def function(self, leaf: Node) -> Callable[[Any], list[Any]]:
        """`f(value of the leaf) -> values of the outputs`; only what changes is computed. The
        caller decides about NumPy's warnings."""
        steps = [step for n in self.dependents(leaf) if (step := self.steps[self.slots[n]])]
        outputs = [self.slots[node] for node in self.outputs]
        base = self.base
        if leaf not in self.slots:
            return lambda value: [base[at] for at in outputs]
        place = self.slots[leaf]

        def run(value: Any) -> list[Any]:
            values = base.copy()
            values[place] = value
            for at, step in steps:
                values[at] = step(values)
            return [values[at] for at in outputs]

        return run

    def value(self, node: Node) -> Any:
        """The base value of a node."""
        return self.base[self.slots[node]]

    def __contains__(self, node: Node) -> bool:
        return node in self.slots


def finished(value: Any, wide: bool) -> Any:
    """Return the results of a kernel as arrays; if they are to be wide, floats in float64."""
    if isinstance(value, tuple | list):
        return tuple(finished(part, wide) for part in value)
    array = np.asarray(value)
    return np.asarray(array, FLOAT64) if wide and array.dtype.kind == "f" else array
