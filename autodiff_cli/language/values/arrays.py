"""NumPy arrays of programs: tensors under another name, with NumPy's attributes and methods.

An array is never differentiated; what is made of arrays and numbers alone is an array again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from operator import attrgetter, setitem
from typing import Any

import numpy as np

from ...autograd import calls
from ...autograd.handles import wrap_view
from ...autograd.indexing import write_index
from ...autograd.tensor import Array, Tensor, as_array
from ...errors import AutodiffError, fail, fault
from ...graph.dtypes import DTYPES
from ...graph.op import constant, value_of
from ...graph.params import to_dtype, to_size
from ...graph.registry import F, overloads
from ...graph.sizes import check_size
from ...graph.state import STATE, taken_out
from ...graph.symbolic_numbers import RecordingAborted
from .dialect import kind_of
from .functions import guarded, known_kind
from .numpy_numbers import NumpyInteger, of_numpy, to_numpy
from .providers import from_above
from .subscripts import forwards, index_parts
from .values import Builtin, TypeName


class ArrayType:
    """The dtype of an array, which prints as NumPy's."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def __eq__(self, other: object) -> bool:
        return getattr(other, "dtype", other) == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def get_attribute(self, name: str) -> Any:
        if name == "name":
            return self.dtype.name
        if name == "itemsize":
            return self.dtype.itemsize
        if name == "kind":
            return self.dtype.kind
        raise fail("E207", f"a NumPy dtype has no attribute `{name}`", help="it has: name, kind")

    def describe_text(self) -> str:
        return self.dtype.name

    def describe(self) -> str:
        return f"dtype('{self.dtype.name}')"


def made(array: np.ndarray, tag: str = "array") -> Array:
    """An array of the program with these values."""
    return as_array(Tensor(constant(np.ascontiguousarray(array).reshape(array.shape))), tag)


# -- attributes and methods -----------------------------------------------------------------------

# Methods that NumPy itself computes.
_COMPUTED = """
    sum mean std var max min prod argmax argmin cumsum cumprod all any argsort nonzero round repeat
    take trace dot conj copy clip searchsorted flatten tolist item
"""
COMPUTED_METHODS = frozenset(_COMPUTED.split())


@contextmanager
def as_numpy(function: Callable[..., Any], *operands: Any, **named: Any) -> Iterator[None]:
    """What fails here is, for a program that catches it, what NumPy raises for these operands."""
    try:
        yield
    except AutodiffError as error:
        if error.code[1] in "123":
            try:
                function(*map(plain, operands), **{k: plain(v) for k, v in named.items()})
            except Exception as own:
                error.amend(raises=known_kind(own)).told((str(own),))
        raise


def _reshape(array: Array, *shape: Any, order: Any = "C") -> Any:
    node = F.reshape(array.node, to_size(shape[0] if len(shape) == 1 else shape))
    return wrap_view(node, array)


def _transpose(array: Array, *axes: Any) -> Any:
    given = axes[0] if len(axes) == 1 and isinstance(axes[0], list | tuple) else axes
    order = tuple(given) or tuple(reversed(range(len(array.shape))))
    return calls.call("permute", (array, order), {})


def _squeeze(array: Array, axis: Any = None) -> Any:
    for at in () if axis is None else axis if isinstance(axis, tuple) else (axis,):
        if array.shape[at] != 1:
            raise fault("E308 axis-squeeze-size", at, array=array)
    return calls.call("squeeze", (array,) if axis is None else (array, axis), {})


def _sort(array: Array, axis: Any = -1) -> None:
    array.overwrite(constant(np.sort(plain(array), axis=axis)))


def _fill(array: Array, value: Any) -> None:
    array.overwrite(F.full(array.shape, value, dtype=array.dtype))


def _astype(array: Array, dtype: Any, *, copy: Any = True, **options: Any) -> Tensor:
    kind = dtype_of(dtype)
    if kind == array.dtype and copy is False:
        return array
    return Tensor(F.copied(F.to_dtype(array.node, kind)))


def _resize(array: Array, *size: Any, refcheck: Any = True) -> None:
    from_above("runtime.attributes.METHODS")["resize_"](array, *size)


_METHODS: dict[str, Callable[..., Any]] = {
    "reshape": _reshape,
    "resize": _resize,
    "transpose": _transpose,
    "astype": _astype,
    "diagonal": lambda array, *args: calls.call("diagonal", (array, *args), {}),
    "view": lambda array: calls.call("view", (array, array.shape), {}),
    "sort": _sort,
    "fill": _fill,
    "ravel": lambda array: _reshape(array, -1),
    "squeeze": _squeeze,
    "swapaxes": lambda array, first, second: calls.call("transpose", (array, first, second), {}),
}
_ATTRIBUTES = ("ndim", "nbytes", "itemsize", "mT", "real")  # those of tensors


