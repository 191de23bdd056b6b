"""Errors of operations get their place here: the source text that failed, the operands with their
names and shapes, and a correction in the program's own words.

Invariant: an error that has a place already is passed on as it is.
"""

from __future__ import annotations

import re
from typing import Any

from ...autograd.calls import Results
from ...autograd.tensor import Tensor
from ...errors import AutodiffError, Label, named_message
from ...graph.node import Shape
from ...graph.registry import overloads
from ...graph.shapes import broadcast_shapes
from ...graph.sizes import shape_text
from ...graph.state import STATE
from ...source import Source
from ..syntax import tree as syntax

LONGEST_NAME, LONGEST_PART = 30, 200
UNCLEAR = "E408 truth-tensor-elements"


def placed(error: AutodiffError, span: Any) -> AutodiffError:
    """Give an error a place when it has none."""
    if error.span is not None or span is None:
        return error
    unclear = error.which == UNCLEAR
    if unclear and type(span.source) is Source and "\n" not in span.text:
        text = span.text if re.fullmatch(r"[\w.]+", span.text) else f"({span.text})"
        helps = [f"reduce it: `{text}.any()` or `{text}.all()`"]
        if re.search("[<>=]", text):
            where = f"{'torch.' if STATE.python else ''}where"
            helps.append(f"or choose element by element: `{where}({span.text}, ..., ...)`")
        error.amend(helps=tuple(helps))
    if error.which == "E208 cannot-iterate" and str(error.facts["0"]).startswith("an int"):
        error.amend(helps=(f"write `range({span.text})` for `{span.text}`",))
    changed = re.match(r"(\w+)\.requires_grad\b", span.text)
    if changed and error.which == "E306 only-floating-point-tensors":
        error.amend(
            helps=(f"use floats, `[1.0, 2.0]`, or first `{changed[1]} = {changed[1]}.float()`",)
        )
    return error.amend(span=span)


def placed_choice(error: AutodiffError, tree: syntax.IfExp) -> AutodiffError:
    """For `x if x > 0 else 0` of a tensor: the choice that is made element by element."""
    if error.diagnostic.span is tree.test.span and error.which == UNCLEAR:
        parts = ", ".join(part.span.text for part in (tree.test, tree.body, tree.orelse))
        call = f"{'torch.' if STATE.python else ''}where({parts})"
        if "\n" not in call:
            error.amend(helps=(f"element by element: write `{call}` for `{tree.span.text}`",))
    return error


def placed_attribute(error: AutodiffError, tree: syntax.Attribute, value: Any) -> AutodiffError:
    """Give an attribute's error its place; what is no tensor yet becomes one by a call or index."""
    if error.span is None and error.code == "E207":
        error = _not_yet(error, tree.value, value)
        left = re.compile(rf"^[ \t]*{re.escape(tree.value.span.text)} = math\.(\w+\(.*)$", re.M)
        calls = left.findall(tree.span.source.text, 0, tree.span.start)
        if isinstance(value, float) and tree.attr == "backward" and calls:
            error.amend(
                helps=(f"numbers have no graph: write `torch.{calls[-1]}` for `math.{calls[-1]}`",)
            )
        if hasattr(value, "modules") and tree.attr in _OF_KERAS:
            name = tree.value.span.text
            error.amend(helps=(_OF_KERAS[tree.attr].replace("model", name),))
    return placed(error, tree.attr_span if error.code in ("E207", "E203") else tree.span)


_NUMBER = re.compile(r" *[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)? *")
# What models of Keras have, and what does it here.
_OF_KERAS = {
    "fit": "train it in a loop: `optimizer.zero_grad(); loss.backward(); optimizer.step()`",
    "evaluate": "compute the loss under `with torch.no_grad():`",
    "predict": "call it: write `model` for `model.predict`",
    "summary": "write `print(model)` for `model.summary()`",
}


