"""Whether running a tree can change anything but the names it assigns.

Invariant: the answer errs towards "yes, it can": what is not known to be harmless is not. A pure
statement is undone by putting the table of names back; the others are undone by replay.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from ..autograd.tensor import Tensor
from ..errors import AutodiffError
from ..graph.op import Op
from ..graph.registry import overloads
from ..language.python.builtins import TYPES
from ..language.replay.harmless import LOOKING
from ..language.runtime.names import builtin, member
from ..language.syntax import tree as syntax
from ..language.syntax.scoping import assigned_names, target_names
from ..language.values.values import Builtin, Device, Namespace, OpFunction, TypeName, UserFunction
from ..source import Span

# Functions and methods that only look, with those that replay knows; methods that are ops do too.
HARMLESS = LOOKING.union([
    "Parameter", "allclose", "approx", "argmax", "array", "asarray", "clone", "const", "isclose",
    "load", "print", "repr", "shape", "stride", "strip",
])  # fmt: skip
# What these names do depends on the value: a tensor's `add` is an op, a set's changes the set.
CHANGING = frozenset([
    "add", "append", "clear", "copy", "extend", "insert", "pop", "remove", "resize", "reverse",
    "sort", "update",
])  # fmt: skip
# Reading a gradient may run backward.
GRADIENTS = frozenset(["grad", "data"])

_EXPRESSIONS = (
    syntax.Name, syntax.Constant, syntax.NumList, syntax.List, syntax.Tuple, syntax.Set,
    syntax.Dict, syntax.UnaryOp, syntax.BinOp, syntax.BoolOp, syntax.Compare, syntax.Subscript,
    syntax.Slice, syntax.IfExp, syntax.JoinedStr, syntax.FormattedValue, syntax.Keyword,
    syntax.Starred, syntax.ListComp, syntax.SetComp, syntax.GeneratorExp, syntax.DictComp,
    syntax.Comprehension, syntax.Param,
)  # fmt: skip
_STATEMENTS = (
    syntax.ExprStmt, syntax.Assign, syntax.AnnAssign, syntax.Assert, syntax.Pass, syntax.Import,
    syntax.ImportFrom, syntax.Alias, syntax.If, syntax.For, syntax.While, syntax.Break,
    syntax.Continue, syntax.Return,
)  # fmt: skip
_LOOPS = (syntax.ListComp, syntax.SetComp, syntax.GeneratorExp, syntax.DictComp)


# Values that operators, attributes and loops only look at.
PLAIN = (
    Tensor, int, float, str, list, tuple, set, slice, range, np.dtype, type(None), Namespace,
    TypeName, Builtin, OpFunction, UserFunction, Device,
)  # fmt: skip
Definitions = dict[Span, syntax.FunctionDef]


@dataclass(eq=False)
class Purity:
    """Judges trees against the names that a session has.

    `definitions` are the session's functions by the place of their names, so that calls of them
    can be judged; without `loops` nothing that repeats is accepted; `gradients` says that reading
    `.grad` only looks.
    """

    names: dict[str, Any]
    definitions: Definitions
    _: KW_ONLY
    loops: bool = True
    gradients: bool = True
    assigned: set[str] = field(default_factory=set)
    called: set[Span] = field(default_factory=set)
    pending: list[syntax.FunctionDef] = field(default_factory=list)  # called, and not yet judged

    def of_statements(self, trees: list[syntax.Node]) -> bool:
        """Whether these statements only assign names."""
        self.assigned = assigned_names(trees)[0]
        for tree in trees:
            self._bind_loops(tree)
        return all(map(self._statement, trees)) and self._functions_too()

    def of_expression(self, tree: syntax.Node) -> bool:
        """Whether an expression changes nothing at all."""
        self._bind_loops(tree)
        return self._all(tree) and self._functions_too()

    def _functions_too(self) -> bool:
        """Whether the functions that are called, and those that they call, only compute."""
        while self.pending:
            tree = self.pending.pop()
            local, outer = assigned_names(tree.body)
            inner = replace(self, assigned=local | {param.name for param in tree.params})
            for statement in tree.body:
                inner._bind_loops(statement)
            if outer or not all(map(inner._statement, tree.body)):
                return False
        return True

    def _bind_loops(self, tree: syntax.Node) -> None:
        for node in syntax.walk(tree):
            if isinstance(node, syntax.Comprehension):
                self.assigned.update(target_names(node.target))

    def _statement(self, tree: syntax.Node) -> bool:
        if isinstance(tree, syntax.FunctionDef):
            return not tree.decorators and all(map(self._all, tree.params))
        if isinstance(tree, syntax.Assign):
            return all(map(_binds_names, tree.targets)) and self._all(tree.value)
        if isinstance(tree, syntax.AnnAssign):
            value = tree.value
            return _binds_names(tree.target) and (value is None or self._all(value))
        if isinstance(tree, syntax.AugAssign):
            target = tree.target
            if not isinstance(target, syntax.Name) or not self._is_number(target.id):
                return False  # a tensor or a list is changed in place
            return self._all(tree.value)
        if isinstance(tree, syntax.For | syntax.While) and not self.loops:
            return False
        if isinstance(tree, syntax.For) and not _binds_names(tree.target):
            return False
        return isinstance(tree, _STATEMENTS) and all(map(self._below, syntax.children(tree)))

    def _is_number(self, name: str) -> bool:
        return type(self.names.get(name)) in (int, float, bool, str, tuple)

    def _below(self, tree: syntax.Node) -> bool:
        expression = isinstance(tree, (*_EXPRESSIONS, syntax.Call, syntax.Attribute))
        return self._all(tree) if expression else self._statement(tree)

    def _all(self, tree: syntax.Node) -> bool:
        """Every node of an expression, without recursion: expressions may be deep."""
        pending = [tree]
        while pending:
            node = pending.pop()
            if isinstance(node, syntax.Call):
                if not self._call(node):
                    return False
                if isinstance(node.func, syntax.Attribute):
                    pending.append(node.func.value)
                pending += node.args
                pending += node.keywords
                continue
            if isinstance(node, syntax.Attribute):
                if node.attr in GRADIENTS and not (self.gradients or self._namespace(node.value)):
                    return False
            elif isinstance(node, syntax.Name):
                value = self.names.get(node.id)
                if type(value) is not dict and not isinstance(value, PLAIN):
                    return False  # a value of a class: operators and attributes may be its own
            elif not isinstance(node, _EXPRESSIONS) or (
                not self.loops and isinstance(node, _LOOPS)
            ):
                return False
            pending += syntax.children(node)
        return True

    def _call(self, tree: syntax.Call) -> bool:
        if any(k.name in _CHANGING_KEYWORDS for k in tree.keywords):
            return False
        function = tree.func
        if isinstance(function, syntax.Name):
            if function.id in self.assigned:
                return False
            if function.id in self.names:
                return self._harmless(self.names[function.id], function.id)
            return self._harmless(builtin(function.id), function.id)
        if not isinstance(function, syntax.Attribute):
            return False
        namespace = self._namespace(function.value)
        if namespace is not None:
            if namespace.path in ("math", "np", "np.linalg"):
                return not function.attr.endswith("_")
            try:
                return self._harmless(member(namespace, function.attr), function.attr)
            except AutodiffError:
                return False
        return self._method(function)

    def _harmless(self, value: Any, name: str) -> bool:
        if isinstance(value, OpFunction):
            return not name.endswith("_") and not any(map(_draws, value.ops))
        if isinstance(value, UserFunction):
            return self._function(value)
        if isinstance(value, TypeName):
            return TYPES.get(value.name.rpartition(".")[2]) is value
        if not self.loops and name in ("print", "range"):
            return False
        return isinstance(value, Builtin) and value.name.rpartition(".")[2] in HARMLESS

    def _function(self, function: UserFunction) -> bool:
        """Whether a function is the session's, to be judged once."""
        tree = self.definitions.get(function.span)
        if tree is None or function.wrappers:
            return False
        if function.span not in self.called:
            self.called.add(function.span)
            self.pending.append(tree)
        return True

    def _method(self, tree: syntax.Attribute) -> bool:
        name = tree.attr
        if name.endswith("_"):
            return False
        if name in CHANGING:
            owner = tree.value
            if not isinstance(owner, syntax.Name) or owner.id in self.assigned:
                return False
            return type(self.names.get(owner.id)) is Tensor
        if self._instance(tree.value):
            return False
        if name in HARMLESS:
            return True
        return bool(overloads(name)) and not any(map(_draws, overloads(name)))

    def _instance(self, tree: syntax.Node) -> bool:
        """Whether a method may be the program's own: its class gives any name any meaning."""
        if isinstance(tree, syntax.Name):
            if tree.id in self.assigned:
                return any(not isinstance(v, (*PLAIN, dict)) for v in self.names.values())
            value = self.names.get(tree.id)
            return not isinstance(value, Tensor | str | int | float | dict | list | tuple)
        if isinstance(tree, syntax.Attribute):
            return self._instance(tree.value)
        if isinstance(tree, syntax.Subscript):
            value = self.names.get(tree.value.id) if isinstance(tree.value, syntax.Name) else None
            return type(value) is not Tensor
        return not isinstance(
            tree, syntax.BinOp | syntax.UnaryOp | syntax.Call | syntax.Constant | syntax.NumList
        )

    def _namespace(self, tree: syntax.Node) -> Namespace | None:
        """The namespace that a dotted name means: `torch`, `torch.nn.functional`."""
        path: list[str] = []
        while isinstance(tree, syntax.Attribute):
            path.append(tree.attr)
            tree = tree.value
        if not isinstance(tree, syntax.Name) or tree.id in self.assigned:
            return None
        value = self.names.get(tree.id) if tree.id in self.names else builtin(tree.id)
        for name in reversed(path):
            if not isinstance(value, Namespace):
                return None
            try:
                value = member(value, name)
            except AutodiffError:
                return None
        return value if isinstance(value, Namespace) else None


_CHANGING_KEYWORDS = frozenset(["out", "inplace", "generator", "key", "dropout_p", None])
_RANDOM_FAMILIES = frozenset(["noise", "dropout", "fractional_pooling", "attention"])


def _draws(op: Op) -> bool:
    """Whether an op may take random numbers; attention has a dropout of its own."""
    return op.family in _RANDOM_FAMILIES or op.key == "rrelu"


def _binds_names(tree: syntax.Node) -> bool:
    if isinstance(tree, syntax.Tuple | syntax.List):
        return all(map(_binds_names, tree.elements))
    if isinstance(tree, syntax.Starred):
        return _binds_names(tree.value)
    return isinstance(tree, syntax.Name)
