"""The mutable handle of PyTorch's users: a node that may be replaced, `grad`, `requires_grad`.

A `Tensor` shows a node. In-place changes replace the node; views share a `Storage` with the tensor
they look at, and are made anew from it when it has changed. Nodes themselves never change.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from sys import getrefcount
from typing import Any
from weakref import ref

import numpy as np

from ..errors import fault
from ..graph.dtypes import SCALAR_NAMES, SCALAR_TYPES, is_float
from ..graph.node import Node
from ..graph.op import LEAF, OUTPUT, batched, cast, constant, known, leaf, value_of
from ..graph.registry import F
from ..graph.state import STATE, grad_mode, taken_out
from ..graph.strides import strides_of
from . import data_mutation, rules
from .overwritten import recorded
from .storage import (
    Counter,
    Storage,
    in_place_of,
    mark_overwritten,
    renewed,
    revalued,
    without_history,
)
from .views import (
    NAMED,
    NO_STEPS,
    ONE_BY_ONE,
    agreed,
    base_of,
    check_apart,
    check_view,
    history_lost,
    in_turn,
    lost_history,
    overlaps,
    shows_another,
    single,
    written_through,
)


class AccumulateGrad:
    """Where a leaf's gradient adds up; shared by all nodes the leaf has been. `hooks` are called
    when it has added up. `closed`: the leaf requires grad no longer, and gets none."""

    __slots__ = ("closed", "grad", "hooks", "literal", "written_as_int")

    def __init__(self, written_as_int: bool = False):
        self.closed = False
        self.grad: Tensor | None = None
        self.hooks: dict[int, Any] = {}
        self.literal = False
        self.written_as_int = written_as_int

    def receive(self, g: Node, create_graph: bool) -> None:
        """Add a cotangent to `grad`, in the same tensor when it exists, as PyTorch does."""
        if self.closed:
            return
        grad = self.grad
        if grad is None:
            self.grad = _first(g, create_graph, F.copied)
        elif create_graph:
            self.grad = Tensor(F.add(grad.node, g))
        else:
            with grad_mode(False):
                grad.overwrite(F.add(grad.node, g))


class GradSlot(AccumulateGrad):
    """Where `retain_grad()` keeps a result's gradient (of one node only)."""

    __slots__ = ()

    def receive(self, g: Node, create_graph: bool) -> None:
        """Keep a cotangent, or its sum with what was kept, in a tensor of its own."""
        grad = self.grad
        if grad is None:
            self.grad = _first(g, create_graph, F.clone)
        else:
            with grad_mode(create_graph):
                self.grad = Tensor(F.add(grad.node, g))


class Unkept(AccumulateGrad):
    """Of a view that was made under no_grad: it requires grad and gets none. `kept` tells what is
    written for NumPy that such a leaf is no value of its own."""

    __slots__ = ()
    kept = False

    def receive(self, g: Node, create_graph: bool) -> None:
        """Nothing adds up."""


def _first(g: Node, create_graph: bool, copy: Callable[[Node], Node]) -> Tensor:
    """A gradient that comes first, of its own memory."""
    if not create_graph:
        g = F.detach(g) if STATE.dual else without_history(g)
        return Tensor(g if single(g) else F.alias(g))
    return Tensor(copy(g) if g.requires_grad else g)


