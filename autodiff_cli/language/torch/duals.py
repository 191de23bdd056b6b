"""`torch.autograd.forward_ad`: tensors that carry a tangent while a dual level is entered."""

from __future__ import annotations

from typing import Any

from ...autograd.calls import Results
from ...autograd.forward import Linearized, depends
from ...autograd.handles import beside
from ...autograd.tensor import Tensor, lives
from ...autograd.transform_levels import Opened, enter
from ...autograd.transforms.gradcheck import Call
from ...errors import AutodiffError, fault
from ...graph.dtypes import is_float
from ...graph.node import Node, tick
from ...graph.registry import F
from ...graph.state import STATE
from ...graph.strides import same_layout, strides_of
from ..runtime.context_managers import Manager
from ..values.dialect import kind_of, misfit
from ..values.values import builtins_of


def _make(tensor: Any, tangent: Any, *, level: Any = None) -> Tensor:
    if not STATE.dual:
        raise fault("E409 dual-tensor-made-inside")
    for value in (tensor, tangent):
        if not isinstance(value, Tensor):
            raise fault("E208 make_dual-takes-tensors-not", kind_of(value), type(value).__name__)
        if not is_float(value.dtype):
            what = "tangent" if value is tangent else "primal"
            raise fault("E306 make_dual-moves-floats", value.dtype.name, what=what)
    if tensor.shape != tangent.shape:
        raise fault(
            "E308 tangent-shape",
            list(tensor.shape),
            list(tangent.shape),
            tangent=tangent,
            tensor=tensor,
        )
    if tangent_of(tangent) is not None:
        raise fault("E409 tangent-tangent-itself")
    if tangent_of(tensor) is not None:
        raise fault("E409 tensor-tangent-already")
    layout = strides_of(tensor.node)
    if not same_layout(tensor.shape, strides_of(tangent.node), layout):
        tangent = Tensor(F.alias(tangent.node))  # a copy of its own that lies like the tensor
        tangent.node.strides = layout
    opened = Opened((tensor,), "make_dual")
    node = opened.nodes[0]
    node.requires_grad = tensor.node.requires_grad
    node.mark().name = "ViewBackward0"  # as PyTorch calls it
    give(node, tangent)
    return beside(tensor, node)


def give(node: Node, tangent: Tensor | None) -> None:
    """Let a node move like this."""
    STATE.duals.append((node, tangent, 0 if tangent is None else tangent.version))


def tangent_of(tensor: Tensor) -> Tensor | None:
    """How a tensor moves in the level that is entered; None when it does not."""
    node = tensor.node
    nodes = [dual for dual, _, _ in STATE.duals]
    if node in nodes:
        return STATE.duals[nodes.index(node)][1]
    if not STATE.dual or not depends(node, nodes):
        return None
    start = tick()
    moves = []
    for _, tangent, version in STATE.duals:
        if tangent is not None and tangent.version != version:
            raise fault("E203 tangent-changed-place")
        moves.append(None if tangent is None else tangent.node)
    (change,) = Linearized([node], nodes, True).changes(moves)
    if change is None:
        return None
    for _, tangent, _ in STATE.duals:
        if tangent is not None and tangent.node is change:
            return tangent
    found = Tensor(change if lives(change) else Opened.unrecorded(change))
    STATE.unmoved.append((start, tick()))  # a tangent has none itself
    return found


def _unpack(tensor: Any, *, level: Any = None) -> Results:
    if not isinstance(tensor, Tensor):
        raise misfit("unpack_dual() takes a tensor, not", tensor, "give one")
    tangent, node = tangent_of(tensor), tensor.node
    primal = tensor
    if tangent is not None:
        start = tick()
        primal = beside(tensor, F.alias(node))
        primal.node.mark().name = "Identity"  # as PyTorch calls it
        STATE.unmoved.append((start, tick()))
    found = Results((primal, tangent))
    found.fields, found.name = ("primal", "tangent"), "UnpackedDualTensor"
    return found


def _enter() -> int:
    """`enter_dual_level()`."""
    STATE.duals.clear()  # of a program that ended inside of a level
    enter()
    return 0


def _leave(level: Any = None) -> None:
    """`exit_dual_level()`: what names hold are tensors without tangents again."""
    if not STATE.dual:
        raise fault("E409 no-dual-level-was")
    STATE.duals.clear()
    STATE.unmoved.clear()
    STATE.dual = False


def along(
    call: Call, given: list[Any], tangents: list[Tensor | None]
) -> list[tuple[Tensor, Tensor | None]]:
    """The float results of a function in a dual level, each with how it moves when the arguments
    that have tangents do."""
    _enter()
    try:
        args = [
            x if tangent is None else _make(x, tangent)
            for x, tangent in zip(given, tangents, strict=True)
        ]
        result = call(args, {})
        results = [result] if isinstance(result, Tensor) else result
        return [(out, tangent_of(out)) for out in results if is_float(out.dtype)]
    finally:
        _leave()


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


NAMES = builtins_of(
    {
        "_set_fwd_grad_enabled": _set_enabled,
        "dual_level": lambda: Manager(
            "dual_level", lambda: _enter() and None, lambda error: _leave()
        ),
        "enter_dual_level": _enter,
        "exit_dual_level": _leave,
        "make_dual": _make,
        "unpack_dual": _unpack,
    }
)
