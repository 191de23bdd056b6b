"""Functions whose float32 results are rounded from float64 where arrays are small.

PyTorch's vectors have nearly always the nearest float32 number, NumPy's often a neighbour of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MOST = 2048  # elements; beyond, time counts more than the last bit


class InDouble:
    """Called like a ufunc of one operand, also by the engine when it traces kernels. `unsigned`:
    its NaN has no sign. `float64`: the same for that dtype, the ufunc itself where that is all."""

    __slots__ = ("float64", "ufunc", "unsigned")
    nout = 1
    signature = None

    def __init__(self, ufunc: Any, unsigned: bool = False):
        self.ufunc = ufunc
        self.unsigned = unsigned
        self.float64 = self if unsigned else ufunc

    def of(self, dtype: np.dtype) -> Any:
        """The same for arrays of a dtype."""
        return self if dtype == np.float32 else self.float64

    def __call__(self, x: Any, out: np.ndarray | None = None) -> Any:
        if not isinstance(x, np.ndarray | np.generic):
            return x.__array_ufunc__(self, "__call__", x)
        if x.size > MOST or self.of(x.dtype) is self.ufunc:
            return self.ufunc(x, out)
        found = np.asarray(self.ufunc(x, dtype=np.float64))
        if self.unsigned:
            np.abs(found, out=found, where=np.isnan(found))
        if out is None:
            return found.astype(x.dtype)
        out[...] = found
        return out


exp = InDouble(np.exp)
