"""What is done with one block: the steps of a graph as data, which any process can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...graph.node import Node
from ...graph.op import CAST, CONSTANT, OUTPUT
from ...graph.registry import op
from ...graph.state import STATE, own_state
from ..evaluate import evaluate
from .placement import Placement, along

SOURCES = {"cast": CAST, "output": OUTPUT}

Form = tuple[tuple[int, ...], Placement | None]  # a shape, and where its rows are


class Ref(int):
    """The number of an earlier step in place of an argument."""


class Step(NamedTuple):
    """One op: its key, arguments with `Ref` in place of nodes and `Form` in place of sizes, and the
    form and dtype of its result, or of each result."""

    key: str
    args: tuple[Any, ...]
    form: Form
    dtype: np.dtype
    outputs: tuple[tuple[Form, np.dtype], ...] | None


class Sized(NamedTuple):
    """A size among arguments."""

    form: Form

    def of(self, count: int) -> tuple[int, ...]:
        """The size for so many rows."""
        shape, rows = self.form
        if rows is None:
            return shape
        axis, times = rows
        return (*shape[:axis], count * times, *shape[axis + 1 :])


class Job(NamedTuple):
    """Steps over a block: first its own arrays, then whole ones (cut along `rows` where those are
    given), then ops. `wanted` are the numbers of its results, `measured` of those whose statistics
    are."""

    blocks: int
    whole: tuple[Placement | None, ...]
    steps: tuple[Step, ...]
    wanted: tuple[int, ...]
    measured: tuple[int, ...]
    max_bytes: int

    def __call__(
        self, start: int, count: int, blocks: list[np.ndarray], whole: Sequence[np.ndarray]
    ) -> list[Any]:
        """The results for rows `start` to `start + count`."""
        with own_state():
            STATE.max_bytes = self.max_bytes
            STATE.grad = False
            arrays = [
                *blocks,
                *(cut(a, p, start, count) for a, p in zip(whole, self.whole, strict=True)),
            ]
            nodes = [_known(np.asarray(array)) for array in arrays]
            for step in self.steps:
                nodes.append(_made(step, nodes, count))
            targets = [nodes[i] for i in (*self.wanted, *self.measured)]
            evaluate([n for n in dict.fromkeys(targets) if n.value is None], last=True)
            found = [node.value for node in targets]
            kept = len(self.wanted)
            return [*found[:kept], *map(measure, found[kept:])]


def cut(array: np.ndarray, rows: Placement | None, start: int, count: int) -> np.ndarray:
    """The part of a whole array that belongs to these rows."""
    if rows is None:
        return array
    axis, times = rows
    return array[along(axis, start * times, (start + count) * times)]


def pick(array: np.ndarray, rows: Placement, numbers: np.ndarray) -> np.ndarray:
    """The parts of a whole array that belong to rows of these numbers."""
    axis, times = rows
    return array.take((numbers[:, None] * times + np.arange(times)).ravel(), axis)


def _known(array: np.ndarray) -> Node:
    return Node(CONSTANT, (), (), array.shape, array.dtype, False, array)


def _made(step: Step, nodes: list[Node], count: int) -> Node:
    args = tuple([_argument(arg, nodes, count) for arg in step.args])
    inputs = tuple([
        n for arg in args for n in (arg if type(arg) is tuple else (arg,)) if type(n) is Node
    ])  # fmt: skip
    node = Node(
        SOURCES.get(step.key) or op(step.key), args, inputs, Sized(step.form).of(count), step.dtype
    )
    if step.outputs is not None:
        node.outputs = tuple((Sized(form).of(count), dtype) for form, dtype in step.outputs)
    return node


def _argument(arg: Any, nodes: list[Node], count: int) -> Any:
    kind = type(arg)
    if kind is Ref:
        return nodes[arg]
    if kind is Sized:
        return arg.of(count)
    if kind is tuple:
        return tuple([_argument(part, nodes, count) for part in arg])
    return arg


class Measured(NamedTuple):
    """What a table says of numbers that are somewhere else."""

    minimum: float
    maximum: float
    squares: float
    finite: bool
    blocks: int = 1

    @property
    def norm(self) -> float:
        """The Euclidean norm."""
        return float(np.sqrt(self.squares))

    def shown(self) -> dict[str, Any]:
        """What people are told."""
        return {"norm": self.norm, "min": self.minimum, "max": self.maximum, "finite": self.finite}

    def __add__(self, other: Measured) -> Measured:  # type: ignore[override]  # of two blocks
        return Measured(
            float(np.fmin(self.minimum, other.minimum)),
            float(np.fmax(self.maximum, other.maximum)),
            self.squares + other.squares,
            self.finite and other.finite,
            self.blocks + other.blocks,
        )


def measure(array: np.ndarray) -> Measured:
    """The statistics of a block."""
    if not array.size:
        return Measured(np.nan, np.nan, 0.0, True)
    flat = array.ravel()
    wide = np.asarray(flat, np.float64)
    return Measured(
        float(flat.min()), float(flat.max()), float(wide @ wide), bool(np.isfinite(flat).all())
    )


def combine(how: str | int, parts: list[Any]) -> Any:
    """What the results of several blocks make together: joined along an axis, or by a ufunc."""
    if isinstance(how, int):
        return np.concatenate(parts, how)
    found = parts[0]
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            found = found + part if how in ("", "add", "begun") else getattr(np, how)(found, part)
    return found
