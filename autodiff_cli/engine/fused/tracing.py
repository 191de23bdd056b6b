"""Kernels read as straight-line programs of ufuncs.

An elementwise kernel is an ordinary function of arrays. Called with stand-ins that record what is
asked of them (NumPy's protocols for array functions), it tells which ufuncs it is made of; one that
looks at values, or asks for anything else, is not traced and stays one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class Untraceable(Exception):
    """The kernel asked for more than its operands' dtypes and ufuncs of them."""


class Instruction:
    """`result = function(*operands)`; operands are numbers of earlier values or constants.

    Values 0 to n-1 are the kernel's n array arguments, instruction i makes value n+i.
    """

    __slots__ = ("dtype", "function", "operands")

    def __init__(self, function: Callable[..., Any], operands: tuple[Any, ...], dtype: np.dtype):
        self.function = function
        self.operands = operands
        self.dtype = dtype


class Place:
    """An operand that is the value of that number."""

    __slots__ = ("at",)

    def __init__(self, at: int):
        self.at = at


class Unknown:
    """An array argument of which only the dtype is known."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype


_DTYPES: dict[tuple[Any, ...], np.dtype] = {}


def result_dtype(function: Callable[..., Any], dtypes: tuple[np.dtype, ...]) -> np.dtype:
    """The dtype a ufunc returns for operands of these."""
    key = (function, *dtypes)
    found = _DTYPES.get(key)
    if found is None:
        with np.errstate(all="ignore"):
            result = function(*[np.ones((), dtype) for dtype in dtypes])
        found = _DTYPES[key] = result.dtype
    return found


class _Recorder:
    def __init__(self, count: int):
        self.count = count
        self.instructions: list[Instruction] = []

    def emit(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> StandIn:
        typed = [x.dtype for x in operands if isinstance(x, StandIn | np.ndarray | np.generic)]
        places: list[Any] = []
        dtypes: list[np.dtype] = []
        for x in operands:
            if isinstance(x, StandIn):
                places.append(Place(x._at))
                dtypes.append(x.dtype)
                continue
            if not isinstance(x, np.ndarray):
                x = _adopted(x, typed) if type(x) in (bool, int, float) else np.asarray(x)
            if x.ndim:
                raise Untraceable
            places.append(x)
            dtypes.append(x.dtype)
        dtype = result_dtype(function, tuple(dtypes))
        self.instructions.append(Instruction(function, tuple(places), dtype))
        return StandIn(self, self.count + len(self.instructions) - 1, dtype)


def _adopted(x: bool | int | float, typed: list[np.dtype]) -> np.ndarray:
    """A Python number beside arrays takes their dtype, as in NumPy (NEP 50)."""
    dtype = np.result_type(x, *typed)
    return np.array(x, dtype)


class StandIn(NDArrayOperatorsMixin):
    """What a kernel gets instead of an array: a dtype and no values."""

    __slots__ = ("_at", "_recorder", "dtype")

    def __init__(self, recorder: _Recorder, at: int, dtype: np.dtype):
        self._recorder = recorder
        self._at = at
        self.dtype = dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            raise Untraceable
        return self._recorder.emit(ufunc, inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is not np.where or kwargs or len(args) != 3:
            raise Untraceable
        return self._recorder.emit(np.where, args)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The values in another dtype."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        recorder = self._recorder
        recorder.instructions.append(
            Instruction(np.ndarray.astype, (Place(self._at), dtype), dtype)
        )
        return StandIn(recorder, recorder.count + len(recorder.instructions) - 1, dtype)

    def copy(self) -> Any:
        """The same values: nothing writes to them."""
        return self

    def __getattr__(self, name: str) -> Any:
        raise Untraceable

    __bool__: Any = None  # what asks is not traced
    __iter__: Any = None


def trace(
    kernel: Callable[..., Any], args: list[Any], dtype: np.dtype
) -> tuple[list[Instruction], int] | None:
    """The kernel as instructions and the number of its result; None where it cannot be traced.

    `args` are the kernel's arguments: `Unknown` for an array, 0-d arrays for known numbers, and
    static ones; the unknown are numbered in order. `dtype` is the result's.
    """
    recorder = _Recorder(sum(type(arg) is Unknown for arg in args))
    number = 0
    given: list[Any] = []
    for arg in args:
        if type(arg) is Unknown:
            given.append(StandIn(recorder, number, arg.dtype))
            number += 1
        else:
            given.append(arg)
    try:
        result = kernel(*given)
    except Exception:
        return None
    if not isinstance(result, StandIn) or result.dtype != dtype:
        return None
    return recorder.instructions, result._at
