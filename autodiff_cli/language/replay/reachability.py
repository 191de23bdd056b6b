"""What a step of a loop can reach: the values behind the names it reads, and the functions that it
calls.

Values whose state cannot be seen (iterators, files, bound methods kept somewhere) are refused.
"""

from __future__ import annotations

from collections.abc import ItemsView, KeysView, Sequence, ValuesView
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from ...autograd.tensor import Tensor
from ...graph.state import STATE
from ...graph.symbolic_numbers import Unread, Varying
from ..nn.modules import Module
from ..nn.prelude import LibraryFunction
from ..runtime.replay_gate import OUTSIDE
from ..syntax import tree as syntax
from ..syntax.free_names import free_names
from ..values.functions import Parameters
from ..values.user_classes import FUNCTION, Object, UserClass
from ..values.values import (
    Builtin,
    Device,
    GradMode,
    Namespace,
    OpFunction,
    Scope,
    Size,
    TypeName,
    UserFunction,
)
from .harmless import PURE

PLAIN = (
    Tensor, bool, int, float, str, Namespace, OpFunction, np.dtype, TypeName, Device, range, slice,
    LibraryFunction, GradMode, type(None), Varying, Unread,
)  # fmt: skip
MOST_VALUES = 10_000  # of a list or tuple that are looked at


def named(name: str, scope: Scope) -> tuple[Scope | None, Any]:
    """Where a name has its value, and the value."""
    at: Scope | None = scope
    while at is not None:
        if name in at.names:
            return at, at.names[name]
        at = at.outer
    return None, None


# A value inside of another one: the container in which it can be replaced or None, its key, the
# value.
Entry = tuple[Any, Any, Any]


class Reach:
    """Walks over values; `known` is False after one that hides some."""

    def __init__(self) -> None:
        self.known = True

    def parts(self, value: Any) -> Sequence[Entry]:
        """The values inside a value."""
        if isinstance(value, KeysView | ValuesView | ItemsView):
            value = tuple(value)
        if isinstance(value, list | tuple | Size) and not isinstance(value, Object):
            self.known = self.known and len(value) < MOST_VALUES
            holder = value if isinstance(value, list) else None
            return [(holder, i, part) for i, part in enumerate(value)] if self.known else ()
        if isinstance(value, dict) and not isinstance(value, Object):
            return [(value, key, part) for key, part in value.items()]
        if isinstance(value, Object):
            return self._of_instance(value)
        if isinstance(value, UserFunction):
            return self._of_function(value)
        if isinstance(value, UserClass):
            return self._of_class(value)
        if isinstance(value, MethodType):
            return ((None, "owner", value.__self__), (None, "function", value.__func__))
        if isinstance(value, property):
            return [(None, i, f) for i, f in enumerate((value.fget, value.fset, value.fdel))]
        if isinstance(value, staticmethod | classmethod):
            return ((None, "function", value.__func__),)
        if isinstance(value, Builtin):
            self.known = self.known and value.name in PURE and _bare(value.function)
            return ()
        if isinstance(value, set | frozenset):
            self.known = self.known and all(isinstance(v, PLAIN) for v in value)
            return [(None, i, part) for i, part in enumerate(value)]
        self.known = False
        return ()

    def _of_instance(self, value: Object) -> list[Entry]:
        tables = [value.fields]
        self.known = self.known and value.layout is object  # no container besides
        if isinstance(value, Module):
            hooks = value.before or value.after or value.reverse or value.reverse_before
            self.known = self.known and not hooks and STATE.module_hooks is None
            tables += [value.parameters, value.buffers, value.modules]
        found = [(table, key, part) for table in tables for key, part in table.items()]
        seen = {id(part) for _, _, part in found}
        held = [(None, i, v) for i, v in enumerate(value.held()) if id(v) not in seen]
        return [*found, *held, (None, "class", value.cls)]

    def _of_class(self, value: UserClass) -> list[Entry]:
        if value.fixed:
            return []
        self.known = self.known and FUNCTION not in value.line
        names = [(value.names, key, part) for key, part in value.names.items()]
        return [*names, *[(None, i, base) for i, base in enumerate(value.bases)]]

    def _of_function(self, value: UserFunction) -> list[Entry]:
        read = _read_outside(value.params)
        if "" in read:
            self.known = False
            return []
        found: list[Entry] = [(None, i, part) for i, part in enumerate(value.defaults)]
        found.extend((None, key, part) for key, part in value.keyword_defaults.items())
        found.extend((None, i, part) for i, part in enumerate(value.wrappers))
        for name in read:
            at, part = named(name, value.scope)
            if at is not None:
                found.append((at.names, name, part))
        return found


def _read_outside(params: Parameters) -> tuple[str, ...]:
    """The names that a function reads from outside; "" among them for one of which that is hard to
    tell."""
    if params.outside is None:
        tree = params.tree
        hidden = tree is None or any(isinstance(node, OUTSIDE) for node in syntax.walk(tree))
        params.outside = ("",) if tree is None or hidden else tuple(sorted(free_names(tree)))
    return params.outside


BARE = (
    str, int, float, type(None), type, np.dtype, np.ufunc, BuiltinFunctionType, Enum,
)  # fmt: skip


def _bare(value: Any) -> bool:
    """Whether a function written in Python holds nothing that a program could change."""
    if not isinstance(value, FunctionType):
        return isinstance(value, BARE)
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    return all(_bare(held) for held in (*cells, *(value.__defaults__ or ())))
