"""What a run is asked to do and what it reports: plain data between the language and everything
above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from ...autograd.rules import history
from ...defaults import MAX_DEPTH, MAX_MEMORY, MAX_STEPS
from ...errors import Ended
from ...graph.op import LEAF

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from ...engine.plan.describe import PlanData
    from ...engine.profile import Profile
    from ...errors import AutodiffError
    from ...graph.node import Node


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line sets for a program.

    `defines`: `(name, text, add)` of `-D name=text`, `add` for `-D +name=text`; `wrt`: names
    (globs) that are differentiated; `grad_output`: expression text of the upstream gradient;
    `folder`: where `load` reads, by default the folder of the program's file; `write`: receives
    what `print` writes, as it is written; `profile` and `plan`: measure the run, describe the plan
    of its last big evaluation; `cluster` (`engine.rows.cluster.Cluster`) has arrays of more
    rows than fit into memory; `opened`: what is taken of such a file (None: it is read whole).
    """

    loss: str | None = None
    wrt: tuple[str, ...] = ()
    grad_output: str | None = None
    dtype: str | None = None
    defines: tuple[tuple[str, str, bool], ...] = ()
    folder: Path | None = None
    allow_read: tuple[Path, ...] = ()
    max_memory: int = MAX_MEMORY
    max_steps: int = MAX_STEPS
    max_depth: int = MAX_DEPTH
    nan: Literal["warn", "error", "ignore"] = "warn"
    backward: bool = True
    write: Callable[[str], Any] | None = None
    profile: bool = False
    plan: bool = False
    cluster: Any = None
    opened: Callable[[str, str | None], Any] | None = None


FEW = 16  # numbers up to which Python's floats are quicker than NumPy's


def is_finite(array: np.ndarray) -> bool:
    """Whether an array has no NaN and no infinity."""
    if array.dtype.kind != "f":
        return True
    if array.size <= FEW:
        return all(map(isfinite, array.ravel().tolist()))
    from numpy import isfinite as finite

    return bool(finite(array).all())


@dataclass(slots=True)
class TensorRecord:
    """A tensor bound to a top-level name when the program ended, or a parameter inside what such a
    name means: then `name` says where, and `inside` is set."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None
    value: np.ndarray
    grad: np.ndarray | None
    node: Node
    inside: bool = False


@dataclass(slots=True)
class Report(Ended):
    """What a program did. On an error `tensors` is empty and `error` says what happened; `graph` is
    the node of what was differentiated and `objective` its name, also where the program did that
    itself and there is no `loss`; `leaves` names leaves by where their gradient adds up;
    `candidate` is what could have been differentiated, `returned`: by `autograd.grad`;
    `chosen`: the names that were asked for, none for all; `shown` the text of a last bare
    expression that was not a call of print;
    `snippet`: the program is Python, and prints what it wants to be seen; `blocked`: values and
    gradients (`NAME.grad`) that are in blocks of rows elsewhere (`engine.rows.passes.Rows`)."""

    file: str
    loss: str | None = None
    tensors: dict[str, TensorRecord] = field(default_factory=dict)
    scalars: dict[str, bool | int | float] = field(default_factory=dict)
    graph: Node | None = None
    objective: str | None = None
    leaves: dict[Any, str] = field(default_factory=dict)
    candidate: str | None = None
    returned: bool = False
    chosen: list[str] = field(default_factory=list)
    reached: set[str] | None = None
    shown: str | None = None
    snippet: bool = False
    profile: Profile | None = None
    plan: PlanData | None = None
    blocked: dict[str, Any] = field(default_factory=dict)

    def fail(self, error: AutodiffError) -> None:
        """The program failed: it has no results."""
        self.error = error
        self.tensors.clear()
        self.scalars.clear()

    @property
    def named(self) -> dict[str, TensorRecord]:
        """The tensors that top-level names mean: those that program text can give again."""
        return {name: record for name, record in self.tensors.items() if not record.inside}

    def connected(self, name: str) -> bool:
        """Whether what was differentiated depends on the leaf of this name."""
        if self.reached is None:
            nodes = () if self.graph is None else history(self.graph)
            keys = (n.args[0] for n in nodes if n.op is LEAF)
            self.reached = {self.leaves[key] for key in keys if key in self.leaves}
        return name in self.reached

    @property
    def finite(self) -> bool:
        """Whether no value and no gradient is NaN or infinite."""
        return all(
            is_finite(record.value) and (record.grad is None or is_finite(record.grad))
            for record in self.tensors.values()
        )
