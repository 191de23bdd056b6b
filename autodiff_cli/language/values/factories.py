"""Tensors from values: `tensor`, `const`, `as_tensor`, `Parameter`, and leaves from literals."""

from __future__ import annotations

import re
from collections import deque
from typing import Any

import numpy as np

from ...autograd.handles import wrap_view
from ...autograd.literals import array_of, check_extent, has_tensor, no_number
from ...autograd.tensor import Array, Tensor, new_leaf
from ...errors import fault
from ...graph.dtypes import DTYPES, SCALAR_TYPES, is_float
from ...graph.node import Node
from ...graph.op import value_of
from ...graph.params import check_device, to_dtype, to_size, unknown_keyword
from ...graph.registry import F
from ...graph.state import STATE, taken_out
from ...graph.strides import laid_out_as, strides_of
from .dialect import kind_of
from .numpy_numbers import NUMPY_NUMBERS
from .operations import flag, iterate
from .values import Size, TypeName


def make_tensor(
    data: Any, *, dtype: Any = None, requires_grad: Any = False, device: Any = None, **kwargs: Any
) -> Tensor:
    """`torch.tensor(data)`: a copy without history, in the dtype PyTorch infers."""
    if device is not None:
        check_device(device)
    for name in kwargs:
        if name != "pin_memory":
            takes = ("data", "dtype", "requires_grad")
            raise fault("E205 unknown-keyword", "tensor", unknown_keyword(name, takes))
    kind = None if dtype is None else to_dtype(dtype)
    if kind is None:
        kind = _dtype_of_numpy(data)
    wanted = flag("requires_grad", requires_grad)
    if isinstance(data, Tensor):
        if data.requires_grad and STATE.grad:
            _warn_of_copy()
        array = taken_out(data.node, np.array(value_of(_ahead(data)), dtype=kind))
        made = with_grad(array, wanted)
        laid_out_as(data.node, made.node)
        return made
    return with_grad(array_of(_numbers(data), kind), wanted)


def _ahead(data: Tensor) -> Node:
    """What a tensor or an array holds; E208 for arrays that go backwards through their memory."""
    if data.tag and data.node.numel and min(strides_of(data.looked_at), default=0) < 0:
        raise fault("E208 tensor-array-backwards")
    return data.node


def _warn_of_copy() -> None:
    """W402 for `torch.tensor(x)` where that ends a graph."""
    text = "" if STATE.span is None else STATE.span.text
    inside = text[text.find("(") + 1 : -1]
    help = "leave it out, or write `.detach().clone()` if a constant is meant"
    if re.fullmatch(r"[\w.]*tensor\([^\W\d][^,\n]*\)", text):
        help = f"write `{inside}` for `{text}`; if a constant is meant, say `.detach().clone()`"
    STATE.warn("W402", "a copy of a tensor has no history: gradients end here", help)


def _dtype_of_numpy(data: Any) -> np.dtype | None:
    """The dtype of a number of NumPy's, or of a list that begins with such or with an array."""
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return data.dtype if type(data) is Array or type(data) in NUMPY_NUMBERS else None


def with_grad(array: np.ndarray, requires_grad: bool) -> Tensor:
    """A leaf of an array; only floats can require grad."""
    if requires_grad and not is_float(array.dtype):
        raise fault("E306 only-floating-point-tensors-can-require", array=array)
    return new_leaf(array, requires_grad)


def _numbers(data: Any) -> Any:
    """Nested lists of numbers, with one-element tensors read as numbers."""
    if isinstance(data, list | tuple):
        if has_tensor(data):
            check_extent(data)
            return [_number(v) if isinstance(v, Tensor) else _numbers(v) for v in data]
        return data
    if isinstance(data, Tensor):
        return taken_out(data.node, value_of(data.node).tolist())
    if isinstance(data, bool | int | float):
        return data
    if isinstance(data, range | deque):
        return _numbers(list(iterate(data)))
    raise no_number(data)


