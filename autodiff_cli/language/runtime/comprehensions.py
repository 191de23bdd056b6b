"""Comprehensions become closures; the loops of all clauses run in one function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...errors import AutodiffError
from ...graph.state import STATE
from ...source import Span
from ..errors.operand_labels import placed
from ..syntax import tree as syntax
from ..syntax.scoping import target_names
from ..values.iterators import Lazy, iterator
from ..values.operations import iterate
from ..values.subscripts import dict_key
from ..values.values import Scope
from .assignment import compile_target
from .expressions import Context, Run, compile_expression, compile_truth

Clause = tuple[Callable[[Scope, Any], None], Run, list[Callable[[Scope], bool]], Span]


def _clauses(tree: Any, context: Context) -> tuple[Context, list[Clause]]:
    """Where the parts of a comprehension stand, and its clauses: what an item is assigned to, the
    source, conditions; the first source is read outside."""
    names = {n for g in tree.generators for n in target_names(g.target)}
    inner = Context(False, context.locals - names)
    clauses = [
        (
            compile_target(clause.target, inner),
            compile_expression(clause.iter, inner if i else context),
            [compile_truth(test, inner) for test in clause.ifs],
            clause.iter.span,
        )
        for i, clause in enumerate(tree.generators)
    ]
    return inner, clauses


def _own_scope(scope: Scope, context: Context) -> Scope:
    """Where the names of a comprehension are; like methods it does not see those of its class."""
    return Scope(scope.outer if context.in_class else scope)


def _comprehension(
    tree: Any, context: Context, results: list[syntax.Node]
) -> Callable[[Scope], list[Any]]:
    """All results of a comprehension, in a list of tuples or values."""
    inner, clauses = _clauses(tree, context)
    parts = [compile_expression(r, inner) for r in results]
    single = parts[0] if len(parts) == 1 else None

    def run(scope: Scope) -> list[Any]:
        own = _own_scope(scope, context)
        found: list[Any] = []
        _loop(0, scope, own, found)
        return found

    def _loop(depth: int, outer: Scope, own: Scope, found: list[Any]) -> None:
        assign, source, tests, span = clauses[depth]
        try:
            items = iterate(source(outer if depth == 0 else own))
            for item in items:
                assign(own, item)
                for test in tests:
                    if not test(own):
                        break
                else:
                    if depth + 1 < len(clauses):
                        _loop(depth + 1, own, own, found)
                    elif single is not None:
                        found.append(single(own))
                    else:
                        found.append(tuple([p(own) for p in parts]))
        except AutodiffError as error:
            raise placed(error, span) from None

    return run


def compile_generator(tree: syntax.GeneratorExp, context: Context) -> Run:
    """`(x for ...)`: in a native file its results, which it gives all at once; else the first
    source is read at once, the rest as items are asked for."""
    if not STATE.python:
        return _comprehension(tree, context, [tree.elt])
    inner, clauses = _clauses(tree, context)
    result = compile_expression(tree.elt, inner)

    def items(depth: int, source: Any, own: Scope) -> Iterator[Any]:
        assign, _, tests, span = clauses[depth]
        found = iterator(source)
        while True:
            try:
                item = next(found)
            except StopIteration:
                return
            except AutodiffError as error:
                raise placed(error, span) from None
            assign(own, item)
            if all(test(own) for test in tests):
                if depth + 1 < len(clauses):
                    yield from items(depth + 1, clauses[depth + 1][1](own), own)
                else:
                    yield result(own)

    def run(scope: Scope) -> Lazy:
        steps = items(0, clauses[0][1](scope), _own_scope(scope, context))
        return Lazy("generator", steps, function="<genexpr>")

    return run


def compile_set(tree: syntax.SetComp, context: Context) -> Run:
    run = _comprehension(tree, context, [tree.elt])
    return lambda scope: {dict_key(v) for v in run(scope)}


def compile_dict(tree: syntax.DictComp, context: Context) -> Run:
    run = _comprehension(tree, context, [tree.key, tree.value])
    return lambda scope: {dict_key(k): v for k, v in run(scope)}


COMPREHENSIONS: dict[type, Callable[[Any, Context], Run]] = {
    syntax.ListComp: lambda tree, context: _comprehension(tree, context, [tree.elt]),
    syntax.GeneratorExp: compile_generator,
    syntax.SetComp: compile_set,
    syntax.DictComp: compile_dict,
}
