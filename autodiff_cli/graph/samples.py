"""Samples: small descriptions of inputs that stand beside each op and become its tests and
examples."""

from __future__ import annotations

from typing import Any


class T:
    """A tensor to make: random floats in `[low, high)` of a shape, or given `values`.

    `within` names the matrices that the op is made for, "symmetric", "lower" or "upper": its
    derivatives are those along them."""

    __slots__ = ("dtype", "grad", "high", "low", "shape", "values", "within")

    def __init__(
        self,
        shape: tuple[int, ...],
        low: float,
        high: float,
        dtype: str,
        values: Any,
        grad: bool,
        within: str = "",
    ):
        self.shape, self.low, self.high = shape, low, high
        self.dtype, self.values, self.grad, self.within = dtype, values, grad, within


def t(
    *shape: int,
    low: float = -2.0,
    high: float = 2.0,
    dtype: str = "float64",
    values: Any = None,
    grad: bool = True,
    within: str = "",
) -> T:
    """A float tensor of a shape, drawn from `[low, high)`; or of given values."""
    return T(shape, low, high, dtype, values, grad and dtype.startswith("float"), within)


def ints(*shape: int, low: int = 0, high: int = 3, values: Any = None) -> T:
    """An int64 tensor drawn from `low .. high - 1`."""
    return T(shape, low, high, "int64", values, False)


def bools(*shape: int, values: Any = None) -> T:
    """A bool tensor."""
    return T(shape, 0, 2, "bool", values, False)


class S:
    """One call of an op. `order` is the highest derivative that differences confirm, `because` the
    reason when that is below 2; at order 0, a kink, only PyTorch's convention counts."""

    __slots__ = ("args", "because", "kwargs", "order")

    def __init__(self, *args: Any, order: int = 2, because: str = "", **kwargs: Any):
        self.args = args
        self.kwargs = kwargs
        self.order = order
        self.because = because


class Bad:
    """A call that must fail with `code`, with `words` in the message."""

    __slots__ = ("args", "code", "kwargs", "words")

    def __init__(self, code: str, *args: Any, words: str = "", **kwargs: Any):
        self.code = code
        self.args = args
        self.kwargs = kwargs
        self.words = words
