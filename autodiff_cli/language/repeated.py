"""Which loops may be replayed: bodies that do nothing but compute, by their tree and by what their
names mean when they run.

A name that is read in the body before it is assigned there carries a value from step to step; such
loops are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..autograd import calls
from ..autograd.tensor import Tensor
from ..graph.registry import overloads
from . import syntax
from .attributes import get_attribute
from .classes import Instance
from .expressions import Context, compile_truth
from .scoping import assigned_names
from .values import Builtin, Namespace, OpFunction, Scope, Size

WORTH = 8  # steps; shorter loops run as they are

STATEMENTS = (syntax.Assign, syntax.AugAssign, syntax.ExprStmt, syntax.With, syntax.Pass)
EXPRESSIONS = (
    syntax.Name, syntax.Constant, syntax.NumList, syntax.List, syntax.Tuple, syntax.BinOp,
    syntax.UnaryOp, syntax.Compare, syntax.Call, syntax.Attribute, syntax.Subscript, syntax.Slice,
    syntax.Keyword, syntax.WithItem,
)  # fmt: skip

TESTS = (
    syntax.Name, syntax.Constant, syntax.BinOp, syntax.UnaryOp, syntax.BoolOp, syntax.Compare,
)  # fmt: skip

MODES = frozenset({"no_grad", "enable_grad"})
# Methods that only change or read tensors; of optimizers and modules; those of ops are looked up.
TENSOR_METHODS = frozenset({"backward", "detach", "zero_", "copy_", "size", "dim", "numel"})
OBJECT_METHODS = frozenset({"step", "zero_grad"})

Assign = Callable[[Scope, Any], None]
Body = Callable[[Scope], Any]


class Repeated:
    """A loop whose tree allows to replay it: `names` are assigned in its body, `loaded` those it
    reads, `called` the functions of its calls; steps for which one of `tests` holds run as they
    are written (`if i % 100 == 0: print(...)`)."""

    __slots__ = ("called", "loaded", "names", "tests")

    def __init__(
        self,
        names: set[str],
        loaded: set[str],
        called: list[syntax.Node],
        tests: list[Callable[[Scope], bool]],
    ):
        self.names = names
        self.loaded = loaded
        self.called = called
        self.tests = tests

    def run(self, scope: Scope, items: range, assign: Assign, body: Body) -> range:
        """Run what may be replayed; the items that are left."""
        if len(items) < WORTH:
            return items
        from .loops import Run

        return items[Run(self, scope, items, assign, body).upto() :]

    def known(self, scope: Scope) -> bool:
        """Whether names mean values that do nothing but compute."""
        for name in self.loaded:
            found, value = _named(name, scope)
            if found and not _plain(value):
                return False
        return all(_computes(function, scope, self.names) for function in self.called)


LEAVING = (syntax.Break, syntax.Continue, syntax.Return, syntax.Yield)


def repeated(tree: syntax.For, context: Context) -> Repeated | None:
    """What a `for` needs to be replayed; None when its body does more than compute."""
    if not isinstance(tree.target, syntax.Name) or tree.orelse:
        return None
    specials = [s for s in tree.body if isinstance(s, syntax.If) and not s.orelse]
    names: set[str] = set()
    loaded: set[str] = set()
    called: list[syntax.Node] = []
    for statement in _statements([s for s in tree.body if s not in specials]):
        if statement is None or not _collect(statement, names, loaded, called):
            return None
    # A name that is read before it is assigned carries a value from step to step.
    if loaded & names or tree.target.id in loaded | names:
        return None
    for special in specials:
        nodes = list(syntax.walk(special.test))
        read = {node.id for node in nodes if isinstance(node, syntax.Name)}
        written, outer = assigned_names(special.body)
        leaves = any(isinstance(n, LEAVING) for s in special.body for n in syntax.walk(s))
        if leaves or outer or not all(isinstance(node, TESTS) for node in nodes) or read & names:
            return None
        loaded |= read - {tree.target.id}
        names |= written
    if loaded & names or tree.target.id in names:
        return None
    tests = [compile_truth(special.test, context) for special in specials]
    return Repeated(names | {tree.target.id}, loaded, called, tests)


def _collect(
    statement: syntax.Node, names: set[str], loaded: set[str], called: list[syntax.Node]
) -> bool:
    """Note what a statement reads, calls and assigns, in this order; False when it does more."""
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
                return False
            if isinstance(node, syntax.Call):
                called.append(node.func)
            elif isinstance(node, syntax.Name) and node.id not in names:
                loaded.add(node.id)
    for target in writes:
        if isinstance(target, syntax.Name):
            names.add(target.id)
        elif not (isinstance(target, syntax.Attribute) and target.attr == "grad"):
            return False
    return True


def _statements(body: list[syntax.Node]) -> Iterator[syntax.Node | None]:
    for statement in body:
        if not isinstance(statement, STATEMENTS):
            yield None
            return
        yield statement
        if isinstance(statement, syntax.With):
            yield from _statements(statement.body)


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


__all__ = ["Assign", "Body", "Repeated", "repeated"]
