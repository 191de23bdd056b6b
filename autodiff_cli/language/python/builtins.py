"""The functions a program has without importing anything: `print`, `len`, `range` ..."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, KeysView, ValuesView
from contextlib import suppress
from functools import partial, reduce
from operator import index
from types import MethodType
from typing import Any

import numpy as np

from ...autograd import calls
from ...autograd.tensor import Array, Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64
from ...graph.params import BindError, check_device, to_index, to_scalar, type_name
from ...graph.state import STATE
from ...graph.symbolic_numbers import Later, RecordingAborted, Varying, like, whole
from ..errors.exhaustion import too_many_digits
from ..runtime.assignment import delete_attribute
from ..runtime.attributes import get_attribute, set_attribute
from ..values.dialect import is_numeric_list, kind_of, misfit
from ..values.formatting import formatted, in_ascii, represent, text
from ..values.functions import call_value, guarded
from ..values.housekeeping import count_step
from ..values.iterators import (
    NO_DEFAULT,
    Lazy,
    advance,
    enumerated,
    filtered,
    make_iterator,
    mapped,
    sorted_values,
    zipped,
)
from ..values.numpy_numbers import INTEGERS, NUMPY_NUMBERS, NumpyInteger, computed
from ..values.operations import (
    binary,
    compare,
    count_nested,
    items_of,
    iterate,
    keys_of,
    pairs_of,
    truth,
)
from ..values.providers import from_above
from ..values.user_classes import OBJECT, Object, UserClass, special
from ..values.values import (
    Builtin,
    Device,
    GradFn,
    Instance,
    Namespace,
    OpFunction,
    Size,
    TypeName,
    UserFunction,
    has,
    instances,
)


def _print(
    *values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False
) -> None:
    parts = [text(v) for v in values]
    between, last = " " if sep is None else sep, "\n" if end is None else end
    for given in (between, last):
        if not isinstance(given, str):
            raise misfit("`sep` and `end` must be None or a string, not", given, "write a string")
    if file is not None:
        call_value(get_attribute(file, "write"), [between.join(parts) + last], {})
    elif STATE.recorder is not None:
        STATE.recorder.texts.append(Later(lambda *made: between.join(made) + last, *parts))
    else:
        STATE.write(between.join(parts) + last)


def _int(value: Any) -> int:
    if isinstance(value, Instance):
        return _by_python(index, value)
    try:
        return to_index(value)
    except BindError as error:
        raise fault("E208 int-needed", error=error) from None


def _whole(value: Any) -> int:
    """A whole number of any size."""
    return value if type(value) is int else _int(value)


def _range(*parts: Any) -> range:
    if not 1 <= len(parts) <= 3:
        raise fault("E205 range-takes-arguments-but", len(parts))
    return range(*[_int(p) for p in parts])


def _len(value: Any) -> int:
    if isinstance(value, Tensor):
        if not value.shape:
            raise fault("E208 d-tensor-no-len")
        return value.shape[0]
    if not has(value, "__len__"):
        own = isinstance(value, Instance)
        takes = "len() takes tensors, lists, tuples, dicts and strings"
        help = "define `__len__`" if own else takes
        raise fault("E208 no-length", kind_of(value), help)
    try:
        return len(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise fail("E208", f"{error}", help="return an int of at least 0",
                   raises=type(error).__name__) from None  # fmt: skip


def _tensor_argument(values: tuple[Any, ...]) -> bool:
    """Whether an op is meant: a tensor (in native files also a numeric list) is among them."""
    for value in values:
        if isinstance(value, Tensor):
            return True
        if not STATE.python and isinstance(value, list) and value and is_numeric_list(value):
            return True
    return False


def _sum(*args: Any, **kwargs: Any) -> Any:
    mixed = args and isinstance(args[0], list) and _mixed_shapes(args[0])
    if not STATE.python and _tensor_argument(args[:1]) and not mixed:
        return calls.call("sum", args, kwargs)
    if not args:
        raise fault("E205 misses-argument")
    if len(args) + len(kwargs) > 2:
        raise fault("E205 sum-takes-at-most", len(args) + len(kwargs))
    _check_keywords("sum", kwargs, "start")
    if any(isinstance(start, str) for start in (*args[1:], *kwargs.values())):
        raise fault("E208 sum-can-t-sum")
    return _python_sum(*args, **kwargs)


def _check_keywords(name: str, given: dict[str, Any], *known: str) -> None:
    """E205 for a keyword that Python's function does not have, as `dim` of `sum`."""
    for other in given:
        if other not in known:
            raise fault("E205 invalid-keyword-argument", other, name)


