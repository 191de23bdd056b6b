"""A graph as an expression that can be printed: names, numbers, operators, calls.

Invariant: a tree is bounded, whatever the graph; what is left out is `...`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from math import copysign, isclose
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import numpy as np

from ...graph.node import Node, Shape
from ...graph.op import CONSTANT, value_of
from .windowed import BOTH, MADE, POOLED, Pooling, called_as, pooled_along, pooled_as

MAX_DEPTH = 12
MAX_PARTS = 200
MOST_LISTED = 16  # numbers that stand in a formula as a list

# key: (sign, priority); a higher one binds tighter
INFIX = {
    "add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2), "matmul": ("@", 2),
    "pow": ("**", 4), "gt": (">", 0), "ge": (">=", 0), "lt": ("<", 0), "le": ("<=", 0),
    "eq": ("==", 0), "ne": ("!=", 0), "bitwise_and": ("&", 0.5), "bitwise_or": ("|", 0.5),
}  # fmt: skip
NEGATION = 3
ATOM = 9


def priced(kind: Any, **own: Any) -> Any:
    """With room for what an expression costs, and what it is made of: both are asked again and
    again."""
    own = own or {"cost": None, "opened": None}
    own |= {"__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind,), own)


free = partial(priced, cost=0, opened=(0, ()), __slots__=())  # what costs nothing


@free
class Name(NamedTuple):
    """Something that has a name, or a text of the program. `shape` when it is known."""

    text: str
    shape: Shape | None = None


def written(number: np.generic) -> Any:
    """A number of an array as it was written: 0.1 in single precision is 0.1."""
    return float(str(number)) if isinstance(number, np.floating) else number.item()


def exact(value: float, narrow: bool = True) -> float:
    """The number that one stands for, of single precision where it is `narrow`: a short decimal, a
    fraction or the root of one."""
    if not narrow or not 8 < len(repr(abs(value))) < 13 or abs(value) > 16:
        return value
    for power, most in ((2, 16), (1, 100)):
        near = Fraction(value**power).limit_denominator(most)
        if isclose(near, value**power, rel_tol=2e-7):
            return float(copysign(near ** (1 / power), value))
    return value


def listed(numbers: np.ndarray) -> Listed | None:
    """Numbers as the list, or list of rows, that they are written as; None of many or of others."""
    if not 0 < numbers.size <= MOST_LISTED or numbers.ndim > 2 or not np.isfinite(numbers).all():
        return None
    rows = (tuple(map(Number, map(written, row))) for row in np.atleast_2d(numbers))
    found = tuple(map(Listed, rows))
    return Listed(found) if numbers.ndim == 2 else found[0]


PI = Name("pi")  # the number; a variable has a shape


@free
class Number(NamedTuple):
    value: Any


@priced
class Infix(NamedTuple):
    key: str
    left: Any
    right: Any


@priced
class Negative(NamedTuple):
    inner: Any


@priced
class Index(NamedTuple):
    """A place or places: a text, or expressions."""

    inner: Any
    at: int | str | tuple[Any, ...]


@priced
class Transposed(NamedTuple):
    inner: Any
    mark: str = ".T"  # else it is equal to a negative


@priced
class Listed(NamedTuple):
    """A list of expressions."""

    parts: tuple[Any, ...]


@priced
class Call(NamedTuple):
    """`function(arguments, keyword=text)`."""

    function: str
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, str], ...] = ()


@priced
class Left(NamedTuple):
    """What was left out."""


Expression = Name | Number | Infix | Negative | Index | Transposed | Listed | Call | Left
KINDS = frozenset(get_args(Expression))


# By the id of places where a mask is true: the mask, which dim they are of, and the places.
Masks = Mapping[int, tuple[Node, int, np.ndarray]]
NO_MASKS: Masks = MappingProxyType({})


def mask_of(places: tuple[Node | None, ...], masks: Masks) -> Node | None:
    """The mask that an index was made of; None where it was made of something else."""
    places = places[ahead(places) :]
    found = [masks.get(id(p.value)) for p in places if p is not None]
    known = [place for place in found if place is not None]
    if len(known) < len(places):
        return None
    mask = known[0][0]
    whole = [(other is mask, dim) for other, dim, _ in known]
    return mask if whole == [(True, dim) for dim in range(mask.ndim)] else None


def ahead(places: tuple[Any, ...]) -> int:
    """How many whole axes are in front of an index: one in `x[:, k]`."""
    return next((i for i, place in enumerate(places) if place is not None), 0)


def indexed(inner: Expression, axes: int, at: Expression) -> Index:
    """`inner[:, at]` with axes in front."""
    return Index(inner, (*[Name(":")] * axes, at))


class _Builder:
    def __init__(self, names: Mapping[Node, str], masks: Masks):
        self.names = names
        self.masks = masks
        self.parts = 0
        self.depth = 0

    def build(self, node: Node) -> Expression:
        name = self.names.get(node)
        if name is not None:
            return Name(name, node.shape)
        return self.opened(node)

    def opened(self, node: Node) -> Expression:
        """A node by its op, even when it has a name."""
        self.parts += 1
        if self.depth > MAX_DEPTH or self.parts > MAX_PARTS:
            return Left()
        self.depth += 1
        found = self._by_op(node)
        self.depth -= 1
        return found

    def _by_op(self, node: Node) -> Expression:
        if node.op is CONSTANT:
            value = node.value
            if value.size == 1:
                return Number(written(value.reshape(-1)[0]))
            return listed(value) or Name(f"constant{tuple(value.shape)}")
        key = node.op.key
        if is_logdet(node):
            return Call("logdet", (self.build(node.args[2].args[0].args[0]),))
        if seen_alike(node) or key in ("cast", "alias", "depends", "with_value", "once"):
            return self.build(node.inputs[0])
        if key in ("unsafe_view", "unshared_view", "reshape_alias"):
            size = Name(static_text(tuple(node.shape)))
            return Call("reshape", (self.build(node.inputs[0]), size))
        ones = node.ndim - node.inputs[0].ndim if key in ("view", "reshape") else 0
        if ones > 0 and node.inputs[0].ndim and node.shape == node.inputs[0].shape + (1,) * ones:
            at = ", ".join([":"] * node.inputs[0].ndim + ["None"] * ones)
            return Index(self.build(node.inputs[0]), at)
        if key in ("slice", "select"):
            return Index(self.build(node.inputs[0]), _place(node))
        mask = mask_of(node.args[1], self.masks) if key == "index" else None
        if mask is not None:
            where = self.build(mask)
            return indexed(self.build(node.args[0]), ahead(node.args[1]), where)
        if key == "index":
            whole = Name(":")
            places = [whole if p is None else self.build(p) for p in node.args[1]]
            return Index(self.build(node.args[0]), tuple(places))
        if key == "output" and node.args[1] == 0 and node.args[0].op.key in FIRST:
            return self._call(node.args[0])._replace(function=FIRST[node.args[0].op.key])
        if key == "output":
            return Index(self.build(node.args[0]), node.args[1])
        if key == "number_range":
            return Name(numbered(*node.args))
        if key == "filled" and node.args[1] in FILLED:
            return filled(FILLED[node.args[1]], node.shape)
        if key == "number_quotient":
            key = "div"
        if key in INFIX and len(node.inputs) == 2:
            left, right = node.inputs
            if key == "pow" and right.op is CONSTANT and not right.shape and right.value == 1:
                return self.build(left)
            return _without_sign(Infix(key, self.build(left), self.build(right)))
        if key == "neg":
            return Negative(self.build(node.inputs[0]))
        if key == "reciprocal":
            return Infix("div", Number(1), self.build(node.inputs[0]))
        if key == "expand":
            return self._expanded(node)
        if key == "summed_to":
            return self._summed(node)
        if key in (*MADE, "convolution"):
            parts = (self.build(inner) for inner in node.inputs)
            name, keywords = called_as(node)
            return Call(name, tuple(parts), keywords)
        if key in POOLED and (call := pooled_as(node)) is not None:
            found = pooled(self.build(node.inputs[0]), call)
            return Index(found, 1) if key == "max_window_indices" else found
        if transposes(node):
            return Transposed(self.build(node.inputs[0]))
        if key in ("embedded", "view_scatter", "copy_slices"):
            return self._placed(node)
        if not node.op.public and callable(node.op.counterpart):
            return self.build(node.op.counterpart(*node.args))
        if not node.op.public and node.op.counterpart is None and type(node.body) is Node:
            return self.build(node.body)
        return self._call(node)

    def _placed(self, node: Node) -> Expression:
        """What a view shows, among zeros or in what was there before: `select_scatter(...)`."""
        first, second, *rest = node.args
        if node.op.key == "embedded":
            step, value = rest[0], self.build(first)
            base: Expression = filled("zeros", node.shape)
        else:
            step, base = rest[0], self.build(first)
            value = self.build(second)
        op, places, *_ = step
        return Call(f"{op.name}_scatter", (base, value, *(Name(static_text(p)) for p in places)))

    def _expanded(self, node: Node) -> Expression:
        (source,) = node.inputs
        while source.op.key in ("view", "reshape", "unsqueeze") and source not in self.names:
            if source.inputs[0].numel != 1:
                break
            source = source.inputs[0]
        if source.numel != 1 or not node.shape:
            return self._call(node)
        inner = self.build(source)
        if isinstance(inner, Number) and inner.value in FILLED:
            return filled(FILLED[inner.value], node.shape)
        return Infix("mul", inner, filled("ones", node.shape))

    def _summed(self, node: Node) -> Expression:
        (source,) = node.inputs
        return sum_of(self.build(source), node.shape, source.shape)

    def _call(self, node: Node) -> Call:
        return call_of(node, lambda part: self.build(part))


def _without_sign(sum: Infix) -> Infix:
    """`1 - y * y` for `1 + -y * y`."""
    right = sum.right
    negative = isinstance(right, Infix) and isinstance(right.left, Negative)
    if sum.key == "add" and negative and right.key in ("mul", "div"):
        return Infix("sub", sum.left, right._replace(left=right.left.inner))
    return sum


FILLED = {0: "zeros", 1: "ones"}


def filled(function: str, shape: Shape) -> Call:
    """`zeros(2, 3)` or `ones(2, 3)`."""
    return Call(function, tuple(map(Number, shape)))


def numbered(start: Any, end: Any, step: Any, *_: Any) -> str:
    """Numbers in order, as the call that makes them."""
    ends = (start, end, step) if step != 1 else (start, end) if start else (end,)
    return f"arange({', '.join(map(str, ends))})"


def call_of(node: Node, shown: Callable[[Node], Expression]) -> Call:
    """A node as the call that made it, or that stands for it in PyTorch where no program can make
    it; `shown` tells what its operands look like."""
    arguments: list[Any] = []
    keywords: list[tuple[str, str]] = []
    own = None if node.op.public else node.op.counterpart
    if type(own) is tuple:
        given, named = own[1](*node.args)
        keywords += [(key, static_text(value)) for key, value in named.items()]
        arguments += [
            shown(value) if isinstance(value, Node) else Name(static_text(value)) for value in given
        ]
        return Call(own[0], tuple(arguments), tuple(keywords))
    pairs = list(zip(node.op.params, node.args, strict=False))
    operands = [at for at, (_, value) in enumerate(pairs) if _operands(value)]
    last = operands[-1] if operands else -1
    for at, (param, value) in enumerate(pairs):
        if isinstance(value, Node):
            arguments.append(shown(value))
        elif _operands(value):
            parts = (shown(v) if isinstance(v, Node) else Name(str(v)) for v in value)
            arguments.append(Listed(tuple(parts)))
        elif at in range(last):  # what stands before an operand is no keyword
            arguments.append(Name(static_text(value)))
        elif value != param.default and not (param.name == "dim" and value == ()):
            one = param.name == "dim" and isinstance(value, tuple) and len(value) == 1
            keywords.append((param.name, static_text(value[0] if one else value)))
    name = own.removeprefix("ops.aten.") if type(own) is str else node.op.name
    return Call(name, tuple(arguments), tuple(keywords))


def _operands(value: Any) -> bool:
    """Whether an argument is a node, or a tuple with nodes."""
    if isinstance(value, tuple):
        return any(isinstance(part, Node) for part in value)
    return isinstance(value, Node)


def sum_of(inner: Expression, small: Shape, large: Shape) -> Call:
    """The sum that undoes broadcasting, as the sum over dims that it is."""
    leading, ones = broadcast_dims(small, large)
    if leading and ones:
        return Call("sum_to_size", (inner, *(Number(size) for size in small)))
    dims = leading or ones
    if not small or not dims:
        return Call("sum", (inner,))
    keywords = [("dim", str(dims[0]) if len(dims) == 1 else str(dims))]
    if ones:
        keywords.append(("keepdim", "True"))
    return Call("sum", (inner,), tuple(keywords))


FIRST = {"inv_raw": "inv", "solve_raw": "solve", "cholesky_factor": "cholesky"}  # of two results


def _place(node: Node) -> str:
    """`:, 1:3`, what a slice or a place on an axis reads."""
    inner, dim, first, *rest = node.args
    ahead = ":, " * (dim % inner.ndim)
    if node.op.key == "select":
        return f"{ahead}{first}"
    last, step = rest
    ends = ["" if end is None or end == default else str(end)
            for end, default in ((first, 0), (last, inner.shape[dim % inner.ndim]))]  # fmt: skip
    return ahead + ":".join(ends) + (f":{step}" if step != 1 else "")


def single(node: Node) -> tuple[Node, Callable[[Expression], Expression]] | None:
    """What a call is of that a node is by way of others, and how it is written: a pool along one
    axis, the k-th element in order."""
    along, rank = pooled_along(node), ranked(node)
    if along is not None:
        return along[0], partial(pooled, call=along[1])
    if rank is None:
        return None
    inner, number, dim = rank[0], Number(rank[1]), Number(node.args[1])
    keywords = (("keepdim", "True"),)
    return inner, lambda shown: Index(Call("kthvalue", (shown, number, dim), keywords), 0)


def pooled(shown: Expression, call: Pooling) -> Expression:
    name, given, keywords = call
    made = Call(name, (shown, *(Name(static_text(value)) for value in given)), keywords)
    return Index(made, 0) if name in BOTH and "return_indices" not in dict(keywords) else made


def ranked(node: Node) -> tuple[Node, int] | None:
    """What an element of each of its rows is taken of, and which in their order from 1 on; None
    where it is not the same of all."""
    if node.op.key != "gather" or node.args[0].op.key != "output":
        return None
    (source, at), (_, dim, places, *_) = node.args[0].args, node.args
    if source.op.key != "sort" or at or source.args[2] or source.args[1] != dim:
        return None
    found = np.unique(value_of(places))
    one = len(found) == 1 and places.shape[dim] == 1
    return (source.args[0], int(found[0]) + 1) if one else None


def seen_alike(node: Node) -> bool:
    """Whether a node is a view of another one as it is."""
    if node.op.key == "permute":
        return bool(tuple(node.args[1]) == tuple(range(node.ndim)))
    views = node.op.key in ("expand", "view", "reshape")
    return views and node.shape == node.inputs[0].shape


def is_logdet(node: Node) -> bool:
    """Whether a node is the logarithm of a determinant: nan where that is negative."""
    if node.op.key != "where" or node.args[2].op.key != "output":
        return False
    return bool(node.args[2].args[0].op.key == "slogdet")


def transposes(node: Node) -> bool:
    """Whether a matrix is transposed, in whichever words."""
    if node.ndim != 2 or node.op.key not in ("t", "permute", "transpose"):
        return False
    if node.op.key == "permute":
        return tuple(node.args[1]) == (1, 0)
    return node.op.key == "t" or node.args[1] != node.args[2]


def broadcast_dims(small: Shape, large: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dims of `large` that broadcasting put in front, and those that it stretched from 1."""
    extra = len(large) - len(small)
    stretched = (extra + i for i, size in enumerate(small) if size == 1 != large[extra + i])
    return tuple(range(extra)), tuple(stretched)


