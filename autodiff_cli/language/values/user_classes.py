"""Classes of programs: they are classes of Python, what programs name in them is not.

A class is made by the metaclass `UserClass`: the order of its bases, hashing, comparing, iterating,
operators and layouts are Python's own. Python's class holds an entry for each special method that
the program defines, which enters the program, and nothing else of it: the names of a class are in
its table `names` (with those of its bases in `flat`), the attributes of a value in its `fields`.
No name of a program is ever looked up as an attribute of Python. See docs/decisions/0011.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from types import MethodType
from typing import Any

from ...errors import AutodiffError, fail, fault
from ...graph.registry import overloads
from ...suggest import suggest
from ..syntax.tree import private
from .dialect import kind_of
from .formatting import formatted, text
from .functions import call_value
from .operations import items_of, truth
from .providers import from_above
from .values import Builtin, Instance, Method, UserFunction

_MISSING: Any = object()
_ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
_BY_PYTHON = """
    eq ne lt le gt ge hash bool len iter next contains getitem setitem delitem call reversed missing
    neg pos abs invert index int float round trunc floor ceil divmod rdivmod
"""
_BY_THE_LANGUAGE = """
    new init init_subclass set_name class_getitem post_init repr str format dir
    getattr getattribute setattr delattr get set delete enter exit copy deepcopy getstate setstate
