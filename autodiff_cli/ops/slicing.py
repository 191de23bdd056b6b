"""Views of a part of one tensor: slices, rows, diagonals, sliding windows.

All are NumPy views too, so one op, `embedded`, is the transpose of every one of them.
"""

from __future__ import annotations

import numpy as np

from ..errors import fail
from ..graph.declare import Any, Dim, Tensor, function, movement
from ..graph.indices import key_of, wrapped_index
from ..graph.node import Node
from ..graph.op import shape_text
from ..graph.params import dim_in_range
from ..graph.registry import F
from ..graph.registry import op as op_of
from ..graph.samples import Bad, S, t


def _embedded(value, shape, step):
    op, rest = step
    out = np.zeros_like(value, shape=shape)
    place = op.kernel(out, *rest)
    place.flags.writeable = True  # NumPy protects diagonals; `out` is ours
    place[...] = value
    return out


@movement(_embedded, method=False, shape=lambda value, shape, step: (shape, value.dtype),
          vjp=lambda g, out, value, shape, step: step[0].apply([g, *step[1]]))
def embedded(value: Tensor, shape: Any, step: Any):
    """Zeros of a shape with `value` where the view `step`, an op and its arguments, looks."""


def _embed(key: str, g: Node, input: Node, *rest: Any) -> Node:
    return F.embedded.apply([g, input.shape, (op_of(key), rest)])


# -- slices and rows ---------------------------------------------------------------------------------


def no_dims(name: str) -> Exception:
    return fail("E304", f"{name} needs a tensor with dims, this one is 0-d", help="a 0-d tensor is one number")


def _slice_shape(input, dim, start, end, step):
    shape = input.shape
    if not shape:
        raise no_dims("slice")
    if step < 1:
        raise fail("E305", f"slice step must be positive, got {step}",
                   help="use `.flip(dim)` to reverse a dim")
    size = len(range(shape[dim])[start:end:step])
    return (*shape[:dim], size, *shape[dim + 1 :]), input.dtype


@movement(lambda x, dim, start, end, step: x[key_of(dim, slice(start, end, step))], key="slice", view=True,
          method=False, shape=_slice_shape,
          strides_rule=lambda strides, input, dim, start, end, step: (
              *strides[:dim], strides[dim] * step, *strides[dim + 1 :]),
          vjp=lambda g, out, input, *rest: _embed("slice", g, input, *rest),
          samples=[S(t(4, 2), 0, 1, 3), S(t(2, 5), 1, None, None, 2), S(t(3), 0, -2)],
          errors=[Bad("E305", t(3), 0, 0, 3, 0)])
def slice_(input: Tensor, dim: Dim = 0, start: int | None = None, end: int | None = None, step: int = 1):
    """Elements `start:end:step` of a dim."""


def _select_shape(input, dim, index):
    shape = input.shape
    if not shape:
        raise no_dims("select")
    wrapped_index(index, dim, shape[dim])
    return (*shape[:dim], *shape[dim + 1 :]), input.dtype


@movement(lambda x, dim, index: x[(*key_of(dim, index), Ellipsis)], view=True, shape=_select_shape,
          strides_rule=lambda strides, input, dim, index: (*strides[:dim], *strides[dim + 1 :]),
          vjp=lambda g, out, input, *rest: _embed("select", g, input, *rest),
          samples=[S(t(3, 2), 0, 1), S(t(3, 2), -1, -2), S(t(3), 0, 2)],
          errors=[Bad("E305", t(3, 2), 0, 3), Bad("E304", t(), 0, 0)])
def select(input: Tensor, dim: Dim, index: int):
    """Element `index` of a dim, without that dim."""


@function(aliases=["narrow_copy"], samples=[S(t(4, 2), 0, 1, 2), S(t(2, 3), -1, -2, 2), S(t(3), 0, 3, 0)],
          errors=[Bad("E305", t(3), 0, 2, 2), Bad("E305", t(3), 0, 0, -1), Bad("E304", t(), 0, 0, 1)])
def narrow(input: Tensor, dim: Dim, start: int, length: int):
    """`length` elements of a dim from `start` on."""
    if not input.shape:
        raise no_dims("narrow")
    size = input.shape[dim]
    if not -size <= start <= size or length < 0 or (start % size if start < 0 else start) + length > size:
        raise fail("E305", f"narrow: start {start} and length {length} exceed dim {dim} with {size} elements",
                   help="start + length may be at most the size of the dim")
    start = start + size if start < 0 else start
    return F.slice.apply([input, dim, start, start + length, 1])


# -- diagonals ---------------------------------------------------------------------------------------


def _two_dims(name: str, input: Node, dim1: int, dim2: int) -> None:
    if input.ndim < 2 or dim1 == dim2:
        raise fail("E304", f"{name} needs two different dims, got {dim1} and {dim2} of shape "
                   f"{shape_text(input.shape)}", help="the tensor needs at least two dims")


def _diagonal_shape(input, offset, dim1, dim2):
    _two_dims("diagonal", input, dim1, dim2)
    shape = input.shape
    rows, columns = shape[dim1], shape[dim2]
    size = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    return (*(s for i, s in enumerate(shape) if i not in (dim1, dim2)), size), input.dtype


