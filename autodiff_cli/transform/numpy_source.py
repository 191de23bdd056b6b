"""Graphs as NumPy source: an expression a node, nested where nothing else reads it.

What an op is in NumPy is found in this order: the text in its block (`numpy=`), what its properties
say of it, and its kernel, which is a ufunc, an expression, or a function that is copied with all
that it calls. Invariant: what is written reads nothing of this package and nothing of a program's
text but names that `Names` made.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import fault
from ..graph import op as ops
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import Op, value_of
from ..graph.walk import SEQUENCE, bodies, walk
from .kernel_source import Kernels, Substitution
from .simplify import representatives
from .torch_source import GraphSource, nodes_in
from .value_source import NoText, array_text, expression, literal, number_text, uniform, weak_text

INLINE = 16  # elements of a constant that is written where it is read
LONGEST = 72  # characters of an expression that is written where it is read
NEUTRAL: dict[Any, int] = {np.add: 0, np.subtract: 0, np.multiply: 1, np.true_divide: 1}
SOURCES = (ops.LEAF, ops.CONSTANT)


def is_given(node: Node) -> bool:
    """Whether a node is what its value is: a leaf or a constant; not a view that was made where
    no gradients are kept."""
    shows = node.op is ops.LEAF and not getattr(node.args[0], "kept", True)
    return node.op in SOURCES and not shows


def pairs_of(node: Node) -> Sequence[tuple[Node, Node]]:
    """The operands of a sum or a product with the one beside each, where it may be neutral."""
    if node.op.kernel not in NEUTRAL:
        return ()
    a, b = node.inputs
    return ((a, b), (b, a)) if node.op.kernel in (np.add, np.multiply) else ((a, b),)


def is_neutral(other: Node, node: Node) -> bool:
    """Whether an operand of a sum or a product changes nothing in it."""
    return bool((value_of(other) == NEUTRAL[node.op.kernel]).all())


class Graph:
    """The graph below some nodes without what only the engine needs: composites are their bodies,
    equal nodes are one, what depends on no input is its value."""

    def __init__(self, roots: Iterable[Node], inputs: Iterable[Node], ends: Iterable[Node]):
        self.inputs = set(inputs)
        ends = {*self.inputs, *ends}

        def below(node: Node) -> tuple[Node, ...]:
            return () if node in self.inputs or is_given(node) else bodies(node) or node.inputs

        roots = list(roots)
        order = sorted(walk(roots, below), key=SEQUENCE)
        equal: dict[Any, Node] = {}
        alike: dict[Node, Node] = {}
        for node in order:
            if not (node.inputs or below(node) or node in self.inputs or node.op is ops.LEAF):
                value = np.asarray(value_of(node))
                key = node.weak, value.dtype, value.shape, value.tobytes()
                alike[node] = equal.setdefault(key, node)
        self.chosen, _ = representatives([n for n in order if below(n)], alike)
        self.live: set[Node] = set()
        for node in order:
            if node in self.inputs or any(n in self.live for n in below(node)):
                self.live.add(node)
        needed = walk([self.of(r) for r in roots], lambda n: map(self.of, self.below(n)))
        self.uses = Counter(
            self.of(part) for node in needed for part in nodes_in(node.args) if node in self.live
        )

    def of(self, node: Node) -> Node:
        """The node that is computed in place of another."""
        while True:
            other = self.chosen.get(node, node)
            if other is node and node.op is ops.OUTPUT and (parts := bodies(node.args[0])):
                other = parts[node.args[1]]
            elif other is node and node in self.live:
                pairs = pairs_of(node)
                other = next((a for a, b in pairs if self._is_same(a, b, node)), node)
            if other is node:
                return node
            node = other

    def _is_same(self, of: Node, other: Node, node: Node) -> bool:
        """Whether a node is one of its operands: the other one adds nothing, or is a factor 1."""
        same = (of.shape, of.dtype) == (node.shape, node.dtype)
        return same and other not in self.live and is_neutral(other, node)

    def below(self, node: Node) -> tuple[Node, ...]:
        return () if node in self.inputs or node not in self.live else node.inputs


class NumpySource(GraphSource):
    """The source that computes nodes in NumPy: `lines` with names of `called`, functions that they
    call in `helpers`, the `data` that is too long to be written in a line."""

    def __init__(self, graph: Graph, called: Mapping[Node, str], taken: Iterable[str], for_: str):
        super().__init__()
        self.graph = graph
        self.called = called
        self.kernels = Kernels(for_, {*taken, *called.values()})

    def tree(self, node: Node) -> Any:
        """The expression of a node; what it reads is written first."""
        self.name(self.graph.of(node))
        return self._floating(node)

    def _call(self, thing: Node) -> Any:
        return _Wanted([self.graph.of(n) for n in self.graph.below(thing)])

    def _write(self, thing: Node, call: Any) -> None:
        if thing in self.graph.inputs:
            self.names[thing] = expression(self.called[thing])
            return
        if thing not in self.graph.live:
            self.names[thing] = self._constant(thing)
            return
        try:
            tree = _Fold().visit(self._applied(thing))
        except NoText as reason:
            library, name = self.kernels.library, thing.op.name
            raise fault("E404 no-code", name, library, why=reason, span=thing.span) from None
        name = self.called.get(thing, "")
        text = ast.unparse(tree)
        simple = isinstance(tree, ast.Name | ast.Tuple) or (
            self.graph.uses[thing] < 2 and len(text) <= LONGEST and thing.outputs is None
        )
        if simple and not name:
            self.names[thing] = tree
            return
        name = name or self.kernels.numbered("v")
        shape = f"  # {thing.shape}" if thing.shape else ""
        self.lines.append(f"{name} = {text}{shape}")
        self.names[thing] = expression(name)

    def _constant(self, node: Node) -> Any:
        array = np.asarray(value_of(node))
        if not array.ndim:
            return expression(
                weak_text(node) if node.weak and node.args else number_text(array[()])
            )
        if array.size <= INLINE or uniform(array):
            return expression(array_text(array))
        name = self.kernels.numbered("C")
        self.data[name] = array
        if self.kernels.library != "JAX" or array.dtype != np.float32:
            return expression(name)
        own = self.kernels.numbered("v")  # convolutions are of one dtype in JAX
        self.lines.append(f"{own} = {name}.astype(np.float32)  # {array.shape}")
        return expression(own)

    def _applied(self, node: Node) -> Any:
        op = node.op
        arrays = [n for n in node.inputs if n.ndim or self.graph.of(n) in self.graph.live]
        alone = all(n.dtype.kind != "f" for n in arrays)
        moves = op.kind is Kind.MOVEMENT  # numbers into others of their dtype
        tree_of = self._floating if alone or moves else self._tree_of
        if op is ops.OUTPUT:
            return ast.Subscript(
                self.names[self.graph.of(node.args[0])], ast.Constant(node.args[1])
            )
        if op is ops.CAST:
            return self._filled("input.astype(dtype)", ("input", "dtype"), node, tree_of)
        names = [param.name for param in op.params]
        for own in (op.jax if self.kernels.library == "JAX" else None, op.numpy):
            text = own if type(own) is str or own is None else own(*node.args)
            if text is not None:
                return self._filled(text, names, node, tree_of)
        for what, text in _BY_PROPERTY.items():
            if what in op.properties and op.kernel is not None:
                return self._filled(text, names, node, tree_of)
        args = [
            literal(value, tree_of if isinstance(value, Node) else self._typed)
            for value in node.args
        ]
        typed = [literal(value, self._typed) for value in node.args]
        return self.kernels.call(op.kernel, op.key, args, typed)

    def _typed(self, node: Any) -> Any:
        """As `_tree_of`, a number with its dtype."""
        tree = self._tree_of(node)
        if type(node) is not Node or self.graph.of(node) in self.graph.live:
            return tree
        plain = isinstance(tree, ast.Constant | ast.UnaryOp)
        if not plain and ast.unparse(tree) not in ("np.inf", "np.nan"):
            return tree
        return ast.Call(literal(node.dtype, self._tree_of), [tree], [])

    def _floating(self, node: Any) -> Any:
        """As `_tree_of`, a number as a float where it is one: nothing beside it makes it one."""
        tree = self._tree_of(node)
        if type(node) is Node and node.dtype.kind == "f":
            with suppress(TypeError, ValueError):
                return expression(repr(float(ast.literal_eval(tree))))
        return tree

    def _tree_of(self, node: Any) -> Any:
        if isinstance(node, Op):
            return self.kernels.value(node.kernel, node.key)
        if isinstance(node, type):
            return self.kernels.value(node)
        return self.names[self.graph.of(node)]

    def _filled(
        self, text: str, names: Iterable[str], node: Node, tree_of: Callable[[Any], Any]
    ) -> Any:
        tree = expression(text)
        read = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
        pairs = [("shape", node.shape), *zip(names, node.args, strict=False)]
        given = {name: literal(value, tree_of) for name, value in pairs if name in read}
        for module in re.findall(r"\bscipy\.\w+", text):
            self.kernels.imports.add(f"import {module}")
        return Substitution(given).visit(tree)


_BY_PROPERTY = {"reshapes": "np.reshape(input, shape)", "expands": "np.broadcast_to(input, shape)"}


class _Wanted:
    """What has to be written before a node."""

    def __init__(self, parts: list[Node]):
        self.parts = parts

    def needs(self) -> list[Node]:
        return self.parts


class _Fold(ast.NodeTransformer):
    """Without arguments that are NumPy's defaults, and without choices that are made; `x.T`, and
    what nothing happens to, as one writes it."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        match node:
            case ast.Call(
                ast.Attribute(inner, "transpose"),
                [ast.Tuple([ast.Constant(1), ast.Constant(0)])],
                [],
            ) | ast.Call(ast.Attribute(ast.Name("np"), "transpose"), [inner]):
                return ast.Attribute(inner, "T", ast.Load())
        for k in node.keywords:
            if k.arg == "axis" and isinstance(k.value, ast.Tuple) and len(k.value.elts) == 1:
                (k.value,) = k.value.elts
        node.keywords = [
            k for k in node.keywords
            if not isinstance(k.value, ast.Constant)
            or (k.value.value is not None and k.value.value is not False)
        ]  # fmt: skip
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        match node:
            case ast.BinOp(once, ast.Pow(), ast.Constant(int(1))):
                return once
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if isinstance(node.value, ast.Tuple) and isinstance(node.slice, ast.Constant):
            return node.value.elts[int(str(node.slice.value))]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        first = node.values[0]
        empty = isinstance(first, ast.Tuple) and not first.elts
        return node.values[1] if empty else first
