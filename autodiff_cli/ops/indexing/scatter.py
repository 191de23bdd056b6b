"""Writing by index: scatter, index_add, index_put and what else changes chosen elements."""

from __future__ import annotations

import re

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Dim, Mask, Scalar, Tensor, function, movement
from ...graph.node import Node
from ...graph.op import cast, known, number, value_of
from ...graph.params import node_of, to_scalar
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.state import STATE
from ..kernels.indices import (
    add_slices,
    check_dtypes,
    check_gather,
    check_indices,
    check_number,
    flat_places,
    key_of,
)
from ..kernels.rules import zeros

# -- scatter: an index for every element of the source ---------------------------------------------


def _opposite(src: Any, index: Any) -> Any:
    """The elements of a source that stand opposite an index."""
    return src[tuple(slice(n) for n in index.shape)]


def _written(write):
    """A kernel that lets `write(out, places, values)` change a copy of the first operand; all three
    have one dim."""

    def kernel(x, dim, index, src, *rest):
        out = np.array(x, order="C")
        if index.size:
            rows = np.reshape(index, index.shape or (1,))
            if isinstance(src, np.ndarray):
                src = _opposite(np.reshape(src, src.shape or (1,)), rows).reshape(-1)
            places = flat_places(rows, dim, out.shape or (1,)).reshape(-1)
            write(out.reshape(-1), places, src, *rest)
        return out

    return kernel


def _assign(out, places, values):
    out[places] = values


def _scatter_shape(name):
    def shape(input, dim, index, src, *rest):
        check_dtypes(name, input, src)
        check_gather(name, input, dim, index, src)
        return input.shape, input.dtype

    return shape


_SCATTERED = (
    S(t(3, 2), 0, ints(values=[[0, 2], [1, 0]]), t(2, 2)),
    S(
        t(2, 2),
        0,
        ints(values=[[0, 1], [0, 0]]),
        t(2, 2),
        order=0,
        because="every source of one element gets the slope, as in PyTorch, the last alone counts",
    ),
    S(t(3), 0, ints(values=[0, 2]), t(2)),
    S(t(), 0, ints(values=0), t()),
)
_SUMMED = (*_SCATTERED, S(t(3), -1, ints(values=[0, 0, 2]), t(3)))
_OUT_OF_RANGE = (
    Bad("E305", t(2), 0, ints(values=[2]), t(1)),
    Bad("E302", t(2, 2), 0, ints(1), t(1)),
    Bad("E306", t(2), 0, t(1), t(1)),
)


def _at_number(then):
    """The same of what has one element, or one index."""
    one = re.sub(r"(src|source)\b", r"np.reshape(\1, -1)", then)
    return f"np.reshape(input, -1).at[np.reshape(index, -1)].{one}.reshape(shape)"


def _at_places(then):
    """How JAX writes sources at places along a dim."""

    def text(input, dim, index, *rest):
        if not input.shape or not index.shape:
            return _at_number(then)
        ones = [1] * index.ndim
        places = ", ".join(
            "index" if d == dim else f"np.arange({n}).reshape({[*ones[:d], -1, *ones[d + 1 :]]})"
            for d, n in enumerate(index.shape)
        )
        cut = f"[{', '.join(f':{n}' for n in index.shape)}]"
        whole = not isinstance(rest[0], Node) or rest[0].shape == index.shape
        return f"input.at[{places}].{then}".replace("src", "src" if whole else f"src{cut}")

    return text


def _at_rows(then):
    """How JAX writes slices."""

    def text(input, dim, index, *rest):
        if not input.shape or not index.shape:
            return _at_number(then)
        return f"input.at[{':, ' * dim}index].{then}"

    return text


@movement(
    _written(np.add.at),
    jax=_at_places("add(src)"),
    inplace=True,
    shape=_scatter_shape("scatter_add"),
    vjp=lambda g, out, input, dim, index, src: (g, None, F.gather(g, dim, index)),
    forward=lambda moves, out, input, dim, index, src: F.scatter_add(
        moves[0] or zeros(input), dim, index, moves[2] or zeros(src)
    ),
    properties=frozenset({"broadcasts", "slicewise"}),
    samples=_SUMMED,
    errors=_OUT_OF_RANGE,
)
def scatter_add(input: Tensor, dim: Dim, index: Mask, src: Tensor):
    """`input` with `src[i, j]` added at `[index[i, j], j]`; sources of one place add up."""


