"""Comprehensions become closures; the loops of all clauses run in one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import AutodiffError
from ...graph.state import STATE
from ..errors.operand_labels import placed
from ..syntax import tree as syntax
from ..syntax.scoping import target_names
from ..values.operations import iterate
from ..values.subscripts import dict_key
from ..values.values import Scope
from .assignment import compile_target
from .expressions import Context, Run, compile_expression, compile_truth


def _comprehension(
    tree: Any, context: Context, results: list[syntax.Node]
) -> Callable[[Scope], list[Any]]:
    """All results of a comprehension, in a list of tuples or values."""
    names = [n for g in tree.generators for n in target_names(g.target)]
    inner = Context(False, frozenset())
    inner.locals = context.locals - frozenset(names)
    clauses = []
    for i, generator in enumerate(tree.generators):
        clauses.append(
            (
                compile_target(generator.target, inner),
                compile_expression(generator.iter, context if i == 0 else inner),
                [compile_truth(t, inner) for t in generator.ifs],
                generator.iter.span,
            )
        )
    parts = [compile_expression(r, inner) for r in results]
    single = parts[0] if len(parts) == 1 else None

    def run(scope: Scope) -> list[Any]:
        own = Scope(scope)
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
    """`(x for ...)`: in a native file its results, which it gives all at once."""
    results = _comprehension(tree, context, [tree.elt])
    if not STATE.python:
        return results
    from .generator_functions import compile_generator_expression

    return compile_generator_expression(tree, context)


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
