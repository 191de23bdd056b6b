"""Which graphs a complex step may go through: every op on the way continues analytically.

Invariant: kernels of these ops take complex arrays and return the value of the analytic function;
a test evaluates each of them on complex numbers.
"""

from __future__ import annotations

import numpy as np

from ..graph.kinds import Kind
from ..graph.node import Node

ANALYTIC = frozenset(
    [
        "add", "alias", "clone", "cos", "cosh", "detach", "div", "exp", "expand", "matmul", "mul",
        "neg", "permute", "sin", "sinh", "sub", "sum", "t", "tanh", "transpose", "unsqueeze",
        "view",
    ]
)  # fmt: skip


def is_analytic(nodes: list[Node]) -> bool:
    """Whether a complex step may be taken through these nodes."""
    for node in nodes:
        if node.body is not None:
            continue
        key = node.op.key
        if key in ("output", "leaf"):
            continue
        if key == "pow" and _whole_power(node):
            continue
        if key not in ANALYTIC or node.op.kind is Kind.OPAQUE:
            return False
        if any(isinstance(arg, np.dtype) for arg in node.args):
            return False  # the kernel would cast, and drop imaginary parts
    return True


def _whole_power(node: Node) -> bool:
    exponent = node.args[1]
    value = exponent.value
    return (
        value is not None
        and not exponent.requires_grad
        and not np.shape(value)
        and float(value) in (1.0, 2.0, 3.0, 4.0)
    )
