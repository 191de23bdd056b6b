"""Functions with `yield`: their bodies run as Python generators, statement by statement.

`compile_steps(trees) -> steps(scope)`: a generator that yields the program's values and returns the
signal of the block. Statements without a `yield` inside run as everywhere else. In a statement with
one, everything up to its last `yield` runs first, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from copy import copy
from itertools import count
from typing import Any

from ...errors import AutodiffError
from ...graph.state import STATE
from ..errors.operand_labels import placed
from ..syntax import tree as syntax
from ..syntax.scoping import yields
from ..values.exceptions import EXCEPTIONS, Raised, is_a
from ..values.housekeeping import count_step
from ..values.iterators import iterator
from ..values.operations import truth
from ..values.values import Scope
from .assignment import compile_target
from .context_managers import entering, with_steps
from .exception_statements import try_steps
from .expressions import Context, compile_expression
from .replay_gate import BREAK, CONTINUE
from .statements import STATEMENTS, Steps, as_steps, compile_block


def compile_steps(trees: list[syntax.Node], context: Context) -> Steps:
    """The steps of a list of statements."""
    parts: list[Steps] = []
    plain: list[syntax.Node] = []
    for tree in trees:
        if yields([tree]):
            if plain:
                parts.append(as_steps(compile_block(plain, context)))
                plain = []
            parts.append(_STEPS[type(tree)](tree, context))
        else:
            plain.append(tree)
    if plain:
        parts.append(as_steps(compile_block(plain, context)))
    return _in_turn(parts)


def _in_turn(parts: list[Steps]) -> Steps:
    """Run steps in order until one gives a signal; return it, or what the last one gives."""

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        for part in parts:
            signal = yield from part(scope)
            if signal is not None:
                return signal
        return None

    return steps


# -- yields inside expressions --------------------------------------------------------------------

_NUMBERS = count()
# Parts of an expression that are no values of their own: what is in them is put into names.
_PARTS = (
    syntax.Keyword, syntax.Slice, syntax.FormattedValue, syntax.WithItem,
)  # fmt: skip


def _hidden(span: Any) -> syntax.Name:
    """A name that no program can write."""
    return syntax.Name(f" {next(_NUMBERS)}", span)


def _hoisted(tree: Any, context: Context, before: list[Steps]) -> Any:
    """An expression that reads what its yields gave, and all that stands before them, from names;
    the steps that put it there are added to `before`."""
    if not yields([tree]):
        return tree
    if isinstance(tree, syntax.Yield):
        return _sent(tree, context, before)
    if isinstance(tree, syntax.BoolOp | syntax.IfExp):
        return _chosen(tree, context, before)
    last = max(i for i, part in enumerate(syntax.children(tree)) if yields([part]))
    left = iter(range(last + 1))

    def moved(part: Any) -> Any:
        if not isinstance(part, syntax.Node) or next(left, None) is None:
            return part
        if yields([part]):
            return _hoisted(part, context, before)
        return _kept(part, context, before)

    made = copy(tree)
    for name in tree.fields:
        value = getattr(tree, name)
        setattr(made, name, list(map(moved, value)) if isinstance(value, list) else moved(value))
    return made


def _kept(tree: Any, context: Context, before: list[Steps]) -> Any:
    """The name that keeps the value of an expression, of `*items` the items."""
    if isinstance(tree, syntax.Starred):
        items = _kept(syntax.List([tree], tree.span), context, before)
        return syntax.Starred(items, tree.span)
    if isinstance(tree, _PARTS):
        made = copy(tree)
        for field in tree.fields:
            part = getattr(tree, field)
            if isinstance(part, syntax.Node):
                setattr(made, field, _kept(part, context, before))
        return made
    if isinstance(tree, syntax.Constant):
        return tree
    name = _hidden(tree.span)
    before.append(compile_steps([syntax.Assign([name], tree, tree.span)], context))
    return name


def _sent(tree: syntax.Yield, context: Context, before: list[Steps]) -> syntax.Name:
    """The name that keeps what a `yield` gives: what was sent, or the result of what it went
    through."""
    inner = None if tree.value is None else _hoisted(tree.value, context, before)
    value = None if inner is None else compile_expression(inner, context)
    name, span = _hidden(tree.span), tree.span if tree.value is None else tree.value.span

    def one(scope: Scope) -> Generator[Any, Any, Any]:
        scope.names[name.id] = yield None if value is None else value(scope)

    def each(scope: Scope) -> Generator[Any, Any, Any]:
        assert value is not None
        try:
            found = value(scope)
            STATE.span = span
            items: Any = iterator(found)
            scope.names[name.id] = yield from items
        except AutodiffError as error:
            raise placed(error, span) from None

    before.append(each if tree.each else one)
    return name


def _chosen(tree: Any, context: Context, before: list[Steps]) -> syntax.Name:
    """The name that keeps the value of `a and b`, `a or b`, `a if test else b`: what is not chosen
    does not run."""
    name = _hidden(tree.span)

    def part(value: Any) -> Steps:
        return compile_steps([syntax.Assign([name], value, tree.span)], context)

    if isinstance(tree, syntax.IfExp):
        test = syntax.If(
            tree.test,
            [syntax.Assign([name], tree.body, tree.span)],
            [syntax.Assign([name], tree.orelse, tree.span)],
            tree.span,
        )
        before.append(compile_steps([test], context))
        return name
    values = [part(value) for value in tree.values]

    def steps(scope: Scope) -> Generator[Any, Any, Any]:
        for run in values:
            yield from run(scope)
            if truth(scope.names[name.id]) is (tree.op == "or"):
                return

    before.append(steps)
    return name


def _simple(tree: Any, context: Context) -> Steps:
    """A statement whose expressions yield: first these, then the statement."""
    before: list[Steps] = []
    made = copy(tree)
    after: list[Steps] = []
    if isinstance(tree, syntax.AugAssign):
        target = copy(tree.target)
        for field in ("value", "index"):
            if field in target.fields:
                part = _hoisted(getattr(target, field), context, before)
                setattr(target, field, _kept(part, context, before))
        made.target = _kept(target, context, before)  # read before the yield
        after.append(compile_steps([syntax.Assign([target], made.target, target.span)], context))
    for field in tree.fields:
        part = getattr(tree, field)
        if field not in ("target", "targets") and isinstance(part, syntax.Node):
            setattr(made, field, _hoisted(part, context, before))
    if yields(getattr(tree, "targets", [])):
        if isinstance(tree, syntax.Assign):
            made.value = _kept(made.value, context, before)
        made.targets = [_target(target, context, before) for target in tree.targets]
    return _in_turn([*before, as_steps(STATEMENTS[type(tree)](made, context)), *after])


def _target(tree: Any, context: Context, before: list[Steps]) -> Any:
    """A target whose places are known before anything is put there."""
    if not isinstance(tree, syntax.Tuple | syntax.List):
        return _hoisted(tree, context, before)
    made = copy(tree)
    made.elements = [_target(element, context, before) for element in tree.elements]
    return made


def _value(tree: syntax.Node, context: Context) -> Steps:
    """The steps that give the value of an expression."""
    before: list[Steps] = []
    result = compile_expression(_hoisted(tree, context, before), context)
    return _in_turn([*before, as_steps(result)])


def outside_generator(error: AutodiffError) -> BaseException:
    """What leaves a generator's body, as its caller sees it."""
    value = getattr(error, "value", None)
    if value is not None and EXCEPTIONS["GeneratorExit"] in value.cls.line:
        return GeneratorExit()
    if is_a(error, "StopIteration"):
        return Raised(EXCEPTIONS["RuntimeError"]("generator raised StopIteration"), error.span)
    return error


