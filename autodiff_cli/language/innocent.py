"""Expressions and statements of a loop that only use Python values: which may run before the
tensors of a step are computed, and which afterwards, when the tensors they read are constants.

`taken`: only the numbers in a tensor matter here, not how it was made.
"""

from __future__ import annotations

from ..autograd import calls
from ..graph.registry import overloads
from . import syntax
from .free_names import read_by

FUNCTIONS = frozenset(
    [
        "float",
        "int",
        "bool",
        "round",
        "len",
        "str",
        "abs",
        "min",
        "max",
        "sum",
        "print",
        "list",
        "tuple",
        "range",
        "repr",
        "isinstance",
    ]
)
TAKING = frozenset({"float", "int", "bool"})
TAKING_METHODS = frozenset({"item", "tolist"})
METHODS = frozenset(
    [
        "append",
        "extend",
        "format",
        "detach",
        "size",
        "dim",
        "numel",
        "cpu",
        "numpy",
        "to",
        "ndimension",
        "get_last_lr",
    ]
)
DRAWING = frozenset(["rand", "randn", "randint", "randperm"])
ATTRIBUTES = frozenset(["shape", "data", "T", "ndim", "grad", "dtype"])

PARTS = (
    syntax.BinOp, syntax.UnaryOp, syntax.BoolOp, syntax.Compare, syntax.IfExp, syntax.Subscript,
    syntax.Slice, syntax.Tuple, syntax.List, syntax.Keyword, syntax.JoinedStr, syntax.Starred,
)  # fmt: skip


def innocent(tree: syntax.Node, inner: set[str], taken: bool = False) -> bool:
    """Whether an expression reads of the tensors that `inner` names mean only the numbers, and
    does nothing but compute, print, or append."""
    if isinstance(tree, syntax.Name):
        return taken or tree.id not in inner
    if isinstance(tree, syntax.Constant | syntax.NumList):
        return True
    if isinstance(tree, syntax.Attribute):
        return tree.attr in ATTRIBUTES and innocent(tree.value, inner, taken)
    if isinstance(tree, syntax.FormattedValue):
        spec = tree.format_spec
        numbers = spec is not None and tree.conversion is None
        return innocent(tree.value, inner, taken or numbers) and (
            spec is None or innocent(spec, inner)
        )
    if isinstance(tree, syntax.Call):
        return _call(tree, inner, taken)
    if not isinstance(tree, PARTS):
        return False
    return all(innocent(part, inner, taken) for part in syntax.children(tree))


def _call(tree: syntax.Call, inner: set[str], taken: bool) -> bool:
    function = tree.func
    given = [*tree.args, *tree.keywords]
    if isinstance(function, syntax.Name):
        name = function.id
        return (name in FUNCTIONS or is_op(name)) and all(
            innocent(part, inner, taken or name in TAKING) for part in given
        )
    if not isinstance(function, syntax.Attribute):
        return False
    name = function.attr
    taken = taken or name in TAKING_METHODS
    if not (name in TAKING_METHODS or name in METHODS or is_method(name)):
        return False
    return innocent(function.value, inner, taken) and all(
        innocent(part, inner, taken) for part in given
    )


def is_op(name: str) -> bool:
    """Whether a name is that of ops that draw nothing."""
    ops = overloads(name)
    return bool(ops) and not any("draw" in op.properties for op in ops)


def is_method(name: str) -> bool:
    ops = calls.method(name)
    return bool(ops) and not any("draw" in op.properties for op in ops)


def chooses(tree: syntax.Node) -> bool:
    """Whether an expression only computes with values from outside of the step, or draws."""
    if isinstance(tree, syntax.Call):
        function = tree.func
        given = [*tree.args, *tree.keywords]
        if isinstance(function, syntax.Attribute) and function.attr in DRAWING:
            return isinstance(function.value, syntax.Name) and all(chooses(g) for g in given)
        if isinstance(function, syntax.Name):
            known = function.id in FUNCTIONS - {"print"} or is_op(function.id)
            return known and all(chooses(g) for g in given)
        if not isinstance(function, syntax.Attribute):
            return False
        known = function.attr in METHODS - {"append", "extend", "get_last_lr"} or is_method(
            function.attr
        )
        return known and chooses(function.value) and all(chooses(g) for g in given)
    if isinstance(tree, syntax.Name | syntax.Constant | syntax.NumList):
        return True
    if isinstance(tree, syntax.Attribute):
        return tree.attr in ATTRIBUTES - {"grad"} and chooses(tree.value)
    return isinstance(tree, PARTS) and all(chooses(part) for part in syntax.children(tree))


def draws(tree: syntax.Node) -> bool:
    """Whether a choosing expression draws random numbers."""
    return any(
        isinstance(node, syntax.Attribute) and node.attr in DRAWING for node in syntax.walk(tree)
    )


def streams(tree: syntax.Node, inner: set[str], now_and_then: bool = False) -> bool:
    """Whether a statement only prints, appends to a list, or computes with numbers; one that runs
    `now_and_then` may also keep what is there."""
    if isinstance(tree, syntax.ExprStmt):
        call = tree.value
        if not isinstance(call, syntax.Call) or not innocent(call, inner):
            return False
        function = call.func
        if isinstance(function, syntax.Name):
            return function.id == "print"
        return isinstance(function, syntax.Attribute) and function.attr in ("append", "extend")
    if isinstance(tree, syntax.AugAssign):
        name = isinstance(tree.target, syntax.Name) and tree.target.id not in inner
        return name and innocent(tree.value, inner)
    if isinstance(tree, syntax.Assign):
        names = all(isinstance(target, syntax.Name) for target in tree.targets)
        return names and (now_and_then or takes(tree.value, inner)) and innocent(tree.value, inner)
    if isinstance(tree, syntax.If):
        return innocent(tree.test, inner, True) and all(
            streams(part, inner, True) for part in [*tree.body, *tree.orelse]
        )
    return isinstance(tree, syntax.Pass)


def takes(tree: syntax.Node, inner: set[str]) -> bool:
    """Whether an expression takes numbers out of tensors of the step."""
    for node in syntax.walk(tree):
        if not isinstance(node, syntax.Call):
            continue
        function = node.func
        by_method = isinstance(function, syntax.Attribute) and function.attr in TAKING_METHODS
        by_name = isinstance(function, syntax.Name) and function.id in TAKING
        if (by_method or by_name) and read_by(node) & inner:
            return True
    return False


__all__ = ["chooses", "draws", "innocent", "streams"]
