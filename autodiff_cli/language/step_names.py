"""The names that a step of a loop reads from outside of it and those that it assigns, in the order
of its statements.
"""

from __future__ import annotations

from . import syntax
from .free_names import read_by
from .scoping import target_names
from .step_trees import leaves, outside

CORE = (
    syntax.Assign, syntax.AugAssign, syntax.AnnAssign, syntax.ExprStmt, syntax.With, syntax.Pass,
    syntax.For, syntax.While, syntax.If, syntax.FunctionDef, syntax.Assert,
)  # fmt: skip
LEAVING = (syntax.Break, syntax.Continue, syntax.Return, syntax.Yield)


class Refused(Exception):
    """The body cannot be taken apart."""


class StepNames:
    """The `names` that statements of a step assign, and those it has `loaded` from outside of it;
    `before` are names that it assigned before, `outward` those that are not its own."""

    def __init__(self, before: set[str], outward: set[str]):
        self.outward = outward
        self.names = set(before)
        self.loaded: set[str] = set()
        self.sure = set(before)

    def block(self, trees: list[syntax.Node]) -> None:
        for tree in trees:
            self._statement(tree)

    def _statement(self, tree: syntax.Node) -> None:
        if not isinstance(tree, CORE):
            raise Refused
        if isinstance(tree, syntax.For):
            if tree.orelse:
                raise Refused
            self._reads(tree.iter)
            self._writes(tree.target)
            self.block(tree.body)
        elif isinstance(tree, syntax.While | syntax.If):
            self._reads(tree.test)
            sure = set(self.sure)
            for body in syntax.bodies(tree):
                self.sure = set(sure)
                self.block(body)
            self.sure = sure
        elif isinstance(tree, syntax.With):
            for item in tree.items:
                self._reads(item.expr)
                if item.target is not None:
                    self._writes(item.target)
            self.block(tree.body)
        elif isinstance(tree, syntax.FunctionDef):
            self._reads(tree)
            self._assign({tree.name})
        elif isinstance(tree, syntax.Assign | syntax.AnnAssign):
            if tree.value is not None:
                self._reads(tree.value)
            for target in tree.targets if isinstance(tree, syntax.Assign) else [tree.target]:
                self._writes(target)
        elif isinstance(tree, syntax.AugAssign):
            self._reads(tree.value)
            self._reads(tree.target)
        else:
            self._reads(tree)

    def _reads(self, tree: syntax.Node) -> None:
        if any(isinstance(node, (syntax.NamedExpr, *LEAVING)) for node in outside(tree)):
            raise Refused
        self.loaded |= read_by(tree) - self.sure

    def _writes(self, target: syntax.Node) -> None:
        if isinstance(target, syntax.Attribute | syntax.Subscript):
            for part in syntax.children(target):
                self._reads(part)
            return
        if any(not isinstance(node, syntax.Name) for node in leaves(target)):
            raise Refused
        self._assign(set(target_names(target)))

    def _assign(self, names: set[str]) -> None:
        if names & self.outward:
            raise Refused
        self.names |= names
        self.sure |= names


__all__ = ["Refused", "StepNames"]