def _mixed_shapes(values: list[Any]) -> bool:
    parts = [value for value in values if not isinstance(value, list)]
    return len({tuple(v.shape) if isinstance(v, Tensor) else () for v in parts}) > 1


def _python_sum(values: Any, start: Any = 0) -> Any:
    return reduce(lambda total, value: binary("+", total, value), iterate(values), start)


def _extreme(name: str, symbol: str) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        key = kwargs.get("key")
        if STATE.python:
            _check_keywords(name, kwargs, "key", "default")
        elif key is None and "default" not in kwargs and _tensor_argument(args):
            along_dim = isinstance(args[0], Tensor) and isinstance(args[-1], int)
            if len(args) == 2 and not along_dim:
                return calls.call("maximum" if name == "max" else "minimum", args, kwargs)
            return calls.call(name, args, kwargs)
        if "default" in kwargs and len(args) > 1:
            raise fault("E208 cannot-specify-default-multiple", name)
        if not args:
            raise fault("E205 expected-at-least-argument", name)
        values = items_of(args[0]) if len(args) == 1 else list(args)
        if not values:
            if "default" in kwargs:
                return kwargs["default"]
            raise fault("E208 nothing", name=name)
        best = values[0]
        rank = best if key is None else call_value(key, [best], {})
        for value in values[1:]:
            count_step()
            other = value if key is None else call_value(key, [value], {})
            if truth(compare(symbol, other, rank)):
                best, rank = value, other
        return best

    return run


def _abs(value: Any) -> Any:
    if isinstance(value, Instance):
        return _by_python(abs, value)
    if type(value) is Array:
        from ..values.arrays import operate

        return operate("abs", value)
    if _tensor_argument((value,)):
        return calls.call("abs", (value,), {})
    return computed(abs, value) if type(value) in NUMPY_NUMBERS else abs(to_scalar(value))


def _pow(base: Any, exponent: Any, mod: Any = None) -> Any:
    if mod is not None:
        return pow(*map(_whole, (base, exponent, mod)))
    return binary("**", base, exponent)


def _round(value: Any, digits: Any = None, **kwargs: Any) -> Any:
    if isinstance(value, Instance):
        return _by_python(round, value, *([] if digits is None else [digits]))
    if _tensor_argument((value,)):
        array = isinstance(value, Array)
        if STATE.python and isinstance(value, Tensor) and not (array and not value.shape):
            kinds = (
                ("an array", "np", "numpy.ndarray") if array else ("a tensor", "torch", "Tensor")
            )
            raise fault("E208 round-takes-numbers", kinds[0], kinds[1], kinds[2])
        if digits is not None:
            kwargs["decimals"] = digits
        return calls.call("round", (value,), kwargs)
    return round(value) if digits is None else round(value, _int(digits))


def _by_python(function: Callable[..., Any], *args: Any) -> Any:
    """A function of Python that asks a value of a class."""
    try:
        return function(*args)
    except (TypeError, ValueError) as error:
        raise fail("E208", str(error), help="define its special method",
                   raises=type(error).__name__) from None  # fmt: skip


def _float(value: Any = 0.0) -> float:
    if isinstance(value, Instance):
        return _by_python(float, value)
    if isinstance(value, str):
        return float(value)
    number = _scalar("float", value)
    return number.real() if type(number) is Varying else float(number)