def attribute(array: Array, name: str) -> Any:
    """`array.name`; None when it is what tensors have under that name."""
    if name == "shape":
        return tuple(array.shape)
    if name == "size":
        return array.node.numel
    if name == "dtype":
        return ArrayType(array.dtype)
    if name == "T":
        return as_array(_transpose(array))
    method = _METHODS.get(name)
    if method is not None:

        def run(*args: Any, **kwargs: Any) -> Any:
            with as_numpy(getattr(np.ndarray, name), array, *args, **kwargs):
                return result(method(array, *args, **kwargs))

        return Builtin(name, run, array)
    if name in COMPUTED_METHODS:
        return Builtin(name, partial(computed(f"ndarray.{name}"), array), array)
    if name in _ATTRIBUTES:
        return None
    of_tensors = name in from_above("runtime.attributes.METHODS") or overloads(name)
    tensor = f"make a tensor first: `torch.from_numpy(...).{name}`"
    help = tensor if of_tensors else "leave it out, or compute it with tensors"
    if hasattr(np.ndarray, name):
        raise fault("E203 array-attribute-not-here", help, name=name)
    raise fault("E207 array-attribute-not-here", help, name=name)


def result(value: Any) -> Any:
    """What an array's method gives: an array, or a number."""
    if not isinstance(value, Tensor):
        return value
    if value.shape:
        return as_array(value)
    if value.dtype.name in ("float32", "bool"):
        return as_array(Tensor(value.node), "number")  # it looks at no memory
    if STATE.recorder is not None:
        return value.item()
    return given_back(value_of(value.node)[()])


# -- values that NumPy takes and gives -------------------------------------------------------------


def plain(value: Any, depth: int = 0) -> Any:
    """A value as NumPy takes it, within `depth` lists."""
    if isinstance(value, Tensor):
        if STATE.python and type(value) is Tensor:
            return from_above("numpy.foreign_tensors.ForeignTensor")(value)
        return value_of(value.node)
    if isinstance(value, NumpyInteger):
        return to_numpy(value)
    if isinstance(value, ArrayType | TypeName):
        return dtype_of(value)
    if isinstance(value, list | tuple):
        if depth == 64:
            raise fail("E108", "the list is nested more than 64 levels deep", help="flatten it")
        return (tuple if isinstance(value, tuple) else list)(plain(v, depth + 1) for v in value)
    return value


def given_back(value: Any) -> Any:
    """What NumPy gave, as a value of the program."""
    found = of_numpy(getattr(value, "tensor", value))
    if isinstance(found, np.ndarray | np.bool_ | np.float32 | np.float16):
        dtype_of(found.dtype)
        return made(np.asarray(found), "array" if isinstance(found, np.ndarray) else "number")
    return found


# -- functions whose arguments are not those of an op ---------------------------------------------


def _arange(start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    if stop is None:
        start, stop = 0, start
    given = (0 if start is None else start, stop, 1 if step is None else step)
    numbers = [a.item() if isinstance(a, Tensor) else a for a in given]
    if not all(isinstance(n, int | float) for n in numbers):
        raise fail("E208", "np.arange takes numbers", help="np.arange(5)")
    first, last, by = numbers
    count = max(0, int(np.ceil((last - first) / by))) if by else 0
    check_size((count,), DTYPES["float64"])
    array = np.arange(first, last, by)
    return made(array if dtype is None else array.astype(dtype_of(dtype)))


def dtype_of(value: Any) -> np.dtype:
    """What NumPy takes for a dtype: a dtype, a type, or its name."""
    try:
        kind = np.dtype(value) if isinstance(value, str) else to_dtype(value)
    except TypeError:
        kind = None
    if kind is None or kind.name not in DTYPES:
        raise fail("E203", f"arrays of dtype {value} do not exist here", help="use np.float64")
    return kind


class Refused(TypeError):
    """What a method of a tensor that NumPy called refuses."""


@cache
def computed(name: str) -> Callable[..., Any]:
    """A function that NumPy itself computes, of arrays and numbers."""
    function = attrgetter({"empty": "zeros", "empty_like": "zeros_like"}.get(name, name))(np)
    sizes = _SIZES.get(name)

    def run(*args: Any, **kwargs: Any) -> Any:
        if STATE.recorder is not None:
            raise RecordingAborted  # a step is recorded of ops alone
        out = kwargs.pop("out", None)
        given = [plain(a) for a in args]
        named = {k: dtype_of(v) if k == "dtype" and v is not None else plain(v)
                 for k, v in kwargs.items()}  # fmt: skip
        if sizes is not None:
            values = [np.asarray(a) if hasattr(a, "tensor") else a for a in given]
            with suppress(ValueError):
                wanted = np.ravel(sizes(*values, **named)).tolist()
                check_size(to_size(wanted), DTYPES["float64"])
        elif isinstance(function, np.ufunc):
            if len(given) > function.nin:
                out = args[function.nin]
                del given[function.nin :]
            with suppress(ValueError):  # NumPy has better words
                check_size(np.broadcast_shapes(*map(np.shape, given)), DTYPES["float64"])
        if out is not None:
            named["out"] = _copied(out)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = function(*given, **named)
            except Refused as problem:
                raise fault("E205 numpy-called-method", problem, name=name) from None
        if out is not None:
            out.overwrite(constant(named["out"]))
            return out
        if isinstance(found, tuple | list):
            return (tuple if isinstance(found, tuple) else list)(map(given_back, found))
        result = given_back(found)
        return _traced(result, args) if STATE.readers else result

    return run


def _traced(result: Any, args: tuple[Any, ...]) -> Any:
    """The result, and for who watches what leaves the graph the arrays that it was made of."""
    node = result.node if isinstance(result, Tensor) else constant(np.asarray(result))
    node.inputs = tuple([a.node for a in args if isinstance(a, Tensor)])
    return result if isinstance(result, Tensor) else taken_out(node, result)


_OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "true_divide", "//": "floor_divide",
    "%": "remainder", "**": "power", "@": "matmul", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "<<": "left_shift", ">>": "right_shift", "==": "equal", "!=": "not_equal",
    "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "~": "invert",
    "neg": "negative", "pos": "positive", "abs": "absolute",
}  # fmt: skip


