"""The import contracts of pyproject.toml hold: layers, lark, rich and click, no oracle; and few
modules import one another, those counted that are imported inside functions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

PACKAGE = "autodiff_cli"
LATE = 195  # imports of our own inside functions: what start-up need not load; may only fall
KNOT = 4  # modules that import one another
# Imports inside functions of modules that every run loads, with the reason; besides those of
# `cli`, where the process that waits for a run, and commands that run nothing, do without them.
EARLY = {
    ("__init__", "errors"): "the process that waits",
    ("session", "graph.state"): "the process that waits",
    ("session", "language.program.running"): "the process that waits",
    ("isolated", "checks.deadline"): "the process that waits",
    ("checks.deadline", "graph.state"): "the process that waits",
    ("render.files", "render.values"): "commands that write no table",
    ("render.files", "render.selection"): "commands that write no table",
    ("graph.symbolic_numbers", "graph.op"): "they need each other",
    ("language.python.math_names", "language.python.builtins"): "they need each other",
    ("language.values.operations", "language.values.subscripts"): "they need each other",
}

TYPING = re.compile(r"^( *)if TYPE_CHECKING:\n(?:\1 +.*\n|\n)+", re.M)
IMPORT = re.compile(r"^( *)from (\.+)([\w.]*) import (\([^)]*\)|.*)", re.M)


def test_import_contracts(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    status = lint_imports(config_filename=str(project / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out


@cache
def imports(root: Path) -> tuple[dict[str, set[str]], list[tuple[str, str]]]:
    """The modules that each module imports when it runs, and the imports in functions: what
    imports, and what."""
    texts = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        texts[".".join(parts)] = TYPING.sub("", path.read_text(encoding="utf-8"))
    edges: dict[str, set[str]] = {}
    late = []
    for module, text in texts.items():
        edges[module] = set()
        for indent, dots, below, names in IMPORT.findall(text):
            package = module.split(".")[: -len(dots)]
            start = ".".join([*package, *filter(None, [below])])
            for name in re.findall(r"\w+", re.sub(r" as \w+|#.*", "", names)):
                full = f"{start}.{name}".strip(".")
                full = full if full in texts else start
                edges[module].add(full)
            if indent:
                late.append((module, full))
    return {m: {t for t in found if t in texts} for m, found in edges.items()}, late


def knots(edges: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import one another, found by shrinking cycles to one module."""
    members = {module: [module] for module in edges}
    edges = {module: set(found) - {module} for module, found in edges.items()}
    while True:
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as error:
            kept, *others = set(error.args[1])
            for other in others:
                members[kept] += members.pop(other)
                edges[kept] |= edges.pop(other)
            gone = set(others)
            for module, found in edges.items():
                if found & gone:
                    edges[module] = (found - gone) | {kept}
            edges[kept].discard(kept)
        else:
            return [found for found in members.values() if len(found) > 1]


def test_few_modules_import_one_another(project: Path) -> None:
    edges, late = imports(project / PACKAGE)
    assert len(edges) > 400
    assert {"language.values.values", "graph.state"} <= edges["language.values.operations"]
    largest = max(knots(edges), key=len)
    assert len(largest) <= KNOT, sorted(largest)
    assert len(late) <= LATE


def test_each_package_says_what_it_is(project: Path) -> None:
    page = (project / "docs" / "design.md").read_text(encoding="utf-8")
    for path in (project / PACKAGE).rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        package = path.parent.relative_to(project / PACKAGE)
        above = len(package.parts) == 1 or package.parts[:-1] == ("language",)
        assert not above or f" {package.name}/ " in page, package


LOADED = """
import io, sys
from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
main(["run", *sys.argv[1:]], Environment(io.StringIO(), io.StringIO(), io.StringIO(), {}))
print(*[name.removeprefix("autodiff_cli.") for name in sys.modules])
"""


def test_imports_in_functions_are_of_what_start_up_does_not_load(project: Path) -> None:
    done = [
        subprocess.run(
            [sys.executable, "-c", LOADED, sample], cwd=project, capture_output=True, text=True
        )
        for sample in ("samples/demo.expr", "samples/tutorial.py")
    ]
    loaded = set.intersection(*[set(run.stdout.split()) for run in done])
    assert "engine.evaluate" in loaded and "checks.runner" not in loaded
    late = imports(project / PACKAGE)[1]
    early = {pair for pair in late if pair[1] in loaded and not pair[0].startswith("cli.")}
    assert early == set(EARLY)


def test_knots_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d", "e"}, "f": {"a"}}
    assert sorted(map(sorted, knots(edges))) == [["a", "b", "c"], ["d", "e"]]
