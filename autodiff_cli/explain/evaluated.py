"""Whether a formula has the value of what it stands for: it is run as a program is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..autograd.tensor import Tensor
from ..checks.deadline import go_on_after
from ..errors import AutodiffError
from ..graph.node import Node
from ..graph.op import constant, value_of
from ..graph.state import STATE
from ..language.runtime.expressions import Context, compile_expression
from ..language.syntax.parser import parse
from ..language.syntax.tree import ExprStmt
from ..language.values.values import Scope
from ..source import Source
from ..symbolic.derivation import Formula
from ..symbolic.writing.expression import Expression, text
from ..symbolic.writing.lets import mentioned, renamed


def built(
    formula: Formula, names: Mapping[Node, str], shown: Callable[[Node], Node]
) -> tuple[Any, list[tuple[str, Node]]]:
    """The value of a formula, and its parts that have names; `shown` gives what to read."""
    scope = Scope()
    places: dict[str, str] = {}
    said = mentioned((formula.shown, *(part for _, part in formula.lets)))
    for node, text_ in names.items():
        if text_ in said:
            scope.names[places.setdefault(text_, f"v{len(places)}_")] = Tensor(shown(node))
    before, STATE.python = STATE.python, False  # formulas have the names of native programs
    try:
        for let, part in formula.lets:
            scope.names[let] = _evaluated(renamed(part, places), scope)
        result = _evaluated(renamed(formula.shown, places), scope)
    finally:
        STATE.python = before
    lets = [(let, scope.names[let]) for let, _ in formula.lets]
    return result, [(let, part.node) for let, part in lets if isinstance(part, Tensor)]


def agrees(formula: Formula, gradient: Node, names: Mapping[Node, str]) -> bool | None:
    try:
        result, _ = built(formula, names, lambda node: constant(value_of(node)))
    except AutodiffError as error:
        go_on_after(error)
        return None
    except (RecursionError, ValueError):
        return None
    found = result.numpy() if isinstance(result, Tensor) else np.asarray(result)
    expected = value_of(gradient)
    return found.shape == expected.shape and close(found, expected)


def close(found: np.ndarray, expected: np.ndarray, everywhere: bool = True) -> bool:
    """Whether numbers are the expected ones but for rounding; those that are finite at least."""
    narrow = expected.dtype.itemsize < 8
    finite = np.isfinite(expected)
    largest = float(np.abs(expected[finite]).max(initial=0.0))
    if not everywhere:
        found, expected = found[finite], expected[finite]
    off = 1e-4 if narrow else 1e-8
    return np.allclose(found, expected, off, off * max(1.0, largest), equal_nan=True)


def _evaluated(expression: Expression, scope: Scope) -> Any:
    (statement,) = parse(Source(text(expression), "<derivative>")).body
    assert isinstance(statement, ExprStmt)
    return compile_expression(statement.value, Context())(scope)
