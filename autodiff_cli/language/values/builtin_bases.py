"""Classes of programs that extend Python's own types: `class Stack(list)`, `class Config(dict)`.

What such a value does that its class does not say is done by the type itself; the methods that
programs may name are those that its plain values have, and the special ones listed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .formatting import represent
from .functions import call_value
from .subscripts import plain_key
from .user_classes import OBJECT, Object, UserClass, library_class
from .value_attributes import VALUE_ATTRIBUTES
from .values import Builtin, Method, TypeName


class Extended(Object):
    """A value that is one of Python's own too."""

    layout: type
    make: Callable[..., Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        kind = cls.layout
        given = kind in _FIXED and (args or kwargs)
        own = (cls.make(*args, **kwargs),) if given else ()
        self: Any = kind.__new__(cls, *own)
        self.fields = {}
        return self


_FIXED = (frozenset, tuple, str, int, float)  # their values never change
_LAYOUTS: dict[str, type[Extended]] = {
    kind.__name__: type(f"_{kind.__name__}", (Extended, kind), {"layout": kind})
    for kind in (list, dict, set, *_FIXED)
}
# Special methods that `super()` reaches; those that could make something huge are not among them.
_COMMON = "eq ne lt le gt ge hash len contains iter getitem setitem delitem bool int float abs"
_EXTENDED: dict[str, UserClass] = {}

# What `typing` has for bases: it changes nothing.
GENERIC = library_class("Generic", [], {})
GENERIC.names["__class_getitem__"] = classmethod(Builtin("Generic", lambda cls, key: cls))


def plain(value: Any) -> Any:
    """The value of Python's own that an extended one is."""
    layout = type(value).layout
    if layout is dict:
        return dict(dict.items(value))
    if layout is str:
        return str.__str__(value)
    return layout(layout.__iter__(value)) if hasattr(layout, "__iter__") else layout(value)


def extended(kind: TypeName) -> UserClass | None:
    """The class that stands for one of Python's own types as a base."""
    if kind.name == "object":
        return GENERIC
    make = _LAYOUTS.get(kind.name)
    if make is None:
        return None
    assert kind.make is not None
    found = _EXTENDED.get(kind.name)
    if found is None:
        make.make = staticmethod(kind.make)
        found = _EXTENDED[kind.name] = UserClass(kind.name, (make, OBJECT), {}, fixed=True)
        found.slots = frozenset()
        found.names.update(_methods(make.layout, kind.make))
    return found


def _methods(layout: type, make: Callable[..., Any]) -> dict[str, Any]:
    names: dict[str, Any] = {
        name: _method(name, getter) for name, getter in VALUE_ATTRIBUTES[layout].items()
    }
    for name in _COMMON.split():
        special = f"__{name}__"
        function = getattr(layout, special, None)
        if function is not None:
            by_key = name in ("getitem", "setitem", "delitem") and layout is not dict
            names[special] = Method(special, _keyed(function) if by_key else function)

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return cls.__new__(cls, *args, **kwargs)

    def fill(self: Any, *args: Any, **kwargs: Any) -> None:
        if layout is list:
            list.extend(self, make(*args))
        elif layout is dict or layout is set:
            layout.update(self, make(*args, **kwargs))

    names["__new__"] = staticmethod(Builtin("__new__", new))
    names["__init__"] = Method("__init__", fill)
    names["__repr__"] = Method("__repr__", _represented)
    if layout is str:
        names["__str__"] = Method("__str__", str.__str__)
    return names


def _represented(self: Any) -> str:
    if isinstance(self, set | frozenset):  # they tell their class
        items = set(plain(self))
        return f"{type(self).__name__}({represent(items) if items else ''})"
    return represent(plain(self))


def _method(name: str, getter: Callable[[Any], Any]) -> Any:
    found = getter.__closure__  # a getter of a method has the function in it
    if found is None:
        return property(Builtin(name, getter))
    return Method(name, lambda self, *args, **kwargs: call_value(getter(self), list(args), kwargs))


def _keyed(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, key, *value: function(self, plain_key(key), *value)
