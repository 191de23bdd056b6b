"""The same numbers again: copies, dtypes, memory layouts."""

from __future__ import annotations

from ...errors import fault
from ...graph.declare import Any, Dtype, Tensor, composite, function, movement
from ...graph.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8
from ...graph.op import cast
from ...graph.params import Param, check_device
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.strides import kept_layout

SINGLE = "finite differences need float64"


@movement(
    lambda x, memory_format: x,
    strides_rule=kept_layout,
    vjp=lambda g, out, input, memory_format: g,
    samples=[S(t(2, 3)), S(ints(2))],
)
def clone(input: Tensor, *, memory_format: Any = None):
    """A copy of the tensor."""


@function(public=False, samples=[S(t(2), FLOAT32, order=0, because=SINGLE), S(ints(2), FLOAT64)])
def to_dtype(input: Tensor, dtype: Dtype):
    """The tensor in another dtype."""
    return cast(input, dtype)


@composite(public=False, samples=[S(t(2))], phrase="the gradient in the dtype of the operand")
def to_copy(input: Tensor):
    """A copy made by a conversion."""
    return F.clone(input)


def _converted(input, dtype, non_blocking, copy, memory_format):
    """In another dtype; a copy when one is asked for or another layout of memory needs it."""
    reordered = len(input.shape) == 4 and str(memory_format).endswith("channels_last")
    same = dtype is None or dtype == input.dtype  # `==` alone says that None is float64
    if same:
        return F.to_copy(input) if copy or reordered else input
    return cast(input, dtype)


COPYING = (
    Param("non_blocking", "bool", False, False),
    Param("copy", "bool", False, False),
    Param("memory_format", "Any", None, True),
)


@function(
    samples=[S(t(2), FLOAT32, order=0, because=SINGLE), S(t(2), FLOAT64, copy=True)], more=COPYING
)
def to(input: Tensor, dtype: Dtype, *more):
    """The tensor in another dtype; itself when it has that dtype already."""
    return _converted(input, dtype, *more)


@function(name="to", samples=[S(t(2), t(2, dtype="float32"))], more=COPYING)
def to_other(input: Tensor, other: Tensor, *more):
    """The tensor in the dtype of another one."""
    return _converted(input, other.dtype, *more)


@function(
    name="to",
    more=COPYING,
    samples=[
        S(t(2), "cpu"),
        S(t(2, dtype="float32"), "cpu", FLOAT64, False, True),
        S(t(2), "cpu", FLOAT32, order=0, because=SINGLE),
    ],
    errors=[Bad("E203", t(2), "cuda")],
)
def to_device(input: Tensor, device: Any = None, dtype: Dtype | None = None, *more):
    """The tensor on a device, which can only be the CPU."""
    if isinstance(device, int | float | list | tuple | dict) or callable(device):
        raise fault("E205 takes-dtype", device)
    check_device(device)
    return _converted(input, dtype, *more)


@function(samples=[S(t(2))])
def cpu(input: Tensor, *, memory_format: Any = None):
    """The tensor itself: it lives on the CPU."""
    return input


@function(samples=[S(t(2), t(2, dtype="float32"))])
def type_as(input: Tensor, other: Tensor):
    """The tensor in the dtype of another one."""
    return cast(input, other.dtype)


@function(samples=[S(t(2), FLOAT32, order=0, because=SINGLE)])
def type(input: Tensor, dtype: Dtype, non_blocking: bool = False):
    """The tensor in another dtype."""
    return cast(input, dtype)


def _cast_method(name, dtype):
    def convert(input: Tensor, *, memory_format: Any = None):
        return _converted(input, dtype, False, False, memory_format)

    convert.__doc__ = f"The tensor in dtype {dtype.name}."
    function(
        key=f"to_{name}",
        name=name,
        properties=frozenset({"method only"}),
        samples=[S(t(2), order=0, because=SINGLE), S(ints(2))],
    )(convert)


for _name, _dtype in (
    ("double", FLOAT64),
    ("float", FLOAT32),
    ("half", FLOAT16),
    ("long", INT64),
    ("int", INT32),
    ("short", INT16),
    ("char", INT8),
    ("byte", UINT8),
    ("bool", BOOL),
):
    _cast_method(_name, _dtype)
