"""Nested tuples, lists and dicts of tensors: taken apart and put together again.

Everything that is none of the three is one leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import fault
from .calls import Results

MAX_DEPTH = 200


def flatten(tree: Any) -> list[Any]:
    """The leaves of a tree, in order."""
    found: list[Any] = []
    _collect(tree, found, 0)
    return found


def _collect(tree: Any, found: list[Any], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise fault("E507 structure-nested-more-levels", MAX_DEPTH)
    if isinstance(tree, list | tuple):
        for part in tree:
            _collect(part, found, depth + 1)
    elif isinstance(tree, dict):
        for part in tree.values():
            _collect(part, found, depth + 1)
    else:
        found.append(tree)


def rebuilt(tree: Any, leaves: list[Any]) -> Any:
    """A tree of the same structure with other leaves."""
    rest = iter(leaves)
    return tree_map(lambda leaf: next(rest), tree)


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree of what `function` makes of each leaf."""
    if isinstance(tree, dict):
        return {key: tree_map(function, part) for key, part in tree.items()}
    if isinstance(tree, list):
        return [tree_map(function, part) for part in tree]
    if isinstance(tree, Results):
        parts = Results(tree_map(function, part) for part in tree)
        parts.fields, parts.name = tree.fields, tree.name
        return parts
    if isinstance(tree, tuple):
        return tuple(tree_map(function, part) for part in tree)
    return function(tree)


def spread(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool]) -> list[Any] | None:
    """For each leaf of `tree` the entry of `prefix` above it; None when the two do not fit.

    A prefix is a tree that may stop early: an entry then stands for all leaves below it.
    """
    if is_leaf(prefix):
        return [prefix] * len(flatten(tree))
    if isinstance(prefix, dict):
        if not isinstance(tree, dict) or prefix.keys() != tree.keys():
            return None
        pairs = [(prefix[key], part) for key, part in tree.items()]
    elif isinstance(prefix, list | tuple):
        kind = list if isinstance(prefix, list) else tuple
        if not isinstance(tree, kind) or len(prefix) != len(tree):
            return None
        pairs = list(zip(prefix, tree, strict=True))
    else:
        return None
    found: list[Any] = []
    for part, below in pairs:
        entries = spread(part, below, is_leaf)
        if entries is None:
            return None
        found.extend(entries)
    return found


def spec(tree: Any) -> str:
    """The structure of a tree, as PyTorch shows it."""
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {spec(part)}" for key, part in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(spec, tree)) + "]"
    if isinstance(tree, tuple):
        return "(" + ", ".join(map(spec, tree)) + (",)" if len(tree) == 1 else ")")
    return "*"


def tree_spec(tree: Any, indent: int = 0) -> str:
    """The structure of a tree, as PyTorch's `TreeSpec` shows itself."""
    if not isinstance(tree, dict | list | tuple):
        return "*"
    keys = list(tree) if isinstance(tree, dict) else None
    parts = list(tree.values()) if isinstance(tree, dict) else tree
    indent += 2
    shown = [tree_spec(part, indent) for part in parts]
    kind = next(kind for kind in (dict, list, tuple) if isinstance(tree, kind))
    between = ",\n" + " " * indent
    return f"TreeSpec({kind.__name__}, {keys}, [{between.join(shown)}])"
