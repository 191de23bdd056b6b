"""Backward hooks of modules: called with the gradients of inputs and outputs of one call.

Inputs and outputs pass through nodes of their own, whose cotangents are what the hooks see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.node import Node
from ...graph.registry import F
from ..values.dialect import kind_of
from ..values.functions import call_value

if TYPE_CHECKING:
    from .modules import Module

NAME = "BackwardHookFunctionBackward"


class Watched:
    """One call of a module with backward hooks."""

    __slots__ = ("arrived", "given", "module", "outputs", "wanted")

    def __init__(self, module: Module):
        self.module = module
        self.arrived: dict[int, Tensor] = {}  # gradients of inputs, by place
        self.given: dict[int, Tensor] = {}  # gradients of outputs, by place
        self.wanted: list[int] = []
        self.outputs = 0

    def entering(self, args: list[Any]) -> list[Any]:
        """The arguments, tensors that require grad as nodes of their own."""
        passed = list(args)
        for place, value in enumerate(args):
            if isinstance(value, Tensor) and value.requires_grad:
                self.wanted.append(place)
                passed[place] = _noted(value, lambda g, place=place: self._input(place, g))
        self.arrived = {}
        return passed

    def leaving(self, result: Any) -> Any:
        """The results, seen through as well."""
        parts = list(result) if isinstance(result, tuple) else [result]
        self.outputs = len(parts)
        for place, value in enumerate(parts):
            if isinstance(value, Tensor) and value.requires_grad:
                parts[place] = _noted(value, lambda g, place=place: self._output(place, g))
        return tuple(parts) if isinstance(result, tuple) else parts[0]

    def _output(self, place: int, g: Node) -> Node | None:
        self.given[place] = Tensor(g)
        grads = self._grads(self.given, self.outputs)
        for hook in list(self.module.reverse_before.values()):
            changed = call_value(hook, [self.module, grads], {})
            if changed is not None:
                grads = _checked("Backward pre hook", "grad_output", changed, grads)
                self.given[place] = grads[place]
        if not self.wanted:
            self._called((None,))
        return self.given[place].node

    def _input(self, place: int, g: Node) -> Node | None:
        self.arrived[place] = Tensor(g)
        if len(self.arrived) < len(self.wanted):
            return None
        grads = self._called(self._grads(self.arrived, max(self.wanted) + 1))
        self.arrived = {}
        found = grads[place]
        return found.node if isinstance(found, Tensor) else None

    def _called(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self.module.reverse.values()):
            outputs = self._grads(self.given, self.outputs)
            changed = call_value(hook, [self.module, grads, outputs], {})
            if changed is not None:
                grads = _checked("Backward hook", "grad_input", changed, grads)
        return grads

    @staticmethod
    def _grads(found: dict[int, Tensor], count: int) -> tuple[Any, ...]:
        return tuple(found.get(place) for place in range(count))


def _checked(hook: str, what: str, changed: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a hook gives instead of gradients: as many, of the same shapes."""
    given = (changed,) if isinstance(changed, Tensor) else changed
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


def _noted(value: Tensor, hook: Any) -> Tensor:
    node = F.alias(value.node)
    marks = node.mark()
    marks.name = NAME
    marks.hooks[len(marks.hooks) + 1] = hook
    return Tensor(node)
