"""Writes tests/fixtures/ops.npz: what PyTorch gives for the samples of the op table.

Run from the root with PyTorch installed: `python -m tests.oracles.ops`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autodiff_cli.graph.op import Op

from ..changed import Library, refused
from ..table import Case, array_of, bind, cases, specs, weights, without_signs
from .own_ops import OWN

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)


# What these give is whatever lies in memory; here it is zero.
UNINITIALIZED = {"empty", "empty_like", "empty_strided", "new_empty", "empty_permuted"}

PROJECTIONS: dict[str, Callable[[Any], Any]] = {
    "symmetric": lambda x: (x + x.mT) * 0.5,
    "lower": torch.tril,
    "upper": torch.triu,
}


def functions_of(op: Op) -> Iterator[Callable[..., Any]]:
    """PyTorch's forms of an op: functions of its names below `torch`, then the method, an
    attribute, and the method that writes in place; what stands for an op it does not have."""
    if op.name in OWN:
        yield OWN[op.name]
    for name in (op.name, *op.aliases):
        found: Any = torch
        for part in name.split("."):
            found = getattr(found, part, None)
        if callable(found):
            yield found
    for name in (op.name, *op.aliases):
        member = getattr(torch.Tensor, name, None)
        if callable(member):
            yield member
        elif member is not None:
            yield lambda input, name=name: getattr(input, name)
        written = getattr(torch.Tensor, f"{name}_", None)
        if written is not None:
            yield lambda input, *rest, written=written, **named: written(
                input.clone(), *rest, **named
            )


def converted(value: Any) -> Any:
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    if isinstance(value, list | tuple):
        return type(value)(converted(v) for v in value)
    return value


def parts(result: Any) -> list[Any]:
    """All tensors and numbers of a result."""
    if isinstance(result, torch.Tensor | bool | int | float):
        return [result]
    if isinstance(result, list | tuple):
        return [t for part in result for t in parts(part)]
    return []


def results_of(case: Case, tensors: dict[str, torch.Tensor]) -> list[Any]:
    """The results of the first form that takes the arguments."""
    args, kwargs = bind(case, tensors, PROJECTIONS)
    problem: Exception = LookupError("no PyTorch function of that name")
    for i, function in enumerate(functions_of(case.op)):
        try:
            return parts(
                function(
                    *[converted(a) for a in args], **{k: converted(v) for k, v in kwargs.items()}
                )
            )
        except (TypeError, RuntimeError) as error:
            problem = problem if i else error
    raise problem


TORCH = Library(
    lambda array, grad: torch.tensor(array, requires_grad=grad),
    results_of,
    lambda x, name, *args, **kwargs: getattr(x, name)(*args, **kwargs),
    RuntimeError,
    lambda error: "modified by an inplace" in str(error),
)


def record(case: Case, stored: dict[str, np.ndarray]) -> None:
    """Add values and gradients of one sample."""
    tensors = {}
    for place, spec in specs(case):
        tensors[place] = torch.tensor(
            array_of(spec, f"{case.name}/{place}"), requires_grad=spec.grad
        )
    total = None
    for i, result in enumerate(without_signs(case, results_of(case, tensors))):
        if not isinstance(result, torch.Tensor):
            stored[f"{case.name}/out{i}"] = np.asarray(result)
            continue
        value = result.detach().numpy(force=True)
        if case.op.name in UNINITIALIZED:
            value = np.zeros_like(value)
        stored[f"{case.name}/out{i}"] = value
        if result.requires_grad:
            weight = torch.tensor(weights(case, tuple(result.shape), f"w{i}")).to(result.dtype)
            term = (result * weight).sum()
            total = term if total is None else total + term
    leaves = {place: t for place, t in tensors.items() if t.requires_grad}
    if total is not None and leaves:
        found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
        for place, g in zip(leaves, found, strict=True):
            if g is not None:
                stored[f"{case.name}/grad/{place}"] = g.numpy(force=True)


def main() -> None:
    """Record every sample of public ops; list what PyTorch cannot do."""
    stored: dict[str, np.ndarray] = {}
    saved = []
    for case in cases():
        if not case.op.public:
            continue
        try:
            record(case, stored)
            if case.number < 2:
                saved.append(f"{case.name} {refused(case, TORCH)}")
        except Exception as error:
            print(
                f"{case.name}: {type(error).__name__}: {str(error).splitlines()[0][:120]}",
                file=sys.stderr,
            )
    stored["saved"] = np.array(saved)
    path = Path(__file__).parents[1] / "fixtures" / "ops.npz"
    np.savez_compressed(path, **stored)
    print(f"{len(stored)} arrays, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
