"""Joining tensors and taking them apart: cat, stack, split, unbind, meshgrid."""

from __future__ import annotations

from itertools import accumulate, combinations_with_replacement
from itertools import combinations as choose
from math import comb

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Dim, Ints, Tensor, TensorList, Tensors, function, movement
from ...graph.dtypes import INT64, result_dtype
from ...graph.node import Node
from ...graph.op import constant, value_of
from ...graph.params import dim_in_range, node_of, to_ints
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import broadcast_shapes
from ...graph.sizes import check_size
from ...graph.strides import CHANNELS
from ..kernels.rules import meeting, require_dims, zeros

# -- joining ---------------------------------------------------------------------------------------


def _some(tensors, name):
    if not tensors:
        raise fault("E303 needs-least-tensor", name)


def _skipped(x):
    """PyTorch lets `cat` join empty vectors with anything."""
    return x.shape == (0,)


def _cat_shape(tensors, dim):
    _some(tensors, "cat")
    first = next((x for x in tensors if not _skipped(x)), None)
    if first is None:
        return (0,), meeting(*tensors)  # whatever the dim is
    dim = dim_in_range(dim, first.ndim)
    joined = 0
    for i, x in enumerate(tensors):
        if _skipped(x):
            continue
        if not x.shape:
            raise fault("E302 cat-cannot-join-d", i)
        fits = x.ndim == first.ndim and all(
            a == b for d, (a, b) in enumerate(zip(x.shape, first.shape, strict=True)) if d != dim
        )
        if not fits:
            raise fault("E302 cat-along-dim", dim, x, i, first)
        joined += x.shape[dim]
    return (*first.shape[:dim], joined, *first.shape[dim + 1 :]), meeting(*tensors)


def _joined(tensors, dim):
    kept = [x for x in tensors if not _skipped(x)]
    return np.concatenate(kept or tensors, dim if kept else 0, dtype=_common_of_arrays(tensors))


def _written(function, tensors, kept):
    parts = ", ".join(f"tensors[{i}]" for i in kept)
    alike = len({x.dtype for x in tensors}) == 1
    dtype = "" if alike else f", dtype=np.{_common_of_arrays(tensors)}"
    if len(kept) in (0, len(tensors)):
        return f"np.{function}(tensors, {'dim' if kept else 0}{dtype})"
    return f"np.{function}(({parts},), dim{dtype})"


def _common_of_arrays(tensors):
    return result_dtype([(x.dtype, not x.shape, False) for x in tensors])


@movement(
    _joined,
    numpy=lambda tensors, dim: _written(
        "concatenate", tensors, [i for i, x in enumerate(tensors) if not _skipped(x)]
    ),
    aliases=["concat", "concatenate"],
    method=False,
    shape=_cat_shape,
    samples=[
        S([t(2, 3), t(1, 3)]),
        S([t(2, 1), t(2, 2)], dim=1),
        S([t(2), t(0)], -1),
        S([t(2), ints(1)]),
    ],
    errors=[Bad("E302", [t(2, 3), t(2, 2)]), Bad("E304", [t(2), t(2)], 1), Bad("E302", [t(), t()])],
    properties=frozenset({CHANNELS}),
)
def cat(tensors: Tensors, dim: int = 0):
    """Tensors one after the other along a dim."""


@cat.vjp
def _(g, out, tensors, dim):
    dim = dim if dim >= 0 else dim + out.ndim
    parts = []
    start = 0
    for x in tensors:
        if _skipped(x):
            parts.append(zeros(x))
            continue
        end = start + x.shape[dim]
        parts.append(F.slice.apply([g, dim, start, end, 1]) if len(tensors) > 1 else g)
        start = end
    return (tuple(parts),)


def _stack_shape(tensors, dim):
    _some(tensors, "stack")
    shape = tensors[0].shape
    for i, x in enumerate(tensors):
        if x.shape != shape:
            raise fault("E302 stack-needs-equal-shapes", shape, x, i)
    dim = dim_in_range(dim, len(shape) + 1)
    return (*shape[:dim], len(tensors), *shape[dim:]), meeting(*tensors)


