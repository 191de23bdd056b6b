"""Training loops whose steps repeat: a step is recorded as a plan, and the plan runs instead of the
program.

A step may be replayed when nothing but tensors changes in it, when no value is looked at, and when
every tensor that a step leaves to the next one has the same shape and dtype after it. The first
two steps and the last one run as they are written: what the program finds after the loop, graphs
and names included, is what the last step made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..autograd import calls
from ..autograd import tensor as handles
from ..autograd.tensor import AccumulateGrad, Tensor
from ..engine.evaluate import evaluate, plan
from ..engine.replay import Recording, argument, looked_at
from ..graph.node import Node
from ..graph.op import LEAF, constant, leaf, value_of
from ..graph.registry import overloads
from ..graph.state import STATE
from . import syntax
from .attributes import GRAD_READ, get_attribute
from .classes import Instance
from .housekeeping import HOUSEKEEPING
from .operations import count_step
from .values import Builtin, Namespace, OpFunction, Scope, Size

MOST_NODES = 20_000  # a longer step takes long anyway
MOST_VALUES = 10_000  # that names, lists and objects may hold
WORTH = 8  # steps; shorter loops run as they are
BEFORE, AFTER = 2, 1  # steps that run as they are

STATEMENTS = (syntax.Assign, syntax.AugAssign, syntax.ExprStmt, syntax.With, syntax.Pass)
EXPRESSIONS = (
    syntax.Name, syntax.Constant, syntax.NumList, syntax.List, syntax.Tuple, syntax.BinOp,
    syntax.UnaryOp, syntax.Compare, syntax.Call, syntax.Attribute, syntax.Subscript, syntax.Slice,
    syntax.Keyword, syntax.WithItem,
)  # fmt: skip

MODES = frozenset({"no_grad", "enable_grad"})
# Methods that only change or read tensors; of optimizers and modules; those of ops are looked up.
TENSOR_METHODS = frozenset({"backward", "detach", "zero_", "copy_", "size", "dim", "numel"})
OBJECT_METHODS = frozenset({"step", "zero_grad"})

Step = Callable[[int], Any]


class Repeated:
    """A loop whose tree allows to replay it: `names` are assigned in its body, `called` are the
    functions of its calls, `loaded` the names it reads."""

    __slots__ = ("called", "loaded", "names")

    def __init__(self, names: set[str], called: list[syntax.Node], loaded: set[str]):
        self.names = names
        self.called = called
        self.loaded = loaded

    def run(self, scope: Scope, items: range, step: Step) -> range:
        """Run what may be replayed; the items that are left."""
        if len(items) < WORTH or not _undisturbed():
            return items
        for item in items[: BEFORE - 1]:
            count_step()
            step(item)
        items = items[BEFORE - 1 :]
        if not self._known(scope):
            return items
        before = Snapshot(scope, self.names)
        steps = STATE.steps
        count_step()
        step(items[0])
        items = items[1:]
        after = Snapshot(scope, self.names)
        if not before.allows(after) or not _undisturbed():
            return items
        each = STATE.steps - steps
        count = min(len(items) - AFTER, (STATE.max_steps - STATE.steps) // each)
        if count < 2:
            return items
        count_step()
        recorded = _record(after.changed(before), step, items[0])
        if recorded is None:
            return items[1:]
        slots, arrays, recording = recorded
        for _ in range(count):
            arrays = recording.run(arrays)
        for slot, array in zip(slots, arrays, strict=True):
            slot.put(constant(array))
        STATE.steps += each * (count - 1)
        return items[count:]

    def _known(self, scope: Scope) -> bool:
        """Whether names mean values that do nothing but compute."""
        for name in self.loaded - self.names:
            found, value = _named(name, scope)
            if found and not _plain(value):
                return False
        return all(_computes(function, scope, self.names) for function in self.called)


def repeated(tree: syntax.For) -> Repeated | None:
    """What a `for` needs to be replayed; None when its body does more than compute."""
    if not isinstance(tree.target, syntax.Name) or tree.orelse:
        return None
    names: set[str] = set()
    loaded: set[str] = set()
    called: list[syntax.Node] = []
    for statement in _statements(tree.body):
        if statement is None:
            return None
        reads: list[syntax.Node] = []
        writes: list[syntax.Node] = []
        if isinstance(statement, syntax.Assign):
            reads, writes = [statement.value], statement.targets
        elif isinstance(statement, syntax.AugAssign):
            reads = [statement.value, statement.target]
        elif isinstance(statement, syntax.ExprStmt):
            reads = [statement.value]
        elif isinstance(statement, syntax.With):
            reads = [item.expr for item in statement.items]
        reads += [t.value for t in writes if isinstance(t, syntax.Attribute)]
        for part in reads:
            for node in syntax.walk(part):
                if not isinstance(node, EXPRESSIONS):
                    return None
                if isinstance(node, syntax.Call):
                    called.append(node.func)
                elif isinstance(node, syntax.Name):
                    if node.id not in names:
                        loaded.add(node.id)
        for target in writes:
            if isinstance(target, syntax.Name):
                names.add(target.id)
            elif not (isinstance(target, syntax.Attribute) and target.attr == "grad"):
                return None
    # A name that is read before it is assigned carries a value from step to step.
    if loaded & names or tree.target.id in loaded | names:
        return None
    return Repeated(names | {tree.target.id}, called, loaded)


def _statements(body: list[syntax.Node]) -> Iterator[syntax.Node | None]:
    for statement in body:
        if not isinstance(statement, STATEMENTS):
            yield None
            return
        yield statement
        if isinstance(statement, syntax.With):
            yield from _statements(statement.body)


def _undisturbed() -> bool:
    """Whether nobody watches what single steps do."""
    return not (handles.OBSERVERS or GRAD_READ or STATE.batching or HOUSEKEEPING.recording)


# -- what names mean ------------------------------------------------------------------------------


def _named(name: str, scope: Scope) -> tuple[bool, Any]:
    at: Scope | None = scope
    while at is not None:
        if name in at.names:
            return True, at.names[name]
        at = at.outer
    return False, None


def _plain(value: Any) -> bool:
    """Whether a value is a tensor, a number, a namespace, an op, or an object that came with the
    language and holds nothing else."""
    pending = [value]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if id(value) in seen or value is None:
            continue
        seen.add(id(value))
        if isinstance(value, Tensor | bool | int | float | str | Namespace | OpFunction | np.dtype):
            continue
        if isinstance(value, Instance):
            if not value.cls.fixed:
                return False
            pending.extend(value.fields.values())
            pending.extend(value.held())
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list | tuple | Size | set | frozenset):
            pending.extend(value)
        else:
            return False
    return True


def _computes(function: syntax.Node, scope: Scope, assigned: set[str]) -> bool:
    """Whether a call is known to do nothing but compute, or to be an optimizer's step."""
    path: list[str] = []
    root = function
    while isinstance(root, syntax.Attribute):
        path.append(root.attr)
        root = root.value
    found, value = False, None
    if isinstance(root, syntax.Name) and root.id not in assigned:
        found, value = _named(root.id, scope)
        if not path:
            return _pure(value) if found else _pure_builtin(root.id)
    elif not path:
        return False
    if isinstance(value, Namespace):
        for name in reversed(path):
            value = get_attribute(value, name)
        return _pure(value) or (type(value) is Builtin and path[0] in MODES)
    if isinstance(value, Instance) and len(path) == 1:
        return path[0] in OBJECT_METHODS or isinstance(value.fields.get(path[0]), Instance)
    name = path[0]
    if name in TENSOR_METHODS:
        return True
    ops = calls.method(name) or calls.method(name.removesuffix("_"))
    return bool(ops) and not any("draw" in op.properties for op in ops)


