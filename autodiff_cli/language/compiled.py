"""A program compiled once and called with arrays: what `value_and_grad` returns."""

from __future__ import annotations

import numpy as np

from ..autograd import reverse
from ..autograd.tensor import Tensor, new_leaf
from ..engine.evaluate import evaluate
from ..errors import fail
from ..graph.dtypes import FLOAT32, FLOAT64, is_float
from ..graph.op import LEAF, value_of
from ..graph.state import STATE
from ..source import Source
from . import syntax
from .expressions import Context
from .functions import DEPTH
from .operations import MODE
from .parser import parse
from .program import module_names
from .statements import compile_block
from .values import Scope
from .watching import OVERRIDES, WATCH


class Compiled:
    """`f(**arrays) -> (loss, {name: gradient})`.

    `arguments` are the names the program reads but does not assign; a name it does assign may be
    given too and then replaces that assignment.
    """

    def __init__(self, source: Source, wrt: tuple[str, ...] | None, loss: str):
        tree = parse(source)
        self.source = source
        self.wrt = wrt
        self.loss = loss
        self.python = syntax.has_import(tree)
        MODE.python = self.python
        self.block = compile_block(tree.body, Context(True))
        self.assigned = module_names(tree)
        used = {node.id for node in syntax.walk(tree) if isinstance(node, syntax.Name)}
        self.arguments = sorted(used - self.assigned)

    def __call__(self, **arrays: object) -> tuple[float, dict[str, np.ndarray]]:
        """Run the program with these arrays.

        Raises:
            AutodiffError: E205 for a name the program does not have, and whatever the program does
            wrong.
        """
        STATE.reset()
        DEPTH.now = 0
        MODE.python = self.python
        STATE.default_dtype = FLOAT32 if self.python else FLOAT64
        OVERRIDES.values.clear()
        WATCH.clear()
        scope = Scope(None, True)
        leaves: dict[str, Tensor] = {}
        for name, value in arrays.items():
            leaf = self._leaf(name, value)
            leaves[name] = leaf
            if name in self.assigned:
                OVERRIDES.values[name] = lambda original, leaf=leaf: leaf
            else:
                scope.names[name] = leaf
        self.block(scope)
        OVERRIDES.values.clear()
        loss = self._loss(scope)
        chosen = self._chosen(scope, leaves)
        node = loss.node
        found = reverse.gradients(
            [(node, reverse.ones_like(node))],
            [t.node for t in chosen.values()],
            create_graph=False,
            retain_graph=True,
        )
        grads = [
            reverse.zeros_like(t.node) if g is None else g
            for t, g in zip(chosen.values(), found, strict=True)
        ]
        evaluate([node, *grads], last=True)
        values = {name: np.array(value_of(g)) for name, g in zip(chosen, grads, strict=True)}
        return float(value_of(node).item()), values

    def _leaf(self, name: str, value: object) -> Tensor:
        if name not in self.arguments and name not in self.assigned:
            raise fail(
                "E205",
                f"the program has no name `{name}`",
                help=f"its arguments are: {', '.join(self.arguments)}",
            )
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise fail(
                "E208",
                f"`{name}` must be a numeric array, not {array.dtype}",
                help="give floats, ints or bools",
            )
        wanted = is_float(array.dtype) and (self.wrt is None or name in self.wrt)
        if not wanted and self.wrt is not None and name in self.wrt:
            array = array.astype(STATE.default_dtype)
            wanted = True
        return new_leaf(array, wanted)

    def _loss(self, scope: Scope) -> Tensor:
        value = scope.names.get(self.loss)
        if not isinstance(value, Tensor) and WATCH.last is not None:
            value = WATCH.last[1]
        if not isinstance(value, Tensor):
            raise fail(
                "E201",
                f"the program computes no scalar and no `{self.loss}`",
                help="assign it: `loss = sum(...)`",
            )
        if not value.requires_grad:
            raise fail(
                "E402",
                f"`{self.loss}` does not depend on any argument that requires grad",
                help="pass float arrays",
            )
        if value.node.numel != 1:
            raise fail(
                "E401",
                f"`{self.loss}` must be a single number, but it has shape {tuple(value.shape)}",
                help="reduce it: sum(...)",
            )
        return value

    def _chosen(self, scope: Scope, leaves: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.wrt is None:
            own = {
                n: v
                for n, v in scope.names.items()
                if isinstance(v, Tensor) and v.node.op is LEAF and v.requires_grad
            }
            return {**own, **{n: t for n, t in leaves.items() if t.requires_grad}}
        chosen: dict[str, Tensor] = {}
        for name in self.wrt:
            tensor = leaves.get(name) or scope.names.get(name)
            if not isinstance(tensor, Tensor):
                raise fail(
                    "E201",
                    f"wrt: the program has no tensor `{name}`",
                    help=f"its arguments are: {', '.join(self.arguments)}",
                )
            chosen[name] = tensor
        return chosen
