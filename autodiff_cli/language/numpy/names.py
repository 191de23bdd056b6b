"""NumPy's names: ops under other names, and what takes lists and gives arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from ...autograd import calls
from ...autograd.tensor import Array, Tensor
from ...errors import AutodiffError, fault
from ...graph.dtypes import BOOL, FLOAT64
from ...graph.registry import overloads
from ...graph.state import STATE
from ..python.builtins import TYPES
from ..values.arrays import FUNCTIONS as ARRAY_FUNCTIONS
from ..values.arrays import as_numpy, computed
from ..values.arrays import result as as_result
from ..values.providers import Names
from ..values.values import Builtin, Namespace

CONSTANTS: dict[str, Any] = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}

_ARCS = "sin cos tan tan2 sinh cosh tanh"
_AS_THEY_ARE = "amax amin matmul broadcast_to true_divide float_power sum mean nan_to_num"

# NumPy's names of ops; keywords are translated when arguments are bound.
NUMPY: dict[str, str] = {
    **{f"arc{name}": f"a{name}" for name in _ARCS.split()},
    **{name: name for name in _AS_THEY_ARE.split()},
    "absolute": "abs", "fabs": "abs", "power": "pow", "concatenate": "cat", "concat": "cat",
    "mod": "remainder", "expand_dims": "unsqueeze", "transpose": "permute", "around": "round",
    "rint": "round", "invert": "bitwise_not", "swapaxes": "transpose", "moveaxis": "movedim",
    "degrees": "rad2deg", "radians": "deg2rad", "cumulative_sum": "cumsum", "product": "prod",
    "fix": "trunc", "clip": "clamp", "array_split": "tensor_split", "split": "tensor_split",
    "vecdot": "linalg.vecdot", "inv": "linalg.inv", "norm": "linalg.norm", "det": "linalg.det",
    "solve": "linalg.solve", "ascontiguousarray": "contiguous", "row_stack": "vstack",
    "max": "amax", "min": "amin", "dot": "matmul",
}  # fmt: skip
_NOT_BARE = "split transpose sum mean max min norm inv det solve mod vecdot dot"
NUMPY_ONLY_BARE = frozenset(NUMPY) - set(_NOT_BARE.split())


# What NumPy computes itself.
_COMPUTED = """
    add subtract multiply divide true_divide floor_divide power float_power mod remainder fmod
    maximum minimum fmax fmin exp exp2 expm1 log log2 log10 log1p sqrt square cbrt reciprocal abs
    absolute fabs negative sign sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh
    arccosh arctanh hypot floor ceil trunc rint isnan isinf isfinite logical_and logical_or
    logical_not logical_xor equal not_equal less less_equal greater greater_equal logaddexp deg2rad
    rad2deg degrees radians heaviside copysign bitwise_and bitwise_or bitwise_xor invert sinc fix
    sum mean std var max min amax amin prod argmax argmin cumsum cumprod sort argsort median ptp any
    all count_nonzero average nanmean nansum nanmax nanmin nanstd trace diff clip round around
    concatenate concat stack vstack hstack dstack column_stack triu tril unique percentile quantile
    histogram searchsorted digitize polyfit polyval interp corrcoef cov bincount array_equal isclose
    nan_to_num nonzero argwhere flatnonzero copy append delete insert isin roll convolve gradient
    cross take where flip fliplr flipud rot90 shape size ndim
    pad tile repeat outer kron dot matmul inner diag meshgrid
    zeros ones full empty eye identity tri linspace logspace geomspace
    zeros_like ones_like full_like empty_like
    linalg.norm linalg.inv linalg.det linalg.solve linalg.eigh linalg.eigvalsh linalg.svd linalg.qr
    linalg.cholesky linalg.pinv linalg.lstsq linalg.matrix_rank linalg.slogdet linalg.eig
    linalg.eigvals
"""
COMPUTED = frozenset(_COMPUTED.split())
# What looks at its argument's memory, or is an op of the same name and arguments.
_SAME = """
    reshape transpose expand_dims squeeze swapaxes moveaxis ravel broadcast_to diagonal
    ascontiguousarray split array_split hsplit vsplit dsplit atleast_1d atleast_2d atleast_3d einsum
    tensordot vdot