def _number(tensor: Tensor) -> Any:
    """The number of a tensor in a list; NumPy's arrays are lists."""
    if tensor.tag:
        return _numbers(tensor)
    if tensor.node.numel != 1:
        raise fault(
            "E208 tensor-shape-list-no",
            tuple(tensor.shape),
            "PyTorch: only integer tensors of a single element can be converted to an index"
            if tensor.dtype.kind in "iu"
            else "PyTorch: only one element tensors can be converted to Python scalars",
            "TypeError" if tensor.dtype.kind in "iu" else "ValueError",
        )
    return taken_out(tensor.node, value_of(tensor.node).item())


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`torch.as_tensor`: a tensor as it is when nothing is to be done."""
    if isinstance(data, Tensor):
        result = wrap_view(F.data_alias(_ahead(data)), data) if data.tag else data
        kind = None if dtype is None else to_dtype(dtype)
        return result if kind is None or kind == data.dtype else Tensor(F.to_dtype(data.node, kind))
    return make_tensor(data, dtype=dtype)


def legacy_tensor(dtype: np.dtype, *args: Any) -> Tensor:
    """`torch.Tensor(...)`, `torch.LongTensor(...)`, `x.new(...)`: values, or sizes."""
    if len(args) == 1 and isinstance(args[0], list | tuple | range | Tensor):
        data = args[0]
        if isinstance(data, Tensor) and data.tag is None:
            return wrap_view(F.data_alias(data.node), data)
        if not isinstance(data, Size):
            return make_tensor(data, dtype=dtype)
        return Tensor(F.zeros(tuple(data), dtype=dtype))
    return Tensor(F.zeros(args or (0,), dtype=dtype))


LEGACY_NAMES = {name: kind for kind, name in SCALAR_TYPES.items()}


def legacy_dtype(kind: Any) -> Any:
    """The dtype that `"torch.LongTensor"` or `torch.LongTensor` stands for."""
    if isinstance(kind, str):
        short = kind.removeprefix("torch.").removesuffix("Tensor")
        found = DTYPES.get(LEGACY_NAMES.get(short, ""))
        if found is None:
            raise fault("E205 invalid-type-dtype", dtype=kind)
        return found
    if isinstance(kind, TypeName):
        return DTYPES.get(kind.name) or kind.dtype or STATE.default_dtype
    return kind


def const(data: Any, **kwargs: Any) -> Tensor:
    """`const(...)`: a tensor that does not require grad."""
    if isinstance(data, Tensor):
        return Tensor(F.detach(data.node))
    return make_tensor(data, **kwargs)


def parameter(data: Any = None, requires_grad: Any = True) -> Tensor:
    """`torch.nn.Parameter(tensor)`: a leaf in the memory of a tensor."""
    if data is None:
        data = make_tensor([])
    if not isinstance(data, Tensor):
        raise fault("E208 parameter-made-tensor", kind_of(data))
    result = wrap_view(F.detach(data.node), data)
    if flag("requires_grad", requires_grad):
        result.set_requires_grad(True)
    result.is_parameter = True
    return result


class Uninitialized(Tensor):
    """A parameter or buffer of a lazy layer, of which only the dtype is known yet."""

    __slots__ = ()

    @property
    def node(self) -> Node:
        raise fault("E205 uninitialized", self.describe())

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """It is a tensor of this shape from now on."""
        kind = self.dtype if dtype is None else to_dtype(dtype)
        self.__class__ = Tensor  # type: ignore[assignment]  # it was one for this alone
        self.adopt(new_leaf(np.zeros(tuple(to_size(shape)), kind)))

    def describe(self) -> str:
        return f"<{self.own_type().name.rpartition('.')[2]}>"

    def own_type(self) -> TypeName:
        return UNINITIALIZED["Parameter" if self.is_parameter else "Buffer"]


def _uninitialized(kind: str, of_kind: bool) -> TypeName:
    def make(requires_grad: Any = of_kind, device: Any = None, dtype: Any = None) -> Tensor:
        made = Tensor(F.zeros((0,), dtype=to_dtype(dtype or STATE.default_dtype)))
        made.set_requires_grad(flag("requires_grad", requires_grad))
        made.is_parameter = of_kind
        made.__class__ = Uninitialized
        return made

    return TypeName(
        f"torch.nn.parameter.Uninitialized{kind}",
        lambda value: type(value) is Uninitialized and value.is_parameter is of_kind,
        make,
    )


UNINITIALIZED = {
    kind: _uninitialized(kind, kind == "Parameter") for kind in ("Parameter", "Buffer")
}


def is_literal_value(value: Any) -> bool:
    """A Python number or a numeric nested list; bools are no numbers here."""
    pending = [value]
    found = False
    while pending:
        item = pending.pop()
        if type(item) is list:
            pending += item
        elif type(item) is float or type(item) is int:
            found = True
        else:
            return False
    return found


def leaf_of_literal(value: Any, written_out: bool = False) -> Tensor:
    """The leaf that a literal of a native file makes: floating point, requiring grad."""
    array = array_of(value, STATE.default_dtype, written_out)
    tensor = new_leaf(array, True, type(value) is int)
    assert tensor.accumulator is not None
    tensor.accumulator.literal = True
    return tensor
