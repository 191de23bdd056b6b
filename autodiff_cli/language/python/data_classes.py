"""`dataclasses`: classes whose `__init__`, `__repr__` and comparisons follow from their fields."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ...errors import AutodiffError, fail, fault
from ...graph.state import STATE
from ..syntax.tree import Param
from ..values.builtin_bases import GENERIC
from ..values.dialect import misfit
from ..values.exceptions import EXCEPTIONS
from ..values.formatting import represent
from ..values.functions import call_value
from ..values.operations import compare, equal, truth
from ..values.user_classes import Object, UserClass, slots_of, special
from ..values.values import Builtin, Method
from .collections_module import signature


class Missing:
    """Stands where a field has no default."""

    __slots__ = ()


MISSING: Any = Missing()
_TABLE = "__dataclass_fields__"
_NOWHERE: Any = None


class Field:
    """`field(default=..., default_factory=...)`."""

    __slots__ = ("compare", "default", "factory", "hash", "init", "kw_only", "metadata", "name",
                 "repr", "stored")  # fmt: skip
    name: str
    stored: bool  # False: only given to `__post_init__`

    def __init__(
        self, default: Any = MISSING, default_factory: Any = MISSING, *, init: Any = True,
        repr: Any = True, hash: Any = None, compare: Any = True, metadata: Any = None,
        kw_only: Any = None,
    ):  # fmt: skip
        if default is not MISSING and default_factory is not MISSING:
            raise fault("E208 cannot-specify-both-default")
        self.default = default
        self.factory = default_factory
        self.init = truth(init)
        self.repr = truth(repr)
        self.compare = truth(compare)
        self.hash = None if hash is None else truth(hash)  # None: as it is compared
        self.kw_only = kw_only
        self.metadata = metadata or {}

    @property
    def optional(self) -> bool:
        return self.default is not MISSING or self.factory is not MISSING

    def get_attribute(self, name: str) -> Any:
        if name == "default_factory":
            return self.factory
        if name in ("name", "default", "init", "repr", "compare", "hash", "kw_only", "metadata"):
            return getattr(self, name)
        raise fail("E207", f"a field has no attribute `{name}`", help="it has: name, default")


def _wrong(message: str, kind: str, help: str) -> AutodiffError:
    return fail("E208", message, help=help, raises=kind)


def _own_fields(cls: UserClass, kw_only: bool) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for name, annotation in cls.annotated.items():
        kind = annotation.rpartition("typing.")[2]
        if kind.startswith("ClassVar"):
            continue
        if kind.removeprefix("dataclasses.") == "KW_ONLY":
            kw_only = True
            continue
        value = cls.names.get(name, MISSING)
        field = value if isinstance(value, Field) else Field(value)
        field.name = name
        field.stored = not kind.removeprefix("dataclasses.").startswith("InitVar")
        if field.kw_only is None:
            field.kw_only = kw_only
        if isinstance(field.default, list | dict | set):
            raise _wrong(
                f"mutable default <class '{type(field.default).__name__}'> for field {name} is not "
                "allowed: use default_factory", "ValueError", "field(default_factory=list)",
            )  # fmt: skip
        if field.default is not MISSING:
            cls.names[name] = field.default
        elif isinstance(value, Field):
            del cls.names[name]
        found[name] = field
    for name, value in cls.names.items():
        if isinstance(value, Field):
            raise _wrong(f"'{name}' is a field but has no type annotation", "TypeError", "x: int")
    return found


def _dataclass(cls: Any = None, **options: Any) -> Any:
    if cls is None:
        return Builtin("dataclass", lambda given: _dataclass(given, **options))
    if not isinstance(cls, UserClass):
        raise misfit("`dataclass` decorates classes, not", cls, "@dataclass")
    known = ("init", "repr", "eq", "order", "unsafe_hash", "frozen", "match_args", "kw_only",
             "slots", "weakref_slot")  # fmt: skip
    for name in options:
        if name not in known:
            raise fail("E205", f"dataclass() got an unexpected keyword argument '{name}'",
                       help=f"it takes {', '.join(known)}")  # fmt: skip
    is_set = {name: truth(options.get(name, name in ("init", "repr", "eq"))) for name in known}
    if is_set["order"] and not is_set["eq"]:
        raise _wrong("eq must be true if order is true", "ValueError", "leave out eq=False")
    fields: dict[str, Field] = {}
    for base in reversed(cls.line[1:]):
        fields.update(base.names.get(_TABLE, {}))
        if _TABLE in base.names and base.names["__dataclass_frozen__"] != is_set["frozen"]:
            words = ("frozen", "non-frozen") if is_set["frozen"] else ("non-frozen", "frozen")
            raise _wrong(f"cannot inherit {words[0]} dataclass from a {words[1]} one", "TypeError",
                         "make both frozen")  # fmt: skip
    fields.update(_own_fields(cls, is_set["kw_only"]))
    stored = [field for field in fields.values() if field.stored]
    cls.names[_TABLE] = fields
    cls.names["__dataclass_frozen__"] = is_set["frozen"]
    if "__match_args__" not in cls.names:
        names = [f.name for f in fields.values() if f.init and not f.kw_only]
        cls.names["__match_args__"] = tuple(names)
    required = {"__lt__", "__le__", "__gt__", "__ge__", "__setattr__", "__delattr__"}
    if is_set["unsafe_hash"]:
        required.add("__hash__")
    for name, method in _methods(cls, fields, stored, is_set).items():
        own = cls.names.get(name)
        if own is not None and name in required:
            raise _wrong(f"Cannot overwrite attribute {name} in class {cls.name}", "TypeError",
                         f"leave out `{name}`")  # fmt: skip
        if own is None:
            cls.names[name] = method
    if is_set["slots"]:
        cls.names["__slots__"] = tuple(field.name for field in stored)
        cls.slots = slots_of(cls)
    return cls


def _methods(
    cls: UserClass, fields: dict[str, Field], stored: list[Field], is_set: dict[str, bool]
) -> dict[str, Any]:
    compared = [field.name for field in stored if field.compare]

    def key(value: Any) -> tuple[Any, ...]:
        return tuple([value.get_attribute(name) for name in compared])

    def describe(self: Any) -> str:
        if id(self) in STATE.printing:
            return "..."
        STATE.printing.append(id(self))
        try:
            parts = [f"{f.name}={represent(self.get_attribute(f.name))}" for f in stored if f.repr]
        finally:
            STATE.printing.remove(id(self))
        return f"{self.cls.__qualname__}({', '.join(parts)})"

    def same(self: Any, other: Any) -> Any:
        if getattr(other, "cls", None) is not self.cls:
            return NotImplemented
        return equal(key(self), key(other))

    def ordered(symbol: str) -> Callable[[Any, Any], Any]:
        def run(self: Any, other: Any) -> Any:
            if getattr(other, "cls", None) is not self.cls:
                return NotImplemented
            return compare(symbol, key(self), key(other))

        return run

    def hashed(self: Any) -> int:
        hashed = [f for f in stored if (f.compare if f.hash is None else f.hash)]
        return hash(tuple([self.get_attribute(f.name) for f in hashed]))

    def refuse(what: str) -> Callable[..., Any]:
        def run(self: Any, name: str, *value: Any) -> None:
            raise fault("E207 cannot-what-field", what=what, name=name)

        return run

    found: dict[str, Any] = {}
    if is_set["init"]:
        found["__init__"] = _init(cls, fields)
    if is_set["repr"]:
        found["__repr__"] = Method("__repr__", describe)
    if is_set["eq"]:
        found["__eq__"] = Method("__eq__", same)
    if is_set["order"]:
        for symbol, name in (("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge")):
            found[f"__{name}__"] = Method(f"__{name}__", ordered(symbol))
    if is_set["frozen"]:
        found["__setattr__"] = Method("__setattr__", refuse("assign to"))
        found["__delattr__"] = Method("__delattr__", refuse("delete"))
    if is_set["unsafe_hash"] or (is_set["eq"] and is_set["frozen"]):
        found["__hash__"] = Method("__hash__", hashed)
    elif is_set["eq"] and "__hash__" not in cls.names:
        cls.names["__hash__"] = None
    return found


def _init(cls: UserClass, fields: dict[str, Field]) -> Any:
    positional = [f for f in fields.values() if f.init and not f.kw_only]
    keyword = [f for f in fields.values() if f.init and f.kw_only]
    for first, second in pairwise(positional):
        if first.optional and not second.optional:
            raise _wrong(f"non-default argument {second.name!r} follows default argument",
                         "TypeError", "put fields without a default first")  # fmt: skip

    def initial(field: Field) -> Any:
        return field if field.default is MISSING else field.default  # a field: ask its factory

    def fill(given: dict[str, Any]) -> None:
        self = given["self"]
        late = []
        for name, field in fields.items():
            value = given.get(name, initial(field))
            if value is field:
                if field.factory is MISSING:
                    continue
                value = call_value(field.factory, [], {})
            if field.stored:
                self.assign(name, value)
            else:
                late.append(value)
        after = special(self, "__post_init__")
        if after is not None:
            call_value(after, late, {})

    params = [Param("self", None, "normal", None, _NOWHERE)]
    params += [Param(f.name, None, "normal", None, _NOWHERE) for f in positional]
    params += [Param(f.name, None, "keyword", None, _NOWHERE) for f in keyword]
    defaults = [initial(f) for f in positional if f.optional]
    others = {f.name: initial(f) for f in keyword if f.optional}
    return signature(f"{cls.name}.__init__", params, fill, defaults, **others)


# -- functions of data classes --------------------------------------------------------------------


def _table(value: Any, name: str) -> dict[str, Field]:
    cls = value if isinstance(value, UserClass) else type(value)
    found = cls.flat.get(_TABLE) if isinstance(cls, UserClass) else None
    if found is None or (cls is value and name in ("asdict", "astuple")):
        raise fail("E208", f"{name}() should be called on dataclass instances", help="give one")
    return {key: field for key, field in found.items() if field.stored}


def _is_dataclass(value: Any) -> bool:
    cls = value if isinstance(value, UserClass) else type(value)
    return isinstance(cls, UserClass) and _TABLE in cls.flat


def _inside(value: Any, gather: Callable[[Any], Any]) -> Any:
    """A value with every data class in it replaced."""
    if isinstance(value, Object) and _is_dataclass(value):
        return gather(value)
    if isinstance(value, tuple) and isinstance(value, Object):
        return value.cls(*[_inside(v, gather) for v in value])
    if isinstance(value, list | tuple) and not isinstance(value, Object):
        return type(value)([_inside(v, gather) for v in value])
    if type(value) is dict:
        return {_inside(k, gather): _inside(v, gather) for k, v in value.items()}
    return value


def _as_dict(value: Any, *, dict_factory: Any = dict) -> Any:
    return _gathered(value, "asdict", dict_factory)


def _as_tuple(value: Any, *, tuple_factory: Any = tuple) -> Any:
    return _gathered(value, "astuple", tuple_factory)


def _gathered(value: Any, name: str, factory: Any) -> Any:
    def gather(found: Any) -> Any:
        pairs = [(n, _inside(found.get_attribute(n), gather)) for n in _table(found, name)]
        parts = pairs if name == "asdict" else [part for _, part in pairs]
        return factory(parts) if type(factory) is type else call_value(factory, [parts], {})

    return gather(value)


def _replaced(value: Any, /, **changes: Any) -> Any:
    table = _table(value, "replace")
    fixed = [name for name in changes if name in table and not table[name].init]
    if fixed:
        words = (
            f"field {fixed[0]} is declared with init=False, it cannot be specified with replace()"
        )
        raise _wrong(words, "ValueError", "give the other fields")
    given = {n: value.get_attribute(n) for n, f in table.items() if f.init and n not in changes}
    return value.cls(**given, **changes)


DATACLASSES: dict[str, Any] = {
    "dataclass": Builtin("dataclass", _dataclass),
    "field": Builtin("field", lambda **options: Field(**options)),
    "fields": Builtin("fields", lambda value: tuple(_table(value, "fields").values())),
    "asdict": Builtin("asdict", _as_dict),
    "astuple": Builtin("astuple", _as_tuple),
    "replace": Builtin("replace", _replaced),
    "is_dataclass": Builtin("is_dataclass", _is_dataclass),
    "KW_ONLY": "KW_ONLY",
    "InitVar": GENERIC,
    "MISSING": MISSING,
    "FrozenInstanceError": EXCEPTIONS["FrozenInstanceError"],
}
