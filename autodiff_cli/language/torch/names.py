"""Names below `torch.` that are no ops: factories, grad modes, settings, `autograd`, dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd import calls, gradients, printing
from ...autograd.handles import wrap_view
from ...autograd.tensor import Array, Tensor, new_leaf
from ...errors import fault
from ...graph.dtypes import DTYPES, is_float, result_dtype
from ...graph.params import to_dtype, to_size, to_tensor
from ...graph.registry import F, overloads
from ...graph.shapes import broadcast_shapes
from ...graph.state import STATE
from ..numpy.functions import allclose, finfo, iinfo
from ..python.builtins import TENSOR_TYPE, TYPES
from ..python.loading import load
from ..runtime.assertions import Approx
from ..runtime.attributes import METHODS
from ..runtime.names import of_a_tensor
from ..values.dialect import kind_of, misfit
from ..values.factories import (
    LEGACY_NAMES,
    UNINITIALIZED,
    Uninitialized,
    as_tensor,
    const,
    legacy_dtype,
    legacy_tensor,
    make_tensor,
    parameter,
)
from ..values.functions import call_op, decorated
from ..values.operations import is_edge, items_of, tensors_of, truth
from ..values.plain_operands import refuse_plain
from ..values.tensor_memory import as_strided
from ..values.values import STRIDED, Builtin, GradMode, OpFunction, Size, TypeName, builtins_of


def _seeds(value: Any, count: int) -> list[Tensor | None]:
    if value is None:
        return [None] * count
    values = [value] if isinstance(value, Tensor) else items_of(value)
    if len(values) < count:
        raise fault("E205 grad_outputs-entries-outputs", len(values), count=count)
    for value in values:
        if value is not None and not isinstance(value, Tensor):
            raise fault("E208 gradient-tensor-none", kind_of(value), type(value).__name__)
    return values


def _grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    only_inputs: Any = True,
    allow_unused: Any = None,
    is_grads_batched: Any = False,
    materialize_grads: Any = False,
) -> Any:
    outs = tensors_of(outputs, "outputs")
    if isinstance(inputs, list | tuple) and not inputs:
        raise fault("E205 grad-needs-least-input")
    materialize = truth(materialize_grads)
    unused = materialize if allow_unused is None else truth(allow_unused)
    if materialize and not unused:
        raise fault("E205 grad-cannot-give-zeros")
    grad = gradients.grad
    if truth(is_grads_batched):
        from ...autograd.transforms.functions import batched_grad as grad
    given = tensors_of(inputs, "inputs")
    found = grad(
        outs,
        given,
        _seeds(grad_outputs, len(outs)),
        retain_graph=None if retain_graph is None else truth(retain_graph),
        create_graph=truth(create_graph),
        allow_unused=unused,
    )
    if not materialize:
        return found
    edges = inputs if isinstance(inputs, list | tuple) and not is_edge(inputs) else [inputs]
    if any(g is None and is_edge(x) for g, x in zip(found, edges, strict=True)):
        raise fault("E205 edge-cannot-give-zeros")
    return tuple(
        _zeros(x, truth(create_graph)) if g is None else g
        for g, x in zip(found, given, strict=True)
    )


def _zeros(like: Tensor, requires_grad: bool) -> Tensor:
    return new_leaf(np.zeros(like.shape, like.dtype), requires_grad=requires_grad)


def _backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    outs = tensors_of(tensors, "tensors")
    gradients.backward(
        outs,
        _seeds(grad_tensors, len(outs)),
        retain_graph=None if retain_graph is None else truth(retain_graph),
        create_graph=truth(create_graph),
        inputs=None if inputs is None else tensors_of(inputs, "inputs"),
    )


def _set_grad_enabled(mode: Any) -> GradMode:
    enabled = truth(mode)
    result = GradMode("set_grad_enabled", enabled)
    result.before.append(STATE.grad)
    STATE.grad = enabled
    return result


def _set_default_dtype(dtype: Any) -> None:
    kind = to_dtype(dtype)
    if not is_float(kind):
        raise fault("E208 default-dtype-float-dtype", kind=kind)
    STATE.default_dtype = kind


def _asarray(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: Any = None,
    requires_grad: Any = None,
) -> Tensor:
    """`torch.asarray`: history stays unless something is said of `requires_grad`."""
    found = as_tensor(data, dtype, device)
    if copy is False and isinstance(data, Tensor) and found is not data and not data.tag:
        raise fault("E205 asarray-copy", data, found)
    if copy is True and isinstance(data, Tensor):
        found = calls.call("clone", (found,), {})
    if requires_grad is None:
        return found
    if not requires_grad and not found.is_leaf:
        return METHODS["detach"](found)
    return METHODS["requires_grad_"](found, requires_grad)


def _range(
    start: Any,
    end: Any,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: Any = False,
) -> Tensor:
    """`torch.range`: the end belongs to it."""
    last = start + (math.floor((end - start) / step) * step if step else 0)
    kind = STATE.default_dtype if dtype is None else to_dtype(dtype)
    found = Tensor(F.number_range(start, last + step / 2, step, kind))
    return METHODS["requires_grad_"](found, requires_grad)


def _set_printoptions(**options: Any) -> None:
    current = STATE.print_options
    STATE.print_options = printing.set_printoptions(
        **({} if current is None else {"options": current}), **options
    )


def _from_numpy(ndarray: Any) -> Tensor:
    if not isinstance(ndarray, Array) and STATE.python:
        raise fault("E208 from_numpy-array", kind_of(ndarray))
    return as_tensor(ndarray)


def _allclose(
    input: Any, other: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False
) -> bool:
    if STATE.python:
        refuse_plain(overloads("allclose"), "allclose", (input, other), {}, 0)
    return allclose(input, other, rtol, atol, equal_nan)


LOSSES_OF_ELEMENTS = (
    "cosine_embedding_loss",
    "ctc_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "triplet_margin_loss",
)


def _of_elements(name: str) -> Callable[..., Any]:
    """A loss without its layer (`torch.hinge_embedding_loss`): its reduction is the number of one,
    by itself 0, the losses of all elements."""

    def run(*args: Any, **kwargs: Any) -> Any:
        function = OpFunction(name, overloads(f"nn.functional.{name}"))
        if not STATE.python:  # a bare name is that of `nn.functional`
            return call_op(function, [*args], kwargs)
        names = [n for n in function.ops[0].index if n not in ("size_average", "reduce")]
        for unknown in kwargs.keys() - names:
            raise TypeError(f"{name}() got an unexpected keyword argument '{unknown}'")
        at = names.index("reduction")
        given, *more = args[at:] or (kwargs.pop("reduction", 0),)
        if type(given) is not int or not 0 <= given < 3 or len(args) > len(names):
            raise misfit(
                "`reduction` must be 0, 1 or 2 here, not", given, "1 is the mean, 2 the sum"
            )
        kwargs |= dict(zip(names[at + 1 :], more, strict=False))
        kwargs["reduction"] = ("none", "mean", "sum")[given]
        return call_op(function, [*args[:at]], kwargs)

    return run


def _result_type(a: Any, b: Any) -> np.dtype:
    nodes = [to_tensor(v) for v in (a, b)]
    return result_dtype([(n.dtype, not n.shape, n.weak) for n in nodes])


def _promote_types(type1: Any, type2: Any) -> np.dtype:
    return result_dtype([(to_dtype(t), False, False) for t in (type1, type2)])


def _broadcast_shapes(*shapes: Any) -> Size:
    sizes = [(s,) if isinstance(s, int) else tuple(to_size(s)) for s in shapes]
    return Size(broadcast_shapes(*sizes))


def _approx(
    value: Any,
    rtol: Any = None,
    atol: Any = None,
    nan_ok: Any = False,
    rel: Any = None,
    abs: Any = None,
) -> Any:
    return Approx(
        value, rel if rtol is None else rtol, abs if atol is None else atol, truth(nan_ok)
    )


def _legacy(dtype: str) -> TypeName:
    return TypeName(
        dtype,
        lambda v: isinstance(v, Tensor) and v.dtype == DTYPES[dtype],
        lambda *args: legacy_tensor(DTYPES[dtype], *args),
    )


def _mode(name: str, enabled: bool, inference: bool = False) -> Any:
    def make(mode: Any = True) -> GradMode:
        if callable(mode):
            return decorated(GradMode(name, enabled, inference), [mode])
        return GradMode(name, enabled is truth(mode), inference)

    return make


TENSOR_TYPE.make = lambda *args, device=None: legacy_tensor(STATE.default_dtype, *args)
PARAMETER_TYPE = TypeName(
    "torch.nn.parameter.Parameter", lambda v: isinstance(v, Tensor) and v.is_parameter, parameter
)


def _variable(data: Any, requires_grad: Any = False, volatile: Any = False) -> Tensor:
    """`Variable(x)`: a leaf that shares the memory of a tensor."""
    if not isinstance(data, Tensor):
        raise fault("E208 what-tensors", kind_of(data), what="data")
    shared = wrap_view(F.detach(data.looked_at), data)
    shared.set_requires_grad(truth(requires_grad))
    return shared


VARIABLE_TYPE = TypeName(
    "torch.autograd.variable.Variable", lambda v: isinstance(v, Tensor), _variable
)

TORCH: dict[str, Any] = {
    **DTYPES,
    "autograd.Variable": VARIABLE_TYPE,
    **builtins_of(
        {
            "tensor": make_tensor,
            "as_tensor": as_tensor,
            "asarray": _asarray,
            "from_numpy": _from_numpy,
            "is_tensor": lambda value: isinstance(value, Tensor),
            "is_floating_point": lambda value: is_float(value.dtype),
            "is_grad_enabled": lambda: STATE.grad or STATE.silenced,
            "numel": lambda tensor: tensor.looked_at.numel,
            "set_default_dtype": _set_default_dtype,
            "get_default_dtype": lambda: STATE.default_dtype,
            "set_default_tensor_type": lambda t: _set_default_dtype(legacy_dtype(t)),
            "set_printoptions": _set_printoptions,
            "set_grad_enabled": _set_grad_enabled,
            "autograd.set_grad_enabled": _set_grad_enabled,
            "no_grad": _mode("no_grad", False),
            "inference_mode": _mode("inference_mode", False, True),
            "enable_grad": _mode("enable_grad", True),
            "autograd.no_grad": _mode("no_grad", False),
            "autograd.enable_grad": _mode("enable_grad", True),
            "autograd.grad": _grad,
            "autograd.backward": _backward,
            "finfo": finfo,
            "iinfo": iinfo,
            "allclose": _allclose,
            **{name: _of_elements(name) for name in LOSSES_OF_ELEMENTS},
            "range": _range,
            "result_type": _result_type,
            "broadcast_shapes": _broadcast_shapes,
            "promote_types": _promote_types,
            "use_deterministic_algorithms": lambda *args, **kwargs: None,
            "set_num_threads": lambda n: None,
        }
    ),
    "as_strided": of_a_tensor("as_strided", as_strided),
    "Tensor": TENSOR_TYPE,
    "nn.Parameter": PARAMETER_TYPE,
    "nn.parameter.Parameter": PARAMETER_TYPE,
    **{
        f"nn.{module}Uninitialized{kind}": name
        for kind, name in UNINITIALIZED.items()
        for module in ("", "parameter.")
    },
    "nn.parameter.is_lazy": Builtin("is_lazy", lambda value: type(value) is Uninitialized),
    "Size": TYPES["Size"],
    "device": TYPES["device"],
    "dtype": TYPES["dtype"],
    "pi": np.pi,
    "e": np.e,
    "inf": float("inf"),
    "nan": float("nan"),
    **{f"{name}Tensor": _legacy(dtype) for name, dtype in LEGACY_NAMES.items()},
    "strided": STRIDED,
    "contiguous_format": "contiguous_format",
    "preserve_format": "preserve_format",
}
del TORCH["float"], TORCH["int"], TORCH["bool"]
TORCH["float"], TORCH["int"], TORCH["bool"] = DTYPES["float32"], DTYPES["int32"], DTYPES["bool"]

# Bare names of native files beside the ops.
_NATIVE = """
    tensor as_tensor no_grad enable_grad set_grad_enabled inference_mode allclose
    set_default_dtype float64 float32 float16 int64 int32 int16 int8 uint8 double half long short
    Size set_printoptions numel
"""
NATIVE: dict[str, Any] = {
    **{name: TORCH[name] for name in _NATIVE.split()},
    **builtins_of(
        {
            "const": const,
            "load": lambda path, **options: load(path, **options),
            "approx": _approx,
            "Parameter": parameter,
            "array": lambda data, dtype=None: make_tensor(data, dtype=dtype),
            "asarray": as_tensor,
            "stop_gradient": const,
        }
    ),
    "Tensor": TENSOR_TYPE,
}
