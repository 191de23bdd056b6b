"""Which names statements bind, and statements in places where they mean nothing: E111."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import AutodiffError, fail
from . import tree as syntax
from .tokens import KIND

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


# ---- misplaced statements ------------------------------------------------------------------------

_MESSAGES: dict[type, tuple[str, str, str]] = {
    syntax.Return: (
        "`return` outside a function",
        "no `def` around it",
        "assign the value to a name: `result = ...`",
    ),
    syntax.Break: ("`break` outside a loop", "no loop around it", "remove this line"),
    syntax.Continue: ("`continue` outside a loop", "no loop around it", "remove this line"),
    syntax.Yield: ("`yield` outside a function", "no `def` around it", "put it in a `def`"),
    syntax.Nonlocal: (
        "`nonlocal` outside a function",
        "no function around it",
        "remove this line: names at the top level need no declaration",
    ),
}

PLACED = frozenset(KIND[word] for word in ("RETURN", "BREAK", "CONTINUE", "YIELD", "NONLOCAL"))
"""The tokens that such statements begin with."""


def misplaced(module: syntax.Module) -> Iterator[AutodiffError]:
    """The errors of a tree, in the order of the text."""
    # In a function (2), in a class that is in one (1): names of functions around are there too.
    pending: list[tuple[syntax.Node, int, bool]] = [(node, 0, False) for node in module.body]
    pending.reverse()
    while pending:
        node, in_function, in_loop = pending.pop()
        kind = type(node)
        if kind in _MESSAGES:
            inside = in_function if kind is syntax.Nonlocal else in_function > 1
            if not (in_loop if kind in (syntax.Break, syntax.Continue) else inside):
                message, label, help = _MESSAGES[kind]
                yield fail("E111", message, node.span, label=label, help=help)
            continue
        if in_function < 2 and kind not in (syntax.FunctionDef, syntax.ClassDef):
            below = {id(child) for body in syntax.bodies(node) for child in body}
            heads = [child for child in syntax.children(node) if id(child) not in below]
            found = first_yield(heads) if yields(heads) else None
            if found is not None:
                message, label, help = _MESSAGES[syntax.Yield]
                yield fail("E111", message, found.span, label=label, help=help)
        inner: list[tuple[syntax.Node, int, bool]] = []
        for position, body in enumerate(syntax.bodies(node)):
            function, loop = in_function, in_loop
            if kind in (syntax.FunctionDef, syntax.ClassDef):
                function, loop = 2 if kind is syntax.FunctionDef else min(in_function, 1), False
            elif kind in (syntax.For, syntax.While) and position == 0:
                loop = True
            inner.extend((child, function, loop) for child in body)
        pending.extend(reversed(inner))
