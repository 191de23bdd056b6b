"""Single changes of the code, all built in at once and each switched on by its number.

A changed place becomes `changed if __mutant__(k) else original`, so one import serves every mutant,
and `__mutant__` also says which tests come by. Used by `mutate.py`, and by `sitecustomize` in the
processes that tests start, so it depends on nothing but Python.
"""

from __future__ import annotations

import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

CONFIGURATION = "AUTODIFF_MUTANTS"
CALL = "__mutant__"
PACKAGE = Path(__file__).resolve().parents[2] / "autodiff_cli"
PRELUDE = "language.prelude"

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Site:
    """A place and one change of it; `early` when it is evaluated while its module is imported."""

    def __init__(
        self, ordinal: int, kind: str, line: int, before: str, after: str, early: bool, owner: str
    ):
        self.ordinal = ordinal
        self.kind = kind
        self.line = line
        self.before = before
        self.after = after
        self.early = early
        self.owner = owner


def _expressions(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The changes of one expression."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            changed: Any = copy.deepcopy(node)
            changed.ops = [COMPARISONS[type(op)]()]
            yield "comparison", changed
        case ast.BoolOp():
            changed = copy.deepcopy(node)
            changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "condition", changed
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "sign", copy.deepcopy(node.operand)
        case ast.BinOp() if type(node.op) in OPERATORS:
            changed = copy.deepcopy(node)
            changed.op = OPERATORS[type(node.op)]()
            yield "operator", changed
        case ast.Constant(value=bool()):
            yield "constant", ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield "constant", ast.Constant(node.value + 1)
        case ast.Constant(value=float()):
            yield "constant", ast.Constant(node.value * 1.5 if node.value else 1.0)
        case ast.Call():
            for index, keyword in enumerate(node.keywords):
                if keyword.arg is not None:
                    changed = copy.deepcopy(node)
                    del changed.keywords[index]
                    yield "argument", changed
            plain = not any(isinstance(item, ast.Starred) for item in node.args[:2])
            if plain and len(node.args) > 1 and ast.dump(node.args[0]) != ast.dump(node.args[1]):
                changed = copy.deepcopy(node)
                changed.args[:2] = changed.args[1::-1]
                yield "argument", changed


def _dropped(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


class Rewriter(ast.NodeTransformer):
    """Number every change of a tree; build those that are `chosen`, ordinal -> mutant."""

    def __init__(self, chosen: dict[int, int] | None = None):
        self.chosen = chosen or {}
        self.sites: list[Site] = []
        self.depth = 0
        self.owners: list[str] = []

    def _site(self, node: Any, kind: str, changed: Any) -> int | None:
        ordinal = len(self.sites)
        self.sites.append(
            Site(
                ordinal,
                kind,
                node.lineno,
                ast.unparse(node).split("\n")[0],
                "" if changed is None else ast.unparse(changed).split("\n")[0],
                self.depth == 0,
                ".".join(self.owners),
            )
        )
        return self.chosen.get(ordinal)

    @staticmethod
    def _switch(mutant: int) -> ast.expr:
        return ast.Call(ast.Name(CALL, ast.Load()), [ast.Constant(mutant)], [])

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr):
            return self._expression(node)
        if isinstance(node, ast.stmt):
            return self._statement(node)
        return super().visit(node)

    def _expression(self, node: ast.expr) -> ast.expr:
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return node
        if isinstance(node, ast.JoinedStr):
            for value in node.values:
                if isinstance(value, ast.FormattedValue):
                    value.value = self.visit(value.value)
            return node
        wanted = [
            (mutant, changed)
            for kind, changed in _expressions(node)
            if (mutant := self._site(node, kind, changed)) is not None
        ]
        if isinstance(node, ast.IfExp):
            wanted += self._turned(node, node.test, "test")
        if isinstance(node, ast.Lambda):
            self.depth += 1
            node.body = self.visit(node.body)
            self.depth -= 1
        else:
            self.generic_visit(node)
        for mutant, changed in wanted:
            node = ast.IfExp(self._switch(mutant), changed, node)
        return node

    def _turned(self, node: Any, test: ast.expr, field: str) -> list[tuple[int, ast.expr]]:
        """The condition of a conditional expression, turned."""
        changed = copy.deepcopy(node)
        setattr(changed, field, ast.UnaryOp(ast.Not(), copy.deepcopy(test)))
        mutant = self._site(node, "condition", changed)
        return [] if mutant is None else [(mutant, changed)]

    def _condition(self, test: ast.expr) -> ast.expr:
        changed = ast.UnaryOp(ast.Not(), copy.deepcopy(test))
        mutant = self._site(test, "condition", changed)
        test = self.visit(test)
        return test if mutant is None else ast.IfExp(self._switch(mutant), changed, test)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = self.visit(node.iter)
        node.ifs = [self._condition(test) for test in node.ifs]
        return node

    def _statement(self, node: Any) -> Any:
        match node:
            case ast.FunctionDef():
                return self._function(node)
            case ast.ClassDef():
                self.owners.append(node.name)
                node.body = self._block(node.body)
                self.owners.pop()
                return node
            case ast.If() | ast.While():
                if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                    return node
                node.test = self._condition(node.test)
                node.body = self._block(node.body)
                node.orelse = self._block(node.orelse)
                return node
            case ast.AnnAssign():
                if node.value is not None:
                    node.value = self.visit(node.value)
                return node
            case ast.Match():
                node.subject = self.visit(node.subject)
                for case in node.cases:
                    if case.guard is not None:
                        case.guard = self._condition(case.guard)
                    case.body = self._block(case.body)
                return node
            case ast.Return(value=ast.expr()) if self.depth and not (
                isinstance(node.value, ast.Constant) and node.value.value is None
            ):
                mutant = self._site(node, "result", ast.Return(ast.Constant(None)))
                self.generic_visit(node)
                if mutant is None:
                    return node
                return [ast.If(self._switch(mutant), [ast.Return(ast.Constant(None))], []), node]
        if _dropped(node):
            mutant = self._site(node, "statement", None)
            self.generic_visit(node)
            if mutant is None:
                return node
            return ast.If(ast.UnaryOp(ast.Not(), self._switch(mutant)), [node], [])
        return self.generic_visit(node)

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for item in body:
            changed = self.visit(item)
            found.extend(changed if isinstance(changed, list) else [changed])
        return found

    def _function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.owners.append(node.name)
        first = len(self.sites)
        node.decorator_list = [self.visit(item) for item in node.decorator_list]
        node.args.defaults = [self.visit(item) for item in node.args.defaults]
        node.args.kw_defaults = [item and self.visit(item) for item in node.args.kw_defaults]
        early = [
            self.chosen[site.ordinal]
            for site in self.sites[first:]
            if site.early and site.ordinal in self.chosen
        ]
        self.depth += 1
        node.body = self._block(node.body)
        self.depth -= 1
        # Whoever calls the function comes by what its decorators and defaults computed.
        marks: list[ast.stmt] = [
            ast.Expr(ast.Call(ast.Name(CALL, ast.Load()), [ast.Constant(-mutant)], []))
            for mutant in early
        ]
        place = 1 if ast.get_docstring(node) is not None else 0
        node.body[place:place] = marks
        self.owners.pop()
        return node


def sites_of(text: str) -> list[Site]:
    """All changes of a text."""
    rewriter = Rewriter()
    rewriter.visit(ast.parse(text))
    return rewriter.sites


def rewritten(text: str, chosen: dict[int, int]) -> ast.Module:
    """The text with the chosen changes (ordinal -> mutant) built in."""
    return ast.fix_missing_locations(Rewriter(chosen).visit(ast.parse(text)))


class Mutants:
    """Which mutant is on, and who came by which: `__mutant__` of the rewritten code."""

    def __init__(self, configuration: dict[str, Any]):
        self.active: int = configuration["active"]
        self.log: str | None = configuration["log"]
        self.files: dict[str, dict[int, int]] = {
            name: {int(ordinal): mutant for ordinal, mutant in chosen.items()}
            for name, chosen in configuration["files"].items()
        }
        self.folder: str = configuration["folder"]
        self.test = os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)")
        self.seen: set[tuple[int, str]] = set()

    def __call__(self, mutant: int) -> bool:
        if mutant == self.active:
            return True
        if self.log is not None and (mutant, self.test) not in self.seen:
            self.seen.add((mutant, self.test))
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(f"{abs(mutant)}\t{self.test}\n")
        return False


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules that have mutants, rewritten."""

    def __init__(self, mutants: Mutants):
        self.mutants = mutants

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("autodiff_cli."):
            return None
        file = name.removeprefix("autodiff_cli.").replace(".", "/") + ".py"
        if file not in self.mutants.files and file != "language/prelude.py":
            return None
        return importlib.util.spec_from_file_location(name, PACKAGE / file, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__file__ is not None
        file = Path(module.__file__).relative_to(PACKAGE).as_posix()
        text = Path(module.__file__).read_text("utf-8")
        tree = rewritten(text, self.mutants.files.get(file, {}))
        module.__dict__[CALL] = self.mutants
        exec(compile(tree, module.__file__, "exec"), module.__dict__)
        if module.__name__ == "autodiff_cli.language.prelude":
            self._library(module)

    def _library(self, module: ModuleType) -> None:
        """Let the library in the language be read from the folder with the rewritten texts."""
        from autodiff_cli.language.values import Builtin

        module.__dict__["FOLDER"] = Path(self.mutants.folder)
        module.__dict__["SUPPORT"] = {
            **module.__dict__["SUPPORT"], CALL: Builtin(CALL, lambda mutant: self.mutants(mutant))
        }  # fmt: skip


def install(path: str) -> Mutants:
    """Import the package with the mutants of a configuration, from now on."""
    mutants = Mutants(json.loads(Path(path).read_text("utf-8")))
    sys.meta_path.insert(0, Finder(mutants))
    return mutants
