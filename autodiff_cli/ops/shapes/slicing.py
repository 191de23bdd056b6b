"""Views of a part of one tensor: slices, rows, diagonals, sliding windows.

All are NumPy views too, so one op, `embedded`, is the transpose of every one of them.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Dim, Ints, Tensor, function, movement, opaque
from ...graph.node import Node
from ...graph.op import constant
from ...graph.params import dim_in_range, node_of, to_scalar
from ...graph.registry import F
from ...graph.registry import op as op_of
from ...graph.samples import Bad, S, t
from ...graph.sizes import within
from ..kernels.indices import key_of, wrapped_index, written_through
from ..kernels.rules import require_dims


def _embedded(value, shape, step):
    op, rest = step
    out = np.zeros_like(value, shape=shape, order="C")
    place = op.kernel(out, *rest)
    place.flags.writeable = True  # NumPy protects diagonals; `out` is ours
    place[...] = value
    return out


def _padded(value, shape, step):
    """A slice or a row among zeros, as NumPy has a word for it."""
    op, (dim, start, *rest) = step
    if op.key == "select":
        text, start = f"np.expand_dims(value, {dim})", start % shape[dim]
        end = start + 1
    elif op.key == "slice" and rest[1] == 1:
        text = "value"
        start, end, _ = slice(start, rest[0]).indices(shape[dim])
    else:
        return None
    widths = [(0, 0)] * len(shape)
    widths[dim] = start, shape[dim] - max(end, start)
    return f"np.pad({text}, {widths if len(shape) > 1 else widths[0]})"


@movement(
    _embedded,
    numpy=_padded,
    jax=lambda value, shape, step: (
        _padded(value, shape, step)
        or written_through(f"np.zeros(shape, np.{value.dtype})", "value", shape, (*step, -1))
    ),
    public=False,
    shape=lambda value, shape, step: (shape, value.dtype),
    vjp=lambda g, out, value, shape, step: step[0].apply([g, *step[1]]),
    counterpart=lambda value, shape, step: F.copy_slices(
        F.zeros(shape, dtype=value.dtype), value, (*step, -1)
    ),
)
def embedded(value: Tensor, shape: Any, step: Any):
    """Zeros of a shape with `value` where the view `step`, an op and its arguments, looks."""


def _embed(key: str, g: Node, input: Node, *rest: Any) -> Node:
    return F.embedded.apply([g, input.shape, (op_of(key), rest)])


# -- slices and rows -------------------------------------------------------------------------------


def _slice_shape(input, dim, start, end, step):
    shape = input.shape
    require_dims("slice", input)
    if step < 1:
        raise fault("E305 slice-step-positive", step)
    size = len(range(shape[dim])[start:end:step])
    return (*shape[:dim], size, *shape[dim + 1 :]), input.dtype


@movement(
    lambda x, dim, start, end, step: x[key_of(dim, slice(start, end, step))],
    numpy=lambda input, dim, start, end, step: (
        f"input[{':, ' * dim}{start or ''}:{'' if end is None else end}"
        f"{'' if step == 1 else f':{step}'}]"
    ),
    view=True,
    public=False,
    shape=_slice_shape,
    strides_rule=lambda strides, input, dim, start, end, step: (
        *strides[:dim],
        strides[dim] * step,
        *strides[dim + 1 :],
    ),
    vjp=lambda g, out, input, *rest: _embed("slice", g, input, *rest),
    samples=[S(t(4, 2), 0, 1, 3), S(t(2, 5), 1, None, None, 2), S(t(3), 0, -2)],
    errors=[Bad("E305", t(3), 0, 0, 3, 0)],
    counterpart=(
        "Tensor.__getitem__",
        lambda input, dim, *rest: ((input, key_of(dim, slice(*rest))), {}),
    ),
)
def slice_(
    input: Tensor, dim: Dim = 0, start: int | None = None, end: int | None = None, step: int = 1
):
    """Elements `start:end:step` of a dim."""


def _select_shape(input, dim, index):
    shape = input.shape
    require_dims("select", input)
    wrapped_index(index, dim, shape[dim])
    return (*shape[:dim], *shape[dim + 1 :]), input.dtype


@movement(
    lambda x, dim, index: x[(*key_of(dim, index), Ellipsis)],
    numpy=lambda input, dim, index: f"input[{':, ' * dim}{index}]",
    view=True,
    shape=_select_shape,
    strides_rule=lambda strides, input, dim, index: (*strides[:dim], *strides[dim + 1 :]),
    vjp=lambda g, out, input, *rest: _embed("select", g, input, *rest),
    samples=[S(t(3, 2), 0, 1), S(t(3, 2), -1, -2), S(t(3), 0, 2)],
    errors=[Bad("E305", t(3, 2), 0, 3), Bad("E304", t(), 0, 0)],
)
def select(input: Tensor, dim: Dim, index: int):
    """Element `index` of a dim, without that dim."""


@function(
    samples=[S(t(4, 2), 0, 1, 2), S(t(2, 3), -1, -2, 2), S(t(3), 0, 3, 0)],
    errors=[Bad("E305", t(3), 0, 2, 2), Bad("E305", t(3), 0, 0, -1), Bad("E304", t(), 0, 0, 1)],
)
def narrow(input: Tensor, dim: Dim, start: int, length: int):
    """`length` elements of a dim from `start` on."""
    return F.slice.apply([input, dim, *_narrowed(input, dim, start, length), 1])


def _narrowed(input, dim, start, length):
    require_dims("narrow", input)
    size = input.shape[dim]
    first = start + size if start < 0 else start
    if first < 0 or length < 0 or first + length > size:
        outside = not 0 <= first <= size
        raise fault(
            "E305 narrow-start-length-exceed",
            start,
            length,
            dim,
            size,
            first=first,
            outside=outside,
        )
    return first, first + length


def _narrow_shape(input, dim, start, length):
    _narrowed(input, dim, start, length)
    return (*input.shape[:dim], length, *input.shape[dim + 1 :]), input.dtype


def _narrow_copied(x, dim, start, length):
    start, end = _narrowed(x, dim, start, length)
    return x[key_of(dim, slice(start, end))].copy()


@movement(
    _narrow_copied,
    shape=_narrow_shape,
    samples=[S(t(4, 2), 0, 1, 2)],
    vjp=lambda g, out, input, dim, start, length: _embed(
        "slice", g, input, dim, *_narrowed(input, dim, start, length), 1
    ),
)
def narrow_copy(input: Tensor, dim: Dim, start: int, length: int):
    """`length` elements of a dim from `start` on, copied."""


# -- diagonals -------------------------------------------------------------------------------------


def _two_dims(name: str, input: Node, dim1: int, dim2: int) -> None:
    if input.ndim < 2 or dim1 == dim2:
        raise fault("E304 needs-two-different-dims", name, dim1, dim2, input)


def _diagonal_shape(input, offset, dim1, dim2):
    _two_dims("diagonal", input, dim1, dim2)
    shape = input.shape
    rows, columns = shape[dim1], shape[dim2]
    size = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    return (*(s for i, s in enumerate(shape) if i not in (dim1, dim2)), size), input.dtype


def _diagonal_strides(strides, input, offset, dim1, dim2):
    rest = tuple(s for i, s in enumerate(strides) if i not in (dim1, dim2))
    return (*rest, strides[dim1] + strides[dim2])


@movement(
    lambda x, offset, *dims: np.diagonal(x, within(offset, x), *dims),
    numpy="np.diagonal(input, offset, dim1, dim2)",
    view=True,
    shape=_diagonal_shape,
    strides_rule=_diagonal_strides,
    vjp=lambda g, out, input, *rest: _embed("diagonal", g, input, *rest),
    samples=[S(t(3, 3)), S(t(2, 3), offset=1), S(t(2, 3, 2), -1, 0, 2), S(t(2, 2), 5)],
    errors=[Bad("E304", t(3)), Bad("E304", t(2, 2), 0, 1, 1)],
)
def diagonal(input: Tensor, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1):
    """The diagonal of the matrices in two dims, as the last dim."""


@function(
    name="linalg.diagonal",
    samples=[S(t(3, 3)), S(t(2, 2, 3), offset=1), S(t(2, 3), dim1=1, dim2=0)],
)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: Dim = -2, dim2: Dim = -1):
    """The diagonals of the matrices in the last two dims."""
    return F.diagonal(A, offset, dim1, dim2)


@movement(
    lambda x, offset, *dims: np.diagonal(x, within(offset, x), *dims).copy(),
    numpy="np.diagonal(input, offset, dim1, dim2)",
    grad_fn="DiagonalBackward0_copy",
    method=False,
    shape=lambda input, offset, dim1, dim2: _diagonal_shape(input, offset, dim1, dim2),
    vjp=lambda g, out, input, offset, dim1, dim2: _embed("diagonal", g, input, offset, dim1, dim2),
    samples=[S(t(2, 3), 1)],
)
def diagonal_copy(input: Tensor, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1):
    """The diagonals of the matrices in two dims, copied, as the last dim."""


def _embed_dims(input, offset, dim1, dim2):
    ndim = input.ndim + 1
    dim1, dim2 = dim_in_range(dim1, ndim), dim_in_range(dim2, ndim)
    if dim1 == dim2 or not input.shape:
        raise fault("E304 diag_embed-shape-dims", input, dim1, dim2)
    return dim1, dim2


def _embed_shape(input, offset, dim1, dim2):
    dim1, dim2 = _embed_dims(input, offset, dim1, dim2)
    size = input.shape[-1] + abs(offset)
    shape = list(input.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, size)
    return tuple(shape), input.dtype


def _diag_embedded(x, offset, dim1, dim2):
    shape, _ = _embed_shape(x, offset, dim1, dim2)
    return _embedded(x, shape, (diagonal, (offset, *_embed_dims(x, offset, dim1, dim2))))


def _diag_embedded_in_jax(input, offset, dim1, dim2):
    shape, _ = _embed_shape(input, offset, dim1, dim2)
    step = diagonal, (offset, *_embed_dims(input, offset, dim1, dim2)), -1
    return written_through(f"np.zeros(shape, np.{input.dtype})", "input", shape, step)


@movement(
    _diag_embedded,
    jax=_diag_embedded_in_jax,
    numpy=lambda input, *dims: "np.diag(input)" if (input.ndim, dims) == (1, (0, -2, -1)) else None,
    shape=_embed_shape,
    vjp=lambda g, out, input, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2),
    samples=[S(t(3)), S(t(2, 3), 1), S(t(2, 2), -1, 0, 2)],
    errors=[Bad("E304", t(2), 0, 1, 1)],
)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """Matrices with the last dim of the input on a diagonal, zeros elsewhere."""


@function(
    samples=[S(t(3)), S(t(2, 3)), S(t(3, 2), -1), S(t(2), 1)], errors=[Bad("E304", t(2, 2, 2))]
)
def diag(input: Tensor, diagonal: int = 0):
    """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector."""
    if input.ndim == 1:
        return F.diag_embed(input, diagonal)
    if input.ndim != 2:
        raise fault("E304 diag-needs-vector-matrix", input)
    return F.diagonal_copy(input, diagonal)


@function(samples=[S(t(3)), S(t(2, 2), 1), S(t())])
def diagflat(input: Tensor, offset: int = 0):
    """All elements on the diagonal of a matrix."""
    return F.diag_embed(F.ravel(input), offset)


# -- windows ---------------------------------------------------------------------------------------


def _unfold_shape(input, dimension, size, step):
    shape = input.shape or (1,)
    if size < 0 or size > shape[dimension]:
        raise fault("E305 unfold-size-dim-elements", size, dimension, shape[dimension])
    if step < 1:
        raise fault("E305 unfold-step", step)
    if not input.shape:
        return (size,), input.dtype
    count = (shape[dimension] - size) // step + 1
    return (*shape[:dimension], count, *shape[dimension + 1 :], size), input.dtype


def _unfolded(x, dimension, size, step):
    if not x.ndim:
        return np.reshape(x, (1,))[:size]
    starts = range(0, x.shape[dimension] - size + 1, step)
    if size == 0:
        shape = (*x.shape[:dimension], len(starts), *x.shape[dimension + 1 :], 0)
        return np.zeros_like(x, shape=shape)
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dimension)
    return windows[key_of(dimension, slice(None, None, step))]


def _unfold_strides(strides, input, dimension, size, step):
    if not strides:
        return (1,)
    return (
        *strides[:dimension],
        strides[dimension] * step,
        *strides[dimension + 1 :],
        strides[dimension],
    )


def _windows_in_jax(shape, dimension, size, step):
    """The shape of what windows are taken of, that of all windows, and the places of their rows."""
    whole = (*shape, 1)[: max(len(shape), 1)]
    count = (whole[dimension] - size) // step + 1
    windows = (*whole[:dimension], count, *whole[dimension + 1 :], size)
    return whole, windows, f"np.arange({count})[:, None] * step + np.arange(size)"


def _unfolded_in_jax(input, dimension, size, step):
    whole, _, places = _windows_in_jax(input.shape, dimension, size, step)
    taken = f"np.take(input.reshape({whole}), {places}, dimension)"
    return f"np.moveaxis({taken}, {dimension + 1}, -1).reshape(shape)"


def _folded_in_jax(g, shape, dimension, size, step):
    whole, windows, places = _windows_in_jax(shape, dimension, size, step)
    rows = f"np.moveaxis(grad.reshape({windows}), -1, {dimension + 1})"
    zeros = f"np.zeros({whole}, grad.dtype)"
    return f"{zeros}.at[{':, ' * dimension}{places}].add({rows}).reshape(shape)"


@movement(
    _unfolded,
    jax=_unfolded_in_jax,
    view=True,
    shape=_unfold_shape,
    strides_rule=_unfold_strides,
    samples=[S(t(5), 0, 3, 1), S(t(2, 5), 1, 2, 2), S(t(2, 4), 0, 1, 1), S(t(), 0, 1, 1)],
    errors=[Bad("E305", t(3), 0, 4, 1), Bad("E305", t(3), 0, 2, 0)],
    vjp=lambda g, out, input, dimension, size, step: (
        F.unfold_backward.apply([g, input.shape, dimension, size, step]),
    ),
)
def unfold(input: Tensor, dimension: Dim, size: int, step: int):
    """All windows of `size` elements of a dim, `step` apart, as a new last dim."""


def _folded(g, shape, dimension, size, step):
    if not shape:
        return np.add.reduce(g)
    out = np.zeros_like(g, shape=shape)
    count = g.shape[dimension]
    for i in range(size):
        out[key_of(dimension, slice(i, i + (count - 1) * step + 1, step))] += g[..., i]
    return out


@movement(
    _folded,
    jax=_folded_in_jax,
    public=False,
    shape=lambda g, shape, dimension, size, step: (shape, g.dtype),
    vjp=lambda gg, out, g, shape, dimension, size, step: F.unfold(gg, dimension, size, step),
    samples=[S(t(2, 3), (4,), 0, 3, 1)],
)
def unfold_backward(grad: Tensor, shape: Any, dimension: int, size: int, step: int):
    """Each element the sum of all windows it is in: the transpose of `unfold`."""


def _strided_shape(input, size, stride, offset, within):
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=False))
    wrong = len(size) != len(stride) or min((*size, *stride, offset)) < 0
    if wrong or (last >= input.numel and 0 not in size):
        raise fault("E309 view-size", size, stride, offset, input)
    return size, input.dtype


def _strided(x, size, stride, offset, within=None):
    steps = [step * x.itemsize for step in stride]
    return np.ndarray(size, x.dtype, np.ascontiguousarray(x), offset * x.itemsize, steps)


def _places_in_jax(size, stride, offset):
    places = [str(offset)]
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        shape = [n if i == axis else 1 for i in range(len(size))]
        places.append(f"np.arange({n}).reshape({shape}) * {step}")
    return " + ".join(places)


def _shown(shape, view):
    """Which elements a view shows."""
    shown = np.zeros(shape, bool)
    shown.reshape(-1)[_strided(np.arange(shown.size), *view)] = True
    return constant(shown)


def _taken(input, size, stride, offset, within=None):
    """The elements by their numbers; only those of the view `within` have slopes."""
    numbers = np.arange(input.numel)
    if within is not None:
        input = F.where(_shown(input.shape, within), input, F.detach(input))
    return F.take(input, constant(np.array(_strided(numbers, size, stride, offset))))


@movement(
    _strided,
    jax=lambda input, size, stride, offset, within=None: (
        f"np.ravel(input)[{_places_in_jax(size, stride, offset)}]"
    ),
    key="as_strided",
    public=False,
    view=True,
    shape=_strided_shape,
    strides_rule=lambda strides, input, size, stride, offset, within: tuple(stride),
    counterpart=_taken,
    vjp=lambda g, out, input, *view: F.as_strided_backward(g, input.shape, *view),
    samples=[S(t(6), (2, 2), (3, 1), 1), S(t(2, 3), (3, 2), (1, 1), 0), S(t(4), (2,), (0,), 1)],
    errors=[Bad("E309", t(4), (3,), (2,), 0)],
)
def strided_view(input: Tensor, size: Any, stride: Any, offset: int, within: Any = None):
    """The elements at `offset` and multiples of `stride` from there, in memory order. PyTorch's
    slope is that of the elements of another view, `within` (size, stride, offset), alone."""


def _strided_back(g, shape, size, stride, offset, within):
    out = np.zeros_like(g, shape=shape, order="C")
    numbers = np.arange(out.size)
    np.add.at(out.reshape(-1), _strided(numbers, size, stride, offset), g)
    if within is not None:
        outside = np.ones(out.size, bool)
        outside[_strided(numbers, *within)] = False
        out.reshape(-1)[outside] = 0
    return out


def _strided_back_in_jax(g, shape, size, stride, offset, within):
    zeros = f"np.zeros({math.prod(shape)}, %s).at[%s]"
    text = zeros % ("grad.dtype", _places_in_jax(size, stride, offset)) + ".add(grad)"
    if within is not None:
        text = f"np.where({zeros % ('bool', _places_in_jax(*within))}.set(True), {text}, 0)"
    return f"{text}.reshape(shape)"


@opaque(
    _strided_back,
    jax=_strided_back_in_jax,
    public=False,
    shape=lambda g, shape, *view: (shape, g.dtype),
    vjp=lambda gg, out, g, shape, *view: F.as_strided(
        gg if view[-1] is None else F.where(_shown(shape, view[-1]), gg, 0.0), *view
    ),
    samples=[S(t(2, 2), (6,), (2, 2), (1, 1), 1)],
)
def as_strided_backward(
    grad: Tensor, shape: Any, size: Any, stride: Any, offset: int, within: Any = None
):
    """Each element the sum of all places that show it: the transpose of `as_strided`."""


# -- slopes between neighbours ---------------------------------------------------------------------


@function(
    method=False,
    samples=[
        S(t(4)),
        S(t(3, 4), spacing=2.0),
        S(t(3, 4), dim=1, edge_order=2),
        S(t(3), spacing=(t(3, values=[0.0, 1.0, 3.0], grad=False),)),
    ],
    errors=[Bad("E303", t(1)), Bad("E205", t(4), edge_order=3)],
    lacks="uint8: torch.gradient does not support uint8 input.",
)
def gradient(input: Tensor, *, spacing: Any = 1, dim: Ints | None = None, edge_order: int = 1):
    """Estimated slopes along dims: central differences, one-sided at the ends."""
    if edge_order not in (1, 2):
        raise fault("E205 gradient-edge_order", edge_order)
    spacing = 1 if spacing is None else spacing
    dims = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = tuple(dim_in_range(d, input.ndim) for d in dims)
    steps = tuple(spacing) if isinstance(spacing, list | tuple) else (spacing,) * len(dims)
    if len(steps) != len(dims) or len(set(dims)) < len(dims):
        raise fault("E303 gradient-along-dims-spacings", len(dims), len(steps))
    return tuple(_slopes(input, d, step, edge_order) for d, step in zip(dims, steps, strict=True))


def _slopes(x: Node, dim: int, spacing: Any, edge_order: int) -> Node:
    size = x.shape[dim] if x.shape else 0
    if size < edge_order + 1:
        raise fault("E303 gradient-along-dim-elements", dim, size, edge_order + 1)

    def at(start: int, count: int = 1) -> Node:
        return F.slice(x, dim, start, start + count, 1)

    coordinates = node_of(spacing)
    if coordinates is None or not coordinates.shape:
        step = to_scalar(spacing) if coordinates is None else coordinates
        inner, first, last = _even(at, size, step, edge_order)
    else:
        if coordinates.shape != (size,):
            raise fault("E303 gradient-coordinates-shape-dim", coordinates, dim, size)
        inner, first, last = _uneven(
            at,
            size,
            F.sub(F.slice(coordinates, 0, 1), F.slice(coordinates, 0, 0, -1)),
            edge_order,
            (-1,) + (1,) * (x.ndim - dim - 1),
        )
    return F.cat((first, inner, last), dim)


def _even(at: Any, size: int, step: Any, edge_order: int) -> tuple[Node, Node, Node]:
    over = F.div if isinstance(step, Node) else F.div_by
    inner = over(F.sub(at(2, size - 2), at(0, size - 2)), step * 2)
    if edge_order == 1:
        return (
            inner,
            over(F.sub(at(1), at(0)), step),
            over(F.sub(at(size - 1), at(size - 2)), step),
        )
    first = F.sub(F.sub(F.mul_by(at(1), 4), F.mul_by(at(0), 3)), at(2))
    last = F.sub(F.mul_by(at(size - 1), 3), F.mul_by(at(size - 2), 4))
    return inner, over(first, step * 2), over(F.add(last, at(size - 3)), step * 2)


def _uneven(
    at: Any, size: int, gaps: Node, edge_order: int, column: tuple[int, ...]
) -> tuple[Node, Node, Node]:
    before, after = (
        F.reshape(F.slice(gaps, 0, 0, -1), column),
        F.reshape(F.slice(gaps, 0, 1), column),
    )
    both = before + after
    inner = (
        at(0, size - 2) * (-after / (before * both))
        + at(1, size - 2) * ((after - before) / (before * after))
        + at(2, size - 2) * (before / (after * both))
    )
    head, tail = F.select(gaps, 0, 0), F.select(gaps, 0, -1)
    if edge_order == 1:
        return inner, (at(1) - at(0)) / head, (at(size - 1) - at(size - 2)) / tail
    second, third = F.select(gaps, 0, 1), F.select(gaps, 0, -2)
    first = (
        at(0) * (-(head * 2 + second) / (head * (head + second)))
        + at(1) * ((head + second) / (head * second))
        + at(2) * (-head / (second * (head + second)))
    )
    last = (
        at(size - 3) * (tail / (third * (third + tail)))
        + at(size - 2) * (-(tail + third) / (third * tail))
        + at(size - 1) * ((tail * 2 + third) / (tail * (third + tail)))
    )
    return inner, first, last
