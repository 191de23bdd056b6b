"""A program compiled once and called with arrays: what `value_and_grad` and its kin return."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from ...autograd.batching.examples import Trace
from ...autograd.tensor import AccumulateGrad, Tensor
from ...defaults import MAX_DEPTH, MAX_MEMORY, MAX_STEPS
from ...engine.evaluate import evaluate, plan
from ...engine.memory import owned
from ...engine.plan.schedule import STEP_BYTES, Plan, planned
from ...errors import AutodiffError, fault
from ...graph.dtypes import FLOAT32, FLOAT64, is_float
from ...graph.node import Node
from ...graph.op import ARGUMENT, LEAF, argument, leaf, looked_at, value_of
from ...graph.sizes import not_single
from ...graph.state import LOCK, STATE, own_state
from ...source import Source
from ...suggest import meant
from ..errors.exhaustion import Exhaustion
from ..replay.harmless import harmless
from ..runtime.expressions import Context
from ..runtime.statements import compile_block
from ..syntax import tree as syntax
from ..syntax.free_names import read_by, read_first
from ..syntax.parser import parse
from ..values.exceptions import Handed
from ..values.housekeeping import HOUSEKEEPING
from ..values.values import Scope
from .array_functions import NUMERIC, Blocks, Kind, ValueAndGrad, numbers, parts_of
from .running import module_names
from .variables import forget_passes, newest, quoted

FEW = 4096  # nodes of a graph that is kept until its plan is made

HANDED, EXHAUSTION = Handed(), Exhaustion("the program")

LOSS = "loss"  # the objective of programs that are not asked for another

Arrays = dict[str, np.ndarray]


Graph = tuple[list[Node], list[Node], list[Node]]


class Replayed(NamedTuple):
    """The variables of results, the plan that was recorded for them, if it was, and what it is made
    of if an equal call comes again: what is to be computed, arguments and targets."""

    chosen: Blocks
    size: int
    plan: Plan | None = None
    graph: Graph | None = None


Form = tuple[tuple[Any, tuple[int, ...], np.dtype], ...]
Key = tuple[Form, Form]  # of the arrays, and of the vector before them


class Wishes(NamedTuple):
    """What a call may use: bytes of tensors, steps of loops, levels of calls, bytes of plans.
    `aux`: tensors whose values are returned besides, `vmap`: arrays whose first axis counts
    examples, `seed`: what draws start from, `write`: what gets the text that the program prints."""

    max_memory: int = MAX_MEMORY
    max_steps: int = MAX_STEPS
    max_depth: int = MAX_DEPTH
    max_plan_memory: int = 64 << 20
    aux: Any = ()  # a name or names
    vmap: Any = ()
    seed: int | None = None
    write: Callable[[str], Any] | None = None


def _names(what: str, names: Any) -> tuple[str, ...]:
    """The names that were asked for, one or a list."""
    if isinstance(names, str):
        return (names,)
    found = tuple(names) if isinstance(names, Iterable) else (names,)
    if not all(isinstance(name, str) for name in found):
        raise fault("E205 names-wanted", what, names)
    return found


class Compiled:
    """`f(**arrays)`, or `f(vector, **arrays)` for a kind that takes one.

    `arguments` are the names the program reads before it assigns them, if it does; another name it
    assigns may be given too and then replaces the first assignment. `constants` are given once for
    all calls. The first call with arrays of some shapes and dtypes keeps its graph, the second has
    a plan made of it, later ones only run it, unless the program looked at values, drew random
    numbers or has effects. The plans that were used last are kept. Copies and pickles are compiled
    anew.
    """

    def __init__(
        self,
        source: Source,
        wrt: str | Iterable[str] | None,
        of: str,
        kind: Kind | None = None,
        wishes: Wishes | None = None,
        constants: Mapping[str, object] | None = None,
    ):
        self.kind = kind or ValueAndGrad()
        self.bare = wrt if isinstance(wrt, str) else None
        self.wrt = None if wrt is None else _names("wrt", wrt)
        (self.of,) = _names("of", [of])
        self.wishes = wishes = wishes or Wishes()
        self.aux = _names("aux", wishes.aux)
        self.vmap = _names("vmap", wishes.vmap)
        with own_state():
            self.tree = tree = parse(source)
            STATE.python = self.python = syntax.has_import(tree)
            self.block = compile_block(tree.body, Context())
        self.assigned = module_names(tree)
        called = {id(node.func) for node in syntax.walk(tree) if isinstance(node, syntax.Call)}
        names = (node for node in syntax.walk(tree) if isinstance(node, syntax.Name))
        used = {node.id for node in names if id(node) not in called} & read_by(tree)
        used -= self.assigned
        used |= self.assigned.intersection(read_first(tree.body, set()))  # as `x = x * 2` reads `x`
        self.used = used
        self.arguments = sorted(used)
        self.seeds = "seed" not in used | self.assigned
        self.pure = True  # whether it has called nothing so far that does more than compute
        self.constants = {name: self._array(name, a) for name, a in (constants or {}).items()}
        self.plans: dict[Key, Replayed] = {}
        self.size = 0  # of these, in bytes

    def __reduce__(self) -> tuple[Any, ...]:
        made = self.tree.span.source, self.bare or self.wrt, self.of, self.kind
        return Compiled, (*made, self.wishes, self.constants)

    def __repr__(self) -> str:
        name = self.tree.span.source.name
        return f"<{self.kind.name} of `{self.of}` in {name}: f({', '.join(self.arguments)})>"

    def __call__(self, /, *vector: object, **arrays: object) -> Any:
        """Run the program with these arrays; `seed=`, where that is no name of the program, is what
        its draws start from.

        Raises:
            AutodiffError: E205 for a name the program does not have, and whatever the program does
            wrong.
        """
        with HANDED, EXHAUSTION:
            return self._call(vector, arrays)

    def _call(self, vector: tuple[object, ...], arrays: dict[str, object]) -> Any:
        seed: Any = self.wishes.seed
        if self.seeds:
            seed = arrays.pop("seed", seed)
        given = self.constants | {name: self._array(name, a) for name, a in arrays.items()}
        parts = parts_of(self.kind, vector, self.bare)
        inputs = [*given.values(), *parts.values()]
        key = _form(given), _form(parts)
        known = self.plans.get(key)
        if known is not None and known.graph is not None:
            with own_state():
                known = self._planned(key, known.chosen, known.graph)
        if known is None or known.plan is None:
            with own_state():
                STATE.seed = () if seed is None else (seed,)
                chosen, values = self._run(given, parts, key)
        else:
            with LOCK:
                self.plans[key] = self.plans.pop(key, known)
            chosen, values = known.chosen, known.plan.run(inputs, own=True)
        if not self.aux:
            return self.kind.answer(chosen, values)
        found = len(values) - len(self.aux)
        answer, rest = self.kind.answer(chosen, values[:found]), values[found:]
        bare = isinstance(self.wishes.aux, str)
        return answer, rest[0] if bare else dict(zip(self.aux, rest, strict=True))

    def _run(
        self, given: Arrays, parts: dict[str | None, np.ndarray], key: Key
    ) -> tuple[Blocks, list[np.ndarray]]:
        """The variables, and the values of a program run from its text."""
        STATE.max_bytes, STATE.max_steps = self._limits()
        STATE.max_depth = self.wishes.max_depth
        # Windows programs have no standard output; printing does nothing then.
        STATE.write = self.wishes.write or (sys.stdout.write if sys.stdout else len)
        STATE.default_dtype = FLOAT32 if self.python else FLOAT64
        STATE.python = self.python
        nodes = {name: self._node(array) for name, array in given.items()}
        vector = {name: argument(array) for name, array in parts.items()}
        trace = None
        if self.vmap:
            trace = Trace(self._examples(given))
        with nullcontext() if trace is None else trace.running(different=True):
            names, targets = self._traced(nodes, vector, trace)
        if trace is not None:
            trace.lift(targets)
            targets = [trace.full(node) for node in targets]
        order, outside = plan(targets)
        chosen = Blocks(names, self.bare is not None, bool(self.vmap))
        inputs = [*given.values(), *parts.values()]
        arguments = [*nodes.values(), *vector.values()]
        made = self._remember(key, chosen, (order, arguments, targets))
        if made is not None:
            return chosen, made.run(inputs, own=True)
        kept = [*[node.value for node in outside], *inputs]
        evaluate(targets, last=True)
        values = self._own([value_of(node) for node in targets], kept)
        for node in order:
            node.value = None
            if node.op is ARGUMENT:
                node.args[0].array = None
        return chosen, values

    def _limits(self) -> tuple[int, int]:
        return self.wishes[:2]

    def _node(self, array: np.ndarray) -> Node:
        return argument(array)

    def _own(self, values: list[Any], kept: list[Any]) -> list[Any]:
        return owned(values, kept)

    def _examples(self, given: Arrays) -> int:
        """How many examples the arrays of `vmap` have."""
        for name in self.vmap:
            if name not in given or not given[name].ndim:
                raise fault("E205 vmap-no-array", name)
        sizes = {name: len(given[name]) for name in self.vmap}
        if len(set(sizes.values())) > 1:
            raise fault("E205 examples-differ", sizes)
        return sizes[self.vmap[0]]

    def _traced(
        self, nodes: dict[str, Node], vector: dict[str | None, Node], trace: Trace | None
    ) -> tuple[list[str], list[Node]]:
        """Run the program, on one example where a trace follows many; the names of the variables,
        and the nodes that a call computes."""
        scope = Scope()
        leaves: dict[str, Tensor] = {}
        for name, node in nodes.items():
            if trace is not None and name in self.vmap:
                node = trace.placeholder(node)
            wanted = is_float(node.dtype) and (
                name in self.wrt if self.wrt is not None else name not in self.constants
            )
            slot = AccumulateGrad() if wanted else None
            leaves[name] = tensor = Tensor(leaf(node, slot) if slot else node, slot)
            if name not in self.arguments:
                STATE.overrides[name] = lambda original, tensor=tensor: tensor
            else:
                scope.names[name] = tensor
        HOUSEKEEPING.restart()
        STATE.allow = self._called
        try:
            self.block(scope)
        except AutodiffError as error:
            name = error.span.text if error.code == "E201" and error.span else ""
            if name in self.arguments and name not in nodes:
                error.amend(helps=(f"give it: `f({name}=...)`",), raises="TypeError")
            raise
        STATE.span = STATE.allow = None
        chosen = self._chosen(scope, leaves)
        out = self._objective(scope)
        targets = self.kind.targets(out, {n: t.node for n, t in chosen.items()}, vector)
        targets += [self._tensor(scope, name).node for name in self.aux]
        scope.names.clear()  # what no name shows any more need not be kept
        STATE.shown = STATE.last = None
        return list(chosen), targets

    def _remember(self, key: Key, chosen: Blocks, graph: Graph) -> Plan | None:
        """Keep the graph of a call, if it is not long, for an equal one to come; the second time
        its plan, which is returned. Nothing where later calls may differ from it."""
        drew = STATE.streams or STATE.default_generator is not None
        if not self.pure or drew or looked_at(graph[1]):
            return None
        if key in self.plans:
            return self._planned(key, chosen, graph).plan
        count = len(graph[0])
        short = Replayed(chosen, STEP_BYTES * count, graph=graph)
        self._keep(key, short if count <= FEW else Replayed(chosen, 0))
        return None

    def _planned(self, key: Key, chosen: Blocks, graph: Graph) -> Replayed:
        made = planned(*graph)
        made.check(self.wishes.max_memory)
        return self._keep(key, Replayed(chosen, made.size, made))

    def _keep(self, key: Key, known: Replayed) -> Replayed:
        with LOCK:
            self._forget(key)
            self.plans[key] = known
            self.size += known.size
            while self.size > self.wishes.max_plan_memory and len(self.plans) > 1:
                self._forget(next(iter(self.plans)))
        return known

    def _forget(self, key: Key) -> None:
        known = self.plans.pop(key, None)
        self.size -= known.size if known else 0

    def _called(self, name: str, function: Any) -> None:
        self.pure = self.pure and harmless(name, function)

    # -- arrays -----------------------------------------------------------------------------------

    def _array(self, name: str, value: object) -> np.ndarray:
        if name not in self.used and name not in self.assigned:
            has = f"its arguments are: {', '.join(self.arguments) or 'none'}"
            options = (
                *self.arguments,
                *Wishes._fields,
                "wrt",
                "loss",
                "isolate",
                "timeout",
                "engine",
            )
            raise fault("E205 program-no-name", meant(name, options, has), name=name)
        known = type(value) is np.ndarray and value.dtype in NUMERIC
        array: Any = value if known else numbers(value, f"`{name}`")
        if self.wrt is not None and name in self.wrt and not is_float(array.dtype):
            array = array.astype(FLOAT32 if self.python else FLOAT64)
        return array

    # -- what is differentiated, and with respect to what -----------------------------------------

    def _objective(self, scope: Scope) -> Node:
        found = self._named(scope)
        if found is None or (self.kind.slopes and not found[1].requires_grad):
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
        program computed last, or at least assigned."""
        if self.of == LOSS and not isinstance(scope.names.get(LOSS), Tensor):
            if self.kind.single and STATE.last is not None:
                return "the last number", STATE.last[1].node
            tensors = _tensors(scope)
            last = newest(self.tree, tensors)
            if last is not None:
                return quoted(last.text), last.node
            names = [name for name in tensors if name in self.assigned]
            return (quoted(names[-1]), tensors[names[-1]].node) if names else None
        return quoted(self.of), self._tensor(scope, self.of).node

    def _tensor(self, scope: Scope, name: str) -> Tensor:
        """A tensor of the program that was asked for by its name."""
        found = scope.names.get(name)
        if isinstance(found, Tensor):
            return found
        if found and isinstance(found, list | tuple) and all(isinstance(x, Tensor) for x in found):
            what = f"`{name}` is a {type(found).__name__} of tensors"
            raise fault("E201 of-no-tensor", what, f"make it one: `{name} = stack({name})`")
        raise fault(
            "E201 of-no-tensor",
            f"`{name}` is not a tensor" if name in scope.names else f"the program has no `{name}`",
            meant(name, _tensors(scope), f"assign it: `{name} = ...`"),
        )

    def _chosen(self, scope: Scope, leaves: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.wrt is None:
            own: dict[str, Tensor] = {}
            known = {tensor.node for tensor in leaves.values()}  # other names of these are none
            for name, one in _tensors(scope).items():
                if one.node.op is LEAF and one.requires_grad and one.node not in known:
                    own[name] = one
                    known.add(one.node)
            return {**own, **{n: t for n, t in leaves.items() if t.requires_grad}}
        chosen: dict[str, Tensor] = {}
        for name in self.wrt:
            tensor = leaves.get(name) or scope.names.get(name)
            if not isinstance(tensor, Tensor):
                raise fault("E201 wrt-program-no-tensor", ", ".join(self.arguments), name=name)
            chosen[name] = tensor
        return chosen


def _tensors(scope: Scope) -> dict[str, Tensor]:
    return {name: value for name, value in scope.names.items() if isinstance(value, Tensor)}


def _form(arrays: Mapping[Any, np.ndarray]) -> Form:
    """What plans depend on."""
    return tuple([(name, array.shape, array.dtype) for name, array in arrays.items()])
