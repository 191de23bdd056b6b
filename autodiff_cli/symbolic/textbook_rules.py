"""How the results of functions of a textbook change: `d inv(M) = -inv(M) @ dM @ inv(M)`.

Each rule is asked for a node and its arguments, makes the change of that node of those of its
operands, and says what it is; None where the node is not what the rule is for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd.forward import Linearized
from ..graph.node import Node
from ..graph.op import constant, value_of
from .terms import NoFormula
from .writing.expression import (
    Call,
    Expression,
    Index,
    Infix,
    Name,
    Negative,
    Number,
    Transposed,
    filled,
    ranked,
)
from .writing.tidy import summed
from .writing.windowed import POOLED, pooled_along, pooled_as

if TYPE_CHECKING:
    from .differentials import Rules

CONSTANT_FACTOR = "a constant factor stays"

Made = tuple[Expression, str]


def inv(rules: Rules, node: Node, matrix: Node) -> Made:
    inverse = Call("inv", (rules.of(matrix),))
    shown = Infix("matmul", Infix("matmul", inverse, rules.d(matrix)), inverse)
    return Negative(shown), "d inv(M) = -inv(M) @ dM @ inv(M)"


def det(rules: Rules, node: Node, matrix: Node) -> Made:
    shown = Infix("mul", Call("det", (rules.of(matrix),)), traced(rules, matrix))
    return shown, "d det(M) = det(M) * trace(inv(M) @ dM)"


def traced(rules: Rules, matrix: Node) -> Expression:
    inverse = Call("inv", (rules.of(matrix),))
    return Call("trace", (Infix("matmul", inverse, rules.d(matrix)),))


def softmax(rules: Rules, node: Node, z: Node, dim: int, *args: Any) -> Made:
    p = rules.of(node)
    change = rules.d(z)
    mean = along(Infix("mul", p, change), dim, True)
    shown = Infix("mul", p, Infix("sub", change, mean))
    return shown, "d softmax(z) = p * (dz - sum(p * dz)), p = softmax(z)"


def log_softmax(rules: Rules, node: Node, z: Node, dim: int, *args: Any) -> Made:
    change = rules.d(z)
    p = Call("softmax", (rules.of(z), Number(dim)))
    mean = along(Infix("mul", p, change), dim, True)
    return Infix("sub", change, mean), "d log_softmax(z) = dz - sum(softmax(z) * dz)"


def logsumexp(rules: Rules, node: Node, z: Node, dims: Any, keepdim: bool = False) -> Made | None:
    if len(dims) != 1:
        return None
    (dim,) = dims
    p = Call("softmax", (rules.of(z), Number(dim)))
    shown = along(Infix("mul", p, rules.d(z)), dim, keepdim, not node.ndim)
    return shown, "d logsumexp(z) = sum(softmax(z) * dz)"


def norm(
    rules: Rules,
    node: Node,
    x: Node,
    ord: Any = 2,
    dims: Any = None,
    keepdim: Any = False,
    *args: Any,
) -> Made | None:
    axes = dims if isinstance(dims, tuple) else (dims,)
    if ord not in (2, None, "fro") or (node.ndim and len(axes) != 1):
        return None
    product = Infix("mul", rules.of(x), rules.d(x))
    above = along(product, axes[0] if node.ndim else None, bool(keepdim))
    return Infix("div", above, rules.of(node)), "d norm(x) = sum(x * dx) / norm(x)"


def prod(
    rules: Rules, node: Node, inner: Node, dim: int | None = None, keepdim: bool = False, *args: Any
) -> Made:
    if not value_of(inner).all():
        raise NoFormula(node)
    shown = along(Infix("div", rules.d(inner), rules.of(inner)), dim, keepdim, not node.ndim)
    return Infix("mul", rules.of(node), shown), "d prod(u) = prod(u) * sum(du / u)"


def standardized(
    rules: Rules,
    node: Node,
    x: Node,
    mean: Node,
    over: Node,
    weight: Any,
    bias: Any,
    dims: Any,
    shape: Any,
    *args: Any,
) -> Made:
    """Of rows with mean 0 and variance 1, times a weight."""
    scale, away = rules.of(over), Infix("sub", rules.of(x), rules.of(mean))
    axes = Name(str(dims[0] if len(dims) == 1 else tuple(dims)))

    def mean_of(part: Expression) -> Expression:
        return Call("mean", (part, axes), (("keepdim", "True"),))

    parts: list[Expression] = []
    if rules.depends(x):
        change = rules.d(x)
        squared = Infix("pow", scale, Number(2))
        turned = Infix("mul", Infix("mul", away, squared), mean_of(Infix("mul", away, change)))
        own = Infix("sub", Infix("sub", change, mean_of(change)), turned)
        parts.append(Infix("mul", own, scale))
        if weight is not None:
            parts[0] = Infix("mul", parts[0], beside(rules.of(weight), shape))
    if weight is not None and rules.depends(weight):
        normal = Infix("mul", away, scale)
        parts.append(Infix("mul", normal, beside(rules.d(weight), shape)))
    if bias is not None and rules.depends(bias):
        made = beside(rules.d(bias), shape)
        parts.append(made if parts else Infix("mul", filled("ones", node.shape), made))
    rule = "d n(u) = (du - mean(du) - n * mean(n * du)) / s, n(u) = (u - mean(u)) / s"
    return summed(parts), rule if rules.depends(x) else CONSTANT_FACTOR


def beside(parameter: Expression, shape: Any) -> Expression:
    """A parameter of each channel beside what it multiplies."""
    behind = len(shape) - 1
    if shape[-1:] != (1,):
        return parameter
    return Index(parameter, ", ".join([":"] + ["None"] * behind))


def reciprocal(rules: Rules, node: Node, below: Node) -> Made:
    shown = Infix("div", rules.d(below), Infix("pow", rules.of(below), Number(2)))
    return Negative(shown), "d (1 / u) = -du / u**2"


def solve(rules: Rules, node: Node, matrix: Node, right: Node, left: bool = True) -> Made:
    parts = [rules.d(right)] if rules.depends(right) else []
    if rules.depends(matrix):
        ends = rules.d(matrix), rules.of(node)
        change: Expression = Infix("matmul", *(ends if left else ends[::-1]))
        parts = [Infix("sub", parts[0], change) if parts else Negative(change)]
    if left:
        shown = Call("solve", (rules.of(matrix), *parts))
        return shown, "d solve(M, b) = solve(M, db - dM @ solve(M, b))"
    shown = Call("solve", (rules.of(matrix), *parts), (("left", "False"),))
    return shown, "d (b @ inv(M)) = (db - b @ inv(M) @ dM) @ inv(M)"


def clamp(rules: Rules, node: Node, inner: Node, low: Any = None, high: Any = None) -> Made | None:
    shown = rules.d(inner)
    for bound, key in ((high, "le"), (low, "ge")):
        if isinstance(bound, Node):
            if rules.depends(bound):
                return None
            holds = Infix(key, rules.of(inner), rules.of(bound))
            shown = Call("where", (holds, shown, Number(0.0)))
    return shown, "d clamp(u) = du between the bounds, and 0 outside"


def cumprod(rules: Rules, node: Node, inner: Node, dim: int, *args: Any) -> Made:
    over = Infix("div", rules.d(inner), rules.of(inner))
    shown = Infix("mul", rules.of(node), Call("cumsum", (over, Number(dim))))
    return shown, "d cumprod(u) = cumprod(u) * cumsum(du / u)"


def logcumsumexp(rules: Rules, node: Node, inner: Node, dim: int, *args: Any) -> Made:
    weighted = Infix("mul", Call("exp", (rules.of(inner),)), rules.d(inner))
    over = Call("exp", (Negative(rules.of(node)),))
    shown = Infix("mul", over, Call("cumsum", (weighted, Number(dim))))
    return shown, "d logcumsumexp(u) = exp(-logcumsumexp(u)) * cumsum(exp(u) * du)"


def so_far(rules: Rules, node: Node, inner: Node, dim: int) -> Made:
    name = called(node.args[0])
    places = Index(Call(name, (rules.of(inner), Number(dim))), 1)
    shown = Call("gather", (rules.d(inner), Number(dim), places))
    return shown, f"d {name}(u) = du at the places of {name}(u)"


def between(rules: Rules, node: Node, start: Node, end: Node, weight: Node) -> Made | None:
    if rules.depends(weight):
        return None
    w, rule = rules.of(weight), "d lerp(u, v, w) = du + w * (dv - du)"
    if not rules.depends(end):
        return Infix("mul", Infix("sub", Number(1), w), rules.d(start)), rule
    if not rules.depends(start):
        return Infix("mul", w, rules.d(end)), rule
    shown = Infix("mul", w, Infix("sub", rules.d(end), rules.d(start)))
    return Infix("add", rules.d(start), shown), rule


def larger(key: str, rules: Rules, node: Node, left: Node, right: Node) -> Made | None:
    """Of two that are nowhere equal."""
    if (value_of(left) == value_of(right)).any():
        return None
    sides = [rules.d(x) if rules.depends(x) else Number(0.0) for x in (left, right)]
    shown = Call("where", (Infix(key, rules.of(left), rules.of(right)), *sides))
    word = "larger" if key == "gt" else "smaller"
    return shown, f"d {called(node)}(u, v) = du where u is {word}, else dv"


def chosen(
    rules: Rules, node: Node, inner: Node, dim: int | None = None, keepdim: bool = False
) -> Made | None:
    value = rules.of(node)
    if dim is not None and not keepdim and inner.ndim > 1:
        value = Index(value, ":, " * (dim % inner.ndim) + "None")
    return only_element(rules, node, inner, value, dim, keepdim)


def extreme(
    name: str, rules: Rules, node: Node, inner: Node, dims: Any = None, keepdim: bool = False
) -> Made | None:
    axes = dims if isinstance(dims, tuple) else (dims,)
    if len(axes) != 1 or not inner.ndim:
        return None
    found = rules.of(node)
    if axes[0] is not None and node.ndim:
        parts = rules.of(inner), Number(axes[0])
        found = Call(name, parts, (("keepdim", "True"),))
    return only_element(rules, node, inner, found, axes[0], keepdim)


def only_element(
    rules: Rules, node: Node, inner: Node, value: Expression, dim: int | None, keepdim: bool
) -> Made:
    """What changes as the only element that has a value."""
    if not alone(inner, node, dim):
        raise NoFormula(node)
    there = Call("where", (Infix("eq", rules.of(inner), value), rules.d(inner), Number(0.0)))
    name = called(node.args[0] if node.op.key == "output" else node)
    return along(there, dim, keepdim, not node.ndim), f"d {name}(u) = du where u is {name}(u)"


def cholesky(
    rules: Rules, node: Node, matrix: Node, upper: bool = False, *args: Any
) -> Made | None:
    if upper or matrix.ndim != 2:
        return None
    factor, size = rules.of(node), matrix.shape[0]
    inverse = Call("inv", (factor,))
    half = Infix("div", Call("eye", (Number(size),)), Number(2))
    lower = Infix("sub", Call("tril", (filled("ones", matrix.shape),)), half)
    both = Infix("matmul", inverse, symmetric(rules, matrix))
    within = Infix("mul", lower, Infix("matmul", both, Transposed(inverse)))
    rule = "d L = L @ (P * (inv(L) @ dM @ inv(L).T)), P = tril(1) - eye / 2"
    return Infix("matmul", factor, within), rule


def cholesky_solve(
    rules: Rules, node: Node, right: Node, factor: Node, upper: bool = False
) -> Made | None:
    """Of the matrix of which the factor is."""
    source = factor.args[0] if factor.op.key == "output" else factor
    if upper or source.op.key != "cholesky_factor" or source.args[1] or factor.ndim != 2:
        return None
    change = Infix("matmul", symmetric(rules, source.args[0]), rules.of(node))
    inner = Infix("sub", rules.d(right), change) if rules.depends(right) else Negative(change)
    shown = Call("cholesky_solve", (inner, rules.of(factor)))
    return shown, "d cholesky_solve(b, L) = cholesky_solve(db - dM @ cholesky_solve(b, L), L)"


def symmetric(rules: Rules, matrix: Node) -> Expression:
    """The change of a matrix; of one that does not stay symmetric the mean of both halves."""
    drawn = np.random.default_rng(0).standard_normal(rules.variable.shape)
    linearized = Linearized([matrix], [rules.variable])
    (tangent,) = linearized.along([constant(np.asarray(drawn, rules.variable.dtype))])
    moved, change = value_of(tangent), rules.d(matrix)
    if np.allclose(moved, moved.T):
        return change
    return Infix("div", Infix("add", change, Transposed(change)), Number(2))


def called(node: Node) -> str:
    if ranked(node) is not None:
        return "kthvalue"
    if (along := pooled_along(node)) is not None:
        return along[1][0]
    own = node.op.counterpart
    name = own[0] if type(own) is tuple else node.op.name
    if node.op.key in POOLED:
        name = (pooled_as(node) or [name])[0]
    return name.removeprefix("nn.functional.").removeprefix("linalg.")


def along(inner: Expression, dim: int | None, keepdim: bool, whole: bool = False) -> Expression:
    """A sum along an axis; `whole`: there is no other."""
    if dim is None or whole:
        return Call("sum", (inner,))
    return Call("sum", (inner, Number(dim)), (("keepdim", "True"),) if keepdim else ())


def alone(inner: Node, found: Node, dim: int | None = None) -> bool:
    """Whether what was found among elements, or in each row along `dim`, is there once."""
    values, own = value_of(inner), value_of(found)
    if dim is not None and own.ndim < values.ndim:
        own = np.expand_dims(own, dim)
    return bool(((values == own).sum(dim) == 1).all())


NAMED: dict[str, Callable[..., Made | None]] = {
    **dict.fromkeys(["inv", "inverse", "inv_raw"], inv), "det": det,
    **dict.fromkeys(["solve", "solve_raw"], solve), "reciprocal": reciprocal,
    "softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp,
    **dict.fromkeys(["vector_norm", "norm"], norm), "standardized": standardized,
    "cholesky_factor": cholesky, "cholesky_solve": cholesky_solve,
    "clamp": clamp, "cumprod": cumprod, "prod": prod, "logcumsumexp": logcumsumexp,
    **dict.fromkeys(["cummax", "cummin"], so_far), "median": chosen, "lerp": between,
    "kthvalue": lambda rules, node, inner, k, *args: chosen(rules, node, inner, *args),
    **dict.fromkeys(["max", "amax"], partial(extreme, "amax")),
    **dict.fromkeys(["min", "amin"], partial(extreme, "amin")),
    "maximum": partial(larger, "gt"), "minimum": partial(larger, "lt"),
}  # fmt: skip
