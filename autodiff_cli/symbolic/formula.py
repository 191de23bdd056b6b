"""Formulas of ops, as text: what a composite computes, and what a derivative rule returns.

The rule is applied to the nodes of a sample whose operands have names, and the graph it returns is
written down. So the formula shown is the one that computes.
"""

from __future__ import annotations

from typing import Any

from ..engine import evaluate as _engine  # noqa: F401  # eager ops ask it for values
from ..errors import AutodiffError
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import Op, constant, leaf
from ..graph.params import BindError
from ..graph.samples import T
from .expression import expression_of, text

MAX_LENGTH = 400


def text_of(node: Node, names: dict[Node, str]) -> str:
    """The expression that a node stands for, in the names given; `...` where it is very deep."""
    return text(expression_of(node, names))


def derivative_of(op: Op) -> list[str]:
    """Lines `g(input) = ...` of an op's rule on its first sample; [] when there is no rule, or none
    that fits on a line."""
    if op.vjp_rule is None or not op.samples:
        return []
    try:
        bound = op.bind(*_arguments(op))
        result = op.apply(list(bound))
    except (AutodiffError, BindError, ValueError, TypeError):
        return []
    if not isinstance(result, Node):
        return []
    names: dict[Node, str] = {result: "out"}
    for param, value in zip(op.params, result.args, strict=False):
        if isinstance(value, Node):
            names.setdefault(value, param.name)
        elif isinstance(value, tuple):
            for i, part in enumerate(value):
                if isinstance(part, Node):
                    names[part] = f"{param.name}[{i}]"
    g = constant(_ones(result))
    names[g] = "g"
    try:
        found = op.vjp_rule(g, result, *result.args)
    except (AutodiffError, ValueError):
        return []
    lines = []
    cotangents = found if type(found) is tuple else (found,)
    for position, cotangent in zip(op.tensor_params, cotangents, strict=False):
        if isinstance(cotangent, Node):
            line = f"g({op.params[position].name}) = {text_of(cotangent, names)}"
            lines.append(line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 3] + "...")
    return lines


def value_of_composite(op: Op) -> str:
    """What a composite or function computes, in the ops of its body; "" for primitives."""
    if op.kind not in (Kind.COMPOSITE, Kind.FUNCTION) or not op.samples:
        return ""
    try:
        bound = op.bind(*_arguments(op))
        result = op.apply(list(bound))
    except (AutodiffError, BindError, ValueError, TypeError):
        return ""
    if not isinstance(result, Node):
        return ""
    names = {v: p.name for p, v in zip(op.params, bound, strict=False) if isinstance(v, Node)}
    body = result.body if isinstance(result.body, Node) else result
    if body in names:
        return ""
    line = text_of(body, names)
    return line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 3] + "..."


def _ones(node: Node) -> Any:
    import numpy as np

    return np.ones(node.shape, node.dtype)


def _arguments(op: Op) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The first sample's arguments with fresh constants for its tensors."""
    import numpy as np

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

    sample = op.samples[0]
    return tuple(made(a) for a in sample.args), {k: made(v) for k, v in sample.kwargs.items()}