def _pure(value: Any) -> bool:
    if type(value) is OpFunction:
        return not any("draw" in op.properties for op in value.ops)
    return isinstance(value, Instance)  # what it holds was looked at with the names


def _pure_builtin(name: str) -> bool:
    ops = overloads(name)
    return bool(ops) and not any("draw" in op.properties for op in ops)


# -- what a step changes --------------------------------------------------------------------------


class Snapshot:
    """The tensors that outlive a step, with their nodes and gradients, and all that holds them."""

    __slots__ = ("held", "random", "tensors")

    def __init__(self, scope: Scope, without: set[str]):
        self.tensors: dict[Tensor, tuple[Node, Tensor | None]] = {}
        self.held: list[tuple[int, Any, int]] | None = []
        generator = STATE.default_generator
        self.random = None if generator is None else generator.get_state()
        pending: list[Any] = []
        at: Scope | None = scope
        while at is not None:
            for name, value in at.names.items():
                if name not in without:
                    self.held.append((id(at), name, id(value)))
                    pending.append(value)
            at = at.outer
        seen: set[int] = set()
        while pending:
            value = pending.pop()
            if isinstance(value, Tensor):
                self.tensors[value] = value.node, value.grad
            elif id(value) not in seen:
                seen.add(id(value))
                for key, part in _parts(value):
                    self.held.append((id(value), key, id(part)))
                    pending.append(part)
                if len(self.held) > MOST_VALUES:
                    self.held = None
                    return

    def allows(self, after: Snapshot) -> bool:
        """Whether nothing but tensors changed until `after`."""
        if self.held is None or self.held != after.held:
            return False
        if self.tensors.keys() != after.tensors.keys() or not _same(self.random, after.random):
            return False
        for tensor, (node, grad) in after.tensors.items():
            old, old_grad = self.tensors[tensor]
            if (grad is None) is not (old_grad is None):
                return False
            if node is not old and not _replaceable(tensor, node):
                return False
            if grad is not None and (grad.storage is not None or grad.node.requires_grad):
                return False
        return True

    def changed(self, before: Snapshot) -> list[Slot]:
        """Where a step left something for the next one."""
        slots: list[Slot] = []
        for tensor, (node, grad) in self.tensors.items():
            old, old_grad = before.tensors[tensor]
            if node is not old:
                slots.append(Slot(tensor, False))
            if grad is not None and (grad is not old_grad or grad.node is not node):
                slots.append(Slot(tensor, True))
        return slots


