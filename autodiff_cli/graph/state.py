"""What a running program has set: grad mode, default dtype, the expression being evaluated, limits.

One object holds all that belongs to a run; each thread has its own, and a run inside of a run
(`own_state`) leaves that of the outer one as it is. Ops read it on every application.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, local
from typing import Any

import numpy as np

from ..defaults import MAX_DEPTH, MAX_MEMORY, MAX_STEPS
from ..errors import AutodiffError, Diagnostic
from ..outside import OUTSIDE
from ..source import Span
from .dtypes import FLOAT64

MOST_WARNINGS = 100


class Run:
    """What a program has set when it begins. `grad`: whether applications are recorded for
    differentiation. `span`: place of the expression being evaluated, `called`:
    where the program called the library, while that runs. `max_bytes`: memory a
    program's tensors may take together. `batching`: in vmap, the `seq` from which nodes may stand
    for one example of many, else 0; `opened`: in `torch.func.grad` and its kin, the `seq` at which
    the innermost began, else 0; `levels`: the transforms whose functions are running, the
    outermost first; `entered`, how many of them record, `forward`, how many use forward mode and
    may nest; `different`: the traces of `vmap(..., randomness="different")` that are running.
    `dual`: whether forward mode is on, `unmoved`, between which nodes it was switched off,
    `duals`, what became dual in the level, with its tangent (language/torch/duals.py), `written`,
    who is told there of tensors that are changed in place;
    `packing`: what packs the values that nodes save, the innermost last, `unpacked`, why they may
    not be packed; `inference`: whether tensors are made in inference mode, `silenced`, whether it
    alone keeps them from being recorded, `inferred`, the `seq` at which that began and ended in
    turn; `draws`: whether random numbers may be drawn,
    `seed`: what the generator starts from, if that was said.
    `overwriting`: something was changed in place, so that saved values have to be checked;
    `replaced`: also through `.data`; `recorder`: what a step of a loop is being recorded by
    (language/replay); `bare`: what a bare expression gave before that step; `allow`: who is told
    of functions written in Python before they are called; `anomaly`: whether a NaN in a backward
    is an error. `made`: bytes of arrays that were made since a loop evaluated what it has,
    `garbage`, since cycles were looked for; `began`, `mark`: the nodes at which the program, and
    what a loop has not evaluated, began; `look`: the step at which a loop asks for both.
    `addresses`: the `seq` of nodes that were printed, and which of their functions, in order.
    `over`: the limit that ended the program; whoever enters code of the program looks at it, or
    counts a step, which is one too many then.

    Of the language: `python`: whether the program is a snippet of Python (it imports
    something), whose lists are only lists. `depth`: calls of its functions inside one another.
    `write`: where `print` writes. `warnings`: each once a place. `handled`: the exceptions
    whose handlers are running. `files`: what it may read and has saved. `streams`: generators
    that are not PyTorch's. `overrides`: what replaces the first assignment of a name (`-D`).
    `shown`, `shown_span`: the last bare expression at module level. `last`: the last scalar
    that was computed there, with its name; `wrt`: names to differentiate with respect to.
    `unequal`: the arrays that `allclose` found different. `printing`: what a `repr` is inside
    of. `differentiated`: the `seq` of what was differentiated last, and whether by `backward()`.
    `hooked`: how many hooks were registered, `module_hooks`, those of all modules."""

    def __init__(self) -> None:
        self.grad = True
        self.inference = False
        self.silenced = False
        self.inferred: list[int] = []
        self.early_stop: bool | None = None
        self.assigned: dict[tuple[str, str], Any] = {}  # names that a program gives to a module
        self.batching = 0
        self.opened = 0
        self.levels: list[Any] = []
        self.dual = False
        self.unmoved: list[tuple[int, int]] = []
        self.packing: list[Any] = []
        self.parametrized: dict[Any, Any] | None = None  # what `parametrize.cached` keeps
        self.unpacked: list[str] = []
        self.draws = True
        self.default_dtype: np.dtype = FLOAT64
        self.default_generator: Any = None
        self.seed: tuple[int, ...] = ()
        self.anomaly = False
        self.overwriting = False
        self.replaced = False
        self.print_options: Any = None
        self.recorder: Any = None
        self.array_options: dict[str, Any] = {}
        self.allow: Any = None
        self.span: Span | None = None
        self.called: Span | None = None
        self.max_bytes = MAX_MEMORY
        self.max_steps = MAX_STEPS
        self.max_depth = MAX_DEPTH
        self.steps = 0
        self.made = 0
        self.addresses: dict[tuple[int, int], int] = {}
        self.over: AutodiffError | None = None
        self.entered = self.forward = 0
        self.different: list[Any] = []
        self.duals: list[Any] = []
        self.written: Callable[[Any, Any], None] | None = None  # told of changes in place
        self.bare: list[Any] = []
        self.began = self.mark = self.garbage = self.look = 0
        self.python = False
        self.depth = 0
        self.write: Callable[[str], Any] = lambda piece: None
        self.warnings: list[Diagnostic] = []
        self.handled: list[AutodiffError] = []
        self.files: Any = None
        self.streams: dict[str, Any] = {}
        self.overrides: dict[str, Any] = {}
        self.shown: Any = None
        self.shown_span: Any = None
        self.last: tuple[str | None, Any] | None = None
        self.wrt: dict[str, None] = {}
        self.differentiated = (0, True)
        self.hooked = 0
        self.module_hooks: Any = None  # those of all modules
        self.only: Any = None  # what the only backward pass began at
        self.unequal: list[Any] = []
        self.printing: list[int] = []
        self.grad_read: list[Callable[[], None]] = []


_BEGIN = vars(Run())
_LISTS, _DICTS = ([n for n, v in _BEGIN.items() if type(v) is kind] for kind in (list, dict))
_PLAIN = {n: v for n, v in _BEGIN.items() if type(v) not in (list, dict)}


class State(Run, local):
    """What a program has set; and of those who watch it, for all programs of a call: `runs`, how
    many are inside one another; `readers` are called with the node and the numbers whenever a
    program takes numbers out of the graph (`item()`, `tolist()`, an index, `torch.tensor(t)`);
    what they return is what the program gets. `callers` are called with an op that leaves no node
    of its own, its arguments and its result. `attempts` are told what is going to be
    differentiated, `observers`, with which seeds, `results`, also what came of it; `observer` sees
    every evaluation (`engine.profile.Observer`). `grad_read`: called before a gradient is read."""

    def __init__(self) -> None:
        self.reset()
        self.runs = 0
        self.readers: list[Callable[[Any, Any], Any]] = []
        self.callers: list[Callable[[Any, Any, Any], None]] = []
        self.attempts: list[Callable[[Any], None]] = []
        self.observers: list[Callable[[Any], None]] = []
        self.results: list[Callable[[Any, Any], None]] = []
        self.observer: Any = None

    @property
    def place(self) -> Span | None:
        """The place of what is being evaluated that a person can look at."""
        span = self.span
        return span if span is None or span.source.shown else self.called

    def warn(self, code: str, message: str, help: str) -> None:
        """Warn of what is being evaluated, once a place."""
        warning = Diagnostic(code, message, self.place, helps=(help,), severity="warning")
        if warning not in self.warnings and len(self.warnings) < MOST_WARNINGS:
            self.warnings.append(warning)

    def reset(self) -> None:
        """A program begins; who watches it has said so before."""
        now = vars(self)
        now.update(_PLAIN)
        for name in _LISTS:
            now[name] = []
        for name in _DICTS:
            now[name] = {}

    def end(self, error: AutodiffError) -> None:
        """A limit ended the program: nothing of it runs any more."""
        if self.over is None:
            self.over = error
        self.max_steps = -1


STATE = State()

# Held for a moment by a thread that changes what all threads share; nobody forks meanwhile.
LOCK = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )

RECURSION_LIMIT = 30_000
_LIMITS: list[int] = []  # Python's recursion limit as it was, for each run that goes on


@contextmanager
def own_state(state: dict[str, Any] | None = None) -> Iterator[None]:
    """A run has a state of its own here, a fresh one or this, a deep stack, and numbers that
    overflow without words of NumPy's. What ran before finds its state again; where nothing did,
    what the program left behind does not run either, and there is memory to say what it did."""
    now = vars(STATE)
    outer = now.copy()
    if state is None:
        STATE.__init__()  # type: ignore[misc]  # what each thread begins with
    else:
        now.update(state)
    STATE.runs = outer["runs"] + 1
    with LOCK:
        _LIMITS.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(_LIMITS[0], RECURSION_LIMIT))
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with LOCK:
            before = _LIMITS[0]
            _LIMITS.pop()
            if not _LIMITS:
                sys.setrecursionlimit(before)
        over = STATE.over
        now.update(outer)
        if not STATE.runs:
            STATE.over = over
            if over is not None:  # it stays, and would hold what the program had
                over.__traceback__ = over.__context__ = None
            OUTSIDE.relieve()


def taken_out(node: Any, value: Any) -> Any:
    """Numbers of a node that leave the graph, as those who watch for it want them."""
    for read in STATE.readers:
        value = read(node, value)
    return value


def packs() -> bool:
    """Whether values that nodes save go through hooks; where inference mode was entered, what looks
    for its tensors among them is first in `packing`."""
    return len(STATE.packing) > bool(STATE.inferred)


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
