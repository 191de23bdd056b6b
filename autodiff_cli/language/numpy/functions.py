"""Functions of NumPy that are no ops: arrays of data, what dtypes can hold, closeness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index as index_of_axis

from ...autograd import calls
from ...autograd.literals import array_of, has_tensor
from ...autograd.tensor import Array, Tensor
from ...errors import fail, fault
from ...graph.dtypes import DTYPES, FLOAT64
from ...graph.params import to_dtype
from ...graph.shapes import broadcast_shapes
from ...graph.state import STATE
from ..runtime.assertions import all_close
from ..values.arrays import attribute, computed, dtype_of, given_back, made, plain, result
from ..values.factories import make_tensor
from ..values.functions import call_value
from ..values.numpy_numbers import to_python
from ..values.operations import truth
from ..values.subscripts import read_index
from ..values.values import Builtin

_LIMITS = ("eps", "max", "min", "tiny", "smallest_normal", "resolution", "bits")


def finfo(dtype: Any = None) -> Any:
    kind = STATE.default_dtype if dtype is None else to_dtype(dtype)
    if kind.kind != "f":
        more = "Use torch.iinfo to handle 'torch.finfo'"
        raise TypeError(f"torch.finfo() requires a floating point input type. {more}")
    return Info(np.finfo(kind), _LIMITS, to_python)


def iinfo(dtype: Any) -> Any:
    kind = to_dtype(dtype)
    if kind.kind not in "iu":
        more = "Use torch.finfo to handle 'torch.iinfo'"
        raise TypeError(f"torch.iinfo() requires an integer input type. {more}")
    return Info(np.iinfo(kind), ("max", "min", "bits"), to_python)


class Info:
    """`torch.finfo(dtype)`."""

    __slots__ = ("fields", "shown", "source")

    def __init__(self, source: Any, fields: tuple[str, ...], shown: Callable[[Any], Any]):
        self.source = source
        self.fields = fields
        self.shown = shown

    def get_attribute(self, name: str) -> Any:
        if name in self.fields:
            return self.shown(getattr(self.source, name))
        raise fail("E207", f"no field `{name}`", help=f"it has: {', '.join(self.fields)}")

    def describe(self) -> str:
        """As PyTorch shows it: all numbers with six digits."""
        found = self.source
        if found.dtype.kind != "f":
            return f"iinfo(min={found.min:g}, max={found.max:g}, dtype={found.dtype})"
        shown = ("min", "max", "eps", "smallest_normal", "tiny")
        fields = ", ".join(f"{name}={float(getattr(found, name)):g}" for name in shown)
        return f"finfo(resolution={10.0**-found.precision:g}, {fields}, dtype={found.dtype})"


def allclose(
    input: Any, other: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False
) -> bool:
    if STATE.python and type(input) is Tensor and type(other) is Tensor:
        left, right = input.dtype.name, other.dtype.name
        if left != right:
            raise fault("E307 allclose-compares-tensors-dtype", left=left, right=right)
        broadcast_shapes(tuple(input.shape), tuple(other.shape))
    return all_close(input, other, rtol, atol, truth(equal_nan))


def _array(
    data: Any, dtype: Any = None, *, copy: Any = True, order: Any = None, ndmin: Any = 0,
    **options: Any,
) -> Array:  # fmt: skip
    """`np.array`: Python floats are float64."""
    kind = None if dtype is None else dtype_of(dtype)
    if type(data) is Array and kind in (None, data.dtype) and not truth(copy):
        return data if ndmin <= len(data.shape) else made(np.array(plain(data), ndmin=ndmin))
    if isinstance(data, Tensor) or (isinstance(data, list | tuple) and has_tensor(data)):
        return made(np.array(plain(data), kind, ndmin=ndmin))
    if kind is None:
        array = array_of(data)
        kind = DTYPES["float64"] if array.dtype.kind == "f" else array.dtype
    return made(np.array(make_tensor(data, dtype=kind).numpy(), ndmin=ndmin))


def _transpose(a: Any, axes: Any = None) -> Any:
    if STATE.python and type(a) is Tensor:
        return computed("transpose")(a, axes)
    x = a if isinstance(a, Tensor) else _array(a)
    order = tuple(reversed(range(len(x.shape)))) if axes is None else tuple(axes)
    found = calls.call("permute", (x, order), {})
    return result(found) if type(x) is Array else found


def _squeeze(a: Any, axis: Any = None) -> Any:
    if STATE.python and type(a) is Tensor:
        return computed("squeeze")(a, axis)
    return attribute(_array(a, copy=False), "squeeze").function(axis)


def _flip(m: Array, axis: Any = None) -> Any:
    rank = len(m.shape)
    axes = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    turned = [index_of_axis(at, rank) for at in axes]
    steps = (-1 if i in turned else 1 for i in range(rank))
    return read_index(m, tuple(slice(None, None, step) for step in steps))


def _rot90(m: Array, k: Any = 1, axes: Any = (0, 1)) -> Any:
    if k % 2 == 0:
        return _flip(m, tuple(axes) if k % 4 else ())
    first, second = axes
    found = _flip(m, second if k % 4 == 1 else first)
    return attribute(found, "swapaxes").function(first, second)


def _diag(v: Array, k: Any = 0) -> Any:
    if len(v.shape) == 2:
        return attribute(v, "diagonal").function(k)
    return computed("diag")(v, k)


# What looks at the memory of arrays; of all else NumPy computes it.
VIEWS: dict[str, Callable[..., Any]] = {
    "flip": _flip,
    "fliplr": lambda m: _flip(m, 1),
    "flipud": lambda m: _flip(m, 0),
    "rot90": _rot90,
    "diag": _diag,
}


_FUNCTIONS: dict[str, Any] = {
    "array": _array,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "asarray": lambda data, dtype=None, **options: _array(data, dtype, copy=False),
    "finfo": lambda dtype=FLOAT64: Info(np.finfo(to_dtype(dtype)), _LIMITS, given_back),
    "iinfo": iinfo,
    "allclose": lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: allclose(
        _array(a), _array(b), rtol, atol, equal_nan
    ),
}


class Columns:
    """`np.c_[x, y]`."""

    __slots__ = ()

    def get_item(self, key: Any) -> Any:
        from .names import MEMBERS

        stack = MEMBERS.get("column_stack")
        return call_value(stack, [list(key) if isinstance(key, tuple) else [key]], {})


NUMPY_FUNCTIONS: dict[str, Any] = {
    **{name: Builtin(name, function) for name, function in _FUNCTIONS.items()},
    "__version__": np.__version__,
    "c_": Columns(),
}
