"""Handles for results: tensors of their own, or views that share the memory they look at."""

from __future__ import annotations

from weakref import ref

from ..graph.node import Node
from ..graph.op import OUTPUT, leaf
from ..graph.registry import F
from ..graph.state import STATE
from .tensor import Tensor, Unkept
from .views import Step


def view_steps(node: Node, root: Node) -> tuple[Step, ...] | None:
    """The view ops that lead from `root` to `node`; None when it is no view of it."""
    steps: list[Step] = []
    while node is not root:
        index = -1
        if node.op is OUTPUT:
            index = node.args[1]
            node = node.args[0]
        if not node.op.view:
            return None
        steps.append((node.op, node.args[1:], index))
        node = node.args[0]
    steps.reverse()
    return tuple(steps)


def wrap_view(node: Node, of: Tensor) -> Tensor:
    """A handle for a result that may look at the memory of `of`."""
    root = of.looked_at
    if node is root:
        return of
    if STATE.inferred and of.inferred:
        node = F.detach(node)  # what looks at a tensor of inference mode is no view to autograd
    tensor = Tensor(node)
    if node.op.view or node.op is OUTPUT:
        steps = view_steps(node, root)
        if steps:
            tensor.storage = of.share()
            tensor.steps = of.steps.then(*steps)
            tensor.seen = tensor.storage.version
            if any(step[0].key == "data_alias" for step in steps):
                tensor.storage.aliased = True
            else:
                tensor.counter = of.counted()
                tensor.known_changes = tensor.counter.count
            mode = "inference" if STATE.inference else "" if STATE.grad else "no_grad"
            mode = mode or getattr(of, "untracked", "")
            if mode and tensor.steps.cut != tensor.steps.count:
                tensor.untracked = mode
                if root.requires_grad and not node.requires_grad and not tensor.steps.cut:
                    # As PyTorch has it: what looks at a tensor that requires grad does so too.
                    tensor.accumulator = Unkept()
                    tensor._node = view = leaf(node, tensor.accumulator)
                    view.handle = ref(tensor)
    return tensor


def wrap_nearest(node: Node) -> Tensor:
    """A handle for a result that may look at the memory of another tensor, the nearest there is."""
    at = node
    while at.handle is None or (owner := at.handle()) is None or owner.looked_at is not at:
        if at.op is not OUTPUT and not at.op.view:
            return Tensor(node)
        at = at.args[0]
    return wrap_view(node, owner)


def beside(tensor: Tensor, node: Node) -> Tensor:
    """A tensor with a history of its own, that of `node`, in the memory of another one."""
    view = wrap_view(F.detach(tensor.looked_at), tensor)
    assert view.storage is not None
    view.storage.set_apart(view.steps.last, node)
    view._node = node
    node.handle = ref(view)
    return view
