"""Records what PyTorch does with the programs of `snippets/`: what they print, the tensors they
leave, and for those that fail the line.

Run it with `python -m tests.oracles.programs`; PyTorch is needed only here. What was recorded stays
while its program does, as last digits depend on the machine; `--all` records everything anew.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy
import torch

SNIPPETS = Path(__file__).parent / "snippets"
# `<torch.autograd.function.SquareBackward object at 0x7f3c058d88d0>` is `<SquareBackward>` here.
OBJECT = re.compile(r"<(?:[\w.]+\.)?(\w+) object at 0x[0-9a-f]+>")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "programs.json.gz"


def snippets() -> list[tuple[str, str]]:
    """Id and text of every program."""
    found = []
    for path in sorted(SNIPPETS.glob("*.txt")):
        for text in path.read_text("utf-8").split("=====\n"):
            title = text.partition("\n")[0].lstrip("# ")
            found.append((f"{path.stem}: {title}", text))
    return found


def numbers(tensor: torch.Tensor) -> Any:
    """Values as strict JSON: what is not finite as text."""

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            return [convert(v) for v in value]
        finite = not isinstance(value, float) or abs(value) < float("inf")
        return value if finite else str(value)

    return convert(tensor.detach().tolist())


def is_whole(value: Any) -> bool:
    """Whether a value is a tensor, and no view whose history PyTorch has lost."""
    try:
        return isinstance(value, torch.Tensor) and value.is_leaf is not None
    except RuntimeError:
        return False


def record(tensor: torch.Tensor) -> dict[str, Any]:
    """What the test compares of a tensor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grad = tensor.grad
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "grad_fn": None if tensor.grad_fn is None else type(tensor.grad_fn).__name__,
        "value": numbers(tensor),
        "grad": None if grad is None else numbers(grad),
    }


def outcome(source: str) -> dict[str, Any]:
    """Run a program as Python does."""
    torch.distributions.Distribution.set_default_validate_args(True)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.autograd.set_detect_anomaly(False)
    names: dict[str, Any] = {"__name__": "__main__"}
    out = io.StringIO()
    error: dict[str, Any] | None = None
    with contextlib.redirect_stdout(out), warnings.catch_warnings(), numpy.printoptions():
        warnings.simplefilter("ignore")
        try:
            exec(compile(source, "<program>", "exec", dont_inherit=True), names)
        except SystemExit as end:
            assert not end.code
        except Exception as problem:
            frames = traceback.extract_tb(problem.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == "<program>"]
            error = {"type": type(problem).__name__, "line": lines[-1]}
    tensors = {} if error else {k: record(v) for k, v in names.items() if is_whole(v)}
    printed = OBJECT.sub(r"<\1>", out.getvalue())
    return {"stdout": printed, "tensors": tensors, "error": error}


def main() -> None:
    """Write the fixture."""
    before = [] if "--all" in sys.argv else json.loads(gzip.decompress(FIXTURE.read_bytes()))
    known = {(case["id"], case["source"]): case for case in before}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        cases = [
            known.get((name, text)) or {"id": name, "source": text, **outcome(text)}
            for name, text in snippets()
        ]
    for case in cases:
        failing = case["id"].startswith("errors")
        if (case["error"] is not None) is not failing:
            print("unexpected:", case["id"], case["error"])
    rows = ",\n".join(json.dumps(case, allow_nan=False) for case in cases)
    with gzip.GzipFile(FIXTURE, "wb", mtime=0) as file:
        file.write(f"[\n{rows}\n]\n".encode())
    print(len(cases), "programs")


if __name__ == "__main__":
    main()
