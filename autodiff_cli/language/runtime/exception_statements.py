"""`try`, `except`, `finally` and `raise`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from ...errors import AutodiffError, fail, fault
from ...graph.state import STATE
from ..syntax import tree as syntax
from ..values.dialect import kind_of
from ..values.exceptions import EXCEPTIONS, ErrorValue, Raised, caught, closing
from ..values.housekeeping import ended
from ..values.user_classes import UserClass
from ..values.values import Scope
from .assignment import name_target
from .expressions import Context, compile_expression
from .statements import RunStatement, Signal, Steps, as_steps, at_once, compile_block

BASE = EXCEPTIONS["BaseException"]


class Handlers:
    """The `except` clauses of a `try`: which one an error goes to."""

    __slots__ = ("clauses",)

    def __init__(self, tree: syntax.Try, context: Context):
        self.clauses = [
            (
                None if h.type is None else compile_expression(h.type, context),
                h.span if h.type is None else h.type.span,
                None if h.name is None else (h.name, name_target(h.name, context)),
            )
            for h in tree.handlers
        ]

    def choose(self, error: AutodiffError, scope: Scope) -> int:
        """The clause for an error, whose name is bound then; -1 when there is none."""
        for i, (make, span, name) in enumerate(self.clauses):
            value = caught(error, [BASE] if make is None else _classes(make(scope), span))
            if value is not None:
                if name is not None:
                    name[1](scope, value)
                return i
        return -1

    def leave(self, chosen: int, scope: Scope) -> None:
        name = self.clauses[chosen][2]
        if name is not None:
            scope.names.pop(name[0], None)


def _classes(value: Any, span: Any) -> list[UserClass]:
    found = []
    for cls in value if isinstance(value, tuple) else (value,):
        if not isinstance(cls, UserClass) or BASE not in cls.line:
            raise fault("E208 except-needs-exception-class", kind_of(cls), span=span)
        found.append(cls)
    return found


def try_steps(
    tree: syntax.Try, context: Context, block: Callable[[list[syntax.Node], Context], Steps]
) -> Steps:
    """The steps of a `try`; `block` compiles the blocks in it."""
    body = block(tree.body, context)
    handlers = Handlers(tree, context)
    answers = [block(h.body, context) for h in tree.handlers]
    orelse = block(tree.orelse, context)
    final = block(tree.final, context)

    def guarded(scope: Scope) -> Generator[Any, None, Any]:
        try:
            signal = yield from body(scope)
        except (AutodiffError, GeneratorExit) as problem:
            error = problem if isinstance(problem, AutodiffError) else closing()
            chosen = -1 if ended(error) else handlers.choose(error, scope)
            if chosen < 0:
                raise
            STATE.handled.append(error)
            try:
                return (yield from answers[chosen](scope))
            finally:
                if STATE.handled[-1:] == [error]:  # else the generator was let go
                    STATE.handled.pop()
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

    return steps if tree.final else guarded


def compile_try(tree: syntax.Try, context: Context) -> RunStatement:
    """The closure of a `try`."""
    return at_once(try_steps(tree, context, lambda *block: as_steps(compile_block(*block))))


def compile_raise(tree: syntax.Raise, context: Context) -> RunStatement:
    """The closure of a `raise`."""
    span = tree.span
    make = None if tree.value is None else compile_expression(tree.value, context)
    make_cause = None if tree.cause is None else compile_expression(tree.cause, context)

    def run(scope: Scope) -> Signal:
        if make is None:
            if STATE.handled:
                raise STATE.handled[-1]
            raise fault("E208 no-exception-raise-again", span=span)
        value = make(scope)
        if isinstance(value, UserClass) and BASE in value.line:
            value = value()
        if not isinstance(value, ErrorValue):
            raise fault("E208 raise-needs-exception", kind_of(value), span=span)
        if STATE.handled:
            value.fields["__context__"] = caught(STATE.handled[-1], [BASE])
        if make_cause is not None:
            cause = make_cause(scope)
            cause = cause() if isinstance(cause, UserClass) else cause
            if not (cause is None or isinstance(cause, ErrorValue)):
                raise fail("E208", "exception causes must derive from BaseException",
                           tree.span, help="write an exception after `from`")  # fmt: skip
            value.fields["__cause__"] = cause
        raise Raised(value, span)

    return run