def _diagonal_strides(strides, input, offset, dim1, dim2):
    rest = tuple(s for i, s in enumerate(strides) if i not in (dim1, dim2))
    return (*rest, strides[dim1] + strides[dim2])


@movement(np.diagonal, view=True, shape=_diagonal_shape, strides_rule=_diagonal_strides,
          vjp=lambda g, out, input, *rest: _embed("diagonal", g, input, *rest),
          samples=[S(t(3, 3)), S(t(2, 3), offset=1), S(t(2, 3, 2), -1, 0, 2), S(t(2, 2), 5)],
          errors=[Bad("E304", t(3)), Bad("E304", t(2, 2), 0, 1, 1)])
def diagonal(input: Tensor, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1):
    """The diagonal of the matrices in two dims, as the last dim."""


@function(name="linalg.diagonal", key="linalg_diagonal", method=False,
          samples=[S(t(3, 3)), S(t(2, 2, 3), offset=1), S(t(2, 3), dim1=1, dim2=0)])
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: Dim = -2, dim2: Dim = -1):
    """The diagonals of the matrices in the last two dims."""
    return F.diagonal(A, offset, dim1, dim2)


@movement(lambda x, offset: np.diagonal(x, offset).copy(), grad_fn="DiagonalBackward0_copy", method=False,
          shape=lambda input, offset: _diagonal_shape(input, offset, 0, 1),
          vjp=lambda g, out, input, offset: _embed("diagonal", g, input, offset, 0, 1), samples=[S(t(2, 3), 1)])
def diagonal_copy(input: Tensor, offset: int = 0):
    """The diagonal of a matrix, copied."""


def _embed_dims(input, offset, dim1, dim2):
    ndim = input.ndim + 1
    dim1, dim2 = dim_in_range(dim1, ndim), dim_in_range(dim2, ndim)
    if dim1 == dim2 or not input.shape:
        raise fail("E304", f"diag_embed of shape {shape_text(input.shape)} to dims {dim1} and {dim2}",
                   help="the tensor needs at least one dim and dim1 and dim2 must differ")
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
    return _embedded(x, shape, (op_of("diagonal"), (offset, *_embed_dims(x, offset, dim1, dim2))))


@movement(_diag_embedded, shape=_embed_shape,
          vjp=lambda g, out, input, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2),
          samples=[S(t(3)), S(t(2, 3), 1), S(t(2, 2), -1, 0, 2)], errors=[Bad("E304", t(2), 0, 1, 1)])
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """Matrices with the last dim of the input on a diagonal, zeros elsewhere."""


@function(samples=[S(t(3)), S(t(2, 3)), S(t(3, 2), -1), S(t(2), 1)], errors=[Bad("E304", t(2, 2, 2))])
def diag(input: Tensor, diagonal: int = 0):
    """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector."""
    if input.ndim == 1:
        return F.diag_embed(input, diagonal)
    if input.ndim != 2:
        raise fail("E304", f"diag needs a vector or a matrix, got shape {shape_text(input.shape)}",
                   help="use `diagonal` or `diag_embed` for batches")
    return F.diagonal_copy(input, diagonal)


@function(samples=[S(t(3)), S(t(2, 2), 1), S(t())])
def diagflat(input: Tensor, offset: int = 0):
    """All elements on the diagonal of a matrix."""
    return F.diag_embed(F.ravel(input), offset)


# -- windows -----------------------------------------------------------------------------------------


def _unfold_shape(input, dimension, size, step):
    shape = input.shape or (1,)
    if size < 0 or size > shape[dimension]:
        raise fail("E305", f"unfold of size {size} from dim {dimension} with {shape[dimension]} elements",
                   help="the window may be at most as long as the dim")
    if step < 1:
        raise fail("E305", f"unfold needs a positive step, got {step}", help="use `step=1`")
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
    return (*strides[:dimension], strides[dimension] * step, *strides[dimension + 1 :], strides[dimension])


@movement(_unfolded, view=True, shape=_unfold_shape, strides_rule=_unfold_strides,
          samples=[S(t(5), 0, 3, 1), S(t(2, 5), 1, 2, 2), S(t(2, 4), 0, 1, 1), S(t(), 0, 1, 1)],
          errors=[Bad("E305", t(3), 0, 4, 1), Bad("E305", t(3), 0, 2, 0)])
def unfold(input: Tensor, dimension: Dim, size: int, step: int):
    """All windows of `size` elements of a dim, `step` apart, as a new last dim."""


@unfold.vjp
def _(g, out, input, dimension, size, step):
    return (F.unfold_backward.apply([g, input.shape, dimension, size, step]),)


def _folded(g, shape, dimension, size, step):
    if not shape:
        return np.add.reduce(g, axis=0)
    out = np.zeros_like(g, shape=shape)
    count = g.shape[dimension]
    for i in range(size):
        out[key_of(dimension, slice(i, i + (count - 1) * step + 1, step))] += g[..., i]
    return out


@movement(_folded, method=False, shape=lambda g, shape, dimension, size, step: (shape, g.dtype),
          vjp=lambda gg, out, g, shape, dimension, size, step: F.unfold(gg, dimension, size, step))
def unfold_backward(grad: Tensor, shape: Any, dimension: int, size: int, step: int):
    """Each element the sum of all windows it is in: the transpose of `unfold`."""
