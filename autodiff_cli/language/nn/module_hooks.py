"""Backward hooks of modules: called with the gradients of inputs and outputs of one call.

Inputs and outputs pass through nodes of their own, whose cotangents are what the hooks see.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.node import Node
from ...graph.registry import F
from ...graph.state import STATE, grad_mode
from ..torch.custom_functions import Call, Context, recorded_results, shown_results
from ..torch.grad_functions import attribute
from ..values.dialect import kind_of
from ..values.functions import call_value
from ..values.values import Builtin, GradFn

if TYPE_CHECKING:
    from .modules import Module


class Watched:
    """One call of a module with backward hooks: PyTorch's `BackwardHook`."""

    __slots__ = ("after", "before", "given", "inputs", "module", "outputs", "wanted")

    def __init__(self, module: Module, hooks: Any):
        self.module = module
        self.before = list(hooks.reverse_before.values())
        self.after = list(hooks.reverse.values())
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.given: tuple[Any, ...] | None = None  # gradients of the outputs that a pass brought

    def entering(self, args: list[Any]) -> list[Any]:
        """The arguments as the module sees them."""
        self.inputs = args
        passed = _passed(args, self._entered)
        self.wanted = passed is not args  # whether any of them requires grad
        return passed

    def leaving(self, result: Any) -> Any:
        """The results as the program sees them."""
        self.outputs = list(result) if isinstance(result, tuple) else [result]
        passed = _passed(self.outputs, self._left)
        return tuple(passed) if isinstance(result, tuple) else passed[0]

    def _entered(self, grads: list[Tensor | None]) -> tuple[Any, ...]:
        """The gradients of the tensors among the arguments, as the hooks leave them."""
        return self._after(_among(self.inputs, _filled(self.inputs, grads)))

    def _left(self, grads: list[Tensor | None]) -> tuple[Any, ...]:
        """The gradients of the tensors among the results, as the hooks leave them."""
        given = _among(self.outputs, grads)
        for hook in self.before:
            changed = call_value(hook, [self.module, given], {})
            if changed is not None:
                given = _checked("Backward pre hook", "grad_output", changed, given)
        self.given = given
        if not self.wanted:
            found = self._after((None,) * len(self.inputs))
            if any(g is not None for g in found):
                raise fault("E205 hook-gradients-of-nothing")
        return tuple(_filled(self.outputs, [g for g, _ in _tensors(given, self.outputs)]))

    def _after(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        given, self.given = self.given, None
        for hook in [] if given is None else self.after:
            changed = call_value(hook, [self.module, grads, given], {})
            if changed is not None:
                grads = _checked("Backward hook", "grad_input", changed, grads)
        return tuple(g for g, _ in _tensors(grads, self.inputs))


def watch_last(module: Any, hooks: Any, result: Any) -> None:
    """Show `register_backward_hook`s what the last function of a call gives to its inputs."""
    while not isinstance(result, Tensor):
        result = next(iter(result.values() if isinstance(result, dict) else result))
    if result.is_leaf:
        return
    for hook in hooks.reverse_last.values():
        attribute(GradFn(result.node), "register_hook").function(
            Builtin(getattr(hook, "name", "hook"), partial(_told, module, hook))
        )


def _told(module: Any, hook: Any, *grads: Any) -> Any:
    return call_value(hook, [module, *grads], {})


def _tensors(values: Any, places: Any) -> list[tuple[Any, Tensor]]:
    return [(v, x) for v, x in zip(values, places, strict=False) if isinstance(x, Tensor)]


def _among(places: Any, grads: Any) -> tuple[Any, ...]:
    """Gradients of tensors, None where there is something else."""
    rest = iter(grads)
    return tuple(next(rest) if isinstance(x, Tensor) else None for x in places)


def _filled(places: Any, grads: list[Tensor | None]) -> list[Tensor | None]:
    """Gradients of the tensors among some values, zeros for those that have none."""
    tensors = [x for x in places if isinstance(x, Tensor)]
    return [
        Tensor(F.zeros_like(F.detach(x.node))) if g is None else g
        for x, g in zip(tensors, grads, strict=True)
    ]


class _Passing(Call):
    """The application of a function that returns its arguments and is told of their gradients."""

    __slots__ = ("hook",)
    hook: Callable[[list[Tensor | None]], tuple[Any, ...]]

    def backward(self, grads: list[Tensor | None]) -> tuple[Node | None, ...]:
        with grad_mode(STATE.grad):
            return tuple(g and g.node for g in self.hook(grads))


class _Function:
    name = "BackwardHookFunction"
    flat: ClassVar[dict[str, Any]] = {}  # no `jvp`, as in PyTorch


def _passed(values: list[Any], hook: Any) -> list[Any]:
    """Tensors through one node that tells a hook of their gradients; anything else as it is."""
    tensors = [v for v in values if isinstance(v, Tensor)]
    if not STATE.grad or not any(t.requires_grad for t in tensors):
        return values
    if STATE.levels:
        raise fault("E409 no-setup_context", _Function.name)
    nodes = [t.node for t in tensors]
    context = Context(tuple(t.requires_grad for t in tensors))
    context.non_differentiable = tuple(t for t in tensors if not t.requires_grad)
    context.materialize = False
    call = _Passing(_Function, context, len(tensors), list(range(len(tensors))), nodes)
    call.hook = hook
    call.results = [*nodes]
    results = recorded_results(call, nodes, tensors, True)
    shown = iter(shown_results(call, tensors, results, tensors))
    return [next(shown) if isinstance(v, Tensor) else v for v in values]


def _checked(hook: str, what: str, changed: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a hook gives instead of gradients: as many, of the same shapes."""
    given = changed
    if isinstance(given, Tensor) and given.node.shape:
        given = [Tensor(part) for part in F.unbind(given.node)]
    if not isinstance(given, tuple | list):
        raise fault("E208 hook-returned-instead-tuple", kind_of(changed), type(changed).__name__)
    if len(given) != len(grads):
        raise fault(
            "E205 hook-returned-gradients-instead", len(given), len(grads), hook=hook, what=what
        )
    for new, old in zip(given, grads, strict=True):
        if isinstance(new, Tensor) and isinstance(old, Tensor) and new.shape != old.shape:
            raise fault("E308 hook-returned-shape-gradient", new=new, old=old)
    return tuple(given)