@movement(
    _written(_assign),
    jax=_at_places("set(src)"),
    public=False,
    # the slope of a source that another one overwrote is a convention
    properties=frozenset({"broadcasts", "convention"}),
    grad_fn="ScatterBackward0",
    shape=_scatter_shape("scatter"),
    forward=lambda moves, out, input, dim, index, src: F.scatter_tensor(
        moves[0] or zeros(input), dim, index, moves[2] or zeros(src)
    ),
    samples=_SCATTERED,
    errors=_OUT_OF_RANGE,
    counterpart="scatter",
)
def scatter_tensor(input: Tensor, dim: Dim, index: Mask, src: Tensor):
    """`input` with `src[i, j]` at `[index[i, j], j]`."""


def _scatter_value_shape(input, dim, index, value):
    check_gather("scatter", input, dim, index)
    check_number(value, input.dtype)
    return input.shape, input.dtype


@scatter_tensor.vjp
def _(g, out, input, dim, index, src):
    return F.scatter_value(g, dim, index, 0.0), None, F.gather(g, dim, index)


@movement(
    _written(_assign),
    jax=_at_places("set(value)"),
    public=False,
    grad_fn="ScatterBackward1",
    samples=[S(t(3, 2), 0, ints(2, 2), 1.5)],
    shape=_scatter_value_shape,
    vjp=lambda g, out, input, dim, index, value: (F.scatter_value(g, dim, index, 0.0), None),
    counterpart="scatter",
)
def scatter_value(input: Tensor, dim: Dim, index: Mask, value: Scalar):
    """`input` with a number at `[index[i, j], j]`."""


_COMBINED = {"add": np.add, "multiply": np.multiply}


def _combine(out, places, values, reduce):
    _COMBINED[reduce].at(out, places, values)


def _no_gradient(g, out, *args):
    raise fault("E404 scatter-reduce-no-gradient")


@movement(
    _written(_combine),
    public=False,
    shape=_scatter_shape("scatter"),
    grad_fn="NotImplemented",
    vjp=_no_gradient,
    samples=[S(t(3, grad=False), 0, ints(2), t(2, grad=False), "add")],
)
def scatter_combined(input: Tensor, dim: Dim, index: Mask, src: Tensor, reduce: str):
    """`input` with sources added or multiplied at `[index[i, j], j]`; has no gradient."""


def _scattered(input: Node, dim: int, index: Node, src: Any, reduce: str | None) -> Node:
    node = node_of(src)
    if reduce is None:
        if node is None or node.weak:
            return F.scatter_value(input, dim, index, src)
        return F.scatter_tensor(input, dim, index, node)
    if reduce not in _COMBINED:
        raise fault("E205 scatter-reduce-add-multiply", reduce)
    if node is None or node.weak:
        node = F.expand(number(to_scalar(src), input.dtype), index.shape)
    return F.scatter_combined(input, dim, index, node, reduce)


@function(
    inplace=True,
    samples=[
        *_SCATTERED,
        S(t(3), 0, ints(2), 1.5),
        S(t(3, grad=False), 0, ints(2), 2.0, reduce="add"),
    ],
    errors=_OUT_OF_RANGE,
)
def scatter(input: Tensor, dim: Dim, index: Mask, src: Any, *, reduce: str | None = None):
    """`input` with `src[i, j]`, or a number, at `[index[i, j], j]`."""
    return _scattered(input, dim, index, src, reduce)


@function(name="scatter", inplace=True, samples=[S(t(3), 0, ints(2), value=1.5)])
def scatter_number(
    input: Tensor, dim: Dim, index: Mask, *, value: Scalar, reduce: str | None = None
):
    """`input` with a number at `[index[i, j], j]`."""
    return _scattered(input, dim, index, value, reduce)


# -- reductions into chosen places -----------------------------------------------------------------

_REDUCE = {
    "sum": (np.add, 0),
    "prod": (np.multiply, 1),
    "mean": (np.add, 0),
    "amax": (np.maximum, None),
    "amin": (np.minimum, None),
}


def _check_reduce(name: str, reduce: str, allowed: tuple[str, ...]) -> None:
    if reduce not in allowed:
        raise fault("E205 reduce-not-reduce", name, ", ".join(allowed), reduce)


def _identity(reduce: str, dtype: np.dtype) -> Any:
    fixed = _REDUCE[reduce][1]
    if fixed is not None:
        return fixed
    if dtype.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    if dtype.kind == "b":
        return reduce == "amin"
    info = np.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


