"""Kernels as NumPy source: a ufunc, an expression, or a function that is copied with what it calls.

Invariant: what is written reads nothing of this package.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from itertools import chain, count
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..graph.op import Op
from ..graph.registry import F
from .jax_source import changes_arrays, in_jax
from .value_source import NoText, expression, literal

INFIX = {
    np.add: "a + b", np.subtract: "a - b", np.multiply: "a * b", np.true_divide: "a / b",
    np.negative: "-a", np.greater: "a > b", np.greater_equal: "a >= b", np.less: "a < b",
    np.less_equal: "a <= b", np.equal: "a == b", np.not_equal: "a != b",
}  # fmt: skip


class Substitution(ast.NodeTransformer):
    """Names that stand for expressions."""

    def __init__(self, given: Mapping[str, Any]):
        self.given = given

    def visit_Name(self, node: ast.Name) -> Any:
        return self.given.get(node.id, node)


@cache
def _definitions(module: ModuleType) -> list[Any]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.Lambda)
    return [n for n in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(n, kinds)]


def tree_of_function(function: FunctionType | type) -> Any:
    """The part of its module that defines a function, a lambda or a class."""
    code = None if isinstance(function, type) else function.__code__
    (tree,) = ast.parse(_text_of(function.__module__, function.__name__, code)).body
    return tree.value if isinstance(tree, ast.Expr) else tree


@cache
def _text_of(module: str, name: str, code: CodeType | None) -> str:
    """The text of a function, or of a class, which has no code."""
    defined = _definitions(import_module(module))
    if code is None:
        return ast.unparse(next(n for n in defined if getattr(n, "name", "") == name))
    lines = [p for p in list(code.co_positions())[1:] if None not in p and p[3] != 0]
    start = min((p[0], p[2]) for p in lines)
    kind = ast.Lambda if name == "<lambda>" else ast.FunctionDef
    inside = [
        node for node in defined
        if isinstance(node, kind) and getattr(node, "name", "<lambda>") == name
        and (node.lineno, node.col_offset) <= start <= (node.end_lineno, node.end_col_offset)
        and [a.arg for a in node.args.args] == list(code.co_varnames[: code.co_argcount])
    ]  # fmt: skip
    return ast.unparse(max(inside, key=lambda node: (node.lineno, node.col_offset)))


class Kernels:
    """Kernels as expressions and as functions that stand in the source."""

    def __init__(self, library: str, taken: set[str]):
        self.library = library
        self.taken = taken
        self.helpers: dict[Any, str] = {}
        self.texts: list[str] = []
        self.imports: set[str] = set()

    def numbered(self, letter: str) -> str:
        """A letter with the first number that makes it a name of its own."""
        return self._first(f"{letter}{n}" for n in count(1))

    def _first(self, names: Iterable[str]) -> str:
        found = next(name for name in names if name not in self.taken)
        self.taken.add(found)
        return found

    def call(self, kernel: Any, key: str, args: list[Any], typed: list[Any]) -> Any:
        """A kernel applied; `typed` are the arguments with the dtypes of numbers."""
        kernel = getattr(kernel, "ufunc", kernel)
        text = INFIX.get(kernel) if isinstance(kernel, np.ufunc) else None
        if text is not None:
            return Substitution(dict(zip("ab", args, strict=False))).visit(expression(text))
        if isinstance(kernel, FunctionType):
            tree = tree_of_function(kernel)
            body = tree.body if isinstance(tree, ast.Lambda) else _returned(tree)
            if body is not None and (found := self._inlined(kernel, tree, body, args, typed)):
                return found
        return ast.Call(self.value(kernel, key), typed, [])

    def _inlined(self, kernel: Any, tree: Any, body: Any, args: Any, typed: Any) -> Any:
        """The expression of a kernel with its arguments; None where that would compute something
        twice, or ask a number what only arrays know."""
        names = [a.arg for a in tree.args.args]
        given = dict(zip(names, args, strict=False))
        seen = Counter(n.id for n in ast.walk(body) if isinstance(n, ast.Name))
        asked = {
            n.value.id for n in ast.walk(body)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
        }  # fmt: skip
        plain = (ast.Name, ast.Constant, ast.Tuple)
        if any(seen[n] > 1 and not isinstance(v, plain) for n, v in given.items()):
            return None
        given |= {n: v for n, v in zip(names, typed, strict=False) if n in asked}
        tree = self._resolved(kernel, ast.Expression(body))
        if any(isinstance(n, ast.Lambda | ast.comprehension) for n in ast.walk(tree)):
            return None
        return Substitution(given).visit(tree.body)

    def value(self, value: Any, key: str = "") -> Any:
        """What a name of a kernel stands for."""
        if isinstance(value, Op):
            return self.value(value.kernel, value.key)
        value = value if value is np else getattr(value, "ufunc", value)
        if getattr(np, getattr(value, "__name__", ""), None) is not value:
            value = getattr(value, "__wrapped__", value)  # a cache
        if isinstance(value, ModuleType):
            if value is np:
                return expression("np")
            self.imports.add(f"import {value.__name__}")
            return expression(value.__name__)
        name = getattr(value, "__name__", "")
        module = getattr(value, "__module__", "") or ""
        owner = getattr(value, "__self__", None)
        if isinstance(owner, np.ufunc):
            return ast.Attribute(self.value(owner), name, ast.Load())
        if name and getattr(np, name, None) is value:
            return expression(f"np.{name}")
        if isinstance(value, FunctionType | type) and module.startswith("autodiff_cli."):
            return expression(self._helper(value, key))
        if module.partition(".")[0] in ("numpy", "scipy", "math", "itertools"):
            self.imports.add(f"import {module}")
            return expression(f"{module}.{name}")
        if isinstance(value, np.dtype):
            return expression(f"np.dtype({value.name!r})")
        return literal(value, self.value)

    def _helper(self, function: Any, key: str) -> str:
        """The name of a function, which is written with all that it calls."""
        if function in self.helpers:
            return self.helpers[function]
        nested = "<" in function.__qualname__
        name = (key or "kernel") if nested else function.__name__
        names = chain([name], (f"{name}{n}" for n in count(2)))
        name = self.helpers[function] = self._first(names)
        tree: Any = tree_of_function(function)
        if isinstance(tree, ast.Lambda):
            lambda_ = tree
            tree = ast.parse(f"def {name}(): return 0").body[0]
            tree.args, tree.body = lambda_.args, [ast.Return(lambda_.body)]
        if isinstance(function, type):
            functions = {n: getattr(f, "fget", f) for n, f in vars(function).items()}
            tree.body = [
                self._resolved(functions[part.name], part)
                if isinstance(part, ast.FunctionDef)
                else part
                for part in tree.body
            ]
        else:
            tree.decorator_list = []
            kept = function.__defaults__ or ()
            tree.args.defaults = [ast.Name(f"default {i}", ast.Load()) for i in range(len(kept))]
            tree = self._resolved(function, tree)
        tree.name = name
        if self.library == "JAX":
            tree = in_jax(tree)
            if changes_arrays(tree):
                raise NoText("its kernel writes into an array that others may see")
        self.texts.append(ast.unparse(ast.fix_missing_locations(tree)))
        return name

    def _resolved(self, function: FunctionType, tree: Any) -> Any:
        """A tree in which names of its module and of the functions around it are written out."""
        code = function.__code__
        cells = [c.cell_contents for c in function.__closure__ or ()]
        known = dict(zip(code.co_freevars, cells, strict=True))
        args = tree.args if isinstance(tree, ast.FunctionDef) else None
        last = code.co_varnames[: code.co_argcount][::-1]
        defaults = dict(zip(last, (function.__defaults__ or ())[::-1], strict=False))
        kernels = self
        given = enumerate(function.__defaults__ or ())
        known |= {f"default {i}": value for i, value in given}
        nodes = list(ast.walk(tree))
        local = {n.id for n in nodes if isinstance(n, ast.Name) and type(n.ctx) is not ast.Load}
        local |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        local |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)} - {function.__name__}
        local |= {
            (a.asname or a.name).split(".")[0] for n in nodes
            if isinstance(n, ast.Import) or (isinstance(n, ast.ImportFrom) and not n.level)
            for a in n.names
        }  # fmt: skip
        if args is None:
            local |= set(code.co_varnames[: code.co_argcount]) - set(defaults)
            known |= defaults

        class Resolve(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> Any:
                name = node.id
                if name in local:
                    return node
                if name in known:
                    return kernels.value(known[name])
                if name in function.__globals__:
                    return kernels.value(function.__globals__[name])
                return node

            def visit_Call(self, node: ast.Call) -> Any:
                if isinstance(node.func, ast.Name) and node.func.id in ("fault", "fail"):
                    return ast.Call(expression("ValueError"), node.args[:1], [])
                return self.generic_visit(node)

            def visit_If(self, node: ast.If) -> Any:
                first = node.test.values[0] if isinstance(node.test, ast.BoolOp) else node.test
                match first:
                    case ast.Compare(ast.Name(), [ast.IsNot()], [ast.Constant(None)]):
                        left = self.visit(first.left)
                        if isinstance(left, ast.Constant) and left.value is None:
                            return [self.visit(part) for part in node.orelse]  # made without it
                return self.generic_visit(node)

            def visit_Expr(self, node: ast.Expr) -> Any:
                match node.value:
                    case ast.Call(ast.Name("check_size")):  # a limit of programs
                        return None
                return self.generic_visit(node)

            def visit_Attribute(self, node: ast.Attribute) -> Any:
                match node:
                    case ast.Attribute(ast.Attribute(ast.Name("F"), key), "kernel"):
                        return kernels.value(getattr(F, key))
                    case ast.Attribute(ast.Name("op"), "kernel"):  # what ops are here
                        return node.value
                return self.generic_visit(node)

            def visit_arg(self, node: ast.arg) -> Any:
                return ast.arg(node.arg)

            def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
                node.returns = None
                return self.generic_visit(node)

            def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
                if node.value is None:
                    return None
                return ast.Assign([node.target], self.visit(node.value), lineno=node.lineno)

            def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
                return None if node.level else node

        return Resolve().visit(tree)


def _returned(tree: Any) -> Any:
    """The expression of a function that is nothing else."""
    body = tree.body
    if body and isinstance(body[0], ast.Expr):  # what it says of itself
        body = body[1:]
    return body[0].value if isinstance(body[0], ast.Return) else None
