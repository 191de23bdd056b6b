"""The workloads as data: what is computed, on which arrays, in which sizes, and what to reach.

A workload knows nothing of who computes it; each peer module has a function of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
Sizes = dict[str, int]

OPERATION = 5e-6  # seconds that one op of a long graph of small tensors may take, with its gradient


@dataclass(frozen=True)
class Goals:
    """What is to be reached: ratios of our time to each peer's, of the first calls, and of our peak
    of memory to the bytes of the results (0: nothing said)."""

    ratios: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    memory: float = 0.0


@dataclass(frozen=True)
class Workload:
    """One line of the table.

    `inputs(generator, **sizes)` makes the arrays; `small` are sizes for a quick look; `tolerance`
    is how far results may be from those of hand-written NumPy; `goals` are ratios to reach, by
    peer, `first_goals` those of the first calls and `memory` that of our peak to the bytes of the
    results; `operations(**sizes)` counts the ops where the limit is a time for each; `task` names
    the function when several workloads share one.
    """

    name: str
    what: str
    inputs: Callable[..., Arrays]
    sizes: Sizes
    small: Sizes
    tolerance: float = 1e-9
    goals: dict[str, float] = field(default_factory=dict)
    first_goals: dict[str, float] = field(default_factory=dict)
    memory: float = 0.0
    operations: Callable[..., int] | None = None
    dtype: str = "float64"
    task: str = ""

    @property
    def function(self) -> str:
        """The name of the function in the peers' modules."""
        return (self.task or self.name).replace("-", "_")

    @property
    def wanted(self) -> Goals:
        """All goals of the workload."""
        return Goals(self.goals, self.first_goals, self.memory)

    def allowed(self, small: bool) -> float:
        """The seconds that a limit for each operation allows; 0 where there is none."""
        if self.operations is None:
            return 0.0
        return OPERATION * self.operations(**(self.small if small else self.sizes))

    def arrays(self, small: bool) -> Arrays:
        """The inputs; the same in every process."""
        made = self.inputs(np.random.default_rng(7), **(self.small if small else self.sizes))
        return {
            name: array.astype(self.dtype) if array.dtype == np.float64 else array
            for name, array in made.items()
        }


def _neuron(random: np.random.Generator, n: int) -> Arrays:
    return {name: random.standard_normal(n) for name in ("w", "x", "b")}


def _chain(random: np.random.Generator, n: int) -> Arrays:
    return {"x": random.standard_normal(n)}


def _norm(random: np.random.Generator, rows: int, columns: int) -> Arrays:
    return {
        "x": random.standard_normal((rows, columns)),
        "weight": 1 + 0.1 * random.standard_normal(columns),
        "bias": 0.1 * random.standard_normal(columns),
        "target": random.integers(0, columns, rows),
    }


def _mlp(random: np.random.Generator, batch: int, width: int) -> Arrays:
    arrays = {
        "x": random.standard_normal((batch, width)),
        "t": random.standard_normal((batch, width)),
    }
    for layer in "123":
        arrays["W" + layer] = random.standard_normal((width, width)) / np.sqrt(width)
        arrays["b" + layer] = 0.1 * random.standard_normal(width)
    return arrays


def _logistic(random: np.random.Generator, rows: int, columns: int, steps: int) -> Arrays:
    x = random.standard_normal((rows, columns))
    noise = 0.5 * random.standard_normal(rows)
    t = (x @ random.standard_normal(columns) + noise > 0).astype(float)
    return {"X": x, "t": t, "steps": np.array(steps)}


def _classify(random: np.random.Generator, rows: int, columns: int, count: int = 0) -> Arrays:
    arrays = _logistic(random, rows, columns, count)
    arrays["count"] = arrays.pop("steps")
    return {"w": random.standard_normal(columns), "b": np.array(0.1), **arrays}


