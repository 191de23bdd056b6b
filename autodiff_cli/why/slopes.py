"""Repairs of slopes that are zero: straight-through forms, leaky relus, flatter arguments."""

from __future__ import annotations

from collections.abc import Iterator

from ..language.syntax import tree as s
from ..source import Span
from .edits import Text, callee
from .finite import operand_of

CASTS = frozenset({"long", "int", "short", "char", "byte", "bool", "to", "type"})


def _forward_of(text: Text, node: s.Node, smooth: str) -> str:
    """The value of `node` with the slope of `smooth`."""
    form = f"{smooth} + ({text.plain(node)} - {smooth}).detach()"
    parent = text.parents.get(id(node))
    return form if isinstance(parent, s.Assign | s.Return) else f"({form})"


def straight_through(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """The flat value forward, the slope of its operand backward."""
    node = text.at(span)
    if isinstance(node, s.BinOp) and node.op == "//":
        smooth = f"{s.operand(node.left)} / {s.operand(node.right)}"
        yield text.put(node, _forward_of(text, node, f"({smooth})"))
    if isinstance(node, s.Compare) and len(node.ops) == 1 and node.ops[0] in ("<", "<=", ">", ">="):
        left, right = s.operand(node.left), s.operand(node.comparators[0])
        sides = (left, right) if node.ops[0][0] == ">" else (right, left)
        soft = f"torch.sigmoid({sides[0]} - {sides[1]})"
        hard = f"({text.plain(node)}).float()"
        yield text.put(node, f"({soft} + ({hard} - {soft}).detach())")
    operand = None if node is None else operand_of(node)
    if operand is not None and isinstance(node, s.Call):
        smooth = s.operand(operand)
        yield text.put(node, _forward_of(text, node, smooth))


def without_cast(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """Without the cast, or with the slope of what is cast."""
    node = text.at(span)
    if not isinstance(node, s.Call) or callee(node) not in CASTS:
        return
    operand = operand_of(node)
    if operand is None:
        return
    value = s.operand(operand)
    yield text.put(node, value)
    yield text.put(node, _forward_of(text, node, value))


def leaky(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """A relu that lets a little through; as little as the loss allows."""
    node = text.at(span)
    if not isinstance(node, s.Call):
        return
    layers = text.every(s.Call, lambda call: callee(call) == "ReLU")
    for slope in ("0.01", "1e-3", "1e-4", "1e-5"):
        operand = operand_of(node)
        if callee(node) in ("relu", "relu_") and operand is not None:
            prefix = "torch.nn.functional." if text.python else ""
            form = f"{prefix}leaky_relu({text.plain(operand)}, {slope})"
            if callee(node) == "relu_" and isinstance(text.parents.get(id(node)), s.ExprStmt):
                form = f"{text.plain(operand)} = {form}"
            yield text.put(node, form)
        if layers:
            edits = []
            for layer in layers:
                function = text.plain(layer.func).replace("ReLU", "LeakyReLU")
                edits.append(text.replaced(layer, f"{function}({slope})"))
            yield text.changed(edits)


def steeper(text: Text, span: Span | None, name: str) -> Iterator[str]:
    """The operand of a saturated op scaled to where it has a slope."""
    node = text.at(span)
    operand = None if node is None else operand_of(node)
    if node is None or operand is None:
        return
    for factor in ("0.1", "0.01", "1e-3", "1e-4", "1e-6", "4"):
        scaled = f"{s.operand(operand)} * {factor}"
        method = isinstance(node, s.Call) and operand not in node.args
        yield text.put(operand, f"({scaled})" if method else scaled)
    value = s.operand(operand)
    yield text.put(node, f"({value} + {text.plain(node)})")