def _scalar(name: str, value: Any, more: str = "") -> Any:
    if isinstance(value, Tensor):
        try:
            return value.item()
        except AutodiffError as error:
            if value.node.numel == 1:
                raise
            words = "only one element tensors can be converted to Python scalars"
            raise error.amend(notes=(f"PyTorch: {words}",), raises="ValueError") from None
    if isinstance(value, bool | int | float | Varying):
        return value
    raise fault("E208 not-number", kind_of(value), name=name, more=more)


def _to_int(value: Any = 0, base: Any = None) -> int:
    if isinstance(value, Instance) and base is None:
        return _by_python(int, value)
    if isinstance(value, str):
        if len(value) > 4300:
            raise too_many_digits("read")
        return int(value, 10 if base is None else _int(base))
    if base is not None:
        raise TypeError("int() can't convert non-string with explicit base")
    return whole(_scalar("int", value, ", a bytes-like object"))


def _dict(values: Any = (), **kwargs: Any) -> dict[Any, Any]:
    return {**pairs_of(values), **kwargs}


def _reversed(values: Any) -> Any:
    if isinstance(values, Instance | set | frozenset | Lazy):
        found = _by_python(reversed, values)
        return Lazy("reversed", found) if type(found) is reversed else found
    if isinstance(values, Tensor) and type(values) is not Array:
        return calls.call("flip", (values, 0), {}) if values.shape else values
    return Lazy("list_reverseiterator", reversed(items_of(values)))


