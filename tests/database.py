"""Calls of PyTorch's op database as test material: arguments from JSON, calls through the table."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from autodiff_cli.autograd import calls
from autodiff_cli.autograd import tensor as tensors
from autodiff_cli.autograd.tensor import Tensor
from autodiff_cli.engine import evaluate  # noqa: F401  # nodes get values
from autodiff_cli.graph.dtypes import DTYPES
from autodiff_cli.graph.registry import F, overloads

from .table import seeded

FIXTURE = Path(__file__).parent / "fixtures" / "op_database.json.gz"

# Factors known up to signs: their squares are compared.
SIGN_FREE = {"linalg.svd", "svd", "linalg.eigh"}


def load() -> dict[str, list[dict[str, Any]]]:
    """Calls by variant."""
    with gzip.open(FIXTURE) as file:
        found: dict[str, list[dict[str, Any]]] = json.load(file)
    return found


def weights_of(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Fixed weights of a shape, that make one number of a tensor."""
    return np.asarray(seeded(seed).uniform(-1, 1, shape))


def array_of(written: dict[str, Any]) -> np.ndarray:
    """An array of the fixture."""
    dtype = DTYPES[written.get("d", "float64")]
    values = [float(v) if isinstance(v, str) else v for v in written["v"]]
    return np.array(values, dtype=dtype).reshape(written["s"])


def read(written: Any, leaves: list[Tensor]) -> Any:
    """An argument of the fixture; tensors that require grad are added to `leaves`."""
    if isinstance(written, list):
        return [read(item, leaves) for item in written]
    if not isinstance(written, dict):
        return written
    if "v" in written:
        leaf = tensors.new_leaf(array_of(written), bool(written.get("g")))
        if written.get("g"):
            leaves.append(leaf)
        return leaf
    [(form, value)] = written.items()
    if form == "tuple":
        return tuple(read(item, leaves) for item in value)
    if form == "slice":
        return slice(*(read(item, leaves) for item in value))
    if form == "function":
        return getattr(F, value)
    if form == "float":
        return float(value)
    if form == "dtype":
        return DTYPES[value]
    return Ellipsis if form == "ellipsis" else value


def called(call: dict[str, Any], leaves: list[Tensor]) -> list[Tensor]:
    """All tensors that a call of the fixture gives here."""
    name = call["name"]
    args = [read(a, leaves) for a in call["args"]]
    kwargs = {key: read(value, leaves) for key, value in call.get("kwargs", {}).items()}
    if name == "__getitem__":
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        result = calls.call_ops([F.getitem], "getitem", (args[0], index), {})
    else:
        ops = overloads(name) or calls.method(name)
        result = calls.call_ops(ops, name, tuple(args), kwargs)
    return flat(result)


def flat(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, list | tuple):
        return [t for part in result for t in flat(part)]
    return []
