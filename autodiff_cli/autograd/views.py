"""Views in place: what may be written through them, and what the whole is afterwards.

A view is known by its `steps`, the view ops that lead from the whole to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AutodiffError, fault
from ..graph.node import Node
from ..graph.op import LEAF, OUTPUT, constant, number, value_of
from ..graph.registry import F
from ..graph.state import STATE
from ..graph.strides import strides_of
from .rules import records

if TYPE_CHECKING:
    from .tensor import Tensor

# An op, its arguments after the first, and which of its results (-1: it has one).
Step = tuple[Any, tuple[Any, ...], int]


class Steps:
    """The steps that lead to a view, as a chain, so that a view of a view costs one more. `cut`:
    how many of them lead to the last that detaches; `several`: the first that gives views several
    at once."""

    __slots__ = ("before", "count", "cut", "last", "several")

    def __init__(self, before: Steps | None = None, last: Any = None):
        self.before, self.last = before, last
        self.count, self.cut = 0, 0
        self.several: Step | None = None
        if before is not None:
            self.count = before.count + 1
            self.cut = self.count if last[0].key in ("detach", "data_alias") else before.cut
            self.several = before.several or (last if last[2] >= 0 else None)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Step]:
        found = []
        at: Steps | None = self
        while at is not None and at.last is not None:
            found.append(at.last)
            at = at.before
        return reversed(found)

    def then(self, *steps: Step) -> Steps:
        """These steps and more."""
        return Steps(self, steps[0]).then(*steps[1:]) if steps else self

    def until_cut(self) -> Steps:
        """The steps to the last that detaches."""
        at = self
        while at.count > self.cut and at.before is not None:
            at = at.before
        return at


NO_STEPS = Steps()


def applied(step: Step, node: Node) -> Node:
    """Apply a view step to a node."""
    op, rest, index = step
    found = op.apply([node, *rest])
    part: Node = found if index < 0 else found[index]
    return part


def single(node: Node) -> bool:
    """Whether every element of a tensor has a place of its own in memory."""
    if not node.op.view or not node.numel:
        return True
    return all(n == 1 or step for n, step in zip(node.shape, strides_of(node), strict=True))


# Ops that write the elements that they name, and which of their arguments is what they write.
NAMED = {"index_fill_number": 3, "index_fill_tensor": 3, "index_written": 2, "masked_written": 2}
ZEROED = frozenset({"tril", "triu"})  # those that write zeros to elements of their choice


def agreed(target: Node, written: Node) -> Node:
    """Return what a write leaves in a tensor some of whose elements share a place in memory: the
    last element that the op names wins. E308 for ops that write all elements."""
    at = NAMED.get(written.op.key)
    args = list(written.args)
    if at is not None:
        args[0], args[at] = F.zeros(target.shape, dtype=target.dtype), number(1.0, target.dtype)
        named = np.flatnonzero(value_of(written.op.apply(args)))
    elif written.op.key in ZEROED:
        args[0] = F.ones(target.shape, dtype=target.dtype)
        named = np.flatnonzero(value_of(written.op.apply(args)) == 0)
    else:
        raise fault("E308 expanded-tensor", target)
    places = _places(target)
    last = np.full(places.max(initial=0) + 1, -1)
    last[places[named]] = named
    last = np.where(last[places] < 0, np.arange(places.size), last[places])
    shown = tuple(slice(None if step else 1) for step in strides_of(target))
    last = last.reshape(target.shape)[shown]
    return F.expand(_at(written, last), target.shape)


def _places(node: Node) -> np.ndarray:
    """Where in memory each element of a tensor is."""
    found: np.ndarray = (np.indices(node.shape).T @ np.array(strides_of(node), int)).T.ravel()
    return found


def _at(node: Node, index: np.ndarray) -> Node:
    """Elements of a tensor by their numbers."""
    found = F.index_select(F.reshape(node, (-1,)), 0, constant(index.ravel()))
    return F.reshape(found, index.shape)


def overlaps(node: Node) -> bool:
    """Whether elements of a tensor are one place in memory, as those of windows are."""
    reach = 1
    for step, n in sorted(zip(map(abs, strides_of(node)), node.shape, strict=True)):
        if n > 1 and step < reach:
            return True
        reach += step * (n - 1)
    return False


def in_turn(target: Node, written: Node, by: Node | None) -> Node:
    """Return what a write leaves in a tensor whose rows overlap: elements are written one after the
    other, and an op that reads them sees the writes before its own."""
    places = _places(target)
    order = np.argsort(places, kind="stable")
    starts, counts = np.unique(places[order], return_index=True, return_counts=True)[1:]
    index = np.unique(places, return_inverse=True)[1].reshape(target.shape)
    if by is None:
        return _at(written, order[starts + counts - 1][index])
    now = _at(written, order[starts][index])
    for turn in range(1, counts.max(initial=0)):
        chosen = order[starts + np.minimum(turn, counts - 1)]
        after = _at(by.op.apply([now, *by.args[1:]]), chosen[index])
        now = F.where(constant((counts > turn)[index]), after, now)
    return now


# Ops that write one element after the other, wherever their indices say: what they read may not be
# what they write at all.
ONE_BY_ONE = frozenset(
    {
        "index_add",
        "index_copy",
        "index_fill_number",
        "index_fill_tensor",
        "index_reduce",
        "index_written",
        "put",
        "scatter_add",
        "scatter_combined",
        "scatter_reduce",
        "scatter_tensor",
        "scatter_value",
    }
)


# Ops of which PyTorch checks no operand, or not the last, which is a number to it.
_UNCHECKED = {"masked_scatter": 0, "filled_with": -1, "index_fill_tensor": -1, "masked_written": -1}


def check_apart(
    target: Tensor, operands: tuple[Node, ...], source: Tensor | None, by: Node | None
) -> None:
    """E308 when an operand of an in-place change lies partly in the memory that is written."""
    if by is not None and by.op.key in _UNCHECKED:
        operands = operands[: _UNCHECKED[by.op.key]]
    strict = by is not None and by.op.key in ONE_BY_ONE
    others = [source] if source is not None else []
    for node in operands[1:]:
        handle = node.handle and node.handle()
        if handle is not None and (strict or handle is not target):
            others.append(handle)
    for other in others:
        shared = other is target or (other.storage and other.storage is target.storage)
        if shared and _overlap(target, other, strict):
            raise fault("E308 operand-shape-shares-part", other, target)


def _overlap(a: Tensor, b: Tensor, strict: bool) -> bool:
    """Whether two dense parts of one memory have elements in common, but are not the same."""
    extents = []
    for tensor in (a, b):
        node = tensor.looked_at
        steps = sorted(
            (step, n) for n, step in zip(node.shape, strides_of(node), strict=True) if n != 1
        )
        run = 1
        for step, n in steps:
            if step != run or not n:
                return False
            run *= n
        start = first_place(tensor)
        extents.append((start, start + run, steps and strides_of(node)))
    (start, end, _), (other_start, other_end, _) = extents
    if extents[0] == extents[1]:
        return strict
    return start < other_end and other_start < end


def first_place(tensor: Tensor) -> int:
    """Where in the memory of the whole a tensor begins."""
    storage = tensor.storage
    if storage is None or not tensor.steps or 0 in tensor.shape:
        return 0
    return int(value_of(places_of(storage.node, tensor.steps)).flat[0])


def check_view(view: Tensor, value: Node) -> None:
    """E405 where a gradient would flow through a view that autograd cannot make anew."""
    node = view.node
    forbids, mode = getattr(view, "forbids", ""), getattr(view, "untracked", "")
    several = None if view.steps.cut else view.steps.several
    refused = STATE.grad and (forbids or mode or several)
    if not refused or not (records(value) or records(node)):
        return
    if forbids:
        raise fault("E405 view-function-returned-cannot", _changed_in_place(node, forbids))
    if mode:
        raise fault("E405 view-was-made-under", mode, _untracked(node, mode))
    if several:
        words = _changed_in_place(node, _one_of_several(node))
        raise fault("E405 result-cannot-changed-place", several[0], words)


def lost_history(view: Tensor, whole: Node) -> bool:
    """Whether the history of a view cannot be made anew now that the whole has changed."""
    if not whole.requires_grad:
        return False
    if getattr(view, "forbids", ""):
        return True
    known = not getattr(view, "untracked", "") and view.steps.several is None
    return not (view.steps.cut or known)


def history_lost(view: Tensor, before: Node) -> AutodiffError:
    """E407 for a view whose history is lost; `before` is what it was when that was made."""
    several = view.steps.several
    mode, forbids = getattr(view, "untracked", ""), getattr(view, "forbids", "")
    if forbids and not mode:
        made, words = "returned by a Function", forbids
    elif several is None or not before.requires_grad or mode:
        made = f"made under {mode or 'no_grad'}"
        words = _untracked(before, mode or "no_grad")
    else:
        made = f"made by `{several[0].name}` with others"
        words = _one_of_several(before)
    changed = "its base or another view of its base has been modified inplace"
    words = words.replace("is being modified inplace", changed)
    return fault("E407 view-was-cannot-used", made, words)


def _changed_in_place(view: Node, words: str) -> str:
    """What PyTorch says of a view that may not be changed: one without a gradient of its own is
    nobody's output."""
    whose = _untracked(view, "no_grad").split(".")[0]
    return words if view.requires_grad else whose + words[words.index(".") :]


