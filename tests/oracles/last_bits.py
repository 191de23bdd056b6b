"""Writes tests/fixtures/last_bits.json: checksums of PyTorch's sums of few floats, and of ranges.

Run from the root with PyTorch installed: `python -m tests.oracles.last_bits`.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from ..ops.test_last_bits import (
    FIXTURE,
    RANGES,
    SPACED,
    digest,
    numbers,
    places,
    ranges,
    sums,
)


def main() -> None:
    found: dict[str, Any] = {"ranges": {}}
    for dtype in ("float32", "float64"):
        ours, theirs = dict(sums(dtype)), {}
        for shape, dims in places():
            x: Any = torch.from_numpy(numbers(shape, dtype))
            theirs[f"{shape} {dims}"] = digest(x.sum(dims).numpy())
        found[dtype] = {name: theirs[name] for name in ours}
        print(dtype, len(ours), "sums; differ:", *(n for n in ours if ours[n] != theirs[n]))
    for dtype in ("float32", "float64"):
        kind = getattr(torch, dtype)
        theirs = {
            **{f"arange {r}": digest(torch.arange(*r, dtype=kind).numpy()) for r in RANGES},
            **{f"linspace {r}": digest(torch.linspace(*r, dtype=kind).numpy()) for r in SPACED},
        }
        ours = dict(ranges(dtype))
        found["ranges"][dtype] = theirs
        print(dtype, len(ours), "differ:", *(n for n in ours if ours[n] != theirs[n]))
    FIXTURE.write_text(json.dumps(found, indent=0) + "\n", "utf-8")


if __name__ == "__main__":
    main()
