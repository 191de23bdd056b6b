"""A program compiled once and called with arrays: what `value_and_grad` and its kin return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...autograd.tensor import AccumulateGrad, Tensor
from ...engine.evaluate import evaluate, plan
from ...engine.plan.rerun import Recording, argument, looked_at
from ...errors import fault
from ...graph.dtypes import FLOAT32, FLOAT64, is_float
from ...graph.node import Node
from ...graph.op import LEAF, leaf, value_of
from ...graph.sizes import not_single
from ...graph.state import STATE, own_state
from ...source import Source
from ...suggest import meant
from ..errors.exhaustion import Exhaustion
from ..replay.reachability import harmless
from ..runtime.expressions import Context
from ..runtime.statements import compile_block
from ..syntax import tree as syntax
from ..syntax.parser import parse
from ..values.housekeeping import HOUSEKEEPING
from ..values.values import Scope
from .array_functions import Blocks, Kind, ValueAndGrad, numbers, parts_of
from .running import module_names
from .variables import forget_passes, newest, quoted

MAX_PLANS = 32

SMALL = 1024  # results below this size are copied without asking whose memory they are

LOSS = "loss"  # the objective of programs that are not asked for another

Arrays = dict[str, np.ndarray]


class Replayed(NamedTuple):
    """A plan that was recorded, the variables of its results, and the memory it keeps."""

    names: list[str]
    recording: Recording
    kept: set[int]


Form = tuple[tuple[Any, tuple[int, ...], np.dtype], ...]
Key = tuple[Form, Form]  # of the arrays, and of the vector before them


class Limits(NamedTuple):
    """What a call may use: bytes of tensors, and steps of loops."""

    max_memory: int = 1 << 30
    max_steps: int = 1_000_000


class Compiled:
    """`f(**arrays)`, or `f(vector, **arrays)` for a kind that takes one.

    `arguments` are the names the program reads but does not assign; a name it does assign may be
    given too and then replaces that assignment. `constants` are given once for all calls. The
    second call with arrays of the same shapes and dtypes records its plan, later ones only run it,
    unless the program looked at values, drew random numbers or has effects.
    """

    def __init__(
        self,
        source: Source,
        wrt: str | tuple[str, ...] | None,
        of: str,
        kind: Kind | None = None,
        limits: Limits | None = None,
        constants: Mapping[str, object] | None = None,
    ):
        self.kind = kind or ValueAndGrad()
        self.bare = wrt if isinstance(wrt, str) else None
        self.wrt = (wrt,) if isinstance(wrt, str) else wrt
        self.of = of
        self.limits = limits or Limits()
        for name, limit in self.limits._asdict().items():
            if type(limit) is not int or limit < 0:
                raise fault(
                    "E205 whole-number", Limits._field_defaults[name], name=name, limit=limit
                )
        with own_state():
            try:
                self.tree = tree = parse(source)
                STATE.python = self.python = syntax.has_import(tree)
                self.block = compile_block(tree.body, Context(True))
            except RecursionError:
                raise fault("E108 program-nested-too-deeply") from None
        self.assigned = module_names(tree)
        used = {node.id for node in syntax.walk(tree) if isinstance(node, syntax.Name)}
        self.arguments = sorted(used - self.assigned)
        self.pure = True  # whether it has called nothing so far that does more than compute
        self.constants = {name: self._array(name, a) for name, a in (constants or {}).items()}
        self.plans: dict[Key, Replayed | None] = {}

    def __call__(self, /, *vector: object, **arrays: object) -> Any:
        """Run the program with these arrays.

        Raises:
            AutodiffError: E205 for a name the program does not have, and whatever the program does
            wrong.
        """
        with Exhaustion("the program"):
            return self._call(vector, arrays)

    def _call(self, vector: tuple[object, ...], arrays: dict[str, object]) -> Any:
        given = {name: self._array(name, value) for name, value in arrays.items()}
        if self.constants:
            given = {**self.constants, **given}
        parts = parts_of(self.kind, vector, self.bare)
        inputs = [*given.values(), *parts.values()]
        key = _form(given), _form(parts)
        known = self.plans.get(key)
        if known is None:
            with own_state():
                names, values, kept = self._run(given, parts, key)
        else:
            names, values, kept = known.names, known.recording.run(inputs), known.kept
        return self.kind.answer(Blocks(names, self.bare is not None), _owned(values, kept, inputs))

    def _run(
        self, given: Arrays, parts: dict[str | None, np.ndarray], key: Key
    ) -> tuple[list[str], list[np.ndarray], set[int]]:
        """The names of the variables, the values of a program run from its text, and the memory
        that its constants keep."""
        STATE.max_bytes, STATE.max_steps = self.limits
        STATE.default_dtype = FLOAT32 if self.python else FLOAT64
        STATE.python = self.python
        scope = Scope(None, True)
        nodes = {name: argument(array) for name, array in given.items()}
        vector = {name: argument(array) for name, array in parts.items()}
        leaves: dict[str, Tensor] = {}
        for name, node in nodes.items():
            wanted = is_float(node.dtype) and (
                name in self.wrt if self.wrt is not None else name not in self.constants
            )
            leaves[name] = tensor = Tensor(leaf(node, AccumulateGrad()) if wanted else node)
            if name in self.assigned:
                STATE.overrides[name] = lambda original, tensor=tensor: tensor
            else:
                scope.names[name] = tensor
        HOUSEKEEPING.restart()
        STATE.allow = self._called
        self.block(scope)
        STATE.span = STATE.allow = None
        chosen = self._chosen(scope, leaves)
        out = self._objective(scope)
        targets = self.kind.targets(out, {n: t.node for n, t in chosen.items()}, vector)
        scope.names.clear()  # what no name shows any more need not be kept
        STATE.shown = STATE.last = None
        names = list(chosen)
        order, uses = plan(targets)
        kept = {_memory(node.value) for node in uses if isinstance(node.value, np.ndarray)}
        self._remember(key, names, order, [*nodes.values(), *vector.values()], targets)
        evaluate(targets, last=True)
        return names, [value_of(node) for node in targets], kept

    def _remember(
        self, key: Key, names: list[str], order: list[Node], inputs: list[Node], targets: list[Node]
    ) -> None:
        """Record the plan of a call when an equal one came before it."""
        drew = STATE.streams or STATE.default_generator is not None
        if not self.pure or drew or looked_at(inputs):
            return
        if key in self.plans:
            recording = Recording(order, inputs, targets)
            recording.plan.check(self.limits.max_memory)
            constants = [c for c in recording.plan.constants if isinstance(c, np.ndarray)]
            self.plans[key] = Replayed(names, recording, set(map(_memory, constants)))
        else:
            if len(self.plans) >= MAX_PLANS:
                del self.plans[next(iter(self.plans))]
            self.plans[key] = None

    def _called(self, name: str, function: Any) -> None:
        self.pure = self.pure and harmless(name, function)

    # -- arrays -----------------------------------------------------------------------------------

    def _array(self, name: str, value: object) -> np.ndarray:
        if name not in self.arguments and name not in self.assigned:
            raise fault("E205 program-no-name", ", ".join(self.arguments), name=name)
        array = numbers(value, f"`{name}`")
        if self.wrt is not None and name in self.wrt and not is_float(array.dtype):
            array = array.astype(FLOAT32 if self.python else FLOAT64)
        return array

    # -- what is differentiated, and with respect to what -----------------------------------------

    def _objective(self, scope: Scope) -> Node:
        found = self._named(scope)
        if found is None or not found[1].requires_grad:
            raise fault(
                "E402 any-argument-requires-grad",
                found[0] if found else "nothing that the program computes",
                "does not depend" if found else "depends",
                span=found[1].span if found else None,
            )
        name, node = found
        if self.kind.single and node.numel != 1:
            raise not_single(
                node,
                f"`{self.kind.name}` needs a single number, but {name}",
                help="reduce it: `loss = sum(...)` or `mean(...)`",
            )
        forget_passes(node)
        return node

    def _named(self, scope: Scope) -> tuple[str, Node] | None:
        """What is differentiated: without a `loss`, and when nothing else was asked for, what the
        program computed last."""
        tensors = {n: v for n, v in scope.names.items() if isinstance(v, Tensor)}
        if self.of in tensors:
            return quoted(self.of), tensors[self.of].node
        if self.of == LOSS:
            if self.kind.single and STATE.last is not None:
                return "the last number", STATE.last[1].node
            last = newest(self.tree, tensors)
            return None if last is None else (quoted(last.text), last.node)
        raise fault(
            "E201 of-no-tensor",
            f"`{self.of}` is not a tensor"
            if self.of in scope.names
            else f"the program has no `{self.of}`",
            meant(self.of, tensors, f"assign it: `{self.of} = ...`"),
        )

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
                raise fault("E201 wrt-program-no-tensor", ", ".join(self.arguments), name=name)
            chosen[name] = tensor
        return chosen


def _form(arrays: Mapping[Any, np.ndarray]) -> Form:
    """What plans depend on."""
    return tuple([(name, array.shape, array.dtype) for name, array in arrays.items()])


def _memory(array: np.ndarray) -> int:
    """What an array and its views have in common."""
    return id(array if array.base is None else array.base)


def _owned(values: list[np.ndarray], kept: set[int], inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The results, each with all of some memory for itself, none that is `kept` or an input's."""
    taken: set[int] | None = None
    owned: list[np.ndarray] = []
    for value in values:
        if value.size < SMALL:
            owned.append(np.array(value))
            continue
        if taken is None:
            taken = kept.union(map(_memory, inputs))
        base = value if value.base is None else value.base
        whole = isinstance(base, np.ndarray) and base.nbytes == value.nbytes and base.base is None
        owned.append(np.array(value) if id(base) in taken or not whole else value)
        taken.add(id(base))
    return owned
