"""In PyTorch's words a list is no tensor, and most functions take no numbers for tensors; native
files may write either. Refused here, before an op's own, more generous binding."""

from __future__ import annotations

from typing import Any

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fault
from ...graph.op import Op
from ...graph.params import Param
from ...numerals import short
from .dialect import kind_of

_NUMBERS = frozenset({bool, int, float})
_TENSORS = frozenset({"Tensor", "Mask"})

_LISTS = frozenset({"Tensors", "TensorList"})
_SINGLE = frozenset({"Scalar", "StaticDim"})  # which decide between overloads
_ONE_BY_ONE = frozenset({"Size", "DimList", "Order"})  # which methods take one by one
_WHOLE = _ONE_BY_ONE | {"int", "Ints", "Dim", "Dims", "NewDim", "StaticDim"}
_POLYNOMIALS = """
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he
    laguerre_polynomial_l legendre_polynomial_p
"""
# The functions of PyTorch that take numbers for tensors, by the parameters that may be numbers.
_NUMBERS_FOR = {
    "input other": """add bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
        div divide floor_divide mul multiply remainder special.xlog1py special.xlogy special.zeta
        sub subtract true_divide where xlogy""",
    "input exponent": "float_power pow",
    "input n": " ".join(f"special.{name}" for name in _POLYNOMIALS.split()),
    "input": "bucketize searchsorted",
    "elements test_elements": "isin",
    "other": """copysign eq fmod ge greater greater_equal gt le less less_equal lt max min ne
        not_equal rsub""",
    "min max": "clamp clamp_max clamp_min clip",
    "value": "fill index_fill masked_fill",
    "weight": "lerp",
    "q": "nanquantile quantile",
    "atol rtol rcond": "linalg.pinv",
    "var": "nn.functional.gaussian_nll_loss",
}
MAY_BE_NUMBERS = {
    name: frozenset(params.split())
    for params, names in _NUMBERS_FOR.items()
    for name in names.split()
}
# Those that take numbers only, too.
_ARITHMETIC = "add div divide floor_divide mul multiply sub subtract true_divide"
ALL_NUMBERS = frozenset(_ARITHMETIC.split())
# Those that take an int for their second tensor, which is a dim.
_DIMS = frozenset({"max", "min"})


def refuse_plain(ops: list[Op], name: str, args: Any, kwargs: dict[str, Any], first: int) -> None:
    """E208 for a list or number that stands, from argument `first` on, where PyTorch takes a
    tensor only; E205 for a number as a flag."""
    for at in range(first, len(args)):
        value = args[at]
        if type(value) is int and not first and _wants_tuple(ops, at):
            whole = f"({', '.join(map(repr, args[at:]))}{',' * (at == len(args) - 1)})"
            failure = fault("E205 argument-tuple-ints", name, ops[0].params[at].name, value, whole)
            failure.position = at
            raise failure
        if type(value) is not Tensor and not any(_takes(op, at, value, args) for op in ops):
            params = [param for op in ops if (param := _param(op, at, args)) is not None]
            # Where a number is all that may stand there, its conversion says so.
            refused = [param for param in params if param.annotation != "Scalar"]
            if refused:
                failure = _refusal(name, refused[-1], value)
                failure.position = at
                raise failure
    for key, value in kwargs.items():
        taken = [(op, op.params[op.index[key]]) for op in ops if key in op.index]
        if type(value) is int and taken and all(param.variadic for _, param in taken):
            raise fault("E205 argument-tuple-ints", name, key, value, f"{key}=({value},)")
        if taken and type(value) is not Tensor and all(_refused(*at, value) for at in taken):
            raise _refusal(name, taken[0][1], value)
    if "keepdim" in kwargs and kwargs.keys().isdisjoint(("dim", "axis")):
        at = ops[0].index.get("dim", -1)
        if len(args) <= at and ops[0].params[at].annotation == "AllDims":
            raise fault("E205 keepdim-without-dim", name)


def _wants_tuple(ops: list[Op], at: int) -> bool:
    """Whether a function takes several ints there, which only methods take one by one."""
    return at > 0 and all(
        at < op.positional and op.params[at].annotation in _ONE_BY_ONE for op in ops
    )


def _param(op: Op, at: int, args: Any) -> Param | None:
    """The parameter that the `at`-th argument goes to."""
    if 0 <= op.variadic_at < at and not isinstance(args[op.variadic_at], list | tuple):
        return op.params[op.variadic_at]
    return op.params[at] if at < op.positional else None


def _takes(op: Op, at: int, value: Any, args: Any) -> bool:
    if type(value) is bool and 0 <= op.variadic_at < at:
        return True  # of sizes one by one PyTorch looks at the first
    param = _param(op, at, args)
    lists = op.name == "einsum" and not isinstance(args[0], str)  # of numbers for letters
    return param is not None and (lists or not _refused(op, param, value))


def _refused(op: Op, param: Param, value: Any) -> bool:
    kind = type(value)
    annotation = param.annotation
    if annotation in _TENSORS:
        if kind is list or kind is tuple:
            return True
        if kind not in _NUMBERS:
            return False
        given = param.name in MAY_BE_NUMBERS.get(op.name, ())
        return not given or (op.name in _DIMS and kind is not int)
    if annotation in _LISTS:
        values = value if kind is list or kind is tuple else (value,)
        return any(type(v) in _NUMBERS or type(v) is list for v in values)
    if annotation == "bool":
        return kind is int
    if (kind is list or kind is tuple) and annotation in _SINGLE:
        return True
    if kind is bool or ((kind is list or kind is tuple) and value and type(value[0]) is bool):
        return annotation in _WHOLE or annotation == "Dtype"
    return op.name in _DIMS and kind is float


def _refusal(name: str, param: Param, value: Any) -> AutodiffError:
    shown = short(value) if type(value) is int else repr(value)
    if param.annotation == "bool":
        return fault("E205 argument-true-false", name, param.name, shown, bool(value))
    if param.annotation in _WHOLE:
        whole = int(value) if type(value) is bool else [int(v) for v in value]
        return fault("E205 argument-int", name, param.name, shown, whole)
    if len(shown) > 30:
        shown = ""
    help = f"write `torch.tensor({shown or '...'})`"
    if name in ("maximum", "minimum") and type(value) is not list:
        limit = "min" if name == "maximum" else "max"
        help = f"write `torch.clamp(x, {limit}={shown})`, or {help.removeprefix('write ')}"
    what = f"{kind_of(value)} {shown}".rstrip()
    return fault("E205 argument-must-tensor", name, param.name, type(value).__name__, what, help)
