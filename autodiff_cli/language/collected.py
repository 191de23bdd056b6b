"""The containers of Python's `collections`: dicts with defaults, counters, queues, named tuples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import fail
from ..suggest import suggest
from .functions import call_value
from .kinds import kind_of
from .operations import items_of, iterate, truth
from .subscripts import dict_key, slice_part
from .text import represent
from .values import Builtin, TypeName


class DefaultDict(dict):
    """A dict that makes what is missing."""

    __slots__ = ("factory",)
    factory: Any

    def own_type(self) -> TypeName:
        kind: TypeName = COLLECTIONS["defaultdict"]
        return kind

    def __missing__(self, key: Any) -> Any:
        if self.factory is None:
            raise KeyError(key)
        self[key] = value = call_value(self.factory, [], {})
        return value

    def copy(self) -> DefaultDict:
        return _filled(DefaultDict(self), self.factory)

    def describe(self) -> str:
        kind = self.factory
        shown = f"<class '{kind.name}'>" if isinstance(kind, TypeName) else represent(kind)
        return f"defaultdict({shown}, {represent(dict(self))})"


def _filled(made: DefaultDict, factory: Any) -> DefaultDict:
    made.factory = factory
    return made


def _default_dict(factory: Any = None, values: Any = (), **kwargs: Any) -> DefaultDict:
    return _filled(DefaultDict(_pairs(values), **kwargs), factory)


def _pairs(values: Any) -> dict[Any, Any]:
    if isinstance(values, dict):
        return dict(values)
    return {dict_key(key): value for key, value in (items_of(pair) for pair in iterate(values))}


class Counter(dict):
    """A dict of counts."""

    __slots__ = ()

    def __missing__(self, key: Any) -> int:
        return 0

    def copy(self) -> Counter:
        return Counter(self)

    def _ranked(self, n: Any = None) -> list[Any]:
        ranked = sorted(self.items(), key=lambda pair: pair[1], reverse=True)
        return ranked if n is None else ranked[: slice_part(n)]

    def _added(self, values: Any = ()) -> None:
        if isinstance(values, dict):
            for key, count in values.items():
                self[key] = self.get(key, 0) + count
            return
        for value in iterate(values):
            self[dict_key(value)] = self.get(value, 0) + 1

    def methods(self) -> dict[str, Callable[..., Any]]:
        return {
            "most_common": self._ranked,
            "update": self._added,
            "total": lambda: sum(self.values()),
            "elements": lambda: [key for key, count in self.items() for _ in range(count)],
        }

    def describe(self) -> str:
        inside = ", ".join(f"{represent(k)}: {represent(v)}" for k, v in self._ranked())
        return f"Counter({{{inside}}})" if self else "Counter()"


def _counter(values: Any = (), **kwargs: Any) -> Counter:
    made = Counter()
    made._added(values)
    made._added(kwargs)
    return made


class Deque(list):
    """A list whose ends are open, with room for `maxlen` items."""

    __slots__ = ("maxlen",)
    maxlen: int | None

    def _push(self, item: Any) -> None:
        self.append(item)
        if self.maxlen is not None and len(self) > self.maxlen:
            del self[0]

    def _push_left(self, item: Any) -> None:
        self.insert(0, item)
        if self.maxlen is not None and len(self) > self.maxlen:
            del self[-1]

    def _all(self, items: Any) -> None:
        for item in items_of(items):
            self._push(item)

    def _rotate(self, n: Any = 1) -> None:
        at = -(slice_part(n) or 0) % len(self) if self else 0
        self[:] = self[at:] + self[:at]

    def copy(self) -> Deque:
        made = Deque(self)
        made.maxlen = self.maxlen
        return made

    def methods(self) -> dict[str, Callable[..., Any]]:
        return {
            "append": self._push,
            "appendleft": self._push_left,
            "popleft": lambda: self.pop(0),
            "extend": self._all,
            "rotate": self._rotate,
        }

    def describe(self) -> str:
        room = "" if self.maxlen is None else f", maxlen={self.maxlen}"
        return f"deque({represent(list(self))}{room})"


def _deque(values: Any = (), maxlen: Any = None) -> Deque:
    made = Deque()
    made.maxlen = slice_part(maxlen)
    made._all(values)
    return made


class Row(tuple):
    """A value of a named tuple."""

    kind: RowType

    def get_attribute(self, name: str) -> Any:
        kind = self.kind
        if name in kind.fields:
            return self[kind.fields.index(name)]
        if name == "_fields":
            return kind.fields
        if name == "_asdict":
            return Builtin(name, lambda: dict(zip(kind.fields, self, strict=True)))
        if name == "_replace":
            return Builtin(
                name,
                lambda **new: kind.call([], {**dict(zip(kind.fields, self, strict=True)), **new}),
            )
        if name in ("index", "count"):
            return Builtin(name, getattr(self, name))
        close = suggest(name, list(kind.fields))
        raise fail(
            "E207",
            f"a {kind.name} has no attribute `{name}`",
            help=f"did you mean `.{close[0]}`?" if close else f"it has: {', '.join(kind.fields)}",
        )

    def describe(self) -> str:
        parts = (f"{n}={represent(v)}" for n, v in zip(self.kind.fields, self, strict=True))
        return f"{self.kind.name}({', '.join(parts)})"


class RowType:
    """What `namedtuple(...)` makes."""

    __slots__ = ("defaults", "fields", "name")

    def __init__(self, name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]):
        self.name = name
        self.fields = fields
        self.defaults = dict(zip(fields[len(fields) - len(defaults) :], defaults, strict=True))

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Row:
        given = {**dict(zip(self.fields, args, strict=False)), **kwargs}
        values = {**self.defaults, **given}
        if len(args) > len(self.fields) or set(values) != set(self.fields):
            raise fail(
                "E205",
                f"`{self.name}` takes {', '.join(self.fields)}",
                help=f"write `{self.name}({', '.join(f'{f}=...' for f in self.fields)})`",
            )
        made = Row([values[field] for field in self.fields])
        made.kind = self
        return made

    def has_instance(self, value: Any) -> bool:
        return isinstance(value, Row) and value.kind is self

    def get_attribute(self, name: str) -> Any:
        if name == "_fields":
            return self.fields
        if name == "__name__":
            return self.name
        raise fail("E207", f"`{self.name}` has no attribute `{name}`", help="make a value of it")

    def describe(self) -> str:
        return f"<class '__main__.{self.name}'>"


def _named_tuple(
    typename: Any,
    field_names: Any,
    *,
    rename: Any = False,
    defaults: Any = None,
    module: Any = None,
) -> RowType:
    names = (
        field_names.replace(",", " ").split()
        if isinstance(field_names, str)
        else items_of(field_names)
    )
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise fail(
                "E208",
                f"{represent(name)[:40]} cannot name a field of a named tuple",
                help="write a list of names",
            )
    return RowType(typename, tuple(names), tuple(items_of(defaults or ())))


# -- dataclasses ----------------------------------------------------------------------------------


class Field:
    """`field(default=..., default_factory=...)`."""

    __slots__ = ("default", "factory", "init", "repr")

    def __init__(self, default: Any, factory: Any, init: bool, repr: bool):
        self.default = default
        self.factory = factory
        self.init = init
        self.repr = repr


_MISSING = object()


def _field(
    *, default: Any = _MISSING, default_factory: Any = None, init: Any = True, repr: Any = True,
    **options: Any,
) -> Field:  # fmt: skip
    return Field(default, default_factory, truth(init), truth(repr))


def _fields_of(cls: Any) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for base in reversed(cls.mro):
        for name in base.annotated:
            value = base.names.get(name, _MISSING)
            found[name] = value if isinstance(value, Field) else Field(value, None, True, True)
    return found


def _dataclass(cls: Any = None, **options: Any) -> Any:
    from .classes import UserClass

    if cls is None:
        return Builtin("dataclass", lambda given: _dataclass(given, **options))
    if not isinstance(cls, UserClass):
        raise fail("E208", f"`dataclass` decorates classes, not {kind_of(cls)}", help="@dataclass")
    fields = _fields_of(cls)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        names = [name for name, field in fields.items() if field.init]
        if len(args) > len(names) or any(name not in names for name in kwargs):
            raise fail("E205", f"`{cls.name}` takes {', '.join(names)}", help="give these")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        for name, field in fields.items():
            if name in given:
                value = given[name]
            elif field.factory is not None:
                value = call_value(field.factory, [], {})
            elif field.default is not _MISSING:
                value = field.default
            elif not field.init:
                continue
            else:
                raise fail(
                    "E205", f"`{cls.name}` misses its argument `{name}`", help=f"give {name}=..."
                )
            self.set_attribute(name, value)
        after = self.special("__post_init__")
        if after is not None:
            call_value(after, [], {})

    def describe(self: Any) -> str:
        parts = [f"{n}={represent(self.fields[n])}" for n, f in fields.items() if f.repr]
        return f"{cls.name}({', '.join(parts)})"

    def same(self: Any, other: Any) -> bool:
        from .operations import equal

        return getattr(other, "cls", None) is self.cls and all(
            equal(self.get_attribute(n), other.get_attribute(n)) for n in fields
        )

    methods: dict[str, Callable[..., Any]] = {"__init__": init, "__repr__": describe}
    if truth(options.get("eq", True)):
        methods["__eq__"] = same
    for name, method in methods.items():
        cls.names.setdefault(name, Builtin(name, method))
    for name, field in fields.items():
        if isinstance(cls.names.get(name), Field):
            del cls.names[name]
            if field.default is not _MISSING:
                cls.names[name] = field.default
    return cls


def _as_dict(value: Any) -> dict[str, Any]:
    return {name: _plain(value.get_attribute(name)) for name in _fields_of(value.cls)}


def _plain(value: Any) -> Any:
    cls = getattr(value, "cls", None)
    return _as_dict(value) if cls is not None and _fields_of(cls) else value


def _replaced(value: Any, **changes: Any) -> Any:
    given = {name: value.get_attribute(name) for name in _fields_of(value.cls)}
    return value.cls.call([], {**given, **changes})


COLLECTIONS: dict[str, Any] = {
    "defaultdict": TypeName(
        "collections.defaultdict", lambda v: isinstance(v, DefaultDict), _default_dict
    ),
    "Counter": TypeName("Counter", lambda v: isinstance(v, Counter), _counter),
    "deque": TypeName("deque", lambda v: isinstance(v, Deque), _deque),
    "namedtuple": Builtin("namedtuple", _named_tuple),
}
DATACLASSES: dict[str, Any] = {
    "dataclass": Builtin("dataclass", _dataclass),
    "field": Builtin("field", _field),
    "asdict": Builtin("asdict", _as_dict),
    "replace": Builtin("replace", _replaced),
}
