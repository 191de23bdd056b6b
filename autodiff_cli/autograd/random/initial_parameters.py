"""Parameters of modules at construction, by PyTorch's names and in its order of drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import fault
from .arguments import DType, Shape, wrong_argument
from .initial_values import fans, init_kaiming_uniform
from .stream import Generator

Parameters = dict[str, np.ndarray]


def init_linear(
    generator: Generator,
    out_features: int,
    in_features: int,
    bias: bool = True,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.Linear`: weight, then bias."""
    return _weight_and_bias(generator, (out_features, in_features), out_features, bias, dtype)


def init_conv(
    generator: Generator,
    out_channels: int,
    in_channels: int,
    kernel_size: Sequence[int],
    groups: int = 1,
    bias: bool = True,
    transposed: bool = False,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.Conv1d/2d/3d` and `nn.ConvTranspose1d/2d/3d`, by the length of `kernel_size`."""
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise wrong_argument(
            f"{in_channels} input and {out_channels} output channels do not make {groups} groups",
            "groups=1",
        )
    ends = (in_channels, out_channels) if transposed else (out_channels, in_channels)
    shape = (ends[0], ends[1] // groups, *kernel_size)
    return _weight_and_bias(generator, shape, out_channels, bias, dtype)


def _weight_and_bias(
    generator: Generator, shape: tuple[int, ...], length: int, bias: bool, dtype: DType
) -> Parameters:
    made = {"weight": init_kaiming_uniform(generator, shape, a=math.sqrt(5), dtype=dtype)}
    if bias:
        fan_in = fans(shape)[0]
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        made["bias"] = generator.uniform(length, dtype, -bound, bound)
    return made


def init_bilinear(
    generator: Generator,
    out_features: int,
    in1_features: int,
    in2_features: int,
    bias: bool = True,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.Bilinear`: weight, then bias."""
    if in1_features <= 0:
        raise fault("E309 bilinear-needs-in1_features", in1_features)
    shapes: dict[str, Shape] = {"weight": (out_features, in1_features, in2_features)}
    if bias:
        shapes["bias"] = out_features
    return _all_uniform(generator, shapes, in1_features, dtype)


def init_embedding(
    generator: Generator,
    count: int,
    length: int,
    padding_idx: int | None = None,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.Embedding` and `nn.EmbeddingBag`: standard normals, zeros in the padding row."""
    weight = generator.randn((count, length), dtype)
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise fault("E305 padding_idx-outside-embedding-rows", padding_idx, count, count - 1)
        weight[padding_idx] = 0
    return {"weight": weight}


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def init_recurrent(
    generator: Generator,
    kind: str,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    bias: bool = True,
    bidirectional: bool = False,
    proj_size: int = 0,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.RNN`, `nn.GRU` and `nn.LSTM`: names such as `weight_ih_l0`, in drawing order."""
    rows = GATES[kind] * hidden_size
    state = proj_size or hidden_size
    directions = ("", "_reverse") if bidirectional else ("",)
    shapes: dict[str, Shape] = {}
    for layer in range(num_layers):
        width = input_size if layer == 0 else state * len(directions)
        for direction in directions:
            end = f"_l{layer}{direction}"
            shapes["weight_ih" + end] = (rows, width)
            shapes["weight_hh" + end] = (rows, state)
            if bias:
                shapes["bias_ih" + end] = rows
                shapes["bias_hh" + end] = rows
            if proj_size:
                shapes["weight_hr" + end] = (proj_size, hidden_size)
    return _all_uniform(generator, shapes, hidden_size, dtype)


def init_recurrent_cell(
    generator: Generator,
    kind: str,
    input_size: int,
    hidden_size: int,
    bias: bool = True,
    dtype: DType = np.float32,
) -> Parameters:
    """`nn.RNNCell`, `nn.GRUCell` and `nn.LSTMCell` (`kind` without `Cell`)."""
    layer = init_recurrent(generator, kind, input_size, hidden_size, bias=bias, dtype=dtype)
    return {name.removesuffix("_l0"): values for name, values in layer.items()}


def _all_uniform(
    generator: Generator, shapes: dict[str, Shape], fan: int, dtype: DType
) -> Parameters:
    bound = 1 / math.sqrt(fan) if fan > 0 else 0.0
    return {name: generator.uniform(shape, dtype, -bound, bound) for name, shape in shapes.items()}