"""
_BINARY = [before + name for before in ("", "r", "i") for name in _ARITHMETIC.split()]

# Special methods that Python's own machinery calls, and with those that the language calls all
# that a program may define.
SLOTS = frozenset(f"__{name}__" for name in [*_BY_PYTHON.split(), *_BINARY])
SPECIAL = SLOTS | frozenset(f"__{name}__" for name in _BY_THE_LANGUAGE.split())


def _entry(name: str) -> Callable[..., Any]:
    """What Python's class has for a special method of the program."""

    def enter(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call_value(bind(type(self).flat[name], self), list(args), kwargs)

    def step(self: Any) -> Any:
        is_a = from_above("values.exceptions.is_a")
        try:
            return enter(self)
        except AutodiffError as error:
            if not is_a(error, "StopIteration"):
                raise
        raise StopIteration

    def contains(self: Any, item: Any) -> bool:
        return truth(enter(self, item))

    def whole(self: Any) -> int:
        found = enter(self)
        if isinstance(found, int):
            return found
        if name == "__hash__":
            raise fault("E208 hash-integer")
        raise fault("E208 index-integer", type(found).__name__)

    others: dict[str, Callable[..., Any]] = {
        "__next__": step,
        "__contains__": contains,
        "__hash__": whole,
        "__index__": whole,
    }
    return others.get(name, enter)


_ENTRIES = {name: _entry(name) for name in SLOTS}


class Names(dict[str, Any]):
    """The names of a class; whoever changes them changes the class."""

    __slots__ = ("cls",)
    cls: UserClass

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if name in SLOTS:
            setattr(self.cls, name, None if value is None else _ENTRIES[name])
        self.cls.refresh()

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        if name in SLOTS:
            delattr(self.cls, name)
        self.cls.refresh()

    def update(self, *args: Any, **kwargs: Any) -> None:
        super().update(*args, **kwargs)
        self.cls.refresh()


class UserClass(type):
    """A class: `names` are its own, `flat` those of its bases too, `line` the classes of the
    language in their order.

    A `fixed` class came with the language, programs cannot change it; `slots` are the attributes
    that its values may have, None when any; `begin` makes the names of the body of a class below
    this one, `finish` of the class what its name means, when that is no class.
    """

    names: Names
    flat: dict[str, Any]
    line: tuple[UserClass, ...]
    fixed: bool
    slots: frozenset[str] | None
    annotated: dict[str, str]
    finish: Callable[[UserClass], Any] | None = None
    begin: Callable[[list[UserClass]], dict[str, Any]] = staticmethod(lambda bases: {})

    def __new__(
        meta, name: str, bases: Any, names: dict[str, Any], span: Any = None, fixed: bool = False
    ) -> UserClass:
        names = dict(names)
        entries: dict[str, Any] = {
            key: None if names[key] is None else _ENTRIES[key] for key in SLOTS & names.keys()
        }
        entries["__qualname__"] = names.pop("__qualname__", name)
        for base in bases:
            meta = type(base) if issubclass(type(base), meta) else meta
        try:
            cls = super().__new__(meta, name, tuple(bases) or (OBJECT,), entries)
        except TypeError as error:
            raise fault(
                "E208 bases-have-no-order", " ".join(str(error).split()), span=span
            ) from None
        cls.names = Names(names)
        cls.names.cls = cls
        cls.line = tuple(c for c in cls.__mro__ if isinstance(c, UserClass))
        cls.fixed = fixed
        cls.annotated = {}
        cls.slots = slots_of(cls, span)
        cls.refresh()
        return cls

    def __init__(cls, *args: Any, **kwargs: Any):
        pass

    def refresh(cls) -> None:
        """Called when names of the class, or of one above it, have changed."""
        flat: dict[str, Any] = {}
        for base in reversed(cls.line):
            flat.update(base.names)
        cls.flat = flat
        below: Any
        for below in cls.__subclasses__():
            below.refresh()

    @property
    def name(cls) -> str:
        return cls.__name__

    @property
    def bases(cls) -> list[UserClass]:
        return [base for base in cls.__bases__ if isinstance(base, UserClass)]

    def get_attribute(cls, name: str) -> Any:
        found = cls.flat.get(name, _MISSING)
        if found is not _MISSING:
            return bind(found, None, cls)
        if name in _FACTS:
            return _FACTS[name](cls)
        raise _no_attribute(cls, name)

    def set_attribute(cls, name: str, value: Any) -> None:
        cls.check_open(name)
        if name in _FACTS and name not in ("__name__", "__qualname__", "__doc__", "__module__"):
            raise fail("E207", f"`{name}` of a class cannot be set", help="make another class")
        cls.names[name] = value

    def delete_attribute(cls, name: str) -> None:
        cls.check_open(name)
        if name not in cls.names:
            raise _no_attribute(cls, name)
        del cls.names[name]

    def check_open(cls, name: str) -> None:
        if cls.fixed:
            raise fault("E207 attributes-class-cannot-set", cls.name, name)

    def get_item(cls, key: Any) -> Any:
        method = cls.flat.get("__class_getitem__")
        if method is None:
            raise fail("E208", f"type '{cls.name}' is not subscriptable", help="make a value of it")
        return call_value(bind(method, None, cls), [key], {})

    def call(cls, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Make a value."""
        return cls(*args, **kwargs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        kind: Any = cls
        flat = cls.flat
        missing = abstract_names(cls)
        if missing:
            words = ", ".join(sorted(missing))
            raise fault(
                "E208 can-t-instantiate-abstract", cls.name, "s" if len(missing) > 1 else "", words
            )
        make = flat["__new__"]
        if make is _NEW:
            instance = kind.__new__(cls, *args)
        else:
            instance = call_value(bind(make, None, cls), [cls, *args], kwargs)
            if not isinstance(instance, cls):
                return instance
        init = flat["__init__"]
        if init is not _INIT:
            found = call_value(bind(init, instance), list(args), kwargs)
            if found is not None and type(init) is UserFunction:
                raise fault("E208 init-should-return-none")
        elif (args or kwargs) and make is _NEW:
            raise fault("E205 takes-no-arguments", cls.name)
        return instance

    def has_instance(cls, value: Any) -> bool:
        return cls is OBJECT or isinstance(value, cls)

    def describe(cls) -> str:
        module = _module_of(cls)
        return f"<class '{cls.name if module == 'builtins' else f'{module}.{cls.__qualname__}'}'>"


def slots_of(cls: UserClass, span: Any = None) -> frozenset[str] | None:
    """The attributes that the classes of a line list, None when one of them lists none."""
    found: set[str] = set()
    for base in cls.line[:-1]:  # without `object`
        if base is not cls and base.slots == frozenset():
            continue
        if base.names.get("__slots__") is None:
            return None
        found.update(_listed(base, span))
    return None if "__dict__" in found else frozenset(found)


def _listed(cls: UserClass, span: Any = None) -> list[str]:
    """The names that the `__slots__` of a class lists."""
    listed = cls.names.get("__slots__", ())
    names = [listed] if isinstance(listed, str) else items_of(listed)
    for name in names:
        if not isinstance(name, str):
            raise fault("E208 slots-strings", type(name).__name__, span=span)
    return [private(name, cls.name) for name in names]


def abstract_names(cls: UserClass) -> list[str]:
    """The methods that a class below must define, where `ABC` is among the bases."""
    if "__abstract__" not in cls.flat:
        return []
    return [n for n, value in cls.flat.items() if getattr(value, "__isabstractmethod__", False)]


def _module_of(cls: UserClass) -> str:
    if not cls.fixed:
        return "__main__"
    return from_above("nn.class_modules.module_of")(cls.name) or "builtins"


_FACTS: dict[str, Callable[[UserClass], Any]] = {
    "__name__": lambda cls: cls.name,
    "__qualname__": lambda cls: cls.__qualname__,
    "__module__": lambda cls: _module_of(cls),
    "__doc__": lambda cls: None,
    "__mro__": lambda cls: cls.line,
    "mro": lambda cls: Builtin("mro", lambda: list(cls.line)),
    "__bases__": lambda cls: tuple(cls.bases),
    "__dict__": lambda cls: dict(cls.names),
    "__annotations__": lambda cls: dict(cls.annotated),
}


def _no_attribute(cls: UserClass, name: str) -> AutodiffError:
    return fault("E207 class-no-attribute", cls.name, name, _has(cls))


def _has(cls: UserClass) -> str:
    names = [n for n in cls.flat if not n.startswith("_")]
    return f"it has: {', '.join(names[:12])}" if names else "it has none"


def bind(found: Any, instance: Any, cls: Any = None) -> Any:
    """What an attribute of a class is for a value, or for the class itself: methods are bound,
    properties read."""
    if isinstance(found, Instance):
        method = special(found, "__get__")
        if method is None:
            return found
        owner = type(instance) if cls is None else cls
        return call_value(method, [instance, owner], {})
    get = getattr(type(found), "__get__", None)
    if get is None or isinstance(found, UserClass):
        return found
    return get(found, instance, type(instance) if cls is None else cls)


def special(value: Any, name: str) -> Any:
    """A special method bound to a value of a class; None when there is none."""
    kind: Any = type(value)
    found = kind.flat.get(name) if isinstance(value, Instance) else None
    return None if found is None else bind(found, value)


def _decides(found: Any) -> bool:
    """Whether an attribute of a class goes before one of the value."""
    return type(found) is property or (
        special(found, "__get__") is not None and _setter(found, "__set__") is not None
    )


def _setter(found: Any, name: str) -> Any:
    """What a descriptor does for `__set__` or `__delete__`; None of what is no such descriptor."""
    if not isinstance(found, Instance):
        return None
    method = special(found, name)
    other = special(found, "__delete__" if name == "__set__" else "__set__")
    return method if method is not None or other is None else Builtin(name, _lacking(name))


def _lacking(name: str) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        raise fail("E207", name, help=f"define `{name}` in the descriptor")

    return run


class Object(Instance):
    """The base of all values of classes: attributes, operators, calls."""

    fields: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self: Any = object.__new__(cls)
        self.fields = {}
        return self

    layout: Any = object  # the type of Python's own that it extends

    @property
    def cls(self) -> Any:
        return type(self)

    def held(self) -> list[Any]:
        """The values that live as long as this one."""
        return list(self.fields.values())

    def copy_state(self, other: Any, again: Callable[[Any], Any]) -> None:
        """Take what another value of the class has, each part made `again`."""
        self.fields.update({n: again(v) for n, v in other.fields.items()})

    def get_attribute(self, name: str) -> Any:
        cls: Any = type(self)
        hook = cls.flat["__getattribute__"]
        if hook is _READ:
            return self.read(name)
        try:
            return call_value(bind(hook, self), [name], {})
        except AutodiffError as error:
            further = cls.flat.get("__getattr__")
            if further is None or not from_above("values.exceptions.is_a")(error, "AttributeError"):
                raise
        return call_value(bind(further, self), [name], {})

    def read(self, name: str) -> Any:
        """`object.__getattribute__`, and `__getattr__` after it."""
        cls: Any = type(self)
        found = cls.flat.get(name, _MISSING)
        if name in self.fields and not _decides(found):
            return self.fields[name]
        if type(found) is UserFunction:
            return MethodType(found, self)
        hook = cls.flat.get("__getattr__")
        if hook is None or (found is _MISSING and name in ("__class__", "__dict__")):
            return self.missing(name) if found is _MISSING else bind(found, self, cls)
        if found is not _MISSING:
            try:
                return bind(found, self, cls)
            except AutodiffError as error:
                if not from_above("values.exceptions.is_a")(error, "AttributeError"):
                    raise
        return call_value(bind(hook, self), [name], {})

    def missing(self, name: str) -> Any:
        """An attribute that neither the value nor its class has."""
        cls: Any = type(self)
        if name == "__class__":
            return cls
        if name == "__dict__" and cls.slots is None:
            hidden = {n for base in cls.line for n in _listed(base)}
            shown = {n: v for n, v in self.fields.items() if n not in hidden}
            return shown if hidden & self.fields.keys() else self.fields
        if name in ("__module__", "__doc__"):
            return "__main__" if name == "__module__" else cls.flat.get(name)
        parts = [getattr(self, kind, ()) for kind in ("parameters", "modules", "buffers")]
        close = suggest(name, [*(n for part in parts for n in part), *self.fields, *cls.flat])
        has = f"it has: {', '.join([*self.fields][:12])}" if self.fields else _has(cls)
        if "forward" in cls.flat and (name == "backward" or overloads(name)):
            has = f"it is a module, made but not called: `{cls.name}()(x)` is its result"
        help = f"did you mean `.{close[0]}`?" if close else has
        made = getattr(cls.flat.get("__init__"), "params", None)
        text = "" if made is None or made.tree is None else made.tree.span.text
        line = re.search(rf"(?m)^[ \t]+({re.escape(name)} = .+)$", text)
        if line:
            help = f"there it is a name of `__init__` only: write `self.{line[1]}` for `{line[1]}`"
        raise fault("E207 no-attribute-of-instance", cls.name, name, help)

    def set_attribute(self, name: str, value: Any) -> None:
        cls: Any = type(self)
        hook = cls.flat["__setattr__"]
        if hook is _SET:
            self.assign(name, value)
        else:
            call_value(bind(hook, self), [name, value], {})

    def assign(self, name: str, value: Any) -> None:
        """`object.__setattr__`."""
        if name == "__class__":
            _become(self, value)
        elif name == "__dict__" and isinstance(value, dict):
            self.fields = value
        elif not set_property(self, name, value):
            slots = self.cls.slots
            if slots is not None and name not in slots:
                raise fault(
                    "E207 no-attribute-2", self.cls.name, ", ".join(sorted(slots)), name=name
                )
            self.fields[name] = value

    def delete_attribute(self, name: str) -> None:
        cls: Any = type(self)
        hook = cls.flat["__delattr__"]
        if hook is _DELETE:
            self.forget(name)
        else:
            call_value(bind(hook, self), [name], {})

    def forget(self, name: str) -> None:
        """`object.__delattr__`."""
        found = self.cls.flat.get(name)
        if type(found) is property:
            if found.fdel is None:
                raise _no_accessor(self, name, "deleter")
            call_value(found.fdel, [self], {})
        elif (remove := _setter(found, "__delete__")) is not None:
            call_value(remove, [self], {})
        elif name in self.fields:
            del self.fields[name]
        else:
            self.missing(name)

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        method = special(self, "__call__")
        if method is None:
            raise fault("E208 not-function-cannot-called-2", self.cls.name)
        return call_value(method, args, kwargs)

    def get_item(self, key: Any) -> Any:
        method = special(self, "__getitem__")
        if method is None:
            raise fault("E208 cannot-indexed-2", self.cls.name)
        return call_value(method, [key], {})

    def set_item(self, key: Any, value: Any) -> None:
        method = special(self, "__setitem__")
        if method is None:
            raise fault("E208 items-cannot-assigned", self.cls.name)
        call_value(method, [key, value], {})

    def describe(self) -> str:
        """What `repr()` gives."""
        return _text(self, "__repr__")

    def describe_text(self) -> str:
        """What `str()` gives."""
        return _text(self, "__str__")

    def formatted(self, spec: str) -> str:
        """What `format()` gives."""
        return _text(self, "__format__", spec)


def _become(value: Any, cls: Any) -> None:
    """`value.__class__ = cls`."""
    plain = isinstance(cls, UserClass) and not (cls.fixed or type(value).fixed)
    if plain and cls.slots == type(value).slots:
        with suppress(TypeError):
            value.__class__ = cls
            return
    raise fault("E208 class-assignment-classes-different")


def _text(value: Any, name: str, *spec: str) -> str:
    found = call_value(special(value, name), list(spec), {})
    if not isinstance(found, str):
        raise fail("E208", f"{name} returned {kind_of(found)}, not a string", help="return text")
    return found


def _no_accessor(instance: Any, name: str, what: str) -> AutodiffError:
    cls = instance.cls.name
    return fault("E207 property-object-no", cls, name=name, what=what)


def set_property(instance: Any, name: str, value: Any) -> bool:
    """Assign through a property or another descriptor of the class; whether it has one."""
    found = instance.cls.flat.get(name)
    if type(found) is property:
        if found.fset is None:
            raise _no_accessor(instance, name, "setter")
        call_value(found.fset, [instance, value], {})
        return True
    method = _setter(found, "__set__")
    if method is not None:
        call_value(method, [instance, value], {})
    return method is not None


# -- the class of all -----------------------------------------------------------------------------


def _plain_repr(self: Any) -> str:
    return f"<{_module_of(self.cls)}.{self.cls.__qualname__} object at {id(self):#x}>"


def _formatted(self: Any, spec: Any) -> str:
    if self.layout is not object:
        plain = from_above("values.builtin_bases.plain")
        return formatted(plain(self), spec) if spec else text(self)
    if spec:
        raise fault("E208 unsupported-format-string-passed", self.cls.name)
    return text(self)


def _new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(cls, type):
        raise fail("E208", "object.__new__(X): X is not a type object", help="give the class")
    kind: Any = cls
    return kind.__new__(kind)


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    if args or kwargs:
        raise fault("E205 object-init-takes-exactly")


_NEW = staticmethod(Builtin("__new__", _new))
_INIT = Method("__init__", _init)
_READ = Method("__getattribute__", lambda self, name: self.read(name))
_SET = Method("__setattr__", lambda self, name, value: self.assign(name, value))
_DELETE = Method("__delattr__", lambda self, name: self.forget(name))

OBJECT: UserClass = UserClass("object", (Object,), {}, fixed=True)
OBJECT.names.update(
    {
        "__new__": _NEW,
        "__init__": _INIT,
        "__getattribute__": _READ,
        "__setattr__": _SET,
        "__delattr__": _DELETE,
        "__repr__": Method("__repr__", _plain_repr),
        "__str__": Method("__str__", lambda self: self.describe()),
        "__format__": Method("__format__", _formatted),
        "__eq__": Method("__eq__", lambda self, other: self is other or NotImplemented),
        "__ne__": Method("__ne__", lambda self, other: self is not other and NotImplemented),
        "__hash__": Method("__hash__", object.__hash__),
    }
)


def library_class(
    name: str, bases: list[UserClass], methods: dict[str, Any], make: Any = None
) -> UserClass:
    """A class of the language whose methods are written in Python; its values are made by `make`,
    a subclass of `Object`."""
    names = {key: f if type(f) is property else Method(key, f) for key, f in methods.items()}
    kinds = tuple(bases) or (OBJECT,)
    return UserClass(name, kinds if make is None else (make, *kinds), names, fixed=True)


def _apply(cls: UserClass, *args: Any, **kwargs: Any) -> Any:
    return from_above("torch.custom_functions.apply")(cls, args, kwargs)


def _called(self: Object, *args: Any, **kwargs: Any) -> Any:
    raise fault("E409 function-not-called", self.cls.name)


def _unmapped(*args: Any) -> Any:
    raise fault("E409 function-has-no-vmap")


UNMAPPED = Builtin("vmap", _unmapped)
FUNCTION = library_class("Function", [], {"__call__": _called})
FUNCTION.names["apply"] = classmethod(Builtin("apply", _apply))
FUNCTION.names["generate_vmap_rule"] = False
FUNCTION.names["vmap"] = UNMAPPED
