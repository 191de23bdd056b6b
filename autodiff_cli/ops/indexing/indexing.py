"""Reading by index: brackets, gather, index_select, masks.

Indices are checked when the op is applied; results whose shape depends on values ask for them then.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...errors import fail, fault
from ...graph.declare import (
    Any,
    Dim,
    Mask,
    OptionalTensors,
    Tensor,
    composite,
    function,
    movement,
    opaque,
)
from ...graph.dtypes import BOOL, INT64, UINT8
from ...graph.node import Node
from ...graph.op import cast, constant, decisive, known, value_of
from ...graph.params import node_of, shown, to_tensor, type_name
from ...graph.registry import F
from ...graph.registry import op as op_of
from ...graph.samples import Bad, S, bools, ints, t
from ...graph.shapes import broadcast_shapes
from ...graph.state import grad_mode, taken_out
from ...graph.strides import broadcast_strides, contiguous_strides, packed_strides, strides_of
from ..kernels.indices import (
    advanced_key,
    check_gather,
    check_indices,
    check_mask,
    chosen_shape,
    first_indexed,
    flat_places,
    indexed_shape,
    key_text,
    places_of,
    wrapped_index,
)
from ..kernels.rules import require_dims, zeros


def _gather_shape(input, dim, index, sparse_grad=False):
    check_gather("gather", input, dim, index)
    return index.shape, input.dtype


def _gathered(x, dim, index, sparse_grad=False):
    if not index.size:
        return np.zeros_like(x, shape=index.shape)
    if not x.ndim or not index.ndim:
        return np.reshape(np.reshape(x, -1)[np.reshape(index, -1)], index.shape)
    if x.flags.c_contiguous:
        return x.reshape(-1).take(flat_places(index, dim, x.shape))
    lines = tuple(slice(None if d == dim else n) for d, n in enumerate(index.shape))
    return np.take_along_axis(x[lines], index, dim)


def _gathered_in_jax(input, dim, index, *sparse):
    if not index.shape or not input.shape:
        return "np.reshape(np.reshape(input, -1)[np.reshape(index, -1)], shape)"
    cut = ", ".join(":" if d == dim else f":{n}" for d, n in enumerate(index.shape))
    return f"np.take_along_axis(input[{cut}], index, dim)"


@movement(
    _gathered,
    jax=_gathered_in_jax,
    numpy=lambda input, dim, index, *sparse: (
        "np.take_along_axis(input, index, dim)"
        if index.shape
        and input.shape
        and all(d == dim or n == index.shape[d] for d, n in enumerate(input.shape))
        else None
    ),
    shape=_gather_shape,
    properties=frozenset({"slicewise"}),
    saves="input",
    samples=[
        S(t(3, 2), 0, ints(2, 2)),
        S(t(2, 3), 1, ints(2, 4)),
        S(t(3), 0, ints(values=1)),
        S(t(3), -1, ints(5)),
    ],
    errors=[
        Bad("E305", t(2), 0, ints(values=[2])),
        Bad("E306", t(2), 0, t(1)),
        Bad("E302", t(2, 2), 0, ints(1)),
    ],
)
def gather(input: Tensor, dim: Dim, index: Mask, *, sparse_grad: bool = False):
    """`out[i, j] = input[index[i, j], j]` along dim 0, and alike along others."""


@gather.vjp
def _(g, out, input, dim, index, sparse_grad):
    return F.scatter_add(zeros(input), dim, index, g), None


def _selected_shape(input, dim, index):
    if index.ndim > 1:
        raise fault("E302 index_select-needs-vector-indices", index)
    check_indices("index_select", index, dim, input.shape[dim] if input.shape else 1)
    if input.shape:
        return (*input.shape[:dim], index.numel, *input.shape[dim + 1 :]), input.dtype
    if index.numel != 1:
        raise fault("E302 index_select-of-number", index)
    return (), input.dtype


@movement(
    lambda x, dim, index: np.take(x, np.reshape(index, -1), dim) if x.ndim else x,
    shape=_selected_shape,
    samples=[
        S(t(3, 2), 0, ints(values=[2, 0, 2])),
        S(t(2, 3), 1, ints(2)),
        S(t(3), 0, ints(values=1)),
    ],
    errors=[
        Bad("E305", t(2), 0, ints(values=[-1])),
        Bad("E302", t(2), 0, ints(2, 2)),
        Bad("E306", t(2), 0, t(1)),
    ],
    vjp=lambda g, out, input, dim, index: (F.index_add(zeros(input), dim, index, g), None),
)
def index_select(input: Tensor, dim: Dim, index: Mask):
    """The elements `index` of a dim, repeated as the index says."""


# -- brackets --------------------------------------------------------------------------------------


@function(
    public=False,
    samples=[
        S(t(3, 2), (1,)),
        S(t(3, 2), (slice(0, 2), None, -1)),
        S(t(3), (ints(values=[2, 0]),)),
        S(t(2, 3), (..., bools(values=[True, False, True]))),
        S(t(2), ([0, 0, 1],)),
    ],
    errors=[Bad("E305", t(3), (3,)), Bad("E305", t(3), (0, 0)), Bad("E305", t(3), (1.0,))],
)
def getitem(input: Tensor, index: Any):
    """`input[index]`: ints, slices, None, `...`, bools, integer or bool tensors."""
    node, advanced = basic_part(input, index_items(index), isinstance(index, tuple))
    if advanced is not None:
        return F.index.apply([node, advanced])
    return F.whole_view(node) if node is input else node


def index_items(index: Any) -> list[Any]:
    """The parts of an index: ints, bools, slices, None, Ellipsis, nodes with dims."""
    return [_item(i) for i in (index if isinstance(index, tuple) else (index,))]


def _of_number(items: list[Any]) -> str:
    """PyTorch's words for an index of a 0-d tensor."""
    if len(items) == 1 and type(items[0]) is int:
        return (
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
        )
    if len(items) == 1 and type(items[0]) is slice:
        return "slice() cannot be applied to a 0-dim tensor."
    return "too many indices for tensor of dimension 0"


