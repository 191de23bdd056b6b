"""Parameters of ops: what an annotation in the table means and how a given value becomes canonical.

| annotation | canonical value |
|---|---|
| `Tensor`, `Mask` | a node; `Mask` takes no part in dtype promotion |
| `Tensors` | a tuple of nodes |
| `TensorList` | the same, may be given one by one |
| `Dim`, `NewDim` | a non-negative int below ndim of the first tensor (`NewDim`: below ndim + 1) |
| `Dims` | a tuple of those, ascending as given, or None for all |
| `AllDims` | the same; None, where it is given, is () |
| `DimList` | the same, may be given one by one |
| `Order` | one of those for each dim of the first tensor |
| `Size` | a tuple of ints, may be given one by one |
| `Shape` | a tuple of ints, given as one |
| `Ints` | an int or a tuple of ints, as given |
| `Function` | a function of tensors or nodes |
| `int`, `float`, `bool`, `str`, `Scalar`, `Dtype`, `Any` | a Python value |
| `Endpoint` | a number; a tensor of one element loses its gradient |
| `Word` | a text; of other values what they are, for who knows the words |
| `Flag` | whether what is given counts as true, for what PyTorch asks in Python with `if` |

`X | None` also takes None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import fault
from ..numerals import short
from .node import Node
from .state import STATE, taken_out


class _Required:
    __slots__ = ()

    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


class BindError(Exception):
    """Arguments do not fit a signature; another overload may fit. `argument` is the name meant,
    `said` what Python says behind the name of the function; of a value of the wrong kind `wants` is
    the right one, `value` what it is, `given` Python's name of that, `text` itself where it is one.
    `unknown`: no parameter has the name; `extra`: how many arguments are too many; `names` are of
    the parameters, where they are known."""

    unknown = False
    extra = 0
    text = ""
    names: Sequence[str] = ()

    def __init__(self, message: str, argument: str = "", said: str = "", wants: str = ""):
        super().__init__(message)
        self.message = message
        self.argument = argument
        self.said = said
        self.wants = wants
        self.value = self.given = ""

    @property
    def takes(self) -> str:
        """The names of the parameters as keywords, in words."""
        *first, last = (f"{name}=" for name in self.names)
        return f"{', '.join(first)} and {last}"


class Missing(BindError):
    """An argument is not given."""


def unfit(wants: str, value: Any) -> BindError:
    """The failure of a value that is not what is wanted."""
    error = BindError(f"must be {wants}, not {shown(value)}", wants=wants)
    error.value, error.given = shown(value), type_name(value)
    error.text = value if isinstance(value, str) else ""
    return error


def unknown_keyword(name: str, names: Sequence[str] = ()) -> BindError:
    """The failure of a keyword that none of the parameters `names` has."""
    words = "got an unexpected keyword argument"
    error = BindError(f"{words} `{name}`", name, f"{words} '{name}'")
    error.unknown, error.names = True, names
    return error


def given_twice(name: str) -> BindError:
    """The failure of an argument that is given by its place and by its name."""
    said = f"got multiple values for argument '{name}'"
    return BindError(f"got several values for argument `{name}`", name, said)


def too_many(least: int, most: int, given: int, kind: str = "") -> BindError:
    """The failure of more arguments than the `most` that can be given by their places."""
    counts = f"{least} to {most}" if least < most else f"{most}"
    plural, were = "" if counts == "1" else "s", "was" if given == 1 else "were"
    rest = f"argument{plural} but {given} {were} given"
    said = f"takes {'from ' if least < most else ''}{counts} positional {rest}"
    error = BindError(f"takes {counts} {kind}{rest}", said=said)
    error.extra = given - most
    return error


def missing(names: list[str], keyword: bool = False) -> Missing:
    """The failure of arguments that are not given."""
    quoted = [f"'{name}'" for name in names]
    listed = " and ".join(quoted)
    if len(names) > 2:
        listed = f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
    plural = "" if len(names) == 1 else "s"
    kind = "keyword-only" if keyword else "positional"
    said = f"missing {len(names)} required {kind} argument{plural}: {listed}"
    shown = ", ".join(f"`{name}`" for name in names)
    return Missing(f"misses its {'keyword ' * keyword}argument{plural} {shown}", names[0], said)


class _Late:
    """Conversions that upper layers provide; bound once."""

    __slots__ = ("node_of_list", "number", "value")

    def __init__(self) -> None:
        self.node_of_list: Callable[[Any], Node] | None = None
        self.number: Callable[[Any], Node] | None = None
        self.value: Callable[[Node], Any] | None = None


LATE = _Late()

Converter = Callable[[Any, Node | None], Any]

NUMBERS = frozenset({bool, int, float})


def node_of(value: Any) -> Node | None:
    """The node of a node or of a tensor handle, None of anything else."""
    if type(value) is Node:
        return value
    node = getattr(value, "node", None)
    return node if type(node) is Node else None


def type_name(value: Any) -> str:
    """Python's name of a value's type, as programs know it."""
    if node_of(value) is not None:
        return "Tensor"
    return "torch.dtype" if isinstance(value, np.dtype) else type(value).__name__


def shown(value: Any) -> str:
    """A value in a message: what it is, and itself where it is a number or a text."""
    node = node_of(value)
    if node is not None:
        return f"a tensor of shape {tuple(node.shape)}"
    if value is None:
        return "None"
    if callable(value):
        return "a function"
    if type(value) is int:
        return f"int {short(value, 70)}"
    name = type_name(value)
    return f"{name} {value!r}"[:80] if isinstance(value, str | bytes | float | complex) else name


def to_tensor(value: Any, first: Node | None = None) -> Node:
    if type(value) in NUMBERS:
        return LATE.number(value)  # type: ignore[misc]  # bound at import of graph
    node = node_of(value)
    if node is not None:
        return node
    if isinstance(value, int | float):
        return LATE.number(plain_number(value))  # type: ignore[misc]  # bound at import of graph
    if isinstance(value, list | tuple):
        return LATE.node_of_list(value)  # type: ignore[misc]  # bound at import of autograd
    raise unfit("a tensor", value)


def to_tensors(value: Any, first: Node | None) -> tuple[Node, ...]:
    if isinstance(value, list | tuple):
        return tuple(to_tensor(v) for v in value)
    raise unfit("a list or tuple of tensors", value)


def to_optional_tensors(value: Any, first: Node | None) -> tuple[Node | None, ...]:
    return tuple(None if v is None else to_tensor(v) for v in value)


def plain_number(value: Any) -> bool | int | float:
    """A number of Python's own, also of a class of the program, which is not asked."""
    if type(value) in NUMBERS:
        return value
    return int.__index__(value) if isinstance(value, int) else float.__pos__(value)


