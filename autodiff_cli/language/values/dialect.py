"""Which kind of program runs, and what a value is, in the words of messages."""

from __future__ import annotations

from types import MethodType
from typing import Any

import numpy as np

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fail, fault
from .values import Instance, Namespace, TypeName, is_callable


def kind_of(value: Any) -> str:
    """What a value is, in a message."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, Namespace):
        return f"the namespace `{value.path.removeprefix('python.') or 'torch'}`"
    if isinstance(value, TypeName):
        return f"the class `{value.name}`"
    if is_callable(value):
        return f"the function `{value.name}`"
    if value is None:
        return "None"
    if isinstance(value, np.dtype):
        return "a dtype"
    if isinstance(value, Instance):
        return f"a {type(value).__name__}"
    if isinstance(value, type):
        return f"the class `{value.__name__}`"
    if type(value) is MethodType:
        return f"the method `{getattr(value.__func__, 'name', 'of a value')}`"
    names = {
        "int": "an int",
        "float": "a float",
        "bool": "a bool",
        "str": "a string",
        "list": "a list",
        "tuple": "a tuple",
        "dict": "a dict",
        "set": "a set",
    }
    kind = type(value).__name__
    return names.get(kind, f"a {value.name if kind == 'Lazy' else kind}")


def misfit(words: str, value: Any, help: str, code: str = "E208", **facts: Any) -> AutodiffError:
    """The failure of a value of the wrong kind; the message is the words and what the value is."""
    facts = {"raises": "TypeError"} | facts if code == "E208" else facts
    return fail(code, f"{words} {kind_of(value)}", help=help, **facts)


def private(name: str) -> AutodiffError:
    """The failure of a name that begins with an underscore."""
    return fault("E207 cannot-reached", name=name)


def is_numeric_list(value: Any) -> bool:
    """Whether a list holds only numbers, tensors and such lists."""
    pending = [value]
    seen: set[int] = set()
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            if id(item) not in seen:
                seen.add(id(item))
                pending.extend(item)
        elif not isinstance(item, bool | int | float | Tensor):
            return False
    return True
