"""Forward mode, graph to graph: the derivative along directions, from the reverse rules alone.

One pass in order of creation, with one memo of changes. A reverse rule is linear in its cotangent,
so the reverse pass through the rule itself is the forward derivative; a pointwise rule is its own
transpose. Nothing recurses and no value is computed. As in PyTorch, `no_grad` stops no change where
a program asks for forward mode; `detach` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import fault
from ..graph.dtypes import FLOAT32, FLOAT64, is_float
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import LATE, LEAF, OUTPUT, cast, leaf, results_of
from ..graph.registry import F
from ..graph.state import STATE, grad_mode
from ..graph.walk import SEQUENCE, walk
from ..ops.kernels.rules import flat
from .reverse import gradients
from .rules import fitted, parents, ruled, slopes, zeros_like
from .views import single

Change = Any  # a node, None for no change, a tuple of those for a node with several results


class Linearized:
    """The derivative of `outputs` with respect to `inputs`, to be applied to directions; along what
    was recorded for reverse mode, or `everywhere`. `fixed` gives what stands for an operand that
    does not move; `doubles` says that Python floats are tensors in double precision."""

    __slots__ = ("doubles", "everywhere", "fixed", "inputs", "order", "outputs")

    def __init__(
        self,
        outputs: list[Node],
        inputs: list[Node],
        everywhere: bool = False,
        fixed: Callable[[Node], Node] | None = None,
    ):
        self.outputs = outputs
        self.everywhere = everywhere
        self.fixed = fixed
        self.doubles = False
        self.inputs = inputs
        self.order = _between(inputs, outputs, everywhere)

    def along(self, tangents: list[Node | None]) -> list[Node]:
        """How the outputs change when the inputs move along `tangents`: zeros where they do not."""
        with grad_mode(True):
            return [
                zeros_like(out) if change is None else change
                for out, change in zip(self.outputs, self.changes(tangents), strict=True)
            ]

    def changes(self, tangents: list[Node | None]) -> list[Node | None]:
        """The same, None for what does not move."""
        memo: dict[Node, Change] = dict(zip(self.inputs, tangents, strict=True))
        span = STATE.span
        with grad_mode(True):
            for node in self.order:
                STATE.span = node.span
                change = self._change(node, memo)
                if not node.requires_grad and any(x.requires_grad for x in _sources(node)):
                    change = _unrecorded(change)  # it was made under no_grad
                memo[node] = change
            STATE.span = span
            return [memo.get(out) for out in self.outputs]

    def _change(self, node: Node, memo: dict[Node, Change]) -> Change:
        op = node.op
        if op is OUTPUT:
            parts = memo.get(node.args[0])
            return None if parts is None else parts[node.args[1]]
        if op is LEAF:
            return memo.get(node.inputs[0])
        if self.everywhere and "own saving" in op.properties:
            inputs, _, call = node.args
            with grad_mode(node.requires_grad):
                return call.moved([memo.get(x) for x in inputs])
        if self.everywhere and op.no_forward:
            raise fault("E404 no-forward-formula", op.name, op.no_forward, span=node.span)
        if self.everywhere and op.forward is not None:
            operands = [node.args[at] for at in op.tensor_params]
            moves = [memo.get(x) if type(x) is Node else None for x in operands]
            if all(move is None for move in moves):
                return None
            args = tuple(self._operand(arg, memo) for arg in node.args)
            out = node if self.fixed is None else self.fixed(node)
            return self._beside_zeros(node, op.forward(moves, out, *args), memo)
        body = node.body
        if op.vjp_rule is None:
            if type(body) is tuple:
                return tuple(memo.get(part) for part in body)
            return None if body is None else memo.get(body)
        if op.view and node.outputs is None and len(node.inputs) == 1:
            change = memo.get(node.inputs[0])
            if change is None:
                return None
            if op.key in ("view", "reshape_alias"):  # a change may lie otherwise in memory
                return F.reshape(change, node.shape)
            return op.apply([change, *node.args[1:]])
        if op.key == "with_value" and not node.args[1].requires_grad and node.args[1] in memo:
            return memo[node.args[1]]
        args = tuple(self._operand(arg, memo) for arg in node.args)
        if op.kind is Kind.POINTWISE or _is_elementwise(node):
            change = _pointwise(node, args, memo)
            if change is not None:
                return self._beside_zeros(node, change, memo)
        return self._beside_zeros(node, _transposed(node, args, memo), memo)

    def _beside_zeros(self, node: Node, change: Change, memo: dict[Node, Change]) -> Change:
        """PyTorch's formulas of two operands take zeros for the change of one that stands still:
        times the other, so that the change requires grad as that does; of a Python float beside a
        number, where `doubles`, in double precision, in which changes of single precision stay
        where promotion does not take them back."""
        still = [x for x in node.inputs if memo.get(x) is None]
        if not self.everywhere or self.fixed is not None or type(change) is not Node:
            return change
        if node.dtype is FLOAT32:
            moves = [memo.get(x) for x in node.inputs if x.dtype is FLOAT32]
            moved = [x for x in moves if type(x) is Node and x.dtype is FLOAT64]
            if any(x.shape for x in moved) or (moved and not any(x.shape for x in node.inputs)):
                change = cast(change, FLOAT64)
        if not still or node.op.key not in _FORMULAS:
            return change
        if self.doubles and node.handle is not None and not node.shape:  # no node of a body
            alpha = type(node.args[-1]) is float
            numbers = [x for x in still if alpha or _is_double(x)]
            second = any(x in numbers for x in node.inputs[1:])
            if numbers and (node.op.key in ("mul", "add", "div") or second):
                change = cast(change, FLOAT64)
        if node.op.key == "div":
            return flat(change, node, "DivBackward0")
        for x in node.inputs if node.op.key not in _SUMS else ():
            change = change if x in still else flat(change, x, "AddBackward0")
        return change

    def _operand(self, arg: Any, memo: dict[Node, Change]) -> Any:
        """An argument that moves as one that requires grad: rules look at that."""
        if type(arg) is tuple:
            return tuple(self._operand(part, memo) for part in arg)
        if type(arg) is not Node:
            return arg
        if memo.get(arg) is None:
            return arg if self.fixed is None else self.fixed(arg)
        return arg if arg.requires_grad else leaf(arg, None)


_SUMS = frozenset({"add", "sub", "add_scaled", "sub_scaled", "addcmul", "addcdiv"})
_FORMULAS = _SUMS | {"mul", "div", "matmul", "mm", "mv", "bmm", "dot"}


def _is_double(x: Node) -> bool:
    """Whether a node is a Python float."""
    return x.weak and bool(x.args) and type(x.args[0]) is float


def jvp(outputs: list[Node], inputs: list[Node], tangents: list[Node | None]) -> list[Node]:
    """The change of `outputs` when `inputs` move along `tangents`."""
    return Linearized(outputs, inputs).along(tangents)


def _sources(node: Node) -> tuple[Node, ...]:
    """Return the nodes whose changes move a node, recorded or not."""
    op = node.op
    if op is LEAF:
        return node.inputs
    if op.key == "detach" or (op.vjp_rule is None and node.body is None):
        return ()
    if any(start < node.seq < end for start, end in STATE.unmoved):
        return ()
    if "own saving" in op.properties:
        return node.args[0]
    return parents(node) if node.outputs is not None or is_float(node.dtype) else ()


def moves(node: Node) -> bool:
    """Whether a node depends on a variable in forward mode."""
    return any(n.op.key == "level" and not n.args[1].reverse for n in walk([node], _sources))


LATE.moves = moves


def depends(node: Node, targets: list[Node]) -> bool:
    """Whether a node moves when the targets do."""
    return node in targets or node in _between(targets, [node], True)


def _between(inputs: list[Node], outputs: list[Node], everywhere: bool) -> list[Node]:
    """The nodes on the way from inputs to outputs, in order, without the inputs."""
    found = set(inputs)
    first = min((x.seq for x in inputs), default=0)
    sources = _sources if everywhere else parents

    def moves(node: Node) -> bool:
        return node.seq > first if everywhere else node.requires_grad

    order = []
    ends = [out for out in outputs if moves(out) and out not in found]
    way = walk(ends, lambda node: filter(moves, sources(node)), found)
    for node in sorted(way, key=SEQUENCE):
        if any(p in found for p in sources(node)):
            found.add(node)
            order.append(node)
    return order


def _unrecorded(change: Change) -> Change:
    """A change of what was computed under `no_grad`."""
    if type(change) is tuple:
        return tuple(map(_unrecorded, change))
    if change is None or not change.requires_grad:
        return change
    with grad_mode(False):
        return F.alias(change)


def _is_elementwise(node: Node) -> bool:
    """Whether the body of a composite is made of elementwise ops alone."""
    if type(node.body) is not Node or node.op.vjp_rule is None:
        return False
    inside = walk([node.body], lambda n: () if n in node.inputs else n.inputs)
    return all(
        n in node.inputs
        or n.op.kind in (Kind.POINTWISE, Kind.SOURCE)
        or "elementwise" in n.op.properties
        for n in inside
    )


def _pointwise(node: Node, args: tuple[Any, ...], memo: dict[Node, Change]) -> Node | None:
    """A pointwise rule scales element by element, a cotangent as well as a change."""
    op = node.op
    total: Node | None = None
    for place, at in enumerate(op.tensor_params):
        x = node.args[at]
        change = None if x is None else memo.get(x)
        if change is None:
            continue
        if change.shape != node.shape:
            change = F.expand(cast(change, node.dtype), node.shape)
        part = ruled(node, cast(change, node.dtype), args)[place]
        if part is None:
            continue
        if part.shape != node.shape:
            return None
        part = cast(part, node.dtype)
        total = part if total is None else F.add(total, part)
    return total if total is None or single(total) else F.contiguous(total)


def _transposed(node: Node, args: tuple[Any, ...], memo: dict[Node, Change]) -> Change:
    """The vjp of the vjp."""
    several = node.outputs is not None
    duals = [
        leaf(zeros_like(o), None) if is_float(o.dtype) else None
        for o in (results_of(node) if several else (node,))
    ]
    op = node.op
    seeds = [
        (fitted(g, x, node), memo[x])  # what its input adds when that moves
        for x, g in slopes(op, node.args, ruled(node, tuple(duals) if several else duals[0], args))
        if memo.get(x) is not None and g is not None and g.requires_grad
    ]
    targets = [dual for dual in duals if dual is not None]
    changes = iter(gradients(seeds, targets, create_graph=True, retain_graph=True))
    parts = tuple(None if dual is None else next(changes) for dual in duals)
    if several:
        return parts
    (part,) = parts
    spread = "broadcasts" in op.properties and part is not None and not single(part)
    return F.contiguous(part) if spread else part
