"""Writes tests/fixtures/torch_source.json: of every sample of the op table, whether what is written
of it for PyTorch gives PyTorch's values and gradients there.

Run from the root with PyTorch installed: `python -m tests.oracles.torch_source`.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autodiff_cli.autograd import reverse
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, value_of

from ..table import Case, cases, weights
from ..written import Sample, text_of_sample

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)

# PyTorch itself fails to differentiate these.
NO_BACKWARD = ("returned an invalid gradient", "modified by an inplace operation")


def run(sample: Sample) -> dict[str, Any]:
    """What the source defines."""
    names: dict[str, Any] = {"torch": torch, "slice": slice}
    for name, value in sample.source.data.items():
        tensor = torch.from_numpy(np.array(value))
        names[name] = tensor.requires_grad_(name in sample.source.leaves)
    exec("\n".join(sample.source.lines), names)
    return names


def close(ours: Any, theirs: torch.Tensor) -> None:
    exact = ours.dtype != np.float32
    np.testing.assert_allclose(
        ours, theirs.numpy(force=True), rtol=1e-6 if exact else 1e-4, atol=1e-8 if exact else 1e-5
    )


def compare(case: Case, sample: Sample) -> None:
    """Raise where a value, a dtype or a gradient departs."""
    there = run(sample)
    seeds: list[tuple[Node, Node]] = []
    outputs = []
    for i, (node, name) in enumerate(zip(sample.results, sample.names, strict=True)):
        tensor = there[name]
        assert str(tensor.dtype) == f"torch.{node.dtype.name}", "another dtype"
        close(value_of(node), tensor)
        if tensor.requires_grad and node.requires_grad:
            weight = np.asarray(weights(case, node.shape, f"w{i}"), node.dtype)
            seeds.append((node, constant(weight)))
            outputs.append(tensor)
    leaves = [node for node in sample.leaves if node in sample.source.names]
    if not seeds or not leaves or case.sample.order == 0:
        return
    ours = reverse.gradients(seeds, leaves, create_graph=False, retain_graph=True)
    theirs = torch.autograd.grad(
        outputs,
        [there[sample.source.names[node]] for node in leaves],
        [torch.from_numpy(np.array(weight.value)) for _, weight in seeds],
        materialize_grads=True,
    )
    for leaf, g, tensor in zip(leaves, ours, theirs, strict=True):
        close(np.zeros(leaf.shape) if g is None else value_of(g), tensor)


def main() -> None:
    """Check every sample; list those that depart."""
    found: dict[str, Any] = {}
    for case in cases():
        text, sample = text_of_sample(case)
        found[case.name] = text
        if sample is None:
            continue
        try:
            compare(case, sample)
        except Exception as error:
            problem = str(error).strip().replace("\n", " ")
            if not any(words in problem for words in NO_BACKWARD):
                print(f"{case.name}: {type(error).__name__}: {problem[:150]}", file=sys.stderr)
    path = Path(__file__).parents[1] / "fixtures" / "torch_source.json"
    path.write_text(json.dumps(found, indent=0) + "\n", "utf-8")
    refused = sum(text.startswith("refused") for text in found.values())
    print(f"{len(found)} samples, {refused} of them refused, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
