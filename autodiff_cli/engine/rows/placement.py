"""Where the rows of a blocked array are after each op.

Arrays are cut along one axis, the rows (columns, where a row is more than a block). A placement
`(axis, times)` says that `axis` has `times` elements for each row; None, that an array has no rows
and is whole. The rule of an op says, from the placements of its operands, that of the result, how
results of blocks are combined where the rows are summed over, and in which placement it reads each
operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from ...errors import AutodiffError, fault
from ...graph.kinds import Kind
from ...graph.node import Node
from ...graph.sizes import shape_text
from ..fused.groups import reduced_dims

TAKEN = "taken"

Placement = tuple[int, int]
Places = Sequence[Placement | None]


def along(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    """The index of a part of an axis."""
    return (*(slice(None),) * axis, slice(start, stop))


class Placed(NamedTuple):
    """The placement of a result, how blocks are combined (a ufunc's name, or `TAKEN` out of them)
    where it has none, and the placements in which operands are read."""

    rows: Placement | None
    combine: str
    reads: Places


def placed(node: Node, at: Places, total: int) -> Placed:
    """What becomes of rows in one op, of whose operands at least one has rows.

    Raises:
        AutodiffError: E606 when the op mixes rows of different blocks.
    """
    op = node.op
    rule = RULES.get(op.key)
    if rule is None:
        rule = next((by for mark, by in MARKED if mark in op.properties), None)
    if rule is None:
        rule = _KINDS.get(op.kind)
    found = None if rule is None else rule(node, at, total)
    if found is None:
        raise mixed(node, at)
    return found


def mixed(node: Node, at: Places) -> AutodiffError:
    """E606: an op that looks at rows of several blocks at once."""
    operand, axis = next((x, p[0]) for x, p in zip(node.inputs, at, strict=True) if p is not None)
    return fault("E606 op-mixes-rows", shape_text(operand.shape), op=node.op.name, axis=axis)


# -- element by element ------------------------------------------------------------------------


def aligned(node: Node, at: Places, total: int) -> Placed | None:
    """Broadcasting: the rows are where they are in any operand, counted from the last axis."""
    found = {(p[0] + node.ndim - x.ndim, p[1]) for x, p in zip(node.inputs, at, strict=True) if p}
    if len(found) != 1:
        return None
    return Placed(rows := found.pop(), "", [read(x, node, rows) for x in node.inputs])


def read(x: Node, node: Node, rows: Placement) -> Placement | None:
    """Where the rows of an operand are that is broadcast to a result with rows there."""
    axis = rows[0] - node.ndim + x.ndim
    return None if axis < 0 or x.shape[axis] != node.shape[rows[0]] else (axis, rows[1])


def _common(at: Places) -> Placement | None:
    """The placement of all operands that have rows, if it is one."""
    found = {p for p in at if p is not None}
    return found.pop() if len(found) == 1 else None


def _without(gone: Iterable[int], rows: Placement) -> Placement:
    """Where the rows are after other axes are gone."""
    return rows[0] - sum(d < rows[0] for d in gone), rows[1]


def _like_first(node: Node, at: Places, total: int) -> Placed | None:
    """The result has the rows of the first operand, and those after it have none."""
    return Placed(at[0], "", at) if at[0] and not any(at[1:]) else None


# -- sums, and what else combines blocks -------------------------------------------------------

COMBINED = {
    "sum": "add", "count_nonzero": "add", "amax": "maximum", "amin": "minimum",
    "all": "logical_and", "any": "logical_or", "prod": "multiply",
}  # fmt: skip


def _reduced(node: Node, at: Places, total: int) -> Placed | None:
    (rows,) = at
    assert rows is not None
    operand = node.inputs[0]
    dims = reduced_dims(node)
    if rows[0] in dims:
        return Placed(None, COMBINED[node.op.key], at)
    return Placed(_without(() if node.ndim == operand.ndim else dims, rows), "", at)


def _summed_to(node: Node, at: Places, total: int) -> Placed | None:
    (rows,) = at
    assert rows is not None
    axis = rows[0] - node.inputs[0].ndim + node.ndim
    if axis < 0 or node.shape[axis] != node.inputs[0].shape[rows[0]]:
        return Placed(None, "add", at)
    return Placed((axis, rows[1]), "", at)


def _product(node: Node, at: Places, total: int) -> Placed | None:
    """`x @ y` of vectors, matrices and batches of them."""
    x, y = node.inputs
    inner = (x.ndim - 1, max(y.ndim - 2, 0))
    results: set[Placement | None] = set()
    for which, (operand, rows) in enumerate(zip((x, y), at, strict=True)):
        if rows is None:
            continue
        axis, times = rows
        if axis == inner[which]:
            results.add(None)
        elif which == 0 and axis == x.ndim - 2:
            results.add((node.ndim - 1 - (y.ndim > 1), times))
        elif which == 1 and axis == y.ndim - 1:
            results.add((node.ndim - 1, times))
        else:  # of a batch
            results.add((axis + max(x.ndim, y.ndim) - operand.ndim, times))
    if len(results) != 1:
        return None
    rows = results.pop()
    if rows is None:
        times = next(p[1] for p in at if p)
        return Placed(None, "add", [(axis, times) for axis in inner])
    reads = list(at)
    batched = rows[0] < max(x.ndim, y.ndim) - 2
    for which, operand in enumerate((x, y)):
        axis = rows[0] - max(x.ndim, y.ndim) + operand.ndim
        if batched and reads[which] is None and axis >= 0 and operand.shape[axis] > 1:
            reads[which] = (axis, rows[1])
    return Placed(rows, "", reads)


# -- axes that are moved, joined, split --------------------------------------------------------


def _viewed(node: Node, at: Places, total: int) -> Placed | None:
    """The rows, with the axes after them, stay a group of axes."""
    (rows,) = at
    assert rows is not None
    before = prod(node.inputs[0].shape[: rows[0]])
    for axis, size in enumerate(node.shape):
        if prod(node.shape[:axis]) == before and size % total == 0 and size:
            return Placed((axis, size // total), "", at)
    return None


def _permuted(node: Node, at: Places, total: int) -> Placed | None:
    rows = at[0]
    assert rows is not None
    dims = list(range(node.ndim))
    if node.op.key == "permute":
        dims = list(node.args[1])
    elif node.op.key == "transpose":
        a, b = node.args[1:]
        dims[a], dims[b] = b, a
    else:
        dims.reverse()
    return Placed((dims.index(rows[0]), rows[1]), "", at)


def _shifted(by: int) -> Rule:
    """Along `dim`, which is another axis than the rows; `by` axes are added there."""

    def rule(node: Node, at: Places, total: int) -> Placed | None:
        (rows,) = at
        assert rows is not None
        dim = node.args[node.op.index["dim"]]
        if dim is None or (dim == rows[0] and by < 1):
            return None
        moved = dim <= rows[0]
        ndim = len(node.outputs[0][0]) if node.outputs else node.ndim
        change = by if ndim != node.inputs[0].ndim else 0
        return Placed((rows[0] + change * moved, rows[1]), "", at)

    return rule


def _beside(*names: str) -> Rule:
    """Axes that the arguments of these names list are not the rows, and all axes stay."""

    def rule(node: Node, at: Places, total: int) -> Placed | None:
        given = [node.args[node.op.index[name]] for name in names]
        dims = [d for dim in given for d in (dim if type(dim) is tuple else (dim,))]
        (rows,) = at
        assert rows is not None
        if not dims or None in dims or rows[0] in dims:
            return None
        return Placed(rows, "", at)

    return rule


def _squeezed(node: Node, at: Places, total: int) -> Placed | None:
    rows = at[0]
    assert rows is not None
    shape = node.inputs[0].shape
    dims = range(len(shape)) if node.args[1] is None else node.args[1]
    gone = [d for d in dims if shape[d] == 1]
    if rows[0] in gone:
        return None
    return Placed(_without(gone, rows), "", at)


def _sliced(node: Node, at: Places, total: int) -> Placed | None:
    return (
        Placed(at[0], "", at) if at[0] and (node.args[1] != at[0][0] or _is_whole(node)) else None
    )


def _is_whole(node: Node) -> bool:
    """Whether a part that no indices choose is all there is."""
    return node.shape == node.inputs[0].shape and len(node.inputs) == 1


def _joined(node: Node, at: Places, total: int) -> Placed | None:
    """`cat` and `stack` along another axis than the rows."""
    rows = _common(at)
    dim, stacked = node.args[1] % node.ndim, node.op.key == "stack"
    if rows is None or (dim == rows[0] and not stacked):
        return None
    axis, times = rows
    reads = [(axis, times) if x.ndim > axis else None for x in node.inputs]
    return Placed((axis + (stacked and dim <= axis), times), "", reads)


def _padded(node: Node, at: Places, total: int) -> Placed | None:
    rows, pad = at[0], node.args[1]
    first = node.ndim - len(pad) // 2
    touched = rows is not None and rows[0] >= first
    if touched and rows is not None:
        place = 2 * (node.ndim - 1 - rows[0])
        touched = any(pad[place : place + 2])
    return None if rows is None or touched else Placed(rows, "", at)


def _of_matrices(node: Node, at: Places, total: int) -> Placed | None:
    """Rows are an axis of the batch of matrices."""
    same = len({x.ndim for x in node.inputs}) == 1
    rows = _common(at) if same else None
    if rows is None or rows[0] >= node.inputs[0].ndim - 2:
        return None
    return Placed(rows, "", [rows] * len(at))


def _diagonals(node: Node, at: Places, total: int) -> Placed | None:
    (rows,), dims = at, node.args[2:]
    assert rows is not None
    return None if rows[0] in dims else Placed(_without(dims, rows), "", at)


# -- rows chosen by numbers --------------------------------------------------------------------


def _picked(node: Node, at: Places, total: int) -> Placed | None:
    """`gather` and `scatter`: all operands are cut where the rows are."""
    rows = _common(at)
    if rows is None or rows[0] == node.args[1]:
        return None
    return Placed(rows, "", [rows] * len(at))


def _or_taken(beside: Rule) -> Rule:
    """The rule for other axes than the rows; along those, the chosen rows leave their blocks."""

    def rule(node: Node, at: Places, total: int) -> Placed | None:
        dim = node.args[1]
        if type(dim) is tuple:  # indices of all axes: of the first one alone
            dim = 0 if len(node.inputs) == 2 and dim[0] is not None else None
        if at[0] is not None and not any(at[1:]) and at[0] == (dim, 1) and not _is_whole(node):
            return Placed(None, TAKEN, at)
        return beside(node, at, total)

    return rule


def taken(node: Node, numbers: np.ndarray | None, total: int) -> np.ndarray:
    """The numbers of the rows that a node takes, by indices where it has them."""
    if numbers is not None:
        return numbers % total
    rows = range(total)
    if node.op.key == "select":
        return np.asarray(rows[node.args[2]])
    chosen = rows[slice(*node.args[2:])]
    return np.arange(chosen.start, chosen.stop, chosen.step)


def _looked_up(node: Node, at: Places, total: int) -> Placed | None:
    """Rows of a whole table by numbers that are blocked."""
    table, numbers = at[0], at[1]
    if table is not None or numbers is None:
        return None
    return Placed(numbers, "", at)


def _selected(node: Node, at: Places, total: int) -> Placed | None:
    dim = node.args[1]
    if at[0] is None:
        return None if at[1] is None else Placed((dim, at[1][1]), "", at)
    return Placed(at[0], "", at) if at[1] is None and at[0][0] != dim else None


def _indexed(node: Node, at: Places, total: int) -> Placed | None:
    """`x[i]`: a whole table by a blocked index, or blocked rows by indices of later axes."""
    indices = node.args[1]
    rows = at[0]
    if rows is None:
        first = indices[0] if len(node.inputs) == 2 else None
        return None if first is None else Placed(at[1], "", at)
    if rows[0] == 0 and indices[0] is None and not any(at[1:]):
        return Placed(rows, "", at)
    return None


def _added_rows(node: Node, at: Places, total: int) -> Placed | None:
    """The adjoint of looking up: rows added to a whole table, which blocks begin with zeros."""
    rows = _numbered(at)
    if rows is None or not node.args[-1] or node.args[1][0] is None:
        return None
    _, numbers, values = node.inputs
    if values.shape[: numbers.ndim] != numbers.shape:
        return None
    return Placed(None, "begun", [None, rows, rows])


def _added(node: Node, at: Places, total: int) -> Placed | None:
    """The same of `index_add`, along the first axis."""
    rows = _numbered(at)
    if rows is None or node.args[1] != 0 or node.args[4] != 1:
        return None
    return Placed(None, "begun", [None, rows, rows])


def _numbered(at: Places) -> Placement | None:
    """The rows of one array of numbers and of the values that it places in a whole table."""
    if at[0] is not None or at[1] is None or len(at) != 3:
        return None
    return _common(at)


def _embedded(node: Node, at: Places, total: int) -> Placed | None:
    """The adjoint of a view that leaves the rows as they are."""
    rows = at[0]
    _, shape, (op, rest) = node.args
    for axis, size in enumerate(shape):
        if rows is None or size != total * rows[1]:
            continue
        probe = Node(
            op, (base := _bare(shape, node), *rest), (base,), node.inputs[0].shape, node.dtype
        )
        rule = RULES.get(op.key)
        found = None if rule is None else rule(probe, [(axis, rows[1])], total)
        if found is not None and found.rows == rows:
            return Placed((axis, rows[1]), "", at)
    return None


def _bare(shape: tuple[int, ...], like: Node) -> Node:
    return Node(like.op, (), (), shape, like.dtype)


def _samples(node: Node, at: Places, total: int) -> Placed | None:
    """Rows are samples of a batch; weights and the like are whole."""
    if at[0] is None or at[0][0] != 0 or any(at[1:]):
        return None
    return Placed(at[0], "", at)


def _sums_samples(node: Node, at: Places, total: int) -> Placed | None:
    return Placed(None, "add", [(0, 1)] * len(at)) if _common(at) == (0, 1) else None


Rule = Callable[[Node, Places, int], Placed | None]

RULES: dict[str, Rule] = {
    **dict.fromkeys(COMBINED, _reduced),
    **dict.fromkeys(("matmul", "bmm"), _product),
    **dict.fromkeys(("permute", "transpose", "t"), _permuted),
    **dict.fromkeys(("cat", "stack"), _joined),
    **dict.fromkeys(("gather", "scatter_add", "scatter_tensor", "scatter_value"), _picked),
    **dict.fromkeys(("unbind", "argmax", "argmin"), _shifted(-1)),
    **dict.fromkeys(
        (
            "cumsum", "cumprod", "logcumsumexp", "cummax_index", "cummin_index", "argsort",
            "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "narrow_copy",
        ),
        _beside("dim"),
    ),
    **dict.fromkeys(("flip", "roll"), _beside("dims")),
    **dict.fromkeys(
        (
            "cast", "clone", "alias", "data_alias", "whole_view", "dense_copy", "detach",
            "copy_over", "fill_over", "with_value", "expand",
        ),
        aligned,
    ),
    **dict.fromkeys(("tril", "triu", "inv_raw", "solve_raw", "slogdet", "det"), _of_matrices),
    **dict.fromkeys(("diagonal", "diagonal_copy"), _diagonals),
    "summed_to": _summed_to,
    "unsqueeze": _shifted(1),
    "squeezed": _squeezed,
    "constant_pad_nd": _padded,
    "slice": _or_taken(_sliced),
    "select": _or_taken(_shifted(-1)),
    "index_select": _or_taken(_selected),
    "index": _or_taken(_indexed),
    "embedding_rows": _looked_up,
    "index_written": _added_rows,
    "index_add": _added,
    "embedded": _embedded,
    "isin": _like_first,
}  # fmt: skip

MARKED: tuple[tuple[str, Rule], ...] = (
    ("reshapes", _viewed),
    ("samplewise", _samples),
    ("sums samples", _sums_samples),
    ("columns", _of_matrices),
)

_KINDS: dict[Kind, Rule] = {Kind.POINTWISE: aligned}

# What a whole array without a value may be made of block by block.
THROUGH = frozenset({"expand", "cast", "alias", "clone", "detach"})