# -- statements -----------------------------------------------------------------------------------


def _for(tree: syntax.For, context: Context) -> Steps:
    source = _value(tree.iter, context)
    assign = compile_target(tree.target, context, tree.iter.span)
    body = compile_steps(tree.body, context)
    orelse = compile_steps(tree.orelse, context)
    span = tree.iter.span

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        found = yield from source(scope)
        STATE.span = span
        items = iterator(found)
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
    test = _value(tree.test, context)
    body = compile_steps(tree.body, context)
    orelse = compile_steps(tree.orelse, context)

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        while truth((yield from test(scope))):
            count_step()
            signal = yield from body(scope)
            if signal is BREAK:
                return None
            if signal is not None and signal is not CONTINUE:
                return signal
        return (yield from orelse(scope))

    return steps


def _if(tree: syntax.If, context: Context) -> Steps:
    test = _value(tree.test, context)
    body = compile_steps(tree.body, context)
    orelse = compile_steps(tree.orelse, context)

    def steps(scope: Scope) -> Generator[Any, None, Any]:
        chosen = body if truth((yield from test(scope))) else orelse
        return (yield from chosen(scope))

    return steps


def _with(tree: syntax.With, context: Context) -> Steps:
    if len(tree.items) > 1 and yields(tree.items):
        inner = syntax.With(tree.items[1:], tree.body, tree.span)
        tree = syntax.With(tree.items[:1], [inner], tree.span)
    before: list[Steps] = []
    enter = entering([_hoisted(item, context, before) for item in tree.items], context)
    return _in_turn([*before, with_steps(enter, compile_steps(tree.body, context))])


_SIMPLE = (
    syntax.ExprStmt, syntax.Assign, syntax.AugAssign, syntax.AnnAssign, syntax.Return,
    syntax.Raise, syntax.Assert, syntax.Delete,
)  # fmt: skip
_STEPS: dict[type, Callable[[Any, Context], Steps]] = {
    **dict.fromkeys(_SIMPLE, _simple),
    syntax.For: _for,
    syntax.While: _while,
    syntax.If: _if,
    syntax.With: _with,
    syntax.Try: lambda tree, context: try_steps(tree, context, compile_steps),
}
