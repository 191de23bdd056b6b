"""What a running program has set: grad mode, default dtype, the expression being evaluated, limits.

One mutable object, because ops read it on every application; `session` resets it for each program.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import FLOAT64

if TYPE_CHECKING:
    from ..errors import AutodiffError
    from ..source import Span


class State:
    """`grad`: whether applications are recorded for differentiation. `span`: place of the
    expression being evaluated. `max_bytes`: memory a program's tensors may take together.
    `batching`: in vmap, the `seq` from which nodes may stand for one example of many, else 0;
    `opened`: in `torch.func.grad` and its kin, the `seq` at which the innermost began, else 0;
    `levels`: the transforms whose functions are running, the outermost first; `dual`: whether
    forward mode is on, `unmoved`, between which nodes it was switched off; `packing`: what packs
    the values that nodes save, the innermost last, `unpacked`, why they may not be packed;
    `draws`: whether random numbers may be drawn. `overwriting`: something was changed in place, so
    that saved values have to be checked; `replaced`: also through `.data`;
    `recorder`: what a step of a loop is being recorded by (language/replay); `allow`: who is
    told of functions written in Python before they are called;
    `anomaly`: whether a NaN in a backward is an error. `made`: bytes of arrays that were made since
    a loop evaluated what it has. `addresses`: the `seq` of nodes that were printed, in their order.
    `over`: the limit that ended the program; whoever enters code of
    the program looks at it, or counts a step, which is one too many then."""

    __slots__ = (
        "addresses",
        "allow",
        "anomaly",
        "array_options",
        "assigned",
        "batching",
        "default_dtype",
        "default_generator",
        "draws",
        "dual",
        "early_stop",
        "grad",
        "inference",
        "levels",
        "made",
        "max_bytes",
        "max_depth",
        "max_steps",
        "opened",
        "over",
        "overwriting",
        "packing",
        "print_options",
        "recorder",
        "replaced",
        "span",
        "steps",
        "unmoved",
        "unpacked",
    )

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.grad = True
        self.inference = False
        self.early_stop: bool | None = None
        self.assigned: dict[tuple[str, str], Any] = {}  # names that a program gives to a module
        self.batching = 0
        self.opened = 0
        self.levels: list[Any] = []
        self.dual = False
        self.unmoved: list[tuple[int, int]] = []
        self.packing: list[Any] = []
        self.unpacked: list[str] = []
        self.draws = True
        self.default_dtype: np.dtype = FLOAT64
        self.default_generator: Any = None
        self.anomaly = False
        self.overwriting = False
        self.replaced = False
        self.print_options: Any = None
        self.recorder: Any = None
        self.array_options: dict[str, Any] = {}
        self.allow: Any = None
        self.span: Span | None = None
        self.max_bytes = 1 << 30
        self.max_steps = 1_000_000
        self.max_depth = 1000
        self.steps = 0
        self.made = 0
        self.addresses: dict[int, int] = {}
        self.over: AutodiffError | None = None

    def end(self, error: AutodiffError) -> None:
        """A limit ended the program: nothing of it runs any more."""
        if self.over is None:
            self.over = error
        self.max_steps = -1


STATE = State()

# Held by the thread that runs a program, calls a compiled one, or evaluates: they share the state,
# the workers, and the memory that plans keep. Nobody forks in the middle of it.
LOCK = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )

# Called with the node and the numbers whenever a program takes numbers out of the graph (`item()`,
# `tolist()`, an index, `torch.tensor(t)`); what they return is what the program gets.
READERS: list[Any] = []

# Called with an op that leaves no node of its own, its arguments and its result: those who write a
# graph down want to know by which call its nodes were made.
CALLERS: list[Any] = []


def taken_out(node: Any, value: Any) -> Any:
    """Numbers of a node that leave the graph, as those who watch for it want them."""
    for read in READERS:
        value = read(node, value)
    return value


class grad_mode:
    """Context manager that sets whether applications are recorded."""

    __slots__ = ("before", "enabled")

    def __init__(self, enabled: bool):
        self.enabled = enabled
        self.before = True

    def __enter__(self) -> None:
        self.before = STATE.grad
        STATE.grad = self.enabled

    def __exit__(self, *exc: object) -> None:
        STATE.grad = self.before
