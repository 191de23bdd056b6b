"""Convolutions: products of an input and a kernel with an array of zeros and ones, which is 1 where
a place of the kernel meets a place of the input for a place of the result.

Each of the three is linear in the other two, so that a derivative is a convolution again: of the
result with the flipped kernel (`conv_transpose`), or of the input with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from ...graph.node import Node, Shape
from ..terms import Factor, Label, NoFormula, Sum
from ..writing.expression import Call, Index, Name, Number, filled
from ..writing.forms import Form, Forms, Layout, add, is_label
from ..writing.windowed import INPUT, KERNEL, MADE, RESULT, Window, along, called
from .axes import resized
from .places import applied
from .pools import pooled

if TYPE_CHECKING:
    from ..algebra import Algebra
    from ..reading import Reader
    from ..writing.atom_form import AtomPrinter


# -- reading --------------------------------------------------------------------------------------


def convolved(reader: Reader, node: Node, source: Node, kernel: Node, steps: Any, *_: Any) -> Sum:
    """A convolution; transposed, what its input gets of its result."""
    made = MADE[node.op.key]
    parts = (node, source, kernel) if made == RESULT else (source, node, kernel)
    return _product(reader, node, steps, parts, made)


def _product(
    reader: Reader, node: Node, steps: Any, parts: tuple[Node, ...], made: int
) -> Sum:  # fmt: skip
    """The one of result, input and kernel that is `made` of the other two. In groups the array of
    zeros and ones has the channels too: of the input, of the result, and those of the kernel."""
    algebra, dims = reader.algebra, node.ndim - 2
    names: dict[str, Label] = {}
    ends = [["n", "o"], ["n", "c"], ["o", "c" if steps.groups == 1 else "own"]]
    axes_of = [
        [*lead, *(f"{which}{d}" for d in range(dims))]
        for which, lead in zip("tsk", ends, strict=True)
    ]
    for axis, name in enumerate(axes_of[made]):
        names[name] = axis
    for name in (name for part in axes_of for name in part):
        names.setdefault(name, algebra.fresh())
    sizes = tuple(size for part in parts for size in part.shape[2:])
    at = [names[name] for part in axes_of for name in part[2:]]
    if steps.groups != 1:
        at += [names[name] for name in ("c", "o", "own")]
        sizes += parts[INPUT].shape[1], *parts[KERNEL].shape[:2]
    data = Window(steps.stride, steps.padding, steps.dilation, steps.groups)
    window = algebra.of_atom(algebra.atom("window", data, (), sizes))
    operands: list[tuple[Sum, tuple[Label, ...]]] = []
    operands.append((window, _labels(at, sizes)))
    for which, part in enumerate(parts):
        if which != made:
            labels = _labels([names[name] for name in axes_of[which]], part.shape)
            operands.append((reader.of(part), labels))
    return algebra.einsum(operands, node.shape)


def _labels(at: list[Label], shape: Shape) -> tuple[Label, ...]:
    return tuple(None if size == 1 else x for x, size in zip(at, shape, strict=True))


def unfolded(reader: Reader, node: Node, inner: Node, dim: int, size: int, step: int) -> Sum:
    """`x.unfold(dim, size, step)`."""
    if not inner.ndim:
        raise NoFormula(node)
    algebra, axis = reader.algebra, dim % inner.ndim
    label: Label = algebra.fresh()
    sizes = (node.shape[axis], inner.shape[axis], size)
    window = algebra.of_atom(algebra.atom("window", Window((step,), (0,), (1,)), (), sizes))
    operands: list[tuple[Sum, tuple[Label, ...]]] = [
        (window, _labels([axis, label, node.ndim - 1], sizes)),
        (
            reader.of(inner),
            _labels([*range(axis), label, *range(axis + 1, inner.ndim)], inner.shape),
        ),
    ]
    return algebra.einsum(operands, node.shape)


WINDOWS: dict[str, Callable[..., Sum]] = {**dict.fromkeys(MADE, convolved), "unfold": unfolded}


# -- writing --------------------------------------------------------------------------------------


def convolutions(
    algebra: Algebra, factor: Factor, subset: int, table: list[Forms], outside: set[Any]
) -> Forms:
    """The ways to write the product of a window and two parts of a subset: an input or result, and
    a kernel or result."""
    window, sizes = algebra.atoms[factor.atom].data, algebra.atoms[factor.atom].shape
    forms: Forms = {}
    dims = len(window.stride)
    places = [factor.at[i * dims : (i + 1) * dims] for i in range(3)]
    channels = factor.at[3 * dims :]
    for first, second, made in (
        (INPUT, KERNEL, RESULT),
        (RESULT, KERNEL, INPUT),
        (INPUT, RESULT, KERNEL),
    ):
        summed = {x for x in (*places[first], *places[second]) if is_label(x)}
        if summed & outside:
            continue
        name, keywords = called(window, sizes, made)
        pairs = []
        part = (subset - 1) & subset
        while part:
            pairs.append((table[part], table[subset ^ part]))
            part = (part - 1) & subset
        if second == KERNEL and not channels:  # sums of what is in a window
            ones = filled("ones", (1, 1, *sizes[2 * dims :]))
            key = (None, None, *places[KERNEL]), False
            pairs.append((table[subset], {key: Form(ones)}))
        for one, other in pairs:
            for (x, lead), (y, tail) in product(
                _all_batches(one, places[first]), _all_batches(other, places[second])
            ):
                rest = _rest(lead, tail, made, channels, outside)
                if rest is None:
                    continue
                if channels and made == KERNEL:
                    x, lead = _of_groups(x, window.groups, sizes[-1], dims), channels[2:]
                shown = Call(name, (x.shown, y.shown), keywords)
                form = Form(shown, x.marks + y.marks)
                if made == KERNEL:
                    form = _cropped(form, window, sizes, dims)
                _with_axes(form, (lead[0], rest[0]), places[made], forms)
    if dims == 1 and (window.padding, window.dilation, channels) == ((0,), (1,), ()):
        _unfolded(factor, window, table[subset], outside, sizes, forms)
    return forms


def _rest(
    lead: Layout, tail: Layout, made: int, channels: Layout, outside: set[Any]
) -> Layout | None:
    """The channel of what is made of two parts with these axes in front; None where they do not
    meet."""
    if not channels:
        channel, rest = tail if made == INPUT else tail[::-1]
        return None if lead[1] != channel or channel in outside else (rest,)
    of_input, of_result, own = channels
    if made == KERNEL:
        met = lead[1] == of_input and tail == (of_result, lead[0])
        return (of_result,) if met and not {*lead} & outside else None
    source, made_of = (of_input, of_result) if made == RESULT else (of_result, of_input)
    if lead[1] != source or tail != (of_result, own) or {source, own} & outside:
        return None
    return (made_of,)


def _of_groups(form: Form, groups: int, own: int, dims: int) -> Form:
    """An input whose batches are the channels of its groups, and these the batches."""
    if own == 1:
        whole = Call("flatten", (_swapped(form).shown, Number(0), Number(1)))
        return Form(Index(whole, "None"), form.marks + 3)
    split = Call("unflatten", (form.shown, Number(1), Name(f"({groups}, {own})")))
    order = Name(f"({', '.join(map(str, (2, 1, 0, *range(3, 3 + dims))))})")
    whole = Call("flatten", (Call("permute", (split, order)), Number(1), Number(2)))
    return Form(whole, form.marks + 3)


def _unfolded(
    factor: Factor, window: Window, inner: Forms, outside: set[Any], sizes: Shape, forms: Forms
) -> None:
    """`x.unfold(...)` of a part with the axis of the input."""
    to, source, within = factor.at
    for (layout, below), form in inner.items():
        if below or layout.count(source) != 1 or not is_label(source) or source in outside:
            continue
        if to in layout or within in layout or None in (to, within):
            continue
        axis = layout.index(source)
        ends = map(Number, (axis, sizes[2], window.stride[0]))
        made = Form(Call("unfold", (form.shown, *ends)), form.marks)
        add(forms, (*layout[:axis], to, *layout[axis + 1 :], within), False, made)


def _all_batches(forms: Forms, places: Layout) -> list[tuple[Form, Layout]]:
    found = ((form, layout) for (layout, below), form in forms.items() if not below)
    return [batch for form, layout in found for batch in _batches(form, layout, places)]


def _batches(form: Form, layout: Layout, places: Layout) -> Iterator[tuple[Form, Layout]]:
    """A form as an array with two axes in front of the places: itself, with these axes exchanged,
    with axes of one element."""
    dims = len(places)
    if layout[len(layout) - dims :] != places or len(layout) < dims:
        return
    lead = layout[: len(layout) - dims]
    shown: Any = form.shown
    if len(lead) == 2:
        yield form, lead
        if lead != (None, None):
            yield _swapped(form), lead[::-1]
    elif len(lead) == 1:
        if isinstance(shown, Index) and shown.at in ("0", ":, 0"):
            return
        for text, found in (("None", (None, *lead)), (":, None", (*lead, None))):
            yield Form(Index(shown, text), form.marks + 1), found
    elif not lead:
        yield Form(Index(shown, "None, None"), form.marks + 1), (None, None)


def _swapped(form: Form) -> Form:
    shown = Call("transpose", (form.shown, Number(0), Number(1)))
    return Form(shown, form.marks + 1)


def _cropped(form: Form, window: Window, sizes: Shape, dims: int) -> Form:
    """Without what a stride leaves over at the end of the kernel."""
    places = []
    for d, (out, size, kernel) in enumerate(along(sizes, dims)):
        reach = size + 2 * window.padding[d] - window.stride[d] * (out - 1) - 1
        places.append(f":{kernel}" if reach // window.dilation[d] + 1 > kernel else ":")
    if set(places) == {":"}:
        return form
    return Form(Index(form.shown, ", ".join((":", ":", *places))), form.marks)


def _with_axes(form: Form, lead: Layout, places: Layout, forms: Forms) -> None:
    """A form with both of its axes in front in either order, and without those of one element."""
    add(forms, lead + places, False, form)
    if None not in lead:
        add(forms, lead[::-1] + places, False, _swapped(form))
        return
    text = {(True, True): "0, 0", (True, False): "0", (False, True): ":, 0"}[
        lead[0] is None, lead[1] is None
    ]
    kept = tuple(x for x in lead if x is not None)
    shown = Form(Index(form.shown, text), form.marks + 1)
    add(forms, kept + places, False, shown)
    if kept:  # the axis of one element on the other side
        add(forms, lead[::-1] + places, False, _swapped(form))


def moved(
    printer: AtomPrinter, factor: Factor, inner: Forms, outside: set[Any], sizes: Any
) -> Forms:
    """Slices and the like of a part, and what undoes them."""
    found: Forms = {}
    kind = printer.algebra.atoms[factor.atom].kind
    if kind == "pool":
        return pooled(printer, factor, inner, outside, sizes)
    if kind == "split":
        return resized(factor, sizes, inner, outside)
    if kind not in ("move", "one_hot", "mask") or (kind != "one_hot" and len(factor.at) != 2):
        return found
    for (layout, below), form in inner.items():
        shown: Any = form.shown
        if below or (isinstance(shown, Index) and shown.at == ":, None"):
            continue
        ends = factor.at[:-1], factor.at[-1:]
        for back, (to, source) in enumerate((ends, ends[::-1])):
            if not source:
                continue
            axis = layout.index(source[0]) if source[0] in layout else len(layout)
            end = axis + len(source)
            if layout[axis:end] != source or not outside.isdisjoint(source):
                continue
            if not all(map(is_label, (*to, *source))) or not {*to}.isdisjoint(layout):
                continue
            if all(layout.count(x) == 1 for x in source):
                shape = tuple(sizes.get(x, 1) for x in layout)
                made = applied(printer, factor.atom, shown, axis, shape, bool(back))
                if made is not None:
                    new = (*layout[:axis], *to, *layout[end:])
                    whole = Form(made.shown, form.marks + made.marks)
                    add(found, new, False, whole)
    return found
