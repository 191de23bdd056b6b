"""The language's state between statements of a session: grad mode, default dtype, random stream.

A session keeps it as a dict, puts it there while it runs something, and takes it out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..graph.state import STATE, own_state
from ..language.program.report import Options
from ..language.python.loading import Files
from ..language.values.housekeeping import HOUSEKEEPING
from ..outside import OUTSIDE


def fresh_state(options: Options, dtype: Any, python: bool = False) -> dict[str, Any]:
    """What a program finds when it begins."""
    with own_state():
        STATE.default_dtype, STATE.python = dtype, python
        STATE.max_bytes = options.max_memory
        STATE.max_steps = options.max_steps
        STATE.max_depth = options.max_depth
        STATE.files = Files(None, tuple(options.allow_read))
        return vars(STATE).copy()


@contextmanager
def entered(
    state: dict[str, Any], write: Callable[[str], Any], hooks: list[Callable[[], None]]
) -> Iterator[None]:
    """The language has this state here, and afterwards that which it had before."""
    with own_state(state):
        OUTSIDE.bound(STATE.max_bytes, goes_on=True)
        STATE.steps = STATE.depth = 0
        STATE.span = STATE.shown = STATE.shown_span = None
        STATE.wrt, STATE.overrides, STATE.warnings = {}, {}, []
        STATE.grad_read, STATE.write = hooks, write
        HOUSEKEEPING.restart()
        try:
            yield
        finally:
            state.update(vars(STATE))