def _not_yet(error: AutodiffError, tree: syntax.Node, value: Any) -> AutodiffError:
    name = syntax.operand(tree) if shown_name(tree) else ""
    items = value if type(value) in (list, tuple) else ()
    alike = len({v.shape if isinstance(v, Tensor) else None for v in items}) == 1
    if name and type(value) is list and alike and isinstance(value[0], Tensor):
        error.amend(helps=(f"a list is no tensor: write `torch.stack({name})` for `{name}`",))
    elif name and items and isinstance(items[0], Tensor):
        error.amend(helps=(f"it has {len(value)} items: write `{name}[0]` for `{name}`",))
    elif name and isinstance(value, Results):
        error.amend(helps=(several(name, value),))
    elif name and str(error.facts.get("0")).startswith("the function "):
        error.amend(helps=(f"call it: write `{name}()` for `{name}`",))
    elif value is None and name:
        made = re.compile(rf"^[ \t]*{re.escape(name)} = (.*\))$", re.M)
        calls = made.findall(tree.span.source.text, 0, tree.span.start)
        call = tree.span.text if isinstance(tree, syntax.Call) else (calls or [""])[-1]
        if _definition(call, tree.span.source.text):
            error.amend(helps=(gives_nothing(tree, call),))
    return error


def _definition(call: str, text: str) -> re.Match[str] | None:
    """The function that a text calls, or the `forward` of a model that it calls, and its body."""
    for name in (call.partition("(")[0], "forward") if "(" in call else ():
        head = rf"^([ \t]*)def {re.escape(name)}\(.*?\): *"
        found = re.findall(head, text, re.M)
        if len(found) == 1:
            return re.search(rf"{head}(\S.*|(?:\n(?:\1[ \t]+.*)?)+)", text, re.M)
    return None


def gives_nothing(call: syntax.Node, text: str = "") -> str:
    """For a call of a function that ends without `return`."""
    text = text or call.span.text
    told, found = f"`{text}` gives None", _definition(text, call.span.source.text)
    last = found[2].strip().rpartition("\n")[2].strip() if found else ""
    value = re.fullmatch(r"(?:[^\W\d]\w* = )?([\w(\[.-].*)", last)
    if value is None or re.match(r"(return|raise|pass|if|for|while|print|assert)\b", last):
        return f"{told}: end its function with `return`"
    return f"{told}: write `return {value[1]}` for `{last}`"


def several(name: str, value: Results) -> str:
    """For results that were taken for one tensor."""
    fields = " or ".join(f"`{name}.{field}`" for field in value.fields)
    return f"it is several tensors: write {fields} for `{name}`"


def number_of(name: str, value: Any) -> str:
    """For braces and decimal commas, which make no tensors."""
    if type(value) is set or type(value) is frozenset:
        return f"`{name}` is a set, which has no order: write its numbers as a list, `[...]`"
    return (
        f"`{name}` is a tuple of {len(value)}: a tensor is a list, `[...]`, a decimal has a point"
    )


def shown_name(tree: syntax.Node) -> str:
    """The text of an expression if it is short enough to stand in a message, else empty."""
    text = tree.span.text
    return text if len(text) <= LONGEST_NAME and "\n" not in text else ""


def labelled(tree: syntax.Node, tensor: Tensor, code: str) -> Label:
    """An operand with its shape, and for errors of dtypes its dtype."""
    name = f"{tree.id}: " if isinstance(tree, syntax.Name) else ""
    dtype = f" {tensor.dtype.name}" if code == "E307" else ""
    return Label(tree.span, f"{name}{shape_text(tuple(tensor.shape))}{dtype}")


def placed_operator(
    error: AutodiffError, tree: syntax.BinOp, left: Any, right: Any
) -> AutodiffError:
    """Give an operator's error its place and label both operands with their shapes."""
    if error.span is not None:
        return error
    for part, value in ((tree.left, left), (tree.right, right)):
        if error.code == "E208" and (help := _operand_meant(error, tree, part, value, left, right)):
            error.amend(helps=(help,))
    tensors = isinstance(left, Tensor) or isinstance(right, Tensor)
    if not tensors or not (error.code[:2] == "E3" or error.code == "E208"):
        error = with_subject(error, tree.left)
        return error.amend(span=tree.op_span if error.code == "E105" else tree.span)
    labels = [
        labelled(part, value, error.code)
        for part, value in ((tree.left, left), (tree.right, right))
        if isinstance(value, Tensor)
    ]
    error.amend(span=tree.op_span, labels=(*labels, *error.diagnostic.labels))
    if error.code == "E307" and len(labels) == 2 and left.dtype != right.dtype and STATE.python:
        whole = left.dtype.kind != "f"  # whole numbers become floats
        name = syntax.operand(tree.left if whole else tree.right)
        dtype = (right if whole else left).dtype.name
        error.amend(helps=(f"write `{name}.to(torch.{dtype})` for `{name}`",))
    if error.code == "E302":
        _explain_broadcast(error, tree, _shape(left), _shape(right))
    elif error.code == "E301" and tree.op == "@" and len(labels) == 2:
        _explain_product(error, tree, left.shape, right.shape)
    return error