def _reduced(out, places, values, reduce, include_self):
    """Combine values into places of `out`; without `include_self` what was there does not count."""
    if not include_self:
        out[places] = _identity(reduce, out.dtype)
    _REDUCE[reduce][0].at(out, places, values)
    if reduce == "mean":
        count = np.zeros(out.shape, np.int64)
        np.add.at(count, places, 1)
        count += include_self
        count[count == 0] = 1
        out[...] = out / count if out.dtype.kind == "f" else out // count


_TWICE = (
    "{0}(): Double backward is unsupported for {1} when >1 zeros in {1} are scattered to the same "
    "position in self"
)


def _reduce_back(ops, names, g, out, input, dim, index, src, reduce, include_self):
    """The rule of scatter_reduce and index_reduce, by kind of reduction: how each combines, reads,
    adds to and clears the places of its index."""
    combine, take, put, clear = ops

    def reduced(x, s):
        return combine(x, dim, index, s, reduce, include_self=include_self)

    def read(x):
        return take(x, dim, index)

    def add(x, s):
        return put(x, dim, index, s)

    none = zeros(input)
    ones = F.expand(number(1.0, g.dtype), src.shape)
    if reduce == "sum":
        to_self, to_src = g, read(g)
    elif reduce == "mean":
        count = add(none + 1.0 if include_self else none, ones)
        count = F.where(F.eq(count, 0), 1.0, count)
        to_self, to_src = g / count, read(g) / read(count)
    elif reduce == "prod":
        safe = F.where(F.eq(input, 0), 1.0, input)
        to_self = g * reduced(safe, src) / safe
        zero = F.eq(src, 0)
        alone = F.logical_and(zero, F.eq(read(add(none, F.where(zero, ones, 0.0))), 1))
        others = reduced(input, F.where(alone, 1.0, src))
        to_src = F.where(alone, read(g * others), read(g * out) / F.where(zero, 1.0, src))
        several = F.logical_and(zero, F.logical_not(alone))
        if STATE.grad and known(several) and value_of(several).any():
            words = _TWICE.format(*names)
            to_src = F.differentiable_once(to_src, words, "take zeros out of the factors")
    else:
        own = F.where(F.eq(input, out), none + 1.0, 0.0)
        hit = F.where(F.eq(src, read(out)), ones, 0.0)
        share = g / add(own, hit)
        to_self, to_src = own * share, hit * read(share)
    return (to_self if include_self else clear(to_self, dim, index, 0.0)), None, to_src


_SCATTER_REDUCE = ("sum", "prod", "mean", "amax", "amin")


def _scatter_reduce_shape(input, dim, index, src, reduce, include_self):
    _check_reduce("scatter_reduce", reduce, _SCATTER_REDUCE)
    return _scatter_shape("scatter_reduce")(input, dim, index, src)


def _to_rival(input, dim, index, src, reduce, include_self):
    """How far elements that may meet in one place are from each other, where the extreme counts."""
    if reduce not in ("amax", "amin"):
        return number(float("inf"), input.dtype)
    return F.gaps(F.cat((F.reshape(input, (-1,)), F.reshape(src, (-1,)))), 0)


_IN_JAX = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "max", "amin": "min"}


def _reduced_in_jax(at, source):
    def text(input, dim, index, src, reduce, include_self):
        def written(then):
            return at(then)(input, dim, index, src)

        found = written(f"{_IN_JAX[reduce]}({source})")
        if not include_self:
            fill = str(_identity(reduce, input.dtype)).replace("inf", "np.inf")
            found = found.replace("input", written(f"set({fill})"), 1)
        if reduce != "mean":
            return found
        count = written("add(1)").replace("input", f"np.full(shape, {int(include_self)})", 1)
        return f"{found} / np.maximum({count}, 1)"

    return text


def _scatter_reduce_forward(moves, out, input, dim, index, src, reduce, include_self):
    """PyTorch's formula: that of a product gives zeros; of an extreme, what stood there has a part
    in a tie with `include_self` only."""
    if reduce == "prod":
        return None
    to_input, to_src = moves[0] or zeros(input), moves[2] or zeros(src)
    if reduce in ("sum", "mean"):
        return F.scatter_reduce(to_input, dim, index, to_src, reduce, include_self=include_self)

    def total(own, found):
        own = cast(own, out.dtype) if own.dtype.kind == "b" else own
        found = cast(found, out.dtype) if found.dtype.kind == "b" else found
        return F.scatter_reduce(own, dim, index, found, "sum", include_self=include_self)

    own, hit = F.eq(input, out), F.eq(src, F.gather(out, dim, index))
    moved = total(F.where(own, to_input, 0), F.where(hit, to_src, 0))
    return F.div(moved, total(own, hit))


