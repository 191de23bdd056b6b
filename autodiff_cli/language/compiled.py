"""A program compiled once and called with arrays: what `value_and_grad` returns."""

from __future__ import annotations

import numpy as np

from ..autograd import reverse
from ..autograd.tensor import AccumulateGrad, Tensor
from ..engine.evaluate import evaluate, plan
from ..engine.replay import Recording, argument, looked_at
from ..errors import fail
from ..graph.dtypes import FLOAT32, FLOAT64, is_float
from ..graph.node import Node
from ..graph.op import LEAF, leaf, value_of
from ..graph.state import LOCK, STATE
from ..source import Source
from . import syntax
from .expressions import Context
from .functions import DEPTH
from .housekeeping import HOUSEKEEPING
from .kinds import MODE
from .parser import parse
from .program import module_names
from .statements import compile_block
from .values import Scope
from .watching import OVERRIDES, WATCH

# What does more than compute: programs that name one of these run anew at each call.
EFFECTS = frozenset({"print", "load"})

MAX_PLANS = 32

SMALL = 1024  # gradients below this size are copied without asking whose memory they are

Key = tuple[tuple[str, tuple[int, ...], str], ...]


class Compiled:
    """`f(**arrays) -> (loss, {name: gradient})`.

    `arguments` are the names the program reads but does not assign; a name it does assign may be
    given too and then replaces that assignment. The second call with arrays of the same shapes
    and dtypes records its plan, later ones only run it, unless the program looked at values, drew
    random numbers or has effects.
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
        members = {node.attr for node in syntax.walk(tree) if isinstance(node, syntax.Attribute)}
        self.pure = EFFECTS.isdisjoint(used | members)
        self.plans: dict[Key, tuple[list[str], Recording] | None] = {}

    def __call__(self, **arrays: object) -> tuple[float, dict[str, np.ndarray]]:
        """Run the program with these arrays.

        Raises:
            AutodiffError: E205 for a name the program does not have, and whatever the program does
            wrong.
        """
        with LOCK:
            return self._call(arrays)

    def _call(self, arrays: dict[str, object]) -> tuple[float, dict[str, np.ndarray]]:
        STATE.reset()
        STATE.default_dtype = FLOAT32 if self.python else FLOAT64
        given = {name: self._array(name, value) for name, value in arrays.items()}
        key = tuple([(name, array.shape, array.dtype.str) for name, array in given.items()])
        known = self.plans.get(key)
        if known is not None:
            names, recording = known
            return _answer(names, recording.run(list(given.values())), list(given.values()))
        return self._run(given, key)

    def _run(self, given: dict[str, np.ndarray], key: Key) -> tuple[float, dict[str, np.ndarray]]:
        DEPTH.now = 0
        MODE.python = self.python
        OVERRIDES.values.clear()
        WATCH.clear()
        scope = Scope(None, True)
        inputs = [argument(array) for array in given.values()]
        leaves: dict[str, Tensor] = {}
        for name, node in zip(given, inputs, strict=True):
            wanted = is_float(node.dtype) and (self.wrt is None or name in self.wrt)
            leaves[name] = tensor = Tensor(leaf(node, AccumulateGrad()) if wanted else node)
            if name in self.assigned:
                OVERRIDES.values[name] = lambda original, tensor=tensor: tensor
            else:
                scope.names[name] = tensor
        HOUSEKEEPING.restart()
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
        targets = [node, *grads]
        scope.names.clear()  # what no name shows any more need not be kept
        WATCH.clear()
        del loss
        self._remember(key, list(chosen), inputs, targets)
        evaluate(targets, last=True)
        return _answer(list(chosen), [value_of(n) for n in targets], list(given.values()))

    def _remember(
        self, key: Key, names: list[str], inputs: list[Node], targets: list[Node]
    ) -> None:
        """Record the plan of a call when an equal one came before it."""
        if not self.pure or STATE.default_generator is not None or looked_at(inputs):
            return
        if key in self.plans:
            order, _ = plan(targets)
            self.plans[key] = names, Recording(order, inputs, targets)
        else:
            if len(self.plans) >= MAX_PLANS:
                del self.plans[next(iter(self.plans))]
            self.plans[key] = None

    def _array(self, name: str, value: object) -> np.ndarray:
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
        if self.wrt is not None and name in self.wrt and not is_float(array.dtype):
            array = array.astype(STATE.default_dtype)
        return array

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


def _answer(
    names: list[str], values: list[np.ndarray], given: list[np.ndarray]
) -> tuple[float, dict[str, np.ndarray]]:
    """The loss and the gradients, each in memory of its own."""
    seen = {id(array) for array in given}
    grads: dict[str, np.ndarray] = {}
    for name, value in zip(names, values[1:], strict=True):
        shared = value.base is not None or value.size < SMALL or id(value) in seen
        grads[name] = np.array(value) if shared else value
        seen.add(id(value))
    return float(values[0].item()), grads
