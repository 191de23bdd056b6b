"""The containers of Python's `collections` as programs have them, and named tuples."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from keyword import iskeyword
from typing import Any

from ...errors import fail, fault
from ..syntax.tree import Param
from ..values.builtin_bases import extended
from ..values.formatting import represent
from ..values.functions import Parameters
from ..values.operations import items_of, pairs_of, truth
from ..values.subscripts import slice_part
from ..values.user_classes import UserClass
from ..values.values import Builtin, Method, Scope, TypeName, UserFunction, instances

_NOWHERE: Any = None  # a place in no text


def counts_of(values: Any) -> Any:
    """What a Counter is made of, or takes in."""
    if values is None:
        return ()
    return values if isinstance(values, dict) else items_of(values)


# -- named tuples ---------------------------------------------------------------------------------


def signature(name: str, params: list[Param], body: Any, defaults: list[Any], **others: Any) -> Any:
    """A function of the program's kind whose body is written in Python: `body(names)`."""
    return UserFunction(
        name.rpartition(".")[2],
        Parameters(params, None, name),
        lambda scope: body(scope.names),
        Scope(),
        _NOWHERE,
        defaults,
        others,
    )


def _named_tuple(
    typename: Any,
    field_names: Any,
    *,
    rename: Any = False,
    defaults: Any = None,
    module: Any = None,
) -> UserClass:
    names = (
        field_names.replace(",", " ").split()
        if isinstance(field_names, str)
        else [str(name) for name in items_of(field_names)]
    )
    if truth(rename):
        seen: set[str] = set()
        for i, name in enumerate(names):
            if not _is_field(name) or name in seen:
                names[i] = f"_{i}"
            seen.add(name)
    else:
        for name in [typename, *names]:
            if not _is_field(name, name is typename):
                raise fault("E208 cannot-name-field-named", represent(name)[:40])
    if len(set(names)) < len(names):
        raise fault("E208 encountered-duplicate-field-name")
    return named_tuple(typename, names, items_of(defaults or ()), {})


def _is_field(name: Any, hidden: bool = False) -> bool:
    fits = isinstance(name, str) and name.isidentifier() and not iskeyword(name)
    return fits and (hidden or not name.startswith("_"))


def named_tuple(
    typename: str, names: list[str], defaults: list[Any], methods: dict[str, Any]
) -> UserClass:
    """A class of tuples whose items have names."""
    if len(defaults) > len(names):
        raise fail("E208", "Got more default values than field names", help="one for each name")
    base: Any = extended(TUPLE)

    def make(given: dict[str, Any]) -> Any:
        cls = given["_cls"]
        if not (isinstance(cls, UserClass) and issubclass(cls, base)):
            raise fault("E208 new-x-x-not", typename=typename)
        return base.__new__(cls, [given[name] for name in names])

    def as_dict(self: Any) -> dict[str, Any]:
        return dict(zip(names, tuple.__iter__(self), strict=True))

    def made(cls: Any, values: Any) -> Any:
        items = items_of(values)
        if len(items) != len(names):
            raise fault("E208 named-tuple-expected", len(names), len(items))
        return cls(*items)

    def replaced(self: Any, **new: Any) -> Any:
        unknown = [name for name in new if name not in names]
        if unknown:
            raise fault("E208 got-unexpected-field-names", unknown=unknown)
        return self.cls(**{**as_dict(self), **new})

    def describe(self: Any) -> str:
        inside = ", ".join(f"{n}={represent(v)}" for n, v in as_dict(self).items())
        return f"{self.cls.name}({inside})"

    params = [Param(n, None, "normal", None, _NOWHERE) for n in ("_cls", *names)]
    members = {
        "__slots__": (),
        "__new__": signature(f"{typename}.__new__", params, make, defaults),
        "__repr__": Method("__repr__", describe),
        "__match_args__": tuple(names),
        "_fields": tuple(names),
        "_field_defaults": dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)),
        "_asdict": Method("_asdict", as_dict),
        "_replace": Method("_replace", replaced),
        "_make": classmethod(Builtin("_make", made)),
        **{name: property(_item(name, i)) for i, name in enumerate(names)},
    }
    return UserClass(typename, [base], {**members, **methods})


def _item(name: str, i: int) -> Builtin:
    return Builtin(name, lambda self: tuple.__getitem__(self, i))


def row_type(cls: UserClass) -> UserClass:
    """What a class below `typing.NamedTuple` means."""
    names = list(cls.annotated)
    defaults = [cls.names.pop(name) for name in names if name in cls.names]
    return named_tuple(cls.name, names, defaults, cls.names)


TUPLE = instances("tuple", tuple, lambda values=(): tuple(items_of(values)))


def _default_dict(default_factory: Any = None, values: Any = (), **kwargs: Any) -> Any:
    return defaultdict(default_factory, pairs_of(values), **kwargs)


KINDS: dict[type, TypeName] = {
    kind: instances(f"collections.{kind.__name__}", kind, make)
    for kind, make in (
        (defaultdict, _default_dict),
        (Counter, lambda values=(), **kwargs: Counter(counts_of(values), **kwargs)),
        (deque, lambda values=(), maxlen=None: deque(items_of(values), slice_part(maxlen))),
        (OrderedDict, lambda values=(), **kwargs: OrderedDict(pairs_of(values), **kwargs)),
    )
}
COLLECTIONS: dict[str, Any] = {
    **{kind.__name__: made for kind, made in KINDS.items()},
    "namedtuple": Builtin("namedtuple", _named_tuple),
}