# What an operator says itself of operands that it does not take; others say more.
UNFIT = ("", "E208 symbol-cannot-combine")


def _operand_meant(
    error: AutodiffError, tree: syntax.BinOp, part: syntax.Node, value: Any, left: Any, right: Any
) -> str:
    """What an operand that fits no operator was meant to be."""
    name, operand = shown_name(part), syntax.operand(part)
    if isinstance(part, syntax.Call):
        if name and value is None:
            return gives_nothing(part)
        if type(value) is tuple and value and isinstance(value[0], Tensor):
            one = f"write `{operand}[0]` for `{part.span.text}`"
            return f"it is a tuple of {len(value)}: {one}"
    if tree.op == "%" and isinstance(left, str) and (uncalled := _uncalled(tree.right, right)):
        return f"it is not called: write `{uncalled}()` for `{uncalled}`"
    if not name:
        return ""
    if f"the function `{getattr(value, 'name', '')}`" in error.facts.values():
        return raised(part.span) or f"it is not called: write `{name}()` for `{name}`"
    if type(value) is str and name.isidentifier() and _NUMBER.fullmatch(value):
        return f"it is text: write `float({name})` for `{name}`"
    if type(value) is list and STATE.python and error.which in UNFIT:
        return f"a list is no tensor: write `torch.tensor({name})` for `{name}`"
    if isinstance(value, Results):
        return several(operand, value)
    lists = isinstance(left, str | list) or isinstance(right, list)
    return number_of(name, value) if type(value) in (set, tuple) and value and not lists else ""


_RAISED = re.compile(r"([^\W\d]\w*) *(?:\^|\*\*) *(-?\d+)(\([^()\n]*\))")


def raised(span: Any) -> str:
    """For a part of `sin^2(x)`, the power of a value, or of `sin^-1(x)`, an inverse."""
    near = max(span.column - LONGEST_PART, 0), span.column + LONGEST_PART
    for found in _RAISED.finditer(span.source.line(span.line), *near):
        if found.start() < span.column <= found.end():
            name, power, operand = found.groups()
            inverse = power == "-1" and overloads(f"a{name}")
            meant = f"a{name}{operand}" if inverse else f"{name}{operand}**{power}"
            return f"write `{meant}` for `{found[0]}`"
    return ""


def remade(tree: syntax.Call, old: int, new: int) -> str:
    """The layer for another size, where the program makes it with that size once."""
    line = rf"^[ \t]*{re.escape(tree.func.span.text)} = ([\w.]+\(.*\))[ \t]*$"
    made = re.search(line, tree.span.source.text[: tree.span.start], re.M)
    other, count = re.subn(rf"\b{old}\b", str(new), made[1]) if made else ("", 0)
    return f"for this input write `{other}` for `{made[1]}`" if made and count == 1 else ""


def _uncalled(tree: syntax.Node, value: Any) -> str:
    """The method among the values of a format that its parentheses lack."""
    parts = [(tree, value)]
    if isinstance(tree, syntax.Tuple):
        parts = [*zip(tree.elements, value, strict=False)]
    return next((part.span.text for part, one in parts if callable(one)), "")


def _shape(value: Any) -> Shape:
    """The shape of a tensor or of a list of numbers."""
    if isinstance(value, Tensor):
        return value.shape
    return (len(value), *_shape(value[0])) if isinstance(value, list) and value else ()


