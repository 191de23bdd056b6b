"""`try`, `except`, `finally` and `raise`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import AutodiffError, fail, fault
from ...graph.state import STATE
from ..syntax import tree as syntax
from ..values.dialect import kind_of
from ..values.exceptions import EXCEPTIONS, ErrorValue, Raised, caught, kinds
from ..values.housekeeping import ended
from ..values.user_classes import UserClass
from ..values.values import Scope
from .assignment import name_target
from .expressions import Context, compile_expression
from .statements import compile_block

Signal = Any
RunStatement = Callable[[Scope], Signal]
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
        """The clause for an error, whose name is bound then; -1 when there is none. One that names
        the likeliest exception goes before one that names another that it may be."""
        likely = kinds(error)[:1]
        found, value = -1, None
        for i, (make, span, _) in enumerate(self.clauses):
            wanted = [BASE] if make is None else _classes(make(scope), span)
            named = [cls for kind in likely for cls in (kind.line if found < 0 else kind.line[:-3])]
            exact = any(cls in wanted for cls in named)
            if exact or found < 0:
                caught_here = caught(error, wanted)
                if caught_here is not None:
                    found, value = i, caught_here
            if exact:
                break
        if found >= 0 and (name := self.clauses[found][2]) is not None:
            name[1](scope, value)
        return found

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


def compile_try(tree: syntax.Try, context: Context) -> RunStatement:
    """The closure of a `try`."""
    body = compile_block(tree.body, context)
    handlers = Handlers(tree, context)
    answers = [compile_block(h.body, context) for h in tree.handlers]
    orelse = compile_block(tree.orelse, context) if tree.orelse else None
    final = compile_block(tree.final, context) if tree.final else None

    def guarded(scope: Scope) -> Signal:
        grad, span = STATE.grad, STATE.span
        try:
            signal = body(scope)
        except AutodiffError as error:
            chosen = -1 if ended(error) else handlers.choose(error, scope)
            if chosen < 0:
                raise
            STATE.grad, STATE.span = grad, span
            STATE.handled.append(error)
            try:
                return answers[chosen](scope)
            finally:
                STATE.handled.pop()
                handlers.leave(chosen, scope)
        if signal is not None or orelse is None:
            return signal
        return orelse(scope)

    if final is None:
        return guarded

    def run(scope: Scope) -> Signal:
        try:
            signal = guarded(scope)
        except AutodiffError as error:
            if ended(error):
                raise
            late = final(scope)
            if late is not None:
                return late
            raise
        late = final(scope)
        return signal if late is None else late

    return run


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
