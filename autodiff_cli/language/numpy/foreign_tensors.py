"""PyTorch's tensors as NumPy's functions see them, in snippets of Python.

NumPy itself decides what becomes of one: many functions call its method of the same name (and take
its values when the method refuses their arguments), ufuncs give what they computed back as a
tensor, and all else takes its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import index as index_of
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fault
from ...graph.op import constant, value_of
from ..runtime.attributes import get_attribute
from ..values.arrays import Refused
from ..values.exceptions import is_a
from ..values.functions import call_value
from ..values.subscripts import index
from ..values.values import is_callable


class ForeignTensor(NDArrayOperatorsMixin):
    """What NumPy is given for a tensor; its operators are NumPy's ufuncs."""

    __slots__ = ("tensor",)
    __array_priority__ = 1000
    __array_ufunc__: Any  # which there is none of

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self.tensor.requires_grad:
            raise fault("E402 numpy-cannot-called-tensor-requires")
        found = value_of(self.tensor.node)
        return found if dtype is None else found.astype(dtype, copy=False)

    def __array_wrap__(self, array: np.ndarray, *rest: Any) -> ForeignTensor:
        kept = array.astype(np.uint8) if array.dtype == bool else array
        return ForeignTensor(Tensor(constant(kept)))

    def __float__(self) -> float:
        return float(self.__array__())

    def __int__(self) -> int:
        return int(self.__array__())

    def __bool__(self) -> bool:
        return bool(self.__array__())

    def __index__(self) -> int:
        return index_of(self.__array__())

    def __len__(self) -> int:
        return len(value_of(self.tensor.node))

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        return foreign(index(self.tensor, _key(key)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            found = get_attribute(self.tensor, name)
        except AutodiffError as error:
            raise AttributeError(name) from error
        return _method(found) if is_callable(found) else foreign(found)


def _method(function: Any) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return foreign(call_value(function, [getattr(a, "tensor", a) for a in args], kwargs))
        except AutodiffError as error:
            if is_a(error, "TypeError"):
                raise Refused(error.message) from None
            raise

    return run


def _key(key: Any) -> Any:
    """An index of NumPy's as one of Python's."""
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    if isinstance(key, slice):
        return slice(*map(_key, (key.start, key.stop, key.step)))
    return int(key) if isinstance(key, np.integer) else key


def foreign(value: Any) -> Any:
    """A value of the program as NumPy gets it."""
    return ForeignTensor(value) if type(value) is Tensor else value