def batches(X: np.ndarray, t: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first rows, as many as there are and so many times one less."""
    return [(X[:n], t[:n]) for n in range(len(X), len(X) - int(count), -1)]


def together(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The results of several batches as arrays."""
    return {name: np.array([each[name] for each in found]) for name in found[0]}


def _scalars(random: np.random.Generator, steps: int) -> Arrays:
    return {"x": np.array(0.3), "steps": np.array(steps)}


def _rnn(random: np.random.Generator, steps: int, hidden: int, width: int) -> Arrays:
    return {
        "W": random.standard_normal((hidden, hidden)) / np.sqrt(hidden),
        "U": random.standard_normal((hidden, width)),
        "x": random.standard_normal((steps, width)),
        "steps": np.array(steps),
    }


def _conv(random: np.random.Generator, images: int, side: int) -> Arrays:
    return {
        "x": random.standard_normal((images, 16, side, side)),
        "w": random.standard_normal((32, 16, 3, 3)) / 12,
    }


def _pool(random: np.random.Generator, images: int, side: int) -> Arrays:
    return {"x": random.standard_normal((images, 32, side, side))}


def _jacobian(random: np.random.Generator, width: int) -> Arrays:
    arrays = {"x": random.standard_normal(width)}
    for layer in "123":
        arrays["W" + layer] = random.standard_normal((width, width)) / np.sqrt(width)
    return arrays


def _hessian(random: np.random.Generator, width: int) -> Arrays:
    return {
        "x": random.standard_normal(width),
        "W": random.standard_normal((width, width)) / np.sqrt(width),
    }


def _literal(random: np.random.Generator, n: int) -> Arrays:
    return {"values": random.standard_normal(n)}


def _many(random: np.random.Generator, count: int) -> Arrays:
    return {"seed": random.integers(0, 1000, ()), "count": np.array(count)}


WORKLOADS: tuple[Workload, ...] = (
    Workload(
        "neuron",
        "sum((1 - sigmoid(w*x + b))**2), 4e6 elements, gradients of w, x, b",
        _neuron,
        {"n": 4_000_000},
        {"n": 4_000},
        goals={"torch": 0.40, "jax": 0.65, "torch-compile": 1.25, "limit": 1.9},
        first_goals={"torch-compile": 0.05},
    ),
    Workload(
        "neuron-f32",
        "the same in float32",
        _neuron,
        {"n": 4_000_000},
        {"n": 4_000},
        tolerance=1e-3,
        goals={"torch": 0.50, "jax": 0.75, "torch-compile": 1.4, "limit": 1.9},
        first_goals={"torch-compile": 0.05},
        dtype="float32",
        task="neuron",
    ),
    Workload(
        "neuron-tiny",
        "the same on 3 elements: what a call costs",
        _neuron,
        {"n": 3},
        {"n": 3},
        task="neuron",
    ),
    Workload(
        "chain",
        "24 mixed elementwise operations on 1e6 elements and their gradient",
        _chain,
        {"n": 1_000_000},
        {"n": 1_000},
        goals={"torch": 0.45, "jax": 0.50, "torch-compile": 0.80, "limit": 1.15},
    ),
    Workload(
        "chain-1e7",
        "the same on 1e7 elements",
        _chain,
        {"n": 10_000_000},
        {"n": 10_000},
        goals={"torch": 0.45, "jax": 0.50, "torch-compile": 0.80, "limit": 1.15},
        task="chain",
    ),
    Workload(
        "norm",
        "layer norm, gelu, softmax cross-entropy on [4096, 1024]",
        _norm,
        {"rows": 4096, "columns": 1024},
        {"rows": 16, "columns": 8},
        goals={"torch": 0.80, "jax": 0.70, "torch-compile": 1.0},
        memory=1.15,
    ),
    Workload(
        "norm-f32",
        "the same in float32",
        _norm,
        {"rows": 4096, "columns": 1024},
        {"rows": 16, "columns": 8},
        tolerance=1e-3,
        goals={"torch": 1.0, "jax": 0.75, "torch-compile": 1.2},
        memory=1.15,
        dtype="float32",
        task="norm",
    ),
    Workload(
        "mlp",
        "three layers, batch 512, width 1024, gradients of weights and biases",
        _mlp,
        {"batch": 512, "width": 1024},
        {"batch": 4, "width": 8},
        goals={"torch": 0.95, "jax": 1.0, "torch-compile": 1.0, "limit": 1.05},
    ),
    Workload(
        "logistic",
        "logistic regression, 1000 steps on [1000, 20], a program with torch.optim.SGD",
        _logistic,
        {"rows": 1000, "columns": 20, "steps": 1000},
        {"rows": 20, "columns": 3, "steps": 4},
        goals={"torch": 0.12, "jax": 1.3, "limit": 1.1},
    ),
    Workload(
        "logistic-10",
        "10 steps of it on [100, 20]: read, run, differentiated and shown anew by each call",
        _logistic,
        {"rows": 100, "columns": 20, "steps": 10},
        {"rows": 20, "columns": 3, "steps": 4},
        goals={"torch": 1.0},
        task="logistic",
    ),
    Workload(
        "classify",
        "one loss and gradient of logistic regression, [100, 20]: what a call costs",
        _classify,
        {"rows": 100, "columns": 20},
        {"rows": 20, "columns": 3},
        goals={"jax": 0.48},
    ),
    Workload(
        "sizes",
        "the same for 40 sizes of the batch, none of which the function has seen",
        _classify,
        {"rows": 100, "columns": 20, "count": 40},
        {"rows": 20, "columns": 3, "count": 4},
        goals={"hips": 0.9},
    ),
    Workload(
        "sizes-again",
        "the same, all of which it has seen",
        _classify,
        {"rows": 100, "columns": 20, "count": 40},
        {"rows": 20, "columns": 3, "count": 4},
        goals={"hips": 0.16},
    ),
    Workload(
        "scalars",
        "a chain of 1e5 scalar operations and its gradient",
        _scalars,
        {"steps": 20_000},
        {"steps": 20},
        goals={"torch": 0.5, "limit": 1.0},
        operations=lambda steps: 5 * steps,
    ),
    Workload(
        "scalars-program",
        "the same as a program that the command reads, runs, differentiates and shows at each call",
        _scalars,
        {"steps": 20_000},
        {"steps": 20},
        goals={"torch": 1.0, "limit": 1.0},
        operations=lambda steps: 5 * steps,
    ),
    Workload(
        "scalars-library",
        "the same program through the library, with Python's own settings of the collector",
        _scalars,
        {"steps": 20_000},
        {"steps": 20},
        operations=lambda steps: 5 * steps,
    ),
    Workload(
        "rnn",
        "a recurrent network of 2000 steps, 32 wide, gradients of both weights",
        _rnn,
        {"steps": 2000, "hidden": 32, "width": 8},
        {"steps": 5, "hidden": 3, "width": 2},
        goals={"torch": 0.2, "limit": 1.0},
        operations=lambda steps, **_: 5 * steps,
    ),
    Workload(
        "rnn-100",
        "the same of 100 steps",
        _rnn,
        {"steps": 100, "hidden": 32, "width": 8},
        {"steps": 5, "hidden": 3, "width": 2},
        goals={"jax": 1.8},
        first_goals={"hips": 0.73},
        task="rnn",
    ),
    Workload(
        "conv",
        "conv2d [16, 16, 64, 64] * [32, 16, 3, 3], gradients of both",
        _conv,
        {"images": 16, "side": 64},
        {"images": 2, "side": 6},
        goals={"numpy": 2.0, "torch": 0.9, "jax": 0.9, "limit": 1.4},
    ),
    Workload(
        "conv-f32",
        "the same in float32",
        _conv,
        {"images": 16, "side": 64},
        {"images": 2, "side": 6},
        tolerance=1e-3,
        goals={"numpy": 2.0, "torch": 2.5, "jax": 1.6, "limit": 1.4},
        dtype="float32",
        task="conv",
    ),
    Workload(
        "max-pool",
        "max_pool2d, windows of 3 by 3 with stride 2, on [16, 32, 64, 64]",
        _pool,
        {"images": 16, "side": 64},
        {"images": 2, "side": 7},
        goals={"numpy": 2.0},
    ),
    Workload(
        "avg-pool",
        "avg_pool2d, the same windows",
        _pool,
        {"images": 16, "side": 64},
        {"images": 2, "side": 7},
        goals={"numpy": 2.0},
    ),
    Workload(
        "jacobian",
        "the Jacobian of three tanh layers, 200 wide (`jacobian`, torch.func.jacrev)",
        _jacobian,
        {"width": 200},
        {"width": 4},
        goals={"numpy": 1.3, "torch": 0.4, "jax": 0.8},
    ),
    Workload(
        "hessian",
        "the Hessian of sum(tanh(W @ x)**2) with 200 variables (`hessian`, torch.func.hessian)",
        _hessian,
        {"width": 200},
        {"width": 4},
        goals={"numpy": 1.3, "torch": 0.1, "jax": 0.8},
    ),
    Workload(
        "literal",
        "a literal of 1e6 numbers to an array; by hand: json.loads and np.array",
        _literal,
        {"n": 1_000_000},
        {"n": 1_000},
        tolerance=0.0,
        goals={"numpy": 0.5},
    ),
    Workload(
        "many",
        "500 small files through `autodiff run` in one process: read, run, show all values; in "
        "PyTorch: read, compile, exec, str() of all values and gradients",
        _many,
        {"count": 500},
        {"count": 24},
        goals={"torch": 1.0},
    ),
    Workload(
        "many-exec",
        "the same, but PyTorch only does exec of code compiled ahead: nothing read or shown",
        _many,
        {"count": 500},
        {"count": 24},
    ),
    Workload(
        "many-check",
        "the same files through `autodiff check`; in PyTorch: read, compile, exec, gradcheck",
        _many,
        {"count": 500},
        {"count": 24},
        tolerance=0.0,
        goals={"torch": 1.0},
    ),
)
BY_NAME = {workload.name: workload for workload in WORKLOADS}
