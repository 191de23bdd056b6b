"""Write tests/fixtures/array_functions.json: Jacobians and Hessians of programs by PyTorch.

Run `python -P tests/oracles/array_functions.py` where PyTorch is installed; the tests read only the
JSON file. The programs mean the same here and there; their arrays are drawn once and kept as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

FIXTURE = Path(__file__).parents[1] / "fixtures" / "array_functions.json"

Shapes = dict[str, tuple[int, ...]]

JACOBIANS: list[tuple[str, Shapes]] = [
    ("y = tanh(C @ tanh(B @ tanh(A @ x)))", {"x": (4,), "A": (3, 4), "B": (5, 3), "C": (4, 5)}),
    ("y = x**2 * sum(x)", {"x": (3,)}),
    ("y = exp(x) / (1 + x * x) - where(x > 0, x, 0.1 * x)", {"x": (2, 3)}),
    ("y = (x * s - x) / s", {"x": (3,), "s": ()}),
    ("y = softmax(A @ x, 0)", {"x": (3,), "A": (4, 3)}),
    ("y = tanh(X @ A + b)", {"X": (2, 3), "A": (3, 2), "b": (2,)}),
    ("y = sin(x).reshape(2, 3) @ A", {"x": (6,), "A": (3, 2)}),
    ("y = x / (x @ x)", {"x": (3,)}),
    ("y = outer(x, x) + x", {"x": (3,)}),
    ("y = A @ (x * x).flatten()", {"x": (2, 2), "A": (5, 4)}),
    ("y = relu(A @ x + b)[1:] * x[0]", {"x": (3,), "A": (4, 3), "b": (4,)}),
    ("y = cumsum(sin(x), 0) - cumprod(x, 0)", {"x": (4,)}),
    ("y = logsumexp(X, 1) * sum(X * X)", {"X": (2, 3)}),
    ("h = A @ x\ny = h * h + h * sigmoid(h) - sqrt(1 + h * h)", {"x": (3,), "A": (3, 3)}),
    ("y = x @ A @ x + x @ b", {"x": (3,), "A": (3, 3), "b": (3,)}),
    ("y = stack((x, -x, x[[2, 0, 1]])) * x", {"x": (3,)}),
    ("y = maximum(x, z) - clamp(x * z, -0.5, 0.5)", {"x": (4,), "z": (4,)}),
    ("y = A.T @ (x.view(3, 1) * A)", {"x": (3,), "A": (3, 2)}),
]

HESSIANS: list[tuple[str, Shapes]] = [
    ("loss = sum(tanh(A @ x)**2)", {"x": (4,), "A": (3, 4)}),
    ("loss = sum(100 * (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)", {"x": (4,)}),
    ("loss = logsumexp(A @ x, 0)", {"x": (3,), "A": (4, 3)}),
    ("loss = mean((B @ tanh(A @ x + b) - x)**2)",
     {"x": (2,), "A": (3, 2), "B": (2, 3), "b": (3,)}),
    ("loss = sum(x * z) + sum(x)**3", {"x": (2,), "z": (2,)}),
    ("loss = prod(x)", {"x": (3,)}),
    ("loss = -sum(log_softmax(X @ w, 0) * b)", {"X": (4, 3), "w": (3,), "b": (4,)}),
    ("loss = exp(x) * sin(x)", {"x": ()}),
    ("loss = sum(X @ A @ X)", {"X": (2, 2), "A": (2, 2)}),
    ("loss = sum(sigmoid(x) * exp(-x * x) / (2 + cos(x)))", {"x": (3,)}),
]  # fmt: skip


def _record(program: str, shapes: Shapes, dtype: str, random: np.random.Generator) -> Any:
    kind = "hessian" if program.splitlines()[-1].startswith("loss") else "jacobian"
    arrays = {n: random.uniform(-1.5, 1.5, shape).astype(dtype) for n, shape in shapes.items()}

    def function(named: dict[str, torch.Tensor]) -> torch.Tensor:
        names: dict[str, Any] = {**vars(torch), **named}
        exec(program, names)  # the programs of this file, nobody else's text
        return names["loss" if kind == "hessian" else "y"]

    derivative = torch.func.hessian if kind == "hessian" else torch.func.jacrev
    tensors = {name: torch.from_numpy(np.array(a)) for name, a in arrays.items()}
    found = derivative(function)(tensors)
    return {
        "kind": kind,
        "program": program,
        "dtype": dtype,
        "arrays": {name: array.tolist() for name, array in arrays.items()},
        "blocks": _listed(found),
    }


def _listed(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _listed(part) for name, part in found.items()}
    return found.tolist()


def main() -> None:
    """Write the fixture."""
    random = np.random.default_rng(7)
    found = [
        _record(program, shapes, dtype, random)
        for program, shapes in (*JACOBIANS, *HESSIANS)
        for dtype in ("float64", "float32")
    ]
    FIXTURE.write_text(json.dumps(found) + "\n", "utf-8")


if __name__ == "__main__":
    main()
