"""Classes of programs: plain ones, `torch.autograd.Function`, and what `nn.Module` is built from.

A class is a `UserClass`, its values are `Instance`s; special methods come from a closed list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import fail
from ..suggest import suggest
from .functions import call_value
from .values import Builtin, Scope, UserFunction


class Wrapped:
    """A method marked `@staticmethod`, `@classmethod` or `@property`; a property's `setter`."""

    __slots__ = ("function", "kind", "setter")

    def __init__(self, kind: str, function: Any, setter: Any = None):
        self.kind = kind
        self.function = function
        self.setter = setter

    def get_attribute(self, name: str) -> Any:
        if self.kind == "property" and name in ("setter", "getter", "deleter"):
            return Builtin(name, lambda function: self._changed(name, function))
        raise fail("E207", f"a {self.kind} has no attribute `{name}`", help="call it in an object")

    def _changed(self, name: str, function: Any) -> Wrapped:
        return Wrapped(
            "property",
            function if name == "getter" else self.function,
            function if name == "setter" else self.setter,
        )


def set_property(instance: Instance, name: str, value: Any) -> bool:
    """Assign through a property of the class; whether it has one."""
    found = instance.cls.lookup(name)
    if type(found) is not Wrapped or found.kind != "property":
        return False
    if found.setter is None:
        raise fail(
            "E207",
            f"the property `{name}` of a {instance.cls.name} cannot be set",
            help=f"define `@{name}.setter`",
        )
    call_value(BoundMethod(instance, found.setter), [value], {})
    return True


