"""Long graphs of single numbers, run on Python floats.

An operation on a 0-d array costs several times what it costs on a float, and sums, differences and
products of floats are the same IEEE numbers. Everything else is computed by its kernel; arrays are
made again of the values that stay.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph.dtypes import FLOAT64
from ..graph.node import Node
from ..ops.kernels.in_double import InDouble

BINARY: dict[Any, Callable[[float, float], float]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
}


def all_scalars(order: list[Node]) -> bool:
    """Whether every node is a single float64 number."""
    for node in order:  # a generator costs more than the test
        if node.shape or node.dtype is not FLOAT64 or node.outputs is not None:
            return False
    return True


def run_scalars(
    order: list[Node],
    compute: Callable[[Node], Any],
    asked: set[Node],
    last: bool,
    stays: Callable[[Node, bool], bool],
) -> None:
    """Run the nodes in order; afterwards those that are asked for, or stay after such an
    evaluation, have their values."""
    binary = BINARY.get
    ufunc = np.ufunc
    try:
        with np.errstate(all="ignore"):
            for node in order:
                inputs = node.inputs
                if inputs is node.args:
                    kernel = node.op.kernel
                    function = binary(kernel)
                    if function is not None:
                        x, y = inputs
                        a, b = x.value, y.value
                        node.value = function(
                            a if type(a) is float else a.item(), b if type(b) is float else b.item()
                        )
                        continue
                    if type(kernel) is InDouble:
                        kernel = kernel.float64
                    if len(inputs) == 1 and type(kernel) is ufunc:
                        node.value = float(kernel(inputs[0].value))
                    else:
                        _by_kernel(node, inputs, compute)
                else:
                    _by_kernel(node, inputs, compute)
    finally:
        for node in order:
            if node.value is not None:
                if node not in asked and not stays(node, last):
                    node.value = None
                elif type(node.value) is float:
                    node.value = np.array(node.value)


def _by_kernel(node: Node, inputs: tuple[Node, ...], compute: Callable[[Node], Any]) -> None:
    for x in inputs:
        if type(x.value) is float:
            x.value = np.array(x.value)
    node.value = compute(node)
