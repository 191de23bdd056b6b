"""A graph whose numbers do not overflow where its result does not: logarithms of sums of
exponentials, quotients of exponentials, roots of sums of squares and small differences, in the
functions that libraries have for them.

Invariant: the result is equal wherever both are finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import log, prod
from typing import Any

from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import CAST, CONSTANT, LEAF, OUTPUT, Op, cast, number, output, value_of
from ..graph.registry import F
from ..graph.state import grad_mode
from ..graph.walk import bottom_up, walk
from .simplify import static_key

SOFTMAX = ("softmax", "softmax_node", "functional_softmax")
QUOTIENTS = ("div", "number_quotient", "reciprocal")
MOVES = (
    "select", "slice", "view", "reshape", "unsafe_view", "permute", "transpose", "t", "unsqueeze",
    "squeeze", "squeeze_dims", "expand", "index", "gather", "index_select", "flip", "diagonal",
    "summed_to",
)  # fmt: skip


class Stable:
    """The nodes that stand for others; those of `ends` stay what they are."""

    def __init__(self, ends: Iterable[Node]):
        self.known: dict[Node, Node] = {node: node for node in ends}
        self.equal: dict[Any, Node] = {}
        self.first: dict[Node, Node] = {}
        self.logarithms: dict[Node, Node | None] = {}

    def of(self, node: Node) -> Node:
        """What is computed in place of a node."""
        for inner in bottom_up(node, lambda n: n.inputs, self.known):
            self.known[inner] = self._made(inner)
        return self.known[node]

    def _made(self, node: Node) -> Node:
        rule = RULES.get(node.op.key)
        kept = all(self.known[part] is part for part in node.inputs)
        if node.op is LEAF or (rule is None and kept):  # what a leaf was made of is cut off
            return node
        with grad_mode(node.requires_grad):
            found: Any
            args = [_mapped(value, self.known) for value in node.args]
            found = None if rule is None else rule(self, *args)
            if found is None or found.shape != node.shape:
                if kept:
                    return node
                kinds: dict[Op, Callable[..., Node]] = {OUTPUT: output, CAST: cast}
                found = kinds[node.op](*args) if node.op in kinds else node.op.apply(args)
            if found.outputs is None:
                found = cast(found, node.dtype)
        return found

    def log(self, node: Node) -> Node | None:
        """The logarithm of what is positive, without it; None of anything else."""
        if node not in self.logarithms:
            self.logarithms[node] = _logarithm(self, node)
        return self.logarithms[node]

    def same(self, one: Node, other: Node) -> bool:
        """Whether two nodes are one application."""
        return self._first(one) is self._first(other)

    def squared(self, node: Node) -> Node | None:
        """What a node is the square of."""
        if len(node.inputs) != 2:
            return None
        one, other = node.inputs
        twice = node.op.key == "mul" and self.same(one, other)
        return one if twice or (node.op.key == "pow" and _value(other) == 2) else None

    def _first(self, node: Node) -> Node:
        """Of equal nodes the one that was met first."""
        for inner in bottom_up(node, lambda n: n.inputs, self.first):
            key: Any = inner if (value := _value(inner)) is None else value
            if inner.op.kind not in (Kind.SOURCE, Kind.OPAQUE):
                key = inner.op, *(static_key(value, self.first.get) for value in inner.args)
            self.first[inner] = self.equal.setdefault(key, inner)
        return self.first[node]


def _mapped(value: Any, known: dict[Node, Node]) -> Any:
    if type(value) is tuple:
        return tuple(_mapped(part, known) for part in value)
    return known[value] if isinstance(value, Node) else value


# -- logarithms of what is positive ---------------------------------------------------------------


def _value(node: Node) -> float | None:
    """The number that a node is."""
    plain = node.op is CONSTANT and node.numel == 1 and node.dtype.kind in "fi"
    return float(value_of(node).reshape(-1)[0]) if plain else None


def _logarithm(stable: Stable, node: Node) -> Node | None:
    key, args = node.op.key, node.args
    value = _value(node)
    if value is not None:
        return number(log(value)) if value > 0 else None
    if key == "exp":
        return args[0]
    if key in SOFTMAX:
        return F.log_softmax(args[0], args[1])
    if key == "sigmoid":
        return F.logsigmoid(args[0])
    if key == "cosh":
        return F.logaddexp(args[0], -args[0]) - log(2)
    if key in ("sum", "mean"):
        inner = stable.log(args[0])
        return None if inner is None else _log_of_sum(inner, node)
    if key in MOVES:
        inner = stable.log(args[0])
        return None if inner is None else node.op.apply([inner, *args[1:]])
    if key == "sub" and _value(args[0]) == 1 and args[1].op.key == "sigmoid":
        return F.logsigmoid(-args[1].args[0])
    if key not in ("add", "mul", "sqrt", *QUOTIENTS):
        return None
    parts: list[Any] = [stable.log(part) for part in node.inputs]
    if None in parts:
        return None
    one, other = parts[0], parts[-1]
    if key == "add":
        return F.logaddexp(one, other)
    if key == "mul":
        return one + other
    if key == "sqrt":
        return one * 0.5
    return -one if key == "reciprocal" else _less(one, other)


def _less(one: Any, other: Any) -> Any:
    """`one - other`, in few words."""
    if _value(one) == 0:
        return other.args[0] if other.op.key == "neg" else -other
    return one - other


def _log_of_sum(inner: Node, node: Node) -> Node:
    """The logarithm of a sum or mean, given that of what it adds up."""
    dims, keepdim = node.args[1], bool(node.args[2])
    if not inner.ndim:
        return inner
    dims = dims if isinstance(dims, tuple) else (dims,)
    every = tuple(range(inner.ndim))
    dims = every if dims in ((), (None,)) else tuple(dim % inner.ndim for dim in dims)
    found = F.logsumexp(inner, dims, keepdim)
    count = prod(inner.shape[dim] for dim in dims)
    return found - log(count) if node.op.key == "mean" else found


# -- rules ----------------------------------------------------------------------------------------


def _log(stable: Stable, x: Node) -> Node | None:
    """`log(exp(u) / v)` as `u - log(v)`, `log(1 + u)` as `log1p(u)`."""
    if _value(x) is not None:
        return None
    found = stable.log(x)
    if found is not None:
        return found
    if x.op.key == "det":
        return F.logdet(x.args[0])
    if x.op.key in ("mul", *QUOTIENTS[:2]):
        logs = [stable.log(part) for part in x.inputs]
        if logs != [None, None]:
            one, other = (
                F.log(part) if known is None else known
                for part, known in zip(x.inputs, logs, strict=True)
            )
            return one + other if x.op.key == "mul" else _less(one, other)
    if x.op.key in ("add", "sub"):
        left, right = x.inputs
        if _value(left) == 1:
            return F.log1p(right if x.op.key == "add" else -right)
        if _value(right) == 1 and x.op.key == "add":
            return F.log1p(left)
    return None


def _div(stable: Stable, above: Node, below: Node, *rest: Any) -> Node | None:
    """Quotients of exponentials as `softmax`, `sigmoid`, `tanh` and `exp` of a difference."""
    if rest not in ((), (None,)) or below.op.key not in ("exp", "sum", "mean", "add", "cosh"):
        return None
    under = stable.log(below)
    if under is None:
        return None
    parts = below.inputs if below.op.key == "add" else ()
    for pair in (parts, parts[::-1]) if parts else ():
        if stable.same(above, pair[0]):
            return F.sigmoid(_less(*map(stable.log, pair)))
    if parts and above.op.key == "sub":
        one, other = above.inputs
        if stable.same(one, parts[0]) and stable.same(other, parts[1]):
            return F.tanh(F.sub(*map(stable.log, parts)) * 0.5)
    if above.op.key == "sinh" and below.op.key == "cosh":
        return F.tanh(above.args[0]) if stable.same(above.args[0], below.args[0]) else None
    over = None if _value(above) is not None else stable.log(above)
    if over is None:
        return None
    if below.op.key == "sum" and above.op.key == "exp" and stable.same(above, below.args[0]):
        dims = below.args[1]
        dims = dims if isinstance(dims, tuple) else (dims,)
        single = len(dims) == 1 and (dims[0] is not None or above.ndim == 1)
        if single and (below.args[2] or above.ndim == 1 or dims[0] == 0):
            return F.softmax(above.args[0], dims[0] or 0)
    return F.exp(over - under)


def _reciprocal(stable: Stable, below: Node) -> Node | None:
    """`1 / (1 + exp(-x))` as `sigmoid(x)`."""
    return _div(stable, number(1), below)


def _difference(stable: Stable, left: Node, right: Node) -> Node | None:
    """`exp(x) - 1` as `expm1(x)`."""
    return F.expm1(left.args[0]) if left.op.key == "exp" and _value(right) == 1 else None


def _sum(stable: Stable, left: Node, right: Node) -> Node | None:
    for one, other in ((left, right), (right, left)):
        if one.op.key == "exp" and _value(other) == -1:
            return F.expm1(one.args[0])
    return None


def _root(stable: Stable, x: Node) -> Node | None:
    """`sqrt(x**2 + y**2)` as `hypot(x, y)`."""
    if x.op.key != "add":
        return None
    one, other = (stable.squared(part) for part in x.inputs)
    return None if one is None or other is None else F.hypot(one, other)


def _power(stable: Stable, base: Node, exponent: Node) -> Node | None:
    return _root(stable, base) if _value(exponent) == 0.5 else None


RULES: dict[str, Callable[..., Node | None]] = {
    "log": _log, "div": _div, "number_quotient": _div, "reciprocal": _reciprocal,
    "sub": _difference, "add": _sum, "sqrt": _root, "pow": _power,
}  # fmt: skip


def overflows(node: Node) -> bool:
    """Whether something is divided by sums or products of exponentials."""
    below = [n.inputs[-1] for n in walk([node], lambda n: n.inputs) if n.op.key in QUOTIENTS]
    return any(n.op.key == "exp" for n in walk(below, lambda n: n.inputs))