def _untracked(view: Node, mode: str) -> str:
    """What PyTorch says of a view without a history that was made in a mode, or looks at one."""
    inference = mode != "no_grad"
    made, index = view.args if view.op is OUTPUT else (view, 0)
    whose = "A view was"
    function = made.grad_name.removesuffix("Backward0")
    if view.requires_grad and view.op is not LEAF and function != "AsStrided":
        whose = f"Output {index} of {function} is a view of a view which was"
    return _UNTRACKED.format(
        whose,
        mode,
        "in normal mode" if inference else "with grad mode enabled",
        "inference_mode" if inference else mode,
    )


def _one_of_several(view: Node) -> str:
    made, index = view.args if view.op is OUTPUT else (view, 0)
    return _ONE_OF_SEVERAL.format(index, made.grad_name.removesuffix("Backward0"))


_ONE_OF_SEVERAL = (
    "Output {} of {} is a view and is being modified inplace. This view is the output of a "
    "function that returns multiple views. Such functions do not allow the output views to be "
    "modified inplace. You should replace the inplace operation by an out-of-place one."
)
_UNTRACKED = (
    "{} created in {} mode and is being modified inplace {}. "
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the {} block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


def shows_another(node: Node) -> bool:
    """Whether a result looks at memory that only its op knows, as the last of its steps: what
    `einsum` and convolutions without a batch give."""
    return node.op.view and node.requires_grad and not node.grad_name.startswith("Unsafe")


def written_through(
    whole: Node, through: Iterable[Step], value: Node, memory: bool = False
) -> Node:
    """The whole after `value` was written to the view that steps lead to. `memory`: as it lies
    there, so that elements of an expanded whole stay one place."""
    steps = tuple(through)
    if not steps:
        return value
    bases = [whole]
    for step in steps[:-1]:
        bases.append(applied(step, bases[-1]))
    if any(b.op.view and overlaps(b) for b in bases[not memory :]):
        return _written_by_places(whole, steps, value)
    for base, step in zip(reversed(bases), reversed(steps), strict=True):
        value = F.copy_slices(base, value, step)
    return value


def viewed(node: Node, steps: Iterable[Step]) -> Node:
    """The view of a node to which steps lead."""
    for step in steps:
        node = applied(step, node)
    return node


def places_of(whole: Node, steps: Iterable[Step]) -> Node:
    """For each element of a view its number in the whole."""
    return viewed(F.reshape(constant(np.arange(whole.numel)), whole.shape), steps)


def _written_by_places(whole: Node, steps: tuple[Step, ...], value: Node) -> Node:
    """`written_through` for views whose bases show one element at several places."""
    firsts = np.arange(whole.numel).reshape(whole.shape)
    firsts = firsts[tuple(slice(1 if not step else None) for step in strides_of(whole))]
    places = value_of(places_of(whole, steps))
    if firsts.size != whole.numel:
        places = np.broadcast_to(firsts, whole.shape).ravel()[places]
    flat = F.reshape(whole, (-1,))
    written = F.index_written(flat, (constant(places),), value, False)
    result = F.expand(_at(written, firsts), whole.shape)
    result.mark().name = "CopySlices"
    return result


def base_of(view: Tensor) -> Tensor | None:
    """The tensor that a view looks at, through all views between; None for what is no view."""
    storage = view.storage
    if storage is None and shows_another(view.looked_at):
        return type(view)(view.looked_at.args[0])
    steps: Steps | None = view.steps
    if getattr(view, "forbids", "") and steps is not None:
        steps = steps.before  # the last gives it a history of its own
    elif view.steps.cut == view.steps.count:
        return None
    if storage is None or steps is None:
        return None
    steps = steps.until_cut()
    whole = storage.seen_through(steps)
    shown = None if whole.handle is None else whole.handle()
    if shown is not None and shown.storage is storage:
        return shown
    base = type(view)(whole)
    base.storage, base.steps, base.seen = storage, steps, storage.version
    return base