class UserClass:
    """A class: its names, and its bases in method resolution order.

    `make` is the kind of its values (a subclass of `Instance`), the same as that of its bases;
    a `fixed` class came with the language, programs cannot change it.
    """

    __slots__ = ("annotated", "bases", "finish", "fixed", "make", "mro", "name", "names", "span")

    def __init__(self, name: str, bases: list[UserClass], names: dict[str, Any], span: Any):
        self.name = name
        self.bases = bases
        self.names = names
        self.span = span
        self.fixed = False
        self.annotated: list[str] = []
        # What makes of a class below this one what its name means, when that is no class.
        self.finish: Callable[[UserClass], Any] | None = next(
            (b.finish for b in bases if b.finish is not None), None
        )
        self.make: type[Instance] = next(
            (b.make for b in bases if b.make is not Instance), Instance
        )
        self.mro: list[UserClass] = [self]
        for base in bases:
            self.mro.extend(c for c in base.mro if c not in self.mro)

    def lookup(self, name: str, after: UserClass | None = None) -> Any:
        """The attribute of the first class that has it; None when none has."""
        classes = self.mro if after is None else self.mro[self.mro.index(after) + 1 :]
        for cls in classes:
            if name in cls.names:
                return cls.names[name]
        return None

    def get_attribute(self, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return self.name
        found = self.lookup(name)
        if found is None:
            if name == "apply" and FUNCTION in self.mro:
                from .custom_functions import apply

                return Builtin("apply", lambda *args, **kwargs: apply(self, args, kwargs))
            raise fail("E207", f"class `{self.name}` has no attribute `{name}`", help=_has(self))
        if isinstance(found, Wrapped):
            if found.kind == "classmethod":
                return BoundMethod(self, found.function)
            return found.function
        return found

    def set_attribute(self, name: str, value: Any) -> None:
        if self.fixed:
            raise fail(
                "E207",
                f"attributes of the class `{self.name}` cannot be set",
                help=f"make a class of your own: `class My{self.name}({self.name}):`",
            )
        self.names[name] = value

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Make an instance."""
        instance = self.make(self)
        instance.made(args)
        init = self.lookup("__init__")
        if init is not None:
            call_value(BoundMethod(instance, init), args, kwargs)
        elif args or kwargs:
            raise fail("E205", f"`{self.name}()` takes no arguments", help="define `__init__`")
        return instance

    def has_instance(self, value: Any) -> bool:
        return isinstance(value, Instance) and self in value.cls.mro

    def describe(self) -> str:
        return f"<class '{self.name if self.fixed else f'__main__.{self.name}'}'>"


def _has(cls: UserClass) -> str:
    names = [n for c in cls.mro for n in c.names if not n.startswith("_")]
    return f"it has: {', '.join(names[:12])}" if names else "it has none"


class Instance:
    """A value of a user class."""

    __slots__ = ("cls", "fields")

    def __init__(self, cls: UserClass):
        self.cls = cls
        self.fields: dict[str, Any] = {}

    def made(self, args: list[Any]) -> None:
        """Told what it was made with, before `__init__` runs."""

    def held(self) -> list[Any]:
        """The values that live as long as this one."""
        return list(self.fields.values())

    def special(self, name: str) -> Any:
        """A special method bound to this value; None when the class has none."""
        found = self.cls.lookup(name)
        return None if found is None else BoundMethod(self, found)

    def get_attribute(self, name: str) -> Any:
        if name in self.fields:
            return self.fields[name]
        if name == "__class__":
            return self.cls
        return bound(self, self.cls, name, None)

    def set_attribute(self, name: str, value: Any) -> None:
        if not set_property(self, name, value):
            self.fields[name] = value

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        method = self.special("__call__")
        if method is None:
            raise fail(
                "E208",
                f"a {self.cls.name} is not a function and cannot be called",
                help="define `__call__`",
            )
        return call_value(method, args, kwargs)

    def length(self) -> int:
        method = self.special("__len__")
        if method is None:
            raise fail("E208", f"a {self.cls.name} has no len()", help="define `__len__`")
        return int(call_value(method, [], {}))

    def get_item(self, key: Any) -> Any:
        method = self.special("__getitem__")
        if method is None:
            raise fail("E208", f"a {self.cls.name} cannot be indexed", help="define `__getitem__`")
        return call_value(method, [key], {})

    def set_item(self, key: Any, value: Any) -> None:
        method = self.special("__setitem__")
        if method is None:
            raise fail(
                "E208",
                f"items of a {self.cls.name} cannot be assigned",
                help="define `__setitem__`",
            )
        call_value(method, [key, value], {})

    def items(self) -> Any:
        """What a `for` goes through."""
        following = self.special("__next__")
        if following is not None:
            from .iterators import stepped

            return stepped(following)
        method = self.special("__iter__")
        if method is not None:
            from .operations import iterate

            return iterate(call_value(method, [], {}))
        if self.cls.lookup("__getitem__") is not None and self.cls.lookup("__len__") is not None:
            return (self.get_item(i) for i in range(self.length()))
        raise fail("E208", f"a {self.cls.name} cannot be iterated over", help="define `__iter__`")

    def describe(self) -> str:
        for name in ("__repr__", "__str__"):
            method = self.special(name)
            if method is not None:
                return str(call_value(method, [], {}))
        return f"<{self.cls.name} object>"

    def describe_text(self) -> str:
        """What `str()` gives."""
        method = self.special("__str__")
        return self.describe() if method is None else str(call_value(method, [], {}))


def bound(instance: Instance, cls: UserClass, name: str, after: UserClass | None) -> Any:
    """An attribute of an instance's class, methods bound to the instance."""
    found = instance.cls.lookup(name, after)
    if found is None:
        hook = instance.cls.lookup("__getattr__")
        if hook is not None:
            return call_value(BoundMethod(instance, hook), [name], {})
        members = [n for c in instance.cls.mro for n in c.names]
        close = suggest(name, [*instance.fields, *members])
        has = f"it has: {', '.join([*instance.fields][:12])}" if instance.fields else _has(cls)
        raise fail(
            "E207",
            f"a {instance.cls.name} has no attribute `{name}`",
            help=f"did you mean `.{close[0]}`?" if close else has,
        )
    if isinstance(found, Wrapped):
        if found.kind == "property":
            return call_value(BoundMethod(instance, found.function), [], {})
        return (
            BoundMethod(instance.cls, found.function)
            if found.kind == "classmethod"
            else found.function
        )
    if isinstance(found, UserFunction | Builtin):
        return BoundMethod(instance, found)
    return found


class BoundMethod:
    """A function with its first argument."""

    __slots__ = ("function", "owner")

    def __init__(self, owner: Any, function: Any):
        self.owner = owner
        self.function = function

    @property
    def name(self) -> str:
        return self.function.name

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return call_value(self.function, [self.owner, *args], kwargs)

    def describe(self) -> str:
        return f"<method {self.name}>"


class Super:
    """`super()` inside a method."""

    __slots__ = ("cls", "instance")

    def __init__(self, cls: UserClass, instance: Instance):
        self.cls = cls
        self.instance = instance

    def get_attribute(self, name: str) -> Any:
        if name == "__init__" and self.instance.cls.lookup(name, self.cls) is None:
            return Builtin("__init__", lambda *args, **kwargs: None)
        return bound(self.instance, self.cls, name, self.cls)


FUNCTION = UserClass("Function", [], {}, None)


def make_super(scope: Scope, args: list[Any]) -> Super:
    """The value of `super()` or `super(Class, self)` in a running method."""
    cls: Any = args[0] if args else None
    instance: Any = args[1] if len(args) > 1 else None
    at: Scope | None = scope
    while at is not None and (cls is None or instance is None):
        if instance is None and at.function and at.names:
            instance = next((v for v in at.names.values() if isinstance(v, Instance)), None)
        if cls is None:
            cls = at.names.get("__class__")
        at = at.outer
    if not isinstance(cls, UserClass) or not isinstance(instance, Instance):
        raise fail(
            "E208",
            "super() works inside methods of a class",
            help="call the base by name: `Base.method(self)`",
        )
    return Super(cls, instance)


def _mark(kind: str) -> Builtin:
    return Builtin(kind, lambda function: Wrapped(kind, function))


DECORATORS = {kind: _mark(kind) for kind in ("staticmethod", "classmethod", "property")}
