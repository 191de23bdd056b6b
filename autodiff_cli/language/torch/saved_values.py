"""What a backward function has saved, under PyTorch's names: `y.grad_fn._saved_result`."""

from __future__ import annotations

from typing import Any

from ...autograd import handles, rules
from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.node import Node
from ...graph.op import CAST, LEAF, leaf
from ...graph.registry import F
from ...graph.state import grad_mode
from ..values.values import GradFn


def saved(function: GradFn, name: str) -> Any:
    """The saved value of this name, unpacked; None for an operand that no gradient needs."""
    value = _saved(function, name)
    marks = function.node.marks
    packed = marks.context.packed if marks is not None and marks.context is not None else None
    if packed is not None:
        for read, kept, at in packed.saved:
            if read is value and at in (-1, _place(function, name)):
                return restored(read, packed.unpack(kept))
    if not isinstance(value, Node):
        return value
    known = None if value.handle is None else value.handle()
    if known is None or value is not function.node:
        return known or beside(value)
    return handles.beside(known, value)


def _saved(function: GradFn, name: str) -> Any:
    """The node that was saved, or the value that is no tensor."""
    node = function.node
    if function.is_leaf or node.outputs is not None or node.op.vjp_rule is None:
        raise _nothing(function, name)
    reads = rules.saved_by(node)
    if name == "result":
        if node not in reads:
            raise _nothing(function, name)
        return node
    at = _place(function, name)
    if at < 0:
        raise _nothing(function, name)
    value = node.args[at]
    if not isinstance(value, Node):
        return value
    if value not in reads:
        if not any(read in node.inputs for read in reads):
            raise _nothing(function, name)
        return None
    while value.op is CAST and value.handle is None:
        value = value.inputs[0]
    if not value.shape and value.weak:
        return value.value.item() if value.value is not None else None
    return value


def _place(function: GradFn, name: str) -> int:
    """Which operand a name means; -1 where it means none."""
    names = [p.name for p in function.node.op.params]
    return 0 if name == "self" else names.index(name) if name in names else -1


def raw_saved(function: GradFn, name: str) -> Any:
    """The place of a saved tensor: `y.grad_fn._raw_saved_result`."""
    from .saved_hooks import SavedTensor

    read = _saved(function, name)
    if not isinstance(read, Node):
        raise _nothing(function, f"raw_saved_{name}")
    return SavedTensor(function.node, read, _place(function, name))


def restored(read: Node, value: Tensor) -> Tensor:
    """What hooks of the program unpacked, with the history of what was saved."""
    if not read.requires_grad:
        return value
    if read.op is LEAF:
        return Tensor(leaf(value.node, read.args[0]))
    with grad_mode(True):
        return beside(F.with_value(read, F.detach(value.node)))


def beside(node: Node) -> Tensor:
    """Another tensor that shows a node, beside the one that does."""
    before = node.handle
    made = Tensor(node)
    if before is not None:
        node.handle = before
    return made


def _nothing(function: GradFn, name: str) -> Exception:
    return fault("E207 no-attribute-saved", function=function, name=name)
