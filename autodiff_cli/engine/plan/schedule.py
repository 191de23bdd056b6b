"""A plan: from arrays to the wanted values in steps over registers, made once per structure.

It holds no nodes, only kernels, constants and places, so it may run again with other arrays of the
same shapes and dtypes. Big elementwise work is fused into tiles (`tiles`), everything else is one
kernel after the other. A register is emptied when it was read for the last time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from heapq import heapify, heappop, heappush
from math import prod
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from ...errors import AutodiffError
from ...graph import op as ops
from ...graph.node import Node
from ...graph.state import STATE
from ...graph.walk import bodies
from ...transform.simplify import representatives
from ..fused.groups import FUSE_FROM, POINTWISE, Group, Grouping
from ..fused.recompute import computed_again
from ..fused.tiles import Tiled
from ..memory import allocate, owned, too_large
from ..outer_sums import together
from ..threaded_kernels import kernel_of
from ..threads import BUFFER
from .plan_memory_budget import held
from .resident_plan import Fixed, Unfit
from .rotating_buffers import Turns

STATIC, VALUE, VALUES = range(3)
VIEWS = frozenset({"reshapes", "expands"})
Made = TypeVar("Made", Fixed, Turns)
STEP_BYTES = 1500  # that a step takes, about
FIXED_AFTER = 3  # runs before a plan gets memory of its own


class Step:
    """One call of a kernel.

    `places` are the registers of its operands when it takes nothing else; otherwise `form` says
    of each argument what it is: a static one, a register, or a tuple of such. `done` are the
    registers that nobody reads afterwards.
    """

    def __init__(self, kernel: Callable[..., Any], node: Node):
        op = node.op
        self.kernel = kernel
        self.name = op.name
        self.shape = node.shape
        self.span = node.span
        self.dtype = node.dtype
        self.moves, self.pointwise, noted = _traits(op)
        self.noted = noted and kernel is op.kernel
        self.several = node.outputs is not None
        self.bytes = 0 if op.view or op is ops.OUTPUT else bytes_of(node)
        self.result = 0
        self.places: tuple[int, ...] = ()
        self.form: tuple[tuple[int, Any], ...] = ()
        self.done: tuple[int, ...] = ()

    def reads(self) -> list[int]:
        """The registers it reads."""
        return [*self.places, *_places(self.form)]


def bytes_of(node: Node) -> int:
    """What the value of a node takes, all results of it together."""
    results = node.outputs or ((node.shape, node.dtype),)
    return sum(prod(shape) * dtype.itemsize for shape, dtype in results)


@cache
def _traits(op: ops.Op) -> tuple[bool, bool, bool]:
    properties = op.properties
    moves = op.view or op is ops.OUTPUT or bool(properties & VIEWS)
    return moves, op.kind is POINTWISE, "noted" in properties


class Plan:
    """The steps from `inputs` to `targets`; `order` is what has to be computed, in order."""

    tiled = Tiled

    def __init__(self, order: list[Node], inputs: list[Node], targets: list[Node]):
        self.constants: list[Any] = []
        self.steps: list[Step | Tiled] = []
        self._place: dict[Node, int] = {}
        self.inputs = [self._new(node) for node in inputs]
        given = set(inputs)
        self._chosen, computed = representatives([node for node in order if node not in given])
        self._build(_living(computed, self._chosen, targets), targets)
        self.targets = [self._at(node) for node in targets]
        self.runs = 0  # without memory of its own
        self.due = FIXED_AFTER
        self.fixed: Fixed | None = None
        self.turns: Turns | None = None
        self.fixable = self.turnable = not any(isinstance(step, Tiled) for step in self.steps)
        if self.fixable:
            kinds = {at: (node.shape, node.dtype) for node, at in self._place.items()}
            self.steps = together(self.steps, kinds, set(self.targets))
        constants = [array.nbytes for array in self.constants if isinstance(array, np.ndarray)]
        self.size = STEP_BYTES * len(self.steps) + sum(constants)
        del self._place, self._chosen
        self._let_go()

    # -- registers --------------------------------------------------------------------------------

    def _new(self, node: Node, value: Any = None) -> int:
        at = self._place[node] = len(self.constants)
        self.constants.append(value)
        return at

    def _at(self, node: Node) -> int:
        """The register of a node; one whose value was known before is a constant."""
        node = self._chosen.get(node, node)
        at = self._place.get(node)
        return self._new(node, node.value) if at is None else at

    # -- steps ------------------------------------------------------------------------------------

    def _build(self, living: list[Node], targets: list[Node]) -> None:
        if not any(node.shape and prod(node.shape) >= FUSE_FROM for node in living):
            for node in living:
                self._add(node)
            return
        grouping = Grouping(living, self._chosen)
        grouping.again = computed_again(living, grouping, targets)
        outside = self._outside(living, grouping, targets)
        for unit in _in_order(living, grouping):
            if isinstance(unit, Group):
                outputs = [node for node in unit.members if node in outside]
                if outputs or unit.partials:  # else others compute all of it again
                    self.steps.append(self.tiled(unit, grouping, outputs, self._at, self._new))
            else:
                self._add(unit)

    def _outside(self, living: list[Node], grouping: Grouping, targets: list[Node]) -> set[Node]:
        """Nodes whose values are read outside of the group that makes them."""
        found = {self._chosen.get(node, node) for node in targets}
        for node in living:
            group = grouping.of.get(node)
            for x in grouping.inputs(node):
                if x not in grouping.again and (
                    group is None or grouping.of.get(x) is not group or node in grouping.again
                ):
                    found.add(x)
        return found

    def _add(self, node: Node) -> None:
        if node.op is ops.OUTPUT:
            parent, index = node.args
            step = Step(itemgetter(index), node)
            step.places = (self._at(parent),)
        else:
            step = Step(kernel_of(node), node)
            if node.inputs is node.args:
                step.places = tuple([self._at(x) for x in node.inputs])
            else:
                step.form = tuple([self._formed(arg) for arg in node.args])
        step.result = self._new(node)
        self.steps.append(step)

    def _formed(self, arg: Any) -> tuple[int, Any]:
        if type(arg) is Node:
            return VALUE, self._at(arg)
        if type(arg) is tuple and any(type(part) is Node for part in arg):
            return VALUES, tuple([self._formed(part) for part in arg])
        return STATIC, arg

    def _let_go(self) -> None:
        """Note for each step the registers that are read there for the last time, and drop steps
        that nobody reads."""
        kept = {*self.inputs, *self.targets}
        kept.update(at for at, value in enumerate(self.constants) if value is not None)
        wanted = set(self.targets)
        steps: list[Step | Tiled] = []
        for step in reversed(self.steps):
            if isinstance(step, Tiled):
                read = {*step.places, *step.results}
            elif step.result in wanted:
                read = {*step.reads(), step.result}
            else:
                continue
            wanted |= read
            step.done = tuple(read - kept)
            kept |= read
            steps.append(step)
        steps.reverse()
        self.steps = steps

    def most_bytes(self) -> tuple[int, Any]:
        """The most bytes that values made here take at a time, and where."""
        sizes: dict[int, int] = {}
        owner: dict[int, int] = {}  # of a view the register whose memory it is
        shown: dict[int, int] = {}  # how many registers hold that memory
        held = 0
        peak: tuple[int, Any] = (0, None)
        for step in self.steps:
            made = step.bytes() if isinstance(step, Tiled) else {step.result: step.bytes}
            if isinstance(step, Step) and step.moves and not step.bytes:
                base = step.reads()[0]
                base = owner[step.result] = owner.get(base, base)
                shown[base] = shown.get(base, 1) + 1
            sizes.update(made)
            held += sum(made.values())
            if held > peak[0]:
                peak = held, step.span
            for at in step.done:
                base = owner.get(at, at)
                left = shown[base] = shown.get(base, 1) - 1
                if not left:
                    held -= sizes.get(base, 0)
        return peak

    def check(self, limit: int) -> None:
        """E505 when the plan needs more than `limit` bytes."""
        made = (step.bytes() if isinstance(step, Tiled) else {0: step.bytes} for step in self.steps)
        if sum(sum(sizes.values()) for sizes in made) > limit:
            peak, span = self.most_bytes()
            if peak > limit:
                raise too_large(span)

    # -- running ----------------------------------------------------------------------------------

    def run(self, arrays: list[Any], own: bool = False) -> list[Any]:
        """The targets' values for these inputs, of the shapes and dtypes of the first ones; their
        `own`: none shares memory with another, with an input or with the plan."""
        fixed = self.fixed
        if fixed is not None and fixed.fits(arrays) and fixed.turn.acquire(False):
            try:
                with np.errstate(all="ignore"):
                    return fixed.run(arrays)
            finally:
                fixed.turn.release()
        self.runs += 1
        if self.fixable and self.runs >= self.due:
            self.fixed = self._fix(arrays)
            self.due += self.runs  # for other big inputs, less and less often
        registers = self.constants.copy()
        for at, array in zip(self.inputs, arrays, strict=True):
            registers[at] = array
        with np.errstate(all="ignore"):
            np.setbufsize(BUFFER)
            for step in self.steps:
                try:
                    if isinstance(step, Tiled):
                        step.run(registers, allocate)
                    else:
                        registers[step.result] = _run(step, registers)
                except AutodiffError as error:
                    raise error if error.span is not None else error.amend(span=step.span) from None
                except MemoryError:
                    raise too_large(step.span) from None
                for at in step.done:
                    registers[at] = None
        values = [registers[at] for at in self.targets]
        return owned(values, [*self.constants, *arrays]) if own else values

    def turn(self, arrays: list[Any], rest: list[Any]) -> tuple[list[Any], list[Any]]:
        """A run whose first targets are the first arguments of the next one, shared with the plan
        and valid until three runs later; these and the other targets. A program runs, which has
        NumPy's words off."""
        if self.turns is None and self.turnable and STATE.observer is None:
            self.turnable = False
            self.turns = self._kept(lambda: Turns(self._fixed, arrays, rest))
        if self.turns is None:
            found = self.run([*arrays, *rest], own=True)
            return found[: len(arrays)], found[len(arrays) :]
        return self.turns.run(arrays, rest)

    def _fix(self, arrays: list[Any]) -> Fixed | None:
        made = self._kept(lambda: self._fixed(arrays))
        self.fixable = made is not None
        return made

    def _fixed(self, *memory: Any) -> Fixed:
        steps, constants, (arrays, *more) = self.steps, self.constants, memory
        return Fixed(steps, constants, self.inputs, arrays, self.targets, *more)

    def _kept(self, make: Callable[[], Made]) -> Made | None:
        """The same steps in memory that stays, where they are small."""
        try:
            with np.errstate(all="ignore"):
                made = make()
        except (Unfit, AutodiffError):
            return None
        held(self, made.bytes)
        return made

    def let_go(self) -> None:
        """Give back the memory that stays."""
        self.fixed = self.turns = None


