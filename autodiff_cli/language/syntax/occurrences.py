"""Where the names of a program stand, and which of them mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from unicodedata import normalize

from ...source import Span
from . import tree as syntax
from .free_names import COMPREHENSIONS
from .scoping import assigned_names, target_names


class Place(NamedTuple):
    """A name in the text. `meant` is the same wherever the same variable is meant; `binds`: it gets
    a value here; `outermost`: it belongs to the program, not to a function or class of it."""

    span: Span
    meant: tuple[int, str]
    binds: bool
    outermost: bool


class _Scope(NamedTuple):
    """What binds names: a `def`, a class, a comprehension; the last of several is the innermost."""

    owner: syntax.Node
    names: set[str]


Scopes = tuple[_Scope, ...]


def places(module: syntax.Module) -> list[Place]:
    """All names of a program, in no order."""
    found: list[Place] = []
    functions: dict[str, list[syntax.FunctionDef]] = {}
    calls: list[syntax.Call] = []
    targets: set[syntax.Node] = set()
    pending: list[tuple[syntax.Node, Scopes]] = [(module, ())]

    def add(name: str, span: Span, scopes: Scopes, binds: bool) -> None:
        owner = next((s.owner for s in reversed(scopes) if name in s.names), module)
        found.append(Place(span, (id(owner), name), binds, owner is module))

    while pending:
        node, scopes = pending.pop()
        inside = tuple(s for s in scopes if not isinstance(s.owner, syntax.ClassDef))
        below = syntax.children(node)
        targets.update(_targets(node))
        if isinstance(node, syntax.Name):
            add(node.id, node.span, scopes, node in targets)
        elif isinstance(node, syntax.FunctionDef | syntax.Lambda):
            body = node.body if isinstance(node.body, list) else [node.body]
            names = assigned_names(body)[0] if isinstance(node.body, list) else set()
            inner = (*inside, _Scope(node, names | {p.name for p in node.params}))
            for param in node.params:
                add(param.name, _word(param.span, param.name), inner, True)
            pending += [(tree, inner) for tree in body]
            below = [tree for tree in below if tree not in body]
            if isinstance(node, syntax.FunctionDef):
                add(node.name, node.name_span, scopes, True)
                functions.setdefault(node.name, []).append(node)
        elif isinstance(node, syntax.ClassDef):
            add(node.name, node.name_span, scopes, True)
            made = [f for f in node.body if isinstance(f, syntax.FunctionDef)]
            functions[node.name] = [f for f in made if f.name == "__init__"]
            inner = (*scopes, _Scope(node, assigned_names(node.body)[0]))
            pending += [(tree, inner) for tree in node.body]
            below = [tree for tree in below if tree not in node.body]
        elif isinstance(node, COMPREHENSIONS):
            bound = {name for part in node.generators for name in target_names(part.target)}
            pending.append((node.generators[0].iter, scopes))
            scopes = (*inside, _Scope(node, bound))
            parts = [
                tree for part in node.generators for tree in (part.target, part.iter, *part.ifs)
            ]
            targets.update(t for part in node.generators for t in _names(part.target))
            below = [*(t for t in below if not isinstance(t, syntax.Comprehension)), *parts]
            below.remove(node.generators[0].iter)
        elif isinstance(node, syntax.Import | syntax.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                if name != "*":
                    add(name, _word(alias.span, name, last=alias.asname is not None), scopes, True)
        elif isinstance(node, syntax.Handler) and node.name is not None:
            after = node.type.span.end if node.type else node.span.start
            rest = Span(node.span.source, after, node.span.end)
            add(node.name, _word(rest, node.name), scopes, True)
        elif isinstance(node, syntax.Global | syntax.Nonlocal):
            for name in node.names:
                add(name, _word(node.span, name), scopes, False)
        elif isinstance(node, syntax.Call):
            calls.append(node)
        pending += [(tree, scopes) for tree in below]
    return [*found, *_given(calls, functions)]


def _given(
    calls: list[syntax.Call], functions: dict[str, list[syntax.FunctionDef]]
) -> Iterator[Place]:
    """The names of arguments in calls of functions of the program."""
    for call in calls:
        callee = getattr(call.func, "id", getattr(call.func, "attr", ""))
        for keyword in call.keywords:
            for function in functions.get(callee, ()):
                if keyword.name in [param.name for param in function.params]:
                    span = _word(keyword.span, keyword.name)
                    yield Place(span, (id(function), keyword.name), False, False)


def _targets(node: syntax.Node) -> Iterable[syntax.Node]:
    """The names that a statement gives values to."""
    heads = [*getattr(node, "targets", ()), getattr(node, "target", None)]
    if isinstance(node, syntax.Delete | syntax.Comprehension):
        return []
    return [name for head in heads if isinstance(head, syntax.Node) for name in _names(head)]


def _names(target: syntax.Node) -> Iterator[syntax.Node]:
    inner = (syntax.Attribute, syntax.Subscript)
    return (n for n in syntax.within([target], inner) if isinstance(n, syntax.Name))


def _word(span: Span, name: str, last: bool = False) -> Span:
    """The first, or the last, place of a name in a piece of text."""
    every = [m.span() for m in re.finditer(r"\w+", span.text) if normalize("NFKC", m[0]) == name]
    start, end = every[-1 if last else 0]
    return Span(span.source, span.start + start, span.start + end)