"""
SAME = frozenset(_SAME.split())
PRODUCTS = frozenset({"einsum", "tensordot", "vdot"})  # which NumPy would compute, in any memory

# NumPy's names of dtypes.
NUMPY_DTYPES: dict[str, str] = {
    **{name: name for name in ("float64", "float32", "float16", "int64", "int32", "int16", "int8",
                               "uint8", "bool")},
    "bool_": "bool", "double": "float64", "single": "float32", "half": "float16", "long": "int64",
    "int_": "int64", "intc": "int32", "longlong": "int64", "short": "int16", "byte": "int8",
    "ubyte": "uint8",
}  # fmt: skip


def _member(path: str) -> Any:
    """What a path below `np.` stands for."""
    if path in ("linalg", "random", "exceptions"):
        return Namespace(f"np.{path}")
    prefix, _, name = path.rpartition(".")
    if path in ("linalg.LinAlgError", "exceptions.AxisError"):
        from ..values.exceptions import EXCEPTIONS

        return EXCEPTIONS[name]
    if prefix == "random":
        from .random import RANDOM

        return RANDOM.get(name)
    if prefix:
        ops = overloads(path)
        known = path in COMPUTED if STATE.python else bool(ops)
        return Builtin(name, numpy_function(path, ops)) if known else None
    found = CONSTANTS.get(name)
    if found is not None:
        return found
    from .functions import NUMPY_FUNCTIONS

    found = NUMPY_FUNCTIONS.get(name)
    if found is not None:
        return found
    if name == "ndarray":
        return TYPES["numpy.ndarray"]
    if STATE.python and name in ARRAY_FUNCTIONS:
        return ARRAY_FUNCTIONS[name]
    if name in NUMPY_DTYPES:
        return TYPES[f"numpy.{NUMPY_DTYPES[name]}"]
    if name in ("integer", "floating", "number", "generic"):
        return TYPES[f"numpy.{name}"]
    ops = overloads(NUMPY.get(name, name))
    known = name in COMPUTED or name in SAME if STATE.python else bool(ops)
    return Builtin(name, numpy_function(name, ops)) if known else None


MEMBERS = Names(lambda: NUMPY, _member)


def _is_data(value: Any) -> bool:
    """Numbers that are to become an array; a list of arrays stays one."""
    if isinstance(value, list):
        return not any(isinstance(item, Tensor) for item in value)
    return isinstance(value, float)


def numpy_function(name: str, ops: list[Any]) -> Callable[..., Any]:
    """An op under NumPy's name. In a Python snippet it takes numbers and lists too, computes in
    float64, and what it makes of them and of NumPy arrays is an array or a number again."""
    from .functions import NUMPY_FUNCTIONS, VIEWS

    array = NUMPY_FUNCTIONS["array"].function
    view = VIEWS.get(name)
    own: Any = computed(name) if STATE.python else None

    def run(*args: Any, **kwargs: Any) -> Any:
        if not STATE.python:
            return calls.call_ops(ops, name, args, kwargs)
        if view is not None and args and type(args[0]) is Array:
            return view(*args, **kwargs)
        tensors = [a for a in args if type(a) is Tensor]
        if name == "reshape" and tensors and not (args[0].requires_grad or args[0].dtype == BOOL):
            return calls.call_ops(ops, name, args, kwargs)  # the memory is the tensor's
        if name in COMPUTED or tensors:
            try:
                return own(*args, **kwargs)
            except AutodiffError as error:
                if error.which != "E402 numpy-cannot-called-tensor-requires":
                    raise
                raise fault("E402 numpy-cannot-called-tensor", name=name) from None
        given = [array(a) if _is_data(a) else a for a in args]
        if given and isinstance(given[0], int):
            given[0] = array(given[0])
        try:
            with (
                nullcontext() if name in PRODUCTS else as_numpy(getattr(np, name), *args, **kwargs)
            ):
                result = calls.call_ops(ops, name, tuple(given), kwargs)
        except AutodiffError as error:
            if error.code != "E307":
                raise
            given = [array(a, FLOAT64) if isinstance(a, Tensor) else a for a in given]
            result = calls.call_ops(ops, name, tuple(given), kwargs)
        if isinstance(result, tuple):  # parts
            if name == "split" and type(given[1]) is int and len({x.shape for x in result}) > 1:
                raise fault("E308 array-split-equal", given[1])
            return list(map(as_result, result))
        return as_result(result)

    return run
