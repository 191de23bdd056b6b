"""E208 for a native program whose result is a method that was not called: `loss = x.sum`."""

from __future__ import annotations

from typing import Any

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fail
from ..syntax import tree as syntax
from ..syntax.statement_nodes import Assign
from ..values.values import Builtin, OpFunction


def forgotten_call(body: list[syntax.Node], names: dict[str, Any]) -> AutodiffError | None:
    """The error if `loss`, or what the last statement assigns, is a method of a tensor."""
    for statement in reversed(body):
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


def _assigned_method(
    statement: syntax.Node, names: dict[str, Any]
) -> tuple[str, syntax.Attribute] | None:
    """`name` and `tensor.method` of an assignment, if the name still is that method."""
    if not isinstance(statement, Assign) or not isinstance(statement.value, syntax.Attribute):
        return None
    target, base = statement.targets[0], statement.value.value
    if not isinstance(target, syntax.Name):
        return None
    if not isinstance(names.get(target.id), OpFunction | Builtin):
        return None
    if isinstance(base, syntax.Name) and not isinstance(names.get(base.id), Tensor):
        return None  # a function of a module: an alias
    return target.id, statement.value
