"""Records PyTorch's promotion table, broadcasting and strides for the tests of `graph/`.

Run it with `python -m tests.oracles.graph`.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import torch

FIXTURE = Path(__file__).parents[1] / "fixtures" / "graph.json"
DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
# What an operand is: a tensor with dims, a 0-d tensor, a Python number.
KINDS = ["dims", "scalar", "number"]
SHAPES = [[], [1], [3], [2], [1, 3], [2, 1], [2, 3], [0], [4, 1, 3], [1, 1], [0, 3]]
LAYOUTS = [
    "x",
    "x.T",
    "x.t().contiguous()",
    "x[0]",
    "x[:, 1:]",
    "x[::2]",
    "x[:, ::2].T",
    "x.T + 1",
    "x.T + y",
    "x + y.T",
    "x.T.exp()",
    "x.unsqueeze(0)",
    "x.unsqueeze(1).expand(4, 5, 6)",
    "x.expand(2, 4, 6)",
    "x.reshape(2, 2, 6).permute(2, 0, 1)",
    "x.reshape(2, 2, 6).transpose(0, 2) * 2",
    "x.T.reshape(24)",
    "x.view(2, 12)",
    "x.T[1:3].sum(0)",
    "x.T.clone()",
    "x.flip(0)",
    "x @ x.T",
    "x.diagonal()",
    "x.view(2, 2, 2, 3).flatten(1, 2)",
    "x.T.unflatten(0, (2, 3))",
    "x.narrow(1, 2, 3)",
    "x.unfold(1, 2, 2)",
    "x.swapaxes(0, 1).squeeze()",
    "x[None, :, None]",
    "x[:, 2]",
]


def operand(dtype: str, kind: str) -> Any:
    kinds = {"f": 1.0, "i": 1, "u": 1, "b": True}
    if kind == "number":
        return kinds[dtype[0]]
    value = torch.ones(2) if kind == "dims" else torch.ones(())
    return value.to(getattr(torch, dtype))


def promotions() -> list[list[str]]:
    """Rows: dtype and kind of the left, of the right, dtype of the sum."""
    rows = []
    for a, b in itertools.product(DTYPES, DTYPES):
        for left, right in itertools.product(KINDS, KINDS):
            if left == right == "number":
                continue
            result = operand(a, left) + operand(b, right)
            rows.append([a, left, b, right, str(result.dtype).removeprefix("torch.")])
    return rows


def broadcasts() -> list[list[Any]]:
    """Rows: two shapes and their common shape, or None."""
    rows: list[list[Any]] = []
    for a, b in itertools.product(SHAPES, SHAPES):
        try:
            common = list((torch.zeros(a) + torch.zeros(b)).shape)
        except RuntimeError:
            rows.append([a, b, None])
            continue
        rows.append([a, b, common])
    return rows


def layouts() -> list[list[Any]]:
    """Rows: expression of a (4, 6) and another tensor, shape and strides."""
    names = {"x": torch.arange(24.0).reshape(4, 6), "y": torch.ones(6, 4)}
    rows: list[list[Any]] = []
    for text in LAYOUTS:
        result = eval(text, {}, names)
        rows.append([text, list(result.shape), list(result.stride()), result.is_contiguous()])
    return rows


def main() -> None:
    """Write the fixture."""
    document = {"promotions": promotions(), "broadcasts": broadcasts(), "layouts": layouts()}
    FIXTURE.write_text(json.dumps(document) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
