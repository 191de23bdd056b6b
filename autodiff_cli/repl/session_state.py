"""The language's state between statements: grad mode, default dtype, random stream, dialect.

The language keeps it in module-level objects that belong to whatever runs; a session puts its own
there while it runs something, and takes it out again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import Diagnostic
from ..graph.state import STATE, State
from ..language.errors.warnings import COLLECTED
from ..language.program.report import Options
from ..language.program.running import RECURSION_LIMIT
from ..language.python.builtins import OUTPUT
from ..language.python.loading import FILES
from ..language.runtime.attributes import GRAD_READ
from ..language.values.dialect import MODE
from ..language.values.housekeeping import HOUSEKEEPING
from ..language.values.run_hooks import OVERRIDES, SHOWN, WATCH
from ..outside import OUTSIDE

_SETTINGS = State.__slots__


class World:
    """A copy of the language's settings as one session has them."""

    __slots__ = ("allowed", "last", "python", "state", "warnings")

    def __init__(self, state: dict[str, Any], python: bool, last: Any, allowed: Any):
        self.state = state
        self.python = python
        self.last = last
        self.allowed = allowed
        self.warnings: list[Diagnostic] = []

    @classmethod
    def fresh(cls, options: Options, dtype: Any, python: bool = False) -> World:
        """What a program finds when it begins."""
        state = {name: getattr(State(), name) for name in _SETTINGS}
        state["default_dtype"] = dtype
        state["max_bytes"] = options.max_memory
        state["max_steps"] = options.max_steps
        state["max_depth"] = options.max_depth
        return cls(state, python, None, tuple(options.allow_read))

    def copy(self) -> World:
        return World(dict(self.state), self.python, self.last, self.allowed)

    def collected(self) -> list[Diagnostic]:
        """The warnings of what is running."""
        return list(COLLECTED)

    @contextmanager
    def entered(
        self, write: Callable[[str], Any], hooks: list[Callable[[], None]]
    ) -> Iterator[None]:
        """The language has these settings here, and afterwards those that it had before."""
        outer = _outer()
        if sys.getrecursionlimit() < RECURSION_LIMIT:
            sys.setrecursionlimit(RECURSION_LIMIT)
        for name, value in self.state.items():
            setattr(STATE, name, value)
        OUTSIDE.bound(STATE.max_bytes)
        STATE.steps = 0
        STATE.span = None
        MODE.python = self.python
        WATCH.clear()
        WATCH.last = self.last
        SHOWN.clear()
        OVERRIDES.values = {}
        COLLECTED.clear()
        GRAD_READ[:] = hooks
        OUTPUT.write = write
        FILES.allowed = self.allowed
        HOUSEKEEPING.restart()
        try:
            yield
        finally:
            self.state = {name: getattr(STATE, name) for name in _SETTINGS}
            self.state["span"] = None
            self.last = WATCH.last
            over = STATE.over
            _put(outer)
            STATE.over = STATE.over or over  # what the program left behind does not run either


def _outer() -> tuple[Any, ...]:
    return (
        {name: getattr(STATE, name) for name in _SETTINGS},
        MODE.python, WATCH.last, WATCH.wrt, OVERRIDES.values, list(COLLECTED), list(GRAD_READ),
        OUTPUT.write, FILES.allowed, FILES.folder,
    )  # fmt: skip


def _put(outer: tuple[Any, ...]) -> None:
    state, python, last, wrt, overrides, collected, hooks, write, allowed, folder = outer
    for name, value in state.items():
        setattr(STATE, name, value)
    MODE.python = python
    WATCH.last, WATCH.wrt = last, wrt
    OVERRIDES.values = overrides
    COLLECTED[:] = collected
    GRAD_READ[:] = hooks
    OUTPUT.write = write
    FILES.allowed, FILES.folder = allowed, folder
