"""Pooling: means and maxima of windows.

A mean is a product with an array of shares, with the axes (result, input), which is written as the
call that pools, and turned as a transposed convolution with ones. A maximum is what the call gives;
its derivative is an array of zeros and ones, with the axes (result, input), that is 1 at the places
of the maxima, and puts what it is applied to there.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ...graph.node import Node, Shape
from ..terms import Factor, Label, NoFormula, Sum
from ..writing.expression import Call, Index, Infix, Name, Number, filled, static_text
from ..writing.forms import Form, Forms, Layout, add, constant_array, is_label, times
from ..writing.windowed import BOTH, INPUT, WHOLE, Window, called, moving, pooled_by
from .axes import arranged, flattened, side_by_side_means

if TYPE_CHECKING:
    from ..reading import Reader
    from ..writing.atom_form import AtomPrinter


class Pool(NamedTuple):
    """The call that pools, with its arguments after the input; the `window` of a mean, and of
    maxima whose windows are apart, that moves along axes of these `sizes` (result, input, kernel).
    """

    name: str
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, str], ...]
    window: Window | None
    sizes: Shape


# -- reading --------------------------------------------------------------------------------------


def means(
    reader: Reader, node: Node, inner: Node, rules: tuple[Any, ...], divisor: float | None = None
) -> Sum:
    """Means of windows: of parts of axes where these lie side by side."""
    if not node.numel:
        raise NoFormula(node)
    try:
        return side_by_side_means(reader, node, inner, rules, divisor)
    except NoFormula:
        pass
    rules, source, lead = _plain(reader, node, inner, rules)
    kinds = [rule[0] for rule in rules]
    algebra, dims = reader.algebra, len(rules)
    inside, outside = source.shape[-dims:], tuple(rule[1] for rule in rules)
    if {*kinds} == {"adaptive"}:
        return _uneven(reader, node, inner, rules)
    if {*kinds} not in ({"mean"}, {"sum"}) or {*inside} == {1}:
        raise NoFormula(node)
    kernel, stride, padding = (tuple(rule[i] for rule in rules) for i in (2, 3, 4))
    if any((out - 1) * s + k > size + 2 * p for out, s, k, size, p in
           zip(outside, stride, kernel, inside, padding, strict=True)):  # fmt: skip
        if divisor:
            raise NoFormula(node)
        return _uneven(reader, node, inner, rules)
    window = Window(stride, padding, (1,) * dims)
    data = Pool(f"avg_pool{dims}d", _arguments(*window[:2], kernel), (), window,
                outside + inside + kernel)  # fmt: skip
    shares = algebra.of_atom(algebra.atom("pool", data, (), outside + inside))
    from_: list[Label] = [algebra.fresh() if n != 1 else None for n in inside]
    to = _labels(range(len(lead), len(lead) + dims), outside)
    ahead = _labels(range(len(lead)), lead)
    shape = lead + outside
    operands: list[tuple[Sum, tuple[Label, ...]]]
    operands = [(shares, (*to, *from_)), (source, (*ahead, *from_))]
    if kinds[0] == "mean" and any(padding) and not rules[0][5]:  # over what is inside
        ones = Call(data.name, (filled("ones", (1, *inside)), *data.arguments))
        count = algebra.of_atom(algebra.atom("array", Index(ones, "0"), (), outside))
        operands.append((algebra.raised(count, -1.0), to))
    found = algebra.einsum(operands, shape)
    if divisor:
        found = algebra.scaled(found, prod(kernel) / divisor)
    return algebra.moved(found, _labels(_kept(node, len(shape)), shape), node.shape)


def _uneven(reader: Reader, node: Node, inner: Node, rules: tuple[Any, ...]) -> Sum:
    """Means of windows some of which are smaller: along each axis a product with the means of the
    rows of an identity matrix."""
    algebra = reader.algebra
    at: list[Label] = [None if n == 1 else axis for axis, n in enumerate(inner.shape)]
    operands: list[tuple[Sum, tuple[Label, ...]]] = []
    for axis, rule in enumerate(rules, node.ndim - len(rules)):
        size, out = inner.shape[axis], node.shape[axis]
        called = pooled_by(node.op.key, (rule,), (size,))
        if called is None or 1 in (size, out):
            raise NoFormula(node)
        name, given, keywords = called
        arguments = map(Name, map(static_text, given))
        means = Call(name, (Call("eye", (Number(size),)), *arguments), keywords)
        at[axis] = algebra.fresh()
        matrix = algebra.of_atom(algebra.atom("array", means, (), (size, out)))
        operands.append((matrix, (at[axis], axis)))
    return algebra.einsum([*operands, (reader.of(inner), tuple(at))], node.shape)


def maxima(reader: Reader, node: Node, inner: Node, rules: tuple[Any, ...]) -> Sum:
    """The largest of each window."""
    rules, source, lead = _plain(reader, node, inner, rules)
    dims = len(rules)
    inside, outside = source.shape[-dims:], tuple(rule[1] for rule in rules)
    called = pooled_by(node.op.key, rules, inside)
    if called is None:
        raise NoFormula(node)
    name, given, keywords = called
    arguments = tuple(Name(static_text(numbers)) for numbers in given)
    if rules[0][0] == "adaptive":
        width = tuple(n // out for n, out in zip(inside, outside, strict=True))
        apart = all(n == k * out for n, k, out in zip(inside, width, outside, strict=True))
        window = Window(width, (0,) * dims, (1,) * dims)
    else:
        width, stride, padding, dilation = (tuple(r[i] for r in rules) for i in (2, 3, 4, 5))
        apart = set(dilation) == {1} and all(s >= k for s, k in zip(stride, width, strict=True))
        window = Window(stride, padding, dilation)
    sizes = outside + inside + width
    data = Pool(name, arguments, keywords, window if apart else None, sizes)
    shape = lead + outside
    found = reader.algebra.of_atom(reader.algebra.atom("maxima", data, (source,), shape))
    return reader.algebra.moved(found, _labels(_kept(node, len(shape)), shape), node.shape)


def _plain(
    reader: Reader, node: Node, inner: Node, rules: tuple[Any, ...]
) -> tuple[tuple[Any, ...], Sum, Shape]:
    """The rules, the input and the shape ahead; of one dim without the axis that stands for the
    first of two."""
    source = reader.of(inner)
    if len(rules) == 2 and rules[0][:3] in WHOLE and inner.shape[-2] == 1:
        order = _labels([*range(inner.ndim - 2), 0, inner.ndim - 2], inner.shape)
        rest = inner.shape[:-2] + inner.shape[-1:]
        return rules[1:], reader.algebra.moved(source, order, rest), rest[:-1]
    return rules, source, inner.shape[: inner.ndim - len(rules)]


def _kept(node: Node, axes: int) -> list[int]:
    """Which axes of a node the axes of a result are."""
    return [*range(axes - 1), node.ndim - 1]


def _labels(at: Any, shape: Shape) -> tuple[Label, ...]:
    return tuple(None if n == 1 else x for x, n in zip(at, shape, strict=True))


def _arguments(stride: Shape, padding: Shape, kernel: Shape) -> tuple[Name, ...]:
    return tuple(Name(static_text(numbers)) for numbers in moving(stride, padding, kernel))


POOLS: dict[str, Callable[..., Sum]] = {
    "mean_windows": means, "adaptive_mean": means, "max_windows": maxima,
}  # fmt: skip


# -- writing --------------------------------------------------------------------------------------


def pooled(
    printer: AtomPrinter, factor: Factor, inner: Forms, outside: set[Any], sizes: Any
) -> Forms:
    """What a pool makes of a part, or what undoes it."""
    found: Forms = {}
    atom = printer.algebra.atoms[factor.atom]
    data: Pool = atom.data
    dims = len(data.sizes) // 3
    places = factor.at[-2 * dims : -dims], factor.at[-dims:]
    ahead = factor.at[: -2 * dims]
    for back, (old, new) in enumerate((places[::-1], places)):
        if not outside.isdisjoint(old) or (atom.parts and not back):
            continue
        size_of = data.sizes[:dims] if back else data.sizes[dims : 2 * dims]
        for (layout, below), form in inner.items():
            if below or any(is_label(x) and x in layout for x in new):
                continue
            lead = ahead if atom.parts else _ahead(layout, old)
            shape = (*(sizes.get(x, 1) for x in lead), *size_of)
            whole = _whole(form, layout, lead + old, shape)
            if whole is None or len(lead) > 2:
                continue
            if not back:
                made = Form(Call(data.name, (whole.shown, *data.arguments)))
            elif atom.parts:
                made = _put_back(printer, data, whole.shown, atom.parts[0], dims)
            else:
                made = _shared(data, whole.shown, shape[len(lead) - 1], dims)
            shown = Form(made.shown, whole.marks + made.marks)
            add(found, lead + new, False, shown)
    return found


def _ahead(layout: Layout, places: Layout) -> Layout:
    """The axes in front of those that are pooled, one or two."""
    dims = len(places)
    if layout[-dims:] == places and len(layout) > dims:
        return layout[:-dims]
    return tuple(x for x in layout if is_label(x) and x not in places) or (None,)


def _whole(form: Form, layout: Layout, want: Layout, shape: Shape) -> Form | None:
    """A form with the wanted axes, also those along which it does not change."""
    if layout == want:
        return form
    labels = tuple(x for x in want if is_label(x) and x in layout)
    plain = arranged(form, layout, labels)
    if plain is None:
        return None
    marks = [":" if x in labels else "None" for x in want]
    stretched = not labels or len(labels) < sum(map(is_label, want))
    while stretched and marks and marks[0] == "None":
        del marks[0]
    if "None" in marks:
        shown = Index(plain.shown, ", ".join(marks))
        plain = Form(shown, plain.marks + 1)
    if not stretched:
        return plain
    ones = constant_array(1, shape)
    return ones if plain.shown == Number(1) else times(ones, plain)


def _shared(data: Pool, shown: Any, channels: int, dims: int) -> Form:
    """The shares of each mean, given to what it was made of."""
    assert data.window is not None
    kernel = data.sizes[2 * dims :]
    window = data.window._replace(groups=channels)
    name, keywords = called(window, data.sizes, INPUT)
    ones = Infix("div", filled("ones", (channels, 1, *kernel)), Number(prod(kernel)))
    return Form(Call(name, (shown, ones), keywords))


def result_of(data: Pool, inner: Any, at: int) -> Any:
    """The maxima of something, or their places."""
    asked = (("return_indices", "True"),) if at and data.name not in BOTH else ()
    made = Call(data.name, (inner, *data.arguments), data.keywords + asked)
    return Index(made, at) if at or data.name in BOTH else made


def _put_back(printer: AtomPrinter, data: Pool, shown: Any, inner: Sum, dims: int) -> Form:
    """At the places of the maxima, added where one place is the largest of several windows."""
    source = printer.whole(inner)
    places: Any = result_of(data, source.shown, 1)
    outside, inside, kernel = (data.sizes[i * dims : (i + 1) * dims] for i in range(3))
    if data.window is not None:
        stride, padding, *_ = data.window
        usual = tuple((out - 1) * s + k - 2 * p for out, s, k, p in
                      zip(outside, stride, kernel, padding, strict=True))  # fmt: skip
        keywords = (("output_size", static_text(inside)),) if usual != inside else ()
        name = f"max_unpool{dims}d"
        whole = Call(name, (shown, places, *_arguments(stride, padding, kernel)), keywords)
        return Form(whole, source.marks)
    lead = inner.shape[: len(inner.shape) - dims]
    zeros = filled("zeros", (*lead, prod(inside)))
    axis = Number(len(lead))
    axes = len(inner.shape)
    if dims > 1:
        places, shown = (flattened(x, len(lead), axes, axes) for x in (places, shown))
    whole = Call("scatter_add", (zeros, axis, places, shown))
    if dims > 1:
        whole = Call("unflatten", (whole, axis, Name(static_text(inside))))
    return Form(whole, source.marks)
