"""Single changes of the code, all built in at once and each switched on by its number.

A changed place becomes `changed if __mutant__(k) else original`, so one import serves every mutant.
The same walk can mark instead each block of statements with `__hits__[k] = 1` (the map is shared by
all processes that a test starts), so what a test comes by is known for every later change. Used by
`mutate.py`, and by `sitecustomize` in processes that tests start: it depends only on Python.
"""

from __future__ import annotations

import ast
import copy
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import marshal
import mmap
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

CONFIGURATION = "AUTODIFF_MUTANTS"
CALL = "__mutant__"
HITS = "__hits__"
COMPARED = "__compared__"
# What `weak.py` saw of a change in a test: the same value, another, the same so often that it looks
# no more.
REACHED, CHANGED, GIVEN_UP = 1, 2, 3
OFTEN = 20
PACKAGE = Path(__file__).resolve().parents[2] / "autodiff_cli"

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
TURNED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
# Calls whose first two arguments may change places, and keywords without which the same is done.
SYMMETRIC = {
    "add", "added", "allclose", "array_equal", "broadcast_shapes", "commonprefix", "gcd", "hypot",
    "isclose", "cosine_similarity", "eq", "lcm", "logical_and", "logical_or", "max", "maximum",
    "min", "minimum", "mul", "multiply", "ne", "promote_types", "result_type", "union", "TypeVar",
    "cast", "vdot", "_mul", "may_share_memory", "bitwise_and", "bitwise_or", "bitwise_xor",
    "suppress", "logical_xor", "transpose", "transpose_", "swapaxes", "logaddexp", "fmin", "fmax",
    "common_prefix", "l1_loss", "mse_loss",
}  # fmt: skip
IDLE = {"check_circular", "encoding", "flush", "maxsize", "stacklevel", "strict", "daemon", "slots"}
# Calls of an op that the tests make: they are no code of the op.
SAMPLES = {"S", "T", "Bad", "t", "ints", "bools"}
UNSEEN = {"__repr__", "__slots__"}


class Site:
    """A place and one change of it; `early` when it is evaluated while its module is imported."""

    def __init__(self, ordinal: int, kind: str, line: int, owner: str, block: int | None):
        self.ordinal = ordinal
        self.kind = kind
        self.line = line
        self.early = block is None
        self.owner = owner
        # Who comes by: its block, or all of the function, class or module whose import it is.
        self.blocks = None if block is None else (block, block + 1)
        self.around: tuple[int, int] | None = None  # the blocks of its function
        self.before = self.after = ""
        # What the text has there, from (line, column) to (line, column), and what replaces it.
        self.span = ((0, 0), (0, 0))
        self.instead = ""


def _expressions(node: ast.expr) -> Iterator[tuple[str, Callable[[], ast.expr]]]:
    """The changes of one expression."""

    def with_field(name: str, value: Any) -> Callable[[], ast.expr]:
        def changed() -> ast.expr:
            found = copy.deepcopy(node)
            setattr(found, name, copy.deepcopy(value))
            return found

        return changed

    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield "comparison", with_field("ops", [COMPARISONS[type(op)]()])
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "condition", with_field("op", other)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "sign", lambda: copy.deepcopy(node.operand)
        case ast.BinOp() if type(node.op) in OPERATORS:
            yield "operator", with_field("op", OPERATORS[type(node.op)]())
        case ast.Constant(value=bool() as value):
            yield "constant", lambda: ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield "constant", lambda: ast.Constant(value + 1)
        case ast.Constant(value=float() as value):
            yield "constant", lambda: ast.Constant(value * 1.5 if value else 1.0)
        case ast.Call():
            for index, keyword in enumerate(node.keywords):
                if keyword.arg is not None and keyword.arg not in (*IDLE, "samples", "errors"):
                    rest = node.keywords[:index] + node.keywords[index + 1 :]
                    yield "argument", with_field("keywords", rest)
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            plain = not any(isinstance(item, ast.Starred) for item in node.args[:2])
            if plain and len(node.args) > 1 and name not in SYMMETRIC:
                first, second, *others = node.args
                if ast.dump(first) != ast.dump(second):
                    yield "argument", with_field("args", [second, first, *others])


