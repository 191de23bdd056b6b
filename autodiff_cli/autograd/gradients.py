"""`backward()` and `grad()` of tensors: seeds, delivery, and what goes wrong before any work."""

from __future__ import annotations

from ..errors import Label, fault
from ..graph.node import Node
from ..graph.op import LEAF, cast
from ..graph.registry import F
from ..graph.state import STATE, grad_mode
from ..graph.strides import dense_strides, same_layout, strides_of
from . import reverse, rules
from .handles import view_steps, wrap_view
from .storage import without_history
from .tensor import AccumulateGrad, Tensor
from .views import single


def _seed(tensor: Tensor, gradient: Tensor | None, what: str, at: int) -> tuple[Node, Node]:
    node = tensor.node
    if not node.requires_grad:
        from .cuts import reasons

        labels, help = reasons(node)
        if node.span is not None and not labels:
            labels = (Label(node.span, "built only from constants"),)
        raise fault("E402 built-from-constants", what, help, at, labels=labels)
    if gradient is None:
        if node.numel != 1:
            raise fault("E401 single-number", what, tuple(node.shape), node)
        return node, rules.ones_like(node)
    g = gradient.node
    if g.shape != node.shape:
        raise fault("E308 gradient-shape-2", g, node, at, list(g.shape), list(node.shape))
    return node, cast(g, node.dtype)


def backward(
    tensors: list[Tensor],
    gradients: list[Tensor | None],
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: list[Tensor] | None = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves they depend on."""
    if STATE.levels:
        raise fault("E411 backward-cannot-called-inside")
    if inputs is not None and not inputs:
        raise fault("E205 got-no-inputs")
    for attempt in STATE.attempts:
        attempt(tensors)
    retain = create_graph if retain_graph is None else retain_graph
    with grad_mode(create_graph):
        seeds = [
            _seed(t, g, "the tensor of backward()", at)
            for at, (t, g) in enumerate(zip(tensors, gradients, strict=False))
        ]
    _announce(seeds, True)
    for tensor in inputs or ():
        if tensor.node.op is not LEAF:
            tensor.retain_grad()  # from now on, as in PyTorch
    targets = None if inputs is None else [t.node for t in inputs]
    delivered: set[Node] = set()

    def deliver(node: Node, g: Node) -> None:
        """Give a leaf its gradient: those with hooks in the pass, others after it."""
        if node not in delivered and node.args[0] is not None:
            delivered.add(node)
            accumulate(node, node.args[0], g, create_graph)

    reached = reverse.Pass(seeds, targets, create_graph, retain, deliver=deliver).run()
    for tell in STATE.results:
        tell(seeds, reached)
    with grad_mode(create_graph):
        for node, g in reached.items():
            if node.op is LEAF:
                deliver(node, g)


def _announce(seeds: list[tuple[Node, Node]], by_backward: bool) -> None:
    """Say what is differentiated, if anything is."""
    if seeds:
        first = not STATE.differentiated[0] and len(seeds) == 1
        STATE.only = seeds[0][0] if first else None
        STATE.differentiated = max(node.seq for node, _ in seeds), by_backward
        for observe in STATE.observers:
            observe(seeds)


def accumulate(node: Node, accumulator: AccumulateGrad, g: Node, create_graph: bool) -> None:
    """Add a cotangent to a leaf's gradient, between the hooks of the program."""
    attached = None if node.marks is None else node.marks.context
    for before in list(attached.before.values()) if attached else ():
        g = (before([g]) or [g])[0]
    first = accumulator.grad is None
    same = first and not create_graph and single(g)  # is kept as it is
    accumulator.receive(g, create_graph)
    if first and STATE.python and accumulator.grad is not None and node.shape:
        accumulator.grad = _laid_out(accumulator.grad, node, create_graph)
    told = [hook() for hook in list(accumulator.hooks.values())]
    if any(told):
        raise fault("E208 hook-after-accumulation-returns")
    for after in list(attached.after.values()) if attached else ():
        after([], [accumulator.grad.node if same and accumulator.grad else g])


def _laid_out(grad: Tensor, node: Node, fresh: bool) -> Tensor:
    """A leaf's first gradient in a snippet, in memory as the leaf is where its elements lie without
    gaps, else in row-major order."""
    layout = dense_strides(node)
    if not same_layout(node.shape, strides_of(grad.node), layout):
        grad = grad if fresh else Tensor(F.alias(grad.node))
        grad.node.strides = layout
    return grad


def _handle(g: Node, known: list[Tensor], create_graph: bool) -> Tensor:
    """The handle of a gradient; one that is a given tensor, another gradient, or a view of one
    shares its memory."""
    if not (create_graph and g.requires_grad):
        for tensor in known:
            if tensor.node is g and not g.requires_grad:
                return tensor
            if view_steps(g, tensor.node) is not None:
                return wrap_view(without_history(g), tensor)
    return Tensor(g if create_graph else without_history(g))


def grad(
    outputs: list[Tensor],
    inputs: list[Tensor],
    grad_outputs: list[Tensor | None],
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """`torch.autograd.grad`."""
    for attempt in STATE.attempts:
        attempt(outputs)
    retain = create_graph if retain_graph is None else retain_graph
    with grad_mode(create_graph):
        seeds = [
            _seed(t, g, "the output of grad()", at)
            for at, (t, g) in enumerate(zip(outputs, grad_outputs, strict=False))
        ]
    for i, tensor in enumerate(inputs):
        if not tensor.requires_grad:
            raise fault("E402 input-grad", i)
    _announce(seeds, False)
    targets = [t.node for t in inputs]
    found = reverse.gradients(seeds, targets, create_graph=create_graph, retain_graph=retain)
    for tell in STATE.results:
        tell(seeds, {n: g for n, g in zip(targets, found, strict=True) if g is not None})
    results: list[Tensor | None] = []
    known = [t for t in grad_outputs if t is not None]
    for i, (tensor, g) in enumerate(zip(inputs, found, strict=True)):
        if g is None and not allow_unused:
            raise fault("E410 input-grad", i, tuple(tensor.shape))
        result = None if g is None else _handle(g, known, create_graph)
        results.append(result)
        if result is not None:
            known.append(result)
    return tuple(results)
