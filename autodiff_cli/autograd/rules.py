"""One rule at a time: what it gives for each operand of a node, and what it reads of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors import AutodiffError, fault
from ..graph.dtypes import is_float
from ..graph.node import Node, tick
from ..graph.op import (
    LATE,
    LEAF,
    OUTPUT,
    PLACEHOLDER,
    POINTWISE,
    Op,
    cast,
    number,
    results_of,
)
from ..graph.registry import F
from ..graph.shapes import fits
from ..graph.state import STATE, grad_mode
from ..graph.strides import contiguous_strides
from ..graph.walk import bodies, walk
from .overwritten import declared, freed, requires_grad, shown


def zeros_like(node: Node) -> Node:
    """A zero cotangent for a node."""
    zero = number(0.0, node.dtype)
    if not node.shape:
        return zero
    zeros = F.expand(zero, node.shape)
    zeros.strides = contiguous_strides(node.shape)  # of memory of its own, to who looks
    return zeros


def ones_like(node: Node) -> Node:
    """The seed of a scalar objective."""
    one = number(1.0, node.dtype)
    return F.expand(one, node.shape) if node.shape else one


class RuleError(AssertionError):
    """A backward rule is wrong: that is a defect of the table."""


def fitted(g: Node, x: Node, node: Node) -> Node:
    """A cotangent in the shape and dtype of an operand of `node`: broadcasting is undone for ops
    that broadcast (E308 when it was none: a source that is larger than its index), any other
    mismatch is a defect of a rule."""
    if g.shape != x.shape:
        op = node.op
        if op.kind is not POINTWISE and "broadcasts" not in op.properties:
            raise RuleError(f"vjp of {op.key}: cotangent {g.shape} for operand {x.shape}")
        if not fits(x.shape, g.shape):
            at = sum(is_float(other.dtype) for other in node.inputs[: node.inputs.index(x)])
            raise fault("E308 gradient-does-not-fit", node, g, x, at, span=node.span)
        g = F.summed_to(g, x.shape)
    return g if g.dtype == x.dtype else cast(g, x.dtype)


def ruled(node: Node, g: Any, args: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
    """Apply the vjp rule of a node; `g` is a dict or tuple where it has several results."""
    out: Any = node
    if node.outputs is not None:
        out = results_of(node)
        if type(g) is dict:
            g = of_results(node.op, out, g)
    found = node.op.vjp_rule(g, out, *(node.args if args is None else args))  # type: ignore[misc]  # only called with a rule
    return found if type(found) is tuple else (found,)


def of_results(op: Op, out: tuple[Node, ...], g: dict[int, Node]) -> tuple[Node | None, ...]:
    """The cotangents of all results: zeros for those that have none, unless the op takes None."""
    bare = not op.properties.isdisjoint(("own saving", "no zero cotangents"))
    return tuple(
        g[i] if i in g else None if bare or not is_float(o.dtype) else zeros_like(o)
        for i, o in enumerate(out)
    )


def slopes(
    op: Op, args: tuple[Any, ...], found: tuple[Any, ...]
) -> Iterator[tuple[Node, Node | None]]:
    """Each tensor among the arguments of an op, with what its rule gave for it."""
    for position, g in zip(op.tensor_params, found, strict=True):
        x = args[position]
        if type(x) is tuple:
            parts = (None,) * len(x) if g is None else g
            yield from (pair for pair in zip(x, parts, strict=True) if pair[0] is not None)
        elif x is not None:
            yield x, g


def parents(node: Node) -> tuple[Node, ...]:
    if node.body is not None and node.op.vjp_rule is None:
        return bodies(node)
    if node.op is LEAF:
        return ()
    return node.inputs


def history(node: Node) -> list[Node]:
    """The node and every node it depends on that requires grad."""
    seen = {node}
    found = [node]
    for current in found:
        for needed in parents(current):
            if needed.requires_grad and needed not in seen:
                seen.add(needed)
                found.append(needed)
    return found


def lives(node: Node, counts: Callable[[Any], bool] = lambda opened: bool(opened.running)) -> bool:
    """Whether a node depends on something that requires grad: a leaf of the program, or a variable
    of a transform that counts, of one whose function is running; not on their dual leaves, which
    have no accumulator."""
    return any(
        n.requires_grad
        and (
            n.op is PLACEHOLDER
            or (n.op is LEAF and n.args[0] is not None)
            or (n.op.key == "level" and counts(n.args[1]))
        )
        for n in walk([node], lambda n: parents(n) if n.requires_grad else ())
    )


def records(node: Node) -> bool:
    """Whether reverse mode follows a node, and not only forward mode."""
    if not node.requires_grad or not STATE.levels:
        return node.requires_grad
    return lives(node, lambda opened: opened.running and opened.reverse)


def reads(
    node: Node, found: tuple[Any, ...], since: int, wants: Callable[[Node], bool] = requires_grad
) -> list[Node]:
    """Inputs and results of `node` that its fresh cotangents, made after `since`, read: what
    PyTorch calls saved. Only those for arguments that are wanted count."""
    own = {*node.inputs, node}

    def saved(n: Node) -> bool:
        return n in own or (n.op is OUTPUT and n.args[0] is node)

    fresh = [g for x, g in slopes(node.op, node.args, found) if g is not None and wants(x)]
    made_of = walk(fresh, lambda n: () if n.seq <= since or saved(n) else n.inputs)
    return [n for n in made_of if saved(n)]


def check_dtypes(node: Node, given: tuple[Any, ...], found: tuple[Any, ...], since: int) -> None:
    """E307 when a slope that is wanted reads an operand that has another dtype since: no kernel of
    PyTorch takes both, but for elementwise ones."""
    other = {
        now: arg
        for now, arg in zip(given, node.args, strict=True)
        if type(arg) is Node and now.dtype != arg.dtype
    }
    wanted = [g for x, g in slopes(node.op, node.args, found) if g and x.requires_grad]
    for read in walk(wanted, lambda n: n.inputs if n.seq > since else ()) if other else ():
        if read in other:
            raise fault("E307 saved-has-other-dtype", shown(other[read]), other[read], read)


def check_freed(node: Node, g: Any) -> None:
    """E406 when the rule of a freed node reads what was saved."""
    own = {g} if type(g) is Node else {x for x in g if x is not None}
    if any(r not in own for r in [*_read_by_rule(node, g), *declared(node)]):
        raise freed(node)


def saved_by(node: Node) -> list[Node]:
    """The inputs and results that PyTorch saves of a node; E406 when they were freed."""
    return [*read_by(node), *declared(node)]


def read_by(node: Node) -> list[Node]:
    """The inputs and results that the gradient of a node needs; E406 when they were freed."""
    if node.marks is not None and node.marks.freed:
        raise freed(node)
    if node.outputs is None:
        return _read_by_rule(node, ones_like(node))
    results = enumerate(results_of(node))
    return _read_by_rule(node, {i: ones_like(r) for i, r in results if r.requires_grad})


def places_read(node: Node) -> tuple[int, ...]:
    """Which of its inputs the rule of a node reads, by their places, and -1 for its results: found
    once for all nodes of an op with such arguments whose inputs of these ranks need gradients."""
    inputs, args, op = node.inputs, node.args, node.op
    kinds = () if args is inputs else tuple([_kind(arg) for arg in args])
    key = kinds, tuple([(len(x.shape), x.requires_grad) for x in inputs])
    found = op.places_read.get(key)
    if found is None:
        read: Iterable[Node] = (*inputs, node)
        before, STATE.observer = STATE.observer, _Unevaluated
        try:
            bare = op is OUTPUT or "own saving" in op.properties
            read = () if bare else read_by(node)
        except (AutodiffError, NotImplementedError):
            pass  # whatever it reads
        finally:
            STATE.observer = before
        places = {inputs.index(x) if x in inputs else -1 for x in read}
        found = op.places_read[key] = tuple(places)
    return found


class _Unevaluated:
    """While this observes, a rule that needs a value of its node fails."""

    inside = False

    @staticmethod
    def evaluate(targets: list[Node], last: bool) -> None:
        raise NotImplementedError

    @staticmethod
    def is_blocked(node: Node) -> bool:
        return True


def _kind(arg: Any) -> Any:
    """What an argument is, of which a rule may depend on more than numbers."""
    return arg if type(arg) in (bool, str) else type(arg)


def _read_by_rule(node: Node, g: Any) -> list[Node]:
    """Return the nodes that the rule of a node reads for this cotangent."""
    with grad_mode(False):
        since = tick()
        return reads(node, ruled(node, g), since)


LATE.places_read = places_read