def _parts(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return enumerate(value)
    if isinstance(value, dict):
        return ((id(key), part) for key, part in value.items())
    if isinstance(value, Instance):
        return [*value.fields.items(), *enumerate(value.held())]
    return ()


def _same(a: Any, b: Any) -> bool:
    """Whether two states of a generator of random numbers are one."""
    if a is None or b is None:
        return a is b
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def _replaceable(tensor: Tensor, node: Node) -> bool:
    """Whether a tensor may be shown another value: nobody shares its memory, and it has no history
    of its own."""
    if tensor.storage is not None or type(tensor.accumulator) not in (AccumulateGrad, type(None)):
        return False
    if tensor.accumulator is not None and tensor.accumulator.hooks:
        return False
    marks = node.marks
    if marks is not None and (marks.hooks or marks.slots):
        return False
    return node.op is LEAF or not node.requires_grad


class Slot:
    """A tensor that a step changes, or its gradient."""

    __slots__ = ("gradient", "tensor")

    def __init__(self, tensor: Tensor, gradient: bool):
        self.tensor = tensor
        self.gradient = gradient

    @property
    def node(self) -> Node | None:
        if not self.gradient:
            return self.tensor.node
        grad = self.tensor.grad
        return None if grad is None else grad.node

    def put(self, node: Node) -> None:
        """Show `node`, as the leaf or constant that was there."""
        tensor = self.tensor.grad if self.gradient else self.tensor
        assert tensor is not None
        if tensor.node.requires_grad:
            node = leaf(node if node.value is None else node.value, tensor.accumulator)
        tensor._show(node)


Recorded = tuple[list[Slot], list[np.ndarray], Recording]


def _record(slots: list[Slot], step: Step, item: int) -> Recorded | None:
    """Run a step on arguments in place of what it is given, and record it; None when it cannot be
    replayed (it has run, then, as any other)."""
    nodes = [slot.node for slot in slots]
    evaluate([node for node in nodes if node is not None])
    arrays = [value_of(node) for node in nodes if node is not None]
    arguments = [argument(array) for array in arrays]
    for slot, node in zip(slots, arguments, strict=True):
        slot.put(node)
    since = Node.counter()
    HOUSEKEEPING.recording = True
    try:
        step(item)
    finally:
        HOUSEKEEPING.recording = False
    targets = [slot.node for slot in slots]
    found = [node for node in targets if node is not None]
    same = len(found) == len(arrays) and all(
        node.shape == array.shape and node.dtype == array.dtype
        for node, array in zip(found, arrays, strict=True)
    )
    if same and not looked_at(arguments) and Node.counter() - since <= MOST_NODES:
        order, _ = plan(found)
        if not any("draw" in node.op.properties for node in order):
            return slots, arrays, Recording(order, arguments, found)
    evaluate(found)
    return None


__all__ = ["Repeated", "repeated"]
