"""Statements in places where they mean nothing: E111, found by a walk over the finished tree."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import AutodiffError, fail
from . import tree as s
from .scoping import first_yield, yields
from .tokens import KIND

_MESSAGES: dict[type, tuple[str, str, str]] = {
    s.Return: (
        "`return` outside a function",
        "no `def` around it",
        "assign the value to a name: `result = ...`",
    ),
    s.Break: ("`break` outside a loop", "no loop around it", "remove this line"),
    s.Continue: ("`continue` outside a loop", "no loop around it", "remove this line"),
    s.Yield: (
        "`yield` outside a function",
        "no `def` around it",
        "put it in a `def`",
    ),
    s.Nonlocal: (
        "`nonlocal` outside a function",
        "no function around it",
        "remove this line: names at the top level need no declaration",
    ),
}

PLACED = frozenset(KIND[word] for word in ("RETURN", "BREAK", "CONTINUE", "YIELD", "NONLOCAL"))
"""The tokens that such statements begin with."""


def misplaced(module: s.Module) -> Iterator[AutodiffError]:
    """The errors of a tree, in the order of the text."""
    pending: list[tuple[s.Node, bool, bool]] = [(node, False, False) for node in module.body]
    pending.reverse()
    while pending:
        node, in_function, in_loop = pending.pop()
        kind = type(node)
        if kind in _MESSAGES:
            if not (in_loop if kind in (s.Break, s.Continue) else in_function):
                message, label, help = _MESSAGES[kind]
                yield fail("E111", message, node.span, label=label, help=help)
            continue
        if not in_function and kind not in (s.FunctionDef, s.ClassDef):
            below = {id(child) for body in s.bodies(node) for child in body}
            heads = [child for child in s.children(node) if id(child) not in below]
            found = first_yield(heads) if yields(heads) else None
            if found is not None:
                message, label, help = _MESSAGES[s.Yield]
                yield fail("E111", message, found.span, label=label, help=help)
        inner: list[tuple[s.Node, bool, bool]] = []
        for position, body in enumerate(s.bodies(node)):
            function, loop = in_function, in_loop
            if kind in (s.FunctionDef, s.ClassDef):
                function, loop = kind is s.FunctionDef, False
            elif kind in (s.For, s.While) and position == 0:
                loop = True
            inner.extend((child, function, loop) for child in body)
        pending.extend(reversed(inner))
