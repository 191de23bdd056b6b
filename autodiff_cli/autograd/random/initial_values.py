"""Initial values: `torch.nn.init`, each returning the array that PyTorch would write.

The numbers drawn are PyTorch's, in its order (source: `nn/init.py`); orthogonal matrices agree to
the rounding of the QR factorisation.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import fail, fault
from .arguments import DType, Shape, checked_size, floating_dtype, wrong_argument
from .stream import Generator

MAX_ROUNDS = 10_000  # of rejection sampling, each over the whole tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """`nn.init.calculate_gain`; E205 for an unknown name."""
    if nonlinearity in ("linear", "sigmoid") or nonlinearity in _CONVOLUTIONS:
        return 1
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise wrong_argument(f"no gain is known for {nonlinearity!r:.60}", 'nonlinearity="relu"')
    return gains[nonlinearity]


_CONVOLUTIONS = {f"conv{kind}{dims}d" for kind in ("", "_transpose") for dims in (1, 2, 3)}


def fans(shape: Shape) -> tuple[int, int]:
    """Fan in and fan out of a weight of two or more dims; E308 for fewer."""
    size = checked_size(shape)
    if len(size) < 2:
        raise fault("E308 fan-fan-out-need", size)
    field = math.prod(size[2:])
    return size[1] * field, size[0] * field


def init_trunc_normal(
    generator: Generator,
    shape: Shape,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    dtype: DType = np.float32,
) -> np.ndarray:
    """Normals within [a, b] by rejection: of normals if enough of them fall there, else of
    uniforms. E506 when an unlikely interval needs too many rounds."""
    kind = floating_dtype(dtype, "trunc_normal_")
    if not (std > 0 and a <= b):
        raise wrong_argument(
            f"trunc_normal_ needs std > 0 and a <= b, not {std}, {a}, {b}", "std=0.02"
        )
    inside = math.erf((b - mean) / std / math.sqrt(2.0)) - math.erf(
        (a - mean) / std / math.sqrt(2.0)
    )
    if inside / 2 > 0.3:
        low, high = float(kind.type(a)), float(kind.type(b))
        values = generator.normal(mean, std, shape, kind)
        for _ in range(MAX_ROUNDS):
            pending = (values < low) | (values > high)
            if not pending.any():
                return values
            values = np.where(pending, generator.normal(mean, std, shape, kind), values)
    else:
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
        values = np.empty(checked_size(shape), kind)
        pending = np.ones(values.shape, np.bool_)
        for _ in range(MAX_ROUNDS):
            drawn = generator.uniform(shape, kind, a, b)
            values = np.where(pending, drawn, values)
            density = ((drawn - kind.type(mean)) / kind.type(std)) ** 2 * kind.type(-0.5)
            with np.errstate(divide="ignore"):  # a uniform of exactly 0
                heights = np.log(generator.uniform(shape, kind))
            pending = pending & (heights > density - kind.type(peak))
            if not pending.any():
                return values
    raise fault("E506 trunc_normal-found-no-values", a, b, mean, std)


def init_xavier_uniform(
    generator: Generator, shape: Shape, gain: float = 1.0, dtype: DType = np.float32
) -> np.ndarray:
    bound = math.sqrt(3.0) * _xavier(shape, gain)
    return generator.uniform(shape, dtype, -bound, bound)


def init_xavier_normal(
    generator: Generator, shape: Shape, gain: float = 1.0, dtype: DType = np.float32
) -> np.ndarray:
    return generator.normal(0.0, _xavier(shape, gain), shape, dtype)


def _xavier(shape: Shape, gain: float) -> float:
    both = sum(fans(shape))
    if both == 0:
        raise fault("E309 no-fan-weight-shape", checked_size(shape))
    return gain * math.sqrt(2.0 / both)


def init_kaiming_uniform(
    generator: Generator,
    shape: Shape,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    dtype: DType = np.float32,
) -> np.ndarray:
    if 0 in checked_size(shape):
        return np.empty(checked_size(shape), dtype)
    bound = math.sqrt(3.0) * _kaiming(shape, a, mode, nonlinearity)
    return generator.uniform(shape, dtype, -bound, bound)


def init_kaiming_normal(
    generator: Generator,
    shape: Shape,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    dtype: DType = np.float32,
) -> np.ndarray:
    if 0 in checked_size(shape):
        return np.empty(checked_size(shape), dtype)
    return generator.normal(0.0, _kaiming(shape, a, mode, nonlinearity), shape, dtype)


def _kaiming(shape: Shape, a: float, mode: str, nonlinearity: str) -> float:
    choice = str(mode).lower()
    if choice not in ("fan_in", "fan_out"):
        raise wrong_argument(f"the mode is fan_in or fan_out, not {mode!r:.60}", 'mode="fan_in"')
    fan = fans(shape)[choice == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def init_orthogonal(
    generator: Generator, shape: Shape, gain: float = 1.0, dtype: DType = np.float32
) -> np.ndarray:
    """Orthonormal rows or columns, whichever are fewer, of the weight flattened to two dims."""
    size = checked_size(shape)
    if len(size) < 2:
        raise fault("E308 orthogonal-needs-more-dimensions", size)
    if 0 in size:
        return np.empty(size, dtype)
    flat = generator.randn((size[0], math.prod(size[1:])), dtype)
    wide = flat.shape[0] < flat.shape[1]
    q, r = np.linalg.qr(flat.T if wide else flat)
    q = q * np.sign(np.diag(r))  # makes the distribution uniform (Mezzadri, math-ph/0609050)
    kind = np.dtype(dtype)
    return (q.T if wide else q).reshape(size).astype(kind) * kind.type(gain)


def init_sparse(
    generator: Generator,
    shape: Shape,
    sparsity: float,
    std: float = 0.01,
    dtype: DType = np.float32,
    permutations: Generator | None = None,
) -> np.ndarray:
    """Normals with a share of zeros in every column.

    PyTorch draws the places of the zeros from its default generator even when another one is
    passed for the values; that one can be given as `permutations`.
    """
    size = checked_size(shape)
    if len(size) != 2:
        raise fail("E308", f"sparse_ needs 2 dimensions, not shape {size}", help="shape (3, 5)")
    if not 0 <= sparsity <= 1:
        raise wrong_argument(
            f"sparse_ needs a share of zeros in [0, 1], not {sparsity}", "sparsity=0.1"
        )
    values = generator.normal(0.0, std, size, dtype)
    zeros = math.ceil(sparsity * size[0])
    for column in range(size[1]):
        values[(permutations or generator).randperm(size[0])[:zeros], column] = 0
    return values


def init_constant(shape: Shape, value: float, dtype: DType = np.float32) -> np.ndarray:
    return np.full(checked_size(shape, dtype), value, dtype)


def init_eye(shape: Shape, dtype: DType = np.float32) -> np.ndarray:
    size = checked_size(shape, dtype)
    if len(size) != 2:
        raise fail("E308", f"eye_ needs 2 dimensions, not shape {size}", help="shape (3, 3)")
    return np.eye(*size, dtype=dtype)


def init_dirac(shape: Shape, groups: int = 1, dtype: DType = np.float32) -> np.ndarray:
    """A convolution weight that passes its channels through."""
    size = checked_size(shape, dtype)
    if len(size) not in (3, 4, 5):
        raise fault("E308 dirac-needs-dimensions-not", size)
    if groups < 1 or size[0] % groups:
        raise wrong_argument(f"dirac_: {size[0]} channels do not make {groups} groups", "groups=1")
    values = np.zeros(size, dtype)
    per_group = size[0] // groups
    middle = tuple(length // 2 for length in size[2:])
    for group in range(groups):
        for channel in range(min(per_group, size[1])):
            values[(group * per_group + channel, channel, *middle)] = 1
    return values
