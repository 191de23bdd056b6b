"""Writes tests/fixtures/ops.npz: what PyTorch gives for the samples of the op table.

Run from the root with PyTorch installed: `python -m tests.oracles.ops`.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autodiff_cli.graph.op import Op

from ..table import Case, array_of, bind, cases, specs, weights

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)


def function_of(op: Op) -> Any:
    """PyTorch's function of an op: by its names below `torch`, else the method."""
    for name in (op.name, *op.aliases):
        found: Any = torch
        for part in name.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found
    if hasattr(torch.Tensor, op.name):
        member = getattr(torch.Tensor, op.name)
        if callable(member):
            return member
        return lambda input: getattr(input, op.name)
    return None


def converted(value: Any) -> Any:
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    if isinstance(value, list | tuple):
        return type(value)(converted(v) for v in value)
    return value


def flat(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, list | tuple):
        return [t for part in result for t in flat(part)]
    return []


def record(case: Case, stored: dict[str, np.ndarray]) -> None:
    """Add values and gradients of one sample."""
    function = function_of(case.op)
    if function is None:
        raise LookupError("no PyTorch function of that name")
    tensors = {}
    for place, spec in specs(case):
        tensors[place] = torch.tensor(
            array_of(spec, f"{case.name}/{place}"), requires_grad=spec.grad
        )
    args, kwargs = bind(case, tensors)
    results = flat(
        function(*[converted(a) for a in args], **{k: converted(v) for k, v in kwargs.items()})
    )
    total = None
    for i, result in enumerate(results):
        stored[f"{case.name}/out{i}"] = result.detach().resolve_conj().numpy()
        if result.requires_grad:
            weight = torch.tensor(weights(case, tuple(result.shape), f"w{i}")).to(result.dtype)
            term = (result * weight).sum()
            total = term if total is None else total + term
    leaves = {place: t for place, t in tensors.items() if t.requires_grad}
    if total is not None and leaves:
        found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
        for place, g in zip(leaves, found, strict=True):
            if g is not None:
                stored[f"{case.name}/grad/{place}"] = g.numpy()


def main() -> None:
    """Record every sample that PyTorch has a function for; list the others."""
    stored: dict[str, np.ndarray] = {}
    for case in cases():
        try:
            record(case, stored)
        except Exception as error:
            print(
                f"{case.name}: {type(error).__name__}: {str(error).splitlines()[0][:120]}",
                file=sys.stderr,
            )
    path = Path(__file__).parents[1] / "fixtures" / "ops.npz"
    np.savez_compressed(path, **stored)
    print(f"{len(stored)} arrays, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
