"""The op table as test material: every sample of every op, with inputs that never change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from textwrap import wrap
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from autodiff_cli.autograd import calls  # noqa: F401  # lists as operands
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.graph.kinds import Kind
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import Op, constant, leaf
from autodiff_cli.graph.registry import OPS, F
from autodiff_cli.graph.samples import S, T
from autodiff_cli.graph.state import STATE
from autodiff_cli.ops import index, load_all

from .together import together

load_all()


class Case(NamedTuple):
    """One sample of one op."""

    op: Op
    number: int
    sample: S

    @property
    def name(self) -> str:
        return f"{self.op.key}-{self.number}"


def cases() -> list[Case]:
    """All samples of the table, in its order, whatever was imported first."""
    order = {family: at for at, family in enumerate(index()[2])}
    ops = sorted(OPS.values(), key=lambda op: order.get(f"{op.package}.{op.family}", -1))
    return [Case(op, i, sample) for op in ops for i, sample in enumerate(op.samples)]


def share(found: Iterable[Case], n: int) -> list[Case]:
    """About one in `n` of them, the same ones whatever else is in the table."""
    return [case for case in found if crc32(case.name.encode()) % n == 0]


def listed(found: Iterable[tuple[str, Case]]) -> list[str]:
    """For each title the names of its samples, in lines that can be recorded."""
    titles: dict[str, dict[str, str]] = {}
    for title, case in found:
        names = titles.setdefault(title, {})
        names[case.op.key] = f"{names.get(case.op.key, case.op.key)}-{case.number}"
    rows = (f"{title}: {' '.join(names.values())}" for title, names in titles.items())
    return ["\n".join(wrap(row, 200)) for row in rows]


def each_op(rows: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """Call a test with each of these samples, or rows that begin with one: those of a family of ops
    are one test."""

    def case(row: Any) -> Case:
        return row if isinstance(row, Case) else row[0]

    def name(row: Any) -> str:
        return case(row).name if isinstance(row, Case) else f"{case(row).name} {row[1:]}"

    return together(rows, name, lambda row: case(row).op.family)


_RANDOM = np.random.RandomState(0)


def seeded(seed: str | int) -> np.random.RandomState:
    """`RandomState(seed)`, until the next is asked for: to make one takes far longer than to seed
    it."""
    _RANDOM.seed(crc32(seed.encode()) if isinstance(seed, str) else seed)
    return _RANDOM


def array_of(spec: T, seed: str) -> np.ndarray:
    """The array a sample describes; the same for the same seed text."""
    if spec.values is not None:
        return np.array(spec.values, dtype=spec.dtype).reshape(spec.shape or np.shape(spec.values))
    random = seeded(seed)
    if spec.dtype == "bool":
        return random.randint(0, 2, spec.shape).astype(bool)
    if spec.dtype.startswith(("int", "uint")):
        return random.randint(int(spec.low), int(spec.high), spec.shape).astype(spec.dtype)
    return np.asarray(random.uniform(spec.low, spec.high, spec.shape)).astype(spec.dtype)


def specs(case: Case) -> Iterator[tuple[str, T]]:
    """The tensors of a sample with their places, depth first."""

    def visit(value: Any, place: str) -> Iterator[tuple[str, T]]:
        if isinstance(value, T):
            yield place, value
        elif isinstance(value, list | tuple):
            for i, item in enumerate(value):
                yield from visit(item, f"{place}.{i}")

    for i, value in enumerate(case.sample.args):
        yield from visit(value, str(i))
    for name, value in case.sample.kwargs.items():
        yield from visit(value, name)


def variables(case: Case) -> list[str]:
    """The places of what a sample is derived by."""
    return [place for place, spec in specs(case) if spec.grad]


def arrays_of(case: Case) -> dict[str, np.ndarray]:
    """Arrays by place."""
    return {place: array_of(spec, f"{case.name}/{place}") for place, spec in specs(case)}


PROJECTIONS: dict[str, Callable[[Any], Any]] = {
    "symmetric": lambda x: (x + F.transpose(x, -2, -1)) * 0.5,
    "lower": lambda x: F.tril(x),
    "upper": lambda x: F.triu(x),
}


def bind(
    case: Case,
    tensors: dict[str, Any],
    projections: dict[str, Callable[[Any], Any]] = PROJECTIONS,
) -> tuple[list[Any], dict[str, Any]]:
    """The sample's arguments with `tensors` in the places of its specs.

    Those that stay within a set of matrices are projected to it, so that derivatives are too.
    """

    def visit(value: Any, place: str) -> Any:
        if isinstance(value, T):
            tensor = tensors[place]
            return projections[value.within](tensor) if value.within else tensor
        if isinstance(value, list | tuple):
            return type(value)(visit(item, f"{place}.{i}") for i, item in enumerate(value))
        return value

    args = [visit(value, str(i)) for i, value in enumerate(case.sample.args)]
    return args, {name: visit(value, name) for name, value in case.sample.kwargs.items()}


def nodes_of(case: Case, arrays: dict[str, np.ndarray]) -> dict[str, Node]:
    """Leaf nodes (constants where the spec takes no gradient) by place."""
    grads = {place: spec.grad for place, spec in specs(case)}
    return {
        place: leaf(array, AccumulateGrad()) if grads[place] else constant(array)
        for place, array in arrays.items()
    }


def apply(case: Case, nodes: dict[str, Node]) -> tuple[Node, ...]:
    """The results of the op that are nodes."""
    return without_signs(case, flat(call(case, nodes)))


def call(case: Case, nodes: dict[str, Node]) -> Any:
    """What the op gives."""
    STATE.reset()
    args, kwargs = bind(case, nodes)
    return case.op(*args, **kwargs)


def parts(result: Any) -> tuple[Any, ...]:
    """All nodes and numbers of a result."""
    if isinstance(result, Node | bool | int | float):
        return (result,)
    if isinstance(result, list | tuple):
        return tuple(n for part in result for n in parts(part))
    return ()


# Factors whose columns are known up to their signs, which differ from one LAPACK to the next.
SIGN_FREE = {"linalg_svd", "svd", "eigh"}


def without_signs(case: Case, results: Any) -> Any:
    """Nodes or PyTorch's tensors; squared where signs are free."""
    if case.op.key not in SIGN_FREE:
        return results
    return type(results)(part * part for part in results)


def flat(result: Any) -> tuple[Node, ...]:
    """All nodes of a result."""
    return tuple(part for part in parts(result) if isinstance(part, Node))


def weights(case: Case, shape: tuple[int, ...], which: str) -> np.ndarray:
    """Fixed weights that make one number of a result."""
    return np.asarray(seeded(f"{case.name}/{which}").uniform(-1, 1, shape))


__all__ = [
    "Case",
    "Kind",
    "apply",
    "array_of",
    "arrays_of",
    "bind",
    "call",
    "cases",
    "flat",
    "listed",
    "nodes_of",
    "parts",
    "seeded",
    "specs",
    "variables",
    "weights",
    "without_signs",
]
