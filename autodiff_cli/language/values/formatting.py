"""How values become text: what `print`, `str`, `repr`, f-strings and `%` give.

Everything is bounded: a width, a precision or a nested value that would make enormous text is E505.
"""

from __future__ import annotations

import builtins
import itertools
import re
from _string import formatter_field_name_split  # type: ignore[import-not-found]  # no stubs
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from string import Formatter
from textwrap import indent
from types import MethodType
from typing import Any

import numpy as np

from ...autograd.calls import Results
from ...autograd.printing import format_tensor
from ...autograd.tensor import Tensor
from ...autograd.transform_levels import wrapped
from ...errors import fault
from ...graph.op import value_of
from ...graph.params import type_name
from ...graph.state import STATE
from ...graph.symbolic_numbers import Later, RecordingAborted, Unread, Varying, later
from ..errors.exhaustion import too_many_digits
from .housekeeping import count_step
from .numpy_numbers import NUMPY_NUMBERS
from .providers import from_above
from .values import (
    Builtin,
    GradFn,
    GradMode,
    Instance,
    Namespace,
    OpFunction,
    Size,
    TypeName,
    UserFunction,
)

MAX_TEXT = 10_000_000
MAX_WIDTH = 100_000


def too_long() -> Exception:
    return fault("E505 text-would-longer-characters", MAX_TEXT)


def text(value: Any) -> Any:
    """`str(value)`."""
    if type(value) is str or type(value) is Later:
        return value
    own = getattr(type(value), "describe_text", None)
    if own is not None:
        return own(value)
    if isinstance(value, Tensor) and value.tag:
        return array_text(value, str)
    if type(value) in NUMPY_NUMBERS:
        return str(value)
    return represent(value)


def represent(value: Any) -> Any:
    """`repr(value)`, for every kind of value a program can hold."""
    if type(value) is Varying:
        STATE.steps += 1
        return Later(represent, value)
    pieces = _Pieces()
    pieces.write(value)
    return "".join(pieces.parts)


def in_ascii(value: Any) -> Any:
    """`ascii(value)`."""
    shown = represent(value)
    return Later(_escaped, shown) if type(shown) is Later else _escaped(shown)


def _escaped(shown: str) -> str:
    return shown.encode("ascii", "backslashreplace").decode()


# Containers whose text begins with the name of their kind.
_DICTS = (dict[Any, Any](), OrderedDict[Any, Any]())
_VIEWS = [type(view) for d in _DICTS for view in (d.keys(), d.values(), d.items())]
_NAMED = frozenset([Counter, OrderedDict, defaultdict, deque, *_VIEWS])
# Of all containers, what stands for them inside themselves.
_CONTAINERS = dict.fromkeys([set, frozenset, *_NAMED], "...") | {
    list: "[...]",
    tuple: "(...)",
    dict: "{...}",
    deque: "[...]",
}


class _Pieces:
    """The text of a value, piece by piece, within bounds; what holds itself is dots there."""

    __slots__ = ("inside", "parts", "size")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.inside: list[Any] = []
        self.size = 0

    def add(self, piece: str) -> None:
        self.size += len(piece) + 1
        if self.size > MAX_TEXT:
            raise too_long()
        if STATE.runs:
            count_step()
        self.parts.append(piece)

    def write(self, value: Any) -> None:
        kind = type(value)
        if kind not in _CONTAINERS and not isinstance(value, Results):
            self.add(_atom(value))
            return
        if any(value is outer for outer in self.inside):
            self.add(_CONTAINERS.get(kind, "..."))
            return
        if len(self.inside) > 100:
            raise fault("E505 value-nested-more-levels")
        self.inside.append(value)
        if kind is list:
            self.sequence("[", value, "]")
        elif kind is tuple:
            self.sequence("(", value, ",)" if len(value) == 1 else ")")
        elif kind is set:
            self.sequence("{" if value else "set(", value, "}" if value else ")")
        elif kind is frozenset:
            opening, closing = ("frozenset({", "})") if value else ("frozenset(", ")")
            self.sequence(opening, value, closing)
        elif kind is dict:
            self.pairs(value.items())
        elif kind in _NAMED:
            self.named(value)
        elif value.name[0].isupper():  # a named tuple of Python's
            self.fields(f"{value.name}(", value, ", ")
        else:
            self.fields(f"torch.return_types.{value.name}(\n", value, ",\n")
        self.inside.pop()

    def sequence(self, opening: str, values: Any, closing: str) -> None:
        self.add(opening)
        for i, item in enumerate(values):
            if i:
                self.add(", ")
            self.write(item)
        self.add(closing)

    def pairs(self, items: Any) -> None:
        self.add("{")
        for i, (key, item) in enumerate(items):
            if i:
                self.add(", ")
            self.write(key)
            self.add(": ")
            self.write(item)
        self.add("}")

    def fields(self, opening: str, value: Results, between: str) -> None:
        self.add(opening)
        for i, (name, item) in enumerate(zip(value.fields, value, strict=True)):
            self.add(f"{between if i else ''}{name}=")
            self.write(item)
        self.add(")")

    def named(self, value: Any) -> None:
        kind = type(value)
        self.add(f"{kind.__name__}(")
        if kind is Counter:
            if value:
                self.pairs(value.most_common())
        elif kind is defaultdict:
            self.write(value.default_factory)
            self.add(", ")
            self.pairs(value.items())
        elif kind is not OrderedDict:
            self.sequence("[", value, "]")
            if getattr(value, "maxlen", None) is not None:
                self.add(f", maxlen={value.maxlen}")
        elif value:
            self.sequence("[", value.items(), "]")
        self.add(")")


