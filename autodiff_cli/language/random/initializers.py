"""`torch.nn.init`: functions that write initial values into a tensor, unrecorded, and return it.

The numbers drawn are PyTorch's, in its order; orthogonal matrices agree to the rounding of the QR
factorisation.
"""

from __future__ import annotations

import math
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
from .random_arguments import (
    converted,
    in_memory_order,
    normal_,
    normals,
    number_argument,
    uniform_,
)


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

    node = target.node

    def normal(mean: float, std: float, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return normals(stream, node, shape, dtype, mean, std)

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        return initial_values.init_trunc_normal(
            stream, shape, dtype=node.dtype, normal=normal, **numbers
        )

    return _written(target, in_memory_order(node, draw))


def _spread(tensor: Tensor, std: float, normal: bool, generator: Any) -> Tensor:
    """Normals, or uniform numbers with that standard deviation."""
    if normal:
        return _normal(tensor, 0.0, std, generator)
    bound = math.sqrt(3.0) * std
    return _uniform(tensor, -bound, bound, generator)


def _xavier(name: str) -> Callable[..., Tensor]:
    def run(tensor: Any, gain: Any = 1.0, generator: Any = None) -> Tensor:
        target = _target(name, tensor)
        std = initial_values.xavier_std(target.shape, number_argument(name, "gain", gain))
        return _spread(target, std, "normal" in name, generator)

    return run


def _kaiming(name: str) -> Callable[..., Tensor]:
    def run(
        tensor: Any,
        a: Any = 0,
        mode: Any = "fan_in",
        nonlinearity: Any = "leaky_relu",
        generator: Any = None,
    ) -> Tensor:
        target = _target(name, tensor)
        slope = number_argument(name, "a", a)
        if 0 in target.shape:
            return _written(target, np.empty(target.shape))
        std = initial_values.kaiming_std(target.shape, slope, mode, nonlinearity)
        return _spread(target, std, "normal" in name, generator)

    return run


def _orthogonal(tensor: Any, gain: Any = 1, generator: Any = None) -> Tensor:
    """Orthonormal rows or columns, whichever are fewer, of the weight flattened to two dims."""
    target = _target("orthogonal_", tensor)
    factor = number_argument("orthogonal_", "gain", gain)
    size, kind = tuple(target.shape), target.dtype
    if len(size) < 2:
        raise fault("E308 orthogonal-needs-more-dimensions", size)
    if 0 in size:
        return _written(target, np.empty(size))
    flat = stream_of(generator).randn((size[0], math.prod(size[1:])), kind)
    wide = flat.shape[0] < flat.shape[1]
    q, r = np.linalg.qr(flat.T if wide else flat)
    q = q * np.sign(np.diag(r))  # makes the distribution uniform (Mezzadri, math-ph/0609050)
    return _written(target, (q.T if wide else q).reshape(size).astype(kind) * kind.type(factor))


def _sparse(tensor: Any, sparsity: Any, std: Any = 0.01, generator: Any = None) -> Tensor:
    """Normals with a share of zeros in every column; PyTorch draws the places of the zeros from its
    default generator whatever is passed for the values."""
    target = _target("sparse_", tensor)
    share = number_argument("sparse_", "sparsity", sparsity)
    width = number_argument("sparse_", "std", std)
    size = tuple(target.shape)
    if len(size) != 2:
        raise fault("E308 needs-two-dimensions", "sparse_", size, "shape (3, 5)")
    if not 0 <= share <= 1:
        raise fault("E205 sparse_-needs-share-zeros", share)
    values = stream_of(generator).normal(0.0, width, size, target.dtype)
    for column in range(size[1]):
        zeros = default_stream().randperm(size[0])[: math.ceil(share * size[0])]
        values[zeros, column] = 0
    return _written(target, values)


def _constant(name: str, tensor: Any, val: Any) -> Tensor:
    target = _target(name, tensor)
    value = number_argument(name, "val", val)
    return _written(target, np.full(target.shape, value, target.dtype))


def _dirac(tensor: Any, groups: Any = 1) -> Tensor:
    """A convolution weight that passes its channels through."""
    target = _target("dirac_", tensor)
    count = converted("dirac_", "groups", to_int, groups)
    size = tuple(target.shape)
    if len(size) not in (3, 4, 5):
        raise fault("E308 dirac-needs-dimensions-not", size)
    if count < 1 or size[0] % count:
        raise fault("E205 dirac_-channels-do-not", size[0], count)
    values = np.zeros(size)
    per_group = size[0] // count
    middle = tuple(length // 2 for length in size[2:])
    for group in range(count):
        for channel in range(min(per_group, size[1])):
            values[(group * per_group + channel, channel, *middle)] = 1
    return _written(target, values)


def _eye(tensor: Any) -> Tensor:
    target = _target("eye_", tensor)
    size = tuple(target.shape)
    if len(size) != 2:
        raise fault("E308 needs-two-dimensions", "eye_", size, "shape (3, 3)")
    return _written(target, np.eye(*size))


def _gain(nonlinearity: Any, param: Any = None) -> float:
    if not isinstance(nonlinearity, str):
        raise fault("E205 calculate_gain-takes-name", kind_of(nonlinearity))
    if nonlinearity == "leaky_relu" and type(param) not in (int, float, type(None)):
        raise fault("E205 negative_slope-not-valid-number", str(param)[:40])
    return initial_values.calculate_gain(nonlinearity, param)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "uniform_": _uniform,
    "normal_": _normal,
    "trunc_normal_": _trunc_normal,
    "constant_": lambda tensor, val: _constant("constant_", tensor, val),
    "ones_": lambda tensor: _constant("ones_", tensor, 1.0),
    "zeros_": lambda tensor: _constant("zeros_", tensor, 0.0),
    "eye_": _eye,
    "dirac_": _dirac,
    "xavier_uniform_": _xavier("xavier_uniform_"),
    "xavier_normal_": _xavier("xavier_normal_"),
    "kaiming_uniform_": _kaiming("kaiming_uniform_"),
    "kaiming_normal_": _kaiming("kaiming_normal_"),
    "orthogonal_": _orthogonal,
    "sparse_": _sparse,
    "calculate_gain": _gain,
}

# PyTorch's older names of functions that write in place.
FUNCTIONS.update({name: FUNCTIONS[f"{name}_"] for name in INITIALIZERS if f"{name}_" in FUNCTIONS})