@movement(
    lambda tensors, dim: np.stack(tensors, dim, dtype=_common_of_arrays(tensors)),
    numpy=lambda tensors, dim: _written("stack", tensors, range(len(tensors))),
    method=False,
    shape=_stack_shape,
    vjp=lambda g, out, tensors, dim: (F.unbind(g, dim),),
    samples=[S([t(2), t(2)]), S([t(2, 1), t(2, 1)], dim=-1), S([t(), t(), t()])],
    errors=[Bad("E302", [t(2), t(3)]), Bad("E304", [t(2), t(2)], 2)],
)
def stack(tensors: Tensors, dim: int = 0):
    """Tensors of one shape along a new dim."""


def _rowed(key: str, doc: str, prepare: str, dim: Any, aliases: tuple[str, ...] = ()) -> None:
    """`cat` of tensors that `prepare` gave dims; `dim(parts)` is the dim to join."""

    def body(tensors: Tensors):
        _some(tensors, key)
        parts = getattr(F, prepare).body(tensors)
        return F.cat(parts, dim(parts))

    body.__doc__ = doc
    function(
        key=key,
        aliases=aliases,
        method=False,
        samples=[S([t(2), t(2)]), S([t(2, 1), t(2, 1)]), S([t(), t()])],
        errors=[Bad("E303", [])],
    )(body)


_rowed(
    "hstack",
    "Tensors side by side: along dim 1, vectors along dim 0.",
    "atleast_1d_tensors",
    lambda parts: 0 if parts[0].ndim == 1 else 1,
)
_rowed(
    "vstack",
    "Tensors below one another: along dim 0, vectors as rows.",
    "atleast_2d_tensors",
    lambda parts: 0,
    ("row_stack",),
)
_rowed("dstack", "Tensors behind one another: along dim 2.", "atleast_3d_tensors", lambda parts: 2)


@function(
    method=False,
    samples=[S([t(2), t(2)]), S([t(2), t(2, 2)]), S([t(), t()])],
    errors=[Bad("E303", [])],
)
def column_stack(tensors: Tensors):
    """Tensors side by side, vectors as columns."""
    _some(tensors, "column_stack")
    return F.cat(tuple(x if x.ndim >= 2 else F.reshape(x, (x.numel, 1)) for x in tensors), 1)


MAX_PIECES = 1_000_000

# -- taking apart ----------------------------------------------------------------------------------


def _unbind_shape(input, dim):
    shape = input.shape
    if not shape:
        raise fault("E304 unbind-needs-dims")
    _check_count(shape[dim])
    rest = (*shape[:dim], *shape[dim + 1 :])
    return ((rest, input.dtype),) * shape[dim]


@movement(
    lambda x, dim: tuple(np.moveaxis(x, dim, 0)[i, ...] for i in range(x.shape[dim])),
    view=True,
    shape=_unbind_shape,
    vjp=lambda g, out, input, dim: F.stack(g, dim) if g else zeros(input),
    strides_rule=lambda strides, input, dim, index: (*strides[:dim], *strides[dim + 1 :]),
    samples=[S(t(2, 3)), S(t(2, 3), -1)],
    errors=[Bad("E304", t())],
)
def unbind(input: Tensor, dim: Dim = 0):
    """All elements of a dim, each without that dim."""


def _sizes_by(input, split_size, dim):
    require_dims("split", input)
    size = input.shape[dim]
    if split_size < 0 or (split_size == 0 and size):
        raise fault("E305 split-into-pieces", split_size)
    if not size:
        return (size,)
    whole, rest = divmod(size, split_size)
    _check_count(whole)
    return (split_size,) * whole + ((rest,) if rest else ())


def _pieces(sizes, input, dim):
    shape = input.shape
    return tuple(((*shape[:dim], s, *shape[dim + 1 :]), input.dtype) for s in sizes)


