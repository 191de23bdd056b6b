"""Forward mode, graph to graph: the derivative along a direction is the transpose of reverse mode.

A vjp is linear in its cotangent, so the vjp of that vjp is the jvp: two reverse passes, each with
one memo, and no rule of its own for any op.
"""

from __future__ import annotations

from ..graph.node import Node
from ..graph.op import leaf
from ..graph.state import grad_mode
from .reverse import gradients, zeros_like


class Linearized:
    """The derivative of `outputs` with respect to `inputs`, to be applied to directions."""

    __slots__ = ("cotangents", "duals", "outputs")

    def __init__(self, outputs: list[Node], inputs: list[Node]):
        self.outputs = outputs
        self.duals: list[Node | None] = []
        with grad_mode(True):
            for out in outputs:
                dual = leaf(zeros_like(out), None, True) if out.requires_grad else None
                self.duals.append(dual)
            seeds = [
                (out, dual)
                for out, dual in zip(outputs, self.duals, strict=True)
                if dual is not None
            ]
            self.cotangents = gradients(seeds, inputs, create_graph=True, retain_graph=True)

    def along(self, tangents: list[Node | None]) -> list[Node]:
        """How the outputs change when the inputs move along `tangents` (None: not at all)."""
        with grad_mode(True):
            seeds = [
                (g, t)
                for g, t in zip(self.cotangents, tangents, strict=True)
                if g is not None and t is not None and g.requires_grad
            ]
            duals = [dual for dual in self.duals if dual is not None]
            found = iter(gradients(seeds, duals, create_graph=True, retain_graph=True))
            result = []
            for out, dual in zip(self.outputs, self.duals, strict=True):
                change = None if dual is None else next(found)
                result.append(zeros_like(out) if change is None else change)
        return result


def jvp(outputs: list[Node], inputs: list[Node], tangents: list[Node | None]) -> list[Node]:
    """The change of `outputs` when `inputs` move along `tangents`."""
    return Linearized(outputs, inputs).along(tangents)
