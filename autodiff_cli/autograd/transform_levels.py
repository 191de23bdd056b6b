"""What a transform differentiates: copies of its inputs that require grad while it runs.

Results leave a transform `settled`: they require grad only when they depend on something outside
that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import fail, fault
from ..graph.dtypes import FLOAT32, is_float
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import Op, constant
from ..graph.params import REQUIRED, Param, shown
from ..graph.registry import F
from ..graph.sizes import check_size
from ..graph.state import STATE, grad_mode, packs
from ..graph.strides import same_strides
from .batching.examples import Trace
from .forward import Linearized
from .handles import view_steps, wrap_nearest
from .reverse import gradients
from .rules import lives, ones_like
from .tensor import Tensor
from .trees import flatten, tree_map
from .views import viewed

LEVEL = Op("level", Kind.MOVEMENT)
LEVEL.declare_params(
    (Param("input", "Tensor", REQUIRED, False), Param("opened", "Any", REQUIRED, False))
)
LEVEL.kernel = lambda x, opened: x
LEVEL.vjp_rule = lambda g, out, input, opened: (g,)
LEVEL.strides_rule = same_strides
LEVEL.grad_fn = "AliasBackward0"
LEVEL.method = False
LEVEL.counterpart = lambda input, opened: input
LEVEL.numpy = "input"


@contextmanager
def moving(nests: bool) -> Iterator[None]:
    """While a function runs in forward mode: where that nests, those inside of it are in its dual
    level."""
    if not (nests and STATE.forward):
        enter()
    STATE.forward += nests
    STATE.entered += 1
    try:
        yield
    finally:
        STATE.entered -= 1
        STATE.forward -= nests
        STATE.dual = STATE.forward > 0


def enter() -> None:
    """Enter the one dual level that there is; E409 inside of it."""
    if STATE.dual:
        raise fault("E409 dual-level-inside-another")
    STATE.dual = True


@contextmanager
def deeper() -> Iterator[None]:
    """While a function that is differentiated runs; what it does is recorded."""
    STATE.entered += 1
    try:
        with grad_mode(True):
            yield
    finally:
        STATE.entered -= 1


_NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an "
    "issue with your use case."
)


class Opened:
    """Values whose tensors are variables of one transform: `tree`, and their `nodes` in order.
    `running` tells whether the function of the variables has not returned yet; `reverse`, whether
    they are leaves there, as they are in reverse mode; `nests`, whether forward mode may be used
    inside of forward mode."""

    __slots__ = ("nests", "nodes", "reverse", "running", "since", "sources", "tree")

    def __init__(self, tree: Any, name: str, reverse: bool = False):
        self.since = Node.counter()
        self.reverse = reverse
        self.nests = name != "linearize"
        self.nodes: list[Node] = []
        self.sources: list[Tensor] = []
        self.running = False
        self.tree = tree_map(lambda leaf: self._variable(leaf, name), tree)

    def _variable(self, value: Any, name: str) -> Tensor:
        if not isinstance(value, Tensor):
            words = f"Thing passed to transform API must be Tensor, got {type(value)}"
            raise fault("E208 differentiates-tensors-not", name, shown(value), words)
        if not is_float(value.dtype):
            words = (
                "only Tensors of floating point dtype can require gradients"
                if self.reverse
                else "Expected primal to be floating point or complex, but got: "
                f"torch.{value.dtype.name}"
            )
            raise fail(
                "E306",
                f"`{name}` differentiates floating point tensors, this one is {value.dtype.name}",
                help="write `.to(torch.float64)` first, or use floats",
                notes=(f"PyTorch: {words}",),
                raises="RuntimeError" if self.reverse else "ValueError",
            )
        x = value.node
        node = Node(LEVEL, (x, self), (x,), x.shape, x.dtype, True)  # also under no_grad
        self.nodes.append(node)
        self.sources.append(value)  # it lives as long: its memory may be asked for
        return Tensor(node)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """While the function of the variables runs; changes that it made to them in place are made
        to what they were given for."""
        if self.reverse and packs():
            raise fault("E411 transforms-do-not-go", _NO_HOOKS)
        outer, STATE.opened = STATE.opened, self.since
        self.running = True
        STATE.levels.append(self)
        if self.reverse:
            STATE.unpacked.append(_NO_HOOKS)
        try:
            with deeper() if self.reverse else moving(self.nests):
                yield
        finally:
            STATE.opened = outer
            self.running = False
            STATE.levels.pop()
            if self.reverse:
                STATE.unpacked.pop()
        variables = [leaf for leaf in flatten(self.tree) if isinstance(leaf, Tensor)]
        for variable, node, source in zip(variables, self.nodes, self.sources, strict=True):
            if variable.node is not node:
                source.write(self.settled(variable.node))

    def settled(self, node: Node) -> Node:
        """A result as it is seen outside: it requires grad when it depends on something that does
        and that is no variable of a transform that is over."""
        for variable in self.nodes:
            steps = view_steps(node, variable)
            if steps is not None:  # a variable or a view of it is that of what it was given for
                return viewed(variable.args[0], steps)
        if not node.requires_grad or (STATE.grad and lives(node)):
            return node
        return self.unrecorded(node)

    @staticmethod
    def unrecorded(node: Node) -> Node:
        """The same values without history."""
        with grad_mode(False):
            return F.alias(node)

    def is_target_of(self, running: Any) -> bool:
        """Whether a pass is for derivatives with respect to the variables."""
        return running.targets is not None and not running.targets.isdisjoint(self.nodes)

    def matters(self, nodes: list[Node]) -> bool:
        """Whether derivatives of nodes may be differentiated again."""
        return STATE.grad and (STATE.entered > 0 or any(map(lives, nodes)))

    def settled_tree(self, tree: Any) -> Any:
        """All tensors of a tree as they are seen outside."""
        return tree_map(
            lambda leaf: (
                wrap_nearest(self.settled(leaf.node)) if isinstance(leaf, Tensor) else leaf
            ),
            tree,
        )

    def linearized(self, outputs: list[Node], transform: bool = False) -> Linearized:
        """The derivative of outputs with respect to the variables; of a `transform` of torch.func,
        in which Python floats are tensors in double precision."""
        found = Linearized(outputs, self.nodes, True)
        if transform:
            nested = STATE.levels or any(node.op is LEVEL for node in found.order)
            found.doubles = not nested or not any(x.shape for x in self.nodes)
        return found


def level_of(node: Node) -> Opened | None:
    """The innermost transform in reverse mode that runs and follows a node."""
    followed = (
        level
        for level in reversed(STATE.levels)
        if isinstance(level, Opened) and level.reverse and node.seq > level.since
    )
    return next(followed, None)


def wrapped(tensor: Tensor) -> tuple[list[str], Tensor]:
    """What PyTorch shows around a tensor inside of transforms, the innermost first, and the tensor
    that it shows there."""
    node = tensor.node
    wrappers = []
    for at in range(len(STATE.levels), 0, -1):
        level = STATE.levels[at - 1]
        if isinstance(level, Opened):
            if tensor.node.seq > level.since:
                wrappers.append(f"GradTrackingTensor(lvl={at}, value=")
            if node.op is LEVEL and node.args[1] is level:
                node = node.args[0]
        elif level is not None:
            (lifted,) = level.lift([node])
            if lifted is not None:
                dim = level.dims.get(node, 0)
                node = F.movedim(lifted, 0, dim) if dim else lifted
                wrappers.append(f"BatchedTensor(lvl={at}, bdim={dim}, value=")
    if not wrappers:
        return wrappers, tensor
    return wrappers, Tensor(node if lives(node, lambda opened: False) else Opened.unrecorded(node))


# -- Jacobians -------------------------------------------------------------------------------------


def directions(node: Node) -> Node:
    """All unit vectors of the shape of a node, one in each row."""
    n = node.numel
    check_size((n, *node.shape), node.dtype)
    return constant(np.eye(n, dtype=node.dtype).reshape(n, *node.shape))


def jacobian_of(
    outputs: list[Node], inputs: list[Node], *, create_graph: bool = False
) -> list[list[Node | None]]:
    """For each output and input the derivative, of the output's shape followed by the input's; None
    where there is none. One reverse pass for each output, with a batch of all its cotangents."""
    return [_rows(out, inputs, create_graph) for out in outputs]


def _rows(out: Node, inputs: list[Node], create_graph: bool) -> list[Node | None]:
    if not out.requires_grad:
        return [None] * len(inputs)
    found = pulled(out, inputs, lambda trace, x: trace.placeholder(directions(x)), create_graph)
    return [
        None if g is None else F.view(g, (*out.shape, *x.shape))
        for g, x in zip(found, inputs, strict=True)
    ]


def pulled(
    out: Node, inputs: list[Node], units: Callable[[Trace, Node], Node], create_graph: bool
) -> list[Node | None]:
    """The cotangents of the inputs for all unit vectors of a result, which `units` makes."""
    single = create_graph and out.dtype is FLOAT32 and not any(x.shape for x in inputs)
    if out.numel == 1 and not single:
        seeds = [(out, ones_like(out))]
        return gradients(seeds, inputs, create_graph=create_graph, retain_graph=True)
    trace = Trace(out.numel)
    with trace.running(), grad_mode(create_graph):
        seeds = [(out, units(trace, out))]
        found = gradients(seeds, inputs, create_graph=create_graph, retain_graph=True)
    trace.lift([g for g in found if g is not None])
    return [None if g is None else trace.full(g) for g in found]


def forward_jacobian_of(
    opened: Opened, outputs: list[Node], transform: bool = False
) -> list[list[Node]]:
    """The same with one pass along all unit directions of each variable."""
    derivative = opened.linearized(outputs, transform)
    columns: list[list[Node]] = []
    for at, x in enumerate(opened.nodes):
        trace = Trace(x.numel)
        with trace.running():
            tangents: list[Node | None] = [None] * len(opened.nodes)
            tangents[at] = trace.placeholder(directions(x))
            found = derivative.along(tangents)
        trace.lift(found)
        columns.append([_column(trace.full(f), x) for f in found])
    return [list(row) for row in zip(*columns, strict=True)]


def _column(batch: Node, x: Node) -> Node:
    shape = batch.shape[1:]
    moved = F.permute(batch, (*range(1, len(batch.shape)), 0))
    return F.view(moved, (*shape, *x.shape)) if x.shape else F.squeeze(moved, -1)


def or_zeros(g: Node | None, out: Node, x: Node) -> Node:
    """A block of a Jacobian; zeros where nothing depends."""
    if g is not None:
        return g
    check_size((*out.shape, *x.shape), x.dtype)
    return F.zeros((*out.shape, *x.shape), dtype=x.dtype)


def repeated_zeros(out: Node, x: Node) -> Node:
    """Rows of a Jacobian where nothing depends: to PyTorch one row of zeros, repeated."""
    shape = (*out.shape, *x.shape)
    check_size(shape, x.dtype)
    return F.view(F.expand(F.zeros(x.shape, dtype=x.dtype), (out.numel, *x.shape)), shape)