def basic_part(
    input: Node, items: list[Any], skip_whole: bool
) -> tuple[Node, tuple[Node | None, ...] | None]:
    """The view that ints, slices and Nones make, and the index tensors by dim of the view.

    `skip_whole`: slices of everything make no view, as where PyTorch assigns by index or is given
    several.
    """
    consumed = sum(_dims_of(i) for i in items)
    if consumed > input.ndim:
        if not input.ndim:
            raise fault("E305 d-tensor-no-elements", _of_number(items))
        raise fault("E305 too-many-indices", consumed, input)
    if sum(i is Ellipsis for i in items) > 1:
        raise fail("E305", "an index may have only one `...`", help="write `:` for single dims")
    node = input
    dim = source = 0
    advanced: dict[int, Node] = {}
    for item in items:
        if item is Ellipsis:
            dim += input.ndim - consumed
            source += input.ndim - consumed
        elif item is None:
            node = F.unsqueeze.apply([node, dim])
            dim += 1
        elif type(item) is bool:
            node = F.unsqueeze.apply([node, dim])
            advanced[dim] = constant(np.zeros(int(item), INT64))
            dim += 1
        elif type(item) is int:
            wrapped_index(item, source, node.shape[dim])
            node = F.select.apply([node, dim, item])
            source += 1
        elif type(item) is slice:
            if not (skip_whole and _is_whole(item, node.shape[dim])):
                node = F.slice.apply(
                    [node, dim, item.start, item.stop, 1 if item.step is None else item.step]
                )
            dim += 1
            source += 1
        else:
            for part in _as_integers(item, node, dim):
                advanced[dim] = part
                dim += 1
                source += 1
    if not advanced:
        return node, None
    return node, tuple(advanced.get(d) for d in range(max(advanced) + 1))


def _is_whole(item: slice, size: int) -> bool:
    return (
        item.start in (None, 0)
        and (item.stop is None or item.stop >= size)
        and item.step in (None, 1)
    )


def _dims_of(item: Any) -> int:
    if item is None or item is Ellipsis or type(item) is bool:
        return 0
    if type(item) is Node and item.dtype.kind in "b":
        return item.ndim
    return 1


_INDICES = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
    "indices"
)


