"""`torch.autograd.graph.saved_tensors_hooks`: what is kept for backward goes through two functions
of the program.

What an op saves is what its rule reads, which is looked for when the `with` ends: then `pack_hook`
gets the tensors; `unpack_hook` gives them back when a backward comes to the op.
"""

from __future__ import annotations

from typing import Any

from ..autograd import reverse
from ..autograd.function_hooks import Packed, attached
from ..autograd.tensor import Tensor
from ..errors import fail
from ..graph.node import Node, tick
from ..graph.op import LEAF, OUTPUT
from .functions import call_value
from .housekeeping import contents
from .kinds import kind_of
from .managers import Manager
from .saved_values import beside
from .values import Scope

# The messages of the `disable_saved_tensors_hooks` that are running.
DISABLED: list[str] = []


class SavedHooks(Manager):
    """The context manager; the innermost one takes what is saved inside."""

    __slots__ = ("pack", "since", "unpack")

    def __init__(self, pack_hook: Any, unpack_hook: Any):
        super().__init__("saved_tensors_hooks")
        self.pack = pack_hook
        self.unpack = unpack_hook
        self.since = 0

    def enter(self) -> None:
        if DISABLED:
            raise fail("E411", DISABLED[-1], help="leave `disable_saved_tensors_hooks` out")
        self.since = tick()

    def leave_scope(self, scope: Scope) -> None:
        """Pack what was saved since the `with` began."""
        for node in sorted(_made_since(self.since, scope), key=reverse.SEQUENCE):
            saved = _saved(node)
            if saved:
                packed = [(read, self._packed(read)) for read in saved]
                attached(node).packed = Packed(packed, self._unpacked)

    def _packed(self, read: Node) -> Any:
        known = None if read.handle is None else read.handle()
        return call_value(self.pack, [beside(read) if known is None else known], {})

    def _unpacked(self, packed: Any) -> Node:
        value = call_value(self.unpack, [packed], {})
        if not isinstance(value, Tensor):
            raise fail(
                "E208",
                f"the unpack hook returned {kind_of(value)} instead of a tensor",
                help="return the tensor that pack_hook was given",
            )
        return value.node


def _made_since(since: int, scope: Scope) -> set[Node]:
    """The nodes that were recorded since then and that a name leads to."""
    found: set[Node] = set()
    seen: set[int] = set()
    at: Scope | None = scope
    while at is not None:
        values = list(at.names.values())
        while values:
            value = values.pop()
            if isinstance(value, Tensor):
                _collect(value.node, since, found)
            elif id(value) not in seen:
                seen.add(id(value))
                values.extend(contents(value))
        at = at.outer
    return found


def _collect(node: Node, since: int, found: set[Node]) -> None:
    pending = [node]
    while pending:
        node = pending.pop()
        if node.seq > since and node.requires_grad and node not in found and node.op is not LEAF:
            found.add(node)
            pending.extend(reverse.parents(node))


def _saved(node: Node) -> list[Node]:
    """The tensors that a node saved, by the names that PyTorch has for them."""
    marks = node.marks
    if node.op.vjp_rule is None or node.op is OUTPUT or "own saving" in node.op.properties:
        return []
    if marks is not None and (marks.freed or (marks.context and marks.context.packed)):
        return []
    reads = set(reverse.saved_by(node))
    params = node.op.params
    named = [
        ("self" if name == "input" else name, arg)
        for name, arg in zip([p.name for p in params], node.args, strict=False)
        if type(arg) is Node and arg in reads and not arg.weak
    ]
    named.sort(key=lambda pair: pair[0])
    return [arg for _, arg in named] + [node] * (node in reads)


def disabled(error_message: Any) -> Manager:
    """`disable_saved_tensors_hooks(message)`."""
    return Manager(
        "disable_saved_tensors_hooks",
        lambda: DISABLED.append(str(error_message)),
        lambda error: DISABLED.pop() and None,
    )
