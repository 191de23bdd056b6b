"""`torch.autograd.forward_ad`: tensors that carry a tangent while a dual level is entered."""

from __future__ import annotations

from typing import Any

from ..autograd.calls import Results
from ..autograd.forward import Linearized, depends
from ..autograd.levels import DEPTH, Opened
from ..autograd.tensor import Tensor
from ..errors import AutodiffError, fail
from ..graph.node import tick
from ..graph.sizes import shape_text
from ..graph.state import STATE, grad_mode
from .kinds import kind_of
from .managers import Manager
from .values import Builtin, Scope


class Level:
    """What became dual since a level was entered."""

    __slots__ = ("opened", "tangents")

    def __init__(self) -> None:
        self.opened: list[Opened] = []
        self.tangents: list[Tensor] = []


LEVELS: list[Level] = []


def _make(tensor: Any, tangent: Any, *, level: Any = None) -> Tensor:
    if not LEVELS:
        raise fail(
            "E409",
            "a dual tensor is made inside of a dual level",
            help="write `with torch.autograd.forward_ad.dual_level():` around it",
        )
    for value in (tensor, tangent):
        if not isinstance(value, Tensor):
            raise fail("E208", f"make_dual() takes tensors, not {kind_of(value)}", help="give two")
    if tensor.shape != tangent.shape:
        raise fail(
            "E308",
            f"the tangent has shape {shape_text(tangent.shape)}, the tensor "
            f"{shape_text(tensor.shape)}",
            help="they must be equal",
        )
    with grad_mode(True):
        opened = Opened((tensor,), "make_dual")
    LEVELS[-1].opened.append(opened)
    LEVELS[-1].tangents.append(tangent)
    return opened.tree[0]


def _unpack(tensor: Any, *, level: Any = None) -> Results:
    if not isinstance(tensor, Tensor):
        raise fail("E208", f"unpack_dual() takes a tensor, not {kind_of(tensor)}", help="give one")
    primal, tangent = tensor, None
    if LEVELS:
        current = LEVELS[-1]
        nodes = [opened.nodes[0] for opened in current.opened]
        node = tensor.node
        if node in nodes:
            at = nodes.index(node)
            primal, tangent = Tensor(node.args[0]), current.tangents[at]
        elif depends(node, nodes):
            primal = _settled(tensor, current)
            (change,) = Linearized([node], nodes, True).along([t.node for t in current.tangents])
            tangent = _settled(Tensor(change), current)
    found = Results((primal, tangent))
    found.fields, found.name = ("primal", "tangent"), "UnpackedDualTensor"
    return found


def _settled(tensor: Tensor, level: Level) -> Tensor:
    node = tensor.node
    for opened in reversed(level.opened):
        node = opened.settled(node)
    return Tensor(node)


class DualLevel(Manager):
    """`dual_level()`: at its end what names hold are tensors without tangents again."""

    __slots__ = ("grad",)

    def __init__(self) -> None:
        super().__init__("dual_level", self._begin)

    def _begin(self) -> None:
        DEPTH.enter()
        LEVELS.append(Level())

    def leave_scope(self, scope: Scope) -> None:
        """Settle what the names of the program hold."""
        level = LEVELS.pop()
        STATE.dual = False
        nodes = [opened.nodes[0] for opened in level.opened]
        at: Scope | None = scope
        while at is not None:
            for value in list(at.names.values()):
                for tensor in value if isinstance(value, list | tuple) else (value,):
                    if isinstance(tensor, Tensor) and depends(tensor.node, nodes):
                        tensor._show(_settled(tensor, level).node)
            at = at.outer


def _set_enabled(mode: Any) -> Manager:
    """`_set_fwd_grad_enabled(False)`: what is made inside moves with nothing."""
    started: list[int] = []

    def leave(error: AutodiffError | None) -> None:
        STATE.unmoved.append((started.pop(), tick()))

    return Manager(
        "_set_fwd_grad_enabled",
        lambda: None if mode else started.append(tick()),
        lambda error: None if mode else leave(error),
    )


NAMES: dict[str, Any] = {
    "_set_fwd_grad_enabled": Builtin("_set_fwd_grad_enabled", _set_enabled),
    "dual_level": Builtin("dual_level", DualLevel),
    "make_dual": Builtin("make_dual", _make),
    "unpack_dual": Builtin("unpack_dual", _unpack),
}
