"""`torch.autograd.graph.saved_tensors_hooks`: what is kept for backward goes through two functions
of the program.

What an op saves is what its rule reads: `pack_hook` gets the tensors as soon as the program has the
op's result; `unpack_hook` gives them back when a backward comes to the op.
"""

from __future__ import annotations

from typing import Any

from ...autograd import rules
from ...autograd.function_hooks import Packed, attached
from ...autograd.handles import wrap_nearest
from ...autograd.tensor import Tensor
from ...errors import fault, refused
from ...graph.kinds import Kind
from ...graph.node import Node, tick
from ...graph.op import LEAF, OUTPUT
from ...graph.registry import F
from ...graph.state import STATE, grad_mode
from ...graph.walk import SEQUENCE
from ..runtime.context_managers import Manager
from ..values.dialect import kind_of
from ..values.functions import call_value
from ..values.values import Builtin
from .saved_values import beside


class SavedHooks:
    """Hooks that were entered; the innermost ones take what is saved inside."""

    __slots__ = ("hooks", "seen", "since")

    def __init__(self, pack: Any, unpack: Any):
        if STATE.unpacked:
            words = STATE.unpacked[-1]
            raise refused("E411", words, words, "leave `saved_tensors_hooks` out")
        self.hooks = Hooks(pack, unpack)
        self.since = tick()
        self.seen: set[Node] = set()

    def __call__(self, node: Node) -> None:
        """Pack what a new result and the nodes behind it have saved."""
        new = self._new(node)
        before, STATE.packing = STATE.packing, []
        try:
            for made in sorted(new, key=SEQUENCE):
                saved = _saved(made, new[made])
                if saved:
                    self.hooks.attach(made, saved)
        finally:
            STATE.packing = before

    def _new(self, node: Node) -> dict[Node, Node | None]:
        """The nodes behind one that are new, each with the composite whose body it is part of."""
        found: dict[Node, Node | None] = {}
        pending: list[tuple[Node, Node | None]] = [(node, None)]
        while pending:
            node, owner = pending.pop()
            if node.seq > self.since and node.requires_grad and node not in self.seen:
                self.seen.add(node)
                if node.op is not LEAF:
                    found[node] = owner
                    owner = node if node.body is not None else owner
                    for part in rules.parents(node):
                        outside = owner is None or part in owner.inputs
                        pending.append((part, None if outside else owner))
        return found


class Hooks:
    """A pair of functions that pack and unpack."""

    __slots__ = ("pack", "unpack")

    def __init__(self, pack: Any, unpack: Any):
        self.pack = pack
        self.unpack = unpack

    def attach(self, node: Node, saved: list[Node], late: bool = False, at: int = -1) -> None:
        """Pack what a node saved, of one operand `at` its place; `late`: outside of the graph, as
        it was saved before."""
        context = attached(node)
        kept = [] if context.packed is None else context.packed.saved
        packed = [(read, self.packed(F.detach(read) if late else read), at) for read in saved]
        for read in saved:
            if read.op is OUTPUT and read.args[0] is node:  # its rule is shown this one
                node.mark().results[read.args[1]] = read
        context.packed = Packed(kept + packed, self.unpacked)

    def packed(self, read: Node) -> Any:
        known = None if read.handle is None else read.handle()
        if known is None:
            known = wrap_nearest(read) if read.op.view else beside(read)
        version = known.version
        with grad_mode(False):
            found = call_value(self.pack, [known], {})
        if known.version != version:
            raise fault("E409 pack-hook-changed-argument")
        return found

    def unpacked(self, packed: Any) -> Tensor:
        value = call_value(self.unpack, [packed], {})
        if not isinstance(value, Tensor):
            raise fault("E208 unpack-hook-returned-instead", kind_of(value), type(value).__name__)
        return value


class SavedTensor:
    """`y.grad_fn._raw_saved_result`: a place where hooks may be put afterwards."""

    __slots__ = ("at", "function", "read")
    name = "SavedTensor"

    def __init__(self, function: Node, read: Node, at: int):
        self.function = function
        self.read = read
        self.at = at

    def get_attribute(self, name: str) -> Any:
        if name == "register_hooks":
            return Builtin(name, self._register)
        raise fault("E207 saved-tensor-no-attribute", name=name)

    def _register(self, pack_hook: Any, unpack_hook: Any) -> None:
        Hooks(pack_hook, unpack_hook).attach(self.function, [self.read], True, self.at)


def _saved(node: Node, owner: Node | None) -> list[Node]:
    """The tensors that a node saved, by the names that PyTorch has for them: those of the operands
    of the composite that it belongs to."""
    marks = node.marks
    if node.op.vjp_rule is None or node.op is OUTPUT or "own saving" in node.op.properties:
        return []
    if marks is not None and (marks.freed or (marks.context and marks.context.packed)):
        return []
    reads = dict.fromkeys(rules.saved_by(node))
    operands = {
        arg: "self" if p.name == "input" else p.name
        for made in (node, owner or node)
        for arg, p in zip(made.args, made.op.params, strict=False)
        if type(arg) is Node
    }
    named = [
        (operands[arg], arg)
        for arg in node.args
        if type(arg) is Node and arg in reads and not arg.weak
    ]
    if owner is not None and owner.op.saves == "result 1":  # where elements were picked, alone
        named = [pair for pair in named if pair[1].dtype.kind != "f"]
    names = {name for name, _ in named}
    matrices = all(arg.ndim > 1 for _, arg in named)
    if node.op.kind is Kind.POINTWISE or (matrices and names & {"other", "end", "mat2", "batch2"}):
        named.sort(key=lambda pair: pair[0])  # PyTorch saves operands by their names, `vec` last
    results = [r for r in reads if r is node or (r.op is OUTPUT and r.args[0] is node)]
    return [arg for _, arg in named] + results


def disabled(error_message: Any) -> Manager:
    """`disable_saved_tensors_hooks(message)`."""
    return Manager(
        "disable_saved_tensors_hooks",
        lambda: STATE.unpacked.append(str(error_message)),
        lambda error: STATE.unpacked.pop() and None,
    )
