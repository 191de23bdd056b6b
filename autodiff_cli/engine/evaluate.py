"""From graph to arrays: plan everything wanted together, run it in order, free what died.

`evaluate(targets)` is the only door; it leaves `node.value` set on the targets, on nodes that a
tensor handle still shows, and on what a later backward will read.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import AutodiffError
from ..graph import op as ops
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.state import LOCK, STATE
from ..graph.walk import SEQUENCE, bodies, walk
from ..ops.kernels.indices import computed_index_error
from . import blas
from .fused.groups import FUSE_FROM
from .memory import too_large
from .plan.structure import structure
from .scalars import all_scalars, run_scalars
from .threaded_kernels import is_cut

if TYPE_CHECKING:
    from .plan.schedule import Plan

MOVEMENT, SOURCE, CONTRACTION = Kind.MOVEMENT, Kind.SOURCE, Kind.CONTRACTION
FUSED = frozenset({Kind.POINTWISE, Kind.REDUCTION})


def evaluate(targets: list[Node], last: bool = False) -> None:
    """Compute `targets` and whatever they need, all in one pass; in the `last` one nothing is kept
    for a backward to come."""
    observer = STATE.observer
    if observer is not None and not observer.inside:
        observer.evaluate(targets, last)
        return
    order, outside = plan(targets)
    if not order:
        return
    elements = len(order)
    for node in order:
        if not node.shape:
            continue
        size = prod(node.shape)
        elements += size - 1
        if size >= FUSE_FROM:
            kind = node.op.kind
            if kind in FUSED or is_cut(node) or (kind is CONTRACTION and blas.MANAGED):
                break
    else:
        if observer is not None:
            observer.unplanned(order, targets)
        elif len(order) > MOST and all_scalars(order):
            _run_numbers(order, outside, set(targets), last)
            return
        elif last and 8 * elements <= FEW_BYTES <= STATE.max_bytes:
            run_few(order)
            return
        planned = not last and FEWEST <= len(order) <= MOST
        if not (planned and run_planned(order, targets, last, True)):
            run(order, targets, last)
        return
    if not run_planned(order, targets, last):
        if observer is not None:
            observer.unplanned(order, targets)
        run(order, targets, last)


def dependencies(node: Node) -> tuple[Node, ...]:
    """The nodes whose values make this node's value: a composite's body, else its inputs."""
    return node.inputs if node.body is None else bodies(node)


def ancestors(roots: list[Node]) -> list[Node]:
    """The roots and all that their values were made of, in the order of execution."""
    return sorted(walk(roots, dependencies), key=SEQUENCE)


def plan(targets: list[Node]) -> tuple[list[Node], list[Node]]:
    """Unevaluated nodes that the targets need, in an order in which they can run, and the nodes
    with values that those read."""
    order = [node for node in dict.fromkeys(targets) if node.value is None]
    seen = set(order)
    outside: list[Node] = []
    for node in order:  # it grows
        for needed in node.inputs if node.body is None else dependencies(node):
            if needed not in seen:
                seen.add(needed)
                (order if needed.value is None else outside).append(needed)
    order.sort(key=SEQUENCE)
    return order, outside


def _readings(order: list[Node], targets: list[Node]) -> dict[Node, int]:
    """How often each value will be read; being a target is a reading that never happens."""
    uses = dict.fromkeys(targets, 1)
    for node in order:
        for needed in node.inputs if node.body is None else dependencies(node):
            uses[needed] = uses.get(needed, 0) + 1
    return uses


def run(order: list[Node], targets: list[Node], last: bool) -> None:
    """Run nodes in order; each value goes when it was read for the last time and nobody else will
    ask for it. Arrays that went take `room` until it is looked which there are."""
    held, room = 0, STATE.max_bytes
    owners: dict[int, int] = {}
    uses = _readings(order, targets)
    unread = _unread(order, targets, last)
    make = compute if STATE.observer is None else STATE.observer.compute
    with np.errstate(all="ignore"):
        for node in order:
            if node.shape and node.op.kind is not MOVEMENT:
                size = prod(node.shape) * node.dtype.itemsize
                if size > room:
                    owners, room = _in_memory(order)
                if size > room:
                    raise too_large(node.span)
            try:
                value = make(node)
            except (AutodiffError, IndexError) as error:
                raise _of_node(error, node) from None
            except MemoryError:
                raise too_large(node.span) from None
            node.value = value
            if node.shape:
                held += value.nbytes
                owner = _owner(value)
                more = owner.nbytes - owners.get(id(owner), 0)
                if more > 0:
                    owners[id(owner)] = owner.nbytes
                    room -= more
                if room < 0:
                    owners, room = _in_memory(order)
                if room < 0:
                    raise too_large(node.span)
            for needed in node.inputs if node.body is None else dependencies(node):
                left = uses[needed] - 1
                if left:
                    uses[needed] = left
                elif (
                    last or not needed.requires_grad or needed in unread or is_freed(needed)
                ) and _is_dead(needed):
                    if needed.shape:
                        held -= needed.value.nbytes
                    _drop(needed)
    STATE.made += held


def _in_memory(nodes: list[Node]) -> tuple[dict[int, int], int]:
    """The bytes of each array whose values, or views of them, nodes have, and what is left."""
    owners = [_owner(node.value) for node in nodes if type(node.value) is np.ndarray]
    found = {id(owner): owner.nbytes for owner in owners}
    return found, STATE.max_bytes - sum(found.values())


def _owner(value: Any) -> Any:
    """The array whose memory a view shows."""
    while hasattr(getattr(value, "base", None), "base"):
        value = value.base
    return value


def run_few(order: list[Node]) -> None:
    """Run few small nodes: their values may stay as long as the nodes, and nobody counts."""
    with nullcontext() if STATE.runs else np.errstate(all="ignore"):  # `own_state` has set it
        for node in order:
            node.value = _placed(node)


def _placed(node: Node) -> Any:
    """The value of a node; errors have its place."""
    try:
        return compute(node)
    except (AutodiffError, IndexError) as error:
        raise _of_node(error, node) from None


def _of_node(error: AutodiffError | IndexError, node: Node) -> AutodiffError:
    """The error with the place of the node; E305 for an index that was not known before."""
    found = computed_index_error(error) if isinstance(error, IndexError) else error
    if found.span is None:
        found.amend(span=node.span)
    return found


def _run_numbers(order: list[Node], outside: list[Node], asked: set[Node], last: bool) -> None:
    """Run nodes that are single numbers all."""
    run_scalars(order, _placed, asked, last, _stays)
    _let_go(outside, asked, last)


PLANS: dict[Any, Plan] = {}
MOST_PLANS = 64
SEEN: dict[int, None] = {}  # hashes of structures that came by once
MOST_SEEN = 256
FEWEST, MOST = 4, 4096  # nodes of small tensors for which a plan may be kept
FEW_BYTES = 1 << 24  # that the values of a last evaluation may take together if nobody counts


def run_planned(order: list[Node], targets: list[Node], last: bool, small: bool = False) -> bool:
    """Whether nodes ran by a plan, which holds for every order of the same structure. It is made
    when it is not there, for `small` tensors when a structure comes by again. Where a plan fails
    the nodes run one by one: the error's place is that of a node, a plan serves many graphs."""
    try:
        found = _structured(order, targets, last)
        if found is None:
            return False
        made = PLANS.get(found.key)
        if made is None and small and (mark := hash(found.key)) not in SEEN:
            _keep(SEEN, mark, None, MOST_SEEN)
            return False
        if made is None:
            from .plan.schedule import planned  # small programs need no plan

            made = planned(found.order, found.outside, found.wanted)
            _keep(PLANS, found.key, made, MOST_PLANS)
        found.run(made)
    except (AutodiffError, IndexError):
        return False
    return True


