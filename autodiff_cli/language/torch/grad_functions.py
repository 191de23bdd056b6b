"""What programs do with `y.grad_fn`: its name, its parents, hooks, metadata, what it saved."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ...autograd.function_hooks import attached, results_with_gradients
from ...autograd.gradients import accumulate
from ...autograd.reverse import Pass
from ...autograd.rules import fitted, ruled, slopes
from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.node import Node
from ...graph.state import STATE
from ..values.dialect import kind_of
from ..values.functions import call_value
from ..values.value_attributes import special_name
from ..values.values import Builtin, GradFn, Handle, edges
from .saved_values import raw_saved, saved


def attribute(function: GradFn, name: str) -> Any:
    """`y.grad_fn.name`; that of a custom Function has the fields of its `ctx` too."""
    known = _OF_LEAVES if function.is_leaf else _ATTRIBUTES
    if name in known:
        return known[name](function)
    if name.startswith("_raw_saved_"):
        return raw_saved(function, name.removeprefix("_raw_saved_"))
    if name.startswith("_saved_"):
        return saved(function, name.removeprefix("_saved_"))
    if name.startswith("_"):
        return special_name(function, name)
    if function.node.op.key == "custom_function":
        return function.node.args[2].context.get_attribute(name)
    raise fault("E207 function-no-attribute", ", ".join(known), function=function, name=name)


class FunctionType:
    """`type(y.grad_fn)`: it has a name."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def describe(self) -> str:
        return f"<class '{self.name}'>"


function_type = lru_cache(1 << 12)(FunctionType)


def _variable(function: GradFn) -> Any:
    handle = function.node.handle
    return None if handle is None else handle()


def _nodes(name: str, values: Any, grads: list[Node | None]) -> list[Node | None]:
    """What a hook gives instead of gradients, as nodes."""
    count = len(grads)
    if not isinstance(values, tuple | list | Tensor):
        raise fault("E208 hook-returned-instead-tuple-2", kind_of(values), type(values).__name__)
    parts = [values] if isinstance(values, Tensor) else list(values)
    if len(parts) != count:
        raise fault("E205 hook-returned-gradients-instead-2", len(parts), count=count, name=name)
    for part, g in zip(parts, grads, strict=True):
        if part is not None and not isinstance(part, Tensor):
            raise fault("E208 hook-returns-tensors", kind_of(part))
        if part is not None and g is None:
            raise fault("E205 hook-replaces-none", name=name)
    return [None if part is None else part.node for part in parts]


def _name(hook: Any) -> str:
    return getattr(hook, "name", "hook")


def _tensors(nodes: list[Node | None]) -> tuple[Tensor | None, ...]:
    return tuple(None if node is None else Tensor(node) for node in nodes)


def applied(function: GradFn, args: list[Any]) -> Any:
    """`y.grad_fn(g)`: what it gives for each of `next_functions`, hooks left out."""
    node = function.node
    if "own saving" in node.op.properties:
        raise fault("E208 function-of-program-called", function.name)
    count = len(results_with_gradients(node))
    if len(args) != count:
        raise fault("E205 function-takes-gradients", function, count, len(args))
    for at, g in enumerate(args):
        if g is not None and not isinstance(g, Tensor):
            raise fault("E208 function-takes-tensors", function=function, at=at)
    if function.inside + 1 < len(node.grad_names.split()):
        raise fault("E203 hook-inside", function.name)
    given = {i: g.node for i, g in enumerate(args) if g is not None}
    if function.is_leaf:
        if given:
            accumulate(node, node.args[0], given[0], STATE.grad)
        return ()
    g = given if node.outputs is not None else given.get(0)
    if g is None:
        found = []
    elif node.op.vjp_rule is None:
        found = list(Pass((), None, STATE.grad, True).apart(node, g).items())
    else:
        pairs = slopes(node.op, node.args, ruled(node, g))
        found = [(x, fitted(gx, x, node)) for x, gx in pairs if gx is not None]
    results: list[Tensor | None] = []
    for edge in function.next_functions:
        own = next((i for i, (x, _) in enumerate(found) if edges([x]) == (edge,)), None)
        results.append(None if edge[0] is None or own is None else Tensor(found.pop(own)[1]))
    return results[0] if len(results) == 1 else tuple(results)


def _register_hook(function: GradFn) -> Builtin:
    def register(hook: Any) -> Handle:
        def run(inputs: list[Node | None], outputs: list[Node | None]) -> Any:
            changed = call_value(hook, [_tensors(inputs), _tensors(outputs)], {})
            return None if changed is None else _nodes(_name(hook), changed, inputs)

        if not function.is_leaf and function.inside + 1 < len(function.node.grad_names.split()):
            raise fault("E203 hook-inside", function.name)
        return Handle(attached(function.node).after, run)

    return Builtin("register_hook", register)


def _register_prehook(function: GradFn) -> Builtin:
    def register(hook: Any) -> Handle:
        def run(outputs: list[Node | None]) -> Any:
            changed = call_value(hook, [_tensors(outputs)], {})
            return None if changed is None else _nodes(_name(hook), changed, outputs)

        if function.inside:
            raise fault("E203 hook-inside", function.name)
        return Handle(attached(function.node).before, run)

    return Builtin("register_prehook", register)


_ATTRIBUTES: dict[str, Callable[[GradFn], Any]] = {
    "name": lambda v: Builtin("name", lambda: v.name),
    "next_functions": lambda v: v.next_functions,
    "metadata": lambda v: attached(v.node).metadata,
    "register_hook": _register_hook,
    "register_prehook": _register_prehook,
}
_OF_LEAVES = {**_ATTRIBUTES, "variable": _variable}