def _item(item: Any) -> Any:
    if item is None or item is Ellipsis or type(item) is bool or type(item) is int:
        return item
    if isinstance(item, slice):
        return item
    if isinstance(item, list | tuple):
        item = to_tensor(list(item))
        item = item if item.numel else constant(np.zeros(item.shape, INT64))
    node = node_of(item)
    if node is None:
        text = isinstance(item, str)
        raise fail(
            "E305",
            f"cannot index with {shown(item)}",
            help="indices are ints, slices, None, `...`, bools and integer or bool tensors",
            notes=(
                "PyTorch: new(): invalid data type 'str'"
                if text
                else f"PyTorch: {_INDICES} (got {type_name(item)})",
            ),
            raises="TypeError" if text else "IndexError",
        )
    if node.dtype == UINT8:
        node = F.ne(node, 0)  # a mask, as long as PyTorch has it
    kind = node.dtype.kind
    if node.shape:
        if kind == "f" or (kind == "i" and node.dtype.itemsize == 1):
            raise fault("E305 cannot-index-tensor", node)
        return node
    if kind == "f":
        raise fault("E305 cannot-index-number", node, value_of(node).item())
    if kind != "b" and not known(node):
        return node
    value = value_of(node)
    return taken_out(node, bool(value) if kind == "b" else int(value))


def _as_integers(item: Node, node: Node, dim: int) -> tuple[Node, ...]:
    """Integer indices as they are, masks as the places where they are true."""
    if item.dtype != BOOL:
        check_indices("indexing", item, dim, node.shape[dim], negative=True)
        return (item,)
    return places_of(item, node, dim)


def _indexed(x, indices):
    out = x[advanced_key(indices)]
    return np.reshape(out, indexed_shape(x, indices))


def _indexed_strides(strides, input, indices):
    """In the order of dims of the tensor, where that is not indexed, and of the indices."""
    shape = indexed_shape(input, indices)
    used = [x for x in indices if x is not None]
    picked = broadcast_shapes(*(x.shape for x in used))
    rest = [s for i, s in enumerate(strides) if i >= len(indices) or indices[i] is None]
    at = first_indexed(indices)

    def placed(inside, outside):
        return (*outside[:at], *inside, *outside[at:])

    apart = [broadcast_strides(x.shape, strides_of(x), picked) for x in used]
    none = (0,) * len(rest)
    operands = [placed((0,) * len(picked), rest), *(placed(own, none) for own in apart)]
    return packed_strides(shape, operands)


@movement(
    _indexed,
    jax=lambda input, indices: f"input[{key_text(indices)}]",
    public=False,
    shape=lambda input, indices: (chosen_shape(input, indices), input.dtype),
    strides_rule=_indexed_strides,
    samples=[S(t(3, 2), (ints(values=[2, 0]),)), S(t(2, 3), (None, ints(values=[[0, 2]])))],
    counterpart=(
        "Tensor.__getitem__",
        lambda input, indices: (
            (input, tuple(slice(None) if i is None else i for i in indices)),
            {},
        ),
    ),
)
def index(input: Tensor, indices: OptionalTensors):
    """The elements at integer indices, one tensor (or None for all) for each of the first dims."""


@index.vjp
def _(g, out, input, indices):
    return F.index_written.apply([zeros(input), indices, g, True]), None


# -- other ways to choose --------------------------------------------------------------------------


def _taken_shape(input, index):
    check_indices("take", index, 0, input.numel, negative=True, long=True)
    return index.shape, input.dtype


@movement(
    lambda x, index: np.reshape(
        np.reshape(x, -1)[np.reshape(index, -1)] if index.size else np.zeros_like(x, shape=0),
        index.shape,
    ),
    shape=_taken_shape,
    samples=[S(t(2, 3), ints(4, high=6)), S(t(3), ints(values=-1)), S(t(), ints(2, high=1))],
    errors=[Bad("E305", t(2, 2), ints(values=[4])), Bad("E306", t(2), t(1))],
    vjp=lambda g, out, input, index: (F.put(zeros(input), index, g, True), None),
    saves="input",
)
def take(input: Tensor, index: Mask):
    """Elements of the tensor seen as one row."""


