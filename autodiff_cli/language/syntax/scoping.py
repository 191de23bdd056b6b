"""Which names a body of statements binds."""

from __future__ import annotations

from . import tree as syntax


def assigned_names(trees: list[syntax.Node]) -> tuple[set[str], set[str]]:
    """Names that a function body assigns, and those it declares global."""
    found = _named_inside(trees)
    outer: set[str] = set()
    pending: list[syntax.Node] = list(trees)
    while pending:
        node = pending.pop()
        if isinstance(node, syntax.FunctionDef | syntax.ClassDef):
            found.add(node.name)
            continue
        if isinstance(
            node,
            syntax.Lambda
            | syntax.ListComp
            | syntax.GeneratorExp
            | syntax.SetComp
            | syntax.DictComp,
        ):
            continue
        if isinstance(node, syntax.Global | syntax.Nonlocal):
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
        for body in syntax.bodies(node):
            pending.extend(body)
    return found - outer, outer


def _named_inside(trees: list[syntax.Node]) -> set[str]:
    """The names that `:=` binds, also in comprehensions, but not in functions inside."""
    found: set[str] = set()
    if not trees or not trees[0].span.source.has(":="):
        return found
    pending = list(trees)
    while pending:
        node = pending.pop()
        if isinstance(node, syntax.FunctionDef | syntax.ClassDef | syntax.Lambda):
            continue
        if isinstance(node, syntax.NamedExpr):
            found.update(target_names(node.target))
        pending.extend(syntax.children(node))
    return found


def yields(trees: list[syntax.Node]) -> bool:
    """Whether a body, or an expression, has a `yield` of its own."""
    return bool(trees) and trees[0].span.source.has("yield") and first_yield(trees) is not None


def first_yield(trees: list[syntax.Node]) -> syntax.Yield | None:
    """A `yield` in these trees that belongs to the function around them."""
    pending = list(trees)
    while pending:
        node = pending.pop()
        if isinstance(node, syntax.Yield):
            return node
        if not isinstance(node, syntax.FunctionDef | syntax.ClassDef | syntax.Lambda):
            pending.extend(syntax.children(node))
    return None


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
    found: set[str] = set()
    pending = list(trees)
    while pending:
        node = pending.pop()
        if isinstance(node, syntax.Global):
            found.update(node.names)
        elif not isinstance(node, syntax.FunctionDef | syntax.ClassDef):
            for body in syntax.bodies(node):
                pending.extend(body)
    return found
