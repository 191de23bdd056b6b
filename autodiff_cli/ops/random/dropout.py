"""Dropout: elements or channels set to zero at random in training."""

from __future__ import annotations

from ...errors import fault
from ...graph.declare import Flag, Tensor, function
from ...graph.op import constant
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ..kernels.rules import random_stream


def _check_p(p):
    if not 0 <= p <= 1:
        raise fault("E205 dropout-probability-lie-between", p)


def _scaled(input, shape, p):
    return F.mul(input, constant(random_stream().dropout(shape, p, input.dtype)))


def _scaled_and_moved(input, shape, p):
    factor, summand = random_stream().alpha_dropout(shape, p, input.dtype)
    return F.add(F.mul(input, constant(factor)), constant(summand))


def _dropped(input, p, training, draw, feature):
    _check_p(p)
    if not training or p == 0 or not input.numel:
        return input
    shape = input.shape
    if feature:
        shape = (*shape[:2], *(1,) * (len(shape) - 2))
    if p == 1:
        return F.mul(input, F.zeros(shape, dtype=input.dtype))
    return draw(input, shape, p)


def _dropout(key, names, draw, feature, trains, doc):
    """The function of `torch` (p and train required) and that of `nn.functional`."""

    def plain(input: Tensor, p: float, train: bool):
        return _dropped(input, p, train, draw, feature)

    def functional(input: Tensor, p: float = 0.5, training: bool = trains, inplace: Flag = False):
        return _dropped(input, p, training, draw, feature)

    plain.__doc__ = functional.__doc__ = doc
    function(
        key=key,
        method=False,
        inplace=True,
        samples=[S(t(2, 3), 0.5, False), S(t(2, 3), 0.0, True)],
        errors=[Bad("E205", t(2), 1.5, True)],
    )(plain)
    function(
        key=f"functional_{key}",
        name=names[0],
        aliases=names[1:],
        method=False,
        samples=[S(t(2, 3), 0.5, training=False), S(t(2, 3), 1.0, training=True)],
    )(functional)


for _key, _names, _draw, _feature, _trains, _doc in (
    (
        "dropout",
        ["dropout"],
        _scaled,
        False,
        True,
        "Zeros elements with probability p in training, scales the others.",
    ),
    (
        "feature_dropout",
        ["dropout1d", "dropout2d", "dropout3d"],
        _scaled,
        True,
        True,
        "Zeros whole channels with probability p in training, scales the others.",
    ),
    (
        "alpha_dropout",
        ["alpha_dropout"],
        _scaled_and_moved,
        False,
        False,
        "Dropout that keeps mean and variance of selu.",
    ),
    (
        "feature_alpha_dropout",
        ["feature_alpha_dropout"],
        _scaled_and_moved,
        True,
        False,
        "Alpha dropout of whole channels.",
    ),
):
    _dropout(_key, [f"nn.functional.{name}" for name in _names], _draw, _feature, _trains, _doc)
