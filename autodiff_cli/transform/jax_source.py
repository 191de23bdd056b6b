"""What is written for NumPy, as JAX has it: arrays that nothing changes, and modules of its own.

Invariant: what may be seen changed by others stays as it is, and `changes_arrays` finds it.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

NEW = ("array", "copy", "astype", "zeros", "ones", "full", "empty")  # what makes arrays of its own


def in_jax(tree: Any) -> Any:
    """A function whose changes of arrays of its own are written as JAX has them."""
    return ast.fix_missing_locations(_Unchanged().visit(tree))


def changes_arrays(tree: Any) -> bool:
    """Whether something in a function is changed in place."""
    return any(map(_changes, ast.walk(tree)))


def modules_of_jax(text: str) -> str:
    """Source with the names of JAX's modules; where it says `import numpy as np` it needs both."""
    text = re.sub(r"(?<!import numpy as )\bnp\.", "jnp.", text)
    return text.replace("scipy.", "jax.scipy.")


class _Unchanged(ast.NodeTransformer):
    """Functions that change arrays which they made themselves, as JAX has them: a name stands for
    another array from there on. What changes anything else stays as it is."""

    own: frozenset[str] = frozenset()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        outer, self.own = self.own, _owned(node)
        self.generic_visit(node)
        self.own = outer
        return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        return node.body if "np.errstate" in ast.unparse(node.items[0]) else node

    def visit_Assign(self, node: ast.Assign) -> Any:
        return self._placed(node, node.targets[0], "set", node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        before = ast.parse(ast.unparse(node.target), mode="eval").body
        return self._placed(node, node.target, "set", ast.BinOp(before, node.op, node.value))

    def visit_Expr(self, node: ast.Expr) -> Any:
        call: Any = node.value
        if ast.unparse(node).startswith("np.add.at("):
            array, at, value = call.args
            return self._placed(node, ast.Subscript(array, at, ast.Store()), "add", value)
        return node

    def _owns(self, array: Any) -> bool:
        return isinstance(array, ast.Name) and array.id in self.own

    def _placed(self, node: Any, target: Any, how: str, value: Any) -> Any:
        if not isinstance(target, ast.Subscript) or not self._owns(target.value):
            return node
        places = ast.Subscript(ast.Attribute(target.value, "at", ast.Load()), target.slice)
        call = ast.Call(ast.Attribute(places, how, ast.Load()), [value], [])
        return ast.Assign([_stored(target.value)], call)


def _owned(function: ast.FunctionDef) -> frozenset[str]:
    """The names of a function that stand for nothing but arrays which it made."""
    found: dict[str, bool] = {}
    pending: list[Any] = [*function.body]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.FunctionDef | ast.Lambda):
            continue
        pending += ast.iter_child_nodes(part)
        pairs: list[tuple[Any, Any]] = []
        if isinstance(part, ast.Assign):
            pairs = [(target, part.value) for target in part.targets]
        elif isinstance(part, ast.For | ast.comprehension):
            pairs = [(part.target, None)]
        for target, value in pairs:
            parts, values = [target], [value]
            if isinstance(target, ast.Tuple):
                parts = target.elts
                values = value.elts if isinstance(value, ast.Tuple) else [None] * len(parts)
            for name, given in zip(parts, values, strict=True):
                if isinstance(name, ast.Name):
                    found[name.id] = found.get(name.id, True) and _is_new(given)
    given_names = {a.arg for a in function.args.args}
    return frozenset(name for name, new in found.items() if new and name not in given_names)


def _stored(name: Any) -> ast.Name:
    return ast.Name(name.id, ast.Store())


def _is_new(value: Any) -> bool:
    """Whether an expression is an array that nothing else has."""
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.BinOp)
    name = getattr(value.func, "attr", "")
    return name.removesuffix("_like") in NEW or isinstance(getattr(np, name, None), np.ufunc)


def _changes(node: Any) -> bool:
    """Whether something is changed in place."""
    if isinstance(node, ast.keyword):
        return node.arg == "out"
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Subscript) for target in targets)
