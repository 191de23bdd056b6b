"""Calls near the samples of the op table: other dtypes, sizes, layouts, numbers and options, each a
change of one thing, and what is compared of a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

from autodiff_cli.graph.params import REQUIRED
from autodiff_cli.graph.samples import T, t

from .table import Case, array_of, cases, specs

# Results that are random or whatever lies in memory, or that write no result.
LEFT_OUT = {"empty", "empty_like", "empty_strided", "new_empty", "empty_permuted", "normal"}
DTYPES = ("float32", "float16", "int64", "int32", "uint8", "bool")
# Those of one operand where there are others.
ALONE = ("float32", "int64")
ODD = (np.nan, 1.0, 0.0, np.inf, -1.0, -0.0, -np.inf, 0.5, 3.0)
EVEN = (0.0, -0.0, 1.0, -0.0, 0.0, -1.0, 0.0)
# What else is looked at where all operands are such numbers, beside values and slopes: the signs of
# zeros, how the results move in forward mode, second slopes.
LOOKS = (("signs", EVEN), ("moves", ODD), ("second slopes", ODD))

Change = Callable[[Any], Any]


class Variation:
    """A changed call: its label, the arrays by place, the changes of other arguments by name or
    position, and what is looked at, "" for values and slopes."""

    def __init__(
        self, label: str, arrays: dict[str, np.ndarray], changed: dict[Any, Any], look: str = ""
    ):
        self.label, self.arrays, self.changed, self.look = label, arrays, changed, look


def _cast(array: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bool":
        return array > 0
    scaled = np.nan_to_num(array * 2, posinf=9, neginf=-9)
    if dtype == "uint8":
        return np.abs(scaled).astype(dtype)
    return (scaled if dtype.startswith("int") else array).astype(dtype)


def _odd(array: np.ndarray, numbers: tuple[float, ...] = ODD, shift: int = 0) -> np.ndarray:
    found = array.copy()
    flat = found.reshape(-1)
    flat[:] = np.resize(np.roll(numbers, -shift), flat.size)
    return found


def _shapes(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    yield "row", array[None]
    yield "two", np.stack([array, array * 0.5]).astype(array.dtype)
    if array.ndim:
        yield "empty", array[:0]
        yield "one", array[..., :1]
        yield "less", array[1:]
        yield "number", array.reshape(-1)[:1].reshape(())
        yield "inner", array[0]
    if array.ndim > 1:
        yield "columns", np.asfortranarray(array)


def _others(value: Any) -> Iterator[Any]:
    """Values for one that is no tensor."""
    if isinstance(value, bool):
        yield from (not value, int(value))
    elif isinstance(value, int):
        yield from (value + 1, value - 1, -value - 1, 0, 1.5, float(value))
    elif isinstance(value, float):
        yield from (0.0, 1.0, 2.0, -1.0, 0.5, float("nan"), 3, float("inf"), -float("inf"))
    elif isinstance(value, str):
        yield from ("none", "sum", "mean", "other")
    elif isinstance(value, tuple | list) and value and all(type(v) is int for v in value):
        yield from (value[::-1], value[:-1], (*value, 1), value[0], tuple(-v for v in value))
        yield tuple(v + 1 for v in value)


# Values for an argument that is missing unless given, by its annotation.
_MISSING: dict[str, tuple[Any, ...]] = {
    "Dtype": (np.dtype("float32"), np.dtype("float16"), np.dtype("int64"), np.dtype("bool")),
    "Dim": (0, -1, 1, 5),
    "Ints": (0, -1, (0,), (1, 0), (2,), 5),
    "Dims": (0, -1, (0,), (1, 0), (), 5),
    "AllDims": (0, -1, (0,), (1, 0), (), 5),
    "Scalar": (0.5, -1, 2.0, 0, float("nan")),
    "float": (0.5, -1.0, 2.0, 0.0, float("nan")),
    "Floats": (0.5, 2.0, (2.0,), (1.5, 2.0), 0.0),
    "int": (0, 1, 2, -1, 7),
    "bool": (True, False),
    "Flag": (True, False),
}


def _tensors(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Tensors for an argument that a sample leaves out, beside its first one."""
    floats = np.asarray(array, np.float64) * 0.5 + 0.25
    yield "like the first", floats
    yield "mask", floats > 0.25
    yield "number", floats.reshape(-1)[:1].reshape(())
    for dim in sorted({0, 1, array.ndim - 1} & set(range(array.ndim))):
        yield f"as long as {dim}", np.resize(floats, array.shape[dim])


def _of_default(param: Any) -> Iterator[Any]:
    """Values for an argument that a sample leaves out."""
    default = param.default
    if default is None:
        yield from _MISSING.get(param.annotation, ())
    elif isinstance(default, np.dtype):
        yield from _MISSING["Dtype"]
    else:
        yield from _others(default)
        if param.annotation == "Ints" and type(default) is int:
            yield from ((default + 1,), (default, default + 1), (default + 1, default, default))


def variations(case: Case) -> dict[str, Variation]:
    """Changes of a sample by label."""
    found: dict[str, Variation] = {}
    for variation in _variations(case):
        found.setdefault(variation.label, variation)
    return found