def _keep(kept: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    """Keep a value for all threads, in place of the oldest where there are too many."""
    with LOCK:
        if len(kept) >= most:
            del kept[next(iter(kept))]
        kept[key] = value


class _Structured(NamedTuple):
    """Nodes to run, those they read, and the structure they have."""

    key: Any
    order: list[Node]
    outside: list[Node]
    wanted: list[Node]
    asked: set[Node]
    last: bool

    def run(self, plan_: Plan) -> None:
        """Set the values that somebody may ask for, and let go of those that nobody will."""
        plan_.check(STATE.max_bytes)
        values = plan_.run([node.value for node in self.outside])
        for node, value in zip(self.wanted, values, strict=True):
            node.value = value
            if node.shape:
                STATE.made += value.nbytes
        _let_go([*self.outside, *self.order], self.asked, self.last)


def _structured(order: list[Node], targets: list[Node], last: bool) -> _Structured | None:
    sources = [node for node in order if node.op.kind is SOURCE and not node.inputs]
    if sources:
        for node in sources:
            node.value = compute(node)
        order = [node for node in order if node.value is None]
    wanted = [node for node in dict.fromkeys(targets) if node.value is None]
    asked = set(targets)
    unread = _unread(order, targets, last)
    wanted += [n for n in order if n not in asked and n not in unread and _stays(n, last)]
    found = structure(order, wanted)
    if found is None:
        return None
    key, outside = found
    if STATE.observer is not None:
        key = STATE.observer.key(key, order)
    return _Structured(key, order, outside, wanted, asked, last)


def _let_go(nodes: list[Node], asked: set[Node], last: bool) -> None:
    """Free the values that nobody will ask for."""
    for node in nodes:
        if node not in asked and not _stays(node, last):
            _drop(node)


def _gone() -> None:
    """Stands where a node had a handle or has several results: what is computed once more, because
    something that no evaluation has asked for yet reads it, then stays. Else each step of a loop
    that keeps a value without asking for it would begin with the first step again, and each row
    that a loop takes from a matrix with all rows."""


def _drop(node: Node) -> None:
    """Let a value go that can be made again."""
    node.value = None
    if node.handle is not None or node.outputs is not None:
        node.handle = _gone


def _stays(node: Node, last: bool) -> bool:
    """Whether a value is kept once everything that was asked for is there."""
    if type(node.body) is tuple:
        return False
    if not _is_dead(node):
        return True
    return not last and node.requires_grad and not is_freed(node)


LARGE = 1 << 14  # bytes of a value; below, to ask who reads it costs more than to keep it


def _unread(order: list[Node], targets: list[Node], last: bool) -> set[Node]:
    """Large values which nobody shows and the rule of no node of `order` reads: they are let go,
    though they lead to what requires grad."""
    found: set[Node] = set()
    if not last:
        found.update(n for n in order if n.requires_grad and n.numel * n.dtype.itemsize >= LARGE)
        found.difference_update(targets)
    for node in order if found else ():
        if node.requires_grad and node.op.vjp_rule is not None and not is_freed(node):
            for place in ops.LATE.places_read(node):  # type: ignore[misc]  # bound with autograd
                found.discard(node if place < 0 else node.inputs[place])
    return {node for node in found if _is_dead(node)}


def is_freed(node: Node) -> bool:
    """Whether a backward has used up the graph here: no other will read the value."""
    return node.marks is not None and node.marks.freed is not None


def _is_dead(node: Node) -> bool:
    """Whether a value can be made again and no handle shows it."""
    shown = None if node.handle is None else node.handle()
    if node.handle is _gone or (shown is not None and shown._node is node):  # or it shows another
        return False
    op = node.op
    return op.kind is not SOURCE or op is ops.OUTPUT


def compute(node: Node) -> Any:
    """The value of one node whose dependencies have values."""
    body = node.body
    if body is not None:
        return tuple([part.value for part in body]) if type(body) is tuple else body.value
    op = node.op
    args = node.args
    if node.inputs is args:
        if len(args) == 2:
            x, y = args
            value = op.kernel(x.value, y.value)  # type: ignore[misc]  # every such kind has one
        else:
            value = op.kernel(*[x.value for x in args])  # type: ignore[misc]  # as above
    elif op is ops.OUTPUT:
        return args[0].value[args[1]]
    elif op is ops.LEAF:
        return node.inputs[0].value
    else:
        value = op.kernel(*[_argument(arg) for arg in args])  # type: ignore[misc]  # as above
    if node.outputs is not None:
        return tuple([np.asarray(v) if isinstance(v, np.generic) else v for v in value])
    return np.asarray(value) if isinstance(value, np.generic) else value


def _argument(arg: Any) -> Any:
    kind = type(arg)
    if kind is Node:
        return arg.value
    if kind is tuple:
        for v in arg:
            if type(v) is Node:
                return tuple([v.value if type(v) is Node else v for v in arg])
    return arg


def release(nodes: list[Node], since: int) -> None:
    """Let go of the history behind evaluated nodes that no gradient needs; nodes older than
    `since` were looked at before."""

    def below(node: Node) -> tuple[Node, ...]:
        if node.seq < since:
            return ()
        if node.value is None or (node.requires_grad and node.op is not ops.LEAF):
            return dependencies(node)
        if node.op is ops.LEAF:
            node.args = (node.args[0], None)
        elif node.op is not ops.CONSTANT and node.outputs is None and node.op is not ops.OUTPUT:
            node.op = ops.CONSTANT
            node.args = ()
        else:
            return ()
        node.inputs = ()
        node.body = None
        return ()

    for _ in walk(nodes, below):
        pass


ops.LATE.evaluate = evaluate
