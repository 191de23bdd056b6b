"""Which operands and results of a sample backward refuses once they were changed in place, since
they were saved: in PyTorch and here, by the same calls."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .table import Case, array_of, specs


class Library(NamedTuple):
    """How to make a tensor of an array that takes a gradient or not, what a sample gives, how a
    method of a tensor is called, what is raised where something is wrong, and whether
    that says that a value was changed."""

    tensor: Callable[[np.ndarray, bool], Any]
    results: Callable[[Case, dict[str, Any]], list[Any]]
    method: Callable[..., Any]
    problem: type[Exception]
    told: Callable[[Any], bool]


def refused(case: Case, library: Library) -> str:
    """Places of operands and `out0` and so on of results: `0 weight out1`."""
    first = _called(case, library)
    places = [*dict(specs(case)), *(f"out{i}" for i in range(len(first[1])))]
    calls = chain([first], iter(lambda: _called(case, library), None))
    return " ".join(
        p for p, made in zip(places, calls, strict=False) if _refuses(library, p, *made)
    )


def _called(case: Case, library: Library) -> tuple[dict[str, Any], list[Any]]:
    operands = {}
    for place, spec in specs(case):
        made = library.tensor(array_of(spec, f"{case.name}/{place}"), spec.grad)
        operands[place] = library.method(made, "mul", 1.0) if spec.grad else made
    return operands, [x for x in library.results(case, operands) if hasattr(x, "requires_grad")]


def _refuses(library: Library, place: str, operands: dict[str, Any], results: list[Any]) -> bool:
    changed = operands[place] if place in operands else results[int(place.removeprefix("out"))]
    kept = [x for x in results if x.requires_grad and x is not changed]
    if place not in operands and changed.requires_grad:
        kept.append(library.method(changed, "mul", 1.0))
    sums = [library.method(library.method(x, "mul", 1.0), "sum") for x in kept]
    try:
        library.method(library.method(changed, "detach"), "mul_", True)
    except library.problem:
        return False
    try:
        for each in sums:
            library.method(each, "backward", retain_graph=True)
    except library.problem as error:
        return library.told(error)
    return False