def _cut(x, sizes, dim):
    return tuple(np.split(x, list(accumulate(sizes))[:-1], dim)[: len(sizes)])


def _split_ops(prefix: str, options: dict[str, Any]) -> None:
    """`split` and `split_with_sizes`; the `unsafe_` ones are copies, not views."""

    @movement(
        lambda x, size, dim: _cut(x, _sizes_by(x, size, dim), dim),
        key=f"{prefix}split",
        shape=lambda input, size, dim: _pieces(_sizes_by(input, size, dim), input, dim),
        **options,
        samples=[S(t(5), 2), S(t(2, 4), 2, dim=1), S(t(3), 5)],
        errors=[Bad("E305", t(3), -1), Bad("E304", t(), 1)],
    )
    def _(input: Tensor, split_size: int, dim: Dim = 0):
        """Pieces of `split_size` elements of a dim; the last may be shorter."""

    @movement(
        lambda x, sizes, dim: _cut(x, _listed(sizes), dim),
        key=f"{prefix}split_with_sizes",
        aliases=["split"] if not prefix else [],
        shape=_sections,
        **options,
        samples=[S(t(5), (2, 3)), S(t(2, 4), [1, 0, 3], dim=-1)],
        errors=[Bad("E303", t(5), (2, 2))],
    )
    def _(input: Tensor, split_sizes: Ints, dim: Dim = 0):
        """Pieces of the given sizes of a dim."""


def _listed(sizes):
    return (sizes,) if isinstance(sizes, int) else sizes


def _sections(input, sizes, dim):
    sizes = _listed(sizes)
    require_dims("split", input)
    if any(s < 0 for s in sizes) or sum(sizes) != input.shape[dim]:
        raise fault("E303 split-sizes-sum", tuple(sizes), sum(sizes), dim, input.shape[dim])
    return _pieces(sizes, input, dim)


_PARTS: dict[str, Any] = {
    "strides_rule": lambda strides, *rest: strides,
    "vjp": lambda g, out, input, sizes, dim: F.cat(g, dim),
}
_split_ops("", {"view": True, **_PARTS})
_split_ops("unsafe_", _PARTS)


@function(name="split", samples=[S(t(5), split_size_or_sections=2)])
def split_named(tensor: Tensor, split_size_or_sections: Ints, dim: Dim = 0):
    """Pieces of a size, or of the given sizes, of a dim."""
    key = "split" if isinstance(split_size_or_sections, int) else "split_with_sizes"
    return getattr(F, key)(tensor, split_size_or_sections, dim)


def _check_count(count: int) -> None:
    if count > MAX_PIECES:
        raise fault("E505 would-make-tensors", count, MAX_PIECES)


@function(
    samples=[S(t(5), 2), S(t(2, 4), 3, 1), S(t(2), 4)],
    errors=[Bad("E305", t(3), 0), Bad("E304", t(), 1)],
)
def chunk(input: Tensor, chunks: int, dim: Dim = 0):
    """At most `chunks` pieces of equal size (the last may be shorter)."""
    return _chunked(input, chunks, dim, "")


@function(samples=[S(t(5), 2)])
def unsafe_chunk(input: Tensor, chunks: int, dim: Dim = 0):
    """`chunk` whose pieces are copies."""
    return _chunked(input, chunks, dim, "unsafe_")


