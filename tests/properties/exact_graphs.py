"""Random graphs whose numbers are small whole ones, so that every result is exact in any order of
summation; NumPy computes them alongside."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import cast, constant, leaf
from autodiff_cli.graph.registry import F
from autodiff_cli.ops import load_all

load_all()

MOST = 4000  # elements
LARGEST = 8
DTYPES = ["float64", "float32", "int64", "bool"]
LAYOUTS = ["dense", "transposed", "strided", "reversed", "broadcast"]
NUMBERS = [1.0, 2, 0.0, -0.0, 0.5, -1, 3.0, -2.0, 1.5]


class Leaf(NamedTuple):
    """An array from outside."""

    shape: tuple[int, ...]
    dtype: str
    layout: str
    seed: int
    grad: bool


LEAVES = st.lists(
    st.builds(
        Leaf,
        st.lists(st.sampled_from([1, 2, 3, 4, 7, 0]), max_size=4).map(tuple),
        st.sampled_from(["float64", *DTYPES]),
        st.sampled_from(LAYOUTS),
        st.integers(0, 99),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)
# What is done, to which of the last results (counted from the end), and three choices of it.
STEPS = st.lists(
    st.tuples(
        st.deferred(lambda: st.sampled_from(sorted(MOVES))),
        st.integers(0, 4),
        st.integers(0, 63),
        st.integers(0, 63),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)

Value = tuple[Node, np.ndarray]


def array_of(spec: Leaf) -> np.ndarray:
    """Whole numbers from -4 to 4 in a layout."""
    generator = np.random.default_rng(spec.seed)
    dense = np.asarray(generator.integers(-4, 5, spec.shape)).astype(spec.dtype)
    if spec.layout == "transposed":
        return np.ascontiguousarray(dense.T).T
    if spec.layout == "reversed" and dense.ndim:
        return dense[::-1]
    if spec.layout == "strided" and dense.ndim:
        wide = np.repeat(dense, 2, axis=-1)
        return wide[..., ::2]
    if spec.layout == "broadcast" and dense.ndim and dense.shape[0]:
        return np.broadcast_to(dense[:1], dense.shape)
    return dense


def node_of(spec: Leaf, array: np.ndarray) -> Node:
    """The node of an array."""
    if spec.grad and array.dtype.kind == "f":
        return leaf(array, AccumulateGrad())
    return constant(array)


def bounded(node: Node, array: np.ndarray) -> Value:
    """Small numbers again."""
    if array.dtype == bool:
        return node, array
    return F.clamp(node, -LARGEST, LARGEST), np.clip(array, -LARGEST, LARGEST)


def fitting(x: np.ndarray, values: list[Value]) -> list[Value]:
    """Those that broadcast with it, to not too much."""
    found = []
    for node, array in values:
        try:
            shape = np.broadcast_shapes(x.shape, array.shape)
        except ValueError:
            continue
        if prod(shape) <= MOST:
            found.append((node, array))
    return found


UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "floor": lambda x: np.floor(x).astype(x.dtype),  # NumPy 2.0 has floats for integers
    "relu": lambda x: np.maximum(x, 0),
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum, "gt": np.greater, "le": np.less_equal, "eq": np.equal,
}  # fmt: skip
TRUTH = {"logical_and": np.logical_and, "logical_or": np.logical_or}


def unary(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    if x[1].dtype == bool:
        return None
    name = list(UNARY)[i % len(UNARY)]
    return bounded(getattr(F, name)(x[0]), UNARY[name](x[1]))


def binary(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    y = (others := fitting(x[1], values))[j % len(others)]
    name = list(BINARY)[i % len(BINARY)]
    if bool in (x[1].dtype, y[1].dtype):
        name = list(TRUTH)[i % 2]
        return getattr(F, name)(x[0], y[0]), TRUTH[name](x[1], y[1])
    if flag:
        x, y = y, x
    node = getattr(F, name)(x[0], y[0])
    return bounded(node, BINARY[name](x[1], y[1]).astype(node.dtype))


def with_number(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    if x[1].dtype.kind != "f":
        return None
    number: Any = NUMBERS[i % len(NUMBERS)]
    name = ["add", "sub", "mul"][j % 3]
    other = x[1].dtype.type(number)
    operands = (x[0], number) if flag else (number, x[0])
    arrays = (x[1], other) if flag else (other, x[1])
    return bounded(getattr(F, name)(*operands), BINARY[name](*arrays))


def chosen_by(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    a = (others := fitting(x[1], values))[i % len(others)]
    fit = [y for y in fitting(x[1], values) if y[1].dtype == a[1].dtype]
    fit = [y for y in fitting(a[1], fit) if _common(x[1], a[1], y[1])]
    if not fit:
        return None
    b = fit[j % len(fit)]
    return F.where(F.gt(x[0], 0), a[0], b[0]), np.where(x[1] > 0, a[1], b[1])


def _common(*arrays: np.ndarray) -> bool:
    try:
        return prod(np.broadcast_shapes(*[a.shape for a in arrays])) <= MOST
    except ValueError:
        return False


def dims_of(ndim: int, bits: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if bits >> d & 1)


def reduced(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    name = ["sum", "sum", "amax", "amin", "any", "all"][i % 6]
    dims = dims_of(x[1].ndim, j)
    if name in ("any", "all"):
        given: Any = dims or None
    elif name == "sum" or x[1].size:
        given = dims or tuple(range(x[1].ndim))
    else:
        return None
    node = getattr(F, name)(x[0], given, flag)
    array = getattr(np, name)(x[1], axis=given, keepdims=flag)
    return bounded(node, np.asarray(array).astype(node.dtype))


def centred(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    """What norms and softmax do: a reduction, and the same rows again."""
    dims = dims_of(x[1].ndim, j) or tuple(range(x[1].ndim))
    if x[1].dtype.kind != "f":
        return None
    node = F.sub(x[0], F.sum(x[0], dims, True))
    return bounded(node, x[1] - x[1].sum(axis=dims, keepdims=True))


def converted(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    dtype = np.dtype(DTYPES[i % 4])
    return cast(x[0], dtype), x[1].astype(dtype)


def reshaped(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    shape = list(x[1].shape)
    if flag:
        shape = [x[1].size]
    elif len(shape) > 1 and i % 2:
        at = j % (len(shape) - 1)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    elif shape and shape[at := j % len(shape)] % 2 == 0 and shape[at]:
        shape[at : at + 1] = [2, shape[at] // 2]
    else:
        shape.insert(j % (len(shape) + 1), 1)
    return F.reshape(x[0], tuple(shape)), x[1].reshape(shape)


def squeezed(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    return F.squeeze(x[0]), np.squeeze(x[1])


def expanded(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    shape = tuple(1 + i % 4 if n == 1 else n for n in x[1].shape)
    if flag:
        shape = (1 + j % 5, *shape)
    if len(shape) > 5 or prod(shape) > MOST:
        return None
    return F.expand(x[0], shape), np.broadcast_to(x[1], shape)


def transposed(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    if x[1].ndim < 2:
        return None
    a, b = i % x[1].ndim, j % x[1].ndim
    return F.transpose(x[0], a, b), x[1].swapaxes(a, b)


def sliced(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    if not x[1].ndim:
        return None
    dim = i % x[1].ndim
    size = x[1].shape[dim]
    if not size:
        return F.flip(x[0], (dim,)), np.flip(x[1], dim)
    start = j % size
    if flag:
        return F.select(x[0], dim, start), np.take(x[1], start, dim)
    kept = (slice(None),) * dim + (slice(start, None),)
    return F.narrow(x[0], dim, start, size - start), x[1][kept]


def joined(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    fit = [y for y in values if y[1].dtype == x[1].dtype and y[1].shape[1:] == x[1].shape[1:]]
    fit = [y for y in fit if y[1].ndim == x[1].ndim > 0]
    if not fit:
        return None
    y = fit[i % len(fit)]
    return F.cat([x[0], y[0]], 0), np.concatenate([x[1], y[1]])


def summed_up(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    if not x[1].ndim or x[1].dtype.kind != "f":
        return None
    dim = i % x[1].ndim
    return bounded(F.cumsum(x[0], dim), np.cumsum(x[1], dim))


def multiplied(x: Value, values: list[Value], i: int, j: int, flag: bool) -> Value | None:
    fit = [y for y in values if x[1].ndim == y[1].ndim == 2 and y[1].shape[0] == x[1].shape[1]]
    fit = [y for y in fit if y[1].dtype == x[1].dtype and y[1].dtype.kind == "f"]
    if not fit:
        return None
    y = fit[i % len(fit)]
    return bounded(F.matmul(x[0], y[0]), x[1] @ y[1])


Move = Callable[[Value, list[Value], int, int, bool], Value | None]
MOVES: dict[str, Move] = {
    "a number": with_number, "binary": binary, "cast": converted, "cat": joined,
    "centred": centred, "cumsum": summed_up, "expand": expanded, "matmul": multiplied,
    "other binary": binary, "reduction": reduced, "reshape": reshaped, "slice": sliced,
    "squeeze": squeezed, "transpose": transposed, "unary": unary, "where": chosen_by,
}  # fmt: skip


def build(steps: list[tuple[str, int, int, int, bool]], leaves: list[Value]) -> list[Value]:
    """All values of a graph, each with what NumPy says it is."""
    values = list(leaves)
    for name, back, i, j, flag in steps:
        x = values[-1 - back % len(values)]
        made = MOVES[name](x, values, i, j, flag)
        if made is not None:
            node, array = made[0], np.asarray(made[1])
            assert (tuple(node.shape), node.dtype) == (array.shape, array.dtype), name
            values.append((node, array))
    return values