def python_number(value: Any) -> bool | int | float:
    """The number of a Python number or a one-element tensor."""
    if isinstance(value, int | float):
        return plain_number(value)
    node = node_of(value)
    if node is not None and node.numel == 1 and (node.dtype.kind != "b" or not node.shape):
        item = LATE.value(node).item()  # type: ignore[misc]  # bound at import of graph
        return taken_out(node, item)
    raise unfit("a number", value)


def to_int(value: Any, first: Node | None = None) -> int:
    _check_stands(node_of(value), "an int")
    return to_index(value)


def to_index(value: Any) -> int:
    """What Python's `__index__` gives: also of a tensor of one whole number, whatever its dims."""
    if isinstance(value, int):
        value = value if type(value) is int else int.__index__(value)
        if -(1 << 63) <= value < 1 << 63:
            return value
        raise fault("E504 number-does-not-fit-into", short(value, 40))
    node = node_of(value)
    if node is not None and node.numel == 1 and (node.dtype.kind in "iub" or written_as_int(node)):
        return int(python_number(node))
    raise unfit("an int", value)


def written_as_int(node: Node) -> bool:
    """Whether the node is a leaf that a file wrote as an integer (`n = 3`)."""
    return bool(node.op.key == "leaf" and getattr(node.args[0], "written_as_int", False))


def to_float(value: Any, first: Node | None = None) -> float:
    return float(to_scalar(value))


LARGEST = int(np.finfo(float).max)


