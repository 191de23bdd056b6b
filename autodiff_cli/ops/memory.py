"""What in-place changes are made of: writing through views, new values for old history."""

from __future__ import annotations

import numpy as np

from ..graph.declare import Any, Tensor, movement, opaque
from ..graph.op import number
from ..graph.registry import F


@movement(lambda x: x, method=False, shape=lambda input: (input.shape, input.dtype),
          vjp=lambda g, out, input: g)
def alias(input: Tensor):
    """The same tensor under a new node."""


@movement(lambda x: x, method=False, view=True, shape=lambda input: (input.shape, input.dtype))
def data_alias(input: Tensor):
    """What `x.data` is: the same memory outside the graph, unseen by the checks of saved values."""


@movement(lambda old, value: value, method=False, shape=lambda old, value: (old.shape, old.dtype),
          vjp=lambda g, out, old, value: (g, None))
def with_value(old: Tensor, value: Tensor):
    """The history of `old` with the values of `value`: a change made under no_grad."""


def _viewed(x, step):
    op, rest, index = step
    found = op.apply([x, *rest])
    return found if index < 0 else found[index]


def _copy_slices(base, value, step):
    """Number the elements of the base, look at the numbers through the view, write there."""
    op, rest, index = step
    places = op.kernel(np.arange(base.size).reshape(base.shape), *rest)
    out = base.copy().reshape(-1)
    out[places if index < 0 else places[index]] = value
    return out.reshape(base.shape)


@opaque(_copy_slices, key="copy_slices", method=False, grad_fn="CopySlices",
        shape=lambda base, value, step: (base.shape, base.dtype))
def copy_slices(base: Tensor, value: Tensor, step: Any):
    """`base` with `value` written to what the view op `step` shows of it."""


@copy_slices.vjp
def _(g, out, base, value, step):
    return F.copy_slices(g, _zeros(value), step), _viewed(g, step)


def _zeros(value):

    return F.expand(number(0.0, value.dtype), value.shape)
