"""Changes of the code that no test can notice: what is changed has the same value in all of them.

    python -m tests.oracles.weak [--only REGEX] [--tests TESTS ...] [--workers 2] [--keep FOLDER]

Weak mutation: the suite runs once; where an expression without effects is evaluated, each of the
changes that `mutants.py` makes of it is evaluated beside it, until one has another value. So are
keywords whose value is the default, first arguments that are the same, and what is assigned where
it was before. A line a place that tests came by, or not, and never with another value; a test that
evaluates a place twenty times looks no more. Which tests see which change is kept for `mutate.py
--values`.
A test that looks at frames, times or memory may fail here; what it came by counts.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import marshal
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from . import mutate
from .mutants import (
    CHANGED,
    COMPARED,
    PACKAGE,
    SAMPLES,
    TURNED,
    Mutants,
    Rewriter,
    Site,
    imported,
    install,
)

# Calls without effects, by name and by method; those of NumPy and of `math` are but for a few.
FUNCTIONS = """
    len isinstance issubclass type abs min max int bool float str getattr hasattr id tuple range set
    frozenset list dict round repr prod sorted sum any all callable chr ord divmod zip enumerate
    reversed is_float is_int
"""
METHODS = """
    startswith endswith get isdisjoint issubset issuperset isidentifier isdigit isalpha isspace
    isupper islower bit_length strip lstrip rstrip split rsplit partition rpartition splitlines
    lower upper count find rfind index join replace keys values items copy union is_integer title
    removeprefix removesuffix ljust rjust center format
