"""Where a NaN or an infinity was born: asked only when a result is not finite, so the good case
costs nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from ...engine.evaluate import ancestors, dependencies, evaluate
from ...errors import Diagnostic, Label
from ...graph.kinds import Kind
from ...graph.node import Node
from ...graph.op import CONSTANT, LEAF
from ..errors.domains import domain_of
from .report import TensorRecord, is_finite


def first_guilty(records: dict[str, TensorRecord], grads: dict[str, Node]) -> Diagnostic | None:
    """W501 or W502 for the first expression whose value, or what its backward gives, is not finite
    although its operands are; None when every result is finite, or the program wrote the value
    down itself."""
    bad: list[tuple[str, Node]] = []
    for name, record in records.items():
        if not is_finite(record.value) and record.node.op not in (LEAF, CONSTANT):
            bad.append((name, record.node))
        if record.grad is not None and not is_finite(record.grad):
            bad.append((f"{name}.grad", grads[name]))
    if not bad:
        return None
    nodes = ancestors([node for _, node in bad])
    evaluate([node for node in nodes if type(node.body) is not tuple])
    nan = any(np.isnan(node.value).any() for _, node in bad)
    values = [record.node for record in records.values()]
    places = Places(values)
    node = _born(nodes, np.isnan if nan else np.isinf)
    if node is None:
        return None
    infinite = _infinite_slope(node, places) if nan and places.origin(node) else None
    if infinite is not None:  # times zero it is the NaN
        found = _describe(
            infinite, places.origin(infinite), False, bad, (), "NaN begins as an infinity"
        )
        return replace(found, code="W501")
    separate = _separate(nodes, places, bad) if nan and not places.origin(node) else ()
    return _describe(node, places.origin(node), nan, bad, separate)


class Places:
    """The nodes of the forward pass by the place of their expression."""

    def __init__(self, values: list[Node]):
        self.last = max(node.seq for node in values)
        self.forward: dict[Any, Node] = {n.span: n for n in ancestors(values) if n.span is not None}

    def origin(self, node: Node) -> Node | None:
        """Return the forward node that a backward node differentiates: both have one place."""
        return self.forward.get(node.span) if node.seq > self.last else None


def _born(nodes: list[Node], test: Any) -> Node | None:
    """The first node that holds such values although its operands hold none."""
    for node in nodes:
        if node.op in (LEAF, CONSTANT) or node.span is None or node.body is not None:
            continue
        if _has(test, node) and not any(_has(test, i) for i in dependencies(node)):
            return node
    return None


def _infinite_slope(node: Node, places: Places) -> Node | None:
    """What of the backward pass made the first infinity that led to a value."""
    found = _born([n for n in ancestors([node]) if n is not node], np.isinf)
    return found if found is not None and places.origin(found) is not None else None


def _separate(nodes: list[Node], places: Places, bad: list[tuple[str, Node]]) -> tuple[str, ...]:
    """A note on a gradient that is infinite where nothing is NaN: a cause of its own."""
    node = _born([n for n in nodes if n.seq > places.last], np.isinf)
    origin = None if node is None else places.origin(node)
    if node is None or origin is None or len(origin.inputs) != 1:
        return ()
    index = [int(i) for i in np.argwhere(np.isinf(node.value))[0]]
    at = _operand_value(origin.inputs[0], node, index)
    for name, gradient in bad:
        found = np.argwhere(np.isinf(gradient.value))
        if name.endswith(".grad") and len(found) and at is not None:
            place = f"[{', '.join(map(str, found[0]))}]" if gradient.shape else ""
            value = _shown(gradient.value[tuple(found[0])])
            return (
                f"{name}{place} = {value} is separate: the slope of {origin.op.name} is infinite "
                f"at {_shown(at)}",
            )
    return ()


def _shown(value: Any) -> str:
    """A float as the program writes it: with a point."""
    text = f"{float(value):.6g}"
    return text if not text.lstrip("-").isdigit() else text + ".0"


MOST_SHOWN = 6  # elements of a gradient, and names


def _listed(bad: list[tuple[str, Node]]) -> str:
    """What is not finite in the end, with its numbers where they are few."""
    parts = []
    for name, node in sorted(bad, key=lambda pair: pair[0].endswith(".grad"))[:MOST_SHOWN]:
        value = node.value
        if value.ndim == 0:
            parts.append(f"`{name}` ({_shown(value)})")
        elif value.ndim == 1 and value.size <= MOST_SHOWN:
            parts.append(f"{name} = [{', '.join(f'{float(v):.6g}' for v in value)}]")
        else:
            count = int((~np.isfinite(value)).sum())
            parts.append(f"`{name}` ({count} of {value.size} elements)")
    if len(bad) > MOST_SHOWN:
        parts.append(f"{len(bad) - MOST_SHOWN} more")
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _has(test: Any, node: Node) -> bool:
    value = node.value
    return type(value) is np.ndarray and value.dtype.kind == "f" and bool(test(value).any())


def _describe(
    node: Node,
    origin: Node | None,
    nan: bool,
    bad: list[tuple[str, Node]],
    separate: tuple[str, ...],
    begins: str = "",
) -> Diagnostic:
    """The warning about a node; `origin` is what it is the backward of, if it is one."""
    begins = begins or f"{'NaN' if nan else 'infinity'} first appears"
    assert node.span is not None
    text = " ".join(node.span.text.split())
    shown = text if len(text) <= 60 else (origin or node).op.name
    at = np.argwhere((np.isnan if nan else np.isinf)(node.value))
    index = [int(i) for i in at[0]]
    where = f"[{', '.join(map(str, index))}]" if index else ""
    made = _shown(node.value[tuple(index)])
    quotient = node.op.name == "reciprocal" and " / " in text
    if origin is None and node.op.kind is Kind.POINTWISE and len(node.inputs) == 1 and not quotient:
        operand = _operand_value(node.inputs[0], node, index)
        made = made if operand is None else f"{node.op.name}({_shown(operand)}) = {made}"
    count = f"{len(at)} of {node.numel} elements: " if node.numel > 1 else ""
    label = f"{count}{where} = {made}" if where else f"the value = {made}"
    test = np.isnan if nan else np.isinf
    reached = [
        (name, found)
        for name, found in bad
        if (name.endswith(".grad") and _has(test, found)) or node in ancestors([found])
    ]
    said = "".join(separate)
    others = [pair for pair in bad if pair not in reached and not said.startswith(pair[0])]
    notes = [f"reaches {_listed(reached or bad)}", *separate]
    if others:
        notes.append(f"not finite for another reason: {_listed(others)}")
    if origin is not None:
        label = f"gradient, {label}" if where else f"the gradient = {made}"
        value = _operand_value(origin, node, index)
        if value is not None and np.isinf(value):
            notes.insert(0, f"the value of `{shown}` itself is {value:.6g} there")
        elif len(origin.inputs) == 1 and not nan:
            operand = _operand_value(origin.inputs[0], node, index)
            if operand is not None:
                slope = f"the slope of {origin.op.name} is infinite at {_shown(operand)}"
                notes.insert(0, slope)
    return Diagnostic(
        "W501" if nan else "W502",
        f"{begins} in {'the backward of ' if origin is not None else ''}`{shown}`",
        node.span,
        label,
        _labels(origin or node, node, index),
        tuple(notes),
        (_help(origin or node, bool(separate)),),
        "warning",
    )


QUOTIENTS = ("div", "reciprocal")


def _labels(node: Node, bad: Node, index: list[int]) -> tuple[Label, ...]:
    """What the operands are at the place of the first bad element."""
    labels = []
    domain = domain_of(node.op.name, node.dtype.name) if len(node.inputs) == 1 else None
    for operand in node.inputs:
        span = operand.span
        if span is None or span == node.span or type(operand.value) is tuple:
            continue
        value = _operand_value(operand, bad, index)
        if value is None:
            continue
        name = span.assigned or (span.text if span.text.isidentifier() else "")
        inside = [i for i, size in zip(index[len(index) - operand.ndim :], operand.shape,
                                       strict=True) if size > 1]  # fmt: skip
        place = f"[{', '.join(map(str, inside))}]" if inside else ""
        shown = f"{name}{place} = {_shown(value)}" if name else f"{_shown(value)} at that place"
        if domain is not None and not domain.contains(value):
            shown += f" is outside the domain {domain.words(name or 'x')}"
        elif node.op.name in QUOTIENTS and operand is node.inputs[-1] and value == 0:
            shown += " is the divisor"
        labels.append(Label(span, shown))
    return tuple(labels[:2])


def _help(node: Node, both: bool) -> str:
    """What to type: the operation with an operand that is kept in the domain, in the program's own
    words; `both`: it mends a second cause too."""
    further = "(--nan=error makes this an error)"
    fixed = _kept(node)
    if fixed is None and any(_has(np.isinf, i) for i in node.inputs):
        return f"keep what overflows small: `exp(x - x.max())`, softmax, logsumexp   {further}"
    if fixed is None and node.op.name in QUOTIENTS:
        return f"keep the divisor away from 0, for example `(x + 1e-12)`   {further}"
    if fixed is None:
        return f"keep the operand in the domain, for example `clamp(x, min=1e-12)`   {further}"
    return f"`{fixed}` {'keeps both' if both else 'stays'} finite   {further}"


def _kept(node: Node) -> str | None:
    """The text of an expression with its operand kept in the domain; None when it is too long, or
    of another form."""
    text = "" if node.span is None else node.span.text
    if len(text) > 60 or "\n" in text:
        return None
    name = node.op.name
    if name == "div" or (name == "reciprocal" and " / " in text):
        left, sign, right = text.rpartition(" / ")
        simple = right.isidentifier() and "/" not in left
        return f"{left} / ({right} + 1e-12)" if sign and simple else None
    if name == "pow":
        base, sign, power = text.partition(" ** ")
        return f"{base}.clamp(min=1e-12) ** {power}" if sign and base.isidentifier() else None
    domain = domain_of(name, node.dtype.name)
    if domain is None:
        return None
    if text.endswith(f".{name}()"):
        return f"{text[: -len(name) - 3]}.clamp({domain.clamp}).{name}()"
    opening = f"{name}("
    start = text.find(opening)
    path = text[:start]
    inside = text[start + len(opening) : -1]
    if start < 0 or not text.endswith(")") or not _whole(inside):
        return None
    if re.fullmatch(r"(\w+\.)*", path):
        module = path[: path.find(".") + 1]  # `torch.` of `torch.special.`
        return f"{text[: start + len(opening)]}{module}clamp({inside}, {domain.clamp}))"
    return None


def _whole(inside: str) -> bool:
    """Whether brackets match, so that the text is one operand and not `a) + f(b` or `a, b`."""
    depth = 0
    for char in inside:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0 or (char == "," and not depth):
            return False
    return depth == 0


def _operand_value(operand: Node, node: Node, index: list[int]) -> float | None:
    shape = operand.shape
    if operand.value is None or operand.dtype.kind != "f" or len(shape) > len(node.shape):
        return None
    offset = len(index) - len(shape)
    try:
        return float(
            operand.value[tuple(0 if s == 1 else index[i + offset] for i, s in enumerate(shape))]
        )
    except IndexError:
        return None
