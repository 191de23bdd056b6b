"""`enum.Enum` and `typing.NamedTuple`: classes whose bodies list values or fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import fail
from .classes import Instance, UserClass, Wrapped
from .collected import RowType
from .text import represent
from .values import Builtin, UserFunction


class Auto:
    """`enum.auto()`."""

    __slots__ = ()


class Member(Instance):
    """A value of an enumeration."""

    __slots__ = ()

    def describe(self) -> str:
        if self.special("__repr__") is not None:
            return super().describe()
        return f"<{self.cls.name}.{self.fields['name']}: {represent(self.fields['value'])}>"

    def describe_text(self) -> str:
        if self.special("__str__") is not None:
            return super().describe_text()
        return f"{self.cls.name}.{self.fields['name']}"


class Enumeration(UserClass):
    """A class with members: called with a value it gives the member."""

    __slots__ = ("members",)
    members: dict[str, Member]

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        for member in self.members.values():
            if len(args) == 1 and (member is args[0] or member.fields["value"] == args[0]):
                return member
        raise fail(
            "E208",
            f"{', '.join(map(represent, args))} is not a valid {self.name}",
            help=f"it has: {', '.join(self.members)}",
        )

    def items(self) -> Iterator[Any]:
        return iter(self.members.values())

    def length(self) -> int:
        return len(self.members)

    def get_item(self, key: Any) -> Any:
        if key in self.members:
            return self.members[key]
        raise fail("E210", f"{self.name} has no member {represent(key)}", help="check the name")


def _enumeration(cls: UserClass) -> Enumeration:
    made = Enumeration(cls.name, cls.bases, cls.names, cls.span)
    made.members = {}
    for name, value in list(cls.names.items()):
        if name.startswith("_") or isinstance(value, UserFunction | Wrapped | Builtin):
            continue
        member = Member(made)
        number = len(made.members) + 1 if isinstance(value, Auto) else value
        member.fields.update(name=name, value=number)
        made.members[name] = member
        made.names[name] = member
    return made


def _row_type(cls: UserClass) -> RowType:
    fields = tuple(cls.annotated)
    defaults = tuple(cls.names[name] for name in fields if name in cls.names)
    return RowType(cls.name, fields, defaults)


def _base(name: str, finish: Any) -> UserClass:
    made = UserClass(name, [], {}, None)
    made.fixed = True
    made.finish = finish
    return made


ENUM = {
    "Enum": _base("Enum", _enumeration),
    "IntEnum": _base("IntEnum", _enumeration),
    "auto": Builtin("auto", Auto),
}
NAMED_TUPLE = _base("NamedTuple", _row_type)