def _over_all(name: str, function: Callable[..., bool]) -> Callable[..., Any]:
    """`any` or `all`."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if _tensor_argument(args) and not STATE.python:
            return calls.call(name, args, kwargs)
        if len(args) != 1 or kwargs:
            raise TypeError(f"{name}() takes exactly one argument ({len(args)} given)")
        return function(truth(v) for v in iterate(args[0]))

    return run


def _isinstance(value: Any, kinds: Any) -> bool:
    value = like(value)
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if isinstance(kind, TypeName):
            if kind.matches(value):
                return True
        elif isinstance(kind, tuple):
            if _isinstance(value, kind):
                return True
        elif isinstance(kind, UserClass):
            if kind.has_instance(value):
                return True
        else:
            raise fault("E208 isinstance-needs-type-not", kind_of(kind))
    return False


def _getattr(value: Any, name: Any, default: Any = NO_DEFAULT, /) -> Any:
    from ..values.exceptions import is_a

    if not isinstance(name, str):
        raise fail("E208", "getattr() needs a string", help="write `x.name`", raises="TypeError")
    if like(value) is not value:
        raise RecordingAborted
    try:
        return get_attribute(value, name)
    except AutodiffError as error:
        if default is not NO_DEFAULT and is_a(error, "AttributeError"):
            return default
        raise


def _hasattr(value: Any, name: Any) -> bool:
    marker = object()
    return _getattr(value, name, marker) is not marker


def _hash(value: Any) -> int:
    if isinstance(value, tuple):
        count_nested(value)
    try:
        return id(value) if isinstance(value, Tensor) else hash(value)
    except TypeError as error:
        raise fault("E208 no-hash", kind_of(value), error=error) from None


def _vars(value: Any) -> Any:
    if isinstance(value, UserClass):
        return dict(value.names)
    if not isinstance(value, Object):
        raise fail("E208", f"{kind_of(value)} has no attributes of its own", help="use an object")
    return value.fields


def _members(values: Any) -> Any:
    """What a set is made of: another one is read as it is, whatever it says of itself."""
    if isinstance(values, set | frozenset):
        return values
    return iterate(values) if STATE.recorder is None else keys_of(values)


def _dir(value: Any) -> list[str]:
    """The names that the language finds in a value."""
    if isinstance(value, UserClass):
        return sorted(value.flat)
    method = special(value, "__dir__")
    if method is not None:
        return sorted(items_of(call_value(method, [], {})))
    if isinstance(value, Object) and not any(base.fixed for base in value.cls.line[:-1]):
        return sorted({*value.fields, *value.cls.flat})
    raise fault("E203 dir-knows-only-names", kind_of(value))


def _type(value: Any, *parts: Any) -> Any:
    """`type(value)`, or `type(name, bases, names)`, which makes a class."""
    if not parts:
        return type_of(value)
    from ..runtime.class_statements import as_base, make_class

    if len(parts) != 2:
        raise TypeError("type() takes 1 or 3 arguments")
    bases, names = parts
    if not isinstance(value, str) or not value.isidentifier():
        raise fail("E208", "the name of a class is a text of letters", help="type('A', (), {})")
    return make_class(value, [as_base(b, None) for b in bases], dict(names), {}, {})


def _input(prompt: Any = "") -> Any:
    raise fail("E203", "a program here cannot ask for input", help="assign the value in the text")


def _issubclass(cls: Any, kinds: Any) -> bool:
    if not isinstance(cls, UserClass | TypeName):
        words = "issubclass() arg 1 must be a class"
        raise fail("E208", words, help="give a class, not a value", raises="TypeError")
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if cls is kind or kind is OBJECT or (isinstance(cls, UserClass) and kind in cls.line):
            return True
        if isinstance(kind, TypeName) and kind.matches(_example(cls)):
            return True
    return False


def _example(cls: UserClass | TypeName) -> Any:
    """A value of a class, where one can be made of nothing."""
    make: Any = cls.make if isinstance(cls, TypeName) else cls.__new__
    with suppress(AutodiffError, TypeError):
        return make() if isinstance(cls, TypeName) else make(cls)
    return Ellipsis


def _divmod(a: Any, b: Any) -> Any:
    if isinstance(a, Instance) or isinstance(b, Instance):
        return _by_python(divmod, a, b)
    if type(a) is Tensor or type(b) is Tensor:
        raise fault("E208 divmod-takes-numbers", type_name(a), type_name(b))
    return binary("//", a, b), binary("%", a, b)


def type_of(value: Any) -> Any:
    value = like(value)
    if isinstance(value, Instance):
        return type(value)
    own = getattr(type(value), "own_type", None)
    if own is not None:
        return own(value)
    if isinstance(value, Tensor) and value.is_parameter:
        return from_above("torch.names.PARAMETER_TYPE")
    if isinstance(value, GradFn):
        return from_above("torch.grad_functions.function_type")(value.short_name)
    from .collections_module import KINDS

    found = KINDS.get(type(value)) or next((k for k in TYPES.values() if k.matches(value)), None)
    if found is not None:
        return found
    if isinstance(value, UserClass | TypeName):
        return TYPE
    for kind in _OTHER_KINDS:
        if kind.matches(value):
            return kind
    raise fault("E203 type-not-supported", kind_of(value))


def _device(type: Any = "cpu", index: Any = None) -> Device:
    if isinstance(type, Device):
        return type
    kind, colon, at = str(type).partition(":")
    if kind not in ("cpu", "cuda", "mps", "xpu", "meta") or (colon and not at.isdecimal()):
        check_device(f"{type}")
    return Device(kind, int(at) if colon else index)


# Kinds of values whose types are there to be compared and shown.
_OTHER_KINDS = [
    instances(name, kind)
    for name, kind in {
        "NoneType": type(None),
        "function": UserFunction,
        "method": MethodType,
        "builtin_function_or_method": Builtin | OpFunction,
        "module": Namespace,
        "slice": slice,
        "property": property,
        "staticmethod": staticmethod,
        "classmethod": classmethod,
        "ellipsis": type(Ellipsis),
        "functools.partial": partial,
        "dict_keys": KeysView,
        "dict_values": ValuesView,
        "dict_items": ItemsView,
        "generator": Lazy,
    }.items()
]


NUMBER_TYPES: tuple[np.dtype, ...] = (FLOAT64, FLOAT32, FLOAT16, *INTEGERS, BOOL)


def _numpy_type(dtype: np.dtype) -> TypeName:
    """`np.float32`: NumPy's type of numbers, which makes them, and arrays of lists."""

    def make(value: Any = 0) -> Any:
        made = guarded(dtype.name, dtype.type, [from_above("values.arrays.plain")(value)], {})
        return from_above("values.arrays.given_back")(made)

    return TypeName(f"numpy.{dtype.name}", lambda v: _is_numpy_number(v) and v.dtype == dtype, make)


