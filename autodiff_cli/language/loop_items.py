"""Items of loops that may be asked for one step early without anybody noticing."""

from __future__ import annotations

from typing import Any

from ..autograd import calls
from ..autograd.tensor import Tensor
from . import syntax
from .classes import Instance
from .innocent import chooses
from .iterators import Lazy
from .reach import named
from .values import Scope

PAIRING = frozenset({"zip", "enumerate"})


def items_of_loop(tree: syntax.Node, source: Any, scope: Scope) -> Any:
    """What to iterate over; None where asking early could be noticed."""
    if type(source) in (range, list, tuple):
        return source
    if type(source) is Tensor and source.shape:
        return calls.call("unbind", (source, 0), {})
    if type(source) is Lazy:
        return source if _paired(tree, scope) else None
    return source.items() if _loader(source) else None


def _paired(tree: syntax.Node, scope: Scope) -> bool:
    """Whether an expression is a `zip` or `enumerate` of values that can be seen."""
    if not isinstance(tree, syntax.Call) or not isinstance(tree.func, syntax.Name):
        return False
    if tree.func.id not in PAIRING or named(tree.func.id, scope)[0] is not None:
        return False
    for part in tree.args:
        if isinstance(part, syntax.Name):
            value = named(part.id, scope)[1]
            if type(value) not in (range, list, tuple, Tensor) and not _loader(value):
                return False
        elif not _paired(part, scope) and not _numbers(part):
            return False
    return True


def _numbers(tree: syntax.Node) -> bool:
    """Whether an expression is a `range` or a list."""
    if isinstance(tree, syntax.Call) and isinstance(tree.func, syntax.Name):
        return tree.func.id == "range" and chooses(tree)
    return isinstance(tree, syntax.List | syntax.Tuple | syntax.NumList) and chooses(tree)


def _loader(value: Any) -> bool:
    """Whether a value is a loader of the language over data that is only looked up."""
    if not isinstance(value, Instance) or not value.cls.fixed or value.cls.name != "DataLoader":
        return False
    return all(_seen(part) for part in value.fields.values())


def _seen(part: Any) -> bool:
    if isinstance(part, Instance):
        return part.cls.fixed and all(_seen(inner) for inner in part.fields.values())
    if isinstance(part, list | tuple):
        return all(isinstance(x, Tensor | int | float | tuple | list) for x in part)
    return (
        part is None
        or isinstance(part, Tensor | bool | int | float | str | range)
        or (getattr(part, "name", "") == "default_collate")
    )


__all__ = ["items_of_loop"]
