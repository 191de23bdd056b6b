"""Initial values: gains, fans, spreads, and normals within bounds, as `torch.nn.init` has them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...errors import fault
from .arguments import DType, Shape, checked_size, floating_dtype
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
        raise fault("E205 no-gain", nonlinearity)
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
    normal: Callable[..., np.ndarray] | None = None,
) -> np.ndarray:
    """Normals within [a, b] by rejection: of normals if enough of them fall there (which `normal`
    draws), else of uniforms. E506 when an unlikely interval needs too many rounds."""
    kind = floating_dtype(dtype, "trunc_normal_")
    if not (std > 0 and a <= b):
        raise fault("E205 trunc_normal-needs-std", std, a, b)
    inside = math.erf((b - mean) / std / math.sqrt(2.0)) - math.erf(
        (a - mean) / std / math.sqrt(2.0)
    )
    low, high = float(kind.type(a)), float(kind.type(b))
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    values = np.empty(checked_size(shape), kind)
    pending = np.ones(values.shape, np.bool_)
    for _ in range(MAX_ROUNDS):
        if inside / 2 > 0.3:
            drawn = (normal or generator.normal)(mean, std, shape, kind)
            beyond = (drawn < low) | (drawn > high)
        else:
            drawn = generator.uniform(shape, kind, a, b)
            density = ((drawn - kind.type(mean)) / kind.type(std)) ** 2 * kind.type(-0.5)
            with np.errstate(divide="ignore"):  # a uniform of exactly 0
                heights = np.log(generator.uniform(shape, kind))
            beyond = heights > density - kind.type(peak)
        values = np.where(pending, drawn, values)
        pending = pending & beyond
        if not pending.any():
            return values
    raise fault("E506 trunc_normal-found-no-values", a, b, mean, std)


def xavier_std(shape: Shape, gain: float) -> float:
    """The standard deviation of Glorot's initial values."""
    both = sum(fans(shape))
    if both == 0:
        raise fault("E309 no-fan-weight-shape", checked_size(shape))
    return gain * math.sqrt(2.0 / both)


def kaiming_std(
    shape: Shape, a: float, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> float:
    """The standard deviation of He's initial values."""
    choice = str(mode).lower()
    if choice not in ("fan_in", "fan_out"):
        raise fault("E205 fan-mode", mode)
    fan = fans(shape)[choice == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)
