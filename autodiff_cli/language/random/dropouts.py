"""Layers that draw noise: the dropouts, `rrelu`, `gumbel_softmax` and fractional pooling.

Out of training, and with p = 0, an input comes back as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...autograd import calls
from ...autograd.batching.examples import drawn
from ...autograd.handles import wrap_view
from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.dtypes import is_float
from ...graph.op import constant, value_of
from ...graph.registry import F
from ...graph.state import STATE
from ..values.functions import guarded
from ..values.operations import flag, truth
from .generators import default_stream, stream_of
from .random_arguments import in_memory_order, number_argument, tensor_argument

Noise = Callable[[Tensor, float], Tensor]


def _noisy(
    name: str, input: Any, p: Any, training: Any, inplace: Any, noise: Noise, plain: bool = False
) -> Tensor:
    """The frame of all dropouts: checks, what draws nothing, and writing in place; `plain` for
    those of `torch`, which refuse another probability by another error."""
    tensor = tensor_argument(name, input)
    chance = number_argument(name, "p", p)
    if not 0 <= chance <= 1:
        raise fault("E205 needs-probability", name=name, chance=chance, plain=plain)
    if not flag("training", training) or chance == 0 or tensor.node.numel == 0:
        return tensor
    if not is_float(tensor.dtype):
        raise fault("E307 works-floating-point-numbers-2", name=name, x=tensor)
    if chance == 1:
        result = Tensor(F.mul(tensor.node, constant(np.zeros((), tensor.dtype))))
    else:
        result = noise(tensor, chance)
    if truth(inplace):  # what may not be written is refused after the draw
        tensor.write(result.node)
        return tensor
    return result


def _factor(tensor: Tensor, p: float) -> Tensor:
    stream = default_stream()
    if STATE.different:
        spread = drawn(tuple(tensor.shape), lambda shape: stream.dropout(shape, p, tensor.dtype))
        return Tensor(F.mul(tensor.node, spread))
    noise = in_memory_order(tensor.node, lambda shape: stream.dropout(shape, p, tensor.dtype))
    return Tensor(F.mul(tensor.node, constant(noise)))


def _feature_shape(name: str, tensor: Tensor) -> tuple[int, ...]:
    if len(tensor.shape) < 2:
        raise fault("E308 needs-least-dims-2", tuple(tensor.shape), name=name)
    return (*tensor.shape[:2], *(1 for _ in tensor.shape[2:]))


def _feature_factor(name: str) -> Noise:
    def noise(tensor: Tensor, p: float) -> Tensor:
        drawn = default_stream().dropout(_feature_shape(name, tensor), p, tensor.dtype)
        return Tensor(F.mul(tensor.node, constant(drawn)))

    return noise


def _affine(tensor: Tensor, factor: np.ndarray, summand: np.ndarray) -> Tensor:
    return Tensor(F.add(F.mul(tensor.node, constant(factor)), constant(summand)))


def _alpha(tensor: Tensor, p: float) -> Tensor:
    stream = default_stream()
    summands: list[np.ndarray] = []

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        factor, summand = stream.alpha_dropout(shape, p, tensor.dtype)
        summands.append(summand)
        return factor

    factor = in_memory_order(tensor.node, draw)
    summand = in_memory_order(tensor.node, lambda shape: summands[0])
    return _affine(tensor, factor, summand)


def _feature_alpha(tensor: Tensor, p: float) -> Tensor:
    shape = _feature_shape("feature_alpha_dropout", tensor)
    return _affine(tensor, *default_stream().alpha_dropout(shape, p, tensor.dtype))


def _dropout(name: str, noise: Noise, plain: bool, trains: bool = False) -> Callable[..., Tensor]:
    """One of the dropouts; `trains`: also where nobody says that it is training. Those of `torch`
    have other arguments, in programs of Python."""

    def functional(
        input: Any, p: Any = 0.5, training: Any = trains, inplace: Any = False
    ) -> Tensor:
        return _noisy(name, input, p, training, inplace, noise, plain)

    def own(input: Any, p: Any, train: Any) -> Tensor:
        return _noisy(name, input, p, train, False, noise, True)

    def run(*args: Any, **named: Any) -> Any:
        return guarded(name, own if STATE.python else functional, [*args], named)

    return run if plain else functional


def _channelwise(dims: int) -> Callable[..., Tensor]:
    name = f"dropout{dims}d"
    noise = _feature_factor(name)

    def run(input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Tensor:
        tensor = tensor_argument(name, input)
        ndim = len(tensor.shape)
        if dims == 1 and ndim not in (2, 3):
            raise fault("E308 dropout1d-needs-dims", tuple(tensor.shape))
        alone = ndim == 2 if dims == 1 else ndim != 5 if dims == 3 else False
        if not alone:
            return _noisy(name, tensor, p, training, inplace, noise)
        lifted = wrap_view(F.unsqueeze(tensor.node, 0), tensor)
        result = _noisy(name, lifted, p, training, inplace, noise)
        return wrap_view(F.squeeze(result.node, 0), result)

    return run


def _rrelu(
    input: Any, lower: Any = 1 / 8, upper: Any = 1 / 3, training: Any = False, inplace: Any = False
) -> Tensor:
    tensor = tensor_argument("rrelu", input)
    low, high = number_argument("rrelu", "lower", lower), number_argument("rrelu", "upper", upper)
    if truth(inplace):
        tensor.check_writable()
    if truth(training):
        noise = default_stream().rrelu(np.asarray(value_of(tensor.node)), low, high)
        result = Tensor(F.rrelu_with_noise(tensor.node, constant(noise), truth(inplace)))
    else:
        result = calls.call("nn.functional.rrelu", (tensor, low, high), {})
    if truth(inplace):
        calls.call_in_place(result.node)
        tensor.write(result.node, result.node)
        return tensor
    return result


def _gumbel_softmax(
    logits: Any, tau: Any = 1.0, hard: Any = False, eps: Any = 1e-10, dim: Any = -1
) -> Tensor:
    tensor = tensor_argument("gumbel_softmax", logits, "logits")
    stream = default_stream()
    waits = stream.exponential(tuple(tensor.shape), tensor.dtype)
    gumbels = F.neg(F.log(constant(waits)))
    scaled = F.div(F.add(tensor.node, gumbels), number_argument("gumbel_softmax", "tau", tau))
    soft = calls.call("softmax", (Tensor(scaled), dim), {})
    if not truth(hard):
        return soft
    best = calls.call("argmax", (soft, dim), {"keepdim": True})
    zeros = Tensor(F.zeros_like(soft.node))
    chosen = calls.call("scatter", (zeros, dim, best, 1.0), {})
    return Tensor(F.add(F.sub(chosen.node, F.detach(soft.node)), soft.node))


def _fractional(dims: int) -> Callable[..., Any]:
    name = f"fractional_max_pool{dims}d"

    def run(input: Any, *args: Any, **options: Any) -> Any:
        tensor = tensor_argument(name, input)
        if options.get("_random_samples") is None and len(tensor.shape) in (dims + 1, dims + 2):
            lead = tensor.shape[:-dims]
            shape = (*((1,) if len(lead) == 1 else ()), *lead, dims)
            stream = stream_of(None)
            options["_random_samples"] = Tensor(constant(stream.rand(shape, tensor.dtype)))
        return calls.call(f"nn.functional.{name}", (tensor, *args), options)

    return run


def functions(plain: bool) -> dict[str, Callable[..., Any]]:
    """The functions of `torch`, or those of `nn.functional`."""
    return {
        "dropout": _dropout("dropout", _factor, plain, True),
        "feature_dropout": _dropout(
            "feature_dropout", _feature_factor("feature_dropout"), plain, True
        ),
        "alpha_dropout": _dropout("alpha_dropout", _alpha, plain),
        "feature_alpha_dropout": _dropout("feature_alpha_dropout", _feature_alpha, plain),
        "dropout1d": _channelwise(1),
        "dropout2d": _channelwise(2),
        "dropout3d": _channelwise(3),
        "rrelu": _rrelu,
        "rrelu_": partial(_rrelu, inplace=True),
        "gumbel_softmax": _gumbel_softmax,
        "fractional_max_pool2d": _fractional(2),
        "fractional_max_pool3d": _fractional(3),
    }
