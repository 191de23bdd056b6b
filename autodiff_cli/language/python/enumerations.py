"""`enum`: classes whose bodies list values, each of which becomes the one value of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import and_, or_, xor
from typing import Any

from ...errors import AutodiffError, fail, fault
from ..values.builtin_bases import extended, plain
from ..values.formatting import represent
from ..values.functions import call_value
from ..values.operations import equal
from ..values.user_classes import Object, UserClass, bind, library_class
from ..values.values import Builtin, Callee, Method
from .builtins import TYPES


class Auto:
    """`enum.auto()`."""

    __slots__ = ()


class Listed(dict):
    """The names of a body while it runs: a value that is `auto()` is the next one of `values`."""

    def __init__(self, bases: list[UserClass]):
        self.bases = bases
        self.values_listed: list[Any] = []

    def __setitem__(self, name: str, value: Any) -> None:
        if _is_member(name, value):
            if name in self:
                raise fault("E208 member-already-defined", represent(self[name]), name=name)
            if isinstance(value, tuple):
                value = tuple([self._next(name) if isinstance(v, Auto) else v for v in value])
            elif isinstance(value, Auto):
                value = self._next(name)
            self.values_listed.append(value)
        super().__setitem__(name, value)

    def _next(self, name: str) -> Any:
        values = self.values_listed
        tables = [self, *[base.flat for base in self.bases]]
        hook = next((t[NEXT] for t in tables if NEXT in t), None)
        if hook is not None:
            function = bind(hook, None, self.bases[-1])
            return call_value(function, [name, 1, len(values), list(values)], {})
        if any(FLAG in base.line for base in self.bases):
            return 1 << max(values, default=0).bit_length()
        if any(base.name == "StrEnum" for base in self.bases):
            return name.lower()
        return max([v for v in values if isinstance(v, int | float)], default=0) + 1


NEXT = "_generate_next_value_"


def _is_member(name: str, value: Any) -> bool:
    """Whether a name of the body lists a value, and is no method or name for Python."""
    described = hasattr(type(value), "__get__") or isinstance(value, Callee | UserClass)
    sunder = name.startswith("_") and name.endswith("_")
    return not (sunder or described or name.startswith("__"))


class Enumeration(UserClass):
    """A class with members: called with a value it gives the member."""

    members: dict[str, Any]  # by name, also other names of the same member

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls.members:
            raise fail("E208", f"{cls.name} has no members", help="list some in its body")
        if kwargs.keys() == {"value"}:
            args = (*args, kwargs["value"])
        if not args:
            one = represent(next(iter(cls.members.values())).fields["value"])
            what = f"{cls.name}() needs the value of a member"
            raise fail("E205", what, help=f"write `{cls.name}({one})`")
        value = args[0] if len(args) == 1 else args
        found = cls._find(value)
        if found is None:
            hook = cls.flat.get("_missing_")
            found = None if hook is None else call_value(bind(hook, None, cls), [value], {})
        if found is not None:
            return found
        raise fault("E208 not-valid", represent(value), cls.name, ", ".join(cls.members))

    def _find(cls, value: Any) -> Any:
        for member in cls.members.values():
            if member is value or equal(member.fields["value"], value):
                return member
        if FLAG in cls.line and isinstance(value, int):
            return cls._combined(value)
        return None

    def _combined(cls, value: int) -> Any:
        """Several flags at once: one value for each number."""
        every = 0
        for member in cls.members.values():
            every |= member.fields["value"]
        keeps = INT_FLAG in cls.line  # bits of no name
        if value < 0:
            above = 1 << max(every.bit_length(), value.bit_length())
            value = value + above if keeps else value & every
        rest = value & ~every
        if rest and not keeps:
            return None
        known = cls.names.setdefault("_combined", {})
        if value not in known:
            parts = [m.fields["name"] for m in cls if m.fields["value"] & value]
            if parts and rest:
                parts.append(str(rest))
            known[value] = _member(cls, "|".join(parts) or None, value)
        return known[value]

    def __iter__(cls) -> Iterator[Any]:
        return iter({id(m): m for m in cls.members.values() if _is_single(cls, m)}.values())

    def __len__(cls) -> int:
        return sum(1 for _ in cls)

    def __bool__(cls) -> bool:
        return True

    def __contains__(cls, value: Any) -> bool:
        if not isinstance(value, Object):
            raise fault("E208 unsupported-operand-type-s-2", type(value).__name__, "EnumType")
        return isinstance(value, cls)

    def get_item(cls, key: Any) -> Any:
        if isinstance(key, str) and key in cls.members:
            return cls.members[key]
        raise fault("E210 no-member", cls.name, represent(key), key=key)  # fmt: skip

    def set_attribute(cls, name: str, value: Any) -> None:
        if name in cls.members:
            raise _fixed(f"cannot reassign member {name!r}")
        super().set_attribute(name, value)

    def delete_attribute(cls, name: str) -> None:
        if name in cls.members:
            raise _fixed(f"{cls.name!r} cannot delete member {name!r}.")
        super().delete_attribute(name)

    def get_attribute(cls, name: str) -> Any:
        return dict(cls.members) if name == "__members__" else super().get_attribute(name)

    def describe(cls) -> str:
        return f"<{'flag' if FLAG in cls.line else 'enum'} '{cls.name}'>"


def _fixed(words: str) -> AutodiffError:
    return fail("E207", words, help="members stay as the class lists them")


def _assign(self: Any, name: str, value: Any) -> None:
    if name in ("name", "value"):
        raise _fixed(f"<enum 'Enum'> cannot set attribute {name!r}")
    self.assign(name, value)


def _is_single(cls: UserClass, member: Any) -> bool:
    value = member.fields["value"]
    return FLAG not in cls.line or (value > 0 and not value & (value - 1))


def _member(cls: Any, name: str | None, value: Any) -> Any:
    args = value if isinstance(value, tuple) else (value,)
    member = call_value(bind(cls.flat["__new__"], None, cls), [cls, *args], {})
    if not isinstance(member, cls):
        raise fault("E207 object-has-no-attribute", type(member).__name__, cls.name)
    member.fields.setdefault("_value_", value if cls.layout is object else plain(member))
    member.fields.update(name=name, _name_=name, value=member.fields["_value_"])
    init = cls.flat["__init__"]
    if not isinstance(init, Method):
        call_value(init, [member, *args], {})
    kind = type(member.fields["value"])
    if FLAG in cls.line and not issubclass(kind, int):
        raise fault("E208 unsupported-operand-type-s", kind.__name__)
    return member


def _enumeration(cls: Any) -> Any:
    for base in cls.line[1:]:
        if getattr(base, "members", None):
            raise fault("E208 enum-cannot-extend", cls.name, Enumeration.describe(base))
    cls.members = {}
    for name, value in list(cls.names.items()):
        if not _is_member(name, value):
            continue
        known = next((m for m in cls.members.values() if equal(m.fields["value"], value)), None)
        cls.members[name] = _member(cls, name, value) if known is None else known
        cls.names[name] = cls.members[name]
    for name in ("__repr__", "__str__", "__format__"):  # not those of a number or a text
        owner = next(c for c in cls.line if name in c.names)
        if owner.layout is not object and ENUM not in owner.line:
            cls.names[name] = ENUM.names[name]
    return cls


def _named(self: Any) -> str:
    name = self.fields["name"]
    if name is None:
        return f"{self.cls.name}({self.fields['value']})"
    return f"{self.cls.name}.{name}"


def _flags(function: Any) -> Any:
    def run(self: Any, other: Any) -> Any:
        as_number = isinstance(other, int) and INT_FLAG in self.cls.line
        if not isinstance(other, self.cls) and not as_number:
            return NotImplemented
        value = other.fields["value"] if isinstance(other, Object) else other
        return self.cls(function(self.fields["value"], value))

    return run


def _singles(self: Any) -> Iterator[Any]:
    return iter([m for m in self.cls if m.fields["value"] & self.fields["value"]])


def _holds(self: Any, other: Any) -> bool:
    if not isinstance(other, self.cls):
        raise fault("E208 unsupported-operand-type-s-2", type(other).__name__, self.cls.name)
    value: int = other.fields["value"]
    return self.fields["value"] & value == value


def _unique(cls: Any) -> Any:
    for name, member in cls.members.items():
        if member.fields["name"] != name:
            raise fault(
                "E208 duplicate-values-found-enum", cls.name, member.fields["name"], name=name
            )
    return cls


_OPERATORS = {"or": or_, "and": and_, "xor": xor}
ENUM: Any = Enumeration("Enum", (), {}, fixed=True)
ENUM.members = {}
ENUM.finish = staticmethod(_enumeration)
ENUM.begin = staticmethod(Listed)
_METHODS: dict[str, Callable[..., Any]] = {
    "__repr__": lambda self: (
        f"<{self.cls.name}{'.' if self.fields['name'] else ''}{self.fields['name'] or ''}: "
        f"{represent(self.fields['value'])}>"
    ),
    "__str__": _named,
    "__format__": lambda self, spec: format(self.describe_text(), spec),
    "__hash__": lambda self: hash(self.fields["name"]),
    "__setattr__": _assign,
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, known: self,
}
ENUM.names.update({name: Method(name, function) for name, function in _METHODS.items()})
FLAG: Any = library_class(
    "Flag",
    [ENUM],
    {
        **{f"__{r}{name}__": _flags(f) for r in ("", "r") for name, f in _OPERATORS.items()},
        "__invert__": lambda self: self.cls(~self.fields["value"]),
        "__bool__": lambda self: bool(self.fields["value"]),
        "__iter__": _singles,
        "__len__": lambda self: self.fields["value"].bit_count(),
        "__contains__": _holds,
    },
)
_AS_VALUE: dict[str, Callable[..., Any]] = {
    "__str__": lambda self: str(plain(self)),
    "__format__": lambda self, spec: format(plain(self) if spec else self.describe_text(), spec),
}
_INT: Any = extended(TYPES["int"])
_TEXT: Any = extended(TYPES["str"])
INT_FLAG: Any = library_class("IntFlag", [_INT, FLAG], _AS_VALUE)
_CLASSES = [
    ENUM,
    FLAG,
    INT_FLAG,
    library_class("IntEnum", [_INT, ENUM], _AS_VALUE),
    library_class("StrEnum", [_TEXT, ENUM], _AS_VALUE),
]
_cls: Any
for _cls in _CLASSES[1:]:
    _cls.members = {}

NAMES: dict[str, Any] = {
    **{cls.name: cls for cls in _CLASSES},
    "auto": Builtin("auto", Auto),
    "unique": Builtin("unique", _unique),
}
