"""Functions with `yield`: their bodies run as Python generators, statement by statement.

`compile_steps(trees) -> steps(scope)`: a generator that yields the program's values and returns the
signal of the block. Statements without a `yield` inside run as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from ..errors import AutodiffError
from ..graph.state import STATE
from . import syntax
from .assignment import compile_target
from .expressions import Context, Run, compile_expression, compile_truth
from .housekeeping import ended
from .iterators import Lazy, iterator
from .managers import Entered, entering
from .operand_labels import placed
from .operations import count_step
from .repeated import BREAK, CONTINUE
from .scoping import target_names as names_of
from .scoping import yields
from .statements import compile_block
from .trying import HANDLED, Handlers
from .values import Scope

Steps = Callable[[Scope], Generator[Any, None, Any]]


def compile_steps(trees: list[syntax.Node], context: Context) -> Steps:
    """The steps of a list of statements."""
    parts: list[tuple[bool, Any]] = []
    plain: list[syntax.Node] = []
    for tree in trees:
        if yields([tree]):
            if plain:
                parts.append((False, compile_block(plain, context)))
                plain = []
            parts.append((True, _STEPS[type(tree)](tree, context)))
        else:
            plain.append(tree)
    if plain:
        parts.append((False, compile_block(plain, context)))

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        for stepwise, part in parts:
            signal = (yield from part(scope)) if stepwise else part(scope)
            if signal is not None:
                return signal
        return None

    return steps


def compile_generator_expression(tree: syntax.GeneratorExp, context: Context) -> Run:
    """`(x for ...)`: the first source is read at once, the rest as items are asked for."""
    inner = Context(
        False, context.locals - {n for g in tree.generators for n in names_of(g.target)}
    )
    clauses = [
        (
            compile_target(clause.target, inner),
            compile_expression(clause.iter, inner if i else context),
            [compile_truth(test, inner) for test in clause.ifs],
            clause.iter.span,
        )
        for i, clause in enumerate(tree.generators)
    ]
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
        return Lazy("generator", items(0, clauses[0][1](scope), Scope(scope)))

    return run


def _yield(tree: syntax.Yield, context: Context) -> Steps:
    value = None if tree.value is None else compile_expression(tree.value, context)
    span = tree.span

    def one(scope: Scope) -> Generator[Any, None, Any]:
        yield None if value is None else value(scope)

    def each(scope: Scope) -> Generator[Any, None, Any]:
        assert value is not None
        items = iterator(value(scope))
        while True:
            try:
                item = next(items)
            except StopIteration:
                return
            except AutodiffError as error:
                raise placed(error, span) from None
            yield item

    return each if tree.each else one


def _for(tree: syntax.For, context: Context) -> Steps:
    source = compile_expression(tree.iter, context)
    assign = compile_target(tree.target, context)
    body = compile_steps(tree.body, context)
    orelse = compile_steps(tree.orelse, context)
    span = tree.iter.span

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        STATE.span = span
        items = iterator(source(scope))
        while True:
            try:
                item = next(items)
            except StopIteration:
                return (yield from orelse(scope))
            except AutodiffError as error:
                raise placed(error, span) from None
            assign(scope, item)
            signal = yield from body(scope)
            if signal is BREAK:
                return None
            if signal is not None and signal is not CONTINUE:
                return signal

    return steps


def _while(tree: syntax.While, context: Context) -> Steps:
    test = compile_truth(tree.test, context)
    body = compile_steps(tree.body, context)
    orelse = compile_steps(tree.orelse, context)

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        while test(scope):
            count_step()
            signal = yield from body(scope)
            if signal is BREAK:
                return None
            if signal is not None and signal is not CONTINUE:
                return signal
        return (yield from orelse(scope))

    return steps


def _if(tree: syntax.If, context: Context) -> Steps:
    test = compile_truth(tree.test, context)
    body = compile_steps(tree.body, context)
    orelse = compile_steps(tree.orelse, context)

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        return (yield from (body if test(scope) else orelse)(scope))

    return steps


def _with(tree: syntax.With, context: Context) -> Steps:
    enter = entering(tree.items, context)
    body = compile_steps(tree.body, context)

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        entered = Entered()
        try:
            enter(scope, entered)
            signal = yield from body(scope)
        except AutodiffError as error:
            if entered.leave(error):
                return None
            raise
        except GeneratorExit:
            entered.leave(None)
            raise
        entered.leave(None)
        return signal

    return steps


def _try(tree: syntax.Try, context: Context) -> Steps:
    body = compile_steps(tree.body, context)
    handlers = Handlers(tree, context)
    answers = [compile_steps(h.body, context) for h in tree.handlers]
    orelse = compile_steps(tree.orelse, context)
    final = compile_steps(tree.final, context)

    def guarded(scope: Scope) -> Generator[Any, None, Any]:
        try:
            signal = yield from body(scope)
        except AutodiffError as error:
            chosen = -1 if ended(error) else handlers.choose(error, scope)
            if chosen < 0:
                raise
            HANDLED.append(error)
            try:
                return (yield from answers[chosen](scope))
            finally:
                HANDLED.pop()
                handlers.leave(chosen, scope)
        return signal if signal is not None else (yield from orelse(scope))

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        try:
            signal = yield from guarded(scope)
        except (AutodiffError, GeneratorExit) as error:
            if ended(error):
                raise
            late = yield from final(scope)
            if late is not None:
                return late
            raise
        late = yield from final(scope)
        return signal if late is None else late

    return steps


_STEPS: dict[type, Callable[[Any, Context], Steps]] = {
    syntax.Yield: _yield,
    syntax.For: _for,
    syntax.While: _while,
    syntax.If: _if,
    syntax.With: _with,
    syntax.Try: _try,
}