@function(
    samples=[S(t(3, 2), ints(1, 2), 0), S(t(3), ints(2)), S(t(2, 3), ints(2, 1), dim=1)],
    errors=[Bad("E302", t(2, 3), ints(2), 1), Bad("E305", t(2), ints(values=[2]), 0)],
)
def take_along_dim(input: Tensor, indices: Mask, dim: Dim | None = None):
    """`gather` with broadcasting of tensor and indices; without a dim of the tensor as one row."""
    if dim is None:
        return F.gather(F.reshape(input, (-1,)), 0, F.reshape(indices, (-1,)))
    if input.ndim != indices.ndim:
        raise fault("E302 take_along_dim", input, indices)
    if indices.dtype != INT64:
        raise fault("E306 needs-int64-index", "take_along_dim", indices)
    require_dims("take_along_dim", input)
    size = input.shape[dim]
    check_indices("take_along_dim", indices, dim, size, negative=True)
    indices = F.where(F.lt(indices, 0), F.add(indices, size), indices)
    whole = list(broadcast_shapes(_with(input.shape, dim, 1), _with(indices.shape, dim, 1)))
    return F.gather(
        F.broadcast_to(input, _with(whole, dim, input.shape[dim])),
        dim,
        F.broadcast_to(indices, _with(whole, dim, indices.shape[dim])),
    )


def _with(shape, dim, size):
    return (*shape[:dim], size, *shape[dim + 1 :])


