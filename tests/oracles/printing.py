"""Write tests/fixtures/printing.json: PyTorch's own text of many tensors.

Run `python tests/oracles/printing.py` where PyTorch is installed; the tests read only the file.
"""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

FIXTURE = Path(__file__).parents[1] / "fixtures" / "printing.json"
DEFAULTS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
INF, NAN = math.inf, math.nan
FLOATS = [
    [1.0, 2.0, 3.0],
    [1.5, 2.25, -3.125],
    [0.0, 0.0],
    [-0.0, 0.0, 1.0],
    [-0.0],
    [0.1],
    [1e-5],
    [1e-4, 1.0],
    [9.9e-5, 0.05],
    [1e8],
    [1.1e8],
    [100000001.0, 1.0],
    [1.0, 1000.0],
    [1.0, 1001.0],
    [0.5, 500.0],
    [0.5, 501.0],
    [-1000.0, 1.0],
    [1e10, 1e-10],
    [1e38, 1e-38],
    [123456.789, 200.5],
    [0.33333334, -0.6666667, 12.5],
    [NAN, 1.0],
    [INF, -INF, NAN],
    [INF, 0.5, -2.0],
    [NAN, 1e-9, 1.0],
    [INF, 12345.0, -7.0],
    [NAN, 0.0],
    [-1.0, 10.0, -100.0],
    [0.99995, 1.00005],
    [2.00001, 3.0],
    [65504.0, 0.5],
    [1e-45],
    [3.14159265358979, 2.718281828],
]
SHAPES = [
    (),
    (1,),
    (7,),
    (30,),
    (2, 3),
    (3, 1),
    (1, 1, 1),
    (2, 2, 2),
    (2, 1, 3, 2),
    (3, 20),
    (0,),
    (0, 3),
    (2, 0, 4),
    (1001,),
    (1000,),
    (40, 40),
    (7, 200),
    (2, 600),
    (11, 11, 11),
    (6, 7, 8, 9),
]
DTYPES = ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
LONG = "AVeryLongCustomFunctionNameThatFillsTheWholeLineBackward"


def recipe(shape: tuple[int, ...], scale: float, dtype: str) -> np.ndarray:
    """Values that need no storage: a fixed scrambled sequence, the same in the tests."""
    count = math.prod(shape)
    values = ((np.arange(count) * 7919 + 13) % 101 - 50) * scale
    return values.reshape(shape).astype(dtype)


def graph(tensor: torch.Tensor, kind: str | None) -> torch.Tensor:
    if kind == "leaf":
        return tensor.requires_grad_()
    if kind == "mul":
        return tensor.requires_grad_() * 1.0
    if kind == "long":
        made: Any = type(
            LONG.removesuffix("Backward"),
            (torch.autograd.Function,),
            {
                "forward": staticmethod(lambda ctx, x: x.clone()),
                "backward": staticmethod(lambda ctx, g: g),
            },
        )
        return made.apply(tensor.requires_grad_())
    if kind == "parameter":
        return torch.nn.Parameter(tensor)
    if kind == "buffer":
        return torch.nn.Parameter(tensor, requires_grad=False)
    return tensor


def record(cases: list[dict], array: np.ndarray, spec: dict, **extra: Any) -> None:
    options = extra.get("options", {})
    default = extra.get("default", "float32")
    torch.set_printoptions(**options)
    torch.set_default_dtype(getattr(torch, str(default)))
    tensor = graph(torch.from_numpy(array.copy()), extra.get("kind"))
    grad_fn = type(tensor.grad_fn).__name__ if tensor.grad_fn is not None else None
    cases.append(
        {
            **spec,
            **extra,
            "grad_fn": grad_fn,
            "requires_grad": tensor.requires_grad,
            "text": str(tensor),
        }
    )
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(**DEFAULTS)


def listed(cases: list[dict], values: list, dtype: str, **extra: Any) -> None:
    array = np.array(values, dtype=dtype)
    record(cases, array, {"values": [str(value) for value in values], "dtype": dtype}, **extra)


def made(cases: list[dict], shape: tuple[int, ...], scale: float, dtype: str, **extra: Any) -> None:
    spec = {"shape": list(shape), "scale": scale, "dtype": dtype}
    record(cases, recipe(shape, scale, dtype), spec, **extra)


def main() -> None:
    np.seterr(all="ignore")
    cases: list[dict] = []
    for values in FLOATS:
        listed(cases, values, "float32")
        listed(cases, values, "float64")
        listed(cases, values, "float64", default="float64")
    for values in FLOATS[::3]:
        listed(cases, values, "float16")
        listed(cases, values, "float32", default="float64")
        listed(cases, values, "float32", options={"precision": 2})
        listed(cases, values, "float32", options={"sci_mode": True})
        listed(cases, values, "float32", options={"sci_mode": False})
        listed(cases, values, "float64", options={"precision": 10, "sci_mode": True})
    for shape, dtype in itertools.product(SHAPES, DTYPES):
        made(cases, shape, 1, dtype)
    for shape in SHAPES:
        made(cases, shape, 0.37, "float32")
        made(cases, shape, 1e-3, "float64", kind="mul")
        made(cases, shape, 0.25, "float32", kind="leaf")
        made(cases, shape, 123.4, "float32", options={"profile": "short"})
        made(cases, shape, 0.5, "float32", options={"threshold": 5, "edgeitems": 1})
        made(cases, shape, 3, "int64", options={"threshold": 0, "edgeitems": 0})
        made(cases, shape, 1, "int64", options={"linewidth": 30}, default="float64")
        made(cases, shape, 1.5, "float64", options={"linewidth": 10, "threshold": 20}, kind="mul")
    for kind, count in itertools.product(["leaf", "mul", "long"], range(1, 12)):
        made(cases, (count,), 0.25, "float32", kind=kind)
        made(cases, (2, count), 0.25, "float64", kind=kind)
    for kind in ["parameter", "buffer"]:
        made(cases, (2, 3), 0.25, "float32", kind=kind)
        made(cases, (12,), 0.25, "float64", kind=kind)
    made(cases, (1200,), 0.25, "float32", options={"profile": "full"})
    for width in range(24, 34):
        made(cases, (2, 9), 0.25, "float32", options={"linewidth": width})
    made(cases, (3, 4), 0.25, "float32", options={"edgeitems": 0})
    made(cases, (), 0.25, "float32", options={"edgeitems": 0})
    listed(cases, [2**63 - 1, -(2**63)], "int64")
    listed(cases, [1.7976931348623157e308, 5e-324], "float64")
    listed(cases, [True, True], "bool")
    FIXTURE.parent.mkdir(exist_ok=True)
    with FIXTURE.open("w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(case) for case in cases)
        file.write(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
