"""The session as a program: what `:save` writes, `:list defs` shows and other commands run.

Invariant: run as a file it makes the same names with the same values; what only showed something,
or was overwritten before anybody read it, is left out of `saved`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..language.runtime.namespaces import MODULES, PREDEFINED
from ..language.syntax import tree as syntax
from ..language.syntax.scoping import assigned_names, target_names
from .entries import Entry, Problem


class Line(NamedTuple):
    """One statement: what it binds and reads, and whether it does anything else."""

    tree: syntax.Node
    text: str
    binds: frozenset[str]
    reads: frozenset[str]
    pure: bool
    looking: bool


def whole(entries: list[Entry], python: bool) -> str:
    """Every statement in order."""
    return _joined(_lines(entries, python))


def as_entered(entries: list[Entry]) -> str:
    """What was typed, with its comments."""
    return "".join(f"{entry.text}\n" for entry in entries)


def saved(entries: list[Entry], python: bool) -> tuple[str, int]:
    """The statements that the names of the session need, and how many they are."""
    lines = _lines(entries, python)
    later = set().union(*(_late_names(line.tree) for line in lines))
    needed: set[str] = set()
    settled: set[str] = set()  # names whose last assignment was met
    kept: list[Line] = []
    for line in reversed(lines):
        if line.looking:
            continue
        if line.pure and line.binds and not (line.binds & later):
            wanted = any(name in needed or name not in settled for name in line.binds)
            if not wanted:
                continue
        kept.append(line)
        settled |= line.binds
        needed -= line.binds
        needed |= line.reads
    kept.reverse()
    return _joined(kept), len(kept)


def _joined(lines: list[Line]) -> str:
    return "".join(f"{line.text}\n" for line in lines)


def _lines(entries: list[Entry], python: bool) -> list[Line]:
    lines: list[Line] = []
    trees = [(tree, entry) for entry in entries for tree in entry.trees]
    for (tree, entry), last_value_read in zip(trees, _last_value_read(trees), strict=True):
        text = statement_text(tree)
        pure = entry.pure
        looking = isinstance(tree, syntax.ExprStmt) and (pure or entry.looks)
        binds, reads = assigned_names([tree])[0], _reads(tree)
        if looking and last_value_read:
            # `_` means nothing in a file: it gets the name that the statements below read.
            # A literal alone would become a tensor there: it is taken out of a pair.
            literal = not any(isinstance(n, syntax.Name) for n in syntax.walk(tree))
            text = f"_ = ({text},)[0]" if literal else f"_ = {text}"
            binds, looking = {"_"}, False
        if isinstance(tree, syntax.Import | syntax.ImportFrom) and not python:
            text = _without_import(tree)
            if not text.strip("#"):
                continue
        lines.append(Line(tree, text, frozenset(binds), frozenset(reads), pure, looking))
    return lines


def statement_text(tree: syntax.Node) -> str:
    """A statement as it was written, without what stands before it on its first line."""
    return tree.span.text.rstrip()


def _last_value_read(trees: list[tuple[syntax.Node, Entry]]) -> list[bool]:
    """Of each statement, whether one below reads `_` before a bare expression gives it a value."""
    found: list[bool] = []
    read = False
    for tree, _ in reversed(trees):
        found.append(read)
        read = "_" in _reads(tree) or (read and not isinstance(tree, syntax.ExprStmt))
    return found[::-1]


def _reads(tree: syntax.Node) -> set[str]:
    """Names that a statement may read, also those it assigns in part (`x[0] = 1`, `x += 1`)."""
    targets: set[int] = set()
    if isinstance(tree, syntax.Assign):
        for target in tree.targets:
            if target_names(target) and not isinstance(target, syntax.Subscript):
                targets.update(id(node) for node in syntax.walk(target))
    return {
        node.id
        for node in syntax.walk(tree)
        if isinstance(node, syntax.Name) and id(node) not in targets
    }


def _late_names(tree: syntax.Node) -> set[str]:
    """Names that functions and classes read whenever they are called."""
    found: set[str] = set()
    for node in syntax.walk(tree):
        if isinstance(node, syntax.FunctionDef | syntax.ClassDef | syntax.Lambda):
            found |= {n.id for n in syntax.walk(node) if isinstance(n, syntax.Name)}
    return found


def _without_import(tree: syntax.Import | syntax.ImportFrom) -> str:
    """An import of a native session as what a native file writes: PyTorch's names are there
    already. A `#` alone: nothing at all."""
    pairs: list[tuple[str, str]] = []
    for alias in tree.names:
        module = alias.name if isinstance(tree, syntax.Import) else tree.module
        if MODULES.get(module, "python.").startswith("python."):
            raise Problem(
                f"with `{statement_text(tree)}` a file is Python: its numbers are no tensors",
                "`:reset`, and begin with the import",
            )
        whole = isinstance(tree, syntax.Import)
        name = module if whole else alias.name
        pairs.append((alias.asname or name, module if whole else f"{module}.{name}"))
    lines = [f"{name} = {dotted}" for name, dotted in pairs if not _is_known(name, dotted)]
    return "; ".join(lines) or "#"


def _is_known(name: str, dotted: str) -> bool:
    return name == dotted or (name in PREDEFINED and PREDEFINED[name] == MODULES.get(dotted))