def _chunked(input: Node, chunks: int, dim: int, prefix: str) -> tuple[Node, ...]:
    require_dims("chunk", input)
    if chunks < 1:
        raise fault("E305 chunk-pieces", chunks)
    size = input.shape[dim]
    each = -(-size // chunks)
    if not each:
        _check_count(chunks)
        return getattr(F, f"{prefix}split_with_sizes")(input, (0,) * chunks, dim)
    return getattr(F, f"{prefix}split")(input, each, dim)


@function(
    samples=[S(t(5), 2), S(t(5), (1, 3)), S(t(2, 4), 3, 1)],
    errors=[Bad("E305", t(3), 0), Bad("E304", t(), 1)],
)
def tensor_split(input: Tensor, indices_or_sections: Any, dim: Dim = 0):
    """Pieces of nearly equal size, or those between given places."""
    places = _places(indices_or_sections)
    require_dims("tensor_split", input)
    size = input.shape[dim]
    if isinstance(places, int):
        if places < 1:
            raise fault("E305 tensor_split-into-pieces", places)
        _check_count(places)
        whole, rest = divmod(size, places)
        ends = [(i + 1) * whole + min(i + 1, rest) for i in range(places)]
    else:
        ends = [*places, size]
    starts = [0, *ends[:-1]]
    return tuple(F.slice(input, dim, a, b, 1) for a, b in zip(starts, ends, strict=True))


@function(name="tensor_split", samples=[S(t(5), indices=(1, 3))])
def tensor_split_at(input: Tensor, indices: Any, dim: Dim = 0):
    """Pieces between given places."""
    return F.tensor_split(input, indices, dim)


@function(name="tensor_split", samples=[S(t(5), sections=2)])
def tensor_split_into(input: Tensor, sections: int, dim: Dim = 0):
    """Pieces of nearly equal size."""
    return F.tensor_split(input, sections, dim)


def _places(value):
    """An int or a tuple of ints of what a caller gave: numbers, a list, a tensor of integers."""
    node = node_of(value)
    if node is not None:
        if node.dtype != INT64 or node.ndim > 1:
            raise fault("E306 tensor_split-needs-int", node)
        return value_of(node).tolist() if not node.shape else tuple(value_of(node).tolist())
    return to_ints(value)


def _split_along(key: str, least: int, dim: Any, doc: str) -> None:
    """`tensor_split` along a fixed dim that must divide evenly."""

    def body(input: Tensor, indices_or_sections: Any):
        if input.ndim < least:
            raise fault("E304 needs-dim-more", key, least, "s" if least > 1 else "", input)
        places = _places(indices_or_sections)
        along = dim(input)
        if isinstance(places, int) and (places < 1 or input.shape[along] % places):
            raise fault("E305 into-pieces-dim-elements", key, places, along, input.shape[along])
        return F.tensor_split(input, places, along)

    def into(input: Tensor, sections: int):
        return body(input, sections)

    def at(input: Tensor, indices: Ints):
        return body(input, indices)

    body.__doc__ = into.__doc__ = at.__doc__ = doc
    shape = (2,) * least
    function(
        key=key,
        samples=[S(t(*shape), 2), S(t(*shape), (1,))],
        errors=[Bad("E305", t(*shape), 3), Bad("E304", t(), 1)],
    )(body)
    function(key=f"{key}_into", name=key, samples=[S(t(*shape), sections=2)])(into)
    function(key=f"{key}_at", name=key, samples=[S(t(*shape), indices=(1,))])(at)


_split_along("hsplit", 1, lambda input: 0 if input.ndim == 1 else 1, "Pieces side by side.")
_split_along("vsplit", 2, lambda input: 0, "Pieces below one another.")
_split_along("dsplit", 3, lambda input: 2, "Pieces behind one another.")

# -- several tensors at once -----------------------------------------------------------------------


@function(
    method=False,
    samples=[S(t(3, 1), t(4)), S(t(2), t()), S(t(2))],
    errors=[Bad("E302", t(2), t(3))],
)
def broadcast_tensors(tensors: TensorList):
    """All tensors expanded to their common shape."""
    shape = broadcast_shapes(*(x.shape for x in tensors))
    return tuple(x if x.shape == shape else F.expand(x, shape) for x in tensors)


@function(
    method=False,
    samples=[S(t(2), t(3)), S([t(2), t()]), S(t(2), t(3), indexing="xy")],
    errors=[Bad("E302", t(2, 2), t(2)), Bad("E303", [])],
)
def meshgrid(tensors: TensorList, *, indexing: str = "ij"):
    """The grid of all combinations of vectors: for each vector its values over the grid."""
    _some(tensors, "meshgrid")
    if indexing not in ("ij", "xy"):
        raise fault("E205 meshgrid-indexing-ij-xy", indexing)
    for x in tensors:
        if x.ndim > 1:
            raise fault("E302 meshgrid-needs-vectors", x)
        if x.dtype != tensors[0].dtype:
            raise fault("E306 meshgrid-needs-dtype", tensors, x)
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(x.numel for x in tensors)
    count = len(tensors)
    grids = [
        F.expand(F.view(x, (1,) * i + (-1 if x.numel else 0,) + (1,) * (count - i - 1)), shape)
        for i, x in enumerate(tensors)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _block_shape(tensors):
    for i, x in enumerate(tensors):
        if x.ndim > 2:
            raise fault("E302 block_diag-needs-most-dims", i, x)
    sizes = [_block_size(x.shape) for x in tensors]
    return (sum(r for r, _ in sizes), sum(c for _, c in sizes)), meeting(*tensors)


def _block_size(shape):
    return (1,) * (2 - len(shape)) + tuple(shape)


def _corners(shapes):
    row = column = 0
    for rows, columns in map(_block_size, shapes):
        yield slice(row, row + rows), slice(column, column + columns)
        row += rows
        column += columns


def _blocks(tensors):
    corners = list(_corners([x.shape for x in tensors]))
    shape = (corners[-1][0].stop, corners[-1][1].stop)
    out = np.zeros_like(tensors[0], shape=shape, dtype=_common_of_arrays(tensors))
    for x, corner in zip(tensors, corners, strict=True):
        out[corner] = x
    return out


@movement(
    _blocks,
    jax="scipy.linalg.block_diag(*tensors)",
    method=False,
    shape=_block_shape,
    samples=[S(t(2, 2), t(1, 3)), S(t(2), t()), S(t(2, 2))],
    errors=[Bad("E302", t(2, 2, 2))],
)
def block_diag(tensors: TensorList):
    """The tensors as blocks on the diagonal of one matrix."""


@block_diag.vjp
def _(g, out, tensors):
    parts = []
    for x, (rows, columns) in zip(tensors, _corners([x.shape for x in tensors]), strict=True):
        block = F.slice(F.slice(g, 0, rows.start, rows.stop), 1, columns.start, columns.stop)
        parts.append(F.reshape(block, x.shape))
    return (tuple(parts),)


@function(
    method=False,
    samples=[S(t(2), t(3)), S(t(2)), S(t(2), t(1), t(2))],
    errors=[Bad("E302", t(2, 2))],
)
def cartesian_prod(tensors: TensorList):
    """All combinations of elements of vectors, one a row."""
    _some(tensors, "cartesian_prod")
    for x in tensors:
        if x.ndim != 1:
            raise fault("E302 cartesian_prod-needs-vectors", x)
    if len(tensors) == 1:
        return tensors[0]
    return F.stack(tuple(F.flatten(x) for x in F.meshgrid(tensors)), 1)


@function(
    samples=[S(t(3)), S(t(3), 1), S(t(2), r=2, with_replacement=True), S(t(3), 0)],
    errors=[Bad("E302", t(2, 2))],
    method=False,
)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False):
    """All choices of `r` elements of a vector, one a row."""
    if input.ndim != 1 or r < 0:
        raise fault("E302 combinations-needs-vector", r, input)
    if not r:
        return constant(np.zeros((0,), input.dtype))
    check_size((comb(input.numel + (r - 1) * with_replacement, r), r), INT64)
    select = combinations_with_replacement if with_replacement else choose
    rows = np.array(list(select(range(input.numel), r)), INT64).reshape(-1, r)
    columns = [
        F.index_select(input, 0, constant(np.ascontiguousarray(rows[:, i]))) for i in range(r)
    ]
    return F.stack(tuple(columns), 1)
