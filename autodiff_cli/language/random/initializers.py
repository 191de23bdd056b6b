"""`torch.nn.init`: functions that write initial values into a tensor, unrecorded, and return it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.random import initial_values
from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.op import constant
from ...graph.params import to_int
from ...graph.state import grad_mode
from ..values.dialect import kind_of
from .generators import default_stream, stream_of
from .names import INITIALIZERS
from .random_arguments import converted, normal_, number_argument, uniform_


def _target(name: str, tensor: Any) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise fault("E205 writes-into-tensor", kind_of(tensor), name=name)
    return tensor


def _written(tensor: Tensor, values: np.ndarray) -> Tensor:
    with grad_mode(False):
        tensor.write(constant(np.asarray(values, tensor.dtype, order="C")))
    return tensor


def _uniform(tensor: Any, a: Any = 0.0, b: Any = 1.0, generator: Any = None) -> Tensor:
    with grad_mode(False):
        return uniform_(_target("uniform_", tensor), a, b, generator=generator)


def _normal(tensor: Any, mean: Any = 0.0, std: Any = 1.0, generator: Any = None) -> Tensor:
    with grad_mode(False):
        return normal_(_target("normal_", tensor), mean, std, generator=generator)


def _trunc_normal(
    tensor: Any, mean: Any = 0.0, std: Any = 1.0, a: Any = -2.0, b: Any = 2.0, generator: Any = None
) -> Tensor:
    target = _target("trunc_normal_", tensor)
    given = {"mean": mean, "std": std, "a": a, "b": b}
    numbers = {key: number_argument("trunc_normal_", key, value) for key, value in given.items()}
    stream = stream_of(generator)
    values = initial_values.init_trunc_normal(stream, target.shape, dtype=target.dtype, **numbers)
    return _written(target, values)


def _xavier(name: str, make: Callable[..., np.ndarray]) -> Callable[..., Tensor]:
    def run(tensor: Any, gain: Any = 1.0, generator: Any = None) -> Tensor:
        target = _target(name, tensor)
        return _written(
            target,
            make(
                stream_of(generator),
                target.shape,
                number_argument(name, "gain", gain),
                dtype=target.dtype,
            ),
        )

    return run


def _kaiming(name: str, make: Callable[..., np.ndarray]) -> Callable[..., Tensor]:
    def run(
        tensor: Any,
        a: Any = 0,
        mode: Any = "fan_in",
        nonlinearity: Any = "leaky_relu",
        generator: Any = None,
    ) -> Tensor:
        target = _target(name, tensor)
        slope = number_argument(name, "a", a)
        return _written(
            target,
            make(stream_of(generator), target.shape, slope, mode, nonlinearity, dtype=target.dtype),
        )

    return run


def _orthogonal(tensor: Any, gain: Any = 1, generator: Any = None) -> Tensor:
    target = _target("orthogonal_", tensor)
    factor = number_argument("orthogonal_", "gain", gain)
    return _written(
        target,
        initial_values.init_orthogonal(
            stream_of(generator), target.shape, factor, dtype=target.dtype
        ),
    )


def _sparse(tensor: Any, sparsity: Any, std: Any = 0.01, generator: Any = None) -> Tensor:
    target = _target("sparse_", tensor)
    share, width = (
        number_argument("sparse_", "sparsity", sparsity),
        number_argument("sparse_", "std", std),
    )
    values = initial_values.init_sparse(
        stream_of(generator),
        target.shape,
        share,
        width,
        target.dtype,
        permutations=default_stream(),
    )
    return _written(target, values)


def _constant(tensor: Any, val: Any) -> Tensor:
    target = _target("constant_", tensor)
    return _written(
        target,
        initial_values.init_constant(
            target.shape, number_argument("constant_", "val", val), target.dtype
        ),
    )


def _dirac(tensor: Any, groups: Any = 1) -> Tensor:
    target = _target("dirac_", tensor)
    return _written(
        target,
        initial_values.init_dirac(
            target.shape, converted("dirac_", "groups", to_int, groups), target.dtype
        ),
    )


def _eye(tensor: Any) -> Tensor:
    target = _target("eye_", tensor)
    return _written(target, initial_values.init_eye(target.shape, target.dtype))


def _gain(nonlinearity: Any, param: Any = None) -> float:
    if not isinstance(nonlinearity, str):
        raise fault("E205 calculate_gain-takes-name", kind_of(nonlinearity))
    if nonlinearity == "leaky_relu" and type(param) not in (int, float, type(None)):
        raise fault("E205 negative_slope-not-valid-number", str(param)[:40])
    return initial_values.calculate_gain(
        nonlinearity, None if param is None else number_argument("calculate_gain", "param", param)
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "uniform_": _uniform,
    "normal_": _normal,
    "trunc_normal_": _trunc_normal,
    "constant_": _constant,
    "ones_": lambda tensor: _constant(tensor, 1.0),
    "zeros_": lambda tensor: _constant(tensor, 0.0),
    "eye_": _eye,
    "dirac_": _dirac,
    "xavier_uniform_": _xavier("xavier_uniform_", initial_values.init_xavier_uniform),
    "xavier_normal_": _xavier("xavier_normal_", initial_values.init_xavier_normal),
    "kaiming_uniform_": _kaiming("kaiming_uniform_", initial_values.init_kaiming_uniform),
    "kaiming_normal_": _kaiming("kaiming_normal_", initial_values.init_kaiming_normal),
    "orthogonal_": _orthogonal,
    "sparse_": _sparse,
    "calculate_gain": _gain,
}

# PyTorch's older names of functions that write in place.
FUNCTIONS.update({name: FUNCTIONS[f"{name}_"] for name in INITIALIZERS if f"{name}_" in FUNCTIONS})
