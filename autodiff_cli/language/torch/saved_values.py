"""What a backward function has saved, under PyTorch's names: `y.grad_fn._saved_result`."""

from __future__ import annotations

from typing import Any

from ...autograd import reverse
from ...autograd.tensor import Tensor
from ...errors import fail
from ...graph.node import Node
from ...graph.op import CAST
from ..values.values import GradFn


def saved(function: GradFn, name: str) -> Any:
    """The saved value of this name; None for an operand that no gradient needs."""
    node = function.node
    if function.is_leaf or node.outputs is not None:
        raise _nothing(function, name)
    reads = reverse.saved_by(node)
    names = [p.name for p in node.op.params]
    if name == "result":
        if node not in reads:
            raise _nothing(function, name)
        return beside(node)
    at = 0 if name == "self" else names.index(name) if name in names else -1
    if at < 0 or at >= len(node.args):
        raise _nothing(function, name)
    value = node.args[at]
    if not isinstance(value, Node):
        return value
    if value not in reads:
        if not any(read in node.inputs for read in reads):
            raise _nothing(function, name)
        return None
    while value.op is CAST:
        value = value.inputs[0]
    if not value.shape and value.weak:
        return value.value.item() if value.value is not None else None
    known = None if value.handle is None else value.handle()
    return beside(value) if known is None else known


def raw_saved(function: GradFn, name: str) -> Any:
    """The place of a saved tensor: `y.grad_fn._raw_saved_result`."""
    from .saved_hooks import SavedTensor

    node = function.node
    found = saved(function, name)
    if not isinstance(found, Tensor):
        raise _nothing(function, f"raw_saved_{name}")
    read = node if name == "result" else next(x for x in node.inputs if x is found.node)
    return SavedTensor(node, read)


def beside(node: Node) -> Tensor:
    """Another tensor that shows a node, beside the one that does."""
    before = node.handle
    made = Tensor(node)
    if before is not None:
        node.handle = before
    return made


def _nothing(function: GradFn, name: str) -> Exception:
    return fail(
        "E207",
        f"{function.name} has no attribute `_saved_{name}`",
        help="it keeps what its gradient needs: _saved_self, _saved_other, _saved_result",
        notes=(f"PyTorch: '{function.name}' object has no attribute '_saved_{name}'",),
    )
