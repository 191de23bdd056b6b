"""Programs that run and do not do what they say: a method that is named and not called, which is
E208 where it is the result of a native file; a loss of two shapes that make a third."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, Diagnostic, Label, fail
from ...graph.node import Node
from ...graph.state import STATE
from ..errors.operand_labels import gives_nothing, number_of
from ..syntax import tree as syntax
from ..values.dialect import kind_of
from ..values.values import Builtin, OpFunction, TypeName

CALLED = ("backward", "step", "zero_grad", "retain_grad", "requires_grad_", "train", "eval")
BETWEEN = frozenset({"sum", "mean", "pow", "square", "abs", "mul", "div"})
COMPARING = frozenset({"sub", "rsub", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
MOST = 8  # operations between the loss and the difference in it


def slips(tree: syntax.Module | None, loss: Node | None, ran: bool) -> list[Diagnostic]:
    """The warnings of a program that differentiated `loss`, if it `ran` to its end."""
    found = [] if tree is None else [_not_called(method) for method in _named_only(tree)]
    found += [] if tree is None else map(_not_assigned, _compared_only(tree))
    if ran and tree is not None and "^" in tree.span.source.text and not STATE.python:
        for node in syntax.walk(tree):
            by = isinstance(node, syntax.BinOp | syntax.AugAssign) and node.op == "^"
            if by and re.search(r"\^=?\s*\d+$", node.span.text):
                found.append(_no_power(node))
    difference = _difference(loss)
    return found if difference is None else [*found, _stretched(difference)]


def _no_power(node: syntax.Node) -> Diagnostic:
    text = " ".join(node.span.text.split())
    help = f"for the power write `{text.replace('^', '**')}`"
    return _warning("W105", f"`{text}` is the bitwise xor of whole numbers", node.span, "", help)


def _compared_only(tree: syntax.Module) -> Iterator[syntax.Compare]:
    """Statements that compare; the last one shows its value."""
    for statement in tree.body[:-1]:
        value = statement.value if isinstance(statement, syntax.ExprStmt) else None
        if isinstance(value, syntax.Compare) and value.ops == ["=="]:
            yield value


def _not_assigned(compared: syntax.Compare) -> Diagnostic:
    left, right = compared.left.span.text, compared.comparators[0].span.text
    told, help = f"`{left} == {right}` compares and does nothing", f"`{left} = {right}`"
    return _warning("W208", told, compared.span, "not an assignment", f"to assign write {help}")


def _named_only(tree: syntax.Module) -> Iterator[syntax.Attribute]:
    text = tree.span.source.text
    if [w for w in CALLED if w in text and text.count(f".{w}") > text.count(f".{w}(")]:
        for node in syntax.walk(tree):
            value = node.value if isinstance(node, syntax.ExprStmt) else None
            if isinstance(value, syntax.Attribute) and value.attr in CALLED:
                yield value


def _not_called(method: syntax.Attribute) -> Diagnostic:
    text = " ".join(method.span.text.split())
    told = f"`{text}` is named and not called: it does nothing"
    return _warning("W208", told, method.span, "no `()` behind it", f"write `{text}()`")


def _warning(code: str, told: str, span: Any, label: str, help: str) -> Diagnostic:
    return Diagnostic(code, told, span, label, helps=(help,), severity="warning")


def _difference(loss: Node | None) -> Node | None:
    """The comparison of a vector with a column that a loss sums up."""
    node = loss
    for _ in range(MOST):
        if node is None:
            return None
        if node.op.key in COMPARING and len(node.inputs) == 2:
            a, b = sorted(operand.shape for operand in node.inputs)
            return node if len(a) == 1 and a[0] > 1 and b == (a[0], 1) else None
        if node.op.key not in BETWEEN:
            return None
        operands = [operand for operand in node.inputs if operand.requires_grad]
        node = operands[0] if operands else None
    return None


def _stretched(node: Node) -> Diagnostic:
    operands = [x.inputs[0] if x.op.key == "cast" else x for x in node.inputs]
    column = max(operands, key=lambda operand: len(operand.shape))
    size = column.shape[0]
    span = column.span
    name = "" if span is None else span.assigned or span.text
    plain = name if name.isidentifier() else f"({name})"
    help = f"make them one shape: write `{plain}.squeeze(1)` for `{name}`"
    return Diagnostic(
        "W302",
        f"({size},) and ({size}, 1) broadcast to ({size}, {size}): every number is compared with "
        "every other",
        node.span,
        labels=tuple(
            Label(x.span, f"{x.shape}") for x in operands if x.span not in (None, node.span)
        ),
        helps=(help if name else "squeeze(1) the column",),
        severity="warning",
    )


def forgotten_call(body: list[syntax.Node], names: dict[str, Any]) -> AutodiffError | None:
    """The error if `loss`, or what the last statement assigns, is a method of a tensor; if `loss`
    is None or several numbers."""
    for statement in reversed(body):
        if error := _no_number(statement, names):
            return error
        found = _assigned_method(statement, names)
        if found is not None and (found[0] == "loss" or statement is body[-1]):
            name, method = found
            return fail(
                "E208",
                f"`{name}` is the method `{method.attr}` itself: it is not called",
                method.span,
                label="no `()` behind it",
                help=f"write `{name} = {' '.join(method.span.text.split())}()`",
            )
    return None


def _no_number(statement: syntax.Node, names: dict[str, Any]) -> AutodiffError | None:
    """The error if `loss` is what a function without `return` gives, numbers with commas, or a
    class."""
    if not isinstance(statement, syntax.Assign) or "loss" not in names:
        return None
    loss, target, value = names["loss"], statement.targets[0], statement.value
    nothing = loss is None and isinstance(value, syntax.Call)
    if getattr(target, "id", "") != "loss" or not (nothing or type(loss) in (tuple, TypeName)):
        return None
    if type(loss) is TypeName:
        of = syntax.operand(value.value) if isinstance(value, syntax.Attribute) else "x"
        help = f"a class has no gradient; for the tensor write `loss = {of}.sum()`"
    else:
        help = gives_nothing(value) if nothing else number_of("loss", loss)
    told = f"the objective must be a single number, but `loss` is {kind_of(loss)}"
    return fail("E401", told, value.span, help=help)


def _assigned_method(
    statement: syntax.Node, names: dict[str, Any]
) -> tuple[str, syntax.Attribute] | None:
    """`name` and `tensor.method` of an assignment, if the name still is that method."""
    method = statement.value if isinstance(statement, syntax.Assign) else None
    if not isinstance(statement, syntax.Assign) or not isinstance(method, syntax.Attribute):
        return None
    target, base = statement.targets[0], method.value
    if not isinstance(target, syntax.Name):
        return None
    if not isinstance(names.get(target.id), OpFunction | Builtin):
        return None
    if isinstance(base, syntax.Name) and not isinstance(names.get(base.id), Tensor):
        return None  # a function of a module: an alias
    return target.id, method
