"""The node of the lazy expression graph.

A node is one application of an op: it knows its shape and dtype at once and its value only when
somebody asked for it. Nodes never change what they mean; `seq` grows with creation, so ascending
`seq` is a topological order. Two applications are two nodes, even when equal.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from .state import STATE

if TYPE_CHECKING:
    from ..source import Span
    from .op import Op

_SEQ = count(1).__next__

tick = _SEQ  # a number between those of nodes made before and those made after


Shape = tuple[int, ...]


class Node:
    """One application of `op`.

    `args` are all arguments in the order of the op's signature (nodes, tuples of nodes, static
    values); `inputs` are the nodes among them, flat. A node with several results has `outputs`
    (a tuple of `(shape, dtype)`) and is read through `output` nodes. `body` is what a composite
    stands for. `weak` marks a Python number (it does not decide dtypes). `marks` holds what few
    nodes have: gradient slots and hooks, whether the graph was freed, whether the value was
    overwritten. `strides` is PyTorch's layout once somebody asked (graph/strides.py).
    """

    __slots__ = (
        "args",
        "body",
        "dtype",
        "handle",
        "inputs",
        "marks",
        "op",
        "outputs",
        "requires_grad",
        "seq",
        "shape",
        "span",
        "strides",
        "value",
        "weak",
    )

    def __init__(
        self,
        op: Op,
        args: tuple[Any, ...],
        inputs: tuple[Node, ...],
        shape: Shape,
        dtype: np.dtype,
        requires_grad: bool = False,
        value: Any = None,
    ):
        self.op = op
        self.args = args
        self.inputs = inputs
        self.shape = shape
        self.dtype = dtype
        self.requires_grad = requires_grad
        self.value = value
        self.seq = _SEQ()
        self.span: Span | None = STATE.span
        self.body: Any = None
        self.handle: Any = None
        self.marks: Marks | None = None
        self.outputs: tuple[tuple[Shape, np.dtype], ...] | None = None
        self.weak = False
        self.strides: tuple[int, ...] | None = None

    @staticmethod
    def counter() -> int:
        """A number that grows with every node made."""
        return _SEQ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        n = 1
        for size in self.shape:
            n *= size
        return n

    @property
    def grad_name(self) -> str:
        """PyTorch's name of the backward function of this application."""
        return self.grad_names.partition(" ")[0]

    @property
    def grad_names(self) -> str:
        """The names of all, the last applied first, where PyTorch applies several ops."""
        if self.marks is not None and self.marks.name:
            return self.marks.name
        name = self.op.grad_fn
        return name if isinstance(name, str) else name(*self.args)

    def mark(self) -> Marks:
        """The node's own marks, made on first use."""
        marks = self.marks
        if marks is None or marks is FREED:
            freed = marks is FREED
            self.marks = marks = Marks()
            if freed:
                marks.freed = True
        return marks

    def __repr__(self) -> str:
        where = f" at {self.span.line}:{self.span.column}" if self.span else ""
        return f"<{self.op.name} {self.shape} {self.dtype}{where}>"

    if TYPE_CHECKING:  # the operators of rules; `registry` installs them

        def _operator(self, other: Any) -> Node: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _operator
        __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _operator
        __and__ = __rand__ = __or__ = __ror__ = _operator
        __gt__ = __ge__ = __lt__ = __le__ = _operator

        def __neg__(self) -> Node: ...

        __invert__ = __neg__


class Marks:
    """What only few nodes have.

    `slots`: where a finished cotangent is delivered (retain_grad); `hooks`: functions that may
    replace it; `freed`: whether a backward has used up the graph here; `overwritten`: span of
    the in-place change that replaced this value; `replaced`: who shows the values that it has since
    a change through `.data`; `results`: those of its several results that were overwritten;
    `detached`: that change, where it was detached in place; `context`: what a program
    attached to the backward function (hooks, metadata); `name`: what that is called here, when not
    by the op's own name; `made_of`: what PyTorch saves where an op reads this node;
    `batched`: whether it was made for each example that `vmap` maps over; `anew`: since when a leaf
    has another memory or dtype, which makes it another one to `grad()`.
    """

    __slots__ = (
        "anew",
        "batched",
        "context",
        "detached",
        "freed",
        "hooked",
        "hooks",
        "made_of",
        "name",
        "overwritten",
        "replaced",
        "results",
        "slots",
    )

    def __init__(self) -> None:
        self.slots: list[Any] = []
        self.hooks: dict[int, Any] = {}
        self.hooked: list[Node] = []  # of several results, those with hooks
        self.freed: Any = None
        self.overwritten: Any = None
        self.replaced: Any = None
        self.results: dict[int, Node] = {}
        self.detached: Any = None
        self.context: Any = None
        self.name = ""
        self.made_of: Node | None = None
        self.batched = False
        self.anew: int | None = None


# What all nodes share of which nothing else is to be said than that a backward used them up; only
# `Node.mark()` gives marks that may be changed.
FREED = Marks()
FREED.freed = True
