"""In PyTorch's words a list is no tensor, and most functions take no numbers for tensors; native
files may write either. Refused here, before an op's own, more generous binding."""

from __future__ import annotations

from typing import Any

from ..autograd.tensor import Tensor
from ..errors import AutodiffError, fail
from ..graph.op import Op
from ..graph.params import Param
from .kinds import kind_of

_NUMBERS = frozenset({bool, int, float})
_TENSORS = frozenset({"Tensor", "Mask"})

# Functions of PyTorch whose later tensors may not be numbers.
_NAMES = """
    addcdiv addcmul allclose arctan2 atan2 bmm bucketize cdist cross dist dot equal expand_as fmax
    fmin gcd ger heaviside hypot igamma igammac inner isclose kron lcm ldexp linalg.cross
    linalg.matmul linalg.solve linalg.vecdot logaddexp logaddexp2 logical_and logical_or
    logical_xor masked_select matmul maximum minimum mm mv nextafter outer prelu reshape_as
    special.gammainc special.gammaincc take type_as vdot view_as
"""
NUMBERLESS = frozenset(_NAMES.split())
# Those that take an int there, which is a dim.
_DIMS = frozenset({"max", "min"})
# Written in Python there: they look at the truth of a flag, and at nothing before.
_IN_PYTHON = "nn.functional."


def refuse_plain(ops: list[Op], name: str, args: Any, kwargs: dict[str, Any], first: int) -> None:
    """E208 for a list or number that stands, from argument `first` on, where PyTorch takes a
    tensor only; E205 for a number as a flag."""
    for at in range(first, len(args)):
        value = args[at]
        if type(value) is not Tensor and not any(_takes(op, at, value) for op in ops):
            refused = [op.params[at] for op in ops if at < op.positional]
            if refused:
                failure = _refusal(name, refused[-1], value)
                failure.position = at
                raise failure
    for key, value in kwargs.items():
        if type(value) is list and all(
            key in op.index and op.params[op.index[key]].annotation in _TENSORS for op in ops
        ):
            raise _refusal(name, ops[0].params[ops[0].index[key]], value)


def _takes(op: Op, at: int, value: Any) -> bool:
    if at >= op.positional:
        return 0 <= op.variadic_at < at
    return not _refused(op, op.params[at], value)


def _refused(op: Op, param: Param, value: Any) -> bool:
    kind = type(value)
    if param.annotation in _TENSORS:
        if kind is list or kind is tuple:
            return True
        return kind in _NUMBERS and (op.name in NUMBERLESS or (op.name in _DIMS and kind is float))
    if param.annotation == "bool":
        return kind is int and not op.key.startswith(_IN_PYTHON)
    return op.name in _DIMS and kind is float


def _refusal(name: str, param: Param, value: Any) -> AutodiffError:
    shown = repr(value)
    if param.annotation == "bool":
        return fail(
            "E205",
            f"`{name}` argument `{param.name}` must be True or False, not {shown}",
            help=f"write `{param.name}={bool(value)}`; several dims are a tuple: `dim=(0, 1)`",
        )
    if len(shown) > 30:
        shown = ""
    help = f"write `torch.tensor({shown or '...'})`"
    if name in ("maximum", "minimum") and type(value) is not list:
        limit = "min" if name == "maximum" else "max"
        help = f"write `torch.clamp(x, {limit}={shown})`, or {help.removeprefix('write ')}"
    return fail(
        "E205",
        f"`{name}` argument `{param.name}` must be a tensor, not {kind_of(value)} {shown}".rstrip(),
        help=help,
    )