def _atom(value: Any) -> str:
    if type(value) is Varying or isinstance(value, Unread):
        raise RecordingAborted
    if isinstance(value, Tensor):
        STATE.steps += 10
        return tensor_text(value)
    if isinstance(value, Instance):
        return type(value).describe(value)  # type: ignore[attr-defined]  # of every class
    if value is None or isinstance(value, bool | float | str):
        return repr(value)
    if isinstance(value, int):
        try:
            return repr(value)
        except ValueError:
            raise too_many_digits("printed") from None
    if isinstance(value, Size):
        return f"torch.Size([{', '.join(map(str, value))}])"
    if isinstance(value, np.dtype):
        return f"torch.{value.name}"
    if isinstance(value, range | slice):
        return repr(value)
    if isinstance(value, UserFunction | Builtin | OpFunction):
        return _function(value)
    if isinstance(value, TypeName):
        return f"<class '{value.name}'>"
    if isinstance(value, GradFn):
        return f"<{value.described if STATE.python else value.short_name}>"
    if isinstance(value, Namespace):
        return f"<namespace {value.path or 'torch'}>"
    if isinstance(value, GradMode):
        return f"<{value.name}>"
    if value is Ellipsis or value is NotImplemented:
        return repr(value)
    if isinstance(value, MethodType):
        name = qualified(value.__func__)
        line = getattr(value.__self__, "line", ()) if "." not in name else ()  # not of `def`
        owner = next((f"{c.name}." for c in line if name in c.names), "")
        return f"<bound method {owner}{name} of {represent(value.__self__)}>"
    if isinstance(value, partial):
        named = [f"{key}={represent(item)}" for key, item in value.keywords.items()]
        inside = ", ".join([*map(represent, (value.func, *value.args)), *named])
        return f"functools.partial({inside})"
    describe = getattr(type(value), "describe", None)
    return describe(value) if describe else f"<{type(value).__name__}>"


def qualified(function: Any) -> str:
    """The name of a function with those of what it stands in: `Model.step.<locals>.inner`."""
    if isinstance(function, UserFunction):
        kept = function.fields or {}
        return kept.get("__qualname__") or function.params.called or function.name
    return getattr(function, "name", "method")


def _function(value: UserFunction | Builtin | OpFunction) -> str:
    name = qualified(value)
    if not STATE.python:
        return f"<function {name}>"
    if isinstance(value, UserFunction):
        return f"<function {name} at {id(value):#x}>"
    if isinstance(value, OpFunction):
        return f"<built-in method {name} of type object at {id(value):#x}>"
    return repr(getattr(builtins, name, None) or f"<built-in function {name}>").strip("'")


def array_text(array: Tensor, words: Callable[[Any], str]) -> str:
    """What `print(array)` and, in containers, its `repr` give in NumPy."""
    with np.printoptions(**STATE.array_options):
        values = value_of(array.node)
        return words(values[()] if array.tag == "number" else values)


def tensor_text(tensor: Tensor) -> str:
    """What `print(tensor)` gives in PyTorch."""
    if STATE.levels:
        wrappers, inner = wrapped(tensor)
        shown = _tensor_text(inner)
        for wrapper in reversed(wrappers):
            shown = f"{wrapper}\n{indent(shown, '    ')}\n)"
        return shown
    return _tensor_text(tensor)


def _tensor_text(tensor: Tensor) -> str:
    node = tensor.looked_at
    if tensor.tag:
        return array_text(tensor, repr)
    if hasattr(tensor, "describe"):
        return str(tensor.describe())
    array = value_of(node)
    name = tensor.grad_name
    tangent = None
    if STATE.dual and not STATE.levels:
        moves = from_above("torch.duals.tangent_of")(tensor)
        tangent = None if moves is None else formatted(moves, "")
    options = {} if STATE.print_options is None else {"options": STATE.print_options}
    return format_tensor(
        array,
        requires_grad=node.requires_grad,
        grad_fn=name,
        default_dtype=STATE.default_dtype,
        is_parameter=tensor.is_parameter,
        tangent=tangent,
        **options,
    )


_DIGITS = re.compile(r"\d+")


def check_spec(spec: str) -> None:
    """E505 for a width or precision that would make enormous text."""
    for digits in _DIGITS.findall(spec):
        if float(digits) > MAX_WIDTH:
            raise fault("E505 format-asks-more-characters", spec[:40], MAX_WIDTH)