def write_item(array: Array, key: Any, value: Any) -> None:
    """`array[key] = value`, cast whatever it is."""
    with as_numpy(lambda copied, *given: setitem(copied.copy(), *given), array, key, value):
        if isinstance(value, list | tuple):
            value = computed("array")(value)
        if isinstance(value, Tensor):
            value = calls.call("to", (value, array.dtype), {})
        elif not isinstance(value, bool | int | float):
            raise fault("E208 cannot-written-into-tensor", kind_of(value))
        target, key = forwards(array, key)
        write_index(target, index_parts(key, True), value)


def in_place(symbol: str, array: np.ndarray, operand: Any) -> None:
    """`array op= operand` of NumPy, on a copy."""
    getattr(np, _OPERATORS[symbol])(array, operand, out=array.copy())


def operate(symbol: str, *operands: Any) -> Any:
    """An operator between arrays and numbers."""
    return guarded(symbol, computed(_OPERATORS[symbol]), list(operands), {})


def _copied(out: Any) -> np.ndarray:
    """What NumPy writes into for `np.add(a, b, out=c)`."""
    if not isinstance(out, Array):
        raise fail("E208", "out= takes a NumPy array", help="np.zeros(3)")
    return value_of(out.node).copy()


def _product_shape(a: Any, b: Any) -> tuple[int, ...]:
    """Of `np.matmul(a, b)`."""
    first, second = np.shape(a), np.shape(b)
    stacked = np.broadcast_shapes(first[:-2], second[:-2])
    return stacked + first[-2:-1] + (second[-1:] if second[1:] else ())


_SIZES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("zeros", "ones", "full", "empty"), lambda shape, *rest, **named: shape),
    **dict.fromkeys(("eye", "tri"), lambda N, M=None, *rest, **named: (N, N if M is None else M)),
    "identity": lambda n, *rest, **named: (n, n),
    **dict.fromkeys(
        ("linspace", "logspace", "geomspace"), lambda start, stop, num=50, *rest, **named: num
    ),
    "pad": lambda a, width, *rest, **named: [n + 2 * int(np.max(width)) for n in np.shape(a)],
    "tile": lambda a, reps: (np.size(a), *np.ravel(reps).tolist()),
    "repeat": lambda a, repeats, axis=None: (np.size(a), int(np.max(repeats))),
    "ndarray.repeat": lambda a, repeats, axis=None: (np.size(a), int(np.max(repeats))),
    "where": lambda *parts: np.broadcast_shapes(*map(np.shape, parts)),
    "outer": lambda a, b: (np.size(a), np.size(b)),
    "kron": lambda a, b: (np.size(a), np.size(b)),
    "matmul": _product_shape,
    "dot": lambda a, b: (*np.shape(a)[:-1], *_product_shape((), b)),
    "inner": lambda a, b: np.shape(a)[:-1] + np.shape(b)[:-1],
    "diag": lambda v, k=0: (len(v) + abs(k),) * 2,
    "meshgrid": lambda *parts, **named: [np.size(part) for part in parts] + [len(parts)],
}


_PRINTING = ("precision", "suppress", "threshold", "linewidth", "edgeitems", "sign", "floatmode")


def _set_printoptions(**options: Any) -> None:
    for name in options:
        if name not in _PRINTING:
            raise fault("E203 arrays-printed-without-here", ", ".join(_PRINTING), name=name)
    with np.printoptions(**options):  # NumPy looks at the values
        STATE.array_options = {**STATE.array_options, **options}


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arange": _arange,
    "set_printoptions": _set_printoptions,
}
FUNCTIONS: dict[str, Any] = {name: Builtin(name, run) for name, run in _FUNCTIONS.items()}
FUNCTIONS["newaxis"] = None
