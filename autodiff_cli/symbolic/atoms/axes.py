"""Axes that are split, joined and moved: views, transposes, and products of matrices.

What a view joined is read as the axes that it was made of, so that a product over them (what
`einsum` and `kron` compute) is one in index form. What it splits is a product with an array of
zeros and ones, with the axes (whole, parts...), and so is what it joined where that is read whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

from ...graph.node import Node, Shape
from ..terms import Factor, Label, NoFormula, Sum, is_summed, label_key
from ..writing.expression import Call, Expression, Index, Name, Number, static_text
from ..writing.forms import Form, Forms, Layout, add, call, is_label, turned
from ..writing.lets import cost_of
from .matrices import sum_of_logarithms

if TYPE_CHECKING:
    from ..algebra import Algebra
    from ..reading import Reader


class Grouped(NamedTuple):
    """A sum, and which of its axes are together each axis of a node."""

    sum: Sum
    groups: tuple[tuple[int, ...], ...]

    def sizes(self, axis: int) -> list[int]:
        return [self.sum.shape[i] for i in self.groups[axis]]


def grouped(reader: Reader, node: Node) -> Grouped:
    found = reader.known[node]
    if isinstance(found, Grouped):
        return found
    return Grouped(found, tuple((i,) if size != 1 else () for i, size in enumerate(found.shape)))


def joined(algebra: Algebra, found: Grouped) -> Sum:
    """With the axes of every group as one."""
    at: list[Label] = [None] * len(found.sum.shape)
    operands: list[tuple[Sum, tuple[Label, ...]]] = []
    for axis, group in enumerate(found.groups):
        for part in group:
            at[part] = axis if len(group) == 1 else algebra.fresh()
        if len(group) > 1:
            operands.append((_split(algebra, found.sizes(axis)), (axis, *(at[i] for i in group))))
    sizes = tuple(prod(found.sizes(axis)) for axis in range(len(found.groups)))
    return algebra.einsum([*operands, (found.sum, tuple(at))], sizes)


def _split(algebra: Algebra, sizes: Sequence[int]) -> Sum:
    return algebra.of_atom(algebra.atom("split", None, (), (prod(sizes), *sizes)))


def _plain(reader: Reader, found: Grouped, shape: Shape) -> Sum | Grouped:
    """Without groups where no axis was joined."""
    if any(len(group) > 1 for group in found.groups):
        return found
    order: list[Label] = [None] * len(found.sum.shape)
    for axis, group in enumerate(found.groups):
        for part in group:
            order[part] = axis
    return reader.algebra.moved(found.sum, tuple(order), shape)


def view(reader: Reader, node: Node, inner: Node, *args: Any) -> Sum | Grouped:
    """Axes that are joined are a group; those of others are joined and split anew."""
    if not node.numel:
        raise NoFormula(node)
    algebra, source = reader.algebra, grouped(reader, inner)
    left = [part for group in source.groups for part in group]
    wanted = [axis for axis, size in enumerate(node.shape) if size != 1]
    at: list[Label] = [None] * len(source.sum.shape)
    operands: list[tuple[Sum, tuple[Label, ...]]] = []
    sizes: list[int] = []
    groups: list[tuple[int, ...]] = [()] * node.ndim
    while wanted:
        old, new = [left.pop(0)], [wanted.pop(0)]
        while (before := [source.sum.shape[i] for i in old]) and (
            prod(before) != prod(after := [node.shape[axis] for axis in new])
        ):
            source_is_short = prod(before) < prod(after)
            (old if source_is_short else new).append((left if source_is_short else wanted).pop(0))
        parts = _refined(before, after)
        inside: list[Label] = [len(sizes) + i for i in range(len(parts or after))]
        if parts is None:  # by way of the whole
            whole = algebra.fresh()
            operands.append((_split(algebra, after), (whole, *inside)))
            for part in old:
                at[part] = algebra.fresh()
            operands.append((_split(algebra, before), (whole, *(at[part] for part in old))))
            parts = after
        else:
            for part, found in zip(old, _shares(before, parts), strict=True):
                own = [inside[i] for i in found]
                at[part] = own[0]
                if len(own) > 1:
                    at[part] = algebra.fresh()
                    split = _split(algebra, [parts[i] for i in found])
                    operands.append((split, (at[part], *own)))
        for axis, found in zip(new, _shares(after, parts), strict=True):
            groups[axis] = tuple(len(sizes) + i for i in found)
        sizes += parts
    if operands:
        sum_ = algebra.einsum([*operands, (source.sum, tuple(at))], tuple(sizes))
    else:
        sum_ = algebra.moved(source.sum, tuple(at), tuple(sizes))
    return _plain(reader, Grouped(sum_, tuple(groups)), node.shape)


def _refined(one: Sequence[int], other: Sequence[int]) -> list[int] | None:
    """Sizes of parts of which both the axes of these sizes and of those are made."""
    ends = sorted({*accumulate(one, mul), *accumulate(other, mul)})
    steps = list(pairwise([1, *ends]))
    return None if any(b % a for a, b in steps) else [b // a for a, b in steps]


def _shares(axes: Sequence[int], parts: Sequence[int]) -> Iterator[list[int]]:
    """Which parts each axis is made of."""
    left = list(range(len(parts)))
    for size in axes:
        found = [left.pop(0)]
        while prod(parts[i] for i in found) < size:
            found.append(left.pop(0))
        yield found


def repeated(reader: Reader, node: Node, inner: Node, repeats: tuple[int, ...]) -> Sum:
    """What is written out several times along an axis: the same for each time."""
    algebra = reader.algebra
    ahead = node.ndim - inner.ndim
    at: list[Label] = [None if n == 1 else i for i, n in enumerate(inner.shape, ahead)]
    operands: list[tuple[Sum, tuple[Label, ...]]] = []
    for i, size in enumerate(inner.shape):
        if size != 1 and repeats[ahead + i] != 1:
            at[i] = algebra.fresh()
            split = _split(algebra, [repeats[ahead + i], size])
            operands.append((split, (ahead + i, algebra.fresh(), at[i])))
    return algebra.einsum([*operands, (reader.of(inner), tuple(at))], node.shape)


def side_by_side_means(
    reader: Reader, node: Node, inner: Node, rules: Sequence[Any], divisor: float | None
) -> Sum:
    """Means of windows that lie side by side: of parts of axes."""
    algebra, ahead = reader.algebra, node.ndim - len(rules)
    at: list[Label] = [None if n == 1 else axis for axis, n in enumerate(inner.shape)]
    operands: list[tuple[Sum, tuple[Label, ...]]] = []
    for axis, (_, count, *steps) in enumerate(rules, ahead):
        size = inner.shape[axis]
        width = size // count
        if width * count != size or steps[:3] not in ([], [width, width, 0]):
            raise NoFormula(node)
        if width > 1:
            at[axis] = algebra.fresh()
            result = axis if count > 1 else None
            split = _split(algebra, [count, width]), (at[axis], result, algebra.fresh())
            operands += [split] if count > 1 else []
    found = algebra.einsum([*operands, (reader.of(inner), tuple(at))], node.shape)
    return algebra.scaled(found, 1 / (divisor or inner.numel // node.numel))


def permute(reader: Reader, node: Node, inner: Node, dims: tuple[int, ...]) -> Sum | Grouped:
    source = grouped(reader, inner)
    groups = tuple(source.groups[axis] for axis in dims)
    return _plain(reader, Grouped(source.sum, groups), node.shape)


def transpose(
    reader: Reader, node: Node, inner: Node, first: int = -2, second: int = -1
) -> Sum | Grouped:
    order = list(range(node.ndim))
    if len(order) > 1:
        order[first], order[second] = order[second], order[first]
    return permute(reader, node, inner, tuple(order))


def matmul(reader: Reader, node: Node, left: Node, right: Node) -> Sum | Grouped:
    """Rows times columns; what is in front is broadcast."""
    found = _product(reader, node, (left, right), grouped)
    whole = found or _product(reader, node, (left, right), _whole)
    return whole  # type: ignore[return-value]  # axes that are no groups fit


def _whole(reader: Reader, node: Node) -> Grouped:
    """Without groups."""
    axes = tuple((axis,) if size != 1 else () for axis, size in enumerate(node.shape))
    return Grouped(reader.of(node), axes)


def _product(
    reader: Reader, node: Node, operands: tuple[Node, Node],
    read: Callable[[Reader, Node], Grouped],
) -> Sum | Grouped | None:  # fmt: skip
    """The product of two operands; None where their axes are made of others."""
    algebra, (left, right) = reader.algebra, operands
    one, other = (read(reader, operand) for operand in operands)
    inner, outer = left.ndim - 1, max(right.ndim - 2, 0)
    if one.sizes(inner) != other.sizes(outer):
        return None
    at: list[list[Label]] = [[None] * len(one.sum.shape), [None] * len(other.sum.shape)]
    for mine, its in zip(one.groups[inner], other.groups[outer], strict=True):
        at[0][mine] = at[1][its] = algebra.fresh()
    groups: list[tuple[int, ...]] = []
    sizes: list[int] = []
    batch = node.ndim - (left.ndim > 1) - (right.ndim > 1)
    for axis in range(node.ndim):
        sources = []  # the operands that have this axis, and which of theirs it is
        if axis < batch:
            for k, operand in enumerate((left, right)):
                own = axis - (batch - (operand.ndim - 2))
                if own >= 0:
                    sources.append((k, own))
        else:
            is_row = axis == batch and left.ndim > 1
            sources.append((0, left.ndim - 2) if is_row else (1, right.ndim - 1))
        found: tuple[int, ...] = ()
        for k, own in sources:
            parts = (one, other)[k].groups[own]
            if not parts:
                continue
            if found and [sizes[i] for i in found] != (one, other)[k].sizes(own):
                return None
            if not found:
                found = tuple(range(len(sizes), len(sizes) + len(parts)))
                sizes += (one, other)[k].sizes(own)
            for label, part in zip(found, parts, strict=True):
                at[k][part] = label
        groups.append(found)
    product = algebra.einsum([(one.sum, tuple(at[0])), (other.sum, tuple(at[1]))], tuple(sizes))
    return _plain(reader, Grouped(product, tuple(groups)), node.shape)


def diagonal(reader: Reader, node: Node, inner: Node, offset: int = 0, *args: Any) -> Sum | Grouped:
    source = grouped(reader, inner)
    if offset or inner.ndim != 2 or args not in DIAGONALS or source.sizes(0) != source.sizes(1):
        raise NoFormula(node)
    at: list[Label] = [None] * len(source.sum.shape)
    for label, pair in enumerate(zip(*source.groups, strict=True)):
        for part in pair:
            at[part] = label
    sizes = tuple(source.sizes(0))
    found = Grouped(reader.algebra.moved(source.sum, tuple(at), sizes), (tuple(range(len(sizes))),))
    return _plain(reader, found, node.shape)


def total(reader: Reader, inner: Node) -> Sum:
    """The sum over everything."""
    sum_ = grouped(reader, inner).sum
    half = sum_of_logarithms(reader.algebra, sum_)
    return half or reader.algebra.reduced(sum_, tuple(range(len(sum_.shape))))


# -- products -------------------------------------------------------------------------------------


def without_splits(algebra: Algebra, factors: list[Factor]) -> tuple[float, list[Factor]] | None:
    """The first array that splits an axis and disappears: what it splits, or makes of all parts, is
    met nowhere else, or it is there twice. None where there is none."""
    splits = [f for f in factors if algebra.atoms[f.atom].kind == "split"]
    for position, one in enumerate(splits):
        rest = [f for f in factors if f is not one]
        sizes = algebra.atoms[one.atom].shape
        used = Counter(label for f in factors for label in f.at)
        for same, apart in ((slice(0, 1), slice(1, None)), (slice(1, None), slice(0, 1))):
            if all(map(is_summed, one.at[same])) and all(used[x] == 1 for x in one.at[same]):
                gone = zip(one.at[apart], sizes[apart], strict=True)
                return float(prod(n for x, n in gone if is_summed(x) and used[x] == 1)), rest
            for other in splits[:position]:
                if (other.atom, other.at[same]) != (one.atom, one.at[same]):
                    continue
                ends = list(zip(one.at[apart], other.at[apart], sizes[apart], strict=True))
                if all(is_summed(a) or is_summed(b) or a == b for a, b, _ in ends):
                    deltas = [
                        Factor(algebra.atom("delta", None, (), (n, n)), (a, b))
                        for a, b, n in ends
                        if a != b
                    ]
                    return 1.0, rest + deltas
    return None


def with_splits(algebra: Algebra, units: list[list[Factor]], free: set[Any]) -> list[list[Factor]]:
    """Each factor with what splits or joins axes that nothing else has."""
    alone = [u for u in units if algebra.atoms[u[0].atom].kind == "split"]
    for unit in alone:
        (split,) = unit
        rest = [u for u in units if u is not unit]
        for side in (split.at[:1], split.at[1:]):
            having = [u for u in rest if any({*f.at} & {*side} for f in u)]
            if len(having) == 1 and having[0] not in alone and free.isdisjoint(side):
                joined = [[*u, split] if u is having[0] else u for u in rest]
                return with_splits(algebra, joined, free)
    return units


# -- writing --------------------------------------------------------------------------------------


def arranged(form: Form, layout: Layout, want: Layout) -> Form | None:
    """With the axes of a layout in the wanted order, among others of one element; None where one of
    them is not wanted."""
    order, marks = _arrangement(layout, want)
    if order is None:
        return None
    if None not in layout:
        form = permuted(form, order)
    if set(marks) <= {":"}:
        return form
    shown = Index(form.shown, ", ".join(marks))
    more = len(marks) - len(layout) + 1 + 2 * marks.count("0")
    return Form(shown, form.marks + more)


@lru_cache(1 << 12)
def _arrangement(layout: Layout, want: Layout) -> tuple[list[int] | None, list[str]]:
    """The places of the wanted axes in a layout, None where there is one that is not wanted or some
    of one element would move; and what an index makes of each."""
    order = [layout.index(x) for x in want if x in layout and x is not None]
    plain = len(layout) - layout.count(None)
    if len(order) < plain or (plain < len(layout) and order != sorted(order)):
        return None, []
    left = list(layout) if None in layout else [layout[i] for i in order]
    marks = []
    for x in want:
        while x is not None and left and left[0] is None:
            marks.append("0")
            del left[0]
        is_there = bool(left) and left[0] == x
        marks.append(":" if is_there else "None")
        del left[:is_there]
    marks += ["0"] * len(left)
    return order, marks[next((i for i, mark in enumerate(marks) if mark != "None"), len(marks)) :]


@lru_cache(1 << 12)
def side_by_side(one: Layout, other: Layout) -> tuple[Layout, Layout]:
    """The axes of two parts, those of the one of fewer at the places that the other has them; of
    two matrices at the places that their product has them."""
    if len(one) > len(other):
        return side_by_side(other, one)[::-1]
    both = tuple(sorted({*one, *other}, key=label_key)) if len(one) == len(other) == 2 else other
    if len(both) < 3 or None in both:
        return one, other
    first, second = (
        known if _arrangement(part, known)[0] is not None else part
        for part in (one, other)
        for known in [tuple(x if x in part else None for x in both)]
    )
    return first, second


def beside(form: Form, layout: Layout, want: Layout) -> Form:
    """A part with its axes at these places."""
    return arranged(form, layout, want) or form if layout != want else form


def all_arranged(forms: list[tuple[Form, Layout]], want: Layout) -> Iterator[tuple[Form, Layout]]:
    """Forms with their axes in the wanted order."""
    for form, layout in forms:
        known = tuple(x if x in layout else None for x in want)
        found = arranged(form, layout, known)
        if found is not None:
            yield found, known


def permuted(form: Form, order: Sequence[int]) -> Form:
    """With the axes in another order: of a sum of products as that of its result."""
    shown: Any = form.shown
    if list(order) == sorted(order):
        return form
    if is_einsum(shown):
        operands, result = _operands(shown)
        return form._replace(shown=_summed(operands, [result[i] for i in order]))
    if len(order) == 2:
        return turned(form)
    if isinstance(shown, Call) and shown.function in ("transpose", "permute"):
        before = _order_of(shown, len(order))
        inner = Form(shown.arguments[0], form.marks - 1)
        ahead = len(order) - len(before)  # axes that broadcasting puts in front: they stay there
        return permuted(inner, [before[i - ahead] for i in order[ahead:]])
    moved = [axis for axis, source in enumerate(order) if axis != source]
    if len(moved) == 2:
        return call("transpose", form, *map(Number, moved))._replace(marks=form.marks + 1)
    made = call("permute", form, Name(f"({', '.join(map(str, order))})"))
    return made._replace(marks=form.marks + 2)


def _order_of(shown: Call, axes: int) -> list[int]:
    """Which axes those of a `transpose` or `permute` were."""
    _, *moved = shown.arguments
    if shown.function == "permute":
        return [int(axis) for axis in moved[0].text[1:-1].split(", ")]
    order = list(range(axes))
    first, second = (axis.value for axis in moved)
    order[first], order[second] = second, first
    return order


LETTERS = "ijklmnopqrstuvwxyzabcdefgh"
Operands = list[tuple[Expression, list[Any]]]  # with a label for each axis


def is_einsum(shown: Any) -> bool:
    return isinstance(shown, Call) and shown.function == "einsum"


def einsum_price(one: Form, other: Form) -> tuple[int, int]:
    """What the sum of products of two parts costs, and its marks."""
    cost, marks = 0, 4
    for form in (one, other):
        inside = is_einsum(form.shown)
        cost += cost_of(form.shown) + (not inside)
        marks += form.marks - 4 if inside else form.marks + 2 * (type(form.shown) is not Name)
    return cost, marks


def einsum(one: Form, ahead: Layout, other: Form, behind: Layout, result: Layout) -> Form:
    """The sum of products of two parts, of what they are sums of products of themselves."""
    found: Operands = []
    marks = 4
    for form, layout in ((one, ahead), (other, behind)):
        shown: Any = form.shown
        if is_einsum(shown):
            operands, made = _operands(shown)
            labels = dict(zip(made, layout, strict=True))
            found += [(x, [labels.get(y, (form is one, y)) for y in at]) for x, at in operands]
            marks += form.marks - 4
        else:
            found.append((shown, list(layout)))
            marks += form.marks + 2 * (type(shown) is not Name)
    return Form(_summed(found, list(result)), marks)


def _operands(shown: Any) -> tuple[Operands, str]:
    """What is multiplied, and the labels of the result."""
    equation, *parts = shown.arguments
    sides, _, result = equation.text[1:-1].partition("->")
    return [(x, list(at)) for x, at in zip(parts, sides.split(","), strict=True)], result


def _summed(operands: Operands, result: list[Any]) -> Call:
    """What has the first axes of the result stands first."""
    first = len(result)
    operands = sorted(operands, key=lambda o: min([first, *map(result.index, {*o[1]} & {*result})]))
    met = dict.fromkeys(label for _, labels in operands for label in labels)
    letters = dict(zip(met, LETTERS, strict=False))
    sides = ",".join("".join(letters[x] for x in labels) for _, labels in operands)
    equation = Name(f"'{sides}->{''.join(letters[x] for x in result)}'")
    return Call("einsum", (equation, *(part for part, _ in operands)))


def resized(factor: Factor, sizes: dict[Any, int], inner: Forms, outside: set[Any]) -> Forms:
    """What is made of a part by joining axes, or by splitting one."""
    found: Forms = {}
    whole, parts = factor.at[:1], factor.at[1:]
    for (before, below), given in inner.items():
        for old, new in ((parts, whole), (whole, parts)):
            met = tuple(x for x in old if x in before)
            if not met or not {*new}.isdisjoint(before):
                continue
            if not outside.isdisjoint(old) or not all(map(is_label, new)):
                continue
            plain = before if met != old else tuple(x for x in before if x is not None)
            at = len([x for x in plain[: plain.index(met[0])] if x not in met])
            rest = tuple(x for x in plain if x not in met)
            order, layout = ((*rest[:at], *x, *rest[at:]) for x in (met, new))
            form = given if order == plain else arranged(given, before, order)
            if form is None:
                continue
            shown: Any = form.shown
            is_resized = isinstance(shown, Call) and shown.function in RESIZED
            if met != old:  # the others say how often
                shown = _repeated(shown, met, old, at, len(order), sizes)
            elif is_resized or plain != before:
                shape = Name(static_text(tuple(sizes[x] for x in layout)))
                shown = Call("reshape", (shown.arguments[0] if is_resized else shown, shape))
            elif new is whole:
                shown = flattened(shown, at, at + len(old), len(order))
            else:
                shown = _unflattened(shown, at, len(order), tuple(sizes[x] for x in new))
            if shown is not None:
                add(found, layout, below, Form(shown, form.marks + 1))
    return found


def _repeated(
    shown: Expression, met: Layout, parts: Layout, at: int, axes: int, sizes: dict[Any, int]
) -> Call | None:
    """An axis of which each element, or the whole, is there several times."""
    times = prod(sizes[x] for x in parts if x not in met)
    if len(met) == 1 and parts[0] == met[0]:
        return Call("repeat_interleave", (shown, Number(times), Number(at)))
    if len(met) == 1 and parts[-1] == met[0]:
        often = static_text(tuple(times if axis == at else 1 for axis in range(axes)))
        return Call("tile", (shown, Name(often)))
    return None


def flattened(shown: Expression, at: int, end: int, axes: int) -> Call:
    """Some of the axes joined."""
    ends = [] if end - at == axes else [at] if end == axes else [at, end - 1]
    return Call("flatten", (shown, *map(Number, ends)))


def _unflattened(shown: Expression, at: int, axes: int, sizes: Shape) -> Call:
    shape = Name(static_text(sizes))
    if axes > 1:
        return Call("unflatten", (shown, Number(at), shape))
    return Call("reshape", (shown, shape))


RESIZED = ("flatten", "unflatten", "reshape")
DIAGONALS = ((), (0, 1), (-2, -1))
AXES: dict[str, Callable[..., Sum | Grouped]] = {
    **dict.fromkeys(
        ["view", "unsafe_view", "unshared_view", "reshape", "reshape_alias", "unsqueeze",
         "squeeze", "squeezed"], view),
    **dict.fromkeys(["matmul", "bmm", "mm", "mv", "dot"], matmul),
    **dict.fromkeys(["transpose", "t"], transpose),
    **dict.fromkeys(["diagonal", "diagonal_copy"], diagonal),
    "permute": permute, "repeat": repeated,
}  # fmt: skip