def _any_size(call: ast.Call, item: ast.expr) -> bool:
    """Whether this is a size of NumPy's `reshape` that any negative number says."""
    return getattr(call.func, "attr", "") == "reshape" and ast.unparse(item) == "-1"


def _dropped(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


class Rewriter(ast.NodeTransformer):
    """Number every change and every block of a tree, and build the `chosen` changes (ordinal ->
    mutant), or what `mark` makes into each block."""

    def __init__(self, chosen: dict[int, int] | None = None, mark: Any = None):
        self.chosen = chosen or {}
        self.mark = mark
        self.sites: list[Site] = []
        self.depth = 0
        self.owners: list[str] = []
        # Conditions: where, the block when it holds, the block when it does not.
        self.branches: list[tuple[ast.expr, str, int, int]] = []
        self.blocks = 0
        self.block = -1

    def _site(self, node: Any, kind: str, changed: Callable[[], Any]) -> tuple[int, Any] | None:
        """The mutant of a change, and what it makes of the node, when it is built."""
        ordinal = len(self.sites)
        if any(name in UNSEEN for name in self.owners):
            return None
        block = self.block if self.depth else None
        site = Site(ordinal, kind, node.lineno, ".".join(self.owners), block)
        self.sites.append(site)
        if ordinal not in self.chosen:
            return None
        made = changed()
        text = "" if made is None else ast.unparse(made)
        site.before = ast.unparse(node).split("\n")[0]
        site.after = text.split("\n")[0]
        site.span = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        site.instead = f"({text})" if isinstance(made, ast.expr) else text or "pass"
        return self.chosen[ordinal], made

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
        if isinstance(node, ast.JoinedStr):  # the words of a message
            return node
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SAMPLES:
            return node
        wanted = [
            found
            for kind, changed in _expressions(node)
            if (found := self._site(node, kind, changed)) is not None
        ]
        if isinstance(node, ast.IfExp):
            found = self._site(node, "condition", lambda: self._turned(node))
            wanted += [] if found is None else [found]
        if isinstance(node, ast.Lambda):
            around, self.block = self.block, self.blocks
            self.blocks += 1
            self.depth += 1
            node.body = self.visit(node.body)
            self.depth -= 1
            if self.mark is not None:
                node.body = ast.BoolOp(ast.Or(), [self.mark(self.block, True), node.body])
            self.block = around
        elif isinstance(node, ast.Call):
            node.func = self.visit(node.func)
            node.args = [item if _any_size(node, item) else self.visit(item) for item in node.args]
            for keyword in node.keywords:
                if keyword.arg not in IDLE:
                    keyword.value = self.visit(keyword.value)
        else:
            self.generic_visit(node)
        for mutant, changed in wanted:
            node = ast.IfExp(self._switch(mutant), changed, node)
        return node

    @staticmethod
    def _turned(node: ast.IfExp) -> ast.expr:
        changed = copy.deepcopy(node)
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        return changed

    def _condition(self, test: ast.expr) -> ast.expr:
        found = None
        alone = isinstance(test, ast.Compare) and len(test.ops) == 1
        if not (alone and isinstance(test.ops[0], TURNED)) and not (  # type: ignore[attr-defined]  # a comparison
            isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        ):
            found = self._site(
                test, "condition", lambda: ast.UnaryOp(ast.Not(), copy.deepcopy(test))
            )
        test = self.visit(test)
        return test if found is None else ast.IfExp(self._switch(found[0]), found[1], test)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = self.visit(node.iter)
        node.ifs = [self._condition(test) for test in node.ifs]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        node.body = self._block(node.body)
        return node

    def _statement(self, node: Any) -> Any:
        match node:
            case ast.FunctionDef():
                return self._function(node)
            case ast.ClassDef():
                self.owners.append(node.name)
                first, block = len(self.sites), self.blocks
                node.body = [part for item in node.body for part in self._parts(item)]
                self._owned(first, block)
                self.owners.pop()
                return node
            case ast.If() | ast.While():
                if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                    return node
                test = copy.deepcopy(node.test)
                node.test = self._condition(node.test)
                taken = self.blocks
                node.body = self._block(node.body)
                if self.depth and isinstance(node, ast.If):
                    self.branches.append((test, ".".join(self.owners), taken, self.blocks))
                    if not node.orelse:
                        node.orelse = [] if self.mark is None else [self.mark(self.blocks, False)]
                        self.blocks += 1
                        return node
                node.orelse = self._block(node.orelse)
                return node
            case ast.AnnAssign():
                if node.value is not None:
                    node.value = self.visit(node.value)
                return node
            case ast.Assign(targets=[ast.Name(id="__slots__")]):
                return node
            case ast.Match():
                node.subject = self.visit(node.subject)
                for case in node.cases:
                    if case.guard is not None:
                        case.guard = self._condition(case.guard)
                    case.body = self._block(case.body)
                return node
            case ast.For() | ast.With():
                if isinstance(node, ast.For):
                    node.iter = self.visit(node.iter)
                    node.orelse = self._block(node.orelse)
                for item in getattr(node, "items", ()):
                    item.context_expr = self.visit(item.context_expr)
                node.body = self._block(node.body)
                return node
            case ast.Try():
                node.body = self._block(node.body)
                node.handlers = [self.visit(handler) for handler in node.handlers]
                node.orelse = self._block(node.orelse)
                node.finalbody = self._block(node.finalbody)
                return node
            case ast.Return(value=ast.expr()) if self.depth and not (
                isinstance(node.value, ast.Constant) and node.value.value in (None, False)
            ):
                found = self._site(node, "result", lambda: ast.Return(ast.Constant(None)))
                self.generic_visit(node)
                if found is None:
                    return node
                return [ast.If(self._switch(found[0]), [found[1]], []), node]
        if _dropped(node):
            found = self._site(node, "statement", lambda: None)
            # What is raised with an error are its words.
            if not isinstance(node, ast.Raise):
                self.generic_visit(node)
            if found is None:
                return node
            return ast.If(ast.UnaryOp(ast.Not(), self._switch(found[0])), [node], [])
        return self.generic_visit(node)

    def _parts(self, item: ast.stmt) -> list[ast.stmt]:
        changed = self.visit(item)
        return changed if isinstance(changed, list) else [changed]

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        around = self.block
        found: list[ast.stmt] = []
        fresh = True
        for item in body:
            if fresh and not (not found and _docstring(item)) and self.depth:
                self.block = self.blocks
                self.blocks += 1
                fresh = False
                if self.mark is not None:
                    found.append(self.mark(self.block, False))
            found += self._parts(item)
            if hasattr(item, "body") and not isinstance(item, ast.FunctionDef | ast.ClassDef):
                fresh = True
        self.block = around
        return found

    def _function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.owners.append(node.name)
        first, block = len(self.sites), self.blocks
        node.decorator_list = [self.visit(item) for item in node.decorator_list]
        node.args.defaults = [self.visit(item) for item in node.args.defaults]
        node.args.kw_defaults = [item and self.visit(item) for item in node.args.kw_defaults]
        for values in (node.args.defaults, node.args.kw_defaults):  # who defines it comes by
            if values and values[-1] is not None:
                if self.mark is not None:
                    values[-1] = ast.BoolOp(ast.Or(), [self.mark(self.blocks, True), values[-1]])
                self.blocks += 1
        self.depth += 1
        node.body = self._block(node.body)
        self.depth -= 1
        self._owned(first, block)
        self.owners.pop()
        return node

    def _owned(self, first: int, block: int) -> None:
        """Who comes by the blocks since one comes by the early sites since one."""
        for site in self.sites[first:]:
            site.around = site.around or (block, self.blocks)
            if site.blocks is None:
                site.blocks = (block, self.blocks)


def _docstring(item: ast.stmt) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def walked(text: str, chosen: dict[int, int] | None = None) -> tuple[ast.Module, Rewriter]:
    """The tree of a text with the chosen changes built in, and what was numbered."""
    rewriter = Rewriter(chosen)
    tree = ast.fix_missing_locations(rewriter.visit(ast.parse(text)))
    rewriter._owned(0, 0)
    return tree, rewriter


def marked(text: str, first: int, call: bool) -> tuple[ast.Module, int]:
    """The tree of a text with a mark in each block, the first of which has a number; how many."""

    def mark(block: int, expression: bool) -> Any:
        number = ast.Constant(first + block)
        if call or expression:
            name = CALL if call else "__hit__"
            made = ast.Call(ast.Name(name, ast.Load()), [number], [])
            return made if expression else ast.Expr(made)
        target = ast.Subscript(ast.Name(HITS, ast.Load()), number, ast.Store())
        return ast.Assign([target], ast.Constant(1))

    rewriter = Rewriter(mark=mark)
    tree = ast.fix_missing_locations(rewriter.visit(ast.parse(text)))
    return tree, rewriter.blocks


class Mutants:
    """Which mutant is on, or where the marks are kept: `__mutant__` of the rewritten code."""

    def __init__(self, configuration: dict[str, Any]):
        self.active: int = configuration["active"]
        self.files: dict[str, dict[int, int]] = {
            name: {int(ordinal): mutant for ordinal, mutant in chosen.items()}
            for name, chosen in configuration["files"].items()
        }
        self.firsts: dict[str, int] = configuration["firsts"]
        self.folder: str = configuration["folder"]
        self.hits: Any = None
        if configuration["hits"]:
            with open(configuration["hits"], "r+b") as file:
                self.hits = mmap.mmap(file.fileno(), 0)
        self.compared = Compared(self.hits)

    def __call__(self, number: int) -> bool:
        if self.hits is not None:
            self.hits[number] = 1
            return False
        return number == self.active


class Compared:
    """`__compared__` of code that `weak.py` rewrote: marks the changes that tests come by, and
    those that make another value."""

    def __init__(self, marks: Any):
        self.marks = marks
        self.often: dict[int, int] = defaultdict(int)
        self.defaults: dict[tuple[int, str], tuple[Any, Any]] = {}
        self.arguments: dict[int, list[Any]] = {}

    def over(self, numbers: tuple[int, ...]) -> bool:
        """Whether nothing is left to be seen of these changes."""
        return all(self.marks[number] >= CHANGED for number in numbers)

    def anew(self) -> None:
        """Forget what was seen: another test begins."""
        self.often.clear()
        self.arguments.clear()

    def value(self, numbers: tuple[int, ...], truth: bool, *ways: Callable[[], Any]) -> Any:
        """What the first way gives; the others are its changes. Only its truth is asked for, or
        all of it."""
        found = ways[0]()
        for number, changed in zip(numbers, ways[1:], strict=True):
            self.assigned(number, changed, found, truth)
        return found

    def assigned(
        self, number: int, other: Callable[[], Any], value: Any, truth: bool = False
    ) -> Any:
        """A value, beside what it is with a change, or was before it was assigned."""
        if self.marks[number] < CHANGED:
            self.marks[number] = CHANGED  # what is asked may come here again
            try:
                same = bool(value) == bool(other()) if truth else _same(value, other())
            except RecursionError:
                raise
            except Exception:
                same = False
            self.often[number] += same
            if same:
                self.marks[number] = GIVEN_UP if self.often[number] == OFTEN else REACHED
        return value

    def keyword(self, number: int, function: Any, name: str, value: Any) -> Any:
        """The value of a keyword, which could be left out if it is the default."""
        return self.assigned(number, lambda: self._default(function, name), value)

    def _default(self, function: Any, name: str) -> Any:
        function = getattr(function, "__func__", function)
        key = (id(function), name)
        if key not in self.defaults:
            default = inspect.signature(function).parameters[name].default
            self.defaults[key] = function, default
        return self.defaults[key][1]

    def first(self, number: int, value: Any) -> Any:
        """The first argument of a call; `second` is beside it."""
        if self.marks[number] < CHANGED:
            self.arguments.setdefault(number, []).append(value)
        return value

    def second(self, number: int, value: Any) -> Any:
        kept = self.arguments.get(number)
        return self.assigned(number, kept.pop, value) if kept else value


def _same(one: Any, other: Any, depth: int = 8) -> bool:
    """Whether two values are the same for whoever looks at them; of other objects, and of what
    lies too deep: are one."""
    if one is other:
        return True
    if type(one) is not type(other) or depth == 0:
        return False
    match one:
        case bool() | int() | str() | bytes() | slice() | set() | frozenset() | range():
            return bool(one == other)
        case float():
            return one == other or (one != one and other != other)
        case tuple() | list():
            inner = zip(one, other, strict=False)
            return len(one) == len(other) and all(_same(*pair, depth - 1) for pair in inner)
        case dict():
            pairs = ((one[key], other[key]) for key in one)
            return list(one) == list(other) and all(_same(*pair, depth - 1) for pair in pairs)
    if type(one).__module__ == "numpy":
        import numpy as np

        alike = (one.dtype, one.shape) == (other.dtype, other.shape) and one.size < 100_000
        return alike and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return False


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that have mutants or marks."""

    def __init__(self, mutants: Mutants):
        self.mutants = mutants

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        package, *parts = name.split(".")
        if package != "autodiff_cli":
            return None
        file = "/".join(parts) + ".py"
        if not (PACKAGE / file).is_file():
            file = "/".join([*parts, "__init__.py"])
        known = (*self.mutants.files, *self.mutants.firsts, "language/nn/prelude.py")
        if file not in known:
            return None
        inner = [str((PACKAGE / file).parent)] if file.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(
            name,
            PACKAGE / file,
            loader=Loader(self.mutants, name, str(PACKAGE / file)),
            submodule_search_locations=inner,
        )


class Loader(importlib.machinery.SourceFileLoader):
    """Runs a module rewritten; its data files are those of any module."""

    def __init__(self, mutants: Mutants, name: str, path: str):
        super().__init__(name, path)
        self.mutants = mutants

    def exec_module(self, module: ModuleType) -> None:
        assert module.__file__ is not None
        file = Path(module.__file__).relative_to(PACKAGE).as_posix()
        # Processes that tests start find the code that this one compiled.
        kept = Path(self.mutants.folder, file.replace("/", "."))
        try:
            code = marshal.loads(kept.read_bytes())
        except OSError:
            code = self._code(file, module.__file__)
            part = kept.with_suffix(f".{os.getpid()}")
            part.write_bytes(marshal.dumps(code))
            part.replace(kept)
        module.__dict__[CALL] = module.__dict__["__hit__"] = self.mutants
        module.__dict__[HITS] = self.mutants.hits
        module.__dict__[COMPARED] = self.mutants.compared
        exec(code, module.__dict__)
        if module.__name__ == "autodiff_cli.language.nn.prelude":
            self._library(module)

    def _code(self, file: str, path: str) -> Any:
        text = Path(path).read_text("utf-8")
        if file in self.mutants.firsts:
            tree, _ = marked(text, self.mutants.firsts[file], call=False)
        else:
            tree, _ = walked(text, self.mutants.files.get(file, {}))
        return compile(tree, path, "exec")

    def _library(self, module: ModuleType) -> None:
        """Let the library in the language be read from the folder with the rewritten texts."""
        from autodiff_cli.language.values.values import Builtin

        module.__dict__["FOLDER"] = Path(self.mutants.folder)
        module.__dict__["SUPPORT"] = {
            **module.__dict__["SUPPORT"], CALL: Builtin(CALL, lambda number: self.mutants(number))
        }  # fmt: skip


class Finders(list[Any]):
    """Finders of modules, ours first: pytest's, which rewrites the asserts of plugins, stays
    behind."""

    def insert(self, index: Any, finder: Any) -> None:
        super().insert(max(int(index), 1), finder)


def install(path: str) -> Mutants:
    """Import the package with the mutants or marks of a configuration, from now on."""
    mutants = Mutants(json.loads(Path(path).read_text("utf-8")))
    sys.meta_path = Finders([Finder(mutants), *sys.meta_path])
    return mutants


def imported(mutants: Mutants) -> Mutants:
    """Import the library before pytest's own finder comes first."""
    importlib.import_module("autodiff_cli.language.nn.prelude")
    return mutants


if os.environ.get(CONFIGURATION) and __name__ == "_mutants":
    install(os.environ[CONFIGURATION])