def placed_call(
    error: AutodiffError,
    tree: syntax.Call,
    args: list[Any],
    kwargs: dict[str, Any],
    owner: Tensor | None = None,
) -> AutodiffError:
    """Give a call's error its place, and label the tensors given with their shapes; `owner` is
    the tensor whose method was called."""
    before = int(owner is not None)
    error.amend(span=tree.span)
    if owner is not None:
        error = with_subject(error, tree.func.value)  # type: ignore[attr-defined]  # a method's
    parts = [*zip(tree.args, args, strict=False)] if len(tree.args) == len(args) else []
    parts += [(k.value, kwargs.get(k.name)) for k in tree.keywords if k.name is not None]
    if error.code[:2] == "E3" or error.code in ("E205", "E408", "E503"):
        labels = [
            labelled(part, value, error.code)
            for part, value in parts
            if isinstance(value, Tensor) and not isinstance(part, syntax.Starred)
        ]
        if owner is not None and error.code[:2] == "E3":
            labels = [labelled(tree.func.value, owner, error.code), *labels]  # type: ignore[attr-defined]  # a method's
        error.amend(labels=(*labels[:3], *error.diagnostic.labels))
    from .advice import advise, marked

    if error.code == "E205":
        error = marked(error, tree, before)
    return advise(error, tree, args, tree.func.value if before else None, owner)  # type: ignore[attr-defined]  # a method's


def placed_comparison(
    error: AutodiffError, span: Any, sides: tuple[tuple[syntax.Node, Any], tuple[syntax.Node, Any]]
) -> AutodiffError:
    """Give a comparison's error its place, and label tensors that do not fit."""
    if error.span is None and error.code == "E302":
        error.amend(
            labels=tuple(
                labelled(part, value, error.code)
                for part, value in sides
                if isinstance(value, Tensor)
            )
        )
    for part, value in sides:
        if error.code == "E208" and isinstance(value, Results) and shown_name(part):
            error.amend(helps=(several(syntax.operand(part), value),))
    return placed(error, span)


def placed_index(error: AutodiffError, tree: syntax.Subscript, value: Any) -> AutodiffError:
    """Give an index's error its place, and label the tensor with its shape."""
    if error.span is None and isinstance(value, Tensor):
        error.amend(labels=(labelled(tree.value, value, error.code),))
        floats = getattr(error.facts.get("error"), "given", "") == "float"
        whole = _whole(tree.index) if floats else ""
        if error.which == "E305 cannot-index-tensor" and not isinstance(tree.index, syntax.Tuple):
            name = tree.index.span.text
            whole = f"write `{syntax.operand(tree.index)}.long()` for `{name}`, or use a bool mask"
        if whole:
            error.amend(helps=(whole,))
        return error.amend(span=tree.index.span)
    return placed(_not_yet(error, tree.value, value), tree.span)


def _whole(index: syntax.Node) -> str:
    """The part of an index that is no number of the text, as a whole number."""
    parts = index.elements if isinstance(index, syntax.Tuple) else [index]
    bounds = [
        bound
        for part in parts
        for bound in ((part.lower, part.upper, part.step) if isinstance(part, syntax.Slice)
                      else (part,))
        if isinstance(bound, syntax.Name | syntax.BinOp | syntax.Call | syntax.Attribute)
    ]  # fmt: skip
    if len(bounds) != 1:
        return ""
    text = bounds[0].span.text
    return f"write `int({text})` for `{text}`"


def with_subject(error: AutodiffError, tree: syntax.Node) -> AutodiffError:
    """Name the tensor that a lower layer, which knows no names, could only describe."""
    name = shown_name(tree)
    named = named_message(error, name) if name else ""
    if not named:
        return error
    if error.code == "E405":
        path = "torch." if "torch" in tree.span.source.text else ""
        error.amend(
            helps=(
                f"put it into a `with {path}no_grad():` block, or change a copy: "
                f"`{name.partition('[')[0]}.clone()`",
            )
        )
    return error.amend(message=named)