def _numpy_kind(name: str, letters: str) -> TypeName:
    """`np.integer`: the numbers of some kinds of dtypes."""
    return TypeName(
        f"numpy.{name}", lambda v: _is_numpy_number(v) and v.dtype.kind in letters, None
    )


def _is_numpy_number(value: Any) -> bool:
    """Whether a value is a scalar of NumPy's."""
    return type(value) in NUMPY_NUMBERS or (type(value) is Array and value.tag == "number")


TENSOR_TYPE = TypeName("torch.Tensor", lambda v: isinstance(v, Tensor) and v.tag is None, None)
TYPE = instances("type", UserClass | TypeName, _type)
ARRAY_TYPE = TypeName("numpy.ndarray", lambda v: type(v) is Array and v.tag == "array", None)
_FROM_KEYS = Builtin("fromkeys", lambda keys, value=None: dict.fromkeys(keys_of(keys), value))
_MAKE_TABLE = Builtin("maketrans", lambda *args: str.maketrans(*args))
_TYPES = (
    TENSOR_TYPE,
    ARRAY_TYPE,
    instances("bool", bool, lambda value=False: truth(value)),
    *map(_numpy_type, NUMBER_TYPES),
    TypeName("int", lambda v: isinstance(v, int) and not isinstance(v, NumpyInteger), _to_int),
    instances("float", float, _float),
    instances("str", str, lambda value="": text(value), maketrans=_MAKE_TABLE),
    instances("torch.Size", Size, lambda values=(): Size(_int(v) for v in items_of(values))),
    instances("list", list, lambda values=(): list(items_of(values))),
    instances("tuple", tuple, lambda values=(): tuple(items_of(values))),
    instances("dict", dict, _dict, fromkeys=_FROM_KEYS),
    instances("set", set, lambda values=(): set(_members(values))),
    instances("frozenset", frozenset, lambda values=(): frozenset(_members(values))),
    instances("slice", slice, lambda *parts: slice(*parts)),
    instances("range", range, _range),
    instances("torch.dtype", np.dtype),
    instances("torch.device", Device, _device),
    _numpy_kind("integer", "iu"),
    _numpy_kind("floating", "f"),
    _numpy_kind("number", "iuf"),
    _numpy_kind("generic", "iufb"),
)
TYPES: dict[str, TypeName] = {kind.name.removeprefix("torch."): kind for kind in _TYPES}
_BARE_TYPES = "bool int float str list tuple dict set frozenset slice range"

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "print": _print,
    "len": _len,
    "sum": _sum,
    "max": _extreme("max", ">"),
    "min": _extreme("min", "<"),
    "abs": _abs,
    "pow": _pow,
    "round": _round,
    "zip": zipped,
    "enumerate": enumerated,
    "reversed": _reversed,
    "sorted": sorted_values,
    "any": _over_all("any", any),
    "all": _over_all("all", all),
    "isinstance": _isinstance,
    "map": mapped,
    "filter": filtered,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": set_attribute,
    "delattr": lambda value, name: delete_attribute(value, name),
    "id": id,
    "hash": _hash,
    "vars": _vars,
    "input": _input,
    "bin": lambda n: bin(_whole(n)),
    "hex": lambda n: hex(_whole(n)),
    "oct": lambda n: oct(_whole(n)),
    "issubclass": _issubclass,
    "repr": represent,
    "format": lambda value, spec="": formatted(value, spec),
    "iter": make_iterator,
    "next": advance,
    "divmod": _divmod,
    "callable": callable,
    "dir": _dir,
    "chr": lambda n: chr(_int(n)),
    "ord": lambda s: ord(s),
    "ascii": in_ascii,
}

BUILTINS: dict[str, Any] = {
    **{name: TYPES[name] for name in _BARE_TYPES.split()},
    **{name: Builtin(name, function) for name, function in FUNCTIONS.items()},
    **{k.__name__: instances(k.__name__, k, k) for k in (staticmethod, classmethod, property)},
    "object": OBJECT,
    "type": TYPE,
    "NotImplemented": NotImplemented,
    "Ellipsis": Ellipsis,
}
