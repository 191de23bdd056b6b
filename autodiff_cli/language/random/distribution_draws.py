"""What the distributions of the library call besides the language: copies of themselves, and the
draws that have no function of PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.random.counts import binomial, dirichlet, standard_gamma
from ...autograd.tensor import Tensor
from ...graph.op import Op, constant, value_of
from ...graph.registry import F
from ..values.user_classes import Object
from .generators import default_stream


def _fresh_copy(value: Object) -> Object:
    """Another value of the same class with the same fields."""
    made = value.cls.__new__(value.cls)
    made.fields.update(value.fields)
    return made


def _array(value: Tensor) -> np.ndarray:
    return np.asarray(value_of(value.node), order="C")


def _moving(op: Op, draw: Callable[..., np.ndarray], concentration: Tensor) -> Tensor:
    """A draw that knows how it moves with its parameter."""
    values = constant(draw(_array(concentration), default_stream()))
    return Tensor(op(values, concentration.node))


def _standard_gamma(concentration: Tensor) -> Tensor:
    return _moving(F.standard_gamma, standard_gamma, concentration)


def _sample_dirichlet(concentration: Tensor) -> Tensor:
    return _moving(F.sample_dirichlet, dirichlet, concentration)


def _binomial(count: Tensor, prob: Tensor) -> Tensor:
    counts, probs = _array(count), _array(prob)
    return Tensor(constant(binomial(counts, probs, default_stream())))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "fields_of": lambda value: value.fields,
    "fresh_copy": _fresh_copy,
    "standard_gamma": _standard_gamma,
    "sample_dirichlet": _sample_dirichlet,
    "binomial": _binomial,
}
