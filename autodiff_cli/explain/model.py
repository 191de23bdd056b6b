"""An explanation as data: the forward values, the steps of the chain rule, the totals, the check.

Invariant: every number in it is a value of the graph that computed the gradient, and the
contributions to a name add up to its total unless a hook replaced it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import Ended
from ..source import Span

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be explained. `of` and `wrt` as everywhere; `node`: only the steps of this
    expression; `open`: ops whose bodies are explained in place of their own rule; `every`: one
    step for each node, however many there are; `check`: compare with differences at the end."""

    of: str | None = None
    wrt: tuple[str, ...] = ()
    node: str | None = None
    open: tuple[str, ...] = ()
    every: bool = False
    check: bool = True


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression with the program's names, as text and as LaTeX."""

    text: str
    latex: str


@dataclass(frozen=True, slots=True)
class Forward:
    """One value of the forward pass, and where it stands. `times`: how often its statement ran."""

    number: int
    name: str
    expression: Formula
    shape: Shape
    dtype: str
    value: np.ndarray
    span: Span | None
    times: int = 1

    @property
    def line(self) -> int | None:
        return None if self.span is None else self.span.line


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one step adds to the gradient of `to`.

    It is number `path` of `paths`. `broadcast` is the shape that `to` was broadcast to, when that
    is undone here; `made` is the number of the step that made `to`, 0 for a leaf. Of a folded loop,
    `times` contributions are one: their sum when they go to one tensor, else the last one (`norms`:
    of the last and of the first iteration).
    """

    to: str
    formula: Formula
    shape: Shape
    value: np.ndarray
    path: int = 1
    paths: int = 1
    broadcast: Shape | None = None
    times: int = 1
    norms: tuple[float, float] | None = None
    made: int = 0


@dataclass(frozen=True, slots=True)
class Incoming:
    """The gradient that arrives at a step, from so many paths; `hooked` when a hook replaced it."""

    name: str
    value: np.ndarray
    paths: int = 1
    hooked: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One application of the chain rule: an op, or all ops of a statement.

    `op` is a sign or a name, `rule` says in words what its rule does, `line` is where it stands.
    """

    number: int
    op: str
    rule: str
    source: str
    line: int | None
    incoming: tuple[Incoming, ...]
    contributions: tuple[Contribution, ...]
    times: int = 1


@dataclass(frozen=True, slots=True)
class Seed:
    """Where backward starts: 1 for a single number, else the upstream gradient."""

    name: str
    value: np.ndarray
    given: bool = False


@dataclass(frozen=True, slots=True)
class Total:
    """The gradient of one name, and its value `at` which that was found."""

    name: str
    shape: Shape
    value: np.ndarray
    paths: int
    at: np.ndarray
    hooked: bool = False


@dataclass(frozen=True, slots=True)
class Verified:
    """What central differences say. `kind`: right, wrong, kink, cut, noisy, mixed or unknown;
    `largest`: the largest difference seen, `text`: the verdict in words."""

    kind: str
    largest: float
    text: str
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class Explanation(Ended):
    """An explanation, or the error that prevented it."""

    file: str
    objective: str = ""
    seeds: tuple[Seed, ...] = ()
    forward: tuple[Forward, ...] = ()
    steps: tuple[Step, ...] = ()
    totals: tuple[Total, ...] = ()
    check: Verified | None = None
    grouped: bool = False
    backwards: int = 1
