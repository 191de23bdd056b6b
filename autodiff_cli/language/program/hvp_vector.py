"""A vector given on the command line, in the shapes of the variables it is multiplied with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.literals import array_of
from ...autograd.tensor import Tensor
from ...errors import fail, fault
from ...graph.op import value_of
from ...graph.sizes import shape_text
from ...suggest import suggest
from ..python.loading import read_array

if TYPE_CHECKING:
    from .running import Program
    from .variables import Variable


def vector_of(program: Program, text: str, chosen: list[Variable]) -> list[np.ndarray]:
    """One array for each variable. The text is `ones`, a number for every element, a dict by name
    (others are zero), for several variables a list with one for each, or all elements in a row;
    `@file` holds such an array."""
    if text.strip() == "ones":
        return [np.ones(v.node.shape) for v in chosen]
    if text.startswith("@"):
        path, _, key = text[1:].partition(":")
        value: Any = read_array(path, key or None)
    else:
        value = program.evaluate_text(text, "<--hvp>")
    if isinstance(value, dict):
        return _by_name(value, chosen)
    if len(chosen) > 1 and isinstance(value, list | tuple) and len(value) == len(chosen):
        parts = [_array(part) for part in value]
        total = sum(v.node.numel for v in chosen)
        flat = total == len(chosen) and all(part.ndim == 0 for part in parts)
        if not flat:
            return [_shaped(part, v) for part, v in zip(parts, chosen, strict=True)]
    return _split(_array(value), chosen)


def _by_name(given: dict[Any, Any], chosen: list[Variable]) -> list[np.ndarray]:
    names = [v.name for v in chosen]
    for name in given:
        if name not in names:
            close = suggest(str(name), names)
            raise fail(
                "E201",
                f"--hvp: `{name}` is not one of the variables {', '.join(names)}",
                help=f"did you mean `{close[0]}`?" if close else "choose variables with --wrt",
            )
    return [
        _shaped(_array(given[v.name]), v) if v.name in given else np.zeros(v.node.shape)
        for v in chosen
    ]


def _array(value: Any) -> np.ndarray:
    if isinstance(value, Tensor):
        found = np.asarray(value_of(value.node))
    elif isinstance(value, np.ndarray):
        found = value
    elif isinstance(value, bool | int | float | list | tuple):
        found = array_of(list(value) if isinstance(value, tuple) else value)
    else:
        raise fault("E208 hvp-vector-made-numbers", type(value).__name__)
    return found.astype(np.float64)


def _shaped(array: np.ndarray, variable: Variable) -> np.ndarray:
    """A number for every element, the same shape, or the elements in a row."""
    shape = variable.node.shape
    if array.ndim == 0:
        return np.full(shape, float(array))
    if array.shape == shape:
        return array
    if array.ndim == 1 and array.size == variable.node.numel:
        return array.reshape(shape)
    raise fault("E308 hvp-vector-shape-variable", variable=variable, array=array, shape=shape)


def _split(array: np.ndarray, chosen: list[Variable]) -> list[np.ndarray]:
    """All elements in a row, cut into the shapes of the variables."""
    if len(chosen) == 1 or array.ndim == 0:
        return [_shaped(array, v) for v in chosen]
    total = sum(v.node.numel for v in chosen)
    if array.ndim != 1 or array.size != total:
        raise fail(
            "E308",
            f"--hvp: the vector has shape {shape_text(array.shape)}, the variables "
            f"{', '.join(v.name for v in chosen)} have {total} elements together",
            help="give a list with one for each, a dict by name, or all elements in a row",
        )
    ends = np.cumsum([v.node.numel for v in chosen])[:-1]
    return [
        part.reshape(v.node.shape) for part, v in zip(np.split(array, ends), chosen, strict=True)
    ]
