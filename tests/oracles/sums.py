"""Writes tests/fixtures/sums.json: checksums of PyTorch's sums of few floats.

Run from the root with PyTorch installed: `python -m tests.oracles.sums`.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from ..ops.test_sums import FIXTURE, digest, numbers, places, sums


def main() -> None:
    found: dict[str, dict[str, int]] = {}
    for dtype in ("float32", "float64"):
        ours, theirs = dict(sums(dtype)), {}
        for shape, dims in places():
            x: Any = torch.from_numpy(numbers(shape, dtype))
            theirs[f"{shape} {dims}"] = digest(x.sum(dims).numpy())
        found[dtype] = {name: theirs[name] for name in ours}
        print(dtype, len(ours), "sums; differ:", *(n for n in ours if ours[n] != theirs[n]))
    FIXTURE.write_text(json.dumps(found, indent=0) + "\n", "utf-8")


if __name__ == "__main__":
    main()
