"""vmap on graphs: what was recorded for one example becomes the same for all examples at once.

A `Trace` hands out placeholders, nodes that stand for one example of many, and `lift`s nodes made
from them: each gets a counterpart with the examples in dim 0. The rules are in `batch_rules`; an op
without one is applied example by example, and its derivative is the lifted derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import fault
from ...graph.kinds import Kind
from ...graph.node import Node
from ...graph.op import LEAF, OUTPUT, PLACEHOLDER, Op, constant, results_of
from ...graph.params import REQUIRED, Param
from ...graph.registry import F
from ...graph.sizes import check_size
from ...graph.state import STATE, grad_mode
from ...graph.walk import SEQUENCE, bodies, walk
from ..rules import fitted, ruled, slopes, zeros_like
from .factored_batches import scaled_rule


def _refuse_value() -> Any:
    raise fault("E203 value-tensor-needed-inside", span=STATE.span)


PLACEHOLDER.kernel = _refuse_value


def drawn(shape: tuple[int, ...], draw: Callable[[tuple[int, ...]], np.ndarray]) -> Node:
    """Random numbers, for each example its own where a vmap asks for that."""
    array = draw((*(trace.size for trace in STATE.different), *shape))
    node = constant(array)
    for trace in STATE.different:
        node = trace.placeholder(node)
    return node


def filled_like(node: Node, value: float) -> Node:
    """A number in the shape of a node, for each example its own where the node differs by them."""
    traces = []
    at = node
    for trace in reversed(STATE.levels):
        lifted = trace.lift([at])[0] if isinstance(trace, Trace) else None
        if lifted is not None:
            traces.append(trace)
            at = lifted
    filled = F.full(at.shape, value, dtype=node.dtype)
    for trace in reversed(traces):
        filled = trace.placeholder(filled)
    return filled


class Trace:
    """One batched run: `memo` maps nodes for one example to nodes for all (a tuple of them for a
    node with several results); `plain` are nodes known to be the same for all examples; `scaled`,
    where unit vectors are followed, are batches kept as products (`scaled.Scaled`).
    `dims` count the examples of arguments, `randomness` is how a program's vmap draws."""

    __slots__ = ("dims", "memo", "plain", "randomness", "scaled", "since", "size")

    def __init__(self, size: int):
        self.size = size
        self.scaled: dict[Node, Any] = {}
        self.memo: dict[Node, Any] = {}
        self.plain: set[Node] = set()
        self.dims: dict[Node, int] = {}
        self.randomness = "error"
        self.since = Node.counter()

    def placeholder(self, source: Node) -> Node:
        """A node that stands for one example of `source`, whose dim 0 counts examples."""
        needs = source.requires_grad and STATE.grad
        node = Node(PLACEHOLDER, (), (), source.shape[1:], source.dtype, needs)
        self.memo[node] = source
        return node

    @contextmanager
    def running(self, draws: bool | None = None, different: bool = False) -> Iterator[None]:
        """While placeholders of this trace may be asked for values, in vain."""
        before = STATE.batching, STATE.draws
        count = len(STATE.different)
        if different:
            STATE.different.append(self)
        STATE.batching = min(before[0] or self.since, self.since)
        if draws is not None:
            STATE.draws = draws and before[1]
        try:
            yield
        finally:
            STATE.batching, STATE.draws = before
            del STATE.different[count:]

    # -- lifting ------------------------------------------------------------------------------

    def lift(self, nodes: list[Node]) -> list[Node | None]:
        """For each node its counterpart for all examples; None when it is the same for all."""
        span = STATE.span
        for node in self._pending(nodes):
            if any(x in self.memo for x in _needs(node)):
                STATE.span = node.span
                with grad_mode(node.requires_grad):
                    self.memo[node] = self._lifted(node)
            else:
                self.plain.add(node)
        STATE.span = span
        return [self.memo.get(node) for node in nodes]

    def _pending(self, nodes: list[Node]) -> list[Node]:
        """Nodes not looked at yet that the given ones are made of, in order."""

        def new(found: Iterable[Node]) -> list[Node]:
            known = (self.memo, self.plain)
            return [n for n in found if n.seq >= self.since and not any(n in k for k in known)]

        return sorted(walk(new(nodes), lambda node: new(_needs(node))), key=SEQUENCE)

    def _lifted(self, node: Node) -> Any:
        op = node.op
        if op is OUTPUT:
            return self.memo[node.args[0]][node.args[1]]
        if op is LEAF or op.key == "level":
            return self.memo[node.inputs[0]]
        body = node.body
        if body is not None:
            if op.vjp_rule is None:
                if type(body) is not Node:
                    return tuple(map(self.full, body))
                lifted = self.full(body)
                wide = any(x.ndim > node.ndim for x in node.inputs)
                if lifted.requires_grad and node.inputs[0].shape == node.shape and not wide:
                    lifted.mark().name = _name(node)
                return lifted
            return self.mapped(node, body)
        if op.key == "custom_function":
            outputs = node.args[1]
            return self.mapped(node, outputs if node.outputs else outputs[0])
        if self.scaled:
            found = scaled_rule(self, node)
            if found is not None:
                return found
        from .rules import rule_of

        rule = rule_of(op)
        if rule is not None:
            found = rule(self, node)
            if found is not None:
                return found
        return self.mapped(node, None)

    def full(self, node: Node) -> Node:
        """The counterpart of a node, a repetition when it is the same for all examples."""
        found = self.memo.get(node)
        return repeated(node, self.size) if found is None else found

    def mapped(self, node: Node, body: Any) -> Any:
        """A node that applies an op to each example; `body`, when there is one, for one example."""
        inputs = tuple(self.memo.get(x, x) for x in node.inputs)
        result = Node(MAPPED, (inputs, _Example(self, node)), inputs, (), node.dtype)
        result.requires_grad = MAPPED._recorded(inputs) and node.requires_grad
        if node.outputs is None:
            result.shape = (self.size, *node.shape)
            check_size(result.shape, result.dtype)
            if body is not None:
                result.body = self.full(body)
            return result
        result.outputs = tuple(((self.size, *shape), dtype) for shape, dtype in node.outputs)
        for shape, dtype in result.outputs:
            check_size(shape, dtype)
        if body is not None:
            result.body = tuple(map(self.full, body))
        return results_of(result)


