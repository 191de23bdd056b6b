"""Statements become closures: `compile_block(trees) -> run(scope) -> signal`.

A signal is None (go on), BREAK, CONTINUE, or a `Returned` with the value of a `return`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from ...errors import AutodiffError
from ...graph.state import STATE
from ...outside import END, OUTSIDE, START
from ..errors.operand_labels import placed
from ..syntax import tree as syntax
from ..syntax.scoping import assigned_names, yields
from ..values.functions import Parameters, call_value
from ..values.housekeeping import HOUSEKEEPING, MOST_MADE, count_step
from ..values.iterators import Lazy
from ..values.operations import iterate
from ..values.providers import from_above, late
from ..values.values import Scope, UserFunction
from .assignment import (
    compile_annotated,
    compile_assign,
    compile_augmented,
    compile_delete,
    compile_target,
    name_target,
    note,
)
from .expressions import Context, compile_defaults, compile_expression, compile_truth
from .names import import_module, import_name, names_below
from .replay_gate import BREAK, CONTINUE, repeated

Signal = Any
RunStatement = Callable[[Scope], Signal]
Steps = Callable[[Scope], Generator[Any, None, Signal]]  # of what has a `yield` inside


class Returned:
    """The value of a `return` on its way out."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def compile_block(trees: list[syntax.Node], context: Context) -> RunStatement:
    """The closure of a list of statements."""
    runs = [STATEMENTS[type(tree)](tree, context) for tree in trees]
    if len(runs) == 1:
        return runs[0]

    def run(scope: Scope) -> Signal:
        for statement in runs:
            signal = statement(scope)
            if signal is not None:
                return signal
        return None

    return run


def as_steps(run: RunStatement) -> Steps:
    """A block without `yield`, as steps."""

    def steps(scope: Scope) -> Generator[Any, None, Signal]:
        return run(scope)
        yield

    return steps


def at_once(steps: Steps) -> RunStatement:
    """The closure of steps without `yield`."""

    def run(scope: Scope) -> Signal:
        try:
            return next(steps(scope))
        except StopIteration as end:
            return end.value

    return run


def compile_module(trees: list[syntax.Node], context: Context) -> RunStatement:
    """The closure of a whole program, which tells outside where it is."""
    parts = [
        (STATEMENTS[type(tree)](tree, context), tree.span.start, tree.span.end) for tree in trees
    ]

    def run(scope: Scope) -> Signal:
        told = OUTSIDE.numbers
        for statement, told[START], told[END] in parts:
            statement(scope)
        told[START] = told[END] = 0

    return run


# -- control flow ---------------------------------------------------------------------------------


def _expression(tree: syntax.ExprStmt, context: Context) -> RunStatement:
    value_run = compile_expression(tree.value, context)
    span = tree.value.span
    if not context.module_level:

        def run(scope: Scope) -> Signal:
            value_run(scope)
            return None

        return run

    def run_shown(scope: Scope) -> Signal:
        STATE.shown = value = value_run(scope)
        STATE.shown_span = span
        note(None, value)
        return None

    return run_shown


def _if(tree: syntax.If, context: Context) -> RunStatement:
    branches = []
    orelse: list[syntax.Node] = [tree]
    while len(orelse) == 1 and isinstance(orelse[0], syntax.If):
        branch = orelse[0]
        branches.append((compile_truth(branch.test, context), compile_block(branch.body, context)))
        orelse = branch.orelse
    last = compile_block(orelse, context) if orelse else None

    def run(scope: Scope) -> Signal:
        for test, body in branches:
            if test(scope):
                return body(scope)
        return None if last is None else last(scope)

    return run


def _for(tree: syntax.For, context: Context) -> RunStatement:
    source = compile_expression(tree.iter, context)
    assign = compile_target(tree.target, context, tree.iter.span)
    body = compile_block(tree.body, context)
    orelse = compile_block(tree.orelse, context) if tree.orelse else None
    span = tree.iter.span
    whole = tree.span
    replay = repeated(tree, context)

    def run(scope: Scope) -> Signal:
        try:
            found = source(scope)
            STATE.span = span
            items = iterate(found)
            if replay is not None and not replay.refused:
                signal = replay.run(scope, found, items, assign, body)
                if signal is not None:
                    return None if signal is BREAK else signal
            for item in items:
                assign(scope, item)
                signal = body(scope)
                if signal is not None:
                    if signal is BREAK:
                        return None
                    if signal is not CONTINUE:
                        return signal
                if STATE.steps >= STATE.look or STATE.made > MOST_MADE:
                    HOUSEKEEPING.after_step(scope)
        except AutodiffError as error:
            raise placed(error, whole if error.code == "E506" else span) from None
        return None if orelse is None else orelse(scope)

    return run


def _while(tree: syntax.While, context: Context) -> RunStatement:
    test = compile_truth(tree.test, context)
    body = compile_block(tree.body, context)
    orelse = compile_block(tree.orelse, context) if tree.orelse else None
    span = tree.test.span

    def run(scope: Scope) -> Signal:
        while test(scope):
            try:
                count_step()
                if STATE.steps >= STATE.look or STATE.made > MOST_MADE:
                    HOUSEKEEPING.after_step(scope)
            except AutodiffError as error:
                raise placed(error, span) from None
            signal = body(scope)
            if signal is not None:
                if signal is BREAK:
                    return None
                if signal is not CONTINUE:
                    return signal
        return None if orelse is None else orelse(scope)

    return run