def _chosen_shape(input, mask):
    check_mask("masked_select", mask)
    shape = broadcast_shapes(input.shape, mask.shape)
    count = int(np.count_nonzero(decisive("masked_select", mask)))
    return (count * prod(shape) // mask.numel if count else 0,), input.dtype


@movement(
    lambda x, mask: np.broadcast_to(x, s := np.broadcast_shapes(x.shape, mask.shape))[
        np.broadcast_to(mask, s)
    ],
    shape=_chosen_shape,
    samples=[
        S(t(2, 3), bools(2, 3)),
        S(t(2, 3), bools(values=[True, False, True])),
        S(t(), bools(values=True)),
    ],
    errors=[Bad("E306", t(2), ints(2)), Bad("E302", t(2), bools(3))],
    saves="input",
)
def masked_select(input: Tensor, mask: Mask):
    """The elements where the mask is true, as one row."""


@masked_select.vjp
def _(g, out, input, mask):
    shape = broadcast_shapes(input.shape, mask.shape)
    spread = F.masked_scatter(zeros(g, shape), mask, g)
    return F.sum_to_size(spread, input.shape), None


def _nonzero(x):
    return np.stack(np.nonzero(x)) if x.ndim else np.zeros((0, int(x != 0)), np.int64)


@opaque(
    _nonzero,
    public=False,
    shape=lambda input: ((input.ndim, int(np.count_nonzero(decisive("nonzero", input)))), INT64),
    samples=[S(ints(2, 3)), S(t(2)), S(ints(values=1))],
)
def nonzero_places(input: Tensor):
    """The indices of all elements that are not zero, a row for each dim."""


@function(samples=[S(ints(2, 3)), S(t(2)), S(ints(values=1))])
def argwhere(input: Tensor):
    """The indices of all elements that are not zero, one a row."""
    return F.permute(F.nonzero_places(input), (1, 0))


@function(samples=[S(ints(2, 3)), S(ints(3), as_tuple=True)])
def nonzero(input: Tensor, *, as_tuple: bool = False):
    """The indices of all elements that are not zero, one a row; or one tensor for each dim."""
    if as_tuple:
        return F.unbind(F.argwhere(input if input.shape else F.reshape(input, (1,))), 1)
    return F.argwhere(input)


@function(
    method=False,
    samples=[S(ints(values=[1, 5]), (2, 3))],
    errors=[Bad("E306", t(1), (2, 3)), Bad("E205", ints(1), (2, 3.0))],
)
def unravel_index(indices: Mask, shape: Any):
    """For each dim of a shape the index there of elements counted in row-major order."""
    if indices.dtype.kind not in "iu":
        raise fault("E306 needs-integer-index", "unravel_index", indices)
    sizes = tuple(shape) if isinstance(shape, tuple | list | str) else (shape,)
    others = [size for size in sizes if type(size) is not int]
    if others:
        what = "a size" if sizes[0] is shape else "sizes"
        raise fault("E205 unravel_index-ints", shown(others[0]), what, type_name(others[0]))
    if any(size < 0 for size in sizes):
        raise fault("E309 unravel_index-negative", sizes)
    apart = constant(np.array(contiguous_strides(sizes), INT64))
    places = F.floor_divide(F.unsqueeze(indices, indices.ndim), apart)
    return F.unbind(F.remainder(places, constant(np.array(sizes, INT64))), indices.ndim)


# -- rows of a table -------------------------------------------------------------------------------


def _embedding_shape(weight, input, padding_idx, scale_grad_by_freq, sparse):
    if weight.ndim != 2:
        raise fault("E302 embedding-needs-matrix-weights", weight)
    if input.dtype.kind != "i":
        raise fault("E306 needs-integer-index", "embedding", input)
    check_indices("embedding", input, 0, weight.shape[0])
    return (*input.shape, weight.shape[1]), weight.dtype


PADDED = "the padding row is a constant to PyTorch"
SCALED = "the slopes are scaled, the values are not"


@movement(
    lambda weight, input, *rest: np.take(weight, input, 0),
    grad_fn="EmbeddingBackward0",
    method=False,
    name="embedding",
    key="embedding_rows",
    properties=frozenset({"convention"}),  # of padding rows and of scaled slopes
    forward=lambda moves, out, weight, indices, *rest: F.embedding_rows(moves[0], indices),
    shape=_embedding_shape,
    samples=[
        S(t(3, 2), ints(2, 2)),
        S(t(3, 2), ints(2), 0, order=0, because=PADDED),
        S(t(3, 2), ints(values=[1, 1, 2]), -1, True, order=0, because=SCALED),
    ],
)
def _(
    weight: Tensor,
    indices: Mask,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
):
    """Rows of a matrix of weights; the row `padding_idx` gets no gradient."""


@op_of("embedding_rows").vjp
def _(g, out, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    rows = F.reshape(indices, (-1,))
    g = F.reshape(g, (indices.numel, weight.shape[1]))
    if scale_grad_by_freq and rows.numel:
        counts = np.bincount(value_of(rows), minlength=weight.shape[0])
        often = F.unsqueeze(F.index_select(constant(counts.astype(g.dtype)), 0, rows), 1)
        g = F.shared_by_frequency(g, often)
    if padding_idx >= 0:
        g = g * F.unsqueeze(cast(F.ne(rows, padding_idx), g.dtype), 1)
    return F.index_add(zeros(g, weight.shape), 0, rows, g), None


@composite(
    public=False,
    samples=[S(t(2, 3), t(2, 1), order=0, because="the value is divided, the slope is not")],
    properties=frozenset({"convention"}),
    vjp=lambda g, out, input, often: (g, None),
)
def shared_by_frequency(input: Tensor, often: Tensor):
    """The slopes of rows over how often each is read, which PyTorch forgets in their own slopes."""
    return input / often


@function(
    name="nn.functional.embedding",
    samples=[
        S(ints(2, 2), t(3, 2)),
        S(ints(3), t(3, 2), padding_idx=-3, order=0, because=PADDED),
        S(ints(2), t(3, 2), max_norm=100.0),
    ],
    errors=[Bad("E305", ints(values=[3]), t(3, 2)), Bad("E305", ints(1), t(3, 2), 3)],
)
def nn_embedding(
    input: Mask,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
):
    """Rows of a matrix of weights; rows longer than `max_norm` are shortened to it."""
    rows = weight.shape[0] if weight.shape else 0
    padding_idx = -1 if padding_idx is None else wrapped_index(padding_idx, 0, rows)
    if max_norm is not None:
        weight = F.shortened_rows(weight, input, max_norm, norm_type)
    return F.embedding_rows(weight, input, padding_idx, scale_grad_by_freq, sparse)


@function(public=False, samples=[S(t(3, 2, grad=False), ints(2, high=3), 0.5, 2.0)])
def shortened_rows(weight: Tensor, input: Mask, max_norm: float, norm_type: float):
    """A matrix whose rows `input`, where longer than `max_norm`, are cut to it: PyTorch does so in
    place and without recording it."""
    with grad_mode(False):
        fixed = F.detach(weight)  # it does not move in forward mode either
        norms = F.unsqueeze(F.vector_norm(fixed, norm_type, (1,)), 1)
        used = F.index_fill(
            zeros(weight, weight.shape[:1]), 0, cast(F.reshape(input, (-1,)), INT64), 1.0
        )
        long = F.logical_and(norms > max_norm, F.unsqueeze(used, 1) > 0)
        shortened = F.where(long, fixed * (max_norm / (norms + 1e-7)), fixed)
        owner = weight.handle and weight.handle()
        if owner is not None:
            owner.overwrite(F.with_value(weight, shortened))
            return owner.node
    return F.with_value(weight, shortened)
