"""Order: sorting, the k largest, searching in sorted tensors, distinct elements."""

from __future__ import annotations

import numpy as np

from ..errors import fail
from ..graph.declare import Dim, Tensor, composite, opaque
from ..graph.dtypes import INT64
from ..graph.op import shape_text
from ..graph.registry import F
from ..graph.samples import Bad, S, t


def _argsort(x, dim, descending, stable):
    if not x.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    order = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - order, dim)


SORTED = (S(t(2, 3)), S(t(2, 3), 0, True), S(t()), S(t(4, values=[2.0, 1.0, 2.0, 1.0])))


@opaque(_argsort, shape=lambda input, dim, descending, stable: (input.shape, INT64), samples=SORTED)
def argsort(input: Tensor, dim: Dim = -1, descending: bool = False, stable: bool = False):
    """Indices that sort along `dim`; equal elements keep their order, nan is largest."""


@composite(fields=("values", "indices"), samples=SORTED, errors=[Bad("E304", t(2), 1)],
           grad_fn=lambda input, dim, descending, stable:
           "SortBackward0" if stable is None else "SortBackward1")
def sort(input: Tensor, dim: Dim = -1, descending: bool = False, stable: bool | None = None):
    """Elements in order along `dim`, and their indices."""
    index = F.argsort(input, dim, descending)
    return F.gather(input, dim, index), index


@composite(fields=("values", "indices"), samples=[S(t(2, 3), 2), S(t(2, 4), 2, 0, False), S(t(), 1)],
           errors=[Bad("E308", t(3), 4, words="4")])
def topk(input: Tensor, k: int, dim: Dim = -1, largest: bool = True, sorted: bool = True):
    """The `k` largest (or smallest) elements along `dim` in order, and their indices."""
    size = input.shape[dim] if input.shape else 1
    if not 0 <= k <= size:
        raise fail("E308", f"`topk` of {k} along dim {dim} of shape {shape_text(input.shape)}",
                   help=f"k may be 0 to {size} here")
    index = F.argsort(input, dim, largest)
    if input.shape:
        index = F.narrow(index, dim, 0, k)
    return F.gather(input, dim, index), index