def _pass(tree: syntax.Node, context: Context) -> RunStatement:
    return lambda scope: None


def _return(tree: syntax.Return, context: Context) -> RunStatement:
    if tree.value is None:
        return lambda scope: Returned(None)
    value_run = compile_expression(tree.value, context)
    return lambda scope: Returned(value_run(scope))


# -- definitions ----------------------------------------------------------------------------------


def compile_function(tree: syntax.FunctionDef, context: Context) -> Callable[[Scope], UserFunction]:
    """`make(scope) -> function` of a `def`."""
    names, outer = assigned_names(tree.body)
    path = context.path + tree.name
    inner = Context(frozenset(names | {p.name for p in tree.params}), f"{path}.<locals>.")
    inner.declare(tree.body, outer)
    stepwise = yields(tree.body)
    block = compile_generator(tree, inner, path) if stepwise else compile_block(tree.body, inner)
    parameters = Parameters(tree.params, tree, path)
    defaults = compile_defaults(tree.params, context)
    name, span = tree.name, tree.name_span

    def body(scope: Scope) -> Any:
        signal = block(scope)
        return signal.value if type(signal) is Returned else None

    def make(scope: Scope) -> UserFunction:
        positional, keyword = defaults(scope)
        run = block if stepwise else body
        around = scope.outer if context.in_class else scope  # methods do not see the class's names
        return UserFunction(name, parameters, run, around, span, positional, keyword)

    return make


def compile_generator(
    tree: syntax.FunctionDef, context: Context, path: str
) -> Callable[[Scope], Any]:
    """The body of a function with `yield`: it gives an iterator."""
    steps = from_above("runtime.generator_functions.compile_steps")(tree.body, context)
    outside_generator = from_above("runtime.generator_functions.outside_generator")

    def run(scope: Scope) -> Generator[Any, Any, Any]:
        try:
            signal = yield from steps(scope)
        except AutodiffError as error:
            raise outside_generator(error) from None
        return signal.value if type(signal) is Returned else None

    return lambda scope: Lazy("generator", run(scope), modes=[], function=path)


def compile_decorators(trees: list[syntax.Node], context: Context) -> Callable[[Scope, Any], Any]:
    """`decorated(scope, value)` of what stands before a `def` or a `class`."""
    decorators = [(compile_expression(d, context), d.span) for d in trees]

    def decorated(scope: Scope, value: Any) -> Any:
        for decorate, span in reversed(decorators):
            STATE.span = span
            try:
                value = call_value(decorate(scope), [value], {})
            except AutodiffError as error:
                raise placed(error, span) from None
        return value

    return decorated


def _function(tree: syntax.FunctionDef, context: Context) -> RunStatement:
    make = compile_function(tree, context)
    decorated = compile_decorators(tree.decorators, context)
    store = name_target(tree.name, context)
    return lambda scope: store(scope, decorated(scope, make(scope)))


def _import(tree: syntax.Import, context: Context) -> RunStatement:
    def run(scope: Scope) -> Signal:
        for alias in tree.names:
            STATE.span = alias.span
            try:
                namespace = import_module(alias.name)
                if alias.asname is None and "." in alias.name:
                    namespace = import_module(alias.name.split(".")[0])
            except AutodiffError as error:
                raise placed(error, alias.span) from None
            scope.names[alias.asname or alias.name.split(".")[0]] = namespace
        return None

    return run


def _import_from(tree: syntax.ImportFrom, context: Context) -> RunStatement:
    if tree.module == "__future__":
        return _pass(tree, context)

    def run(scope: Scope) -> Signal:
        for alias in tree.names:
            STATE.span = alias.span
            try:
                names = names_below(tree.module) if alias.name == "*" else [alias.name]
                for name in names:
                    scope.names[alias.asname or name] = import_name(tree.module, name)
            except AutodiffError as error:
                raise placed(error, alias.span) from None
        return None

    return run


STATEMENTS: dict[type, Callable[[Any, Context], RunStatement]] = {
    syntax.ExprStmt: _expression,
    syntax.Assign: compile_assign,
    syntax.AugAssign: compile_augmented,
    syntax.AnnAssign: compile_annotated,
    syntax.Delete: compile_delete,
    syntax.If: _if,
    syntax.For: _for,
    syntax.While: _while,
    syntax.Break: lambda tree, context: lambda scope: BREAK,
    syntax.Continue: lambda tree, context: lambda scope: CONTINUE,
    syntax.Pass: _pass,
    syntax.Return: _return,
    syntax.With: late("runtime.context_managers.compile_with"),
    syntax.Assert: late("runtime.assertions.compile_assert"),
    syntax.Raise: late("runtime.exception_statements.compile_raise"),
    syntax.Try: late("runtime.exception_statements.compile_try"),
    syntax.FunctionDef: _function,
    syntax.ClassDef: late("runtime.class_statements.compile_class"),
    syntax.Import: _import,
    syntax.ImportFrom: _import_from,
    syntax.Global: _pass,
    syntax.Nonlocal: _pass,
}
