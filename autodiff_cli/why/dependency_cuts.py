"""What values were made of, whether backward sees it or not, and where that cuts the graph."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from ..autograd.tensor import Tensor
from ..engine.evaluate import dependencies
from ..graph.dtypes import is_float
from ..graph.node import Node
from ..graph.op import CAST, CONSTANT, LEAF, OUTPUT
from ..graph.walk import newest_first, walk
from .model import Cause
from .record import Recorder
from .words import shown

DETACHING = ("detach", "data_alias")
FROM_ARRAY = re.compile(r"\b(from_numpy|as_?tensor|asarray)\(")


class Ways:
    """The dependencies of one program that has run; arrays made of tensors count too."""

    def __init__(self, program: Recorder):
        self.arrays = {
            id(exit.value): exit.node
            for exit in program.exits
            if isinstance(exit.value, np.ndarray)
        }

    def needed(self, node: Node) -> list[Node]:
        """Everything the value of a node was made of."""
        if node.op is LEAF or node.op is CONSTANT:
            origin = self.arrays.get(id(node.value))
            found = list(node.inputs)
            return found if origin is None else [*found, origin]
        return [*node.inputs, *dependencies(node)]

    def everything(self, roots: Iterable[Node]) -> list[Node]:
        """The roots and all they were made of, newest first."""
        return newest_first(walk(roots, self.needed))

    def leading(self, roots: Iterable[Node], targets: set[Node]) -> list[Node]:
        """The nodes between the roots and the targets, newest first."""
        everything = self.everything(roots)
        leading: set[Node] = set()
        for node in reversed(everything):
            if node in targets or any(n in leading for n in self.needed(node)):
                leading.add(node)
        return [node for node in everything if node in leading]

    def cut(self, node: Node) -> Cause | None:
        """Why a node lets no gradient through; None when it does."""
        if node.span is None and node.op is CONSTANT:
            return None
        text = shown(node.span)
        op = node.op
        if op.key in DETACHING:
            if FROM_ARRAY.search(text):
                return None  # an array: it had left before
            return Cause(
                "detached", node.span, f"{text} leaves the graph: backward sees a constant"
            )
        if op is CONSTANT or op is LEAF:
            if id(node.value) in self.arrays and not self.is_array(node):
                return Cause("detached", node.span, f"{text} copies numbers, the graph ends here")
            return None
        if node.dtype.kind == "b" and not node.outputs and _compares(node):
            return Cause("comparison", node.span, f"{text} is true or false: it has no slope")
        if node.dtype.kind != "f" and not node.outputs:
            if op is CAST:
                return Cause(
                    "integer", node.span, f"{text} makes whole numbers: they have no slope"
                )
            if (
                op is OUTPUT
                or node.dtype.kind == "b"
                or any(is_float(n.dtype) for n in node.inputs)
            ):
                return Cause("flat-op", node.span, f"{text} gives whole numbers: it has no slope")
            return None
        if not node.requires_grad and any(n.requires_grad for n in node.inputs):
            if not op.differentiable:
                return Cause("flat-op", node.span, f"{text} has no slope (`{op.name}`)")
            return Cause(
                "no-grad", node.span, f"{text} was computed while gradients were switched off"
            )
        return None

    def is_array(self, node: Node) -> bool:
        """Whether a constant was made of a NumPy array, which had left the graph before."""
        origin = self.arrays.get(id(node.value))
        return origin is not None and from_array(origin)


def from_array(node: Node) -> bool:
    """Whether a node is, or was made of, a NumPy array, which had left the graph before."""
    handle = None if node.handle is None else node.handle()
    if isinstance(handle, Tensor) and handle.tag is not None:
        return True
    return any(
        n.op.key == "data_alias" and n.span is not None and ".numpy(" in n.span.text
        for n in walk([node], lambda n: [x for x in n.inputs if not x.requires_grad])
    )


def _compares(node: Node) -> bool:
    """Whether the program itself compares, or asks for bools, and no function does inside."""
    text = node.span.text if node.span is not None else ""
    return node.op is CAST or any(sign in text for sign in "<>=!~&|") or node.op.name in text
