"""`torch.autograd.graph`: places in the graph, hooks of several tensors, counts of changes."""

from __future__ import annotations

from typing import Any

from ...autograd.calls import Results
from ...autograd.reverse import Pass
from ...autograd.tensor import Tensor
from ...errors import fault, refused
from ...graph.node import Node
from ...graph.op import OUTPUT, output
from ...graph.state import grad_mode
from ..runtime.attributes import METHODS
from ..values.dialect import kind_of
from ..values.functions import call_value
from ..values.operations import items_of
from ..values.values import Builtin, GradFn, Handle, instances
from .saved_values import beside


class GradientEdge(Results):
    """A function of the graph and which of its results: `(node, output_nr)`. `tensor` shows what
    flows there."""

    fields = ("node", "output_nr")
    name = "GradientEdge"
    tensor: Tensor


def _edge(node: Any, output_nr: Any, ownership_token: Any = None) -> GradientEdge:
    if not isinstance(node, GradFn) or type(output_nr) is not int:
        raise fault("E208 gradientedge-takes-grad_fn-number", kind_of(node))
    made = GradientEdge((node, output_nr))
    at = node.node
    made.tensor = beside(at if at.outputs is None else output(at, output_nr))
    return made


def _gradient_edge(tensor: Any) -> GradientEdge:
    if not isinstance(tensor, Tensor) or not tensor.requires_grad:
        raise fault("E402 tensor-does-not-require")
    node = tensor.node
    return _edge(GradFn(node), node.args[1] if node.op is OUTPUT else 0)


def _multi_hook(tensors: Any, fn: Any, *, mode: Any = "all") -> Handle:
    """`register_multi_grad_hook`: told once in a backward, of all gradients or of the first."""
    if mode not in ("all", "any"):
        raise refused(
            "E205",
            f"mode is 'all' or 'any', not {mode!r}"[:120],
            f"Expects mode to be one of ('all', 'any') but got {mode}",
            "leave it out",
            "ValueError",
        )
    given = [t for t in items_of(tensors) if isinstance(t, Tensor)]
    nodes = [t.node for t in given]
    state: dict[str, Any] = {"pass": None}

    def register(at: int, tensor: Tensor) -> Handle:
        def run(gradient: Any) -> None:
            _told(state, nodes, at, gradient, fn, mode)

        return METHODS["register_hook"](tensor, Builtin("hook", run))

    handles = [register(at, tensor) for at, tensor in enumerate(given)]
    return _Together(handles)


class _Together(Handle):
    """The handle of hooks that were registered together."""

    __slots__ = ("handles",)
    path = "torch.autograd.graph._MultiHandle"

    def __init__(self, handles: list[Handle]):
        super().__init__({}, None)
        self.handles = handles

    def leave(self, error: Any) -> bool:
        for handle in self.handles:
            handle.leave(error)
        return False


def _told(
    state: dict[str, Any], nodes: list[Node], at: int, gradient: Tensor, fn: Any, mode: str
) -> None:
    """One gradient of those that a hook of several tensors waits for."""
    running = Pass.running
    if state["pass"] is not running:
        state["pass"] = running
        state["found"] = [None] * len(nodes)
        state["left"] = sum(running is not None and running.visits(node) for node in nodes)
        if mode == "any":
            call_value(fn, [gradient], {})
    state["found"][at] = gradient
    state["left"] -= 1
    if mode == "all" and not state["left"]:
        call_value(fn, [list(state["found"])], {})


def _increment_version(tensor: Any) -> None:
    for changed in [tensor] if isinstance(tensor, Tensor) else items_of(tensor):
        with grad_mode(False):
            changed.overwrite(changed.node)


NAMES: dict[str, Any] = {
    "Node": instances("torch.autograd.graph.Node", GradFn),
    "GradientEdge": Builtin("GradientEdge", _edge),
    "get_gradient_edge": Builtin("get_gradient_edge", _gradient_edge),
    "register_multi_grad_hook": Builtin("register_multi_grad_hook", _multi_hook),
    "increment_version": Builtin("increment_version", _increment_version),
}
