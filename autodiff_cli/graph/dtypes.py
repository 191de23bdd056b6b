"""Element types: PyTorch's names for NumPy dtypes, and PyTorch's promotion rules.

A dtype is a `numpy.dtype` everywhere; its `.name` is PyTorch's name too.
Source of the rules: PyTorch's "Tensor Attributes" page and `c10/core/ScalarType.h`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from operator import attrgetter

import numpy as np

FLOAT64 = np.dtype(np.float64)
FLOAT32 = np.dtype(np.float32)
FLOAT16 = np.dtype(np.float16)
INT64 = np.dtype(np.int64)
INT32 = np.dtype(np.int32)
INT16 = np.dtype(np.int16)
INT8 = np.dtype(np.int8)
UINT8 = np.dtype(np.uint8)
BOOL = np.dtype(np.bool_)

DTYPES: dict[str, np.dtype] = {
    "float64": FLOAT64,
    "double": FLOAT64,
    "float32": FLOAT32,
    "float": FLOAT32,
    "float16": FLOAT16,
    "half": FLOAT16,
    "int64": INT64,
    "long": INT64,
    "int32": INT32,
    "int": INT32,
    "int16": INT16,
    "short": INT16,
    "int8": INT8,
    "uint8": UINT8,
    "bool": BOOL,
}

name_of = cache(attrgetter("name"))
"""The name of a dtype; NumPy makes it anew each time."""

WIDER: dict[str, np.dtype] = {"uint16": INT32, "uint32": INT64, "uint64": INT64}


def tensor_dtype(dtype: np.dtype) -> np.dtype | None:
    """The dtype of tensors that holds numbers of this one (`uint64` below 2**63); None if none."""
    return {**DTYPES, **WIDER}.get(name_of(dtype))


# PyTorch's short names in messages ("expected m1 and m2 to have the same dtype, but got: double !=
# float").
SCALAR_NAMES = {
    "float64": "double",
    "float32": "float",
    "float16": "c10::Half",
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
}
# And those of its scalar types, which its kinds of tensors are called after: `torch.LongTensor`.
SCALAR_TYPES = {
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "float64": "Double", "float32": "Float", "float16": "Half",
}  # fmt: skip


def is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f"


def promote(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype that holds both, PyTorch's table (int64 with float32 is float32)."""
    if a.kind == "f" and b.kind != "f":
        return a
    if b.kind == "f" and a.kind != "f":
        return b
    return np.promote_types(a, b)


def _category(dtype: np.dtype) -> int:
    return 0 if dtype.kind == "b" else 2 if dtype.kind == "f" else 1


def result_dtype(operands: Iterable[tuple[np.dtype, bool, bool]]) -> np.dtype:
    """Promotion over `(dtype, is_0d, is_python_number)`: tensors with dims decide first, then 0-d
    tensors, then Python numbers; a lower rank matters only when its category is higher."""
    ranks: list[np.dtype | None] = [None, None, None]
    for dtype, scalar, weak in operands:
        rank = 2 if weak else 1 if scalar else 0
        current = ranks[rank]
        ranks[rank] = dtype if current is None else promote(current, dtype)
    return max((dtype for dtype in ranks if dtype is not None), key=_category)