def _variations(case: Case) -> Iterator[Variation]:
    """Changes of a sample; of tensors only those of places that no sample of the op before has."""
    own = {place: array_of(spec, f"{case.name}/{place}") for place, spec in specs(case)}
    floats = [place for place, array in own.items() if array.dtype.kind == "f"]
    before = {
        place
        for number, sample in enumerate(case.op.samples[: case.number])
        for place, _ in specs(Case(case.op, number, sample))
    }
    yield Variation("as it is", own, {})
    if case.number == 0:
        for dtype in DTYPES:
            yield Variation(
                dtype, {p: _cast(a, dtype) if p in floats else a for p, a in own.items()}, {}
            )
        for kind, dtype in (("b", "uint8"), ("i", "int32"), ("i", "bool")):
            others = {p: a for p, a in own.items() if a.dtype.kind == kind}
            if others:
                cast = {p: (a * 2 if kind == "b" else a).astype(dtype) for p, a in others.items()}
                yield Variation(f"{kind} {dtype}", {**own, **cast}, {})
        if len(own) > 1:
            yield Variation("all in columns", {p: np.asfortranarray(a) for p, a in own.items()}, {})
    for place, array in own.items():
        if place in before:
            continue
        if place in floats:
            for dtype in ALONE if len(floats) > 1 else ():
                yield Variation(f"{place} {dtype}", {**own, place: _cast(array, dtype)}, {})
            yield Variation(f"{place} odd", {**own, place: _odd(array)}, {})
        for label, other in _shapes(array):
            if label != "columns" or len(own) == 1 or case.number:  # else all are at once
                yield Variation(f"{place} {label}", {**own, place: other}, {})
        if place.isidentifier() or place.isdigit():
            yield Variation(f"{place} none", own, {_key(place): None})
    for i, value in enumerate(case.sample.args):
        for other in _others(value) if not isinstance(value, T) else ():
            yield Variation(f"{i}={other!r}", own, {i: other})
    for look, numbers in LOOKS if floats else ():
        if numbers is ODD and case.op.package == "linalg":
            continue  # what LAPACK makes of them depends on its version
        odd = {p: _odd(own[p], numbers, 2 * i) for i, p in enumerate(floats)}
        kind = "odd" if numbers is ODD else "even"
        yield Variation(f"{look} {kind}", {**own, **odd}, {}, look)
    given = set(case.sample.kwargs) | {p.name for p in case.op.params[: len(case.sample.args)]}
    for name, value in case.sample.kwargs.items():
        for other in _others(value) if not isinstance(value, T) else ():
            yield Variation(f"{name}={other!r}", own, {name: other})
    for param in case.op.params:
        if param.name in given or param.default is REQUIRED or param.variadic:
            continue
        if case.number == 0 or isinstance(param.default, bool):
            for other in _of_default(param):
                yield Variation(f"{param.name}={other!r}", own, {param.name: other})
        if case.number == 0 and own and param.annotation in ("Tensor", "Mask"):
            for label, array in _tensors(next(iter(own.values()))):
                arrays = {**own, param.name: array}
                yield Variation(f"{param.name} {label}", arrays, {param.name: t()})


def _key(place: str) -> Any:
    return int(place) if place.isdigit() else place


def arguments(
    case: Case, variation: Variation, tensors: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a changed call, with `tensors` in their places."""

    def visit(value: Any, place: str) -> Any:
        if isinstance(value, T):
            return tensors[place]
        if isinstance(value, list | tuple):
            return type(value)(visit(item, f"{place}.{i}") for i, item in enumerate(value))
        return value

    changed = {key: visit(value, str(key)) for key, value in variation.changed.items()}
    args = [
        changed.pop(i) if i in changed else visit(value, str(i))
        for i, value in enumerate(case.sample.args)
    ]
    kwargs = {name: visit(value, name) for name, value in case.sample.kwargs.items()}
    return args, {**kwargs, **changed}


@cache
def weights(shape: tuple[int, ...], which: str) -> np.ndarray:
    """Fixed weights, that make one number of an array."""
    found = np.asarray(np.random.RandomState(crc32(which.encode())).uniform(0.5, 1.5, shape))
    found.setflags(write=False)
    return found


def summed(array: np.ndarray) -> tuple[float, float]:
    """One number of all elements, and how large what it sums is."""
    values = np.asarray(array, dtype=np.float64)
    if not np.isfinite(values).all():
        values = np.nan_to_num(values, nan=7.125, posinf=8.375, neginf=-9.625)
    terms = values * weights(values.shape, "sum")
    return float(terms.sum()), float(np.abs(terms).sum())


def zero_signs(array: np.ndarray) -> float:
    """One number of where zeros have a sign."""
    return summed(np.signbit(array) & (array == 0))[0] if array.dtype.kind == "f" else 0.0


def described(array: np.ndarray, strides: tuple[int, ...]) -> str:
    """Dtype, shape, and strides of the dims that are walked."""
    steps = [s for s, n in zip(strides, array.shape, strict=True) if n > 1] if array.size else []
    return f"{array.dtype} {list(array.shape)} {steps}"


def by_op() -> dict[str, list[Case]]:
    """Samples of what programs call, by op."""
    found: dict[str, list[Case]] = {}
    for case in cases():
        if case.op.public and case.op.name not in LEFT_OUT and "random" not in case.op.properties:
            found.setdefault(case.op.key, []).append(case)
    return found