class Tensor:
    """A handle. `node` is always current; `steps` are the view ops that lead from the storage's
    node to it (op, arguments after the first, index of the result or -1). `untracked` is the mode
    without history in which a view was made, or one that it looks through; `forbids` says in
    PyTorch's words why a view that a program's Function returned cannot be changed in place."""

    __slots__ = (
        "__weakref__",
        "_node",
        "accumulator",
        "counter",
        "forbids",
        "is_parameter",
        "known_changes",
        "seen",
        "steps",
        "storage",
        "tag",
        "untracked",
    )
    counter: Counter
    known_changes: int
    untracked: str
    forbids: str

    def __init__(self, node: Node, accumulator: AccumulateGrad | None = None):
        self._node = node
        self.accumulator = accumulator
        self.storage: Storage | None = None
        self.steps = NO_STEPS
        self.seen = 0
        self.is_parameter = False
        self.tag: str | None = None
        node.handle = ref(self)
        if node.requires_grad and STATE.packing:
            STATE.packing[-1](node)

    # -- reading ------------------------------------------------------------------------------

    @property
    def node(self) -> Node:
        storage = self.storage
        if storage is not None and storage.version != self.seen:
            if STATE.grad and self.invalid:
                raise history_lost(self, self._node)
            return self._refresh(storage)
        return self._node

    @property
    def looked_at(self) -> Node:
        """The node, for who reads no history: any view may be looked at."""
        storage = self.storage
        if storage is not None and storage.version != self.seen:
            return self._refresh(storage)
        return self._node

    @property
    def invalid(self) -> bool:
        """Whether this is a view whose history PyTorch cannot make anew."""
        storage = self.storage
        return (
            storage is not None
            and storage.version != self.seen
            and self.changed
            and lost_history(self, storage.node)
        )

    @property
    def changed(self) -> bool:
        """Whether the memory was changed, as far as autograd knows, since this view was made."""
        return self.version != getattr(self, "known_changes", 0)

    def _refresh(self, storage: Storage) -> Node:
        steps = self.steps
        invalid = self.invalid
        if invalid and self.seen == ~storage.version:  # looked at since
            return self._node
        with grad_mode(True):  # reading under no_grad takes no history away
            node = storage.seen_through(steps)
        self.seen = ~storage.version if invalid else storage.version
        changed = self.changed
        if not changed:
            # A view stays what it was made as when the whole begins to require grad, or ends.
            required = self._node.requires_grad
            if required and not node.requires_grad:
                node = revalued(self._node, node)
            elif type(self.accumulator) is Unkept or required is not node.requires_grad:
                self.accumulator = self.accumulator or Unkept()
                node = leaf(node, self.accumulator)
        if not invalid and node.requires_grad:
            self.known_changes = self.version
        kept = not (changed and steps) or id(steps.last) in storage.apart
        if not kept and node.requires_grad and node.op.view:
            node.mark().name = "AsStridedBackward0"  # what PyTorch makes a changed view anew with
        self._turn_to(node)
        return node

    def _turn_to(self, node: Node) -> None:
        """Show another node, and keep the gradient of that one, not of what was shown before."""
        slot = self.accumulator
        if isinstance(slot, GradSlot) and node.requires_grad:
            marks = recorded(self._node).marks
            if marks is not None and slot in marks.slots:
                marks.slots.remove(slot)
                recorded(node).mark().slots.append(slot)
        self._node = node
        node.handle = ref(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._node.shape

    @property
    def dtype(self) -> np.dtype:
        return self._node.dtype

    @property
    def requires_grad(self) -> bool:
        """Inside of transforms in forward mode, for another reason than that."""
        return rules.records(self.looked_at)

    @property
    def is_leaf(self) -> bool:
        node = self.looked_at
        if not node.requires_grad or node.op is LEAF:
            return True
        return _leads(node) or (bool(STATE.levels) and not self.requires_grad)

    @property
    def grad(self) -> Tensor | None:
        return None if self.accumulator is None else self.accumulator.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and (value.shape != self.shape or value.dtype != self.dtype):
            if value.dtype != self.dtype:
                kinds = SCALAR_NAMES[value.dtype.name], SCALAR_TYPES[self.dtype.name]
                raise fault("E308 gradient-other-dtype", self, value, kinds[0], kinds[1])
            sizes = list(value.shape), list(self.shape)
            raise fault("E308 gradient-other-size", self, value, sizes[0], sizes[1])
        if self.accumulator is None:
            self.accumulator = AccumulateGrad()
        self.accumulator.grad = value

    @property
    def grad_name(self) -> str | None:
        """Name of the backward function, None for leaves."""
        if self.invalid:
            return "Invalid"
        return None if self.is_leaf else grad_fn_name(self.looked_at)

    @property
    def version(self) -> int:
        """How often the memory was changed in place, as far as autograd knows."""
        counter = getattr(self, "counter", None)  # most tensors have none
        return 0 if counter is None else counter.count

    @property
    def inferred(self) -> bool:
        """Whether the memory was made in inference mode."""
        counter = getattr(self, "counter", None)
        return made_in_inference(self._node) if counter is None else counter.inferred

    def count_change(self) -> None:
        """Count a change in place."""
        self.counted().count += 1

    def counted(self) -> Counter:
        """The counter of changes, made on first use."""
        if getattr(self, "counter", None) is None:
            self.counter = Counter(made_in_inference(self._node))
        return self.counter

    def numpy(self) -> np.ndarray:
        """The values, shared with the graph: callers must not write to them."""
        return value_of(self.looked_at)

    def item(self) -> Any:
        node = self.looked_at
        if node.numel != 1 and known(node):
            raise fault("E408 tensor-elements", node, tuple(node.shape))
        if STATE.recorder is not None:
            return STATE.recorder.number(node)
        return taken_out(node, value_of(node).item())

    def __index__(self) -> int:
        if self.dtype.kind == "f" or self.node.numel != 1:
            raise fault("E205 only-integer-tensors-index")
        return int(self.item())

    # -- leaves and history -------------------------------------------------------------------

    def set_requires_grad(self, flag: bool, words: str = "Only {} and complex dtype {}") -> None:
        """`requires_grad_()`: a result without history becomes a leaf, or a leaf a constant.
        `words` are PyTorch's for a tensor of integers."""
        node = self.node
        if flag == node.requires_grad:
            return
        if flag and STATE.inferred and not STATE.inference and self.inferred:
            raise fault("E405 inference-tensor-cannot-require")
        if flag and not is_float(node.dtype):
            raise fault(
                "E306 only-floating-point-tensors",
                node,
                words.format("Tensors of floating point", "can require gradients"),
            )
        if not flag and node.op is not LEAF:
            raise fault("E411 requires_grad-can-switched-off")
        if self.accumulator is None:
            self.accumulator = AccumulateGrad()
        self.accumulator.closed = not flag
        storage = self.storage
        if storage is None or not self.steps:
            self._node = leaf(node, self.accumulator, flag) if flag else without_history(node)
            if storage is not None:
                storage.put(self._node)
                self.seen = storage.version
        elif flag:  # a leaf of its own, in memory that stays without it
            if not self.steps.cut:
                self.steps = self.steps.then((F.detach, (), -1))
            self._node = leaf(node, self.accumulator)
            storage.set_apart(self.steps.last, self._node)
        else:
            storage.apart.pop(id(self.steps.last), None)
            self._node = without_history(node)
        self._node.handle = ref(self)

    def forget_history(self) -> None:
        """`detach_()`: views that were made before keep theirs."""
        old = self.node
        if old.op is LEAF and self.accumulator is not None:
            self.accumulator.closed = True
        elif old.requires_grad:
            mark_overwritten(old, None, self.version)
            old.mark().detached = old.mark().overwritten
        self._node = node = F.detach(old)
        node.handle = ref(self)
        if self.storage is not None and self.steps:
            self.storage.set_apart(self.steps.last, node)
        elif self.storage is not None:
            self.storage.node = node

    def retain_grad(self) -> None:
        """Keep this result's gradient after backward."""
        node = self.node
        if not node.requires_grad:
            raise fault("E402 retain_grad-needs-tensor-requires")
        if node.op is LEAF or self.accumulator is not None:
            return
        self.accumulator = slot = GradSlot()
        recorded(node).mark().slots.append(slot)

    def _show(self, node: Node) -> None:
        """Show another node of the same shape and dtype as the storage's new content."""
        self._turn_to(node)
        storage = self.storage
        if storage is not None:
            storage.put(written_through(storage.node, self.steps, node))
            self.seen = storage.version

    # -- writing ------------------------------------------------------------------------------

    def share(self) -> Storage:
        """The storage of this tensor, made on first use."""
        if self.storage is None:
            self.storage = Storage(self._node)
        return self.storage

    def settle(self) -> None:
        """A leaf or constant whose memory nobody else looks at any more is a view no longer."""
        if not self.steps or getrefcount(self.storage) > 2:
            return
        node = self.looked_at
        if (node.op is LEAF or not node.requires_grad) and not overlaps(node):
            self.storage, self.steps, self.seen = None, NO_STEPS, 0

    def check_writable(self) -> None:
        """E405 for leaves (and views of leaves) that require grad while grad mode is on."""
        if not STATE.grad:
            return
        node = self.node
        whole = node if self.storage is None else self.storage.node
        if self.steps.cut:
            whole = self._history() or node
        if node.requires_grad and _leads(node):
            check_view(self, node)
            if base_of(self) is not None:
                raise fault("E405 view-leaf-requires-grad")
            raise fault("E405 leaf-requires-grad-cannot")
        if self.steps and whole.requires_grad and _leads(whole) and node.requires_grad:
            check_view(self, node)
            raise fault("E405 view-leaf-requires-grad")

    def write(
        self, node: Node, by: Node | None = None, source: Tensor | None = None, fills: bool = False
    ) -> None:
        """In-place change: this tensor, and all that share its memory, show `node` from now on.
        `by` is the op that did it (`x.mul_(y)`), which may still read the old value; `source` what
        was copied. `fills`: every element gets the same value, or is written where it is named."""
        self.check_writable()
        each = not fills or node.op.key in NAMED
        if each and not single(self.node):
            node = agreed(self.node, node)
        elif each and self.steps and not node.requires_grad and overlaps(self.looked_at):
            reads = by is not None and by.inputs[:1] == (self.node,)
            node = in_turn(self.looked_at, node, by if reads else None)
        if self.storage is not None or (by is not None and by.op.key in ONE_BY_ONE):
            check_apart(self, () if by is None else by.inputs, source, by)
        if self.steps:
            check_view(self, node)
        before = self.node
        self.overwrite(node, by)
        if STATE.written is not None:
            STATE.written(self, before)
        self.check_inference()  # PyTorch has written by then

    def check_inference(self) -> None:
        """E405 for a tensor of inference mode that is changed outside of it."""
        if STATE.inferred and not STATE.inference and self.inferred:
            raise fault("E405 inference-tensor-cannot-changed")

    def overwrite(self, node: Node, by: Node | None = None) -> None:
        """`write` without the check for leaves."""
        self.settle()
        old = self.node
        if STATE.batching or STATE.opened:
            _check_captured(old if self.storage is None else self.storage.node, node)
        node = cast(node, old.dtype)
        if node.shape != old.shape:
            node = F.expand(node, old.shape)
        version = self.version
        mark_overwritten(old, by, version)
        storage = self.storage
        if storage is not None:
            storage.note_write(tuple(self.steps), by, version)
        self.count_change()
        recorded = STATE.grad and (node.requires_grad or old.requires_grad)
        if self.steps:
            self._write_through(node)
            return
        if old.op is LEAF and old.requires_grad:
            node = renewed(old, node)
        elif not recorded and old.requires_grad:
            node = revalued(old, node)
        elif node is old or node.op is LEAF:
            node = F.alias(node)
        if recorded and storage is None and shows_another(old):
            node = F.alias(node)
            node.mark().name = "AsStridedBackward0"
        self._show(in_place_of(old, node))

    def _history(self) -> Node | None:
        """The node that a detached view has its own history from."""
        storage = self.storage
        own = storage and storage.apart.get(id(self.steps.until_cut().last))
        return own[1] if own else None

    def _write_through(self, node: Node) -> None:
        """Write to what this view looks at; through a detached view, and under no_grad, the
        history of the whole stays as it is."""
        storage = self.storage
        assert storage is not None
        whole = storage.node
        cut, steps = self.steps.cut, tuple(self.steps)
        own = None
        recorded = STATE.grad or STATE.dual  # `no_grad` stops no change of forward mode
        if cut and recorded and (node.requires_grad or self._history() is not None):
            part = storage.seen_through(steps[:cut])
            own = written_through(part, steps[cut:], node)
            if own.op is LEAF or own is self._node:
                own = F.alias(own)
        if not cut and STATE.grad:
            content = written_through(whole, steps, node, True)
            if shows_another(whole) or whole.grad_name == "AsStridedBackward0":
                content.mark().name = "AsStridedBackward0"
        else:
            moves = cut and STATE.dual  # as the whole did before, whatever is written
            with grad_mode(False):
                value = F.detach(node) if cut else without_history(node)
                content = written_through(F.detach(whole) if moves else whole, steps, value, True)
            if whole.requires_grad or moves:
                content = revalued(whole, content)
        storage.put(content)
        known = node.requires_grad and node.op.vjp_rule is not None
        storage.part = (node, steps) if known else None
        if own is not None:
            storage.set_apart(steps[cut - 1], own)

    @contextmanager
    def showing(self, value: np.ndarray) -> Iterator[None]:
        """While this runs the tensor has other values and the same history, for all who hold it."""
        before = self.node
        held = before, self.storage, self.steps, self.seen
        moved = revalued(before, constant(value))
        moved.strides = strides_of(before)
        self.storage, self.steps, self.seen = None, NO_STEPS, 0
        self._turn_to(moved)
        try:
            yield
        finally:
            self._turn_to(before)
            _, self.storage, self.steps, self.seen = held

    def become_view(self, view: Tensor, shared: bool) -> None:
        """`x.unsqueeze_(0)`: look at the same memory in the way of `view`, a view of this tensor.

        Memory that nobody shares becomes this tensor's own in its new shape.
        """
        old, node, looks = self._node, view._node, bool(self.steps)
        counter = self.counted()
        counter.count += 1
        self.storage = view.storage if shared else None
        self.steps = view.steps if shared else NO_STEPS
        self.seen = view.seen if shared else 0
        if old.requires_grad and (old.op is LEAF or not STATE.grad):
            node = revalued(old, without_history(node))
            if looks and old.op is not LEAF:
                node.mark().name = "AsStridedBackward0"
            if self.storage is not None:
                self.steps = self.steps.then((F.detach, (), -1))
                self.storage.set_apart(self.steps.last, node)
        if self.storage is not None:  # other views are made anew
            self.storage.version += 1
            self.seen = self.storage.version
        self._node = node
        node.handle = ref(self)

    def adopt(self, other: Tensor) -> None:
        """`x.data = y`: look at the memory of another tensor, with the history of this one."""
        old, node = self.looked_at, other.node
        data_mutation.note(old, self, memory=False)
        self.storage = storage = other.share()
        self.steps = other.steps.then((F.data_alias, (), -1))
        self.seen = storage.version
        storage.aliased = True
        node = F.data_alias(node)
        if old.requires_grad:
            node = revalued(old, node)
            storage.set_apart(self.steps.last, node)
        self._turn_to(node)

    def __repr__(self) -> str:
        return f"Tensor({self._node!r})"


class Array(Tensor):
    """A NumPy array of a program: a tensor whose results are arrays again."""

    __slots__ = ()


def as_array(tensor: Tensor, tag: str = "array") -> Array:
    """The same handle, as an array, or as a "number": a scalar of NumPy's."""
    tensor.__class__ = Array
    tensor.tag = tag
    assert isinstance(tensor, Array)
    return tensor


def made_in_inference(node: Node) -> bool:
    """Whether a node was made while inference mode was on."""
    return bisect(STATE.inferred, node.seq) % 2 == 1


def _leads(node: Node) -> bool:
    """Whether gradients end here: at a leaf, or a variable of a transform in reverse mode."""
    return node.op is LEAF or (node.op.key == "level" and node.args[1].reverse)


def _check_captured(old: Node, new: Node) -> None:
    """E203 when, inside vmap, one example's values would go into a tensor from outside, and for
    any change of such a tensor in a function that is differentiated."""
    if old.seq < STATE.opened:
        raise fault("E203 function-differentiated-cannot-change")
    if STATE.batching and not batched(old) and not known(new):
        raise fault("E203 inside-vmap-tensor-outside")


def grad_fn_name(node: Node) -> str:
    """PyTorch's name of the function that made a result."""
    return node.args[0].grad_name if node.op is OUTPUT else node.grad_name


def new_leaf(
    array: np.ndarray, requires_grad: bool = False, written_as_int: bool = False
) -> Tensor:
    """A tensor of given values; a leaf when it requires grad."""
    if not requires_grad:
        return Tensor(constant(array))
    accumulator = AccumulateGrad(written_as_int)
    return Tensor(leaf(array, accumulator), accumulator)
