"""How single ops take a batch of examples in dim 0: one rule for each kind of op, or for its key.

A rule gets the trace and the node for one example and returns the node (a tuple of nodes, of an op
with several results) for all; None where it does not apply, then the op runs example by example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...graph.kinds import Kind
from ...graph.node import Node
from ...graph.op import Op, cast
from ...graph.registry import F
from ...graph.strides import strides_of, view_strides
from ...ops.kernels.matrices import is_vector
from ...ops.kernels.rules import flat
from .indexing import aligned, embedding, index, index_written
from .views import copy_slices, embedded, shifted

if TYPE_CHECKING:
    from .examples import Trace

Rule = Callable[["Trace", Node], Any]


def rule_of(op: Op) -> Rule | None:
    """The rule of an op, by its key or its kind."""
    found = RULES.get(op.key)
    if found is None:
        if op.kind is Kind.POINTWISE:
            return _pointwise
        if op.kind is Kind.REDUCTION:
            return _reduction
    return found


def _restored(trace: Trace, node: Node, result: Node) -> Node:
    """A result in the shape it must have."""
    shape = (trace.size, *node.shape)
    return result if result.shape == shape else F.reshape(result, shape)


# -- kinds -----------------------------------------------------------------------------------------


def _pointwise(trace: Trace, node: Node) -> Any:
    ndim = max(x.ndim for x in node.inputs)
    args = list(node.args)
    for at in node.op.tensor_params:
        x = args[at]
        found = None if x is None else trace.memo.get(x)
        if found is not None:
            args[at] = aligned(found, x.ndim, ndim)
    return node.op.apply(args)


def _masked_fill(trace: Trace, node: Node) -> Any:
    input, mask, value = node.args
    if value not in trace.memo:
        return _pointwise(trace, node)
    ndim = node.ndim
    x, chosen, new = (aligned(trace.full(n), n.ndim, ndim) for n in (input, mask, value))
    return F.where(chosen, cast(new, x.dtype), x)


def _filled(trace: Trace, node: Node) -> Any:
    return _copy_over(trace, node) if node.args[1] in trace.memo else _pointwise(trace, node)


def _with_dims(trace: Trace, x: Node) -> Node:
    """All examples; those without dims get one."""
    found = trace.full(x)
    return found if x.shape else F.reshape(found, (trace.size, 1))


def _reduction(trace: Trace, node: Node) -> Any:
    input, dim, *rest = node.args
    dims = tuple(d + 1 for d in dim) if dim else tuple(range(1, max(input.ndim, 1) + 1))
    result = node.op.apply([_with_dims(trace, input), dims, *rest])
    return _restored(trace, node, result)


def _one_dim(trace: Trace, node: Node) -> Any:
    """Reductions over one dim or all elements: `prod`, `argmax`."""
    input, dim, *rest = node.args
    x = _with_dims(trace, input)
    if dim is None:
        x = F.reshape(x, (trace.size, input.numel))
    result = node.op.apply([x, (dim or 0) + 1, *rest])
    return _restored(trace, node, result)


# -- dims counted from the front -------------------------------------------------------------------


def _by_dim(trace: Trace, node: Node) -> Any:
    """Ops that name the dims they work along; all their tensors are batches."""
    op = node.op
    args = shifted(op, list(node.args))
    for at in op.tensor_params:
        if args[at] is not None:
            args[at] = _with_dims(trace, args[at])
    result = op.apply(args)
    return result if type(result) is tuple else _restored(trace, node, result)


def _first_by_dim(trace: Trace, node: Node) -> Any:
    """The same where only the first tensor may be a batch, the rest is an index of a dim."""
    if any(x in trace.memo for x in node.inputs[1:]) or not node.inputs[0].shape:
        return None
    args = shifted(node.op, list(node.args))
    args[0] = trace.full(args[0])
    return node.op.apply(args)


def _sourced_by_dim(trace: Trace, node: Node) -> Any:
    """`index_add` and its kin: input and source are batches, the index is not."""
    input, dim, index, source, *rest = node.args
    if index in trace.memo or not input.shape or not source.shape:
        return None
    return node.op.apply([trace.full(input), dim + 1, index, trace.full(source), *rest])


# -- dims counted from the end ---------------------------------------------------------------------


def _from_the_end(trace: Trace, node: Node) -> Any:
    """Ops that take any dims in front of those they work on."""
    args = list(node.args)
    ndim = max(x.ndim for x in node.inputs)
    for at in node.op.tensor_params:
        x = args[at]
        if x is not None and (x in trace.memo or len(node.inputs) == 1):
            args[at] = aligned(trace.full(x), x.ndim, ndim)
    return node.op.apply(args)


def _as_it_is(trace: Trace, node: Node) -> Any:
    """Ops of whole tensors that do not look at dims."""
    args = list(node.args)
    for at in node.op.tensor_params:
        if args[at] is not None:
            args[at] = trace.full(args[at])
    return node.op.apply(args)


def _solve(trace: Trace, node: Node) -> Any:
    a, b, *rest = node.args
    vector = is_vector(a, b)
    right = trace.full(b)
    if vector:
        right = F.unsqueeze(right, right.ndim)
    ndim = max(a.ndim, b.ndim)
    left = aligned(trace.full(a), a.ndim, ndim)
    results = node.op.apply([left, aligned(right, b.ndim + vector, ndim), *rest])
    shapes = [(trace.size, *shape) for shape, _ in node.outputs or ()]
    return tuple(F.reshape(r, shape) for r, shape in zip(results, shapes, strict=True))


def _matmul(trace: Trace, node: Node) -> Any:
    a, b = node.args
    left, right = trace.memo.get(a), trace.memo.get(b)
    if right is None and b.ndim <= 2 and left is not None:
        return F.matmul(left, b)
    if left is None and right is not None and b.ndim == 1 and a.ndim <= 2:
        return F.matmul(right, a if a.ndim == 1 else F.transpose(a, 0, 1))
    lead = max(a.ndim, b.ndim, 2) - 2
    product = F.matmul(_matrices(a, left, lead, True), _matrices(b, right, lead, False))
    return _restored(trace, node, product)


def _matrices(x: Node, batch: Node | None, lead: int, row: bool) -> Node:
    shape = x.shape if x.ndim > 1 else (1, *x.shape) if row else (*x.shape, 1)
    if batch is None:
        return x if shape == x.shape else F.reshape(x, shape)
    full = (batch.shape[0], *(1,) * (lead + 2 - len(shape)), *shape)
    return batch if full == batch.shape else F.reshape(batch, full)


# -- shapes ----------------------------------------------------------------------------------------


def _reshaped(trace: Trace, node: Node) -> Any:
    reshape = F.unsafe_view if node.grad_name == "UnsafeViewBackward0" else F.reshape
    return reshape(trace.full(node.args[0]), (trace.size, *node.shape))


def _squeezed(trace: Trace, node: Node) -> Any:
    x, dims, _ = node.args
    if dims is None:
        return _reshaped(trace, node)
    return F.squeezed(trace.full(x), tuple(d + 1 for d in dims), 2)


def _viewed(trace: Trace, node: Node) -> Any:
    x, size = trace.full(node.args[0]), (trace.size, *node.shape)
    fits = view_strides(x.shape, strides_of(x), size) is not None
    return F.view(x, size) if fits else F.reshape(x, size)


def _expanded(trace: Trace, node: Node) -> Any:
    x = node.args[0]
    return F.expand(aligned(trace.full(x), x.ndim, node.ndim), (trace.size, *node.shape))


def _summed_to(trace: Trace, node: Node) -> Any:
    x, size = node.args
    lead = x.ndim - len(size)
    return _restored(trace, node, F.sum_to_size(trace.full(x), (trace.size, *(1,) * lead, *size)))


def _permuted(trace: Trace, node: Node) -> Any:
    input, dims = node.args
    return F.permute(trace.full(input), (0, *(d + 1 for d in dims)))


def _transposed(trace: Trace, node: Node) -> Any:
    x = trace.full(node.args[0])
    if node.op.key == "t":
        return x if node.ndim < 2 else F.transpose(x, 1, 2)
    return x if not node.shape else F.transpose(x, node.args[1] + 1, node.args[2] + 1)


def _joined(trace: Trace, node: Node) -> Any:
    tensors, dim = node.args
    return node.op.apply([tuple(map(trace.full, tensors)), dim + 1 if dim >= 0 else dim])


def _concatenated(trace: Trace, node: Node) -> Any:
    tensors, dim = node.args
    kept = tuple(x for x in tensors if x.shape != (0,) or node.ndim == 1)
    return F.cat(tuple(map(trace.full, kept)), dim + 1 if dim >= 0 else dim)


def _diag_embed(trace: Trace, node: Node) -> Any:
    input, offset, *dims = node.args
    return F.diag_embed(trace.full(input), offset, *(d + 1 if d >= 0 else d for d in dims))


def _copy_over(trace: Trace, node: Node) -> Any:
    input, src = node.args[:2]
    new = trace.memo.get(src)
    new = src if new is None else aligned(new, src.ndim, input.ndim)
    return F.copy_over.apply([trace.full(input), new, False])


# -- pictures --------------------------------------------------------------------------------------


def _convolved(trace: Trace, node: Node) -> Any:
    """All examples in the dim of the batch that a convolution has already."""
    x, weight, *rest = node.args
    if weight in trace.memo:
        return None
    batch = trace.full(x)
    folded = F.reshape(batch, (trace.size * x.shape[0], *x.shape[1:]))
    return F.reshape(node.op.apply([folded, weight, *rest]), (trace.size, *node.shape))


def _all(rule: Rule, keys: str) -> dict[str, Rule]:
    return dict.fromkeys(keys.split(), rule)


RULES: dict[str, Rule] = {
    "depends": lambda trace, node: flat(
        trace.full(node.args[0]), trace.memo.get(node.args[1], node.args[1]), node.grad_name
    ),
    "masked_written": _masked_fill,
    "filled_with": _filled,
    **_all(_one_dim, "prod argmax argmin"),
    **_all(
        _by_dim,
        "unsqueeze slice select narrow_copy unbind split split_with_sizes unsafe_split "
        "unsafe_split_with_sizes diagonal flip rot90 gather unfold cumsum cumprod logcumsumexp "
        "cummax_index cummin_index recurrence argsort scatter_add scatter_tensor scatter_value "
        "scatter_combined scatter_reduce",
    ),
    **_all(_first_by_dim, "index_fill_number index_select"),
    **_all(_sourced_by_dim, "index_add index_copy index_reduce"),
    **_all(
        _from_the_end,
        "tril triu constant_pad_nd im2col col2im max_windows max_window_indices resample "
        "resample_adjoint cholesky_factor cholesky_inverse cholesky_solve lu_factor_raw inv_raw "
        "det slogdet cofactors cofactors_slope matrix_exp power_zero linalg_qr linalg_svd svdvals "
        "eigh eigvalsh "
        "solve_triangular",
    ),
    **_all(
        _as_it_is,
        "detach data_alias alias whole_view with_value dense_copy clone view_dtype drawn "
        "frexp rrelu_with_noise",
    ),
    "solve_raw": _solve,
    **_all(_matmul, "matmul bmm"),
    "view": _viewed,
    **_all(_reshaped, "reshape_alias unsafe_view unshared_view"),
    "squeezed": _squeezed,
    "expand": _expanded,
    "summed_to": _summed_to,
    "permute": _permuted,
    **_all(_transposed, "transpose t"),
    "stack": _joined,
    "cat": _concatenated,
    "diag_embed": _diag_embed,
    "cast": lambda trace, node: cast(trace.full(node.args[0]), node.dtype),
    **_all(_copy_over, "copy_over fill_over"),
    "copy_slices": copy_slices,
    "embedded": embedded,
    "index": index,
    "index_written": index_written,
    "embedding_rows": embedding,
    **_all(_convolved, "convolve convolve_input"),
}