def planned(order: list[Node], inputs: list[Node], targets: list[Node]) -> Plan:
    """A plan, of the kind that whoever observes wants."""
    kind = Plan if STATE.observer is None else STATE.observer.plan
    made: Plan = kind(order, inputs, targets)
    return made


def _living(computed: list[Node], chosen: dict[Node, Node], targets: list[Node]) -> list[Node]:
    """The nodes that the targets need."""
    needed = {chosen.get(node, node) for node in targets}
    living: list[Node] = []
    for node in reversed(computed):
        if node in needed:
            living.append(node)
            for x in node.inputs if node.body is None else bodies(node):
                needed.add(chosen.get(x, x))
    living.reverse()
    return living


def _in_order(living: list[Node], grouping: Grouping) -> list[Node | Group]:
    """Groups and single nodes, each after everything it reads."""
    unit_of: dict[Node, Node | Group] = {}
    first: dict[Node | Group, int] = {}
    for node in living:
        unit = grouping.of.get(node, node)
        unit_of[node] = unit
        first[unit] = node.seq  # of a group the last one: what it needs was made before
    waits: dict[Node | Group, int] = dict.fromkeys(first, 0)
    readers: dict[Node | Group, dict[Node | Group, None]] = {unit: {} for unit in first}
    for node in living:
        unit = unit_of[node]
        for x in grouping.inputs(node):
            source = unit_of.get(x)
            if source is not None and source is not unit and unit not in readers[source]:
                readers[source][unit] = None
                waits[unit] += 1
    units = {seq: unit for unit, seq in first.items()}
    ready = [first[unit] for unit, count in waits.items() if not count]
    heapify(ready)
    found: list[Node | Group] = []
    while ready:
        unit = units[heappop(ready)]
        found.append(unit)
        for reader in readers[unit]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, first[reader])
    assert len(found) == len(first), "the groups of a plan wait for one another"
    return found


def _places(form: tuple[tuple[int, Any], ...]) -> list[int]:
    places: list[int] = []
    for kind, what in form:
        if kind == VALUE:
            places.append(what)
        elif kind == VALUES:
            places.extend(_places(what))
    return places


def _run(step: Step, registers: list[Any]) -> Any:
    places = step.places
    if len(places) == 2:
        value = step.kernel(registers[places[0]], registers[places[1]])
    elif places:
        value = step.kernel(*[registers[at] for at in places])
    else:
        value = step.kernel(*_arguments(step.form, registers))
    if type(value) is np.ndarray:
        return value
    if type(value) is not tuple and type(value) is not list:
        return np.asarray(value)
    return tuple([np.asarray(v) for v in value])


def _arguments(form: tuple[tuple[int, Any], ...], registers: list[Any]) -> list[Any]:
    found: list[Any] = []
    for kind, what in form:
        if kind == STATIC:
            found.append(what)
        elif kind == VALUE:
            found.append(registers[what])
        else:
            found.append(tuple(_arguments(what, registers)))
    return found