def _explain_broadcast(error: AutodiffError, tree: syntax.BinOp, left: Shape, right: Shape) -> None:
    """A table of the sizes under the operands' names, and the index that makes them fit."""
    a, b = shown_name(tree.left), shown_name(tree.right)
    if not a or not b:
        return
    ndim = max(len(left), len(right))
    rows = [("",) * (ndim - len(s)) + tuple(map(str, s)) for s in (left, right)]
    at = next((
        i for i in reversed(range(ndim)) if rows[0][i] != rows[1][i] and
        all(r[i] not in ("", "1") for r in rows)
    ), None)  # fmt: skip
    if at is None:
        return
    cells = max(len(v) for row in rows for v in row)
    names = max(len(a), len(b))
    lines = [
        f"{name:<{names}}   " + "  ".join(v.rjust(cells) for v in row)
        for name, row in ((a, rows[0]), (b, rows[1]))
    ]
    lines[1] += f"    <- {rows[0][at]} against {rows[1][at]}"
    lead = "shapes align from the right:   "
    error.amend(notes=(lead + lines[0] + "\n" + " " * len(lead) + lines[1],))
    vectors = len(left) == len(right) == 1
    first, last = syntax.operand(tree.left), syntax.operand(tree.right)
    words = "for every pair" if vectors else "for one value per row"
    for fits, new, x, y in (
        (len(right) == 1 and not vectors, f"{a} {tree.op} {last}[:, None]", left, (*right, 1)),
        (len(left) == 1, f"{first}[:, None] {tree.op} {b}", (*left, 1), right),
        (len(left) == 2, f"{first}.T {tree.op} {b}", left[::-1], right),
        (len(right) == 2, f"{a} {tree.op} {last}.T", left, right[::-1]),
    ):
        shape = _together(x, y)
        if fits and shape is not None:
            what = "with a transpose" if ".T" in new else words
            helps = [f"{what} write `{new}`  -> {shape_text(shape)}"]
            if tree.op == "*" and len(left) == len(right) == 2 and left[1] == right[0]:
                product = shape_text((left[0], right[1]))
                helps.append(f"the product of matrices is `{a} @ {b}`  -> {product}")
            error.amend(helps=tuple(helps))
            return


def _together(left: Shape, right: Shape) -> Shape | None:
    """What two shapes are broadcast to, if they can be."""
    try:
        return broadcast_shapes(left, right)
    except AutodiffError:
        return None


def _with_inner_sizes(
    labels: tuple[Label, ...], tree: syntax.BinOp, left: Shape, right: Shape
) -> tuple[Label, ...]:
    """The operands' labels with the sizes that a product compares, in words."""
    words = {}
    if len(left) > 1:
        words[tree.left.span] = f", columns = {left[-1]}"
    if len(right) > 1:
        words[tree.right.span] = f", rows = {right[-2]}"
    return tuple(Label(one.span, one.text + words.get(one.span, "")) for one in labels)


def _swapped(shape: Shape) -> Shape:
    """The shape of a transposed matrix or of several; empty of a vector."""
    return (*shape[:-2], *shape[:-3:-1]) if len(shape) > 1 else ()


def _transposed(name: str, shape: Shape) -> str:
    return f"{name}.T" if len(shape) == 2 else f"{name}.mT"


def _explain_product(error: AutodiffError, tree: syntax.BinOp, left: Shape, right: Shape) -> None:
    """Name the sizes that differ, and the transposition that would fit."""
    a, b = shown_name(tree.left), shown_name(tree.right)
    error.amend(
        message=f"`@` needs matching inner sizes: {shape_text(left)} @ {shape_text(right)}",
        label=f"{left[-1]} != {right[-2:][0]}",
        labels=_with_inner_sizes(error.diagnostic.labels, tree, left, right),
    )
    if not (a and b):
        return
    if b.endswith(".T") and left[-1] == right[0]:
        error.amend(helps=(f"`.T` turns all dims of a batch: write `{b[:-1]}mT` for `{b}`",))
        return
    a = a if isinstance(tree.left, syntax.Name) else f"({a})"
    b = b if isinstance(tree.right, syntax.Name) else f"({b})"
    ways = [
        (_transposed(a, left), _swapped(left), b, right),
        (a, left, _transposed(b, right), _swapped(right)),
    ]
    for first, x, second, y in ways[::-1] if len(left) > 2 else ways:  # batches: as attention does
        batch = _together(x[:-2], y[:-2])
        if x and y and x[-1] == y[-2:][0] and batch is not None:
            result = shape_text((*batch, *x[-2:-1], *y[-2:][1:]))
            shapes = f"{shape_text(x)} @ {shape_text(y)} -> {result}"
            error.amend(helps=(f"`{first} @ {second}` has shapes {shapes}",))
            return
    if len(left) != 2 or len(right) not in (1, 2):
        return
    what = "rows" if len(right) > 1 else "elements"
    wanted = f"`{b}` needs {left[-1]} {what}, not {right[0]}"
    error.amend(helps=(f"`{a}` has {left[-1]} columns, so {wanted}",))
