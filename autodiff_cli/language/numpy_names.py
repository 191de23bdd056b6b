"""NumPy's names: ops under other names, and what takes lists and gives arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..autograd.tensor import Tensor
from ..errors import AutodiffError, fail
from ..graph.dtypes import FLOAT64
from ..graph.registry import overloads
from .builtins import TYPES
from .kinds import MODE
from .values import Builtin, Namespace

CONSTANTS: dict[str, Any] = {
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
}

# NumPy's names of ops; keywords are translated when arguments are bound.
NUMPY: dict[str, str] = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "absolute": "abs",
    "fabs": "abs",
    "power": "pow",
    "concatenate": "cat",
    "concat": "cat",
    "mod": "remainder",
    "amax": "amax",
    "amin": "amin",
    "expand_dims": "unsqueeze",
    "transpose": "permute",
    "around": "round",
    "rint": "round",
    "invert": "bitwise_not",
    "matmul": "matmul",
    "swapaxes": "transpose",
    "moveaxis": "movedim",
    "broadcast_to": "broadcast_to",
    "true_divide": "true_divide",
    "float_power": "float_power",
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "cumulative_sum": "cumsum",
    "product": "prod",
    "fix": "trunc",
    "clip": "clamp",
    "array_split": "tensor_split",
    "vecdot": "linalg.vecdot",
    "inv": "linalg.inv",
    "norm": "linalg.norm",
    "det": "linalg.det",
    "solve": "linalg.solve",
    "ascontiguousarray": "contiguous",
    "row_stack": "vstack",
    "sum": "sum",
    "mean": "mean",
    "max": "amax",
    "min": "amin",
    "nan_to_num": "nan_to_num",
}
NUMPY_ONLY_BARE = frozenset(NUMPY) - {
    "transpose",
    "sum",
    "mean",
    "max",
    "min",
    "norm",
    "inv",
    "det",
    "solve",
    "mod",
    "vecdot",
}


def numpy_member(prefix: str, name: str) -> Any:
    if prefix == "np" and name == "linalg":
        return Namespace("np.linalg")
    if prefix == "np.random":
        from .numpy_random import RANDOM as NUMPY_RANDOM

        return NUMPY_RANDOM.get(name)
    if prefix == "np" and name == "random":
        return Namespace("np.random")
    if prefix == "np.linalg":
        ops = overloads(f"linalg.{name}")
        return Builtin(name, numpy_function(name, ops)) if ops else None
    found = CONSTANTS.get(name)
    if found is not None:
        return found
    from .torch_names import NUMPY_FUNCTIONS, TORCH

    found = NUMPY_FUNCTIONS.get(name)
    if found is not None:
        return found
    if name == "ndarray":
        return TYPES["ndarray"]
    if MODE.python:
        from .arrays import FUNCTIONS as ARRAY_FUNCTIONS

        if name in ARRAY_FUNCTIONS:
            return ARRAY_FUNCTIONS[name]
    dtype = TORCH.get(name.rstrip("_"))
    if (
        dtype is not None
        and not isinstance(dtype, Builtin)
        and name.rstrip("_")
        in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
    ):
        return dtype
    ops = overloads(NUMPY.get(name, name))
    if ops and name not in ("fromfile", "load", "save"):
        return Builtin(name, numpy_function(name, ops))
    return None


def _is_data(value: Any) -> bool:
    """Numbers that are to become an array; a list of arrays stays one."""
    if isinstance(value, list):
        return not any(isinstance(item, Tensor) for item in value)
    return isinstance(value, float)


def numpy_function(name: str, ops: list[Any]) -> Callable[..., Any]:
    """An op under NumPy's name. In a Python snippet it takes numbers and lists too, computes in
    float64, and what it makes of them and of NumPy arrays is an array or a number again."""
    from ..autograd import calls
    from .arrays import result as as_result
    from .torch_names import NUMPY_FUNCTIONS

    makes = ops[0].family == "creation" and "dtype" in ops[0].index
    array = NUMPY_FUNCTIONS["array"].function

    def run(*args: Any, **kwargs: Any) -> Any:
        if not MODE.python or any(isinstance(a, Tensor) and a.tag != "numpy" for a in args):
            if MODE.python and any(isinstance(a, Tensor) and a.requires_grad for a in args):
                raise fail(
                    "E402",
                    "numpy() cannot be called on a tensor that requires grad, and that is what "
                    f"`np.{name}` does",
                    help=f"write `torch.{name}`, or `np.{name}(x.detach().numpy())`",
                )
            return calls.call_ops(ops, name, args, kwargs)
        if makes:
            if name != "arange" or any(isinstance(a, float) for a in args):
                kwargs.setdefault("dtype", FLOAT64)
            result = calls.call_ops(ops, name, args, kwargs)
        else:
            given = [array(a) if _is_data(a) else a for a in args]
            if given and isinstance(given[0], int):
                given[0] = array(float(given[0]))
            try:
                result = calls.call_ops(ops, name, tuple(given), kwargs)
            except AutodiffError as error:
                if error.code != "E307":
                    raise
                given = [array(a, FLOAT64) if isinstance(a, Tensor) else a for a in given]
                result = calls.call_ops(ops, name, tuple(given), kwargs)
        return as_result(result)

    return run
