"""Formulas of ops, as text: what a composite computes, and what a derivative rule returns.

The rule is applied to the nodes of a sample whose operands have names, and the graph it returns is
written down. So the formula shown is the one that computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd.rules import ruled
from ..engine import evaluate as _engine  # noqa: F401  # eager ops ask it for values
from ..errors import AutodiffError
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import Op, constant, leaf
from ..graph.params import BindError
from ..graph.samples import T
from ..source import shortened
from ..symbolic.writing.expression import expression_of, text

MAX_LENGTH = 400


def derivative_of(op: Op) -> list[str]:
    """Lines `g(input) = ...` of an op's rule on its first sample; [] when there is no rule, or none
    that fits on a line."""
    _, result = _sample(op)
    if op.vjp_rule is None or result is None:
        return []
    names: dict[Node, str] = {result: "out"}
    for param, value in zip(op.params, result.args, strict=False):
        if isinstance(value, Node):
            names.setdefault(value, param.name)
        elif isinstance(value, tuple):
            for i, part in enumerate(value):
                if isinstance(part, Node):
                    names[part] = f"{param.name}[{i}]"
    g = constant(np.ones(result.shape, result.dtype))
    names[g] = "g"
    try:
        found = ruled(result, g)
    except (AutodiffError, ValueError):
        return []
    lines = []
    for position, cotangent in zip(op.tensor_params, found, strict=False):
        if isinstance(cotangent, Node):
            lines.append(_line(cotangent, names, f"g({op.params[position].name}) = "))
    return lines


def value_of_composite(op: Op) -> str:
    """What a composite or function computes, in the ops of its body; "" for primitives."""
    bound, result = _sample(op) if op.kind in (Kind.COMPOSITE, Kind.FUNCTION) else ((), None)
    if result is None:
        return ""
    names = {v: p.name for p, v in zip(op.params, bound, strict=False) if isinstance(v, Node)}
    body = result.body if isinstance(result.body, Node) else result
    return "" if body in names else _line(body, names)


def _line(node: Node, names: dict[Node, str], head: str = "") -> str:
    return shortened(head + text(expression_of(node, names), spaced=True), MAX_LENGTH)


def _sample(op: Op) -> tuple[Sequence[Any], Node | None]:
    """The arguments of the first sample, with fresh constants for its tensors, and what the op
    makes of them; None where there is none."""

    def made(value: Any) -> Any:
        if isinstance(value, T):
            if value.values is not None:
                return constant(np.array(value.values, dtype=value.dtype))
            fill = 0.5 if value.dtype.startswith("float") else 1
            array = np.full(value.shape, fill, value.dtype)
            return leaf(array, None) if value.grad else constant(array)
        if isinstance(value, list | tuple):
            return type(value)(made(v) for v in value)
        return value

    try:
        for sample in op.samples[:1]:
            keywords = {k: made(v) for k, v in sample.kwargs.items()}
            bound = op.bind(tuple(made(a) for a in sample.args), keywords)
            result = op.apply(list(bound))
            return bound, result if isinstance(result, Node) else None
    except (AutodiffError, BindError, ValueError, TypeError):
        pass
    return (), None
