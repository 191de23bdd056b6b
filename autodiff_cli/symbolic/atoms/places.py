"""What only moves elements: slices, joined parts, rows by number, turned axes, running sums.

Each is a product with a matrix of zeros and ones, an atom of its own kind with the axes (where to,
where from), which is written as what it does wherever it is applied to something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...graph.node import Node, Shape
from ...graph.op import value_of
from ..terms import At, Factor, Label, NoFormula, Sum, is_summed, renamed
from ..writing.expression import (
    Call,
    Expression,
    Index,
    Listed,
    Name,
    Number,
    ahead,
    filled,
    indexed,
    mask_of,
    ranked,
)
from ..writing.forms import Form
from .axes import flattened
from .masks import picked
from .masks import selected as masked_select

if TYPE_CHECKING:
    from ..algebra import Algebra
    from ..reading import Reader
    from ..writing.atom_form import AtomPrinter


class Move(NamedTuple):
    """`name`: slice, flip, roll, cumsum; `at`: first, last and step of a slice, or how far."""

    name: str
    at: tuple[int, ...] = ()


# -- reading --------------------------------------------------------------------------------------


def sliced(
    reader: Reader, node: Node, inner: Node, dim: int, first: Any, last: Any, step: int
) -> Sum:
    """`x[first:last:step]`."""
    axis = dim % inner.ndim
    start, stop, step = slice(first, last, step).indices(inner.shape[axis])
    return _moved(reader, node, inner, axis, Move("slice", (start, stop, step)))


def _moved(reader: Reader, node: Node, inner: Node, axis: int, move: Move) -> Sum:
    size, before = node.shape[axis], inner.shape[axis]
    if node.shape == inner.shape and (move.name == "slice" or size == 1):
        return reader.of(inner)
    labels: list[Label] = [None if s == 1 else i for i, s in enumerate(inner.shape)]
    if size == 1:
        labels[axis] = At(move.at[0])
        return reader.algebra.moved(reader.of(inner), tuple(labels), node.shape)
    label = labels[axis] = reader.algebra.fresh()
    matrix = reader.algebra.of_atom(reader.algebra.atom("move", move, (), (size, before)))
    return reader.algebra.einsum(
        [(matrix, (axis, label)), (reader.of(inner), tuple(labels))], node.shape
    )


def flipped(reader: Reader, node: Node, inner: Node, dims: tuple[int, ...]) -> Sum:
    if len(dims) != 1:
        raise NoFormula(node)
    return _moved(reader, node, inner, dims[0] % inner.ndim, Move("flip"))


def rolled(reader: Reader, node: Node, inner: Node, by: Any, dims: tuple[int, ...]) -> Sum:
    by = by[0] if isinstance(by, tuple) else by
    if len(dims) > 1 or (not dims and inner.ndim > 1):
        raise NoFormula(node)
    return _moved(reader, node, inner, dims[0] % inner.ndim if dims else 0, Move("roll", (by,)))


def running(reader: Reader, node: Node, inner: Node, dim: int, *args: Any) -> Sum:
    """The sums of what is there so far."""
    if not inner.ndim:
        return reader.of(inner)
    return _moved(reader, node, inner, dim % inner.ndim, Move("cumsum"))


def joined(reader: Reader, node: Node, parts: tuple[Node, ...], dim: int) -> Sum:
    """Parts behind each other."""
    axis = dim % node.ndim
    found, start = [], 0
    for part in parts:
        found.append(_placed(reader, node, part, axis, start, part.shape[axis]))
        start += part.shape[axis]
    return reader.algebra.added(*found)


def _placed(reader: Reader, node: Node, part: Node, axis: int, start: int, size: int) -> Sum:
    algebra, whole = reader.algebra, node.shape[axis]
    labels: list[Label] = [None if s == 1 else i for i, s in enumerate(part.shape)]
    sum_ = reader.of(part)
    if size == 1 and whole > 1:
        at: tuple[Label, ...] = (axis, At(start))
        matrix = algebra.of_atom(algebra.atom("delta", None, (), (whole, whole)))
    elif size == whole:
        return sum_
    else:
        labels[axis] = algebra.fresh()
        at = (labels[axis], axis)
        move = Move("slice", (start, start + size, 1))
        matrix = algebra.of_atom(algebra.atom("move", move, (), (size, whole)))
    return algebra.einsum([(matrix, at), (sum_, tuple(labels))], node.shape)


def stacked(reader: Reader, node: Node, parts: tuple[Node, ...], dim: int) -> Sum:
    """Parts side by side on an axis of their own."""
    axis, algebra = dim % node.ndim, reader.algebra
    size = len(parts)
    found = []
    for place, part in enumerate(parts):
        axes = [i for i in range(node.ndim) if i != axis]
        labels = tuple(None if s == 1 else i for i, s in zip(axes, part.shape, strict=True))
        operands: list[tuple[Sum, tuple[Label, ...]]] = [(reader.of(part), labels)]
        if size > 1:
            matrix = algebra.of_atom(algebra.atom("delta", None, (), (size, size)))
            operands.append((matrix, (axis, At(place))))
        found.append(algebra.einsum(operands, node.shape))
    return algebra.added(*found)


def triangle(reader: Reader, node: Node, inner: Node, diagonal: int) -> Sum:
    """One side of a diagonal."""
    if inner.ndim != 2:
        raise NoFormula(node)
    atom = reader.algebra.atom("triangle", (node.op.key, diagonal), (), inner.shape)
    mask = reader.algebra.of_atom(atom)
    return reader.algebra.multiplied(mask, reader.of(inner), node.shape)


def rows(reader: Reader, node: Node, inner: Node, places: Any) -> Sum:
    """`W[k]`, `X[:, k]`, `X[arange(n), k]`: rows, or elements of rows, by number."""
    mask, row = mask_of(places, reader.masks), ahead(places)
    if mask is not None:
        return picked(reader, node, inner, mask, row)
    numbers = places[row:]
    if len(numbers) == 1 and numbers[0].ndim > 1 and 1 not in numbers[0].shape:
        return _rows_of(reader, node, inner, numbers[0], row)
    if any(i is None or i.ndim != 1 for i in numbers) or node.shape[row] == 1:
        raise NoFormula(node)
    labels: list[Label] = [
        None if s == 1 else i if i < row else i + 1 - len(numbers)
        for i, s in enumerate(inner.shape)
    ]
    operands: list[tuple[Sum, tuple[Label, ...]]] = []
    for axis, at in enumerate(numbers, row):
        size = inner.shape[axis]
        if counts(at, size):
            labels[axis] = row
            continue
        labels[axis] = reader.algebra.fresh()
        operands.append((_one_hot(reader, reader.of(at), size), (row, labels[axis])))
    operands.append((reader.of(inner), tuple(labels)))
    return reader.algebra.einsum(operands, node.shape)


def _rows_of(reader: Reader, node: Node, inner: Node, numbers: Node, row: int) -> Sum:
    """`W[k]` for numbers with several axes."""
    label: Label = reader.algebra.fresh()
    axes = range(row, row + numbers.ndim)
    order = (*range(row), label, *range(axes.stop, node.ndim))
    labels: tuple[Label, ...] = tuple(
        None if s == 1 and x != label else x for x, s in zip(order, inner.shape, strict=True)
    )
    hot = _one_hot(reader, reader.of(numbers), inner.shape[row])
    return reader.algebra.einsum([(hot, (*axes, label)), (reader.of(inner), labels)], node.shape)


def rows_by(reader: Reader, numbers: Sum, inner: Sum) -> Sum:
    """The elements of a vector at places."""
    label: Label = reader.algebra.fresh()
    hot = _one_hot(reader, numbers, inner.shape[0])
    return reader.algebra.einsum([(hot, (0, label)), (inner, (label,))], numbers.shape)


def counts(numbers: Node, size: int) -> bool:
    """Whether numbers are `arange` of a whole axis."""
    return numbers.op.key == "number_range" and np.array_equal(value_of(numbers), np.arange(size))


def _one_hot(reader: Reader, numbers: Sum, size: int) -> Sum:
    return reader.algebra.applied("one_hot", size, (numbers,), (*numbers.shape, size))


def embedded(reader: Reader, node: Node, table: Node, numbers: Node, *args: Any) -> Sum:
    return rows(reader, node, table, (numbers,))


def selected(reader: Reader, node: Node, inner: Node, dim: int, numbers: Node) -> Sum:
    if not inner.ndim or dim % inner.ndim or numbers.ndim != 1:
        raise NoFormula(node)
    return rows(reader, node, inner, (numbers,))


def gathered(reader: Reader, node: Node, inner: Node, dim: int, places: Node, *_: Any) -> Sum:
    """One element of every row; the k-th of what is in order as that."""
    rank = ranked(node)
    if rank is not None:
        return reader.along(node, rank[0], dim, True, kind="kthvalue", also=rank[1:])
    if inner.ndim == places.ndim == 1:
        return rows(reader, node, inner, (places,))
    if inner.ndim != 2 or dim != 1 or places.shape != (inner.shape[0], 1):
        raise NoFormula(node)
    numbers = reader.algebra.moved(reader.of(places), (0, None), (inner.shape[0],))
    hot = _one_hot(reader, numbers, inner.shape[1])
    found = reader.algebra.multiplied(reader.of(inner), hot, inner.shape)
    return reader.algebra.reduced(found, (1,), True)


def parts(reader: Reader, node: Node, inner: Node, *args: Any) -> Sum:
    """What its outputs are parts of."""
    return reader.of(inner)


def output(reader: Reader, node: Node, source: Node, at: int) -> Sum:
    """One of several results."""
    key = source.op.key
    if key == "unbind":
        return reader.select(node, source.args[0], source.args[1], at)
    if key == "split":
        inner, size, dim = source.args
        sizes = [size] * inner.shape[dim] if isinstance(size, int) else list(size)
        start = sum(sizes[:at])
        return sliced(reader, node, inner, dim, start, start + sizes[at], 1)
    if (key, at) in WHOLE:
        return reader.of(source)
    result = result_of(node)
    if result is None:
        raise NoFormula(node)
    return reader.of(result)


def result_of(node: Node) -> Node | None:
    """What one of several results is made of; None where it is a part of what the op makes."""
    if node.op.key != "output":
        return None
    source, at = node.args
    known = source.op.key in ("unbind", "split") or (source.op.key, at) in WHOLE
    return None if known or type(source.body) is not tuple else source.body[at]


WHOLE = {("slogdet", 1), ("inv_raw", 0), ("solve_raw", 0), ("max_dim", 0), ("min_dim", 0),
         ("cholesky_factor", 0), ("median_dim", 0), ("kthvalue", 0), ("cummax", 0),
         ("cummin", 0)}  # fmt: skip
PLACES: dict[str, Callable[..., Sum]] = {
    "slice": sliced, "flip": flipped, "roll": rolled, "cumsum": running, "cat": joined,
    "stack": stacked, "tril": triangle, "triu": triangle, "index": rows,
    "embedding_rows": embedded,
    "index_select": selected, "gather": gathered, "split": parts, "unbind": parts,
    "output": output, "masked_select": masked_select,
}  # fmt: skip


# -- products -------------------------------------------------------------------------------------


def without_slices(algebra: Algebra, factors: list[Factor]) -> tuple[float, list[Factor]] | None:
    """The first slice that disappears: a place of one, or two of one axis that are the same or
    apart. None where there is none."""
    for one in factors:
        atom = algebra.atoms[one.atom]
        if atom.kind == "move" and atom.data.name in ("flip", "roll"):
            for end in filter(is_summed, one.at):  # all places of an axis are summed
                if sum(f.at.count(end) for f in factors) == 1:
                    return 1.0, [f for f in factors if f is not one]
    moves = [f for f in factors if slice_of(algebra, f)]
    for one in moves:
        start, stop, step = slice_of(algebra, one)
        to, source = one.at
        rest = [f for f in factors if f is not one]
        if isinstance(to, At):
            whole = algebra.atoms[one.atom].shape[1]
            delta = algebra.atom("delta", None, (), (whole, whole))
            return 1.0, [*rest, Factor(delta, (At(start + step * to.place), source))]
        if isinstance(source, At):
            place, left = divmod(source.place - start, step)
            size = algebra.atoms[one.atom].shape[0]
            if left or not 0 <= place < size:
                return 0.0, []
            delta = algebra.atom("delta", None, (), (size, size))
            return 1.0, [*rest, Factor(delta, (At(place), to))]
        if not is_summed(source):
            continue
        if sum(f.at.count(source) for f in factors) != 2:
            continue
        for other in moves:
            if other is one or other.at[1] != source or isinstance(other.at[0], At):
                continue
            if (bounds := slice_of(algebra, other)) == (start, stop, step):
                size = algebra.atoms[one.atom].shape[0]
                delta = algebra.atom("delta", None, (), (size, size))
                rest = [f for f in rest if f is not other]
                return 1.0, [*rest, Factor(delta, (to, other.at[0]))]
            if bounds[0] >= stop or start >= bounds[1]:
                return 0.0, []
    return None


def slice_of(algebra: Algebra, factor: Factor) -> tuple[int, ...]:
    atom = algebra.atoms[factor.atom]
    return atom.data.at if atom.kind == "move" and atom.data.name == "slice" else ()


# -- writing --------------------------------------------------------------------------------------


def applied(
    printer: AtomPrinter, number: int, shown: Any, axis: int, shape: Shape, back: bool
) -> Form | None:
    """What an array of zeros and ones makes of something of a shape, from an axis on; `back`:
    its transpose."""
    atom = printer.algebra.atoms[number]
    front = ":, " * axis
    where = Number(axis)
    if atom.kind == "one_hot":
        by = printer.form(atom.parts[0])
        if not back:
            return Form(indexed(shown, axis, by.shown), by.marks)
        count = len(atom.shape) - 1
        sizes = (*shape[:axis], atom.shape[-1], *shape[axis + count :])
        numbers = by.shown
        if count > 1:
            numbers = flattened(numbers, 0, count, count)
            shown = flattened(shown, axis, axis + count, len(shape))
        made = Call("index_add", (filled("zeros", sizes), where, numbers, shown))
        return Form(made, by.marks)
    if atom.kind == "mask":
        holds = printer.holds(atom.parts[0])
        if not back:
            return Form(indexed(shown, axis, holds.shown), holds.marks)
        behind = len(shape) - 1 - axis
        rows: Expression = Index(holds.shown, "..." + ", None" * behind) if behind else holds.shown
        zeros = filled("zeros", (*shape[:axis], *atom.shape[1:], *shape[axis + 1 :]))
        return Form(Call("masked_scatter", (zeros, rows, shown)), holds.marks)
    _, whole = atom.shape
    name, at = atom.data
    if name == "slice":
        start, stop, step = at
        if not back:
            bounds = f"{start or ''}:{'' if stop == whole else stop}"
            return Form(Index(shown, front + bounds + (f":{step}" if step != 1 else "")))
        if step != 1:
            return None
        pads = [0, 0] * (len(shape) - 1 - axis) + [start, whole - stop]
        return Form(Call("pad", (shown, Name(f"({', '.join(map(str, pads))})"))))
    ends = (Listed((where,)),)
    again = isinstance(shown, Call) and shown.function == "flip" and shown.arguments[1:] == ends
    turned: Any = shown.arguments[0] if again else Call("flip", (shown, *ends))
    if name == "flip":
        return Form(turned)
    if name == "roll":
        return Form(Call("roll", (shown, Number(-at[0] if back else at[0]), where)))
    if not back:
        return Form(Call("cumsum", (shown, where)))
    return Form(Call("flip", (Call("cumsum", (turned, where)), *ends)))


def matrix(number: int, printer: AtomPrinter) -> Form:
    """The matrix itself."""
    atom = printer.algebra.atoms[number]
    whole = atom.shape[1]
    name = atom.data[0]
    ones = filled("ones", atom.shape)
    if atom.kind == "triangle":
        diagonal = (Number(atom.data[1]),) if atom.data[1] else ()
        return Form(Call(name, (ones, *diagonal)))
    if name == "cumsum":
        return Form(Call("tril", (ones,)))
    found = applied(printer, number, Call("eye", (Number(whole),)), 0, (whole, whole), False)
    assert found is not None
    return found


def behind(algebra: Algebra, sum_: Sum, whole: Callable[[Sum], Form]) -> Form | None:
    """Terms that are each a part of one axis, one behind the other."""
    parts: dict[tuple[int, Any], list[tuple[float, list[Factor]]]] = {}
    for product, value in sum_.terms:
        found = next(filter(None, (_part(algebra, factor) for factor in product)), None)
        if found is None:
            return None
        factor, short, key = found
        rest = renamed((f for f in product if f is not factor), {short: key[0]})
        parts.setdefault(key, []).append((value, rest))
    (axis, *others), ends = dict.fromkeys(a for a, _ in parts), sorted(e for _, e in parts)
    starts = [start for start, _, _ in ends]
    if others or len(ends) < 2 or [*starts, sum_.shape[axis]] != [0, *(x[1] for x in ends)]:
        return None
    forms = []
    for start, stop, step in ends:
        shape = (*sum_.shape[:axis], stop - start, *sum_.shape[axis + 1 :])
        forms.append(whole(algebra.made(parts[axis, (start, stop, step)], shape)))
    listed = Listed(tuple(form.shown for form in forms))
    shown = Call("cat", (listed, Number(axis)) if axis else (listed,))
    return Form(shown, 1)


def _part(algebra: Algebra, factor: Factor) -> tuple[Factor, Label, tuple[int, Any]] | None:
    """A factor that puts something into a part of an axis, and which that is."""
    if not slice_of(algebra, factor):
        return None
    short, axis = factor.at
    if not is_summed(short) or type(axis) is not int or axis < 0:
        return None
    return factor, short, (axis, slice_of(algebra, factor))
