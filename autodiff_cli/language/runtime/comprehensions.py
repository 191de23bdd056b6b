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
from ..values.subscripts import dict_key
from ..values.values import Scope
from .assignment import compile_target
from .expressions import Context, Run, compile_expression, compile_truth

Clause = tuple[Callable[[Scope, Any], None], Run, list[Callable[[Scope], bool]], Span]


def _steps(
    tree: Any, context: Context, results: list[syntax.Node]
) -> Callable[[Scope], Iterator[Any]]:
    """Goes through the results of a comprehension, values or tuples; the first source is read at
    once. Names are in a scope of its own, which like methods does not see those of its class."""
    names = {n for g in tree.generators for n in target_names(g.target)}
    inner = Context(frozenset() if context.in_class else context.locals - names)
    clauses: list[Clause] = [
        (
            compile_target(clause.target, inner, clause.iter.span),
            compile_expression(clause.iter, inner if i else context),
            [compile_truth(test, inner) for test in clause.ifs],
            clause.iter.span,
        )
        for i, clause in enumerate(tree.generators)
    ]
    parts = [compile_expression(r, inner) for r in results]
    result: Run = parts[0] if len(parts) == 1 else lambda own: tuple([p(own) for p in parts])

    def items(depth: int, source: Any, own: Scope) -> Iterator[Any]:
        assign, _, tests, span = clauses[depth]
        STATE.span = span
        try:
            found = iterator(source)
            for item in found:
                assign(own, item)
                for test in tests:
                    if not test(own):
                        break
                else:
                    if depth + 1 < len(clauses):
                        yield from items(depth + 1, clauses[depth + 1][1](own), own)
                    else:
                        yield result(own)
        except AutodiffError as error:
            raise placed(error, span) from None

    def run(scope: Scope) -> Iterator[Any]:
        source = clauses[0][1](scope)
        return items(0, source, Scope(scope.outer if context.in_class else scope))

    return run


def compile_generator(tree: syntax.GeneratorExp, context: Context) -> Run:
    """`(x for ...)`: in a native file its results, which it gives all at once."""
    if not STATE.python:
        return compile_list(tree, context)
    steps = _steps(tree, context, [tree.elt])
    return lambda scope: Lazy("generator", steps(scope), function="<genexpr>")


def compile_list(tree: Any, context: Context) -> Run:
    steps = _steps(tree, context, [tree.elt])
    return lambda scope: [*steps(scope)]


def compile_set(tree: syntax.SetComp, context: Context) -> Run:
    steps = _steps(tree, context, [tree.elt])
    return lambda scope: {dict_key(v, tree.span) for v in steps(scope)}


def compile_dict(tree: syntax.DictComp, context: Context) -> Run:
    steps = _steps(tree, context, [tree.key, tree.value])
    return lambda scope: {dict_key(k, tree.span): v for k, v in steps(scope)}