def repeated(node: Node, size: int) -> Node:
    """The same for `size` examples."""
    return F.expand.apply([F.unsqueeze.apply([node, 0]), (size, *node.shape), False])


def _name(node: Node) -> str:
    """PyTorch's name for a batch: numbers get a dim, and lose it, where an op goes along one."""
    along = "dim" in node.op.index and node.op.kind is not Kind.REDUCTION
    return node.grad_name if node.ndim or not along else "SqueezeBackward1"


def _needs(node: Node) -> tuple[Node, ...]:
    if node.body is None:
        return node.inputs
    return bodies(node) if node.op.vjp_rule is None else (*node.inputs, *bodies(node))


# -- ops example by example ------------------------------------------------------------------------


class _Example:
    """The application for one example that a `mapped` node stands for."""

    __slots__ = ("node", "trace")

    def __init__(self, trace: Trace, node: Node):
        self.trace = trace
        self.node = node

    def arguments(self, values: list[Any]) -> list[Any]:
        """The op's arguments with `values` where its inputs stand."""
        rest = iter(values)
        args = list(self.node.args)
        for at in self.node.op.tensor_params:
            value = args[at]
            if type(value) is tuple:
                args[at] = tuple(None if v is None else next(rest) for v in value)
            elif value is not None:
                args[at] = next(rest)
        return args

    def __repr__(self) -> str:
        return self.node.op.name


def _each(inputs: tuple[np.ndarray, ...], example: _Example) -> Any:
    """Apply the kernel to every example and stack the results."""
    node, trace = example.node, example.trace
    kernel = node.op.kernel
    assert kernel is not None
    batched = [x in trace.memo for x in node.inputs]
    several = node.outputs is not None
    outputs = node.outputs or ((node.shape, node.dtype),)
    results = [np.empty((trace.size, *shape), dtype) for shape, dtype in outputs]
    for i in range(trace.size):
        values = [x[i] if own else x for x, own in zip(inputs, batched, strict=True)]
        found = kernel(*example.arguments([np.asarray(v) for v in values]))
        for result, value in zip(results, found if several else (found,), strict=True):
            result[i] = value
    return tuple(results) if several else results[0]


def _mapped_rule(g: Any, out: Any, inputs: tuple[Node, ...], example: _Example) -> tuple[Any]:
    """The lifted derivative of the op for one example."""
    trace, node = example.trace, example.node
    op = node.op
    with trace.running():
        if node.outputs is None:
            given: Any = trace.placeholder(g)
        else:
            given = tuple(None if part is None else trace.placeholder(part) for part in g)
        flat = [
            None if part is None or not x.requires_grad else fitted(part, x, node)
            for x, part in slopes(op, node.args, ruled(node, given))
        ]
        lifted = trace.lift([part for part in flat if part is not None])
    rest = iter(lifted)
    result: list[Node | None] = []
    for x, value, part in zip(node.inputs, inputs, flat, strict=True):
        if part is None:
            result.append(None)
            continue
        all_parts = next(rest)
        if all_parts is None:
            result.append(zeros_like(value))
        elif x in trace.memo:
            result.append(all_parts)
        else:
            result.append(F.sum(all_parts, (0,)))
    return (tuple(result),)


MAPPED = Op("mapped", Kind.OPAQUE)
MAPPED.declare_params(
    (Param("inputs", "Tensors", REQUIRED, False), Param("example", "Any", REQUIRED, False))
)
MAPPED.kernel = _each
MAPPED.vjp_rule = _mapped_rule
MAPPED.grad_fn = lambda inputs, example: _name(example.node)
MAPPED.method = False
