"""`copy`: values whose parts are their own, and values that share what they hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import is_not
from typing import Any

import numpy as np

from ...autograd.handles import wrap_view
from ...autograd.storage import Storage
from ...autograd.tensor import Array, Tensor, as_array
from ...errors import fault
from ...graph.node import Node
from ...graph.op import constant, value_of
from ...graph.registry import F
from ...graph.strides import strides_of
from ..values.functions import call_value
from ..values.tensor_memory import StorageView
from ..values.user_classes import Object, special
from ..values.values import Builtin


def deep_copy(value: Any, known: dict[int, Any] | None = None, *, results: bool = False) -> Any:
    """`copy.deepcopy`: a value whose tensors and modules are its own. With `results` also tensors
    that have a history, which become leaves, and no gradients."""
    known = {} if known is None else known
    if id(value) in known:
        return known[id(value)]
    copied: Any = value

    def again(part: Any) -> Any:
        return deep_copy(part, known, results=results)

    if isinstance(value, Tensor):
        if not (value.is_leaf or results):
            raise fault("E411 only-leaves-can-copied")
        copied = _copied_tensor(value, known)
        if value.grad is not None and not (results or value.is_parameter):  # as PyTorch's Parameter
            copied.grad = deep_copy(value.grad, known)
    elif isinstance(value, Object):
        method = special(value, "__deepcopy__")
        if method is not None:
            return call_value(method, [known], {})
        known[id(value)] = copied = _blank(value, again)
        _copy_state(value, copied, again)
        if isinstance(value, list):
            list.extend(copied, [again(v) for v in list.__iter__(value)])
        elif isinstance(value, dict):
            dict.update(copied, {again(k): again(v) for k, v in dict.items(value)})
        elif isinstance(value, set):
            set.update(copied, set.__iter__(value))
    elif isinstance(value, StorageView):
        copied = StorageView(_copied_tensor(value.tensor, known))
    elif isinstance(value, list):
        known[id(value)] = copied = []
        copied.extend([again(v) for v in value])
    elif isinstance(value, dict):
        known[id(value)] = copied = value.copy()
        copied.clear()
        copied.update({again(k): again(v) for k, v in value.items()})
    elif isinstance(value, set | deque):
        known[id(value)] = copied = value.copy()
        copied.clear()
        for item in value:
            copied.add(again(item)) if isinstance(copied, set) else copied.append(again(item))
    elif type(value) in (tuple, frozenset):
        parts = [again(v) for v in value]
        if type(value) is frozenset or any(map(is_not, parts, value)):
            copied = type(value)(parts)
    known[id(value)] = copied
    return copied


def _copy_state(value: Object, copied: Any, again: Callable[[Any], Any]) -> None:
    """What a value holds, by the methods of its class that tell and take it."""
    tell, take = special(value, "__getstate__"), special(copied, "__setstate__")
    if tell is None and take is None:
        copied.copy_state(value, again)
        return
    if value.cls.copy_state is not Object.copy_state:
        raise fault("E203 copies-of-modules-with-state", value.cls.name)
    state = again(dict(value.fields) if tell is None else call_value(tell, [], {}))
    if take is None:
        copied.fields.update(state)
    else:
        call_value(take, [state], {})


def _copied_tensor(value: Tensor, known: dict[int, Any]) -> Tensor:
    """A tensor in memory of its own, which copies of tensors that share memory share."""
    storage = value.storage
    node = _copied(value.looked_at)
    if storage is None:
        copied = Tensor(node)
    else:
        whole = known.get(id(storage))
        if whole is None:
            whole = known[id(storage)] = Storage(_copied(storage.node))
        copied = Tensor(node if value.steps else whole.node)
        copied.storage, copied.steps = whole, value.steps
    if type(value) is Array:
        return as_array(copied)
    return _as(value, copied)


def _copied(node: Node) -> Node:
    """The values in memory of their own, with the same strides."""
    copied = constant(np.array(value_of(node)))
    copied.strides = strides_of(node)
    return copied


def _as(value: Tensor, copied: Tensor) -> Tensor:
    """A copy with the flags and the class of a tensor."""
    copied.set_requires_grad(value.requires_grad)
    copied.is_parameter = value.is_parameter
    copied.__class__ = type(value)
    return copied


def _blank(value: Any, again: Callable[[Any], Any]) -> Any:
    """A value of the same class with nothing in it, but what the class fixes when it is made."""
    kind: Any = type(value)
    if not isinstance(value, int | float | str | tuple | frozenset):
        return kind.__new__(kind)
    items = isinstance(value, tuple | frozenset)
    made = kind.layout.__new__(
        kind, [again(v) for v in kind.layout.__iter__(value)] if items else value
    )
    made.fields = {}
    return made


def _copy(value: Any) -> Any:
    """`copy.copy`: a container of the same items; a value that shares what it holds."""
    if isinstance(value, Object):
        method = special(value, "__copy__")
        if method is not None:
            return call_value(method, [], {})
        items = value if isinstance(value, list | dict | set | tuple | frozenset) else ()
        return deep_copy(value, {id(item): item for item in [*value.held(), *items]})
    if isinstance(value, list | dict | set | deque):
        return value.copy()
    if isinstance(value, Tensor) and type(value) is not Array:
        return _sharing(value)
    return value if type(value) in (tuple, frozenset) else deep_copy(value)


def _sharing(value: Tensor) -> Tensor:
    """A leaf that shares the memory of a tensor and has neither its history nor its gradient."""
    return _as(value, wrap_view(F.data_alias(value.looked_at), value))


COPIES: dict[str, Any] = {
    "deepcopy": Builtin("deepcopy", lambda x, memo=None: deep_copy(x)),
    "copy": Builtin("copy", _copy),
}
