"""NumPy arrays of programs: tensors under another name, with NumPy's attributes and methods.

An array is never differentiated; what is made of arrays and numbers alone is an array again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import calls
from ..autograd.tensor import Array, Tensor, as_array
from ..errors import fail
from ..graph.dtypes import DTYPES
from ..graph.op import constant, value_of
from ..graph.params import to_dtype, to_size
from ..graph.registry import F
from ..graph.sizes import check_size
from .kinds import MODE
from .operations import items_of
from .values import Builtin


class ArrayType:
    """The dtype of an array, which prints as NumPy's."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def __eq__(self, other: object) -> bool:
        return getattr(other, "dtype", other) == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def get_attribute(self, name: str) -> Any:
        if name == "name":
            return self.dtype.name
        if name == "itemsize":
            return self.dtype.itemsize
        if name == "kind":
            return self.dtype.kind
        raise fail("E207", f"a NumPy dtype has no attribute `{name}`", help="it has: name, kind")

    def describe_text(self) -> str:
        return self.dtype.name

    def describe(self) -> str:
        return f"dtype('{self.dtype.name}')"


def made(array: np.ndarray) -> Array:
    """An array of the program with these values."""
    return as_array(Tensor(constant(np.ascontiguousarray(array).reshape(array.shape))))


# -- attributes and methods -----------------------------------------------------------------------

# Methods of arrays that are ops under another name or with other arguments.
_OPS = {"max": "amax", "min": "amin", "copy": "clone", "conj": "clone", "clip": "clamp"}


def _spread(ddof: bool) -> Callable[..., Any]:
    def run(array: Array, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
        return calls.call(name, (array,), {"dim": axis, "correction": ddof, "keepdim": keepdims})

    name = "std" if ddof else "var"
    return run


def _reshape(array: Array, *shape: Any, order: Any = "C") -> Any:
    return Tensor(F.reshape(array.node, to_size(shape[0] if len(shape) == 1 else shape)))


def _transpose(array: Array, *axes: Any) -> Any:
    given = axes[0] if len(axes) == 1 and isinstance(axes[0], list | tuple) else axes
    order = tuple(given) or tuple(reversed(range(len(array.shape))))
    return calls.call("permute", (array, order), {})


def _astype(array: Array, dtype: Any, **options: Any) -> Any:
    kind = DTYPES.get(dtype) if isinstance(dtype, str) else to_dtype(dtype)
    if kind is None:
        raise fail("E208", f"`{dtype}` is no dtype here", help="for example np.float32")
    return Tensor(F.copied(F.to_dtype(array.node, kind)))


def _sort(array: Array, axis: Any = -1) -> None:
    array.overwrite(calls.call("sort", (array, axis), {})[0].node)


def _fill(array: Array, value: Any) -> None:
    array.overwrite(F.full(array.shape, value, dtype=array.dtype))


_METHODS: dict[str, Callable[..., Any]] = {
    "std": _spread(True),
    "var": _spread(False),
    "reshape": _reshape,
    "transpose": _transpose,
    "astype": _astype,
    "sort": _sort,
    "fill": _fill,
    "ravel": lambda array: _reshape(array, -1),
    "flatten": lambda array: Tensor(F.copied(F.reshape(array.node, (-1,)))),
    "tolist": lambda array: value_of(array.node).tolist(),
    "item": lambda array, *at: value_of(array.node).item(*at),
    "dot": lambda array, other: calls.call("matmul", (array, other), {}),
    "round": lambda array, decimals=0: calls.call("round", (array,), {"decimals": decimals}),
}


def attribute(array: Array, name: str) -> Any:
    """`array.name`; None when it is what tensors have under that name."""
    if MODE.python and not hasattr(np.ndarray, name) and not name.startswith("__"):
        raise fail(
            "E207",
            f"a NumPy array has no attribute `{name}`",
            label="no such attribute",
            help=f"make a tensor first: `torch.from_numpy(...).{name}`",
            notes=(f"PyTorch: 'numpy.ndarray' object has no attribute '{name}'",),
        )
    if name == "shape":
        return tuple(array.shape)
    if name == "size":
        return array.node.numel
    if name == "dtype":
        return ArrayType(array.dtype)
    if name == "T":
        return as_array(_transpose(array))
    method = _METHODS.get(name)
    if method is not None:
        return Builtin(name, lambda *args, **kwargs: result(method(array, *args, **kwargs)))
    ops = calls.method(_OPS.get(name, name))
    if not ops:
        return None
    return Builtin(
        name, lambda *args, **kwargs: result(calls.call_ops(ops, name, (array, *args), kwargs))
    )


def result(value: Any) -> Any:
    """What an array's method gives: an array, or a number."""
    if not isinstance(value, Tensor):
        return value
    if value.shape or value.dtype.name == "float32":
        return as_array(value)
    return value_of(value.node).item()


# -- values that NumPy takes and gives -------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value as NumPy takes it."""
    if isinstance(value, Tensor):
        return value_of(value.node)
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def given_back(value: Any) -> Any:
    """What NumPy gave, as a value of the program."""
    if isinstance(value, np.ndarray):
        return made(value)
    return value.item() if isinstance(value, np.generic) else value


# -- functions whose arguments are not those of an op ---------------------------------------------


def _stat(name: str) -> Callable[..., Any]:
    def run(a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
        method = _METHODS[name]
        return result(method(_given(a), axis, ddof, keepdims))

    return run


def _given(value: Any) -> Array:
    if isinstance(value, Array):
        return value
    if isinstance(value, Tensor):
        return as_array(Tensor(F.detach(value.node)))
    return made(np.asarray(plain(items_of(value) if isinstance(value, range) else value)))


def _arange(*args: Any, dtype: Any = None, **kwargs: Any) -> Array:
    numbers = [a.item() if isinstance(a, Tensor) else a for a in (*args, *kwargs.values())]
    if not all(isinstance(n, int | float) for n in numbers):
        raise fail("E208", "np.arange takes numbers", help="np.arange(5)")
    first, last, step = 0, numbers[0], 1
    if len(numbers) > 1:
        first, last, step = numbers[0], numbers[1], numbers[2] if len(numbers) > 2 else 1
    count = max(0, int(np.ceil((last - first) / step))) if step else 0
    check_size((count,), DTYPES["float64"])
    array = np.arange(first, last, step)
    return made(array if dtype is None else array.astype(to_dtype(dtype)))


def _where(condition: Any, *values: Any) -> Any:
    if not values:
        return tuple(made(part) for part in np.nonzero(value_of(_given(condition).node)))
    return made(np.where(plain(condition), *[plain(v) for v in values]))


def _argument(name: str) -> Callable[..., Any]:
    """A function that NumPy itself computes, of arrays and numbers."""

    def run(*args: Any, **kwargs: Any) -> Any:
        found = getattr(np, name)(
            *[plain(a) for a in args], **{k: plain(v) for k, v in kwargs.items()}
        )
        if isinstance(found, tuple | list):
            return type(found)(given_back(part) for part in found)
        return given_back(found)

    return run


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "std": _stat("std"),
    "var": _stat("var"),
    "arange": _arange,
    "where": _where,
    **{
        name: _argument(name)
        for name in (
            "round",
            "around",
            "unique",
            "polyfit",
            "polyval",
            "histogram",
            "percentile",
            "array_equal",
            "meshgrid",
        )
    },
}
FUNCTIONS: dict[str, Any] = {name: Builtin(name, run) for name, run in _FUNCTIONS.items()}
FUNCTIONS["newaxis"] = None