def to_scalar(value: Any, first: Node | None = None) -> bool | int | float:
    _check_stands(node_of(value), "a number")
    number = python_number(value)
    if type(number) is int and abs(number) > LARGEST:
        raise fault("E504 number-too-large", short(number, 40))
    return number


def to_endpoint(value: Any, first: Node | None = None) -> bool | int | float:
    node = node_of(value)
    if node is not None and node.shape and STATE.python:
        raise fault("E308 endpoint-dims", node.ndim)
    return python_number(value)


def _check_stands(node: Node | None, wants: str) -> None:
    """PyTorch takes a tensor for a number that has no dims and needs no gradient, which would be
    lost."""
    if node is None or not (node.shape or node.requires_grad if STATE.python else node.numel != 1):
        return
    error = unfit(wants, node)
    if node.requires_grad and not node.shape:
        error.message += " that requires grad"
    raise error


def to_bool(value: Any, first: Node | None = None) -> bool:
    if isinstance(value, bool):
        return value
    raise unfit("True or False", value)


def to_flag(value: Any, first: Node | None = None) -> bool:
    node = node_of(value)
    if node is not None and node.numel != 1:
        raise fault("E408 truth-tensor-elements", "a tensor", tuple(node.shape), value=value)
    return bool(value if node is None else python_number(node))


def to_str(value: Any, first: Node | None = None) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    raise unfit("a string", value)


def to_word(value: Any, first: Node | None = None) -> str:
    return str.__str__(value) if isinstance(value, str) else shown(value)


def check_device(device: Any) -> None:
    """E203 for what is not the CPU, by its name or as a `torch.device`."""
    where = getattr(device, "where", device)
    if isinstance(where, str) and where.partition(":")[0] != "cpu":
        raise fault("E203 there-no-device", where)


def to_dtype(value: Any, first: Node | None = None) -> np.dtype:
    if isinstance(value, np.dtype):
        return value
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, np.dtype) and node_of(value) is None:
        return dtype
    raise unfit("a dtype such as torch.float64", value)


def dim_in_range(dim: int, ndim: int) -> int:
    """A dim counted from the front; E304 when it is out of range (a 0-d tensor has dims -1, 0)."""
    span = max(ndim, 1)
    if not -span <= dim < span:
        help = f"use `dim={span - 1}` for the last dim" if ndim else "a 0-d tensor has no dims"
        plural = "" if ndim == 1 else "s"
        raise fault("E304 dim-out-range", dim, ndim, plural, -span, span - 1, help)
    return dim + span if dim < 0 else dim


def _ndim(first: Node | None) -> int:
    return 0 if first is None else len(first.shape)


def to_dim(value: Any, first: Node | None) -> int:
    return dim_in_range(to_int(value), _ndim(first))


def to_static_dim(value: Any, first: Node | None) -> int:
    """A dim where a tensor would mean another overload: `max(x, dim)`, `max(x, other)`."""
    node = node_of(value)
    if node is not None and not written_as_int(node):
        raise BindError("must be an int, not a tensor", wants="an int")
    return to_dim(value, first)


def to_dims(value: Any, first: Node | None) -> tuple[int, ...] | None:
    ndim = _ndim(first)
    if isinstance(value, list | tuple):
        dims = tuple(dim_in_range(to_int(v), ndim) for v in value)
        if len(set(dims)) != len(dims):
            raise fault("E304 dim-appears-more-once", tuple(value))
        return dims if ndim else ()
    if type(value) is bool:
        raise BindError(f"must be an int or a tuple of ints, not {value}", wants="an int")
    dim = dim_in_range(to_int(value), ndim)
    return (dim,) if ndim else ()


def to_order(value: Any, first: Node | None) -> tuple[int, ...] | None:
    dims = value if isinstance(value, list | tuple) else (value,)
    if first is not None and len(dims) != len(first.shape):
        raise fault("E304 permute-tensor-dims-needs", first, len(dims))
    return to_dims(dims, first)


def to_ints(value: Any, first: Node | None = None) -> int | tuple[int, ...]:
    if isinstance(value, list | tuple):
        return tuple(to_int(v) for v in value)
    return to_int(value)