@movement(
    _written(_reduced),
    jax=_reduced_in_jax(_at_places, "src"),
    forward=_scatter_reduce_forward,
    inplace=True,
    shape=_scatter_reduce_shape,
    kink=_to_rival,
    properties=frozenset({"broadcasts"}),
    samples=[
        S(t(3), 0, ints(values=[0, 0, 2]), t(3), r, include_self=i)
        for r in _SCATTER_REDUCE
        for i in (True, False)
    ],
    errors=[
        Bad("E205", t(2), 0, ints(1), t(1), "max"),
        Bad("E305", t(2), 0, ints(values=[2]), t(1), "sum"),
    ],
    saves="operands, results",
)
def scatter_reduce(
    input: Tensor, dim: Dim, index: Mask, src: Tensor, reduce: str, *, include_self: bool = True
):
    """Sources combined at `[index[i, j], j]`: sum, prod, mean, amax, amin (ties share)."""


@scatter_reduce.vjp
def _(g, out, input, dim, index, src, reduce, include_self):
    names = "scatter_reduce", "src"
    places = F.scatter_reduce, F.gather, F.scatter_add, F.scatter_value
    return _reduce_back(places, names, g, out, input, dim, index, src, reduce, include_self)


# -- index_*: an index for every slice of the source -----------------------------------------------


def _check_rows(name: str, input: Node, dim: int, index: Node, source: Node | None = None) -> None:
    if index.ndim > 1:
        raise fault("E302 needs-vector-indices", name, index)
    if source is not None:
        check_dtypes(name, input, source)
        _check_source(name, input, dim, index.numel, source)
    fills = name == "index_fill"
    size = input.shape[dim] if input.shape else 1
    check_indices(name, index, dim, size, fills, long=fills or name == "index_copy")


def _check_source(name: str, input: Node, dim: int, count: int, source: Node) -> None:
    """E302 unless the source has `count` slices of the input's shape and as many dims; `index_copy`
    takes a number for a vector of one and a vector for a number. Its class is PyTorch's."""
    shape, given = input.shape or (1,), source.shape or (1,)
    want = (*shape[:dim], count, *shape[dim + 1 :])
    copies = name == "index_copy"
    if given == want and (copies or source.ndim == input.ndim):
        return
    many = not source.shape and count != 1 and (copies or dim == 0)
    slices = [x.shape[:dim] + x.shape[dim + 1 :] for x in (input, source)]
    other = input.shape and source.shape and source.ndim != input.ndim
    by_index = many or (copies and (other or slices[0] == slices[1]))
    kind = "IndexError" if by_index else "RuntimeError"
    raise fault("E302 source-shape-shape", name, source, want if input.shape else (), dim, kind)


def _index_add_shape(input, dim, index, source, alpha):
    _check_rows("index_add", input, dim, index, source)
    check_number(alpha, input.dtype)
    return input.shape, input.dtype


def _rows_added(x, dim, index, source, alpha):
    out = np.array(x, order="C")
    values = source if alpha == 1 else source * np.asarray(alpha, source.dtype)
    add_slices(out, dim, index, values)
    return out


@movement(
    _rows_added,
    jax=_at_rows("add(alpha * source)"),
    inplace=True,
    shape=_index_add_shape,
    samples=[
        S(t(3, 2), 0, ints(values=[2, 0, 2]), t(3, 2)),
        S(t(2, 3), 1, ints(2), t(2, 2), alpha=2),
    ],
    errors=[
        Bad("E302", t(3, 2), 0, ints(2), t(3, 2)),
        Bad("E305", t(2), 0, ints(values=[2]), t(1)),
    ],
    saves="source for source",
)
def index_add(input: Tensor, dim: Dim, index: Mask, source: Tensor, *, alpha: Scalar = 1):
    """`input` with the slices of `source` times `alpha` added where the index says."""


@index_add.vjp
def _(g, out, input, dim, index, source, alpha):
    picked = F.reshape(F.index_select(g, dim, index), source.shape)
    return g, None, picked if alpha == 1 else picked * alpha


def _index_copy_shape(input, dim, index, source):
    _check_rows("index_copy", input, dim, index, source)
    return input.shape, input.dtype


def _row_key(out, dim, index):
    return np.reshape(out, out.shape or (1,)), key_of(dim, np.reshape(index, -1))


def _rows_written(x, dim, index, value):
    out = np.array(x, order="C")
    rows, key = _row_key(out, dim, index)
    rows[key] = np.reshape(value, np.shape(value) or (1,))
    return out


