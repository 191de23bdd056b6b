"""Which names code reads from outside of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import tree as syntax
from .scoping import DEFINITIONS, assigned_names, target_names

COMPREHENSIONS = (syntax.ListComp, syntax.SetComp, syntax.GeneratorExp, syntax.DictComp)


def read_by(tree: syntax.Node) -> set[str]:
    """The names that an expression or a simple statement reads."""
    found: set[str] = set()
    _collect(tree, frozenset(), found)
    return found


def names_read(tree: syntax.Node) -> Iterator[syntax.Name]:
    """Names that a statement certainly reads here: not those of bodies that run later, or never."""
    if isinstance(tree, syntax.AugAssign):
        read = [tree.target, tree.value]
    elif isinstance(tree, syntax.ExprStmt | syntax.Assign):
        read = [tree.value]
    elif isinstance(tree, syntax.For):
        read = [tree.iter]
    elif isinstance(tree, syntax.If | syntax.While):
        read = [tree.test]
    else:
        return
    later = (*COMPREHENSIONS, syntax.Lambda, syntax.IfExp, syntax.BoolOp)
    yield from (n for n in syntax.within(read, later) if isinstance(n, syntax.Name))


def read_first(trees: Iterable[syntax.Node], before: set[str]) -> Iterator[str]:
    """Names that statements, those in their blocks among them, read before one of them assigns
    them; `before` are those already assigned, and grow."""
    for tree in trees:
        yield from (name.id for name in names_read(tree) if name.id not in before)
        if isinstance(tree, syntax.For):
            before |= set(target_names(tree.target))
        if not isinstance(tree, DEFINITIONS):
            yield from read_first(syntax.below(tree), before)
        before |= assigned_names([tree])[0]


def free_names(function: syntax.Node) -> set[str]:
    """The names that a `def` or `lambda` reads from outside when it runs."""
    found: set[str] = set()
    _function(function, frozenset(), found)
    return found


def _function(tree: syntax.Node, bound: frozenset[str], found: set[str]) -> None:
    inner = bound | {p.name for p in tree.params}  # type: ignore[attr-defined]  # of both
    if isinstance(tree, syntax.Lambda):
        _collect(tree.body, inner, found)
    elif isinstance(tree, syntax.FunctionDef):
        names, _ = assigned_names(tree.body)
        _all(tree.body, inner | names, found)


def _all(trees: Iterable[syntax.Node], bound: frozenset[str], found: set[str]) -> None:
    for tree in trees:
        _collect(tree, bound, found)


def _collect(tree: syntax.Node, bound: frozenset[str], found: set[str]) -> None:
    if isinstance(tree, syntax.Name):
        if tree.id not in bound:
            found.add(tree.id)
    elif isinstance(tree, syntax.Lambda | syntax.FunctionDef):
        _function(tree, bound, found)
        for param in tree.params:
            _all(syntax.children(param), bound, found)
        if isinstance(tree, syntax.FunctionDef):
            _all(tree.decorators, bound, found)
    elif isinstance(tree, COMPREHENSIONS):
        targets = {n for g in tree.generators for n in target_names(g.target)}
        _all(syntax.children(tree), bound | targets, found)
        for generator in tree.generators:  # the first is evaluated outside
            _collect(generator.iter, bound, found)
    else:
        _all(syntax.children(tree), bound, found)
