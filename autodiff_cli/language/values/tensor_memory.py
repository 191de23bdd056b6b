"""The memory that tensors look at: its numbers, views of it, and tensors that get another one."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...autograd.handles import wrap_view
from ...autograd.storage import begin_anew, mark_overwritten
from ...autograd.tensor import Tensor
from ...autograd.views import base_of, first_place
from ...errors import fault
from ...graph.dtypes import SCALAR_NAMES
from ...graph.op import LEAF, value_of
from ...graph.params import to_int, to_shape, to_size
from ...graph.registry import F
from ...graph.sizes import check_size
from ...graph.state import STATE, grad_mode
from ...graph.strides import contiguous_strides, is_contiguous, strides_of
from .dialect import kind_of
from .out_arguments import check_resizable
from .subscripts import index


def as_given(name: str, value: Any) -> Tensor:
    """The argument of a method, which has to be a tensor."""
    if not isinstance(value, Tensor):
        raise fault("E208 argument-other-tensor", kind_of(value), name=name)
    return value


class StorageView:
    """`x.storage()`: the numbers in memory that a tensor and its views look at."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        tensor.share()

    def flat(self) -> np.ndarray:
        """All numbers in their order."""
        return value_of(self.tensor.share().node).reshape(-1)

    def __len__(self) -> int:
        return self.flat().size

    def get_item(self, key: Any) -> Any:
        return index(self.flat().tolist(), key)

    def set_item(self, key: Any, value: Any) -> None:
        place = index(range(len(self)), key)
        with grad_mode(False):
            as_strided(self.tensor, (), (), place).overwrite(F.full((), value))

    def methods(self) -> dict[str, Callable[..., Any]]:
        return {
            "data_ptr": lambda: id(self.tensor.share()),
            "size": self.__len__,
            "nbytes": lambda: self.flat().nbytes,
            "tolist": lambda: self.flat().tolist(),
        }

    def describe(self) -> str:
        numbers = "".join(f" {number}\n" for number in self.flat().tolist())
        kind = f"dtype=torch.{self.tensor.dtype.name}, device=cpu"
        return f"{numbers}[torch.storage.TypedStorage({kind}) of size {len(self)}]"


def as_strided(tensor: Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
    """`x.as_strided(size, stride)`: a view of the memory that the tensor looks at."""
    first = first_place(tensor)
    offset = first if storage_offset is None else to_int(storage_offset)
    base, storage = base_of(tensor) or tensor, tensor.storage
    if storage is not None and base.node.numel < storage.node.numel:
        base = Tensor(storage.node)
        base.storage, base.seen = storage, storage.version
        base = wrap_view(F.detach(base.node), base)
    if not is_contiguous(base.node):
        raise fault("E203 as_strided-contiguous-memory-here")
    within = None if base is tensor else (tensor.shape, strides_of(tensor.looked_at), first)
    node = F.as_strided(base.node, to_shape(size), to_shape(stride), offset, within)
    return wrap_view(node, base)


def look_at(
    tensor: Tensor,
    source: Any = None,
    storage_offset: Any = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """`x.set_(y)`: look at the memory of another tensor, or at a storage as `as_strided` does."""
    if isinstance(source, StorageView):
        shape = (len(source),) if size is None else to_shape(size)
        steps = contiguous_strides(shape) if stride is None else to_shape(stride)
        other = as_strided(source.tensor, shape, steps, storage_offset)
    elif source is None:
        other = Tensor(F.zeros((0,), dtype=tensor.dtype))
    else:
        other = as_given("set_", source)
    if other.dtype != tensor.dtype:
        theirs, own = SCALAR_NAMES[other.dtype.name], SCALAR_NAMES[tensor.dtype.name]
        raise fault("E307 set-other-dtype", other, tensor, theirs, own)
    tensor.check_writable()
    if STATE.grad and (tensor.requires_grad or other.requires_grad):
        raise fault("E404 no-derivative-here", "set_")
    mark_overwritten(tensor.node, None, tensor.version)
    tensor.become_view(wrap_view(F.data_alias(other.node), other), True)
    if tensor.node.op is LEAF:
        begin_anew(tensor.node)
    return tensor


def resize(tensor: Tensor, *size: Any) -> Tensor:
    """`x.resize_(2, 3)`: the first numbers in another shape; what is new is undefined, here 0."""
    shape = to_size(size[0] if len(size) == 1 else size)
    check_resizable(tensor, grows=False)
    check_size(shape, tensor.dtype)
    if shape == tuple(tensor.shape):
        return tensor
    count, node = prod(shape), tensor.looked_at
    room = tensor.share().node.numel - first_place(tensor)
    if count <= room and is_contiguous((base_of(tensor) or tensor).node):
        tensor.become_view(as_strided(tensor, shape, contiguous_strides(shape)), True)
        return tensor
    check_resizable(tensor)
    strides = strides_of(node)
    order = sorted(range(node.ndim), key=lambda dim: -strides[dim])
    flat = F.reshape(F.permute(node, tuple(order)), (-1,))
    if count > tensor.node.numel:
        flat = F.cat((flat, F.zeros((count - tensor.node.numel,), dtype=tensor.dtype)), 0)
    tensor.count_change()
    tensor.adopt(Tensor(F.reshape(F.narrow(flat, 0, 0, count), shape)))
    return tensor
