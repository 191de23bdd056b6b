"""`nn.Sequential`, `ModuleList`, `ModuleDict`, `ParameterList` and `ParameterDict`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import fail, fault
from ...graph.params import BindError, to_index
from ..runtime.attributes import METHODS
from ..runtime.names import names_of
from ..values.dialect import kind_of
from ..values.factories import parameter
from ..values.formatting import represent
from ..values.functions import call_value
from ..values.operations import items_of
from ..values.subscripts import out_of_range, plain_key
from ..values.user_classes import UserClass, library_class
from ..values.values import Namespace
from .module_methods import MODULE, add_module, check_name
from .modules import Module, laid_out

Table = dict[str, Any]


def _position(owner: Module, key: Any, count: int) -> int:
    try:
        at = to_index(key)
    except BindError as error:
        raise fault("E305 index-of-module", error=error) from None
    if not -count <= at < count:
        raise out_of_range(at, f"a {owner.cls.name}", count)
    return at % count


def _checked(module: Any, owner: Module) -> Module | None:
    if module is not None and not isinstance(module, Module):
        name = getattr(module, "name", "").replace("_", "")  # of a function, as `relu`
        alike = next((n for n in names_of(Namespace("nn")) if n.lower() == name), None)
        made = f"{alike}()" if alike else "Linear(2, 2)"
        raise fault("E208 holds-modules", kind_of(module), owner=owner, made=made)
    return module


def _modules_of(other: Any) -> list[Any]:
    """What a Sequential is joined with: the modules of another."""
    if not isinstance(other, Module) or SEQUENTIAL not in other.cls.line:
        raise fault("E208 joined-with-sequential", kind_of(other))
    return list(other.modules.values())


def _renumber(table: Table, values: Iterable[Any]) -> None:
    found = list(values)
    table.clear()
    table.update({str(i): value for i, value in enumerate(found)})


def _another(owner: Module) -> Any:
    """An empty container of the same class."""
    made: Any = owner.cls.__new__(owner.cls)
    made.ready = True
    return made


class Contents:
    """What a container holds: the attribute of it that they are in, and what they have to be."""

    def __init__(self, what: str, check: Callable[[Any, Module], Any]) -> None:
        self.what = what
        self.table: Callable[[Module], Table] = attrgetter(f"{what}s")
        self.check = check


class Items(Contents):
    """The list methods of a container that numbers its items."""

    def get(self, owner: Module, key: Any) -> Any:
        table = self.table(owner)
        values = list(table.values())
        if isinstance(key, slice):
            part = plain_key(key)
            made = _another(owner)
            if owner.cls.flat.get("forward") is not MODULE.names["forward"]:
                self.table(made).update(list(table.items())[part])
            else:
                _renumber(self.table(made), values[part])
            return made
        return values[_position(owner, key, len(values))]

    def set(self, owner: Module, key: Any, value: Any) -> None:
        table = self.table(owner)
        name = list(table)[_position(owner, key, len(table))]
        table[name] = self.check(value, owner)

    def append(self, owner: Module, value: Any) -> Module:
        table = self.table(owner)
        table[str(len(table))] = self.check(value, owner)
        return owner

    def extend(self, owner: Module, values: Any) -> Module:
        for value in list(items_of(values)):
            self.append(owner, value)
        return owner

    def insert(self, owner: Module, index: Any, value: Any) -> Module | None:
        table = self.table(owner)
        values = list(table.values())
        at = to_index(index)
        value = self.check(value, owner)
        sequential = SEQUENTIAL in owner.cls.line
        if sequential and not -len(values) <= at <= len(values):
            raise fault("E305 insert-out-of-range", at, len(values))
        values.insert(at, value)
        _renumber(table, values)
        return owner if sequential else None

    def pop(self, owner: Module, key: Any) -> Any:
        value = self.get(owner, key)
        self.delete(owner, key)
        return value

    def delete(self, owner: Module, key: Any) -> None:
        table = self.table(owner)
        values = list(table.values())
        if isinstance(key, slice):
            del values[plain_key(key)]
        else:
            del values[_position(owner, key, len(values))]
        _renumber(table, values)

    def joined(self, owner: Module, others: Any) -> Module:
        made = _another(owner)
        _renumber(self.table(made), self.table(owner).values())
        return self.extend(made, others)

    def methods(self) -> dict[str, Callable[..., Any]]:
        table = self.table
        return {
            "__len__": lambda owner: len(table(owner)),
            "__iter__": lambda owner: iter(list(table(owner).values())),
            "__getitem__": self.get,
            "__setitem__": self.set,
            "__iadd__": self.extend,
            "append": self.append,
            "extend": self.extend,
        }

    def methods_of_modules(self) -> dict[str, Callable[..., Any]]:
        """A ParameterList has no others."""
        return {
            **self.methods(),
            "__delitem__": self.delete,
            "__add__": self.joined,
            "insert": self.insert,
            "pop": self.pop,
        }


class Entries(Contents):
    """The dict methods of a container that names its items."""

    def get(self, owner: Module, key: Any, deletes: bool = False) -> Any:
        table = self.table(owner)
        if key not in table:
            shown, known = represent(key)[:60], ", ".join(table)
            raise fault("E210 owner-no-key", shown, known, owner=owner, deletes=deletes)
        return table[key]

    def set(self, owner: Module, key: Any, value: Any) -> None:
        self.table(owner)[check_name(owner, key, self.what)] = self.check(value, owner)

    def update(self, owner: Module, values: Any) -> None:
        if isinstance(values, Module) and "items" in values.cls.flat:
            pairs: Any = self.table(values).items()
        elif isinstance(values, dict):
            pairs = values.items()
        else:
            pairs = [items_of(pair) for pair in items_of(values)]
        for key, value in list(pairs):
            self.set(owner, key, value)

    def pop(self, owner: Module, key: Any) -> Any:
        value = self.get(owner, key)
        self.delete(owner, key)
        return value

    def delete(self, owner: Module, key: Any) -> None:
        self.get(owner, key, deletes=True)
        del self.table(owner)[key]

    def methods(self) -> dict[str, Callable[..., Any]]:
        table = self.table
        return {
            "__len__": lambda owner: len(table(owner)),
            "__iter__": lambda owner: iter(list(table(owner))),
            "__contains__": lambda owner, key: key in table(owner),
            "__getitem__": self.get,
            "__setitem__": self.set,
            "__delitem__": self.delete,
            "keys": lambda owner: table(owner).keys(),
            "values": lambda owner: table(owner).values(),
            "items": lambda owner: table(owner).items(),
            "update": self.update,
            "pop": self.pop,
            "clear": lambda owner: table(owner).clear(),
        }


def _class(name: str, methods: dict[str, Callable[..., Any]]) -> UserClass:
    return library_class(name, [MODULE], methods)


_ITEMS = Items("module", _checked)
_ENTRIES = Entries("module", _checked)

# -- Sequential -----------------------------------------------------------------------------------


def _sequential_init(self: Module, *args: Any) -> None:
    self.ready = True
    if len(args) == 1 and isinstance(args[0], OrderedDict):
        for name, module in args[0].items():
            add_module(self, name, _checked(module, self))
    else:
        for i, module in enumerate(args):
            self.modules[str(i)] = _checked(module, self)


def _sequential_forward(self: Module, input: Any) -> Any:
    for module in list(self.modules.values()):
        input = call_value(module, [input], {})
    return input


def _sequential_add(self: Module, other: Any) -> Module:
    made = _another(self)
    _renumber(made.modules, [*self.modules.values(), *_modules_of(other)])
    return made


def _sequential_extend(self: Module, other: Any) -> Module:
    return _ITEMS.extend(self, _modules_of(other))


def _sequential_times(self: Module, times: Any) -> Module:
    count = to_index(times)
    if count < 1:
        raise fault("E205 sequential-repeated-once-more", count=count)
    made = _another(self)
    _renumber(made.modules, [m for _ in range(count) for m in self.modules.values()])
    return made


def _sequential_repeat(self: Module, times: Any) -> Module:
    _renumber(self.modules, _sequential_times(self, times).modules.values())
    return self


SEQUENTIAL = _class(
    "Sequential",
    {
        "__init__": _sequential_init,
        "forward": _sequential_forward,
        **_ITEMS.methods_of_modules(),
        "__add__": _sequential_add,
        "__iadd__": _sequential_extend,
        "__mul__": _sequential_times,
        "__rmul__": _sequential_times,
        "__imul__": _sequential_repeat,
    },
)

# -- ModuleList and ModuleDict --------------------------------------------------------------------


def _list_init(self: Module, modules: Any = None) -> None:
    self.ready = True
    if modules is not None:
        _ITEMS.extend(self, modules)


def _list_repr(self: Module) -> str:
    """Equal neighbours are written once, with how many they are."""
    lines = []
    first = 0
    for text, group in groupby(represent(module) for module in self.modules.values()):
        count = len(list(group))
        body = text.replace("\n", "\n  ")
        last = first + count - 1
        shown = f"({first}): {body}" if count == 1 else f"({first}-{last}): {count} x {body}"
        lines.append(shown)
        first += count
    return laid_out(self.cls.name, "", lines)


MODULE_LIST = _class(
    "ModuleList", {"__init__": _list_init, "__repr__": _list_repr, **_ITEMS.methods_of_modules()}
)


def _dict_init(self: Module, modules: Any = None) -> None:
    self.ready = True
    if modules is not None:
        _ENTRIES.update(self, modules)


MODULE_DICT = _class("ModuleDict", {"__init__": _dict_init, **_ENTRIES.methods()})

# -- ParameterList and ParameterDict --------------------------------------------------------------


def _as_parameter(value: Any, owner: Module) -> Tensor | None:
    if isinstance(value, Tensor):
        return value if value.is_parameter else parameter(value)
    if value is not None:
        raise fault("E208 holds-parameters", kind_of(value), owner=owner)
    return None


_PARAMETER_ITEMS = Items("parameter", _as_parameter)
_PARAMETER_ENTRIES = Entries("parameter", _as_parameter)


def _parameter_lines(kind: Callable[[Tensor], str]) -> Callable[[Module], str]:
    def extra_repr(self: Module) -> str:
        lines = []
        for name, tensor in self.parameters.items():
            held = "Object of type: NoneType"
            if tensor is not None:
                size = "x".join(map(str, tensor.shape))
                held = f"Parameter containing: [{kind(tensor)} of size {size}]"
            lines.append(f"  ({name}): {held}")
        return "\n".join(lines)

    return extra_repr


def _parameter_list_extend(self: Module, values: Any) -> Module:
    if isinstance(values, Tensor):
        raise fail("E208", "a ParameterList is made of a list of tensors", help="write `[...]`")
    return _PARAMETER_ITEMS.extend(self, values)


def _parameter_list_init(self: Module, values: Any = None) -> None:
    self.ready = True
    if values is not None:
        _parameter_list_extend(self, values)


def _parameter_dict_update(self: Module, parameters: Any) -> None:
    """As PyTorch, a plain dict is taken in the order of its keys."""
    if type(parameters) is dict:
        parameters = dict(sorted(parameters.items()))
    _PARAMETER_ENTRIES.update(self, parameters)


def _parameter_dict_init(self: Module, parameters: Any = None) -> None:
    self.ready = True
    if parameters is not None:
        _parameter_dict_update(self, parameters)


def _parameter_dict_of(self: Module, entries: Table) -> Module:
    made = _another(self)
    for key, value in entries.items():
        made.parameters[key] = _as_parameter(value, self)
    return made


def _parameter_dict_default(self: Module, key: Any, default: Any = None) -> Any:
    if key not in self.parameters:
        self.parameters[key] = _as_parameter(default, self)
    return self.parameters[key]


def _parameter_dict_join(self: Module, other: Any) -> Module:
    _parameter_dict_update(self, other)
    return self


PARAMETER_LIST = _class(
    "ParameterList",
    {
        "__init__": _parameter_list_init,
        "extra_repr": _parameter_lines(lambda tensor: f"torch.{tensor.dtype.name}"),
        **_PARAMETER_ITEMS.methods(),
        "extend": _parameter_list_extend,
        "__iadd__": _parameter_list_extend,
    },
)
PARAMETER_DICT = _class(
    "ParameterDict",
    {
        "__init__": _parameter_dict_init,
        "extra_repr": _parameter_lines(lambda tensor: METHODS["type"](tensor)),
        **_PARAMETER_ENTRIES.methods(),
        "update": _parameter_dict_update,
        "copy": lambda self: _parameter_dict_of(self, self.parameters),
        "fromkeys": lambda self, keys, default=None: _parameter_dict_of(
            self, dict.fromkeys(items_of(keys), default)
        ),
        "setdefault": _parameter_dict_default,
        "popitem": lambda self: self.parameters.popitem(),
        "__or__": lambda self, other: _parameter_dict_join(
            _parameter_dict_of(self, self.parameters), other
        ),
        "__ror__": lambda self, other: {**other, **self.parameters},
        "__ior__": _parameter_dict_join,
        "__reversed__": lambda self: list(reversed(self.parameters)),
        "get": lambda self, key, default=None: self.parameters.get(key, default),
    },
)

CLASSES: dict[str, UserClass] = {
    cls.name: cls for cls in (SEQUENTIAL, MODULE_LIST, MODULE_DICT, PARAMETER_LIST, PARAMETER_DICT)
}