def formatted(value: Any, spec: str) -> Any:
    """`format(value, spec)`; a one-element tensor formats as its number, as in PyTorch."""
    if not spec and not isinstance(value, Instance):
        if isinstance(value, Tensor) and not value.shape:
            return text(value.item())
        return text(value)
    check_spec(spec)
    if isinstance(value, Instance):
        return type(value).formatted(value, spec)  # type: ignore[attr-defined]  # of every class
    if type(value) is Varying:
        return Later(formatted, value, spec)
    if isinstance(value, Tensor):
        if value.shape:
            raise fault("E208 tensor-shape-cannot-formatted", tuple(value.shape), spec=spec)
        return formatted(value.item(), spec)
    if not isinstance(value, bool | int | float | str | np.generic):
        words = f"unsupported format string passed to {type_name(value)}.__format__"
        raise fault("E208 does-not-fit-value", spec, text(value)[:40], words)
    try:
        return format(value, spec)
    except (ValueError, OverflowError) as error:
        words, kind = str(error).lower(), type(error).__name__
        raise fault("E208 does-not-fit", text(value)[:40], words, spec=spec, kind=kind) from None


_PERCENT = re.compile(r"%(?:\((\w+)\))?([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?([a-zA-Z%])")


def percent(template: str, values: Any) -> Any:
    """`template % values`."""
    several = type(values) is tuple
    if several and (made := later(lambda *v: percent(template, v), values)) is not None:
        return made
    if type(values) is Varying:
        return Later(percent, template, values)
    sizes = [part or "" for m in _PERCENT.finditer(template) for part in m.group(3, 4)]
    for size in sizes:
        if size != "*":
            check_spec(size)
    if isinstance(values, dict):
        plain: Any = {k: _plain(v) for k, v in values.items()}
    elif several:
        plain = tuple(_plain(v) for v in values)
        if "*" in sizes and any(isinstance(v, int) and abs(v) > MAX_WIDTH for v in plain):
            raise too_long()
    else:
        plain = (_plain(values),)
    try:
        return template % plain
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        kind = type(error).__name__
        raise fault("E208 values-do-not-fit", error=error, kind=kind) from None


class _Shown:
    """A value that `%r` and `%s` show as the language does; errors name it by its own class."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __str__(self) -> str:
        return text(self.value)

    def __repr__(self) -> str:
        return represent(self.value)


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor) and value.node.numel == 1:
        return _Number(value, value.item())
    if isinstance(value, bool | int | float | str) and not isinstance(value, Instance):
        return value
    return (
        _Number(value, value) if isinstance(value, int | float) else _shown(type_name(value))(value)
    )


@cache
def _shown(name: str) -> type[_Shown]:
    return type(name, (_Shown,), {})


class _Number(_Shown):
    """A value that is a number for `%d` and `%f`."""

    __slots__ = ("number",)

    def __init__(self, value: Any, number: float):
        super().__init__(value)
        self.number = number

    def __int__(self) -> int:
        return int(self.number)

    def __float__(self) -> float:
        return float(self.number)


class _Fields(Formatter):
    """Fields of `template.format(...)`, as Python reads them; what they name is the language's."""

    def __init__(self) -> None:
        self.count = itertools.count()
        self.ways: list[str] = []  # how fields are numbered

    def parse(self, format_string: str) -> Any:
        for text, name, spec, conversion in super().parse(format_string):
            if name is not None and name[:1] in ("", ".", "["):
                self._numbered("automatic field numbering")
                name = f"{next(self.count)}{name}"
            elif name is not None and name[0].isdigit():
                self._numbered("manual field specification")
            yield text, name, spec, conversion

    def _numbered(self, way: str) -> None:
        self.ways.append(way)
        if way != self.ways[0]:
            raise ValueError(f"cannot switch from {self.ways[0]} to {way}")

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if isinstance(key, int) and key >= len(args):
            raise fault("E210 format-string-needs-argument", len(args), name=key)
        if isinstance(key, str) and key not in kwargs and not hasattr(kwargs, "__missing__"):
            raise fault("E210 format-string-names", name=key)
        return args[key] if isinstance(key, int) else kwargs[key]

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        first, rest = formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, name in rest:
            path = "runtime.attributes.get_attribute" if is_attribute else "values.subscripts.index"
            value = from_above(path)(value, name)
        return value, first

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return converted(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> Any:
        return formatted(value, format_spec)


def converted(value: Any, conversion: str | None) -> Any:
    """What `!r`, `!s` or `!a` in a field makes of a value."""
    if conversion is None:
        return value
    if conversion not in _CONVERSIONS:
        raise ValueError(f"Unknown conversion specifier {conversion}")
    return _CONVERSIONS[conversion](value)


_CONVERSIONS = {"r": represent, "s": text, "a": in_ascii}


def str_format(template: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`template.format(...)`."""
    count, names = len(args), list(kwargs)
    given = (*args, *kwargs.values())
    made = later(
        lambda *v: str_format(template, v[:count], dict(zip(names, v[count:], strict=True))), given
    )
    if made is not None:
        return made
    try:
        return _Fields().vformat(template, args, kwargs)
    except ValueError as error:
        raise fault("E208 format-string-field-not", template[:60], error) from None
