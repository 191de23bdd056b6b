"""What the distributions of the library call besides the language: copies of themselves, and the
draws that have no function of PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.tensor import Tensor
from ..errors import fail
from ..graph.op import constant, value_of
from ..graph.state import STATE
from .classes import Instance
from .generators import default_stream


def _fields_of(value: Instance) -> dict[str, Any]:
    return value.fields


def _fresh_copy(value: Instance) -> Instance:
    """Another value of the same class with the same fields."""
    made = value.cls.make(value.cls)
    made.fields.update(value.fields)
    return made


def _array(value: Tensor, what: str) -> np.ndarray:
    if STATE.grad and value.requires_grad:
        raise fail(
            "E203",
            f"rsample() of {what} has no gradient here",
            help="draw with `.sample()`, which PyTorch does not differentiate either",
        )
    return np.ascontiguousarray(value_of(value.node))


def _standard_gamma(concentration: Tensor) -> Tensor:
    from ..autograd.random_counts import standard_gamma

    return Tensor(constant(standard_gamma(_array(concentration, "a gamma"), default_stream())))


def _sample_dirichlet(concentration: Tensor) -> Tensor:
    from ..autograd.random_counts import dirichlet

    return Tensor(constant(dirichlet(_array(concentration, "a Dirichlet"), default_stream())))


def _binomial(count: Tensor, prob: Tensor) -> Tensor:
    from ..autograd.random_counts import binomial

    counts, probs = _array(count, "a binomial"), _array(prob, "a binomial")
    return Tensor(constant(binomial(counts, probs, default_stream())))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "fields_of": _fields_of,
    "fresh_copy": _fresh_copy,
    "standard_gamma": _standard_gamma,
    "sample_dirichlet": _sample_dirichlet,
    "binomial": _binomial,
}