@movement(
    _rows_written,
    jax=_at_rows("set(source)"),
    inplace=True,
    shape=_index_copy_shape,
    samples=[
        S(t(3, 2), 0, ints(values=[2, 0]), t(2, 2)),
        S(t(3), 0, ints(1), t(1)),
        S(t(), 0, ints(values=0), t()),
    ],
    errors=[Bad("E302", t(3, 2), 0, ints(2), t(3, 2))],
    saves="source for source",
    forward=lambda moves, out, input, dim, index, source: F.index_copy(
        moves[0] or zeros(input), dim, index, moves[2] or zeros(source)
    ),
)
def index_copy(input: Tensor, dim: Dim, index: Mask, source: Tensor):
    """`input` with the slices of `source` where the index says."""


@index_copy.vjp
def _(g, out, input, dim, index, source):
    return (
        F.index_fill(g, dim, index, 0.0),
        None,
        F.reshape(F.index_select(g, dim, index), source.shape),
    )


def _index_fill_shape(input, dim, index, value):
    _check_rows("index_fill", input, dim, index)
    if isinstance(value, Node) and value.shape:
        raise fault("E302 index_fill-needs-number-d", value)
    if not isinstance(value, Node):
        check_number(value, input.dtype)
    return input.shape, input.dtype


_FILLED: dict[str, Any] = {"public": False, "shape": _index_fill_shape, "counterpart": "index_fill"}


@movement(
    _rows_written,
    jax=_at_rows("set(value)"),
    grad_fn="IndexFillBackward0",
    vjp=lambda g, out, input, dim, index, value: (F.index_fill_number(g, dim, index, 0.0), None),
    samples=[S(t(3, 2), 0, ints(2), 1.5)],
    **_FILLED,
)
def index_fill_number(input: Tensor, dim: Dim, index: Mask, value: Scalar):
    """`input` with a number in the slices of the index."""


@movement(
    _rows_written,
    jax=_at_rows("set(value)"),
    grad_fn="IndexFillBackward1",
    samples=[S(t(3, 2), 0, ints(2), t())],
    **_FILLED,
)
def index_fill_tensor(input: Tensor, dim: Dim, index: Mask, value: Tensor):
    """`input` with a 0-d tensor in the slices of the index."""


@index_fill_tensor.vjp
def _(g, out, input, dim, index, value):
    filled = F.index_fill_number(zeros(g), dim, index, 1.0) > 0
    return F.index_fill_number(g, dim, index, 0.0), None, F.sum(F.where(filled, g, 0.0))


@function(
    inplace=True,
    samples=[S(t(3, 2), 0, ints(2), 1.5), S(t(3, 2), 1, ints(values=[0]), t())],
    errors=[Bad("E305", t(3), 0, ints(values=[3]), 1.0), Bad("E302", t(3), 0, ints(1), t(2))],
)
def index_fill(input: Tensor, dim: Dim, index: Mask, value: Any):
    """`input` with one value in the slices of the index."""
    node = node_of(value)
    if node is None or node.weak:
        return F.index_fill_number(input, dim, index, value)
    return F.index_fill_tensor(input, dim, index, node)


def _rows_reduced(x, dim, index, source, reduce, include_self):
    out = np.array(x, order="C")
    if index.size:
        rows, key = _row_key(out, dim, index)
        _reduced(rows, key, np.reshape(source, source.shape or (1,)), reduce, include_self)
    return out


_INDEX_REDUCE = ("prod", "mean", "amax", "amin")


def _index_reduce_shape(input, dim, index, source, reduce, include_self):
    _check_reduce("index_reduce", reduce, _INDEX_REDUCE)
    _check_rows("index_reduce", input, dim, index, source)
    return input.shape, input.dtype


@movement(
    _rows_reduced,
    jax=_reduced_in_jax(_at_rows, "source"),
    inplace=True,
    shape=_index_reduce_shape,
    kink=_to_rival,
    no_forward="index_reduce",
    samples=[
        S(t(3, 2), 0, ints(values=[0, 0]), t(2, 2), r, include_self=i)
        for r in _INDEX_REDUCE
        for i in (True, False)
    ],
    errors=[Bad("E205", t(2), 0, ints(1), t(1), "sum")],
    saves="operands, results",
)
def index_reduce(
    input: Tensor, dim: Dim, index: Mask, source: Tensor, reduce: str, *, include_self: bool = True
):
    """Slices of `source` combined by index: prod, mean, amax, amin (ties share)."""


@index_reduce.vjp
def _(g, out, *args):
    names = "index_reduce", "source"
    places = F.index_reduce, F.index_select, F.index_add, F.index_fill_number
    return _reduce_back(places, names, g, out, *args)