def static_text(value: Any) -> str:
    """A static argument."""
    if isinstance(value, tuple):
        inner = ", ".join(static_text(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value)


def expression_of(
    node: Node, names: Mapping[Node, str], *, opened: bool = False, masks: Masks = NO_MASKS
) -> Expression:
    """The expression that a node stands for, in the names given; with `opened` the node itself is
    shown by its op even when it has a name."""
    builder = _Builder(names, masks)
    return builder.opened(node) if opened else builder.build(node)


# -- axes -----------------------------------------------------------------------------------------

MATRICES = ("outer", "eye", "inv", "inverse", "one_hot", "tril", "triu")
NUMBERS = ("det", "trace", "logdet", "dot")
REDUCTIONS = (
    "sum",
    "mean",
    "norm",
    "logsumexp",
    "amax",
    "amin",
    "prod",
    "max",
    "min",
    "std",
    "var",
)


COLUMN = (0, 1)  # of sizes that are not known


def axes_of(shown: Any) -> int | None:
    """How many axes an expression has; None where it does not tell."""
    match shown:
        case Name(_, shape):
            return len(shape) if shape is not None else 0 if shown == PI else None
        case Number():
            return 0
        case Negative(inner):
            return axes_of(inner)
        case Transposed():
            return 2
        case Listed(parts):
            inner = axes_of(parts[0]) if parts else None
            return None if inner is None else inner + 1
        case Infix("matmul", left, right):
            ahead, behind = axes_of(left), axes_of(right)
            if ahead is None or behind is None:
                return None
            return max(ahead, behind, 2) - (ahead == 1) - (behind == 1)  # of a batch as many
        case Infix(_, left, right):
            return _widest((left, right))
        case Index(inner, at):
            count = axes_of(inner)
            return count if count is None or not isinstance(at, str) else count + _added(at)
        case Call(function, arguments, keywords):
            return _axes_of_call(function, arguments, keywords)
    return None


def _added(at: str) -> int:
    """How many axes more an index leaves: `0` one less, `:, None` one more."""
    parts = [part.strip() for part in at.split(",")]
    return parts.count("None") - sum(part.lstrip("-").isdigit() for part in parts)


def _axes_of_call(function: str, arguments: Any, keywords: Any) -> int | None:
    if function in MATRICES:
        return 2
    if function in NUMBERS:
        return 0
    if function in ("ones", "zeros"):
        return len(arguments)
    inner = axes_of(arguments[0]) if arguments else None
    if function == "cat":
        return None if inner is None else inner - 1
    if function == "diag":
        return None if inner is None else 3 - inner
    if function == "einsum":
        return len(arguments[0].text.partition("->")[2]) - 1
    if function == "flatten" and inner is not None:
        ends = [part.value for part in arguments[1:]]
        return (ends[0] if ends else 0) + (inner - ends[1] if len(ends) > 1 else 1)
    if function in ("unflatten", "reshape"):
        more = arguments[-1].text.count(",") + 1
        return more if function == "reshape" else None if inner is None else inner + more - 1
    if function == "where":
        return _widest(arguments)
    if function == "solve":
        return axes_of(arguments[1])
    if function in REDUCTIONS and inner is not None:
        gone = len(reduced_axes(arguments, keywords))
        return 0 if not gone else inner - gone * (("keepdim", "True") not in keywords)
    return inner


def reduced_axes(
    arguments: tuple[Any, ...], keywords: tuple[tuple[str, str], ...]
) -> tuple[int, ...]:
    """The axes that a call makes one element of; none where they are all."""
    said = [*map(text, arguments[1:]), *(dims for key, dims in keywords if key == "dim")]
    return tuple(int(axis) for dims in said for axis in re.findall(r"-?\d+", dims))


def _widest(parts: Any) -> int | None:
    found = [axes_of(part) for part in parts]
    return None if None in found else max(count for count in found if count is not None)


def is_column(shown: Any) -> bool:
    """Whether a vector stands as a column, so that it is broadcast along rows."""
    match shown:
        case Index(_, ":, None"):
            return True
        case Call(function, (inner, *_) as arguments, keywords) if function in REDUCTIONS:
            kept = ("keepdim", "True") in keywords and axes_of(inner) in (2, None)
            return kept and reduced_axes(arguments, keywords) == (1,)
        case Name(_, shape):
            return shape == COLUMN
        case Call("ones", (_, Number(1))):
            return True
        case Infix("pow" | "div" | "mul" | "add" | "sub", left, right):
            sides = [side for side in (left, right) if axes_of(side) != 0]
            return bool(sides) and all(map(is_column, sides))
        case Negative(inner) | Call("sqrt" | "log" | "exp" | "clamp_min", (inner, *_), ()):
            return is_column(inner)
    return False


# -- text -----------------------------------------------------------------------------------------

_ATOMIC = re.compile(r"[\w.#']+(\([^()]*\)|\[[^\[\]]*\])*|\[([^\[\]]|\[[^\[\]]*\])*\]|\([^()]*\)")


def _argument(part: Any, spaced: bool) -> str:
    """What a function is given: of a list of floats the first is one."""
    shown = text(part, 0, spaced)
    first = part
    while isinstance(first, Listed) and first.parts:
        first = first.parts[0]
    if first is part or not isinstance(first, Number) or not isinstance(first.value, float):
        return shown
    return re.sub(r"^(\[+-?\d+)(?=[,\]])", r"\1.0", shown)


def text(expression: Any, priority: float = 0, spaced: bool = False) -> str:
    """The expression as program text: powers without spaces, all digits of numbers; `spaced` for
    what stands beside text that was typed."""
    match expression:
        case Name(name):
            return name if priority == 0 or _ATOMIC.fullmatch(name) else f"({name})"
        case Number(value):
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            if not spaced and isinstance(value, float) and float(shown) != value:
                shown = repr(value)  # formulas to be computed with
            return f"({shown})" if shown.startswith("-") and priority > 1 else shown
        case Infix(key, left, right):
            sign, own = INFIX[key]
            gap = " " if spaced or key != "pow" else ""
            first = text(left, own + (key == "pow"), spaced)  # x**2**3 would be x**(2**3)
            shown = f"{first}{gap}{sign}{gap}{text(right, own + 1, spaced)}"
            return f"({shown})" if own < priority else shown
        case Negative(inner):
            product = isinstance(inner, Infix) and inner.key in ("mul", "div", "matmul")
            own = 2 if product else NEGATION
            shown = f"-{text(inner, own, spaced)}"
            return f"({shown})" if own < priority else shown
        case Index(inner, at):
            if isinstance(at, tuple):
                at = ", ".join(text(part, 0, spaced) for part in at)
            return f"{text(inner, ATOM, spaced)}[{at}]"
        case Transposed(inner):
            return f"{text(inner, ATOM, spaced)}.T"
        case Listed(parts):
            return f"[{', '.join(text(part, 0, spaced) for part in parts)}]"
        case Call(function, arguments, keywords):
            given = [_argument(a, spaced) for a in arguments]
            given += [f"{key}={value}" for key, value in keywords]
            return f"{function.removeprefix('nn.functional.')}({', '.join(given)})"
    return "..."
