"""`torch.autograd.forward_ad`: tensors that carry a tangent while a dual level is entered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...autograd.calls import Results
from ...autograd.forward import Linearized, depends
from ...autograd.handles import beside
from ...autograd.rules import lives, zeros_like
from ...autograd.tensor import Tensor
from ...autograd.transform_levels import Opened, enter
from ...autograd.transforms.gradcheck import Call
from ...autograd.views import first_place
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
    if tensor.node.numel and not _lie_alike(tensor, tangent):
        tangent = Tensor(F.alias(tangent.node))  # a copy of its own that lies like the tensor
        tangent.node.strides = layout
    opened = Opened((tensor,), "make_dual")
    node = opened.nodes[0]
    node.requires_grad = tensor.node.requires_grad
    node.mark().name = "ViewBackward0"  # as PyTorch calls it
    dual = beside(tensor, node)
    give(node, tangent)
    return dual


def _lie_alike(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors lie at the same places of memory of the same size."""
    sizes = {(t.node if t.storage is None else t.storage.node).numel for t in (a, b)}
    alike = same_layout(a.shape, strides_of(a.node), strides_of(b.node))
    return alike and len(sizes) == 1 and first_place(a) == first_place(b)


class Moving:
    """A node, who shows it, and how it moves: a tensor, what it showed, and which change of it that
    was."""

    __slots__ = ("change", "node", "owner", "tangent", "version")

    def __init__(self, node: Node, tangent: Tensor | None):
        self.node, self.owner, self.tangent = node, node.handle, tangent
        self.change = None if tangent is None else tangent.node
        self.version = None if tangent is None else tangent.version


def give(node: Node, tangent: Tensor | None) -> None:
    """Let a node move like this."""
    STATE.duals.append(Moving(node, tangent))


def _written(tensor: Tensor, before: Node) -> None:
    """A tensor was changed in place: so is the tangent that it was given."""
    known = [moving.tangent for moving in STATE.duals if moving.node is before]
    tangent = known[0] if known else None
    if tangent is None:
        return
    moved = tangent_of(tensor)
    tangent.write(zeros_like(tensor.node) if moved is None else moved.node)
    for moving in STATE.duals:
        if moving.tangent is tangent:
            moving.version = tangent.version
    give(tensor.node, tangent)


def tangent_of(tensor: Tensor) -> Tensor | None:
    """How a tensor moves in the level that is entered; None when it does not."""
    node = tensor.node
    nodes = [moving.node for moving in STATE.duals]
    if node in nodes:
        known: Tensor | None = STATE.duals[nodes.index(node)].tangent
        return known
    if not STATE.dual or not depends(node, nodes):
        return None
    start = tick()
    for moving in STATE.duals:
        if moving.tangent is not None and moving.tangent.version != moving.version:
            raise fault("E203 tangent-changed-place")
    moves = [moving.change for moving in STATE.duals]
    (change,) = Linearized([node], nodes, True).changes(moves)
    if change is None:
        return None
    for moving in STATE.duals:
        if moving.change is change:
            if moving.owner is not None and moving.owner() is tensor:
                return moving.tangent
            change = F.clone(change)  # of memory of its own
    found = Tensor(change if lives(change) else Opened.unrecorded(change))
    STATE.unmoved.append((start, tick()))  # a tangent has none itself
    return found


@contextmanager
def untold() -> Iterator[None]:
    """While this runs changes in place change no tangents."""
    before, STATE.written = STATE.written, None
    try:
        yield
    finally:
        STATE.written = before


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
    STATE.written = _written
    return 0


def _leave(level: Any = None) -> None:
    """`exit_dual_level()`: what names hold are tensors without tangents again."""
    if not STATE.dual:
        raise fault("E409 no-dual-level-was")
    STATE.duals.clear()
    STATE.unmoved.clear()
    STATE.dual = False
    STATE.written = None


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
