"""Views in place: what may be written through them, and what the whole is afterwards.

A view is known by its `steps`, the view ops that lead from the whole to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import fail
from ..graph.node import Node
from ..graph.op import constant
from ..graph.registry import F
from ..graph.sizes import shape_text
from ..graph.state import STATE
from ..graph.strides import strides_of

if TYPE_CHECKING:
    from .tensor import Tensor

# An op, its arguments after the first, and which of its results (-1: it has one).
Step = tuple[Any, tuple[Any, ...], int]


def check_view(view: Tensor, value: Node) -> None:
    """E308 for a view some of whose elements are one place in memory; E405 where a gradient would
    flow through a view that autograd cannot make anew."""
    node = view.node
    overlaps = (n > 1 and not step for n, step in zip(node.shape, strides_of(node), strict=True))
    if node.numel and any(overlaps):
        raise fail(
            "E308",
            f"an expanded tensor, shape {shape_text(node.shape)}, cannot be changed in place: "
            "several of its elements are one place in memory",
            help="change a copy: `x = x.clone()` first",
            notes=(f"PyTorch: {_OVERLAP}",),
        )
    if not STATE.grad or not (value.requires_grad or node.requires_grad):
        return
    forbids = getattr(view, "forbids", "")
    if forbids:
        raise fail(
            "E405",
            "a view that a Function returned cannot be changed in place: its backward would be "
            "passed by",
            help="change a clone of it",
            notes=(f"PyTorch: {forbids}",),
        )
    if detached(view):
        return
    for op, _, index in view.steps:
        if index >= 0:
            raise fail(
                "E405",
                f"a result of `{op.name}` cannot be changed in place: PyTorch keeps no track of "
                "views that are made several at once",
                help="index what they look at, `x[i] = ...`, or change a clone",
                notes=(f"PyTorch: {_ONE_OF_SEVERAL.format(index, op.name.capitalize())}",),
            )
    if getattr(view, "untracked", False):
        raise fail(
            "E405",
            "a view that was made under no_grad cannot be changed in place outside of it",
            help="make the view and change it in the same mode",
            notes=(f"PyTorch: {_UNTRACKED}",),
        )


_OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)
_ONE_OF_SEVERAL = (
    "Output {} of {} is a view and is being modified inplace. This view is the output of a "
    "function that returns multiple views. Such functions do not allow the output views to be "
    "modified inplace. You should replace the inplace operation by an out-of-place one."
)
_UNTRACKED = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


def detaches(step: Step) -> bool:
    return step[0].key in ("detach", "data_alias")


def detached(tensor: Tensor) -> bool:
    """Whether a view looks at its memory outside the graph."""
    return any(map(detaches, tensor.steps))


def written_through(whole: Node, steps: tuple[Step, ...], value: Node) -> Node:
    """The whole after `value` was written to the view that `steps` lead to."""
    if any(op.key == "expand" for op, _, _ in steps[:-1]):
        return _written_by_places(whole, steps, value)
    bases = [whole]
    for op, rest, index in steps[:-1]:
        found = op.apply([bases[-1], *rest])
        bases.append(found if index < 0 else found[index])
    for base, (op, rest, index) in zip(reversed(bases), reversed(steps), strict=True):
        value = F.copy_slices(base, value, (op, rest, index))
    return value


def places_of(whole: Node, steps: tuple[Step, ...]) -> Node:
    """For each element of a view its number in the whole."""
    places = F.reshape(constant(np.arange(whole.numel)), whole.shape)
    for op, rest, index in steps:
        found = op.apply([places, *rest])
        places = found if index < 0 else found[index]
    return places


def _written_by_places(whole: Node, steps: tuple[Step, ...], value: Node) -> Node:
    """`written_through` for views whose bases show one element at several places."""
    flat = F.reshape(whole, (-1,))
    written = F.index_written(flat, (places_of(whole, steps),), value, False)
    result = F.reshape(written, whole.shape)
    result.mark().name = "CopySlices"
    return result


def base_of(view: Tensor) -> Tensor | None:
    """The tensor that a view looks at, through all views between; None for what is no view."""
    storage = view.storage
    steps = view.steps
    cut = view._last_cut()
    if storage is None or cut == len(steps):
        return None
    whole = storage.seen_through(steps[:cut])
    shown = None if whole.handle is None else whole.handle()
    if shown is not None and shown.storage is storage:
        return shown
    base = type(view)(whole)
    base.storage, base.steps, base.seen = storage, steps[:cut], storage.version
    return base
