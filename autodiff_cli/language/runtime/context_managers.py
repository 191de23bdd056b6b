"""What `with` takes: grad modes, context managers of the library, and those of the program."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from ...errors import AutodiffError, fail, fault
from ...graph.state import STATE
from ..errors.operand_labels import placed
from ..syntax import tree as syntax
from ..values.dialect import kind_of
from ..values.exceptions import EXCEPTIONS, caught, closing
from ..values.functions import call_value
from ..values.housekeeping import ended
from ..values.iterators import Lazy
from ..values.operations import truth
from ..values.user_classes import special
from ..values.values import Callee, Device, GradMode, Handle, Method, Scope, UserFunction, switch
from .assignment import compile_target
from .expressions import Context, compile_expression
from .statements import RunStatement, Steps, as_steps, at_once, compile_block


class Manager(Callee):
    """A context manager of the library; a decorator too.

    `enter()` gives what `as` binds; `leave(error)` is called at the end, and what it returns that
    is true ends the error.
    """

    __slots__ = ("again", "enter", "leave", "name")

    def __init__(
        self,
        name: str,
        enter: Callable[[], Any] = lambda: None,
        leave: Callable[[AutodiffError | None], Any] = lambda error: None,
        again: Callable[[], Manager] | None = None,
    ):
        self.again = again  # makes another one, where this one can be entered once
        self.name = name
        self.enter = enter
        self.leave = leave

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """As a decorator."""
        if len(args) != 1 or kwargs:
            raise fail("E208", f"`{self.name}` decorates functions", help=f"`with {self.name}():`")
        function = args[0]

        def run(*values: Any, **named: Any) -> Any:
            manager = self if self.again is None else self.again()
            manager.enter()
            try:
                result = call_value(function, list(values), named)
            except AutodiffError as error:
                if not manager.leave(error):
                    raise
                return None
            manager.leave(None)
            return result

        return Method(getattr(function, "name", self.name), run)


class Entered:
    """The managers that a `with` has entered, to be left in reverse."""

    __slots__ = ("exits",)

    def __init__(self) -> None:
        self.exits: list[Callable[[AutodiffError | None], Any]] = []

    def leave(self, error: AutodiffError | None) -> bool:
        """Leave them all; whether the error is over. What one raises is told to the next."""
        given = error
        while self.exits:
            try:
                if self.exits.pop()(error):
                    error = None
            except AutodiffError as later:
                error = later
        if error is not None and error is not given:
            raise error
        return error is not given


def enter_manager(value: Any, entered: Entered) -> Any:
    """Enter one manager: what `as` binds."""
    if isinstance(value, GradMode):
        recorded, inference = value.enter()
        if value.before:
            recorded = value.before.pop()
        entered.exits.append(lambda error: switch(recorded, inference))
        return None
    if isinstance(value, Manager | Handle | Device):
        result = value.enter()
        entered.exits.append(value.leave)
        return result
    enter, leave = special(value, "__enter__"), special(value, "__exit__")
    if enter is None or leave is None:
        missed = " (missed __exit__ method)" if enter is not None else ""
        raise fault("E208 no-context-manager", kind_of(value), missed)
    result = call_value(enter, [], {})
    entered.exits.append(lambda error: _exit(leave, error))
    return result


def _exit(leave: Any, error: AutodiffError | None) -> bool:
    if ended(error):
        return False
    if error is None:
        call_value(leave, [None, None, None], {})
        return False

    value = caught(error, [EXCEPTIONS["BaseException"]])
    return value is not None and truth(call_value(leave, [value.cls, value, None], {}))


def entering(items: list[syntax.WithItem], context: Context) -> Callable[[Scope, Entered], None]:
    """Enters the managers of a `with`, one after the other."""
    parts = [
        (
            compile_expression(item.expr, context),
            compile_target(item.target, context, item.expr.span) if item.target else None,
            item.expr.span,
        )
        for item in items
    ]

    def enter(scope: Scope, entered: Entered) -> None:
        for make, assign, span in parts:
            value = make(scope)
            STATE.span = span
            try:
                bound = enter_manager(value, entered)
            except AutodiffError as error:
                raise placed(error, span) from None
            if assign is not None:
                assign(scope, bound)

    return enter


def with_steps(enter: Callable[[Scope, Entered], None], body: Steps) -> Steps:
    """The steps of a `with`."""

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
            entered.leave(closing())
            raise
        except BaseException as error:
            ended(error)
            entered.leave(None)
            raise
        entered.leave(None)
        return signal

    return steps


def compile_with(tree: syntax.With, context: Context) -> RunStatement:
    """The closure of a `with`."""
    body = as_steps(compile_block(tree.body, context))
    return at_once(with_steps(entering(tree.items, context), body))


def context_manager(function: Any) -> Any:
    """`@contextlib.contextmanager`: a generator function becomes a maker of managers."""
    if not isinstance(function, UserFunction):
        raise fail("E208", "`contextmanager` decorates generator functions", help="use `def`")

    def make(*args: Any, **kwargs: Any) -> Manager:
        running = call_value(function, list(args), kwargs)
        if not isinstance(running, Lazy):
            raise fault("E208 function-no-yield", function=function)
        steps: Any = running.source

        def enter() -> Any:
            for value in steps:
                return value
            raise fail("E208", "generator didn't yield", help="yield once", raises="RuntimeError")

        def leave(error: AutodiffError | None) -> bool:
            if error is not None:
                try:
                    steps.throw(error)  # where the generator yielded
                except StopIteration:
                    return True
                raise fault("E208 generator-didn-t-stop", " after throw()")
            for _ in steps:
                raise fault("E208 generator-didn-t-stop", "")
            return False

        return Manager(function.name, enter, leave, lambda: make(*args, **kwargs))

    return Method(function.name, make)


class ExitStack(Manager):
    """`contextlib.ExitStack`: managers that are entered one by one and left together."""

    __slots__ = ("entered",)

    def __init__(self) -> None:
        self.entered = Entered()
        super().__init__("ExitStack", lambda: self, self.entered.leave)

    def _callback(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        self.entered.exits.append(lambda error: call_value(function, list(args), kwargs) and None)
        return function

    def _popped(self) -> ExitStack:
        other = ExitStack()
        other.entered.exits[:] = self.entered.exits
        self.entered.exits.clear()
        return other

    def methods(self) -> dict[str, Callable[..., Any]]:
        return {
            "enter_context": lambda value: enter_manager(value, self.entered),
            "callback": self._callback,
            "pop_all": self._popped,
            "close": lambda: self.entered.leave(None) and None,
        }
