"""What is found in the trees of a loop's body, and copies of them with other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from . import syntax
from .free_names import COMPREHENSIONS, read_by
from .innocent import innocent

ASIDE = (syntax.Lambda, syntax.NumList, *COMPREHENSIONS)  # what is not evaluated where it stands


def outside(tree: syntax.Node) -> Iterator[syntax.Node]:
    """What is below a node, without the bodies of functions in it."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if not isinstance(node, syntax.FunctionDef | syntax.Lambda):
            yield node
            pending.extend(syntax.children(node))


def leaves(target: syntax.Node) -> Iterator[syntax.Node]:
    """The single targets in one."""
    if isinstance(target, syntax.Tuple | syntax.List):
        for element in target.elements:
            yield from leaves(element)
    else:
        yield target


def plain_names(target: syntax.Node) -> list[str]:
    """The names of a target that is nothing else."""
    found = [node.id for node in leaves(target) if isinstance(node, syntax.Name)]
    return found if len(found) == len(list(leaves(target))) else []


def grown(tree: syntax.Node) -> set[str]:
    """The names of containers to which a statement appends."""
    found: set[str] = set()
    for node in syntax.walk(tree):
        function = node.func if isinstance(node, syntax.Call) else None
        if isinstance(function, syntax.Attribute) and function.attr in ("append", "extend"):
            found |= read_by(function.value)
    return found


def counted(tree: syntax.Node) -> set[str]:
    """The names to which something is added."""
    return {
        node.target.id
        for node in syntax.walk(tree)
        if isinstance(node, syntax.AugAssign) and isinstance(node.target, syntax.Name)
    }


def rewritten(tree: Any, replace: Callable[[Any], syntax.Node | None]) -> Any:
    """A copy of a tree with other parts; `replace` gives what stands in place of a node, which may
    be the node itself, or None where its parts are to be looked at. Targets stay."""
    other = replace(tree)
    if other is not None or isinstance(tree, ASIDE):
        return tree if other is None else other
    made = tree
    for field in tree.fields:
        value = getattr(tree, field)
        if field in ("target", "targets"):
            continue
        if isinstance(value, list):
            new: Any = [rewritten(x, replace) if isinstance(x, syntax.Node) else x for x in value]
            changed = any(a is not b for a, b in zip(new, value, strict=True))
        elif isinstance(value, syntax.Node):
            new = rewritten(value, replace)
            changed = new is not value
        else:
            continue
        if changed:
            made = copy(made) if made is tree else made
            setattr(made, field, new)
    return made


def lifted(
    tree: syntax.Node, inner: set[str], first: int
) -> tuple[syntax.Node, list[tuple[str, syntax.Node]]]:
    """A copy of a tree with names in place of what numbers are taken from, and these; names are
    numbered from `first` on."""
    found: list[tuple[str, syntax.Node]] = []

    def replace(node: syntax.Node) -> syntax.Node | None:
        if not isinstance(node, syntax.Call) or not isinstance(node.func, syntax.Attribute):
            return None
        function = node.func
        if function.attr != "item" or innocent(function.value, inner, True):
            return None
        name = f"<{first + len(found)}>"
        found.append((name, function.value))
        made, of = copy(node), copy(function)
        of.value = syntax.Name(name, function.value.span)
        made.func = of
        return made

    return rewritten(tree, replace), found


__all__ = ["counted", "grown", "leaves", "lifted", "outside", "plain_names", "rewritten"]
