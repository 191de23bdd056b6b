"""Where a NaN or an infinity was born: asked only when a result is not finite, so the good case
costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.evaluate import dependencies, evaluate
from ..errors import Diagnostic, Label
from ..graph.node import Node
from ..graph.op import CONSTANT, LEAF, Kind
from .report import is_finite

if TYPE_CHECKING:
    from .report import TensorRecord


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
    nodes = _ancestors([node for _, node in bad])
    evaluate(nodes)
    nan = any(np.isnan(node.value).any() for _, node in bad)
    test = np.isnan if nan else np.isinf
    for node in nodes:
        if (
            node.op in (LEAF, CONSTANT)
            or node.span is None
            or node.dtype.kind != "f"
            or type(node.value) is tuple
        ):
            continue
        if (
            node.body is None
            and test(node.value).any()
            and not any(_has(test, i) for i in dependencies(node))
        ):
            values = [record.node for record in records.values()]
            forward = {n.span: n for n in _ancestors(values) if n.span is not None}
            made = forward.get(node.span)
            # The nodes of a backward have the places of the expressions they differentiate.
            origin = made if made is not None and node.seq > max(n.seq for n in values) else None
            return _describe(node, origin, nan, test, [name for name, _ in bad])
    return None


def _has(test: Any, node: Node) -> bool:
    return type(node.value) is not tuple and node.dtype.kind == "f" and bool(test(node.value).any())


def _ancestors(targets: list[Node]) -> list[Node]:
    seen = set(targets)
    pending = list(targets)
    while pending:
        for node in dependencies(pending.pop()):
            if node not in seen:
                seen.add(node)
                pending.append(node)
    return sorted(seen, key=lambda n: n.seq)


def _describe(
    node: Node, origin: Node | None, nan: bool, test: Any, reaches: list[str]
) -> Diagnostic:
    """The warning about a node; `origin` is what it is the backward of, if it is one."""
    word = "NaN" if nan else "infinity"
    assert node.span is not None
    text = " ".join(node.span.text.split())
    shown = text if len(text) <= 60 else (origin or node).op.name
    at = np.argwhere(test(node.value))
    index = [int(i) for i in at[0]]
    where = f"[{', '.join(map(str, index))}]" if index else ""
    made = f"{float(node.value[tuple(index)]):.6g}"
    if origin is None and node.op.kind is Kind.POINTWISE and len(node.inputs) == 1:
        operand = _operand_value(node.inputs[0], node, index)
        made = made if operand is None else f"{node.op.name}({operand:.6g}) = {made}"
    count = f"{len(at)} of {node.numel} elements: " if node.numel > 1 else ""
    label = f"{count}{where} = {made}" if where else f"the value = {made}"
    notes = [f"reaches {', '.join(f'`{r}`' for r in reaches[:6])}"]
    if origin is not None:
        label = f"gradient, {label}" if where else f"the gradient = {made}"
        value = _operand_value(origin, node, index)
        if value is not None and np.isinf(value):
            notes.insert(0, f"the value of `{shown}` itself is {value:.6g} there")
    return Diagnostic(
        "W501" if nan else "W502",
        f"{word} first appears in {'the backward of ' if origin is not None else ''}`{shown}`",
        node.span,
        label,
        _labels(origin or node, node, index),
        tuple(notes),
        (_help(origin or node),),
        "warning",
    )


def _labels(node: Node, bad: Node, index: list[int]) -> tuple[Label, ...]:
    """What the operands are at the place of the first bad element."""
    labels = []
    for operand in node.inputs:
        span = operand.span
        if span is None or span == node.span or type(operand.value) is tuple:
            continue
        value = _operand_value(operand, bad, index)
        if value is not None:
            name = span.assigned or (span.text if span.text.isidentifier() else "")
            inside = [i for i, size in zip(index[len(index) - operand.ndim :], operand.shape,
                                           strict=True) if size > 1]  # fmt: skip
            place = f"[{', '.join(map(str, inside))}]" if inside else ""
            shown = f"{name}{place} = {value:.6g}" if name else f"{value:.6g} at that place"
            labels.append(Label(span, shown))
    return tuple(labels[:2])


# Operations of one operand that are finite when it is clamped to a positive number.
_POSITIVE = frozenset({"sqrt", "rsqrt", "log", "log2", "log10", "reciprocal"})


def _help(node: Node) -> str:
    """What to type: the operation with a clamped operand, in the program's own words."""
    further = "(--nan=error makes this an error)"
    span, operand = node.span, node.inputs[0] if node.inputs else None
    text = "" if span is None else span.text
    if operand is None or node.op.name not in _POSITIVE or len(text) > 40 or "\n" in text:
        return f"keep the operand in the domain, for example `clamp(x, min=1e-12)`   {further}"
    name = node.op.name
    start, end = text.find(f"{name}(") + len(name) + 1, len(text) - 1
    if start <= len(name) or not text.endswith(")") or start >= end:
        return f"keep the operand in the domain, for example `clamp(x, min=1e-12)`   {further}"
    prefix = "torch." if text.startswith("torch.") else ""
    fixed = f"{text[:start]}{prefix}clamp({text[start:end]}, min=1e-12)){text[end + 1 :]}"
    return f"`{fixed}` stays finite   {further}"


def _operand_value(operand: Node, node: Node, index: list[int]) -> float | None:
    shape = operand.shape
    if operand.dtype.kind != "f" or len(shape) > len(node.shape):
        return None
    offset = len(index) - len(shape)
    try:
        return float(
            operand.value[tuple(0 if s == 1 else index[i + offset] for i, s in enumerate(shape))]
        )
    except IndexError:
        return None