"""
ARRAYS = "reshape astype sum max min mean transpose ravel tolist item any all argsort"
EFFECTS = "save copyto put seterr random empty empty_like frombuffer open_memmap at"
SYSTEM = "os shutil signal queue sys time"
NUMERIC = re.compile("ops/kernels|autograd/random|engine|language/syntax/literals|checks|render")
NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


def is_pure(node: ast.expr, arrays: bool) -> bool:
    """Whether an expression can be evaluated twice; `arrays`: methods are those of arrays."""
    for part in ast.walk(node):
        match part:
            case ast.Call(keywords=keywords) if any(k.arg == "out" for k in keywords):
                return False
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS.split():
                continue
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name in SYSTEM.split():
                return False
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "math"), attr=attr)):
                if attr in EFFECTS.split():
                    return False
            case ast.Call(func=ast.Attribute(attr=attr)):
                if attr not in METHODS.split() and not (arrays and attr in ARRAYS.split()):
                    return False
            case ast.Call() | ast.NamedExpr() | ast.Yield() | ast.YieldFrom() | ast.Lambda():
                return False
    return not isinstance(node, ast.GeneratorExp)


class Numbered(Rewriter):
    """Sites that know what they change."""

    def _site(self, node: Any, kind: str, changed: Any) -> Any:
        known = len(self.sites)
        super()._site(node, kind, changed)
        for site in self.sites[known:]:
            made = changed()
            site.before = ast.unparse(node).split("\n")[0]
            site.after = "" if made is None else ast.unparse(made).split("\n")[0]
            self.changes.setdefault(id(node), []).append((site, node, made))

    def __init__(self) -> None:
        super().__init__()
        self.changes: dict[int, list[tuple[Site, Any, Any]]] = {}


class Comparer(ast.NodeTransformer):
    """Builds the comparisons into the tree that was numbered."""

    def __init__(self, numbered: Numbered, first: int, arrays: bool):
        self.changes = numbered.changes
        self.first = first
        self.arrays = arrays
        self.depth = 0
        self.making = False  # in `__init__`, where what is assigned was nothing before
        self.truths: set[int] = set()
        self.compared: list[Site] = []

    def _numbers(self, sites: Iterable[Site]) -> list[ast.expr]:
        found = list(sites)
        self.compared += found
        return [ast.Constant(self.first + site.ordinal) for site in found]

    @staticmethod
    def _asked(method: str, *args: ast.expr) -> ast.Call:
        return ast.Call(
            ast.Attribute(ast.Name(COMPARED, ast.Load()), method, ast.Load()), list(args), []
        )

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        around, self.making = self.making, node.name == "__init__"
        self.depth += 1
        node.body = [self.visit(item) for item in node.body]
        self.depth -= 1
        self.making = around
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        around, self.depth = self.depth, 0
        node.body = [self.visit(item) for item in node.body]
        self.depth = around
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.depth += 1
        node.body = self.visit(node.body)
        self.depth -= 1
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> Any:
        return node

    def visit(self, node: ast.AST) -> Any:
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return node
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                self.truths.add(id(test))
            case ast.comprehension(ifs=tests):
                self.truths.update(map(id, tests))
            case ast.match_case(guard=ast.expr() as test):
                self.truths.add(id(test))
        plain = isinstance(node, ast.Name | ast.Constant | ast.Starred)
        if isinstance(node, ast.expr) and self.depth and not plain and is_pure(node, self.arrays):
            return self._pure(node, id(node) in self.truths)
        return super().visit(node)

    def _pure(self, node: ast.expr, truth: bool) -> ast.expr:
        sites, ways = [], [copy.deepcopy(node)]
        for part in ast.walk(node):
            for site, _, made in self.changes.get(id(part), ()):
                # A condition that is turned has another value wherever tests come by.
                top = truth and part is node and isinstance(part, ast.Compare)
                if isinstance(made, ast.UnaryOp) and site.kind == "condition":
                    continue
                if not (top and isinstance(part.ops[0], TURNED)):  # type: ignore[attr-defined]  # a comparison
                    sites.append(site)
                    ways.append(copy.deepcopy(node, {id(part): made}))
        if not sites:
            return node
        numbers = ast.Tuple(self._numbers(sites), ast.Load())
        given = [ast.Lambda(NO_ARGUMENTS, way) for way in ways]
        value = self._asked("value", numbers, ast.Constant(truth), *given)
        return ast.IfExp(self._asked("over", copy.deepcopy(numbers)), node, value)

    def visit_Call(self, node: ast.Call) -> Any:
        if getattr(node.func, "id", "") in SAMPLES:
            return node
        names = [keyword.arg for keyword in node.keywords]
        function = copy.deepcopy(node.func)
        named = all(
            isinstance(part, ast.Name | ast.Attribute | ast.Load) for part in ast.walk(function)
        )
        self.generic_visit(node)
        for site, _, made in self.changes.get(id(node), ()):
            if site.kind != "argument":
                continue
            left = [keyword.arg for keyword in made.keywords]
            if left == names:
                number = self._numbers([site])
                one, other = node.args[:2]
                node.args[:2] = (
                    self._asked("first", *number, one),
                    self._asked("second", *number, other),
                )
            elif named:
                at = next(i for i, name in enumerate(names) if [*left, None][i] != name)
                keyword = node.keywords[at]
                given = (copy.deepcopy(function), ast.Constant(keyword.arg), keyword.value)
                keyword.value = self._asked("keyword", *self._numbers([site]), *given)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        for site, _, made in self.changes.get(id(node), ()):
            target = copy.deepcopy(node.targets[0])
            if self.depth and made is None and not self.making and is_pure(target, self.arrays):
                target.ctx = ast.Load()  # type: ignore[attr-defined]  # an attribute or an item
                before = ast.Lambda(NO_ARGUMENTS, target)
                node.value = self._asked("assigned", *self._numbers([site]), before, node.value)
        return node


def rewritten(folder: Path) -> tuple[dict[int, str], dict[str, int]]:
    """The places that are compared, by number, and the numbers of all by key; their code is left
    in a folder."""
    found: dict[int, str] = {}
    numbers: dict[str, int] = {}
    first = 0
    for name in mutate.files():
        if not name.endswith(".py"):
            continue
        path = PACKAGE / name
        numbered = Numbered()
        tree = numbered.visit(ast.parse(path.read_text("utf-8")))
        comparer = Comparer(numbered, first, NUMERIC.match(name) is not None)
        code = compile(ast.fix_missing_locations(comparer.visit(tree)), str(path), "exec")
        (folder / name.replace("/", ".")).write_bytes(marshal.dumps(code))
        for site in comparer.compared:
            change = f"{site.before[:90]} -> {site.after[:90]}"
            found[first + site.ordinal] = f"{name}:{site.line} {site.kind} {site.owner}: {change}"
        numbers.update({key: first + i for i, key in enumerate(mutate.keys(name, numbered.sites))})
        first += len(numbered.sites)
    return found, numbers


class Watcher(mutate.Recorder):
    """A pytest plugin that runs a share of the tests and notes the changes that each sees."""

    def __init__(self, mutants: Mutants, places: int, share: tuple[int, int], rows: Any):
        super().__init__(mutants.hits, places, share, rows)
        self.compared = mutants.compared
        self.reached = bytearray(places)

    def _row(self, test: str, marks: Any) -> None:
        import numpy as np

        self.compared.anew()
        np.frombuffer(self.reached, np.uint8)[:] |= marks
        super()._row(test, marks == CHANGED)


def watched(folder: Path, places: int, share: tuple[int, int], given: list[str]) -> int:
    """Run a share of the tests on the rewritten code, in a process of its own; its number."""
    process = os.fork()
    if process:
        return process
    try:
        mutants = imported(install(given[0]))
        mutate.hand_down()
        with open(folder / f"rows-{share[0]}", "wb") as rows:
            watcher = Watcher(mutants, places, share, rows)
            pytest.main([*mutate.QUIET, *given[1:]], plugins=[watcher])
        (folder / f"reached-{share[0]}").write_bytes(watcher.reached)
    finally:
        os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="files whose name matches")
    parser.add_argument("--tests", nargs="*", default=[], help="instead of the whole suite")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--keep", type=Path, help="a new folder for what each test sees")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        built = mutate.Built(Path(name, "built"), [])
        places, numbers = rewritten(built.folder / "prelude")
        count = len(numbers)
        built.firsts = dict.fromkeys(filter(lambda file: file.endswith(".py"), mutate.files()), 0)
        folder = given.keep or Path(name, "kept")
        folder.mkdir()
        (folder / "numbers").write_text(json.dumps(numbers))
        started = []
        for share in range(given.workers):
            marks = folder / f"hits-{share}"
            marks.write_bytes(bytes(count + 8))
            told = [built.configuration(0, str(marks)), *given.tests]
            started.append(watched(folder, count, (share, given.workers), told))
        for process in started:
            os.waitpid(process, 0)
        seen = mutate.Reach(folder).tests_by_block()
        reached = [path.read_bytes() for path in folder.glob("reached-*")]
    for number, place in places.items():
        if not seen[number] and re.search(given.only, place):
            print(place, "" if any(part[number] for part in reached) else "(no test comes by)")


if __name__ == "__main__":
    main()
