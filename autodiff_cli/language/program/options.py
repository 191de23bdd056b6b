"""Options of the library: what they are annotated with is what may be given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import signature
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from ...errors import fault
from ...suggest import meant
from ..values.exceptions import Handed

PLAIN: dict[Any, tuple[str, tuple[Any, ...]]] = {
    bool: ("True or False", (bool, np.bool_)),
    int: ("a whole number", (int, np.integer)),
    float: ("a number", (int, float, np.integer, np.floating)),
    str: ("text", (str,)),
    PathLike: ("a path", (str, PathLike)),
}


@cache
def hints(kind: type) -> dict[str, Any]:
    """The fields of a class with what they are annotated with."""
    return get_type_hints(kind, None, {"Path": PathLike})  # nobody who gives none waits for pathlib


def checked(function: str, kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options for `kind`, a class of annotated fields. A list is as good as a tuple, and one item
    alone as a list of it.

    Raises:
        AutodiffError: E205 for a name that is no option, or a value that is none of its.
    """
    if not given:
        return {}
    known = hints(kind)
    for name in given:
        if name not in known:
            raise fault("E205 no-option", function, name, meant(name, known, ", ".join(known)))
    defaults = signature(kind).parameters
    return {
        name: fitting(name, known[name], value, defaults[name].default)
        for name, value in given.items()
    }


@Handed()
def fitting(name: str, hint: Any, value: Any, default: Any) -> Any:
    """A value as what it is annotated with; limits are not below 0."""
    try:
        fits = _fitted(hint, value)
        if not name.startswith("max_") or fits >= 0:
            return fits
    except TypeError:
        pass
    without = f"{default:,}" if type(default) is int else repr(default)
    instead = f"leave it out for {without}" if default else "leave it out"
    raise fault("E205 option-of-kind", name, _words(hint), value, instead)


def _fitted(hint: Any, value: Any) -> Any:
    kind, inside = get_origin(hint), get_args(hint)
    if kind is UnionType:
        if value is None and NoneType in inside:
            return None
        hint = inside[0]
        kind, inside = get_origin(hint), get_args(hint)
    if hint is Any or (kind is Callable and callable(value)):
        return value
    if kind is Literal and type(value) is type(inside[0]) and value in inside:
        return value
    if kind is tuple and Ellipsis in inside:
        alone = isinstance(value, str | PathLike)
        return tuple(_fitted(inside[0], one) for one in ([value] if alone else value))
    if kind is tuple and len(value) == len(inside):
        return tuple(map(_fitted, inside, value))
    known = hint in PLAIN and isinstance(value, PLAIN[hint][1])
    if not known or (isinstance(value, bool) and hint is not bool):
        raise TypeError
    if hint is PathLike:
        from pathlib import Path

        return Path(value)
    return value if hint is float else hint(value)


def _words(hint: Any) -> str:
    """What is wanted, in words."""
    kind, inside = get_origin(hint), get_args(hint)
    if kind is UnionType:
        return f"{_words(inside[0])} or None"
    if kind is Literal:
        return " or ".join(map(repr, inside))
    if kind is tuple and get_origin(inside[0]) is tuple:
        return "a dict of values by name"
    if kind is tuple:
        return f"{_words(inside[0])} or a list of such"
    return "a function" if kind is Callable else PLAIN[hint][0]
