"""Which names a body of statements binds."""

from __future__ import annotations

from collections.abc import Sequence

from . import tree as syntax

DEFINITIONS = (syntax.FunctionDef, syntax.ClassDef)


def assigned_names(trees: list[syntax.Node]) -> tuple[set[str], set[str]]:
    """Names that a function body assigns, and those it declares global."""
    found = _named_inside(trees)
    outer: set[str] = set()
    for node in syntax.within(trees, DEFINITIONS, syntax.below):
        if isinstance(node, DEFINITIONS):
            found.add(node.name)
        elif isinstance(node, syntax.Global | syntax.Nonlocal):
            outer.update(node.names)
        elif isinstance(node, syntax.Assign):
            for target in node.targets:
                found.update(target_names(target))
        elif isinstance(node, syntax.AugAssign | syntax.AnnAssign | syntax.For):
            found.update(target_names(node.target))
        elif isinstance(node, syntax.Import | syntax.ImportFrom):
            found.update(a.asname or a.name.split(".")[0] for a in node.names)
        elif isinstance(node, syntax.Try):
            found.update(h.name for h in node.handlers if h.name is not None)
        elif isinstance(node, syntax.With):
            for item in node.items:
                if item.target is not None:
                    found.update(target_names(item.target))
    return found - outer, outer


def _named_inside(trees: list[syntax.Node]) -> set[str]:
    """The names that `:=` binds, also in comprehensions, but not in functions inside."""
    if not trees or not trees[0].span.source.has(":="):
        return set()
    inside = syntax.within(trees, (*DEFINITIONS, syntax.Lambda))
    return {node.target.id for node in inside if isinstance(node, syntax.NamedExpr)}


def yields(trees: Sequence[syntax.Node]) -> bool:
    """Whether a body, or an expression, has a `yield` of its own."""
    return bool(trees) and trees[0].span.source.has("yield") and first_yield(trees) is not None


def first_yield(trees: Sequence[syntax.Node]) -> syntax.Yield | None:
    """A `yield` in these trees that belongs to the function around them."""
    inside = syntax.within(trees, (*DEFINITIONS, syntax.Lambda, syntax.Yield))
    return next((node for node in inside if isinstance(node, syntax.Yield)), None)


def target_names(tree: syntax.Node) -> list[str]:
    if isinstance(tree, syntax.Name):
        return [tree.id]
    if isinstance(tree, syntax.Tuple | syntax.List):
        return [n for t in tree.elements for n in target_names(t)]
    if isinstance(tree, syntax.Starred):
        return target_names(tree.value)
    return []


def declared_global(trees: list[syntax.Node]) -> set[str]:
    """The names that `global` names in a body, but not in functions inside."""
    inside = syntax.within(trees, DEFINITIONS, syntax.below)
    return {name for node in inside if isinstance(node, syntax.Global) for name in node.names}
