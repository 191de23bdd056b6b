"""A graph of nodes as sums of products.

What an op is in index form is said here for those that are products, sums over axes, movements of
axes, comparisons and inverses; a function of one element is an atom, whatever its name; a composite
is what its body is. Names end the reading; `opened` reads on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from math import log
from typing import Any

import numpy as np

from ..graph.kinds import Kind
from ..graph.node import Node, Shape
from ..graph.op import CONSTANT, LEAF, constant, value_of
from ..graph.walk import bottom_up
from .algebra import Algebra
from .atoms.axes import AXES, Grouped, joined, total
from .atoms.losses import LOSSES, none_ignored
from .atoms.masks import count as picked_count
from .atoms.masks import lifted, lowered
from .atoms.matrices import MATRICES
from .atoms.places import PLACES, counts, result_of, rows_by
from .atoms.pools import POOLS
from .atoms.windows import WINDOWS
from .shorter import opened, softened
from .terms import OPERAND, At, Label, NoFormula, Sum, function, is_summed, number_of
from .writing.expression import (
    NO_MASKS,
    Masks,
    exact,
    is_logdet,
    listed,
    mask_of,
    numbered,
    ranked,
    written,
)

MOST_NODES = 400
LONE = ("logsumexp", "kthvalue")  # what is of one axis even where there is no other
HOLDS = {x: getattr(operator, x) for x in ("gt", "ge", "lt", "le", "eq", "ne")}  # of numbers


class Reader:
    """Reads nodes, each once. `names`: what ends the reading; `masks`: of the places where a mask
    is true, the mask; `called`: what cannot be read is the call that it is."""

    def __init__(
        self, algebra: Algebra, names: Mapping[Node, str], masks: Masks = NO_MASKS,
        called: bool = False,
    ):  # fmt: skip
        self.algebra = algebra
        self.names = names
        self.masks = masks
        self.called = called
        self.known: dict[Node, Sum | Grouped] = {}
        self.several: set[Node] = set()  # what has several results, which are calls each

    def read(self, node: Node) -> Sum:
        """The sum that a node is; NoFormula where it is none."""
        for top in bottom_up(node, self._below, self.known):
            if len(self.known) > MOST_NODES:
                raise NoFormula
            try:
                self.known[top] = self._made(top)
            except NoFormula:
                if not self.called:
                    raise
                if top.outputs is not None:
                    self.several.add(top)
                self.known[top] = self._call(top)
        return self.of(node)

    def _call(self, node: Node) -> Sum:
        """The call that a node is, of sums."""
        source = node.args[0] if node.op.key == "output" else node
        parts = tuple(map(self.read, source.inputs))
        return self.algebra.of_atom(self.algebra.atom("call", node, parts, node.shape))

    def read_opened(self, node: Node) -> Sum:
        """The sum that a node is of its operands, even when it has a name."""
        for inner in node.inputs:
            self.read(inner)
        self.known[node] = self._made(node)
        return self.of(node)

    def _below(self, node: Node) -> tuple[Node, ...]:
        if node in self.names or node.op is CONSTANT or node.op.key == "isnan":
            return ()
        if is_logdet(node):
            return (node.args[2],)
        rank = ranked(node)
        result = rank[0] if rank is not None else result_of(node)
        if result is not None:
            return (result,)
        if node.op.key == "index":
            mask = mask_of(node.args[1], self.masks)
            if mask is not None:
                return mask, node.args[0]
            places = zip(node.args[1], node.args[0].shape, strict=False)
            whole = [n for n, size in places if n is not None and counts(n, size)]
            return tuple(n for n in node.inputs[::-1] if n not in whole)
        body = self._body(node)
        return node.inputs[::-1] if body is None else (body,)  # the first is read first

    def _body(self, node: Node) -> Node | None:
        """What a composite stands for; None of what is read as it is."""
        if node.op.key in READERS or not isinstance(node.body, Node):
            return None
        return None if is_function(node) else node.body

    def _made(self, node: Node) -> Sum | Grouped:
        name = self.names.get(node)
        if name is not None:
            atom = self.algebra.atom("name", name, (), node.shape)
            if node.dtype.kind == "b":
                self.algebra.bools.add(atom)
            if node.ndim and READERS.get(node.op.key) is Reader.softmax:
                self.algebra.shares[atom] = node.args[1] % node.ndim
            return self.algebra.of_atom(atom)
        if node.op in (CONSTANT, LEAF):  # a leaf without a name
            flat = value_of(node).reshape(-1)
            if flat.size and (flat == flat[0]).all():
                return self.algebra.number(
                    exact(float(written(flat[0])), flat.itemsize < 8), node.shape
                )
            numbers = listed(value_of(node)) if node.op is CONSTANT else None
            if numbers is None:
                raise NoFormula(node)
            return self.algebra.of_atom(self.algebra.atom("array", numbers, (), node.shape))
        read = READERS.get(node.op.key)
        if read is not None:
            return read(self, node, *node.args)
        if is_function(node):
            return self._function(node)
        body = self._body(node)
        if body is not None:
            return self.known[body]
        raise NoFormula(node)

    def of(self, node: Node) -> Sum:
        found = self.known[node]
        if node in self.several:
            raise NoFormula(node)
        return joined(self.algebra, found) if isinstance(found, Grouped) else found

    def _function(self, node: Node) -> Sum:
        """A function of elements. Static arguments are a part of its name."""
        statics = tuple(OPERAND if isinstance(a, Node) else a for a in node.args)
        parts = tuple(self.algebra.stretched(self.of(n), node.shape) for n in node.inputs)
        numbers = [number_of(part) for part in parts]
        if node.op.key in ("floor", "ceil", "round") and None not in numbers:
            (operand,) = map(constant, map(np.asarray, numbers))
            whole = node.op.apply([operand if a is OPERAND else a for a in statics])
            return self.algebra.number(float(value_of(whole)), node.shape)
        if node.op.key == "log":
            found = self._logarithm(parts[0])
            if found is not None:
                return found
        return self.algebra.applied("function", (node.op, statics), parts, node.shape)

    def _logarithm(self, inner: Sum) -> Sum | None:
        """`log(sum(exp(u)))` as a logsumexp."""
        algebra = self.algebra
        one = algebra.alone(inner)
        if one is None or one[2] <= 0:
            return None
        factor, atom, number = one
        if atom.kind == "softmax" and inner == algebra.of_atom(factor.atom):
            return self._less_logsumexp(atom.parts[0], atom.data)
        if atom.kind == "group" and len(atom.parts[0].terms) == 1 and factor.at == ():
            return self._logarithm(algebra.scaled(atom.parts[0], number))
        summed = [axis for axis, label in enumerate(factor.at) if is_summed(label)]
        kept = tuple(x for x in factor.at if not is_summed(x))
        whole = len(summed) == 1 and kept == tuple(range(len(inner.shape)))
        if not whole or atom.function != "exp" or factor.power != 1:
            return None
        found = algebra.of_atom(algebra.atom("logsumexp", summed[0], atom.parts, inner.shape))
        return algebra.added(found, algebra.number(log(number), inner.shape))

    # -- what ops are -----------------------------------------------------------------------------

    def same(self, node: Node, *args: Any) -> Sum:
        return self.algebra.stretched(self.of(node.inputs[0]), node.shape)

    def added(self, node: Node, left: Node, right: Node, *args: Any, sign: float = 1.0) -> Sum:
        return self._plus(self.of(left), self.algebra.scaled(self.of(right), sign), node.shape)

    def _plus(self, left: Sum, right: Sum, shape: Shape) -> Sum:
        return self.algebra.added(*(self.algebra.stretched(x, shape) for x in (left, right)))

    def neg(self, node: Node, inner: Node) -> Sum:
        return self.algebra.scaled(self.of(inner), -1.0)

    def mul(self, node: Node, left: Node, right: Node) -> Sum:
        return self.algebra.multiplied(self.of(left), self.of(right), node.shape)

    def div(self, node: Node, left: Node, right: Node, *args: Any) -> Sum:
        below = self.raised(self.of(right), -1.0)
        found = self.algebra.multiplied(self.of(left), below, node.shape)
        terms = [(v, softened(self.algebra, p) or p) for p, v in found.terms]
        return self.algebra.made(terms, node.shape)

    def to_power(self, node: Node, inner: Node, power: float) -> Sum:
        return self.raised(self.of(inner), power)

    def pow(self, node: Node, base: Node, exponent: Node) -> Sum:
        power = number_of(self.of(exponent))
        if power is None:
            return self._function(node)
        return self.algebra.stretched(self.raised(self.of(base), power), node.shape)

    def raised(self, sum_: Sum, power: float) -> Sum:
        """A power; 1 / (1 + exp(-u)) is a sigmoid."""
        if power < 0 and len(sum_.terms) == 2:
            (first, one), (second, other) = sum_.terms
            product = first or second
            if one == other and (not first or not second) and len(product) == 1:
                atom = self.algebra.atoms[product[0].atom]
                alone = self.algebra.scaled(self.algebra.of_atom(product[0].atom), one)
                if atom.function == "exp" and alone.terms == ((product, one),):
                    turned = self.algebra.scaled(atom.parts[0], -1.0)
                    found = function(self.algebra, "sigmoid", turned)
                    found = self.algebra.raised(found, -power)
                    return self.algebra.scaled(found, one**power)
        return self.algebra.raised(sum_, power)

    def standardized(
        self, node: Node, inner: Node, mean: Node, over: Node, weight: Any, bias: Any, dims: Any,
        shape: Shape, *args: Any,
    ) -> Sum:  # fmt: skip
        """`(x - mean) / deviation * weight + bias`."""
        algebra = self.algebra
        centred = self.added(node, inner, mean, sign=-1.0)
        found = algebra.multiplied(centred, self.of(over), node.shape)
        for parameter, act in ((weight, algebra.multiplied), (bias, self._plus)):
            if parameter is not None:
                sum_ = self.of(parameter)
                axes = [axis for axis, size in enumerate(shape) if size != 1]
                if len(axes) != len(sum_.shape):
                    raise NoFormula(node)
                found = act(found, algebra.moved(sum_, tuple(axes), shape), node.shape)
        return found

    def sum(self, node: Node, inner: Node, dims: Any = None, keepdim: bool = False, *_: Any) -> Sum:
        axes = _axes(dims, inner.ndim)
        if len(axes) == inner.ndim and not keepdim:
            return total(self, inner)
        return self.algebra.reduced(self.of(inner), axes, bool(keepdim))

    def mean(self, node: Node, inner: Node, dims: Any = None, keep: bool = False, *_: Any) -> Sum:
        total = self.sum(node, inner, dims, keep)
        count = self.count(self.known[inner], _axes(dims, inner.ndim))
        if count is not None:
            return self.algebra.multiplied(total, count, total.shape)
        return self.algebra.scaled(total, max(node.numel, 1) / max(inner.numel, 1))

    def count(self, found: Sum | Grouped, axes: tuple[int, ...]) -> Sum | None:
        """One over the number of elements along axes of which a mask picks some."""
        number = picked_count(self.algebra, found, axes) if isinstance(found, Sum) else None
        return None if number is None else self.algebra.raised(number, -1.0)

    def summed_to(self, node: Node, inner: Node, *args: Any) -> Sum:
        extra = inner.ndim - node.ndim
        sizes = zip(inner.shape[extra:], node.shape, strict=True)
        ones = tuple(extra + i for i, (large, small) in enumerate(sizes) if large != small)
        kept = self.algebra.reduced(self.of(inner), ones, True)
        return self.algebra.reduced(kept, tuple(range(extra)))

    def diag_embed(self, node: Node, inner: Node, offset: int = 0, *args: Any) -> Sum:
        if offset or inner.ndim != 1:
            raise NoFormula(node)
        return self.algebra.einsum([(self.of(inner), (0,)), (self.identity(node), (0, 1))],
                                   node.shape)  # fmt: skip

    def identity(self, node: Node, *args: Any) -> Sum:
        if node.ndim != 2 or node.shape[0] != node.shape[1]:
            raise NoFormula(node)
        return self.algebra.of_atom(self.algebra.atom("delta", None, (), node.shape))

    def counted(self, node: Node, *args: Any) -> Sum:
        name = self.algebra.atom("name", numbered(*args), (), node.shape)
        return self.algebra.of_atom(name)

    def order(self, node: Node, inner: Node, dim: int, descending: bool, *_: Any) -> Sum:
        """The places of the elements when they are sorted."""
        last = dim == inner.ndim - 1
        marks: tuple[tuple[str, str], ...] = () if last else (("dim", str(dim)),)
        marks += (("descending", "True"),) if descending else ()
        return self.places("argsort", (), marks, inner)

    def places(
        self, name: str, ends: tuple[int, ...], keywords: tuple[tuple[str, str], ...], inner: Node
    ) -> Sum:
        """Numbers of places that a call gives."""
        data = name, ends, keywords
        atom = self.algebra.atom("order", data, (self.of(inner),), inner.shape)
        return self.algebra.of_atom(atom)

    def running(self, node: Node, inner: Node, dim: int, *_: Any) -> Sum:
        """What is made of all that is there so far along an axis."""
        if not inner.ndim or inner.shape[dim] == 1:
            return self.of(inner)
        atom = self.algebra.atom(node.op.key, dim % inner.ndim, (self.of(inner),), inner.shape)
        return self.algebra.of_atom(atom)

    def extreme_so_far(self, node: Node, inner: Node, dim: int) -> Sum:
        """The elements at the places of the largest or smallest so far."""
        if inner.ndim != 1 or inner.shape[0] == 1:
            raise NoFormula(node)
        numbers = self.places(node.op.key, (dim,), (), inner)
        return rows_by(self, numbers, self.of(inner))

    def chosen(self, node: Node, inner: Node, k: int, dim: int, keepdim: bool) -> Sum:
        return self.along(node, inner, dim, keepdim, kind="kthvalue", also=(k,))

    def select(self, node: Node, inner: Node, dim: int, index: int) -> Sum:
        at = (*range(dim), At(index % inner.shape[dim]), *range(dim, node.ndim))
        order: tuple[Label, ...] = tuple(
            None if size == 1 else x for x, size in zip(at, inner.shape, strict=True)
        )
        return self.algebra.moved(self.of(inner), order, node.shape)

    def filled(self, node: Node, *args: Any) -> Sum:
        (value,) = (a for a in args if isinstance(a, int | float))
        return self.algebra.number(float(value), node.shape)

    def compared(self, node: Node, left: Node, right: Node) -> Sum:
        if node.op.key == "ne" and not right.ndim and none_ignored(left, _number(right)):
            return self.algebra.number(1.0, node.shape)
        one, other = (self.algebra.stretched(self.of(x), node.shape) for x in (left, right))
        numbers = number_of(one), number_of(other)
        if None not in numbers:
            return self.algebra.number(float(HOLDS[node.op.key](*numbers)), node.shape)
        return self.gate(node.op.key, one, other)

    def gate(self, key: str, left: Sum, right: Sum) -> Sum:
        """1 where a comparison holds, 0 elsewhere."""
        one = self.algebra.alone(left)
        if key in ("gt", "le") and number_of(right) == 0 and one is not None:
            factor, atom, value = one
            if atom.function == "relu" and value > 0 and factor.power == 1:
                left = atom.parts[0]
        algebra = self.algebra
        apart = algebra.added(left, algebra.scaled(right, -1.0))
        apart, *both = (opened(algebra, x) or x for x in (apart, left, right))
        if 1 < len(apart.terms) < sum(len(x.terms) for x in both) - 1:  # much is on both sides
            left, right = (
                Sum(tuple((p, abs(v)) for p, v in apart.terms if (v > 0) is side), left.shape)
                for side in (True, False)
            )
        return self.algebra.applied("gate", key, (left, right), left.shape)

    def opposite(self, gate: Sum) -> Sum:
        """1 where a comparison does not hold."""
        small = self.algebra.unstretched(gate)
        one = self.algebra.alone(small)
        if one is not None and one[1].kind == "gate" and small == self.algebra.of_atom(one[0].atom):
            found = self.algebra.of_atom(self.algebra.opposite(one[0].atom))
            return self.algebra.stretched(found, gate.shape)
        picked = lifted(self.algebra, [gate])
        if picked is not None:
            return lowered(self.algebra, picked[0], self.opposite(picked[1][0]))
        return self.algebra.added(
            self.algebra.number(1.0, gate.shape), self.algebra.scaled(gate, -1.0)
        )

    def condition(self, node: Node, shape: Shape) -> Sum:
        """A gate, or a number."""
        return self.algebra.stretched(self.holds(self.of(node)), shape)

    def holds(self, sum_: Sum) -> Sum:
        algebra = self.algebra
        one = algebra.alone(sum_)
        gate = one is not None and one[1].kind == "gate" and sum_ == algebra.of_atom(one[0].atom)
        if gate or number_of(sum_) in (0, 1):
            return sum_
        picked = lifted(algebra, [sum_])
        if picked is not None:
            return lowered(algebra, picked[0], self.holds(picked[1][0]))
        small = algebra.unstretched(sum_)
        found = algebra.of_atom(algebra.atom("gate", "holds", (small,), small.shape))
        return algebra.stretched(found, sum_.shape)

    def joined(self, node: Node, left: Node, right: Node, *, key: str) -> Sum:
        """Two conditions as one."""
        if node.dtype.kind != "b" or any(x.dtype.kind != "b" for x in (left, right)):
            raise NoFormula(node)
        one, other = (self.condition(x, node.shape) for x in (left, right))
        for this, that in ((one, other), (other, one)):
            value = number_of(this)
            if value is not None:
                return that if bool(value) == (key == "and") else this
        return self.algebra.applied("gate", key, (one, other), node.shape)

    def negated(self, node: Node, inner: Node) -> Sum:
        if inner.dtype.kind != "b":
            raise NoFormula(node)
        return self.opposite(self.condition(inner, node.shape))

    def where(self, node: Node, condition: Node, yes: Node, no: Node) -> Sum:
        if is_logdet(node) or (self.called and _is_guard(condition, yes, no)):
            return self.of(no)
        sides = self.of(yes), self.of(no)
        classes = _classes(condition)
        if classes is not None and [*map(number_of, sides)] == [1, 0]:
            numbers = self.algebra.reduced(self.of(classes), (classes.ndim - 1,))
            return self.algebra.applied("one_hot", node.shape[-1], (numbers,), node.shape)
        return self._chosen(self.condition(condition, node.shape), *sides, node.shape)

    def _chosen(self, holds: Sum, yes: Sum, no: Sum, shape: Shape) -> Sum:
        """One where a condition holds, and another elsewhere."""
        return self.algebra.added(
            self.algebra.multiplied(holds, yes, shape),
            self.algebra.multiplied(self.opposite(holds), no, shape),
        )

    def larger(self, node: Node, left: Node, right: Node, key: str = "gt") -> Sum:
        one, other = (self.algebra.stretched(self.of(x), node.shape) for x in (left, right))
        return self._chosen(self.gate(key, one, other), one, other, node.shape)

    def clamp(self, node: Node, inner: Node, low: Any = None, high: Any = None) -> Sum:
        """Between bounds what it was, and a bound outside."""
        algebra, shape = self.algebra, node.shape
        bounds = [x for x in (low, high) if isinstance(x, Node) and not x.requires_grad]
        if len(bounds) == 2:
            return self._function(node)
        own = algebra.stretched(self.of(inner), shape)
        found = own
        for bound, key in ((low, "ge"), (high, "le")):
            if bound is None:
                continue
            edge = self.of(bound) if isinstance(bound, Node) else algebra.number(bound)
            edge = algebra.stretched(edge, shape)
            found = self._chosen(self.gate(key, own, edge), found, edge, shape)
        return found

    def lerp(self, node: Node, start: Node, end: Node, weight: Node) -> Sum:
        algebra, shape = self.algebra, node.shape
        first = algebra.stretched(self.of(start), shape)
        step = algebra.added(algebra.stretched(self.of(end), shape), algebra.scaled(first, -1.0))
        return algebra.added(first, algebra.multiplied(self.of(weight), step, shape))

    def one_hot(self, numbers: Node, size: int) -> Sum:
        """A row for each number: a one at that place."""
        shape = (*numbers.shape, size)
        if counts(numbers, size):
            return self.algebra.of_atom(self.algebra.atom("delta", None, (), shape))
        return self.algebra.applied("one_hot", size, (self.of(numbers),), shape)

    def masked_fill(self, node: Node, inner: Node, mask: Node, value: Any) -> Sum:
        algebra = self.algebra
        filling = self.of(value) if isinstance(value, Node) else algebra.number(float(value))
        parts = tuple(algebra.stretched(x, node.shape) for x in (self.of(inner), self.of(mask)))
        parts += (algebra.stretched(filling, node.shape),)
        return algebra.of_atom(algebra.atom("masked", None, parts, node.shape))

    def softmax(self, node: Node, inner: Node, dim: int, *args: Any) -> Sum:
        if not inner.ndim or inner.shape[dim] == 1:
            return self.algebra.number(1.0, inner.shape)
        axis = dim % inner.ndim
        return self.algebra.applied("softmax", axis, (self.of(inner),), inner.shape, axis)

    def along(
        self, node: Node, inner: Node, dims: Any = None, keepdim: bool = False, *_: Any, kind: str,
        also: tuple[int, ...] = (),
    ) -> Sum:  # fmt: skip
        """What an axis, or all of them, becomes one element of."""
        if not inner.ndim:
            return self.of(inner)
        axes = _axes(dims, inner.ndim)
        if all(inner.shape[axis] == 1 for axis in axes):
            return self.algebra.reduced(self.of(inner), axes, keepdim)
        several = 1 < len(axes) < inner.ndim
        if len(axes) != 1 and kind == "logsumexp":
            raise NoFormula(node)
        left = {axis: size for axis, size in enumerate(inner.shape) if axis not in axes}
        axis = axes[0] if inner.ndim > 1 == len(axes) or kind in LONE else None
        parts, shape = (self.of(inner),), tuple(left.values())
        if axis is None or also:
            data = (axes,) if several else (axis, *also) if also else axis
            found = self.algebra.of_atom(self.algebra.atom(kind, data, parts, shape))
        else:
            found = self.algebra.applied(kind, axis, parts, shape, axis)
        if not keepdim:
            return found
        order = tuple(None if size == 1 else axis for axis, size in left.items())
        shape = tuple(left.get(axis, 1) for axis in range(inner.ndim))
        return self.algebra.moved(found, order, shape)

    def log_softmax(self, node: Node, inner: Node, dim: int, *args: Any) -> Sum:
        if not inner.ndim or inner.shape[dim] == 1:
            return self.algebra.number(0.0, inner.shape)
        return self._less_logsumexp(self.of(inner), dim % inner.ndim)

    def _less_logsumexp(self, inner: Sum, axis: int) -> Sum:
        algebra, shape = self.algebra, inner.shape
        left = shape[:axis] + shape[axis + 1 :]
        total = algebra.applied("logsumexp", axis, (inner,), left, axis)
        labels = tuple(None if n == 1 else i for i, n in enumerate(shape))
        kept = algebra.moved(total, labels[:axis] + labels[axis + 1 :], shape)
        return algebra.added(inner, algebra.scaled(kept, -1.0))

    def detached(self, node: Node, inner: Node) -> Sum:
        if number_of(self.of(inner)) is not None:
            return self.of(inner)
        atom = self.algebra.atom("detached", None, (self.of(inner),), inner.shape)
        return self.algebra.of_atom(atom)


READERS: dict[str, Callable[..., Sum | Grouped]] = {
    **PLACES,
    **AXES,
    **MATRICES,
    **WINDOWS,
    **POOLS,
    **LOSSES,
    **dict.fromkeys(
        ["cast", "alias", "clone", "contiguous", "expand", "depends", "positive",
         "with_value", "dense_copy", "once"], Reader.same
    ),
    **dict.fromkeys(HOLDS, Reader.compared),
    **dict.fromkeys(["full", "zeros", "ones"], Reader.filled),
    **dict.fromkeys(["log_softmax", "log_softmax_node"], Reader.log_softmax),
    **dict.fromkeys(["softmax", "softmax_node", "safe_softmax"], Reader.softmax),
    "add": Reader.added, "sub": partial(Reader.added, sign=-1.0), "neg": Reader.neg,
    "mul": Reader.mul, "div": Reader.div, "pow": Reader.pow, "sum": Reader.sum,
    **{key: partial(Reader.to_power, power=power)
       for key, power in (("reciprocal", -1.0), ("sqrt", 0.5), ("rsqrt", -0.5))},
    "mean": Reader.mean, "summed_to": Reader.summed_to,
    "diag_embed": Reader.diag_embed, "identity_matrix": Reader.identity, "select": Reader.select,
    "clamp": Reader.clamp, "masked_written": Reader.masked_fill,
    "where": Reader.where, "number_range": Reader.counted,
    "argsort": Reader.order, "cumprod": Reader.running, "logcumsumexp": Reader.running,
    "cummax": Reader.extreme_so_far, "cummin": Reader.extreme_so_far, "kthvalue": Reader.chosen,
    **dict.fromkeys(["median", "median_dim"], partial(Reader.along, kind="median")),
    **{f"{kind}_{key}": partial(Reader.joined, key=key)
       for key in ("and", "or") for kind in ("logical", "bitwise")},
    "logical_not": Reader.negated, "bitwise_not": Reader.negated,
    "detach": Reader.detached, "maximum": Reader.larger,
    "minimum": partial(Reader.larger, key="lt"), "filled": Reader.filled,
    **{key: partial(Reader.along, kind=key) for key in ("amax", "amin", "logsumexp", "prod")},
    "max_dim": partial(Reader.along, kind="amax"), "min_dim": partial(Reader.along, kind="amin"),
    "isnan": lambda reader, node, inner: reader.algebra.number(0.0, node.shape),
    "lerp": Reader.lerp, "standardized": Reader.standardized,
}  # fmt: skip


def is_function(node: Node) -> bool:
    """Whether a node is a function of the elements of its operands, in the names of programs."""
    if node.op.kind is Kind.POINTWISE and node.op.vjp_rule is not None:
        return sum(isinstance(a, Node) for a in node.args) == len(node.inputs) > 0
    return node.op.name in SMOOTH and len(node.inputs) == 1 and node.shape == node.inputs[0].shape


SMOOTH = frozenset(
    ["nn.functional.softplus", "nn.functional.gelu", "nn.functional.silu", "nn.functional.elu",
     "nn.functional.logsigmoid", "nn.functional.leaky_relu", "relu", "nn.functional.relu"]
)  # fmt: skip


def _is_guard(condition: Node, yes: Node, no: Node) -> bool:
    """Whether something is a quotient but for 0 where it is divided by 0."""
    if condition.op.key != "eq" or no.op.key != "div":
        return False
    below, zero = condition.inputs
    return below is no.inputs[1] and not any(x.ndim or _number(x) for x in (yes, zero))


def _classes(condition: Node) -> Node | None:
    """The numbers, one in each row, that are looked for among all classes."""
    if condition.op.key != "eq":
        return None
    numbers, classes = condition.inputs
    if numbers.shape[-1:] != (1,) or numbers.dtype.kind != "i":
        return None
    found = classes.op is CONSTANT and np.array_equal(value_of(classes), np.arange(classes.numel))
    return numbers if found and classes.shape == condition.shape[-1:] else None


def _number(node: Node) -> float | None:
    """The number that is written; None where it is a result."""
    return None if node.inputs else value_of(node).item()


def _axes(dims: Any, ndim: int) -> tuple[int, ...]:
    if dims is None:
        return tuple(range(ndim))
    found = dims if isinstance(dims, tuple | list) else (dims,)
    return tuple(d % ndim for d in found) if found else tuple(range(ndim))
