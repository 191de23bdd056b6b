"""Where a NaN or an infinity was born: asked only when a result is not finite, so the good case
costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.evaluate import dependencies, evaluate
from ..errors import Diagnostic, Label
from ..graph.node import Node
from ..graph.op import CONSTANT, LEAF

if TYPE_CHECKING:
    from .report import TensorRecord


def first_guilty(records: dict[str, TensorRecord], grads: dict[str, Node]) -> Diagnostic | None:
    """W501 or W502 for the first expression whose value is not finite although its operands are;
    None when
    every result is finite, or the program wrote the value down itself."""
    bad: list[tuple[str, Node]] = []
    for name, record in records.items():
        if not _finite(record.value) and record.node.op not in (LEAF, CONSTANT):
            bad.append((name, record.node))
        if record.grad is not None and not _finite(record.grad):
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
            return _describe(node, nan, test, [name for name, _ in bad])
    return None


def _finite(array: Any) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


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


def _describe(node: Node, nan: bool, test: Any, reaches: list[str]) -> Diagnostic:
    word = "NaN" if nan else "infinity"
    assert node.span is not None
    text = node.span.text
    shown = text if len(text) <= 60 and "\n" not in text else node.op.name
    at = np.argwhere(test(node.value))
    index = [int(i) for i in at[0]]
    labels = []
    for operand in node.inputs:
        if (
            operand.span is not None
            and operand.span != node.span
            and type(operand.value) is not tuple
        ):
            value = _operand_value(operand, node, index)
            if value is not None:
                labels.append(Label(operand.span, f"{value:.6g} at that place"))
    where = f"[{', '.join(map(str, index))}]" if index else "the value"
    count = f"{len(at)} of {node.numel} elements: {where}" if node.numel > 1 else where
    return Diagnostic(
        "W501" if nan else "W502",
        f"{word} first appears in `{shown}`",
        node.span,
        f"{count} = {float(node.value[tuple(index)]):.6g}",
        tuple(labels[:2]),
        (f"reaches {', '.join(f'`{r}`' for r in reaches[:6])}",),
        (_help(node),),
        "warning",
    )


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
