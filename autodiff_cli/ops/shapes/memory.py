"""What in-place changes are made of: writing through views, new values for old history."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Tensor, movement, opaque
from ...graph.op import OUTPUT, cast, constant
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import fits
from ...graph.strides import same_strides, strides_of
from ..kernels.indices import written_through
from ..kernels.rules import zeros

_SAME: dict[str, Any] = {
    "public": False,
    "steady": True,
    "strides_rule": same_strides,
    "properties": frozenset({"reshapes"}),
    "vjp": lambda g, out, input: g,
    "samples": [S(t(2, 3))],
    "counterpart": lambda input: input,
}


@movement(lambda x: x, **_SAME)
def alias(input: Tensor):
    """The same tensor under a new node."""


@movement(lambda x: x, name="alias", view=True, grad_fn="AliasBackward0", **_SAME)
def whole_view(input: Tensor):
    """All of a tensor, in its own memory: what `x[...]` is."""


@movement(
    lambda x: x,
    public=False,
    view=True,
    steady=True,
    strides_rule=same_strides,
    properties=frozenset({"own counter"}),
    samples=[S(t(2, 3))],
    counterpart=lambda input: input,
)
def data_alias(input: Tensor):
    """What `x.data` is: the same memory outside the graph, unseen by the checks of saved values."""


def _refuses(g, out, input, words, help):
    raise fault("E404 differentiated-once", help, words)


@movement(
    lambda x, words, help: x,
    public=False,
    grad_fn="Error",
    samples=[S(t(2, 3, grad=False), "no second derivative", "ask for one")],
    counterpart=lambda input, words, help: input,
    vjp=_refuses,
)
def differentiable_once(input: Tensor, words: str, help: str):
    """A derivative that has none itself: who asks for it is told PyTorch's words."""


def fitting(g, old):
    """A cotangent for what a tensor was before it was given memory of another shape: E308 if so."""
    if g.shape == old.shape:
        return cast(g, old.dtype)
    raise fault("E308 gradient-shape", g, old, list(g.shape), list(old.shape))


@movement(
    lambda old, value: value,
    public=False,
    steady=True,
    shape=lambda old, value: (value.shape, value.dtype),
    strides_rule=lambda strides, old, value: strides_of(value),
    grad_fn=lambda old, value: (old.args[0] if old.op is OUTPUT else old).grad_name,
    vjp=lambda g, out, old, value: (fitting(g, old), None),
    samples=[S(t(2, 3), t(2, 3), order=0, because="slopes are those of the history")],
    properties=frozenset({"convention"}),
    counterpart=lambda old, value: F.add(F.sub(old, F.detach(old)), value),
)
def with_value(old: Tensor, value: Tensor):
    """The history of `old` with the values of `value`: a change made under no_grad."""


def _viewed(x, step):
    """The part of a gradient, whose layout may be another than that of what was changed."""
    op, rest, index = step
    found = F.reshape(x, *rest) if op.key == "view" else op.apply([x, *rest])
    return found if index < 0 else found[index]


def _copy_slices(base, value, step):
    """A copy of the base, written through the view of it that NumPy makes."""
    op, rest, index = step
    out = np.array(base, order="C")
    place = op.kernel(out, *rest)
    place = place if index < 0 else place[index]
    if place is out or place.base is out:  # sliding windows cannot be made writeable
        place.flags.writeable = True  # NumPy protects diagonals; `out` is ours
        place[...] = value
        return out
    flat = out.reshape(-1)
    places = op.kernel(np.arange(base.size).reshape(base.shape), *rest)
    flat[places if index < 0 else places[index]] = value
    return out


def _placed(base, value, step):
    """The same by the numbers of the elements that the view shows."""
    numbers = constant(np.arange(base.numel).reshape(base.shape))
    places = F.reshape(_viewed(numbers, step), -1)
    values = F.reshape(F.expand(value, _viewed(base, step).shape), -1)
    return F.reshape(F.index_put(F.reshape(base, -1), (places,), values), base.shape)


@opaque(
    _copy_slices,
    jax=lambda base, value, step: written_through("base", "value", base.shape, step),
    public=False,
    grad_fn="CopySlices",
    strides_rule=same_strides,
    properties=frozenset({"selects"}),
    counterpart=_placed,
    vjp=lambda g, out, base, value, step: (F.copy_slices(g, zeros(value), step), _viewed(g, step)),
)
def copy_slices(base: Tensor, value: Tensor, step: Any):
    """`base` with `value` written to what the view op `step` shows of it."""


def _overwritten_shape(input, src, *rest):
    if not fits(src.shape, input.shape):
        raise fault("E302 cannot-write-shape-into", input.shape, src)
    return input.shape, input.dtype


def _spread(input, src, *rest):
    return F.expand(cast(src, input.dtype), input.shape)


def _overwritten(x, src, *rest):
    out = np.empty_like(x)
    out[...] = src
    return out


@movement(
    _overwritten,
    jax="np.broadcast_to(src, input.shape).astype(input.dtype)",
    name="copy",
    inplace=True,
    grad_fn="CopyBackwards",
    strides_rule=same_strides,
    shape=_overwritten_shape,
    samples=[S(t(2, 3), t(3)), S(t(2), t()), S(t(2), ints(2))],
    errors=[Bad("E302", t(2), t(3))],
    counterpart=_spread,
    vjp=lambda g, out, input, src, non_blocking: (zeros(input), F.sum_to_size(g, src.shape)),
)
def copy_over(input: Tensor, src: Tensor, non_blocking: bool = False):
    """The values of `src` in the shape and dtype of `input`; what `x.copy_(src)` writes."""


@movement(
    _overwritten,
    jax="np.broadcast_to(value, input.shape).astype(input.dtype)",
    public=False,
    grad_fn="FillBackward3",
    strides_rule=same_strides,
    shape=_overwritten_shape,
    samples=[S(t(2, 3), t())],
    vjp=lambda g, out, input, value: (zeros(input), F.sum(g)),
    counterpart=_spread,
)
def fill_over(input: Tensor, value: Tensor):
    """One number in the shape and dtype of `input`: what `x[...] = number` writes."""