def to_size(value: Any, first: Node | None = None) -> tuple[int, ...]:
    sizes = to_ints(value)
    return sizes if type(sizes) is tuple else (sizes,)  # type: ignore[return-value]  # an int else


def to_shape(value: Any, first: Node | None = None) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise unfit("a tuple of ints", value)
    return tuple(map(to_int, value))


def to_floats(value: Any, first: Node | None = None) -> Any:
    if isinstance(value, list | tuple):
        return tuple(to_float(v) for v in value)
    return to_float(value)


def to_function(value: Any, first: Node | None = None) -> Callable[..., Any]:
    if not callable(value):
        raise unfit("a function", value)
    return value


def anything(value: Any, first: Node | None = None) -> Any:
    return value


CONVERTERS: dict[str, Converter] = {
    "Tensor": to_tensor,
    "Mask": to_tensor,
    "Tensors": to_tensors,
    "TensorList": lambda value, first: (
        (to_tensor(value),) if node_of(value) is not None else to_tensors(value, first)
    ),
    "OptionalTensors": to_optional_tensors,
    "Dim": to_dim,
    "StaticDim": to_static_dim,
    "NewDim": lambda value, first: dim_in_range(to_int(value), _ndim(first) + 1),
    "Dims": to_dims,
    "AllDims": to_dims,
    "DimList": to_dims,
    "Order": to_order,
    "Size": to_size,
    "Shape": to_shape,
    "Ints": to_ints,
    "Floats": to_floats,
    "int": to_int,
    "float": to_float,
    "bool": to_bool,
    "Flag": to_flag,
    "str": to_str,
    "Word": to_word,
    "Scalar": to_scalar,
    "Endpoint": to_endpoint,
    "Dtype": to_dtype,
    "Function": to_function,
    "Any": anything,
}

TENSORIAL = frozenset({"Tensor", "Mask", "Tensors", "TensorList", "OptionalTensors"})
VARIADIC = frozenset({"Size", "DimList", "Order", "TensorList"})


class Param:
    """One parameter of a signature."""

    __slots__ = (
        "annotation",
        "converter",
        "default",
        "keyword_only",
        "name",
        "optional",
        "promotes",
        "tensorial",
        "variadic",
    )

    def __init__(self, name: str, annotation: str, default: Any, keyword_only: bool):
        self.name = name
        self.default = default
        self.keyword_only = keyword_only
        self.optional = annotation.endswith("| None")
        self.annotation = annotation.removesuffix("| None").strip()
        self.converter = CONVERTERS[self.annotation]
        self.tensorial = self.annotation in TENSORIAL
        self.promotes = self.annotation in ("Tensor", "Tensors")
        self.variadic = self.annotation in VARIADIC

    @property
    def required(self) -> bool:
        """Whether it has to be given."""
        return self.default is REQUIRED

    def convert(self, value: Any, first: Node | None) -> Any:
        """The canonical form of `value`; `first` is the first tensor argument, for dims."""
        if value is None and self.optional:
            return None
        try:
            return self.converter(value, first)
        except BindError as error:
            error.message, error.argument = f"argument `{self.name}` {error.message}", self.name
            raise

    def describe(self) -> str:
        if self.default is REQUIRED:
            return self.name
        default = self.default
        if isinstance(default, np.dtype):
            default = default.name
        return f"{self.name}={default!r}"


# The annotations as types, for the signatures in the table.
Tensor = Node
Mask = Node
Tensors = tuple[Node, ...]
TensorList = tuple[Node, ...]
OptionalTensors = tuple[Node | None, ...]
Dim = int
StaticDim = int
NewDim = int
Dims = tuple[int, ...]
AllDims = tuple[int, ...]
DimList = tuple[int, ...]
Order = tuple[int, ...]
Size = tuple[int, ...]
Shape = tuple[int, ...]
Ints = int | tuple[int, ...]
Floats = float | tuple[float, ...]
Flag = bool
Word = str
Scalar = bool | int | float
Endpoint = Scalar
Dtype = np.dtype
Function = Callable[..., Any]
