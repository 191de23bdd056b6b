"""Tensors from nothing, from other tensors' shapes, and copies in other dtypes."""

from __future__ import annotations

import numpy as np

from ..graph.declare import Any, Dtype, Ints, Scalar, Size, Tensor, function, movement, opaque
from ..graph.dtypes import BOOL, INT64
from ..graph.op import cast
from ..graph.registry import F
from ..graph.samples import S, t
from ..graph.state import STATE


def _dtype_of(number):
    return BOOL if type(number) is bool else INT64 if type(number) is int else STATE.default_dtype


def _full_shape(size, fill_value, dtype, device, requires_grad):
    return (size if type(size) is tuple else (size,)), dtype or _dtype_of(fill_value)


@opaque(lambda size, fill_value, dtype, device, requires_grad: np.full(size, fill_value, dtype or _dtype_of(fill_value)),
        shape=_full_shape, samples=[S((2, 3), 1.5), S((2,), 3)])
def full(size: Ints, fill_value: Scalar, *, dtype: Dtype | None = None, device: Any = None,
         requires_grad: bool = False):
    """A tensor filled with one number."""


@function(samples=[S(2, 3), S((2,))])
def zeros(size: Size, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False):
    """A tensor of zeros."""
    return F.full(size, 0.0, dtype=dtype or STATE.default_dtype)


@function(samples=[S(2, 3), S((2,))])
def ones(size: Size, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False):
    """A tensor of ones."""
    return F.full(size, 1.0, dtype=dtype or STATE.default_dtype)


@function(samples=[S(t(2, 3))])
def full_like(input: Tensor, fill_value: Scalar, *, dtype: Dtype | None = None, device: Any = None,
              requires_grad: bool = False):
    """A tensor of the shape and dtype of `input`, filled with one number."""
    return F.full(input.shape, fill_value, dtype=dtype or input.dtype)


@function(samples=[S(t(2, 3))])
def zeros_like(input: Tensor, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False):
    """Zeros of the shape and dtype of `input`."""
    return F.full(input.shape, 0, dtype=dtype or input.dtype)


@function(samples=[S(t(2, 3))])
def ones_like(input: Tensor, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False):
    """Ones of the shape and dtype of `input`."""
    return F.full(input.shape, 1, dtype=dtype or input.dtype)


def _range(start, end, step, dtype):
    return np.arange(_range_size(start, end, step)).astype(dtype) * np.asarray(step, dtype) + np.asarray(start, dtype)


def _range_size(start, end, step):
    return max(0, int(np.ceil((end - start) / step)))


@opaque(_range, method=False, shape=lambda start, end, step, dtype: ((_range_size(start, end, step),), dtype))
def number_range(start: Scalar, end: Scalar, step: Scalar, dtype: Dtype):
    """Numbers from `start` up to, not including, `end`."""


@function(samples=[S(5), S(1, 4), S(0.0, 1.0, 0.25)])
def arange(start: Scalar, end: Scalar | None = None, step: Scalar = 1, *, dtype: Dtype | None = None,
           device: Any = None, requires_grad: bool = False):
    """Numbers from `start` up to, not including, `end`."""
    if end is None:
        start, end = 0, start
    if dtype is None:
        dtype = STATE.default_dtype if float in (type(start), type(end), type(step)) else INT64
    return F.number_range(start, end, step, dtype)


def _eye(n, m, dtype):
    return np.eye(n, m, dtype=dtype)


@opaque(lambda n, m, dtype, device, requires_grad: np.eye(n, m, dtype=dtype or STATE.default_dtype), samples=[S(2), S(2, 3)],
        shape=lambda n, m, dtype, device, requires_grad: ((n, n if m is None else m), dtype or STATE.default_dtype))
def eye(n: int, m: int | None = None, *, dtype: Dtype | None = None, device: Any = None,
        requires_grad: bool = False):
    """Ones on the diagonal, zeros elsewhere."""


@movement(lambda x: x.copy(), shape=lambda input: (input.shape, input.dtype), vjp=lambda g, out, input: g,
          samples=[S(t(2, 3))])
def clone(input: Tensor):
    """A copy of the tensor."""


@function(method=False)
def to_dtype(input: Tensor, dtype: Dtype):
    """The tensor in another dtype."""
    return cast(input, dtype)
